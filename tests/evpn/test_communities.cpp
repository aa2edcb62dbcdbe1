// SPDX-License-Identifier: GPL-2.0-or-later
// Extended communities and PMSI tunnel: golden pairs both ways, and the import rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evpn/communities.h"

namespace {

using bgp::ExtendedCommunity;
using evpn::ArpNdFlags;
using evpn::MacMobility;

bgp::Attributes with(std::vector<ExtendedCommunity> communities) {
  bgp::Attributes attributes;
  attributes.extended_communities = std::move(communities);
  return attributes;
}

TEST(Communities, MacMobility) {
  struct Row {
    MacMobility value;
    ExtendedCommunity wire;
    const char* text;
  };
  const std::vector<Row> table{
      {{false, 3}, {0x06, 0x00, 0x00, 0, 0, 0, 0, 3}, "MM:3"},
      {{true, 0}, {0x06, 0x00, 0x01, 0, 0, 0, 0, 0}, "MM:0,sticky"},
      {{false, 0xfffffffe}, {0x06, 0x00, 0x00, 0, 0xff, 0xff, 0xff, 0xfe}, "MM:4294967294"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(evpn::make_mac_mobility(row.value), row.wire);
    EXPECT_EQ(evpn::mac_mobility(with({row.wire})), row.value);
    EXPECT_EQ(evpn::to_string(row.wire), row.text);
  }
  EXPECT_EQ(evpn::mac_mobility(with({})), std::nullopt);
  // Reserved bits don't matter.
  EXPECT_EQ(evpn::mac_mobility(with({{0x06, 0x00, 0xfe, 0x77, 0, 0, 0, 9}})),
            (MacMobility{false, 9}));
}

TEST(Communities, ArpNd) {  // RFC 9047 section 2; proxy requirements G1
  struct Row {
    ArpNdFlags value;
    uint8_t flags;
    const char* text;
  };
  const std::vector<Row> table{
      {{true, true, false}, 0x03, "ND:R,O"}, {{true, true, true}, 0x0b, "ND:R,O,I"},
      {{false, true, false}, 0x02, "ND:O"},  {{true, false, false}, 0x01, "ND:R"},
      {{false, false, true}, 0x08, "ND:I"},  {{false, false, false}, 0x00, "ND:-"},
      {{true, false, true}, 0x09, "ND:R,I"}, {{false, true, true}, 0x0a, "ND:O,I"},
  };
  for (const auto& row : table) {
    const ExtendedCommunity wire{0x06, 0x08, row.flags, 0, 0, 0, 0, 0};
    EXPECT_EQ(evpn::make_arp_nd(row.value), wire);
    EXPECT_EQ(evpn::arp_nd(with({wire})), row.value);
    EXPECT_EQ(evpn::to_string(wire), row.text);
  }
  EXPECT_EQ(evpn::arp_nd(with({{0x06, 0x08, 0xff, 1, 2, 3, 4, 5}})),
            (ArpNdFlags{true, true, true}));
  EXPECT_EQ(evpn::arp_nd(with({{0x06, 0x08, 0xf4, 0, 0, 0, 0, 0}})),
            (ArpNdFlags{false, false, false}));
}

TEST(Communities, TheFirstOneCounts) {  // G6
  EXPECT_EQ(evpn::arp_nd(with({{0x06, 0x04}, {0x06, 0x08, 0x01}, {0x06, 0x08, 0x08}})),
            (ArpNdFlags{true, false, false}));
  EXPECT_EQ(evpn::mac_mobility(with({{0x06, 0x00, 0, 0, 0, 0, 0, 1}, {0x06, 0x00, 1}})),
            (MacMobility{false, 1}));
}

TEST(Communities, Encapsulation) {
  const ExtendedCommunity vxlan{0x03, 0x0c, 0, 0, 0, 0, 0, 8};
  EXPECT_EQ(evpn::make_encapsulation(evpn::kEncapsulationVxlan), vxlan);
  EXPECT_EQ(evpn::encapsulation(with({vxlan})), 8);
  EXPECT_EQ(evpn::encapsulation(with({})), std::nullopt);
  EXPECT_EQ(evpn::to_string(vxlan), "ET:8");
  const auto nvgre = evpn::make_encapsulation(9);
  EXPECT_TRUE(evpn::accepts_vxlan(with({})));
  EXPECT_TRUE(evpn::accepts_vxlan(with({vxlan})));
  EXPECT_FALSE(evpn::accepts_vxlan(with({nvgre})));
  EXPECT_TRUE(evpn::accepts_vxlan(with({nvgre, vxlan})));
}

TEST(Communities, RouteTargets) {
  EXPECT_EQ(evpn::make_route_target(65000, 100),
            (ExtendedCommunity{0x00, 0x02, 0xfd, 0xe8, 0, 0, 0, 100}));
  EXPECT_EQ(evpn::make_route_target(65000, 0xabcdef),
            (ExtendedCommunity{0x00, 0x02, 0xfd, 0xe8, 0, 0xab, 0xcd, 0xef}));
  EXPECT_EQ(evpn::make_route_target(4200000000, 100),
            (ExtendedCommunity{0x02, 0x02, 0xfa, 0x56, 0xea, 0x00, 0, 100}));
  EXPECT_EQ(evpn::auto_route_target(net::AsNumber(4200000000), net::Vni(100012)),
            evpn::make_route_target(4200000000 & 0xffff, 100012));
  // The example of the requirements: 65000:268535468 is VNI 100012.
  EXPECT_EQ(evpn::rfc8365_route_target(net::AsNumber(65000), net::Vni(100012)),
            evpn::make_route_target(65000, 268535468));
  EXPECT_EQ(evpn::to_string(evpn::make_route_target(65000, 100)), "RT:65000:100");
  EXPECT_EQ(evpn::to_string(evpn::make_route_target(4200000000, 100)), "RT:4200000000:100");
  EXPECT_EQ(evpn::to_string(ExtendedCommunity{0x01, 0x02, 192, 0, 2, 1, 0, 100}),
            "RT:192.0.2.1:100");
  EXPECT_EQ(evpn::to_string(ExtendedCommunity{0x06, 0x7f, 0x30}), "0x067f300000000000");
  EXPECT_EQ(evpn::to_string(ExtendedCommunity{0x40, 0x02, 1}), "0x4002010000000000");
  EXPECT_TRUE(evpn::is_route_target(*evpn::parse_route_target("192.0.2.1:1")));
  EXPECT_FALSE(evpn::is_route_target({0x00, 0x03}));
  EXPECT_FALSE(evpn::is_route_target({0x03, 0x02}));
  EXPECT_FALSE(evpn::is_route_target({0x40, 0x02}));
}

TEST(Communities, TargetsInEffectAsText) {
  using testing::ElementsAre;
  evpn::Settings settings;
  settings.vni = net::Vni(100012);
  settings.local_as = net::AsNumber(4200000000);
  EXPECT_THAT(evpn::import_target_texts(settings), ElementsAre("*:100012", "*:268535468"));
  EXPECT_THAT(evpn::export_target_texts(settings), ElementsAre("59904:100012"));
  settings.import_targets = {*evpn::parse_route_target("65000:1"),
                             *evpn::parse_route_target("192.0.2.1:2")};
  settings.export_targets = {*evpn::parse_route_target("4200000000:3")};
  EXPECT_THAT(evpn::import_target_texts(settings), ElementsAre("65000:1", "192.0.2.1:2"));
  EXPECT_THAT(evpn::export_target_texts(settings), ElementsAre("4200000000:3"));
}

TEST(Communities, Imports) {
  struct Row {
    const char* name;
    uint32_t vni;
    std::vector<const char*> configured;
    std::vector<const char*> carried;
    bool expected;
  };
  const std::vector<Row> table{
      {"own AS", 100, {}, {"65000:100"}, true},
      {"any AS", 100, {}, {"65001:100"}, true},
      {"other VNI", 100, {}, {"65000:101"}, false},
      {"AS4", 100, {}, {"4200000000:100"}, true},
      {"IPv4", 100, {}, {"192.0.2.1:100"}, true},
      {"RFC 8365", 100012, {}, {"65000:268535468"}, true},
      {"RFC 8365 form of another VNI", 100012, {}, {"65000:268535469"}, false},
      {"RFC 8365, NVGRE type", 100, {}, {"65000:536871012"}, false},
      {"large VNI", 16777214, {}, {"65000:16777214"}, true},
      {"16 bits of a large VNI", 65636, {}, {"4200000000:100"}, false},
      {"16 bits of a large VNI, IPv4", 65636, {}, {"192.0.2.1:100"}, false},
      {"second of two", 100, {}, {"65000:1", "65000:100"}, true},
      {"none", 100, {}, {}, false},
      {"explicit", 100, {"65000:7", "192.0.2.1:8"}, {"192.0.2.1:8"}, true},
      {"explicit: no automatic one", 100, {"65000:7"}, {"65000:100"}, false},
      {"explicit: another AS", 100, {"65000:7"}, {"65001:7"}, false},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    evpn::Settings settings;
    settings.vni = net::Vni(row.vni);
    settings.local_as = net::AsNumber(65000);
    for (const char* text : row.configured)
      settings.import_targets.push_back(*evpn::parse_route_target(text));
    std::vector<ExtendedCommunity> carried{evpn::make_encapsulation(8)};
    for (const char* text : row.carried) carried.push_back(*evpn::parse_route_target(text));
    EXPECT_EQ(evpn::imports(settings, with(carried)), row.expected);
  }
  // A route origin with the same octets is no target.
  evpn::Settings settings;
  settings.vni = net::Vni(100);
  EXPECT_FALSE(evpn::imports(settings, with({{0x00, 0x03, 0xfd, 0xe8, 0, 0, 0, 100}})));
}

TEST(Communities, Pmsi) {
  struct Row {
    evpn::PmsiTunnel value;
    net::Bytes wire;
  };
  std::array<uint8_t, 16> v6{0x20, 0x01, 0x0d, 0xb8};
  v6[15] = 1;
  net::Bytes wire6{0, 6, 0xff, 0xff, 0xfe};
  wire6.insert(wire6.end(), v6.begin(), v6.end());
  const std::vector<Row> table{
      {{0, 6, 100, net::IpAddress::v4(0x0a000001)}, {0, 6, 0, 0, 100, 10, 0, 0, 1}},
      {{1, 6, 0xabcdef, net::IpAddress::v4(0x0a000001)}, {1, 6, 0xab, 0xcd, 0xef, 10, 0, 0, 1}},
      {{0, 6, 16777214, net::IpAddress::v6(v6)}, wire6},
  };
  for (const auto& row : table) {
    EXPECT_EQ(evpn::encode_pmsi(row.value), row.wire);
    EXPECT_EQ(evpn::decode_pmsi(row.wire), row.value);
  }
  const std::vector<net::Bytes> wrong{
      {},
      {0, 6, 0, 0},                             // 4 octets
      {0, 6, 0, 0, 100},                        // no endpoint
      {0, 0, 0, 0, 100},                        // no tunnel information
      {0, 6, 0, 0, 100, 10, 0, 0},              // 3 octets of endpoint
      {0, 6, 0, 0, 100, 10, 0, 0, 1, 0},        // 5
      {0, 12, 0, 0, 100, 10, 0, 0, 1},          // undefined type
      {0, 3, 0, 0, 100, 10, 0, 0, 1, 0, 0, 0},  // PIM-SSM
  };
  for (const auto& bytes : wrong) EXPECT_EQ(evpn::decode_pmsi(bytes), std::nullopt);
}

}  // namespace
