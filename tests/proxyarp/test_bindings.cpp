// SPDX-License-Identifier: GPL-2.0-or-later
// The binding table: provisioned, learned and EVPN bindings against each other, MAC lists, ports,
// limits, ageing, reconfiguration, and what the data path and EVPN are told of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr NaFlags kV4{false, false};
constexpr net::IfIndex kCore{};

Settings with_bindings(std::vector<StaticBinding> bindings, Profile profile = Profile::Static) {
  Settings s = Lan::settings(profile);
  s.bindings = std::move(bindings);
  return s;
}
// Only what concerns one address: the static profile makes link-local ones besides.
std::vector<Action> about(const net::IpAddress& a, const std::vector<Action>& actions) {
  std::vector<Action> found;
  for (const Action& action : actions) {
    const bool mine = std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.ip; })
            return one.ip == a;
          else
            return true;
        },
        action);
    const auto* flood = std::get_if<Flood>(&action);
    if (flood && classify(flood->frame) == FrameClass::Nd && a.is_v4()) continue;
    if (mine) found.push_back(action);
  }
  return found;
}
Action announced(uint8_t owner, const net::IpAddress& a, std::optional<net::IfIndex> except) {
  return Flood{encode_arp(arp_announcement(a, mac(owner))), except, true, false};
}

}  // namespace

// --- provisioned

TEST(StaticBinding, OneMacAndAPortHereIsInUseAtOnce) {
  Lan lan(with_bindings(
      {fixed(v4(1), {mac(1)}, "alpha"), fixed(v4(5), {mac(5)}, "delta"), fixed(v4(6), {mac(6)})}));
  EXPECT_EQ(lan.up().at(v4(1)), (LocalBindingUp{v4(1), mac(1), kAlpha, kV4, true}));
  EXPECT_EQ(lan.fast().at(v4(1)), (SetFastEntry{v4(1), mac(1), kAlpha, kV4}));
  EXPECT_FALSE(lan.view(v4(5))->answered);  // no such port
  EXPECT_FALSE(lan.view(v4(6))->answered);  // no port named
  const auto view = lan.view(v4(1));
  EXPECT_EQ(view->kind, BindingKind::Static);
  EXPECT_TRUE(view->answered);
  EXPECT_TRUE(view->immutable);
  EXPECT_EQ(view->where, MacWhere::LocalPort);
  EXPECT_EQ(view->member_name, "Member");
  EXPECT_EQ(view->member_as, net::AsNumber{64500});
  EXPECT_THAT(view->allowed, ElementsAre(mac(1)));
  // Seen elsewhere, the port's own is not believed.
  EXPECT_THAT(about(v4(1), lan.place_remote(mac(1))),
              ElementsAre(Action(LocalBindingDown{v4(1), mac(1)}), Action(ClearFastEntry{v4(1)})));
  lan.place(mac(1), kBravo);
  EXPECT_FALSE(lan.view(v4(1))->answered);
  lan.place(mac(1), kAlpha);
  EXPECT_TRUE(lan.view(v4(1))->answered);
  EXPECT_TRUE(lan.books_agree());
}

TEST(StaticBinding, PortsComeAndGo) {
  Lan lan(with_bindings({fixed(v4(1), {mac(1)}, "alpha"), fixed(v4(5), {mac(5)}, "delta")}));
  EXPECT_THAT(about(v4(1), lan.port_down(kAlpha)),
              ElementsAre(Action(LocalBindingDown{v4(1), mac(1)}), Action(ClearFastEntry{v4(1)})));
  EXPECT_THAT(lan.port_down(kAlpha), IsEmpty());
  EXPECT_THAT(about(v4(5), lan.port_up(net::IfIndex{7}, "delta")),
              ElementsAre(Action(LocalBindingUp{v4(5), mac(5), net::IfIndex{7}, kV4, true}),
                          Action(SetFastEntry{v4(5), mac(5), net::IfIndex{7}, kV4})));
  EXPECT_THAT(lan.port_up(net::IfIndex{7}, "delta"), IsEmpty());
  // The same port under a new number.
  EXPECT_FALSE(lan.port_up(net::IfIndex{8}, "alpha").empty());
  EXPECT_EQ(lan.up().at(v4(1)).port, net::IfIndex{8});
}

// A5, H7.
TEST(StaticBinding, ListOfMacsWaitsUntilOneIsSeen) {
  Lan lan(with_bindings({fixed(v4(2), {mac(2), mac(12)}, "bravo")}));
  EXPECT_FALSE(lan.up().contains(v4(2)));
  EXPECT_THAT(about(v4(2), lan.place(mac(7), kBravo)), IsEmpty());
  EXPECT_THAT(about(v4(2), lan.place(mac(12), kAlpha)), IsEmpty());  // not its port
  EXPECT_THAT(about(v4(2), lan.place(mac(12), kBravo)),
              ElementsAre(Action(LocalBindingUp{v4(2), mac(12), kBravo, kV4, true}),
                          Action(SetFastEntry{v4(2), mac(12), kBravo, kV4})));
  EXPECT_THAT(about(v4(2), lan.place(mac(12), kBravo)), IsEmpty());
}

TEST(StaticBinding, AnyPlaceFollowsItsMac) {
  Lan lan(with_bindings({fixed(v4(9), {mac(9)})}));
  EXPECT_THAT(about(v4(9), lan.place_remote(mac(9))),
              ElementsAre(Action(SetFastEntry{v4(9), mac(9), kCore, kV4})));
  EXPECT_FALSE(lan.up().contains(v4(9)));
  EXPECT_THAT(about(v4(9), lan.place(mac(9), kCharlie)),
              ElementsAre(Action(LocalBindingUp{v4(9), mac(9), kCharlie, kV4, true}),
                          Action(SetFastEntry{v4(9), mac(9), kCharlie, kV4})));
  EXPECT_THAT(about(v4(9), lan.unplace(mac(9))),
              ElementsAre(Action(LocalBindingDown{v4(9), mac(9)}), Action(ClearFastEntry{v4(9)})));
}

// H8, E6, A15, sixth call of section 0.3: a router is replaced, and nobody keeps the old MAC.
TEST(StaticBinding, PlannedSwap) {
  Settings s = with_bindings({fixed(v4(2), {mac(2), mac(12)}, "bravo")});
  s.announcements_per_second = 100;
  Lan lan(s);
  lan.place(mac(2), kBravo);
  lan.now += std::chrono::seconds(5);
  lan.tick();
  // The new one is seen, which says nothing of the address as long as the old one is there.
  EXPECT_THAT(about(v4(2), lan.place(mac(12), kBravo)), IsEmpty());
  const Outcome claimed = lan.member(kBravo, arp_claim(12, v4(2)));
  EXPECT_EQ(claimed.verdict, Verdict::GratuitousDropped);
  EXPECT_THAT(
      claimed.actions,
      ElementsAre(Action(LocalBindingDown{v4(2), mac(2)}),
                  Action(LocalBindingUp{v4(2), mac(12), kBravo, kV4, true}),
                  Action(SetFastEntry{v4(2), mac(12), kBravo, kV4}), announced(12, v4(2), kBravo)));
  // Not more often than once in a second.
  EXPECT_THAT(lan.member(kBravo, arp_claim(2, v4(2))).actions, IsEmpty());
  lan.now += std::chrono::seconds(1);
  EXPECT_EQ(all_of<LocalBindingUp>(lan.member(kBravo, arp_claim(2, v4(2))).actions).size(), 1u);
  // What is in use leaves.
  lan.unplace(mac(2));
  EXPECT_EQ(lan.up().at(v4(2)).mac, mac(12));
  EXPECT_TRUE(lan.books_agree());
}

TEST(StaticBinding, SwapBehindAnotherPeIsAnnouncedHere) {
  Settings s = with_bindings({fixed(v6(9), {mac(9), mac(19)})});
  s.announcements_per_second = 100;
  s.link_local = LinkLocal::None;
  Lan lan(s);
  lan.place_remote(mac(9));
  lan.now += std::chrono::seconds(5);
  lan.place_remote(mac(19));
  const auto actions = about(v6(9), lan.evpn(v6(9), mac(19), {}, true));
  const auto floods = all_of<Flood>(actions);
  ASSERT_EQ(floods.size(), 1u);
  EXPECT_EQ(floods[0], (Flood{encode_nd(unsolicited_advertisement(v6(9), mac(19), {})),
                              std::nullopt, true, false}));
}

// A17, F2, G12.
TEST(StaticBinding, EvpnDoesNotOverride) {
  for (bool immutable : {false, true}) {
    Lan lan(with_bindings({fixed(v4(1), {mac(1)}, "alpha"), fixed(v4(9), {mac(9)})}));
    // Of what two have for good there is an alarm, and nothing else.
    for (const net::IpAddress& a : {v4(1), v4(9)}) {
      const auto actions = lan.evpn(a, mac(7), {}, immutable);
      EXPECT_EQ(actions.size(), immutable ? 1u : 0u);
      EXPECT_EQ(all_of<Alarm>(actions).size(), actions.size());
      EXPECT_THAT(lan.place_remote(mac(7)), IsEmpty());
    }
    EXPECT_EQ(lan.view(v4(1))->mac, mac(1));
    EXPECT_FALSE(lan.view(v4(9))->answered);
    // The route of the PE where it is says so before its MAC is placed.
    EXPECT_THAT(lan.evpn(v4(9), mac(9), {}, immutable),
                ElementsAre(Action(SetFastEntry{v4(9), mac(9), kCore, kV4})));
  }
}

TEST(StaticBinding, SameAddressFromTwoSources) {
  Lan lan(with_bindings(
      {fixed(v4(1), {mac(1)}), {v4(1), {mac(1)}, "alpha", net::AsNumber{64999}, "Other"}}));
  EXPECT_EQ(lan.up().at(v4(1)).port, kAlpha);
  EXPECT_EQ(lan.view(v4(1))->member_name, "Member");
}

TEST(StaticBinding, WithoutMacsTheAddressIsTiedToThePort) {
  Lan lan(with_bindings({fixed(v4(1), {}, "alpha")}));
  lan.place(mac(1), kAlpha);
  lan.place(mac(7), kBravo);
  EXPECT_EQ(lan.member(kBravo, arp_claim(7, v4(1))).verdict, Verdict::NotOwner);
  lan.member(kAlpha, arp_claim(1, v4(1)));
  EXPECT_EQ(lan.up().at(v4(1)), (LocalBindingUp{v4(1), mac(1), kAlpha, kV4, false}));
  EXPECT_EQ(lan.member(kAlpha, arp_claim(1, v4(3))).verdict, Verdict::GratuitousDropped);
  EXPECT_FALSE(lan.view(v4(3)));
}

// --- EVPN

// A6.
TEST(EvpnBinding, InUseUntilTheMacIsKnownToBeElsewhere) {
  Lan lan(Lan::settings(Profile::Static));
  EXPECT_THAT(lan.evpn(v4(9), mac(9)),
              ElementsAre(Action(SetFastEntry{v4(9), mac(9), kCore, kV4})));
  EXPECT_THAT(lan.evpn(v4(9), mac(9)), IsEmpty());
  EXPECT_THAT(lan.place_remote(mac(9)), IsEmpty());
  EXPECT_EQ(lan.view(v4(9))->kind, BindingKind::Evpn);
  // At a port here: still true, and not ours to advertise.
  EXPECT_THAT(lan.place(mac(9), kAlpha),
              ElementsAre(Action(SetFastEntry{v4(9), mac(9), kAlpha, kV4})));
  EXPECT_THAT(lan.evpn(v4(9), std::nullopt), ElementsAre(Action(ClearFastEntry{v4(9)})));
  EXPECT_FALSE(lan.view(v4(9)));
  EXPECT_THAT(lan.evpn(v4(9), std::nullopt), IsEmpty());
}

TEST(EvpnBinding, ChangeOfMacIsAnnounced) {
  Settings s = Lan::settings(Profile::Static);
  s.announcements_per_second = 100;
  Lan lan(s);
  lan.evpn(v4(9), mac(9));
  lan.now += std::chrono::seconds(1);
  EXPECT_THAT(lan.evpn(v4(9), mac(19)),
              ElementsAre(Action(SetFastEntry{v4(9), mac(19), kCore, kV4}),
                          announced(19, v4(9), std::nullopt)));
}

TEST(EvpnBinding, OutsideThePrefixesIsNotAnswered) {
  Lan lan(Lan::settings(Profile::Dynamic));
  EXPECT_THAT(lan.evpn(ip("198.51.100.1"), mac(9)), IsEmpty());
  Settings s = lan.current();
  s.prefixes.push_back(net::IpPrefix::parse("198.51.100.0/24").value());
  EXPECT_EQ(lan.reconfigure(s).size(), 1u);
}

// G11.
TEST(EvpnBinding, ImmutableBeatsLearned) {
  Lan lan(Lan::settings(Profile::Dynamic));
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  lan.evpn(v4(4), mac(9), {}, true);
  EXPECT_EQ(lan.view(v4(4))->mac, mac(9));
  EXPECT_FALSE(lan.up().contains(v4(4)));
  const Outcome outcome = lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_EQ(outcome.verdict, Verdict::NotOwner);
  EXPECT_EQ(all_of<Alarm>(outcome.actions).size(), 1u);
  ArpFrame request = arp_request(4, v4(200));
  EXPECT_EQ(lan.member(kCharlie, request).verdict, Verdict::SpoofedSender);
  // The other way round: nothing to learn.
  EXPECT_TRUE(lan.books_agree());
}

// F11 as far as the order of events goes.
TEST(EvpnBinding, LearnedAndEvpnByOrderOfEvents) {
  Lan lan(Lan::settings(Profile::Dynamic));
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  lan.place_remote(mac(9));
  EXPECT_THAT(lan.evpn(v4(4), mac(9)),
              ElementsAre(Action(LocalBindingDown{v4(4), mac(4)}),
                          Action(SetFastEntry{v4(4), mac(9), kCore, kV4})));
  EXPECT_EQ(lan.view(v4(4))->kind, BindingKind::Evpn);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_EQ(lan.view(v4(4))->kind, BindingKind::Learned);
  EXPECT_EQ(lan.up().at(v4(4)).mac, mac(4));
  // The same route again is no news.
  EXPECT_THAT(lan.evpn(v4(4), mac(9)), IsEmpty());
}

TEST(EvpnBinding, ReplacesLearnedOnlyWhenTheMacVrfSaysSo) {
  Lan lan(Lan::settings(Profile::Dynamic));
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_THAT(lan.evpn(v4(4), mac(4)), IsEmpty());
  EXPECT_EQ(lan.view(v4(4))->kind, BindingKind::Learned);
  EXPECT_THAT(lan.place_remote(mac(4)),
              ElementsAre(Action(LocalBindingDown{v4(4), mac(4)}),
                          Action(SetFastEntry{v4(4), mac(4), kCore, kV4})));
  EXPECT_EQ(lan.view(v4(4))->kind, BindingKind::Evpn);
}

// --- learned

TEST(LearnedBinding, FollowsItsMac) {
  Lan lan(Lan::settings(Profile::Dynamic));
  const Outcome outcome = lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_EQ(outcome.verdict, Verdict::Flooded);
  EXPECT_FALSE(lan.view(v4(4))->answered);  // the bridge has not seen it yet
  EXPECT_THAT(lan.place(mac(4), kCharlie),
              ElementsAre(Action(LocalBindingUp{v4(4), mac(4), kCharlie, kV4, false}),
                          Action(SetFastEntry{v4(4), mac(4), kCharlie, kV4})));
  EXPECT_THAT(lan.place(mac(4), kAlpha),
              ElementsAre(Action(LocalBindingUp{v4(4), mac(4), kAlpha, kV4, false}),
                          Action(SetFastEntry{v4(4), mac(4), kAlpha, kV4})));
  EXPECT_THAT(lan.port_down(kAlpha),
              ElementsAre(Action(LocalBindingDown{v4(4), mac(4)}), Action(ClearFastEntry{v4(4)})));
}

TEST(LearnedBinding, MovesToTheLatestClaim) {
  Lan lan(Lan::settings(Profile::Dynamic));
  lan.place(mac(4), kCharlie);
  lan.place(mac(5), kAlpha);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  const Outcome outcome = lan.member(kAlpha, arp_claim(5, v4(4)));
  EXPECT_EQ(outcome.verdict, Verdict::Flooded);
  EXPECT_EQ(lan.up().at(v4(4)).mac, mac(5));
  EXPECT_EQ(all_of<LocalBindingDown>(outcome.actions).size(), 1u);
  EXPECT_TRUE(lan.books_agree());
}

TEST(LearnedBinding, NotInTheStaticProfile) {
  Lan lan(Lan::settings(Profile::Static));
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_FALSE(lan.view(v4(4)));
  Settings s = lan.current();
  s.learning = true;
  lan.reconfigure(s);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  EXPECT_TRUE(lan.view(v4(4)));
  s.learning = false;
  EXPECT_THAT(lan.reconfigure(s),
              ElementsAre(Action(LocalBindingDown{v4(4), mac(4)}), Action(ClearFastEntry{v4(4)})));
  EXPECT_FALSE(lan.view(v4(4)));
}

// G17.
TEST(LearnedBinding, LimitPerPort) {
  Settings s = Lan::settings(Profile::Dynamic);
  s.max_bindings_per_port = 3;
  Lan lan(s);
  std::size_t alarms = 0;
  for (int i = 0; i < 200; ++i) {
    const Outcome outcome = lan.member(kAlpha, arp_claim(7, v4(static_cast<uint8_t>(20 + i))));
    EXPECT_EQ(outcome.verdict, i < 3 ? Verdict::Flooded : Verdict::BindingLimit);
    EXPECT_EQ(has_frames(outcome.actions), i < 3);
    alarms += all_of<Alarm>(outcome.actions).size();
  }
  EXPECT_EQ(alarms, 1u);
  EXPECT_EQ(lan.counter(Verdict::BindingLimit), 197u);
  EXPECT_EQ(lan.member(kAlpha, arp_claim(7, v4(20))).verdict, Verdict::Flooded);
  EXPECT_EQ(lan.member(kBravo, arp_claim(8, v4(8))).verdict, Verdict::Flooded);
  // A move counts at the new port.
  EXPECT_EQ(lan.member(kBravo, arp_claim(8, v4(20))).verdict, Verdict::Flooded);
  EXPECT_EQ(lan.member(kAlpha, arp_claim(7, v4(100))).verdict, Verdict::Flooded);
  EXPECT_EQ(lan.member(kAlpha, arp_claim(7, v4(8))).verdict, Verdict::BindingLimit);
}

TEST(LearnedBinding, LimitOfTheDomain) {
  Settings s = Lan::settings(Profile::Dynamic);
  s.max_bindings = 2;
  s.bindings = {fixed(v4(1), {mac(1)}, "alpha")};
  Lan lan(s);
  lan.evpn(v4(9), mac(9));
  EXPECT_EQ(lan.member(kBravo, arp_claim(2, v4(2))).verdict, Verdict::Flooded);
  EXPECT_EQ(lan.member(kCharlie, arp_claim(3, v4(3))).verdict, Verdict::BindingLimit);
  EXPECT_EQ(lan.member(kBravo, arp_claim(2, v4(2))).verdict, Verdict::Flooded);
  // What the fabric says is never refused (A6).
  EXPECT_FALSE(lan.evpn(v4(10), mac(10)).empty());
}

// --- ageing

// D1, D2.
TEST(Ageing, LearnedOnesExpire) {
  Settings s = Lan::settings(Profile::Dynamic);
  s.age_time = std::chrono::seconds(100);
  s.bindings = {fixed(v4(1), {mac(1)}, "alpha")};
  Lan lan(s);
  lan.evpn(v4(9), mac(9));
  EXPECT_EQ(lan.responder().deadline(), net::kNever);
  lan.place(mac(4), kCharlie);
  lan.place(mac(5), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  lan.now += std::chrono::seconds(10);
  lan.member(kCharlie, na(5, v6(5)));
  lan.tick();
  EXPECT_EQ(lan.responder().deadline(), kStart + std::chrono::seconds(100));
  lan.now += std::chrono::seconds(10);
  lan.member(kCharlie, arp_request(4, v4(9)), true);  // any ARP refreshes
  EXPECT_EQ(lan.view(v6(5))->age, std::chrono::seconds(10));
  lan.now = kStart + std::chrono::seconds(109);
  EXPECT_THAT(lan.tick(), IsEmpty());
  lan.now = kStart + std::chrono::seconds(110);
  EXPECT_EQ(lan.responder().deadline(), lan.now);
  EXPECT_THAT(lan.tick(),
              ElementsAre(Action(LocalBindingDown{v6(5), mac(5)}), Action(ClearFastEntry{v6(5)})));
  EXPECT_FALSE(lan.view(v6(5)));
  EXPECT_EQ(lan.responder().deadline(), kStart + std::chrono::seconds(120));
  lan.now = kStart + std::chrono::hours(1000);
  EXPECT_EQ(lan.tick().size(), 2u);
  EXPECT_EQ(lan.responder().deadline(), net::kNever);
  EXPECT_TRUE(lan.view(v4(1))->answered);
  EXPECT_TRUE(lan.view(v4(9))->answered);
  EXPECT_TRUE(lan.books_agree());
}

// Questions without an end: neither lost nor asked without pause.
TEST(Ageing, RefreshWithoutAge) {
  Settings s = Lan::settings(Profile::Dynamic);
  s.age_time = std::chrono::seconds(0);
  s.refresh = std::chrono::seconds(60);
  s.announcements_per_second = 100;
  Lan lan(s);
  lan.identify(mac(0xfe));
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  lan.tick();
  std::size_t asked = 0, ticks = 0;
  const auto run = [&](net::Duration span) {
    const net::TimePoint end = lan.now + span;
    while (lan.responder().deadline() <= end && ticks < 10000) {
      lan.now = std::max(lan.now, lan.responder().deadline());
      asked += all_of<Transmit>(lan.tick()).size();
      ++ticks;
    }
    lan.now = end;
  };
  run(std::chrono::seconds(200));
  EXPECT_EQ(asked, 9u);  // three rounds of three
  lan.unplace(mac(4));
  asked = 0;
  run(std::chrono::hours(1));
  EXPECT_EQ(asked, 0u);
  EXPECT_LT(ticks, 200u);
  EXPECT_TRUE(lan.view(v4(4)));
}

// Who asks from a bound address has it still.
TEST(Ageing, SolicitationsRefreshWhatIsBound) {
  Settings s = Lan::settings(Profile::Dynamic);
  s.age_time = std::chrono::seconds(100);
  Lan lan(s);
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, na(4, v6(4)));
  lan.now += std::chrono::seconds(50);
  lan.member(kCharlie, ns(4, v6(9)));
  lan.now += std::chrono::seconds(99);
  lan.tick();
  EXPECT_TRUE(lan.view(v6(4)));
  lan.now += std::chrono::seconds(1);
  lan.tick();
  EXPECT_FALSE(lan.view(v6(4)));
}

// --- reconfiguration

TEST(Reconfigure, WhatDidNotChangeStays) {
  const std::vector<StaticBinding> bindings{fixed(v4(1), {mac(1)}, "alpha"),
                                            fixed(v6(1), {mac(1)}, "alpha"),
                                            fixed(v4(2), {mac(2), mac(12)}, "bravo")};
  for (Profile profile : {Profile::Dynamic, Profile::Hybrid, Profile::Static}) {
    Settings s = with_bindings(bindings, profile);
    Lan lan(s);
    lan.place(mac(2), kBravo);
    lan.place(mac(4), kCharlie);
    lan.member(kCharlie, arp_claim(4, v4(4)));
    lan.remote(9);
    EXPECT_THAT(lan.reconfigure(s), IsEmpty());
    std::ranges::reverse(s.bindings);
    EXPECT_THAT(lan.reconfigure(s), IsEmpty());
    s.bindings.push_back(fixed(v4(3), {mac(3)}, "charlie"));
    EXPECT_THAT(about(v4(3), lan.reconfigure(s)),
                ElementsAre(Action(LocalBindingUp{v4(3), mac(3), kCharlie, kV4, true}),
                            Action(SetFastEntry{v4(3), mac(3), kCharlie, kV4})));
    // Another member's name is no change for anybody but the views.
    for (StaticBinding& binding : s.bindings) binding.member_name = "Renamed";
    EXPECT_THAT(lan.reconfigure(s), IsEmpty());
    EXPECT_EQ(lan.view(v4(2))->member_name, "Renamed");
    EXPECT_EQ(lan.view(v4(2))->mac, mac(2));
    EXPECT_TRUE(lan.books_agree());
  }
}

// H8: the list grows and shrinks around the swap; H9: the member leaves.
TEST(Reconfigure, ListOfMacsGrowsAndShrinks) {
  Settings s = with_bindings({fixed(v4(2), {mac(2)}, "bravo")}, Profile::Hybrid);
  Lan lan(s);
  lan.place(mac(2), kBravo);
  s.bindings[0].macs = {mac(2), mac(12)};
  EXPECT_THAT(lan.reconfigure(s), IsEmpty());
  lan.place(mac(12), kBravo);
  lan.member(kBravo, arp_claim(12, v4(2)));
  EXPECT_EQ(lan.up().at(v4(2)).mac, mac(12));
  s.bindings[0].macs = {mac(12)};
  EXPECT_THAT(lan.reconfigure(s), IsEmpty());
  EXPECT_THAT(lan.place(mac(2), kCharlie), IsEmpty());
  s.bindings.clear();
  EXPECT_THAT(lan.reconfigure(s),
              ElementsAre(Action(LocalBindingDown{v4(2), mac(12)}), Action(ClearFastEntry{v4(2)})));
  EXPECT_FALSE(lan.view(v4(2)));
}

// G14: withdraw before advertise.
TEST(Reconfigure, AnotherMac) {
  Settings s = with_bindings({fixed(v4(2), {mac(2)}, "bravo")}, Profile::Hybrid);
  Lan lan(s);
  s.bindings[0].macs = {mac(12)};
  EXPECT_THAT(lan.reconfigure(s),
              ElementsAre(Action(LocalBindingDown{v4(2), mac(2)}),
                          Action(LocalBindingUp{v4(2), mac(12), kBravo, kV4, true}),
                          Action(SetFastEntry{v4(2), mac(12), kBravo, kV4})));
}

TEST(Reconfigure, StaticTakesTheAddressOfAnIntruder) {
  Settings s = with_bindings({}, Profile::Hybrid);
  Lan lan(s);
  lan.place(mac(7), kCharlie);
  lan.member(kCharlie, arp_claim(7, v4(1)));
  s.bindings = {fixed(v4(1), {mac(1)}, "alpha")};
  lan.reconfigure(s);
  EXPECT_EQ(lan.up().at(v4(1)).mac, mac(1));
  s.bindings.clear();
  lan.reconfigure(s);
  EXPECT_FALSE(lan.view(v4(1)));
}

TEST(Reconfigure, OffAndOnAgain) {
  Settings s = with_bindings({fixed(v4(1), {mac(1)}, "alpha"), fixed(v6(1), {mac(1)}, "alpha")});
  Lan lan(s);
  lan.remote(9);
  const auto before = lan.fast().size();
  s.profile = Profile::Off;
  lan.reconfigure(s);
  EXPECT_THAT(lan.fast(), IsEmpty());
  EXPECT_THAT(lan.up(), IsEmpty());
  s.profile = Profile::Static;
  lan.reconfigure(s);
  EXPECT_EQ(lan.fast().size(), before);
  EXPECT_TRUE(lan.books_agree());
}

TEST(Reconfigure, PrefixTakenAway) {
  Settings s = Lan::settings(Profile::Dynamic);
  Lan lan(s);
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, arp_claim(4, v4(4)));
  s.prefixes.erase(s.prefixes.begin());
  EXPECT_THAT(lan.reconfigure(s),
              ElementsAre(Action(LocalBindingDown{v4(4), mac(4)}), Action(ClearFastEntry{v4(4)})));
}

TEST(Views, PiecesAreTheWhole) {
  std::vector<StaticBinding> bindings;
  for (uint8_t n = 1; n <= 7; ++n) bindings.push_back(fixed(v4(n), {mac(n)}));
  Lan lan(with_bindings(bindings));
  std::vector<net::IpAddress> all;
  lan.responder().for_each_binding([&](const BindingView& v) { all.push_back(v.ip); });
  for (const std::size_t size : {1u, 3u, 100u}) {
    std::vector<net::IpAddress> pieces;
    std::optional<net::IpAddress> last;
    for (bool more = true; more;) {
      std::size_t seen = 0;
      lan.responder().for_each_binding_after(last, [&](const BindingView& v) {
        pieces.push_back(v.ip);
        last = v.ip;
        return ++seen < size;
      });
      more = seen == size;
    }
    EXPECT_EQ(pieces, all);
  }
}

TEST(Names, AllVerdictsAndKinds) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Verdict::Count); ++i)
    names.insert(to_string(static_cast<Verdict>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Verdict::Count));
  EXPECT_STREQ(to_string(Verdict::NotOwner), "not-owner");
  EXPECT_STREQ(to_string(Verdict::Answered), "answered");
  EXPECT_STREQ(to_string(BindingKind::Learned), "learned");
}
