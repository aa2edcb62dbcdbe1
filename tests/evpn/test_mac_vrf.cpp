// SPDX-License-Identifier: GPL-2.0-or-later
// MacVrf: the one place of a MAC, mobility, duplicates, what goes out, and the flood list.
#include "mac_vrf_harness.h"

namespace {

using namespace harness;
using testing::ElementsAre;
using testing::IsEmpty;

// --- what goes out

TEST(MacVrf, StartOriginatesOnlyTheMulticastRoute) {
  Pe us;
  const auto actions = us.vrf.start(us.now);
  ASSERT_EQ(actions.size(), 1u);
  const auto& out = std::get<evpn::Originate>(actions[0]);
  EXPECT_EQ(out.route, evpn::Route(evpn::InclusiveMulticast{rd_of(pe(5)), 0, pe(5)}));
  bgp::Attributes expected;
  expected.next_hop = pe(5);
  expected.extended_communities = {evpn::make_route_target(65000, 100),
                                   evpn::make_encapsulation(8)};
  expected.pmsi_tunnel = net::Bytes{0, 6, 0, 0, 100, 10, 0, 0, 5};
  EXPECT_EQ(*out.attributes, expected);
  EXPECT_THAT(us.vrf.start(us.now), IsEmpty());
  EXPECT_EQ(us.vrf.rd(), rd_of(pe(5)));
}

TEST(MacVrf, StartWithIpv6VtepAndConfiguredTargets) {
  auto s = settings();
  s.vtep = ip("2001:db8::5");
  s.vni = net::Vni(16777214);
  s.rd = net::RouteDistinguisher::parse("65000:7");
  s.export_targets = {evpn::make_route_target(65000, 7), evpn::make_route_target(65000, 8)};
  Pe us(s);
  const auto actions = us.vrf.start(us.now);
  const auto& out = std::get<evpn::Originate>(actions.at(0));
  EXPECT_EQ(evpn::to_string(out.route), "[3]:[0]:[128]:[2001:db8::5]");
  EXPECT_EQ(evpn::route_distinguisher(out.route), s.rd);
  ASSERT_EQ(out.attributes->pmsi_tunnel->size(), 21u);
  EXPECT_EQ(evpn::decode_pmsi(*out.attributes->pmsi_tunnel),
            (evpn::PmsiTunnel{0, 6, 16777214, s.vtep}));
  EXPECT_THAT(out.attributes->extended_communities,
              ElementsAre(evpn::make_route_target(65000, 7), evpn::make_route_target(65000, 8),
                          evpn::make_encapsulation(8)));
}

TEST(MacVrf, ALocalMacIsPlacedThenAdvertised) {
  Pe us;
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: nowhere > port10", "+M1"));
  bgp::Attributes expected;
  expected.next_hop = pe(5);
  expected.extended_communities = {evpn::make_route_target(65000, 100),
                                   evpn::make_encapsulation(8)};
  EXPECT_EQ(*us.sent(us.ours(1)), expected);
  EXPECT_EQ(std::get<evpn::MacIp>(us.model.out.begin()->second.first), us.ours(1));
  EXPECT_THAT(us.learn(1, 10), IsEmpty());
  EXPECT_THAT(us.age(1, 11), IsEmpty()) << "it is not there";
  EXPECT_THAT(us.age(1, 10), ElementsAre("M1: port10 > nowhere", "-M1"));
  EXPECT_THAT(us.age(1, 10), IsEmpty());
}

TEST(MacVrf, AMoveBetweenOurPortsSendsNothing) {
  Pe us;
  us.learn(1, 10);
  EXPECT_THAT(us.learn(1, 11), ElementsAre("M1: port10 > port11"));
  EXPECT_THAT(us.age(1, 10), IsEmpty()) << "meanwhile at another port";
  EXPECT_THAT(us.down(10), IsEmpty());
  EXPECT_THAT(us.down(11), ElementsAre("M1: port11 > nowhere", "-M1"));
}

TEST(MacVrf, AProvisionedMacIsSticky) {
  Pe us;
  EXPECT_THAT(us.learn(1, 10, true), ElementsAre("M1: nowhere > port10!", "+M1 MM:0,sticky"));
  EXPECT_THAT(us.learn(1, 10, true), IsEmpty());
  EXPECT_THAT(us.learn(1, 10, false), IsEmpty()) << "stays provisioned";
}

TEST(MacVrf, ALearnedMacThatIsProvisionedLater) {
  Pe us;
  us.announce(Remote(2, 1).seq(3));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: 10.0.0.2 > port10", "+M1 MM:4"));
  EXPECT_THAT(us.learn(1, 10, true), ElementsAre("ALARM sticky elsewhere M1 port10! / 10.0.0.2",
                                                 "M1: port10 > port10!", "+M1 MM:0,sticky"));
}

TEST(MacVrf, GroupAndZeroMacsAreNeverPlaced) {
  Pe us;
  for (const auto& bad :
       {net::kBroadcastMac, net::MacAddress{}, net::MacAddress({0x01, 0, 0x5e, 0, 0, 1})}) {
    EXPECT_THAT(us.vrf.local_mac(bad, port(1), true, us.now), IsEmpty());
    Remote r(2, 1);
    r.route.mac = bad;
    EXPECT_THAT(us.announce(r), IsEmpty());
  }
}

TEST(MacVrf, EqualAttributesAreOneObject) {
  Pe us;
  us.learn(1, 10);
  us.learn(2, 11);
  us.learn(3, 10, true);
  us.learn(4, 10, true);
  us.bind("192.0.2.1", 1);
  EXPECT_EQ(us.sent(us.ours(1)), us.sent(us.ours(2)));
  EXPECT_EQ(us.sent(us.ours(1)), us.sent(us.ours(1, "192.0.2.1")));
  EXPECT_EQ(us.sent(us.ours(3)), us.sent(us.ours(4)));
  EXPECT_NE(us.sent(us.ours(1)), us.sent(us.ours(3)));
}

TEST(MacVrf, PortDownTakesAllBehindItAndOnlyThat) {
  Pe us;
  us.learn(1, 10);
  us.learn(2, 10, true);
  us.learn(3, 11);
  us.bind("192.0.2.1", 1);
  EXPECT_THAT(us.down(10), ElementsAre("M1: port10 > nowhere", "-M1", "-M1/192.0.2.1",
                                       "M2: port10! > nowhere", "-M2"));
  EXPECT_EQ(us.place(3), "port11");
}

// --- one place among remote routes

TEST(MacVrf, RemoteMacIsPlacedMovedAndRemoved) {
  Pe us;
  EXPECT_THAT(us.announce(Remote(2, 1)), ElementsAre("M1: nowhere > 10.0.0.2"));
  EXPECT_THAT(us.announce(Remote(2, 1)), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 1).seq(1)), ElementsAre("M1: 10.0.0.2 > 10.0.0.3"));
  EXPECT_THAT(us.withdraw(Remote(2, 1)), IsEmpty());
  EXPECT_THAT(us.withdraw(Remote(3, 1)), ElementsAre("M1: 10.0.0.3 > nowhere"));
  EXPECT_THAT(us.withdraw(Remote(3, 1)), IsEmpty());
}

struct Contest {
  const char* name;
  uint32_t seq2, seq3;
  bool sticky2, sticky3;
  const char* winner;
};

// Both orders of arrival give the same place; when the winner goes, the other one takes over.
TEST(MacVrf, RemoteContests) {
  const std::vector<Contest> table{
      {"equal: lowest VTEP", 4, 4, false, false, "10.0.0.2"},
      {"higher sequence", 4, 5, false, false, "10.0.0.3"},
      {"no community is 0", 0, 1, false, false, "10.0.0.3"},
      {"wrap", 0xffffffff, 0, false, false, "10.0.0.3"},
      {"wrap, far", 0xfffffff0, 0x0000000f, false, false, "10.0.0.3"},
      {"half the circle is too far", 0, 0x80000001, false, false, "10.0.0.2"},
      {"sticky beats sequence", 0, 9, true, false, "10.0.0.2!"},
      {"sticky beats address", 0, 0, false, true, "10.0.0.3!"},
      {"both sticky: lowest VTEP", 0, 0, true, true, "10.0.0.2!"},
  };
  for (const auto& row : table) {
    for (const bool second_first : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (second_first ? ", reversed" : ""));
      Pe us;
      Remote two(2, 1), three(3, 1);
      if (row.seq2 != 0 || row.sticky2) two.seq(row.seq2, row.sticky2);
      if (row.seq3 != 0 || row.sticky3) three.seq(row.seq3, row.sticky3);
      us.announce(second_first ? three : two);
      us.announce(second_first ? two : three);
      EXPECT_EQ(us.place(1), row.winner);
      const bool two_won = us.place(1).starts_with("10.0.0.2");
      us.withdraw(two_won ? two : three);
      EXPECT_TRUE(us.place(1).starts_with(two_won ? "10.0.0.3" : "10.0.0.2"));
    }
  }
}

TEST(MacVrf, LowestVtepIsNumericNotText) {
  Pe us;
  us.announce(Remote(10, 1));
  us.announce(Remote(9, 1));
  EXPECT_EQ(us.place(1), "10.0.0.9");
}

// FRR 10468: the route that is there counts, not a remembered sequence number.
TEST(MacVrf, AFreshLowerSequenceIsAcceptedOnceTheHigherIsGone) {
  Pe us;
  us.announce(Remote(2, 1).seq(7));
  EXPECT_THAT(us.announce(Remote(3, 1)), IsEmpty());
  EXPECT_EQ(us.place(1), "10.0.0.2");
  EXPECT_THAT(us.withdraw(Remote(2, 1)), ElementsAre("M1: 10.0.0.2 > 10.0.0.3"));
  us.withdraw(Remote(3, 1));
  us.announce(Remote(2, 1).seq(3));  // FRR 9327: the owner restarted
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.announce(Remote(2, 1));
  EXPECT_EQ(us.view(1).sequence, 0u);
}

// bird-users 2026-03: two routes of one segment, fall back at once.
TEST(MacVrf, SameSegmentTwoPes) {
  Pe us;
  Remote two(2, 1), three(3, 1);
  two.route.esi = three.route.esi = esi(9);
  us.announce(per_es(2, esi(9)));
  us.announce(per_es(3, esi(9)));
  us.announce(two);
  us.announce(three);
  EXPECT_THAT(us.withdraw(two), ElementsAre("M1: 10.0.0.2 > 10.0.0.3"));
}

// RFC 7432 sections 6.1 and 6.3: the tag is part of the key of routes.
TEST(MacVrf, EthernetTags) {
  const auto tagged = [](uint32_t tag) {
    Remote r(2, 1, "192.0.2.1");
    r.route.ethernet_tag = tag;
    return r;
  };
  struct Row {
    std::optional<uint32_t> ours;
    bool zero, seven, eight;
    uint32_t sent;
  };
  for (const Row& row : {Row{0, true, false, false, 0}, Row{7, false, true, false, 7},
                         Row{std::nullopt, true, true, true, 0}}) {
    auto s = settings();
    s.ethernet_tag = row.ours;
    for (const auto& [tag, taken] : {std::pair(0u, row.zero), std::pair(7u, row.seven),
                                     std::pair(8u, row.eight), std::pair(0xffffffffu, false)}) {
      SCOPED_TRACE(tag);
      Pe us(s);
      us.announce(tagged(tag));
      EXPECT_EQ(us.place(1) != "nowhere", taken);
      EXPECT_EQ(us.model.bindings.size(), taken ? 1u : 0u);
      us.withdraw(tagged(tag));
      EXPECT_EQ(us.place(1), "nowhere");
      evpn::InclusiveMulticast imet{rd_of(pe(2)), tag, pe(2)};
      auto attributes = Remote(2, 1).attributes;
      attributes.pmsi_tunnel = evpn::encode_pmsi({0, 6, 100, pe(2)});
      us.take(us.vrf.remote(imet, std::make_shared<bgp::Attributes>(attributes), us.now));
      EXPECT_EQ(us.vrf.flood_list().size(), taken ? 1u : 0u);
    }
    Pe us(s);
    us.learn(3, 10);
    evpn::MacIp ours = us.ours(3);
    ours.ethernet_tag = row.sent;
    EXPECT_NE(us.sent(ours), nullptr);
    const auto started = us.vrf.start(us.now);
    const auto& imet =
        std::get<evpn::InclusiveMulticast>(std::get<evpn::Originate>(started.at(0)).route);
    EXPECT_EQ(imet.ethernet_tag, row.sent);
  }
  // Two routes of one PE that differ in nothing else: either keeps the MAC and its binding.
  auto s = settings();
  s.ethernet_tag.reset();
  Pe us(s);
  us.announce(tagged(7));
  us.announce(tagged(8));
  us.withdraw(tagged(8));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  EXPECT_EQ(us.model.bindings.size(), 1u);
  us.withdraw(tagged(7));
  EXPECT_EQ(us.place(1), "nowhere");
  EXPECT_TRUE(us.model.bindings.empty());
}

// A23: either route keeps the MAC, in any order.
TEST(MacVrf, MacOnlyAndMacIpRoutesBothKeepTheMac) {
  const std::vector<Remote> routes{Remote(2, 1), Remote(2, 1, "192.0.2.1"),
                                   Remote(2, 1, "2001:db8::1")};
  std::vector<std::size_t> order{0, 1, 2};
  do {
    std::vector<std::size_t> gone{0, 1, 2};
    do {
      Pe us;
      for (const auto i : order) us.announce(routes[i]);
      EXPECT_EQ(us.view(1).ips, (std::vector{ip("192.0.2.1"), ip("2001:db8::1")}));
      for (std::size_t n = 0; n < gone.size(); ++n) {
        us.withdraw(routes[gone[n]]);
        EXPECT_EQ(us.place(1), n + 1 < gone.size() ? "10.0.0.2" : "nowhere");
      }
      EXPECT_TRUE(us.model.bindings.empty());
    } while (std::ranges::next_permutation(gone).found);
  } while (std::ranges::next_permutation(order).found);
}

TEST(MacVrf, TheHighestSequenceOfAPesRoutesCounts) {
  Pe us;
  us.announce(Remote(2, 1).seq(2));
  us.announce(Remote(2, 1, "192.0.2.1").seq(4));  // half way through a move
  us.announce(Remote(3, 1).seq(3));
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.withdraw(Remote(2, 1, "192.0.2.1"));
  EXPECT_EQ(us.place(1), "10.0.0.3");
}

TEST(MacVrf, WhatIsNotImported) {
  struct Row {
    const char* name;
    std::function<void(Remote&)> bend;
    bool imported;
  };
  const auto replace_communities = [](std::vector<bgp::ExtendedCommunity> c) {
    return [c](Remote& r) { r.attributes.extended_communities = c; };
  };
  const auto target = evpn::make_route_target(65000, 100);
  const std::vector<Row> table{
      {"plain", [](Remote&) {}, true},
      {"our own next hop", [](Remote& r) { r.attributes.next_hop = pe(5); }, false},
      {"no next hop", [](Remote& r) { r.attributes.next_hop = {}; }, false},
      {"Ethernet tag", [](Remote& r) { r.route.ethernet_tag = 10; }, false},
      {"other target", replace_communities({evpn::make_route_target(65000, 101)}), false},
      {"no target", replace_communities({evpn::make_encapsulation(8)}), false},
      {"no encapsulation", replace_communities({target}), true},
      {"MPLS", replace_communities({target, evpn::make_encapsulation(10)}), false},
      {"VXLAN and NVGRE",
       replace_communities({target, evpn::make_encapsulation(9), evpn::make_encapsulation(8)}),
       true},
      {"RFC 8365 target", replace_communities({evpn::make_route_target(65001, 0x10000064)}), true},
      {"MAX-ESI",
       [](Remote& r) {
         std::array<uint8_t, 10> ones;
         ones.fill(0xff);
         r.route.esi = net::Esi::from_bytes(ones);
       },
       true},
      {"label2", [](Remote& r) { r.route.label2 = 4000; }, true},
      {"label 0", [](Remote& r) { r.route.label1 = 0; }, true},
      {"another domain's VNI", [](Remote& r) { r.route.label1 = 101; }, false},
      // GoBGP 2574: unknown EVPN communities are no error.
      {"EC 06/04 and 06/7f",
       replace_communities({target, {0x06, 0x04, 1}, {0x06, 0x7f, 2}, {0x80, 0x11}}), true},
      {"VTEP of the other family", [](Remote& r) { r.attributes.next_hop = ip("2001:db8::2"); },
       false},
      {"loopback", [](Remote& r) { r.attributes.next_hop = ip("127.0.0.1"); }, false},
      {"broadcast", [](Remote& r) { r.attributes.next_hop = ip("255.255.255.255"); }, false},
      {"0/8", [](Remote& r) { r.attributes.next_hop = ip("0.0.0.1"); }, false},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    Pe us;
    Remote r(2, 1);
    row.bend(r);
    us.announce(r);
    EXPECT_EQ(us.place(1) != "nowhere", row.imported);
    // What stops being imported is taken as withdrawn, unless it is another key altogether.
    Pe again;
    again.announce(Remote(2, 1));
    again.announce(r);
    EXPECT_EQ(again.place(1) != "nowhere", row.imported || r.route.ethernet_tag != 0);
  }
}

// Two PEs say that a MAC is provisioned at theirs: a sequence number does not decide.
TEST(MacVrf, StickyClaimsAreNotMovedBySequence) {
  Pe us;
  us.announce(Remote(2, 1).seq(0, true));
  EXPECT_THAT(us.announce(Remote(9, 1).seq(5, true)),
              ElementsAre("ALARM sticky elsewhere M1 10.0.0.2! / 10.0.0.9!"));
  EXPECT_EQ(us.place(1), "10.0.0.2!");
}

TEST(MacVrf, OtherRouteTypesDoNothing) {
  Pe us;
  const auto attributes = std::make_shared<bgp::Attributes>(Remote(2, 1).attributes);
  const auto rd = rd_of(pe(2));
  for (const evpn::Route& route :
       {evpn::Route(evpn::EthernetAutoDiscovery{rd, {}, 0, 100}),
        evpn::Route(evpn::EthernetSegment{rd, {}, pe(2)}),
        evpn::Route(evpn::IpPrefixRoute{rd, {}, 0, {ip("10.0.0.0"), 8}, {}, 100}),
        evpn::Route(evpn::OpaqueRoute{9, {1, 2, 3}})})
    EXPECT_THAT(us.take(us.vrf.remote(route, attributes, us.now)), IsEmpty());
}

// --- local against remote

// FRR 13973: the station roams to us; exactly one place, and the late withdraw changes nothing.
TEST(MacVrf, AMacThatComesToUs) {
  Pe us;
  us.announce(Remote(2, 1));
  us.announce(Remote(2, 1, "192.0.2.1"));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: 10.0.0.2 > port10", "+M1 MM:1"));
  us.withdraw(Remote(2, 1));
  EXPECT_THAT(us.withdraw(Remote(2, 1, "192.0.2.1")), ElementsAre("192.0.2.1 unbound"));
  EXPECT_EQ(us.place(1), "port10");
  EXPECT_THAT(us.bind("192.0.2.1", 1), ElementsAre("+M1/192.0.2.1 MM:1"));
}

TEST(MacVrf, OurSequenceIsOneMoreAndWraps) {
  Pe us;
  us.announce(Remote(2, 1).seq(0xffffffff));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: 10.0.0.2 > port10", "+M1 MM:0"));
  EXPECT_EQ(us.view(1).sequence, 0u);
  EXPECT_THAT(us.announce(Remote(3, 1).seq(1)), ElementsAre("M1: port10 > 10.0.0.3", "-M1"));
}

TEST(MacVrf, AMacThatLeavesUs) {
  Pe us;
  us.learn(1, 10);
  us.bind("192.0.2.1", 1);
  EXPECT_THAT(us.announce(Remote(9, 1).seq(1)),
              ElementsAre("M1: port10 > 10.0.0.9", "-M1", "-M1/192.0.2.1"));
  EXPECT_THAT(us.age(1, 10), IsEmpty());
  EXPECT_THAT(us.down(10), IsEmpty());
  EXPECT_EQ(us.place(1), "10.0.0.9");
  // It comes back: higher again, and the remembered binding with it.
  EXPECT_THAT(us.learn(1, 10),
              ElementsAre("M1: 10.0.0.9 > port10", "+M1 MM:2", "+M1/192.0.2.1 MM:2"));
}

TEST(MacVrf, EqualSequenceTheLowestVtepKeepsIt) {  // ours is 10.0.0.5
  Pe us;
  us.learn(1, 10);
  EXPECT_THAT(us.announce(Remote(9, 1)), IsEmpty());
  EXPECT_EQ(us.place(1), "port10");
  EXPECT_THAT(us.announce(Remote(2, 1)), ElementsAre("M1: port10 > 10.0.0.2", "-M1"));
}

TEST(MacVrf, ALowerRemoteSequenceChangesNothing) {
  Pe us;
  us.announce(Remote(2, 1).seq(6));
  us.learn(1, 10);
  EXPECT_THAT(us.announce(Remote(2, 1).seq(5)), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 1).seq(6)), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 1).seq(8)), ElementsAre("M1: port10 > 10.0.0.3", "-M1"));
}

TEST(MacVrf, WhenOursGoesARemainingRouteTakesOverAtOnce) {
  for (const bool by_port : {false, true}) {
    Pe us;
    us.learn(1, 10);
    us.bind("192.0.2.1", 1);
    us.announce(Remote(9, 1));
    const auto expected = ElementsAre("M1: port10 > 10.0.0.9", "-M1", "-M1/192.0.2.1");
    EXPECT_THAT(by_port ? us.down(10) : us.age(1, 10), expected);
  }
}

TEST(MacVrf, AReturnAfterAllIsGoneStartsAfresh) {
  Pe us;
  us.announce(Remote(2, 1).seq(7));
  us.withdraw(Remote(2, 1));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: nowhere > port10", "+M1"));
}

// --- provisioned MACs

TEST(MacVrf, AProvisionedMacHereIsNeverMoved) {
  Pe us;
  us.learn(1, 10, true);
  EXPECT_THAT(us.announce(Remote(2, 1).seq(1000)),
              ElementsAre("ALARM sticky elsewhere M1 port10! / 10.0.0.2"));
  EXPECT_THAT(us.announce(Remote(2, 1).seq(1001)), IsEmpty()) << "one alarm for a place";
  EXPECT_THAT(us.announce(Remote(3, 1).seq(0, true)),
              ElementsAre("ALARM sticky elsewhere M1 port10! / 10.0.0.3!"));
  EXPECT_THAT(us.learn(1, 11), ElementsAre("ALARM sticky elsewhere M1 port10! / port11"));
  EXPECT_THAT(us.learn(1, 11), IsEmpty());
  us.age(1, 11);
  EXPECT_EQ(us.place(1), "port10!");
  EXPECT_THAT(us.learn(1, 11), ElementsAre("ALARM sticky elsewhere M1 port10! / port11"))
      << "left and came again";
  us.now += 180s;
  EXPECT_THAT(us.learn(1, 11), ElementsAre("ALARM sticky elsewhere M1 port10! / port11",
                                           "ALARM sticky elsewhere M1 port10! / 10.0.0.2",
                                           "ALARM sticky elsewhere M1 port10! / 10.0.0.3!"))
      << "still there a window later";
  EXPECT_EQ(us.view(1).moves, 0u);
}

TEST(MacVrf, AProvisionedMacElsewhereIsNotAdvertisedByUs) {  // FRR 13661
  Pe us;
  us.announce(Remote(2, 1).seq(0, true));
  EXPECT_THAT(us.learn(1, 10), ElementsAre("ALARM sticky elsewhere M1 10.0.0.2! / port10"));
  EXPECT_EQ(us.place(1), "10.0.0.2!");
  EXPECT_TRUE(us.model.out.empty());
}

TEST(MacVrf, AStickyRouteTakesALearnedMacFromUs) {
  Pe us;
  us.learn(1, 10);
  EXPECT_THAT(
      us.announce(Remote(9, 1).seq(0, true)),
      ElementsAre("ALARM sticky elsewhere M1 10.0.0.9! / port10", "M1: port10 > 10.0.0.9!", "-M1"));
}

TEST(MacVrf, ProvisionedAtTwoOtherPes) {  // G15
  Pe us;
  us.announce(Remote(3, 1).seq(0, true));
  EXPECT_THAT(
      us.announce(Remote(2, 1).seq(0, true)),
      ElementsAre("ALARM sticky elsewhere M1 10.0.0.2! / 10.0.0.3!", "M1: 10.0.0.3! > 10.0.0.2!"));
}

TEST(MacVrf, AProvisionedMacMovesWithItsProvisioning) {
  Pe us;
  us.learn(1, 10, true);
  EXPECT_THAT(us.learn(1, 11, true), ElementsAre("M1: port10! > port11!"));
  EXPECT_THAT(us.down(10), IsEmpty());
  EXPECT_THAT(us.down(11), ElementsAre("M1: port11! > nowhere", "-M1"));
}

// --- duplicates

// A member reflects frames: M comes and goes between PE 2 and us. True for the last action.
Texts bounce(Pe& us, unsigned moves) {
  Texts last;
  uint32_t sequence = 0;
  us.announce(Remote(2, 1));
  for (unsigned n = 0; n < moves; ++n) {
    if (n % 2 == 0) {
      last = us.learn(1, 10);
      sequence = us.view(1).sequence;
    } else {
      last = us.announce(Remote(2, 1).seq(sequence + 1));
    }
  }
  return last;
}

TEST(MacVrf, FourMovesAreFine) {
  Pe us;
  bounce(us, 4);
  EXPECT_FALSE(us.view(1).duplicate);
  EXPECT_EQ(us.view(1).moves, 4u);
  EXPECT_EQ(us.vrf.deadline(), net::kNever);
}

TEST(MacVrf, TheFifthMoveFreezesTheMacWhereItWas) {
  Pe us;
  EXPECT_THAT(bounce(us, 5), ElementsAre("ALARM duplicate M1 10.0.0.2 / port10"));
  EXPECT_TRUE(us.view(1).duplicate);
  EXPECT_EQ(us.vrf.deadline(), us.now + 540s);
  // Neither local learning nor routes do anything any more.
  EXPECT_THAT(us.learn(1, 10), IsEmpty());
  EXPECT_THAT(us.learn(1, 11), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 1).seq(99)), IsEmpty());
  EXPECT_THAT(us.bind("192.0.2.1", 1), IsEmpty());
  EXPECT_TRUE(us.model.out.empty());
  EXPECT_EQ(us.place(1), "10.0.0.2");
  us.now += 539s;
  EXPECT_THAT(us.tick(), IsEmpty());
  us.now += 1s;
  EXPECT_THAT(us.tick(),
              ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere", "M1: 10.0.0.2 > 10.0.0.3"));
  EXPECT_EQ(us.vrf.deadline(), net::kNever);
  EXPECT_THAT(us.learn(1, 10),
              ElementsAre("M1: 10.0.0.3 > port10", "+M1 MM:100", "+M1/192.0.2.1 MM:100"));
  EXPECT_EQ(us.view(1).moves, 1u);
}

TEST(MacVrf, FrozenWithUsOurRouteStaysOut) {
  auto s = settings();
  s.duplicate_moves = 4;
  Pe us(s);
  EXPECT_THAT(bounce(us, 4), ElementsAre("ALARM duplicate M1 port10 / 10.0.0.2"));
  EXPECT_EQ(us.place(1), "port10");
  EXPECT_TRUE(us.sent(us.ours(1)));
  EXPECT_THAT(us.bind("192.0.2.1", 1), IsEmpty());
  EXPECT_THAT(us.learn(1, 11), IsEmpty());
  EXPECT_THAT(us.clear(2), IsEmpty());
  EXPECT_THAT(us.clear(1),
              ElementsAre("ALARM cleared M1 port10 / nowhere", "M1: port10 > 10.0.0.2", "-M1"));
  EXPECT_THAT(us.clear(1), IsEmpty());
  us.learn(1, 10);
  EXPECT_FALSE(us.view(1).duplicate) << "earlier moves are forgiven";
  EXPECT_EQ(us.view(1).moves, 1u);
  us.now += 1000s;
  EXPECT_THAT(us.tick(), IsEmpty());
}

TEST(MacVrf, FrozenMacWhosePlaceGoesAway) {
  auto s = settings();
  s.duplicate_moves = 4;
  {
    Pe us(s);
    bounce(us, 4);
    us.announce(Remote(3, 1).seq(1));
    EXPECT_THAT(us.down(10), ElementsAre("M1: port10 > 10.0.0.2", "-M1"));
    EXPECT_TRUE(us.view(1).duplicate);
    EXPECT_THAT(us.learn(1, 10), IsEmpty());
    EXPECT_THAT(us.withdraw(Remote(2, 1)), ElementsAre("M1: 10.0.0.2 > 10.0.0.3"));
    EXPECT_THAT(us.withdraw(Remote(3, 1)), ElementsAre("M1: 10.0.0.3 > nowhere"));
    EXPECT_TRUE(us.view(1).duplicate);
    EXPECT_THAT(us.learn(1, 10), IsEmpty());
    us.now += 540s;
    EXPECT_THAT(us.tick(), ElementsAre("ALARM cleared M1 nowhere / nowhere"));
    us.vrf.for_each_mac([](const evpn::MacView&) { FAIL() << "nothing is left"; });
  }
  Pe us(s);
  bounce(us, 4);
  us.now += 540s;  // nobody called tick(): the next event sees that the hold is over
  EXPECT_THAT(us.learn(1, 11),
              ElementsAre("ALARM cleared M1 port10 / nowhere", "M1: port10 > 10.0.0.2", "-M1",
                          "M1: 10.0.0.2 > port11", "+M1 MM:5"));
}

TEST(MacVrf, MovesOutsideTheWindowDoNotCount) {
  Pe us;
  us.announce(Remote(2, 1));
  for (unsigned n = 0; n < 20; ++n) {
    us.learn(1, 10 + n % 2);
    EXPECT_FALSE(us.view(1).duplicate);
    us.now += 45s;  // never five in 180 s
  }
  us.now -= 1s;
  us.learn(1, 30);
  EXPECT_TRUE(us.view(1).duplicate) << "now five in less";
}

TEST(MacVrf, MovesBetweenOtherPesAreTheirs) {
  Pe us;
  for (uint32_t n = 1; n < 20; ++n) us.announce(Remote(2 + n % 2, 1).seq(n));
  EXPECT_FALSE(us.view(1).duplicate);
  EXPECT_EQ(us.view(1).moves, 0u);
}

TEST(MacVrf, AgeingIsNoMove) {
  Pe us;
  us.announce(Remote(9, 1));
  for (int n = 0; n < 4; ++n) {
    us.learn(1, 10);  // a move: it was behind PE 9
    us.age(1, 10);    // none: the remaining route takes over
  }
  EXPECT_EQ(us.view(1).moves, 4u);
}

TEST(MacVrf, DetectionCanBeOff) {
  auto s = settings();
  s.duplicate_moves = 0;
  Pe us(s);
  bounce(us, 101);
  EXPECT_EQ(us.place(1), "port10");
}

TEST(MacVrf, AHoldOfZeroWaitsForTheOperator) {
  auto s = settings();
  s.duplicate_hold = 0s;
  Pe us(s);
  bounce(us, 5);
  EXPECT_TRUE(us.view(1).duplicate);
  EXPECT_EQ(us.vrf.deadline(), net::kNever);
  us.now += 1000000s;
  EXPECT_THAT(us.tick(), IsEmpty());
  EXPECT_THAT(us.clear(1), ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere"));
}

TEST(MacVrf, ProvisioningUnfreezes) {
  Pe here, there;
  bounce(here, 5);
  EXPECT_THAT(here.learn(1, 10, true), ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere",
                                                   "ALARM sticky elsewhere M1 port10! / 10.0.0.2",
                                                   "M1: 10.0.0.2 > port10!", "+M1 MM:0,sticky"));
  bounce(there, 5);
  EXPECT_THAT(there.announce(Remote(3, 1).seq(0, true)),
              ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere", "M1: 10.0.0.2 > 10.0.0.3!"));
}

TEST(MacVrf, TwoFrozenMacsThawInTheirOrder) {
  Pe us;
  bounce(us, 5);
  us.now += 10s;
  for (unsigned n = 0; n < 6; ++n) us.learn(2, 20 + n % 2);
  EXPECT_TRUE(us.view(2).duplicate);
  EXPECT_EQ(us.vrf.deadline(), us.now + 530s);
  us.now += 530s;
  EXPECT_THAT(us.tick(), ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere"));
  EXPECT_EQ(us.vrf.deadline(), us.now + 10s);
}

// --- flood list

struct Imet {
  evpn::InclusiveMulticast route;
  bgp::Attributes attributes;
  explicit Imet(unsigned from) : route{rd_of(pe(from)), 0, pe(from)} {
    attributes = Remote(from, 1).attributes;
    pmsi({0, 6, 100, pe(from)});
  }
  Imet& pmsi(const evpn::PmsiTunnel& tunnel) {
    attributes.pmsi_tunnel = evpn::encode_pmsi(tunnel);
    return *this;
  }
};
Texts announce(Pe& us, const Imet& imet) {
  return us.take(
      us.vrf.remote(imet.route, std::make_shared<bgp::Attributes>(imet.attributes), us.now));
}
Texts withdraw(Pe& us, const Imet& imet) {
  return us.take(us.vrf.remote(imet.route, nullptr, us.now));
}

TEST(MacVrf, FloodList) {
  Pe us;
  EXPECT_THAT(announce(us, Imet(2)), ElementsAre("flood +10.0.0.2"));
  EXPECT_THAT(announce(us, Imet(2)), IsEmpty());
  EXPECT_THAT(announce(us, Imet(3)), ElementsAre("flood +10.0.0.3"));
  EXPECT_EQ(us.vrf.flood_list(), (std::vector{pe(2), pe(3)}));
  EXPECT_THAT(withdraw(us, Imet(2)), ElementsAre("flood -10.0.0.2"));
  EXPECT_THAT(withdraw(us, Imet(2)), IsEmpty());
}

TEST(MacVrf, AVtepStaysUntilItsLastRouteGoes) {
  Pe us;
  Imet other(2);
  other.route.rd = rd_of(pe(77));
  announce(us, Imet(2));
  EXPECT_THAT(announce(us, other), IsEmpty());
  EXPECT_THAT(withdraw(us, Imet(2)), IsEmpty());
  EXPECT_THAT(withdraw(us, other), ElementsAre("flood -10.0.0.2"));
}

TEST(MacVrf, FloodEndpointChanges) {
  Pe us;
  announce(us, Imet(2));
  Imet moved(2);
  moved.pmsi({0, 6, 100, pe(8)});
  moved.attributes.next_hop = pe(8);
  EXPECT_THAT(announce(us, moved), ElementsAre("flood +10.0.0.8", "flood -10.0.0.2"));
}

TEST(MacVrf, WhatIsNotFlooded) {  // FRR 1487
  struct Row {
    const char* name;
    std::function<void(Imet&)> bend;
    bool flooded;
  };
  const std::vector<Row> table{
      {"plain", [](Imet&) {}, true},
      {"no PMSI", [](Imet& i) { i.attributes.pmsi_tunnel.reset(); }, false},
      {"PMSI of 4", [](Imet& i) { i.attributes.pmsi_tunnel = net::Bytes{0, 6, 0, 0}; }, false},
      {"undefined tunnel type", [](Imet& i) { i.pmsi({0, 12, 100, pe(2)}); }, false},
      {"leaf information wanted", [](Imet& i) { i.pmsi({1, 6, 100, pe(2)}); }, true},
      {"label 0", [](Imet& i) { i.pmsi({0, 6, 0, pe(2)}); }, true},
      {"another VNI", [](Imet& i) { i.pmsi({0, 6, 101, pe(2)}); }, false},
      {"shifted VNI", [](Imet& i) { i.pmsi({0, 6, 100 << 4, pe(2)}); }, false},
      {"our own endpoint", [](Imet& i) { i.pmsi({0, 6, 100, pe(5)}); }, false},
      {"our own next hop", [](Imet& i) { i.attributes.next_hop = pe(5); }, false},
      {"group endpoint", [](Imet& i) { i.pmsi({0, 6, 100, ip("239.0.0.1")}); }, false},
      {"no endpoint", [](Imet& i) { i.pmsi({0, 6, 100, {}}); }, false},
      {"Ethernet tag", [](Imet& i) { i.route.ethernet_tag = 7; }, false},
      {"no target", [](Imet& i) { i.attributes.extended_communities.clear(); }, false},
      {"MPLS", [](Imet& i) { i.attributes.extended_communities[1] = evpn::make_encapsulation(10); },
       false},
      {"endpoint of the other family",
       [](Imet& i) {
         i.pmsi({0, 6, 100, ip("2001:db8::2")});
         i.attributes.next_hop = ip("2001:db8::2");
       },
       false},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    Pe us;
    Imet imet(2);
    row.bend(imet);
    announce(us, imet);
    EXPECT_EQ(us.vrf.flood_list().size(), row.flooded ? 1u : 0u);
    Pe again;
    announce(again, Imet(2));
    announce(again, imet);
    EXPECT_EQ(again.vrf.flood_list().size(), row.flooded || imet.route.ethernet_tag != 0 ? 1u : 0u);
  }
}

TEST(MacVrf, EndpointAndNextHopDiffer) {
  Pe us;
  Imet imet(2);
  imet.attributes.next_hop = pe(3);
  EXPECT_THAT(
      announce(us, imet),
      ElementsAre("flood +10.0.0.2", "ALARM mismatch 00:00:00:00:00:00 10.0.0.2 / 10.0.0.3"));
  imet.attributes.multi_exit_disc = 5;
  EXPECT_THAT(announce(us, imet), IsEmpty()) << "said once";
  EXPECT_THAT(announce(us, Imet(2)), IsEmpty());
}

TEST(MacVrf, CanBeMoved) {
  evpn::MacVrf first(settings());
  (void)first.local_mac(mac(1), port(1), false, {});
  evpn::MacVrf second = std::move(first);
  EXPECT_EQ(text(second.place_of(mac(1))), "port1");
  EXPECT_EQ(second.settings().name, "peering");
}

}  // namespace
