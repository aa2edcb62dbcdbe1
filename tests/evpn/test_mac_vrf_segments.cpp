// SPDX-License-Identifier: GPL-2.0-or-later
// MACs behind other PEs' multihomed Ethernet segments: RFC 7432 sections 8.2, 8.4 and 9.2.2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mac_vrf_harness.h"

namespace {

using namespace harness;
using testing::ElementsAre;
using testing::IsEmpty;

Remote on(const net::Esi& segment, Remote r) {
  r.route.esi = segment;
  return r;
}

// Section 9.2.2, in both orders; section 8.2.
TEST(MacVrfSegments, AMacWaitsForTheRouteOfItsSegment) {
  for (const bool route_first : {true, false}) {
    Pe us;
    const Remote station = on(esi(1), Remote(2, 1, "192.0.2.1"));
    if (route_first) {
      EXPECT_THAT(us.announce(station), IsEmpty());
      EXPECT_TRUE(us.view(1).unresolved);
      EXPECT_EQ(us.view(1).esi, esi(1));
      us.announce(per_es(2, esi(1)));
    } else {
      EXPECT_THAT(us.announce(per_es(2, esi(1))), IsEmpty());
      us.announce(station);
    }
    EXPECT_EQ(us.place(1), "10.0.0.2");
    EXPECT_FALSE(us.view(1).unresolved);
    EXPECT_EQ(us.view(1).esi, esi(1));
    EXPECT_EQ(us.model.bindings.size(), 1u);
  }
}

// Section 8.2: one withdrawal for all MACs of the segment, and only for those.
TEST(MacVrfSegments, MassWithdraw) {
  Pe us;
  us.announce(per_es(2, esi(1)));
  us.announce(per_es(2, esi(2)));
  us.announce(on(esi(1), Remote(2, 1)));
  us.announce(on(esi(1), Remote(2, 2, "192.0.2.2")));
  us.announce(on(esi(2), Remote(2, 3)));
  us.announce(Remote(2, 4));
  EXPECT_THAT(us.withdraw(per_es(2, esi(1))),
              ElementsAre("M1: 10.0.0.2 > nowhere", "M2: 10.0.0.2 > nowhere", "192.0.2.2 unbound"));
  EXPECT_EQ(us.place(3), "10.0.0.2");
  EXPECT_EQ(us.place(4), "10.0.0.2");
  EXPECT_TRUE(us.view(1).unresolved);
  EXPECT_THAT(us.announce(per_es(2, esi(1))),
              ElementsAre("M1: nowhere > 10.0.0.2", "M2: nowhere > 10.0.0.2",
                          "192.0.2.2 = M2 RO @10.0.0.2"));
}

// Section 8.2: "the PE updates its next-hop adjacencies" when another PE has the segment, and, as
// in section 8.4, the domain on it.
TEST(MacVrfSegments, AnotherPeOfTheSegmentTakesOver) {
  Pe us;
  us.announce(per_es(2, esi(1)));
  us.announce(per_es(3, esi(1)));
  us.announce(on(esi(1), Remote(2, 1, "192.0.2.1")));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "nowhere") << "not known to have our domain";
  us.announce(per_evi(3, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.3");
  EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).vtep, pe(3));
  us.announce(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).vtep, pe(2));
}

// Section 8.4.1: routes per EVI alone are not used.
TEST(MacVrfSegments, RoutesPerEviAloneDoNotCount) {
  Pe us;
  us.announce(per_evi(2, esi(1)));
  EXPECT_THAT(us.announce(on(esi(1), Remote(2, 1))), IsEmpty());
}

// Section 8.2.1: too many targets for one route are split over several, with an RD each.
TEST(MacVrfSegments, SeveralRoutesPerSegment) {
  Pe us;
  us.announce(per_es(2, esi(1), 0));
  us.announce(per_es(2, esi(1), 1));
  us.announce(on(esi(1), Remote(2, 1)));
  EXPECT_THAT(us.withdraw(per_es(2, esi(1), 0)), IsEmpty());
  EXPECT_THAT(us.withdraw(per_es(2, esi(1), 0)), IsEmpty()) << "twice";
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(per_es(2, esi(1), 1));
  EXPECT_EQ(us.place(1), "nowhere");
}

TEST(MacVrfSegments, WhatIsNotImported) {
  struct Row {
    const char* name;
    std::function<void(AutoDiscovery&)> bend;
    bool imported;
  };
  const auto communities = [](std::vector<bgp::ExtendedCommunity> c) {
    return [c](AutoDiscovery& r) { r.attributes.extended_communities = c; };
  };
  const auto target = evpn::make_route_target(65000, 100);
  const std::vector<Row> table{
      {"plain", [](AutoDiscovery&) {}, true},
      {"as FRRouting sends it",
       communities({evpn::make_encapsulation(8), {0x06, 0x01, 0, 0, 0, 0, 0, 0}, target}), true},
      {"no encapsulation", communities({target}), true},
      {"MPLS", communities({target, evpn::make_encapsulation(10)}), false},
      {"targets of other domains", communities({evpn::make_route_target(65000, 101)}), false},
      {"one of several targets", communities({evpn::make_route_target(65000, 101), target}), true},
      {"another PE's", [](AutoDiscovery& r) { r.attributes.next_hop = pe(3); }, false},
      {"our own next hop", [](AutoDiscovery& r) { r.attributes.next_hop = pe(5); }, false},
      {"another segment", [](AutoDiscovery& r) { r.route.esi = esi(2); }, false},
      {"tag of a VLAN", [](AutoDiscovery& r) { r.route.ethernet_tag = 10; }, false},
      {"a label", [](AutoDiscovery& r) { r.route.label = 7; }, true},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    Pe us;
    us.announce(on(esi(1), Remote(2, 1)));
    AutoDiscovery bent = per_es(2, esi(1));
    row.bend(bent);
    us.announce(bent);
    EXPECT_EQ(us.place(1) != "nowhere", row.imported);
    // What stops being imported is taken as withdrawn, unless it is another key altogether.
    Pe again;
    again.announce(on(esi(1), Remote(2, 1)));
    again.announce(per_es(2, esi(1)));
    again.announce(bent);
    const bool same_key = bent.route.esi == esi(1) && bent.route.ethernet_tag != 10;
    EXPECT_EQ(again.place(1) != "nowhere", row.imported || !same_key);
  }
}

// The ESI is not in the key of a MAC/IP route: it may come and go.
TEST(MacVrfSegments, TheEsiOfAMacChanges) {
  Pe us;
  us.announce(Remote(2, 1));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.announce(on(esi(1), Remote(2, 1)));
  EXPECT_EQ(us.place(1), "nowhere");
  us.announce(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.announce(on(esi(2), Remote(2, 1)));
  EXPECT_EQ(us.place(1), "nowhere");
  us.announce(Remote(2, 1));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(on(esi(1), Remote(2, 1)));
  EXPECT_EQ(us.place(1), "nowhere");
}

// Section 15: a route that waits takes no MAC from us, but its sequence number is known.
TEST(MacVrfSegments, MobilityOfWhatWaits) {
  Pe us;
  us.learn(1, 10);
  EXPECT_THAT(us.announce(on(esi(1), Remote(2, 1).seq(3))), IsEmpty());
  EXPECT_EQ(us.place(1), "port10");
  us.announce(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.2");

  us.withdraw(per_es(2, esi(1)));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: nowhere > port10", "+M1 MM:4"));
  EXPECT_THAT(us.announce(per_es(2, esi(1))), IsEmpty());
  EXPECT_EQ(us.place(1), "port10");
}

TEST(MacVrfSegments, OneThatWaitsDoesNotHideOneThatStands) {
  Pe us;
  us.announce(on(esi(1), Remote(2, 1).seq(7)));
  us.announce(Remote(3, 1).seq(1));
  EXPECT_EQ(us.place(1), "10.0.0.3");
  EXPECT_FALSE(us.view(1).unresolved);
  EXPECT_TRUE(us.view(1).esi.is_zero());
  us.announce(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(per_es(2, esi(1)));
  EXPECT_EQ(us.place(1), "10.0.0.3");
}

}  // namespace
