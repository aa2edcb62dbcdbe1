// SPDX-License-Identifier: GPL-2.0-or-later
// The keys of proxy ARP/ND: what they set, what is refused, and what makes no sense together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/helpers.h"

using namespace std::chrono_literals;
using proxyarp::FloodTo;
using testing::HasSubstr;

namespace {

const std::string kPort =
    "    ports: [{interface: m1, macs: [02:00:00:00:00:01], addresses: [192.0.2.1]}]\n";

config::BroadcastDomain domain(const std::string& keys) {
  const auto loaded = config::load_text("f", kDomain + kPort + keys, kData);
  EXPECT_TRUE(loaded) << text_of(loaded.error());
  return loaded ? loaded->settings.domains.at(0) : config::BroadcastDomain{};
}
proxyarp::Settings proxy(const std::string& keys) { return domain(keys).proxy; }
net::MacAddress mac(const char* text) { return *net::MacAddress::parse(text); }
net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }

// The error, without its place.
std::string refused(const std::string& keys) { return verdict(kDomain + kPort + keys); }

}  // namespace

TEST(ProxyKeys, FloodTargets) {
  const FloodTo none{}, both{true, true}, core{true, false}, local{false, true};
  auto s = proxy("    profile: dynamic\n");
  EXPECT_EQ(s.unknown_arp(), both);
  EXPECT_EQ(s.host_na(), both);
  s = proxy("    profile: dynamic\n    flood-unknown: core\n    flood-gratuitous: local\n");
  EXPECT_EQ(s.unknown_arp(), core);
  EXPECT_EQ(s.unknown_ns(), core);
  EXPECT_EQ(s.gratuitous_arp(), local);
  EXPECT_EQ(s.router_na(), local);
  EXPECT_EQ(s.host_na(), local);
  // A finer key wins, wherever it stands.
  s = proxy(
      "    flood-unknown-ns: local\n    flood-unknown: true\n    flood-host-na: core\n"
      "    flood-gratuitous: false\n    flood-router-na: true\n");
  EXPECT_EQ(s.unknown_arp(), both);
  EXPECT_EQ(s.unknown_ns(), local);
  EXPECT_EQ(s.gratuitous_arp(), none);
  EXPECT_EQ(s.router_na(), both);
  EXPECT_EQ(s.host_na(), core);
}

TEST(ProxyKeys, EveryKnob) {
  const auto d = domain(R"(    profile: hybrid
    pe-addresses: [192.0.2.250, 2001:db8:1::250]
    age-time: 1h
    refresh: 10m
    announcements-per-second: 7
    new-bindings-per-second: 8
    link-local: eui-64
    link-locals-per-mac: 3
    advertise-neighbors: router
    anycast: true
    anycast-macs: 5
    unknown-options: unicast-forward
    known-options: [1, 14, 25]
    unicast-forward: always
    probes: pass
    exempt: [192.0.2.64/28]
    unassigned:
      - {prefix: 192.0.2.0/24, policy: sponge}
      - {prefix: 192.0.2.128/25, policy: drop}
      - {prefix: 2001:db8:1::/64, policy: flood}
    sponge: {mac: 02:ee:00:00:00:01, queue: 20, rate: 12.5, pending: 2, age: 30s, probe-rate: 9,
      flood-protection: 0, passive: true, observe: true, announce: true, learning: 0,
      sweep-interval: 15m, sweep-silence: 30m}
    decoys: {addresses: [192.0.2.254, 198.51.100.1], interval: 1m}
    default-router: false
)");
  EXPECT_EQ(d.pe_addresses, (std::vector{ip("192.0.2.250"), ip("2001:db8:1::250")}));
  const auto& s = d.proxy;
  EXPECT_EQ(s.profile, proxyarp::Profile::Hybrid);
  EXPECT_EQ(s.age_time, 1h);
  EXPECT_EQ(s.refresh, 10min);
  EXPECT_EQ(s.announcements_per_second, 7u);
  EXPECT_EQ(s.new_bindings_per_second, 8u);
  EXPECT_EQ(s.link_local, proxyarp::LinkLocal::Eui64);
  EXPECT_EQ(s.link_locals_per_mac, 3u);
  EXPECT_EQ(s.advertise, proxyarp::AdvertiseNeighbors::Router);
  EXPECT_TRUE(s.anycast);
  EXPECT_EQ(s.anycast_macs, 5u);
  EXPECT_EQ(s.options_policy(), proxyarp::UnknownOptions::UnicastForward);
  EXPECT_EQ(s.known_options, (std::set<uint8_t>{1, 14, 25}));
  EXPECT_EQ(s.unicast_forward, proxyarp::UnicastForward::Always);
  EXPECT_EQ(s.probes, proxyarp::Probes::Pass);
  EXPECT_EQ(s.exempt, std::vector{*net::IpPrefix::parse("192.0.2.64/28")});
  ASSERT_EQ(s.unassigned.size(), 3u);
  EXPECT_EQ(s.unassigned[0].policy, proxyarp::Unassigned::Sponge);
  EXPECT_EQ(s.unassigned[1].policy, proxyarp::Unassigned::Drop);
  EXPECT_EQ(s.unassigned[2].policy, proxyarp::Unassigned::Flood);
  proxyarp::Sponge sponge;
  sponge.mac = mac("02:ee:00:00:00:01");
  sponge.queue = 20;
  sponge.rate = 12.5;
  sponge.pending = 2;
  sponge.age = 30s;
  sponge.probe_rate = 9;
  sponge.flood_protection = 0;
  sponge.passive = sponge.observe = sponge.announce = true;
  sponge.learning = 0s;
  sponge.sweep_interval = 15min;
  sponge.sweep_silence = 30min;
  EXPECT_EQ(s.sponge, sponge);
  EXPECT_EQ(s.decoys.addresses, (std::vector{ip("192.0.2.254"), ip("198.51.100.1")}));
  EXPECT_EQ(s.decoys.interval, 1min);
  EXPECT_FALSE(s.default_router);
}

TEST(ProxyKeys, F9_DuplicateAddressesAreConfigurable) {
  const auto s = proxy(
      "    duplicate-ip: {enabled: true, moves: 3, window: 60s, hold: 0, confirm: 5s, "
      "anti-spoof-mac: 02:aa:00:00:00:01}\n");
  EXPECT_EQ(s.duplicates.moves, 3u);
  EXPECT_EQ(s.duplicates.window, 60s);
  EXPECT_EQ(s.duplicates.hold_down, 0s);
  EXPECT_EQ(s.duplicates.confirm_wait, 5s);
  EXPECT_EQ(s.duplicates.anti_spoof_mac, mac("02:aa:00:00:00:01"));
  EXPECT_FALSE(proxy("    duplicate-ip: {enabled: false}\n").duplicates.enabled);
}

TEST(ProxyKeys, WhatTheMacVrfHasToKnow) {
  auto evpn = domain("").evpn;
  EXPECT_TRUE(evpn.default_router);
  EXPECT_EQ(evpn.anti_spoof_mac, std::nullopt);
  EXPECT_EQ(evpn.anycast_macs, 1u);
  evpn =
      domain("    default-router: false\n    duplicate-ip: {anti-spoof-mac: 02:aa:00:00:00:01}\n")
          .evpn;
  EXPECT_FALSE(evpn.default_router);
  EXPECT_EQ(evpn.anti_spoof_mac, mac("02:aa:00:00:00:01"));
  EXPECT_EQ(domain("    anycast: true\n    anycast-macs: 3\n").evpn.anycast_macs, 3u);
}

TEST(ProxyKeys, Attach) {
  const auto port = [](const char* word) {
    const auto loaded = config::load_text(
        "f", kDomain + "    ports: [{interface: m1" + std::string(word) + "}]\n", kData);
    return loaded ? loaded->settings.domains[0].ports[0].attach : dataplane::Attach::Tc;
  };
  EXPECT_EQ(port(""), dataplane::Attach::Auto);
  EXPECT_EQ(port(", attach: xdp"), dataplane::Attach::Xdp);
  EXPECT_EQ(port(", attach: tc"), dataplane::Attach::Tc);
}

TEST(ProxyKeys, NonsenseIsRefusedWithItsPlace) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"    duplicate-ip: {anti-spoof-mac: 01:00:5e:00:00:01}\n",
       "f:12:36: broadcast-domains[0].duplicate-ip.anti-spoof-mac: \"01:00:5e:00:00:01\" is a "
       "group address"},
      {"    duplicate-ip: {anti-spoof-mac: 02:00:00:00:00:01}\n",
       "f:12:36: broadcast-domains[0].duplicate-ip.anti-spoof-mac: 02:00:00:00:00:01 is a MAC "
       "address of port \"m1\""},
      {"    decoys: {addresses: [192.0.2.254, 192.0.2.1]}\n",
       "f:12:39: broadcast-domains[0].decoys.addresses[1]: 192.0.2.1 is an address of port \"m1\""},
      {"    decoys: {addresses: [192.0.2.255]}\n", "network or broadcast address"},
      {"    decoys: {interval: 5m}\n", "missing key \"addresses\""},
      {"    refresh: 4h\n    age-time: 4h\n",
       "f:12:14: broadcast-domains[0].refresh: must be shorter than age-time, 14400 s"},
      {"    age-time: 1m\n    refresh: 61s\n", "must be shorter than age-time"},
      {"    flood-unknown: sometimes\n",
       "f:12:20: broadcast-domains[0].flood-unknown: expected one of true, false, core, local"},
      {"    unassigned: [{prefix: 198.51.100.0/24, policy: drop}]\n",
       "198.51.100.0/24 is not inside of prefixes"},
      {"    unassigned: [{prefix: 192.0.0.0/16, policy: drop}]\n",
       "192.0.0.0/16 is not inside of prefixes"},
      {"    unassigned: [{prefix: 192.0.2.0/24, policy: drop}, {prefix: 192.0.2.0/24, policy: "
       "flood}]\n",
       "192.0.2.0/24 is listed twice"},
      {"    exempt: [198.51.100.0/24]\n", "198.51.100.0/24 has nothing to do with prefixes"},
      {"    known-options: [0]\n", "expected a number from 1 to 255"},
      {"    known-options: [1, 1]\n", "listed twice"},
      {"    sponge: {rate: -3}\n", "expected a number from 1 to 1000000, got \"-3\""},
      {"    sponge: {rate: 1e3}\n", "expected a number from 1 to 1000000"},
      {"    sponge: {mac: 02:00:00:00:00:01}\n", "is a MAC address of port \"m1\""},
      {"    sponge: {mac: 02:aa:00:00:00:01}\n    duplicate-ip: {anti-spoof-mac: "
       "02:aa:00:00:00:01}\n",
       "is the anti-spoof MAC too"},
      {"    pe-addresses: [192.0.2.1]\n", "192.0.2.1 is an address of port \"m1\""},
      {"    pe-addresses: [198.51.100.1]\n", "198.51.100.1 is outside of prefixes"},
      {"    pe-addresses: [192.0.2.7, 192.0.2.8]\n", "one address of each family"},
      {"    pe-addresses: [192.0.2.7]\n    decoys: {addresses: [192.0.2.7]}\n",
       "is in pe-addresses"},
      {"    duplicate-ip: {moves: 1}\n", "expected a number from 2 to 1000"},
      {"    probes: sometimes\n", "expected one of strangers, pass, ignore"},
  };
  for (const auto& [keys, error] : kWrong) {
    const std::string text = refused(keys);
    EXPECT_THAT(text, HasSubstr(error)) << keys;
    EXPECT_FALSE(text.starts_with("loaded")) << keys;
  }
}

TEST(ProxyKeys, ADecoyOfAnExportedMemberIsRefused) {
  EXPECT_THAT(refused("    bindings: [{ip: 192.0.2.9, macs: [02:00:00:00:00:09], name: Nine}]\n"
                      "    decoys: {addresses: [192.0.2.9]}\n"),
              HasSubstr("192.0.2.9 is an address of \"Nine\""));
}

// RFC 9161 section 3.6.
TEST(ProxyKeys, E3_SuppressionWithLearnedBindingsOnlyWarns) {
  const std::string open = "    ports: [{interface: m1}]\n    profile: dynamic\n";
  const auto warned = [](const std::string& keys) {
    const std::string text = verdict(kDomain + keys);
    EXPECT_TRUE(text.starts_with("loaded\n")) << text;
    return text.find("RFC 9161, 3.6") != std::string::npos;
  };
  EXPECT_FALSE(warned(open));
  EXPECT_TRUE(warned(open + "    flood-unknown: false\n"));
  EXPECT_TRUE(warned(open + "    flood-unknown: core\n"));
  EXPECT_TRUE(warned(open + "    flood-unknown-ns: local\n"));
  EXPECT_TRUE(warned("    ports: [{interface: m1}]\n    learning: true\n"));
  // A policy for silent hosts, and bindings that are known.
  EXPECT_FALSE(warned(open + "    flood-unknown: false\n    unassigned: [{prefix: 192.0.2.0/24, "
                             "policy: sponge}]\n"));
  EXPECT_FALSE(warned(kPort + "    profile: dynamic\n    flood-unknown: false\n"));
  EXPECT_THAT(verdict(kDomain + open + "    flood-unknown: false\n"),
              HasSubstr("f:13:20: broadcast-domains[0].flood-unknown: "));
}

// A silent member is asked before the bridge forgets its MAC.
TEST(ProxyKeys, RefreshIsInTimeForTheBridge) {
  const auto refresh = [](const std::string& keys) {
    return domain("    profile: dynamic\n" + keys).proxy.refresh;
  };
  EXPECT_EQ(refresh(""), std::nullopt);  // a third of age-time
  EXPECT_EQ(refresh("    ageing: 5m\n"), 100s);
  EXPECT_EQ(refresh("    ageing: 2s\n"), 1s);
  EXPECT_EQ(refresh("    age-time: 1m\n    ageing: 5m\n"), std::nullopt);
  EXPECT_EQ(refresh("    refresh: 10m\n    ageing: 5m\n"), 600s);
}

TEST(ProxyKeys, WhatHasNoEffectWarns) {
  EXPECT_THAT(refused("    sponge: {queue: 10}\n"), HasSubstr("has the policy sponge"));
  EXPECT_THAT(refused("    anycast-macs: 3\n"), HasSubstr("without anycast"));
  EXPECT_THAT(refused("    anycast: true\n    duplicate-ip: {moves: 3}\n"),
              HasSubstr("duplicates are not detected"));
  EXPECT_THAT(refused("    profile: dynamic\n    refresh: 0\n"), HasSubstr("will age out"));
  EXPECT_THAT(refused("    pe-addresses: [192.0.2.7]\n    unassigned: [{prefix: 192.0.2.0/24, "
                      "policy: sponge}]\n"),
              HasSubstr("a mac of its own"));
}
