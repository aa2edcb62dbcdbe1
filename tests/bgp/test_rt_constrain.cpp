// SPDX-License-Identifier: GPL-2.0-or-later
// RT-constrain (RFC 4684): its NLRI, and which routes a set of memberships lets through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/rt_constrain.h"
#include "bgp/update_family.h"
#include "fake_family.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;

namespace {

constexpr ExtendedCommunity kRed{0x00, 0x02, 0xfd, 0xe8, 0, 0, 0, 100};  // 65000:100
constexpr ExtendedCommunity kBlue{0x00, 0x02, 0xfd, 0xe8, 0, 0, 0, 101};

bool wants(const TargetMemberships& memberships, std::vector<ExtendedCommunity> communities) {
  Attributes attributes;
  attributes.extended_communities = std::move(communities);
  return memberships.filter()->wants(attributes);
}

struct Cut {
  NlriStatus status;
  Bytes key;
  std::size_t left;
};
Cut cut(const char* text) {
  const Bytes bytes = hex(text);
  net::ByteReader in(bytes);
  NlriItem item;
  const NlriStatus status = route_target_family().next(in, item);
  return {status, Bytes(item.key().begin(), item.key().end()), in.remaining()};
}

}  // namespace

TEST(RtConstrain, GoldenNlri) {
  EXPECT_EQ(membership_nlri(65000, kRed), hex("60 0000fde8 0002fde800000064"));
  EXPECT_EQ(default_membership_nlri(), hex("00"));
  EXPECT_TRUE(is_default_membership(membership_item(hex("00")).key()));
  EXPECT_FALSE(is_default_membership(membership_item(hex("20 0000fde8")).key()));
}

TEST(RtConstrain, Lengths) {
  EXPECT_EQ(cut("00 60").left, 1u);
  EXPECT_EQ(cut("00").status, NlriStatus::Ok);
  EXPECT_EQ(cut("20 0000fde8").status, NlriStatus::Ok);
  EXPECT_EQ(cut("30 0000fde8 0002").status, NlriStatus::Ok);
  EXPECT_EQ(cut("60 0000fde8 0002fde800000064").key, hex("60 0000fde8 0002fde800000064"));
  for (const char* without_origin : {"01 80 00", "08 00 00", "1f 0000fde8 00"}) {
    EXPECT_EQ(cut(without_origin).status, NlriStatus::Invalid) << without_origin;
    EXPECT_EQ(cut(without_origin).left, 1u) << without_origin;  // the next one can be trusted
  }
  EXPECT_EQ(cut("61 0000fde8 0002fde80000006400").status, NlriStatus::Framing);
  EXPECT_EQ(cut("60 0000fde8 0002fde8000000").status, NlriStatus::Framing);
  EXPECT_EQ(cut("ff").status, NlriStatus::Framing);
  // Bits behind the length make no other route.
  EXPECT_EQ(cut("3c 0000fde8 0002fdef").key, cut("3c 0000fde8 0002fde0").key);
  EXPECT_NE(cut("3c 0000fde8 0002fdf0").key, cut("3c 0000fde8 0002fde0").key);
}

TEST(RtConstrain, ExactTargets) {
  TargetMemberships m;
  EXPECT_FALSE(wants(m, {kRed}));
  m.announce(membership_item(membership_nlri(65000, kRed)).key());
  EXPECT_TRUE(wants(m, {kRed}));
  EXPECT_TRUE(wants(m, {{0x03, 0x0c, 0, 0, 0, 0, 0, 8}, kBlue, kRed}));
  EXPECT_FALSE(wants(m, {kBlue}));
  EXPECT_FALSE(wants(m, {}));
  // The same octets as something else than a route target, or not transitive.
  EXPECT_FALSE(wants(m, {{0x00, 0x03, 0xfd, 0xe8, 0, 0, 0, 100}}));
  EXPECT_FALSE(wants(m, {{0x40, 0x02, 0xfd, 0xe8, 0, 0, 0, 100}}));
  // The origin is no part of the target: from wherever asks for it.
  m.announce(membership_item(membership_nlri(65001, kRed)).key());
  m.withdraw(membership_item(membership_nlri(65000, kRed)).key());
  EXPECT_TRUE(wants(m, {kRed}));
  m.withdraw(membership_item(membership_nlri(65001, kRed)).key());
  EXPECT_FALSE(wants(m, {kRed}));
}

TEST(RtConstrain, Prefixes) {
  TargetMemberships m;
  m.announce(membership_item(hex("40 0000fde8 0002fde8")).key());  // 65000:*
  m.announce(membership_item(membership_nlri(65000, kRed)).key());
  EXPECT_TRUE(wants(m, {kRed}));
  EXPECT_TRUE(wants(m, {kBlue}));
  EXPECT_TRUE(wants(m, {{0x00, 0x02, 0xfd, 0xe8, 0xff, 0xff, 0xff, 0xff}}));
  EXPECT_FALSE(wants(m, {{0x00, 0x02, 0xfd, 0xe9, 0, 0, 0, 100}}));
  EXPECT_FALSE(wants(m, {{0x02, 0x02, 0, 0, 0xfd, 0xe8, 0, 100}}));
  m.withdraw(membership_item(hex("40 0000fde8 0002fde8")).key());
  EXPECT_TRUE(wants(m, {kRed}));
  EXPECT_FALSE(wants(m, {kBlue}));
  m.announce(membership_item(default_membership_nlri()).key());
  EXPECT_TRUE(wants(m, {}));
  m.withdraw(membership_item(default_membership_nlri()).key());
  m.announce(membership_item(hex("20 0000fde8")).key());  // whatever the target
  EXPECT_TRUE(wants(m, {kBlue}));
}

TEST(RtConstrain, EsImport) {
  constexpr ExtendedCommunity segment{0x06, 0x02, 1, 2, 3, 4, 5, 6};
  TargetMemberships m;
  m.announce(membership_item(membership_nlri(65000, segment)).key());
  EXPECT_TRUE(wants(m, {segment}));
  EXPECT_FALSE(wants(m, {{0x06, 0x00, 1, 2, 3, 4, 5, 6}}));
}

TEST(RtConstrain, RestartAndRefresh) {
  const Bytes red = membership_nlri(65000, kRed), blue = membership_nlri(65000, kBlue);
  TargetMemberships m;
  m.announce(membership_item(red).key());
  m.announce(membership_item(blue).key());
  m.mark_stale();
  m.announce(membership_item(red).key());
  EXPECT_TRUE(wants(m, {kBlue}));
  m.remove_stale();
  EXPECT_TRUE(wants(m, {kRed}));
  EXPECT_FALSE(wants(m, {kBlue}));
  m.announce(membership_item(blue).key());
  m.begin_refresh();
  m.announce(membership_item(blue).key());
  m.remove_stale();  // has nothing to do with it
  EXPECT_EQ(m.size(), 2u);
  m.end_refresh();
  EXPECT_FALSE(wants(m, {kRed}));
  EXPECT_TRUE(wants(m, {kBlue}));
}

TEST(UpdateFamilies, AreFound) {
  const Bytes nlri = default_membership_nlri();
  const std::span<const uint8_t> view = nlri;
  const auto body = [](const Bytes& message) { return std::span(message).subspan(kHeaderSize); };
  const Bytes reach = encode_reach(kRouteTargetConstrain, *net::IpAddress::parse("192.0.2.1"),
                                   encode_attributes({}, {}), {&view, 1}, kMaxMessage)
                          .message;
  EXPECT_EQ(update_families(body(reach)).reach, kRouteTargetConstrain);
  EXPECT_FALSE(update_families(body(reach)).unreach);
  const Bytes end = encode_end_of_rib(kL2vpnEvpn);
  EXPECT_EQ(update_families(body(end)).unreach, kL2vpnEvpn);
  for (std::size_t size = 0; size < body(reach).size(); ++size)
    (void)update_families(body(reach).first(size));
}
