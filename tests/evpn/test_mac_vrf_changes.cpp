// SPDX-License-Identifier: GPL-2.0-or-later
// Next-hop tracking, and other settings for a MAC-VRF that is at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mac_vrf_harness.h"

using namespace harness;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

Texts lost(Pe& us, unsigned other) { return us.take(us.vrf.reachable(pe(other), false, us.now)); }
Texts found(Pe& us, unsigned other) { return us.take(us.vrf.reachable(pe(other), true, us.now)); }

}  // namespace

// --- next-hop tracking

TEST(NextHopTracking, MacsGoAtOnceAndComeBack) {
  Pe us;
  us.announce(Remote(2, 1));
  us.announce(Remote(2, 2, "192.0.2.2"));
  us.announce(Remote(3, 3));
  lost(us, 2);
  EXPECT_EQ(us.place(1), text(evpn::MacPlace{}));
  EXPECT_EQ(us.vrf.place_of(mac(2)), evpn::MacPlace{});
  EXPECT_EQ(us.vrf.place_of(mac(3)), evpn::MacPlace(evpn::AtVtep{pe(3), false}));
  EXPECT_TRUE(us.model.bindings.empty());
  EXPECT_TRUE(us.view(1).unresolved);
  EXPECT_EQ(us.view(1).unreachable, pe(2));
  EXPECT_EQ(us.vrf.counts().unresolved, 2u);
  EXPECT_THAT(lost(us, 2), IsEmpty());
  found(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(2), false}));
  EXPECT_EQ(us.model.bindings.size(), 1u);
  EXPECT_FALSE(us.view(1).unreachable);
}

TEST(NextHopTracking, WhatComesFromAPeWithoutARouteWaits) {
  Pe us;
  lost(us, 2);
  EXPECT_THAT(us.announce(Remote(2, 1)), IsEmpty());
  EXPECT_EQ(us.view(1).unreachable, pe(2));
  found(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(2), false}));
}

TEST(NextHopTracking, AnotherRouteTakesOver) {
  Pe us;
  us.announce(Remote(2, 1).seq(7));
  us.announce(Remote(3, 1));
  lost(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(3), false}));
  found(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(2), false}));
}

TEST(NextHopTracking, AnotherPeOfTheSegmentTakesOver) {
  Pe us;
  us.announce(per_es(2, esi(1)));
  us.announce(per_es(3, esi(1)));
  us.announce(per_evi(3, esi(1)));
  Remote r(2, 1);
  r.route.esi = esi(1);
  us.announce(r);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(2), false}));
  EXPECT_THAT(us.vrf.vteps(), ElementsAre(pe(2), pe(3)));
  lost(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtVtep{pe(3), false}));
  lost(us, 3);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace{});
}

// The station may have come to us while the other PE was cut off: its route must not beat ours.
TEST(NextHopTracking, AStationThatCameHereMeanwhileStays) {
  Pe us;
  us.announce(Remote(2, 1).seq(3));
  lost(us, 2);
  us.learn(1, 10);
  EXPECT_EQ(us.view(1).sequence, 4u);
  found(us, 2);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtPort{port(10), false}));
  EXPECT_EQ(us.view(1).moves, 0u);
}

TEST(NextHopTracking, TheFloodListStays) {
  Pe us;
  const evpn::InclusiveMulticast route{rd_of(pe(2)), 0, pe(2)};
  auto attributes = Remote(2, 1).attributes;
  attributes.pmsi_tunnel = evpn::encode_pmsi({0, 6, 100, pe(2)});
  us.take(us.vrf.remote(route, std::make_shared<bgp::Attributes>(attributes), us.now));
  lost(us, 2);
  EXPECT_THAT(us.vrf.flood_list(), ElementsAre(pe(2)));
  EXPECT_THAT(us.vrf.vteps(), ElementsAre(pe(2)));
}

// --- other settings

namespace {

// What changes when `us` gets these settings, the routes of `others` being known.
Texts change(Pe& us, const evpn::Settings& to, const std::vector<Remote>& others) {
  evpn::MacVrf fresh(to);
  fresh.inherit(us.vrf, us.now);
  for (const auto& r : others)
    static_cast<void>(
        fresh.remote(r.route, std::make_shared<bgp::Attributes>(r.attributes), us.now));
  const auto actions = fresh.succeed(us.vrf);
  us.vrf = std::move(fresh);
  return us.take(actions);
}

}  // namespace

TEST(OtherSettings, WhatDoesNotMatterChangesNothing) {
  Pe us;
  us.take(us.vrf.start(us.now));
  const std::vector others{Remote(2, 1), Remote(3, 2, "192.0.2.2")};
  for (const auto& r : others) us.announce(r);
  us.learn(3, 10);
  us.learn(4, 10, true);
  us.bind("192.0.2.4", 4);
  auto s = settings();
  s.duplicate_moves = 9;
  s.duplicate_window = 60s;
  EXPECT_THAT(change(us, s, others), IsEmpty());
  EXPECT_EQ(us.vrf.settings().duplicate_moves, 9u);
}

TEST(OtherSettings, AnotherRdIsAnnouncedBeforeTheOldOneGoes) {
  Pe us;
  us.take(us.vrf.start(us.now));
  us.learn(3, 10);
  auto s = settings();
  s.rd = net::RouteDistinguisher::parse("65000:7");
  const auto texts = change(us, s, {});
  ASSERT_EQ(texts.size(), 4u);  // type 2 and 3, out and in
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(texts[i][0] == '+', i < 2) << texts[i];
  EXPECT_EQ(us.model.out.size(), 2u);
  EXPECT_EQ(us.vrf.rd(), net::RouteDistinguisher::parse("65000:7"));
}

TEST(OtherSettings, OtherTargetsTakeOtherRoutes) {
  Pe us;
  us.take(us.vrf.start(us.now));
  Remote ours(2, 1), theirs(3, 2);
  theirs.attributes.extended_communities = {evpn::make_route_target(65000, 200),
                                            evpn::make_encapsulation(8)};
  us.announce(ours);
  us.announce(theirs);
  us.learn(3, 10);
  EXPECT_EQ(us.vrf.place_of(mac(2)), evpn::MacPlace{});
  auto s = settings();
  s.import_targets = {*evpn::parse_route_target("65000:200")};
  change(us, s, {ours, theirs});
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace{});
  EXPECT_EQ(us.vrf.place_of(mac(2)), evpn::MacPlace(evpn::AtVtep{pe(3), false}));
  EXPECT_EQ(us.vrf.place_of(mac(3)), evpn::MacPlace(evpn::AtPort{port(10), false}));
  // Our own are sent with other targets: the same routes again.
  s.export_targets = {*evpn::parse_route_target("65000:300")};
  const auto texts = change(us, s, {ours, theirs});
  EXPECT_EQ(texts.size(), 2u);
}

TEST(OtherSettings, ClaimsKeepTheirSequenceAndFrozenMacsStayFrozen) {
  Pe us;
  const std::vector others{Remote(2, 1).seq(4)};
  us.announce(others[0]);
  us.learn(1, 10);
  EXPECT_EQ(us.view(1).sequence, 5u);
  for (uint32_t n = 0; n < 10 && !us.view(2).duplicate; ++n) us.learn(2, 10 + n % 2);
  ASSERT_TRUE(us.view(2).duplicate);
  auto s = settings();
  s.duplicate_window = 60s;
  EXPECT_THAT(change(us, s, others), IsEmpty());
  EXPECT_EQ(us.view(1).sequence, 5u);
  EXPECT_EQ(us.vrf.place_of(mac(1)), evpn::MacPlace(evpn::AtPort{port(10), false}));
  EXPECT_TRUE(us.view(2).duplicate);
  us.now += 600s;
  us.tick();
  EXPECT_FALSE(us.view(2).duplicate);
}

TEST(OtherSettings, ReachabilityIsInherited) {
  Pe us;
  us.announce(Remote(2, 1));
  lost(us, 2);
  auto s = settings();
  s.duplicate_moves = 9;
  EXPECT_THAT(change(us, s, {Remote(2, 1)}), IsEmpty());
  EXPECT_EQ(us.view(1).unreachable, pe(2));
}

// RFC 9047 section 3.1: whether IPv4 bindings carry the community, also while they are out.
TEST(OtherSettings, ArpNdCommunityForIpv4) {
  Pe us;
  us.learn(1, 10);
  us.bind("192.0.2.1", 1, {false, false, true});
  us.bind("192.0.2.2", 1, {true, true, false});
  us.bind("2001:db8::1", 1, {true, true, true});
  const auto with_community = [&] {
    unsigned count = 0;
    for (const auto& [key, sent] : us.model.out)
      count += text(evpn::Action(evpn::Originate{sent.first, sent.second})).contains(" ND:");
    return count;
  };
  EXPECT_EQ(with_community(), 2u);
  auto s = settings();
  s.arp_nd_for_v4 = false;
  EXPECT_EQ(change(us, s, {}).size(), 1u);
  EXPECT_EQ(with_community(), 1u);
  us.bind("192.0.2.3", 1, {false, false, true});
  EXPECT_EQ(with_community(), 1u);
  EXPECT_EQ(change(us, settings(), {}).size(), 2u);
  EXPECT_EQ(with_community(), 3u);
}

TEST(OtherSettings, StopWithdrawsAll) {
  Pe us;
  us.take(us.vrf.start(us.now));
  us.own(9);
  us.dispute("192.0.2.9", 8);
  EXPECT_EQ(us.model.out.size(), 3u);
  for (const auto& action : us.vrf.stop()) std::visit(us.model, action);
  EXPECT_TRUE(us.model.out.empty());
}
