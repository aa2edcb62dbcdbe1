// SPDX-License-Identifier: GPL-2.0-or-later
// The ten design calls of section 0.3, and appendix B: the states of the sponge.
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

// Asks until the address is dead.
void kill(Exchange& x, const net::IpAddress& ip) {
  for (int i = 0; i < 40; ++i) {
    const auto who = static_cast<uint8_t>(1 + i % 2);
    if (ip.is_v4())
      x.send(x.h(who), arp_request(who, ip));
    else
      x.send(x.h(who), ns(who, ip));
    x.advance(400ms);
  }
  x.advance(10s);
}
std::unique_ptr<Exchange> ready(Path& path, const Settings& s) {
  auto x = std::make_unique<Exchange>(path, s, 1);
  x->bring_up({1, 2, 3});
  x->advance(10s);
  x->forget();
  return x;
}
net::Bytes tcp(const net::IpAddress& to, uint8_t from, uint16_t port, uint8_t flags) {
  net::Bytes frame(14 + (to.is_v4() ? 20 : 40) + 20);
  std::ranges::copy(kSpongeMac.bytes(), frame.begin());
  std::ranges::copy(mac(from).bytes(), frame.begin() + 6);
  std::size_t l4;
  if (to.is_v4()) {
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 6;
    std::ranges::copy(to.bytes(), frame.begin() + 30);
    l4 = 34;
  } else {
    frame[12] = 0x86;
    frame[13] = 0xdd;
    frame[14] = 0x60;
    frame[20] = 6;
    std::ranges::copy(to.bytes(), frame.begin() + 38);
    l4 = 54;
  }
  frame[l4 + 2] = static_cast<uint8_t>(port >> 8);
  frame[l4 + 3] = static_cast<uint8_t>(port);
  frame[l4 + 13] = flags;
  return frame;
}

}  // namespace

TEST_P(Rows, Call1_OverrideForOwnersButNotForTheSponge) {
  auto x = ready(*path, sponging());
  x->send(x->h(1), ns(1, v6(2)));
  ASSERT_FALSE(x->h(1).heard.empty());
  EXPECT_TRUE(decode_nd(x->h(1).heard.back())->override_flag);
  kill(*x, v6(77));
  x->forget();
  EXPECT_EQ(x->send(x->h(1), ns(1, v6(77))), Verdict::Sponged);
  ASSERT_EQ(x->h(1).heard.size(), 1u);
  const auto nd = decode_nd(x->h(1).heard[0]);
  ASSERT_TRUE(nd);
  EXPECT_EQ(nd->link_layer, kSpongeMac);
  EXPECT_FALSE(nd->override_flag);
  EXPECT_TRUE(nd->solicited);
}

TEST_P(Rows, Call2_KnownOptionsAreConfigurable) {
  Settings s = provisioned();
  NdFrame nd = dad_ns(1, v6(2));
  nd.options.push_back({kOptionNonce, net::Bytes(6, 1)});
  auto x = ready(*path, s);
  EXPECT_EQ(x->send(x->h(1), nd), Verdict::Answered);
  s.known_options = {1};
  auto strict = ready(*path, s);
  EXPECT_EQ(strict->send(strict->h(1), nd), Verdict::UnknownOption);
  s.known_options = {1, 14, 200};
  nd.options.push_back({200, net::Bytes(6, 1)});
  auto wide = ready(*path, s);
  EXPECT_EQ(wide->send(wide->h(1), nd), Verdict::Answered);
}

TEST_P(Rows, Call3_AProbeFromTheListAsksTheFormerOwner) {
  Settings s = provisioned();
  s.bindings[0].macs = s.bindings[1].macs = {mac(1), mac(11)};
  auto x = ready(*path, s);
  EXPECT_EQ(x->send(x->h(1), arp_probe(11, v4(1))), Verdict::OwnerAsked);
  EXPECT_EQ(answers_heard(x->h(1), v4(1)), 0u);
  ASSERT_EQ(asked_by(x->h(1), 0, v4(1)).size(), 1u);
  EXPECT_EQ(net::MacAddress::from_bytes(asked_by(x->h(1), 0, v4(1))[0]), mac(1));
  // It is there: nothing changes, and it is not asked at once again.
  x->h(1).answers = {v4(1)};
  x->advance(5s);
  EXPECT_EQ(x->binding(v4(1))->mac, mac(1));
  EXPECT_FALSE(x->binding(v4(1))->pending);
  x->forget();
  x->send(x->h(1), arp_probe(11, v4(1)));
  EXPECT_THAT(asked_by(x->h(1), 0, v4(1)), IsEmpty());
}

TEST_P(Rows, Call4_NoQuestionWhileSomebodyProbes) {
  Settings s = dynamic();
  s.age_time = 30s;
  Exchange x(*path, s, 1);
  x.send(x.h(2), arp_claim(2, v4(2)));
  x.advance(8s);
  x.forget();
  for (int i = 0; i < 4; ++i) {  // within ten seconds of a probe none; all of ours are unicast
    x.send(x.h(1), arp_probe(1, v4(2)));
    x.advance(3s);
    EXPECT_THAT(asked_by(x.h(2), 0, v4(2)), IsEmpty());
  }
  x.advance(9s);
  for (const net::Bytes& frame : asked_by(x.h(2), 0, v4(2)))
    EXPECT_EQ(net::MacAddress::from_bytes(frame), mac(2));
  EXPECT_FALSE(asked_by(x.h(2), 0, v4(2)).empty());
}

TEST_P(Rows, Call5_OverrideOfPeersThatDontKnowIt) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").nd(true, false, false));  // FRR
  EXPECT_FALSE(x.binding(v6(99))->flags.override_flag);
  x.advance(2s);
  x.forget();
  x.send(x.h(1), ns(1, v6(99)));
  ASSERT_EQ(x.h(1).heard.size(), 1u);
  EXPECT_TRUE(decode_nd(x.h(1).heard[0])->override_flag);
}

TEST_P(Rows, Call6_EarlyEndsOfAConfirmation) {
  const auto contest = [&](Settings s) {
    auto x = std::make_unique<Exchange>(*path, s, 1);
    x->bring_up({1, 2});
    x->send(x->h(1), arp_claim(1, v4(50)));
    x->send(x->h(2), arp_claim(2, v4(50)));
    EXPECT_TRUE(x->binding(v4(50))->pending);
    return x;
  };
  auto down = contest(dynamic());
  down->cut(down->h(1));
  EXPECT_EQ(down->binding(v4(50))->mac, mac(2));
  EXPECT_FALSE(down->binding(v4(50))->pending);
  auto gone = contest(dynamic());
  gone->age_out(gone->h(1));
  EXPECT_EQ(gone->binding(v4(50))->mac, mac(2));
  // A provisioned MAC: three questions a second apart.
  Settings s = dynamic();
  s.bindings = {fixed(v4(2), {mac(2)}, "m2")};
  auto listed = contest(s);
  listed->advance(2900ms);
  EXPECT_TRUE(listed->binding(v4(50))->pending);
  EXPECT_EQ(asked_by(listed->h(1), 0, v4(50)).size(), 3u);
  listed->advance(200ms);
  EXPECT_EQ(listed->binding(v4(50))->mac, mac(2));
  // Anybody: 30 s.
  auto other = contest(dynamic());
  other->advance(29900ms);
  EXPECT_TRUE(other->binding(v4(50))->pending);
  other->advance(200ms);
  EXPECT_EQ(other->binding(v4(50))->mac, mac(2));
}

TEST_P(Rows, Call7_GratuitousAdvertisementsWithoutOverrideChangeNothing) {
  Exchange x(*path, dynamic());
  x.send(x.h(1), na(1, v6(20)));
  NdFrame grand = na(2, v6(20));
  grand.override_flag = false;
  grand.to = ip("ff02::2");
  grand.destination = multicast_mac(grand.to);
  x.send(x.h(2), grand);
  EXPECT_EQ(x.binding(v6(20))->mac, mac(1));
  EXPECT_EQ(asked_by(x.h(2), 0, v6(20)).size(), 1u);
}

TEST_P(Rows, Call8_LinkLocalAddresses) {
  const auto made = eui64_link_local(mac(2));
  const auto chosen = ip("fe80::2:2");
  struct Case {
    LinkLocal policy;
    bool derives, learns;
  };
  for (const Case c : {Case{LinkLocal::Both, true, true}, Case{LinkLocal::Eui64, true, false},
                       Case{LinkLocal::Learn, false, true}, Case{LinkLocal::None, false, false}}) {
    Settings s = provisioned();
    s.link_local = c.policy;
    auto x = ready(*path, s);
    EXPECT_EQ(x->resolve(1, made).has_value(), c.derives);
    x->send(x->h(2), na(2, chosen));
    EXPECT_EQ(x->resolve(1, chosen).has_value(), c.learns);
    x->send(x->h(2), na(7, ip("fe80::7")));  // not a provisioned MAC
    EXPECT_FALSE(x->binding(ip("fe80::7")));
    x->send(x->h(2), na(2, ip("fe80::2:3")));
    EXPECT_EQ(x->send(x->h(2), na(2, ip("fe80::2:4"))) == Verdict::BindingLimit, c.learns);
  }
}

TEST_P(Rows, Call9_ThreePoliciesForUnassignedAddresses) {
  Settings s = provisioned(Profile::Hybrid);
  s.unassigned = {{net::IpPrefix::parse("192.0.2.0/24").value(), Unassigned::Drop},
                  {net::IpPrefix::parse("192.0.2.64/26").value(), Unassigned::Flood},
                  {net::IpPrefix::parse("192.0.2.128/25").value(), Unassigned::Sponge},
                  {net::IpPrefix::parse("2001:db8:1::/64").value(), Unassigned::Drop}};
  s.sponge.queue = 20;
  s.sponge.mac = kSpongeMac;
  auto x = ready(*path, s);
  EXPECT_EQ(x->send(x->h(1), arp_request(1, v4(20))), Verdict::Unassigned);
  EXPECT_EQ(x->send(x->h(1), arp_request(1, v4(70))), Verdict::Flooded);
  EXPECT_EQ(x->send(x->h(1), arp_request(1, v4(200))), Verdict::Flooded);
  EXPECT_EQ(x->send(x->h(1), ns(1, v6(77))), Verdict::Unassigned);
  kill(*x, v4(200));
  EXPECT_EQ(x->resolve(1, v4(200)), kSpongeMac);
}

TEST_P(Rows, Call10_AntiSpoofMacDoesNotMove) {
  Settings s = dynamic();
  s.duplicates.anti_spoof_mac = kAntiSpoof;
  Exchange x(*path, s);
  // Both PEs, and a third one, say so for many addresses.
  for (std::size_t pe = 0; pe < 2; ++pe)
    for (int round = 0; round < 10; ++round) {
      harness::Remote route(9, 1, "192.0.2.50");
      route.route.mac = kAntiSpoof;
      route.seq(static_cast<uint32_t>(round), true);
      x.remote_route(pe, route);
      x.learn_mac(x.h(1), kAntiSpoof);
    }
  for (const auto& alarm : x.mac_alarms()) EXPECT_NE(alarm.kind, evpn::AlarmKind::DuplicateMac);
  EXPECT_EQ(harness::text(x.vrf().place_of(kAntiSpoof)), "nowhere");
  EXPECT_EQ(x.resolve(2, v4(50)), kAntiSpoof);
  EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(50))), Verdict::Duplicate);
  EXPECT_EQ(x.count_alarms(AlarmKind::DuplicateIp), 0u);
}

// --- appendix B

TEST_P(Rows, Sponge_StatesAndThresholds) {
  auto x = ready(*path, sponging());
  const auto ask = [&](int n, net::Duration apart) {
    for (int i = 0; i < n; ++i) {
      const auto who = static_cast<uint8_t>(1 + i % 3);
      x->send(x->h(who), arp_request(who, v4(77)));
      x->advance(apart);
    }
  };
  // Too slow: 40 a minute.
  ask(60, 1500ms);
  EXPECT_EQ(x->sponged(v4(77))->state, SpongeState::Alive);
  // Fast enough.
  for (int i = 0; i < 40 && x->sponged(v4(77))->state == SpongeState::Alive; ++i) ask(1, 500ms);
  EXPECT_EQ(x->sponged(v4(77))->state, SpongeState::Pending);
  x->forget();
  x->advance(10s);
  EXPECT_EQ(x->sponged(v4(77))->state, SpongeState::Dead);
  EXPECT_EQ(x->count_alarms(AlarmKind::AddressDead), 1u);
  // Five questions of our own, to all.
  EXPECT_LE(asked_by(x->h(3), 0, v4(77)).size(), 5u);
  EXPECT_GE(asked_by(x->h(3), 0, v4(77)).size(), 4u);  // one before forget()
  x->forget();
  EXPECT_EQ(x->resolve(1, v4(77)), kSpongeMac);
  EXPECT_THAT(x->h(2).heard, IsEmpty());
  EXPECT_EQ(x->sponged(v4(77))->answers, 1u);
  EXPECT_EQ(x->sponged(v4(77))->last_asker, mac(1));
  EXPECT_FALSE(x->fast().contains(v4(77)));
}

TEST_P(Rows, Sponge_OneFastAskerKillsNothing) {
  auto x = ready(*path, sponging());
  for (int i = 0; i < 19; ++i) {
    x->send(x->h(1), arp_request(1, v4(77)));
    x->advance(10ms);
  }
  EXPECT_LE(x->sponged(v4(77))->queued, 1u);
  // Without protection each counts, and nothing is lost of the queue.
  Settings s = sponging();
  s.sponge.flood_protection = 0;
  auto open = ready(*path, s);
  for (int i = 0; i < 19; ++i) {
    open->send(open->h(1), arp_request(1, v4(77)));
    open->advance(10ms);
  }
  EXPECT_EQ(open->sponged(v4(77))->queued, 19u);
}

TEST_P(Rows, Sponge_ProbesOfDeadAddressesAreNotAnswered) {
  auto x = ready(*path, sponging());
  kill(*x, v4(77));
  kill(*x, v6(77));
  x->forget();
  EXPECT_NE(x->send(x->h(1), arp_probe(1, v4(77))), Verdict::Sponged);
  EXPECT_NE(x->send(x->h(1), dad_ns(1, v6(77))), Verdict::Sponged);
  EXPECT_EQ(answers_heard(x->h(1), v4(77)) + answers_heard(x->h(1), v6(77)), 0u);
  EXPECT_EQ(x->sponged(v4(77))->state, SpongeState::Pending);
  EXPECT_EQ(x->sponged(v6(77))->state, SpongeState::Pending);
}

TEST_P(Rows, Sponge_TheOwnerReturnsAndAllAreTold) {
  for (const bool six : {false, true}) {
    auto x = ready(*path, sponging());
    const net::IpAddress target = six ? v6(77) : v4(77);
    kill(*x, target);
    x->resolve(1, target);
    x->advance(2s);
    x->forget();
    if (six)
      x->send(x->h(3), na(3, target));
    else
      x->send(x->h(3), arp_request(3, v4(1), target));
    x->advance(2s);
    EXPECT_EQ(x->sponged(target)->state, SpongeState::Alive);
    EXPECT_EQ(x->count_alarms(AlarmKind::AddressBack), 1u);
    EXPECT_GE(announcements_heard(x->h(1), target, mac(3)), 1u);
    EXPECT_GE(announcements_heard(x->h(2), target, mac(3)), 1u);
    EXPECT_EQ(x->resolve(1, target), mac(3));
  }
}

TEST_P(Rows, Sponge_AClaimRevivesNothingWhereNothingIsLearned) {
  const net::IpAddress target = v4(77);
  auto x = ready(*path, sponging(Profile::Static));
  kill(*x, target);
  x->forget();
  x->send(x->h(3), arp_claim(3, target));
  x->advance(2s);
  EXPECT_EQ(x->sponged(target)->state, SpongeState::Dead);
  EXPECT_EQ(x->count_alarms(AlarmKind::AddressBack), 0u);
  EXPECT_EQ(announcements_heard(x->h(1), target, mac(3)), 0u);
}

TEST_P(Rows, Sponge_SpoofedSignsOfLifeRevivesNothing) {
  auto x = ready(*path, sponging());
  kill(*x, v4(77));
  ArpFrame forged = arp_request(3, v4(1), v4(77));
  forged.source = mac(7);
  EXPECT_EQ(x->send(x->h(3), forged), Verdict::SpoofedSender);
  EXPECT_EQ(x->sponged(v4(77))->state, SpongeState::Dead);
}

TEST_P(Rows, Sponge_LearningObserveAnnounceAndAge) {
  Settings s = sponging();
  s.sponge.learning = 3600s;
  auto learning = ready(*path, s);
  kill(*learning, v4(77));
  EXPECT_EQ(learning->sponged(v4(77))->state, SpongeState::Alive);
  s = sponging();
  s.sponge.observe = true;
  auto observe = ready(*path, s);
  kill(*observe, v4(77));
  EXPECT_EQ(observe->sponged(v4(77))->state, SpongeState::Dead);
  EXPECT_EQ(observe->send(observe->h(1), arp_request(1, v4(77))), Verdict::Flooded);
  s = sponging();
  s.sponge.announce = true;
  auto announce = ready(*path, s);
  kill(*announce, v4(77));
  EXPECT_EQ(announcements_heard(announce->h(3), v4(77), kSpongeMac), 1u);
  announce->advance(700s);
  EXPECT_FALSE(announce->sponged(v4(77)));
}

TEST_P(Rows, Sponge_SweepAsksForSilentAddresses) {
  Settings s = sponging();
  s.unassigned = {{net::IpPrefix::parse("192.0.2.0/28").value(), Unassigned::Sponge}};
  s.sponge.sweep_interval = 60s;
  s.sponge.sweep_silence = 100s;
  s.age_time = 0s;
  s.bindings.resize(4);
  auto x = std::make_unique<Exchange>(*path, s, 1);  // nothing but the sweep itself wakes it
  x->bring_up({1, 2, 3});
  x->advance(200s);
  EXPECT_GE(asked_by(x->h(3), 0, v4(9)).size(), 1u);
  EXPECT_THAT(asked_by(x->h(2), 0, v4(1)), IsEmpty());  // bound
  EXPECT_THAT(asked_by(x->h(2), 0, v4(77)), IsEmpty());
}

TEST_P(Rows, Sponge_CommandsOfOperators) {
  auto x = ready(*path, sponging());
  x->run_commands(x->responder().set_sponge(v4(77), SpongeState::Static, x->now));
  EXPECT_EQ(x->resolve(1, v4(77)), kSpongeMac);
  x->advance(7200s);
  EXPECT_EQ(x->resolve(1, v4(77)), kSpongeMac);
  x->run_commands(x->responder().set_sponge(v4(77), SpongeState::Alive, x->now));
  EXPECT_FALSE(x->resolve(1, v4(77)));
  EXPECT_FALSE(x->responder().set_sponge(v4(1), SpongeState::Dead, x->now).first) << "bound";
  EXPECT_FALSE(x->responder().set_sponge(ip("198.51.100.1"), SpongeState::Dead, x->now).first);
  EXPECT_FALSE(x->responder().set_sponge(v4(78), SpongeState::Alive, x->now).first);
}

TEST_P(Rows, Sponge_BgpAttemptsOfDeadPeersAreCounted) {
  auto x = ready(*path, sponging());
  kill(*x, v4(77));
  kill(*x, v6(77));
  for (const net::IpAddress& to : {v4(77), v6(77)}) {
    x->responder().trapped_frame(net::IfIndex{1}, tcp(to, 1, 179, 0x02), x->now);
    x->responder().trapped_frame(net::IfIndex{1}, tcp(to, 1, 179, 0x12), x->now);  // SYN, ACK
    x->responder().trapped_frame(net::IfIndex{1}, tcp(to, 1, 80, 0x02), x->now);
    EXPECT_EQ(x->sponged(to)->bgp_attempts, 1u);
  }
  const auto dead = x->offenders(OffenderKind::DeadPeer);
  ASSERT_EQ(dead.size(), 2u);
  for (const OffenderView& one : dead) {
    EXPECT_EQ(one.port, net::IfIndex{1});
    EXPECT_EQ(one.mac, mac(1));
    EXPECT_EQ(one.count, 1u);
  }
  EXPECT_EQ(x->counter(Verdict::Trapped), 6u);
}

// --- operators

TEST_P(Rows, Explain_SaysWhatTheNextQuestionGets) {
  Settings s = sponging();
  auto x = ready(*path, s);
  const auto bound = x->responder().explain(v4(2), net::IfIndex{1}, x->now);
  EXPECT_EQ(bound.verdict, Verdict::Answered);
  EXPECT_EQ(bound.answer, mac(2));
  EXPECT_EQ(bound.database, "AS64502 Member 2: 02:00:00:00:00:02 on port m2");
  EXPECT_FALSE(bound.rules.empty());
  EXPECT_EQ(x->responder().explain(v4(2), net::IfIndex{2}, x->now).verdict, Verdict::SamePort);
  EXPECT_EQ(x->responder().explain(v4(77), net::IfIndex{1}, x->now).verdict, Verdict::Flooded);
  kill(*x, v4(77));
  const auto dead = x->responder().explain(v4(77), net::IfIndex{1}, x->now);
  EXPECT_EQ(dead.verdict, Verdict::Sponged);
  EXPECT_EQ(dead.answer, kSpongeMac);
  const auto asked = x->sponged(v4(77))->questions;
  EXPECT_EQ(x->sponged(v4(77))->questions, asked) << "explaining is not asking";
  EXPECT_EQ(x->responder().explain(ip("198.51.100.1"), std::nullopt, x->now).verdict,
            Verdict::OutsidePrefix);
}

TEST_P(Rows, Probe_AsksTheOwnerOrEverybody) {
  auto x = ready(*path, provisioned());
  x->run_commands(x->responder().probe(v4(2), x->now));
  EXPECT_EQ(asked_by(x->h(2), 0, v4(2)).size(), 1u);
  EXPECT_THAT(x->h(1).heard, IsEmpty());
  x->run_commands(x->responder().probe(v6(77), x->now));
  for (uint8_t n : Numbers{1, 2, 3}) EXPECT_EQ(asked_by(x->h(n), 0, v6(77)).size(), 1u);
  EXPECT_FALSE(x->responder().probe(ip("198.51.100.1"), x->now).first);
}
