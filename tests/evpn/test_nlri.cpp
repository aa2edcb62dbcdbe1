// SPDX-License-Identifier: GPL-2.0-or-later
// EVPN NLRI: golden pairs both ways, route keys, and what is wrong with what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/message.h"
#include "evpn/nlri.h"

namespace {

using bgp::NlriStatus;
using evpn::Route;
using net::Bytes;

Bytes hex(std::string_view text) {
  Bytes out;
  std::string digits;
  for (const char c : text)
    if (c != ' ') digits += c;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return out;
}

net::RouteDistinguisher rd() { return *net::RouteDistinguisher::parse("10.0.0.1:100"); }
net::Esi esi() { return net::Esi::from_bytes(hex("03 443839ffff01 000001")); }
net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }
net::MacAddress mac(const char* text) { return *net::MacAddress::parse(text); }

struct Golden {
  const char* name;
  std::string wire;
  Route route;
  std::string key;  // without the type octet
  std::string text;
};

const std::string kRd = "0001 0a000001 0064 ";
const std::string kEsi = "03443839ffff01000001 ";
const std::string kNoEsi = "00000000000000000000 ";
const std::string kV6 = "20010db8000000000000000000000009 ";

std::vector<Golden> goldens() {
  const auto m = mac("02:00:00:00:0a:01");
  const auto v6 = ip("2001:db8::9");
  std::vector<Golden> all;
  all.push_back({"A-D per ES", "01 19 " + kRd + kEsi + "ffffffff 000000",
                 evpn::EthernetAutoDiscovery{rd(), esi(), evpn::kMaxEthernetTag, 0},
                 kRd + kEsi + "ffffffff", "[1]:[4294967295]:[03:44:38:39:ff:ff:01:00:00:01]"});
  all.push_back({"A-D per EVI", "01 19 " + kRd + kEsi + "00000000 abcdef",
                 evpn::EthernetAutoDiscovery{rd(), esi(), 0, 0xabcdef}, kRd + kEsi + "00000000",
                 "[1]:[0]:[03:44:38:39:ff:ff:01:00:00:01]"});
  all.push_back({"MAC only", "02 21 " + kRd + kNoEsi + "00000000 30 020000000a01 00 000064",
                 evpn::MacIp{rd(), {}, 0, m, {}, 100, {}}, kRd + "00000000 30 020000000a01 00",
                 "[2]:[0]:[48]:[02:00:00:00:0a:01]"});
  all.push_back({"MAC only, two labels",
                 "02 24 " + kRd + kNoEsi + "00000000 30 020000000a01 00 000064 0000c8",
                 evpn::MacIp{rd(), {}, 0, m, {}, 100, 200}, kRd + "00000000 30 020000000a01 00",
                 "[2]:[0]:[48]:[02:00:00:00:0a:01]"});
  all.push_back({"MAC and IPv4",
                 "02 25 " + kRd + kEsi + "00000007 30 020000000a01 20 c0000201 fffffe",
                 evpn::MacIp{rd(), esi(), 7, m, ip("192.0.2.1"), 16777214, {}},
                 kRd + "00000007 30 020000000a01 20 c0000201",
                 "[2]:[7]:[48]:[02:00:00:00:0a:01]:[32]:[192.0.2.1]"});
  all.push_back({"MAC and IPv4, two labels",
                 "02 28 " + kRd + kNoEsi + "00000000 30 020000000a01 20 c0000201 000064 000065",
                 evpn::MacIp{rd(), {}, 0, m, ip("192.0.2.1"), 100, 101},
                 kRd + "00000000 30 020000000a01 20 c0000201",
                 "[2]:[0]:[48]:[02:00:00:00:0a:01]:[32]:[192.0.2.1]"});
  all.push_back(
      {"MAC and IPv6", "02 31 " + kRd + kNoEsi + "00000000 30 020000000a01 80 " + kV6 + "000064",
       evpn::MacIp{rd(), {}, 0, m, v6, 100, {}}, kRd + "00000000 30 020000000a01 80 " + kV6,
       "[2]:[0]:[48]:[02:00:00:00:0a:01]:[128]:[2001:db8::9]"});
  all.push_back({"MAC and IPv6, two labels",
                 "02 34 " + kRd + kNoEsi + "00000000 30 020000000a01 80 " + kV6 + "000064 000065",
                 evpn::MacIp{rd(), {}, 0, m, v6, 100, 101},
                 kRd + "00000000 30 020000000a01 80 " + kV6,
                 "[2]:[0]:[48]:[02:00:00:00:0a:01]:[128]:[2001:db8::9]"});
  all.push_back({"multicast MAC", "02 21 " + kRd + kNoEsi + "00000000 30 ffffffffffff 00 000000",
                 evpn::MacIp{rd(), {}, 0, net::kBroadcastMac, {}, 0, {}},
                 kRd + "00000000 30 ffffffffffff 00", "[2]:[0]:[48]:[ff:ff:ff:ff:ff:ff]"});
  all.push_back({"IMET v4", "03 11 " + kRd + "00000000 20 0a000001",
                 evpn::InclusiveMulticast{rd(), 0, ip("10.0.0.1")}, kRd + "00000000 20 0a000001",
                 "[3]:[0]:[32]:[10.0.0.1]"});
  all.push_back({"IMET v6", "03 1d " + kRd + "00000000 80 " + kV6,
                 evpn::InclusiveMulticast{rd(), 0, v6}, kRd + "00000000 80 " + kV6,
                 "[3]:[0]:[128]:[2001:db8::9]"});
  all.push_back({"ES v4", "04 17 " + kRd + kEsi + "20 0a000001",
                 evpn::EthernetSegment{rd(), esi(), ip("10.0.0.1")}, kRd + kEsi + "20 0a000001",
                 "[4]:[03:44:38:39:ff:ff:01:00:00:01]:[32]:[10.0.0.1]"});
  all.push_back({"ES v6", "04 23 " + kRd + kEsi + "80 " + kV6,
                 evpn::EthernetSegment{rd(), esi(), v6}, kRd + kEsi + "80 " + kV6,
                 "[4]:[03:44:38:39:ff:ff:01:00:00:01]:[128]:[2001:db8::9]"});
  all.push_back({"prefix v4, host bits set",
                 "05 22 " + kRd + kNoEsi + "00000000 18 0a0102ff 0a000001 001388",
                 evpn::IpPrefixRoute{rd(), {}, 0, {ip("10.1.2.255"), 24}, ip("10.0.0.1"), 5000},
                 kRd + "00000000 18 0a010200", "[5]:[0]:[24]:[10.1.2.255]"});
  all.push_back({"prefix v6, ESI overlay",
                 "05 3a " + kRd + kEsi + "00000000 40 " + "20010db8000000000000000000000000" +
                     "00000000000000000000000000000000 001388",
                 evpn::IpPrefixRoute{rd(), esi(), 0, {ip("2001:db8::"), 64}, ip("::"), 5000},
                 kRd + "00000000 40 20010db8000000000000000000000000",
                 "[5]:[0]:[64]:[2001:db8::]"});
  const auto opaque = [](uint8_t type, const std::string& body) {
    return evpn::OpaqueRoute{type, hex(body)};
  };
  const std::string smet = kRd + "00000000 00 20 e0000105 20 0a000001";
  all.push_back({"SMET (*,G)", "06 18 " + smet + "07", opaque(6, smet + "07"), smet,
                 "[6]:[0x00010a00000100640000000000"
                 "20e0000105"
                 "200a00000107]"});
  const std::string smet6 = kRd + "00000000 80 " + kV6 + "80 " + kV6 + "80 " + kV6;
  all.push_back({"SMET (S,G) v6", "06 40 " + smet6 + "02", opaque(6, smet6 + "02"), smet6, ""});
  const std::string join = kRd + kEsi + "00000000 20 0a0a0a0a 20 e0000105 20 0a000001";
  all.push_back(
      {"membership report synch", "07 26 " + join + "04", opaque(7, join + "04"), join, ""});
  all.push_back({"leave synch", "08 2b " + join + "00000000 0a 04",
                 opaque(8, join + "00000000 0a 04"), join, ""});
  all.push_back({"per-region I-PMSI", "09 14 " + kRd + "00000000 0000000000000001",
                 opaque(9, kRd + "00000000 0000000000000001"), kRd + "00000000 0000000000000001",
                 ""});
  all.push_back({"S-PMSI", "0a 17 " + smet, opaque(10, smet), smet, ""});
  const std::string leaf = "03 11 " + kRd + "00000000 20 0a000001 20 0a000002";
  all.push_back({"leaf A-D", "0b 18 " + leaf, opaque(11, leaf), leaf, ""});
  return all;
}

bgp::NlriItem cut(const Bytes& wire, NlriStatus expected = NlriStatus::Ok) {
  net::ByteReader in(wire);
  bgp::NlriItem item;
  EXPECT_EQ(evpn::family().next(in, item), expected);
  EXPECT_EQ(item.bytes.data(), wire.data());
  return item;
}

Bytes key_of(const Bytes& wire) {
  const auto item = cut(wire);
  return {item.key().begin(), item.key().end()};
}

TEST(Nlri, GoldenPairs) {
  for (const auto& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    const Bytes wire = hex(golden.wire);
    ASSERT_EQ(wire.size(), wire[1] + 2u) << "the table itself is wrong";
    const auto route = evpn::decode(wire);
    ASSERT_TRUE(route.has_value()) << "offset " << route.error().offset;
    EXPECT_EQ(*route, golden.route);
    EXPECT_EQ(evpn::encode(golden.route), wire);
    Bytes key = hex(golden.key);
    key.insert(key.begin(), wire[0]);
    EXPECT_EQ(key_of(wire), key);
    const auto item = cut(wire);
    EXPECT_EQ(item.type, wire[0]);
    EXPECT_TRUE(std::ranges::equal(item.bytes, wire));
    const auto encoded = evpn::encode_item(golden.route);
    EXPECT_EQ(encoded.storage, wire);
    EXPECT_TRUE(std::ranges::equal(encoded.item().key(), key));
    EXPECT_EQ(encoded.item().bytes.data(), encoded.storage.data());
    if (!golden.text.empty()) {
      EXPECT_EQ(evpn::to_string(golden.route), golden.text);
    }
    EXPECT_EQ(evpn::route_distinguisher(golden.route), rd());
  }
}

TEST(Nlri, AnEncodedRouteSurvivesAMove) {
  auto first = evpn::encode_item(evpn::InclusiveMulticast{rd(), 0, ip("10.0.0.1")});
  const Bytes copy = first.storage;
  const auto second = std::move(first);
  EXPECT_TRUE(std::ranges::equal(second.item().bytes, copy));
}

// Bug: a reflector that keys on ESI or label can't withdraw what was announced with another one.
TEST(Nlri, EsiAndLabelsAreNotInTheKeyOfAMacRoute) {
  const evpn::MacIp announced{rd(), esi(), 0, mac("02:00:00:00:0a:01"), {}, 100, 200};
  evpn::MacIp withdrawn = announced;
  withdrawn.esi = {};
  withdrawn.label1 = 0;
  withdrawn.label2.reset();
  EXPECT_EQ(key_of(evpn::encode(announced)), key_of(evpn::encode(withdrawn)));
}

TEST(Nlri, KeysTellRoutesApart) {
  const auto m = mac("02:00:00:00:0a:01");
  const auto other_rd = *net::RouteDistinguisher::parse("10.0.0.2:100");
  const auto other_esi = net::Esi::from_bytes(hex("03443839ffff02000001"));
  const std::vector<std::pair<Route, Route>> pairs{
      {evpn::MacIp{rd(), {}, 0, m, {}, 1, {}}, evpn::MacIp{other_rd, {}, 0, m, {}, 1, {}}},
      {evpn::MacIp{rd(), {}, 0, m, {}, 1, {}}, evpn::MacIp{rd(), {}, 1, m, {}, 1, {}}},
      {evpn::MacIp{rd(), {}, 0, m, {}, 1, {}}, evpn::MacIp{rd(), {}, 0, m, ip("0.0.0.0"), 1, {}}},
      {evpn::EthernetAutoDiscovery{rd(), esi(), 0, 1},
       evpn::EthernetAutoDiscovery{rd(), other_esi, 0, 1}},
      {evpn::EthernetSegment{rd(), esi(), ip("10.0.0.1")},
       evpn::EthernetSegment{rd(), other_esi, ip("10.0.0.1")}},
      {evpn::InclusiveMulticast{rd(), 0, ip("10.0.0.1")},
       evpn::InclusiveMulticast{other_rd, 0, ip("10.0.0.1")}},
      {evpn::IpPrefixRoute{rd(), {}, 0, {ip("10.0.0.0"), 24}, {}, 1},
       evpn::IpPrefixRoute{rd(), {}, 0, {ip("10.0.0.0"), 25}, {}, 1}},
  };
  for (const auto& [a, b] : pairs) {
    SCOPED_TRACE(evpn::to_string(a) + " " + evpn::to_string(b));
    EXPECT_NE(key_of(evpn::encode(a)), key_of(evpn::encode(b)));
  }
}

// RFC 9251: what changes with the state of a group must not make it another route.
TEST(Nlri, FlagsOfMulticastStateAreNotInTheKey) {
  const std::string smet = kRd + "00000000 00 20 e0000105 20 0a000001";
  EXPECT_EQ(key_of(hex("06 18 " + smet + "02")), key_of(hex("06 18 " + smet + "07")));
  const std::string sync = kRd + kEsi + "00000000 00 20 e0000105 20 0a000001";
  EXPECT_EQ(key_of(hex("07 22 " + sync + "02")), key_of(hex("07 22 " + sync + "04")));
  EXPECT_EQ(key_of(hex("08 27 " + sync + "00000000 0a 02")),
            key_of(hex("08 27 " + sync + "00000001 14 04")));
  EXPECT_NE(key_of(hex("07 22 " + sync + "02")), key_of(hex("08 27 " + sync + "00000000 0a 02")));
}

struct Wrong {
  const char* name;
  std::string wire;
  NlriStatus status;
  std::size_t offset;
};

TEST(Nlri, WrongOnes) {
  const std::string head = kRd + kNoEsi + "00000000 ";
  const std::string mac48 = head + "30 020000000a01 ";
  const std::vector<Wrong> table{
      {"empty", "", NlriStatus::Framing, 0},
      {"type alone", "02", NlriStatus::Framing, 1},
      {"length overruns", "02 21 " + mac48 + "00 0000", NlriStatus::Framing, 1},
      {"octets behind it", "03 11 " + kRd + "00000000 20 0a000001 00", NlriStatus::Framing, 19},
      {"type 0", "00 00", NlriStatus::UnknownType, 0},
      {"type 12", "0c 02 0000", NlriStatus::UnknownType, 0},
      {"type 99", "63 04 00000000", NlriStatus::UnknownType, 0},
      {"A-D without label", "01 16 " + kRd + kEsi + "00000000", NlriStatus::Invalid, 24},
      {"A-D too long", "01 1a " + kRd + kEsi + "00000000 000064 00", NlriStatus::Invalid, 27},
      {"MAC length 47", "02 21 " + head + "2f 020000000a01 00 000064", NlriStatus::Invalid, 24},
      {"MAC length 0", "02 21 " + head + "00 020000000a01 00 000064", NlriStatus::Invalid, 24},
      {"IP length 24", "02 24 " + mac48 + "18 c00002 000064", NlriStatus::Invalid, 31},
      {"IP length 32, no IP", "02 21 " + mac48 + "20 000064", NlriStatus::Invalid, 31},
      {"IP length 32, nothing", "02 1e " + mac48 + "20", NlriStatus::Invalid, 31},
      {"IP length 128, 4 octets", "02 25 " + mac48 + "80 c0000201 000064", NlriStatus::Invalid, 31},
      {"IPv4 without label", "02 22 " + mac48 + "20 c0000201", NlriStatus::Invalid, 36},
      {"label of 2", "02 20 " + mac48 + "00 0000", NlriStatus::Invalid, 34},
      {"label2 of 2", "02 23 " + mac48 + "00 000064 0000", NlriStatus::Invalid, 37},
      {"octet behind label2", "02 25 " + mac48 + "00 000064 000065 00", NlriStatus::Invalid, 38},
      {"truncated in the MAC", "02 1a " + head + "30 020000", NlriStatus::Invalid, 28},
      {"MAC route of nothing", "02 00", NlriStatus::Invalid, 2},
      {"IMET without IP", "03 0d " + kRd + "00000000 00", NlriStatus::Invalid, 14},
      {"IMET IP length 31", "03 11 " + kRd + "00000000 1f 0a000001", NlriStatus::Invalid, 14},
      {"IMET truncated", "03 08 " + kRd, NlriStatus::Invalid, 10},
      {"IMET with a tail", "03 12 " + kRd + "00000000 20 0a000001 00", NlriStatus::Invalid, 19},
      {"ES without IP", "04 13 " + kRd + kEsi + "00", NlriStatus::Invalid, 20},
      {"ES truncated", "04 12 " + kRd + kEsi, NlriStatus::Invalid, 20},
      {"ES with a tail", "04 18 " + kRd + kEsi + "20 0a000001 00", NlriStatus::Invalid, 25},
      {"prefix length 33", "05 22 " + head + "21 0a000000 00000000 000064", NlriStatus::Invalid,
       24},
      {"prefix of 35 octets", "05 23 " + head + "18 0a000000 00000000 000064 00",
       NlriStatus::Invalid, 37},
      {"prefix truncated", "05 1b " + head + "18 0a000000", NlriStatus::Invalid, 29},
      {"prefix, ESI and gateway", "05 22 " + kRd + kEsi + "00000000 18 0a000000 0a000001 000064",
       NlriStatus::Meaningless, 29},
      {"SMET without flags", "06 17 " + kRd + "00000000 00 20 e0000105 20 0a000001",
       NlriStatus::Invalid, 25},
      {"SMET group length 31", "06 18 " + kRd + "00000000 00 1f e0000105 20 0a000001 07",
       NlriStatus::Invalid, 15},
      {"SMET truncated", "06 08 " + kRd, NlriStatus::Invalid, 10},
      {"leave synch without its tail",
       "08 26 " + kRd + kEsi + "00000000 20 0a0a0a0a 20 e0000105 20 0a000001 04",
       NlriStatus::Invalid, 40},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.name);
    const Bytes wire = hex(row.wire);
    const auto route = evpn::decode(wire);
    ASSERT_FALSE(route.has_value());
    EXPECT_EQ(route.error().status, row.status);
    EXPECT_EQ(route.error().offset, row.offset);
  }
}

// RFC 9136 section 3.1: an earlier route of the same key goes, the others in the UPDATE stay.
TEST(Nlri, PrefixWithEsiAndGatewayIsTreatedAsWithdrawn) {
  const Bytes both = hex("05 22 " + kRd + kEsi + "00000000 18 0a000000 0a000001 000064");
  const Bytes good = hex("05 22 " + kRd + kNoEsi + "00000000 18 0a000000 0a000001 000064");
  EXPECT_TRUE(std::ranges::equal(cut(both, NlriStatus::Meaningless).key(), cut(good).key()));
  const Bytes other = hex("05 22 " + kRd + kNoEsi + "00000000 18 0a000100 0a000001 000064");

  bgp::Attributes attributes;
  attributes.next_hop = *net::IpAddress::parse("10.0.0.1");
  attributes.local_pref = 100;
  const std::vector<std::span<const uint8_t>> nlris{both, other};
  const auto packed =
      bgp::encode_reach(bgp::kL2vpnEvpn, attributes.next_hop,
                        bgp::encode_attributes(attributes, {}), nlris, bgp::kMaxMessage);
  ASSERT_EQ(packed.taken, 2u);
  const auto update =
      bgp::decode_update(std::span(packed.message).subspan(bgp::kHeaderSize), evpn::family(), {});
  ASSERT_TRUE(update.has_value());
  ASSERT_EQ(update->reach.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(update->reach[0].bytes, other));
  ASSERT_EQ(update->unreach.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(update->unreach[0].key(), cut(good).key()));
  EXPECT_EQ(update->nlri_discarded, 1u);

  // Withdrawn in so many words, it is a withdrawal like any other.
  const std::vector<std::span<const uint8_t>> withdrawn{both};
  const auto message = bgp::encode_unreach(bgp::kL2vpnEvpn, withdrawn, bgp::kMaxMessage).message;
  const auto gone =
      bgp::decode_update(std::span(message).subspan(bgp::kHeaderSize), evpn::family(), {});
  ASSERT_TRUE(gone.has_value());
  ASSERT_EQ(gone->unreach.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(gone->unreach[0].key(), cut(good).key()));
  EXPECT_EQ(gone->nlri_discarded, 0u);
}

// No prefix of a good NLRI whose length octet was corrected decodes, and none crashes.
TEST(Nlri, TruncationsAreInvalid) {
  for (const auto& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    const Bytes wire = hex(golden.wire);
    if (wire[0] >= 9) continue;  // opaque altogether
    for (std::size_t size = 2; size < wire.size(); ++size) {
      Bytes shorter(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(evpn::decode(shorter).error().status, NlriStatus::Framing);
      shorter[1] = static_cast<uint8_t>(size - 2);
      const auto route = evpn::decode(shorter);
      if (route) {  // only a type 2 that lost its second label
        ASSERT_EQ(shorter.size() + 3, wire.size());
        EXPECT_FALSE(std::get<evpn::MacIp>(*route).label2.has_value());
      } else {
        EXPECT_EQ(route.error().status, NlriStatus::Invalid);
        EXPECT_LE(route.error().offset, shorter.size());
      }
    }
  }
}

// RFC 7606 section 5.4: the neighbours of what is discarded survive.
TEST(Nlri, NextStepsOverWhatItDiscards) {
  const std::string good = "02 21 " + kRd + kNoEsi + "00000000 30 020000000a01 00 000064 ";
  const std::string mac47 = "02 21 " + kRd + kNoEsi + "00000000 2f 020000000a01 00 000064 ";
  const Bytes wire = hex(good + "63 03 010203" + good + mac47 + "0b 00" + good + "02 21 00");
  net::ByteReader in(wire);
  std::vector<NlriStatus> seen;
  bgp::NlriItem item;
  while (!in.done()) seen.push_back(evpn::family().next(in, item));
  EXPECT_THAT(seen, testing::ElementsAre(NlriStatus::Ok, NlriStatus::UnknownType, NlriStatus::Ok,
                                         NlriStatus::Invalid, NlriStatus::Ok, NlriStatus::Ok,
                                         NlriStatus::Framing));
  EXPECT_FALSE(in.ok());
}

TEST(Nlri, TheLongestBodyHasAKey) {
  Bytes wire{9, 254};
  wire.resize(256, 0x55);
  EXPECT_EQ(cut(wire).key().size(), 255u);
  wire.push_back(0x55);
  wire[1] = 255;
  EXPECT_EQ(evpn::decode(wire).error().status, NlriStatus::Invalid);
}

TEST(Nlri, Family) {
  EXPECT_EQ(evpn::family().id, bgp::kL2vpnEvpn);
  EXPECT_STREQ(evpn::family().name, "l2vpn-evpn");
}

TEST(Nlri, AShortOpaqueRouteHasNoRd) {
  EXPECT_EQ(evpn::route_distinguisher(evpn::OpaqueRoute{9, {1, 2, 3}}), std::nullopt);
}

}  // namespace
