// SPDX-License-Identifier: GPL-2.0-or-later
// Route policies and the binding guard: every kind of match, what no rule matches, and every fault
// of a binding with its words.
#include "evpn/policy.h"

#include <gtest/gtest.h>

#include "evpn/binding_guard.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"

using namespace evpn;
using bgp::Verdict;

namespace {

net::MacAddress mac(const char* text) { return *net::MacAddress::parse(text); }
net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }
net::IpPrefix prefix(const char* text) { return *net::IpPrefix::parse(text); }
net::RouteDistinguisher rd(const char* text) { return *net::RouteDistinguisher::parse(text); }
RouteTarget target(const char* text) { return *parse_route_target(text); }

Route mac_ip(const char* address, const char* host = nullptr, uint32_t vni = 100) {
  MacIp route{rd("10.0.0.1:100"), {}, 0, mac(address), {}, vni, {}};
  if (host != nullptr) route.ip = ip(host);
  return route;
}
Route imet() { return InclusiveMulticast{rd("10.0.0.1:100"), 0, ip("10.0.0.1")}; }
Route prefix_route() {
  return IpPrefixRoute{rd("10.0.0.1:5"), {}, 0, prefix("198.51.100.0/24"), ip("0.0.0.0"), 5};
}

bgp::Attributes attributes() {
  bgp::Attributes a;
  a.next_hop = ip("10.0.0.1");
  a.extended_communities = {target("65000:100"), make_encapsulation(kEncapsulationVxlan)};
  a.communities = {65000u << 16 | 7};
  a.large_communities = {{65000, 1, 2}};
  return a;
}
bgp::Attributes with_pmsi(uint32_t label) {
  bgp::Attributes a = attributes();
  a.pmsi_tunnel = encode_pmsi({.label = label, .endpoint = ip("10.0.0.1")});
  return a;
}

// A policy of one rule that rejects, before one that accepts all.
RulePolicy one(PolicyRule rule) {
  rule.then = RuleAction::Reject;
  return RulePolicy({"p", {std::move(rule), {}}});
}
bool hits(const PolicyRule& rule, const Route& route, const bgp::Attributes& a = attributes()) {
  return one(rule).judge(encode(route), a) == Verdict::Reject;
}
std::string words(const PolicyRule& rule, const Route& route) {
  return one(rule).explain(encode(route), attributes());
}

PolicyRule vni(uint32_t number) { return {.vnis = {net::Vni(number)}}; }

}  // namespace

TEST(RulePolicy, EachKindOfMatch) {
  const Route route = mac_ip("02:00:00:00:00:07", "192.0.2.7");
  struct Case {
    PolicyRule yes, no;
    std::string words;
  };
  const Case cases[] = {
      {{.route_types = {3, 2}}, {.route_types = {3}}, "route type 2"},
      {{.route_targets = {target("65000:1"), target("65000:100")}},
       {.route_targets = {target("65000:1")}},
       "route target 65000:100"},
      {{.vnis = {net::Vni(1), net::Vni(100)}}, {.vnis = {net::Vni(101)}}, "VNI 100"},
      {{.rds = {rd("10.0.0.1:100")}},
       {.rds = {rd("10.0.0.2:100")}},
       "route distinguisher 10.0.0.1:100"},
      {{.macs = {{mac("02:00:00:00:00:07"), 48}}},
       {.macs = {{mac("02:00:00:00:00:06"), 48}}},
       "MAC 02:00:00:00:00:07"},
      {{.ips = {prefix("192.0.2.0/29")}}, {.ips = {prefix("192.0.2.8/29")}}, "IP 192.0.2.7"},
      {{.communities = {StandardCommunity{65000u << 16 | 7}}},
       {.communities = {StandardCommunity{65000u << 16 | 8}}},
       "community 65000:7"},
      {{.communities = {bgp::LargeCommunity{65000, 1, 2}}},
       {.communities = {bgp::LargeCommunity{65000, 1, 3}}},
       "community 65000:1:2"},
      {{.communities = {make_encapsulation(kEncapsulationVxlan)}},
       {.communities = {make_encapsulation(9)}},
       "community ET:8"},
      {{.next_hops = {prefix("10.0.0.0/24")}},
       {.next_hops = {prefix("10.0.1.0/24")}},
       "next hop 10.0.0.1"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(hits(c.yes, route)) << c.words;
    EXPECT_FALSE(hits(c.no, route)) << c.words;
    EXPECT_EQ(words(c.yes, route), "policy p, rule 1 rejects: " + c.words);
    EXPECT_EQ(words(c.no, route), "policy p, rule 2 accepts: any route");
  }
}

TEST(RulePolicy, AllKindsMustHold) {
  const Route route = mac_ip("02:00:00:00:00:07");
  EXPECT_TRUE(hits({.route_types = {2}, .vnis = {net::Vni(100)}}, route));
  EXPECT_EQ(words({.route_types = {2}, .vnis = {net::Vni(100)}}, route),
            "policy p, rule 1 rejects: route type 2, VNI 100");
  EXPECT_FALSE(hits({.route_types = {3}, .vnis = {net::Vni(100)}}, route));
  EXPECT_FALSE(hits({.route_types = {2}, .vnis = {net::Vni(99)}}, route));
}

TEST(RulePolicy, VniIsAll24BitsOfTheLabelOfEachType) {
  constexpr uint32_t kHigh = 16777214;
  EXPECT_TRUE(hits(vni(kHigh), mac_ip("02:00:00:00:00:07", nullptr, kHigh)));
  EXPECT_FALSE(hits(vni(kHigh), mac_ip("02:00:00:00:00:07", nullptr, kHigh >> 4)));
  EXPECT_TRUE(hits(vni(kHigh), imet(), with_pmsi(kHigh)));
  EXPECT_FALSE(hits(vni(kHigh), imet()));  // no PMSI tunnel
  EXPECT_TRUE(hits(vni(5), prefix_route()));
  EthernetAutoDiscovery per_evi{rd("10.0.0.1:1"), {}, 0, kHigh};
  EXPECT_TRUE(hits(vni(kHigh), per_evi));
  per_evi.ethernet_tag = kMaxEthernetTag;  // per ES: no label (RFC 7432 section 8.2.1)
  EXPECT_FALSE(hits(vni(kHigh), per_evi));
}

TEST(RulePolicy, MacPrefixesByBits) {
  const Route route = mac_ip("02:00:5e:40:00:07");
  EXPECT_TRUE(hits({.macs = {{mac("02:00:5e:00:00:00"), 24}}}, route));
  EXPECT_TRUE(hits({.macs = {{mac("02:00:5e:40:00:00"), 26}}}, route));
  EXPECT_FALSE(hits({.macs = {{mac("02:00:5e:00:00:00"), 26}}}, route));
  EXPECT_TRUE(hits({.macs = {{mac("00:00:00:00:00:00"), 0}}}, route));
  // Not even that matches a route that has no MAC.
  EXPECT_FALSE(hits({.macs = {{mac("00:00:00:00:00:00"), 0}}}, imet()));
}

TEST(RulePolicy, IpPrefixOfTypeFiveMustBeInside) {
  EXPECT_TRUE(hits({.ips = {prefix("198.51.0.0/16")}}, prefix_route()));
  EXPECT_FALSE(hits({.ips = {prefix("198.51.100.0/25")}}, prefix_route()));
  EXPECT_EQ(words({.ips = {prefix("198.51.0.0/16")}}, prefix_route()),
            "policy p, rule 1 rejects: IP 198.51.100.0/24");
  EXPECT_FALSE(hits({.ips = {prefix("0.0.0.0/0")}}, mac_ip("02:00:00:00:00:07")));
  EXPECT_FALSE(hits({.ips = {prefix("::/0")}}, mac_ip("02:00:00:00:00:07", "192.0.2.7")));
}

// A member that announces the LAN's own prefix, or a part of it, takes the traffic of all others:
// docs/port-security.md has this policy.
TEST(RulePolicy, TheLansOwnPrefixIsRejectedWithAReason) {
  PolicyRule lan{.route_types = {5},
                 .ips = {prefix("192.0.2.0/24"), prefix("2001:db8:1::/64")},
                 .then = RuleAction::Reject};
  const RulePolicy policy({"members", {lan, {}}});
  const auto judge = [&](const char* announced) {
    const auto gateway = ip(std::string_view(announced).contains(':') ? "::" : "0.0.0.0");
    return encode(IpPrefixRoute{rd("10.0.0.1:5"), {}, 0, prefix(announced), gateway, 5});
  };
  for (const char* own :
       {"192.0.2.0/24", "192.0.2.0/25", "192.0.2.7/32", "2001:db8:1::/64", "2001:db8:1::7/128"}) {
    const std::string text(own), host = text.substr(0, text.find('/'));
    const bool whole = text.ends_with("/32") || text.ends_with("/128");
    EXPECT_EQ(policy.judge(judge(own), attributes()), Verdict::Reject) << own;
    EXPECT_EQ(policy.explain(judge(own), attributes()),
              "policy members, rule 1 rejects: route type 5, IP " + (whole ? host : text));
  }
  for (const char* other : {"192.0.0.0/16", "192.0.3.0/24", "0.0.0.0/0", "2001:db8:2::/64"})
    EXPECT_EQ(policy.judge(judge(other), attributes()), Verdict::Accept) << other;
}

TEST(RulePolicy, TheFirstMatchDecidesAndTheRestIsRejected) {
  PolicyRule flag{.route_types = {2}, .then = RuleAction::Flag};
  PolicyRule reject{.route_types = {2}, .then = RuleAction::Reject};
  const RulePolicy policy({"p", {flag, reject}});
  EXPECT_EQ(policy.judge(encode(mac_ip("02:00:00:00:00:07")), attributes()), Verdict::Flag);
  EXPECT_EQ(policy.explain(encode(mac_ip("02:00:00:00:00:07")), attributes()),
            "policy p, rule 1 flags: route type 2");
  EXPECT_EQ(policy.judge(encode(imet()), attributes()), Verdict::Reject);
  EXPECT_EQ(policy.explain(encode(imet()), attributes()), "policy p: no rule matches");
}

TEST(RulePolicy, OpaqueTypesHaveATypeAndAnRd) {
  OpaqueRoute opaque{9, net::Bytes(20, 0)};
  const auto distinguisher = rd("10.0.0.1:100");
  std::ranges::copy(distinguisher.bytes(), opaque.body.begin());
  EXPECT_TRUE(hits({.route_types = {9}, .rds = {rd("10.0.0.1:100")}}, opaque));
  EXPECT_FALSE(hits(vni(100), opaque));
}

// --- binding guard ---------------------------------------------------------------------------

namespace {

MemberList lan() {
  MemberList list;
  list.vni = net::Vni(100);
  list.prefixes = {prefix("192.0.2.0/24"), prefix("2001:db8::/64")};
  list.addresses = {
      {ip("192.0.2.7"), {mac("02:00:00:00:00:07")}, net::AsNumber(64507), "Golf"},
      {ip("192.0.2.8"), {mac("02:00:00:00:00:08"), mac("02:00:00:00:00:18")}, {}, "Hotel"},
      {ip("192.0.2.9"), {}, net::AsNumber(64507), "Golf"},
  };
  list.macs = {{mac("02:00:00:00:00:0a"), net::AsNumber(64510), "", {ip("10.0.0.1")}},
               {mac("02:00:00:00:00:0b"), net::AsNumber(64511), "", {ip("10.0.0.2")}}};
  return list;
}

bgp::RoutePolicyPtr guard(MemberList list = lan(),
                          bgp::BindingGuard mode = bgp::BindingGuard::Reject) {
  auto members = std::make_shared<const MemberDatabase>(std::vector{std::move(list)});
  return std::make_shared<const BindingGuardPolicy>(std::move(members), mode);
}
// "" when the route is accepted.
std::string refusal(const Route& route, const bgp::Attributes& a = attributes(),
                    const bgp::RoutePolicyPtr& policy = guard()) {
  const net::Bytes nlri = encode(route);
  return policy->judge(nlri, a) == Verdict::Accept ? "" : policy->explain(nlri, a);
}

}  // namespace

TEST(BindingGuard, BindingsOfTheDatabasePass) {
  for (const Route& route :
       {mac_ip("02:00:00:00:00:07"), mac_ip("02:00:00:00:00:07", "192.0.2.7"),
        mac_ip("02:00:00:00:00:18", "192.0.2.8"), mac_ip("02:00:00:00:00:07", "192.0.2.9"),
        mac_ip("02:00:00:00:00:07", "fe80::7"), mac_ip("02:00:00:00:00:0a"), imet(),
        prefix_route()})
    EXPECT_EQ(refusal(route), "");
}

TEST(BindingGuard, EveryFaultHasItsWords) {
  const struct {
    Route route;
    std::string words;
  } cases[] = {
      {mac_ip("02:00:00:00:00:08", "192.0.2.7"),
       "192.0.2.7 belongs to AS64507 \"Golf\" (02:00:00:00:00:07), not to 02:00:00:00:00:08"},
      {mac_ip("02:00:00:00:00:07", "192.0.2.8"),
       "192.0.2.8 belongs to \"Hotel\" (02:00:00:00:00:08, 02:00:00:00:00:18), not to "
       "02:00:00:00:00:07"},
      {mac_ip("02:00:00:00:00:08", "192.0.2.9"),
       "192.0.2.9 belongs to AS64507 \"Golf\", not to 02:00:00:00:00:08"},
      {mac_ip("02:00:00:00:00:07", "192.0.2.99"), "192.0.2.99 belongs to no member"},
      {mac_ip("02:00:00:00:00:07", "198.51.100.1"),
       "198.51.100.1 is outside of 192.0.2.0/24, 2001:db8::/64"},
      {mac_ip("02:00:00:00:00:99"), "02:00:00:00:00:99 belongs to no member"},
      {mac_ip("02:00:00:00:00:99", "fe80::7"), "02:00:00:00:00:99 belongs to no member"},
      {mac_ip("02:00:00:00:00:0b"),
       "02:00:00:00:00:0b of AS64511 is at PE 10.0.0.2, not at 10.0.0.1"},
  };
  for (const auto& c : cases) EXPECT_EQ(refusal(c.route), "binding guard: " + c.words);
}

// PEs import by route target, so that another label, or none, is no way around.
TEST(BindingGuard, ALanIsKnownByLabelOrRouteTarget) {
  const auto bad = [](uint32_t label) { return mac_ip("02:00:00:00:00:99", nullptr, label); };
  bgp::Attributes other = attributes();
  other.extended_communities = {target("65000:200")};
  EXPECT_NE(refusal(bad(100), other), "");
  EXPECT_NE(refusal(bad(0)), "");
  EXPECT_NE(refusal(bad(200)), "");
  EXPECT_EQ(refusal(bad(200), other), "");  // no list for it
  MemberList list = lan();
  list.route_targets = {target("65000:200")};
  EXPECT_NE(refusal(bad(200), other, guard(list)), "");
}

TEST(BindingGuard, Modes) {
  const net::Bytes bad = encode(mac_ip("02:00:00:00:00:99"));
  using enum bgp::BindingGuard;
  EXPECT_EQ(guard(lan(), Off)->judge(bad, attributes()), Verdict::Accept);
  EXPECT_EQ(guard(lan(), Flag)->judge(bad, attributes()), Verdict::Flag);
  EXPECT_EQ(guard(lan(), Reject)->judge(bad, attributes()), Verdict::Reject);
}

TEST(AllPolicies, TheWorstVerdictCountsAndIsExplained) {
  const auto flags =
      std::make_shared<RulePolicy>(PolicySettings{"f", {{.then = RuleAction::Flag}}});
  const auto accepts = std::make_shared<RulePolicy>(PolicySettings{"a", {{}}});
  const net::Bytes bad = encode(mac_ip("02:00:00:00:00:99"));
  const net::Bytes good = encode(mac_ip("02:00:00:00:00:07"));
  const AllPolicies both({flags, guard()});
  EXPECT_EQ(both.judge(bad, attributes()), Verdict::Reject);
  EXPECT_EQ(both.explain(bad, attributes()),
            "binding guard: 02:00:00:00:00:99 belongs to no member");
  EXPECT_EQ(both.judge(good, attributes()), Verdict::Flag);
  EXPECT_EQ(both.explain(good, attributes()), "policy f, rule 1 flags: any route");
  EXPECT_EQ(AllPolicies({accepts, guard()}).judge(good, attributes()), Verdict::Accept);
}
