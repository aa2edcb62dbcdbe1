// SPDX-License-Identifier: GPL-2.0-or-later
// The settings' rules and members, made into what the speaker asks for. What did not change stays
// the same object: neighbors with one send policy share an update group, and a reload moves and
// judges only what it concerns.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bgp/io/speaker.h"
#include "config/settings.h"
#include "evpn/binding_guard.h"
#include "evpn/policy.h"

namespace peerland {

// The lists of bgp.members, and of those broadcast domains for which the members of the whole LAN
// are given and not only those at our ports.
[[nodiscard]] std::vector<evpn::MemberList> member_lists(const config::NodeSettings& settings);

class RoutePolicies {
 public:
  RoutePolicies() = default;
  // `before`: of the settings until now.
  RoutePolicies(const config::NodeSettings& settings, const RoutePolicies& before);

  [[nodiscard]] bgp::io::NeighborPolicies of(const bgp::NeighborSettings& neighbor) const;

 private:
  [[nodiscard]] bgp::RoutePolicyPtr named(const std::string& name) const;

  std::map<std::string, std::shared_ptr<const evpn::RulePolicy>> named_;
  std::vector<evpn::MemberList> members_;
  bgp::RoutePolicyPtr flagging_, rejecting_;  // the guard
  // An accept policy together with the guard, as they are asked for.
  mutable std::map<std::pair<std::string, bgp::BindingGuard>, bgp::RoutePolicyPtr> guarded_;
};

}  // namespace peerland
