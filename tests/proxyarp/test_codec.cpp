// SPDX-License-Identifier: GPL-2.0-or-later
// Golden bytes of every ARP and ND packet, made by scapy, in both directions; and what is refused.
#include <gtest/gtest.h>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;

namespace {

const net::Bytes kRequest = padded(
    hex("ffffffffffff02000000000108060001080006040001020000000001c0000201000000000000c0000209"));
const net::Bytes kReply = padded(
    hex("02000000000102000000000908060001080006040002020000000009c0000209020000000001c0000201"));
const net::Bytes kProbe = padded(
    hex("ffffffffffff0200000000010806000108000604000102000000000100000000000000000000c0000209"));
const net::Bytes kProbeReply = padded(
    hex("02000000000102000000000908060001080006040002020000000009c000020902000000000100000000"));
const net::Bytes kAnnouncement = padded(
    hex("ffffffffffff02000000000908060001080006040001020000000009c0000209000000000000c0000209"));

const net::Bytes kNs =
    hex("3333ff00000902000000000186dd6000000000203aff20010db8000100000000000000000001ff020000000000"
        "000000"
        "0001ff00000987001c170000000020010db80001000000000000000000090101020000000001");
const net::Bytes kNa =
    hex("02000000000102000000000986dd6000000000203aff20010db800010000000000000000000920010db8000100"
        "000000"
        "00000000000188000a59e000000020010db80001000000000000000000090201020000000009");
const net::Bytes kDad =
    hex("3333ff00000902000000000186dd6000000000183aff00000000000000000000000000000000ff020000000000"
        "000000"
        "0001ff00000987004cdc0000000020010db8000100000000000000000009");
const net::Bytes kDadNonce =
    hex("3333ff00000902000000000186dd6000000000203aff00000000000000000000000000000000ff020000000000"
        "000000"
        "0001ff000009870053e50000000020010db80001000000000000000000090e01a1a2a3a4a5a6");
const net::Bytes kUnsolicited =
    hex("33330000000102000000000986dd6000000000203aff20010db8000100000000000000000009ff020000000000"
        "000000"
        "00000000000188007910a000000020010db80001000000000000000000090201020000000009");

NdFrame dad_with_nonce() {
  NdFrame nd = dad_ns(1, kTarget6);
  nd.options.push_back({kOptionNonce, hex("a1a2a3a4a5a6")});
  return nd;
}

}  // namespace

TEST(ArpCodec, GoldenBothWays) {
  const ArpFrame request = arp_request(1, kTarget4), probe = arp_probe(1, kTarget4);
  const std::pair<ArpFrame, net::Bytes> pairs[] = {
      {request, kRequest},
      {arp_reply(request, mac(9)), kReply},
      {probe, kProbe},
      {arp_reply(probe, mac(9)), kProbeReply},
      {arp_announcement(kTarget4, mac(9)), kAnnouncement},
  };
  for (const auto& [value, bytes] : pairs) {
    EXPECT_EQ(encode_arp(value), bytes);
    ASSERT_TRUE(decode_arp(bytes));
    EXPECT_EQ(*decode_arp(bytes), value);
    // Without padding, and with more of it.
    EXPECT_EQ(decode_arp(std::span(bytes).first(42)), value);
    net::Bytes longer = bytes;
    longer.resize(200, 0xee);
    EXPECT_EQ(decode_arp(longer), value);
  }
}

TEST(ArpCodec, Kinds) {
  EXPECT_TRUE(decode_arp(kProbe)->is_probe());
  EXPECT_FALSE(decode_arp(kProbe)->is_gratuitous());
  EXPECT_TRUE(decode_arp(kAnnouncement)->is_gratuitous());
  EXPECT_FALSE(decode_arp(kRequest)->is_probe());
  EXPECT_FALSE(decode_arp(kRequest)->is_gratuitous());
}

TEST(ArpCodec, RefusesAllElse) {
  for (std::size_t n = 0; n < 42; ++n)
    EXPECT_EQ(decode_arp(std::span(kRequest).first(n)).error(), ArpError::Truncated) << n;
  EXPECT_EQ(decode_arp(with(kRequest, 12, {8, 0})).error(), ArpError::EtherType);
  EXPECT_EQ(decode_arp(with(kRequest, 14, {0, 6})).error(), ArpError::HardwareType);
  EXPECT_EQ(decode_arp(with(kRequest, 16, {0x86, 0xdd})).error(), ArpError::Protocol);
  EXPECT_EQ(decode_arp(with(kRequest, 18, {8})).error(), ArpError::Lengths);
  EXPECT_EQ(decode_arp(with(kRequest, 19, {16})).error(), ArpError::Lengths);
  for (int operation : {0, 3, 4, 8, 9, 25})
    EXPECT_EQ(decode_arp(with(kRequest, 20, {0, operation})).error(), ArpError::Operation);
  EXPECT_EQ(decode_arp(with(kRequest, 20, {1, 1})).error(), ArpError::Operation);
}

TEST(NdCodec, GoldenBothWays) {
  const NdFrame solicitation = ns(1, kTarget6);
  const std::pair<NdFrame, net::Bytes> pairs[] = {
      {solicitation, kNs},
      {neighbor_advertisement(solicitation, mac(9), {true, true}), kNa},
      {dad_ns(1, kTarget6), kDad},
      {dad_with_nonce(), kDadNonce},
      {neighbor_advertisement(dad_with_nonce(), mac(9), {true, true}), kUnsolicited},
      {unsolicited_advertisement(kTarget6, mac(9), {true, true}), kUnsolicited},
  };
  for (const auto& [value, bytes] : pairs) {
    EXPECT_EQ(encode_nd(value), bytes);
    ASSERT_TRUE(decode_nd(bytes));
    EXPECT_EQ(*decode_nd(bytes), value);
    net::Bytes longer = bytes;
    longer.resize(200, 0xee);
    EXPECT_EQ(decode_nd(longer), value);
  }
}

TEST(NdCodec, FlagMatrix) {
  for (bool router : {false, true})
    for (bool over : {false, true})
      for (bool dad : {false, true}) {
        const auto back = decode_nd(encode_nd(neighbor_advertisement(
            dad ? dad_ns(1, kTarget6) : ns(1, kTarget6), mac(9), {router, over})));
        ASSERT_TRUE(back);
        EXPECT_EQ(back->router, router);
        EXPECT_EQ(back->override_flag, over);
        EXPECT_EQ(back->solicited, !dad);
        EXPECT_EQ(back->to, dad ? ip("ff02::1") : v6(1));
        EXPECT_EQ(back->destination, dad ? mac("33:33:00:00:00:01") : mac(1));
        EXPECT_EQ(back->from, kTarget6);
        EXPECT_EQ(back->target, kTarget6);
        EXPECT_EQ(back->link_layer, mac(9));
        EXPECT_EQ(back->source, mac(9));
      }
}

TEST(NdCodec, KnownAndUnknownOptions) {
  EXPECT_FALSE(decode_nd(kDadNonce)->has_option_beyond({1, 14}));
  for (uint8_t type : {uint8_t{2}, uint8_t{3}, uint8_t{13}, uint8_t{200}}) {
    NdFrame nd = ns(1, kTarget6);
    nd.options.push_back({type, hex("000000000000")});
    EXPECT_TRUE(decode_nd(encode_nd(nd))->has_option_beyond({1, 14})) << int{type};
    EXPECT_FALSE(decode_nd(encode_nd(nd))->is_secured());
  }
  for (uint8_t type : {kOptionCga, kOptionRsaSignature}) {
    NdFrame nd = ns(1, kTarget6);
    nd.options.push_back({type, net::Bytes(22, 7)});
    EXPECT_TRUE(decode_nd(encode_nd(nd))->is_secured());
    EXPECT_EQ(decode_nd(encode_nd(nd)), nd);
  }
}

TEST(NdCodec, RefusesWhatRfc4861Section71Says) {
  for (std::size_t n = 0; n < kNs.size(); ++n)
    EXPECT_FALSE(decode_nd(std::span(kNs).first(n))) << n;
  struct Case {
    net::Bytes bytes;
    NdError error;
  };
  const Case cases[] = {
      {with(kNs, 12, {8, 0}), NdError::NotNd},
      {with(kNs, 14, {0x40}), NdError::NotNd},
      {with(kNs, 20, {59}), NdError::NotNd},
      {with_checksum(with(kNs, 54, {134})), NdError::NotNd},
      {with(kNs, 21, {64}), NdError::HopLimit},
      {with(kNs, 21, {254}), NdError::HopLimit},
      {with(kNs, 57, {0x18}), NdError::Checksum},
      {with_checksum(with(kNs, 55, {1})), NdError::Code},
      {with(kNs, 18, {0, 23}), NdError::Length},
      {with(kNs, 18, {0, 33}), NdError::Truncated},
      {with_checksum(with(kNs, 22, {0xff})), NdError::Source},
      {with_checksum(with(kNs, 62, {0xff})), NdError::Target},
      {with_checksum(with(kNs, 79, {0})), NdError::Option},
      {with_checksum(with(kNs, 79, {2})), NdError::Option},
      {with_checksum(with(kNs, 18, {0, 31})), NdError::Option},
      {with_checksum(with(kNs, 18, {0, 25})), NdError::Option},
      // Group of another target, by IPv6 or by Ethernet address; broadcast; all nodes.
      {with_checksum(with(kNs, 77, {8})), NdError::Destination},
      {with(kNs, 5, {8}), NdError::Destination},
      {with(kNs, 0, {255, 255, 255, 255, 255, 255}), NdError::Destination},
      // Duplicate address detection with a source link-layer address, or to one host.
      {with_checksum(with(kNs, 22, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})),
       NdError::SourceLla},
      // S in a multicast advertisement; advertisement from nowhere; for a group.
      {with_checksum(with(kUnsolicited, 58, {0xe0})), NdError::Solicited},
      {with_checksum(with(kNa, 22, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})),
       NdError::Source},
      {with_checksum(with(kNa, 62, {0xff})), NdError::Target},
      {with_checksum(with(kNa, 79, {0})), NdError::Option},
  };
  for (const Case& c : cases) {
    const auto result = decode_nd(c.bytes);
    ASSERT_FALSE(result) << &c - cases;
    EXPECT_EQ(static_cast<int>(result.error()), static_cast<int>(c.error)) << &c - cases;
  }
}

TEST(NdCodec, RefusesALinkLayerAddressTwiceOrOfOtherLength) {
  NdFrame nd = ns(1, kTarget6);
  nd.options.push_back({1, hex("020000000001")});
  EXPECT_EQ(decode_nd(encode_nd(nd)).error(), NdError::Option);
  nd.link_layer.reset();
  nd.options = {{1, net::Bytes(14, 0)}};
  EXPECT_EQ(decode_nd(encode_nd(nd)).error(), NdError::Option);
}

TEST(NdCodec, DadMustGoToTheGroup) {
  NdFrame nd = dad_ns(1, kTarget6);
  nd.to = kTarget6;
  nd.destination = mac(9);
  EXPECT_EQ(decode_nd(encode_nd(nd)).error(), NdError::Destination);
}

TEST(NdCodec, UnicastInAMulticastFrameIsRefused) {
  NdFrame nd = ns(1, kTarget6);
  nd.to = kTarget6;
  EXPECT_EQ(decode_nd(encode_nd(nd)).error(), NdError::Destination);
  nd.destination = mac(9);
  EXPECT_TRUE(decode_nd(encode_nd(nd)));
}

TEST(Ethernet, Classes) {
  EXPECT_EQ(classify({}), FrameClass::Truncated);
  EXPECT_EQ(classify(std::span(kRequest).first(13)), FrameClass::Truncated);
  EXPECT_EQ(classify(kRequest), FrameClass::Arp);
  EXPECT_EQ(classify(kNs), FrameClass::Nd);
  EXPECT_EQ(classify(kNa), FrameClass::Nd);
  EXPECT_EQ(classify(with(kRequest, 12, {8, 0})), FrameClass::Other);
  EXPECT_EQ(classify(with(kNs, 54, {134})), FrameClass::Other);  // router advertisement
  EXPECT_EQ(classify(with(kNs, 20, {17})), FrameClass::Other);
  for (std::size_t n = 14; n < 55; ++n)
    EXPECT_EQ(classify(std::span(kNs).first(n)), FrameClass::HiddenNd) << n;
}

TEST(Ethernet, NdBehindExtensionHeaders) {
  for (int header : {0, 43, 44, 51, 60}) {
    net::Bytes bytes = with(kNs, 20, {header});
    // Eight octets, for the authentication header (which counts in words) as well.
    const net::Bytes extension = hex("3a00000000000000");
    bytes.insert(bytes.begin() + 54, extension.begin(), extension.end());
    EXPECT_EQ(classify(bytes), FrameClass::HiddenNd) << header;
    EXPECT_EQ(classify(with(bytes, 54, {17})), FrameClass::Other) << header;
    EXPECT_EQ(classify(with(bytes, 62, {128})), FrameClass::Other) << header;  // echo request
    EXPECT_EQ(classify(std::span(bytes).first(58)), FrameClass::HiddenNd) << header;
  }
}

TEST(Ethernet, Eui64) {
  EXPECT_EQ(eui64_link_local(mac("02:00:00:00:00:09")), ip("fe80::ff:fe00:9"));
  EXPECT_EQ(eui64_link_local(mac("00:11:22:33:44:55")), ip("fe80::211:22ff:fe33:4455"));
}
