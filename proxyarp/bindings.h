// SPDX-License-Identifier: GPL-2.0-or-later
// The binding table of one broadcast domain: what is provisioned, learned from members and told by
// EVPN about each address, which of it is in use, and what of that the data path and EVPN know.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxyarp/responder.h"

namespace proxyarp {

using Actions = std::vector<Action>;

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
  net::TimePoint seen;
  uint64_t order = 0;  // of the event that said so
};
struct EvpnPart {
  net::MacAddress mac;
  NaFlags flags;
  bool immutable = false;
  uint64_t order = 0;
};

// The part that is in use.
struct InUse {
  net::MacAddress mac{};
  BindingKind kind = BindingKind::Static;
  MacWhere where = MacWhere::Nowhere;
  net::IfIndex port{};  // when local
  NaFlags flags{};      // as told; answers have the override flag set whatever they say
  bool immutable = false;
  bool answerable = false;
};

struct Binding {
  std::optional<FixedPart> fixed;
  std::optional<LearnedPart> learned;
  std::optional<EvpnPart> evpn;
  // The allowed MAC that last claimed the address, among several that are present.
  net::MacAddress claimed;
  uint64_t claim_order = 0;
  net::TimePoint claim_time;

  std::optional<InUse> in_use;
  // What was reported, so that each change is reported once.
  std::optional<SetFastEntry> fast;
  std::optional<LocalBindingUp> up;
  std::optional<net::MacAddress> members_know;  // the MAC that was last answered with

  bool empty() const { return !fixed && !learned && !evpn; }
  // Provisioned for certain MACs.
  bool reserved() const { return fixed && !fixed->allowed.empty(); }
  const InUse* answerable() const { return in_use && in_use->answerable ? &*in_use : nullptr; }
  // Whether `mac` is the owner's: in use, or on the list of those that may be.
  bool owned_by(net::MacAddress mac) const;
};

enum class LearnResult : uint8_t { NotAllowed, Refreshed, Changed, LimitReached };

class BindingTable {
 public:
  BindingTable(const Settings& settings, uint64_t seed);

  const Settings& settings() const { return settings_; }
  void port_up(net::IfIndex port, const std::string& name, Actions& out);
  void port_down(net::IfIndex port, Actions& out);
  void reconfigure(const Settings& settings, Actions& out);
  void place_mac(net::MacAddress mac, MacWhere where, net::IfIndex port, Actions& out);
  void set_evpn(const net::IpAddress& ip, std::optional<EvpnPart> part, Actions& out);
  // A member's frame says that `ip` is at `mac`; the caller has asked refuses().
  LearnResult learn(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port, NaFlags flags,
                    net::TimePoint now, Actions& out);
  // One of several allowed MACs says that the address is its own now. True when that changed
  // which is in use.
  bool claim(const net::IpAddress& ip, net::MacAddress mac, net::TimePoint now, Actions& out);
  net::TimePoint deadline() const;
  void expire(net::TimePoint now, Actions& out);

  const Binding* find(const net::IpAddress& ip) const;
  // A host's address on the LAN: inside a prefix, or IPv6 link-local.
  bool inside(const net::IpAddress& ip) const;
  // Whether the address is bound so that `mac` at `port` (none: behind the core) must not use it.
  bool refuses(const net::IpAddress& ip, net::MacAddress mac,
               std::optional<net::IfIndex> port) const;
  // Port with LocalPort.
  std::pair<MacWhere, net::IfIndex> whereabouts(net::MacAddress mac) const;
  const std::map<net::IpAddress, Binding>& all() const { return bindings_; }

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

  Place place(net::MacAddress mac) const;
  bool on_named_port(const FixedPart& fixed, net::IfIndex port) const;
  bool allowed_at(net::MacAddress mac, net::IfIndex port) const;
  bool may_learn(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port) const;
  bool over_limit(const Binding* old, const net::IpAddress& ip, net::MacAddress mac,
                  net::IfIndex port) const;
  std::map<net::IpAddress, FixedPart> provisioned() const;

  std::optional<InUse> resolve_fixed(const Binding& binding) const;
  std::optional<InUse> resolve(const net::IpAddress& ip, const Binding& binding) const;
  void publish(const net::IpAddress& ip, Binding& binding, Actions& out);
  void publish_all(Actions& out);
  void announce(const net::IpAddress& ip, const InUse& in_use, Actions& out) const;

  void forget_learned(const net::IpAddress& ip, Binding& binding);
  static bool mentions(const Binding& binding, net::MacAddress mac);
  void unmention(const net::IpAddress& ip, const Binding& binding, net::MacAddress mac);

  Settings settings_;
  std::map<net::IpAddress, Binding> bindings_;
  std::map<net::IfIndex, std::string> ports_;  // those that are up
  std::unordered_map<net::MacAddress, Place, SeededHash> places_;
  std::set<std::pair<net::MacAddress, net::IpAddress>> by_mac_;  // what parts mention
  std::set<std::pair<net::TimePoint, net::IpAddress>> by_age_;   // learned ones, by time seen
  std::map<net::IfIndex, uint32_t> learned_at_;                  // how many per port
  uint64_t order_ = 0;
};

}  // namespace proxyarp
