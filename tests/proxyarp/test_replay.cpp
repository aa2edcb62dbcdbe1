// SPDX-License-Identifier: GPL-2.0-or-later
// Whatever happens in whatever order: each change of the fast path's entries and of local bindings
// is reported once, so that replaying the actions gives what fast_entries() says; a provisioned
// address is never at a MAC that is not on its list; answers are right, one at most, and never to
// the owner about itself; and in the end no timer is left.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/proxyarp/steps.h"

using namespace proxyarp;
using namespace proxyarp::test;

TEST(Replay, ActionsGiveTheFastEntries) {
  const bool held =
      rc::check("replay", [](uint8_t first, const std::vector<std::array<uint8_t, 5>>& steps) {
        History history(first);
        for (const auto& s : steps)
          RC_ASSERT(history.run({s[0], s[1], s[2], s[3], s[4]}) == std::string());
        RC_ASSERT(history.drain() == std::string());
      });
  EXPECT_TRUE(held);
}

// The same over long histories, which the generator above does not reach.
TEST(Replay, LongHistories) {
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint8_t>(state >> 56);
  };
  for (int n = 0; n < 100; ++n) {
    History history(next());
    for (int i = 0; i < 400; ++i) {
      const Step step{next(), next(), next(), next(), next()};
      ASSERT_EQ(history.run(step), "") << n << " " << i << " what " << step.what % 12;
    }
    ASSERT_EQ(history.drain(), "") << n;
  }
}
