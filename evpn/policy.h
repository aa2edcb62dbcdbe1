// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about EVPN routes, as bgp::RoutePolicy. Pure.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bgp/policy.h"
#include "evpn/policy_settings.h"

namespace evpn {

// The rules of PolicySettings. What a rule asks for and a route does not have (the MAC of a type 3
// route, say) never matches.
class RulePolicy final : public bgp::RoutePolicy {
 public:
  explicit RulePolicy(PolicySettings settings) : settings_(std::move(settings)) {}
  [[nodiscard]] bgp::Verdict judge(std::span<const uint8_t> nlri,
                                   const bgp::Attributes& attributes) const override;
  // "policy members, rule 3 rejects: route target 65000:101", "policy members: no rule matches"
  [[nodiscard]] std::string explain(std::span<const uint8_t> nlri,
                                    const bgp::Attributes& attributes) const override;
  [[nodiscard]] const PolicySettings& settings() const { return settings_; }

 private:
  PolicySettings settings_;
};

// Several, all of which are asked: the worst verdict counts, and those are explained that gave it.
class AllPolicies final : public bgp::RoutePolicy {
 public:
  explicit AllPolicies(std::vector<bgp::RoutePolicyPtr> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] bgp::Verdict judge(std::span<const uint8_t> nlri,
                                   const bgp::Attributes& attributes) const override;
  [[nodiscard]] std::string explain(std::span<const uint8_t> nlri,
                                    const bgp::Attributes& attributes) const override;

 private:
  std::vector<bgp::RoutePolicyPtr> parts_;
};

}  // namespace evpn
