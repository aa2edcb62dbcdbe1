// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of ARP frames: the rows of the requirements by number, and the ARP cases of the
// matrix that compares with the Linux bridge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

// Alpha 1 and bravo 2 (list 2, 12) provisioned here, 9 anywhere.
Settings all_static() {
  Settings s = Lan::settings(Profile::Static);
  s.bindings = {fixed(v4(1), {mac(1)}, "alpha"), fixed(v4(2), {mac(2), mac(12)}, "bravo"),
                fixed(v4(9), {mac(9)})};
  return s;
}
Lan static_lan() {
  Lan lan(all_static());
  lan.place(mac(1), kAlpha);
  lan.place(mac(2), kBravo);
  lan.place_remote(mac(9));
  return lan;
}
// Dynamic, with 1 and 2 learned.
Lan learned_lan() {
  Lan lan = Lan::plain(Profile::Dynamic);
  lan.place(mac(1), kAlpha);
  lan.place(mac(2), kBravo);
  lan.member(kAlpha, arp_claim(1, v4(1)));
  lan.member(kBravo, arp_claim(2, v4(2)));
  return lan;
}

std::array<Lan, 2> both() { return {static_lan(), learned_lan()}; }

Action flood(const ArpFrame& arp, net::IfIndex except) {
  return Flood{encode_arp(arp), except, true, true};
}
Action answer(const ArpFrame& request, net::IfIndex port, uint8_t owner) {
  return Transmit{port, encode_arp(arp_reply(request, mac(owner)))};
}

}  // namespace

// Case A, B1, B2, B3.
TEST(Arp, KnownRemoteIsAnsweredAndNotFlooded) {
  for (Lan& lan : both()) {
    const Outcome outcome = lan.member(kAlpha, arp_request(1, v4(9)));
    EXPECT_EQ(outcome.verdict, Verdict::Answered);
    EXPECT_THAT(outcome.actions,
                ElementsAre(Action(Transmit{
                    kAlpha, padded(hex("020000000001020000000009080600010800060400020200000000"
                                       "09c0000209020000000001c0000201"))})));
  }
}

// Case F, B6.
TEST(Arp, KnownLocalIsAnsweredAndNotFlooded) {
  for (Lan& lan : both()) {
    const ArpFrame request = arp_request(1, v4(2));
    const Outcome outcome = lan.member(kAlpha, request);
    EXPECT_EQ(outcome.verdict, Verdict::Answered);
    EXPECT_THAT(outcome.actions, ElementsAre(answer(request, kAlpha, 2)));
  }
}

// Case B, B8.
TEST(Arp, UnicastRequestIsNeverAnswered) {
  for (Lan& lan : both()) {
    ArpFrame request = arp_request(1, v4(9));
    request.destination = mac(9);
    Outcome outcome = lan.member(kAlpha, request, true);
    EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
    EXPECT_THAT(outcome.actions, IsEmpty());
    // Taken out of the path, it goes on to the owner as it is.
    outcome = lan.member(kAlpha, request);
    EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
    EXPECT_THAT(outcome.actions, ElementsAre(Action(TransmitCore{encode_arp(request)})));
    request.destination = mac(2);
    request.target_ip = v4(2);
    outcome = lan.member(kAlpha, request);
    EXPECT_THAT(outcome.actions, ElementsAre(Action(Transmit{kBravo, encode_arp(request)})));
    request.destination = mac(77);
    EXPECT_EQ(lan.member(kAlpha, request).verdict, Verdict::Flooded);
  }
}

// Case C, B7, B17.
TEST(Arp, ProbeOfAStrangerIsAnswered) {
  for (Lan& lan : both()) {
    const Outcome outcome = lan.member(kAlpha, arp_probe(1, v4(9)));
    EXPECT_EQ(outcome.verdict, Verdict::Answered);
    EXPECT_THAT(outcome.actions,
                ElementsAre(Action(Transmit{
                    kAlpha, padded(hex("020000000001020000000009080600010800060400020200000000"
                                       "09c000020902000000000100000000"))})));
    EXPECT_EQ(lan.counter(Verdict::Learned), lan.current().learns() ? 2u : 0u);
  }
}

// B18: neither the owner nor any other MAC of its list is told that the address is taken, whatever
// the port.
TEST(Arp, ProbeOfTheOwnerIsNotAnswered) {
  Lan lan = static_lan();
  for (uint8_t m : {uint8_t{2}, uint8_t{12}})
    for (net::IfIndex port : {kAlpha, kBravo, kCharlie}) {
      const Outcome outcome = lan.member(port, arp_probe(m, v4(2)));
      EXPECT_EQ(outcome.verdict, Verdict::OwnerAsked);
      EXPECT_THAT(outcome.actions, IsEmpty());
    }
  Lan learned = learned_lan();
  EXPECT_EQ(learned.member(kCharlie, arp_probe(2, v4(2))).verdict, Verdict::OwnerAsked);
  EXPECT_EQ(learned.member(kAlpha, arp_probe(9, v4(9))).verdict, Verdict::OwnerAsked);
}

// B5.
TEST(Arp, OwnerBehindTheAskingPort) {
  for (Lan& lan : both()) {
    lan.place(mac(5), kBravo);
    const Outcome outcome = lan.member(kBravo, arp_request(5, v4(2)));
    EXPECT_EQ(outcome.verdict, Verdict::SamePort);
    EXPECT_FALSE(has_frames(outcome.actions));
  }
}

// Cases C2 and E, E1, E5, H2, H4.
TEST(Arp, UnknownTargetByProfile) {
  for (const ArpFrame& request : {arp_request(1, v4(200)), arp_probe(1, v4(200))}) {
    Lan dynamic = learned_lan();
    Outcome outcome = dynamic.member(kAlpha, request);
    EXPECT_EQ(outcome.verdict, Verdict::Flooded);
    EXPECT_THAT(outcome.actions, ElementsAre(flood(request, kAlpha)));

    Lan fixed_lan = static_lan();
    outcome = fixed_lan.member(kAlpha, request);
    EXPECT_EQ(outcome.verdict, Verdict::UnknownTarget);
    EXPECT_THAT(outcome.actions, IsEmpty());
  }
}

TEST(Arp, ThousandUnknownTargetsLeaveTheFabricSilent) {
  Lan lan = static_lan();
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(has_frames(
        lan.member(kAlpha, arp_request(1, v4(static_cast<uint8_t>(20 + i % 200)))).actions));
  EXPECT_EQ(lan.counter(Verdict::UnknownTarget), 1000u);
}

// Cases D and D2, B19, E1, A15.
TEST(Arp, GratuitousIsNeverAnswered) {
  for (bool reply : {false, true}) {
    Lan dynamic = learned_lan();
    const ArpFrame own = arp_claim(1, v4(1), reply);
    Outcome outcome = dynamic.member(kAlpha, own);
    EXPECT_EQ(outcome.verdict, Verdict::Flooded);
    EXPECT_THAT(outcome.actions, ElementsAre(flood(own, kAlpha)));

    Lan fixed_lan = static_lan();
    outcome = fixed_lan.member(kAlpha, own);
    EXPECT_EQ(outcome.verdict, Verdict::GratuitousDropped);
    EXPECT_THAT(outcome.actions, IsEmpty());
  }
}

TEST(Arp, KnobsOverrideTheProfile) {
  for (bool unknown : {false, true})
    for (bool gratuitous : {false, true}) {
      Settings s = all_static();
      s.flood_unknown_arp = FloodTo{unknown, unknown};
      s.flood_gratuitous_arp = FloodTo{gratuitous, gratuitous};
      Lan lan(s);
      EXPECT_EQ(lan.member(kAlpha, arp_request(1, v4(200))).verdict,
                unknown ? Verdict::Flooded : Verdict::UnknownTarget);
      EXPECT_EQ(lan.member(kAlpha, arp_claim(1, v4(1))).verdict,
                gratuitous ? Verdict::Flooded : Verdict::GratuitousDropped);
    }
}

// Case R, B26.
TEST(Arp, EthernetSourceAndSenderDiffer) {
  for (Lan& lan : both()) {
    ArpFrame forged = arp_request(1, v4(9));
    forged.source = mac(7);
    const Outcome outcome = lan.member(kAlpha, forged);
    EXPECT_EQ(outcome.verdict, Verdict::SpoofedSender);
    EXPECT_THAT(outcome.actions,
                ElementsAre(alarm(AlarmKind::SpoofedSender, v4(1), 1, kAlpha, 7, kAlpha)));
    ArpFrame reverse = arp_request(1, v4(9));
    reverse.sender_mac = mac(7);
    EXPECT_EQ(lan.member(kAlpha, reverse).verdict, Verdict::SpoofedSender);
  }
}

// A17, F2, H3: a static address is used by nobody but its owner.
TEST(Arp, AddressOfAProvisionedMember) {
  Lan lan = static_lan();
  ArpFrame request = arp_request(7, v4(9));
  request.sender_ip = v4(1);
  Outcome outcome = lan.member(kCharlie, request);
  EXPECT_EQ(outcome.verdict, Verdict::SpoofedSender);
  EXPECT_THAT(outcome.actions,
              ElementsAre(alarm(AlarmKind::SpoofedSender, v4(1), 1, kAlpha, 7, kCharlie)));

  // Problems 3 and 4: one who answers for others.
  for (bool reply : {false, true}) {
    outcome = lan.member(kCharlie, arp_claim(8, v4(2), reply));
    EXPECT_EQ(outcome.verdict, Verdict::NotOwner);
    EXPECT_FALSE(has_frames(outcome.actions));
  }
  ArpFrame answer = arp_reply(arp_request(1, v4(9)), mac(8));
  outcome = lan.member(kCharlie, answer, true);
  EXPECT_EQ(outcome.verdict, Verdict::NotOwner);
  EXPECT_THAT(outcome.actions, ElementsAre(alarm(AlarmKind::NotOwner, v4(9), 9, {}, 8, kCharlie)));
  // The right MAC at another port than its own is no better.
  EXPECT_EQ(lan.member(kCharlie, arp_claim(1, v4(1))).verdict, Verdict::NotOwner);
  EXPECT_EQ(lan.fast().at(v4(1)).mac, mac(1));
  EXPECT_EQ(lan.fast().at(v4(2)).mac, mac(2));
  EXPECT_TRUE(lan.books_agree());
}

TEST(Arp, ProvisionedAddressesCantBeTakenInAnyProfile) {
  for (Profile profile : {Profile::Dynamic, Profile::Hybrid, Profile::Static}) {
    Settings s = all_static();
    s.profile = profile;
    Lan lan(s);
    lan.place(mac(1), kAlpha);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(lan.member(kCharlie, arp_claim(7, v4(1))).verdict, Verdict::NotOwner);
    EXPECT_EQ(lan.view(v4(1))->mac, mac(1));
    EXPECT_EQ(lan.view(v4(1))->kind, BindingKind::Static);
  }
}

TEST(Arp, AlarmOncePerMinuteAndEvent) {
  Lan lan = static_lan();
  const auto alarms = [&](uint8_t m) {
    return all_of<Alarm>(lan.member(kCharlie, arp_claim(m, v4(1))).actions).size();
  };
  EXPECT_EQ(alarms(7), 1u);
  EXPECT_EQ(alarms(7), 0u);
  EXPECT_EQ(alarms(8), 1u);
  lan.now += std::chrono::seconds(59);
  EXPECT_EQ(alarms(7), 0u);
  lan.now += std::chrono::seconds(1);
  EXPECT_EQ(alarms(7), 1u);
  EXPECT_EQ(lan.counter(Verdict::NotOwner), 5u);
}

TEST(Arp, AlarmsOfAFloodOfForgedSendersAreBounded) {
  Lan lan = static_lan();
  std::size_t alarms = 0;
  for (int i = 0; i < 5000; ++i) {
    ArpFrame forged = arp_claim(7, v4(1));
    forged.source = forged.sender_mac =
        net::MacAddress({2, 9, 9, 9, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)});
    alarms += all_of<Alarm>(lan.member(kCharlie, forged).actions).size();
  }
  EXPECT_GT(alarms, 0u);
  EXPECT_LE(alarms, 1024u);
}

// A7: learned whatever the operation.
TEST(Arp, AllOperationsAreLearned) {
  ArpFrame reply = arp_reply(arp_request(1, v4(4)), mac(4));
  const std::pair<ArpFrame, bool> frames[] = {{arp_request(4, v4(200)), false},
                                              {reply, true},
                                              {arp_claim(4, v4(4)), false},
                                              {arp_claim(4, v4(4), true), false}};
  for (const auto& [frame, copy] : frames) {
    Lan lan = Lan::plain(Profile::Dynamic);
    lan.place(mac(4), kCharlie);
    const Outcome outcome = lan.member(kCharlie, frame, copy);
    EXPECT_EQ(outcome.verdict, copy ? Verdict::Learned : Verdict::Flooded);
    EXPECT_EQ(lan.counter(Verdict::Learned), 1u);
    EXPECT_EQ(lan.up().at(v4(4)), (LocalBindingUp{v4(4), mac(4), kCharlie, {false, false}, false}));
    EXPECT_EQ(lan.fast().at(v4(4)).port, kCharlie);
    lan.member(kCharlie, frame, copy);
    EXPECT_EQ(lan.counter(Verdict::Learned), 1u);
    EXPECT_TRUE(lan.books_agree());
  }
}

// A8, A9, A10 and the rest of what must not be learned.
TEST(Arp, NotLearned) {
  const auto from = [](std::string_view sender) {
    ArpFrame arp = arp_request(4, v4(9));
    arp.sender_ip = ip(sender);
    return arp;
  };
  struct Case {
    ArpFrame frame;
    Verdict verdict;
  };
  ArpFrame zero_mac = arp_request(4, v4(9));
  zero_mac.source = zero_mac.sender_mac = {};
  ArpFrame group_mac = arp_request(4, v4(9));
  group_mac.source = group_mac.sender_mac = mac("03:00:00:00:00:04");
  ArpFrame group_sender = arp_request(4, v4(9));
  group_sender.sender_mac = net::kBroadcastMac;
  ArpFrame zero_reply = arp_claim(4, v4(4), true);
  zero_reply.sender_ip = {};
  const Case cases[] = {
      {arp_probe(4, v4(9)), Verdict::Answered},
      {from("198.51.100.1"), Verdict::OutsidePrefix},
      {from("192.0.2.0"), Verdict::OutsidePrefix},
      {from("192.0.2.255"), Verdict::OutsidePrefix},
      {from("255.255.255.255"), Verdict::OutsidePrefix},
      {from("127.0.0.1"), Verdict::OutsidePrefix},
      {from("224.0.0.1"), Verdict::OutsidePrefix},
      {from("169.254.1.1"), Verdict::OutsidePrefix},
      {arp_claim(4, ip("198.51.100.1")), Verdict::OutsidePrefix},
      {zero_reply, Verdict::OutsidePrefix},
      {zero_mac, Verdict::MalformedArp},
      {group_mac, Verdict::MalformedArp},
      {group_sender, Verdict::SpoofedSender},
  };
  for (const Case& c : cases) {
    Lan lan = Lan::plain(Profile::Dynamic);
    lan.place(mac(4), kCharlie);
    const Outcome outcome = lan.member(kCharlie, c.frame);
    EXPECT_EQ(to_string(outcome.verdict), std::string(to_string(c.verdict))) << &c - cases;
    EXPECT_EQ(has_frames(outcome.actions), c.verdict == Verdict::Answered) << &c - cases;
    EXPECT_EQ(lan.counter(Verdict::Learned), 0u);
    EXPECT_EQ(lan.fast().size(), 2u);
  }
  Lan lan = Lan::plain(Profile::Dynamic);
  lan.core(arp_claim(4, v4(4)));
  EXPECT_FALSE(lan.view(v4(4)));
}

TEST(Arp, TargetOutsideThePrefixes) {
  for (Lan& lan : both())
    for (std::string_view target : {"198.51.100.1", "192.0.2.0", "192.0.2.255", "0.0.0.0"})
      for (const ArpFrame& frame : {arp_request(1, ip(target)), arp_probe(1, ip(target))}) {
        const Outcome outcome = lan.member(kAlpha, frame);
        EXPECT_EQ(outcome.verdict, Verdict::OutsidePrefix) << target;
        EXPECT_THAT(outcome.actions, IsEmpty());
      }
}

// B14.
TEST(Arp, MalformedIsDropped) {
  const net::Bytes good = encode_arp(arp_request(1, v4(9)));
  for (Lan& lan : both()) {
    std::vector<net::Bytes> frames;
    for (std::size_t n = 0; n < 42; ++n)
      frames.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    frames.push_back(with(good, 14, {0, 6}));
    frames.push_back(with(good, 16, {0x86, 0xdd}));
    frames.push_back(with(good, 18, {8}));
    frames.push_back(with(good, 19, {16}));
    for (int operation : {0, 3, 8, 25}) frames.push_back(with(good, 20, {0, operation}));
    for (const net::Bytes& frame : frames) {
      const Outcome outcome = lan.member(kAlpha, frame);
      EXPECT_EQ(outcome.verdict, Verdict::MalformedArp) << frame.size();
      EXPECT_THAT(outcome.actions, IsEmpty());
      EXPECT_EQ(lan.core(frame).verdict, Verdict::MalformedArp);
    }
    EXPECT_EQ(lan.counter(Verdict::MalformedArp), 2 * frames.size());
  }
}

// D8, case S: an entry whose MAC is nowhere is a miss.
TEST(Arp, MacThatIsNowhere) {
  Lan lan = learned_lan();
  lan.unplace(mac(2));
  EXPECT_FALSE(lan.fast().contains(v4(2)));
  EXPECT_FALSE(lan.up().contains(v4(2)));
  EXPECT_EQ(lan.member(kAlpha, arp_request(1, v4(2))).verdict, Verdict::Flooded);
  lan.place(mac(2), kBravo);
  EXPECT_EQ(lan.member(kAlpha, arp_request(1, v4(2))).verdict, Verdict::Answered);
}

TEST(Arp, CopyHasNoFrames) {
  for (Profile profile : {Profile::Off, Profile::Dynamic, Profile::Static}) {
    Lan lan = Lan::plain(profile);
    for (const ArpFrame& frame :
         {arp_request(4, v4(9)), arp_request(4, v4(200)), arp_claim(4, v4(4)), arp_probe(4, v4(9))})
      EXPECT_FALSE(has_frames(lan.member(kCharlie, frame, true).actions));
  }
}

// H1.
TEST(Arp, ProfileOffInterceptsNothing) {
  Settings s = all_static();
  s.profile = Profile::Off;
  Lan lan(s);
  lan.place(mac(1), kAlpha);
  lan.remote(9);
  ArpFrame forged = arp_claim(7, v4(1));
  for (const ArpFrame& frame : {arp_request(1, v4(9)), arp_claim(1, v4(1)), forged}) {
    const Outcome outcome = lan.member(kAlpha, frame);
    EXPECT_EQ(outcome.verdict, Verdict::Flooded);
    EXPECT_THAT(outcome.actions, ElementsAre(flood(frame, kAlpha)));
    EXPECT_THAT(lan.core(frame).actions,
                ElementsAre(Action(Flood{encode_arp(frame), std::nullopt, true, false})));
  }
  EXPECT_THAT(lan.fast(), IsEmpty());
  EXPECT_THAT(lan.up(), IsEmpty());
}

TEST(Arp, OtherFramesArePassedOn) {
  Lan lan = static_lan();
  const net::Bytes broadcast = with(encode_arp(arp_request(1, v4(9))), 12, {8, 0});
  EXPECT_THAT(lan.member(kAlpha, broadcast).actions,
              ElementsAre(Action(Flood{broadcast, kAlpha, true, true})));
}

// --- out of the fabric

TEST(ArpFromCore, OnlyToTheOwnersPort) {
  for (Lan& lan : both()) {
    const ArpFrame request = arp_request(9, v4(2));
    const Outcome outcome = lan.core(request);
    EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
    EXPECT_THAT(outcome.actions,
                ElementsAre(Action(Transmit{kBravo, handed(encode_arp(request), 2)})));
  }
}

TEST(ArpFromCore, UnknownAndGratuitousByProfile) {
  Lan dynamic = learned_lan();
  for (const ArpFrame& frame :
       {arp_request(9, v4(200)), arp_claim(9, v4(9)), arp_request(33, v4(9))}) {
    EXPECT_THAT(dynamic.core(frame).actions,
                ElementsAre(Action(Flood{encode_arp(frame), std::nullopt, true, false})));
  }
  Lan fixed_lan = static_lan();
  EXPECT_EQ(fixed_lan.core(arp_request(9, v4(200))).verdict, Verdict::UnknownTarget);
  EXPECT_EQ(fixed_lan.core(arp_claim(9, v4(9))).verdict, Verdict::GratuitousDropped);
  EXPECT_EQ(fixed_lan.core(arp_request(33, v4(9))).verdict, Verdict::SamePort);
  EXPECT_EQ(fixed_lan.core(arp_claim(9, v4(1))).verdict, Verdict::NotOwner);
  EXPECT_EQ(fixed_lan.core(arp_claim(1, v4(1))).verdict, Verdict::NotOwner);
  ArpFrame forged = arp_request(9, v4(2));
  forged.sender_ip = v4(1);
  EXPECT_EQ(fixed_lan.core(forged).verdict, Verdict::SpoofedSender);
  ArpFrame unicast = arp_request(9, v4(2));
  unicast.destination = mac(2);
  const Outcome outcome = fixed_lan.core(unicast);
  EXPECT_EQ(outcome.verdict, Verdict::Forwarded);
  EXPECT_THAT(outcome.actions, IsEmpty());
}
