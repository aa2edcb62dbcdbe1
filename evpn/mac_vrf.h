// SPDX-License-Identifier: GPL-2.0-or-later
// The MAC-VRF of one broadcast domain: local and remote MACs, their one place each, mobility
// (RFC 7432 sections 7.7 and 15), the flood list (section 11) and MAC/IP bindings (section 10).
//
// Pure: events go in with the time, actions come out in the order in which they must be carried
// out.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "bgp/attributes.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "evpn/settings.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"
#include "net/time.h"

namespace evpn {

struct AtPort {  // behind a member port here
  net::IfIndex port;
  bool sticky = false;  // provisioned: must not move (RFC 7432 section 15.2)
  auto operator<=>(const AtPort&) const = default;
};
struct AtVtep {  // behind another PE
  net::IpAddress vtep;
  bool sticky = false;
  auto operator<=>(const AtVtep&) const = default;
};
using MacPlace = std::variant<std::monostate, AtPort, AtVtep>;  // monostate: nowhere

// --- actions
struct Originate {
  Route route;
  bgp::AttributesPtr attributes;  // next hop, communities, PMSI: all that goes out
};
struct Withdraw {
  Route route;
};
struct MacPlaced {  // also when it went away (monostate)
  net::MacAddress mac;
  MacPlace before, after;
};
struct FloodChanged {  // the flood list gained or lost a VTEP
  net::IpAddress vtep;
  bool added = false;
};
struct RemoteBindingChanged {  // a MAC/IP route of another PE won, changed, or is gone (no mac)
  net::IpAddress ip;
  std::optional<net::MacAddress> mac;
  ArpNdFlags flags;
  net::IpAddress vtep;
  struct Other {
    net::MacAddress mac;
    ArpNdFlags flags;
    net::IpAddress vtep;
  };
  std::vector<Other> others{};  // further MACs of an anycast address
};
enum class AlarmKind : uint8_t {
  DuplicateMac,  // moved too often: frozen (RFC 7432 section 15.1)
  DuplicateMacCleared,
  StickyMacElsewhere,  // a provisioned MAC is seen at another place
  VtepMismatch,        // PMSI endpoint and next hop differ
};
struct Alarm {
  AlarmKind kind;
  net::MacAddress mac;
  MacPlace first, second;
};
using Action =
    std::variant<Originate, Withdraw, MacPlaced, FloodChanged, RemoteBindingChanged, Alarm>;
using Actions = std::vector<Action>;

// --- views
struct MacView {
  net::MacAddress mac;
  MacPlace place;
  uint32_t sequence = 0;
  bool duplicate = false;   // frozen
  bool advertised = false;  // our type 2 is out
  uint32_t moves = 0;       // to or from our ports, in the detection window
  net::Esi esi;             // its Ethernet segment at other PEs; 0: none
  bool unresolved = false;  // nowhere, as the A-D routes of that segment are missing, or
  std::optional<net::IpAddress> unreachable;  // ... there is no route to this PE
  std::vector<net::IpAddress> ips;            // of MAC/IP routes, local and remote
};

struct MacCounts {
  uint64_t local = 0, remote = 0, unresolved = 0;
};

class MacVrf {
 public:
  explicit MacVrf(const Settings& settings);
  ~MacVrf();
  MacVrf(MacVrf&&) noexcept;
  MacVrf& operator=(MacVrf&&) noexcept;

  [[nodiscard]] const Settings& settings() const;
  [[nodiscard]] net::RouteDistinguisher rd() const;

  // Our inclusive multicast route; call once, when the data path stands.
  [[nodiscard]] Actions start(net::TimePoint now);
  // The domain goes: withdraws all that is out. Nothing else may be called afterwards but views.
  [[nodiscard]] Actions stop();

  // A best path of another PE changed. `attributes` is null when it was withdrawn. Routes whose
  // targets we don't import are taken as withdrawn. Our own routes must not be handed in.
  [[nodiscard]] Actions remote(const Route& route, const bgp::AttributesPtr& attributes,
                               net::TimePoint now);

  // Next-hop tracking: the underlay has a route to that PE, or none. Until told otherwise it has.
  // Routes to a PE without one make no claim, as if they were withdrawn; what floods stays.
  [[nodiscard]] Actions reachable(const net::IpAddress& vtep, bool yes, net::TimePoint now);
  // The PEs that routes here name.
  [[nodiscard]] std::set<net::IpAddress> vteps() const;

  // Other settings for the same domain. This one, which is new, takes over what `before` knows
  // itself: our claims, bindings, moves, duplicates. The routes of other PEs are handed in anew,
  // the actions of which are not to be carried out. succeed() then says what is to do, given that
  // all that `before` said was done.
  void inherit(const MacVrf& before, net::TimePoint now);
  [[nodiscard]] Actions succeed(const MacVrf& before);

  // A MAC is behind a member port: learned (sticky false) or provisioned and present (true). A
  // provisioned one stays so until local_mac_gone(). Where place_of() is not that port afterwards
  // (provisioned elsewhere, or frozen), the caller puts the kernel's entry back.
  [[nodiscard]] Actions local_mac(net::MacAddress mac, net::IfIndex port, bool sticky,
                                  net::TimePoint now);
  // It aged out or was removed there. Ignored when the MAC is meanwhile at another port.
  [[nodiscard]] Actions local_mac_gone(net::MacAddress mac, net::IfIndex port, net::TimePoint now);
  // The port went down or away: everything behind it is withdrawn.
  [[nodiscard]] Actions port_down(net::IfIndex port, net::TimePoint now);

  // The PE's own MAC, of its bridge: goes out as a MAC route that can't move, so that answers to
  // what the PE asks come back through the fabric. None: withdrawn.
  [[nodiscard]] Actions own_mac(std::optional<net::MacAddress> mac, net::TimePoint now);
  // The address is a duplicate: goes out as MAC/IP route with the anti-spoof MAC, which can't move
  // (RFC 9161 section 3.7 c). Replaces an earlier one.
  [[nodiscard]] Actions anti_spoof(net::IpAddress ip, net::MacAddress mac, net::TimePoint now);
  [[nodiscard]] Actions anti_spoof_gone(net::IpAddress ip, net::TimePoint now);

  // The proxy found a binding behind one of our ports: goes out as MAC/IP route while its MAC is
  // local. Replaces an earlier MAC of the same IP, unless that may have several (anycast). It is
  // remembered until local_binding_gone().
  [[nodiscard]] Actions local_binding(net::IpAddress ip, net::MacAddress mac, ArpNdFlags flags,
                                      net::TimePoint now);
  // Of all MACs, or of one.
  [[nodiscard]] Actions local_binding_gone(net::IpAddress ip, net::TimePoint now);
  [[nodiscard]] Actions local_binding_gone(net::IpAddress ip, net::MacAddress mac,
                                           net::TimePoint now);

  // Timers: hold-down of duplicates (0 s: until the operator clears it). deadline() is kNever when
  // nothing waits.
  [[nodiscard]] net::TimePoint deadline() const;
  [[nodiscard]] Actions tick(net::TimePoint now);
  // The operator unfreezes a duplicate.
  [[nodiscard]] Actions clear_duplicate(net::MacAddress mac, net::TimePoint now);

  [[nodiscard]] MacPlace place_of(net::MacAddress mac) const;
  [[nodiscard]] std::vector<net::IpAddress> flood_list() const;
  void for_each_mac(const std::function<void(const MacView&)>& visit) const;
  // The same in pieces: those behind `last`, by address, at most `count`.
  [[nodiscard]] std::vector<MacView> macs_after(const std::optional<net::MacAddress>& last,
                                                std::size_t count) const;
  [[nodiscard]] MacCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evpn
