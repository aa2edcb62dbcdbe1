// SPDX-License-Identifier: GPL-2.0-or-later
// Timers of the session: hold, keepalive, send hold, delay open, pauses after errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session_support.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;
using S = SessionState;

TEST(Session, KeepalivesAndHoldTime) {
  Driver d;
  Open open = d.peer_open();
  open.hold_time = 30;
  d.bring(Slot::Outgoing, S::Established, open);
  EXPECT_EQ(d.session.hold_time(), 30s);
  int keepalives = 0;
  for (int i = 0; i < 60; ++i) {
    const auto actions = d.advance(1s);
    keepalives += static_cast<int>(types_sent(actions).size());
    ASSERT_FALSE(notification_sent(actions));
    d.receive(Slot::Outgoing, encode_keepalive());
  }
  EXPECT_GE(keepalives, 6);  // every 7.5 to 10 s
  EXPECT_LE(keepalives, 8);
  const auto last = d.now;
  while (d.session.state() == S::Established) d.next_deadline();
  EXPECT_EQ(d.now, last + 30s);
}

TEST(Session, HoldTimeZeroMeansNoTimers) {
  Driver d;
  Open open = d.peer_open();
  open.hold_time = 0;
  d.bring(Slot::Outgoing, S::Established, open);
  EXPECT_EQ(d.session.deadline(), net::kNever);
}

TEST(Session, SendHoldTimer) {  // RFC 9687
  Driver d;
  d.bring(Slot::Outgoing, S::Established);
  const auto alive = [&](net::Duration by, bool sent) {
    std::vector<Action> out;
    for (net::Duration t{}; t < by && d.session.state() == S::Established; t += 10s) {
      out = d.advance(10s);
      if (d.session.state() == S::Established) d.receive(Slot::Outgoing, encode_keepalive());
      if (sent) d.handle(event::Sent{Slot::Outgoing});
    }
    return out;
  };
  alive(20min, true);
  EXPECT_EQ(d.session.state(), S::Established);
  alive(7min + 50s, false);
  EXPECT_EQ(d.session.state(), S::Established);
  const auto actions = alive(30s, false);
  EXPECT_EQ(d.session.state(), S::Active);
  ASSERT_EQ(all<action::Ended>(actions).size(), 1u);
  const auto ended = all<action::Ended>(actions)[0];
  EXPECT_EQ(ended.reason.cause, EndReason::Cause::SendHoldTimer);
  EXPECT_TRUE(ended.established);
  EXPECT_FALSE(ended.kept.empty());  // RFC 8538
}

TEST(Session, DelayOpen) {
  SessionSettings s = settings();
  s.delay_open = 10s;
  Driver d(s);
  d.handle(event::Start{});
  EXPECT_TRUE(types_sent(d.handle(event::Connected{Slot::Outgoing})).empty());
  EXPECT_EQ(d.session.state(), S::Active);
  EXPECT_THAT(types_sent(d.advance(10s)), testing::ElementsAre(MessageType::Open));
  EXPECT_EQ(d.session.state(), S::OpenSent);
  // The peer's OPEN comes first.
  Driver early(s);
  early.handle(event::Start{});
  early.handle(event::Connected{Slot::Outgoing});
  EXPECT_THAT(types_sent(early.receive(Slot::Outgoing, encode_open(early.peer_open()))),
              testing::ElementsAre(MessageType::Open, MessageType::Keepalive));
  EXPECT_EQ(early.session.state(), S::OpenConfirm);
}

TEST(Session, PausesGrowAfterErrors) {
  Driver d;
  d.handle(event::Start{});
  net::Duration last{};
  for (int i = 0; i < 8; ++i) {
    d.handle(event::Connected{Slot::Outgoing});
    d.receive(Slot::Outgoing, Bytes(19, 0));
    ASSERT_EQ(d.session.state(), S::Idle);
    EXPECT_EQ(d.session.accept_slot(), std::nullopt);
    const auto pause = d.session.deadline() - d.now;
    EXPECT_LE(pause, 120s);
    if (i < 4) {
      EXPECT_GT(pause, last);
    }
    last = pause;
    const auto actions = d.next_deadline();
    EXPECT_EQ(all<action::OpenConnection>(actions).size(), 1u);
    ASSERT_EQ(d.session.state(), S::Connect);
  }
  EXPECT_GE(last, 90s);
}

TEST(Session, ResetStaysIdleAsLongAsTold) {
  Driver d;
  d.bring(Slot::Outgoing, S::Established);
  const auto actions = d.handle(event::Reset{{ErrorCode::Cease, 1, {}}, 15min});
  EXPECT_EQ(notification_sent(actions)->subcode, cease::kHardReset);
  EXPECT_EQ(notification_sent(actions)->data, (Bytes{6, cease::kMaximumPrefixes}));
  EXPECT_EQ(d.session.state(), S::Idle);
  EXPECT_EQ(d.session.deadline(), d.now + 15min);
}

TEST(Session, PassiveNeverConnects) {
  SessionSettings s = settings();
  s.passive = true;
  Driver d(s);
  EXPECT_TRUE(all<action::OpenConnection>(d.handle(event::Start{})).empty());
  EXPECT_EQ(d.session.state(), S::Active);
  EXPECT_EQ(d.session.deadline(), net::kNever);
  d.bring(Slot::Incoming, S::Established);
  EXPECT_EQ(d.session.state(), S::Established);
  d.handle(event::Closed{Slot::Incoming});
  EXPECT_EQ(d.session.state(), S::Active);
  EXPECT_EQ(d.session.accept_slot(), Slot::Incoming);
}

TEST(Session, NoConnectionsWhileStopped) {
  Driver d;
  EXPECT_EQ(d.session.accept_slot(), std::nullopt);
  const auto actions = d.handle(event::Connected{Slot::Incoming});
  EXPECT_EQ(all<action::CloseConnection>(actions).size(), 1u);
  EXPECT_EQ(d.session.state(), S::Idle);
}
