// SPDX-License-Identifier: GPL-2.0-or-later
// An answer in pieces, made while it is being read: each call gives the next piece, an empty one
// when nothing was found in this turn (call again in a later one), or nothing when it is through.
// A call takes no more than a few milliseconds.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace peerland {

using Answer = std::function<std::optional<std::string>()>;

// Where a piece ends.
inline constexpr std::chrono::milliseconds kPieceTime{2};
inline constexpr std::size_t kPieceOctets = 65536;

// Of each document, so that a reader knows what to expect.
inline constexpr int kSchema = 1;

// An answer of one piece.
inline Answer whole(std::string text) {
  return [text = std::move(text), given = false]() mutable -> std::optional<std::string> {
    if (given) return std::nullopt;
    given = true;
    return std::move(text);
  };
}

}  // namespace peerland
