// SPDX-License-Identifier: GPL-2.0-or-later
// Policies, send filters (RFC 4684) and long-lived stale routes (RFC 9494) in the RIB: what is
// kept, what is selected, and exactly what is sent when they change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "rib_support.h"

using namespace bgp;
using namespace bgp::test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

constexpr uint32_t kNoLlgr = 0xffff0007;

// Says no, or perhaps, to next hops.
class NextHops final : public RoutePolicy {
 public:
  explicit NextHops(uint32_t rejected, uint32_t flagged = 0)
      : rejected_(rejected), flagged_(flagged) {}
  Verdict judge(std::span<const uint8_t>, const Attributes& a) const override {
    const uint32_t last = a.next_hop.v4_value() & 0xff;
    return last == rejected_ ? Verdict::Reject : last == flagged_ ? Verdict::Flag : Verdict::Accept;
  }
  std::string explain(std::span<const uint8_t>, const Attributes& a) const override {
    return "next hop " + net::to_string(a.next_hop);
  }

 private:
  uint32_t rejected_, flagged_;
};
RoutePolicyPtr rejecting(uint32_t next_hop) { return std::make_shared<NextHops>(next_hop); }
RoutePolicyPtr flagging(uint32_t next_hop) { return std::make_shared<NextHops>(0u, next_hop); }

class OneNextHop final : public SendFilter {
 public:
  explicit OneNextHop(uint32_t last) : last_(last) {}
  bool wants(const Attributes& a) const override {
    ++asked;
    return (a.next_hop.v4_value() & 0xff) == last_;
  }
  mutable int asked = 0;

 private:
  uint32_t last_;
};

struct Policies : ::testing::Test {
  Rib rib{options()};
  std::map<PeerId, Receiver> receivers;

  void up(PeerId peer, const PeerTraits& traits) {
    rib.peer_up(peer, traits);
    receivers.insert_or_assign(peer, Receiver(traits));
  }
  void announce(PeerId peer, uint32_t key, const Attributes& attributes) {
    rib.update(peer, make_item(make_nlri(key)), share(attributes));
  }
  // What the peer is sent now, as events.
  std::vector<std::string> sent(PeerId peer) {
    Receiver& receiver = receivers.at(peer);
    receiver.events.clear();
    receiver.drain(rib, peer);
    return receiver.events;
  }
  bool has(PeerId peer, uint32_t key) { return receivers.at(peer).find(make_nlri(key)) != nullptr; }
  std::vector<PathView> paths() {
    std::vector<PathView> all;
    rib.for_each_path([&](const PathView& path) {
      all.push_back(path);
      return true;
    });
    return all;
  }
};

Attributes with_community(Attributes a, uint32_t community) {
  a.communities.push_back(community);
  return a;
}

}  // namespace

// --- Accept policy --------------------------------------------------------------------------

TEST_F(Policies, ARejectedPathIsKeptAndShownButNotUsed) {
  PeerTraits traits = ibgp(1);
  traits.accept = rejecting(7);
  up(1, traits);
  up(2, ibgp(2));
  announce(1, 1, vtep(7));
  announce(1, 2, vtep(8));
  EXPECT_THAT(sent(2), ElementsAre("+1", "EoR"));
  EXPECT_TRUE(has(2, 2));
  const auto all = paths();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rejected, Rejected::Policy);
  EXPECT_FALSE(all[0].best);
  EXPECT_EQ(rib.explain(all[0]), "next hop 192.0.2.7");
  EXPECT_EQ(rib.explain(all[1]), "");
  EXPECT_EQ(rib.counts(1).received, 2u);
  EXPECT_EQ(rib.counts(1).rejected, 1u);
  EXPECT_EQ(rib.take_changes().size(), 1u);
}

TEST_F(Policies, ARejectedPathLosesToAnyOther) {
  PeerTraits traits = ibgp(1);
  traits.accept = rejecting(7);
  up(1, traits);
  up(2, ibgp(2));
  Attributes good = vtep(7);
  good.local_pref = 500;
  announce(1, 1, good);
  announce(2, 1, vtep(7));
  const auto all = paths();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].peer, 2u);
  EXPECT_TRUE(all[0].best);
  EXPECT_EQ(all[1].rejected, Rejected::Policy);
}

TEST_F(Policies, NewRulesJudgeWhatIsThereWithoutANewSession) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  announce(1, 1, vtep(7));
  announce(1, 2, vtep(8));
  announce(1, 3, vtep(9));
  (void)sent(1);
  (void)sent(2);
  (void)rib.take_changes();
  (void)rib.take_ready();

  rib.set_policies(1, rejecting(7), nullptr);
  EXPECT_THAT(rib.take_ready(), ElementsAre(2u));
  EXPECT_THAT(sent(2), ElementsAre("-1"));
  EXPECT_FALSE(has(2, 1));
  const auto changes = rib.take_changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].attributes, nullptr);

  rib.set_policies(1, flagging(7), nullptr);
  EXPECT_THAT(sent(2), ElementsAre("+1"));
  EXPECT_TRUE(has(2, 1));
  EXPECT_EQ(rib.counts(1).rejected, 0u);
  EXPECT_EQ(rib.counts(1).flagged, 1u);
  EXPECT_EQ(rib.explain(paths()[0]), "next hop 192.0.2.7");

  rib.set_policies(1, nullptr, nullptr);
  EXPECT_THAT(sent(2), IsEmpty());  // flagged or not, it is the same route
  EXPECT_EQ(rib.counts(1).flagged, 0u);
}

TEST_F(Policies, CountsFollowReplacementAndWithdrawal) {
  PeerTraits traits = ibgp(1);
  traits.accept = std::make_shared<NextHops>(7u, 8u);
  up(1, traits);
  announce(1, 1, vtep(7));
  EXPECT_EQ(rib.counts(1).rejected, 1u);
  announce(1, 1, vtep(8));
  EXPECT_EQ(rib.counts(1).rejected, 0u);
  EXPECT_EQ(rib.counts(1).flagged, 1u);
  announce(1, 1, vtep(7));
  EXPECT_EQ(rib.counts(1).flagged, 0u);
  EXPECT_EQ(rib.counts(1).rejected, 1u);
  rib.withdraw(1, make_item(make_nlri(1)).key());
  EXPECT_EQ(rib.counts(1).rejected, 0u);
  EXPECT_EQ(rib.route_count(), 0u);
}

TEST_F(Policies, WhatWasKeptOverARestartIsJudgedByTheRulesOfTheNewSession) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  announce(1, 1, vtep(7));
  (void)sent(2);
  rib.peer_down(1, true);
  PeerTraits traits = ibgp(1);
  traits.accept = rejecting(7);
  up(1, traits);
  EXPECT_THAT(sent(2), ElementsAre("-1"));
  EXPECT_EQ(rib.counts(1).rejected, 1u);
}

TEST_F(Policies, OurOwnRoutesAreNotJudged) {
  rib.set_policies(kLocalPeer, rejecting(7), nullptr);
  announce(kLocalPeer, 1, vtep(7));
  EXPECT_TRUE(paths()[0].best);
}

// --- Send policy ----------------------------------------------------------------------------

TEST_F(Policies, ASendPolicyHoldsForItsPeersOnly) {
  PeerTraits traits = ibgp(2);
  traits.send = rejecting(7);
  up(1, ibgp(1));
  up(2, traits);
  up(3, ibgp(3));
  announce(1, 1, vtep(7));
  announce(1, 2, vtep(8));
  EXPECT_THAT(sent(2), ElementsAre("+1", "EoR"));
  EXPECT_THAT(sent(3), ElementsAre("+1", "+1", "EoR"));
  // What becomes unwanted is withdrawn, what never was sent is not.
  announce(1, 2, vtep(7));
  announce(1, 3, vtep(7));
  EXPECT_THAT(sent(2), ElementsAre("-1"));
  EXPECT_EQ(receivers.at(2).needless, 0u);
  announce(1, 2, vtep(9));
  EXPECT_THAT(sent(2), ElementsAre("+1"));
}

TEST_F(Policies, ANewSendPolicySendsTheDifferenceOnly) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  up(3, ibgp(3));
  for (uint32_t key = 1; key <= 20; ++key) announce(1, key, vtep(key % 4 + 1));
  for (PeerId peer = 1; peer <= 3; ++peer) (void)sent(peer);
  (void)rib.take_ready();
  rib.set_policies(2, nullptr, rejecting(1));
  EXPECT_THAT(rib.take_ready(), ElementsAre(2u));
  EXPECT_THAT(sent(2), ElementsAre("-5"));
  EXPECT_EQ(rib.counts(2).advertised, 15u);
  rib.set_policies(2, nullptr, rejecting(2));
  EXPECT_THAT(sent(2), ElementsAre("+5", "-5"));
  rib.set_policies(2, nullptr, nullptr);
  EXPECT_THAT(sent(2), ElementsAre("+5"));
  EXPECT_EQ(receivers.at(2).held.size(), 20u);
  EXPECT_THAT(sent(3), IsEmpty());
  EXPECT_EQ(rib.counts(2).queued, 0u);
}

TEST_F(Policies, WhatIsQueuedWhenTheSendPolicyChangesIsNotLost) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  for (uint32_t key = 1; key <= 4; ++key) announce(1, key, vtep(1));
  (void)sent(2);
  announce(1, 1, vtep(9));                         // held, changed
  rib.withdraw(1, make_item(make_nlri(2)).key());  // held, gone
  announce(1, 5, vtep(1));                         // not held
  rib.set_policies(2, nullptr, rejecting(77));
  (void)sent(2);
  EXPECT_EQ(receivers.at(2).held.size(), 4u);
  ASSERT_TRUE(has(2, 1));
  EXPECT_EQ(receivers.at(2).find(make_nlri(1))->attributes->next_hop, vtep(9).next_hop);
  EXPECT_FALSE(has(2, 2));
  EXPECT_TRUE(has(2, 5));
  announce(1, 6, vtep(1));  // the place of the withdrawn one may be used again
  EXPECT_THAT(sent(2), ElementsAre("+1"));
}

TEST_F(Policies, AChangeDuringTheFirstWalkStillEndsWithOneEndOfRib) {
  Rib::Options small = options();
  small.batch_routes = 2;
  Rib table(small);
  table.peer_up(1, ibgp(1));
  for (uint32_t key = 1; key <= 9; ++key)
    table.update(1, make_item(make_nlri(key)), share(vtep(key)));
  table.peer_up(2, ibgp(2));
  Receiver receiver(ibgp(2));
  for (int i = 0; i < 3; ++i) receiver.take(*table.pull(2));
  table.set_policies(2, nullptr, rejecting(1));
  receiver.drain(table, 2);
  EXPECT_EQ(std::ranges::count(receiver.events, "EoR"), 1);
  EXPECT_EQ(receiver.events.back(), "EoR");
  EXPECT_EQ(receiver.held.size(), 8u);
  EXPECT_EQ(receiver.find(make_nlri(1)), nullptr);
}

// --- Send filter ----------------------------------------------------------------------------

TEST_F(Policies, NothingIsSentWhileHeldAndThenOnlyWhatIsWanted) {
  up(1, ibgp(1));
  for (uint32_t key = 1; key <= 8; ++key) announce(1, key, vtep(key % 2 + 1));
  up(2, ibgp(2));
  rib.set_send_filter(2, nullptr, true);
  EXPECT_THAT(rib.take_ready(), ElementsAre(1u));
  EXPECT_THAT(sent(2), IsEmpty());
  rib.set_send_filter(2, std::make_shared<OneNextHop>(1u), false);
  EXPECT_THAT(rib.take_ready(), ElementsAre(2u));
  EXPECT_THAT(sent(2), ElementsAre("+4", "EoR"));
}

TEST_F(Policies, ANewFilterSendsTheDifferenceOnly) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  up(3, ibgp(3));
  for (uint32_t key = 1; key <= 9; ++key) announce(1, key, vtep(key % 3 + 1));
  (void)sent(2);
  (void)sent(3);
  rib.set_send_filter(2, std::make_shared<OneNextHop>(1u), false);
  EXPECT_THAT(sent(2), ElementsAre("-6"));
  rib.set_send_filter(2, std::make_shared<OneNextHop>(2u), false);
  EXPECT_THAT(sent(2), ElementsAre("+3", "-3"));
  announce(1, 20, vtep(1));
  announce(1, 21, vtep(2));
  announce(1, 4, vtep(3));  // 4 % 3 + 1 == 2: it had this one
  EXPECT_THAT(sent(2), ElementsAre("+1", "-1"));
  rib.set_send_filter(2, nullptr, false);
  EXPECT_THAT(sent(2), ElementsAre("+4", "+4"));
  EXPECT_EQ(receivers.at(2).held.size(), 11u);
  EXPECT_EQ(receivers.at(2).needless, 0u);
  (void)sent(3);
  EXPECT_EQ(receivers.at(3).held.size(), 11u);
}

TEST_F(Policies, AFilterIsAskedForMessagesNotForRoutes) {
  up(1, ibgp(1));
  up(2, ibgp(2));
  const auto filter = std::make_shared<OneNextHop>(1u);
  rib.set_send_filter(2, filter, false);
  for (uint32_t key = 1; key <= 100; ++key) announce(1, key, vtep(1));
  EXPECT_THAT(sent(2), ElementsAre("+100", "EoR"));
  EXPECT_LT(filter->asked, 10);
}

// --- Long-lived stale -----------------------------------------------------------------------

struct LongLived : Policies {
  LongLived() {
    PeerTraits capable = ibgp(2);
    capable.long_lived = true;
    up(1, ibgp(1));
    up(2, capable);
    up(3, ibgp(3));
  }
  void settle() {
    (void)sent(2);
    (void)sent(3);
  }
};

TEST_F(LongLived, RoutesGoToCapablePeersOnlyMarked) {
  announce(1, 1, vtep(1));
  announce(1, 2, with_community(vtep(1), kNoLlgr));
  settle();
  rib.peer_down(1, true);
  rib.long_lived_stale(1);
  (void)sent(2);
  ASSERT_TRUE(has(2, 1));
  EXPECT_THAT(receivers.at(2).find(make_nlri(1))->attributes->communities,
              ElementsAre(kLlgrStaleCommunity));
  EXPECT_FALSE(has(2, 2));  // NO_LLGR
  EXPECT_THAT(sent(3), ElementsAre("-2"));
  const auto all = paths();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].stale && all[0].long_lived && all[0].best);
  EXPECT_EQ(rib.counts(1).stale, 1u);
  rib.long_lived_stale(1);  // once more: nothing
  EXPECT_THAT(sent(2), IsEmpty());
}

// RFC 9494 section 4.6: to internal neighbors only, as the last choice and no further.
TEST_F(LongLived, PartialDeployment) {
  PeerTraits partial = ibgp(4);
  partial.long_lived_partial = true;
  up(4, partial);
  PeerTraits capable = ibgp(5);
  capable.long_lived = capable.long_lived_partial = true;
  up(5, capable);
  PeerTraits external = ebgp(6, NeighborRole::Peer);
  external.long_lived_partial = true;
  up(6, external);
  Attributes kept = with_community(vtep(1), 0x00640001);
  kept.local_pref = 300;
  announce(1, 1, kept);
  announce(1, 2, with_community(vtep(1), kNoLlgr));
  for (const PeerId peer : {2u, 3u, 4u, 5u, 6u}) (void)sent(peer);
  rib.peer_down(1, true);
  rib.long_lived_stale(1);
  EXPECT_THAT(sent(3), ElementsAre("-2"));  // both
  EXPECT_THAT(sent(4), testing::UnorderedElementsAre("+1", "-1"));
  const auto& lowered = *receivers.at(4).find(make_nlri(1))->attributes;
  EXPECT_FALSE(has(4, 2));
  EXPECT_THAT(lowered.communities,
              testing::UnorderedElementsAre(0x00640001u, kLlgrStaleCommunity, 0xffffff01u));
  EXPECT_EQ(lowered.local_pref, 0u);
  (void)sent(5);
  const auto& marked = *receivers.at(5).find(make_nlri(1))->attributes;
  EXPECT_THAT(marked.communities, testing::UnorderedElementsAre(0x00640001u, kLlgrStaleCommunity));
  EXPECT_EQ(marked.local_pref, 300u);
  EXPECT_THAT(sent(6), ElementsAre("-2"));
  // What is fresh again is as it was.
  up(1, ibgp(1));
  announce(1, 1, kept);
  EXPECT_THAT(sent(4), ElementsAre("+1"));
  EXPECT_EQ(receivers.at(4).find(make_nlri(1))->attributes->local_pref, 300u);
}

TEST_F(LongLived, IsTheLastChoice) {
  announce(kLocalPeer, 2, vtep(9));
  Attributes preferred = vtep(1);
  preferred.local_pref = 500;
  announce(1, 1, preferred);
  announce(1, 2, preferred);
  announce(3, 1, vtep(3));
  EXPECT_EQ(paths()[2].peer, 1u);
  rib.peer_down(1, true);
  EXPECT_EQ(paths()[2].peer, 1u);
  rib.long_lived_stale(1);
  const auto all = paths();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].peer, kLocalPeer);
  EXPECT_EQ(all[1].reason, BestPathReason::LongLivedStale);
  EXPECT_EQ(all[2].peer, 3u);
  EXPECT_EQ(all[3].reason, BestPathReason::LongLivedStale);
}

TEST_F(LongLived, AReceivedMarkCountsToo) {
  Attributes marked = with_community(vtep(1), kLlgrStaleCommunity);
  marked.local_pref = 500;
  announce(1, 1, marked);
  announce(2, 1, vtep(2));
  const auto all = paths();
  EXPECT_EQ(all[0].peer, 2u);
  EXPECT_EQ(all[1].reason, BestPathReason::LongLivedStale);
  EXPECT_FALSE(all[1].long_lived);
}

TEST_F(LongLived, EndsWithAnAnnouncementOrAFlush) {
  announce(1, 1, vtep(1));
  announce(1, 2, vtep(1));
  settle();
  rib.peer_down(1, true);
  rib.long_lived_stale(1);
  settle();
  // Losing the session once more does not end it, coming back neither.
  up(1, ibgp(1));
  rib.peer_down(1, true);
  up(1, ibgp(1));
  EXPECT_EQ(rib.counts(1).stale, 2u);
  announce(1, 1, vtep(1));
  EXPECT_THAT(sent(3), ElementsAre("+1"));
  EXPECT_EQ(rib.counts(1).stale, 1u);
  rib.end_of_rib(1);
  (void)sent(2);
  EXPECT_EQ(receivers.at(2).held.size(), 1u);
  EXPECT_THAT(receivers.at(2).find(make_nlri(1))->attributes->communities, IsEmpty());
}
