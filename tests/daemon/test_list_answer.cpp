// SPDX-License-Identifier: GPL-2.0-or-later
// Lists in pieces: the same document as at once, in pieces of a bounded size.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "daemon/list_answer.h"

using namespace peerland;

namespace {

// `count` rows, some at a time; every third time none.
NextRows numbers(int count) {
  return [count, next = 0, turn = 0](std::vector<std::string>& rows) mutable {
    if (++turn % 3 != 0)
      for (int i = 0; i < 50 && next < count; ++i)
        rows.push_back("{\"n\":" + std::to_string(next++) + "}");
    return next < count;
  };
}

}  // namespace

TEST(ListAnswer, EveryRowOnceInOrder) {
  for (const int count : {0, 1, 50, 149, 100'000}) {
    const Answer answer = list_answer("numbers", numbers(count));
    std::string text;
    std::size_t pieces = 0;
    while (const auto piece = answer()) {
      EXPECT_LE(piece->size(), kPieceOctets + 50 * 16);
      text += *piece;
      ++pieces;
    }
    EXPECT_FALSE(answer()) << "through";
    const auto document = boost::json::parse(text).as_object();
    EXPECT_EQ(document.begin()->key(), "schema");
    EXPECT_EQ(document.at("schema"), kSchema);
    const auto& rows = document.at("numbers").as_array();
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) ASSERT_EQ(rows[static_cast<std::size_t>(i)].at("n"), i);
    EXPECT_GE(pieces * kPieceOctets, text.size() / 2);
    EXPECT_EQ(pieces > 10, count == 100'000);
  }
}
