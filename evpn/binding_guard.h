// SPDX-License-Identifier: GPL-2.0-or-later
// The binding guard: MAC/IP routes (type 2) of a LAN whose members are known must be as the member
// database has them. A PE that was taken over, or whose port security fails, can't draw another
// member's traffic to itself.
//
// A route belongs to a LAN by its label or by its route target: PEs import by the latter. Routes of
// other types, and of LANs that have no list, are accepted. Pure.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bgp/policy.h"
#include "bgp/settings.h"
#include "evpn/policy_settings.h"
#include "evpn/route_facts.h"
#include "net/ip_address.h"
#include "net/mac_address.h"

namespace evpn {

class MemberDatabase {
 public:
  explicit MemberDatabase(std::vector<MemberList> lists);

  // What is wrong with a route in words, or nothing: "192.0.2.7 belongs to AS64507
  // (02:00:00:00:00:07), not to 02:00:00:00:00:08".
  enum class Fault : uint8_t {
    None,
    OutsidePrefixes,
    UnknownIp,
    OtherMac,  // the address belongs to another MAC
    UnknownMac,
    OtherPe,  // the MAC is not at that PE
  };
  [[nodiscard]] Fault check(const RouteFacts& route, const bgp::Attributes& attributes) const;
  [[nodiscard]] std::string explain(const RouteFacts& route,
                                    const bgp::Attributes& attributes) const;
  [[nodiscard]] bool empty() const { return lans_.empty(); }

 private:
  struct Lan {
    MemberList list;
    Settings imports;  // only VNI and targets
    std::unordered_map<net::IpAddress, const MemberAddress*> by_ip;
    std::unordered_map<net::MacAddress, MemberMac> by_mac;
  };
  [[nodiscard]] const Lan* lan_of(const RouteFacts& route, const bgp::Attributes& attributes) const;
  static Fault check(const Lan& lan, const RouteFacts& route, const bgp::Attributes& attributes);

  std::vector<std::unique_ptr<const Lan>> lans_;
  std::unordered_map<uint32_t, const Lan*> by_vni_;
};

class BindingGuardPolicy final : public bgp::RoutePolicy {
 public:
  BindingGuardPolicy(std::shared_ptr<const MemberDatabase> members, bgp::BindingGuard mode)
      : members_(std::move(members)), mode_(mode) {}
  [[nodiscard]] bgp::Verdict judge(std::span<const uint8_t> nlri,
                                   const bgp::Attributes& attributes) const override;
  // "binding guard: 192.0.2.7 belongs to AS64507 (02:...), not to 02:..."
  [[nodiscard]] std::string explain(std::span<const uint8_t> nlri,
                                    const bgp::Attributes& attributes) const override;

 private:
  std::shared_ptr<const MemberDatabase> members_;
  bgp::BindingGuard mode_;
};

}  // namespace evpn
