// SPDX-License-Identifier: GPL-2.0-or-later
// How late the event loop is: a timer every 100 ms, and by how much it is missed.
#pragma once
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>

#include "net/time.h"

namespace peerland {

class LoopDelay {
 public:
  explicit LoopDelay(boost::asio::io_context& io) : timer_(io) {}
  void start() { arm(net::Clock::now() + kEvery); }
  void stop() { timer_.cancel(); }
  // The longest of the last minute.
  [[nodiscard]] net::Duration longest() const { return *std::ranges::max_element(seconds_); }

 private:
  static constexpr auto kEvery = std::chrono::milliseconds(100);
  static constexpr std::size_t kTicks = 10;  // in a second

  void arm(net::TimePoint due) {
    timer_.expires_at(due);
    timer_.async_wait([this, due](const boost::system::error_code& error) {
      if (error) return;
      const auto now = net::Clock::now();
      if (tick_ % kTicks == 0) seconds_[tick_ / kTicks % seconds_.size()] = {};
      auto& longest = seconds_[tick_ / kTicks % seconds_.size()];
      longest = std::max(longest, now - due);
      ++tick_;
      arm(now + kEvery);
    });
  }

  boost::asio::steady_timer timer_;
  std::array<net::Duration, 60> seconds_{};
  std::size_t tick_ = 0;
};

}  // namespace peerland
