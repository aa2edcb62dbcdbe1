// SPDX-License-Identifier: GPL-2.0-or-later
// What a session leaves behind is removed in slices (Rib::work()), while other sessions, and a new
// one of the same peer, go on; and what many routes took is given back when they are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/page_pool.h"
#include "bgp/route_array.h"
#include "rib_support.h"

using namespace bgp;
using namespace bgp::test;

namespace {

constexpr PeerId kA = 1, kB = 2, kC = 3;
constexpr uint32_t kRoutes = 100;
constexpr std::size_t kSlice = 10;

struct Slices : ::testing::Test {
  static Rib::Options in_slices() {
    Rib::Options o = options();
    o.work_paths = kSlice;
    return o;
  }
  Rib rib{in_slices()};
  Receiver a{ibgp(kA)}, b{ibgp(kB)};

  Slices() {
    rib.peer_up(kA, ibgp(kA));
    rib.peer_up(kB, ibgp(kB));
    announce(0, kRoutes);
    a.drain(rib, kA);
    b.drain(rib, kB);
    EXPECT_EQ(b.held.size(), kRoutes);
  }
  void announce(uint32_t from, uint32_t to, const Attributes& attributes = vtep(1)) {
    std::vector<net::Bytes> nlris;
    std::vector<NlriItem> items;
    for (uint32_t i = from; i < to; ++i) nlris.push_back(make_nlri(i));
    for (const net::Bytes& nlri : nlris) items.push_back(make_item(nlri));
    rib.update(kA, items, share(attributes));
  }
  void finish() {
    while (rib.work()) {
    }
  }
};

}  // namespace

TEST_F(Slices, ATurnRemovesNoMoreThanASlice) {
  rib.peer_down(kA, false);
  for (std::size_t left = kRoutes - kSlice; left != 0; left -= kSlice) {
    EXPECT_EQ(rib.path_count(), left);
    EXPECT_EQ(rib.work(), left > kSlice);
  }
  EXPECT_EQ(rib.route_count(), 0u);
  EXPECT_FALSE(rib.work());
  b.drain(rib, kB);
  EXPECT_TRUE(b.held.empty());
  EXPECT_EQ(b.withdrawn, kRoutes);
  EXPECT_EQ(b.needless, 0u);
}

TEST_F(Slices, WhoComesMeanwhileIsNotSentWhatIsGoing) {
  rib.peer_down(kA, false);
  rib.peer_up(kC, ibgp(kC));
  Receiver c(ibgp(kC));
  c.drain(rib, kC);
  EXPECT_EQ(c.announced, 0u);
  finish();
  c.drain(rib, kC);
  EXPECT_EQ(c.withdrawn, 0u);
}

TEST_F(Slices, ANewSessionTakesThePlaceOfWhatIsGoing) {
  rib.peer_down(kA, false);
  rib.peer_up(kA, ibgp(kA));
  a = Receiver(ibgp(kA));
  EXPECT_EQ(rib.counts(kA).received, 0u);
  announce(0, 30);            // the same as before
  announce(30, 50, vtep(9));  // other attributes
  EXPECT_EQ(rib.counts(kA).received, 50u);
  EXPECT_EQ(rib.received(kA), 50u);
  finish();
  EXPECT_EQ(rib.path_count(), 50u);
  a.drain(rib, kA);
  EXPECT_EQ(a.announced, 0u) << "its own routes";
  b.drain(rib, kB);
  EXPECT_EQ(b.held.size(), 50u);
  EXPECT_EQ(b.find(make_nlri(40))->attributes->next_hop, vtep(9).next_hop);
  EXPECT_EQ(rib.counts(kB).advertised, 50u);
}

TEST_F(Slices, ManySessionsOfOnePeerInARowLeaveNothing) {
  for (int i = 0; i < 3; ++i) {
    rib.peer_down(kA, false);
    rib.peer_up(kA, ibgp(kA));
    announce(0, kRoutes, vtep(static_cast<uint32_t>(i)));
  }
  EXPECT_EQ(rib.counts(kA).received, kRoutes);
  rib.peer_down(kA, false);
  finish();
  EXPECT_EQ(rib.path_count(), 0u);
  b.drain(rib, kB);
  EXPECT_TRUE(b.held.empty());
}

TEST_F(Slices, EndOfRibRemovesWhatStayedStale) {
  rib.peer_down(kA, true);
  EXPECT_EQ(rib.counts(kA).stale, kRoutes);
  rib.peer_up(kA, ibgp(kA));
  announce(0, 30);
  EXPECT_EQ(rib.counts(kA).stale, 70u);
  rib.end_of_rib(kA);
  EXPECT_EQ(rib.counts(kA).stale, 60u);
  announce(30, 35);  // late, but before its turn
  EXPECT_EQ(rib.counts(kA).stale, 55u);
  finish();
  EXPECT_EQ(rib.counts(kA).stale, 0u);
  EXPECT_GE(rib.counts(kA).received, 35u);
  EXPECT_EQ(rib.counts(kA).received, 35u);
  b.drain(rib, kB);
  EXPECT_EQ(b.held.size(), 35u);
}

TEST_F(Slices, ASessionThatEndsAgainDuringRemovalKeepsOnlyTheNewer) {
  rib.peer_down(kA, true);
  rib.peer_up(kA, ibgp(kA));
  announce(0, 30);
  rib.end_of_rib(kA);
  rib.peer_down(kA, true);
  finish();
  EXPECT_EQ(rib.path_count(), 30u);
  rib.peer_up(kA, ibgp(kA));
  EXPECT_EQ(rib.counts(kA).stale, 30u);
  rib.flush_stale(kA);
  finish();
  EXPECT_EQ(rib.path_count(), 0u);
}

TEST_F(Slices, WhatIsKeptIsStaleAtOnceAndOthersAreChosenInTurns) {
  rib.peer_up(kC, ibgp(kC));
  for (uint32_t i = 0; i < kRoutes; ++i) rib.update(kC, make_item(make_nlri(i)), share(vtep(1)));
  const auto chosen = [&] {
    std::size_t count = 0;
    rib.for_each_path([&](const PathView& path) {
      EXPECT_EQ(path.stale, path.peer == kA);
      if (path.best && path.peer == kC) ++count;
      return true;
    });
    return count;
  };
  rib.peer_down(kA, true);
  EXPECT_EQ(rib.counts(kA).stale, kRoutes);
  EXPECT_EQ(chosen(), kSlice);
  EXPECT_TRUE(rib.work());
  EXPECT_EQ(chosen(), 2 * kSlice);
  // Before its turn comes: fresh again, and the better one.
  rib.peer_up(kA, ibgp(kA));
  announce(0, kRoutes);
  EXPECT_EQ(rib.counts(kA).stale, 0u);
  finish();
  std::size_t best = 0;
  rib.for_each_path([&](const PathView& path) {
    EXPECT_FALSE(path.stale);
    if (path.best && path.peer == kA) ++best;
    return true;
  });
  EXPECT_EQ(best, kRoutes);
}

TEST_F(Slices, ARefreshRemovesInTurnsWhatItDidNotBring) {
  rib.refresh_begins(kA);
  announce(0, 30);
  rib.refresh_ends(kA);
  EXPECT_GT(rib.path_count(), 80u);
  announce(95, kRoutes);  // late, but before its turn: the sweep begins with the newest
  announce(30, 32);
  finish();
  EXPECT_EQ(rib.counts(kA).received, rib.path_count());
  EXPECT_GE(rib.path_count(), 32u);
  b.drain(rib, kB);
  EXPECT_EQ(b.held.size(), rib.path_count());
  EXPECT_NE(b.find(make_nlri(31)), nullptr);
  EXPECT_EQ(b.find(make_nlri(50)), nullptr);
  // The next one begins while this one's sweep is under way.
  const std::size_t left = rib.path_count();
  rib.refresh_begins(kA);
  announce(0, 5);
  rib.refresh_ends(kA);
  rib.refresh_begins(kA);
  EXPECT_EQ(rib.path_count(), 5u) << left;
  announce(0, 2);
  rib.refresh_ends(kA);
  finish();
  EXPECT_EQ(rib.path_count(), 2u);
}

TEST_F(Slices, ARefreshThatASessionsEndCutShortRemovesNothing) {
  rib.refresh_begins(kA);
  announce(0, 10);
  rib.peer_down(kA, true);
  rib.peer_up(kA, ibgp(kA));
  announce(0, kRoutes);
  rib.refresh_ends(kA);
  finish();
  EXPECT_EQ(rib.counts(kA).received, kRoutes);
  EXPECT_EQ(rib.counts(kA).stale, 0u);
}

TEST_F(Slices, ManyRestartsInARowKeepOnlyWhatTheLastSessionBrought) {
  for (uint32_t i = 0; i < 40; ++i) {
    announce(i, i + 20, vtep(i));
    rib.peer_down(kA, true);
    EXPECT_EQ(rib.counts(kA).stale, rib.counts(kA).received);
    rib.peer_up(kA, ibgp(kA));
  }
  finish();
  EXPECT_EQ(rib.path_count(), 20u);
  rib.end_of_rib(kA);
  finish();
  EXPECT_EQ(rib.path_count(), 0u);
}

TEST_F(Slices, LongLivedRoutesAreMarkedInTurnsAndAllAreKept) {
  rib.peer_down(kA, true);
  finish();
  rib.long_lived_stale(kA);
  const auto marked = [&] {
    std::size_t count = 0;
    rib.for_each_path([&](const PathView& path) {
      count += path.long_lived ? 1 : 0;
      return true;
    });
    return count;
  };
  EXPECT_EQ(marked(), kSlice);
  // Another session, and its loss, before the walk is through.
  rib.peer_up(kA, ibgp(kA));
  announce(0, 5);
  rib.peer_down(kA, true);
  finish();
  EXPECT_EQ(rib.path_count(), kRoutes);
  EXPECT_EQ(marked(), kRoutes - 5);
  rib.flush_stale(kA);
  finish();
  EXPECT_EQ(rib.path_count(), 0u);
}

namespace {

struct RejectAll final : RoutePolicy {
  Verdict judge(std::span<const uint8_t>, const Attributes&) const override {
    return Verdict::Reject;
  }
  std::string explain(std::span<const uint8_t>, const Attributes&) const override { return "all"; }
};
struct WantNone final : SendFilter {
  bool wants(const Attributes&) const override { return false; }
};

}  // namespace

TEST_F(Slices, NewRulesAreAppliedInTurnsAndToWhatComesAtOnce) {
  rib.set_policies(kA, std::make_shared<RejectAll>(), nullptr);
  EXPECT_EQ(rib.counts(kA).rejected, kSlice);
  announce(0, 5, vtep(3));
  rib.set_policies(kA, nullptr, nullptr);
  rib.set_policies(kA, std::make_shared<RejectAll>(), nullptr);
  finish();
  EXPECT_EQ(rib.counts(kA).rejected, kRoutes);
  b.drain(rib, kB);
  EXPECT_TRUE(b.held.empty());
}

TEST_F(Slices, RoutesThatComeBackTheSameAreJudgedByTheNewRules) {
  rib.peer_down(kA, true);
  rib.set_policies(kA, std::make_shared<RejectAll>(), nullptr);
  PeerTraits traits = ibgp(kA);
  traits.accept = std::make_shared<RejectAll>();
  rib.peer_up(kA, traits);
  announce(0, kRoutes);
  finish();
  EXPECT_EQ(rib.counts(kA).rejected, kRoutes);
}

TEST(PullSlices, APullThatFindsNothingGivesUpAndIsContinued) {
  Rib::Options o = options();
  o.batch_routes = 8;
  o.pull_routes = 16;
  Rib rib(o);
  rib.peer_up(kA, ibgp(kA));
  rib.peer_up(kB, ibgp(kB));
  Receiver b(ibgp(kB));
  rib.set_send_filter(kB, std::make_shared<WantNone>(), false);
  for (uint32_t i = 0; i < 200; ++i) rib.update(kA, make_item(make_nlri(i)), share(vtep(1)));
  int turns = 0;
  std::shared_ptr<const net::Bytes> message;
  while ((message = rib.pull(kB)) == nullptr && rib.unfinished(kB)) {
    ++turns;
    const auto ready = rib.take_ready();
    EXPECT_NE(std::ranges::find(ready, kB), ready.end());
  }
  EXPECT_GE(turns, 200 / 16 - 1);
  ASSERT_NE(message, nullptr);
  b.take(*message);
  EXPECT_EQ(b.events, std::vector<std::string>{"EoR"});
  b.drain(rib, kB);
  EXPECT_EQ(b.announced, 0u);
  EXPECT_FALSE(rib.unfinished(kB));
  // All of it is wanted now.
  rib.set_send_filter(kB, nullptr, false);
  b.drain(rib, kB);
  EXPECT_EQ(b.held.size(), 200u);
}

TEST(PullSlices, ASlowPeersBacklogIsForgottenInTurnsAfterItIsGone) {
  Rib::Options o = options();
  o.work_paths = 10;
  o.batch_routes = 8;
  o.track_changes = false;
  Rib rib(o);
  rib.peer_up(kA, ibgp(kA));
  rib.peer_up(kB, ebgp(kB));  // alone in its group
  Receiver b(ebgp(kB));
  b.drain(rib, kB);
  for (uint32_t i = 0; i < 200; ++i) rib.update(kA, make_item(make_nlri(i)), share(vtep(1)));
  for (uint32_t i = 0; i < 200; ++i) rib.withdraw(kA, make_item(make_nlri(i)).key());
  rib.peer_down(kB, false);
  int turns = 1;
  while (rib.work()) ++turns;
  EXPECT_GT(turns, 5);
  while (rib.tidy()) {
  }
  EXPECT_LE(rib.memory_bytes(), PagePool::kPageSize) << "for the attributes that came last";
}

TEST(PagePool, PagesAreTakenAgainAndGoBackWhenTheyWereNotNeededForATurn) {
  PagePool pool;
  std::vector<std::pair<uint32_t, uint8_t*>> taken;
  const auto take = [&] {
    uint32_t block = 0;
    uint8_t* page = pool.take(block);
    page[0] = page[PagePool::kPageSize - 1] = 1;
    taken.emplace_back(block, page);
  };
  for (int i = 0; i < 200; ++i) take();
  for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_NE(taken[i].second, taken[i - 1].second);
  EXPECT_EQ(pool.used_bytes(), 200 * PagePool::kPageSize);
  for (int i = 0; i < 190; ++i) {
    pool.give(taken.back().first, taken.back().second);
    taken.pop_back();
  }
  EXPECT_FALSE(pool.give_back(100));  // a moment ago they were in use
  const std::size_t kept = pool.resident_bytes();
  EXPECT_GE(kept, 200 * PagePool::kPageSize);
  for (int i = 0; i < 190; ++i) take();
  EXPECT_EQ(pool.resident_bytes(), kept);
  while (taken.size() > 10) {
    pool.give(taken.back().first, taken.back().second);
    taken.pop_back();
  }
  EXPECT_FALSE(pool.give_back(100));
  EXPECT_TRUE(pool.give_back(1)) << "one call at a time";
  while (pool.give_back(1)) {
  }
  EXPECT_LE(pool.resident_bytes(), (10 + 40) * PagePool::kPageSize);
  for (const auto& [block, page] : taken) pool.give(block, page);
  (void)pool.give_back(100);
  (void)pool.give_back(100);
  EXPECT_EQ(pool.resident_bytes(), 0u);
}

TEST(Memory, ATableThatIsWithdrawnButForAFewRoutesGivesItsMemoryBack) {
  constexpr uint32_t kMany = 200000;
  Rib::Options o = options();
  o.track_changes = false;
  Rib rib(o);
  rib.peer_up(1, ibgp(1));
  rib.peer_up(2, ibgp(2));
  Receiver receiver(ibgp(2));
  const AttributesPtr attributes = share(vtep(1));
  const auto pull_all = [&] {
    while (rib.pull(2)) {
    }
    (void)rib.take_ready();
  };
  for (uint32_t i = 0; i < kMany; ++i) {
    rib.update(1, make_item(make_nlri(i)), attributes);
    if (i % 4096 == 0) pull_all();
  }
  pull_all();
  const std::size_t peak = rib.memory_bytes();
  for (uint32_t i = 0; i < kMany; ++i) {
    if (i % 50000 != 25000) rib.withdraw(1, make_item(make_nlri(i)).key());
    if (i % 4096 == 0) pull_all();
  }
  pull_all();
  EXPECT_EQ(rib.route_count(), 4u);
  while (rib.tidy()) {
  }
  EXPECT_LT(rib.memory_bytes(), peak / 10);
}

TEST(RouteArray, ChunksGoWhenNothingInThemIsUsed) {
  PagePool pool;
  RouteArray routes(pool);
  std::vector<RouteIndex> taken;
  for (int i = 0; i < 40000; ++i) {
    const RouteIndex index = routes.take();
    ASSERT_LT(index, routes.end());
    ASSERT_EQ(routes[index].first, kNoPath);
    ASSERT_EQ(routes[index].pins, 0u);
    routes[index].first = 7;
    taken.push_back(index);
  }
  std::ranges::sort(taken);
  ASSERT_EQ(std::ranges::adjacent_find(taken), taken.end());
  const std::size_t peak = routes.mapped_bytes();
  for (const RouteIndex index : taken)
    if (index != 10000) routes.give(index);
  EXPECT_EQ(routes[10000].first, 7u);
  EXPECT_EQ(routes[3].first, kNoPath);
  EXPECT_LT(routes.mapped_bytes(), peak / 4);
  EXPECT_EQ(routes.end(), 10000u / 8192 * 8192 + 8192);
  const RouteIndex again = routes.take();
  EXPECT_NE(again, 10000u);
  EXPECT_EQ(routes[again].first, kNoPath);
  EXPECT_EQ(routes[again].pins, 0u);
  routes[again].first = 8;
  routes.give(10000);
  routes.give(again);
  EXPECT_EQ(routes.mapped_bytes(), 0u);
  EXPECT_EQ(routes.end(), 0u);
}

TEST(DecodeCache, TheSameAttributesAreDecodedOnceAndOthersAreNotMistaken) {
  const auto message = [](const Attributes& attributes, uint32_t first) {
    const net::Bytes one = make_nlri(first), two = make_nlri(first + 1);
    const std::vector<std::span<const uint8_t>> nlris{one, two};
    return encode_reach(kL2vpnEvpn, attributes.next_hop, encode_attributes(attributes, {}), nlris,
                        kMaxMessage)
        .message;
  };
  DecodeCache cache;
  const auto decode = [&](const net::Bytes& bytes) {
    auto update = decode_update(std::span<const uint8_t>(bytes).subspan(kHeaderSize), kTestFamily,
                                {}, &cache);
    EXPECT_TRUE(update.has_value());
    return std::move(*update);
  };
  const net::Bytes bytes = message(vtep(1), 5);
  const Update first = decode(bytes);
  const net::Bytes more = message(vtep(1), 50);
  const Update second = decode(more);
  EXPECT_EQ(second.attributes, first.attributes);  // the very value
  ASSERT_EQ(second.reach.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(second.reach[1].bytes, make_nlri(51)));
  // Another next hop, other attributes, and many of them.
  for (uint32_t i = 2; i < 200; ++i) {
    Attributes other = vtep(i % 50);
    other.local_pref = i;
    const net::Bytes octets = message(other, i);
    EXPECT_EQ(*decode(octets).attributes, other);
    EXPECT_EQ(*decode(octets).attributes, other);
  }
  // An error is found each time.
  net::Bytes broken = message(vtep(1), 5);
  broken[broken.size() - 20 - 12] = 0xff;
  const auto before =
      decode_update(std::span<const uint8_t>(broken).subspan(kHeaderSize), kTestFamily, {});
  for (int i = 0; i < 2; ++i) {
    const auto again = decode_update(std::span<const uint8_t>(broken).subspan(kHeaderSize),
                                     kTestFamily, {}, &cache);
    ASSERT_EQ(again.has_value(), before.has_value());
    if (again.has_value()) {
      EXPECT_EQ(again->handling, before->handling);
    }
  }
}
