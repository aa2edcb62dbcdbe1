// SPDX-License-Identifier: GPL-2.0-or-later
// The lab's own tools: every named frame is counted as what it is, and each fault of an answer is
// seen.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "frame_kinds.h"

namespace {

using lab::FrameClass;
const net::MacAddress kOwn({2, 0, 0, 0, 0, 9}), kOther({2, 0, 0, 0, 0, 2});
const lab::Sender kSender{net::MacAddress({2, 0, 0, 0, 0, 1}), *net::IpAddress::parse("192.0.2.1"),
                          *net::IpAddress::parse("2001:db8:1::1")};

TEST(FrameKinds, EachNamedFrameHasItsClass) {
  const std::map<std::string_view, FrameClass> expected{
      {"arp", FrameClass::ArpRequest},
      {"ns", FrameClass::Ns},
      {"gratuitous-arp", FrameClass::GratuitousArp},
      {"gratuitous-reply", FrameClass::GratuitousArp},
      {"unsolicited-na", FrameClass::UnsolicitedNa},
      {"rs", FrameClass::Rs},
      {"ra", FrameClass::Ra},
      {"stp", FrameClass::Stp},
      {"lldp", FrameClass::Lldp},
      {"lacp", FrameClass::Lacp},
      {"cdp", FrameClass::Cdp},
      {"dhcp", FrameClass::Dhcp},
      {"dhcpv6", FrameClass::Dhcp},
      {"igmp", FrameClass::Igmp},
      {"mld", FrameClass::Mld},
      {"ospf", FrameClass::Ospf},
      {"broadcast", FrameClass::OtherBroadcast},
      {"multicast", FrameClass::OtherMulticast},
      {"unknown-unicast", FrameClass::UnknownUnicast}};
  ASSERT_EQ(expected.size(), lab::frame_names().size());
  for (const auto name : lab::frame_names()) {
    const auto frame = lab::named_frame(name, kSender);
    ASSERT_TRUE(frame) << name;
    EXPECT_EQ(lab::classify(*frame, kOwn), expected.at(name)) << name;
    for (std::size_t n = 0; n < frame->size(); ++n)  // a short frame is some class, not a crash
      (void)lab::classify(std::span(*frame).first(n), kOwn);
  }
  EXPECT_FALSE(lab::named_frame("nonsense", kSender));
}

// An answer as it must be, for ARP by hand from RFC 826, for ND from RFC 4861.
net::Bytes reply() {
  net::ByteWriter w;
  w.bytes(kSender.mac.bytes());
  w.bytes(kOther.bytes());
  w.u16(0x0806);
  w.u64(0x0001080006040002);
  w.bytes(kOther.bytes());
  w.u32(0xc0000202);
  w.bytes(kSender.mac.bytes());
  w.u32(0xc0000201);
  w.reserve(18);
  return w.take();
}
net::Bytes advertisement() {
  const auto target = *net::IpAddress::parse("2001:db8:1::2");
  net::ByteWriter m;
  m.u32(0x88000000);
  m.u32(0xe0000000);
  m.bytes(target.bytes());
  m.u16(0x0201);
  m.bytes(kOther.bytes());
  m.patch_u16(2, lab::icmpv6_checksum(target.bytes(), kSender.v6.bytes(), m.view()));
  net::ByteWriter w;
  w.bytes(kSender.mac.bytes());
  w.bytes(kOther.bytes());
  w.u16(0x86dd);
  w.u32(0x60000000);
  w.u16(32);
  w.u16(0x3aff);
  w.bytes(target.bytes());
  w.bytes(kSender.v6.bytes());
  w.bytes(m.view());
  return w.take();
}

// `from` to `to`: octets whose value is free.
void expect_every_fault_seen(const net::Bytes& good, const lab::Expected& expected,
                             std::size_t checked, std::size_t from, std::size_t to) {
  EXPECT_EQ(lab::fault_of_answer(good, kSender, expected), std::nullopt);
  EXPECT_EQ(lab::answered_address(good), expected.target);
  for (std::size_t i = 0; i < checked; ++i) {
    if (i >= from && i < to) continue;
    net::Bytes bad = good;
    bad[i] ^= 0x10;
    EXPECT_NE(lab::fault_of_answer(bad, kSender, expected), std::nullopt) << "octet " << i;
  }
}

TEST(FrameKinds, EveryOctetOfAnArpReplyCounts) {
  expect_every_fault_seen(reply(), {*net::IpAddress::parse("192.0.2.2"), kOther}, 42, 0, 0);
}

TEST(FrameKinds, EveryOctetOfAnAdvertisementCounts) {  // but for the flow label
  const auto good = advertisement();
  expect_every_fault_seen(good, {*net::IpAddress::parse("2001:db8:1::2"), kOther}, good.size(), 15,
                          18);
}

TEST(FrameKinds, RequestsAreWhatTheRfcsSay) {
  const auto ns = lab::neighbor_solicitation(kSender, *net::IpAddress::parse("2001:db8:1::2"));
  EXPECT_EQ(net::MacAddress::from_bytes(ns), net::MacAddress({0x33, 0x33, 0xff, 0, 0, 2}));
  EXPECT_EQ(ns.size(), 86U);
  EXPECT_EQ(lab::icmpv6_checksum(std::span(ns).subspan(22, 16), std::span(ns).subspan(38, 16),
                                 std::span(ns).subspan(54, 32)),
            0);
  EXPECT_EQ(lab::answered_address(ns), std::nullopt);
  EXPECT_EQ(lab::answered_address(lab::arp_request(kSender, *net::IpAddress::parse("192.0.2.2"))),
            std::nullopt);
}

TEST(FrameKinds, VxlanIsOpened) {
  net::ByteWriter w;
  w.reserve(12);
  w.u16(0x0800);
  w.u32(0x45000000);
  w.u32(0);
  w.u32(0x40110000);
  w.u64(0);
  w.u32(50000u << 16 | 4789u);
  w.u32(0);
  w.u64(0x0800000000006400);
  const auto inner = *lab::named_frame("arp", kSender);
  w.bytes(inner);
  const auto found = lab::inside_vxlan(w.view());
  ASSERT_TRUE(found);
  EXPECT_EQ(lab::classify(*found, kOwn), FrameClass::ArpRequest);
  EXPECT_FALSE(lab::inside_vxlan(inner));
}

}  // namespace
