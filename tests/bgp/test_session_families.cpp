// SPDX-License-Identifier: GPL-2.0-or-later
// One session with two address families: what is negotiated, told apart and kept for each of them.
// Enhanced route refresh (RFC 7313) and long-lived graceful restart (RFC 9494) with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/rt_constrain.h"
#include "session_support.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;
using testing::ElementsAre;
using S = SessionState;

namespace {

SessionSettings both(uint32_t router_id = 1) {
  SessionSettings s = settings(router_id);
  s.other_families = {route_target_family()};
  return s;
}

Bytes announce(AfiSafi family, const Bytes& nlri) {
  const std::span<const uint8_t> view = nlri;
  return encode_reach(family, *net::IpAddress::parse("192.0.2.1"), encode_attributes({}, {}),
                      {&view, 1}, kMaxMessage)
      .message;
}

// A session with both families, up on Outgoing.
struct Both : Driver {
  explicit Both(SessionSettings s = both()) : Driver(s), peer(Session(other(s), 1).local_open()) {
    bring(Slot::Outgoing, S::Established, peer);
  }
  static SessionSettings other(SessionSettings s) {
    s.router_id = 2;
    return s;
  }
  std::vector<Action> back(Slot slot, const Open& open) {
    handle(event::Connected{slot});
    receive(slot, encode_open(open));
    return receive(slot, encode_keepalive());
  }
  Open peer;
};

std::vector<AfiSafi> told(const std::vector<Action>& actions) {
  std::vector<AfiSafi> out;
  for (const auto& one : all<action::Told>(actions)) out.push_back(one.family);
  return out;
}

template <class A>
std::vector<AfiSafi> families(const std::vector<Action>& actions) {
  std::vector<AfiSafi> out;
  for (const auto& one : all<A>(actions)) out.push_back(one.family);
  return out;
}

}  // namespace

TEST(Families, OnlyWhatBothHave) {
  EXPECT_THAT(Driver(both()).session.local_open().capabilities.multiprotocol,
              ElementsAre(kL2vpnEvpn, kRouteTargetConstrain));
  Both d;
  EXPECT_THAT(d.session.families(), ElementsAre(kL2vpnEvpn, kRouteTargetConstrain));
  Driver one(both());
  one.bring(Slot::Outgoing, S::Established, Session(settings(2), 1).local_open());
  EXPECT_THAT(one.session.families(), ElementsAre(kL2vpnEvpn));
  // Memberships of a peer that has not negotiated them are passed over (RFC 4760 section 7).
  const auto actions =
      one.receive(Slot::Outgoing, announce(kRouteTargetConstrain, default_membership_nlri()));
  for (const auto& routes : all<action::Routes>(actions)) {
    EXPECT_EQ(routes.family, kL2vpnEvpn);
    EXPECT_TRUE(routes.update.reach.empty());
  }
  EXPECT_EQ(one.session.state(), S::Established);
}

TEST(Families, UpdatesAreDecodedByTheirOwn) {
  Both d;
  auto routes = all<action::Routes>(d.receive(Slot::Outgoing, announce(kL2vpnEvpn, fake_nlri(7))));
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].family, kL2vpnEvpn);
  EXPECT_EQ(routes[0].update.reach.size(), 1u);
  const ExtendedCommunity target{0, 2, 0, 1, 0, 0, 0, 1};
  routes = all<action::Routes>(
      d.receive(Slot::Outgoing, announce(kRouteTargetConstrain, membership_nlri(1, target))));
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].family, kRouteTargetConstrain);
  EXPECT_EQ(routes[0].update.reach.size(), 1u);
}

// RFC 4760 allows it: MP_REACH_NLRI of one family, MP_UNREACH_NLRI of the other.
TEST(Families, TwoInOneUpdate) {
  Both d;
  Bytes message = announce(kL2vpnEvpn, fake_nlri(7));
  const Bytes unreach = hex("80 0f 04 0001 84 00");
  message.insert(message.end(), unreach.begin(), unreach.end());
  message[17] = static_cast<uint8_t>(message[17] + unreach.size());
  message[22] = static_cast<uint8_t>(message[22] + unreach.size());
  const auto routes = all<action::Routes>(d.receive(Slot::Outgoing, message));
  ASSERT_EQ(routes.size(), 2u);
  EXPECT_EQ(routes[0].family, kRouteTargetConstrain);
  EXPECT_EQ(routes[0].update.unreach.size(), 1u);
  EXPECT_TRUE(routes[0].update.reach.empty());
  EXPECT_FALSE(routes[0].update.end_of_rib);
  EXPECT_EQ(routes[1].family, kL2vpnEvpn);
  EXPECT_EQ(routes[1].update.reach.size(), 1u);
  EXPECT_EQ(d.session.state(), S::Established);
}

// RFC 7606 section 5.3 for memberships that are too long; those without origin are discarded alone.
TEST(Families, WrongMemberships) {
  Both d;
  auto actions = d.receive(Slot::Outgoing, announce(kRouteTargetConstrain, hex("08 ff 00")));
  ASSERT_EQ(all<action::Routes>(actions).size(), 1u);
  EXPECT_EQ(all<action::Routes>(actions)[0].update.nlri_discarded, 1u);
  EXPECT_EQ(all<action::Routes>(actions)[0].update.reach.size(), 1u);
  actions = d.receive(Slot::Outgoing, announce(kRouteTargetConstrain, Bytes(14, 0x68)));
  ASSERT_TRUE(notification_sent(actions));
  EXPECT_EQ(notification_sent(actions)->code, ErrorCode::UpdateMessage);
  EXPECT_EQ(d.session.state(), S::Idle);
}

TEST(Families, MembershipsAreWaitedForAMinute) {
  Both d;
  EXPECT_THAT(told(d.receive(Slot::Outgoing, encode_end_of_rib(kL2vpnEvpn))), ElementsAre());
  EXPECT_THAT(told(d.receive(Slot::Outgoing, encode_end_of_rib(kRouteTargetConstrain))),
              ElementsAre(kRouteTargetConstrain));
  EXPECT_THAT(told(d.receive(Slot::Outgoing, encode_end_of_rib(kRouteTargetConstrain))),
              ElementsAre());
  Both silent;
  EXPECT_THAT(told(silent.advance(59s)), ElementsAre());
  EXPECT_THAT(told(silent.advance(1s)), ElementsAre(kRouteTargetConstrain));
  EXPECT_THAT(told(silent.receive(Slot::Outgoing, encode_end_of_rib(kRouteTargetConstrain))),
              ElementsAre());
}

TEST(Families, GracefulRestartOfEach) {
  Both d;
  Open without = d.peer;
  std::erase_if(without.capabilities.graceful_restart->families,
                [](const auto& entry) { return entry.family == kRouteTargetConstrain; });
  EXPECT_THAT(all<action::Ended>(d.handle(event::Closed{Slot::Outgoing}))[0].kept,
              ElementsAre(kL2vpnEvpn, kRouteTargetConstrain));
  // It comes back without forwarding state of one of them: that goes at once.
  EXPECT_THAT(families<action::FlushStale>(d.back(Slot::Incoming, without)),
              ElementsAre(kRouteTargetConstrain));
  EXPECT_TRUE(d.session.stale_kept());
  d.receive(Slot::Incoming, encode_end_of_rib(kRouteTargetConstrain));
  EXPECT_TRUE(d.session.stale_kept());
  d.receive(Slot::Incoming, encode_end_of_rib(kL2vpnEvpn));
  EXPECT_FALSE(d.session.stale_kept());
  EXPECT_THAT(all<action::Ended>(d.handle(event::Closed{Slot::Incoming}))[0].kept,
              ElementsAre(kL2vpnEvpn));
  EXPECT_THAT(families<action::FlushStale>(d.advance(121s)), ElementsAre(kL2vpnEvpn));
}

TEST(Families, RefreshOfEach) {
  Both d;
  EXPECT_THAT(families<action::Refresh>(
                  d.receive(Slot::Outgoing, encode_route_refresh(kRouteTargetConstrain, 0))),
              ElementsAre(kRouteTargetConstrain));
  const auto sent = all<action::Send>(d.handle(event::AskRefresh{}));
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].message, encode_route_refresh(kL2vpnEvpn, 0));
  EXPECT_EQ(sent[1].message, encode_route_refresh(kRouteTargetConstrain, 0));
  Driver idle;
  EXPECT_TRUE(idle.handle(event::AskRefresh{}).empty());
}

// --- RFC 7313 ---

TEST(EnhancedRefresh, BeginsAndEnds) {
  Both d;
  const auto mark = [&](uint8_t subtype) {
    return d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, subtype));
  };
  // Section 4: not before End-of-RIB when graceful restart was negotiated, and no end without
  // begin.
  EXPECT_TRUE(all<action::RefreshBegins>(mark(1)).empty());
  d.receive(Slot::Outgoing, encode_end_of_rib(kL2vpnEvpn));
  EXPECT_TRUE(all<action::RefreshEnds>(mark(2)).empty());
  EXPECT_THAT(families<action::RefreshBegins>(mark(1)), ElementsAre(kL2vpnEvpn));
  const auto ends = all<action::RefreshEnds>(mark(2));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(ends[0].in_time);
  EXPECT_TRUE(all<action::RefreshEnds>(mark(2)).empty());
  // Section 5: other subtypes are ignored.
  EXPECT_TRUE(mark(3).empty());
  EXPECT_EQ(d.session.state(), S::Established);
}

TEST(EnhancedRefresh, EndMustCome) {
  Both d;
  d.receive(Slot::Outgoing, encode_end_of_rib(kL2vpnEvpn));
  d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 1));
  std::vector<action::RefreshEnds> ends;
  for (int i = 0; i < 361; ++i) {
    for (const auto& end : all<action::RefreshEnds>(d.advance(1s))) ends.push_back(end);
    d.receive(Slot::Outgoing, encode_keepalive());
    if (i == 358) {
      EXPECT_TRUE(ends.empty());
    }
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_FALSE(ends[0].in_time);
}

TEST(EnhancedRefresh, OnlyWhenNegotiated) {
  Driver d;
  Open open = d.peer_open();
  open.capabilities.enhanced_route_refresh = false;
  open.capabilities.graceful_restart.reset();
  d.bring(Slot::Outgoing, S::Established, open);
  EXPECT_TRUE(d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 1)).empty());
  EXPECT_TRUE(d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 2)).empty());
}

TEST(EnhancedRefresh, SessionEndEndsIt) {
  Both d;
  d.receive(Slot::Outgoing, encode_end_of_rib(kL2vpnEvpn));
  d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 1));
  d.handle(event::Closed{Slot::Outgoing});
  d.back(Slot::Incoming, d.peer);
  EXPECT_TRUE(
      all<action::RefreshEnds>(d.receive(Slot::Incoming, encode_route_refresh(kL2vpnEvpn, 2)))
          .empty());
  EXPECT_TRUE(all<action::RefreshEnds>(d.advance(80s)).empty());
}

// --- RFC 9494 ---

namespace {

SessionSettings long_lived(std::chrono::seconds time = 3600s) {
  SessionSettings s = settings();
  s.long_lived_time = time;
  return s;
}

}  // namespace

TEST(LongLived, OpenSaysSo) {
  const Open open = Driver(long_lived()).session.local_open();
  EXPECT_EQ(open.capabilities.long_lived->families,
            (std::vector<LongLivedRestart::Entry>{{kL2vpnEvpn, true, 3600}}));
  EXPECT_FALSE(Driver().session.local_open().capabilities.long_lived);
  SessionSettings off = long_lived();
  off.graceful_restart = false;  // means nothing without it
  EXPECT_FALSE(Driver(off).session.local_open().capabilities.long_lived);
}

TEST(LongLived, AfterTheRestartTimeUntilItsOwn) {
  Both d(long_lived());
  EXPECT_EQ(all<action::Ended>(d.handle(event::Closed{Slot::Outgoing}))[0].kept.size(), 1u);
  EXPECT_TRUE(families<action::LongLivedStale>(d.advance(119s)).empty());
  const auto over = d.advance(1s);
  EXPECT_THAT(families<action::LongLivedStale>(over), ElementsAre(kL2vpnEvpn));
  EXPECT_TRUE(families<action::FlushStale>(over).empty());
  EXPECT_TRUE(d.session.long_lived_kept());
  EXPECT_TRUE(families<action::FlushStale>(d.advance(3599s)).empty());
  EXPECT_THAT(families<action::FlushStale>(d.advance(1s)), ElementsAre(kL2vpnEvpn));
  EXPECT_FALSE(d.session.long_lived_kept() || d.session.stale_kept());
}

TEST(LongLived, WithoutRestartTimeAtOnce) {
  Both d(long_lived());
  Open open = d.peer;
  open.capabilities.graceful_restart->time = 0;
  d.handle(event::Closed{Slot::Outgoing});
  d.back(Slot::Incoming, open);
  d.receive(Slot::Incoming, encode_end_of_rib(kL2vpnEvpn));
  d.handle(event::Closed{Slot::Incoming});
  EXPECT_THAT(families<action::LongLivedStale>(d.handle(event::Tick{})), ElementsAre(kL2vpnEvpn));
}

TEST(LongLived, TheShorterTimeCounts) {
  for (const auto& [ours, theirs] : {std::pair(100s, 5000u), std::pair(5000s, 100u)}) {
    SessionSettings s = long_lived(ours);
    Driver d(s);
    s.router_id = 2;
    Open open = Session(s, 1).local_open();
    open.capabilities.long_lived->families[0].time = theirs;
    d.bring(Slot::Outgoing, S::Established, open);
    d.handle(event::Closed{Slot::Outgoing});
    EXPECT_THAT(families<action::FlushStale>(d.advance(219s)), ElementsAre());
    EXPECT_THAT(families<action::FlushStale>(d.advance(1s)), ElementsAre(kL2vpnEvpn));
  }
}

TEST(LongLived, NeedsBothSidesAndTheFamily) {
  for (int kind = 0; kind < 4; ++kind) {
    SessionSettings s = kind == 0 ? settings() : long_lived();
    Driver d(s);
    s = long_lived();
    s.router_id = 2;
    Open open = Session(s, 1).local_open();
    if (kind == 1) open.capabilities.long_lived.reset();
    if (kind == 2) open.capabilities.long_lived->families[0].family = {1, 1};
    if (kind == 3) open.capabilities.long_lived->families[0].time = 0;
    d.bring(Slot::Outgoing, S::Established, open);
    d.handle(event::Closed{Slot::Outgoing});
    const auto actions = d.advance(120s);
    EXPECT_THAT(families<action::FlushStale>(actions), ElementsAre(kL2vpnEvpn)) << kind;
    EXPECT_THAT(families<action::LongLivedStale>(actions), ElementsAre()) << kind;
  }
}

TEST(LongLived, EndOfRibEndsIt) {
  Both d(long_lived());
  d.handle(event::Closed{Slot::Outgoing});
  d.advance(200s);
  EXPECT_TRUE(families<action::FlushStale>(d.back(Slot::Incoming, d.peer)).empty());
  EXPECT_TRUE(d.session.long_lived_kept());
  d.receive(Slot::Incoming, encode_end_of_rib(kL2vpnEvpn));
  EXPECT_FALSE(d.session.long_lived_kept() || d.session.stale_kept());
}

TEST(LongLived, WithoutForwardingStateItGoesAtOnce) {
  for (int kind = 0; kind < 3; ++kind) {
    Both d(long_lived());
    d.handle(event::Closed{Slot::Outgoing});
    d.advance(200s);
    Open open = d.peer;
    if (kind == 0) open.capabilities.long_lived->families[0].forwarding_preserved = false;
    if (kind == 1) open.capabilities.long_lived.reset();
    if (kind == 2) open.capabilities.graceful_restart.reset();
    EXPECT_THAT(families<action::FlushStale>(d.back(Slot::Incoming, open)), ElementsAre(kL2vpnEvpn))
        << kind;
  }
}

// RFC 9494 section 4.2: unlike RFC 4724, a second restart takes nothing along before the time is
// over, and the time is not prolonged.
TEST(LongLived, ConsecutiveRestarts) {
  Both d(long_lived(1000s));
  d.handle(event::Closed{Slot::Outgoing});
  d.advance(200s);  // 80 s of 1000 are gone
  d.back(Slot::Incoming, d.peer);
  d.advance(20s);
  const auto again = d.handle(event::Closed{Slot::Incoming});
  EXPECT_TRUE(families<action::FlushStale>(again).empty());
  EXPECT_EQ(all<action::Ended>(again)[0].kept.size(), 1u);
  const auto over = d.advance(899s);
  EXPECT_THAT(families<action::LongLivedStale>(over), ElementsAre(kL2vpnEvpn));
  EXPECT_TRUE(families<action::FlushStale>(over).empty());
  EXPECT_THAT(families<action::FlushStale>(d.advance(1s)), ElementsAre(kL2vpnEvpn));
}

// --- Limits ---

TEST(Limits, AcceptedConnectionMustSendItsOpen) {
  SessionSettings s = settings();
  s.open_time = 30s;
  s.passive = true;
  Driver d(s);
  d.handle(event::Start{});
  d.handle(event::Connected{Slot::Incoming});
  EXPECT_EQ(d.session.state(), S::OpenSent);
  EXPECT_FALSE(notification_sent(d.advance(29s)));
  const auto sent = notification_sent(d.advance(1s));
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->code, ErrorCode::HoldTimerExpired);
}

TEST(Limits, AtRestOnlyWhenNothingIsLeft) {
  Both d;
  EXPECT_FALSE(d.session.at_rest());
  d.handle(event::Closed{Slot::Outgoing});
  EXPECT_FALSE(d.session.at_rest());  // routes are kept
  d.advance(121s);
  EXPECT_TRUE(d.session.at_rest());
}
