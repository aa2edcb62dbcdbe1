// SPDX-License-Identifier: GPL-2.0-or-later
// Port security, egress cap, limits by VTEP, observe mode, underlay: what they become, and what is
// refused, with file, line, column and reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/helpers.h"

using namespace config;
using namespace std::chrono_literals;
using dataplane::Limit;
using dataplane::Reaction;
using testing::ElementsAre;

namespace {

NodeSettings load_good(const std::string& yaml, const std::string& warnings = "") {
  const auto loaded = load_text("f", yaml, kData);
  EXPECT_TRUE(loaded) << text_of(loaded.error()) << yaml;
  if (!loaded) return {};
  EXPECT_EQ(text_of(loaded->warnings), warnings) << yaml;
  return loaded->settings;
}

dataplane::MemberPort port_of(const std::string& keys, const std::string& rest = "") {
  const NodeSettings node =
      load_good(kDomain + "    ports: [{interface: p0" + keys + "}]\n" + rest);
  return node.domains.empty() ? dataplane::MemberPort{} : node.domains.at(0).ports.at(0);
}

net::MacAddress mac(const char* text) { return net::MacAddress::parse(text).value(); }

void check(const std::string& base, const std::vector<std::pair<std::string, std::string>>& table) {
  for (const auto& [yaml, errors] : table) EXPECT_EQ(verdict(base + yaml), errors) << yaml;
}

constexpr const char* kOne = "02:00:00:00:00:01";
constexpr const char* kTwo = "02:00:00:00:00:02";

}  // namespace

TEST(Security, EveryKeyOfAPolicy) {
  const NodeSettings node = load_good(
      kNode +
      "policies:\n"
      "  a:\n"
      "    egress: {total: {bps: 200k, burst: 100ms}, arp: {pps: 3}, nd-unicast: {pps: 4}}\n"
      "    per-vtep: {pps: 500, bps: 1M}\n"
      "    observe: true\n"
      "    security: {macs: count, spoofing: quarantine, protocols: shut, loop: drop, storm: "
      "shut,\n"
      "               violations: 7, window: 20s, storm-rate: 2k, hold: 30s, max-hold: 300s,\n"
      "               forgive: 2h, flap-transitions: 6, flap-window: 7s, flap-hold: 8s}\n"
      "  b: {egress: {total: unlimited}, security: {hold: 30m}}\n"
      "  c: {egress: {total: drop}}\n");
  const auto& a = node.policies.at("a");
  EXPECT_EQ(a.egress_total, (Limit{{}, 200'000, 100ms}));
  EXPECT_EQ(a.egress[0], (Limit{3, {}, 1000ms}));
  EXPECT_EQ(a.egress[1], dataplane::peering_policy().egress[1]);
  EXPECT_EQ(a.egress[dataplane::kBumClasses - 1], (Limit{4, {}, 1000ms}));
  EXPECT_EQ(a.per_vtep, (Limit{500, 1'000'000, 1000ms}));
  EXPECT_TRUE(a.observe);
  const dataplane::SecuritySettings want{.macs = Reaction::Count,
                                         .spoofing = Reaction::Quarantine,
                                         .protocols = Reaction::Shut,
                                         .loop = Reaction::Drop,
                                         .storm = Reaction::Shut,
                                         .violations = 7,
                                         .window = 20s,
                                         .storm_rate = 2000,
                                         .hold = 30s,
                                         .max_hold = 300s,
                                         .forgive = 7200s,
                                         .flap_transitions = 6,
                                         .flap_window = 7s,
                                         .flap_hold = 8s};
  EXPECT_EQ(a.security, want);
  const auto& b = node.policies.at("b");
  EXPECT_EQ(b.egress_total, std::nullopt);
  EXPECT_EQ(b.security.max_hold, 1800s);  // never shorter than hold
  EXPECT_EQ(b.security.loop, Reaction::Shut);
  EXPECT_FALSE(b.observe);
  EXPECT_EQ(node.policies.at("c").egress_total, (Limit{0, {}, 1000ms}));
}

TEST(Security, PoliciesThatAreBuiltIn) {
  const NodeSettings node = load_good(kNode);
  ASSERT_TRUE(node.policies.contains("peering") && node.policies.contains("quarantine"));
  const auto& peering = node.policies.at("peering");
  EXPECT_EQ(peering.ingress[0], (Limit{20, {}, 1000ms}));
  EXPECT_EQ(peering.ingress[1], (Limit{50, {}, 1000ms}));
  using enum dataplane::BumClass;
  for (const auto other : {Broadcast, Multicast, UnknownUnicast})
    EXPECT_EQ(peering.ingress[static_cast<std::size_t>(other)], (Limit{0, {}, 1000ms}));
  for (const auto unicast : {ArpUnicast, NdUnicast})
    EXPECT_EQ(peering.ingress[static_cast<std::size_t>(unicast)], (Limit{100, {}, 1000ms}));
  EXPECT_EQ(peering.per_vtep, (Limit{100, {}, 1000ms}));
  EXPECT_EQ(peering.egress_total, (Limit{{}, 1'000'000, 1000ms}));
  EXPECT_THAT(peering.allowed_ethertypes, ElementsAre(0x0800, 0x0806, 0x86dd));
  EXPECT_TRUE(peering.allow.empty());
  EXPECT_FALSE(peering.observe);
  const auto& quarantine = node.policies.at("quarantine");
  for (const auto* limits :
       {&quarantine.ingress, &quarantine.egress, &quarantine.decap, &quarantine.encap})
    for (const auto& limit : *limits) EXPECT_EQ(limit, (Limit{0, {}, 1000ms}));
}

TEST(Security, ObserveEverywhere) {
  const NodeSettings node =
      load_good("observe: true\n" + kNode + "policies: {a: {}, b: {observe: false}}\n");
  EXPECT_TRUE(node.observe);
  for (const auto& [name, policy] : node.policies) EXPECT_TRUE(policy.observe) << name;
  EXPECT_FALSE(load_good(kNode + "policies: {a: {}}\n").policies.at("a").observe);
}

TEST(Security, Underlay) {
  EXPECT_THAT(load_good(kPe + "underlay: {interfaces: [eth0, eth1]}\n").underlay_interfaces,
              ElementsAre("eth0", "eth1"));
  EXPECT_EQ(load_good(kNode + "report-interval: 5m\n").report_interval, 300s);
  check(kPe, {{"underlay: {}\n", "f:5:11: underlay: missing key \"interfaces\"\n"},
              {"underlay: {interfaces: [eth0, eth0]}\n",
               "f:5:31: underlay.interfaces[1]: device \"eth0\" is in use already: underlay, line "
               "5\n"},
              {"report-interval: 5s\n",
               "f:5:18: report-interval: expected a whole number of seconds, 10 to 86400, got "
               "\"5s\"\n"}});
  EXPECT_EQ(verdict(kNode + "underlay: {interfaces: [eth0]}\n"),
            "f:4:11: underlay: underlay needs the key \"vtep\"\n");
  // A member there would be judged as a tunnel, and the tunnels as a member.
  EXPECT_EQ(verdict(kDomain + "    ports: [{interface: eth0}]\nunderlay: {interfaces: [eth0]}\n"),
            "f:11:25: broadcast-domains[0].ports[0].interface: device \"eth0\" is in use already: "
            "underlay, line 12\n");
}

TEST(Security, MacsOfAPort) {
  const std::string dynamic = "    profile: dynamic\n";
  // Nothing said: denied, but where MACs are learned.
  EXPECT_TRUE(port_of("").enforce_macs);
  EXPECT_FALSE(port_of("", dynamic).enforce_macs);
  EXPECT_FALSE(port_of(", macs: any").enforce_macs);
  EXPECT_TRUE(port_of(", macs: []").enforce_macs);
  EXPECT_TRUE(port_of(", macs: []", dynamic).enforce_macs);
  EXPECT_TRUE(port_of(", macs: []", dynamic).macs.empty());
  EXPECT_TRUE(port_of(std::string(", macs: [") + kOne + "]", dynamic).enforce_macs);
  EXPECT_FALSE(port_of(std::string(", enforce-macs: false, macs: [") + kOne + "]").enforce_macs);
}

TEST(Security, ATemporaryMac) {
  const auto port = port_of(std::string(", macs: [") + kOne + ", {mac: " + kTwo +
                            ", until: 2099-12-02T06:00:01Z}], addresses: [192.0.2.1]");
  EXPECT_THAT(port.macs, ElementsAre(mac(kOne)));
  ASSERT_EQ(port.temporary_macs.size(), 1u);
  EXPECT_EQ(port.temporary_macs[0].mac, mac(kTwo));
  EXPECT_EQ(port.temporary_macs[0].until,
            std::chrono::sys_days(std::chrono::year(2099) / 12 / 2) + 6h + 1s);
  // Its addresses may be at either.
  const NodeSettings node =
      load_good(kDomain + "    ports: [{interface: p0, macs: [" + kOne + ", {mac: " + kTwo +
                ", until: 2099-01-01T00:00:00Z}], addresses: [192.0.2.1]}]\n");
  EXPECT_THAT(node.domains.at(0).proxy.bindings.at(0).macs, ElementsAre(mac(kOne), mac(kTwo)));
  const std::string at = "f:11:";
  const std::string where = ": broadcast-domains[0].ports[0].macs[0]";
  load_good(kDomain + "    ports: [{interface: p0, macs: [{mac: " + kOne +
                ", until: 2020-01-01T00:00:00Z}]}]\n",
            at + "68" + where + ".until: is over: frames from this MAC address are not let in\n");
  const std::string expected = ".until: expected a time in UTC such as 2026-12-02T06:00:00Z, got ";
  for (const char* time :
       {"tomorrow", "2099-13-01T00:00:00Z", "2099-02-30T00:00:00Z", "2099-01-01T24:00:00Z",
        "2099-01-01T00:00:00", "2099-01-01T00:00:00+01:00", "2099-01-01"})
    EXPECT_EQ(verdict(kDomain + "    ports: [{interface: p0, macs: [{mac: " + kOne + ", until: '" +
                      time + "'}]}]\n"),
              at + "68" + where + expected + "\"" + time + "\"\n");
  check(kDomain + "    ports: [{interface: p0, macs: [",
        {{"{mac: 02:00:00:00:00:01}]}]\n", at + "36" + where + ": missing key \"until\"\n"},
         {"{until: 2099-01-01T00:00:00Z}]}]\n", at + "36" + where + ": missing key \"mac\"\n"},
         {std::string(kOne) + ", {mac: " + kOne + ", until: 2099-01-01T00:00:00Z}]}]\n",
          at + "55: broadcast-domains[0].ports[0].macs[1]: listed twice\n"}});
}

TEST(Security, StateOfAPort) {
  EXPECT_FALSE(port_of(", state: active").quarantined);
  EXPECT_TRUE(port_of(", state: quarantine").quarantined);
  EXPECT_TRUE(port_of(", policy: quarantine").quarantined);
  EXPECT_TRUE(port_of("", "    policy: quarantine\n").quarantined);
  EXPECT_TRUE(port_of(", observe: true").observe);
  EXPECT_TRUE(port_of(", lacp: true, policy: l", "policies: {l: {allow: [lacp]}}\n").lacp);
}

// A port says only what differs from its policy.
TEST(Security, OfAPortBeginsWithThatOfItsPolicy) {
  EXPECT_EQ(port_of("").security, std::nullopt);
  const auto port = port_of(", policy: a, security: {macs: shut}",
                            "policies: {a: {security: {hold: 5s, macs: count}}}\n");
  ASSERT_TRUE(port.security);
  EXPECT_EQ(port.security->macs, Reaction::Shut);
  EXPECT_EQ(port.security->hold, 5s);
}

TEST(Security, WrongValues) {
  const std::string where = ": policies.a.security.";
  const std::string two = "\"count\"";
  check(kNode + "policies:\n  a: {security: {",
        {{"macs: block}}\n", "f:5:24" + where +
                                 "macs: expected one of count, drop, quarantine, shut, got "
                                 "\"block\"\n"},
         {"loop: count}}\n",
          "f:5:24" + where + "loop: expected one of drop, quarantine, shut, got " + two + "\n"},
         {"spoofing: count}}\n",
          "f:5:28" + where + "spoofing: expected one of drop, quarantine, shut, got " + two + "\n"},
         {"storm-rate: 0}}\n",
          "f:5:30" + where +
              "storm-rate: without frames over the limits there is no storm: at least 1\n"},
         {"storm-rate: 5%}}\n", "f:5:30" + where +
                                    "storm-rate: expected an absolute rate a second such as 20, "
                                    "100k, 1M or 2G, never percent of a port, got \"5%\"\n"},
         {"violations: 0}}\n",
          "f:5:30" + where + "violations: expected a number from 1 to 1000, got \"0\"\n"},
         {"max-hold: 30s, hold: 60s}}\n", "f:5:28" + where + "max-hold: shorter than hold, 60s\n"},
         {"shutdown: 60s}}\n", "f:5:18: policies.a.security.shutdown: unknown key\n"}});
  check(kNode + "policies:\n  ",
        {{"quarantine: {}\n",
          "f:5:15: policies.quarantine: is built in and can't be changed: nothing passes; take "
          "another name\n"},
         {"a: {egress: {total: 10%}}\n",
          "f:5:23: policies.a.egress.total: expected drop, unlimited, or a mapping of pps, bps and "
          "burst, got \"10%\"\n"},
         {"a: {ingress: {total: drop}}\n", "f:5:17: policies.a.ingress.total: unknown key\n"},
         {"a: {egress: {total: {bps: 1M, burst: 0ms}}}\n",
          "f:5:40: policies.a.egress.total.burst: expected a duration from 1ms to 1s, got "
          "\"0ms\"\n"},
         {"a: {per-vtep: {bps: 1%}}\n",
          "f:5:23: policies.a.per-vtep.bps: expected an absolute rate a second such as 20, 100k, "
          "1M or 2G, never percent of a port, got \"1%\"\n"}});
}

// What a member needs for BGP over the exchange, and for LACP with us.
TEST(Security, APolicyMustNotCutThePortsOwnTraffic) {
  const std::string port =
      "    ports: [{interface: p0, policy: a, macs: [02:00:00:00:00:01], addresses: [192.0.2.1, "
      "'2001:db8:1::1']}]\npolicies:\n";
  const std::string at =
      "f:11:37: broadcast-domains[0].ports[0].policy: policy \"a\" would cut "
      "this port's own BGP over IPv";
  check(kDomain + port,
        {{"  a: {ethertypes: [arp, ipv6]}\n", at + "4: ethertypes has no ipv4\n"},
         {"  a: {ethertypes: [ipv4, ipv6]}\n", at + "4: ethertypes has no arp\n"},
         {"  a: {ethertypes: [ipv4, arp]}\n", at + "6: ethertypes has no ipv6\n"},
         {"  a: {answers: drop}\n",
          at + "4: answers is drop: no ARP request would be answered\n" + at +
              "6: answers is drop: no neighbor solicitation would be answered\n"},
         // The proxy answers what would be broadcast.
         {"  a: {ingress: {arp: drop, nd: drop}, egress: {arp: drop, nd: drop, total: drop}}\n",
          "loaded\n"}});
  const std::string off = kDomain + "    profile: off\n" + port;
  const std::string of_off =
      "f:12:37: broadcast-domains[0].ports[0].policy: policy \"a\" would "
      "cut this port's own BGP over IPv";
  check(off, {{"  a: {ingress: {arp: drop}}\n", of_off + "4: ingress.arp is drop\n"},
              {"  a: {ingress: {nd: {pps: 0}}}\n", of_off + "6: ingress.nd is drop\n"},
              {"  a: {egress: {arp: {bps: 0}}}\n", of_off + "4: egress.arp is drop\n"},
              {"  a: {egress: {total: drop}}\n",
               of_off + "4: egress.total is drop\n" + of_off + "6: egress.total is drop\n"},
              {"  a: {answers: drop}\n", "loaded\n"}});
  // Of a port without addresses, what the LAN has; the domain's policy is named at the port.
  EXPECT_EQ(verdict(kDomain + "    policy: a\n    ports:\n      - interface: p0\n"
                              "policies: {a: {ethertypes: [ipv4, arp]}}\n"),
            "f:13:9: broadcast-domains[0].ports[0]: policy \"a\" would cut this port's own BGP "
            "over IPv6: ethertypes has no ipv6\n");
  EXPECT_EQ(verdict(kDomain + "    ports: [{interface: p0, lacp: true}]\n"),
            "f:11:13: broadcast-domains[0].ports[0]: policy \"peering\" would cut this port's own "
            "LACP: allow has no lacp\n");
  // Nothing is to pass there.
  EXPECT_EQ(verdict(kDomain + "    ports: [{interface: p0, lacp: true, state: quarantine}]\n"),
            "loaded\n");
}
