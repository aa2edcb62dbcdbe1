// SPDX-License-Identifier: GPL-2.0-or-later
// Graceful restart (RFC 4724, 8538) and its long-lived form (RFC 9494), the helper's side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session_support.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;
using S = SessionState;

// --- Graceful restart, RFC 4724 -----------------------------------------------------------------

namespace {

struct Helper : Driver {
  Helper() { bring(Slot::Outgoing, S::Established); }
  std::vector<Action> back(const Open& open) {
    handle(event::Connected{Slot::Incoming});
    auto out = receive(Slot::Incoming, encode_open(open));
    for (Action& action : receive(Slot::Incoming, encode_keepalive()))
      out.push_back(std::move(action));
    EXPECT_EQ(session.state(), S::Established);
    return out;
  }
};

}  // namespace

TEST(GracefulRestart, KeepsUntilEndOfRib) {
  Helper d;
  const auto ended = all<action::Ended>(d.handle(event::Closed{Slot::Outgoing}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].established && !ended[0].kept.empty());
  EXPECT_TRUE(d.session.stale_kept());
  d.advance(119s);
  EXPECT_TRUE(all<action::FlushStale>(d.back(d.peer_open())).empty());
  EXPECT_TRUE(d.session.stale_kept());
  const auto actions = d.receive(Slot::Incoming, encode_end_of_rib(kL2vpnEvpn));
  EXPECT_TRUE(all<action::Routes>(actions)[0].update.end_of_rib);
  EXPECT_FALSE(d.session.stale_kept());
}

TEST(GracefulRestart, TimerEndsIt) {
  Helper d;
  d.handle(event::Closed{Slot::Outgoing});
  EXPECT_TRUE(all<action::FlushStale>(d.advance(119s)).empty());
  EXPECT_EQ(all<action::FlushStale>(d.advance(2s)).size(), 1u);
  EXPECT_FALSE(d.session.stale_kept());
}

TEST(GracefulRestart, EndOfRibMustCome) {
  Helper d;
  d.handle(event::Closed{Slot::Outgoing});
  d.back(d.peer_open());
  std::size_t flushes = 0;
  for (int i = 0; i < 400; ++i) {
    flushes += all<action::FlushStale>(d.advance(1s)).size();
    d.receive(Slot::Incoming, encode_keepalive());
    if (i == 350) {
      EXPECT_EQ(flushes, 0u);
    }
  }
  EXPECT_EQ(flushes, 1u);
}

TEST(GracefulRestart, WithoutForwardingStateItGoesAtOnce) {
  for (int kind = 0; kind < 3; ++kind) {
    Helper d;
    d.handle(event::Closed{Slot::Outgoing});
    Open open = d.peer_open();
    if (kind == 0) open.capabilities.graceful_restart.reset();
    if (kind == 1) open.capabilities.graceful_restart->families.clear();
    if (kind == 2) open.capabilities.graceful_restart->families[0].forwarding_preserved = false;
    EXPECT_EQ(all<action::FlushStale>(d.back(open)).size(), 1u) << kind;
    EXPECT_FALSE(d.session.stale_kept());
  }
}

// RFC 8538, where both have the N bit: only a Hard Reset takes the routes along.
TEST(GracefulRestart, NotificationKeepsRoutesButNotHardReset) {
  Helper sent;
  EXPECT_FALSE(all<action::Ended>(sent.receive(Slot::Outgoing, Bytes(19, 0)))[0].kept.empty());
  Helper got;
  EXPECT_FALSE(all<action::Ended>(got.receive(
      Slot::Outgoing, encode_notification({ErrorCode::HoldTimerExpired, 0, {}})))[0]
                   .kept.empty());
  Helper silent;
  const auto expired = all<action::Ended>(silent.advance(91s));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].reason.notification->code, ErrorCode::HoldTimerExpired);
  EXPECT_FALSE(expired[0].kept.empty());
  Helper reset;
  const Notification hard{ErrorCode::Cease, cease::kHardReset, {6, cease::kPeerDeconfigured}};
  const auto ended = all<action::Ended>(reset.receive(Slot::Outgoing, encode_notification(hard)));
  EXPECT_TRUE(ended[0].kept.empty());
  EXPECT_EQ(ended[0].reason.notification->subcode, cease::kPeerDeconfigured);
}

TEST(GracefulRestart, WithoutTheNBitNeverAfterNotification) {
  const auto without = [](Helper& d) {
    d.handle(event::Closed{Slot::Outgoing});
    Open open = d.peer_open();
    open.capabilities.graceful_restart->notification = false;
    d.back(open);
  };
  Helper sent;
  without(sent);
  EXPECT_TRUE(all<action::Ended>(sent.receive(Slot::Incoming, Bytes(19, 0)))[0].kept.empty());
  Helper got;
  without(got);
  EXPECT_TRUE(
      all<action::Ended>(got.receive(Slot::Incoming, encode_notification({})))[0].kept.empty());
}

TEST(GracefulRestart, SecondRestartDropsWhatWasStale) {
  Helper d;
  d.handle(event::Closed{Slot::Outgoing});
  d.back(d.peer_open());
  const auto actions = d.handle(event::Closed{Slot::Incoming});
  EXPECT_EQ(all<action::FlushStale>(actions).size(), 1u);
  EXPECT_FALSE(all<action::Ended>(actions)[0].kept.empty());
}

TEST(GracefulRestart, OffMeansOff) {
  SessionSettings s = settings();
  s.graceful_restart = false;
  Driver d(s);
  d.bring(Slot::Outgoing, S::Established);
  EXPECT_TRUE(all<action::Ended>(d.handle(event::Closed{Slot::Outgoing}))[0].kept.empty());
}
