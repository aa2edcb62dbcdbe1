// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of the RIB on their own: AS paths, storage, interning, the decision, the export policy.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "bgp/arena.h"
#include "bgp/attribute_store.h"
#include "bgp/best_path.h"
#include "bgp/export_policy.h"
#include "bgp/hash_index.h"
#include "bgp/route_table.h"
#include "rib_support.h"

using namespace bgp;
using namespace bgp::test;

namespace {

Attributes with_path(std::vector<AsPathSegment> path) {
  Attributes a;
  a.as_path = std::move(path);
  return a;
}

}  // namespace

// --- AS path --------------------------------------------------------------------------------

TEST(AsPath, LengthAndText) {
  using enum AsPathSegment::Type;
  const struct {
    std::vector<AsPathSegment> path;
    std::size_t length;
    const char* text;
  } cases[] = {
      {{}, 0, ""},
      {{{Sequence, {65001}}}, 1, "65001"},
      {{{Sequence, {65001, 4200000000}}}, 2, "65001 4200000000"},
      {{{Sequence, {65001, 65002}}, {Set, {65003, 65004}}}, 3, "65001 65002 {65003,65004}"},
      {{{Set, {1}}, {Sequence, {2}}}, 2, "{1} 2"},
      {{{ConfedSequence, {1, 2}}, {Sequence, {3}}}, 1, "(1 2) 3"},
      {{{ConfedSet, {1, 2}}}, 0, "[1,2]"},
      {{{Sequence, {}}, {Set, {}}, {Sequence, {7}}}, 1, "7"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(as_path_length(with_path(c.path)), c.length) << c.text;
    EXPECT_EQ(as_path_text(with_path(c.path)), c.text);
  }
}

TEST(AsPath, ContainsLooksIntoEverySegment) {
  const Attributes a = with_path({{AsPathSegment::Sequence, {1, 2}}, {AsPathSegment::Set, {3}}});
  for (const uint32_t as_number : {1u, 2u, 3u}) EXPECT_TRUE(as_path_contains(a, as_number));
  EXPECT_FALSE(as_path_contains(a, 4));
  EXPECT_FALSE(as_path_contains(Attributes{}, 0));
}

// --- Storage --------------------------------------------------------------------------------

TEST(Arena, RecordsKeepTheirBytesAndEmptyPagesGoBack) {
  PagePool pool;
  Arena arena(pool);
  std::mt19937 random(1);
  std::map<Arena::Ref, net::Bytes> live;
  for (int i = 0; i < 60000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t size = random() % 50 == 0 ? random() % 20000 : 20 + random() % 300;
      const Arena::Ref ref = arena.allocate(size);
      const net::Bytes bytes(size, static_cast<uint8_t>(random()));
      if (size != 0) std::memcpy(arena.at(ref), bytes.data(), size);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(arena.at(ref)) % 4, 0u);
      ASSERT_TRUE(live.emplace(ref, bytes).second);
    } else {
      auto victim =
          live.lower_bound(static_cast<Arena::Ref>(random() % (live.rbegin()->first + 1)));
      ASSERT_TRUE(
          std::equal(victim->second.begin(), victim->second.end(), arena.at(victim->first)));
      arena.release(victim->first);
      live.erase(victim);
    }
  }
  const std::size_t peak = arena.mapped_bytes();
  for (const auto& [ref, bytes] : live) {
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), arena.at(ref)));
    arena.release(ref);
  }
  EXPECT_LT(arena.mapped_bytes(), peak);
  EXPECT_LE(arena.mapped_bytes(), 130 * std::size_t{65536});  // at most one a size
}

TEST(Arena, FitsTellsWhetherTheSlotHasTheSameSize) {
  PagePool pool;
  Arena arena(pool);
  const Arena::Ref ref = arena.allocate(63);
  EXPECT_TRUE(arena.fits(ref, 64));
  EXPECT_TRUE(arena.fits(ref, 61));
  EXPECT_FALSE(arena.fits(ref, 65));
  EXPECT_FALSE(arena.fits(ref, 60));
}

TEST(HashIndex, FindsWhatIsThereAndNothingElse) {
  // Few different hashes in few segments: long probes, wrap-around, gaps closed on erase.
  HashIndex index;
  std::mt19937 random(2);
  std::map<uint32_t, uint32_t> hash_of;  // number -> hash
  for (uint32_t number = 0; number < 40000; ++number) {
    const auto hash = static_cast<uint32_t>((random() % 3) << 24 | (0xffff00 + random() % 256));
    index.insert(hash, number);
    hash_of[number] = hash;
    if (random() % 4 == 0 || hash_of.size() > 700) {
      auto victim =
          std::next(hash_of.begin(), static_cast<std::ptrdiff_t>(random() % hash_of.size()));
      index.erase(victim->second, victim->first);
      EXPECT_EQ(index.find(victim->second, [&](uint32_t n) { return n == victim->first; }),
                HashIndex::kNone);
      hash_of.erase(victim);
    }
    if (number % 500 != 0) continue;
    for (const auto& [n, h] : hash_of) {
      const uint32_t want = n;
      ASSERT_EQ(index.find(h, [&](uint32_t candidate) { return candidate == want; }), want);
    }
  }
}

TEST(RouteTable, KeysAreCutOutOfTheNlriOrKeptBesideIt) {
  PagePool pool;
  RouteTable table(pool, 5);
  const struct {
    net::Bytes nlri, key;
  } cases[] = {
      {make_nlri(1), key_of(make_nlri(1))},
      {make_nlri(1, 5, 0xee), key_of(make_nlri(1, 5, 0xee))},
      {make_nlri(1, 5, 0xee, true), key_of(make_nlri(1, 5, 0xee, true))},
      {{3, 2, 8, 9}, {3, 8, 9}},
      {{3, 3, 8, 9, 7}, {3, 9, 8}},                             // not in the NLRI's order
      {{4, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {4, 1, 3, 5, 7, 9}},  // too many pieces
      {{5, 0}, {}},                                             // no key at all
      {{6, 1, 1}, {6, 200}},                                    // key of other octets
  };
  std::set<RouteIndex> seen;
  for (const auto& c : cases) {
    const uint32_t hash = table.hash(c.key);
    RouteIndex route = table.find(c.key, hash);
    if (route == kNoRoute) {
      route = table.add(hash);
      table.route(route).first = table.new_path(route, c.nlri, c.key);
      EXPECT_TRUE(seen.insert(route).second);
    }
    EXPECT_EQ(table.find(c.key, hash), route);
    const auto stored = table.path(table.route(route).first).nlri();
    if (c.nlri != make_nlri(1, 5, 0xee)) {  // the second one's key is that of the first
      EXPECT_EQ(net::Bytes(stored.begin(), stored.end()), c.nlri);
    }
  }
  EXPECT_EQ(seen.size(), std::size(cases) - 1);
  for (const auto& c : cases) {
    const RouteIndex route = table.find(c.key, table.hash(c.key));
    if (route != kNoRoute) table.remove(route);
    EXPECT_EQ(table.find(c.key, table.hash(c.key)), kNoRoute);
  }
  EXPECT_EQ(table.end(), 0u);
}

// --- Interned attributes --------------------------------------------------------------------

namespace {

// One set for each thing that can differ.
std::vector<Attributes> different_sets() {
  std::vector<Attributes> sets(1);
  const auto add = [&](auto&& change) {
    Attributes a;
    change(a);
    sets.push_back(a);
  };
  add([](Attributes& a) { a.origin = Origin::Incomplete; });
  add([](Attributes& a) { a.next_hop = net::IpAddress::v4(1); });
  add([](Attributes& a) { a.next_hop = net::IpAddress::v6({}); });
  add([](Attributes& a) { a.next_hop = *net::IpAddress::parse("2001:db8::1"); });
  add([](Attributes& a) { a.multi_exit_disc = 0; });
  add([](Attributes& a) { a.multi_exit_disc = 5; });
  add([](Attributes& a) { a.local_pref = 0; });
  add([](Attributes& a) { a.local_pref = 5; });
  add([](Attributes& a) { a.atomic_aggregate = true; });
  add([](Attributes& a) { a.aggregator = Aggregator{}; });
  add([](Attributes& a) { a.aggregator = Aggregator{1, 2}; });
  add([](Attributes& a) { a.originator_id = 0; });
  add([](Attributes& a) { a.originator_id = 9; });
  add([](Attributes& a) { a.pmsi_tunnel.emplace(); });
  add([](Attributes& a) { a.pmsi_tunnel = net::Bytes{0, 6, 0, 0, 100, 192, 0, 2, 1}; });
  add([](Attributes& a) { a.as_path = {{AsPathSegment::Sequence, {1, 2}}}; });
  add([](Attributes& a) { a.as_path = {{AsPathSegment::Set, {1, 2}}}; });
  add([](Attributes& a) {
    a.as_path = {{AsPathSegment::Sequence, {1}}, {AsPathSegment::Sequence, {2}}};
  });
  add([](Attributes& a) {
    a.as_path = {{AsPathSegment::Sequence, std::vector<uint32_t>(300, 65001)}};
  });
  add([](Attributes& a) { a.communities = {1, 2}; });
  add([](Attributes& a) { a.cluster_list = {1, 2}; });
  add([](Attributes& a) { a.extended_communities = {{1, 2, 3, 4, 5, 6, 7, 8}}; });
  add([](Attributes& a) { a.large_communities = {{1, 2, 3}}; });
  add([](Attributes& a) { a.unknown = {{0xe0, 200, {1, 2}}}; });
  add([](Attributes& a) { a.unknown = {{0xe0, 201, {1, 2}}}; });
  add([](Attributes& a) { a.unknown = {{0xe0, 200, {1}}, {0xe0, 202, {}}}; });
  Attributes all;
  all.origin = Origin::Egp;
  all.as_path = {{AsPathSegment::Sequence, {65001, 4200000000}}, {AsPathSegment::Set, {1, 2, 3}}};
  all.next_hop = *net::IpAddress::parse("2001:db8::1");
  all.multi_exit_disc = 1;
  all.local_pref = 2;
  all.atomic_aggregate = true;
  all.aggregator = Aggregator{3, 4};
  all.communities = {5};
  all.extended_communities = {{1}, {2}};
  all.large_communities = {{1, 2, 3}, {4, 5, 6}};
  all.originator_id = 6;
  all.cluster_list = {7, 8};
  all.pmsi_tunnel = net::Bytes(5000, 9);
  all.unknown = {{0xe0, 200, net::Bytes(300, 1)}};
  sets.push_back(all);
  return sets;
}

}  // namespace

TEST(AttributeStore, EqualSetsShareOneRecordAndUnpackToTheSame) {
  PagePool pool;
  AttributeStore store(pool, {});
  std::map<AttributeId, Attributes> ids;
  for (const Attributes& set : different_sets()) {
    const AttributeId id = store.intern(set);
    EXPECT_TRUE(ids.emplace(id, set).second);
    EXPECT_EQ(store.intern(Attributes(set)), id);
    EXPECT_EQ(store.unpack(id), set);
  }
  EXPECT_EQ(store.size(), ids.size());
  for (const auto& [id, set] : ids) {
    store.release(id);
    EXPECT_EQ(store.unpack(id), set);  // one reference is left
  }
  for (const auto& entry : ids) store.release(entry.first);
  EXPECT_EQ(store.size(), 0u);
}

TEST(AttributeStore, TheHeadTellsWhatTheDecisionAsks) {
  PagePool pool;
  AttributeStore store(pool,
                       {.local_as = 65000, .router_id = 10, .cluster_id = 20, .hash_seed = 1});
  Attributes a;
  a.as_path = {{AsPathSegment::Sequence, {65001, 65002}}, {AsPathSegment::Set, {1, 2}}};
  a.local_pref = 7;
  a.multi_exit_disc = 8;
  a.originator_id = 9;
  a.cluster_list = {1, 2, 3};
  const AttributeDigest& head = store.digest(store.intern(a));
  EXPECT_TRUE(head.has_local_pref());
  EXPECT_TRUE(head.has_originator_id());
  EXPECT_EQ(head.local_pref, 7u);
  EXPECT_EQ(head.multi_exit_disc, 8u);
  EXPECT_EQ(head.originator_id, 9u);
  EXPECT_EQ(head.as_path_length, 3);
  EXPECT_EQ(head.neighbor_as, 65001u);
  EXPECT_EQ(head.cluster_list_length, 3);
  EXPECT_EQ(head.flags, 0);

  const auto flags = [&](auto&& change) {
    Attributes other;
    change(other);
    return store.digest(store.intern(other)).flags;
  };
  using Digest = AttributeDigest;
  EXPECT_EQ(flags([](Attributes& o) { o.as_path = {{AsPathSegment::Set, {1, 65000}}}; }),
            Digest::kOwnAs);
  EXPECT_EQ(flags([](Attributes& o) { o.originator_id = 10; }), Digest::kOwnOriginator);
  EXPECT_EQ(flags([](Attributes& o) { o.cluster_list = {1, 20}; }), Digest::kOwnCluster);
  EXPECT_EQ(flags([](Attributes& o) { o.communities = {0xffffff01}; }), Digest::kNoExport);
  EXPECT_EQ(flags([](Attributes& o) { o.communities = {1, 0xffffff03}; }), Digest::kNoExport);
  EXPECT_EQ(flags([](Attributes& o) { o.communities = {1, 0xffffff02}; }), Digest::kNoAdvertise);
}

// --- Decision -------------------------------------------------------------------------------

TEST(BestPath, EachStepDecidesAndEarlierOnesOverrideLaterOnes) {
  using enum BestPathReason;
  // In order of the steps: what makes a candidate better, and the reason.
  const struct {
    void (*improve)(Candidate&);
    BestPathReason reason;
  } steps[] = {
      {[](Candidate& c) { c.local = true; }, LocalRoute},
      {[](Candidate& c) { c.local_pref = 101; }, LocalPref},
      {[](Candidate& c) { c.as_path_length = 1; }, AsPathLength},
      {[](Candidate& c) { c.origin = bgp::Origin::Igp; }, BestPathReason::Origin},
      {[](Candidate& c) { c.multi_exit_disc = 9; }, MultiExitDisc},
      {[](Candidate& c) { c.external = true; }, ExternalOverInternal},
      {[](Candidate& c) { c.stale = false; }, Stale},
      {[](Candidate& c) { c.router_id = 9; }, RouterId},
      {[](Candidate& c) { c.cluster_list_length = 1; }, ClusterListLength},
      {[](Candidate& c) { c.peer_address = net::IpAddress::v4(9); }, PeerAddress},
  };
  const auto plain = [](uint32_t tie) {
    Candidate c;
    c.as_path_length = 2;
    c.origin = bgp::Origin::Incomplete;
    c.multi_exit_disc = 10;
    c.stale = true;
    c.router_id = 10;
    c.cluster_list_length = 2;
    c.peer_address = net::IpAddress::v4(10);
    c.tie = tie;
    return c;
  };
  for (std::size_t better = 0; better < std::size(steps); ++better) {
    // Against a path that is as good up to there and better in every later step.
    for (const bool first : {true, false}) {
      Candidate good = plain(2), bad = plain(1);
      steps[better].improve(good);
      for (std::size_t later = better + 1; later < std::size(steps); ++later)
        steps[later].improve(bad);
      std::vector<Candidate> both = first ? std::vector{good, bad} : std::vector{bad, good};
      const std::size_t best = select_best(both);
      EXPECT_EQ(best, first ? 0u : 1u) << to_string(steps[better].reason);
      EXPECT_EQ(both[0].reason, steps[better].reason) << to_string(steps[better].reason);
      EXPECT_EQ(both[1].reason, steps[better].reason) << to_string(steps[better].reason);
    }
  }
}

TEST(BestPath, OneAloneNeedsNoReason) {
  std::vector<Candidate> one(1);
  EXPECT_EQ(select_best(one), 0u);
  EXPECT_EQ(one[0].reason, BestPathReason::OnlyPath);
}

TEST(BestPath, EveryLoserHasItsOwnReason) {
  std::vector<Candidate> all(4);
  all[0].local_pref = 50;
  all[1].as_path_length = 3;
  all[2].router_id = 5;
  all[3].router_id = 4;
  EXPECT_EQ(select_best(all), 3u);
  EXPECT_EQ(all[0].reason, BestPathReason::LocalPref);
  EXPECT_EQ(all[1].reason, BestPathReason::AsPathLength);
  EXPECT_EQ(all[2].reason, BestPathReason::RouterId);
  EXPECT_EQ(all[3].reason, BestPathReason::RouterId);
}

TEST(BestPath, MedComparesOnlyPathsOfOneNeighborAsWhateverTheOrder) {
  // Pairwise these three are a circle; by elimination the result is always the same.
  const auto make = [](uint32_t as_number, uint32_t med, uint32_t router_id) {
    Candidate c;
    c.neighbor_as = as_number;
    c.multi_exit_disc = med;
    c.router_id = router_id;
    c.tie = router_id;
    return c;
  };
  std::vector<Candidate> all{make(1, 10, 1), make(2, 0, 2), make(1, 5, 3)};
  std::ranges::sort(all, {}, &Candidate::tie);
  do {
    auto copy = all;
    const Candidate& best = copy[select_best(copy)];
    EXPECT_EQ(best.router_id, 2u);
    for (const Candidate& c : copy) {
      if (c.router_id == 2) continue;
      EXPECT_EQ(c.reason,
                c.router_id == 1 ? BestPathReason::MultiExitDisc : BestPathReason::RouterId);
    }
  } while (std::ranges::next_permutation(all, {}, &Candidate::tie).found);
}

// --- Export ---------------------------------------------------------------------------------

namespace {

GroupKey internal_group(NeighborRole role) {
  GroupKey key;
  key.role = role;
  return key;
}
GroupKey external_group(NeighborRole role) {
  GroupKey key = internal_group(role);
  key.internal = false;
  return key;
}
const GroupKey kClients = internal_group(NeighborRole::ReflectorClient),
               kNonClients = internal_group(NeighborRole::Peer),
               kExternals = external_group(NeighborRole::Peer),
               kServed = external_group(NeighborRole::RouteServerClient);

Attributes full_set() {
  Attributes a = vtep(1);
  a.as_path = {{AsPathSegment::Sequence, {65001}}};
  a.multi_exit_disc = 7;
  a.local_pref = 150;
  a.communities = {1};
  a.extended_communities.push_back({0x43, 0x01, 0, 0, 0, 0, 0, 1});  // not transitive
  a.large_communities = {{1, 2, 3}};
  a.originator_id = 77;
  a.cluster_list = {88};
  a.pmsi_tunnel = net::Bytes{0, 6, 0, 0, 100, 192, 0, 2, 1};
  a.unknown = {{0xe0, 200, {1, 2, 3}}};
  return a;
}

ExportContext from(SourceKind source) { return {source, 0x0a000001, 65000, 0x0a0000ff}; }

}  // namespace

TEST(Export, WhoGetsWhat) {
  using enum SourceKind;
  const struct {
    const GroupKey& group;
    bool local, external, client, non_client;
  } rows[] = {
      {kClients, true, true, true, true},
      {kNonClients, true, true, true, false},
      {kExternals, true, true, true, true},
      {kServed, true, true, true, true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(may_export(row.group, Local, 0), row.local);
    EXPECT_EQ(may_export(row.group, External, 0), row.external);
    EXPECT_EQ(may_export(row.group, Client, 0), row.client);
    EXPECT_EQ(may_export(row.group, NonClient, 0), row.non_client);
  }
}

TEST(Export, WellKnownCommunities) {
  using Digest = AttributeDigest;
  EXPECT_TRUE(may_export(kClients, SourceKind::Local, Digest::kNoExport));
  EXPECT_FALSE(may_export(kExternals, SourceKind::Local, Digest::kNoExport));
  EXPECT_TRUE(may_export(kServed, SourceKind::External, Digest::kNoExport));
  EXPECT_FALSE(may_export(kClients, SourceKind::Local, Digest::kNoAdvertise));
  EXPECT_FALSE(may_export(kExternals, SourceKind::Local, Digest::kNoAdvertise));
  EXPECT_TRUE(may_export(kServed, SourceKind::External, Digest::kNoAdvertise));
}

TEST(Export, ReflectionAddsOriginatorAndClusterAndNothingElse) {
  for (const SourceKind source : {SourceKind::Client, SourceKind::NonClient}) {
    Attributes want = full_set();
    want.cluster_list = {0x0a0000ff, 88};
    EXPECT_EQ(exported(full_set(), kClients, from(source)), want);
    Attributes fresh = full_set();
    fresh.originator_id.reset();
    fresh.cluster_list.clear();
    fresh.local_pref.reset();
    want.local_pref.reset();
    want.originator_id = 0x0a000001;  // the sender's router id
    want.cluster_list = {0x0a0000ff};
    EXPECT_EQ(exported(fresh, kClients, from(source)), want);
  }
}

TEST(Export, LocalPrefWithinTheAs) {
  for (const GroupKey& group : {kClients, kNonClients}) {
    Attributes a = vtep(1);
    EXPECT_EQ(exported(a, group, from(SourceKind::Local)).local_pref, 100u);
    EXPECT_EQ(exported(a, group, from(SourceKind::External)).local_pref, 100u);
    a.local_pref = 200;
    EXPECT_EQ(exported(a, group, from(SourceKind::Local)), a);
    // What another AS says in LOCAL_PREF does not count.
    EXPECT_EQ(exported(a, group, from(SourceKind::External)).local_pref, 100u);
  }
}

TEST(Export, RouteServerClientsGetClientsRoutesUntouched) {
  Attributes want = full_set();
  want.local_pref.reset();
  want.originator_id.reset();
  want.cluster_list.clear();
  EXPECT_EQ(exported(full_set(), kServed, from(SourceKind::External)), want);
  Attributes empty = vtep(1);
  EXPECT_EQ(exported(empty, kServed, from(SourceKind::External)).as_path, empty.as_path);
  // What began in our own AS carries our AS.
  EXPECT_EQ(as_path_text(exported(empty, kServed, from(SourceKind::Local))), "65000");
  EXPECT_EQ(as_path_text(exported(full_set(), kServed, from(SourceKind::Client))), "65001");
}

TEST(Export, PlainExternalPeers) {
  Attributes want = full_set();
  want.local_pref.reset();
  want.originator_id.reset();
  want.cluster_list.clear();
  want.as_path = {{AsPathSegment::Sequence, {65000, 65001}}};
  want.extended_communities.pop_back();
  for (const SourceKind source :
       {SourceKind::Local, SourceKind::External, SourceKind::Client, SourceKind::NonClient}) {
    want.multi_exit_disc.reset();
    if (source == SourceKind::Local) want.multi_exit_disc = 7;
    EXPECT_EQ(exported(full_set(), kExternals, from(source)), want);
  }
}

TEST(Export, PrependingStartsASegmentWhenItHasTo) {
  using enum AsPathSegment::Type;
  const std::vector<uint32_t> full(255, 1);
  const struct {
    std::vector<AsPathSegment> before, after;
  } cases[] = {
      {{}, {{Sequence, {65000}}}},
      {{{Sequence, {1}}}, {{Sequence, {65000, 1}}}},
      {{{Set, {1}}}, {{Sequence, {65000}}, {Set, {1}}}},
      {{{Sequence, full}}, {{Sequence, {65000}}, {Sequence, full}}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(exported(with_path(c.before), kExternals, from(SourceKind::External)).as_path,
              c.after);
}

TEST(Export, StrippingGoesByTypeAndSubType) {
  GroupKey group = kClients;
  group.strip = {{0x03, 0x0c}};
  Attributes a = vtep(1);
  a.extended_communities.push_back({0x03, 0x0d, 1});
  const Attributes out = exported(a, group, from(SourceKind::Local));
  EXPECT_EQ(out.extended_communities,
            (std::vector<ExtendedCommunity>{a.extended_communities[0], a.extended_communities[2]}));
}

TEST(Export, EverythingThatMattersIsInTheGroupKey) {
  const PeerTraits base = ibgp(1);
  EXPECT_EQ(group_key(base), group_key(ibgp(2)));
  const auto differs = [&](auto&& change) {
    PeerTraits other = base;
    change(other);
    return group_key(other) != group_key(base);
  };
  EXPECT_TRUE(differs([](PeerTraits& t) { t.internal = false; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.role = NeighborRole::Peer; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.four_octet_as = false; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.max_message = 65535; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.strip_extended_communities = {{3, 12}}; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.long_lived = true; }));
  EXPECT_TRUE(differs([](PeerTraits& t) { t.long_lived_partial = true; }));
  PeerTraits one = base, two = base;
  one.strip_extended_communities = {{1, 2}, {3, 4}, {1, 2}};
  two.strip_extended_communities = {{3, 4}, {1, 2}};
  EXPECT_EQ(group_key(one), group_key(two));
  // A role of the other kind of session means nothing.
  PeerTraits odd = ebgp(1, NeighborRole::ReflectorClient);
  EXPECT_EQ(group_key(odd), group_key(ebgp(1, NeighborRole::Peer)));
}
