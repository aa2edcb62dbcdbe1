// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "net/bytes.h"
#include "net/hash.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

using namespace net;

TEST(MacAddress, AllFormsParseAlike) {
  const MacAddress want{{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x0f}};
  for (const char* text :
       {"aa:bb:cc:dd:ee:0f", "AA-BB-CC-DD-EE-0F", "aabb.ccdd.ee0f", "AabbCCddEE0f"})
    EXPECT_EQ(MacAddress::parse(text), want) << text;
  EXPECT_EQ(to_string(want), "aa:bb:cc:dd:ee:0f");
}

TEST(MacAddress, RefusesWhatIsNoMac) {
  for (const char* text :
       {"", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:fg", "aa:bb:cc:dd:ee:ff:00", "aa:bb-cc:dd:ee:ff",
        "aabbcc.ddeeff", "aa:bb:cc:dd:ee:f", ":::::::::::::::::"})
    EXPECT_FALSE(MacAddress::parse(text)) << text;
}

TEST(MacAddress, Kinds) {
  EXPECT_TRUE(kBroadcastMac.is_broadcast());
  EXPECT_TRUE(kBroadcastMac.is_multicast());
  EXPECT_TRUE(MacAddress{}.is_zero());
  EXPECT_FALSE(MacAddress{}.is_unicast());
  EXPECT_TRUE(MacAddress::parse("02:00:00:00:00:01")->is_unicast());
  EXPECT_TRUE(MacAddress::parse("01:80:c2:00:00:00")->is_multicast());
}

TEST(IpAddress, ParseAndPrint) {
  for (const char* text : {"192.0.2.1", "0.0.0.0", "2001:db8::1", "fe80::1", "::"})
    EXPECT_EQ(to_string(IpAddress::parse(text).value()), text);
  for (const char* text : {"", "192.0.2", "192.0.2.256", "2001:db8:::1", "fe80::1%eth0", "a"})
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  EXPECT_EQ(IpAddress::v4(0xc0000201), IpAddress::parse("192.0.2.1"));
  EXPECT_EQ(IpAddress::parse("192.0.2.1")->v4_value(), 0xc0000201u);
}

TEST(IpAddress, FamiliesAreNeverEqual) {
  EXPECT_NE(IpAddress::parse("0.0.0.0"), IpAddress::parse("::"));
}

TEST(IpAddress, Kinds) {
  EXPECT_TRUE(IpAddress::parse("224.0.0.1")->is_multicast());
  EXPECT_TRUE(IpAddress::parse("ff02::1")->is_multicast());
  EXPECT_TRUE(IpAddress::parse("fe80::1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("169.254.0.1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("::1")->is_loopback());
  EXPECT_TRUE(IpAddress::parse("127.1.2.3")->is_loopback());
  EXPECT_TRUE(IpAddress::parse("::")->is_unspecified());
}

TEST(IpPrefix, ContainsAndMasks) {
  const auto prefix = IpPrefix::parse("192.0.2.77/26").value();
  EXPECT_TRUE(prefix.contains(*IpAddress::parse("192.0.2.64")));
  EXPECT_TRUE(prefix.contains(*IpAddress::parse("192.0.2.127")));
  EXPECT_FALSE(prefix.contains(*IpAddress::parse("192.0.2.128")));
  EXPECT_FALSE(prefix.contains(*IpAddress::parse("::192.0.2.64")));
  EXPECT_EQ(to_string(prefix.masked()), "192.0.2.64/26");
  EXPECT_TRUE(IpPrefix::parse("0.0.0.0/0")->contains(*IpAddress::parse("255.255.255.255")));
  EXPECT_EQ(to_string(IpPrefix::parse("2001:db8:ffff::1/33")->masked()), "2001:db8:8000::/33");
  for (const char* text : {"192.0.2.0", "192.0.2.0/33", "192.0.2.0/", "x/1", "::/129", "::/-1"})
    EXPECT_FALSE(IpPrefix::parse(text)) << text;
}

TEST(IpPrefix, NetworkAndBroadcast) {
  const auto v4 = IpPrefix::parse("192.0.2.64/26").value();
  EXPECT_TRUE(v4.is_network_or_broadcast(*IpAddress::parse("192.0.2.64")));
  EXPECT_TRUE(v4.is_network_or_broadcast(*IpAddress::parse("192.0.2.127")));
  EXPECT_FALSE(v4.is_network_or_broadcast(*IpAddress::parse("192.0.2.65")));
  EXPECT_FALSE(
      IpPrefix::parse("192.0.2.0/31")->is_network_or_broadcast(*IpAddress::parse("192.0.2.0")));
  EXPECT_TRUE(
      IpPrefix::parse("2001:db8::/64")->is_network_or_broadcast(*IpAddress::parse("2001:db8::")));
}

TEST(SolicitedNode, LowTwentyFourBits) {
  EXPECT_EQ(to_string(solicited_node(*IpAddress::parse("2001:db8::12:3456"))), "ff02::1:ff12:3456");
}

TEST(RouteDistinguisher, TextRoundTrip) {
  for (const char* text : {"65000:100", "192.0.2.1:7", "4200000000:9", "0:0"})
    EXPECT_EQ(to_string(RouteDistinguisher::parse(text).value()), text);
  for (const char* text : {"", "1", "192.0.2.1:65536", "4200000000:65536", "a:b", "1:2:3"})
    EXPECT_FALSE(RouteDistinguisher::parse(text)) << text;
}

TEST(ByteReader, ShortReadEmptiesAndFails) {
  const uint8_t data[] = {1, 2, 3};
  ByteReader in(data);
  EXPECT_EQ(in.u16(), 0x0102);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(in.done());
  EXPECT_EQ(in.u8(), 0);
}

TEST(ByteReader, SubReaderIsBounded) {
  const uint8_t data[] = {1, 2, 3, 4};
  ByteReader in(data);
  ByteReader inner = in.sub(2);
  EXPECT_EQ(inner.u24(), 0u);
  EXPECT_FALSE(inner.ok());
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.u16(), 0x0304);
  EXPECT_FALSE(in.sub(1).ok());
}

TEST(ByteWriter, PatchAndLimit) {
  ByteWriter out(5);
  const auto length = out.reserve(2);
  out.u24(0x010203);
  out.patch_u16(length, 3);
  EXPECT_TRUE(out.ok());
  EXPECT_EQ(out.take(), (Bytes{0, 3, 1, 2, 3}));
  ByteWriter small(1);
  small.u16(1);
  EXPECT_FALSE(small.ok());
  ByteWriter patched;
  const auto at = patched.reserve(1);
  patched.patch_u8(at, 256);
  EXPECT_FALSE(patched.ok());
}

TEST(Hash, SeedAndLengthMatter) {
  const uint8_t zeros[16] = {};
  EXPECT_NE(hash_bytes(std::span(zeros).first(3)), hash_bytes(std::span(zeros).first(4)));
  EXPECT_NE(hash_bytes(zeros, 1), hash_bytes(zeros, 2));
}
