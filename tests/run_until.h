// SPDX-License-Identifier: GPL-2.0-or-later
// Runs a loop until something has happened.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace test_support {

// False when the condition did not hold within 20 s.
inline bool run_until(boost::asio::io_context& io, const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace test_support
