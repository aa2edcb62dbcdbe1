// SPDX-License-Identifier: GPL-2.0-or-later
// What would change from one settings file to another.
#include "config/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "helpers.h"

using namespace config;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

NodeSettings settings(const std::string& yaml) {
  auto loaded = load_text("f", yaml, kData);
  EXPECT_TRUE(loaded) << text_of(loaded.error());
  return loaded ? loaded->settings : NodeSettings{};
}

// "changed neighbor 10.0.0.9 (rs1) [hold-time: 90s -> 30s]"
std::vector<std::string> diff(const NodeSettings& before, const NodeSettings& after) {
  std::vector<std::string> lines;
  for (const auto& change : difference(before, after).changes) {
    std::string line =
        std::string(to_string(change.kind)) + " " + to_string(change.subject) + " " + change.name;
    if (!change.domain.empty()) line += " in " + change.domain;
    for (const auto& field : change.fields)
      line += " [" + field.key + ": " + field.before + " -> " + field.after + "]";
    lines.push_back(line);
  }
  return lines;
}
std::vector<std::string> diff(const std::string& before, const std::string& after) {
  return diff(settings(before), settings(after));
}

const std::string kPorts =
    kDomain +
    "    ports:\n"
    "      - { interface: m1, name: Alpha, as: 64501, macs: ['02:00:00:00:00:01'], addresses: "
    "[192.0.2.1] }\n";
const std::string kBravo =
    "      - { interface: m2, name: Bravo, as: 64502, macs: ['02:00:00:00:00:02'], addresses: "
    "[192.0.2.2] }\n";

}  // namespace

TEST(Diff, EqualSettingsHaveNone) {
  EXPECT_THAT(diff(kPorts, kPorts), IsEmpty());
  EXPECT_THAT(diff(kNode, kNode), IsEmpty());
}

TEST(Diff, NodeItself) {
  EXPECT_THAT(diff(kNode, kNode + "log: { level: debug }\nreload: { max-removed-members: 5 }\n"),
              ElementsAre("changed node n [log.level: info -> debug] "
                          "[reload.max-removed-members: 20 -> 5]"));
  EXPECT_THAT(diff(kNode, kNode + "next-hop-tracking: no-default-route\n"),
              ElementsAre("changed node n [next-hop-tracking: any-route -> no-default-route]"));
}

TEST(Diff, Neighbors) {
  const std::string before = kNode +
                             "bgp:\n  neighbors:\n"
                             "    - { address: 10.0.0.9, as: 65000, description: rs1 }\n"
                             "    - { address: 10.0.0.8, as: 65000, password: secret }\n";
  const std::string after = kNode +
                            "bgp:\n  neighbors:\n"
                            "    - { address: 10.0.0.9, as: 65000, description: rs1, hold-time: 30 "
                            "}\n"
                            "    - { address: 10.0.0.7, as: 65000 }\n";
  EXPECT_THAT(diff(before, after),
              ElementsAre("removed neighbor 10.0.0.8", "added neighbor 10.0.0.7",
                          "changed neighbor 10.0.0.9 (rs1) [hold-time: 90s -> 30s]"));
}

TEST(Diff, SecretsAreNotShown) {
  const auto with = [](const char* password) {
    return kNode + "bgp:\n  neighbors:\n    - { address: 10.0.0.8, as: 65000" +
           (*password == 0 ? std::string() : std::string(", password: ") + password) + " }\n";
  };
  EXPECT_THAT(diff(with("one"), with("two")),
              ElementsAre("changed neighbor 10.0.0.8 [password: (secret) -> (another secret)]"));
  EXPECT_THAT(diff(with(""), with("two")),
              ElementsAre("changed neighbor 10.0.0.8 [password:  -> (secret)]"));
  EXPECT_THAT(diff(with("one"), with("")),
              ElementsAre("changed neighbor 10.0.0.8 [password: (secret) -> ]"));
}

TEST(Diff, MembersPortsAndAddresses) {
  EXPECT_THAT(diff(kPorts, kPorts + kBravo),
              ElementsAre("added member AS64502 Bravo in lan", "added port m2 in lan",
                          "added address 192.0.2.2 in lan"));
  EXPECT_THAT(diff(kPorts + kBravo, kPorts),
              ElementsAre("removed member AS64502 Bravo in lan", "removed port m2 in lan",
                          "removed address 192.0.2.2 in lan"));
  std::string moved = kPorts + kBravo;
  moved.replace(moved.find("02:00:00:00:00:02"), 17, "02:00:00:00:00:22");
  EXPECT_THAT(diff(kPorts + kBravo, moved),
              ElementsAre("changed port m2 in lan [macs: 02:00:00:00:00:02 -> 02:00:00:00:00:22]",
                          "changed address 192.0.2.2 in lan [macs: 02:00:00:00:00:02 -> "
                          "02:00:00:00:00:22]"));
  std::string renamed = kPorts;
  renamed.replace(renamed.find("Alpha"), 5, "Omega");
  EXPECT_THAT(diff(kPorts, renamed),
              ElementsAre("changed member AS64501 Omega in lan [name: AS64501 Alpha -> AS64501 "
                          "Omega]",
                          "changed port m1 in lan [name: Alpha -> Omega]",
                          "changed address 192.0.2.1 in lan [name: Alpha -> Omega]"));
}

TEST(Diff, BroadcastDomains) {
  EXPECT_THAT(diff(kPe, kDomain), ElementsAre("added broadcast-domain lan"));
  EXPECT_THAT(diff(kDomain, kPe), ElementsAre("removed broadcast-domain lan"));
  EXPECT_THAT(diff(kDomain, kDomain + "    rd: 65000:7\n    duplicate-mac: { moves: 9 }\n"
                                      "    import-targets: [65000:1, 65000:2]\n"),
              ElementsAre("changed broadcast-domain lan [rd:  -> 65000:7] [import-targets:  -> "
                          "65000:1 65000:2] [duplicate-mac.moves: 5 -> 9]"));
  EXPECT_THAT(diff(kDomain, kDomain + "    profile: dynamic\n    age-time: 1h\n"),
              ElementsAre("changed broadcast-domain lan [profile: static -> dynamic] "
                          "[age-time: 14400s -> 3600s]"));
}

TEST(Diff, Policies) {
  const std::string before = kNode + "policies:\n  p:\n    ingress: { arp: { pps: 20 } }\n";
  const std::string after = kNode + "policies:\n  p:\n    ingress: { arp: { pps: 30 } }\n  q: {}\n";
  EXPECT_THAT(diff(before, after),
              ElementsAre("changed policy p [ingress.arp: 20 pps burst 1000ms -> 30 pps burst "
                          "1000ms]",
                          "added policy q"));
}

TEST(Diff, RoutePoliciesRuleByRule) {
  const auto with = [](const char* rule) {
    return kNode + "bgp:\n  policies:\n    p:\n      - { route-type: 3, then: accept }\n" + rule;
  };
  const auto changes = diff(with(""), with("      - { vni: 100, then: reject }\n"));
  EXPECT_THAT(changes, ElementsAre("changed route-policy p [rules[1]:  -> vni 100; reject]"));
}

TEST(Diff, PortSecurity) {
  const std::string port =
      kDomain +
      "    ports:\n      - { interface: m1, name: Alpha, as: 64501, addresses: [192.0.2.1], ";
  EXPECT_THAT(
      diff(port + "macs: ['02:00:00:00:00:01'] }\n",
           port + "macs: ['02:00:00:00:00:01', { mac: '02:00:00:00:00:09', until: "
                  "'2040-02-03T04:05:06Z' }], state: quarantine, observe: true }\n"),
      ElementsAre("changed port m1 in lan [macs: 02:00:00:00:00:01 -> 02:00:00:00:00:01 "
                  "02:00:00:00:00:09 until 2040-02-03T04:05:06Z] [state: active -> quarantine] "
                  "[observe: false -> true]",
                  testing::HasSubstr("changed address 192.0.2.1 in lan")));
  const std::string policy = "policies:\n  p: { ";
  EXPECT_THAT(
      diff(kNode + policy + "}\n",
           kNode + policy +
               "egress: { total: { pps: 7, burst: 500ms } }, per-vtep: { pps: 9, burst: 1s "
               "}, observe: true, security: { loop: drop, flap-hold: 20s } }\n"),
      ElementsAre(testing::AllOf(
          testing::HasSubstr("[egress.total: 1000000 bps burst 1000ms -> 7 pps burst 500ms]"),
          testing::HasSubstr("[per-vtep: "), testing::HasSubstr(" -> 9 pps burst 1000ms]"),
          testing::HasSubstr("[observe: false -> true]"),
          testing::HasSubstr("[security.loop: shut -> drop]"),
          testing::HasSubstr("[security.flap-hold: 10s -> 20s]"))));
  EXPECT_THAT(
      diff(kDomain, kDomain + "report-interval: 60s\nunderlay: { interfaces: [eth0] }\n"),
      ElementsAre("changed node n [report-interval: 900s -> 60s] [underlay.interfaces:  -> eth0]"));
}

// A key that diff_fields does not know must not be lost: here one that no file can set.
TEST(Diff, WhatNoFieldTellsIsOtherSettings) {
  NodeSettings before = settings(kPorts);
  NodeSettings after = before;
  after.domains[0].links.vtep = net::IpAddress::v4(7);
  EXPECT_THAT(diff(before, after),
              ElementsAre("changed broadcast-domain lan [other settings:  -> ]"));
  after = before;
  after.policies["peering"].name = "other";
  EXPECT_THAT(diff(before, after), ElementsAre("changed policy other [other settings:  -> ]"));
}

TEST(Diff, LossOfMembers) {
  const NodeSettings one = settings(kPorts), two = settings(kPorts + kBravo);
  EXPECT_THAT(difference(one, two).losses, IsEmpty());
  const auto loss = difference(two, one);
  EXPECT_THAT(loss.losses, ElementsAre(MemberLoss{"lan", 2, 1}));
  EXPECT_THAT(loss.beyond(49), ElementsAre(MemberLoss{"lan", 2, 1}));
  EXPECT_THAT(loss.beyond(50), IsEmpty());
  EXPECT_THAT(loss.beyond(100), IsEmpty());
  EXPECT_THAT(loss.beyond(0), ElementsAre(MemberLoss{"lan", 2, 1}));
  // A broadcast domain that goes as a whole was meant to go.
  EXPECT_THAT(difference(two, settings(kPe)).losses, IsEmpty());
}

TEST(Diff, AMemberThatIsElsewhereIsNotLost) {
  // The port goes, the address stays as a binding.
  const std::string binding =
      "    bindings:\n      - { ip: 192.0.2.2, macs: ['02:00:00:00:00:02'], as: 64502, name: Bravo "
      "}\n";
  const auto change = difference(settings(kPorts + kBravo), settings(kPorts + binding));
  EXPECT_THAT(change.losses, IsEmpty());
}

TEST(Diff, MemberListsOfARouteServer) {
  NodeSettings before, after;
  before.members = {{net::Vni(100),
                     {},
                     {},
                     {{net::IpAddress::v4(1), {}, net::AsNumber(1), "A"},
                      {net::IpAddress::v4(2), {}, net::AsNumber(2), "B"}},
                     {}}};
  after.members = before.members;
  after.members[0].addresses.pop_back();
  EXPECT_THAT(diff(before, after),
              ElementsAre("removed member AS2 B in VNI 100", "removed address 0.0.0.2 in VNI 100"));
  EXPECT_THAT(difference(before, after).beyond(20), ElementsAre(MemberLoss{"VNI 100", 2, 1}));
}
