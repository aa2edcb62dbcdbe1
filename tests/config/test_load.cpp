// SPDX-License-Identifier: GPL-2.0-or-later
// What good files mean: every key once, defaults, inheritance, where bindings come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/helpers.h"

using namespace config;
using namespace std::chrono_literals;
using dataplane::BumClass;
using dataplane::Limit;
using testing::ElementsAre;

namespace {

NodeSettings load_good(const std::string& yaml, const std::string& warnings = "") {
  auto loaded = load_text("f", yaml, kData);
  EXPECT_TRUE(loaded) << text_of(loaded.error());
  if (!loaded) return {};
  EXPECT_EQ(text_of(loaded->warnings), warnings);
  return loaded->settings;
}

net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }
net::MacAddress mac(const char* text) { return *net::MacAddress::parse(text); }
const std::optional<Limit>& at(const dataplane::Limits& limits, BumClass bum_class) {
  return limits[static_cast<std::size_t>(bum_class)];
}
Limit pps(uint64_t rate) { return {.packets_per_second = rate, .bits_per_second = {}}; }

// "192.0.2.1 m1 AS64501 Alpha: 02:..., 02:..."
std::string text_of(const std::vector<proxyarp::StaticBinding>& bindings) {
  std::string text;
  for (const auto& b : bindings) {
    text += to_string(b.ip) + " " + b.port + " AS" + std::to_string(b.member_as.value) + " " +
            b.member_name + ":";
    for (const auto& m : b.macs) text += " " + to_string(m);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST(Load, Defaults) {
  const NodeSettings node = load_good(kNode);
  NodeSettings want;
  want.name = "n";
  want.bgp.router_id = ip("10.0.0.1");
  want.bgp.local_as = net::AsNumber(65000);
  want.policies["peering"] = dataplane::peering_policy();
  want.policies["quarantine"] = dataplane::quarantine_policy();
  EXPECT_EQ(node, want);
  EXPECT_FALSE(node.metrics_listen);
  EXPECT_FALSE(node.vtep);
  EXPECT_EQ(node.log.level, "info");
}

TEST(Load, NodeKeys) {
  const NodeSettings node = load_good(
      "{\"node\": \"pe-1.x\", \"router-id\": \"10.0.0.1\", \"as\": 4200000000, \"vtep\": "
      "\"2001:db8::1\", \"pin-directory\": \"/sys/fs/bpf/x\", \"log\": {\"level\": \"debug\", "
      "\"file\": \"/var/log/x\"}, \"control\": {\"socket\": \"/run/x\"}, \"metrics\": {\"listen\": "
      "\"[::1]:9477\"}}");
  EXPECT_EQ(node.name, "pe-1.x");
  EXPECT_EQ(node.bgp.local_as.value, 4200000000u);
  EXPECT_EQ(node.vtep, ip("2001:db8::1"));
  EXPECT_EQ(node.pin_directory, "/sys/fs/bpf/x");
  EXPECT_EQ(node.log, (LogSettings{"debug", "/var/log/x"}));
  EXPECT_EQ(node.control_socket, "/run/x");
  EXPECT_EQ(node.metrics_listen, (std::pair{ip("::1"), uint16_t{9477}}));
}

TEST(Load, NeighborHasEveryKey) {
  const NodeSettings node =
      load_good(kNode +
                "bgp:\n"
                "  listen: [{address: '::'}, {address: 10.0.0.1, port: 1179}]\n"
                "  cluster-id: 1.2.3.4\n"
                "  neighbors:\n"
                "    - address: 10.0.0.2\n"
                "      as: 65001\n"
                "      role: route-server-client\n"
                "      description: 'Alpha: the first'\n"
                "      port: 1790\n"
                "      local-address: 10.0.0.1\n"
                "      passive: true\n"
                "      enabled: false\n"
                "      hold-time: 3m\n"
                "      connect-retry: 2000ms\n"
                "      password: 'x y'\n"
                "      ttl-security-hops: 2\n"
                "      graceful-restart: false\n"
                "      restart-time: 1h\n"
                "      max-prefixes: 5000\n"
                "      max-prefixes-warning: 90\n"
                "      max-prefixes-action: warn\n"
                "      max-prefixes-idle: 1h\n"
                "      delay-open: 5s\n"
                "      open-time: 10s\n"
                "      send-hold-time: 4m\n"
                "      route-target-constrain: true\n"
                "      shutdown-message: 'Schönen Tag'\n"
                "      strip-extended-communities: [0x060D]\n"
                "      arp-nd-community: false\n");
  EXPECT_THAT(node.bgp.listen, ElementsAre(bgp::ListenSettings{ip("::"), 179},
                                           bgp::ListenSettings{ip("10.0.0.1"), 1179}));
  EXPECT_EQ(node.bgp.cluster_id, 0x01020304u);
  bgp::NeighborSettings want;
  want.address = ip("10.0.0.2");
  want.remote_as = net::AsNumber(65001);
  want.role = bgp::NeighborRole::RouteServerClient;
  want.description = "Alpha: the first";
  want.port = 1790;
  want.local_address = ip("10.0.0.1");
  want.passive = true;
  want.enabled = false;
  want.hold_time = 180s;
  want.connect_retry = 2s;
  want.password = "x y";
  want.ttl_security_hops = 2;
  want.graceful_restart = false;
  want.restart_time = 3600s;
  want.max_prefixes = 5000;
  want.max_prefixes_warning = 90;
  want.max_prefixes_warn_only = true;
  want.max_prefixes_idle = 60min;
  want.delay_open = 5s;
  want.open_time = 10s;
  want.send_hold_time = 240s;
  want.route_target_constrain = true;
  want.shutdown_message = "Schönen Tag";
  want.strip_extended_communities = {{0x06, 0x0d}, {0x06, 0x08}};
  EXPECT_THAT(node.bgp.neighbors, ElementsAre(want));
}

TEST(Load, LinkLocalNeighborsDynamicOnesAndTcpAo) {
  const NodeSettings node =
      load_good(kNode +
                "bgp:\n"
                "  listen: [{address: 'fe80::1%eth0'}]\n"
                "  groups:\n"
                "    pes: {as: 65000, role: reflector-client, long-lived-time: 4h,\n"
                "          long-lived-partial-deployment: true}\n"
                "  neighbors:\n"
                "    - {address: 'fe80::2%eth0', group: pes}\n"
                "    - {address: 'fe80::2', interface: eth1, group: pes,\n"
                "       ao-keys: [{send-id: 1, receive-id: 2, key: x, algorithm: hmac-sha-256}]}\n"
                "  dynamic-neighbors:\n"
                "    - {prefix: 192.0.2.0/24, limit: 50, group: pes, passive: false}\n");
  EXPECT_THAT(node.bgp.listen, ElementsAre(bgp::ListenSettings{ip("fe80::1"), 179, "eth0"}));
  bgp::NeighborSettings want;
  want.address = ip("fe80::2");
  want.interface = "eth0";
  want.group = "pes";
  want.remote_as = net::AsNumber(65000);
  want.role = bgp::NeighborRole::ReflectorClient;
  want.long_lived_time = 14400s;
  want.long_lived_partial = true;
  bgp::NeighborSettings second = want;
  second.interface = "eth1";
  second.ao_keys = {{1, 2, "hmac-sha-256", "x"}};
  EXPECT_THAT(node.bgp.neighbors, ElementsAre(want, second));
  ASSERT_EQ(node.bgp.dynamic_neighbors.size(), 1u);
  const bgp::DynamicNeighbors& dynamic = node.bgp.dynamic_neighbors[0];
  EXPECT_EQ(dynamic.prefix, ip("192.0.2.0"));
  EXPECT_EQ(dynamic.prefix_length, 24);
  EXPECT_EQ(dynamic.limit, 50u);
  want.address = {};
  want.interface.clear();
  want.passive = true;  // whatever the file says
  EXPECT_EQ(dynamic.like, want);
}

TEST(Load, NeighborDefaults) {
  const NodeSettings node = load_good(kNode + "bgp: {neighbors: [{address: 10.0.0.2, as: 1}]}\n");
  bgp::NeighborSettings want;
  want.address = ip("10.0.0.2");
  want.remote_as = net::AsNumber(1);
  EXPECT_THAT(node.bgp.neighbors, ElementsAre(want));
}

// The groups may stand after the neighbors.
TEST(Load, NeighborOverridesItsGroup) {
  const NodeSettings node =
      load_good(kNode +
                "bgp:\n"
                "  neighbors:\n"
                "    - {address: 10.0.0.2, group: pes}\n"
                "    - {address: 10.0.0.3, group: pes, hold-time: 0, passive: false,\n"
                "       arp-nd-community: true, strip-extended-communities: []}\n"
                "    - {address: 10.0.0.4, group: pes, as: 65001, role: peer, ttl: 3}\n"
                "  groups:\n"
                "    pes: {as: 65000, role: reflector-client, passive: true, hold-time: 30,\n"
                "          arp-nd-community: false, strip-extended-communities: [0x0600]}\n");
  const auto& n = node.bgp.neighbors;
  ASSERT_EQ(n.size(), 3u);
  EXPECT_EQ(n[0].group, "pes");
  EXPECT_EQ(n[0].remote_as.value, 65000u);
  EXPECT_EQ(n[0].role, bgp::NeighborRole::ReflectorClient);
  EXPECT_TRUE(n[0].passive);
  EXPECT_EQ(n[0].hold_time, 30s);
  EXPECT_THAT(n[0].strip_extended_communities,
              ElementsAre(std::pair(uint8_t{6}, uint8_t{0}), std::pair(uint8_t{6}, uint8_t{8})));
  EXPECT_EQ(n[1].hold_time, 0s);
  EXPECT_FALSE(n[1].passive);
  EXPECT_TRUE(n[1].strip_extended_communities.empty());
  EXPECT_EQ(n[2].role, bgp::NeighborRole::Peer);
  EXPECT_EQ(n[2].remote_as.value, 65001u);
  EXPECT_EQ(n[2].ttl, 3);
}

TEST(Load, ClusterIdAsNumber) {
  EXPECT_EQ(load_good(kNode + "bgp: {cluster-id: 7}\n").bgp.cluster_id, 7u);
}

TEST(Load, PolicyStartsFromPeering) {
  const NodeSettings node = load_good(kNode +
                                      "policies:\n"
                                      "  chatty:\n"
                                      "    ingress:\n"
                                      "      arp: { pps: 1k, bps: 2M, burst: 500ms }\n"
                                      "      nd: unlimited\n"
                                      "      broadcast: { bps: 1G, burst: 1 }\n"
                                      "      multicast: { pps: 0 }\n"
                                      "    egress: { unknown-unicast: unlimited, arp: drop }\n"
                                      "    decap: { nd: { pps: 7 } }\n"
                                      "    encap: { nd: { pps: 8 } }\n"
                                      "    ethertypes: [ipv4, 0x88F7, lacp]\n"
                                      "    allow: [mld, lacp]\n"
                                      "    answers: { pps: 100 }\n"
                                      "    punts: drop\n");
  const dataplane::BumPolicy base = dataplane::peering_policy();
  const dataplane::BumPolicy& policy = node.policies.at("chatty");
  EXPECT_EQ(policy.name, "chatty");
  EXPECT_EQ(at(policy.ingress, BumClass::Arp), (Limit{1000, 2'000'000, 500ms}));
  EXPECT_EQ(at(policy.ingress, BumClass::Nd), std::nullopt);
  EXPECT_EQ(at(policy.ingress, BumClass::Broadcast), (Limit{{}, 1'000'000'000, 1000ms}));
  EXPECT_EQ(at(policy.ingress, BumClass::Multicast), pps(0));
  EXPECT_EQ(at(policy.ingress, BumClass::UnknownUnicast),
            at(base.ingress, BumClass::UnknownUnicast));
  EXPECT_EQ(at(policy.egress, BumClass::UnknownUnicast), std::nullopt);
  EXPECT_EQ(at(policy.egress, BumClass::Arp), pps(0));
  EXPECT_EQ(at(policy.egress, BumClass::Broadcast), at(base.egress, BumClass::Broadcast));
  EXPECT_EQ(at(policy.decap, BumClass::Nd), pps(7));
  EXPECT_EQ(at(policy.encap, BumClass::Nd), pps(8));
  EXPECT_THAT(policy.allowed_ethertypes, ElementsAre(0x0800, 0x88f7, 0x8809));
  EXPECT_THAT(policy.allow, ElementsAre("lacp", "mld"));
  EXPECT_EQ(policy.answers, (Limit{100, {}, 200ms}));
  EXPECT_EQ(policy.punts, pps(0));
  EXPECT_EQ(node.policies.at("peering"), base);
}

TEST(Load, PolicyPeeringCanBeReplaced) {
  const NodeSettings node =
      load_good(kNode + "policies: {peering: {ingress: {arp: {pps: 100}}}}\n");
  EXPECT_EQ(node.policies.size(), 2u);
  EXPECT_EQ(at(node.policies.at("peering").ingress, BumClass::Arp), pps(100));
}

TEST(Load, DomainDefaults) {
  const NodeSettings node = load_good(kDomain + "    ports: [{interface: p0}]\n");
  ASSERT_EQ(node.domains.size(), 1u);
  BroadcastDomain want;
  want.name = want.evpn.name = want.proxy.name = "lan";
  want.evpn.vni = want.links.vni = net::Vni(100);
  want.evpn.vtep = want.links.vtep = want.evpn.router_id = ip("10.0.0.1");
  want.evpn.local_as = net::AsNumber(65000);
  want.proxy.prefixes = {*net::IpPrefix::parse("192.0.2.0/24"),
                         *net::IpPrefix::parse("2001:db8:1::/64")};
  want.links.bridge = "br100";
  want.links.vxlan = "vx100";
  want.core_policy = "peering";
  dataplane::MemberPort port;
  port.interface = "p0";
  port.policy = "peering";
  want.ports = {port};
  EXPECT_EQ(node.domains[0], want);
  EXPECT_EQ(node.domains[0].proxy.profile, proxyarp::Profile::Static);
}

TEST(Load, DomainHasEveryKey) {
  const NodeSettings node = load_good(kDomain +
                                      "    udp-port: 8472\n"
                                      "    mtu: 9000\n"
                                      "    unknown-unicast: flood\n"
                                      "    ageing: 5m\n"
                                      "    rd: 65000:7\n"
                                      "    import-targets: ['65000:1', '10.0.0.1:2']\n"
                                      "    export-targets: ['4200000000:3']\n"
                                      "    ethernet-tag: 7\n"
                                      "    duplicate-mac: {moves: 3, window: 60s, hold: 1m}\n"
                                      "    arp-nd-community-for-ipv4: false\n"
                                      "    profile: hybrid\n"
                                      "    responder: pcap\n"
                                      "    learning: false\n"
                                      "    flood-unknown: false\n"
                                      "    flood-gratuitous: true\n"
                                      "    default-router: false\n"
                                      "    age-time: 2h\n"
                                      "    max-bindings: 99\n"
                                      "    max-bindings-per-port: 2\n"
                                      "    policy: a\n"
                                      "    core-policy: b\n"
                                      "    ports:\n"
                                      "      - interface: p0\n"
                                      "        name: Alpha\n"
                                      "        as: 64501\n"
                                      "        macs: [0200.0000.0001, 02-00-00-00-00-0A]\n"
                                      "        enforce-macs: false\n"
                                      "        addresses: [192.0.2.1]\n"
                                      "      - {interface: p1, policy: peering}\n"
                                      "policies: {a: {}, b: {}}\n");
  const BroadcastDomain& domain = node.domains.at(0);
  EXPECT_EQ(domain.links.udp_port, 8472);
  EXPECT_EQ(domain.links.mtu, 9000);
  EXPECT_TRUE(domain.links.flood_unknown_unicast);
  EXPECT_EQ(domain.links.ageing, 300s);
  EXPECT_EQ(domain.evpn.rd, net::RouteDistinguisher::parse("65000:7"));
  EXPECT_THAT(domain.evpn.import_targets, ElementsAre(*evpn::parse_route_target("65000:1"),
                                                      *evpn::parse_route_target("10.0.0.1:2")));
  EXPECT_THAT(domain.evpn.export_targets, ElementsAre(*evpn::parse_route_target("4200000000:3")));
  EXPECT_EQ(domain.evpn.ethernet_tag, 7u);
  EXPECT_EQ(domain.evpn.duplicate_moves, 3u);
  EXPECT_EQ(domain.evpn.duplicate_window, 60s);
  EXPECT_EQ(domain.evpn.duplicate_hold, 60s);
  EXPECT_FALSE(domain.evpn.arp_nd_for_v4);
  EXPECT_EQ(domain.proxy.profile, proxyarp::Profile::Hybrid);
  EXPECT_EQ(domain.responder, dataplane::ResponderKind::Pcap);
  EXPECT_EQ(domain.proxy.learning, false);
  EXPECT_EQ(domain.proxy.flood_unknown_ns, proxyarp::FloodTo());
  EXPECT_EQ(domain.proxy.flood_host_na, (proxyarp::FloodTo{true, true}));
  EXPECT_FALSE(domain.proxy.default_router);
  EXPECT_EQ(domain.proxy.age_time, 7200s);
  EXPECT_EQ(domain.proxy.max_bindings, 99u);
  EXPECT_EQ(domain.proxy.max_bindings_per_port, 2u);
  EXPECT_EQ(domain.core_policy, "b");
  ASSERT_EQ(domain.ports.size(), 2u);
  const dataplane::MemberPort want{.interface = "p0",
                                   .member_name = "Alpha",
                                   .member_as = net::AsNumber(64501),
                                   .macs = {mac("02:00:00:00:00:01"), mac("02:00:00:00:00:0a")},
                                   .enforce_macs = false,
                                   .addresses = {ip("192.0.2.1")},
                                   .policy = "a",
                                   .temporary_macs = {},
                                   .security = {}};
  EXPECT_EQ(domain.ports[0], want);
  EXPECT_EQ(domain.ports[1].policy, "peering");
  EXPECT_EQ(text_of(domain.proxy.bindings),
            "192.0.2.1 p0 AS64501 Alpha: 02:00:00:00:00:01 02:00:00:00:00:0a\n");
}

TEST(Load, Profiles) {
  using proxyarp::Profile;
  const std::pair<const char*, Profile> words[] = {{"off", Profile::Off},
                                                   {"dynamic", Profile::Dynamic},
                                                   {"hybrid", Profile::Hybrid},
                                                   {"static", Profile::Static}};
  for (const auto& [word, profile] : words) {
    const NodeSettings node =
        load_good(kDomain + "    ports: [{interface: p0}]\n    profile: " + word + "\n");
    EXPECT_EQ(node.domains.at(0).proxy.profile, profile);
  }
}

TEST(Load, OffNeedsNoPrefixes) {
  load_good(kPe +
            "broadcast-domains:\n  - {name: a, vni: 16777215, bridge: b, vxlan: v, profile: "
            "off, ports: [{interface: p}]}\n");
}

TEST(Load, NoPortsIsAWarning) {
  load_good(kDomain, "f:6:5: broadcast-domains[0]: no ports: no member is connected here\n");
  load_good(kDomain + "    ports: []\n",
            "f:11:12: broadcast-domains[0].ports: no ports: no member is connected here\n");
}

// A member's router may be in two LANs with one MAC; and two LANs may use the same addresses.
TEST(Load, DomainsDontShareMembers) {
  const std::string ports = ", ports: [{interface: p";
  const std::string rest =
      ", macs: [02:00:00:00:00:01], addresses: [192.0.2.1]}], prefixes: [192.0.2.0/24]}\n";
  const NodeSettings node =
      load_good(kPe + "broadcast-domains:\n  - {name: a, vni: 1, bridge: b1, vxlan: v1" + ports +
                "1" + rest + "  - {name: b, vni: 2, bridge: b2, vxlan: v2" + ports + "2" + rest);
  EXPECT_EQ(node.domains.size(), 2u);
}

TEST(Bindings, FromPortsListAndExport) {
  const NodeSettings node =
      load_good(kDomain +
                "    ports:\n"
                "      - {interface: p1, name: Alpha, as: 64501, macs: [02:00:00:00:00:01],\n"
                "         addresses: [192.0.2.1, '2001:db8:1::1']}\n"
                "    bindings:\n"
                "      - {ip: 192.0.2.253, macs: [02:00:00:00:00:fd, 02:00:00:00:00:fe], as: 1,\n"
                "         name: RS, port: p1}\n"
                "    members: [{ixf: v1.json, vlan-id: 1}]\n");
  EXPECT_EQ(text_of(node.domains.at(0).proxy.bindings),
            "192.0.2.1 p1 AS64501 Alpha: 02:00:00:00:00:01\n"
            "192.0.2.2  AS64502 Bravo Net: 02:00:00:00:00:02\n"
            "192.0.2.253 p1 AS1 RS: 02:00:00:00:00:fd 02:00:00:00:00:fe\n"
            "2001:db8:1::1 p1 AS64501 Alpha: 02:00:00:00:00:01\n"
            "2001:db8:1::2  AS64502 Bravo Net: 02:00:00:00:00:02\n");
}

TEST(Bindings, PortWinsOverExport) {
  const std::string file = kData + "/v1.json";
  const NodeSettings node =
      load_good(kDomain +
                    "    ports:\n"
                    "      - {interface: p1, macs: [02:00:00:00:00:99], addresses: [192.0.2.1]}\n"
                    "      - {interface: p2, as: 65099, macs: [02:00:00:00:00:02],\n"
                    "         addresses: ['2001:db8:1::2']}\n"
                    "    bindings: [{ip: 192.0.2.2, macs: [02:00:00:00:00:98]}]\n"
                    "    members: [{ixf: v1.json}]\n",
                file +
                    ":13:36: member_list[0].connection_list[0].vlan_list[0].ipv4: 192.0.2.1 has "
                    "02:00:00:00:00:99 here and 02:00:00:00:00:01 in the export, for AS64501 "
                    "\"Alpha Net\"; port \"p1\" wins\n" +
                    file +
                    ":18:36: member_list[1].connection_list[0].vlan_list[0].ipv4: 192.0.2.2 has "
                    "02:00:00:00:00:98 here and 02:00:00:00:00:02 in the export, for AS64502 "
                    "\"Bravo Net\"; the former wins\n" +
                    file +
                    ":19:36: member_list[1].connection_list[0].vlan_list[0].ipv6: 2001:db8:1::2 is "
                    "AS65099's here and AS64502's in the export; port \"p2\" wins\n");
  EXPECT_EQ(text_of(node.domains.at(0).proxy.bindings),
            "192.0.2.1 p1 AS0 : 02:00:00:00:00:99\n"
            "192.0.2.2  AS0 : 02:00:00:00:00:98\n"
            "2001:db8:1::1  AS64501 Alpha Net: 02:00:00:00:00:01\n"
            "2001:db8:1::2 p2 AS65099 : 02:00:00:00:00:02\n");
}

// Without MACs, other profiles than static learn; what an export knows is bound to the port.
TEST(Bindings, PortWithoutMacs) {
  const NodeSettings node =
      load_good(kDomain +
                "    profile: hybrid\n"
                "    ports: [{interface: p1, addresses: [192.0.2.1, 192.0.2.9]}]\n"
                "    members: [{ixf: v1.json}]\n");
  EXPECT_EQ(text_of(node.domains.at(0).proxy.bindings),
            "192.0.2.1 p1 AS64501 Alpha Net: 02:00:00:00:00:01\n"
            "192.0.2.2  AS64502 Bravo Net: 02:00:00:00:00:02\n"
            "2001:db8:1::1  AS64501 Alpha Net: 02:00:00:00:00:01\n"
            "2001:db8:1::2  AS64502 Bravo Net: 02:00:00:00:00:02\n");
}

TEST(ErrorText, WithAndWithoutPlace) {
  EXPECT_EQ(to_string(Error{"a.yaml", 3, 4, "x.y", "bad"}), "a.yaml:3:4: x.y: bad");
  EXPECT_EQ(to_string(Error{"a.yaml", 0, 0, "", "bad"}), "a.yaml: bad");
}
