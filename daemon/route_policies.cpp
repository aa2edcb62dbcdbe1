// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/route_policies.h"

#include <algorithm>

namespace peerland {
namespace {

evpn::MemberList list_of(const config::BroadcastDomain& domain) {
  evpn::MemberList list{domain.evpn.vni, domain.evpn.import_targets, domain.proxy.prefixes, {}, {}};
  for (const auto& binding : domain.proxy.bindings)
    list.addresses.push_back({binding.ip, binding.macs, binding.member_as, binding.member_name});
  for (const auto& port : domain.ports) {
    for (const auto& mac : port.macs)
      list.macs.push_back({mac, port.member_as, port.member_name, {}});
    for (const auto& address : port.addresses)
      if (std::ranges::find(list.addresses, address, &evpn::MemberAddress::ip) ==
          list.addresses.end())
        list.addresses.push_back({address, {}, port.member_as, port.member_name});
  }
  return list;
}

}  // namespace

std::vector<evpn::MemberList> member_lists(const config::NodeSettings& settings) {
  std::vector<evpn::MemberList> lists = settings.members;
  for (const auto& domain : settings.domains) {
    const bool whole = std::ranges::any_of(
        domain.proxy.bindings, [](const auto& binding) { return binding.port.empty(); });
    const bool listed = std::ranges::any_of(
        lists, [&](const evpn::MemberList& list) { return list.vni == domain.evpn.vni; });
    if (whole && !listed) lists.push_back(list_of(domain));
  }
  return lists;
}

RoutePolicies::RoutePolicies(const config::NodeSettings& settings, const RoutePolicies& before)
    : members_(member_lists(settings)) {
  for (const auto& [name, rules] : settings.route_policies) {
    const auto old = before.named_.find(name);
    named_[name] = old != before.named_.end() && old->second->settings() == rules
                       ? old->second
                       : std::make_shared<const evpn::RulePolicy>(rules);
  }
  if (before.flagging_ != nullptr && before.members_ == members_) {
    flagging_ = before.flagging_;
    rejecting_ = before.rejecting_;
  } else {
    using Guard = evpn::BindingGuardPolicy;
    const auto database = std::make_shared<const evpn::MemberDatabase>(members_);
    flagging_ = std::make_shared<const Guard>(database, bgp::BindingGuard::Flag);
    rejecting_ = std::make_shared<const Guard>(database, bgp::BindingGuard::Reject);
  }
  for (const auto& [key, policy] : before.guarded_)
    if (flagging_ == before.flagging_ && named(key.first) == before.named(key.first))
      guarded_.emplace(key, policy);
}

bgp::RoutePolicyPtr RoutePolicies::named(const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : found->second;
}

bgp::io::NeighborPolicies RoutePolicies::of(const bgp::NeighborSettings& neighbor) const {
  bgp::io::NeighborPolicies policies{named(neighbor.accept_policy), named(neighbor.send_policy)};
  if (neighbor.binding_guard == bgp::BindingGuard::Off) return policies;
  const auto& guard = neighbor.binding_guard == bgp::BindingGuard::Flag ? flagging_ : rejecting_;
  if (policies.accept == nullptr) {
    policies.accept = guard;
    return policies;
  }
  auto& both = guarded_[{neighbor.accept_policy, neighbor.binding_guard}];
  if (both == nullptr)
    both = std::make_shared<const evpn::AllPolicies>(
        std::vector<bgp::RoutePolicyPtr>{policies.accept, guard});
  policies.accept = both;
  return policies;
}

}  // namespace peerland
