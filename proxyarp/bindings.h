// SPDX-License-Identifier: GPL-2.0-or-later
// The binding table of one broadcast domain: what is provisioned, learned from members and told by
// EVPN about each address, which of it is in use, and what of that the data path and EVPN know.
// Inside proxyarp/ only.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxyarp/announcements.h"
#include "proxyarp/context.h"

namespace proxyarp {

// Provisioned. With no allowed MACs it only ties the address to its port, and the MAC is learned.
struct FixedPart {
  std::vector<net::MacAddress> allowed;
  std::string port;           // empty: any place
  bool wait_for_mac = false;  // in use only once its MAC was seen
  net::AsNumber member_as;
  std::string member_name;
  bool operator==(const FixedPart&) const = default;
};
struct LearnedPart {
  net::MacAddress mac;
  net::IfIndex port;
  NaFlags flags;
  uint8_t asked = 0;  // our own questions since it was seen
  net::TimePoint seen;
  net::TimePoint due;  // of its timer: the next question, or its end
  uint64_t order = 0;  // of the event that said so
};
struct EvpnPart {
  net::MacAddress mac;
  NaFlags flags;
  bool immutable = false;
  uint64_t order = 0;
};

// A part that is in use.
struct InUse {
  net::MacAddress mac{};
  BindingKind kind = BindingKind::Static;
  MacWhere where = MacWhere::Nowhere;
  net::IfIndex port{};  // when local
  NaFlags flags{};      // as told; answers have the override flag set whatever they say
  bool immutable = false;
  bool answerable = false;
  ClaimPlace place() const { return {where, port}; }
};

// Whether it can be said who has the address (RFC 9161 section 3.7).
enum class Doubt : uint8_t {
  None,
  Pending,  // the owner is being confirmed
  Frozen,   // a duplicate
};

struct Binding {
  std::unique_ptr<const FixedPart> fixed;
  std::vector<LearnedPart> learned;  // several only of anycast addresses
  std::vector<EvpnPart> evpn;        // likewise
  net::MacAddress chosen;            // of several allowed ones
  Doubt doubt = Doubt::None;

  std::optional<InUse> in_use;
  bool several = false;  // anycast, and not in_use alone
  // What was reported, so that each change is reported once.
  struct Told {
    net::MacAddress mac;
    net::IfIndex port;
    NaFlags flags;
    bool immutable = false;
    bool operator==(const Told&) const = default;
  };
  std::optional<Told> fast;
  std::vector<Told> up;
  std::optional<net::MacAddress> members_know;  // the MAC that was last answered with

  uint64_t answers = 0;
  std::optional<net::MacAddress> last_asker;

  bool empty() const { return !fixed && learned.empty() && evpn.empty() && doubt != Doubt::Frozen; }
  // Provisioned for certain MACs.
  bool reserved() const { return fixed && !fixed->allowed.empty(); }
  const InUse* answerable() const { return in_use && in_use->answerable ? &*in_use : nullptr; }
  // Whether `mac` is the owner's: in use, or on the list of those that may be.
  bool owned_by(net::MacAddress mac) const;
  bool immutable_elsewhere() const { return !evpn.empty() && evpn.front().immutable; }
};

class BindingTable {
 public:
  BindingTable(Context& context, Announcements& announcements);

  void port_up(net::IfIndex port, const std::string& name);
  void port_down(net::IfIndex port);
  // The settings of the context are new ones.
  void reconfigure();
  void place_mac(net::MacAddress mac, MacWhere where, net::IfIndex port);
  // Of other PEs, the best first; several only of anycast addresses.
  void set_evpn(const net::IpAddress& ip, std::vector<EvpnPart> parts);

  enum class LearnResult : uint8_t { NotAllowed, Refreshed, Changed, LimitReached, TooFast };
  // What may be said before learn(): whether it would be refused or kept out.
  [[nodiscard]] LearnResult may_bind(const net::IpAddress& ip, net::MacAddress mac,
                                     net::IfIndex port);
  // A member's frame says that `ip` is at `mac`; may_bind() was asked and did not refuse. Takes the
  // place of another MAC that was learned.
  LearnResult learn(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port,
                    NaFlags flags);
  // A sign of life that changes nothing. False when the pair isn't learned at that port.
  bool refresh(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port);
  // One of several allowed MACs has the address now. True when that changed which is in use.
  bool choose(const net::IpAddress& ip, net::MacAddress mac);
  // Forgets what was learned of the address; of one MAC, or all. False: nothing was.
  bool forget(const net::IpAddress& ip, std::optional<net::MacAddress> mac = std::nullopt);
  void set_doubt(const net::IpAddress& ip, Doubt doubt);
  // The owner's own frame was flooded to the members here.
  void members_saw(const net::IpAddress& ip, net::MacAddress mac);

  [[nodiscard]] const Binding* find(const net::IpAddress& ip) const;
  [[nodiscard]] Binding* find(const net::IpAddress& ip);
  // All that may answer for it: one, or several of an anycast address.
  [[nodiscard]] std::vector<InUse> owners(const net::IpAddress& ip, const Binding& binding) const;
  // A host's address on the LAN: inside a prefix, or IPv6 link-local.
  [[nodiscard]] bool inside(const net::IpAddress& ip) const;
  // Whether the address is bound so that `mac` at `port` (none: behind the core) must not use it.
  [[nodiscard]] bool refuses(const net::IpAddress& ip, net::MacAddress mac,
                             std::optional<net::IfIndex> port) const;
  // Port with LocalPort.
  [[nodiscard]] std::pair<MacWhere, net::IfIndex> whereabouts(net::MacAddress mac) const;
  // Whether the MAC is provisioned, for this port or for any.
  [[nodiscard]] bool provisioned_at(net::MacAddress mac, net::IfIndex port) const;
  [[nodiscard]] bool provisioned(net::MacAddress mac) const;
  [[nodiscard]] bool port_is_up(net::IfIndex port) const { return ports_.contains(port); }
  [[nodiscard]] std::string port_name(net::IfIndex port) const;
  [[nodiscard]] std::vector<net::IfIndex> ports() const;
  [[nodiscard]] const std::map<net::IpAddress, Binding>& all() const { return bindings_; }
  // Whether anything is learned of the MAC.
  [[nodiscard]] bool has_learned(net::MacAddress mac) const;

  // --- timers of learned parts, for maintenance
  using Timer = std::tuple<net::TimePoint, net::IpAddress, net::MacAddress>;
  [[nodiscard]] const std::set<Timer>& timers() const { return timers_; }
  void set_timer(const net::IpAddress& ip, LearnedPart& part, net::TimePoint due);

  // Addresses whose owner, in doubt, is not there any more; taken by the caller.
  [[nodiscard]] std::vector<net::IpAddress> take_deserted() { return std::exchange(deserted_, {}); }
  // Addresses that somebody has now, and nobody had before; likewise.
  [[nodiscard]] std::vector<net::IpAddress> take_arrived() { return std::exchange(arrived_, {}); }

 private:
  struct Place {
    MacWhere where = MacWhere::Nowhere;
    net::IfIndex port;
    uint64_t order = 0;
  };
  struct SeededHash {
    uint64_t seed;
    std::size_t operator()(net::MacAddress mac) const noexcept {
      return net::hash_bytes(mac.bytes(), seed);
    }
  };
  using Bindings = std::map<net::IpAddress, Binding>;

  Place place(net::MacAddress mac) const;
  bool on_named_port(const FixedPart& fixed, net::IfIndex port) const;
  bool fits(const FixedPart& fixed, const Place& at) const;
  bool may_learn(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port) const;
  bool over_limit(const Binding* old, const net::IpAddress& ip, net::MacAddress mac,
                  net::IfIndex port) const;
  bool anycast(const net::IpAddress& ip) const { return context_.settings.anycast && ip.is_v6(); }

  std::optional<InUse> resolve_fixed(const Binding& binding) const;
  std::optional<InUse> resolve(const net::IpAddress& ip, const Binding& binding) const;
  void publish(const net::IpAddress& ip, Binding& binding);
  void publish_up(const net::IpAddress& ip, Binding& binding, const std::vector<InUse>& owners);
  void publish_fast(const net::IpAddress& ip, Binding& binding);
  bool answered_in_kernel(const net::IpAddress& ip, const Binding& binding) const;
  bool advertised(const net::IpAddress& ip, NaFlags flags) const;
  void publish_all();
  void erase_if_empty(const net::IpAddress& ip);
  void watch_fill();
  uint64_t given_and_learned() const;

  void drop_learned(const net::IpAddress& ip, Binding& binding, std::size_t index);
  void mention(const net::IpAddress& ip, net::MacAddress mac) { by_mac_.emplace(mac, ip); }
  static bool mentions(const Binding& binding, net::MacAddress mac);
  void unmention(const net::IpAddress& ip, const Binding& binding, net::MacAddress mac);

  Context& context_;
  Announcements& announcements_;
  Bindings bindings_;
  std::map<net::IfIndex, std::string> ports_;  // those that are up
  std::unordered_map<net::MacAddress, Place, SeededHash> places_;
  std::set<std::pair<net::MacAddress, net::IpAddress>> by_mac_;  // what parts mention
  std::set<Timer> timers_;                                       // of learned parts
  std::map<net::IfIndex, uint32_t> learned_at_;                  // how many per port
  std::map<net::MacAddress, uint32_t> link_locals_;              // learned ones
  std::map<net::IfIndex, Pacer> new_at_;                         // rate of new ones
  std::set<std::pair<net::MacAddress, std::string>> by_member_;  // provisioned: port, "" for any
  std::vector<net::IpAddress> deserted_, arrived_;
  uint64_t order_ = 0;
  uint64_t given_ = 0;      // addresses
  uint32_t fill_told_ = 0;  // percent
};

// The provisioned bindings by address: those of one address that came from several sources as one,
// and the link-local addresses that their MACs make.
[[nodiscard]] std::map<net::IpAddress, FixedPart> provisioned_parts(const Settings& settings);

}  // namespace proxyarp
