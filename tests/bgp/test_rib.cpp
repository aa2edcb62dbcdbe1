// SPDX-License-Identifier: GPL-2.0-or-later
// The RIB as its users see it: who is sent what, when nothing is sent, restarts, refreshes, queues.
#include "bgp/rib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rib_support.h"

using namespace bgp;
using namespace bgp::test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace {

// A RIB with receivers that have had their End-of-RIB.
struct Fabric {
  Rib rib;
  std::map<PeerId, Receiver> receivers;

  explicit Fabric(const Rib::Options& rib_options = options()) : rib(rib_options) {}
  Receiver& up(PeerId peer, const PeerTraits& traits) {
    rib.peer_up(peer, traits);
    receivers.insert_or_assign(peer, Receiver(traits));
    return settle(peer);
  }
  Receiver& settle(PeerId peer) {
    Receiver& receiver = receivers.at(peer);
    receiver.drain(rib, peer);
    receiver.events.clear();
    return receiver;
  }
  void settle() {
    for (auto& entry : receivers) settle(entry.first);
    (void)rib.take_ready();
    (void)rib.take_changes();
  }
  void announce(PeerId peer, const net::Bytes& nlri, const Attributes& attributes) {
    rib.update(peer, make_item(nlri), share(attributes));
  }
  void withdraw(PeerId peer, const net::Bytes& nlri) { rib.withdraw(peer, make_item(nlri).key()); }
  // What the peer is sent now, as events.
  std::vector<std::string> sent(PeerId peer) {
    Receiver& receiver = receivers.at(peer);
    receiver.events.clear();
    receiver.drain(rib, peer);
    return receiver.events;
  }
  const Receiver::Held* held(PeerId peer, const net::Bytes& nlri) {
    return receivers.at(peer).find(nlri);
  }
  std::vector<PathView> paths() {
    std::vector<PathView> all;
    rib.for_each_path([&](const PathView& path) {
      all.push_back(path);
      return true;
    });
    return all;
  }
};

constexpr PeerId kClientA = 1, kClientB = 2, kNonClientA = 3, kNonClientB = 4, kServedA = 5,
                 kServedB = 6, kExternal = 7;

void all_up(Fabric& fabric) {
  fabric.up(kClientA, ibgp(kClientA));
  fabric.up(kClientB, ibgp(kClientB));
  fabric.up(kNonClientA, ibgp(kNonClientA, NeighborRole::Peer));
  fabric.up(kNonClientB, ibgp(kNonClientB, NeighborRole::Peer));
  fabric.up(kServedA, ebgp(kServedA));
  fabric.up(kServedB, ebgp(kServedB));
  fabric.up(kExternal, ebgp(kExternal, NeighborRole::Peer));
}

// The attributes of an UPDATE without its MP_REACH_NLRI, as bytes.
net::Bytes other_attributes(const net::Bytes& message) {
  net::ByteReader in(std::span<const uint8_t>(message).subspan(kHeaderSize));
  in.bytes(in.u16());
  net::ByteReader attributes = in.sub(in.u16());
  net::Bytes out;
  while (!attributes.done()) {
    const auto whole = attributes.rest();
    const uint8_t flags = attributes.u8(), type = attributes.u8();
    const std::size_t size =
        (flags & kFlagExtendedLength) != 0 ? attributes.u16() : attributes.u8();
    attributes.bytes(size);
    const auto one = whole.first(whole.size() - attributes.remaining());
    if (type != static_cast<uint8_t>(AttributeType::MpReachNlri))
      out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

}  // namespace

// --- Who gets what --------------------------------------------------------------------------

TEST(Rib, EverySourceReachesWhomItShould) {
  const struct {
    PeerId source;
    std::set<PeerId> receivers;
  } cases[] = {
      {kLocalPeer, {kClientA, kClientB, kNonClientA, kNonClientB, kServedA, kServedB, kExternal}},
      {kClientA, {kClientB, kNonClientA, kNonClientB, kServedA, kServedB, kExternal}},
      {kNonClientA, {kClientA, kClientB, kServedA, kServedB, kExternal}},
      {kServedA, {kClientA, kClientB, kNonClientA, kNonClientB, kServedB, kExternal}},
      {kExternal, {kClientA, kClientB, kNonClientA, kNonClientB, kServedA, kServedB}},
  };
  for (const auto& c : cases) {
    Fabric fabric;
    all_up(fabric);
    fabric.settle();
    fabric.announce(c.source, make_nlri(1), vtep(1));
    const auto ready = fabric.rib.take_ready();
    EXPECT_EQ(std::set<PeerId>(ready.begin(), ready.end()), c.receivers) << c.source;
    for (auto& [peer, receiver] : fabric.receivers) {
      const std::size_t expected = c.receivers.contains(peer) ? 1 : 0;
      EXPECT_EQ(fabric.rib.counts(peer).queued, expected) << c.source << " to " << peer;
      EXPECT_EQ(receiver.drain(fabric.rib, peer), expected) << c.source << " to " << peer;
      EXPECT_EQ(receiver.held.size(), expected) << c.source << " to " << peer;
      EXPECT_EQ(fabric.rib.counts(peer).advertised, expected);
      EXPECT_EQ(fabric.rib.counts(peer).queued, 0u);
    }
    fabric.withdraw(c.source, make_nlri(1));
    for (auto& [peer, receiver] : fabric.receivers) {
      EXPECT_EQ(receiver.drain(fabric.rib, peer), c.receivers.contains(peer) ? 1u : 0u);
      EXPECT_TRUE(receiver.held.empty());
      EXPECT_EQ(receiver.needless, 0u);
      EXPECT_EQ(fabric.rib.counts(peer).advertised, 0u);
    }
    EXPECT_EQ(fabric.rib.route_count(), 0u);
  }
}

TEST(Rib, ReflectedRoutesAreTheSameBytes) {
  Fabric fabric;
  fabric.up(kClientA, ibgp(kClientA));
  fabric.up(kClientB, ibgp(kClientB));
  Attributes a = vtep(1);
  a.local_pref = 130;
  a.pmsi_tunnel = net::Bytes{0, 6, 0xab, 0xcd, 0xef, 192, 0, 2, 1};
  a.extended_communities.push_back({0x06, 0x7f, 1, 2, 3, 4, 5, 6});
  a.unknown = {{0xe0, 200, {1, 2, 3}}};
  const net::Bytes nlri = make_nlri(7, 0xabcdef, 0x42, true);
  fabric.announce(kClientA, nlri, a);
  const auto message = fabric.rib.pull(kClientB);
  ASSERT_NE(message, nullptr);
  fabric.receivers.at(kClientB).take(*message);
  const Receiver::Held* held = fabric.held(kClientB, nlri);
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->nlri, nlri);
  EXPECT_EQ(held->attributes->next_hop, a.next_hop);
  a.originator_id = 0x0a000001;
  a.cluster_list = {0x0a0000ff};
  EXPECT_EQ(other_attributes(*message), encode_attributes(a, {}));
}

TEST(Rib, TheNextHopIsNeverTouched) {
  for (const uint32_t last_octet : {1u, 200u}) {  // of the peer's own network, or not
    Fabric fabric;
    all_up(fabric);
    for (const PeerId source : {kServedA, kExternal, kClientA}) {
      fabric.announce(source, make_nlri(source), vtep(last_octet));
      for (auto& [peer, receiver] : fabric.receivers) {
        receiver.drain(fabric.rib, peer);
        if (peer == source) continue;
        ASSERT_NE(receiver.find(make_nlri(source)), nullptr);
        EXPECT_EQ(receiver.find(make_nlri(source))->attributes->next_hop,
                  vtep(last_octet).next_hop);
      }
    }
  }
}

TEST(Rib, WhoSentTheBestPathIsNotSentAnother) {
  Fabric fabric;
  all_up(fabric);
  Attributes better = vtep(1);
  better.local_pref = 200;
  fabric.announce(kClientB, make_nlri(1), vtep(2));
  fabric.settle();
  ASSERT_NE(fabric.held(kClientA, make_nlri(1)), nullptr);
  // Its own path becomes the best: what it had from us is withdrawn, others are sent the new one.
  fabric.announce(kClientA, make_nlri(1), better);
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("-1"));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1"));
  EXPECT_THAT(fabric.sent(kNonClientA), ElementsAre("+1"));
  EXPECT_EQ(fabric.rib.counts(kClientA).advertised, 0u);
  fabric.withdraw(kClientA, make_nlri(1));
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("+1"));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("-1"));
}

TEST(Rib, ALosingPathIsNotTold) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kServedA, make_nlri(1), vtep(1));
  fabric.settle();
  Attributes worse = vtep(2);
  worse.as_path = {{AsPathSegment::Sequence, {1, 2, 3}}};
  fabric.announce(kServedB, make_nlri(1), worse);
  fabric.withdraw(kServedB, make_nlri(1));
  EXPECT_THAT(fabric.rib.take_ready(), IsEmpty());
  EXPECT_THAT(fabric.rib.take_changes(), IsEmpty());
}

TEST(Rib, LoopsAreKeptAndShownButNotUsed) {
  const struct {
    PeerId source;
    void (*loop)(Attributes&);
    Rejected rejected;
  } cases[] = {
      {kClientA, [](Attributes& a) { a.as_path = {{AsPathSegment::Sequence, {1, 65000}}}; },
       Rejected::OwnAsInPath},
      {kServedA, [](Attributes& a) { a.as_path = {{AsPathSegment::Sequence, {1, 65000}}}; },
       Rejected::OwnAsInPath},
      {kClientA, [](Attributes& a) { a.originator_id = 0x0a0000fe; }, Rejected::OwnOriginatorId},
      {kClientA, [](Attributes& a) { a.cluster_list = {1, 0x0a0000ff}; }, Rejected::OwnClusterId},
      // These two mean nothing from another AS.
      {kServedA, [](Attributes& a) { a.originator_id = 0x0a0000fe; }, Rejected::None},
      {kServedA, [](Attributes& a) { a.cluster_list = {0x0a0000ff}; }, Rejected::None},
      {kLocalPeer, [](Attributes& a) { a.as_path = {{AsPathSegment::Sequence, {65000}}}; },
       Rejected::None},
  };
  for (const auto& c : cases) {
    Fabric fabric;
    all_up(fabric);
    fabric.announce(c.source, make_nlri(1), vtep(1));
    fabric.settle();
    Attributes looped = vtep(1);
    c.loop(looped);
    fabric.announce(c.source, make_nlri(1), looped);
    const auto paths = fabric.paths();
    ASSERT_EQ(paths.size(), 1u);
    EXPECT_EQ(paths[0].rejected, c.rejected);
    EXPECT_EQ(paths[0].best, c.rejected == Rejected::None);
    EXPECT_EQ(*paths[0].attributes, looped);
    EXPECT_EQ(fabric.rib.counts(c.source).received, 1u);
    const bool usable = c.rejected == Rejected::None;
    EXPECT_THAT(fabric.sent(kClientB), ElementsAre(usable ? "+1" : "-1"));
    const auto changes = fabric.rib.take_changes();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].attributes != nullptr, usable);
  }
}

TEST(Rib, PathsAreShownBestFirstEachWithItsReason) {
  Fabric fabric;
  all_up(fabric);
  Attributes looped = vtep(9), preferred = vtep(3), longer = vtep(4);
  looped.as_path = {{AsPathSegment::Sequence, {65000}}};
  preferred.local_pref = 200;
  longer.as_path = {{AsPathSegment::Sequence, {1}}};
  fabric.announce(kClientB, make_nlri(1), looped);
  fabric.announce(kClientA, make_nlri(1), vtep(2));
  fabric.announce(kNonClientA, make_nlri(1), preferred);
  fabric.announce(kServedA, make_nlri(1), longer);
  fabric.announce(kNonClientB, make_nlri(2), vtep(5));
  const auto paths = fabric.paths();
  ASSERT_EQ(paths.size(), 5u);
  std::vector<PeerId> peers;
  for (const PathView& path : paths) peers.push_back(path.peer);
  EXPECT_THAT(peers, ElementsAre(kNonClientA, kServedA, kClientA, kClientB, kNonClientB));
  EXPECT_TRUE(paths[0].best);
  EXPECT_FALSE(paths[1].best || paths[2].best || paths[3].best);
  for (const int i : {0, 1, 2})
    EXPECT_EQ(paths[static_cast<std::size_t>(i)].reason, BestPathReason::LocalPref);
  EXPECT_EQ(paths[3].rejected, Rejected::OwnAsInPath);
  EXPECT_TRUE(paths[4].best);
  EXPECT_EQ(paths[4].reason, BestPathReason::OnlyPath);
  std::size_t visited = 0;
  fabric.rib.for_each_path([&](const PathView&) { return ++visited < 2; });
  EXPECT_EQ(visited, 2u);
}

// --- What is a change -----------------------------------------------------------------------

TEST(Rib, TheSameAnnouncementAgainIsNoChange) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  fabric.settle();
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  EXPECT_THAT(fabric.rib.take_ready(), IsEmpty());
  EXPECT_THAT(fabric.rib.take_changes(), IsEmpty());
  EXPECT_THAT(fabric.sent(kClientB), IsEmpty());
}

TEST(Rib, LabelAndSegmentAreNotTheKeyButAChange) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1, 100, 0), vtep(1));
  fabric.settle();
  for (const net::Bytes& nlri : {make_nlri(1, 101, 0), make_nlri(1, 101, 0x11)}) {
    fabric.announce(kClientA, nlri, vtep(1));
    EXPECT_EQ(fabric.rib.route_count(), 1u);
    const auto changes = fabric.rib.take_changes();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(changes[0].nlri, nlri));
    EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1"));
    EXPECT_EQ(fabric.held(kClientB, nlri)->nlri, nlri);
  }
  fabric.withdraw(kClientA, make_nlri(1, 0, 0));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("-1"));
  EXPECT_EQ(fabric.rib.route_count(), 0u);
}

TEST(Rib, OneMacUnderTwoRoutesStaysUntilBothAreGone) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1, 100, 0, false), vtep(1));
  fabric.announce(kClientA, make_nlri(1, 100, 0, true), vtep(1));
  EXPECT_EQ(fabric.rib.route_count(), 2u);
  fabric.withdraw(kClientA, make_nlri(1, 100, 0, true));
  fabric.settle();
  EXPECT_NE(fabric.held(kClientB, make_nlri(1, 100, 0, false)), nullptr);
  EXPECT_EQ(fabric.held(kClientB, make_nlri(1, 100, 0, true)), nullptr);
}

TEST(Rib, ChangesAreToldOncePerKeyWithTheLastState) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  fabric.announce(kClientA, make_nlri(1), vtep(2));
  fabric.announce(kLocalPeer, make_nlri(2), vtep(3));
  fabric.announce(kClientA, make_nlri(3), vtep(1));
  fabric.withdraw(kClientA, make_nlri(3));  // came and went: nobody has to know
  auto changes = fabric.rib.take_changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(changes[0].nlri, make_nlri(1)));
  EXPECT_EQ(*changes[0].attributes, vtep(2));
  EXPECT_EQ(changes[0].peer, kClientA);
  EXPECT_EQ(changes[1].peer, kLocalPeer);
  EXPECT_THAT(fabric.rib.take_changes(), IsEmpty());
  fabric.withdraw(kClientA, make_nlri(1));
  changes = fabric.rib.take_changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(changes[0].nlri, make_nlri(1)));
  EXPECT_EQ(changes[0].attributes, nullptr);
}

TEST(Rib, WhatMeansNothingIsIgnored) {
  Fabric fabric;
  fabric.announce(9, make_nlri(1), vtep(1));  // no such session
  fabric.withdraw(9, make_nlri(1));
  fabric.withdraw(kLocalPeer, make_nlri(1));
  fabric.rib.peer_down(9, true);
  fabric.rib.end_of_rib(9);
  fabric.rib.refresh(9, true);
  EXPECT_EQ(fabric.rib.pull(9), nullptr);
  EXPECT_EQ(fabric.rib.pull(kLocalPeer), nullptr);
  EXPECT_EQ(fabric.rib.route_count(), 0u);
  EXPECT_EQ(fabric.rib.counts(9).received, 0u);
}

// --- Sessions and restarts ------------------------------------------------------------------

TEST(Rib, ANewPeerGetsTheTableThenEndOfRib) {
  Fabric fabric;
  fabric.rib.peer_up(kClientA, ibgp(kClientA));
  fabric.receivers.insert_or_assign(kClientA, Receiver(ibgp(kClientA)));
  EXPECT_THAT(fabric.rib.take_ready(), ElementsAre(kClientA));
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("EoR"));
  for (uint32_t i = 0; i < 5; ++i) fabric.announce(kClientA, make_nlri(i), vtep(1));
  fabric.announce(kLocalPeer, make_nlri(9), vtep(9));
  fabric.rib.peer_up(kClientB, ibgp(kClientB));
  fabric.receivers.insert_or_assign(kClientB, Receiver(ibgp(kClientB)));
  EXPECT_EQ(fabric.rib.counts(kClientB).queued, 6u);
  const auto events = fabric.sent(kClientB);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT((std::vector<std::string>{events[0], events[1]}), UnorderedElementsAre("+5", "+1"));
  EXPECT_EQ(events[2], "EoR");
}

TEST(Rib, ADeadPeersRoutesGo) {
  Fabric fabric;
  all_up(fabric);
  for (uint32_t i = 0; i < 300; ++i) fabric.announce(kClientA, make_nlri(i), vtep(1));
  fabric.announce(kServedA, make_nlri(1), vtep(5));
  fabric.settle();
  fabric.rib.peer_down(kClientA, false);
  EXPECT_EQ(fabric.rib.route_count(), 1u);
  EXPECT_EQ(fabric.rib.counts(kClientA).received, 0u);
  EXPECT_EQ(fabric.rib.take_changes().size(), 299u);
  fabric.settle(kClientB);
  EXPECT_EQ(fabric.receivers.at(kClientB).held.size(), 1u);
  EXPECT_EQ(fabric.rib.pull(kClientA), nullptr);
}

TEST(Rib, ARestartIsSilentForWhatComesBackTheSame) {
  Fabric fabric;
  all_up(fabric);
  for (uint32_t i = 0; i < 3; ++i) fabric.announce(kClientA, make_nlri(i), vtep(1));
  fabric.settle();
  fabric.rib.peer_down(kClientA, true);
  EXPECT_EQ(fabric.rib.counts(kClientA).received, 3u);
  EXPECT_EQ(fabric.rib.counts(kClientA).stale, 3u);
  for (const PathView& path : fabric.paths()) EXPECT_TRUE(path.stale && path.best);
  fabric.up(kClientA, ibgp(kClientA));
  fabric.announce(kClientA, make_nlri(0), vtep(1));  // the same
  EXPECT_EQ(fabric.rib.counts(kClientA).stale, 2u);
  EXPECT_THAT(fabric.rib.take_changes(), IsEmpty());
  EXPECT_THAT(fabric.sent(kClientB), IsEmpty());
  fabric.announce(kClientA, make_nlri(1, 200), vtep(1));  // another label
  EXPECT_EQ(fabric.rib.counts(kClientA).stale, 1u);
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1"));
  (void)fabric.rib.take_changes();
  fabric.rib.end_of_rib(kClientA);  // the third did not come
  EXPECT_EQ(fabric.rib.counts(kClientA).stale, 0u);
  EXPECT_EQ(fabric.rib.counts(kClientA).received, 2u);
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("-1"));
  ASSERT_EQ(fabric.rib.take_changes().size(), 1u);
  fabric.rib.end_of_rib(kClientA);
  EXPECT_EQ(fabric.rib.route_count(), 2u);
}

TEST(Rib, AStalePathLosesToAFreshOneOfEqualMerit) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));  // the lower router id
  fabric.announce(kClientB, make_nlri(1), vtep(2));
  fabric.settle();
  fabric.rib.peer_down(kClientA, true);
  auto paths = fabric.paths();
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0].peer, kClientB);
  EXPECT_EQ(paths[1].reason, BestPathReason::Stale);
  fabric.up(kClientA, ibgp(kClientA));
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  EXPECT_EQ(fabric.paths()[0].peer, kClientA);
}

TEST(Rib, ASecondRestartDropsWhatWasStillStale) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  fabric.announce(kClientA, make_nlri(2), vtep(1));
  fabric.rib.peer_down(kClientA, true);
  fabric.up(kClientA, ibgp(kClientA));
  fabric.announce(kClientA, make_nlri(2), vtep(1));
  fabric.rib.peer_down(kClientA, true);
  EXPECT_EQ(fabric.rib.route_count(), 1u);
  EXPECT_EQ(fabric.rib.counts(kClientA).stale, 1u);
  fabric.rib.flush_stale(kClientA);  // its time ran out
  EXPECT_EQ(fabric.rib.route_count(), 0u);
  EXPECT_EQ(fabric.rib.counts(kClientA).received, 0u);
}

TEST(Rib, AnotherRouterUnderTheNameDoesNotInheritStalePaths) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  fabric.rib.peer_down(kClientA, true);
  PeerTraits other = ibgp(kClientA);
  other.router_id = 0x0a000063;
  fabric.up(kClientA, other);
  EXPECT_EQ(fabric.rib.route_count(), 0u);
}

TEST(Rib, NothingIsSentWhileAdvertisementsAreHeld) {
  Fabric fabric;
  fabric.rib.hold_advertisements(true);
  fabric.up(kClientA, ibgp(kClientA));
  fabric.up(kClientB, ibgp(kClientB));
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  EXPECT_THAT(fabric.rib.take_ready(), IsEmpty());
  EXPECT_EQ(fabric.rib.pull(kClientB), nullptr);
  EXPECT_EQ(fabric.rib.take_changes().size(), 1u);
  fabric.rib.hold_advertisements(false);
  EXPECT_THAT(fabric.rib.take_ready(), UnorderedElementsAre(kClientA, kClientB));
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("EoR"));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1", "EoR"));
}

TEST(Rib, RefreshSendsEverythingAgain) {
  Fabric fabric;
  all_up(fabric);
  for (uint32_t i = 0; i < 3; ++i) fabric.announce(kClientA, make_nlri(i), vtep(1));
  fabric.settle();
  fabric.rib.refresh(kClientB, false);
  EXPECT_THAT(fabric.rib.take_ready(), ElementsAre(kClientB));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+3"));
  fabric.rib.refresh(kClientB, true);
  fabric.rib.refresh(kClientB, false);
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("BoRR", "+3", "EoRR"));
  EXPECT_THAT(fabric.sent(kNonClientA), IsEmpty());
  EXPECT_EQ(fabric.rib.counts(kClientB).advertised, 3u);
  fabric.rib.refresh(kClientA, true);  // has nothing from us
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("BoRR", "EoRR"));
}

TEST(Rib, BeginOfRefreshWaitsForEndOfRib) {
  Fabric fabric;
  fabric.announce(kLocalPeer, make_nlri(1), vtep(1));
  fabric.rib.peer_up(kClientA, ibgp(kClientA));
  fabric.receivers.insert_or_assign(kClientA, Receiver(ibgp(kClientA)));
  fabric.rib.refresh(kClientA, true);
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("+1", "EoR", "BoRR", "+1", "EoRR"));
}

// --- Update groups --------------------------------------------------------------------------

TEST(Rib, PeersOfAGroupShareTheVeryMessage) {
  Fabric fabric;
  for (PeerId peer = 1; peer <= 3; ++peer) fabric.up(peer, ibgp(peer));
  PeerTraits stripped = ibgp(4);
  stripped.strip_extended_communities = {{0x03, 0x0c}};
  fabric.up(4, stripped);
  fabric.announce(kLocalPeer, make_nlri(1), vtep(1));
  const auto message = fabric.rib.pull(1);
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(fabric.rib.pull(2), message);
  EXPECT_EQ(fabric.rib.pull(3), message);
  fabric.settle(4);
  EXPECT_EQ(fabric.held(4, make_nlri(1))->attributes->extended_communities.size(), 1u);
  // New peers that come at the same time share the walk over the table.
  fabric.rib.peer_up(5, ibgp(5));
  fabric.rib.peer_up(6, ibgp(6));
  const auto walked = fabric.rib.pull(5);
  EXPECT_EQ(fabric.rib.pull(6), walked);
}

TEST(Rib, ManyRoutesOfOneAttributeSetTravelTogether) {
  Fabric fabric;
  all_up(fabric);
  const AttributesPtr one = share(vtep(1)), two = share(vtep(2));
  for (uint32_t i = 0; i < 1000; ++i)  // interleaved
    fabric.rib.update(kClientA, make_item(make_nlri(i)), i % 2 == 0 ? one : two);
  EXPECT_EQ(fabric.rib.counts(kClientB).queued, 1000u);
  EXPECT_LE(fabric.receivers.at(kClientB).drain(fabric.rib, kClientB), 10u);
  EXPECT_EQ(fabric.receivers.at(kClientB).held.size(), 1000u);
  fabric.rib.peer_down(kClientA, false);
  EXPECT_LE(fabric.receivers.at(kClientB).drain(fabric.rib, kClientB), 10u);
  EXPECT_TRUE(fabric.receivers.at(kClientB).held.empty());
}

TEST(Rib, ANewerChangeTakesThePlaceOfAQueuedOne) {
  Fabric fabric;
  all_up(fabric);
  fabric.announce(kClientA, make_nlri(1), vtep(1));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1"));
  // kNonClientA has not pulled yet: it is sent the last state only, once.
  for (uint32_t i = 2; i < 10; ++i) fabric.announce(kClientA, make_nlri(1), vtep(i));
  EXPECT_EQ(fabric.rib.counts(kNonClientA).queued, 1u);
  EXPECT_THAT(fabric.sent(kNonClientA), ElementsAre("+1"));
  EXPECT_EQ(fabric.held(kNonClientA, make_nlri(1))->attributes->next_hop, vtep(9).next_hop);
  // What came and went in between is not sent at all.
  fabric.settle();
  fabric.announce(kClientA, make_nlri(2), vtep(1));
  fabric.withdraw(kClientA, make_nlri(2));
  EXPECT_THAT(fabric.rib.take_ready(), IsEmpty());
  EXPECT_EQ(fabric.rib.counts(kClientB).queued, 0u);
  EXPECT_EQ(fabric.rib.pull(kClientB), nullptr);
}

TEST(Rib, ASlowPeerHoldsNobodyUpAndCostsNoMoreThanTheTable) {
  Rib::Options small = options();
  small.log_slack = 100;
  small.track_changes = false;
  Fabric fabric(small);
  fabric.up(kClientA, ibgp(kClientA));
  fabric.up(kClientB, ibgp(kClientB));
  fabric.announce(kClientA, make_nlri(0), vtep(1));
  fabric.settle();
  Receiver& fast = fabric.up(3, ibgp(3));
  std::size_t peak = 0;
  for (uint32_t i = 1; i <= 50000; ++i) {  // kClientB pulls nothing
    fabric.announce(kClientA, make_nlri(i), vtep(i % 200));
    fast.drain(fabric.rib, 3);
    fabric.withdraw(kClientA, make_nlri(i));
    fast.drain(fabric.rib, 3);
    peak = std::max(peak, fabric.rib.memory_bytes());
    if (i % 1000 == 0) (void)fabric.rib.tidy();
  }
  EXPECT_EQ(fast.announced, 50001u);
  EXPECT_EQ(fast.withdrawn, 50000u);
  EXPECT_LT(peak, 1024u * 1024u);
  EXPECT_EQ(fabric.rib.counts(kClientB).queued, 0u);
  EXPECT_THAT(fabric.sent(kClientB), IsEmpty());
}

TEST(Rib, ARouteTakesNoMoreThanItsNlriAndAFewWords) {
  Fabric fabric;
  fabric.up(kClientA, ibgp(kClientA));
  const AttributesPtr attributes = share(vtep(1));
  for (uint32_t i = 0; i < 20000; ++i)  // 35 octets each; some with a segment, which is not the key
    fabric.rib.update(kClientA, make_item(make_nlri(i * 77, i, static_cast<uint8_t>(i % 3))),
                      attributes);
  EXPECT_EQ(fabric.rib.route_count(), 20000u);
  EXPECT_LT(fabric.rib.memory_bytes(), 20000u * 80);
}

TEST(Rib, MemoryOfWithdrawnRoutesIsReleased) {
  Rib::Options rr = options();
  rr.track_changes = false;
  Fabric fabric(rr);
  all_up(fabric);
  for (uint32_t i = 0; i < 20000; ++i) fabric.announce(kClientA, make_nlri(i), vtep(i));
  fabric.settle();
  EXPECT_GT(fabric.rib.memory_bytes(), 2000000u);
  for (uint32_t i = 0; i < 20000; ++i) fabric.withdraw(kClientA, make_nlri(i));
  fabric.settle();
  while (fabric.rib.tidy()) {
  }
  EXPECT_LT(fabric.rib.memory_bytes(), 500000u);
}

TEST(Rib, AttributesTooLongForOnePeersMessagesAreWithdrawnFromIt) {
  Fabric fabric;
  PeerTraits extended = ibgp(kClientB);
  extended.max_message = kMaxExtendedMessage;
  fabric.up(kClientA, ibgp(kClientA));
  fabric.up(kClientB, extended);
  fabric.announce(kLocalPeer, make_nlri(1), vtep(1));
  fabric.settle();
  Attributes large = vtep(1);
  large.communities.assign(1100, 7);
  fabric.announce(kLocalPeer, make_nlri(1), large);
  EXPECT_THAT(fabric.sent(kClientA), ElementsAre("-1"));
  EXPECT_THAT(fabric.sent(kClientB), ElementsAre("+1"));
  EXPECT_EQ(fabric.held(kClientB, make_nlri(1))->attributes->communities.size(), 1100u);
  EXPECT_EQ(fabric.rib.counts(kClientA).advertised, 0u);
}

TEST(Rib, APeerWithTwoOctetAsNumbersGetsTheWholePathAllTheSame) {
  Fabric fabric;
  PeerTraits old = ebgp(kServedA);
  old.four_octet_as = false;
  fabric.up(kServedA, old);
  fabric.up(kServedB, ebgp(kServedB));
  Attributes a = vtep(1);
  a.as_path = {{AsPathSegment::Sequence, {4200000001, 65001}}};
  fabric.announce(kServedB, make_nlri(1), a);
  EXPECT_THAT(fabric.sent(kServedA), ElementsAre("+1"));
  EXPECT_EQ(as_path_text(*fabric.held(kServedA, make_nlri(1))->attributes), "4200000001 65001");
}

TEST(Rib, ALateJoinerMeetsChangesDuringItsWalk) {
  Rib::Options small = options();
  small.batch_routes = 10;
  Fabric fabric(small);
  fabric.up(kClientA, ibgp(kClientA));
  for (uint32_t i = 0; i < 1000; ++i) fabric.announce(kClientA, make_nlri(i), vtep(1));
  fabric.rib.peer_up(kClientB, ibgp(kClientB));
  Receiver receiver(ibgp(kClientB));
  for (uint32_t i = 0; i < 200; ++i) {  // ahead of it and behind it
    const auto message = fabric.rib.pull(kClientB);
    if (message != nullptr) receiver.take(*message);
    fabric.withdraw(kClientA, make_nlri(i * 5));
    fabric.announce(kClientA, make_nlri(i * 5 + 1, 200), vtep(2));
    fabric.announce(kClientA, make_nlri(1000 + i), vtep(2));
  }
  receiver.drain(fabric.rib, kClientB);
  EXPECT_EQ(receiver.held.size(), 1000u);
  EXPECT_EQ(std::ranges::count(receiver.events, "EoR"), 1);
  fabric.rib.for_each_path([&](const PathView& path) {
    const net::Bytes nlri(path.nlri.begin(), path.nlri.end());
    const auto* held = receiver.find(nlri);
    EXPECT_TRUE(held != nullptr && held->nlri == nlri);
    return true;
  });
}
