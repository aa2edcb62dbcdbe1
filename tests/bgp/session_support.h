// SPDX-License-Identifier: GPL-2.0-or-later
// A session driven by hand, with a fake clock and raw messages.
#pragma once
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "bgp/session.h"
#include "fake_family.h"

namespace bgp::test {

using namespace std::chrono_literals;

inline SessionSettings settings(uint32_t router_id = 1) {
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

inline std::vector<MessageType> types_sent(const std::vector<Action>& actions) {
  std::vector<MessageType> out;
  for (const auto& send : all<action::Send>(actions))
    out.push_back(static_cast<MessageType>(send.message[18]));
  return out;
}

inline std::optional<Notification> notification_sent(const std::vector<Action>& actions) {
  for (const auto& send : all<action::Send>(actions))
    if (send.message[18] == 3)
      return decode_notification(std::span(send.message).subspan(kHeaderSize)).value();
  return std::nullopt;
}

// One session, driven by hand.
struct Driver {
  explicit Driver(SessionSettings s = settings()) : session(s, 1) {}

  std::vector<Action> handle(const Event& event) { return session.handle(event, now); }
  std::vector<Action> receive(Slot slot, const net::Bytes& message) {
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
    if (slot == Slot::Outgoing && session.state() == SessionState::Idle) handle(event::Start{});
    if (state == SessionState::Connect) return;
    if (state == SessionState::Active) {
      handle(event::Closed{slot});
      return;
    }
    handle(event::Connected{slot});
    if (state == SessionState::OpenSent) return;
    receive(slot, encode_open(open));
    if (state == SessionState::OpenConfirm) return;
    receive(slot, encode_keepalive());
  }
  void bring(Slot slot, SessionState state) { bring(slot, state, peer_open()); }

  net::TimePoint now{1000s};
  Session session;
};

inline net::Bytes header_only(uint16_t length, uint8_t type) {
  net::ByteWriter out;
  for (int i = 0; i < 16; ++i) out.u8(0xff);
  out.u16(length);
  out.u8(type);
  return out.take();
}

inline net::Bytes update_message(uint32_t key = 1) {
  const net::Bytes nlri = fake_nlri(key);
  const std::span<const uint8_t> view = nlri;
  Attributes attributes;
  return encode_reach(kL2vpnEvpn, *net::IpAddress::parse("192.0.2.1"),
                      encode_attributes(attributes, {}), {&view, 1}, kMaxMessage)
      .message;
}

}  // namespace bgp::test
