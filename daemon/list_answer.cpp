// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/list_answer.h"

#include <fmt/format.h>

#include <utility>

#include "net/time.h"

namespace peerland {
namespace {

class ListWalk {
 public:
  ListWalk(const std::string& key, NextRows next)
      : text_(fmt::format("{{\"schema\":{},\"{}\":[", kSchema, key)), next_(std::move(next)) {}

  std::optional<std::string> piece() {
    if (through_) return std::nullopt;
    const auto limit = net::Clock::now() + kPieceTime;
    do {
      rows_.clear();
      through_ = !next_(rows_);
      for (const auto& row : rows_) {
        text_ += std::exchange(first_, false) ? "\n" : ",\n";
        text_ += row;
      }
    } while (!through_ && text_.size() < kPieceOctets && net::Clock::now() < limit);
    if (through_) text_ += "\n]}\n";
    return std::exchange(text_, {});
  }

 private:
  std::string text_;
  NextRows next_;
  std::vector<std::string> rows_;
  bool first_ = true, through_ = false;
};

}  // namespace

Answer list_answer(const std::string& key, NextRows next) {
  return [walk = ListWalk(key, std::move(next))]() mutable { return walk.piece(); };
}

}  // namespace peerland
