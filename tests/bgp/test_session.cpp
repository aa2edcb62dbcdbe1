// SPDX-License-Identifier: GPL-2.0-or-later
// The session's state machine: every state with every event, OPENs that are refused, messages cut
// short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "session_support.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;
using S = SessionState;

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
