// SPDX-License-Identifier: GPL-2.0-or-later
// What is wrong in a file, where, and in which words. One table for each section.
#include <gtest/gtest.h>

#include "tests/config/helpers.h"

namespace {

struct Wrong {
  std::string yaml;    // after the base
  std::string errors;  // all lines
};

void check(const std::string& base, const std::vector<Wrong>& table) {
  for (const auto& [yaml, errors] : table) EXPECT_EQ(verdict(base + yaml), errors) << yaml;
}

}  // namespace

TEST(Errors, Document) {
  check("", {
                {"", "f: the file is empty\n"},
                {"a: \"x", "f:1:6: not YAML: illegal EOF in scalar\n"},
                {"- a\n", "f:1:1: expected a mapping, got a list\n"},
                {"node\n", "f:1:1: expected a mapping, got \"node\"\n"},
            });
  EXPECT_EQ(text_of(config::load("/nonexistent/x.yaml").error()),
            "/nonexistent/x.yaml: no such file\n");
}

TEST(Errors, Node) {
  check(
      "",
      {
          {"log: {level: info}\n",
           "f:1:1: missing key \"node\"\n"
           "f:1:1: missing key \"router-id\"\n"
           "f:1:1: missing key \"as\"\n"},
          {kNode + "routerid: 1\n", "f:4:1: routerid: unknown key; did you mean \"router-id\"?\n"},
          {kNode + "? [a]\n: 1\n", "f:4:3: expected a word as key\n"},
          {kNode + "zzzzzzzz: 1\n", "f:4:1: zzzzzzzz: unknown key\n"},
          {kNode + "\"a b\\n\": 1\n", "f:4:1: \"a b?\": unknown key\n"},
          {kNode + "node: m\n", "f:4:1: node: key given twice, first in line 1\n"},
          {"node: a b\nrouter-id: 10.0.0.1\nas: 1\n",
           "f:1:7: node: expected a name of 1 to 64 letters, digits, '.', '_' or '-', got "
           "\"a b\"\n"},
          {"node: n\nrouter-id: 2001:db8::1\nas: 1\n",
           "f:2:12: router-id: expected an IPv4 address, got \"2001:db8::1\"\n"},
          {"node: n\nrouter-id: 0.0.0.0\nas: 1\n",
           "f:2:12: router-id: expected an IPv4 address, got \"0.0.0.0\"\n"},
          {"node: n\nrouter-id: [10.0.0.1]\nas: 1\n",
           "f:2:12: router-id: expected an IPv4 address, got a list\n"},
          {"node: n\nrouter-id:\nas: 1\n",
           "f:2:1: router-id: expected an IPv4 address, got nothing\n"},
          {"node: n\nrouter-id: 10.0.0.1\nas: 0\n",
           "f:3:5: as: expected a number from 1 to 4294967295, got \"0\"\n"},
          {"node: n\nrouter-id: 10.0.0.1\nas: 4294967296\n",
           "f:3:5: as: expected a number from 1 to 4294967295, got \"4294967296\"\n"},
          {"node: n\nrouter-id: 10.0.0.1\nas: 23456\n",
           "f:3:5: as: AS 23456 is AS_TRANS and nobody's own\n"},
          {"node: n\nrouter-id: 10.0.0.1\nas: -1\n",
           "f:3:5: as: expected a number from 1 to 4294967295, got \"-1\"\n"},
          {kNode + "vtep: 224.0.0.1\n",
           "f:4:7: vtep: expected an address of a host, got \"224.0.0.1\"\n"},
          {kNode + "vtep: pe1\n", "f:4:7: vtep: expected an IPv4 or IPv6 address, got \"pe1\"\n"},
          {kNode + "pin-directory: pins\n",
           "f:4:16: pin-directory: expected an absolute path of at most 4000 characters, got "
           "\"pins\"\n"},
          {kNode + "log: {level: loud, fle: /x}\n",
           "f:4:14: log.level: expected one of trace, debug, info, warning, error, got "
           "\"loud\"\n"
           "f:4:20: log.fle: unknown key; did you mean \"file\"?\n"},
          {kNode + "log: info\n", "f:4:6: log: expected a mapping, got \"info\"\n"},
          {kNode + "control: {socket: /" + std::string(107, 'x') + "}\n",
           "f:4:19: control.socket: expected an absolute path of at most 107 characters, got "
           "\"/" +
               std::string(59, 'x') + "...\"\n"},
      });
  for (const char* listen : {"9477", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:9477",
                             "[127.0.0.1]:1", "host:1", "224.0.0.1:1", "127.0.0.1:"})
    EXPECT_EQ(verdict(kNode + "metrics:\n  listen: '" + listen + "'\n"),
              "f:5:11: metrics.listen: expected an address and a port such as 127.0.0.1:9477 or "
              "[::1]:9477, got \"" +
                  std::string(listen) + "\"\n");
}

TEST(Errors, AllOfThemInFileOrder) {
  EXPECT_EQ(verdict("broadcast-domains: [{vni: 0}]\n"
                    "bgp: {neighbors: [{hold-time: abc}]}\n"
                    "as: x\n"
                    "router-id: y\n"
                    "nod: n\n"),
            "f:1:1: missing key \"node\"\n"
            "f:1:20: broadcast-domains: broadcast-domains need the key \"vtep\"\n"
            "f:1:21: broadcast-domains[0]: missing key \"name\"\n"
            "f:1:21: broadcast-domains[0]: missing key \"bridge\"\n"
            "f:1:21: broadcast-domains[0]: missing key \"vxlan\"\n"
            "f:1:21: broadcast-domains[0]: missing key \"prefixes\" (only the profile off does "
            "without)\n"
            "f:1:27: broadcast-domains[0].vni: expected a number from 1 to 16777215, got \"0\"\n"
            "f:2:19: bgp.neighbors[0]: missing key \"address\"\n"
            "f:2:19: bgp.neighbors[0]: missing key \"as\", here or in the group\n"
            "f:2:31: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
            "65535, got \"abc\"\n"
            "f:3:5: as: expected a number from 1 to 4294967295, got \"x\"\n"
            "f:4:12: router-id: expected an IPv4 address, got \"y\"\n"
            "f:5:1: nod: unknown key; did you mean \"node\"?\n");
}

TEST(Errors, Bgp) {
  check(kNode + "bgp:\n",
        {
            {"  neighbours: []\n",
             "f:5:3: bgp.neighbours: unknown key; did you mean "
             "\"neighbors\"?\n"},
            {"  neighbors: {}\n",
             "f:5:14: bgp.neighbors: expected a list of neighbors, got a "
             "mapping\n"},
            {"  listen: 10.0.0.1\n",
             "f:5:11: bgp.listen: expected a list of addresses and ports, got \"10.0.0.1\"\n"},
            {"  listen: [{port: 0}]\n",
             "f:5:12: bgp.listen[0]: missing key \"address\"\n"
             "f:5:19: bgp.listen[0].port: expected a number from 1 to 65535, got \"0\"\n"},
            {"  listen:\n    - address: 10.0.0.1\n    - {address: 10.0.0.1, port: 179}\n",
             "f:7:7: bgp.listen[1]: 10.0.0.1 port 179 is in use already: listener, line 6\n"},
            {"  listen: [{address: ff02::1}]\n",
             "f:5:22: bgp.listen[0].address: expected an address of this host, 0.0.0.0 or ::, got "
             "\"ff02::1\"\n"},
            {"  cluster-id: 0\n",
             "f:5:15: bgp.cluster-id: expected an IPv4 address or a number from 1 to 4294967295, "
             "got \"0\"\n"},
            {"  cluster-id: 4294967296\n",
             "f:5:15: bgp.cluster-id: expected an IPv4 address or a number from 1 to 4294967295, "
             "got \"4294967296\"\n"},
            {"  cluster-id: '::1'\n",
             "f:5:15: bgp.cluster-id: expected an IPv4 address or a number from 1 to 4294967295, "
             "got \"::1\"\n"},
        });
}

TEST(Errors, Group) {
  check(kNode + "bgp:\n  groups:\n",
        {
            {"    a: {group: b}\n", "f:6:9: bgp.groups.a.group: unknown key\n"},
            {"    a: {address: 10.0.0.2}\n", "f:6:9: bgp.groups.a.address: unknown key\n"},
            {"    a b: {}\n",
             "f:6:5: bgp.groups.\"a b\": expected a name of 1 to 64 letters, digits, '.', '_' or "
             "'-', got \"a b\"\n"},
            {"    a: {}\n    a: {}\n", "f:7:5: bgp.groups.a: key given twice, first in line 6\n"},
            {"    a: {role: rr-client}\n",
             "f:6:15: bgp.groups.a.role: expected one of peer, reflector-client, "
             "route-server-client, got \"rr-client\"\n"},
            {"    a:\n      role: reflector-client\n      as: 65001\n",
             "f:7:13: bgp.groups.a.role: a reflector-client must be in our AS 65000, not in "
             "65001\n"},
            {"    a:\n      role: route-server-client\n      as: 65000\n",
             "f:7:13: bgp.groups.a.role: a route-server-client must be in another AS than ours, "
             "65000\n"},
            // Once, in the group; the neighbor that takes it over is not to blame.
            {"    a: {role: reflector-client, as: 65001}\n"
             "  neighbors: [{address: 10.0.0.2, group: a}]\n",
             "f:6:15: bgp.groups.a.role: a reflector-client must be in our AS 65000, not in "
             "65001\n"},
            {"    a: {ttl: 2, ttl-security-hops: 1}\n",
             "f:6:14: bgp.groups.a.ttl: ttl and ttl-security-hops exclude each other: with the "
             "latter all is sent with 255\n"},
        });
}

TEST(Errors, Neighbor) {
  const std::string many(61, 'p');
  check(kNode + "bgp:\n  neighbors:\n",
        {
            {"    - as: 65000\n", "f:6:7: bgp.neighbors[0]: missing key \"address\"\n"},
            {"    - address: 10.0.0.2\n",
             "f:6:7: bgp.neighbors[0]: missing key \"as\", here or in the group\n"},
            {"    - 10.0.0.2\n", "f:6:7: bgp.neighbors[0]: expected a mapping, got \"10.0.0.2\"\n"},
            {"    - {address: fe80::1, as: 1}\n",
             "f:6:17: bgp.neighbors[0].address: a link-local address needs its interface: "
             "fe80::1%eth0, or the key interface\n"},
            {"    - {address: 'fe80::1%', as: 1}\n",
             "f:6:17: bgp.neighbors[0].address: expected the name of a network device behind the "
             "%, 1 to 15 characters, got \"fe80::1%\"\n"},
            {"    - {address: '10.0.0.2%eth0', as: 1}\n",
             "f:6:17: bgp.neighbors[0].address: only a link-local IPv6 address has an "
             "interface\n"},
            {"    - {address: 10.0.0.2, as: 1, interface: eth0}\n",
             "f:6:45: bgp.neighbors[0].interface: only a neighbor with a link-local IPv6 address "
             "has an interface\n"},
            {"    - {address: 'fe80::1%a', as: 1}\n    - {address: 'fe80::1%a', as: 1}\n",
             "f:7:17: bgp.neighbors[1].address: neighbor fe80::1%a is in use already: neighbor "
             "fe80::1%a, line 6\n"},
            {"    - {address: 10.0.0.2, as: 1, password: x, ao-keys: [{send-id: 1, receive-id: 1, "
             "key: x}]}\n",
             "f:6:56: bgp.neighbors[0].ao-keys: password and ao-keys exclude each other\n"},
            {"    - {address: 10.0.0.2, as: 1, ao-keys: [{send-id: 256, receive-id: 1, key: " +
                 many + "secretsecretsecrets2}]}\n",
             "f:6:54: bgp.neighbors[0].ao-keys[0].send-id: expected a number from 0 to 255, got "
             "\"256\"\n"
             "f:6:79: bgp.neighbors[0].ao-keys[0].key: expected a key of 1 to 80 octets, got "
             "81\n"},
            {"    - {address: 10.0.0.2, as: 1, long-lived-time: 1h, graceful-restart: false}\n",
             "f:6:51: bgp.neighbors[0].long-lived-time: long-lived-time needs "
             "graceful-restart\n"},
            {"    - {address: 10.0.0.2, as: 64999, long-lived-partial-deployment: true}\n",
             "f:6:69: bgp.neighbors[0].long-lived-partial-deployment: "
             "long-lived-partial-deployment is for neighbors in our own AS\n"},
            {"    - {address: 10.0.0.2, as: 1, send-hold-time: 90}\n",
             "f:6:50: bgp.neighbors[0].send-hold-time: send-hold-time must be longer than "
             "hold-time\n"},
            {"    - {address: 10.0.0.2, as: 1, max-prefixes-action: reset}\n",
             "f:6:55: bgp.neighbors[0].max-prefixes-action: expected drop or warn, got "
             "\"reset\"\n"},
            {"    - {address: 10.0.0.2, as: 1, max-prefixes-idle: 90s}\n",
             "f:6:53: bgp.neighbors[0].max-prefixes-idle: expected whole minutes, got \"90s\"\n"},
            {"  dynamic-neighbors:\n    - {prefix: 10.0.0.1/24, limit: 0, as: 1}\n",
             "f:5:3: bgp.neighbors: expected a list of neighbors, got nothing\n"
             "f:7:16: bgp.dynamic-neighbors[0].prefix: \"10.0.0.1/24\" has host bits set; the "
             "prefix is 10.0.0.0/24\n"
             "f:7:36: bgp.dynamic-neighbors[0].limit: expected a number from 1 to 65535, got "
             "\"0\"\n"},
            {"    - {address: 10.0.0.2, as: 1}\n  dynamic-neighbors:\n"
             "    - {prefix: 10.0.0.0/24, limit: 1, as: 1}\n"
             "    - {prefix: 10.0.0.0/24, limit: 1, as: 1, address: 10.0.0.3}\n",
             "f:9:16: bgp.dynamic-neighbors[1].prefix: prefix 10.0.0.0/24 is in use already: "
             "prefix 10.0.0.0/24, line 8\n"
             "f:9:46: bgp.dynamic-neighbors[1].address: unknown key\n"},
            {"    - {address: 0.0.0.0, as: 1}\n",
             "f:6:17: bgp.neighbors[0].address: expected an address of a host, got "
             "\"0.0.0.0\"\n"},
            {"    - {address: 10.0.0.2, as: 1}\n    - {address: 10.0.0.2, as: 2}\n",
             "f:7:17: bgp.neighbors[1].address: neighbor 10.0.0.2 is in use already: neighbor "
             "10.0.0.2, line 6\n"},
            {"    - {address: 10.0.0.2, group: rss}\n  groups: {rs: {as: 1}}\n",
             "f:6:34: bgp.neighbors[0].group: no group \"rss\" in bgp.groups; did you mean "
             "\"rs\"?\n"},
            {"    - {address: 10.0.0.2, as: 1, group: [a]}\n",
             "f:6:41: bgp.neighbors[0].group: expected the name of a group, got a list\n"},
            {"    - {address: 10.0.0.2, as: 65001, role: reflector-client}\n",
             "f:6:44: bgp.neighbors[0].role: a reflector-client must be in our AS 65000, not in "
             "65001\n"},
            {"    - {address: 10.0.0.2, as: 65001, group: rr}\n"
             "  groups: {rr: {role: reflector-client}}\n",
             "f:6:31: bgp.neighbors[0].as: a reflector-client must be in our AS 65000, not in "
             "65001\n"},
            {"    - {address: 10.0.0.2, as: 65000, role: route-server-client}\n",
             "f:6:44: bgp.neighbors[0].role: a route-server-client must be in another AS than "
             "ours, 65000\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: 2}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"2\"\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: 500ms}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"500ms\"\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: 19h}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"19h\"\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: 99999999999999999999h}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"99999999999999999999h\"\n"},
            // This many hours are 128000 ms modulo 2^64.
            {"    - {address: 10.0.0.2, as: 1, hold-time: 103122423467612424h}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"103122423467612424h\"\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: 5 s}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"5 s\"\n"},
            {"    - {address: 10.0.0.2, as: 1, hold-time: ''}\n",
             "f:6:45: bgp.neighbors[0].hold-time: expected a whole number of seconds, 0 or 3 to "
             "65535, got \"\"\n"},
            {"    - {address: 10.0.0.2, as: 1, connect-retry: 0}\n",
             "f:6:49: bgp.neighbors[0].connect-retry: expected a whole number of seconds, 1 to "
             "65535, got \"0\"\n"},
            {"    - {address: 10.0.0.2, as: 1, restart-time: 4096}\n",
             "f:6:48: bgp.neighbors[0].restart-time: expected a whole number of seconds, 0 to "
             "4095, got \"4096\"\n"},
            {"    - {address: 10.0.0.2, as: 1, passive: yes}\n",
             "f:6:43: bgp.neighbors[0].passive: expected true or false, got \"yes\"\n"},
            {"    - {address: 10.0.0.2, as: 1, port: http}\n",
             "f:6:40: bgp.neighbors[0].port: expected a number from 1 to 65535, got \"http\"\n"},
            {"    - {address: 10.0.0.2, as: 1, ttl: 256}\n",
             "f:6:39: bgp.neighbors[0].ttl: expected a number from 1 to 255, got \"256\"\n"},
            {"    - {address: 10.0.0.2, as: 1, ttl-security-hops: 255}\n",
             "f:6:53: bgp.neighbors[0].ttl-security-hops: expected a number from 0 to 254, got "
             "\"255\"\n"},
            {"    - {address: 10.0.0.2, as: 1, max-prefixes: 1k}\n",
             "f:6:48: bgp.neighbors[0].max-prefixes: expected a number from 0 to 4294967295, got "
             "\"1k\"\n"},
            // A password is not shown.
            {"    - {address: 10.0.0.2, as: 1, password: " + many + "secretsecretsecrets2}\n",
             "f:6:44: bgp.neighbors[0].password: expected a password of 1 to 80 octets, got "
             "81\n"},
            {"    - {address: 10.0.0.2, as: 1, local-address: 2001:db8::1}\n",
             "f:6:49: bgp.neighbors[0].local-address: local-address and address must both be IPv4 "
             "or both IPv6\n"},
            {"    - {address: 10.0.0.2, as: 1, strip-extended-communities: [0x0608, 608, "
             "0x0608]}\n",
             "f:6:71: bgp.neighbors[0].strip-extended-communities[1]: expected type and sub-type "
             "of an extended community as four hexadecimal digits, such as 0x0608, got \"608\"\n"
             "f:6:76: bgp.neighbors[0].strip-extended-communities[2]: listed twice\n"},
            {"    - {address: 10.0.0.2, as: 1, strip-extended-communities: [0x0608], "
             "arp-nd-community: true}\n",
             "f:6:90: bgp.neighbors[0].arp-nd-community: strip-extended-communities has 0x0608, "
             "which is this community\n"},
        });
}

TEST(Errors, Policy) {
  const std::string ethertype =
      "expected an EtherType: ipv4, arp, ipv6, lacp, lldp, mpls, vlan, qinq, ptp, or 0x0600 to "
      "0xffff, got ";
  check(
      kNode + "policies:\n",
      {
          {"  - a\n", "f:5:3: policies: expected a mapping, got a list\n"},
          {"  a: drop\n", "f:5:6: policies.a: expected a mapping, got \"drop\"\n"},
          {"  a: {ingres: {}}\n",
           "f:5:7: policies.a.ingres: unknown key; did you mean \"ingress\"?\n"},
          {"  a/b: {}\n",
           "f:5:3: policies.\"a/b\": expected a name of 1 to 64 letters, digits, '.', '_' or "
           "'-', got \"a/b\"\n"},
          {"  a: {ingress: {apr: drop}}\n",
           "f:5:17: policies.a.ingress.apr: unknown key; did you mean \"arp\"?\n"},
          {"  a: {ingress: {arp: 20}}\n",
           "f:5:22: policies.a.ingress.arp: expected drop, unlimited, or a mapping of pps, bps "
           "and burst, got \"20\"\n"},
          {"  a: {ingress: {arp: }}\n",
           "f:5:22: policies.a.ingress.arp: expected drop, unlimited, or a mapping of pps, bps "
           "and burst, got nothing\n"},
          {"  a: {egress: {nd: {burst: 1s}}}\n",
           "f:5:20: policies.a.egress.nd: needs pps or bps, or both\n"},
          {"  a: {decap: {nd: {pps: 1.5}}}\n",
           "f:5:25: policies.a.decap.nd.pps: expected a rate a second such as 20, 100k, 1M or "
           "2G, at most 1000G, got \"1.5\"\n"},
          {"  a: {encap: {nd: {bps: 1001G, pps: 1K}}}\n",
           "f:5:25: policies.a.encap.nd.bps: expected a rate a second such as 20, 100k, 1M or "
           "2G, at most 1000G, got \"1001G\"\n"
           "f:5:37: policies.a.encap.nd.pps: expected a rate a second such as 20, 100k, 1M or "
           "2G, at most 1000G, got \"1K\"\n"},
          {"  a: {encap: {nd: {bps: 1%}}}\n",
           "f:5:25: policies.a.encap.nd.bps: expected an absolute rate a second such as 20, 100k, "
           "1M or 2G, never percent of a port, got \"1%\"\n"},
          {"  a: {encap: {nd: {pps: 1, burst: 0}}}\n",
           "f:5:35: policies.a.encap.nd.burst: expected a duration from 1ms to 1s, got \"0\"\n"},
          {"  a: {encap: {nd: {pps: 1, burst: 1001ms}}}\n",
           "f:5:35: policies.a.encap.nd.burst: expected a duration from 1ms to 1s, got "
           "\"1001ms\"\n"},
          {"  a: {encap: {nd: {pps: 1, burst: 2}}}\n",
           "f:5:35: policies.a.encap.nd.burst: expected a duration from 1ms to 1s, got \"2\"\n"},
          {"  a: {punts: unlimited}\n",
           "f:5:14: policies.a.punts: expected drop, or a mapping of pps, bps and burst, got "
           "\"unlimited\"\n"},
          {"  a: {answers: {}}\n", "f:5:16: policies.a.answers: needs pps or bps, or both\n"},
          {"  a: {ethertypes: ipv4}\n",
           "f:5:19: policies.a.ethertypes: expected a list of EtherTypes, got \"ipv4\"\n"},
          {"  a: {ethertypes: []}\n",
           "f:5:19: policies.a.ethertypes: without EtherTypes no frame would pass\n"},
          {"  a: {ethertypes: [ip, 0x05ff, 2048, 0x10000, 0x, arp, 0x0806]}\n",
           "f:5:20: policies.a.ethertypes[0]: " + ethertype + "\"ip\"\n" +
               "f:5:24: policies.a.ethertypes[1]: " + ethertype + "\"0x05ff\"\n" +
               "f:5:32: policies.a.ethertypes[2]: " + ethertype + "\"2048\"\n" +
               "f:5:38: policies.a.ethertypes[3]: " + ethertype + "\"0x10000\"\n" +
               "f:5:47: policies.a.ethertypes[4]: " + ethertype + "\"0x\"\n" +
               "f:5:56: policies.a.ethertypes[6]: listed twice\n"},
          {"  a: {ethertypes: [ipv4, arp, ipv6, lacp, lldp, mpls, vlan, qinq, ptp]}\n",
           "f:5:19: policies.a.ethertypes: at most 8 EtherTypes, got 9\n"},
          {"  a: {allow: mld}\n",
           "f:5:14: policies.a.allow: expected a list of names of drop reasons, got \"mld\"\n"},
          {"  a: {allow: [malformed]}\n",
           "f:5:15: policies.a.allow[0]: the drop reason \"malformed\" can't be switched off\n"},
          {"  a: {allow: [mldd, mld, mld]}\n",
           "f:5:15: policies.a.allow[0]: no drop reason \"mldd\"; did you mean \"mld\"?\n"
           "f:5:26: policies.a.allow[2]: listed twice\n"},
      });
}

TEST(Errors, DomainIdentity) {
  const std::string second = "    ports: [{interface: p0}]\n  - name: other\n    vni: 200\n";
  check(kDomain,
        {
            {second + "    bridge: br100\n    vxlan: vx200\n    profile: off\n",
             "f:14:13: broadcast-domains[1].bridge: device \"br100\" is in use already: bridge of "
             "\"lan\", line 8\n"},
            {second + "    bridge: br200\n    vxlan: p0\n    profile: off\n",
             "f:15:12: broadcast-domains[1].vxlan: device \"p0\" is in use already: port of "
             "\"lan\", line 11\n"},
            {"    ports: [{interface: vx100}]\n",
             "f:11:25: broadcast-domains[0].ports[0].interface: device \"vx100\" is in use "
             "already: VXLAN device of \"lan\", line 9\n"},
            {"    ports: [{interface: p0}]\n  - {name: lan, vni: 100, bridge: b, vxlan: v, "
             "prefixes: [10.0.0.0/8], ports: [{interface: p1}]}\n",
             "f:12:12: broadcast-domains[1].name: the name \"lan\" is in use already: broadcast "
             "domain, line 6\n"
             "f:12:22: broadcast-domains[1].vni: VNI 100 is in use already: broadcast domain "
             "\"lan\", line 7\n"},
            {"    rd: 10.0.0.1:1\n    ports: [{interface: p0}]\n  - {name: b, vni: 1, bridge: b, "
             "vxlan: v, prefixes: [10.0.0.0/8], rd: 10.0.0.1:1, ports: [{interface: p1}]}\n",
             "f:13:72: broadcast-domains[1].rd: route distinguisher 10.0.0.1:1 is in use already: "
             "broadcast domain \"lan\", line 11\n"},
            {second + "    bridge: br200\n    vxlan: vx200\n    profile: off\n    ports: []\n"
                      "  - {name: c, vni: 65736, bridge: b, vxlan: v, profile: off, ports: []}\n",
             "f:18:20: broadcast-domains[2].vni: automatic route distinguisher 10.0.0.1:200 is in "
             "use already: broadcast domain \"other\", line 13\n"},
            {"    vni: 1\n",
             "f:11:5: broadcast-domains[0].vni: key given twice, first in line "
             "7\n"},
        });
  check(kPe + "broadcast-domains:\n",
        {
            {"  - {name: a, vni: 16777216, bridge: b, vxlan: sixteen-letters-, profile: off}\n",
             "f:6:20: broadcast-domains[0].vni: expected a number from 1 to 16777215, got "
             "\"16777216\"\n"
             "f:6:48: broadcast-domains[0].vxlan: expected the name of a network device, 1 to 15 "
             "characters, got \"sixteen-letters-\"\n"},
            {"  - {name: a, vni: 1, bridge: a/b, vxlan: .., profile: off}\n",
             "f:6:31: broadcast-domains[0].bridge: expected the name of a network device, 1 to 15 "
             "characters, got \"a/b\"\n"
             "f:6:43: broadcast-domains[0].vxlan: expected the name of a network device, 1 to 15 "
             "characters, got \"..\"\n"},
        });
  EXPECT_EQ(verdict(kNode + "broadcast-domains: []\n"),
            "f:4:20: broadcast-domains: broadcast-domains need the key \"vtep\"\n");
}

TEST(Errors, DomainValues) {
  const std::string where = "broadcast-domains[0].";
  check(kDomain + "    ports: [{interface: p0}]\n",
        {
            {"    mtu: 1279\n", "f:12:10: " + where +
                                    "mtu: expected a number from 1280 to 9216, "
                                    "got \"1279\"\n"},
            {"    udp-port: 0\n",
             "f:12:15: " + where + "udp-port: expected a number from 1 to 65535, got \"0\"\n"},
            {"    unknown-unicast: block\n",
             "f:12:22: " + where + "unknown-unicast: expected drop or flood, got \"block\"\n"},
            {"    profile: statik\n", "f:12:14: " + where +
                                          "profile: expected one of off, dynamic, hybrid, static, "
                                          "got \"statik\"\n"},
            {"    responder: xdp\n",
             "f:12:16: " + where + "responder: expected ebpf or pcap, got \"xdp\"\n"},
            {"    rd: 65000\n", "f:12:9: " + where +
                                    "rd: expected a route distinguisher such as 10.0.0.1:100 or "
                                    "65000:100, got \"65000\"\n"},
            {"    ethernet-tag: 16777216\n",
             "f:12:19: " + where +
                 "ethernet-tag: expected a number from 0 to 16777215, got "
                 "\"16777216\"\n"},
            {"    ethernet-tag: [any]\n",
             "f:12:19: " + where + "ethernet-tag: expected text, got a list\n"},
            {"    import-targets: ['65000:1', '65000:1', x]\n",
             "f:12:33: " + where + "import-targets[1]: listed twice\n" + "f:12:44: " + where +
                 "import-targets[2]: expected a route target such as 65000:100 or 192.0.2.1:100, "
                 "got \"x\"\n"},
            {"    export-targets: 65000:1\n",
             "f:12:21: " + where +
                 "export-targets: expected a list of route targets, got "
                 "\"65000:1\"\n"},
            {"    duplicate-mac: {moves: 0, window: 0s, hld: 1}\n",
             "f:12:28: " + where +
                 "duplicate-mac.moves: expected a number from 1 to 1000, got "
                 "\"0\"\n" +
                 "f:12:39: " + where +
                 "duplicate-mac.window: expected a whole number of seconds, 1 to 86400, got "
                 "\"0s\"\n" +
                 "f:12:43: " + where +
                 "duplicate-mac.hld: unknown key; did you mean "
                 "\"hold\"?\n"},
            {"    core-policy: perring\n",
             "f:12:18: " + where +
                 "core-policy: no policy \"perring\" in policies; did you mean "
                 "\"peering\"?\n"},
            {"    policy: none-such\n",
             "f:12:13: " + where + "policy: no policy \"none-such\" in policies\n"},
            {"    age-time: 0\n", "f:12:15: " + where +
                                      "age-time: expected a whole number of seconds, 1 to 2592000, "
                                      "got \"0\"\n"},
            {"    max-bindings: 0\n", "f:12:19: " + where +
                                          "max-bindings: expected a number from 1 to 1048576, got "
                                          "\"0\"\n"},
            {"    learning: 1\n",
             "f:12:15: " + where + "learning: expected true or false, got \"1\"\n"},
        });
  check(kPe +
            "broadcast-domains:\n  - {name: a, vni: 1, bridge: b, vxlan: v, "
            "ports: [{interface: p}], ",
        {
            {"prefixes: []}\n", "f:6:79: " + where + "prefixes: expected at least one prefix\n"},
            {"prefixes: [192.0.2.1/24, 192.0.2.0, 192.0.2.0/33, 224.0.0.0/4]}\n",
             "f:6:80: " + where +
                 "prefixes[0]: \"192.0.2.1/24\" has host bits set; the prefix is "
                 "192.0.2.0/24\n" +
                 "f:6:94: " + where +
                 "prefixes[1]: expected a prefix such as 192.0.2.0/24, got "
                 "\"192.0.2.0\"\n" +
                 "f:6:105: " + where +
                 "prefixes[2]: expected a prefix such as 192.0.2.0/24, got "
                 "\"192.0.2.0/33\"\n" +
                 "f:6:119: " + where +
                 "prefixes[3]: expected a prefix such as 192.0.2.0/24, got "
                 "\"224.0.0.0/4\"\n"},
            {"prefixes: [192.0.2.0/24, 192.0.2.128/25, 2001:db8::/64]}\n",
             "f:6:94: " + where + "prefixes[1]: 192.0.2.128/25 and 192.0.2.0/24 overlap\n"},
        });
}

TEST(Errors, Ports) {
  const std::string where = "broadcast-domains[0].ports[";
  check(kDomain + "    ports:\n",
        {
            {"      - name: x\n", "f:12:9: " + where + "0]: missing key \"interface\"\n"},
            {"      - interface: p1\n      - interface: p1\n",
             "f:13:20: " + where +
                 "1].interface: device \"p1\" is in use already: port of "
                 "\"lan\", line 12\n"},
            {"      - {interface: p1, name: ''}\n",
             "f:12:31: " + where + "0].name: expected 1 to 255 printable characters, got \"\"\n"},
            {"      - {interface: p1, policy: chaty}\n",
             "f:12:33: " + where + "0].policy: no policy \"chaty\" in policies\n"},
            {"      - {interface: p1, macs: 02:00:00:00:00:01}\n",
             "f:12:31: " + where +
                 "0].macs: expected a list of MAC addresses, or any, got "
                 "\"02:00:00:00:00:01\"\n"},
            {"      - {interface: p1, macs: [02:00:00:00:00, 01:00:5e:00:00:01, "
             "ff:ff:ff:ff:ff:ff, 0000.0000.0000]}\n",
             "f:12:32: " + where +
                 "0].macs[0]: expected a MAC address such as 02:00:00:00:00:01, "
                 "got \"02:00:00:00:00\"\n" +
                 "f:12:48: " + where +
                 "0].macs[1]: \"01:00:5e:00:00:01\" is a group address and "
                 "can't be a member's\n" +
                 "f:12:67: " + where +
                 "0].macs[2]: \"ff:ff:ff:ff:ff:ff\" is the broadcast "
                 "address and can't be a member's\n" +
                 "f:12:86: " + where +
                 "0].macs[3]: \"0000.0000.0000\" is the zero address and "
                 "can't be a member's\n"},
            {"      - {interface: p1, macs: [02:00:00:00:00:01, 0200.0000.0001]}\n",
             "f:12:51: " + where + "0].macs[1]: listed twice\n"},
            {"      - {interface: p1, macs: [02:00:00:00:00:01]}\n"
             "      - interface: p2\n        macs:\n          - 02:00:00:00:00:02\n"
             "          - 02-00-00-00-00-01\n",
             "f:16:13: " + where +
                 "1].macs[1]: MAC address 02:00:00:00:00:01 is in use already: "
                 "port \"p1\", line 12\n"},
            {"      - {interface: p1, enforce-macs: true}\n",
             "f:12:39: " + where + "0].enforce-macs: needs macs\n"},
            {"      - {interface: p1, addresses: [192.0.2.1]}\n",
             "f:12:36: " + where + "0].addresses: addresses need macs in the profile static\n"},
            {"      - {interface: p1, macs: [02:00:00:00:00:01], addresses: [198.51.100.1, "
             "192.0.2.0, 192.0.2.255, '2001:db8:1::', '2001:db8:2::1', 192.0.2.1, 192.0.2.1]}\n",
             "f:12:64: " + where +
                 "0].addresses[0]: 198.51.100.1 is outside of the prefixes "
                 "192.0.2.0/24, 2001:db8:1::/64\n" +
                 "f:12:78: " + where +
                 "0].addresses[1]: 192.0.2.0 is the network or broadcast "
                 "address of 192.0.2.0/24\n" +
                 "f:12:89: " + where +
                 "0].addresses[2]: 192.0.2.255 is the network or broadcast "
                 "address of 192.0.2.0/24\n" +
                 "f:12:102: " + where +
                 "0].addresses[3]: 2001:db8:1:: is the network or broadcast "
                 "address of 2001:db8:1::/64\n" +
                 "f:12:118: " + where +
                 "0].addresses[4]: 2001:db8:2::1 is outside of the prefixes "
                 "192.0.2.0/24, 2001:db8:1::/64\n" +
                 "f:12:146: " + where +
                 "0].addresses[6]: 192.0.2.1 is in use already: port "
                 "\"p1\", line 12\n"},
            {"      - {interface: p1, macs: [02:00:00:00:00:01], addresses: [192.0.2.1]}\n"
             "      - {interface: p2, macs: [02:00:00:00:00:02], addresses: [192.0.2.1]}\n",
             "f:13:64: " + where +
                 "1].addresses[0]: 192.0.2.1 is in use already: port \"p1\", "
                 "line 12\n"},
        });
}

TEST(Errors, Exports) {
  const std::string bmp = "bgp:\n  bmp:\n";
  check(
      kNode,
      {
          {bmp + "    - {address: 192.0.2.1, port: 11019}\n", "loaded\n"},
          {bmp + "    - {address: 192.0.2.1}\n", "f:6:7: bgp.bmp[0]: missing key \"port\"\n"},
          {bmp + "    - {address: 192.0.2.1, port: 0}\n",
           "f:6:34: bgp.bmp[0].port: expected a number from 1 to 65535, got \"0\"\n"},
          {bmp + "    - {address: 192.0.2.1, port: 1, tables: [in]}\n",
           "f:6:46: bgp.bmp[0].tables[0]: expected one of in-pre, in-post, loc, out-post, got "
           "\"in\"\n"},
          {bmp + "    - {address: 192.0.2.1, port: 1, tables: []}\n",
           "f:6:45: bgp.bmp[0].tables: expected at least one table\n"},
          {bmp + "    - {address: 192.0.2.1, port: 1, local-address: '::1'}\n",
           "f:6:52: bgp.bmp[0].local-address: local-address and address must both be IPv4 or both "
           "IPv6\n"},
          {bmp + "    - {address: 192.0.2.1, port: 1}\n    - {address: 192.0.2.1, port: 1}\n",
           "f:7:7: bgp.bmp[1]: collector 192.0.2.1 port 1 is listed twice\n"},
          {"bgp:\n  mrt: {file: rib.mrt}\n",
           "f:5:15: bgp.mrt.file: expected an absolute path of at most 1024 characters, got "
           "\"rib.mrt\"\n"},
          {"bgp:\n  mrt: {interval: 60}\n", "f:5:8: bgp.mrt: missing key \"file\"\n"},
          {"bgp:\n  mrt: {file: /x, interval: 60}\n", "loaded\n"},
      });
}

TEST(Errors, BindingsAndMembers) {
  const std::string where = "broadcast-domains[0].";
  const std::string ports =
      "    ports: [{interface: p1, macs: [02:00:00:00:00:01], addresses: [192.0.2.1]}]\n";
  check(
      kDomain + ports,
      {
          {"    bindings: [{}]\n", "f:12:16: " + where + "bindings[0]: missing key \"ip\"\n" +
                                       "f:12:16: " + where + "bindings[0]: missing key \"macs\"\n"},
          {"    bindings: [{ip: 192.0.2.1, macs: [02:00:00:00:00:09]}]\n",
           "f:12:21: " + where +
               "bindings[0].ip: 192.0.2.1 is in use already: port \"p1\", line "
               "11\n"},
          {"    bindings: [{ip: 192.0.3.1, macs: []}]\n",
           "f:12:21: " + where +
               "bindings[0].ip: 192.0.3.1 is outside of the prefixes "
               "192.0.2.0/24, 2001:db8:1::/64\n" +
               "f:12:38: " + where + "bindings[0].macs: expected at least one MAC address\n"},
          {"    bindings: [{ip: 192.0.2.2, macs: [02:00:00:00:00:02], port: p11}]\n",
           "f:12:65: " + where +
               "bindings[0].port: no port \"p11\" in ports; did you mean "
               "\"p1\"?\n"},
          {"    bindings: [{ip: 192.0.2.2, macs: [02:00:00:00:00:02]}, {ip: 192.0.2.2, macs: "
           "[02:00:00:00:00:03]}]\n",
           "f:12:65: " + where +
               "bindings[1].ip: 192.0.2.2 is in use already: binding, line "
               "12\n"},
          {"    bindings: [{ip: 192.0.2.2, macs: [02:00:00:00:00:02]}]\n    max-bindings: 1\n",
           "f:13:19: " + where +
               "max-bindings: 2 bindings are given, more than max-bindings, "
               "1\n"},
          {"    members: [{vlan-id: 1}]\n",
           "f:12:15: " + where + "members[0]: needs ixf or ixp-manager\n"},
          {"    members: [{ixf: none.json, vlan-id: -1}]\n",
           "f:12:21: " + where + "members[0].ixf: can't read " + kData +
               "/none.json: no such file\n" + "f:12:41: " + where +
               "members[0].vlan-id: expected a number from 0 to 4294967295, got \"-1\"\n"},
          {"    members: [{ixf: broken.json}]\n    mtu: 1\n",
           "f:13:10: " + where + "mtu: expected a number from 1280 to 9216, got \"1\"\n" + kData +
               "/broken.json:3:19: not JSON: syntax error\n"},
      });
  // A wrong prefix does not make the addresses wrong.
  EXPECT_EQ(
      verdict(kPe + "broadcast-domains:\n  - {name: a, vni: 1, bridge: b, vxlan: v, prefixes: "
                    "[192.0.2.0/33, 10.0.0.0/8], ports: [{interface: p, macs: "
                    "[02:00:00:00:00:01], addresses: [192.0.2.1]}], members: [{ixf: "
                    "v1.json}]}\n"),
      "f:6:55: broadcast-domains[0].prefixes[0]: expected a prefix such as 192.0.2.0/24, got "
      "\"192.0.2.0/33\"\n");
  EXPECT_EQ(verdict(kDomain + "    ports: [{interface: p1}, {interface: p2, macs: "
                              "[02:00:00:00:00:01]}]\n    bindings: [{ip: 192.0.2.2, port: p1, "
                              "macs: [02:00:00:00:00:01]}]\n"),
            "f:12:48: " + where +
                "bindings[0].macs: 02:00:00:00:00:01 is a MAC address of port "
                "\"p2\", not of \"p1\"\n");
}
