// SPDX-License-Identifier: GPL-2.0-or-later
// Rows G and H: the ARP/ND extended community (RFC 9047) and the deployments of an exchange (RFC
// 9161 section 5). H2, H6 and H10 concern other frames than ARP and ND and are lab tests.
#include "bgp/export_policy.h"
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

const bgp::ExtendedCommunity kRouter{0x06, 0x08, 0x01}, kOverride{0x06, 0x08, 0x02},
    kEverything{0x06, 0x08, 0xff};
std::string flags_of(Exchange& x, const char* ip) {
  const auto view = x.binding(*net::IpAddress::parse(ip));
  if (!view) return "none";
  return std::string(view->flags.router ? "R" : "") + (view->flags.override_flag ? "O" : "") +
         (view->immutable ? "I" : "");
}
std::ptrdiff_t position(const harness::Texts& texts, const std::string& text) {
  return std::ranges::find(texts, text) - texts.begin();
}

}  // namespace

TEST_P(Rows, G1_BitsOfTheCommunity) {
  EXPECT_EQ(evpn::make_arp_nd({true, true, true}), (bgp::ExtendedCommunity{0x06, 0x08, 0x0b}));
  EXPECT_EQ(evpn::make_arp_nd({true, false, false}), kRouter);
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").also(kEverything));
  EXPECT_EQ(flags_of(x, "2001:db8:1::63"), "ROI");
}

TEST_P(Rows, G2_Ipv6CarriesExactlyOne) {
  Exchange x(*path, dynamic());
  x.announce(1);
  EXPECT_THAT(x.routes(), Contains("+M1/2001:db8:1::1 ND:R,O"));
}

TEST_P(Rows, G3_Ipv4SaysNothingOfRouterAndOverride) {
  Exchange x(*path, provisioned(Profile::Hybrid));
  x.bring_up({1});
  x.send(x.h(1), arp_claim(1, v4(60)));
  EXPECT_THAT(x.routes(), Contains("+M1/192.0.2.1 ND:I"));
  EXPECT_THAT(x.routes(), Contains("+M1/192.0.2.60"));
}

TEST_P(Rows, G4_StaticIsImmutable) {
  Exchange x(*path, provisioned());
  x.bring_up({1});
  EXPECT_THAT(x.routes(), Contains("+M1/192.0.2.1 ND:I"));
  EXPECT_THAT(x.routes(), Contains("+M1/2001:db8:1::1 ND:R,O,I"));
}

TEST_P(Rows, G5_MobilityAndArpNdTogether) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 1).seq(3));
  x.send(x.h(1), na(1, v6(1)));
  EXPECT_THAT(x.routes(), Contains("+M1/2001:db8:1::1 MM:4 ND:R,O"));
}

TEST_P(Rows, G6_OnlyTheFirstCountsAndIsPassedOn) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").also(kOverride).also(kEverything));
  EXPECT_EQ(flags_of(x, "2001:db8:1::63"), "O");
  for (const bool internal : {true, false}) {
    bgp::Attributes attributes;
    attributes.extended_communities = {kOverride, bgp::ExtendedCommunity{0x06, 0x00, 0x01},
                                       kEverything};
    bgp::GroupKey group;
    group.internal = internal;
    group.role = bgp::NeighborRole::ReflectorClient;
    const auto sent = bgp::exported(attributes, group, {});
    EXPECT_THAT(sent.extended_communities,
                ElementsAre(kOverride, bgp::ExtendedCommunity{0x06, 0x00, 0x01}));
  }
}

TEST_P(Rows, G7_FlagsOfAMacOnlyRouteMeanNothing) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9).also(kEverything));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"));
  EXPECT_EQ(flags_of(x, "192.0.2.99"), "");
}

TEST_P(Rows, G8_FlagsAreUsedInAdvertisements) {
  for (const bool router : {true, false})
    for (const bool over : {true, false}) {
      Exchange x(*path, dynamic(), 1);
      x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").nd(router, over, false));
      EXPECT_EQ(flags_of(x, "2001:db8:1::63"), std::string(router ? "R" : "") + (over ? "O" : ""));
      x.advance(2s);
      x.forget();
      x.send(x.h(1), ns(1, v6(99)));
      ASSERT_EQ(x.h(1).heard.size(), 1u);
      EXPECT_EQ(decode_nd(x.h(1).heard[0])->router, router);
      EXPECT_TRUE(decode_nd(x.h(1).heard[0])->override_flag);
    }
}

TEST_P(Rows, G9_DefaultsWithoutTheCommunity) {
  for (const bool router : {true, false}) {
    Settings s = dynamic();
    s.default_router = router;
    Exchange x(*path, s, 1);
    x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63"));
    EXPECT_EQ(flags_of(x, "2001:db8:1::63"), router ? "RO" : "O");
  }
}

TEST_P(Rows, G10_RouterAndOverrideMeanNothingForIpv4) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99").also({0x06, 0x08, 0x03}));
  EXPECT_EQ(flags_of(x, "192.0.2.99"), "");
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
}

TEST_P(Rows, G11_ImmutableOverrides) {
  for (const bool immutable_first : {true, false}) {
    Exchange x(*path, dynamic(), 1);
    harness::Remote immutable(8, 8, "192.0.2.99"), plain(9, 9, "192.0.2.99");
    immutable.nd(false, false, true);
    x.remote_route(0, immutable_first ? immutable : plain);
    x.remote_route(0, immutable_first ? plain : immutable);
    EXPECT_EQ(x.resolve(1, v4(99)), mac(8));
    EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(99))), Verdict::NotOwner);
  }
}

TEST_P(Rows, G12_AnotherMacIsPlacedButNotBound) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(8, 8, "192.0.2.99").nd(false, false, true));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99").seq(5));
  EXPECT_EQ(harness::text(x.vrf().place_of(mac(9))), "10.0.0.9");
  EXPECT_EQ(x.resolve(1, v4(99)), mac(8));
}

TEST_P(Rows, G13_OfTwoImmutableTheLatestAndAnAlarm) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(8, 8, "192.0.2.99").nd(false, false, true));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99").nd(false, false, true));
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
  ASSERT_EQ(x.count_alarms(AlarmKind::ImmutableConflict), 1u);
  EXPECT_EQ(x.alarms()[0].bound, mac(8));
  EXPECT_EQ(x.alarms()[0].seen, mac(9));
}

TEST_P(Rows, G14_WithdrawBeforeAdvertise) {
  Settings s = provisioned();
  Exchange x(*path, s);
  x.bring_up({1});
  x.learn_mac(x.h(1), mac(11));
  x.forget();
  s.bindings[0].macs = {mac(11)};
  x.reconfigure(s);
  const auto withdrawn = position(x.routes(), "-M1/192.0.2.1");
  const auto advertised = position(x.routes(), "+M11/192.0.2.1 ND:I");
  EXPECT_LT(advertised, static_cast<std::ptrdiff_t>(x.routes().size()));
  EXPECT_LT(withdrawn, advertised);
}

TEST_P(Rows, G15_SamePairFromTwoPesIsTold) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(8, 9, "192.0.2.99").seq(0, true).nd(false, false, true));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99").seq(0, true).nd(false, false, true));
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
  ASSERT_FALSE(x.mac_alarms().empty());
  EXPECT_EQ(x.mac_alarms()[0].kind, evpn::AlarmKind::StickyMacElsewhere);
  EXPECT_EQ(harness::text(x.vrf().place_of(mac(9))), "10.0.0.8!");  // one is chosen
}

TEST_P(Rows, G16_SamePairWithAHigherSequenceMovesTheMac) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(8, 9, "192.0.2.99").nd(false, false, true));
  x.forget();
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99").seq(1).nd(false, false, true));
  EXPECT_EQ(harness::text(x.vrf().place_of(mac(9))), "10.0.0.9");
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
  EXPECT_EQ(x.count_alarms(AlarmKind::ImmutableConflict), 0u);
}

TEST_P(Rows, G17_RoutesOfOthersTakeNoRoomOfMembersHere) {
  Settings s = dynamic();
  s.max_bindings = 20;
  Exchange x(*path, s, 1);
  for (unsigned n = 1; n <= 60; ++n)
    x.remote_route(0, harness::Remote(9, 1000 + n, "192.0.2." + std::to_string(100 + n)));
  EXPECT_NE(x.send(x.h(2), arp_claim(2, v4(20))), Verdict::BindingLimit);
  EXPECT_EQ(x.binding(v4(20))->mac, mac(2));
  EXPECT_EQ(x.count_alarms(AlarmKind::TableFilling), 0u);
}

TEST_P(Rows, G17_LimitsPerPortDomainAndRate) {
  Settings s = dynamic();
  s.prefixes = {net::IpPrefix::parse("10.0.0.0/16").value()};
  s.max_bindings_per_port = 8;
  Exchange x(*path, s, 1);
  std::size_t learned = 0;
  for (uint32_t i = 1; i <= 10'000; ++i) {
    const Verdict verdict = x.send(x.h(1), arp_claim(1, net::IpAddress::v4(0x0a000000u + i)));
    if (verdict != Verdict::BindingLimit) ++learned;
  }
  EXPECT_EQ(learned, 8u);
  EXPECT_EQ(x.count_alarms(AlarmKind::BindingLimit), 1u);
  x.send(x.h(2), arp_claim(2, ip("10.0.99.2")));
  EXPECT_EQ(x.binding(ip("10.0.99.2"))->mac, mac(2));
  // The rate of new ones, and the marks of the whole domain.
  s.max_bindings_per_port = 1000;
  s.max_bindings = 100;
  Exchange y(*path, s, 1);
  std::size_t at_once = 0, in_a_second = 0;
  uint32_t next = 1;
  for (int i = 0; i < 30; ++i)
    at_once += y.send(y.h(1), arp_claim(1, net::IpAddress::v4(0x0a000000u + next++))) !=
               Verdict::RateLimit;
  y.advance(1s);
  for (int i = 0; i < 30; ++i)
    in_a_second += y.send(y.h(1), arp_claim(1, net::IpAddress::v4(0x0a000000u + next++))) !=
                   Verdict::RateLimit;
  EXPECT_EQ(at_once, 10u);
  EXPECT_EQ(in_a_second, 10u);
  for (int second = 0; second < 10; ++second) {
    y.advance(1s);
    for (int i = 0; i < 10; ++i)
      y.send(y.h(1), arp_claim(1, net::IpAddress::v4(0x0a000000u + next++)));
  }
  std::vector<uint32_t> marks;
  for (const Alarm& alarm : y.alarms())
    if (alarm.kind == AlarmKind::TableFilling) marks.push_back(alarm.number);
  EXPECT_THAT(marks, ElementsAre(80u, 90u, 100u));
}

// --- H

TEST_P(Rows, H1_OffInterceptsNothing) {
  Settings s = provisioned();
  s.profile = Profile::Off;
  Exchange x(*path, s);
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(2))), Verdict::Flooded);
  EXPECT_EQ(x.send(x.h(1), arp_claim(7, v4(2))), Verdict::Flooded);
  EXPECT_EQ(x.send(x.h(1), ns(1, v6(3))), Verdict::Flooded);
  EXPECT_EQ(x.h(2).heard.size(), 3u);
  EXPECT_EQ(x.h(3).heard.size(), 3u);
  EXPECT_THAT(x.fast(), IsEmpty());
}

TEST_P(Rows, H2_DynamicFloodsWhatIsUnknown) {
  Exchange x(*path, dynamic());
  x.announce(2);
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(77))), Verdict::Flooded);
}

TEST_P(Rows, H3_HybridProtectsTheRouteServer) {
  Settings s = dynamic();
  s.profile = Profile::Hybrid;
  s.bindings = {fixed(v4(1), {mac(1)}, "m1"), fixed(v6(1), {mac(1)}, "m1")};
  Exchange x(*path, s);
  x.bring_up({1, 2});
  x.announce(3);
  EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(1))), Verdict::NotOwner);
  EXPECT_EQ(x.send(x.h(2), na(2, v6(1))), Verdict::NotOwner);
  EXPECT_EQ(x.resolve(2, v4(1)), mac(1));
  EXPECT_EQ(x.resolve(2, v6(1)), mac(1));
  EXPECT_EQ(x.resolve(2, v4(3)), mac(3));  // learned
}

TEST_P(Rows, H4_StaticIsSilent) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2, 3, 4});
  x.advance(10s);
  x.forget();
  for (int i = 0; i < 1000; ++i) {
    x.send(x.h(1), arp_request(1, v4(static_cast<uint8_t>(10 + i % 240))));
    x.send(x.h(1), ns(1, v6(static_cast<uint8_t>(10 + i % 240))));
  }
  x.send(x.h(1), arp_claim(1, v4(1)));
  x.send(x.h(1), na(1, v6(1)));
  x.advance(3600s * 10);  // no maintenance either
  EXPECT_THAT(x.core(), IsEmpty());
  for (uint8_t n : Numbers{2, 3, 4}) EXPECT_THAT(x.h(n).heard, IsEmpty());
}

TEST_P(Rows, H5_UnknownOptionsAreDiscardedAtAnExchange) {
  EXPECT_EQ(provisioned().options_policy(), UnknownOptions::Discard);
  Exchange x(*path, provisioned());
  x.bring_up({1, 3});
  NdFrame nd = ns(1, v6(3));
  nd.options.push_back({200, net::Bytes(6)});
  EXPECT_EQ(x.send(x.h(1), nd), Verdict::UnknownOption);
}

TEST_P(Rows, H7_ListOfMacsOfALag) {
  Settings s = provisioned();
  s.bindings[0].macs = {mac(1), mac(11), mac(12)};
  Exchange x(*path, s);
  EXPECT_FALSE(x.resolve(2, v4(1)));
  x.send(x.h(1), arp_claim(12, v4(1)));
  EXPECT_EQ(x.resolve(2, v4(1)), mac(12));
}

TEST_P(Rows, H8_ARouterIsReplacedWithoutAnOperator) {
  for (const bool announces : {true, false}) {
    Settings s = provisioned();
    s.bindings[0].macs = {mac(1), mac(11)};
    Exchange x(*path, s);
    x.bring_up({1, 2, 3});
    EXPECT_EQ(x.resolve(3, v4(1)), mac(1));
    x.advance(5s);
    // The old one is dead and the bridge still has its MAC; the new one begins to speak.
    x.send(
        x.h(1), announces ? arp_claim(11, v4(1)) : [] {
          ArpFrame arp = arp_request(11, v4(2));
          arp.sender_ip = v4(1);
          return arp;
        }());
    x.advance(4900ms);
    EXPECT_EQ(x.resolve(2, v4(1)), mac(11));
    EXPECT_EQ(x.resolve(3, v4(1)), mac(11));
  }
}

TEST_P(Rows, H9_AMemberLeaves) {
  Settings s = sponging(Profile::Static);
  Exchange x(*path, s);
  x.bring_up({1, 2, 3});
  x.forget();
  x.cut(x.h(1));
  s.bindings.erase(s.bindings.begin(), s.bindings.begin() + 2);
  x.reconfigure(s);
  EXPECT_THAT(x.routes(), Contains("-M1/192.0.2.1"));
  EXPECT_THAT(x.routes(), Contains("-M1/2001:db8:1::1"));
  EXPECT_FALSE(x.resolve(2, v4(1)));
  EXPECT_TRUE(x.sponged(v4(1)));
}

TEST_P(Rows, H11_SendIsForwarded) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2, 3});
  x.advance(5s);
  x.forget();
  for (uint8_t type : Numbers{kOptionCga, kOptionRsaSignature}) {
    NdFrame nd = ns(1, v6(3));
    nd.options.push_back({type, net::Bytes(22, 1)});
    EXPECT_EQ(x.send(x.h(1), nd), Verdict::Forwarded);
    EXPECT_THAT(x.h(3).heard, Contains(handed(encode_nd(nd), 3)));
  }
  EXPECT_EQ(answers_heard(x.h(1), v6(3)), 0u);
}
