// SPDX-License-Identifier: GPL-2.0-or-later
// The routes of a session's families: UPDATEs and End-of-RIB, what is kept when the session ends
// (RFC 4724, 8538 and 9494), and refreshes (RFC 2918 and 7313).
#include <algorithm>
#include <utility>

#include "bgp/session.h"
#include "bgp/session_parts.h"
#include "bgp/update_family.h"

namespace bgp {
namespace {

using namespace std::chrono_literals;

constexpr auto kStaleTime = 6min;    // for the End-of-RIB of a neighbor that came back
constexpr auto kRefreshTime = 6min;  // from BoRR to EoRR (RFC 7313 section 4)

enum RefreshSubtype : uint8_t { kRequest, kBegin, kEnd };  // RFC 7313 section 3.2

}  // namespace

Session::FamilyState* Session::find_family(AfiSafi id) {
  const auto found =
      std::ranges::find(families_, id, [](const FamilyState& f) { return f.family.id; });
  return found == families_.end() ? nullptr : &*found;
}

void Session::tick() {
  const auto expired = [this](net::TimePoint& timer) { return take_expired(timer, now_); };
  for (Connection& c : connections_) {
    if (expired(timer(c, ConnectionTimer::DelayOpen))) step(c, {Input::DelayOpenExpired});
    if (expired(timer(c, ConnectionTimer::Hold))) step(c, {Input::HoldExpired});
    if (expired(timer(c, ConnectionTimer::SendHold))) step(c, {Input::SendHoldExpired});
    if (expired(timer(c, ConnectionTimer::Keepalive))) step(c, {Input::KeepaliveExpired});
  }
  if (expired(timer(SessionTimer::ConnectRetry)))
    step(at(Slot::Outgoing), {Input::ConnectRetryExpired});
  if (expired(timer(SessionTimer::IdleHold))) connect_now_ = true;
  if (expired(timer(SessionTimer::Restart))) restart_time_over();
  for (FamilyState& f : families_) tick(f);
}

void Session::tick(FamilyState& f) {
  const auto expired = [&](FamilyTimer which) { return take_expired(timer(f, which), now_); };
  if (expired(FamilyTimer::StaleEnd)) flush(f);
  // With a session, the End-of-RIB decides: StaleEnd bounds that.
  if (expired(FamilyTimer::LongLived) && state() != SessionState::Established) flush(f);
  if (expired(FamilyTimer::Told)) actions_.emplace_back(action::Told{f.family.id});
  if (expired(FamilyTimer::Refresh) && std::exchange(f.refreshing, false))
    actions_.emplace_back(action::RefreshEnds{f.family.id, false});
}

// The peer did not come back in time: RFC 4724 section 4.2, or RFC 9494 section 4.2 where both
// sides agreed on that.
void Session::restart_time_over() {
  for (FamilyState& f : families_) {
    if (!f.stale) continue;
    const auto* entry = last_peer_ ? long_lived_entry(*last_peer_, f.family.id) : nullptr;
    const auto time = entry == nullptr
                          ? 0s
                          : std::min(settings_.long_lived_time, std::chrono::seconds(entry->time));
    if (time == 0s) {
      flush(f);
      continue;
    }
    // A timer that runs since an earlier restart is not prolonged by this one.
    if (!std::exchange(f.long_lived, true)) timer(f, FamilyTimer::LongLived) = now_ + time;
    actions_.emplace_back(action::LongLivedStale{f.family.id});
  }
}

void Session::flush(FamilyState& f) {
  f.long_lived = false;
  timer(f, FamilyTimer::StaleEnd) = timer(f, FamilyTimer::LongLived) = net::kNever;
  if (std::exchange(f.stale, false)) actions_.emplace_back(action::FlushStale{f.family.id});
}

// RFC 4724 section 4.2, RFC 9494 section 4.2: back in time. Without preserved forwarding the old
// routes go at once.
void Session::came_back(const Connection& c, FamilyState& f) {
  if (!f.stale) return;
  const auto* restart = restart_entry(*c.peer, f.family.id);
  const auto* long_lived = long_lived_entry(*c.peer, f.family.id);
  const bool preserved = c.peer->capabilities.has(f.family.id) && restart != nullptr &&
                         (f.long_lived ? long_lived != nullptr && long_lived->forwarding_preserved
                                       : restart->forwarding_preserved);
  if (preserved)
    timer(f, FamilyTimer::StaleEnd) = now_ + kStaleTime;
  else
    flush(f);
}

// With more than one family an UPDATE is decoded by the family that it is about, and if it should
// be about two (RFC 4760 does not forbid it) once for each: the other's attribute is passed over.
SessionState Session::update_received(Connection& c, std::span<const uint8_t> body) {
  restart_hold(c);
  FamilyState* f = &families_.front();
  if (families_.size() == 1) return routes_received(c, body, *f);
  const UpdateFamilies about = update_families(body);
  const auto negotiated = [&](const std::optional<AfiSafi>& id) {
    return id && c.peer->capabilities.has(*id) ? find_family(*id) : nullptr;
  };
  FamilyState* const reach = negotiated(about.reach);
  FamilyState* const unreach = negotiated(about.unreach);
  if (unreach != nullptr && reach != nullptr && reach != unreach) {
    const auto state = routes_received(c, body, *unreach);
    if (state != SessionState::Established) return state;
  }
  if (reach != nullptr || unreach != nullptr) f = reach != nullptr ? reach : unreach;
  return routes_received(c, body, *f);
}

SessionState Session::routes_received(Connection& c, std::span<const uint8_t> body,
                                      FamilyState& f) {
  const DecodeOptions options{c.peer->capabilities.four_octet_as.has_value(),
                              settings_.local_as == settings_.remote_as};
  DecodeCache* const cache = &f == &families_.front() ? &c.decode_cache : nullptr;
  auto update = decode_update(body, f.family, options, cache);
  if (!update) return notify(c, std::move(update).error());
  const bool end_of_rib = update->end_of_rib;
  if (end_of_rib) {
    f.stale = f.long_lived = false;
    timer(f, FamilyTimer::StaleEnd) = timer(f, FamilyTimer::LongLived) = net::kNever;
  }
  actions_.emplace_back(action::Routes{f.family.id, std::move(*update)});
  if (end_of_rib && !std::exchange(f.end_of_rib, true) &&
      std::exchange(timer(f, FamilyTimer::Told), net::kNever) != net::kNever)
    actions_.emplace_back(action::Told{f.family.id});
  return SessionState::Established;
}

// RFC 2918 and 7313. A subtype that we don't know is ignored (section 5), and so is BoRR before the
// End-of-RIB (section 4: that is GR's to end) and EoRR without BoRR.
SessionState Session::refresh_received(Connection& c, std::span<const uint8_t> body) {
  const auto refresh = decode_route_refresh(body);
  if (!refresh) return notify(c, refresh.error());
  restart_hold(c);
  FamilyState* f = find_family(refresh->family);
  const Capabilities& peer = c.peer->capabilities;
  if (f == nullptr || !peer.has(refresh->family)) return SessionState::Established;
  const bool awaits_end_of_rib = keeps_routes(c, f->family.id) && !f->end_of_rib;
  if (refresh->subtype == kRequest) {
    actions_.emplace_back(action::Refresh{f->family.id, peer.enhanced_route_refresh});
  } else if (!peer.enhanced_route_refresh) {
    return SessionState::Established;
  } else if (refresh->subtype == kBegin && !awaits_end_of_rib) {
    f->refreshing = true;
    timer(*f, FamilyTimer::Refresh) = now_ + kRefreshTime;
    actions_.emplace_back(action::RefreshBegins{f->family.id});
  } else if (refresh->subtype == kEnd && std::exchange(f->refreshing, false)) {
    timer(*f, FamilyTimer::Refresh) = net::kNever;
    actions_.emplace_back(action::RefreshEnds{f->family.id});
  }
  return SessionState::Established;
}

void Session::ask_refresh() {
  for (const Connection& c : connections_) {
    if (c.state != SessionState::Established || !c.peer->capabilities.route_refresh) continue;
    for (const FamilyState& f : families_)
      if (c.peer->capabilities.has(f.family.id))
        actions_.emplace_back(action::Send{c.slot, encode_route_refresh(f.family.id, kRequest)});
  }
}

// RFC 4724 section 4.2: routes stay when the connection broke. RFC 8538 section 4: where both sides
// said so, also after a NOTIFICATION that is no Hard Reset; a hung neighbor is the case that
// counts.
bool Session::keeps_routes_after(const Connection& c, const EndReason& reason,
                                 AfiSafi family) const {
  if (c.state != SessionState::Established || !keeps_routes(c, family)) return false;
  switch (reason.cause) {
    case EndReason::Cause::ConnectionClosed:
    case EndReason::Cause::Replaced: return true;
    case EndReason::Cause::SendHoldTimer: return survives_notification(c);
    case EndReason::Cause::NotificationSent:  // a Cease went out as Hard Reset
      return survives_notification(c) && reason.notification->code != ErrorCode::Cease;
    case EndReason::Cause::NotificationReceived:
      return survives_notification(c) && !is_hard_reset(*reason.notification);
    case EndReason::Cause::Stopped: return false;
  }
  return false;
}

// What stays of each family when the session ends. What was stale already does not survive a second
// restart (RFC 4724 section 4.2), but for its long-lived time (RFC 9494 section 4.2).
void Session::went_down(const Connection& c, const EndReason& reason, std::vector<AfiSafi>& kept) {
  for (FamilyState& f : families_) {
    timer(f, FamilyTimer::StaleEnd) = timer(f, FamilyTimer::Told) = net::kNever;
    timer(f, FamilyTimer::Refresh) = net::kNever;
    f.refreshing = false;
    const bool keep = keeps_routes_after(c, reason, f.family.id);
    // Its time may have run out while the End-of-RIB was waited for.
    const bool time_left = timer(f, FamilyTimer::LongLived) != net::kNever;
    if (!(keep && f.long_lived && time_left)) flush(f);
    f.stale = keep;
    if (keep) kept.push_back(f.family.id);
  }
  if (!kept.empty())
    timer(SessionTimer::Restart) =
        now_ + std::chrono::seconds(c.peer->capabilities.graceful_restart->time);
}

const GracefulRestart::Entry* Session::restart_entry(const Open& open, AfiSafi family) const {
  const auto& restart = open.capabilities.graceful_restart;
  if (!settings_.graceful_restart || !restart) return nullptr;
  for (const GracefulRestart::Entry& entry : restart->families)
    if (entry.family == family) return &entry;
  return nullptr;
}

// Means nothing without the capability of RFC 4724 beside it (RFC 9494 section 4.1).
const LongLivedRestart::Entry* Session::long_lived_entry(const Open& open, AfiSafi family) const {
  const auto& restart = open.capabilities.long_lived;
  if (settings_.long_lived_time == 0s || !restart || restart_entry(open, family) == nullptr)
    return nullptr;
  for (const LongLivedRestart::Entry& entry : restart->families)
    if (entry.family == family) return &entry;
  return nullptr;
}

bool Session::keeps_routes(const Connection& c, AfiSafi family) const {
  return c.peer && c.peer->capabilities.has(family) && restart_entry(*c.peer, family) != nullptr;
}

bool Session::survives_notification(const Connection& c) const {
  return keeps_routes(c) && c.peer->capabilities.graceful_restart->notification;
}

}  // namespace bgp
