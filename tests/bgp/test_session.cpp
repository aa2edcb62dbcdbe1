// SPDX-License-Identifier: GPL-2.0-or-later
// The session's state machine with a fake clock: single steps against raw messages, and two
// sessions wired to each other in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>

#include "bgp/session.h"
#include "fake_family.h"

using namespace bgp;
using namespace bgp::test;
using namespace std::chrono_literals;
using net::Bytes;
using S = SessionState;

namespace {

SessionSettings settings(uint32_t router_id = 1) {
  SessionSettings s;
  s.local_as = 65000;
  s.remote_as = 65000;
  s.router_id = router_id;
  s.family = fake_family();
  return s;
}

template <class A>
std::vector<A> all(const std::vector<Action>& actions) {
  std::vector<A> out;
  for (const Action& action : actions)
    if (const A* one = std::get_if<A>(&action)) out.push_back(*one);
  return out;
}

std::vector<MessageType> types_sent(const std::vector<Action>& actions) {
  std::vector<MessageType> out;
  for (const auto& send : all<action::Send>(actions))
    out.push_back(static_cast<MessageType>(send.message[18]));
  return out;
}

std::optional<Notification> notification_sent(const std::vector<Action>& actions) {
  for (const auto& send : all<action::Send>(actions))
    if (send.message[18] == 3)
      return decode_notification(std::span(send.message).subspan(kHeaderSize)).value();
  return std::nullopt;
}

// One session, driven by hand.
struct Driver {
  explicit Driver(SessionSettings s = settings()) : session(s, 1) {}

  std::vector<Action> handle(const Event& event) { return session.handle(event, now); }
  std::vector<Action> receive(Slot slot, const Bytes& message) {
    return handle(event::Received{slot, message});
  }
  // Moves the clock to the next deadline.
  std::vector<Action> next_deadline() {
    now = session.deadline();
    return handle(event::Tick{});
  }
  std::vector<Action> advance(net::Duration by) {
    const net::TimePoint until = now + by;
    std::vector<Action> out;
    while (session.deadline() <= until) {
      now = session.deadline();
      for (Action& action : handle(event::Tick{})) out.push_back(std::move(action));
    }
    now = until;
    return out;
  }

  Open peer_open(uint32_t router_id = 2) const {
    Open open = Session(settings(router_id), 1).local_open();
    return open;
  }
  // Brings the connection of `slot` to the state wanted.
  void bring(Slot slot, SessionState state, const Open& open) {
    if (slot == Slot::Outgoing && session.state() == S::Idle) handle(event::Start{});
    if (state == S::Connect) return;
    if (state == S::Active) {
      handle(event::Closed{slot});
      return;
    }
    handle(event::Connected{slot});
    if (state == S::OpenSent) return;
    receive(slot, encode_open(open));
    if (state == S::OpenConfirm) return;
    receive(slot, encode_keepalive());
  }
  void bring(Slot slot, SessionState state) { bring(slot, state, peer_open()); }

  net::TimePoint now{1000s};
  Session session;
};

Bytes header_only(uint16_t length, uint8_t type) {
  net::ByteWriter out;
  for (int i = 0; i < 16; ++i) out.u8(0xff);
  out.u16(length);
  out.u8(type);
  return out.take();
}

Bytes update_message(uint32_t key = 1) {
  const Bytes nlri = fake_nlri(key);
  const std::span<const uint8_t> view = nlri;
  Attributes attributes;
  return encode_reach(kL2vpnEvpn, *net::IpAddress::parse("192.0.2.1"),
                      encode_attributes(attributes, {}), {&view, 1}, kMaxMessage)
      .message;
}

}  // namespace

TEST(Session, WholeLife) {
  Driver d;
  EXPECT_EQ(d.session.state(), S::Idle);
  auto actions = d.handle(event::Start{});
  EXPECT_EQ(all<action::OpenConnection>(actions).size(), 1u);
  EXPECT_EQ(d.session.state(), S::Connect);
  actions = d.handle(event::Connected{Slot::Outgoing});
  EXPECT_THAT(types_sent(actions), testing::ElementsAre(MessageType::Open));
  EXPECT_EQ(d.session.state(), S::OpenSent);
  EXPECT_EQ(d.session.deadline(), d.now + 4min);
  actions = d.receive(Slot::Outgoing, encode_open(d.peer_open()));
  EXPECT_THAT(types_sent(actions), testing::ElementsAre(MessageType::Keepalive));
  EXPECT_EQ(d.session.state(), S::OpenConfirm);
  EXPECT_EQ(d.session.hold_time(), 90s);
  actions = d.receive(Slot::Outgoing, encode_keepalive());
  EXPECT_EQ(all<action::Up>(actions).size(), 1u);
  EXPECT_EQ(d.session.state(), S::Established);
  EXPECT_TRUE(d.session.graceful_restart_negotiated());
  actions = d.receive(Slot::Outgoing, update_message());
  ASSERT_EQ(all<action::Routes>(actions).size(), 1u);
  actions = d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 0));
  ASSERT_EQ(all<action::Refresh>(actions).size(), 1u);
  EXPECT_TRUE(all<action::Refresh>(actions)[0].enhanced);
  EXPECT_TRUE(
      all<action::Refresh>(d.receive(Slot::Outgoing, encode_route_refresh({1, 1}, 0))).empty());
  EXPECT_TRUE(
      all<action::Refresh>(d.receive(Slot::Outgoing, encode_route_refresh(kL2vpnEvpn, 1))).empty());
  actions = d.handle(event::Stop{shutdown_notification(cease::kAdministrativeShutdown, "bye")});
  const auto last = notification_sent(actions).value();  // RFC 8538: the reason inside
  EXPECT_EQ(last.subcode, cease::kHardReset);
  ASSERT_GE(last.data.size(), 2u);
  EXPECT_EQ(
      shutdown_text({ErrorCode::Cease, last.data[1], {last.data.begin() + 2, last.data.end()}}),
      "bye");
  EXPECT_EQ(d.session.state(), S::Idle);
  EXPECT_EQ(d.session.deadline(), net::kNever);
}

TEST(Session, OpenSaysWhatWeDo) {
  SessionSettings s = settings();
  s.local_as = 4200000000;
  Driver d(s);
  Open open = d.session.local_open();
  EXPECT_EQ(open.as_number, kAsTrans);
  EXPECT_EQ(open.capabilities.four_octet_as, 4200000000u);
  EXPECT_FALSE(open.capabilities.graceful_restart->restarted);
  d.session.set_restarting(true);
  open = d.session.local_open();
  EXPECT_TRUE(open.capabilities.graceful_restart->restarted);
  EXPECT_EQ(open.capabilities.graceful_restart->families,
            (std::vector<GracefulRestart::Entry>{{kL2vpnEvpn, true}}));
  s.graceful_restart = false;
  EXPECT_FALSE(Driver(s).session.local_open().capabilities.graceful_restart);
}

// State times event: what is sent and where it leads.
TEST(Session, StateEventTable) {
  struct Row {
    S from;
    const char* event;
    S to;
    std::optional<std::pair<int, int>> notification = std::nullopt;
  };
  using N = std::pair<int, int>;
  const std::vector<Row> rows = {
      {S::Connect, "start", S::Connect},
      {S::Connect, "closed", S::Active},
      {S::Connect, "retry", S::Connect},
      {S::Active, "retry", S::Connect},
      {S::Active, "closed", S::Active},
      {S::OpenSent, "closed", S::Active},
      {S::OpenSent, "keepalive", S::Idle, N{5, 1}},
      {S::OpenSent, "update", S::Idle, N{5, 1}},
      {S::OpenSent, "refresh", S::Idle, N{5, 1}},
      {S::OpenSent, "notification", S::Idle},
      {S::OpenSent, "bad header", S::Idle, N{1, 1}},
      {S::OpenSent, "open", S::OpenConfirm},
      {S::OpenSent, "silence", S::Active, N{4, 0}},
      {S::OpenConfirm, "open", S::Idle, N{5, 2}},
      {S::OpenConfirm, "update", S::Idle, N{5, 2}},
      {S::OpenConfirm, "refresh", S::Idle, N{5, 2}},
      {S::OpenConfirm, "notification", S::Idle},
      {S::OpenConfirm, "bad header", S::Idle, N{1, 1}},
      {S::OpenConfirm, "keepalive", S::Established},
      {S::OpenConfirm, "closed", S::Active},
      {S::OpenConfirm, "silence", S::Active, N{4, 0}},
      {S::Established, "open", S::Idle, N{5, 3}},
      {S::Established, "keepalive", S::Established},
      {S::Established, "update", S::Established},
      {S::Established, "refresh", S::Established},
      {S::Established, "notification", S::Idle},
      {S::Established, "bad header", S::Idle, N{1, 1}},
      {S::Established, "closed", S::Active},
      {S::Established, "silence", S::Active, N{4, 0}},
      {S::Established, "start", S::Established},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(to_string(row.from)) + " " + row.event);
    Driver d;
    d.bring(Slot::Outgoing, row.from);
    ASSERT_EQ(d.session.state(), row.from);
    const std::string event = row.event;
    std::vector<Action> actions;
    const Slot slot = Slot::Outgoing;
    if (event == "start") actions = d.handle(event::Start{});
    if (event == "closed") actions = d.handle(event::Closed{slot});
    if (event == "retry") actions = d.next_deadline();
    if (event == "open") actions = d.receive(slot, encode_open(d.peer_open()));
    if (event == "keepalive") actions = d.receive(slot, encode_keepalive());
    if (event == "update") actions = d.receive(slot, update_message());
    if (event == "refresh") actions = d.receive(slot, encode_route_refresh(kL2vpnEvpn, 0));
    if (event == "notification") actions = d.receive(slot, encode_notification({}));
    if (event == "bad header") actions = d.receive(slot, Bytes(19, 0));
    if (event == "silence") {
      const auto limit = d.now + 5min;
      while (d.session.state() == row.from && d.now < limit) actions = d.next_deadline();
    }
    EXPECT_EQ(d.session.state(), row.to);
    const auto sent = notification_sent(actions);
    ASSERT_EQ(sent.has_value(), row.notification.has_value());
    if (sent) {
      EXPECT_EQ(static_cast<int>(sent->code), row.notification->first);
      EXPECT_EQ(sent->subcode, row.notification->second);
    }
    const bool ends = row.from >= S::OpenSent && row.to < S::OpenSent;
    EXPECT_EQ(all<action::CloseConnection>(actions).empty(),
              !(ends || (event == "retry" && row.from == S::Connect)));
    EXPECT_EQ(all<action::Ended>(actions).size(), ends ? 1u : 0u);
    if (ends) {
      EXPECT_EQ(all<action::Ended>(actions)[0].established, row.from == S::Established);
    }
  }
}

TEST(Session, OpenIsJudged) {
  struct Row {
    const char* what;
    void (*change)(Open&);
    uint8_t subcode;
  };
  for (const Row& row : {
           Row{"AS", [](Open& o) { o.as_number = 65001, o.capabilities.four_octet_as = 65001; }, 2},
           Row{"four octets count", [](Open& o) { o.capabilities.four_octet_as = 65001; }, 2},
           Row{"identifier", [](Open& o) { o.router_id = 1; }, 3},
           Row{"family", [](Open& o) { o.capabilities.multiprotocol = {{1, 1}}; }, 7},
       }) {
    Driver d;
    d.bring(Slot::Outgoing, S::OpenSent);
    Open open = d.peer_open();
    row.change(open);
    const auto sent = notification_sent(d.receive(Slot::Outgoing, encode_open(open)));
    ASSERT_TRUE(sent) << row.what;
    EXPECT_EQ(sent->code, ErrorCode::OpenMessage) << row.what;
    EXPECT_EQ(sent->subcode, row.subcode) << row.what;
    if (row.subcode == 7) {
      EXPECT_EQ(sent->data, hex("0104 00190046"));
    }
    EXPECT_EQ(d.session.state(), S::Idle);
  }
  // RFC 6286: between two ASes identifiers may be equal.
  SessionSettings external = settings();
  external.remote_as = 65001;
  Driver d(external);
  d.bring(Slot::Outgoing, S::OpenSent);
  Open open = d.peer_open(1);
  open.as_number = 65001;
  open.capabilities.four_octet_as = 65001;
  d.receive(Slot::Outgoing, encode_open(open));
  EXPECT_EQ(d.session.state(), S::OpenConfirm);
}

// Every message cut at every length, with the length field saying so: an answer of RFC 4271
// section 6, or for an UPDATE of RFC 7606, and never a crash.
TEST(Session, TruncatedMessages) {
  struct Row {
    Bytes message;
    S state;
    ErrorCode code;
  };
  const Driver any;
  const Row rows[] = {
      {encode_open(any.peer_open()), S::OpenSent, ErrorCode::OpenMessage},
      {update_message(), S::Established, ErrorCode::UpdateMessage},
      {encode_notification({ErrorCode::Cease, 2, hex("0161")}), S::Established, ErrorCode::Cease},
      {encode_keepalive(), S::Established, ErrorCode::MessageHeader},
      {encode_route_refresh(kL2vpnEvpn, 0), S::Established, ErrorCode::RouteRefreshMessage},
  };
  const std::map<uint8_t, std::size_t> shortest{{1, 29}, {2, 23}, {3, 21}, {4, 19}, {5, 19}};
  for (const Row& row : rows) {
    for (std::size_t size = kHeaderSize; size < row.message.size(); ++size) {
      SCOPED_TRACE(std::to_string(row.message[18]) + " cut at " + std::to_string(size));
      Driver d;
      d.bring(Slot::Outgoing, row.state);
      Bytes cut(row.message.begin(), row.message.begin() + static_cast<std::ptrdiff_t>(size));
      cut[16] = static_cast<uint8_t>(size >> 8);
      cut[17] = static_cast<uint8_t>(size);
      const auto actions = d.receive(Slot::Outgoing, cut);
      const auto sent = notification_sent(actions);
      if (size < shortest.at(row.message[18])) {
        ASSERT_TRUE(sent);
        EXPECT_EQ(sent->code, ErrorCode::MessageHeader);
        EXPECT_EQ(sent->subcode, header_error::kBadLength);
        EXPECT_EQ(sent->data, (Bytes{0, static_cast<uint8_t>(size)}));
      } else if (row.code == ErrorCode::Cease) {
        EXPECT_FALSE(sent);  // a NOTIFICATION is never answered
      } else {
        ASSERT_TRUE(sent);
        EXPECT_EQ(sent->code, row.code);
      }
      EXPECT_EQ(d.session.state(), S::Idle);
    }
    for (std::size_t length = 0; length < kHeaderSize; ++length) {
      Driver d;
      d.bring(Slot::Outgoing, row.state);
      const auto sent = notification_sent(
          d.receive(Slot::Outgoing, header_only(static_cast<uint16_t>(length), row.message[18])));
      ASSERT_TRUE(sent);
      EXPECT_EQ(sent->code, ErrorCode::MessageHeader);
      EXPECT_EQ(sent->subcode, header_error::kBadLength);
    }
  }
}

TEST(Session, LongMessagesOnlyAfterOpen) {
  Driver d;
  d.bring(Slot::Outgoing, S::OpenSent);
  EXPECT_EQ(d.session.max_incoming(Slot::Outgoing), kMaxMessage);
  EXPECT_EQ(notification_sent(d.receive(Slot::Outgoing, header_only(4097, 2)))->subcode,
            header_error::kBadLength);
  Driver up;
  up.bring(Slot::Outgoing, S::Established);
  EXPECT_EQ(up.session.max_incoming(Slot::Outgoing), kMaxExtendedMessage);
}

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
  EXPECT_TRUE(ended.keep_stale);  // RFC 8538
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
  EXPECT_TRUE(all<action::Ended>(actions)[0].keep_stale);
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
  EXPECT_TRUE(ended[0].established && ended[0].keep_stale);
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
  EXPECT_TRUE(all<action::Ended>(sent.receive(Slot::Outgoing, Bytes(19, 0)))[0].keep_stale);
  Helper got;
  EXPECT_TRUE(all<action::Ended>(got.receive(
      Slot::Outgoing, encode_notification({ErrorCode::HoldTimerExpired, 0, {}})))[0]
                  .keep_stale);
  Helper silent;
  const auto expired = all<action::Ended>(silent.advance(91s));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].reason.notification->code, ErrorCode::HoldTimerExpired);
  EXPECT_TRUE(expired[0].keep_stale);
  Helper reset;
  const Notification hard{ErrorCode::Cease, cease::kHardReset, {6, cease::kPeerDeconfigured}};
  const auto ended = all<action::Ended>(reset.receive(Slot::Outgoing, encode_notification(hard)));
  EXPECT_FALSE(ended[0].keep_stale);
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
  EXPECT_FALSE(all<action::Ended>(sent.receive(Slot::Incoming, Bytes(19, 0)))[0].keep_stale);
  Helper got;
  without(got);
  EXPECT_FALSE(
      all<action::Ended>(got.receive(Slot::Incoming, encode_notification({})))[0].keep_stale);
}

TEST(GracefulRestart, SecondRestartDropsWhatWasStale) {
  Helper d;
  d.handle(event::Closed{Slot::Outgoing});
  d.back(d.peer_open());
  const auto actions = d.handle(event::Closed{Slot::Incoming});
  EXPECT_EQ(all<action::FlushStale>(actions).size(), 1u);
  EXPECT_TRUE(all<action::Ended>(actions)[0].keep_stale);
}

TEST(GracefulRestart, OffMeansOff) {
  SessionSettings s = settings();
  s.graceful_restart = false;
  Driver d(s);
  d.bring(Slot::Outgoing, S::Established);
  EXPECT_FALSE(all<action::Ended>(d.handle(event::Closed{Slot::Outgoing}))[0].keep_stale);
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
