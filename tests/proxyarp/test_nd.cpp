// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of ND frames: the rows of the requirements by number, and the ND cases of the matrix
// that compares with the Linux bridge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

Settings all_static() {
  Settings s = Lan::settings(Profile::Static);
  s.bindings = {fixed(v6(1), {mac(1)}, "alpha"), fixed(v6(2), {mac(2), mac(12)}, "bravo"),
                fixed(v6(9), {mac(9)}), fixed(v6(30), {mac(30), mac(31)})};
  return s;
}
Lan static_lan() {
  Lan lan(all_static());
  lan.place(mac(1), kAlpha);
  lan.place(mac(2), kBravo);
  lan.place_remote(mac(9));
  return lan;
}
Lan learned_lan() {
  Lan lan = Lan::plain(Profile::Dynamic);
  lan.place(mac(1), kAlpha);
  lan.place(mac(2), kBravo);
  lan.member(kAlpha, na(1, v6(1)));
  lan.member(kBravo, na(2, v6(2)));
  return lan;
}
std::array<Lan, 2> both() { return {static_lan(), learned_lan()}; }

Action flood(const NdFrame& nd, net::IfIndex except) {
  return Flood{encode_nd(nd), except, true, true};
}
Action flood_here(const NdFrame& nd) { return Flood{encode_nd(nd), std::nullopt, true, false}; }

NdFrame with_option(NdFrame nd, uint8_t type, std::size_t size = 6) {
  nd.options.push_back({type, net::Bytes(size, 1)});
  return nd;
}

}  // namespace

// Case G, B1, B4, B10, B11.
TEST(Nd, KnownTargetIsAnswered) {
  for (Lan& lan : both()) {
    const Outcome outcome = lan.member(kAlpha, ns(1, v6(9)));
    EXPECT_EQ(outcome.verdict, Verdict::Answered);
    EXPECT_THAT(
        outcome.actions,
        ElementsAre(Action(Transmit{
            kAlpha, hex("02000000000102000000000986dd6000000000203aff20010db80001000000000000"
                        "0000000920010db800010000000000000000000188000a59e000000020010db800"
                        "01000000000000000000090201020000000009")})));
  }
}

// Cases K and K3, B7, B10, B16.
TEST(Nd, DadOfAStrangerIsAnsweredToAllNodes) {
  for (Lan& lan : both())
    for (const NdFrame& solicitation :
         {dad_ns(1, v6(9)), with_option(dad_ns(1, v6(9)), kOptionNonce)}) {
      const Outcome outcome = lan.member(kAlpha, solicitation);
      EXPECT_EQ(outcome.verdict, Verdict::Answered);
      EXPECT_THAT(
          outcome.actions,
          ElementsAre(Action(Transmit{
              kAlpha, hex("33330000000102000000000986dd6000000000203aff20010db8000100000000000000"
                          "000009ff02000000000000000000000000000188007910a000000020010db800010000"
                          "00000000000000090201020000000009")})));
    }
}

// B9, G8, G9 and the third call of section 0.3 (O is set whatever the peer said).
TEST(Nd, RouterFlagAsToldOverrideAlways) {
  for (bool router : {false, true})
    for (bool over : {false, true})
      for (bool dad : {false, true}) {
        Lan lan(Lan::settings(Profile::Static));
        lan.remote(9, {router, over});
        const Outcome outcome = lan.member(kAlpha, dad ? dad_ns(1, v6(9)) : ns(1, v6(9)));
        const auto sent = all_of<Transmit>(outcome.actions);
        ASSERT_EQ(sent.size(), 1u);
        const auto answer = decode_nd(sent[0].frame);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->router, router);
        EXPECT_TRUE(answer->override_flag);
        EXPECT_EQ(answer->solicited, !dad);
        EXPECT_EQ(lan.fast().at(v6(9)).flags, (NaFlags{router, true}));
        EXPECT_EQ(lan.view(v6(9))->flags, (NaFlags{router, over}));
        // IPv4 takes no notice of them (G10).
        EXPECT_EQ(lan.fast().at(v4(9)).flags, (NaFlags{false, false}));
      }
}

TEST(Nd, StaticRouterFlagFromSettings) {
  Settings s = all_static();
  s.default_router = false;
  Lan lan(s);
  EXPECT_EQ(lan.up().at(v6(1)).flags, (NaFlags{false, true}));
  EXPECT_EQ(lan.fast().at(v6(1)).flags, (NaFlags{false, true}));
}

// Third call of section 0.3, the owner or a MAC of its list.
TEST(Nd, DadOfTheOwnerIsNotAnswered) {
  Lan lan = static_lan();
  for (uint8_t m : {uint8_t{2}, uint8_t{12}})
    for (net::IfIndex port : {kAlpha, kBravo})
      EXPECT_EQ(lan.member(port, dad_ns(m, v6(2))).verdict, Verdict::OwnerAsked);
  Lan learned = learned_lan();
  EXPECT_EQ(learned.member(kCharlie, dad_ns(2, v6(2))).verdict, Verdict::OwnerAsked);
}

TEST(Nd, OwnerBehindTheAskingPort) {
  for (Lan& lan : both()) EXPECT_EQ(lan.member(kBravo, ns(5, v6(2))).verdict, Verdict::SamePort);
}

// Case H, B8.
TEST(Nd, UnicastSolicitationIsNeverAnswered) {
  for (Lan& lan : both()) {
    NdFrame nud = ns(1, v6(9));
    nud.destination = mac(9);
    nud.to = v6(9);
    const Outcome copy = lan.member(kAlpha, nud, true);
    EXPECT_EQ(copy.verdict, Verdict::Forwarded);
    EXPECT_THAT(copy.actions, IsEmpty());
    EXPECT_THAT(lan.member(kAlpha, nud).actions, ElementsAre(Action(TransmitCore{encode_nd(nud)})));
  }
}

// Cases I, J, P, Q; B12, B13, A14.
TEST(Nd, MalformedIsDropped) {
  const net::Bytes good = encode_nd(ns(1, v6(9)));
  const net::Bytes advertisement = encode_nd(na(1, v6(1)));
  std::vector<net::Bytes> frames{
      with(good, 21, {64}),                            // hop limit
      with(good, 57, {1}),                             // checksum
      with_checksum(with(good, 55, {1})),              // code
      with_checksum(with(good, 62, {0xff})),           // multicast target
      with_checksum(with(good, 79, {0})),              // option of length zero
      with_checksum(with(good, 77, {8})),              // group of another target
      with(good, 18, {0, 23}),                         // length
      with(advertisement, 21, {1}),                    // hop limit
      with(advertisement, 56, {1, 2}),                 // checksum
      with_checksum(with(advertisement, 55, {1})),     // code
      with_checksum(with(advertisement, 58, {0xe0})),  // S in multicast
      with_checksum(with(advertisement, 79, {0})),     // option of length zero
      with_checksum(with(advertisement, 62, {0xff})),
  };
  NdFrame dad_with_source = ns(1, v6(9));
  dad_with_source.from = net::IpAddress::v6({});
  frames.push_back(encode_nd(dad_with_source));
  net::Bytes hidden = with(good, 20, {0});
  const net::Bytes extension = hex("3a00000000000000");
  hidden.insert(hidden.begin() + 54, extension.begin(), extension.end());
  frames.push_back(hidden);
  for (std::size_t n = 14; n < good.size(); ++n) {
    frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    frames.emplace_back(advertisement.begin(),
                        advertisement.begin() + static_cast<std::ptrdiff_t>(n));
  }
  for (Lan& lan : both())
    for (const net::Bytes& frame : frames) {
      const Outcome outcome = lan.member(kAlpha, frame);
      EXPECT_EQ(outcome.verdict, Verdict::MalformedNd);
      EXPECT_THAT(outcome.actions, IsEmpty());
      EXPECT_EQ(lan.core(frame).verdict, Verdict::MalformedNd);
    }
}

// Case O, B26.
TEST(Nd, ForgedLinkLayerAddress) {
  for (Lan& lan : both()) {
    NdFrame forged = ns(1, v6(9));
    forged.link_layer = mac(7);
    const Outcome outcome = lan.member(kAlpha, forged);
    EXPECT_EQ(outcome.verdict, Verdict::SpoofedSender);
    EXPECT_FALSE(has_frames(outcome.actions));
    NdFrame advertisement = na(1, v6(1));
    advertisement.link_layer = mac(7);
    EXPECT_EQ(lan.member(kAlpha, advertisement).verdict, Verdict::SpoofedSender);
  }
}

TEST(Nd, AddressOfAProvisionedMember) {
  Lan lan = static_lan();
  NdFrame solicitation = ns(7, v6(9));
  solicitation.from = v6(1);
  EXPECT_EQ(lan.member(kCharlie, solicitation).verdict, Verdict::SpoofedSender);
  Outcome outcome = lan.member(kCharlie, na(7, v6(1)));
  EXPECT_EQ(outcome.verdict, Verdict::NotOwner);
  EXPECT_THAT(outcome.actions,
              ElementsAre(alarm(AlarmKind::NotOwner, v6(1), 1, kAlpha, 7, kCharlie)));
  // Its own address as IPv6 source doesn't help, nor O=0, nor a missing option.
  NdFrame other = na(7, v6(1));
  other.from = v6(7);
  other.override_flag = false;
  EXPECT_EQ(lan.member(kCharlie, other).verdict, Verdict::NotOwner);
  other.link_layer.reset();
  EXPECT_EQ(lan.member(kCharlie, other).verdict, Verdict::NotOwner);
  NdFrame borrowed = na(7, v6(7));
  borrowed.from = v6(1);
  EXPECT_EQ(lan.member(kCharlie, borrowed).verdict, Verdict::SpoofedSender);
}

// Cases K2 and E, B21.
TEST(Nd, UnknownTargetByProfile) {
  Lan dynamic = learned_lan();
  Lan fixed_lan = static_lan();
  EXPECT_THAT(dynamic.member(kAlpha, ns(1, v6(200))).actions,
              ElementsAre(flood(ns(1, v6(200)), kAlpha)));
  EXPECT_EQ(fixed_lan.member(kAlpha, ns(1, v6(200))).verdict, Verdict::UnknownTarget);
  // Both who ask for the same free address must see each other.
  for (Lan* lan : {&dynamic, &fixed_lan}) {
    EXPECT_THAT(lan->member(kAlpha, dad_ns(1, v6(200))).actions,
                ElementsAre(flood(dad_ns(1, v6(200)), kAlpha)));
    EXPECT_THAT(lan->core(dad_ns(33, v6(200))).actions,
                ElementsAre(flood_here(dad_ns(33, v6(200)))));
    EXPECT_EQ(lan->member(kAlpha, dad_ns(1, ip("2001:db8:2::1"))).verdict, Verdict::OutsidePrefix);
    EXPECT_EQ(lan->member(kAlpha, dad_ns(1, ip("fe80::77"))).verdict, Verdict::Flooded);
  }
  // Reserved, owner not seen.
  EXPECT_EQ(fixed_lan.member(kAlpha, dad_ns(1, v6(30))).verdict, Verdict::UnknownTarget);
  EXPECT_EQ(fixed_lan.core(dad_ns(1, v6(30))).verdict, Verdict::UnknownTarget);
  EXPECT_EQ(fixed_lan.member(kAlpha, dad_ns(31, v6(30))).verdict, Verdict::OwnerAsked);
}

TEST(Nd, OutsideThePrefixes) {
  for (Lan& lan : both()) {
    EXPECT_EQ(lan.member(kAlpha, ns(1, ip("2001:db8:2::9"))).verdict, Verdict::OutsidePrefix);
    EXPECT_EQ(lan.member(kAlpha, ns(1, ip("2001:db8:1::"))).verdict, Verdict::OutsidePrefix);
    NdFrame from_outside = ns(1, v6(9));
    from_outside.from = ip("2001:db8:2::1");
    EXPECT_EQ(lan.member(kAlpha, from_outside).verdict, Verdict::OutsidePrefix);
    EXPECT_EQ(lan.member(kAlpha, na(1, ip("2001:db8:2::1"))).verdict, Verdict::OutsidePrefix);
    NdFrame target_outside = na(1, ip("2001:db8:2::1"));
    target_outside.from = v6(1);
    EXPECT_EQ(lan.member(kAlpha, target_outside).verdict, Verdict::OutsidePrefix);
  }
}

// Case N, B15, H5.
TEST(Nd, UnknownOption) {
  for (const NdFrame& nd : {with_option(ns(1, v6(9)), 200), with_option(ns(1, v6(200)), 200),
                            with_option(dad_ns(1, v6(200)), 2)}) {
    Lan fixed_lan = static_lan();
    const Outcome dropped = fixed_lan.member(kAlpha, nd);
    EXPECT_EQ(dropped.verdict, Verdict::UnknownOption);
    EXPECT_THAT(dropped.actions, IsEmpty());
    Lan dynamic = learned_lan();
    const Outcome flooded = dynamic.member(kAlpha, nd);
    EXPECT_EQ(flooded.verdict, Verdict::Flooded);
    EXPECT_THAT(flooded.actions, ElementsAre(flood(nd, kAlpha)));
  }
}

// H11.
TEST(Nd, SendIsHandedToTheOwner) {
  for (uint8_t type : {kOptionCga, kOptionRsaSignature})
    for (Lan& lan : both()) {
      const NdFrame local = with_option(ns(1, v6(2)), type, 22);
      Outcome outcome = lan.member(kAlpha, local);
      EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
      EXPECT_THAT(outcome.actions,
                  ElementsAre(Action(Transmit{kBravo, handed(encode_nd(local), 2)})));
      const NdFrame remote = with_option(ns(1, v6(9)), type, 22);
      NdFrame to_owner = remote;
      to_owner.destination = mac(9);
      outcome = lan.member(kAlpha, remote);
      EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
      EXPECT_THAT(outcome.actions, ElementsAre(Action(TransmitCore{encode_nd(to_owner)})));
      EXPECT_EQ(
          lan.member(kAlpha, with_option(ns(1, v6(200)), type, 22)).verdict,
          lan.current().profile == Profile::Static ? Verdict::UnknownTarget : Verdict::Flooded);
    }
}

// A11, A12, A13, A19, B23.
TEST(Nd, WhatIsLearned) {
  Lan lan = Lan::plain(Profile::Dynamic);
  lan.place(mac(4), kCharlie);
  lan.member(kCharlie, ns(4, v6(9)));
  lan.member(kCharlie, ns(4, v6(200)));
  EXPECT_FALSE(lan.view(v6(4)));

  NdFrame optimistic = na(4, v6(4));
  optimistic.override_flag = false;
  EXPECT_EQ(lan.member(kCharlie, optimistic).verdict, Verdict::Flooded);
  NdFrame bare = na(4, v6(4));
  bare.link_layer.reset();
  EXPECT_EQ(lan.member(kCharlie, bare).verdict, Verdict::Flooded);
  EXPECT_FALSE(lan.view(v6(4)));
  EXPECT_EQ(lan.counter(Verdict::Learned), 0u);
  EXPECT_EQ(lan.member(kAlpha, ns(1, v6(4))).verdict, Verdict::Flooded);

  NdFrame host = na(4, v6(4));
  host.router = false;
  EXPECT_EQ(lan.member(kCharlie, host).verdict, Verdict::Flooded);
  EXPECT_EQ(lan.up().at(v6(4)), (LocalBindingUp{v6(4), mac(4), kCharlie, {false, true}, false}));
  EXPECT_EQ(lan.counter(Verdict::Learned), 1u);
  // The router flag follows.
  lan.member(kCharlie, na(4, v6(4)));
  EXPECT_EQ(lan.up().at(v6(4)).flags, (NaFlags{true, true}));
  EXPECT_TRUE(lan.books_agree());

  // The answer to a unicast solicitation, seen as a copy.
  NdFrame solicited = neighbor_advertisement(ns(1, v6(5)), mac(5), {});
  EXPECT_EQ(lan.member(kCharlie, solicited, true).verdict, Verdict::Learned);
  EXPECT_EQ(lan.member(kCharlie, solicited, true).verdict, Verdict::Forwarded);
  // Out of the fabric nothing is learned (A8).
  lan.core(na(6, v6(6)));
  EXPECT_FALSE(lan.view(v6(6)));
}

// Case L, E6, B22.
TEST(Nd, UnsolicitedAdvertisements) {
  Lan dynamic = learned_lan();
  EXPECT_THAT(dynamic.member(kAlpha, na(1, v6(1))).actions,
              ElementsAre(flood(na(1, v6(1)), kAlpha)));
  Lan lan = static_lan();
  EXPECT_EQ(lan.member(kAlpha, na(1, v6(1))).verdict, Verdict::GratuitousDropped);
  EXPECT_EQ(lan.core(na(9, v6(9))).verdict, Verdict::GratuitousDropped);
}

TEST(Nd, DefenceGetsThroughWhereDadWasFlooded) {
  Lan lan = static_lan();
  // Somebody behind another PE asks for bravo's address; the frame reaches bravo alone.
  const Outcome asked = lan.core(dad_ns(33, v6(2)));
  EXPECT_THAT(asked.actions,
              ElementsAre(Action(Transmit{kBravo, handed(encode_nd(dad_ns(33, v6(2))), 2)})));
  EXPECT_EQ(lan.member(kCharlie, na(7, v6(2))).verdict, Verdict::NotOwner);
  lan.now += std::chrono::milliseconds(2900);
  const Outcome defended = lan.member(kBravo, na(2, v6(2)));
  EXPECT_EQ(defended.verdict, Verdict::Flooded);
  EXPECT_THAT(defended.actions, ElementsAre(flood(na(2, v6(2)), kBravo)));
  // Of another address, too late, or by one who does not own it.
  EXPECT_EQ(lan.member(kAlpha, na(1, v6(1))).verdict, Verdict::GratuitousDropped);
  lan.now += std::chrono::milliseconds(101);
  EXPECT_EQ(lan.member(kBravo, na(2, v6(2))).verdict, Verdict::GratuitousDropped);
  // Who defends what nobody is known to have may be right.
  lan.member(kAlpha, dad_ns(1, v6(200)));
  EXPECT_EQ(lan.member(kBravo, na(2, v6(200))).verdict, Verdict::Flooded);
  // A second solicitation starts the time again.
  lan.core(dad_ns(33, v6(2)));
  lan.now += std::chrono::seconds(2);
  lan.core(dad_ns(33, v6(2)));
  lan.now += std::chrono::seconds(2);
  EXPECT_EQ(lan.member(kBravo, na(2, v6(2))).verdict, Verdict::Flooded);
}

TEST(Nd, DefenceFromTheCoreReachesTheProber) {
  Lan lan(Lan::settings(Profile::Static));
  EXPECT_EQ(lan.core(na(9, v6(9))).verdict, Verdict::GratuitousDropped);
  lan.member(kAlpha, dad_ns(1, v6(9)));
  EXPECT_THAT(lan.core(na(9, v6(9))).actions, ElementsAre(flood_here(na(9, v6(9)))));
  lan.remote(9);  // its route arrives meanwhile
  EXPECT_THAT(lan.core(na(9, v6(9))).actions, ElementsAre(flood_here(na(9, v6(9)))));
}

// --- link-local addresses (eighth call of section 0.3, problem 37)

TEST(NdLinkLocal, MadeOfTheMacsInTheStaticProfile) {
  Lan lan = static_lan();
  const net::IpAddress one = eui64_link_local(mac(1)), two = eui64_link_local(mac(2)),
                       twelve = eui64_link_local(mac(12)), nine = eui64_link_local(mac(9));
  EXPECT_EQ(lan.up().at(one), (LocalBindingUp{one, mac(1), kAlpha, {true, true}, true}));
  EXPECT_TRUE(lan.fast().contains(two));
  EXPECT_FALSE(lan.fast().contains(twelve));  // not seen
  EXPECT_EQ(lan.fast().at(nine).port, net::IfIndex{});
  EXPECT_EQ(lan.member(kAlpha, ns(1, two)).verdict, Verdict::Answered);
  EXPECT_EQ(lan.member(kAlpha, ns(1, twelve)).verdict, Verdict::UnknownTarget);
  EXPECT_EQ(lan.member(kCharlie, na(7, two)).verdict, Verdict::NotOwner);
  NdFrame from_link_local = ns(1, v6(9));
  from_link_local.from = one;
  EXPECT_EQ(lan.member(kAlpha, from_link_local).verdict, Verdict::Answered);
  from_link_local.source = mac(7);
  from_link_local.link_layer = mac(7);
  EXPECT_EQ(lan.member(kCharlie, from_link_local).verdict, Verdict::SpoofedSender);
}

TEST(NdLinkLocal, SingleMacOfAPortThatWasNotHeard) {
  Lan lan(all_static());
  EXPECT_TRUE(lan.up().contains(eui64_link_local(mac(1))));
  EXPECT_FALSE(lan.up().contains(eui64_link_local(mac(2))));
}

TEST(NdLinkLocal, LearnedFromProvisionedMacsOnly) {
  Lan lan = static_lan();
  const net::IpAddress own = ip("fe80::1:1");
  lan.member(kAlpha, na(1, own));
  EXPECT_EQ(lan.view(own)->kind, BindingKind::Learned);
  EXPECT_EQ(lan.up().at(own).port, kAlpha);
  lan.place(mac(7), kCharlie);
  lan.member(kCharlie, na(7, ip("fe80::7:7")));
  EXPECT_FALSE(lan.view(ip("fe80::7:7")));
  // Provisioned, but for another port.
  lan.member(kCharlie, na(1, ip("fe80::1:2")));
  EXPECT_FALSE(lan.view(ip("fe80::1:2")));
  // In a learning profile anybody's.
  Lan dynamic = learned_lan();
  dynamic.member(kCharlie, na(7, ip("fe80::7:7")));
  EXPECT_TRUE(dynamic.view(ip("fe80::7:7")));
}

TEST(NdLinkLocal, AtMostFourPerMac) {
  for (Lan& lan : both()) {
    for (int i = 1; i <= 4; ++i)
      EXPECT_NE(lan.member(kAlpha, na(1, ip("fe80::1:" + std::to_string(i)))).verdict,
                Verdict::BindingLimit);
    EXPECT_EQ(lan.member(kAlpha, na(1, ip("fe80::1:5"))).verdict, Verdict::BindingLimit);
    EXPECT_NE(lan.member(kAlpha, na(1, ip("fe80::1:4"))).verdict, Verdict::BindingLimit);
    EXPECT_FALSE(lan.view(ip("fe80::1:5")));
  }
}

TEST(NdFromCore, OnlyToTheOwnersPort) {
  for (Lan& lan : both()) {
    EXPECT_THAT(lan.core(ns(9, v6(2))).actions,
                ElementsAre(Action(Transmit{kBravo, handed(encode_nd(ns(9, v6(2))), 2)})));
    EXPECT_EQ(lan.core(ns(9, v6(200))).verdict,
              lan.current().profile == Profile::Static ? Verdict::UnknownTarget : Verdict::Flooded);
  }
}
