// SPDX-License-Identifier: GPL-2.0-or-later
// Rows B: replies (RFC 9161 sections 3 and 3.3). B24 and B25 (with the kernel's own stack) need a
// wire and are lab tests.
#include "tests/proxyarp/rows/harness.h"

using namespace proxyarp;
using namespace proxyarp::rows;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

NdFrame with_option(NdFrame nd, uint8_t type, std::size_t size = 6) {
  nd.options.push_back({type, net::Bytes(size, 1)});
  return nd;
}
// All have announced themselves, and that is over.
void settle_in(Exchange& x) {
  for (uint8_t n : Numbers{1, 2, 3, 4}) x.announce(n);
  x.advance(2s);
  x.forget();
}

}  // namespace

TEST_P(Rows, B1_KnownRemoteIsAnsweredAndSeenByNobodyElse) {
  Exchange x(*path, dynamic());
  settle_in(x);
  EXPECT_EQ(x.resolve(1, v4(3)), mac(3));
  EXPECT_EQ(x.resolve(1, v6(3)), mac(3));
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
}

TEST_P(Rows, B2_ReplyIsRightToTheByte) {
  Exchange x(*path, dynamic());
  settle_in(x);
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(3))), Verdict::Answered);
  EXPECT_THAT(x.h(1).heard,
              ElementsAre(padded(hex("0200000000010200000000030806000108000604000202000000"
                                     "0003c0000203020000000001c0000201"))));
  EXPECT_GE(x.h(1).heard[0].size(), 60u);
}

TEST_P(Rows, B3_EthernetSourceIsTheOwners) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), arp_request(1, v4(3)));
  x.send(x.h(1), ns(1, v6(3)));
  ASSERT_EQ(x.h(1).heard.size(), 2u);
  for (const net::Bytes& frame : x.h(1).heard)
    EXPECT_EQ(net::MacAddress::from_bytes(std::span(frame).subspan(6)), mac(3));
}

TEST_P(Rows, B4_AdvertisementNamesTheEntry) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), ns(1, v6(3)));
  ASSERT_EQ(x.h(1).heard.size(), 1u);
  const auto nd = decode_nd(x.h(1).heard[0]);
  ASSERT_TRUE(nd);
  EXPECT_EQ(nd->from, v6(3));
  EXPECT_EQ(nd->target, v6(3));
  EXPECT_EQ(nd->link_layer, mac(3));
}

TEST_P(Rows, B5_OwnerBehindTheAskingPortIsNotAnsweredFor) {
  Exchange x(*path, dynamic());
  settle_in(x);
  EXPECT_EQ(x.send(x.h(2), arp_request(22, v4(2))), Verdict::SamePort);
  EXPECT_EQ(x.send(x.h(2), ns(22, v6(2))), Verdict::SamePort);
  EXPECT_EQ(answers_heard(x.h(2), v4(2)) + answers_heard(x.h(2), v6(2)), 0u);
}

TEST_P(Rows, B6_KnownLocalIsAnsweredAndNotFlooded) {
  Exchange x(*path, dynamic());
  settle_in(x);
  EXPECT_EQ(x.resolve(1, v4(2)), mac(2));
  EXPECT_EQ(x.resolve(1, v6(2)), mac(2));
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
}

TEST_P(Rows, B7_RequestsProbesSolicitationsAndDadAreAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  EXPECT_EQ(x.send(x.h(1), arp_request(1, v4(3))), Verdict::Answered);
  EXPECT_EQ(x.send(x.h(1), arp_probe(1, v4(3))), Verdict::Answered);
  EXPECT_EQ(x.send(x.h(1), ns(1, v6(3))), Verdict::Answered);
  EXPECT_EQ(x.send(x.h(1), dad_ns(1, v6(3))), Verdict::Answered);
  EXPECT_EQ(x.h(1).heard.size(), 4u);
}

TEST_P(Rows, B7_ProbesAsTheSettingsSay) {
  Settings s = dynamic();
  s.probes = Probes::Pass;
  Exchange pass(*path, s);
  settle_in(pass);
  EXPECT_EQ(pass.send(pass.h(1), arp_probe(1, v4(3))), Verdict::Forwarded);
  EXPECT_EQ(pass.h(3).heard.size(), 1u);
  EXPECT_EQ(pass.send(pass.h(1), dad_ns(1, v6(2))), Verdict::Forwarded);
  EXPECT_EQ(pass.h(2).heard.size(), 1u);
  s.probes = Probes::Ignore;
  Exchange ignore(*path, s);
  settle_in(ignore);
  EXPECT_EQ(ignore.send(ignore.h(1), arp_probe(1, v4(3))), Verdict::ProbeIgnored);
  EXPECT_EQ(ignore.resolve(1, v4(3)), mac(3));
  EXPECT_THAT(ignore.h(3).heard, IsEmpty());
}

TEST_P(Rows, B8_UnicastGoesToTheOwnerAndIsNotAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  ArpFrame arp = arp_request(1, v4(3));
  arp.destination = mac(3);
  NdFrame nud = ns(1, v6(3));
  nud.destination = mac(3);
  nud.to = v6(3);
  x.send(x.h(1), arp);
  x.send(x.h(1), nud);
  EXPECT_THAT(x.h(3).heard, ElementsAre(encode_arp(arp), encode_nd(nud)));
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  x.h(3).alive = false;
  x.send(x.h(1), arp);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
}

TEST_P(Rows, B9_FlagMatrix) {
  for (const bool anycast : {false, true})
    for (const bool router : {false, true})
      for (const bool over : {false, true})
        for (const bool dad : {false, true}) {
          Settings s = dynamic();
          s.anycast = anycast;
          Exchange x(*path, s, 1);
          x.remote_route(0, harness::Remote(9, 9, "2001:db8:1::63").nd(router, over, false));
          x.advance(2s);
          x.forget();
          x.send(x.h(1), dad ? dad_ns(1, v6(99)) : ns(1, v6(99)));
          ASSERT_EQ(x.h(1).heard.size(), 1u);
          const auto nd = decode_nd(x.h(1).heard[0]);
          ASSERT_TRUE(nd);
          EXPECT_EQ(nd->router, router);
          EXPECT_EQ(nd->solicited, !dad);
          EXPECT_EQ(nd->override_flag, over || !anycast);
        }
}

TEST_P(Rows, B10_AnswerToDadGoesToAllNodes) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), dad_ns(1, v6(3)));
  x.send(x.h(1), ns(1, v6(3)));
  ASSERT_EQ(x.h(1).heard.size(), 2u);
  const auto to_all = decode_nd(x.h(1).heard[0]), to_one = decode_nd(x.h(1).heard[1]);
  ASSERT_TRUE(to_all && to_one);
  EXPECT_EQ(to_all->to, ip("ff02::1"));
  EXPECT_EQ(to_all->destination, mac("33:33:00:00:00:01"));
  EXPECT_FALSE(to_all->solicited);
  EXPECT_EQ(to_one->to, v6(1));
  EXPECT_EQ(to_one->destination, mac(1));
  EXPECT_TRUE(to_one->solicited);
}

TEST_P(Rows, B11_OurAdvertisementIsValid) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), ns(1, v6(3)));
  ASSERT_EQ(x.h(1).heard.size(), 1u);
  const net::Bytes& frame = x.h(1).heard[0];
  EXPECT_EQ(frame.at(21), 255);       // hop limit
  EXPECT_EQ(frame.at(55), 0);         // code
  EXPECT_EQ(frame.at(58) & 0x1f, 0);  // reserved
  EXPECT_EQ((std::vector<int>{frame.at(59), frame.at(60), frame.at(61)}), (std::vector{0, 0, 0}));
  EXPECT_EQ(with_checksum(frame), frame);
  EXPECT_TRUE(decode_nd(frame)->link_layer);
}

TEST_P(Rows, B12_InvalidSolicitationsAreNotAnswered) {
  const net::Bytes good = encode_nd(ns(1, v6(3)));
  NdFrame dad_with_source = ns(1, v6(3));
  dad_with_source.from = net::IpAddress::v6({});
  NdFrame dad_unicast = dad_ns(1, v6(3));
  dad_unicast.to = v6(3);
  const net::Bytes bad[] = {with(good, 21, {64}),                   // hop limit
                            with(good, 57, {1}),                    // checksum
                            with_checksum(with(good, 55, {1})),     // code
                            with(good, 18, {0, 23}),                // length
                            with_checksum(with(good, 62, {0xff})),  // multicast target
                            with_checksum(with(good, 79, {0})),     // option of length zero
                            encode_nd(dad_with_source),             // SLLA in DAD
                            encode_nd(dad_unicast)};                // DAD not to the group
  Exchange x(*path, dynamic());
  settle_in(x);
  for (const net::Bytes& frame : bad) EXPECT_EQ(x.send(x.h(1), frame), Verdict::MalformedNd);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  EXPECT_EQ(x.counter(Verdict::MalformedNd), std::size(bad));
}

TEST_P(Rows, B13_GroupMustBeTheTargets) {
  Exchange x(*path, dynamic());
  settle_in(x);
  NdFrame other = ns(1, v6(3));
  other.to = net::solicited_node(v6(2));
  other.destination = multicast_mac(other.to);
  EXPECT_EQ(x.send(x.h(1), other), Verdict::MalformedNd);
  NdFrame mismatch = ns(1, v6(3));
  mismatch.destination = mac("33:33:ff:00:00:02");
  EXPECT_EQ(x.send(x.h(1), mismatch), Verdict::MalformedNd);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
}

TEST_P(Rows, B14_OnlyEthernetAndIpv4IsAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  const net::Bytes good = encode_arp(arp_request(1, v4(3)));
  std::vector<net::Bytes> bad{with(good, 14, {0, 6}), with(good, 18, {8}), with(good, 19, {16})};
  for (int operation : {3, 8, 25}) bad.push_back(with(good, 20, {0, operation}));
  for (std::size_t n = 14; n < 42; ++n)
    bad.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
  for (const net::Bytes& frame : bad) EXPECT_EQ(x.send(x.h(1), frame), Verdict::MalformedArp);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  EXPECT_THAT(x.h(2).heard, IsEmpty());
}

TEST_P(Rows, B15_UnknownOptionUnderEachPolicy) {
  const NdFrame known = with_option(ns(1, v6(3)), 200), unknown = with_option(ns(1, v6(77)), 200);
  const auto make = [&](UnknownOptions policy) {
    Settings s = dynamic();
    s.unknown_options = policy;
    auto x = std::make_unique<Exchange>(*path, s);
    settle_in(*x);
    return x;
  };
  auto reply = make(UnknownOptions::Reply);
  EXPECT_EQ(reply->send(reply->h(1), known), Verdict::Answered);
  EXPECT_EQ(reply->send(reply->h(1), unknown), Verdict::Flooded);
  EXPECT_EQ(reply->h(2).heard.size(), 1u);
  auto discard = make(UnknownOptions::Discard);
  EXPECT_EQ(discard->send(discard->h(1), known), Verdict::UnknownOption);
  EXPECT_EQ(discard->send(discard->h(1), unknown), Verdict::UnknownOption);
  EXPECT_THAT(discard->h(2).heard, IsEmpty());
  EXPECT_THAT(discard->h(3).heard, IsEmpty());
  auto unicast = make(UnknownOptions::UnicastForward);
  EXPECT_EQ(unicast->send(unicast->h(1), known), Verdict::Forwarded);
  EXPECT_EQ(unicast->h(3).heard.size(), 1u);
  EXPECT_THAT(unicast->h(2).heard, IsEmpty());
  EXPECT_EQ(unicast->send(unicast->h(1), unknown), Verdict::Flooded);
  auto forward = make(UnknownOptions::Forward);
  EXPECT_EQ(forward->send(forward->h(1), known), Verdict::Flooded);
  EXPECT_EQ(forward->h(2).heard.size(), 1u);
  EXPECT_EQ(answers_heard(forward->h(1), v6(3)), 0u);
}

TEST_P(Rows, B16_NonceIsKnown) {
  Settings s = dynamic();
  s.unknown_options = UnknownOptions::Discard;
  Exchange x(*path, s);
  settle_in(x);
  EXPECT_EQ(x.send(x.h(1), with_option(dad_ns(1, v6(3)), kOptionNonce)), Verdict::Answered);
  EXPECT_EQ(answers_heard(x.h(1), v6(3)), 1u);
}

TEST_P(Rows, B17_ProbeOfAStrangerIsAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), arp_probe(11, v4(3)));
  EXPECT_THAT(x.h(1).heard,
              ElementsAre(padded(hex("02000000000b0200000000030806000108000604000202000000"
                                     "0003c000020302000000000b00000000"))));
  EXPECT_FALSE(x.binding(net::IpAddress{}));
  EXPECT_EQ(x.binding(v4(3))->mac, mac(3));
}

TEST_P(Rows, B18_ProbeOfTheOwnerIsNotAnswered) {
  Settings s = provisioned();
  s.bindings[0].macs = {mac(1), mac(11)};
  s.bindings[1].macs = {mac(1), mac(11)};
  Exchange x(*path, s);
  x.bring_up({1, 2, 3});
  x.advance(2s);
  x.forget();
  for (uint8_t m : Numbers{uint8_t{1}, uint8_t{11}})
    for (uint8_t at : Numbers{uint8_t{1}, uint8_t{2}}) {
      EXPECT_EQ(x.send(x.h(at), arp_probe(m, v4(1))), Verdict::OwnerAsked);
      EXPECT_EQ(x.send(x.h(at), dad_ns(m, v6(1))), Verdict::OwnerAsked);
    }
  EXPECT_EQ(answers_heard(x.h(1), v4(1)) + answers_heard(x.h(2), v4(1)), 0u);
  // A learned owner that came back at another port.
  Exchange learned(*path, dynamic());
  learned.announce(1);
  EXPECT_EQ(learned.send(learned.h(2), arp_probe(1, v4(1))), Verdict::OwnerAsked);
}

TEST_P(Rows, B19_AnnouncementsAreNeverAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  x.send(x.h(1), arp_claim(1, v4(1)));
  x.send(x.h(1), arp_claim(1, v4(3)));
  EXPECT_EQ(answers_heard(x.h(1), v4(1)) + answers_heard(x.h(1), v4(3)), 0u);
}

TEST_P(Rows, B20_OurAnnouncementIsARequest) {
  Exchange x(*path, dynamic(), 1);
  x.remote_route(0, harness::Remote(9, 9, "192.0.2.99"));
  EXPECT_THAT(x.h(1).heard,
              ElementsAre(padded(hex("ffffffffffff0200000000090806000108000604000102000000"
                                     "0009c0000263000000000000c0000263"))));
}

TEST_P(Rows, B21_TwoThatProbeSeeEachOther) {
  for (const Profile profile : {Profile::Dynamic, Profile::Static}) {
    Exchange x(*path, provisioned(profile));
    x.bring_up({1, 2, 3, 4});
    x.advance(2s);
    x.forget();
    x.send(x.h(1), dad_ns(1, v6(77)));
    x.send(x.h(3), dad_ns(3, v6(77)));
    EXPECT_THAT(x.h(3).heard, testing::Contains(encode_nd(dad_ns(1, v6(77)))));
    EXPECT_THAT(x.h(1).heard, testing::Contains(encode_nd(dad_ns(3, v6(77)))));
    // Reserved for one of them: not flooded.
    x.forget();
    x.cut(x.h(4));
    x.send(x.h(1), dad_ns(1, v6(4)));
    EXPECT_EQ(x.h(2).heard.size(), profile == Profile::Static ? 0u : 1u);
  }
}

TEST_P(Rows, B22_DefenceReachesTheProber) {
  Settings s = dynamic();
  s.flood_router_na = s.flood_host_na = FloodTo{false, false};
  Exchange x(*path, s);
  x.bring_up({1, 3});
  x.h(3).answers = {v6(77)};  // unknown to all PEs
  x.send(x.h(1), dad_ns(1, v6(77)));
  EXPECT_GE(answers_heard(x.h(1), v6(77)), 1u);
  // Unasked, it is not flooded.
  x.advance(10s);
  x.forget();
  x.send(x.h(3), na(3, v6(77)));
  EXPECT_THAT(x.core(1), IsEmpty());
}

TEST_P(Rows, B23_OptimisticAddressesAreNotAnsweredFor) {
  Exchange x(*path, dynamic());
  x.bring_up({1, 2});
  NdFrame optimistic = na(2, v6(20));
  optimistic.override_flag = false;
  x.send(x.h(2), optimistic);
  x.forget();
  EXPECT_EQ(x.send(x.h(1), ns(1, v6(20))), Verdict::Flooded);
  EXPECT_EQ(answers_heard(x.h(1), v6(20)), 0u);
  EXPECT_THAT(x.h(2).heard, testing::Contains(encode_nd(ns(1, v6(20)))));
}

// The responder's part: the PE's own address has one answer, whoever gives it.
TEST_P(Rows, B25_OwnAddressOfThePeIsAnsweredOnce) {
  Responder::Identity identity;
  identity.ipv4 = v4(250);
  identity.ipv6 = v6(250);
  Settings s = dynamic();
  s.announcements_per_second = 0;
  Exchange x(*path, s, 1, identity);
  EXPECT_EQ(x.resolve(1, v4(250)), pe_mac(0));
  EXPECT_EQ(x.resolve(1, v6(250)), pe_mac(0));
  EXPECT_EQ(x.h(1).heard.size(), 2u);
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_EQ(x.send(x.h(2), arp_claim(2, v4(250))), Verdict::NotOwner);
  // The stack answers itself.
  identity.stack_answers = true;
  Exchange stack(*path, s, 1, identity);
  EXPECT_FALSE(stack.resolve(1, v4(250)));
  EXPECT_THAT(stack.h(2).heard, IsEmpty());
}

TEST_P(Rows, B26_ForgedSendersAreNotAnswered) {
  Exchange x(*path, dynamic());
  settle_in(x);
  ArpFrame arp = arp_request(1, v4(3));
  arp.sender_mac = mac(7);
  NdFrame nd = ns(1, v6(3));
  nd.link_layer = mac(7);
  EXPECT_EQ(x.send(x.h(1), arp), Verdict::SpoofedSender);
  EXPECT_EQ(x.send(x.h(1), nd), Verdict::SpoofedSender);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_EQ(x.counter(Verdict::SpoofedSender), 2u);
  EXPECT_EQ(x.count_alarms(AlarmKind::SpoofedSender), 2u);
  EXPECT_FALSE(x.offenders(OffenderKind::Spoofer).empty());
}

// B27, the responder's part: work for a frame is bounded, and nothing is flooded in an overflow.
TEST_P(Rows, B27_AFloodOfQuestionsFillsNothing) {
  Settings s = sponging(Profile::Static);
  Exchange x(*path, s, 1);
  x.bring_up({1, 2});
  x.advance(10s);
  x.forget();
  for (uint32_t i = 0; i < 100'000; ++i) {
    const auto target = net::IpAddress::v6(
        {0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 1, 0, static_cast<uint8_t>(i >> 24),
         static_cast<uint8_t>(i >> 16), static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)});
    x.send(x.h(1), ns(1, target));
  }
  std::size_t watched = 0;
  x.responder().for_each_sponged([&](const SpongeView&) { ++watched; });
  EXPECT_LE(watched, 16384u);
  EXPECT_THAT(x.h(2).heard, IsEmpty());
  EXPECT_THAT(x.core(), IsEmpty());
  EXPECT_EQ(x.resolve(2, v6(1)), mac(1));
}

// B28: tags are the data path's matter; a frame of another EtherType than ARP or ND is none.
TEST_P(Rows, B28_TaggedFramesAreNotTakenForArp) {
  Exchange x(*path, dynamic());
  settle_in(x);
  net::Bytes tagged = encode_arp(arp_request(1, v4(3)));
  const net::Bytes tag = hex("81000005");
  tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
  x.send(x.h(1), tagged);
  EXPECT_THAT(x.h(1).heard, IsEmpty());
}
