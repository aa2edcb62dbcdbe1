// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/io/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bgp::io {
namespace {

constexpr std::size_t kTypeAt = 18;  // of the type in a message

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t octet : bytes) text += fmt::format("{:02x}", octet);
  return text;
}

std::size_t type_of(std::span<const uint8_t> message) {
  const std::size_t type = message.size() > kTypeAt ? message[kTypeAt] : 0;
  return type < NeighborView::kMessageTypes ? type : 0;
}

std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }

constexpr auto kOpen = static_cast<std::size_t>(MessageType::Open);

std::chrono::seconds age(net::TimePoint since, net::TimePoint now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now - since);
}

}  // namespace

void Observer::message_in(Slot slot, std::span<const uint8_t> message) {
  const std::size_t type = type_of(message);
  ++seen_.in_by_type[type];
  if (type == kOpen) opens_received_[index(slot)].assign(message.begin(), message.end());
  message_ = message;
}

void Observer::message_out(Slot slot, std::span<const uint8_t> message) {
  const std::size_t type = type_of(message);
  ++seen_.out_by_type[type];
  if (type == kOpen) opens_sent_[index(slot)].assign(message.begin(), message.end());
}

void Observer::tell_sent(const std::shared_ptr<const net::Bytes>& message) {
  if (type_of(*message) != static_cast<std::size_t>(MessageType::Update)) return;
  for (Tap* tap : taps_) tap->sent(*session_, message);
}

void Observer::state_changed(const std::string& name, SessionState from, SessionState to) {
  for (Tap* tap : taps_) tap->state_changed(peer_, name, from, to);
}

void Observer::session_up(Slot slot, SessionInfo info) {
  info.open_sent = opens_sent_[index(slot)];
  info.open_received = opens_received_[index(slot)];
  info.up_since = std::chrono::system_clock::now();
  session_ = std::make_shared<const SessionInfo>(std::move(info));
  for (Tap* tap : taps_) tap->session_up(*session_);
}

void Observer::ended(const EndReason& reason, bool established, const std::string& text,
                     net::TimePoint now) {
  using Cause = EndReason::Cause;
  last_error_at_ = now;
  seen_.last_error_direction = reason.cause == Cause::NotificationSent       ? "sent"
                               : reason.cause == Cause::NotificationReceived ? "received"
                                                                             : "";
  if (reason.notification && !seen_.last_error_direction.empty()) {
    const auto& n = *reason.notification;
    last_notification_at_ = now;
    seen_.last_notification = text;
    seen_.last_notification_direction = seen_.last_error_direction;
    seen_.last_notification_data = hex(n.data);
    const bool sent = reason.cause == Cause::NotificationSent;
    const auto found = std::ranges::find_if(seen_.notifications, [&](const auto& known) {
      return known.sent == sent && known.code == n.code && known.subcode == n.subcode;
    });
    if (found == seen_.notifications.end())
      seen_.notifications.push_back({sent, n.code, n.subcode, to_string(n), 1});
    else
      ++found->count;
  }
  if (!established || !session_) return;
  const SessionInfoPtr gone = std::exchange(session_, nullptr);
  for (Tap* tap : taps_) tap->session_down(*gone, reason, text);
}

void Observer::failed_to_connect(net::TimePoint now) {
  last_error_at_ = now;
  seen_.last_error_direction.clear();
}

void Observer::update_done(const Update& update, net::TimePoint now) {
  if (update.handling == ErrorHandling::DisableFamily) ++seen_.family_ignored;
  if (!update.errors.empty()) {
    const AttributeError& error = update.errors.front();
    last_update_error_at_ = now;
    seen_.last_update_error =
        fmt::format("attribute {}: {}", error.type, to_string(error.handling));
    seen_.last_update_error_data = hex(error.bytes);
  }
  if (taps_.empty() || !session_) return;
  for (Tap* tap : taps_) tap->received(*session_, message_, update);
}

void Observer::policies_changed() {
  for (Tap* tap : taps_) tap->policies_changed(peer_);
}

void Observer::fill(NeighborView& view, net::TimePoint now) const {
  view.in_by_type = seen_.in_by_type;
  view.out_by_type = seen_.out_by_type;
  view.notifications = seen_.notifications;
  view.family_ignored = seen_.family_ignored;
  view.last_error_direction = seen_.last_error_direction;
  if (last_error_at_ != net::TimePoint{}) view.last_error_age = age(last_error_at_, now);
  view.last_notification = seen_.last_notification;
  view.last_notification_direction = seen_.last_notification_direction;
  view.last_notification_data = seen_.last_notification_data;
  if (last_notification_at_ != net::TimePoint{})
    view.last_notification_age = age(last_notification_at_, now);
  view.last_update_error = seen_.last_update_error;
  view.last_update_error_data = seen_.last_update_error_data;
  if (last_update_error_at_ != net::TimePoint{})
    view.last_update_error_age = age(last_update_error_at_, now);
}

}  // namespace bgp::io
