// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp.policies`, `bgp.members`, and the keys of neighbors that name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/settings.h"
#include "tests/config/helpers.h"

using namespace config;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

NodeSettings loaded(const std::string& yaml) {
  const auto result = load_text("f", yaml, kData);
  EXPECT_TRUE(result) << (result ? "" : text_of(result.error()));
  return result ? result->settings : NodeSettings{};
}

const std::string kPolicy = kNode +
                            "bgp:\n"
                            "  policies:\n"
                            "    p:\n";
const std::string kMembers = kNode +
                             "bgp:\n"
                             "  members:\n"
                             "    - vni: 100\n"
                             "      prefixes: [192.0.2.0/24]\n";

std::string rule(const std::string& text) { return kPolicy + "      - { " + text + " }\n"; }

}  // namespace

TEST(RoutePolicies, EveryKeyOfARule) {
  const auto settings = loaded(
      kPolicy +
      "      - { route-type: [2, 3], route-target: 65000:100, vni: 16777214, then: accept }\n"
      "      - rd: [10.0.0.1:1, '65000:2']\n"
      "        mac: [02:00:00:00:00:01, 02:00:5e:00:00:00/24]\n"
      "        ip: [192.0.2.0/24, '2001:db8::/64']\n"
      "        community: [65000:1, 65000:1:2, 0x0608030000000000]\n"
      "        next-hop: 10.0.0.0/24\n"
      "        then: flag\n"
      "      - then: reject\n");
  const auto& rules = settings.route_policies.at("p").rules;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(settings.route_policies.at("p").name, "p");
  EXPECT_THAT(rules[0].route_types, ElementsAre(2, 3));
  EXPECT_EQ(rules[0].route_targets.at(0), *evpn::parse_route_target("65000:100"));
  EXPECT_EQ(rules[0].vnis.at(0).value, 16777214u);
  EXPECT_EQ(rules[0].then, evpn::RuleAction::Accept);
  EXPECT_EQ(rules[1].rds.size(), 2u);
  EXPECT_EQ(rules[1].macs.at(0).length, 48);
  EXPECT_EQ(rules[1].macs.at(1).length, 24);
  EXPECT_EQ(rules[1].ips.size(), 2u);
  EXPECT_THAT(rules[1].communities,
              ElementsAre(evpn::Community(evpn::StandardCommunity{65000u << 16 | 1}),
                          evpn::Community(std::array<uint32_t, 3>{65000, 1, 2}),
                          evpn::Community(std::array<uint8_t, 8>{6, 8, 3, 0, 0, 0, 0, 0})));
  EXPECT_EQ(rules[1].next_hops.size(), 1u);
  EXPECT_EQ(rules[1].then, evpn::RuleAction::Flag);
  EXPECT_EQ(rules[2], evpn::PolicyRule{.then = evpn::RuleAction::Reject});
}

TEST(RoutePolicies, Errors) {
  EXPECT_EQ(verdict(rule("vni: 100")), "f:7:9: bgp.policies.p[0]: missing key \"then\"\n");
  EXPECT_EQ(
      verdict(rule("then: acept")),
      "f:7:17: bgp.policies.p[0].then: expected one of accept, flag, reject, got \"acept\"\n");
  EXPECT_THAT(verdict(rule("vnis: 1, then: accept")), HasSubstr("did you mean \"vni\"?"));
  EXPECT_THAT(verdict(rule("vni: 16777216, then: accept")), HasSubstr("f:7:16: "));
  EXPECT_THAT(verdict(rule("route-type: 12, then: accept")), HasSubstr("from 1 to 11"));
  EXPECT_THAT(verdict(rule("route-target: [], then: accept")), HasSubstr("an empty list"));
  EXPECT_THAT(verdict(rule("mac: 02:00:00:00:00:01/24, then: accept")),
              HasSubstr("has bits set behind the first 24"));
  EXPECT_THAT(verdict(rule("mac: 02:00:00:00:00:00/49, then: accept")),
              HasSubstr("expected a MAC"));
  EXPECT_THAT(verdict(rule("ip: 192.0.2.1/24, then: accept")), HasSubstr("has host bits set"));
  for (const char* community : {"65536:1", "1", "1:2:3:4", "0x06", "0x06080300000000zz", "no"})
    EXPECT_THAT(verdict(rule(std::string("community: '") + community + "', then: accept")),
                HasSubstr("expected a community"))
        << community;
  EXPECT_EQ(verdict(kPolicy + "      []\n"), "f:7:7: bgp.policies.p: expected at least one rule\n");
}

TEST(RoutePolicies, WarningsOfRulesThatMeanLittle) {
  EXPECT_THAT(verdict(rule("vni: 1, then: reject")), HasSubstr("every route is rejected"));
  EXPECT_EQ(verdict(rule("then: reject")), "loaded\n");  // clearly meant
  EXPECT_THAT(verdict(kPolicy + "      - { then: accept }\n      - { vni: 1, then: reject }\n"),
              HasSubstr("f:8:9: bgp.policies.p[1]: never reached"));
}

TEST(RoutePolicies, NeighborsAndGroupsNameThem) {
  const auto settings = loaded(rule("then: accept") +
                               "    other: [{ then: accept }]\n"
                               "  groups:\n"
                               "    g: { as: 65000, accept-policy: p, send-policy: p }\n"
                               "  neighbors:\n"
                               "    - { address: 10.0.0.2, group: g, send-policy: other }\n");
  EXPECT_EQ(settings.bgp.neighbors.at(0).accept_policy, "p");
  EXPECT_EQ(settings.bgp.neighbors.at(0).send_policy, "other");
}

TEST(RoutePolicies, UnknownNamesAreErrors) {
  EXPECT_EQ(
      verdict(kNode + "bgp:\n"
                      "  policies:\n"
                      "    fabric: [{ then: accept }]\n"
                      "  groups:\n"
                      "    g: { as: 65000, accept-policy: fabrik }\n"
                      "  neighbors:\n"
                      "    - { address: 10.0.0.2, group: g, send-policy: other }\n"),
      "f:8:36: bgp.groups.g.accept-policy: no policy \"fabrik\" in bgp.policies; did you mean "
      "\"fabric\"?\n"
      "f:10:51: bgp.neighbors[0].send-policy: no policy \"other\" in bgp.policies\n");
}

TEST(Members, ListAndFiles) {
  const auto settings = loaded(
      kMembers +
      "      route-targets: [65000:1]\n"
      "      list:\n"
      "        - { as: 64507, name: Golf, macs: [02:00:00:00:00:77, 02:00:00:00:00:78], addresses: "
      "[192.0.2.77, 192.0.2.78], pes: [10.0.0.1] }\n"
      "        - { macs: [02:00:00:00:00:79] }\n");
  ASSERT_EQ(settings.members.size(), 1u);
  const auto& list = settings.members[0];
  EXPECT_EQ(list.vni.value, 100u);
  EXPECT_EQ(list.route_targets.size(), 1u);
  ASSERT_EQ(list.addresses.size(), 2u);
  EXPECT_EQ(list.addresses[1].macs.size(), 2u);
  EXPECT_EQ(list.addresses[1].as.value, 64507u);
  ASSERT_EQ(list.macs.size(), 3u);
  EXPECT_EQ(list.macs[0].pes.size(), 1u);
  EXPECT_EQ(list.macs[2].as.value, 0u);
}

TEST(Members, FilesAddToTheListThatWins) {
  const std::string yaml = kMembers +
                           "      files: [{ ixf: v1.json }]\n"
                           "      list: [{ macs: [02:00:00:00:77:77], addresses: [192.0.2.77] }]\n";
  const auto settings = loaded(yaml);
  ASSERT_EQ(settings.members.size(), 1u);
  EXPECT_GT(settings.members[0].addresses.size(), 1u);
  EXPECT_EQ(settings.members[0].addresses[0].ip, *net::IpAddress::parse("192.0.2.77"));
  // The same address in both.
  const std::string taken = net::to_string(settings.members[0].addresses[1].ip);
  std::string both = yaml;
  both.replace(both.find("192.0.2.77"), 10, taken);
  EXPECT_THAT(verdict(both), HasSubstr(taken + " has other MAC addresses here"));
  EXPECT_EQ(loaded(both).members[0].addresses.size(), settings.members[0].addresses.size() - 1);
}

TEST(Members, Errors) {
  const auto list = [](const std::string& text) {
    return verdict(kMembers + "      list:\n        - { " + text + " }\n");
  };
  EXPECT_THAT(verdict(kMembers), HasSubstr("needs list or files, or both"));
  EXPECT_THAT(list("addresses: [192.0.2.1]"), HasSubstr("missing key \"macs\""));
  EXPECT_THAT(list("macs: []"), HasSubstr("expected at least one MAC address"));
  EXPECT_THAT(list("macs: [02:00:00:00:00:01], addresses: [198.51.100.1]"),
              HasSubstr("198.51.100.1 is outside of the prefixes"));
  EXPECT_THAT(list("macs: [02:00:00:00:00:01] }\n        - { macs: [02:00:00:00:00:01]"),
              HasSubstr("02:00:00:00:00:01 is in use already: member, line 9"));
  EXPECT_THAT(verdict(kMembers + "      list: []\n    - vni: 100\n      prefixes: [10.0.0.0/8]\n"
                                 "      list: []\n"),
              HasSubstr("VNI 100 is in use already"));
  EXPECT_THAT(verdict(kMembers + "      files: [{ ixf: nowhere.json }]\n"),
              HasSubstr("f:8:22: bgp.members[0].files[0].ixf: can't read"));
}

TEST(Members, AGuardNeedsThem) {
  const std::string neighbor =
      "  neighbors:\n    - { address: 10.0.0.2, as: 65000, binding-guard: reject }\n";
  EXPECT_EQ(verdict(kNode + "bgp:\n" + neighbor),
            "f:6:54: bgp.neighbors[0].binding-guard: needs bgp.members, or a broadcast domain with "
            "members: nothing would be checked\n");
  const auto settings = loaded(kMembers + "      list: []\n" + neighbor);
  EXPECT_EQ(settings.bgp.neighbors.at(0).binding_guard, bgp::BindingGuard::Reject);
  EXPECT_EQ(verdict(kNode + "bgp:\n" +
                    "  neighbors:\n    - { address: 10.0.0.2, as: 65000, binding-guard: off }\n"),
            "loaded\n");
  EXPECT_THAT(verdict(kNode + "bgp:\n" +
                      "  neighbors:\n    - { address: 10.0.0.2, as: 65000, binding-guard: on }\n"),
              HasSubstr("expected one of off, flag, reject"));
}
