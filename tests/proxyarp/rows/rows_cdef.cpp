// SPDX-License-Identifier: GPL-2.0-or-later
// Rows C to F: unicast-forward, maintenance, flooding and duplicate addresses (RFC 9161
// sections 3.4 to 3.7).
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

NdFrame with_option(NdFrame nd, uint8_t type) {
  nd.options.push_back({type, net::Bytes(6, 1)});
  return nd;
}
std::size_t count_text(const harness::Texts& texts, const std::string& part) {
  return static_cast<std::size_t>(std::ranges::count_if(
      texts, [&](const std::string& text) { return text.find(part) != std::string::npos; }));
}
// h1 and h2 of one PE and what they need to fight for 192.0.2.50.
const net::IpAddress kContested = v4(50);

}  // namespace

// --- C

TEST_P(Rows, C1_AlwaysGoesToTheOwnerAlone) {
  Settings s = dynamic();
  s.unicast_forward = UnicastForward::Always;
  Exchange x(*path, s);
  for (uint8_t n : Numbers{1, 2, 3}) x.announce(n);
  x.advance(2s);
  x.forget();
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(3))), Verdict::Forwarded);
  EXPECT_THAT(x.h(3).heard, ElementsAre(handed(encode_arp(arp_request(1, v4(3))), 3)));
  EXPECT_EQ(x.send(x.h(1), ns(1, v6(2))), Verdict::Forwarded);
  EXPECT_THAT(x.h(2).heard, ElementsAre(handed(encode_nd(ns(1, v6(2))), 2)));
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  EXPECT_THAT(x.fast(), IsEmpty());
}

TEST_P(Rows, C2_OnlyWithUnknownOptions) {
  Settings s = dynamic();
  s.unicast_forward = UnicastForward::UnknownOptions;
  Exchange x(*path, s);
  for (uint8_t n : Numbers{1, 2, 3}) x.announce(n);
  x.advance(2s);
  x.forget();
  EXPECT_EQ(x.send(x.h(1), with_option(ns(1, v6(3)), 200)), Verdict::Forwarded);
  EXPECT_EQ(x.h(3).heard.size(), 1u);
  EXPECT_EQ(x.send(x.h(1), ns(1, v6(3))), Verdict::Answered);
  EXPECT_EQ(x.h(3).heard.size(), 1u);
}

TEST_P(Rows, C3_AMissFloodsInBothModes) {
  for (const auto mode : {UnicastForward::Always, UnicastForward::UnknownOptions}) {
    Settings s = dynamic();
    s.unicast_forward = mode;
    s.announcements_per_second = 0;
    Exchange x(*path, s);
    EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(77))), Verdict::Flooded);
    EXPECT_EQ(x.send(x.h(1), with_option(ns(1, v6(77)), 200)), Verdict::Flooded);
    EXPECT_EQ(x.h(2).heard.size(), 2u);
  }
}

TEST_P(Rows, C4_WhileInDoubtTheQuestionGoesToTheClaimants) {
  Settings s = dynamic();
  s.announcements_per_second = 0;
  Exchange x(*path, s, 1);
  x.bring_up({1, 2, 3, 4});
  x.send(x.h(1), arp_claim(1, kContested));
  x.send(x.h(2), arp_claim(2, kContested));
  EXPECT_TRUE(x.binding(kContested)->pending);
  EXPECT_FALSE(x.fast().contains(kContested));
  x.forget();
  EXPECT_EQ(x.send(x.h(3), arp_request(3, kContested)), Verdict::Pending);
  EXPECT_THAT(x.h(1).heard, ElementsAre(handed(encode_arp(arp_request(3, kContested)), 1)));
  EXPECT_THAT(x.h(2).heard, ElementsAre(handed(encode_arp(arp_request(3, kContested)), 2)));
  EXPECT_THAT(x.h(4).heard, IsEmpty());
  // Out of the fabric: the kernel floods it to the members, with claimants among them.
  x.forget();
  const bool floods = path->is_kernel();
  EXPECT_EQ(x.from_core(0, arp_request(9, kContested)),
            floods ? Verdict::Flooded : Verdict::Pending);
  EXPECT_EQ(x.h(2).heard.size(), 1u);
  EXPECT_EQ(x.h(4).heard.size(), floods ? 1u : 0u);
}

// --- D

TEST_P(Rows, D1_WhatIsNotRefreshedIsFlushed) {
  Settings s = dynamic();
  s.age_time = 5s;
  Exchange x(*path, s);
  x.send(x.h(2), arp_claim(2, v4(2)));
  x.forget();
  x.advance(4900ms);
  EXPECT_THAT(x.routes(), IsEmpty());
  x.advance(200ms);
  EXPECT_THAT(x.routes(), Contains("-M2/192.0.2.2"));
  EXPECT_FALSE(x.binding(v4(2)));
}

TEST_P(Rows, D2_AnyFrameOfTheOwnerRefreshes) {
  Settings s = dynamic();
  s.age_time = 5s;
  Exchange x(*path, s);
  x.h(2).alive = false;  // it doesn't answer
  const std::function<void()> frames[] = {
      [&] { x.send(x.h(2), arp_request(2, v4(77))); },
      [&] { x.send(x.h(2), arp_reply(arp_request(1, v4(2)), mac(2))); },
      [&] { x.send(x.h(2), arp_claim(2, v4(2))); }};
  x.send(x.h(2), arp_claim(2, v4(2)));
  for (const auto& frame : frames) {
    x.advance(4s);
    frame();
  }
  x.advance(4s);
  EXPECT_TRUE(x.binding(v4(2)));
  x.advance(2s);
  EXPECT_FALSE(x.binding(v4(2)));
  // An NA, also one without override flag.
  x.send(x.h(2), na(2, v6(2)));
  x.advance(4s);
  NdFrame weak = na(2, v6(2));
  weak.override_flag = false;
  x.send(x.h(2), weak);
  x.advance(4s);
  EXPECT_TRUE(x.binding(v6(2)));
}

TEST_P(Rows, D3_RefreshComesTwiceInAnAge) {
  Settings s = dynamic();
  s.age_time = 300s;
  Exchange x(*path, s);
  x.h(2).answers = {};
  x.send(x.h(2), arp_claim(2, v4(2)));
  x.forget();
  std::vector<net::Duration> rounds;  // the first question of each
  const net::TimePoint start = x.now;
  for (int second = 0; second < 299; ++second) {
    x.advance(1s);
    const bool asked = !asked_by(x.h(2), 0, v4(2)).empty();
    if (asked && (rounds.empty() || x.now - start - rounds.back() > 10s))
      rounds.push_back(x.now - start);
    x.forget();
  }
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_NEAR(std::chrono::duration<double>(rounds[0]).count(), 100, 16);
  EXPECT_NEAR(std::chrono::duration<double>(rounds[1]).count(), 200, 16);
}

TEST_P(Rows, D4_RefreshFrames) {
  Settings s = dynamic();
  s.age_time = 30s;
  Exchange x(*path, s);
  x.announce(2);
  x.forget();
  x.advance(11500ms);
  const auto arp = asked_by(x.h(2), 0, v4(2)), nd = asked_by(x.h(2), 0, v6(2));
  ASSERT_FALSE(arp.empty());
  ASSERT_FALSE(nd.empty());
  // Unicast, a request with sender address 0, from the PE's MAC.
  EXPECT_EQ(arp[0], padded(hex("02000000000202ff0000000108060001080006040001"
                               "02ff0000000100000000000000000000c0000202")));
  const auto question = decode_nd(nd[0]);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->destination, mac(2));
  EXPECT_EQ(question->to, v6(2));
  EXPECT_EQ(question->from, eui64_link_local(pe_mac(0)));
  EXPECT_EQ(question->link_layer, pe_mac(0));
  // With an address of its own on the LAN that one is used.
  Responder::Identity identity;
  identity.ipv4 = v4(250);
  Exchange own(*path, s, 1, identity);
  own.announce(2);
  own.advance(11500ms);
  const auto from_own = asked_by(own.h(2), 0, v4(2));
  ASSERT_FALSE(from_own.empty());
  EXPECT_EQ(decode_arp(from_own[0])->sender_ip, v4(250));
}

TEST_P(Rows, D5_OnlyLearnedOnesAndOnlyAtTheirPort) {
  Settings s = dynamic();
  s.age_time = 30s;
  s.bindings = {fixed(v4(1), {mac(1)}, "m1")};
  Exchange x(*path, s);
  x.bring_up({1});
  x.announce(2);
  x.announce(3);
  x.advance(2s);
  x.forget();
  x.advance(27s);
  EXPECT_FALSE(asked_by(x.h(2), 0, v4(2)).empty());
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
  EXPECT_THAT(asked_by(x.h(3), 0, v4(3)), IsEmpty());
}

TEST_P(Rows, D6_AnIdleMemberThatAnswersStays) {
  Settings s = dynamic();
  s.age_time = 30s;
  Exchange x(*path, s);
  x.h(2).answers = {v4(2), v6(2)};
  x.announce(2);
  x.advance(2s);
  x.forget();
  x.advance(90s);
  EXPECT_THAT(x.routes(), IsEmpty());
  EXPECT_TRUE(x.binding(v4(2))->answered);
  EXPECT_TRUE(x.binding(v6(2))->answered);
}

TEST_P(Rows, D7_WhoDoesNotAnswerGoesWithItsMac) {
  Settings s = dynamic();
  s.age_time = 30s;
  Exchange x(*path, s);
  x.announce(2);
  x.h(2).alive = false;
  x.forget();
  x.advance(31s);
  EXPECT_THAT(x.routes(), Contains("-M2/192.0.2.2"));
  EXPECT_THAT(x.routes(), Contains("-M2"));
  EXPECT_THAT(x.flushed(), ElementsAre(FlushMac{mac(2), net::IfIndex{2}}));
  EXPECT_FALSE(x.binding(v4(2)));
  // One address silent, another alive: the MAC stays.
  Exchange half(*path, s);
  half.h(2).answers = {v4(2)};
  half.announce(2);
  half.advance(31s);
  EXPECT_FALSE(half.binding(v6(2)));
  EXPECT_THAT(half.flushed(), IsEmpty());
}

TEST_P(Rows, D8_ActiveOnlyWhileTheMacIsThere) {
  Exchange x(*path, dynamic());
  x.announce(2);
  x.advance(2s);
  x.forget();
  x.age_out(x.h(2));
  EXPECT_THAT(x.routes(), Contains("-M2/192.0.2.2"));
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(2))), Verdict::Flooded);
  EXPECT_FALSE(x.fast().contains(v4(2)));
  x.bring_up({2});
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));
}

TEST_P(Rows, D9_RefreshIsSpread) {
  Settings s = dynamic();
  s.prefixes = {net::IpPrefix::parse("10.0.0.0/16").value()};
  s.max_bindings_per_port = 20000;
  s.new_bindings_per_second = 0;
  s.announcements_per_second = 1000;
  s.flood_gratuitous_arp = FloodTo{true, true};
  s.age_time = 3000s;
  Exchange x(*path, s, 1);
  for (uint32_t i = 1; i <= 2000; ++i)
    x.send(x.h(2), arp_claim(2, net::IpAddress::v4(0x0a000000u + i)));
  x.forget();
  // All learned at once; the first round is spread over 30 percent of 1000 s: 6 to 7 a second.
  x.advance(840s);
  std::size_t most = 0, total = 0;
  for (int second = 0; second < 330; ++second) {
    x.h(2).heard.clear();
    x.advance(1s);
    std::size_t first = 0;
    for (const net::Bytes& frame : x.h(2).heard)
      if (decode_arp(frame)->source == pe_mac(0)) ++first;
    most = std::max(most, first);
    total += first;
  }
  EXPECT_GE(total, 5900u);  // three questions each
  EXPECT_LE(most, 60u);
}

// --- E

TEST_P(Rows, E1_KnobsTowardsTheCore) {
  for (const bool unknown : {false, true})
    for (const bool gratuitous : {false, true}) {
      Settings s = dynamic();
      s.flood_unknown_arp = s.flood_unknown_ns = FloodTo{unknown, true};
      s.flood_gratuitous_arp = s.flood_router_na = s.flood_host_na = FloodTo{gratuitous, true};
      Exchange x(*path, s);
      x.bring_up({1});
      x.send(x.h(1), arp_request(1, v4(77)));
      x.send(x.h(1), ns(1, v6(77)));
      EXPECT_EQ(x.core().size(), unknown ? 2u : 0u);
      x.forget();
      x.send(x.h(1), arp_claim(1, v4(1)));
      x.send(x.h(1), na(1, v6(1)));
      EXPECT_EQ(x.core().size(), gratuitous ? 2u : 0u);
      EXPECT_EQ(x.h(2).heard.size(), 2u);
    }
}

TEST_P(Rows, E2_KnobsTowardsLocalPorts) {
  for (const bool unknown : {false, true})
    for (const bool router : {false, true})
      for (const bool host : {false, true}) {
        Settings s = dynamic();
        s.announcements_per_second = 0;
        s.flood_unknown_arp = s.flood_unknown_ns = FloodTo{true, unknown};
        s.flood_router_na = FloodTo{true, router};
        s.flood_host_na = FloodTo{true, host};
        Exchange x(*path, s);
        x.send(x.h(1), arp_request(1, v4(77)));
        x.send(x.h(1), ns(1, v6(77)));
        EXPECT_EQ(x.h(2).heard.size(), unknown ? 2u : 0u);
        x.forget();
        x.send(x.h(1), na(1, v6(1)));
        EXPECT_EQ(x.h(2).heard.size(), router ? 1u : 0u);
        x.forget();
        NdFrame of_host = na(1, v6(11));
        of_host.router = false;
        x.send(x.h(1), of_host);
        EXPECT_EQ(x.h(2).heard.size(), host ? 1u : 0u);
      }
}

// E3: what a config check needs to know is in the settings: nothing is suppressed by default where
// bindings are learned.
TEST_P(Rows, E3_LearningProfilesDoNotSuppressByDefault) {
  for (const Profile profile : {Profile::Dynamic, Profile::Hybrid}) {
    const Settings s = Lan::settings(profile);
    for (const FloodTo to :
         {s.unknown_arp(), s.unknown_ns(), s.gratuitous_arp(), s.router_na(), s.host_na()})
      EXPECT_EQ(to, (FloodTo{true, true}));
  }
}

TEST_P(Rows, E4_ProfilesThatFlood) {
  for (const Profile profile : {Profile::Dynamic, Profile::Static}) {
    Settings s = dynamic();
    s.profile = profile;
    s.announcements_per_second = 0;
    Exchange x(*path, s);
    x.send(x.h(1), arp_request(1, v4(77)));
    EXPECT_EQ(x.h(3).heard.size(), profile == Profile::Dynamic ? 1u : 0u);
  }
}

TEST_P(Rows, E5_FloodedOnceToEachOtherPort) {
  Settings s = dynamic();
  s.announcements_per_second = 0;
  Exchange x(*path, s);
  x.bring_up({1});
  x.send(x.h(1), arp_request(1, v4(77)));
  EXPECT_EQ(x.h(1).heard.size(), 0u);
  EXPECT_EQ(x.h(2).heard.size(), 1u);
  EXPECT_EQ(x.h(3).heard.size(), 1u);
  EXPECT_EQ(x.core().size(), 1u);
}

TEST_P(Rows, E6_AChangeReachesCachesEverywhere) {
  for (const bool floods : {true, false}) {
    Settings s = provisioned();
    s.bindings[0].macs = {mac(1), mac(11)};
    s.flood_gratuitous_arp = FloodTo{floods, floods};
    Exchange x(*path, s);
    x.bring_up({1, 2, 3});
    x.advance(5s);
    x.forget();
    x.learn_mac(x.h(1), mac(11));
    x.send(x.h(1), arp_claim(11, v4(1)));
    x.advance(1s);
    EXPECT_GE(announcements_heard(x.h(2), v4(1), mac(11)), 1u);
    EXPECT_GE(announcements_heard(x.h(3), v4(1), mac(11)), 1u);
  }
}

// --- F

TEST_P(Rows, F1_MovesWithinTheWindow) {
  const auto moves = [&](int n, net::Duration apart) {
    Settings s = dynamic();
    s.duplicates.confirm_wait = 1s;
    Exchange x(*path, s);
    x.bring_up({1, 2});
    x.send(x.h(1), arp_claim(1, kContested));
    for (int i = 0; i < n; ++i) {
      const auto who = static_cast<uint8_t>(i % 2 == 0 ? 2 : 1);
      x.send(x.h(who), arp_claim(who, kContested));
      x.advance(apart);  // nobody answers our question: the new one has it
    }
    return x.count_alarms(AlarmKind::DuplicateIp);
  };
  EXPECT_EQ(moves(4, 5s), 0u);
  EXPECT_EQ(moves(5, 5s), 1u);
  EXPECT_EQ(moves(5, 46s), 0u);
}

TEST_P(Rows, F2_StaticAndImmutableTakeNoPart) {
  Exchange x(*path, provisioned(Profile::Hybrid));
  x.bring_up({1, 2, 3});
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.60").nd(false, false, true));
  x.advance(5s);
  x.forget();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(1))), Verdict::NotOwner);
    EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(60))), Verdict::NotOwner);
  }
  EXPECT_EQ(x.count_alarms(AlarmKind::NotOwner), 2u);
  std::size_t duplicates = 0;
  x.responder().for_each_duplicate([&](const DuplicateView&) { ++duplicates; });
  EXPECT_EQ(duplicates, 0u);
  EXPECT_EQ(x.resolve(2, v4(1)), mac(1));
  EXPECT_EQ(x.resolve(2, v4(60)), mac(9));
}

TEST_P(Rows, F3_TheFormerOwnerIsAsked) {
  Exchange x(*path, dynamic());
  x.bring_up({1, 2});
  x.send(x.h(1), arp_claim(1, kContested));
  x.send(x.h(1), na(1, v6(50)));
  x.forget();
  x.send(x.h(2), arp_claim(2, kContested));
  x.send(x.h(2), na(2, v6(50)));
  const auto arp = asked_by(x.h(1), 0, kContested), nd = asked_by(x.h(1), 0, v6(50));
  ASSERT_EQ(arp.size(), 1u);
  ASSERT_EQ(nd.size(), 1u);
  EXPECT_EQ(net::MacAddress::from_bytes(arp[0]), mac(1));
  EXPECT_TRUE(decode_arp(arp[0])->sender_ip.is_unspecified());
  EXPECT_EQ(net::MacAddress::from_bytes(nd[0]), mac(1));
  EXPECT_TRUE(decode_nd(nd[0])->from.is_link_local());
  EXPECT_THAT(asked_by(x.h(2), 0, kContested), IsEmpty());
  x.advance(29s);
  EXPECT_TRUE(x.binding(kContested)->pending);
  x.advance(2s);
  EXPECT_EQ(x.binding(kContested)->mac, mac(2));
  EXPECT_EQ(x.resolve(1, kContested), mac(2));
}

TEST_P(Rows, F4_TwoThatBothAnswerAreADuplicate) {
  Exchange x(*path, dynamic());
  x.h(1).answers = x.h(2).answers = {kContested};
  x.bring_up({1, 2});
  x.send(x.h(1), arp_claim(1, kContested));
  x.send(x.h(2), arp_claim(2, kContested));
  x.advance(180s);
  EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp), 1u);
  EXPECT_FALSE(asked_by(x.h(2), 0, kContested).empty());
}

TEST_P(Rows, F4_TheChallengerIsSilent) {
  Exchange x(*path, dynamic());
  x.h(1).answers = {kContested};
  x.bring_up({1, 2});
  x.send(x.h(1), arp_claim(1, kContested));
  x.send(x.h(2), arp_claim(2, kContested));
  x.advance(10s);
  EXPECT_FALSE(x.binding(kContested)->pending);
  EXPECT_EQ(x.binding(kContested)->mac, mac(1));
  EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp), 0u);
}

namespace {

// 192.0.2.50 is frozen, h1 and h2 claim it.
std::unique_ptr<Exchange> frozen(Path& path, Settings s, std::size_t pes = 2) {
  auto x = std::make_unique<Exchange>(path, s, pes);
  x->bring_up({1, 2, 3, 4});
  x->h(1).answers = x->h(2).answers = {kContested};
  x->send(x->h(1), arp_claim(1, kContested));
  x->send(x->h(2), arp_claim(2, kContested));
  x->advance(10s);
  return x;
}

}  // namespace

// However many claim it at once, the owner has its time to answer, and keeps the address.
TEST_P(Rows, F4_ABurstOfClaimantsFreezesNothing) {
  Settings s = dynamic();
  s.new_bindings_per_second = 1000;
  Exchange x(*path, s);
  x.h(2).answers = {kContested};
  x.bring_up({1, 2});
  x.send(x.h(2), arp_claim(2, kContested));
  for (uint8_t n = 10; n < 20; ++n) x.send(x.h(1), arp_claim(n, kContested));
  EXPECT_FALSE(x.binding(kContested)->duplicate);
  x.advance(10s);
  EXPECT_FALSE(x.binding(kContested)->duplicate);
  EXPECT_EQ(x.binding(kContested)->mac, mac(2));
}

TEST_P(Rows, F5_FrozenAgainstLearningAndEvpn) {
  Settings s = dynamic();
  auto x = frozen(*path, s, 1);
  EXPECT_TRUE(x->binding(kContested)->duplicate);
  EXPECT_EQ(x->send(x->h(2), arp_claim(2, kContested)), Verdict::Duplicate);
  x->remote_route(0, harness::Remote(9, 9, "192.0.2.50"));
  EXPECT_FALSE(x->resolve(4, kContested));
  EXPECT_FALSE(x->fast().contains(kContested));
  s.bindings = {fixed(kContested, {mac(1)}, "m1")};
  x->reconfigure(s);
  EXPECT_EQ(x->resolve(2, kContested), mac(1));
  EXPECT_EQ(x->count_alarms(AlarmKind::DuplicateOver), 1u);
}

TEST_P(Rows, F6_NotAnsweredAndTold) {
  auto x = frozen(*path, dynamic());
  EXPECT_EQ(x->count_alarms(AlarmKind::DuplicateIp), 1u);
  x->forget();
  EXPECT_EQ(x->send(x->h(1), arp_request(1, kContested)), Verdict::Duplicate);
  EXPECT_EQ(answers_heard(x->h(1), kContested), 0u);
  EXPECT_THAT(x->core(), IsEmpty());
}

TEST_P(Rows, F7_AntiSpoofMacEverywhere) {
  Settings s = dynamic();
  s.duplicates.anti_spoof_mac = kAntiSpoof;
  auto x = frozen(*path, s);
  x->advance(2s);
  EXPECT_GE(announcements_heard(x->h(1), kContested, kAntiSpoof), 1u);
  EXPECT_GE(announcements_heard(x->h(2), kContested, kAntiSpoof), 1u);
  EXPECT_GE(announcements_heard(x->h(3), kContested, kAntiSpoof), 1u);
  EXPECT_EQ(count_text(x->routes(), "/192.0.2.50 MM:0,sticky"), 1u);
  EXPECT_EQ(x->resolve(3, kContested), kAntiSpoof);
  // A claimant behind the other PE is refused as well.
  EXPECT_EQ(x->send(x->h(4), arp_claim(4, kContested)), Verdict::Duplicate);
  // Frames to it are dropped by the data path, counted with port and MAC.
  net::Bytes data(60);
  std::ranges::copy(kAntiSpoof.bytes(), data.begin());
  std::ranges::copy(mac(2).bytes(), data.begin() + 6);
  x->responder().trapped_frame(net::IfIndex{2}, data, x->now);
  const auto seen = x->offenders(OffenderKind::AntiSpoof);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].port, net::IfIndex{2});
  EXPECT_EQ(seen[0].mac, mac(2));
}

TEST_P(Rows, F8_EndsByTimeOrByAnOperator) {
  Settings s = dynamic();
  s.duplicates.hold_down = 20s;
  s.duplicates.anti_spoof_mac = kAntiSpoof;
  auto x = frozen(*path, s);
  x->h(2).alive = false;
  x->forget();
  x->advance(25s);
  EXPECT_EQ(x->count_alarms(AlarmKind::DuplicateOver), 1u);
  EXPECT_EQ(count_text(x->routes(), "/192.0.2.50"), 1u);  // the anti-spoof route is withdrawn
  x->send(x->h(1), arp_claim(1, kContested));
  EXPECT_EQ(x->resolve(2, kContested).has_value() || x->binding(kContested)->mac == mac(1), true);
  EXPECT_EQ(x->resolve(3, kContested), mac(1));
  auto y = frozen(*path, s);
  y->run_commands(y->responder().clear_duplicate(kContested, y->now));
  EXPECT_FALSE(y->binding(kContested) && y->binding(kContested)->duplicate);
  EXPECT_FALSE(y->responder().clear_duplicate(kContested, y->now).first);
}

TEST_P(Rows, F9_Configurable) {
  Settings s = dynamic();
  s.duplicates.moves = 2;
  auto x = frozen(*path, s);
  EXPECT_EQ(x->count_alarms(AlarmKind::DuplicateIp), 1u);
  s.duplicates.moves = 50;
  auto y = frozen(*path, s);
  EXPECT_EQ(y->count_alarms(AlarmKind::DuplicateIp), 0u);
  s.duplicates.enabled = false;
  auto z = frozen(*path, s);
  EXPECT_EQ(z->binding(kContested)->mac, mac(2));
  EXPECT_FALSE(z->binding(kContested)->pending);
}

TEST_P(Rows, F10_OnlyOverridingAdvertisementsCount) {
  for (const bool anycast : {false, true}) {
    Settings s = dynamic();
    s.anycast = anycast;
    Exchange x(*path, s);
    x.bring_up({1, 2});
    x.send(x.h(1), na(1, v6(50)));
    for (int i = 0; i < 10; ++i) {
      NdFrame weak = na(2, v6(50));
      weak.override_flag = anycast;
      x.send(x.h(2), weak);
      x.advance(1s);
    }
    EXPECT_FALSE(x.binding(v6(50))->pending);
    EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp), 0u);
  }
}

TEST_P(Rows, F11_MovesBetweenPesCount) {
  Settings s = dynamic();
  s.duplicates.confirm_wait = 1s;
  Exchange x(*path, s);
  x.bring_up({1, 3});
  x.send(x.h(1), arp_claim(1, kContested));
  for (int i = 0; i < 6; ++i) {
    const auto who = static_cast<uint8_t>(i % 2 == 0 ? 3 : 1);
    x.send(x.h(who), arp_claim(who, kContested));
    x.advance(5s);
  }
  EXPECT_GE(x.count_alarms(AlarmKind::DuplicateIp, 0) + x.count_alarms(AlarmKind::DuplicateIp, 1),
            1u);
}

TEST_P(Rows, F11_TwoThatAnswerBehindTwoPes) {
  Exchange x(*path, dynamic());
  x.bring_up({1, 3});
  x.h(1).answers = x.h(3).answers = {kContested};
  x.send(x.h(1), arp_claim(1, kContested));
  x.send(x.h(3), arp_claim(3, kContested));
  x.advance(30s);
  EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp, 1), 1u);
}

TEST_P(Rows, F12_AMacThatMovesTooOftenIsFrozen) {
  Exchange x(*path, dynamic());
  for (int i = 0; i < 6; ++i) x.learn_mac(x.h(i % 2 == 0 ? 1 : 2), mac(77));
  const auto alarms = x.mac_alarms();
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].kind, evpn::AlarmKind::DuplicateMac);
}

TEST_P(Rows, F13_AStickyMacElsewhereIsTold) {
  Exchange x(*path, dynamic());
  for (const auto& action : x.vrf().local_mac(mac(1), net::IfIndex{1}, true, x.now))
    static_cast<void>(action);
  x.learn_mac(x.h(2), mac(1));
  ASSERT_EQ(x.mac_alarms().size(), 1u);
  EXPECT_EQ(x.mac_alarms()[0].kind, evpn::AlarmKind::StickyMacElsewhere);
}

TEST_P(Rows, F14_OneAlarmThatNamesBoth) {
  auto x = frozen(*path, dynamic());
  for (int i = 0; i < 20; ++i) x->send(x->h(2), arp_claim(2, kContested));
  std::vector<Alarm> seen;
  for (const Alarm& alarm : x->alarms())
    if (alarm.kind == AlarmKind::DuplicateIp) seen.push_back(alarm);
  ASSERT_EQ(seen.size(), 1u);
  const Alarm& alarm = seen[0];
  EXPECT_EQ((std::set{alarm.bound, alarm.seen}), (std::set{mac(1), mac(2)}));
  EXPECT_EQ((std::set{alarm.bound_at.port, alarm.seen_at.port}),
            (std::set{net::IfIndex{1}, net::IfIndex{2}}));
  EXPECT_EQ(alarm.number, 5u);
  EXPECT_LT(alarm.first, alarm.last);
}
