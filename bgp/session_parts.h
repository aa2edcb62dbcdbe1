// SPDX-License-Identifier: GPL-2.0-or-later
// What several files of the session need. Inside of them only.
#pragma once
#include "bgp/message.h"
#include "net/time.h"

namespace bgp {

// True once when the timer has run out.
inline bool take_expired(net::TimePoint& timer, net::TimePoint now) {
  const bool due = timer <= now;
  if (due) timer = net::kNever;
  return due;
}

inline bool is_hard_reset(const Notification& notification) {
  return notification.code == ErrorCode::Cease && notification.subcode == cease::kHardReset;
}

}  // namespace bgp
