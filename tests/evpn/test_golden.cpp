// SPDX-License-Identifier: GPL-2.0-or-later
// EVPN route types 1 to 11 and the extended communities in both directions against golden.tsv,
// whose octets tshark reads as the same (tests/bgp/golden_tshark.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "golden_file.h"

namespace {

using bgp::ExtendedCommunity;
using bgp::test::GoldenFile;
using bgp::test::hex;
using net::Bytes;

net::RouteDistinguisher rd() { return *net::RouteDistinguisher::parse("10.0.0.1:100"); }
net::Esi esi() { return net::Esi::from_bytes(hex("03 443839ffff01 000001")); }
net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }

// The routes that we take apart; the opaque ones are the octets themselves.
std::map<std::string, evpn::Route> routes() {
  const net::MacAddress mac = *net::MacAddress::parse("02:00:00:00:0a:01");
  const net::IpAddress v6 = ip("2001:db8::9");
  return {
      {"A-D per ES", evpn::EthernetAutoDiscovery{rd(), esi(), evpn::kMaxEthernetTag, 0}},
      {"A-D per EVI", evpn::EthernetAutoDiscovery{rd(), esi(), 0, 0xabcdef}},
      {"MAC", evpn::MacIp{rd(), {}, 0, mac, {}, 100, {}}},
      {"MAC, two labels", evpn::MacIp{rd(), {}, 0, mac, {}, 100, 200}},
      {"MAC and IPv4", evpn::MacIp{rd(), esi(), 7, mac, ip("192.0.2.1"), 16777214, {}}},
      {"MAC and IPv4, two labels", evpn::MacIp{rd(), {}, 0, mac, ip("192.0.2.1"), 100, 101}},
      {"MAC and IPv6", evpn::MacIp{rd(), {}, 0, mac, v6, 100, {}}},
      {"MAC and IPv6, two labels", evpn::MacIp{rd(), {}, 0, mac, v6, 100, 101}},
      {"IMET IPv4", evpn::InclusiveMulticast{rd(), 0, ip("10.0.0.1")}},
      {"IMET IPv6", evpn::InclusiveMulticast{rd(), 0, v6}},
      {"ES IPv4", evpn::EthernetSegment{rd(), esi(), ip("10.0.0.1")}},
      {"ES IPv6", evpn::EthernetSegment{rd(), esi(), v6}},
      {"prefix IPv4", evpn::IpPrefixRoute{rd(), {}, 0, {ip("10.1.2.0"), 24}, ip("10.0.0.1"), 5000}},
      {"prefix IPv6", evpn::IpPrefixRoute{rd(), esi(), 0, {ip("2001:db8::"), 64}, ip("::"), 5000}},
  };
}

bgp::Attributes with(const ExtendedCommunity& community) {
  bgp::Attributes attributes;
  attributes.extended_communities = {community};
  return attributes;
}

ExtendedCommunity to_community(const Bytes& octets) {
  ExtendedCommunity community{};
  EXPECT_EQ(octets.size(), community.size());
  std::ranges::copy(octets, community.begin());
  return community;
}

// The rows of one kind, names without it.
GoldenFile of_kind(const std::string& kind) {
  GoldenFile rows;
  for (const auto& [name, octets] : bgp::test::read_golden(GOLDEN_FILE))
    if (name.starts_with(kind + " ")) rows[name.substr(kind.size() + 1)] = octets;
  return rows;
}

}  // namespace

TEST(EvpnGolden, RouteTypesBothWays) {
  auto values = routes();
  std::array<int, 12> seen{};
  for (const auto& [name, octets] : of_kind("nlri")) {
    SCOPED_TRACE(name);
    ASSERT_LT(octets[0], seen.size());
    ++seen[octets[0]];
    const auto value = values.find(name);
    const evpn::Route route =
        value != values.end()
            ? value->second
            : evpn::Route(evpn::OpaqueRoute{octets[0], Bytes(octets.begin() + 2, octets.end())});
    EXPECT_EQ(value == values.end(), octets[0] >= 6);
    EXPECT_EQ(evpn::encode(route), octets);
    const auto decoded = evpn::decode(octets);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().offset;
    EXPECT_EQ(*decoded, route);
    EXPECT_EQ(evpn::route_distinguisher(*decoded), rd());
    if (value != values.end()) values.erase(value);
  }
  for (const auto& value : values) ADD_FAILURE() << "not in golden.tsv: " << value.first;
  for (std::size_t type = 1; type <= 11; ++type) EXPECT_GT(seen[type], 0) << type;
}

TEST(EvpnGolden, KnownCommunitiesBothWays) {
  GoldenFile file = of_kind("community");
  const auto octets = [&](const char* name) {
    EXPECT_TRUE(file.contains(name)) << name;
    return to_community(file[name]);
  };
  const auto target = octets("target AS2");
  EXPECT_EQ(evpn::make_route_target(65000, 100), target);
  EXPECT_EQ(evpn::route_target_text(target), "65000:100");
  EXPECT_EQ(evpn::parse_route_target("192.0.2.1:100"), octets("target IPv4"));
  EXPECT_EQ(evpn::route_target_text(octets("target IPv4")), "192.0.2.1:100");
  EXPECT_EQ(evpn::make_route_target(4200000000, 100), octets("target AS4"));
  EXPECT_EQ(evpn::route_target_text(octets("target AS4")), "4200000000:100");
  EXPECT_EQ(evpn::rfc8365_route_target(net::AsNumber(65000), net::Vni(100012)),
            octets("target RFC 8365"));

  for (const auto& [name, type] :
       {std::pair{"encapsulation VXLAN", 8}, std::pair{"encapsulation MPLS", 10}}) {
    EXPECT_EQ(evpn::make_encapsulation(static_cast<uint16_t>(type)), octets(name));
    EXPECT_EQ(evpn::encapsulation(with(octets(name))), type);
  }
  using M = evpn::MacMobility;
  for (const auto& [name, value] :
       {std::pair{"MAC mobility", M{false, 3}}, std::pair{"MAC mobility, sticky", M{true, 0}},
        std::pair{"MAC mobility, highest", M{false, 0xffffffff}}}) {
    EXPECT_EQ(evpn::make_mac_mobility(value), octets(name));
    EXPECT_EQ(evpn::mac_mobility(with(octets(name))), value);
  }
  using F = evpn::ArpNdFlags;
  for (const auto& [name, value] : {std::pair{"ARP/ND R O", F{true, true, false}},
                                    std::pair{"ARP/ND I", F{false, false, true}}}) {
    EXPECT_EQ(evpn::make_arp_nd(value), octets(name));
    EXPECT_EQ(evpn::arp_nd(with(octets(name))), value);
  }
}

// RFC 7606 section 7.14: whatever type it has, a community is no error and comes out as it went in.
TEST(EvpnGolden, EveryCommunityIsKept) {
  bgp::Attributes attributes;
  attributes.next_hop = ip("10.0.0.1");
  for (const auto& row : of_kind("community"))
    attributes.extended_communities.push_back(to_community(row.second));
  ASSERT_GE(attributes.extended_communities.size(), 18u);
  const Bytes route = evpn::encode(evpn::InclusiveMulticast{rd(), 0, ip("10.0.0.1")});
  const std::span<const uint8_t> nlris[] = {route};
  const auto packed =
      bgp::encode_reach(bgp::kL2vpnEvpn, attributes.next_hop,
                        bgp::encode_attributes(attributes, {}), nlris, bgp::kMaxMessage);
  const auto update =
      bgp::decode_update(std::span(packed.message).subspan(bgp::kHeaderSize), evpn::family(), {});
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->handling, bgp::ErrorHandling::None);
  EXPECT_EQ(*update->attributes, attributes);
  for (const ExtendedCommunity& community : attributes.extended_communities)
    EXPECT_FALSE(evpn::to_string(community).empty());
}
