// SPDX-License-Identifier: GPL-2.0-or-later
// What one neighbor's traffic is seen as: counters by type, the last error with its bytes, the
// OPENs of the session, and the taps that are told.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bgp/io/speaker.h"
#include "bgp/io/tap.h"
#include "bgp/session.h"
#include "net/time.h"

namespace bgp::io {

class Observer {
 public:
  Observer(const std::vector<Tap*>& taps, PeerId peer) : taps_(taps), peer_(peer) {}

  // Whole messages, or a header that was refused.
  void message_in(Slot slot, std::span<const uint8_t> message);
  void message_out(Slot slot, std::span<const uint8_t> message);
  // An UPDATE that went out of the RIB.
  void update_out(Slot slot, const std::shared_ptr<const net::Bytes>& message) {
    message_out(slot, *message);
    if (!taps_.empty() && session_) tell_sent(message);
  }
  void state_changed(const std::string& name, SessionState from, SessionState to);
  // `info`: but for the OPENs, which are those of the slot.
  void session_up(Slot slot, SessionInfo info);
  void ended(const EndReason& reason, bool established, const std::string& text,
             net::TimePoint now);
  void failed_to_connect(net::TimePoint now);
  // The UPDATE that is being handled has been carried out.
  void update_done(const Update& update, net::TimePoint now);
  void policies_changed();

  [[nodiscard]] const SessionInfoPtr& session() const { return session_; }
  void fill(NeighborView& view, net::TimePoint now) const;

 private:
  void tell_sent(const std::shared_ptr<const net::Bytes>& message);

  const std::vector<Tap*>& taps_;
  const PeerId peer_;
  std::array<net::Bytes, 3> opens_sent_, opens_received_;  // by slot
  std::span<const uint8_t> message_;                       // the last that came in
  SessionInfoPtr session_;                                 // while up
  NeighborView seen_;                                      // only what fill() takes out of it
  net::TimePoint last_error_at_{}, last_update_error_at_{}, last_notification_at_{};
};

}  // namespace bgp::io
