// SPDX-License-Identifier: GPL-2.0-or-later
// The state machine of a neighbor. Reading order: handle(), next_state() (one switch on state, then
// on input; the state changes in step(), after it), then what it calls, in the order of a session's
// life. settle() closes every turn: it starts connecting again, or pauses after an error. What is
// about the routes of a family is in session_routes.cpp, what is only shown in session_view.cpp.
//
// Where two connections meet (RFC 4271 section 6.8) the one whose OPEN arrives second is compared
// with those in OpenConfirm. With one that is Established it loses, unless graceful restart was
// negotiated and the neighbor opened it: then it replaces the old one (RFC 4724 section 4.2), but
// only when its KEEPALIVE has come, so that a connection that the neighbor gave up in a collision
// of its own does no harm.
#include "bgp/session.h"

#include <algorithm>
#include <utility>

#include "bgp/session_parts.h"

namespace bgp {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpenHold = 4min;  // RFC 4271 section 8.2.2: "large value"
constexpr auto kMinSendHold = 8min;
constexpr auto kMaxIdleHold = 120s;
constexpr auto kStableAfter = 2min;  // a session this old starts with the shortest pause again
constexpr auto kTold = 60s;          // for the first End-of-RIB (RFC 4684 section 6)

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

// Errors that would most likely happen again at once. A lost collision, a dead neighbor or a lost
// connection are none.
bool calls_for_pause(const Notification& notification) {
  return notification.code != ErrorCode::HoldTimerExpired &&
         notification.code != ErrorCode::SendHoldTimerExpired &&
         !(notification.code == ErrorCode::Cease && notification.subcode == cease::kCollision);
}

// RFC 8538 section 3: the reason travels inside.
Notification hard_reset(const Notification& reason) {
  Notification out{
      ErrorCode::Cease, cease::kHardReset, {static_cast<uint8_t>(reason.code), reason.subcode}};
  out.data.insert(out.data.end(), reason.data.begin(), reason.data.end());
  return out;
}

Notification inside(const Notification& hard) {
  if (hard.data.size() < 2) return hard;
  return {static_cast<ErrorCode>(hard.data[0]), hard.data[1],
          net::Bytes(hard.data.begin() + 2, hard.data.end())};
}

uint8_t unexpected_message(SessionState state) {  // RFC 6608
  switch (state) {
    case SessionState::OpenSent: return fsm_error::kInOpenSent;
    case SessionState::OpenConfirm: return fsm_error::kInOpenConfirm;
    case SessionState::Established: return fsm_error::kInEstablished;
    default: return fsm_error::kUnspecific;
  }
}

}  // namespace

Session::Session(const SessionSettings& settings, uint64_t seed)
    : settings_(settings), random_(seed) {
  for (Slot slot : kSlots) {
    at(slot).slot = slot;
    at(slot).timers.fill(net::kNever);
  }
  timers_.fill(net::kNever);
  const auto add = [this](const Family& family) {
    FamilyState& state = families_.emplace_back();
    state.family = family;
    state.timers.fill(net::kNever);
  };
  add(settings_.family);
  for (const Family& family : settings_.other_families) add(family);
}

std::vector<Action> Session::handle(const Event& event, net::TimePoint now) {
  now_ = now;
  actions_.clear();
  std::visit(Overloaded{
                 [&](const event::Start&) {
                   connect_now_ = !enabled_;
                   enabled_ = true;
                 },
                 [&](const event::Stop& e) { stop(e.notification); },
                 [&](const event::Reset& e) {
                   idle_override_ = e.idle;
                   penalty_ = true;
                   for (Connection& c : connections_)
                     if (c.tcp) {
                       notify(c, e.notification);
                       leave(c);
                     }
                 },
                 [&](const event::Connected& e) { step(at(e.slot), {Input::Connected}); },
                 [&](const event::Closed& e) { step(at(e.slot), {Input::Closed}); },
                 [&](const event::Received& e) { received(e); },
                 [&](const event::Sent& e) {
                   Connection& c = at(e.slot);
                   if (c.state == SessionState::Established) restart_send_hold(c);
                 },
                 [&](const event::AskRefresh&) { ask_refresh(); },
                 [&](const event::Tick&) { tick(); },
             },
             event);
  settle();
  return std::move(actions_);
}

void Session::received(const event::Received& event) {
  Connection& c = at(event.slot);
  const auto header = decode_header(event.message, max_incoming(event.slot));
  if (!header) return step(c, {Input::Malformed, {}, header.error()});
  const auto body = event.message.subspan(kHeaderSize);
  switch (header->type) {
    case MessageType::Open: return step(c, {Input::Open, body});
    case MessageType::Update: return step(c, {Input::Update, body});
    case MessageType::Keepalive: return step(c, {Input::Keepalive});
    case MessageType::RouteRefresh: return step(c, {Input::RouteRefresh, body});
    case MessageType::Notification: {
      // An error in a NOTIFICATION can't be answered (RFC 4271 section 6.4); the length was
      // checked.
      auto notification = decode_notification(body);
      return step(c, {Input::Notification, {}, std::move(notification).value_or(Notification{})});
    }
  }
}

void Session::step(Connection& c, const Inbound& in) {
  c.state = next_state(c, in);
  if (c.state == SessionState::Idle) leave(c);
}

SessionState Session::next_state(Connection& c, const Inbound& in) {
  const auto unexpected = [&] {
    return notify(c, {ErrorCode::FiniteStateMachine, unexpected_message(c.state), {}});
  };
  switch (c.state) {
    case SessionState::Idle:
      if (in.input == Input::Connected) return connected(c);
      return SessionState::Idle;

    case SessionState::Connect:
      switch (in.input) {
        case Input::Connected: return connected(c);
        case Input::Closed:
          timer(SessionTimer::ConnectRetry) = now_ + jittered(settings_.connect_retry);
          return SessionState::Active;
        case Input::ConnectRetryExpired:
          actions_.emplace_back(action::CloseConnection{c.slot});
          actions_.emplace_back(action::OpenConnection{});
          timer(SessionTimer::ConnectRetry) = now_ + jittered(settings_.connect_retry);
          return SessionState::Connect;
        default: return SessionState::Connect;
      }

    case SessionState::Active:  // no connection yet, or one that waits for the peer's OPEN
      switch (in.input) {
        case Input::ConnectRetryExpired:
          timer(SessionTimer::ConnectRetry) = now_ + jittered(settings_.connect_retry);
          if (any_live()) return SessionState::Active;  // the neighbor has come to us
          actions_.emplace_back(action::OpenConnection{});
          return SessionState::Connect;
        case Input::DelayOpenExpired: return send_open(c);
        case Input::Open: return c.tcp ? open_received(c, in.body) : SessionState::Active;
        case Input::Closed:
          return c.tcp ? end(c, {EndReason::Cause::ConnectionClosed, {}}) : SessionState::Active;
        case Input::Notification:
          return end(c, {EndReason::Cause::NotificationReceived, in.notification});
        case Input::Malformed: return notify(c, in.notification);
        case Input::Update:
        case Input::Keepalive:
        case Input::RouteRefresh: return unexpected();
        default: return SessionState::Active;
      }

    case SessionState::OpenSent:
      switch (in.input) {
        case Input::Open: return open_received(c, in.body);
        case Input::Closed: return end(c, {EndReason::Cause::ConnectionClosed, {}});
        case Input::Notification:
          return end(c, {EndReason::Cause::NotificationReceived, in.notification});
        case Input::Malformed: return notify(c, in.notification);
        case Input::HoldExpired: return notify(c, {ErrorCode::HoldTimerExpired, 0, {}});
        case Input::Update:
        case Input::Keepalive:
        case Input::RouteRefresh: return unexpected();
        default: return SessionState::OpenSent;
      }

    case SessionState::OpenConfirm:
      switch (in.input) {
        case Input::Keepalive:
          if (!must_wait(c)) return confirmed(c);
          c.waiting = true;
          restart_hold(c);
          return SessionState::OpenConfirm;
        case Input::KeepaliveExpired: restart_keepalive(c); return SessionState::OpenConfirm;
        case Input::Closed: return end(c, {EndReason::Cause::ConnectionClosed, {}});
        case Input::Notification:
          return end(c, {EndReason::Cause::NotificationReceived, in.notification});
        case Input::Malformed: return notify(c, in.notification);
        case Input::HoldExpired: return notify(c, {ErrorCode::HoldTimerExpired, 0, {}});
        case Input::Open:
        case Input::Update:
        case Input::RouteRefresh: return unexpected();
        default: return SessionState::OpenConfirm;
      }

    case SessionState::Established:
      switch (in.input) {
        case Input::Keepalive: restart_hold(c); return SessionState::Established;
        case Input::Update: return update_received(c, in.body);
        case Input::RouteRefresh: return refresh_received(c, in.body);
        case Input::KeepaliveExpired: restart_keepalive(c); return SessionState::Established;
        case Input::Closed: return end(c, {EndReason::Cause::ConnectionClosed, {}});
        case Input::Notification:
          return end(c, {EndReason::Cause::NotificationReceived, in.notification});
        case Input::Malformed: return notify(c, in.notification);
        case Input::HoldExpired: return notify(c, {ErrorCode::HoldTimerExpired, 0, {}});
        case Input::SendHoldExpired:  // RFC 9687: a NOTIFICATION would not get through either
          actions_.emplace_back(action::CloseConnection{c.slot});
          return end(c, {EndReason::Cause::SendHoldTimer, {}});
        case Input::Open: return unexpected();
        default: return SessionState::Established;
      }
  }
  return c.state;
}

// TCP is there: the OPEN goes out, at once or after the delay of RFC 4271 section 8.1.1.
SessionState Session::connected(Connection& c) {
  const bool outgoing = c.slot == Slot::Outgoing;
  const bool wanted = outgoing ? c.state == SessionState::Connect : accept_slot().has_value();
  if (!wanted) {
    actions_.emplace_back(action::CloseConnection{c.slot});
    return c.state;
  }
  c.tcp = true;
  c.number = ++connects_;
  if (outgoing) timer(SessionTimer::ConnectRetry) = net::kNever;
  if (settings_.delay_open == 0s) return send_open(c);
  timer(c, ConnectionTimer::DelayOpen) = now_ + settings_.delay_open;
  return SessionState::Active;
}

SessionState Session::send_open(Connection& c) {
  actions_.emplace_back(action::Send{c.slot, encode_open(local_open())});
  const bool bounded = c.slot != Slot::Outgoing && settings_.open_time > 0s;
  timer(c, ConnectionTimer::Hold) =
      now_ + (bounded ? net::Duration(settings_.open_time) : net::Duration(kOpenHold));
  return SessionState::OpenSent;
}

SessionState Session::open_received(Connection& c, std::span<const uint8_t> body) {
  auto open = decode_open(body);
  if (!open) return notify(c, std::move(open).error());
  if (auto refusal = refuse(*open)) return notify(c, std::move(*refusal));
  if (loses_collision(c, *open)) return notify(c, {ErrorCode::Cease, cease::kCollision, {}});
  if (c.state == SessionState::Active) send_open(c);
  timer(c, ConnectionTimer::DelayOpen) = net::kNever;
  c.hold_time = std::min(settings_.hold_time, std::chrono::seconds(open->hold_time));
  c.peer = std::move(*open);
  restart_keepalive(c);
  restart_hold(c);
  return SessionState::OpenConfirm;
}

// What an OPEN must say for us to agree: RFC 4271 section 6.2, RFC 5492, 6286.
std::optional<Notification> Session::refuse(const Open& open) const {
  const auto failure = [](uint8_t subcode, net::Bytes data = {}) {
    return Notification{ErrorCode::OpenMessage, subcode, std::move(data)};
  };
  if (open.effective_as() != settings_.remote_as) return failure(open_error::kBadPeerAs);
  if (settings_.local_as == settings_.remote_as && open.router_id == settings_.router_id)
    return failure(open_error::kBadIdentifier);
  const AfiSafi family = settings_.family.id;
  if (!open.capabilities.has(family))
    return failure(open_error::kUnsupportedCapability,
                   {1, 4, static_cast<uint8_t>(family.afi >> 8), static_cast<uint8_t>(family.afi),
                    0, family.safi});
  return std::nullopt;
}

// RFC 4271 section 6.8, with the tie of RFC 6286 section 2.3. Closes the connections that lose
// against c; true when c itself must go.
bool Session::loses_collision(Connection& c, const Open& open) {
  const bool ours_is_higher = settings_.router_id != open.router_id
                                  ? settings_.router_id > open.router_id
                                  : settings_.local_as > open.effective_as();
  for (Connection& other : connections_) {
    if (&other == &c) continue;
    const bool c_is_outgoing = c.slot == Slot::Outgoing;
    if (other.state == SessionState::Established &&
        (c_is_outgoing || (!keeps_routes(other) && !must_wait(c))))
      return true;
    if (other.state != SessionState::OpenConfirm) continue;
    // Both opened by the neighbor: it has given up the older one.
    const bool same_side = c_is_outgoing == (other.slot == Slot::Outgoing);
    const bool c_wins = same_side ? c.number > other.number : c_is_outgoing == ours_is_higher;
    if (!c_wins) return true;
    notify(other, {ErrorCode::Cease, cease::kCollision, {}});
    leave(other);
  }
  return false;
}

// True while a connection that is older than the session does not replace it: the neighbor, who
// opened it, is about to give up one of the two, and which one is its to say.
bool Session::must_wait(const Connection& c) const {
  return c.number <= established_after_ && std::ranges::any_of(connections_, [](const auto& other) {
           return other.state == SessionState::Established;
         });
}

// The KEEPALIVE that makes the session Established.
SessionState Session::confirmed(Connection& c) {
  for (Connection& other : connections_) {
    if (&other == &c) continue;
    if (other.state == SessionState::Established) {
      actions_.emplace_back(action::CloseConnection{other.slot});
      end(other, {EndReason::Cause::Replaced, {}});
      leave(other);
    } else if (other.state == SessionState::OpenConfirm) {
      notify(other, {ErrorCode::Cease, cease::kCollision, {}});
      leave(other);
    } else if (!other.tcp && other.state != SessionState::Idle) {  // still connecting
      if (other.state == SessionState::Connect)
        actions_.emplace_back(action::CloseConnection{other.slot});
      leave(other);
    }
  }
  timer(SessionTimer::ConnectRetry) = net::kNever;
  restart_hold(c);
  restart_send_hold(c);
  established_at_ = now_;
  established_after_ = connects_;
  actions_.emplace_back(action::Up{c.slot});
  timer(SessionTimer::Restart) = net::kNever;
  last_peer_ = c.peer;
  for (FamilyState& f : families_) {
    f.end_of_rib = f.refreshing = false;
    came_back(c, f);
    const bool decides_others = &f != &families_.front();  // memberships (RFC 4684)
    if (decides_others && c.peer->capabilities.has(f.family.id))
      timer(f, FamilyTimer::Told) = now_ + kTold;
  }
  return SessionState::Established;
}

// A Cease means what it says: to a neighbor that would keep our routes over a NOTIFICATION it goes
// as Hard Reset (RFC 8538 section 4).
SessionState Session::notify(Connection& c, Notification notification) {
  const bool hard = notification.code == ErrorCode::Cease && c.state == SessionState::Established &&
                    survives_notification(c);
  actions_.emplace_back(
      action::Send{c.slot, encode_notification(hard ? hard_reset(notification) : notification)});
  actions_.emplace_back(action::CloseConnection{c.slot});
  return end(c, {EndReason::Cause::NotificationSent, std::move(notification)});
}

SessionState Session::end(Connection& c, EndReason reason) {
  const bool was_established = c.state == SessionState::Established;
  std::vector<AfiSafi> kept;
  if (was_established) went_down(c, reason, kept);
  if (reason.notification && is_hard_reset(*reason.notification))
    reason.notification = inside(*reason.notification);
  if (reason.notification && calls_for_pause(*reason.notification)) penalty_ = true;
  if (reason.cause == EndReason::Cause::NotificationReceived)
    actions_.emplace_back(action::CloseConnection{c.slot});
  if (reason.cause == EndReason::Cause::ConnectionClosed)
    actions_.emplace_back(action::CloseConnection{c.slot});
  if (was_established && now_ - established_at_ >= kStableAfter) failures_ = 0;
  actions_.emplace_back(action::Ended{c.slot, std::move(reason), was_established, std::move(kept)});
  return SessionState::Idle;
}

void Session::leave(Connection& c) {
  const Slot slot = c.slot;
  c = Connection{};
  c.slot = slot;
  c.timers.fill(net::kNever);
}

void Session::stop(const std::optional<Notification>& notification) {
  for (Connection& c : connections_) {
    if (c.tcp && notification) {
      notify(c, *notification);
    } else if (c.tcp) {
      actions_.emplace_back(action::CloseConnection{c.slot});
      end(c, {EndReason::Cause::Stopped, {}});
    } else if (c.state == SessionState::Connect) {
      actions_.emplace_back(action::CloseConnection{c.slot});
    }
    leave(c);
  }
  for (FamilyState& f : families_) {
    flush(f);
    f.timers.fill(net::kNever);
  }
  enabled_ = false;
  failures_ = 0;
  idle_override_ = 0s;
  timers_.fill(net::kNever);
}

// The end of each turn: when there is no session and nothing on its way to one, pause after an
// error, else connect (or wait for the neighbor to do so).
void Session::settle() {
  Connection& outgoing = at(Slot::Outgoing);
  const bool penalty = std::exchange(penalty_, false);
  const bool connect_now = std::exchange(connect_now_, false);
  for (Connection& c : connections_)
    if (c.waiting && !must_wait(c)) {
      c.waiting = false;
      c.state = confirmed(c);
    }
  if (!enabled_ || any_live()) return;
  auto& idle_hold = timer(SessionTimer::IdleHold);
  if (penalty) {
    if (outgoing.state == SessionState::Connect)
      actions_.emplace_back(action::CloseConnection{outgoing.slot});
    leave(outgoing);
    timer(SessionTimer::ConnectRetry) = net::kNever;
    const auto pause = std::min<std::chrono::seconds>(
        kMaxIdleHold, settings_.connect_retry * (1u << std::min(failures_, 6u)));
    ++failures_;
    const auto override = std::exchange(idle_override_, 0s);
    idle_hold = now_ + (override > 0s ? override : jittered(pause));
    return;
  }
  if (idle_hold != net::kNever || outgoing.state != SessionState::Idle) return;
  outgoing.state = SessionState::Active;
  if (settings_.passive) return;
  if (connect_now) {
    outgoing.state = SessionState::Connect;
    actions_.emplace_back(action::OpenConnection{});
  }
  timer(SessionTimer::ConnectRetry) = now_ + jittered(settings_.connect_retry);
}

void Session::restart_hold(Connection& c) {
  timer(c, ConnectionTimer::Hold) = c.hold_time > 0s ? now_ + c.hold_time : net::kNever;
}

// Sends one, and the next after a third of the hold time (RFC 4271 section 4.4).
void Session::restart_keepalive(Connection& c) {
  actions_.emplace_back(action::Send{c.slot, encode_keepalive()});
  timer(c, ConnectionTimer::Keepalive) =
      c.hold_time > 0s ? now_ + jittered(c.hold_time) / 3 : net::kNever;
}

// RFC 9687; without hold time there is none.
void Session::restart_send_hold(Connection& c) {
  const auto longest = std::max<std::chrono::seconds>(kMinSendHold, 2 * c.hold_time);
  timer(c, ConnectionTimer::SendHold) =
      c.hold_time == 0s ? net::kNever
                        : now_ + (settings_.send_hold > 0s ? settings_.send_hold : longest);
}

bool Session::any_live() const {
  return std::ranges::any_of(connections_, [](const Connection& c) { return c.tcp; });
}

// RFC 4271 section 10: between three quarters and all of it.
net::Duration Session::jittered(std::chrono::seconds interval) {
  random_ += 0x9e3779b97f4a7c15;  // splitmix64
  uint64_t x = random_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  const auto percent = static_cast<int64_t>(75 + x % 26);
  return net::Duration(interval) * percent / 100;
}

Open Session::local_open() const {
  Open open;
  open.as_number =
      settings_.local_as > 0xffff ? kAsTrans : static_cast<uint16_t>(settings_.local_as);
  open.hold_time = static_cast<uint16_t>(settings_.hold_time.count());
  open.router_id = settings_.router_id;
  Capabilities& capabilities = open.capabilities;
  for (const FamilyState& f : families_) capabilities.multiprotocol.push_back(f.family.id);
  capabilities.route_refresh = true;
  capabilities.enhanced_route_refresh = true;
  capabilities.extended_message = true;
  capabilities.four_octet_as = settings_.local_as;
  if (settings_.graceful_restart) {
    // Forwarding is always preserved: bridge and FDB do not depend on the daemon.
    GracefulRestart restart;
    restart.restarted = restarting_;
    restart.notification = true;
    restart.time = static_cast<uint16_t>(
        std::clamp<std::chrono::seconds::rep>(settings_.restart_time.count(), 0, 4095));
    for (const FamilyState& f : families_) restart.families.push_back({f.family.id, true});
    capabilities.graceful_restart = std::move(restart);
    if (settings_.long_lived_time > 0s) {
      LongLivedRestart long_lived;
      const auto time = static_cast<uint32_t>(
          std::min<std::chrono::seconds::rep>(settings_.long_lived_time.count(), 0xffffff));
      for (const FamilyState& f : families_)
        long_lived.families.push_back({f.family.id, true, time});
      capabilities.long_lived = std::move(long_lived);
    }
  }
  return open;
}

}  // namespace bgp
