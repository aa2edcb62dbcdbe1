// SPDX-License-Identifier: GPL-2.0-or-later
// Time as an argument: the core never reads a clock.
#pragma once
#include <chrono>

namespace net {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;
using namespace std::chrono_literals;

inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace net
