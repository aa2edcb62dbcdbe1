// SPDX-License-Identifier: GPL-2.0-or-later
// Section 3: problems that others reported, by their numbers. 13, 16, 17, 25, 28, 30 and 36 need a
// wire, a kernel or a BGP session as well and have lab tests besides what is here.
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::Contains;
using testing::IsEmpty;

namespace {

// A virtual address that h1 and h2 may both have.
Settings with_vip(Profile profile) {
  Settings s = provisioned(profile);
  s.bindings.push_back({v4(50), {mac(1), mac(2)}, "", net::AsNumber{64500}, "Pair"});
  s.bindings.push_back({v6(50), {mac(1), mac(2)}, "", net::AsNumber{64500}, "Pair"});
  return s;
}

}  // namespace

TEST_P(Rows, P1_FailoverOfAPairReachesRemoteCachesAtOnce) {
  for (const Profile profile : {Profile::Static, Profile::Hybrid}) {
    Exchange x(*path, with_vip(profile));
    x.bring_up({1, 2, 3});
    x.send(x.h(1), arp_claim(1, v4(50)));
    x.send(x.h(1), na(1, v6(50)));
    x.advance(20s);
    EXPECT_EQ(x.resolve(3, v4(50)), mac(1));
    x.forget();
    x.send(x.h(2), arp_claim(2, v4(50)));
    x.send(x.h(2), na(2, v6(50)));
    x.advance(900ms);
    EXPECT_GE(announcements_heard(x.h(3), v4(50), mac(2)), 1u);
    EXPECT_GE(announcements_heard(x.h(3), v6(50), mac(2)), 1u);
    EXPECT_EQ(x.resolve(3, v4(50)), mac(2));
    EXPECT_EQ(x.resolve(3, v6(50)), mac(2));
  }
}

TEST_P(Rows, P2_AHostThatMovesBetweenPesIsNoticed) {
  Exchange x(*path, dynamic());
  x.send(x.h(1), arp_claim(1, v4(50)));
  x.advance(2s);
  x.forget();
  x.send(x.h(3), arp_claim(1, v4(50)));  // the same MAC, at another PE
  x.advance(1s);
  EXPECT_EQ(harness::text(x.vrf(0).place_of(mac(1))), "10.0.0.2");
  EXPECT_EQ(x.binding(v4(50), 0)->where, MacWhere::Remote);
  EXPECT_EQ(x.resolve(2, v4(50)), mac(1));
}

TEST_P(Rows, P3_AProxyArpRouterChangesNoCache) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2, 3, 4});
  x.h(2).answers_all = true;
  x.advance(5s);
  x.forget();
  for (uint8_t n : Numbers{1, 3, 4}) {
    EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(n), true)), Verdict::NotOwner);
    EXPECT_EQ(x.send(x.h(2), na(2, v6(n))), Verdict::NotOwner);
  }
  for (uint8_t n : Numbers{1, 3, 4}) {
    EXPECT_EQ(announcements_heard(x.h(n), v4(1), mac(2)), 0u);
    EXPECT_EQ(answers_heard(x.h(n), v4(1)), 0u);
  }
  EXPECT_EQ(x.resolve(1, v4(3)), mac(3));
  EXPECT_GE(x.count_alarms(AlarmKind::NotOwner), 3u);
  const auto named = x.offenders(OffenderKind::ProxyArp);
  ASSERT_FALSE(named.empty());
  for (const OffenderView& one : named) EXPECT_EQ(one.mac, mac(2));
}

TEST_P(Rows, P4_DecoysFindProxyArpRouters) {
  Settings s = provisioned(Profile::Hybrid);
  s.decoys.addresses = {v4(253), ip("198.51.100.7"), v6(253)};
  s.decoys.interval = 60s;
  Exchange x(*path, s);
  x.bring_up({1, 2, 3});
  x.h(2).answers_all = true;
  x.advance(120s);
  for (const net::IpAddress& decoy : s.decoys.addresses) {
    EXPECT_GE(asked_by(x.h(1), 0, decoy).size(), 1u) << net::to_string(decoy);
    EXPECT_FALSE(x.binding(decoy)) << net::to_string(decoy);
  }
  for (const net::Bytes& frame : x.core())  // local member ports only
    EXPECT_FALSE(decode_arp(frame) && decode_arp(frame)->target_ip == v4(253));
  EXPECT_EQ(x.count_alarms(AlarmKind::DecoyAnswered) >= 3, true);
  bool named = false;
  for (const OffenderView& one : x.offenders(OffenderKind::ProxyArp))
    named = named || (one.mac == mac(2) && one.port == net::IfIndex{2});
  EXPECT_TRUE(named);
  EXPECT_EQ(answers_heard(x.h(1), v4(253)), 0u);
}

TEST_P(Rows, P5_ASweepOfUnusedAddressesIsSeenByNobody) {
  Settings s = provisioned();
  s.unassigned = {{net::IpPrefix::parse("192.0.2.0/24").value(), Unassigned::Drop},
                  {net::IpPrefix::parse("2001:db8:1::/64").value(), Unassigned::Drop}};
  Exchange x(*path, s);
  x.bring_up({1, 2, 3, 4});
  x.advance(5s);
  x.forget();
  for (int i = 1; i < 255; ++i) {
    x.send(x.h(1), arp_request(1, v4(static_cast<uint8_t>(i))));
    x.send(x.h(1), ns(1, v6(static_cast<uint8_t>(i))));
  }
  EXPECT_THAT(x.core(), IsEmpty());
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_GE(x.h(1).heard.size(), 6u);  // those that exist
  const auto sweepers = x.offenders(OffenderKind::Sweeper);
  ASSERT_EQ(sweepers.size(), 1u);
  EXPECT_EQ(sweepers[0].mac, mac(1));
}

TEST_P(Rows, P7_APassiveSpongeGetsToDead) {
  Settings s = sponging();
  s.sponge.passive = true;
  s.sponge.queue = 10;
  Exchange x(*path, s, 1);
  x.bring_up({1, 2, 3});
  x.advance(10s);
  x.forget();
  for (int i = 0; i < 12; ++i) {
    const auto who = static_cast<uint8_t>(1 + i % 3);
    x.send(x.h(who), arp_request(who, v4(77)));
    x.advance(400ms);
  }
  x.advance(7s);
  EXPECT_EQ(x.sponged(v4(77))->state, SpongeState::Dead);
  EXPECT_THAT(asked_by(x.h(3), 0, v4(77)), IsEmpty());
}

// 9 and its like: the owner's own probe is not answered, in both families.
TEST_P(Rows, P9_TheOwnersOwnProbeIsNotAnswered) {
  for (const Profile profile : {Profile::Dynamic, Profile::Static}) {
    Exchange x(*path, provisioned(profile));
    x.bring_up({1, 2});
    EXPECT_EQ(x.send(x.h(1), arp_probe(1, v4(1))), Verdict::OwnerAsked);
    EXPECT_EQ(x.send(x.h(1), dad_ns(1, v6(1))), Verdict::OwnerAsked);
    EXPECT_EQ(answers_heard(x.h(1), v4(1)) + answers_heard(x.h(1), v6(1)), 0u);
  }
}

TEST_P(Rows, P10_UnicastRequestToADeadHostIsSilence) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2});
  x.h(2).alive = false;
  x.advance(5s);
  x.forget();
  ArpFrame arp = arp_request(1, v4(2));
  arp.destination = mac(2);
  x.send(x.h(1), arp);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
}

TEST_P(Rows, P11_ExemptPrefixesAreForwardedNeverAnswered) {
  Settings s = provisioned();
  s.exempt = {net::IpPrefix::parse("192.0.2.2/32").value(),
              net::IpPrefix::parse("192.0.2.64/26").value()};
  Exchange x(*path, s);
  x.bring_up({1, 2, 3});
  x.advance(5s);
  x.forget();
  EXPECT_FALSE(x.fast().contains(v4(2)));
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(2))), Verdict::Exempt);
  EXPECT_EQ(x.h(2).heard.size(), 1u);
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(70))), Verdict::Exempt);
  EXPECT_EQ(x.h(2).heard.size(), 2u);
  EXPECT_EQ(x.h(3).heard.size(), 1u);
  EXPECT_EQ(answers_heard(x.h(1), v4(2)), 0u);
}

TEST_P(Rows, P12_AnswerToDadIsToAllNodesWithoutS) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2});
  x.advance(5s);
  x.forget();
  x.send(x.h(1), dad_ns(1, v6(2)));
  ASSERT_EQ(x.h(1).heard.size(), 1u);
  const auto nd = decode_nd(x.h(1).heard[0]);
  ASSERT_TRUE(nd);
  EXPECT_EQ(nd->to, ip("ff02::1"));
  EXPECT_FALSE(nd->solicited);
}

TEST_P(Rows, P17_AnswersWithoutAnyAddressOfItsOwn) {
  Exchange x(*path, dynamic());
  x.announce(2);
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));
  EXPECT_EQ(x.resolve(1, v6(2)), mac(2));
}

TEST_P(Rows, P19_AnIdleHostIsNotWithdrawn) {
  Settings s = dynamic();
  s.age_time = 60s;
  Exchange x(*path, s);
  x.h(2).answers = {v4(2), v6(2)};
  x.announce(2);
  x.advance(2s);
  x.forget();
  x.advance(180s);
  for (const std::string& route : x.routes()) EXPECT_NE(route[0], '-') << route;
}

TEST_P(Rows, P20_UnpluggedIsGoneAtItsAge) {
  Settings s = dynamic();
  s.age_time = 60s;
  Exchange x(*path, s);
  x.announce(2);
  x.cut(x.h(2));
  x.advance(61s);
  EXPECT_FALSE(x.binding(v4(2)));
  EXPECT_FALSE(x.binding(v6(2)));
}

TEST_P(Rows, P21_StaticIsUntouchable) {
  Exchange x(*path, provisioned(Profile::Hybrid));
  x.bring_up({1});
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.1").seq(100));
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.1").seq(100), true);
  EXPECT_EQ(x.binding(v4(1))->mac, mac(1));
  EXPECT_TRUE(x.binding(v4(1))->answered);
  EXPECT_FALSE(x.responder().clear_binding(v4(1), x.now).first);
}

TEST_P(Rows, P22_NothingIsSentToTheUnspecifiedAddress) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2});
  x.send(x.h(1), dad_ns(1, v6(2)));
  for (const net::Bytes& frame : x.h(1).heard)
    EXPECT_FALSE(decode_nd(frame) && decode_nd(frame)->to.is_unspecified());
}

TEST_P(Rows, P23_StaticEntriesAreAdvertised) {
  Exchange x(*path, provisioned());
  x.bring_up({1});
  EXPECT_THAT(x.routes(), Contains("+M1/192.0.2.1 ND:I"));
}

TEST_P(Rows, P27_FlagsOfFrr) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").also({0x06, 0x08, 0x01}));
  x.advance(2s);
  x.forget();
  x.send(x.h(1), ns(1, v6(99)));
  ASSERT_EQ(x.h(1).heard.size(), 1u);
  const auto nd = decode_nd(x.h(1).heard[0]);
  ASSERT_TRUE(nd);
  EXPECT_TRUE(nd->router);
  EXPECT_TRUE(nd->override_flag);
}

TEST_P(Rows, P28_SolicitationsAreSeenByNobodyElse) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2, 3});
  x.advance(5s);
  x.forget();
  for (int i = 0; i < 1000; ++i) x.send(x.h(1), ns(1, v6(static_cast<uint8_t>(2 + i % 200))));
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
}

// 50 askers, 20 dead addresses, five times a second each; once they are dead nothing is seen.
TEST_P(Rows, P29_AStormAfterARenumbering) {
  Settings s = sponging();
  s.max_bindings_per_port = 1000;
  s.new_bindings_per_second = 0;
  s.duplicates.enabled = false;
  s.sponge.queue = 100;
  s.bindings.clear();
  Exchange x(*path, s, 1);
  x.bring_up({1, 2, 3});
  const auto storm = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (uint8_t asker = 100; asker < 150; ++asker)
        for (uint8_t target = 10; target < 30; ++target)
          x.send(x.h(1), arp_request(asker, v4(target)));
      x.advance(200ms);
    }
  };
  x.advance(6s);
  storm(50);
  x.advance(10s);
  x.forget();
  storm(10);
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_EQ(x.resolve(1, v4(10)), kSpongeMac);
}

TEST_P(Rows, P37_LinkLocalTargetsAreAnswered) {
  Exchange x(*path, provisioned());
  x.bring_up({1, 2, 3});
  x.advance(5s);
  x.forget();
  EXPECT_EQ(x.resolve(1, eui64_link_local(mac(3))), mac(3));
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
}
