// SPDX-License-Identifier: GPL-2.0-or-later
// Two connections at the same time, one session by hand and two wired to each other in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>

#include "session_support.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;
using S = SessionState;

// --- Collision, RFC 4271 section 6.8 ------------------------------------------------------------

TEST(Session, CollisionInBothOrders) {
  for (const bool ours_is_higher : {false, true})
    for (const bool outgoing_first : {false, true}) {
      SCOPED_TRACE(std::to_string(ours_is_higher) + std::to_string(outgoing_first));
      Driver d(settings(ours_is_higher ? 9 : 1));
      const Bytes open = encode_open(d.peer_open(5));
      d.handle(event::Start{});
      d.handle(event::Connected{Slot::Outgoing});
      d.handle(event::Connected{Slot::Incoming});
      const Slot first = outgoing_first ? Slot::Outgoing : Slot::Incoming;
      const Slot second = outgoing_first ? Slot::Incoming : Slot::Outgoing;
      EXPECT_FALSE(notification_sent(d.receive(first, open)));
      const auto actions = d.receive(second, open);
      const Slot winner = ours_is_higher ? Slot::Outgoing : Slot::Incoming;
      const Slot loser = ours_is_higher ? Slot::Incoming : Slot::Outgoing;
      EXPECT_EQ(notification_sent(actions),
                (Notification{ErrorCode::Cease, cease::kCollision, {}}));
      EXPECT_EQ(d.session.state(winner), S::OpenConfirm);
      EXPECT_EQ(d.session.state(loser), S::Idle);
      d.receive(winner, encode_keepalive());
      EXPECT_EQ(d.session.state(), S::Established);
    }
}

TEST(Session, CollisionWithEqualIdentifiersGoesByAs) {  // RFC 6286
  SessionSettings s = settings(5);
  s.remote_as = 65001;
  Driver d(s);
  Open open = d.peer_open(5);
  open.as_number = 65001;
  open.capabilities.four_octet_as = 65001;
  d.handle(event::Start{});
  d.handle(event::Connected{Slot::Outgoing});
  d.handle(event::Connected{Slot::Incoming});
  d.receive(Slot::Outgoing, encode_open(open));
  d.receive(Slot::Incoming, encode_open(open));
  EXPECT_EQ(d.session.state(Slot::Incoming), S::OpenConfirm);
  EXPECT_EQ(d.session.state(Slot::Outgoing), S::Idle);
}

TEST(Session, CollisionWithEstablishedLosesWithoutGracefulRestart) {
  Driver d;
  Open open = d.peer_open();
  open.capabilities.graceful_restart.reset();
  d.bring(Slot::Outgoing, S::Established, open);
  d.handle(event::Connected{Slot::Incoming});
  const auto actions = d.receive(Slot::Incoming, encode_open(open));
  EXPECT_EQ(notification_sent(actions)->subcode, cease::kCollision);
  EXPECT_EQ(d.session.state(Slot::Outgoing), S::Established);
  EXPECT_EQ(d.session.state(Slot::Incoming), S::Idle);
}

// RFC 4724 section 4.2: the neighbor is back before we noticed that it was gone.
TEST(Session, NewConnectionReplacesOldOneWithGracefulRestart) {
  Driver d;
  d.handle(event::Start{});
  d.bring(Slot::Incoming, S::Established);
  EXPECT_EQ(d.session.accept_slot(), Slot::Spare);
  d.handle(event::Connected{Slot::Spare});
  auto actions = d.receive(Slot::Spare, encode_open(d.peer_open()));
  EXPECT_FALSE(notification_sent(actions));
  EXPECT_EQ(d.session.state(Slot::Incoming), S::Established);  // until the KEEPALIVE
  actions = d.receive(Slot::Spare, encode_keepalive());
  ASSERT_EQ(all<action::Ended>(actions).size(), 1u);
  EXPECT_EQ(all<action::Ended>(actions)[0].slot, Slot::Incoming);
  EXPECT_FALSE(all<action::Ended>(actions)[0].kept.empty());
  EXPECT_EQ(all<action::Up>(actions).size(), 1u);
  EXPECT_TRUE(all<action::FlushStale>(actions).empty());
  EXPECT_TRUE(d.session.stale_kept());
  EXPECT_EQ(d.session.state(Slot::Incoming), S::Idle);
  // Our own late connection does not replace it, and one given up by the peer changes nothing.
  EXPECT_EQ(d.session.accept_slot(), Slot::Incoming);
  d.handle(event::Connected{Slot::Incoming});
  d.receive(Slot::Incoming, encode_open(d.peer_open()));
  d.receive(Slot::Incoming, encode_notification({ErrorCode::Cease, cease::kCollision, {}}));
  EXPECT_EQ(d.session.state(Slot::Spare), S::Established);
}

TEST(Session, ThirdConnectionTakesTheOlderSlot) {
  Driver d;
  d.handle(event::Start{});
  d.bring(Slot::Incoming, S::OpenSent);
  d.bring(Slot::Spare, S::OpenSent);
  EXPECT_EQ(d.session.accept_slot(), Slot::Incoming);
}

// --- Two sessions, wired to each other ----------------------------------------------------------

namespace {

// Messages travel in order per connection; `order` picks which connection delivers next.
struct World {
  struct End {
    int side;
    Slot slot;
  };
  struct Wire {
    End ends[2];                 // 0: the one that opened it
    std::deque<Bytes> queue[2];  // to that end; an empty message closes
    bool open = true;
  };

  explicit World(uint64_t order) : random(order), sessions{{settings(1), 1}, {settings(2), 2}} {}

  uint64_t roll(uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  }
  void handle(int side, const Event& event) {
    auto actions = sessions[side].handle(event, now);
    for (Action& a : actions) apply(side, a);
  }
  Wire* wire(int side, Slot slot) {
    for (Wire& w : wires)
      for (const End& e : w.ends)
        if (w.open && e.side == side && e.slot == slot) return &w;
    return nullptr;
  }
  void apply(int side, const Action& a) {
    if (std::holds_alternative<action::OpenConnection>(a)) connecting[side] = true;
    if (const auto* up = std::get_if<action::Up>(&a)) ++ups[side], (void)up;
    if (const auto* ended = std::get_if<action::Ended>(&a)) downs[side] += ended->established;
    if (const auto* send = std::get_if<action::Send>(&a))
      if (Wire* w = wire(side, send->slot))
        w->queue[w->ends[0].side == side].push_back(send->message);
    if (const auto* close = std::get_if<action::CloseConnection>(&a)) {
      if (close->slot == Slot::Outgoing) connecting[side] = false;
      if (Wire* w = wire(side, close->slot)) {
        const bool opener = w->ends[0].side == side;
        w->queue[opener].emplace_back();
        w->queue[!opener].clear();
        w->ends[!opener] = {-1, Slot::Outgoing};  // gone here, the rest still travels
      }
    }
  }
  // One thing that can happen; false when nothing can.
  bool happen() {
    std::vector<std::function<void()>> choices;
    for (int side = 0; side < 2; ++side)
      if (connecting[side]) choices.push_back([this, side] { connect(side); });
    for (std::size_t i = 0; i < wires.size(); ++i)
      for (int end = 0; end < 2; ++end)
        if (wires[i].open && !wires[i].queue[end].empty())
          choices.push_back([this, i, end] { deliver(i, end); });
    if (choices.empty()) return false;
    choices[roll(choices.size())]();
    return true;
  }
  void connect(int side) {
    connecting[side] = false;
    const auto slot = sessions[1 - side].accept_slot();
    if (!slot) return handle(side, event::Closed{Slot::Outgoing});
    wires.push_back({{{side, Slot::Outgoing}, {1 - side, *slot}}, {}, true});
    handle(side, event::Connected{Slot::Outgoing});
    handle(1 - side, event::Connected{*slot});
  }
  void deliver(std::size_t i, int end) {
    const Bytes message = wires[i].queue[end].front();
    wires[i].queue[end].pop_front();
    const End to = wires[i].ends[end];
    if (to.side < 0) return;
    if (message.empty()) {
      wires[i].open = false;
      handle(to.side, event::Closed{to.slot});
    } else {
      handle(to.side, event::Received{to.slot, message});
    }
  }

  uint64_t random;
  net::TimePoint now{1000s};
  Session sessions[2];
  std::deque<Wire> wires;
  bool connecting[2] = {};
  int ups[2] = {}, downs[2] = {};
};

}  // namespace

// Whatever the order in which things arrive, both sides that connect at the same time end up with
// one session, the same on both sides.
TEST(Session, SimultaneousConnectsAlwaysEndInOneSession) {
  for (uint64_t order = 1; order <= 3000; ++order) {
    World world(order);
    world.handle(0, event::Start{});
    world.handle(1, event::Start{});
    for (int round = 0; round < 50; ++round) {
      int steps = 0;
      while (world.happen()) ASSERT_LT(++steps, 1000) << order;
      if (world.sessions[0].state() == S::Established &&
          world.sessions[1].state() == S::Established)
        break;
      world.now = std::min(world.sessions[0].deadline(), world.sessions[1].deadline());
      for (int side = 0; side < 2; ++side) world.handle(side, event::Tick{});
    }
    ASSERT_EQ(world.sessions[0].state(), S::Established) << order;
    ASSERT_EQ(world.sessions[1].state(), S::Established) << order;
    // One side may believe in the connection that the other, by RFC 4271, still gives up.
    EXPECT_LE(world.downs[0] + world.downs[1], 1) << order;
    int live = 0;
    for (const World::Wire& w : world.wires)
      live += w.open && w.ends[0].side >= 0 && w.ends[1].side >= 0;
    EXPECT_EQ(live, 1) << order;
  }
}
