// SPDX-License-Identifier: GPL-2.0-or-later
// A route is taken apart once (RouteFacts), then each rule is a list of kinds of match. The same
// table of kinds decides and explains, so that the two can't differ.
#include "evpn/policy.h"

#include <algorithm>

#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "evpn/route_facts.h"

namespace evpn {
namespace {

bool contains(const MacPrefix& prefix, const net::MacAddress& mac) {
  const auto want = prefix.address.bytes(), have = mac.bytes();
  const std::size_t whole = prefix.length / 8;
  if (!std::equal(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(whole), have.begin()))
    return false;
  const unsigned rest = prefix.length % 8;
  return rest == 0 || ((want[whole] ^ have[whole]) >> (8 - rest)) == 0;
}

bool has_community(const bgp::Attributes& a, const Community& wanted) {
  struct Find {
    const bgp::Attributes& a;
    bool operator()(const StandardCommunity& c) const {
      return std::ranges::find(a.communities, c.value) != a.communities.end();
    }
    bool operator()(const bgp::LargeCommunity& c) const {
      return std::ranges::find(a.large_communities, c) != a.large_communities.end();
    }
    bool operator()(const bgp::ExtendedCommunity& c) const {
      return std::ranges::find(a.extended_communities, c) != a.extended_communities.end();
    }
  };
  return std::visit(Find{a}, wanted);
}

std::string text(const Community& community) {
  struct Text {
    std::string operator()(const StandardCommunity& c) const {
      return std::to_string(c.value >> 16) + ":" + std::to_string(c.value & 0xffff);
    }
    std::string operator()(const bgp::LargeCommunity& c) const {
      return std::to_string(c[0]) + ":" + std::to_string(c[1]) + ":" + std::to_string(c[2]);
    }
    std::string operator()(const bgp::ExtendedCommunity& c) const { return to_string(c); }
  };
  return std::visit(Text{}, community);
}

// The value of `values` that `holds`; null: none.
template <class T, class Holds>
const T* any_of(const std::vector<T>& values, const Holds& holds) {
  const auto found = std::ranges::find_if(values, holds);
  return found == values.end() ? nullptr : &*found;
}

// One kind of match. `say` is told in words what matched, unless it is null.
using Say = std::string*;
void say(Say out, const std::string& words) {
  if (out != nullptr) *out += (out->empty() ? "" : ", ") + words;
}
using Match = bool (*)(const PolicyRule&, const RouteFacts&, const bgp::Attributes&, Say);

bool match_type(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes&, Say out) {
  if (rule.route_types.empty()) return true;
  if (!any_of(rule.route_types, [&](uint8_t type) { return type == route.type; })) return false;
  if (out != nullptr) say(out, "route type " + std::to_string(route.type));
  return true;
}

bool match_target(const PolicyRule& rule, const RouteFacts&, const bgp::Attributes& a, Say out) {
  if (rule.route_targets.empty()) return true;
  const RouteTarget* found = any_of(rule.route_targets, [&](const RouteTarget& target) {
    return std::ranges::find(a.extended_communities, target) != a.extended_communities.end();
  });
  if (found != nullptr && out != nullptr) say(out, "route target " + route_target_text(*found));
  return found != nullptr;
}

bool match_vni(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes&, Say out) {
  if (rule.vnis.empty()) return true;
  if (!route.vni) return false;
  const bool found =
      any_of(rule.vnis, [&](net::Vni vni) { return vni.value == *route.vni; }) != nullptr;
  if (found && out != nullptr) say(out, "VNI " + std::to_string(*route.vni));
  return found;
}

bool match_rd(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes&, Say out) {
  if (rule.rds.empty()) return true;
  if (!route.rd || std::ranges::find(rule.rds, *route.rd) == rule.rds.end()) return false;
  if (out != nullptr) say(out, "route distinguisher " + net::to_string(*route.rd));
  return true;
}

bool match_mac(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes&, Say out) {
  if (rule.macs.empty()) return true;
  if (!route.mac) return false;
  const auto holds = [&](const MacPrefix& prefix) { return contains(prefix, *route.mac); };
  if (!any_of(rule.macs, holds)) return false;
  if (out != nullptr) say(out, "MAC " + net::to_string(*route.mac));
  return true;
}

bool match_ip(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes&, Say out) {
  if (rule.ips.empty()) return true;
  if (!route.ip) return false;
  const auto holds = [&](const net::IpPrefix& prefix) {
    return route.ip->length >= prefix.length && prefix.contains(route.ip->address);
  };
  if (!any_of(rule.ips, holds)) return false;
  const bool host = route.ip->length == route.ip->address.bits();
  if (out != nullptr)
    say(out, host ? "IP " + net::to_string(route.ip->address) : "IP " + net::to_string(*route.ip));
  return true;
}

bool match_community(const PolicyRule& rule, const RouteFacts&, const bgp::Attributes& a, Say out) {
  if (rule.communities.empty()) return true;
  const Community* found =
      any_of(rule.communities, [&](const Community& c) { return has_community(a, c); });
  if (found != nullptr && out != nullptr) say(out, "community " + text(*found));
  return found != nullptr;
}

bool match_next_hop(const PolicyRule& rule, const RouteFacts&, const bgp::Attributes& a, Say out) {
  if (rule.next_hops.empty()) return true;
  const auto holds = [&](const net::IpPrefix& prefix) { return prefix.contains(a.next_hop); };
  if (!any_of(rule.next_hops, holds)) return false;
  if (out != nullptr) say(out, "next hop " + net::to_string(a.next_hop));
  return true;
}

constexpr Match kMatches[] = {match_type, match_target, match_vni,       match_rd,
                              match_mac,  match_ip,     match_community, match_next_hop};

bool matches(const PolicyRule& rule, const RouteFacts& route, const bgp::Attributes& a, Say out) {
  return std::ranges::all_of(kMatches, [&](Match match) { return match(rule, route, a, out); });
}

bgp::Verdict verdict(RuleAction action) {
  switch (action) {
    case RuleAction::Accept: return bgp::Verdict::Accept;
    case RuleAction::Flag: return bgp::Verdict::Flag;
    case RuleAction::Reject: break;
  }
  return bgp::Verdict::Reject;
}

}  // namespace

bgp::Verdict RulePolicy::judge(std::span<const uint8_t> nlri, const bgp::Attributes& a) const {
  const RouteFacts route = facts_of(nlri, a);
  for (const PolicyRule& rule : settings_.rules)
    if (matches(rule, route, a, nullptr)) return verdict(rule.then);
  return bgp::Verdict::Reject;
}

std::string RulePolicy::explain(std::span<const uint8_t> nlri, const bgp::Attributes& a) const {
  const RouteFacts route = facts_of(nlri, a);
  for (std::size_t i = 0; i < settings_.rules.size(); ++i) {
    std::string words;
    if (!matches(settings_.rules[i], route, a, &words)) continue;
    if (words.empty()) words = "any route";
    return "policy " + settings_.name + ", rule " + std::to_string(i + 1) + " " +
           bgp::to_string(verdict(settings_.rules[i].then)) + "s: " + words;
  }
  return "policy " + settings_.name + ": no rule matches";
}

bgp::Verdict AllPolicies::judge(std::span<const uint8_t> nlri, const bgp::Attributes& a) const {
  bgp::Verdict worst = bgp::Verdict::Accept;
  for (const auto& part : parts_) {
    worst = std::max(worst, part->judge(nlri, a));
    if (worst == bgp::Verdict::Reject) break;
  }
  return worst;
}

std::string AllPolicies::explain(std::span<const uint8_t> nlri, const bgp::Attributes& a) const {
  const bgp::Verdict worst = judge(nlri, a);
  std::string words;
  for (const auto& part : parts_)
    if (part->judge(nlri, a) == worst)
      words += (words.empty() ? "" : "; ") + part->explain(nlri, a);
  return words;
}

}  // namespace evpn
