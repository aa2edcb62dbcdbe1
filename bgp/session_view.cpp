// SPDX-License-Identifier: GPL-2.0-or-later
// What a session shows of itself, and the names of what is in it.
#include <algorithm>

#include "bgp/session.h"

namespace bgp {

const char* to_string(SessionState state) {
  switch (state) {
    case SessionState::Idle: return "Idle";
    case SessionState::Connect: return "Connect";
    case SessionState::Active: return "Active";
    case SessionState::OpenSent: return "OpenSent";
    case SessionState::OpenConfirm: return "OpenConfirm";
    case SessionState::Established: return "Established";
  }
  return "unknown";
}

std::string to_string(const EndReason& reason) {
  switch (reason.cause) {
    case EndReason::Cause::NotificationSent:
      return "sent " + to_string(reason.notification.value_or(Notification{}));
    case EndReason::Cause::NotificationReceived:
      return "received " + to_string(reason.notification.value_or(Notification{}));
    case EndReason::Cause::ConnectionClosed: return "connection closed";
    case EndReason::Cause::SendHoldTimer: return "send hold timer expired";
    case EndReason::Cause::Replaced: return "replaced by a new connection";
    case EndReason::Cause::Stopped: return "stopped";
  }
  return "unknown";
}

net::TimePoint Session::deadline() const {
  net::TimePoint earliest = *std::ranges::min_element(timers_);
  for (const Connection& c : connections_)
    earliest = std::min(earliest, *std::ranges::min_element(c.timers));
  for (const FamilyState& f : families_)
    earliest = std::min(earliest, *std::ranges::min_element(f.timers));
  return earliest;
}

std::optional<Slot> Session::accept_slot() const {
  if (!enabled_ || timers_[static_cast<std::size_t>(SessionTimer::IdleHold)] != net::kNever)
    return std::nullopt;
  for (Slot slot : {Slot::Incoming, Slot::Spare})
    if (at(slot).state == SessionState::Idle) return slot;
  // Both taken: the neighbor has given up the older one that is not a session.
  const bool spare_is_up = at(Slot::Spare).state == SessionState::Established;
  const bool incoming_is_up = at(Slot::Incoming).state == SessionState::Established;
  if (spare_is_up || incoming_is_up) return spare_is_up ? Slot::Incoming : Slot::Spare;
  return at(Slot::Incoming).number < at(Slot::Spare).number ? Slot::Incoming : Slot::Spare;
}

// RFC 8654 section 4: as long as the peer could not know that we take more, it must not send it.
std::size_t Session::max_incoming(Slot slot) const {
  return at(slot).state >= SessionState::OpenConfirm ? kMaxExtendedMessage : kMaxMessage;
}

const Session::Connection* Session::furthest() const {
  return &*std::ranges::max_element(connections_, {}, &Connection::state);
}

SessionState Session::state() const { return furthest()->state; }

const Open* Session::peer_open() const {
  const Connection* c = furthest();
  return c->peer ? &*c->peer : nullptr;
}

const char* Session::name(ConnectionTimer timer) {
  switch (timer) {
    case ConnectionTimer::Hold: return "hold";
    case ConnectionTimer::Keepalive: return "keepalive";
    case ConnectionTimer::SendHold: return "send-hold";
    case ConnectionTimer::DelayOpen: return "delay-open";
  }
  return "unknown";
}

const char* Session::name(SessionTimer timer) {
  switch (timer) {
    case SessionTimer::ConnectRetry: return "connect-retry";
    case SessionTimer::IdleHold: return "idle-hold";
    case SessionTimer::Restart: return "restart";
  }
  return "unknown";
}

const char* Session::name(FamilyTimer timer) {
  switch (timer) {
    case FamilyTimer::StaleEnd: return "stale-end";
    case FamilyTimer::LongLived: return "long-lived";
    case FamilyTimer::Told: return "end-of-rib";
    case FamilyTimer::Refresh: return "refresh";
  }
  return "unknown";
}

std::vector<Session::RunningTimer> Session::running_timers() const {
  std::vector<RunningTimer> running;
  const Connection& c = *furthest();
  for (std::size_t i = 0; i < c.timers.size(); ++i)
    if (c.timers[i] != net::kNever)
      running.push_back({name(static_cast<ConnectionTimer>(i)), c.timers[i]});
  for (std::size_t i = 0; i < timers_.size(); ++i)
    if (timers_[i] != net::kNever)
      running.push_back({name(static_cast<SessionTimer>(i)), timers_[i]});
  for (const FamilyState& f : families_)
    for (std::size_t i = 0; i < f.timers.size(); ++i)
      if (f.timers[i] != net::kNever)
        running.push_back({name(static_cast<FamilyTimer>(i)), f.timers[i]});
  return running;
}

std::chrono::seconds Session::hold_time() const { return furthest()->hold_time; }

bool Session::graceful_restart_negotiated() const {
  const Connection* c = furthest();
  return c->state == SessionState::Established && keeps_routes(*c);
}

bool Session::stale_kept() const {
  return std::ranges::any_of(families_, [](const FamilyState& f) { return f.stale; });
}

bool Session::long_lived_kept() const {
  return std::ranges::any_of(families_, [](const FamilyState& f) { return f.long_lived; });
}

std::vector<AfiSafi> Session::families() const {
  std::vector<AfiSafi> out;
  const Connection* c = furthest();
  if (c->state != SessionState::Established) return out;
  for (const FamilyState& f : families_)
    if (c->peer->capabilities.has(f.family.id)) out.push_back(f.family.id);
  return out;
}

bool Session::at_rest() const {
  return !any_live() && !stale_kept() &&
         timers_[static_cast<std::size_t>(SessionTimer::IdleHold)] == net::kNever;
}

}  // namespace bgp
