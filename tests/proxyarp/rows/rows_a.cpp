// SPDX-License-Identifier: GPL-2.0-or-later
// Rows A: table and learning (RFC 9161 sections 3, 3.1, 3.2).
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::IsEmpty;

namespace {

bool contains(const harness::Texts& texts, const std::string& text) {
  return std::ranges::find(texts, text) != texts.end();
}
std::size_t routes_of(const harness::Texts& texts, const std::string& part) {
  return static_cast<std::size_t>(std::ranges::count_if(
      texts, [&](const std::string& text) { return text.find(part) != std::string::npos; }));
}

}  // namespace

TEST_P(Rows, A1_OneTableForEachBroadcastDomain) {
  const auto other = GetParam().make();
  Exchange one(*path, dynamic()), two(*other, dynamic());
  one.send(one.h(2), arp_claim(2, v4(20)));
  two.send(two.h(2), arp_claim(7, v4(20)));
  EXPECT_EQ(one.resolve(1, v4(20)), mac(2));
  EXPECT_EQ(two.resolve(1, v4(20)), mac(7));
  EXPECT_EQ(one.binding(v4(20))->kind, BindingKind::Learned);
}

// A2: each sub-function leaves its mark in the views.
TEST_P(Rows, A2_AllSubFunctionsArePresent) {
  Settings s = dynamic();
  s.age_time = 30s;
  Exchange x(*path, s);
  x.announce(2);
  EXPECT_TRUE(x.binding(v4(2)));           // learning
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));  // reply
  x.forget();
  x.advance(12s);  // maintenance
  EXPECT_FALSE(asked_by(x.h(2), 0, v4(2)).empty());
  x.send(x.h(1), arp_claim(1, v4(2)));  // duplicate detection
  EXPECT_TRUE(x.binding(v4(2))->pending);
}

TEST_P(Rows, A3_LearnedEvpnAndStaticEntriesAreAnswered) {
  Settings s = dynamic();
  s.bindings = {fixed(v4(4), {mac(4)}, "m4")};
  Exchange x(*path, s);
  x.announce(2);
  x.announce(3);
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));
  EXPECT_EQ(x.resolve(1, v4(3)), mac(3));
  x.bring_up({4});
  EXPECT_EQ(x.resolve(3, v4(4)), mac(4));
  EXPECT_EQ(x.binding(v4(2))->kind, BindingKind::Learned);
  EXPECT_EQ(x.binding(v4(3))->kind, BindingKind::Evpn);
  EXPECT_EQ(x.binding(v4(4), 1)->kind, BindingKind::Static);
}

TEST_P(Rows, A4_ProvisionedIsAdvertisedImmutable) {
  Exchange x(*path, provisioned());
  x.bring_up({1});
  EXPECT_TRUE(contains(x.routes(), "+M1/192.0.2.1 ND:I"));
  EXPECT_TRUE(contains(x.routes(), "+M1/2001:db8:1::1 ND:R,O,I"));
  EXPECT_TRUE(x.binding(v4(1), 1)->immutable || x.binding(v4(1), 1)->kind == BindingKind::Static);
}

TEST_P(Rows, A5_ListOfMacsWaitsForOneOfThem) {
  Settings s = dynamic();
  s.profile = Profile::Static;
  s.link_local = LinkLocal::None;
  s.bindings = {fixed(v4(1), {mac(1), mac(11)}, "m1")};
  Exchange x(*path, s);
  EXPECT_EQ(routes_of(x.routes(), "/192.0.2.1"), 0u);
  EXPECT_EQ(x.send(x.h(1), arp_claim(7, v4(1))), Verdict::NotOwner);
  EXPECT_EQ(routes_of(x.routes(), "/192.0.2.1"), 0u);
  EXPECT_EQ(x.counter(Verdict::NotOwner), 1u);
  x.send(x.h(1), arp_request(11, v4(200)));
  x.send(x.h(1), arp_claim(11, v4(1)));
  EXPECT_EQ(routes_of(x.routes(), "/192.0.2.1"), 1u);
  EXPECT_TRUE(contains(x.routes(), "+M11/192.0.2.1 ND:I"));
}

TEST_P(Rows, A6_EachMacIpRouteIsAnEntry) {
  Exchange x(*path, provisioned(), 1);
  harness::Remote route(9, 9, "192.0.2.99");
  x.remote_route(0, route);
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
  x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63"));
  EXPECT_EQ(x.resolve(1, v6(99)), mac(9));
}

TEST_P(Rows, A7_LearnedFromEveryArpOperation) {
  Exchange x(*path, dynamic());
  ArpFrame reply = arp_reply(arp_request(1, v4(21)), mac(2));
  const ArpFrame frames[] = {arp_request(2, v4(200)), reply, arp_claim(2, v4(22)),
                             arp_claim(2, v4(23), true)};
  for (const ArpFrame& frame : frames) {
    x.send(x.h(2), frame);
    ASSERT_TRUE(x.binding(frame.sender_ip)) << net::to_string(frame.sender_ip);
    EXPECT_EQ(x.binding(frame.sender_ip)->mac, mac(2));
  }
}

TEST_P(Rows, A8_NothingIsLearnedFromTheCore) {
  Exchange x(*path, dynamic());
  x.from_core(0, arp_claim(9, v4(90)));
  x.from_core(0, na(9, v6(90)));
  EXPECT_FALSE(x.binding(v4(90)));
  EXPECT_FALSE(x.binding(v6(90)));
}

TEST_P(Rows, A9_NeitherAddressZeroNorMacZero) {
  Exchange x(*path, dynamic());
  x.send(x.h(1), arp_probe(1, v4(50)));
  ArpFrame zero = arp_request(1, v4(50));
  zero.source = zero.sender_mac = {};
  EXPECT_EQ(x.send(x.h(1), zero), Verdict::MalformedArp);
  EXPECT_FALSE(x.binding(net::IpAddress{}));
  EXPECT_FALSE(x.binding(v4(1)));
}

TEST_P(Rows, A10_WhatIsNoHostIsNeverLearned) {
  struct Case {
    const char* what;
    ArpFrame frame;
    Verdict verdict;
  };
  const auto from = [](const char* sender) {
    ArpFrame arp = arp_request(1, v4(50));
    arp.sender_ip = ip(sender);
    return arp;
  };
  ArpFrame group = from("192.0.2.1");
  group.source = group.sender_mac = mac("03:00:00:00:00:01");
  ArpFrame broadcast = from("192.0.2.1");
  broadcast.sender_mac = net::kBroadcastMac;
  ArpFrame spoofed = from("192.0.2.1");
  spoofed.source = mac(7);
  const Case cases[] = {{"multicast SHA", group, Verdict::MalformedArp},
                        {"broadcast SHA", broadcast, Verdict::SpoofedSender},
                        {"outside", from("198.51.100.1"), Verdict::OutsidePrefix},
                        {"network", from("192.0.2.0"), Verdict::OutsidePrefix},
                        {"broadcast", from("192.0.2.255"), Verdict::OutsidePrefix},
                        {"loopback", from("127.0.0.1"), Verdict::OutsidePrefix},
                        {"multicast", from("224.0.0.5"), Verdict::OutsidePrefix},
                        {"Ethernet source", spoofed, Verdict::SpoofedSender}};
  for (const Case& c : cases) {
    Exchange x(*path, dynamic());
    EXPECT_STREQ(to_string(x.send(x.h(1), c.frame)), to_string(c.verdict)) << c.what;
    const bool seen = c.frame.source.is_unicast() || !path->is_kernel();  // else refused before
    EXPECT_EQ(x.counter(c.verdict), seen ? 1u : 0u) << c.what;
    EXPECT_FALSE(x.binding(c.frame.sender_ip)) << c.what;
  }
}

TEST_P(Rows, A11_AdvertisementsAreLearned) {
  Exchange x(*path, dynamic());
  x.send(x.h(2), na(2, v6(20)));
  EXPECT_EQ(x.binding(v6(20))->mac, mac(2));
  NdFrame bare = na(2, v6(21));
  bare.link_layer.reset();
  x.send(x.h(2), bare);
  EXPECT_FALSE(x.binding(v6(21)));
}

TEST_P(Rows, A12_NoEntryFromASolicitation) {
  Exchange x(*path, dynamic());
  x.send(x.h(2), ns(2, v6(50)));
  x.send(x.h(2), dad_ns(2, v6(51)));
  EXPECT_FALSE(x.binding(v6(2)));
  EXPECT_FALSE(x.binding(v6(51)));
}

TEST_P(Rows, A13_WithoutOverrideFlagOnlyWithAnycast) {
  for (const bool anycast : {false, true}) {
    Settings s = dynamic();
    s.anycast = anycast;
    Exchange x(*path, s);
    x.bring_up({1, 2});
    NdFrame solicited = neighbor_advertisement(ns(1, v6(20)), mac(2), {true, false});
    x.forget();
    x.send(x.h(2), solicited);
    EXPECT_EQ(x.binding(v6(20)).has_value(), anycast);
    EXPECT_THAT(x.h(1).heard, testing::Contains(encode_nd(solicited)));  // where it is for
  }
}

TEST_P(Rows, A14_InvalidAdvertisementsAreIgnored) {
  const net::Bytes good = encode_nd(na(2, v6(20)));
  NdFrame solicited = na(2, v6(20));
  solicited.solicited = true;
  const net::Bytes bad[] = {with(good, 21, {64}),                                     // hop limit
                            with(good, 56, {1, 2}),                                   // checksum
                            with_checksum(with(good, 55, {1})),                       // code
                            with_checksum(with(with(good, 18, {0, 16}), 21, {255})),  // length
                            with_checksum(with(good, 62, {0xff})),  // multicast target
                            encode_nd(solicited),                   // S, and to a group
                            with_checksum(with(good, 79, {0}))};    // option of length zero
  for (const net::Bytes& frame : bad) {
    Exchange x(*path, dynamic());
    EXPECT_EQ(x.send(x.h(2), frame), Verdict::MalformedNd);
    EXPECT_FALSE(x.binding(v6(20)));
    EXPECT_THAT(x.h(1).heard, IsEmpty());
    EXPECT_EQ(x.counter(Verdict::MalformedNd), 1u);
  }
}

TEST_P(Rows, A15_MembersAreToldOfNewEntries) {
  Settings s = dynamic();
  Exchange x(*path, s);
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"));
  x.advance(1s);
  EXPECT_EQ(announcements_heard(x.h(1), v4(99), mac(9)), 1u);
  EXPECT_EQ(announcements_heard(x.h(2), v4(99), mac(9)), 1u);
  // Its own frame was flooded to them: no second one here, and one behind the other PE's route.
  x.forget();
  x.send(x.h(2), arp_claim(2, v4(20)));
  x.advance(1s);
  EXPECT_EQ(announcements_heard(x.h(1), v4(20), mac(2)), 1u);
  // Not flooded locally: ours instead.
  s.flood_gratuitous_arp = FloodTo{false, false};
  Exchange quiet(*path, s);
  quiet.send(quiet.h(2), arp_claim(2, v4(20)));
  quiet.advance(1s);
  EXPECT_EQ(announcements_heard(quiet.h(1), v4(20), mac(2)), 1u);
  EXPECT_EQ(announcements_heard(quiet.h(2), v4(20), mac(2)), 0u);
  EXPECT_EQ(announcements_heard(quiet.h(3), v4(20), mac(2)), 1u);
}

TEST_P(Rows, A16_AnnouncementsArePaced) {
  Settings s = dynamic();
  s.prefixes = {net::IpPrefix::parse("10.0.0.0/16").value()};
  s.announcements_per_second = 100;
  Exchange x(*path, s, 1);
  for (int i = 1; i <= 2000; ++i)
    x.remote_route(
        0, harness::Remote(9, 9,
                           "10.0." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250)));
  std::size_t total = 0;
  for (int second = 0; second < 30 && total < 2000; ++second) {
    x.advance(1s);
    EXPECT_LE(x.h(1).heard.size(), 106u);  // those that came with the routes are in the first
    total += x.h(1).heard.size();
    x.forget();
  }
  EXPECT_EQ(total, 2000u);
  // Unsolicited, to all nodes.
  Exchange six(*path, dynamic(), 1);
  six.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63"));
  six.advance(5s);
  ASSERT_EQ(six.h(1).heard.size(), 1u);
  const auto nd = decode_nd(six.h(1).heard[0]);
  ASSERT_TRUE(nd);
  EXPECT_EQ(nd->to, ip("ff02::1"));
  EXPECT_FALSE(nd->solicited);
}

TEST_P(Rows, A17_StaticBeatsLearnedAndEvpn) {
  Exchange x(*path, provisioned(Profile::Hybrid));
  x.bring_up({1, 2, 3});
  x.forget();
  EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(1))), Verdict::NotOwner);
  EXPECT_EQ(x.count_alarms(AlarmKind::NotOwner), 1u);
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.1").seq(7));
  EXPECT_EQ(x.binding(v4(1))->mac, mac(1));
  EXPECT_EQ(x.resolve(2, v4(1)), mac(1));
  EXPECT_EQ(routes_of(x.routes(), "/192.0.2.1"), 0u);
}

TEST_P(Rows, A18_AfterARestartStaticAndEvpnAreBackAtOnce) {
  Settings s = provisioned(Profile::Hybrid);
  s.bindings.resize(2);  // h1
  Exchange x(*path, s, 1);
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"));
  EXPECT_EQ(x.resolve(2, v4(1)), mac(1));  // it was not even heard
  EXPECT_EQ(x.resolve(2, v4(99)), mac(9));
  EXPECT_FALSE(x.resolve(1, v4(20)));  // unknown: floods meanwhile
  EXPECT_EQ(x.h(2).heard.empty(), false);
  EXPECT_EQ(routes_of(x.routes(), "-"), 0u);
}

TEST_P(Rows, A19_RouterAndOverrideFlagForEachEntry) {
  const auto router_flag = [](Exchange& x, const net::IpAddress& target) {
    x.forget();
    x.send(x.h(1), ns(1, target));
    for (const net::Bytes& frame : x.h(1).heard)
      if (const auto nd = decode_nd(frame); nd && !nd->is_solicitation() && nd->solicited)
        return std::string(nd->router ? "R" : "-") + (nd->override_flag ? "O" : "-");
    return std::string("none");
  };
  for (const bool router : {true, false}) {
    Settings s = dynamic();
    s.default_router = router;
    s.bindings = {fixed(v6(2), {mac(2)}, "m2")};
    Exchange x(*path, s);
    const std::string by_default = router ? "RO" : "-O";
    x.bring_up({2});
    EXPECT_EQ(router_flag(x, v6(2)), by_default);  // provisioned
    NdFrame learned = na(2, v6(20));
    learned.router = !router;
    x.send(x.h(2), learned);
    EXPECT_EQ(router_flag(x, v6(20)), router ? "-O" : "RO");  // from the NA
    x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63"));
    EXPECT_EQ(router_flag(x, v6(99)), by_default);  // route without the community
    x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::62").nd(!router, true, false));
    EXPECT_EQ(router_flag(x, v6(98)), router ? "-O" : "RO");
  }
}

TEST_P(Rows, A20_AnycastAddressesHaveSeveralMacs) {
  Settings s = dynamic();
  s.anycast = true;
  s.anycast_macs = 4;
  s.max_bindings_per_port = 20;
  Exchange x(*path, s, 1);
  for (uint8_t n = 11; n <= 15; ++n) {
    NdFrame claim = na(n, v6(50));
    claim.override_flag = false;
    const Verdict verdict = x.send(x.h(2), claim);
    EXPECT_EQ(verdict == Verdict::BindingLimit, n == 15) << int{n};
  }
  x.forget();
  x.send(x.h(1), ns(1, v6(50)));
  EXPECT_EQ(answers_heard(x.h(1), v6(50)), 4u);
  EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp), 0u);
  EXPECT_FALSE(x.binding(v6(50))->pending);
  EXPECT_FALSE(x.fast().contains(v6(50)));
}

TEST_P(Rows, A20_AnycastBehindTwoPes) {
  Settings s = dynamic();
  s.anycast = true;
  Exchange x(*path, s);
  NdFrame there = na(3, v6(50)), here = na(2, v6(50));
  there.override_flag = here.override_flag = false;
  x.send(x.h(3), there);
  x.send(x.h(2), here);
  x.forget();
  x.send(x.h(1), ns(1, v6(50)));
  EXPECT_EQ(answers_heard(x.h(1), v6(50)), 2u);
  x.send(x.h(4), ns(4, v6(50)));
  EXPECT_EQ(answers_heard(x.h(4), v6(50)), 2u);
}

TEST_P(Rows, A21_GratuitousWithoutOverrideIsAHint) {
  Exchange x(*path, dynamic());
  x.h(2).answers = {v6(20)};
  NdFrame grand = na(2, v6(20));
  grand.override_flag = false;
  grand.to = ip("ff02::2");
  grand.destination = multicast_mac(grand.to);
  x.send(x.h(2), grand);
  const auto asked = asked_by(x.h(2), 0, v6(20));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(decode_nd(asked[0])->destination, mac(2));
  EXPECT_EQ(x.binding(v6(20))->mac, mac(2));  // from the answer
  // Nobody answers: nothing is learned.
  grand.target = grand.from = v6(21);
  x.send(x.h(2), grand);
  EXPECT_FALSE(x.binding(v6(21)));
}

TEST_P(Rows, A22_OneRouteForEachAddress) {
  Exchange x(*path, dynamic());
  x.announce(1);
  EXPECT_TRUE(contains(x.routes(), "+M1"));
  EXPECT_TRUE(contains(x.routes(), "+M1/192.0.2.1"));
  EXPECT_TRUE(contains(x.routes(), "+M1/2001:db8:1::1 ND:R,O"));
  x.forget();
  x.run_commands(x.responder().clear_binding(v4(1), x.now));
  EXPECT_EQ(x.routes(), harness::Texts{"-M1/192.0.2.1"});
}

TEST_P(Rows, A23_WithdrawTakesTheEntryAndLeavesTheMac) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"));
  EXPECT_EQ(x.resolve(1, v4(99)), mac(9));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"), true);
  EXPECT_FALSE(x.binding(v4(99)));
  EXPECT_EQ(harness::text(x.vrf().place_of(mac(9))), "10.0.0.9");
}
