// SPDX-License-Identifier: GPL-2.0-or-later
#include "evpn/binding_guard.h"

#include <algorithm>
#include <utility>

#include "evpn/communities.h"

namespace evpn {
namespace {

// `AS64507 "Golf Net"`, `"Golf Net"`, `a member`
std::string who(net::AsNumber as, const std::string& name) {
  std::string text = as.value != 0 ? "AS" + std::to_string(as.value) : "";
  if (!name.empty()) text += (text.empty() ? "\"" : " \"") + name + "\"";
  return text.empty() ? "a member" : text;
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + net::to_string(value);
  return text;
}

}  // namespace

MemberDatabase::MemberDatabase(std::vector<MemberList> lists) {
  for (MemberList& list : lists) {
    auto lan = std::make_unique<Lan>();
    lan->list = std::move(list);
    lan->imports.vni = lan->list.vni;
    lan->imports.import_targets = lan->list.route_targets;
    for (const MemberMac& mac : lan->list.macs) lan->by_mac.emplace(mac.mac, mac);
    for (const MemberAddress& address : lan->list.addresses) {
      lan->by_ip.emplace(address.ip, &address);
      for (const net::MacAddress& mac : address.macs)
        lan->by_mac.emplace(mac, MemberMac{mac, address.as, address.name, {}});
    }
    by_vni_.emplace(lan->list.vni.value, lan.get());
    lans_.push_back(std::move(lan));
  }
}

const MemberDatabase::Lan* MemberDatabase::lan_of(const RouteFacts& route,
                                                  const bgp::Attributes& attributes) const {
  if (route.vni)
    if (const auto found = by_vni_.find(*route.vni); found != by_vni_.end()) return found->second;
  const auto found = std::ranges::find_if(
      lans_, [&](const auto& lan) { return imports(lan->imports, attributes); });
  return found == lans_.end() ? nullptr : found->get();
}

MemberDatabase::Fault MemberDatabase::check(const Lan& lan, const RouteFacts& route,
                                            const bgp::Attributes& attributes) {
  const auto mac = lan.by_mac.find(*route.mac);
  // 1. The address is on the LAN and a member's, and this MAC may have it. Link-local addresses
  //    are in no list.
  if (route.ip && !(route.ip->address.is_v6() && route.ip->address.is_link_local())) {
    const net::IpAddress& ip = route.ip->address;
    const auto inside = [&](const net::IpPrefix& prefix) { return prefix.contains(ip); };
    if (!std::ranges::any_of(lan.list.prefixes, inside)) return Fault::OutsidePrefixes;
    const auto owner = lan.by_ip.find(ip);
    if (owner == lan.by_ip.end()) return Fault::UnknownIp;
    const MemberAddress& own = *owner->second;
    // Without MACs of its own: any that its member has.
    const bool allowed = own.macs.empty()
                             ? mac != lan.by_mac.end() && mac->second.as == own.as
                             : std::ranges::find(own.macs, *route.mac) != own.macs.end();
    if (!allowed) return Fault::OtherMac;
  }
  // 2. The MAC is a member's.
  if (mac == lan.by_mac.end()) return Fault::UnknownMac;
  // 3. It is announced by a PE that the member is connected to.
  const auto& pes = mac->second.pes;
  if (!pes.empty() && std::ranges::find(pes, attributes.next_hop) == pes.end())
    return Fault::OtherPe;
  return Fault::None;
}

MemberDatabase::Fault MemberDatabase::check(const RouteFacts& route,
                                            const bgp::Attributes& attributes) const {
  if (!route.mac) return Fault::None;
  const Lan* lan = lan_of(route, attributes);
  return lan == nullptr ? Fault::None : check(*lan, route, attributes);
}

std::string MemberDatabase::explain(const RouteFacts& route,
                                    const bgp::Attributes& attributes) const {
  const Lan* lan = route.mac ? lan_of(route, attributes) : nullptr;
  if (lan == nullptr) return "not of a LAN whose members are known";
  const std::string mac = net::to_string(*route.mac);
  const std::string ip = route.ip ? net::to_string(route.ip->address) : "";
  switch (check(*lan, route, attributes)) {
    case Fault::OutsidePrefixes: return ip + " is outside of " + list_text(lan->list.prefixes);
    case Fault::UnknownIp: return ip + " belongs to no member";
    case Fault::OtherMac: {
      const MemberAddress& own = *lan->by_ip.at(route.ip->address);
      const std::string macs = own.macs.empty() ? "" : " (" + list_text(own.macs) + ")";
      return ip + " belongs to " + who(own.as, own.name) + macs + ", not to " + mac;
    }
    case Fault::UnknownMac: return mac + " belongs to no member";
    case Fault::OtherPe: {
      const MemberMac& own = lan->by_mac.at(*route.mac);
      return mac + " of " + who(own.as, own.name) + " is at PE " + list_text(own.pes) +
             ", not at " + net::to_string(attributes.next_hop);
    }
    case Fault::None: break;
  }
  return "as the member database has it";
}

bgp::Verdict BindingGuardPolicy::judge(std::span<const uint8_t> nlri,
                                       const bgp::Attributes& attributes) const {
  if (mode_ == bgp::BindingGuard::Off ||
      members_->check(facts_of(nlri, attributes), attributes) == MemberDatabase::Fault::None)
    return bgp::Verdict::Accept;
  return mode_ == bgp::BindingGuard::Flag ? bgp::Verdict::Flag : bgp::Verdict::Reject;
}

std::string BindingGuardPolicy::explain(std::span<const uint8_t> nlri,
                                        const bgp::Attributes& attributes) const {
  return "binding guard: " + members_->explain(facts_of(nlri, attributes), attributes);
}

}  // namespace evpn
