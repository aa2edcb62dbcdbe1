// SPDX-License-Identifier: GPL-2.0-or-later
// MacVrf: MAC/IP bindings, ours and those of other PEs (RFC 7432 section 10, RFC 9047). G1 to G16
// are rows of the proxy ARP/ND requirements.
#include "mac_vrf_harness.h"

namespace {

using namespace harness;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr evpn::ArpNdFlags kRouter{true, true, false}, kHost{false, true, false},
    kStatic{true, true, true};

// --- ours

TEST(LocalBindings, OneRouteForEachOnceTheMacIsLocal) {
  Pe us;
  EXPECT_THAT(us.bind("192.0.2.1", 1), IsEmpty());
  EXPECT_THAT(us.bind("2001:db8::1", 1, kRouter), IsEmpty());
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: nowhere > port10", "+M1", "+M1/192.0.2.1",
                                           "+M1/2001:db8::1 ND:R,O"));
  EXPECT_THAT(us.bind("192.0.2.1", 1), IsEmpty()) << "known";
  EXPECT_THAT(us.bind("192.0.2.9", 1), ElementsAre("+M1/192.0.2.9"));
  EXPECT_EQ(us.view(1).ips, (std::vector{ip("192.0.2.1"), ip("192.0.2.9"), ip("2001:db8::1")}));
  EXPECT_THAT(us.unbind("192.0.2.1"), ElementsAre("-M1/192.0.2.1"));
  EXPECT_THAT(us.unbind("192.0.2.1"), IsEmpty());
  EXPECT_THAT(us.age(1, 10),
              ElementsAre("M1: port10 > nowhere", "-M1", "-M1/192.0.2.9", "-M1/2001:db8::1"));
  EXPECT_THAT(us.learn(1, 11), ElementsAre("M1: nowhere > port11", "+M1", "+M1/192.0.2.9",
                                           "+M1/2001:db8::1 ND:R,O"));
}

TEST(LocalBindings, Community) {  // G2, G3, G4, G10
  struct Row {
    const char* ip;
    evpn::ArpNdFlags flags;
    const char* expected;
  };
  const std::vector<Row> table{
      {"2001:db8::1", kRouter, "+M1/2001:db8::1 ND:R,O"},
      {"2001:db8::1", kHost, "+M1/2001:db8::1 ND:O"},
      {"2001:db8::1", {true, false, false}, "+M1/2001:db8::1 ND:R"},
      {"2001:db8::1", {false, false, false}, "+M1/2001:db8::1 ND:-"},
      {"2001:db8::1", kStatic, "+M1/2001:db8::1 ND:R,O,I"},
      {"192.0.2.1", kRouter, "+M1/192.0.2.1"},
      {"192.0.2.1", {false, false, false}, "+M1/192.0.2.1"},
      {"192.0.2.1", kStatic, "+M1/192.0.2.1 ND:I"},
  };
  for (const auto& row : table) {
    Pe us;
    us.learn(1, 10);
    EXPECT_THAT(us.bind(row.ip, 1, row.flags), ElementsAre(row.expected));
  }
}

TEST(LocalBindings, ChangedFlagsAreSentAgain) {
  Pe us;
  us.learn(1, 10);
  us.bind("2001:db8::1", 1, kHost);
  EXPECT_THAT(us.bind("2001:db8::1", 1, kRouter), ElementsAre("+M1/2001:db8::1 ND:R,O"));
  us.bind("192.0.2.1", 1, kHost);
  EXPECT_THAT(us.bind("192.0.2.1", 1, kRouter), IsEmpty()) << "no difference on the wire";
}

TEST(LocalBindings, AllRoutesCarryTheSequence) {  // G5
  Pe us;
  us.announce(Remote(2, 1).seq(6));
  us.bind("192.0.2.1", 1);
  us.bind("2001:db8::1", 1, kStatic);
  EXPECT_THAT(us.learn(1, 10), ElementsAre("M1: 10.0.0.2 > port10", "+M1 MM:7",
                                           "+M1/192.0.2.1 MM:7", "+M1/2001:db8::1 MM:7 ND:R,O,I"));
  EXPECT_THAT(us.bind("192.0.2.2", 1), ElementsAre("+M1/192.0.2.2 MM:7"));
  us.learn(3, 11, true);
  EXPECT_THAT(us.bind("192.0.2.3", 3, kStatic), ElementsAre("+M3/192.0.2.3 MM:0,sticky ND:I"));
}

TEST(LocalBindings, AnotherMacWithdrawFirst) {  // G14
  Pe us;
  us.learn(1, 10);
  us.learn(2, 11);
  us.bind("192.0.2.1", 1, kStatic);
  EXPECT_THAT(us.bind("192.0.2.1", 2, kStatic), ElementsAre("-M1/192.0.2.1", "+M2/192.0.2.1 ND:I"));
  EXPECT_THAT(us.bind("192.0.2.1", 3), ElementsAre("-M2/192.0.2.1")) << "M3 is not here";
  EXPECT_THAT(us.age(1, 10), ElementsAre("M1: port10 > nowhere", "-M1"));
  EXPECT_THAT(us.learn(3, 10), ElementsAre("M3: nowhere > port10", "+M3", "+M3/192.0.2.1"));
}

TEST(LocalBindings, NonsenseIsNotSent) {
  Pe us;
  us.learn(1, 10);
  for (const char* bad : {"0.0.0.0", "::", "224.0.0.1", "ff02::1"})
    EXPECT_THAT(us.bind(bad, 1), IsEmpty());
  EXPECT_THAT(us.vrf.local_binding(ip("192.0.2.1"), net::kBroadcastMac, {}, us.now), IsEmpty());
}

// --- those of other PEs

TEST(RemoteBindings, ComesChangesAndGoes) {
  Pe us;
  EXPECT_THAT(us.announce(Remote(2, 1, "192.0.2.1")),
              ElementsAre("M1: nowhere > 10.0.0.2", "192.0.2.1 = M1 RO @10.0.0.2"));
  EXPECT_THAT(us.announce(Remote(2, 1, "192.0.2.1").nd(false, false, true)),
              ElementsAre("192.0.2.1 = M1 ROI @10.0.0.2"));
  EXPECT_THAT(us.announce(Remote(2, 1)), IsEmpty());
  EXPECT_THAT(us.withdraw(Remote(2, 1, "192.0.2.1")), ElementsAre("192.0.2.1 unbound"));
  EXPECT_EQ(us.place(1), "10.0.0.2") << "A23: the MAC-only route is still there";
}

TEST(RemoteBindings, Flags) {  // G1, G6 to G10
  struct Row {
    const char* name;
    const char* ip;
    std::vector<bgp::ExtendedCommunity> communities;
    const char* flags;
  };
  const auto nd = [](uint8_t flags) { return bgp::ExtendedCommunity{0x06, 0x08, flags}; };
  const std::vector<Row> table{
      {"none", "2001:db8::1", {}, "RO"},
      {"FRR's router", "2001:db8::1", {nd(0x01)}, "R"},
      {"host", "2001:db8::1", {nd(0x02)}, "O"},
      {"nothing", "2001:db8::1", {nd(0x00)}, ""},
      {"all bits", "2001:db8::1", {nd(0xff)}, "ROI"},
      {"reserved bits", "2001:db8::1", {nd(0xf4)}, ""},
      {"the first", "2001:db8::1", {nd(0x02), nd(0x09)}, "O"},
      {"IPv4: only I", "192.0.2.1", {nd(0x00)}, "RO"},
      {"IPv4: only I, set", "192.0.2.1", {nd(0x08)}, "ROI"},
      {"IPv4: R alone", "192.0.2.1", {nd(0x01)}, "RO"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    Pe us;
    Remote r(2, 1, row.ip);
    for (const auto& community : row.communities) r.also(community);
    EXPECT_THAT(us.announce(r),
                ElementsAre("M1: nowhere > 10.0.0.2",
                            std::string(row.ip) + " = M1 " + row.flags + " @10.0.0.2"));
  }
}

TEST(RemoteBindings, FlagsOfAMacOnlyRouteMeanNothing) {  // G7
  Pe us;
  us.announce(Remote(2, 1, "192.0.2.1"));
  EXPECT_THAT(us.announce(Remote(2, 1).nd(true, true, true)), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 2, "192.0.2.1").seq(1)),
              ElementsAre("M2: nowhere > 10.0.0.3", "192.0.2.1 = M2 RO @10.0.0.3"));
}

struct Contender {
  unsigned from, m;
  uint32_t seq;
  bool immutable;
  Remote remote() const {
    Remote r(from, m, "192.0.2.1");
    r.seq(seq);
    if (immutable) r.nd(false, false, true);
    return r;
  }
};
struct Row {
  const char* name;
  Contender first, second;
  const char* forward;   // the winner when they arrive in this order
  const char* backward;  // and in the other one
};

TEST(RemoteBindings, Contests) {
  const std::vector<Row> table{
      {"higher sequence", {2, 1, 1, false}, {3, 2, 2, false}, "M2 RO @10.0.0.3", "M2 RO @10.0.0.3"},
      {"sequence wraps",
       {2, 1, 0xffffffff, false},
       {3, 2, 0, false},
       "M2 RO @10.0.0.3",
       "M2 RO @10.0.0.3"},
      {"equal: the latest",
       {2, 1, 1, false},
       {3, 2, 1, false},
       "M2 RO @10.0.0.3",
       "M1 RO @10.0.0.2"},
      {"G11, G12: immutable stays",
       {2, 1, 0, true},
       {3, 2, 9, false},
       "M1 ROI @10.0.0.2",
       "M1 ROI @10.0.0.2"},
      {"G13: both immutable, the latest",
       {2, 1, 0, true},
       {3, 2, 0, true},
       "M2 ROI @10.0.0.3",
       "M1 ROI @10.0.0.2"},
      {"G13: whatever the sequence of the other MAC",
       {2, 1, 7, true},
       {3, 2, 0, true},
       "M2 ROI @10.0.0.3",
       "M1 ROI @10.0.0.2"},
      {"G16: same pair, higher sequence",
       {2, 1, 0, true},
       {3, 1, 1, true},
       "M1 ROI @10.0.0.3",
       "M1 ROI @10.0.0.3"},
      {"same MAC, one immutable",
       {2, 1, 0, true},
       {3, 1, 1, false},
       "M1 ROI @10.0.0.2",
       "M1 ROI @10.0.0.2"},
  };
  for (const auto& row : table) {
    for (const bool forward : {true, false}) {
      SCOPED_TRACE(std::string(row.name) + (forward ? "" : ", reversed"));
      Pe us;
      us.announce((forward ? row.first : row.second).remote());
      us.announce((forward ? row.second : row.first).remote());
      const auto& b = us.model.bindings.at(ip("192.0.2.1"));
      const std::string winner = name(b.mac) + " " + text(b.flags) + " @" + net::to_string(b.vtep);
      EXPECT_EQ(winner, forward ? row.forward : row.backward);
      // Both MACs are programmed (G12), and the loser follows when the winner goes.
      EXPECT_NE(us.place(row.first.m), "nowhere");
      EXPECT_NE(us.place(row.second.m), "nowhere");
      const bool first_won = b.vtep == pe(row.first.from);
      us.withdraw((first_won ? row.first : row.second).remote());
      EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).vtep,
                pe(first_won ? row.second.from : row.first.from));
      us.withdraw((first_won ? row.second : row.first).remote());
      EXPECT_TRUE(us.model.bindings.empty());
    }
  }
}

TEST(RemoteBindings, AnEqualRouteAgainIsNotTheLatest) {
  Pe us;
  us.announce(Remote(2, 1, "192.0.2.1"));
  us.announce(Remote(3, 2, "192.0.2.1"));
  Remote again(2, 1, "192.0.2.1");
  again.attributes.multi_exit_disc = 7;
  EXPECT_THAT(us.announce(again), IsEmpty());
}

TEST(RemoteBindings, NotOfUnusableAddressesOrRoutes) {
  Pe us;
  for (const char* bad : {"0.0.0.0", "127.0.0.1", "224.0.0.1", "ff02::1", "::"}) {
    us.announce(Remote(2, 1, bad));
    EXPECT_TRUE(us.model.bindings.empty()) << bad;
  }
  Remote tagged(2, 3, "192.0.2.1");
  tagged.route.ethernet_tag = 1;
  EXPECT_THAT(us.announce(tagged), IsEmpty());
  Remote ours(2, 4, "192.0.2.1");
  ours.attributes.next_hop = pe(5);
  EXPECT_THAT(us.announce(ours), IsEmpty());
}

TEST(RemoteBindings, AFrozenMacsRoutesChangeNothing) {  // RFC 7432 section 15.1
  auto s = settings();
  s.duplicate_moves = 1;
  Pe us(s);
  us.announce(Remote(2, 1, "192.0.2.1"));
  us.announce(Remote(2, 2, "192.0.2.2"));
  us.learn(1, 10);
  ASSERT_TRUE(us.view(1).duplicate);
  EXPECT_THAT(us.announce(Remote(3, 1, "192.0.2.2").seq(9)), IsEmpty());
  EXPECT_THAT(us.announce(Remote(3, 1, "192.0.2.1").seq(9)), IsEmpty());
  EXPECT_THAT(us.clear(1),
              ElementsAre("ALARM cleared M1 10.0.0.2 / nowhere", "M1: 10.0.0.2 > 10.0.0.3",
                          "192.0.2.1 = M1 RO @10.0.0.3", "192.0.2.2 = M1 RO @10.0.0.3"));
}

TEST(RemoteBindings, AFrozenMacsBindingGoesWithItsRoute) {
  auto s = settings();
  s.duplicate_moves = 1;
  Pe us(s);
  us.announce(Remote(2, 1, "192.0.2.1"));
  us.announce(Remote(2, 1));
  us.learn(1, 10);
  EXPECT_THAT(us.withdraw(Remote(2, 1, "192.0.2.1")), ElementsAre("192.0.2.1 unbound"));
  EXPECT_EQ(us.place(1), "10.0.0.2");
}

// --- addresses in dispute, the PE's own MAC, anycast

evpn::Settings disputing() {
  auto s = settings();
  s.anti_spoof_mac = mac(170);
  return s;
}

TEST(AntiSpoof, ARouteThatCannotMove) {
  Pe us(disputing());
  EXPECT_THAT(us.dispute("192.0.2.1", 170), ElementsAre("+M170/192.0.2.1 MM:0,sticky"));
  EXPECT_THAT(us.dispute("192.0.2.1", 170), IsEmpty());
  EXPECT_THAT(us.dispute("2001:db8::1", 170), ElementsAre("+M170/2001:db8::1 MM:0,sticky ND:R,O"));
  EXPECT_THAT(us.dispute("192.0.2.1", 171),
              ElementsAre("-M170/192.0.2.1", "+M171/192.0.2.1 MM:0,sticky"));
  EXPECT_THAT(us.settled("192.0.2.1"), ElementsAre("-M171/192.0.2.1"));
  EXPECT_THAT(us.settled("192.0.2.1"), IsEmpty());
}

TEST(AntiSpoof, ItsMacIsAtNoPlaceAndNoDuplicate) {
  Pe us(disputing());
  for (uint32_t i = 0; i < 20; ++i) {
    us.announce(Remote(2 + i % 3, 170, "192.0.2.1").seq(i, true));
    us.learn(170, 10 + i % 2);
  }
  EXPECT_EQ(us.place(170), "nowhere");
  EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).mac, mac(170));
  EXPECT_TRUE(us.model.places.empty());
}

TEST(AntiSpoof, CountsMoreThanTheClaimants) {
  Pe us(disputing());
  us.announce(Remote(2, 170, "192.0.2.1").seq(0, true));
  us.announce(Remote(3, 1, "192.0.2.1").seq(9));
  EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).mac, mac(170));
  us.announce(Remote(4, 2, "192.0.2.1").nd(false, false, true));
  EXPECT_EQ(us.model.bindings.at(ip("192.0.2.1")).mac, mac(2)) << "but not than what is for good";
  us.withdraw(Remote(4, 2, "192.0.2.1"));
  EXPECT_THAT(us.withdraw(Remote(2, 170, "192.0.2.1")), ElementsAre("192.0.2.1 = M1 RO @10.0.0.3"));
}

TEST(OwnMac, AStickyRouteThatNobodyTakes) {
  Pe us;
  EXPECT_THAT(us.own(200), ElementsAre("+M200 MM:0,sticky"));
  EXPECT_THAT(us.own(200), IsEmpty());
  EXPECT_THAT(us.announce(Remote(2, 200).seq(9, true)), IsEmpty());
  EXPECT_THAT(us.learn(200, 10), ElementsAre("ALARM sticky elsewhere M200 nowhere / port10"));
  EXPECT_THAT(us.learn(200, 10), IsEmpty());
  EXPECT_EQ(us.place(200), "nowhere");
  EXPECT_THAT(us.own(std::nullopt), ElementsAre("-M200"));
}

TEST(Anycast, EveryMacIsKnownAndAdvertised) {
  auto s = settings();
  s.anycast_macs = 3;
  Pe us(s);
  us.learn(1, 10);
  us.learn(2, 11);
  EXPECT_THAT(us.bind("2001:db8::1", 1, kRouter), ElementsAre("+M1/2001:db8::1 ND:R,O"));
  EXPECT_THAT(us.bind("2001:db8::1", 2, kRouter), ElementsAre("+M2/2001:db8::1 ND:R,O"));
  EXPECT_THAT(us.take(us.vrf.local_binding_gone(ip("2001:db8::1"), mac(1), us.now)),
              ElementsAre("-M1/2001:db8::1"));
  EXPECT_THAT(us.bind("192.0.2.1", 1), ElementsAre("+M1/192.0.2.1"));
  EXPECT_THAT(us.bind("192.0.2.1", 2), ElementsAre("-M1/192.0.2.1", "+M2/192.0.2.1"));
  std::size_t others = 0;
  for (unsigned m = 3; m <= 6; ++m) {
    const Remote r(m, m, "2001:db8::9");
    const auto actions =
        us.vrf.remote(r.route, std::make_shared<bgp::Attributes>(r.attributes), us.now);
    us.take(actions);
    for (const auto& action : actions)
      if (const auto* change = std::get_if<evpn::RemoteBindingChanged>(&action))
        others = change->others.size();
  }
  EXPECT_EQ(others, 2u);
}

TEST(RemoteBindings, DefaultRouterFlag) {  // G9
  auto s = settings();
  s.default_router = false;
  Pe us(s);
  EXPECT_THAT(us.announce(Remote(2, 1, "2001:db8::1")),
              ElementsAre("M1: nowhere > 10.0.0.2", "2001:db8::1 = M1 O @10.0.0.2"));
  EXPECT_THAT(us.announce(Remote(3, 2, "2001:db8::2").nd(true, true, false)),
              ElementsAre("M2: nowhere > 10.0.0.3", "2001:db8::2 = M2 RO @10.0.0.3"));
}

}  // namespace
