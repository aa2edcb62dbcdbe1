// SPDX-License-Identifier: GPL-2.0-or-later
// Events for the operator's log: at most one line per key and interval, with the number of those
// left out, so that a storm of frames never becomes a storm of lines.
#pragma once
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "net/time.h"

namespace peerland {

class EventLog {
 public:
  EventLog();
  [[nodiscard]] spdlog::logger& logger() { return *logger_; }
  // One line per key in ten seconds.
  void limited(spdlog::level::level_enum level, const std::string& key, const std::string& text,
               net::TimePoint now);

 private:
  struct Entry {
    net::TimePoint next{};
    uint64_t left_out = 0;
  };
  std::shared_ptr<spdlog::logger> logger_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace peerland
