// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/log.h"

#include <fmt/format.h>

namespace peerland {
namespace {

constexpr std::size_t kMaxKeys = 4096;
constexpr auto kInterval = std::chrono::seconds(10);

}  // namespace

EventLog::EventLog() : logger_(spdlog::get("pe")) {
  if (!logger_) logger_ = spdlog::default_logger()->clone("pe");
}

void EventLog::limited(spdlog::level::level_enum level, const std::string& key,
                       const std::string& text, net::TimePoint now) {
  if (entries_.size() >= kMaxKeys && !entries_.contains(key)) entries_.clear();
  Entry& entry = entries_[key];
  if (now < entry.next) {
    ++entry.left_out;
    return;
  }
  if (entry.left_out > 0)
    logger_->log(level, "{} ({} more of this kind since the last line)", text, entry.left_out);
  else
    logger_->log(level, "{}", text);
  entry = {now + kInterval, 0};
}

}  // namespace peerland
