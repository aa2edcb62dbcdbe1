// SPDX-License-Identifier: GPL-2.0-or-later
// Golden pairs of every message in both directions, and what RFC 7606 makes of each defect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/message.h"
#include "fake_family.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;

namespace {

const std::string kMarker = "ffffffff ffffffff ffffffff ffffffff ";

Bytes message(const std::string& rest) { return hex((kMarker + rest).c_str()); }
std::span<const uint8_t> body(const Bytes& message) {
  return std::span(message).subspan(kHeaderSize);
}

Bytes attribute(uint8_t flags, uint8_t type, const Bytes& value) {
  net::ByteWriter out;
  out.u8(flags);
  out.u8(type);
  if ((flags & kFlagExtendedLength) != 0)
    out.u16(static_cast<uint16_t>(value.size()));
  else
    out.u8(static_cast<uint8_t>(value.size()));
  out.bytes(value);
  return out.take();
}

// The body of an UPDATE.
Bytes update(const Bytes& attributes, const Bytes& withdrawn = {}, const Bytes& nlri = {}) {
  net::ByteWriter out;
  out.u16(static_cast<uint16_t>(withdrawn.size()));
  out.bytes(withdrawn);
  out.u16(static_cast<uint16_t>(attributes.size()));
  out.bytes(attributes);
  out.bytes(nlri);
  return out.take();
}

Bytes reach(const Bytes& nlri, const Bytes& next_hop = hex("c0000201")) {
  net::ByteWriter out;
  out.u16(25);
  out.u8(70);
  out.u8(static_cast<uint8_t>(next_hop.size()));
  out.bytes(next_hop);
  out.u8(0);
  out.bytes(nlri);
  return attribute(0x80, 14, out.take());
}
Bytes unreach(const Bytes& nlri) { return attribute(0x80, 15, join({hex("001946"), nlri})); }

const Bytes kOrigin = hex("40010100");
const Bytes kAsPath = hex("400206 0201 0000fde8");
const Bytes kLocalPref = hex("400504 00000064");
const Bytes kPmsi = hex("c01609 00 06 abcdef c0000201");

Update decoded(const Bytes& attributes, DecodeOptions options = {}) {
  static std::vector<Bytes> kept;  // items point into the message
  kept.push_back(update(attributes));
  auto result = decode_update(kept.back(), fake_family(), options);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  return result ? std::move(*result) : Update{};
}

Notification refused(const Bytes& whole_body, DecodeOptions options = {}) {
  auto result = decode_update(whole_body, fake_family(), options);
  EXPECT_FALSE(result.has_value());
  return result ? Notification{} : result.error();
}

}  // namespace

TEST(Header, EveryTypeHasItsLengths) {
  struct Row {
    uint8_t type;
    uint16_t shortest, longest;
  };
  for (const Row& row : {Row{1, 29, 4096}, Row{2, 23, 65535}, Row{3, 21, 65535}, Row{4, 19, 19},
                         Row{5, 19, 65535}}) {
    for (uint32_t length : {0u, 18u, row.shortest - 1u, row.shortest + 0u, row.longest + 0u,
                            std::min(row.longest + 1u, 65535u)}) {
      net::ByteWriter out;
      for (int i = 0; i < 16; ++i) out.u8(0xff);
      out.u16(static_cast<uint16_t>(length));
      out.u8(row.type);
      const auto header = decode_header(out.view(), kMaxExtendedMessage);
      const bool good = length >= row.shortest && length <= row.longest;
      EXPECT_EQ(header.has_value(), good) << int{row.type} << " " << length;
      if (good) continue;
      const Bytes data{static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
      EXPECT_EQ(header.error(), (Notification{ErrorCode::MessageHeader, 2, data}));
    }
  }
}

TEST(Header, LimitMarkerAndType) {
  EXPECT_TRUE(decode_header(message("1000 02"), kMaxMessage));
  EXPECT_EQ(decode_header(message("1001 02"), kMaxMessage).error(),
            (Notification{ErrorCode::MessageHeader, 2, {0x10, 0x01}}));
  EXPECT_EQ(decode_header(message("0013 06"), kMaxMessage).error(),
            (Notification{ErrorCode::MessageHeader, 3, {6}}));
  EXPECT_EQ(decode_header(message("0013 00"), kMaxMessage).error(),
            (Notification{ErrorCode::MessageHeader, 3, {0}}));
  Bytes broken = message("0013 04");
  broken[15] = 0xfe;
  EXPECT_EQ(decode_header(broken, kMaxMessage).error(),
            (Notification{ErrorCode::MessageHeader, 1, {}}));
}

TEST(Keepalive, Golden) { EXPECT_EQ(encode_keepalive(), message("0013 04")); }

TEST(Notification, Golden) {
  const Notification value{ErrorCode::OpenMessage, 7, hex("0104 00190046")};
  const Bytes bytes = message("001b 03 02 07 0104 00190046");
  EXPECT_EQ(encode_notification(value), bytes);
  EXPECT_EQ(decode_notification(body(bytes)), value);
  EXPECT_EQ(to_string(value), "OPEN Message Error/Unsupported Capability");
  EXPECT_EQ(to_string(Notification{static_cast<ErrorCode>(77), 3, {}}), "code 77/3");
}

TEST(Notification, ShutdownText) {
  const Notification value = shutdown_notification(cease::kAdministrativeShutdown, "upgrade é");
  EXPECT_EQ(value.data, hex("0a 75706772616465 20 c3a9"));
  EXPECT_EQ(shutdown_text(value), "upgrade é");
  EXPECT_EQ(shutdown_notification(2, "").data, Bytes{});
  // 255 octets at most, and no half characters.
  std::string longer(254, 'x');
  EXPECT_EQ(shutdown_notification(2, longer + "é").data.size(), 255u);
  EXPECT_EQ(shutdown_notification(2, longer + "yz").data.size(), 256u);
  EXPECT_EQ(shutdown_text({ErrorCode::Cease, 2, hex("03 6161")}), std::nullopt);    // too short
  EXPECT_EQ(shutdown_text({ErrorCode::Cease, 2, hex("02 61ff")}), std::nullopt);    // not UTF-8
  EXPECT_EQ(shutdown_text({ErrorCode::Cease, 2, hex("03 eda080")}), std::nullopt);  // surrogate
  EXPECT_EQ(shutdown_text({ErrorCode::Cease, 1, hex("01 61")}), std::nullopt);
  EXPECT_EQ(shutdown_text({ErrorCode::Cease, 4, hex("03 611b62")}), "a b");  // no escape sequences
}

TEST(RouteRefresh, Golden) {
  for (uint8_t subtype = 0; subtype <= 2; ++subtype) {
    const Bytes bytes = message("0017 05 0019 0" + std::to_string(subtype) + " 46");
    EXPECT_EQ(encode_route_refresh(kL2vpnEvpn, subtype), bytes);
    EXPECT_EQ(decode_route_refresh(body(bytes)), (RouteRefresh{kL2vpnEvpn, subtype}));
  }
  // RFC 7313 section 5: the whole message comes back.
  EXPECT_EQ(decode_route_refresh(hex("001900")).error(),
            (Notification{ErrorCode::RouteRefreshMessage, 1, message("0016 05 001900")}));
}

TEST(Open, Golden) {
  Open open;
  open.as_number = kAsTrans;
  open.hold_time = 90;
  open.router_id = 0x0a000001;
  open.capabilities.multiprotocol = {kL2vpnEvpn};
  open.capabilities.route_refresh = true;
  open.capabilities.extended_message = true;
  open.capabilities.four_octet_as = 4200000000;
  open.capabilities.enhanced_route_refresh = true;
  open.capabilities.graceful_restart = GracefulRestart{true, false, 120, {{kL2vpnEvpn, true}}};
  const Bytes want = message(
      "0039 01 04 5ba0 005a 0a000001 1c"
      "02 1a 01 04 0019 00 46 02 00 06 00 40 06 8078 0019 46 80 41 04 fa56ea00 46 00");
  EXPECT_EQ(encode_open(open), want);
  const auto back = decode_open(body(want));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(*back, open);
  EXPECT_EQ(back->effective_as(), 4200000000u);
  EXPECT_THAT(describe(open.capabilities),
              testing::Contains("graceful restart 120 s, restarted, 25/70 forwarding preserved"));
}

TEST(Open, LongLivedRestart) {  // RFC 9494
  Open open;
  open.as_number = 65000;
  open.hold_time = 90;
  open.router_id = 0x0a000001;
  open.capabilities.multiprotocol = {kL2vpnEvpn};
  open.capabilities.graceful_restart = GracefulRestart{false, false, 0, {{kL2vpnEvpn, true}}};
  open.capabilities.long_lived =
      LongLivedRestart{{{kL2vpnEvpn, true, 3600}, {{1, 132}, false, 0xffffff}}};
  const Bytes want = message(
      "003d 01 04 fde8 005a 0a000001 20"
      "02 1e 01 04 0019 00 46 40 06 0000 0019 46 80 47 0e 0019 46 80 000e10 0001 84 00 ffffff");
  EXPECT_EQ(encode_open(open), want);
  const auto back = decode_open(body(want));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, open);
  EXPECT_THAT(describe(open.capabilities),
              testing::Contains("long-lived graceful restart, 25/70 3600 s forwarding preserved, "
                                "1/132 16777215 s"));
  EXPECT_FALSE(decode_open(hex("04 fde8 005a 0a000001 0a 02 08 47 06 0019 46 80 000e")));
}

TEST(Open, WithoutCapabilities) {
  const auto open = decode_open(hex("04 fde8 0000 0a000001 00"));
  ASSERT_TRUE(open);
  EXPECT_EQ(open->effective_as(), 65000u);
  EXPECT_EQ(encode_open(*open), message("001d 01 04 fde8 0000 0a000001 00"));
}

TEST(Open, CapabilitiesInOneOrInManyParameters) {
  const auto many =
      decode_open(hex("04 fde8 005a 0a000001 10 02 06 0104 00190046 02 06 4104 0000fde8"));
  const auto one = decode_open(hex("04 fde8 005a 0a000001 0e 02 0c 0104 00190046 4104 0000fde8"));
  ASSERT_TRUE(many && one);
  EXPECT_EQ(*many, *one);
}

TEST(Open, ExtendedOptionalParameters) {  // RFC 9072
  const Bytes small = hex("04 fde8 005a 0a000001 ff ff 0009 02 0006 0104 00190046");
  const auto open = decode_open(small);
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->capabilities.has(kL2vpnEvpn));
  Open large;
  large.as_number = 65000;
  large.router_id = 1;
  for (uint16_t afi = 1; afi <= 60; ++afi) large.capabilities.multiprotocol.push_back({afi, 1});
  const Bytes bytes = encode_open(large);
  EXPECT_EQ(bytes[28], 255);
  EXPECT_EQ(bytes[29], 255);
  const auto back = decode_open(body(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, large);
}

TEST(Open, Defects) {
  struct Row {
    const char* bytes;
    uint8_t subcode;
    const char* data;
  };
  for (const Row& row : {
           Row{"03 fde8 005a 0a000001 00", 1, "0004"},
           Row{"04 0000 005a 0a000001 00", 2, ""},
           Row{"04 fde8 005a 0a000001 08 02 06 4104 00000000", 2, ""},
           Row{"04 fde8 005a 00000000 00", 3, ""},
           Row{"04 fde8 005a 0a000001 03 01 01 00", 4, ""},
           Row{"04 fde8 0001 0a000001 00", 6, ""},
           Row{"04 fde8 0002 0a000001 00", 6, ""},
           Row{"04 fde8 005a 0a000001 01", 0, ""},     // length without parameters
           Row{"04 fde8 005a 0a000001 00 02", 0, ""},  // more than the length says
           Row{"04 fde8 005a 0a000001 04 02 03 0200", 0, ""},
           Row{"04 fde8 005a 0a000001 05 02 03 010400", 0, ""},
           Row{"04 fde8 005a 0a000001 07 02 05 4103 000001", 0, ""},
           Row{"04 fde8 005a 0a000001 07 02 05 4003 807800", 0, ""},
           Row{"04 fde8 005a 0a000001 ff ff 0009 02 0007 0104 00190046", 0, ""},
       }) {
    const auto open = decode_open(hex(row.bytes));
    ASSERT_FALSE(open) << row.bytes;
    EXPECT_EQ(open.error(), (Notification{ErrorCode::OpenMessage, row.subcode, hex(row.data)}))
        << row.bytes;
  }
}

namespace {

Attributes full_attributes() {
  Attributes a;
  a.origin = Origin::Incomplete;
  a.as_path = {{AsPathSegment::Sequence, {65000, 4200000000}}, {AsPathSegment::Set, {1, 2}}};
  a.next_hop = *net::IpAddress::parse("192.0.2.1");
  a.multi_exit_disc = 7;
  a.local_pref = 100;
  a.atomic_aggregate = true;
  a.aggregator = Aggregator{4200000000, 0x0a000001};
  a.communities = {0xffff0001};
  a.extended_communities = {{0x06, 0x7f, 1, 2, 3, 4, 5, 6}, {0x03, 0x0c, 0, 0, 0, 0, 0, 8}};
  a.large_communities = {{1, 2, 3}};
  a.originator_id = 0x0a000002;
  a.cluster_list = {0x0a000009, 0x0a000008};
  a.pmsi_tunnel = hex("00 06 abcdef c0000201");
  a.unknown = {{0xe0, 20, hex("01")}, {0xe0, 200, Bytes(300, 5)}};
  return a;
}

const char* kFullBytes =
    "40010102"
    "400214 02 02 0000fde8 fa56ea00 01 02 00000001 00000002"
    "800404 00000007"
    "400504 00000064"
    "400600"
    "c00708 fa56ea00 0a000001"
    "c00804 ffff0001"
    "800904 0a000002"
    "800a08 0a000009 0a000008"
    "c01010 067f010203040506 030c000000000008"
    "e01401 01"
    "c01609 00 06 abcdef c0000201"
    "c0200c 00000001 00000002 00000003"
    "f0c8012c";

}  // namespace

TEST(Update, AttributesGolden) {
  const Attributes attributes = full_attributes();
  const Bytes want = join({hex(kFullBytes), Bytes(300, 5)});
  EXPECT_EQ(encode_attributes(attributes, {}), want);
  const Update update = decoded(join({reach(fake_nlri(1)), want}));
  EXPECT_EQ(update.handling, ErrorHandling::None);
  ASSERT_TRUE(update.attributes);
  EXPECT_EQ(*update.attributes, attributes);
  ASSERT_EQ(update.reach.size(), 1u);
}

TEST(Update, TwoOctetAsGolden) {
  const Attributes attributes = full_attributes();
  const Bytes bytes = encode_attributes(attributes, {false});
  const Bytes path = hex("40020c 02 02 fde8 5ba0 01 02 0001 0002");
  const Bytes aggregator = hex("c00706 5ba0 0a000001");
  const Bytes as4 =
      hex("c01114 02 02 0000fde8 fa56ea00 01 02 00000001 00000002 c01208 fa56ea00 0a000001");
  for (const Bytes& part : {path, aggregator, as4})
    EXPECT_NE(std::search(bytes.begin(), bytes.end(), part.begin(), part.end()), bytes.end());
  const Update update = decoded(join({reach(fake_nlri(1)), bytes}), {false, true});
  ASSERT_TRUE(update.attributes);
  EXPECT_EQ(*update.attributes, attributes);
  // Nothing to say in four octets.
  Attributes small;
  small.as_path = {{AsPathSegment::Sequence, {65000}}};
  EXPECT_EQ(encode_attributes(small, {false}), hex("40010100 400204 0201 fde8"));
}

TEST(Update, As4PathMerging) {  // RFC 6793 section 4.2.3
  const auto path_of = [](const char* attributes) {
    const Update update =
        decoded(join({reach(fake_nlri(1)), kOrigin, hex(attributes)}), {false, false});
    return update.attributes ? update.attributes->as_path : std::vector<AsPathSegment>{};
  };
  using Path = std::vector<AsPathSegment>;
  // 100 prepended by a speaker of two octets.
  EXPECT_EQ(path_of("400208 0203 0064 5ba0 5ba0 c0110a 0202 00010000 00010001"),
            (Path{{AsPathSegment::Sequence, {100, 65536, 65537}}}));
  // AS4_PATH longer than AS_PATH: ignored.
  EXPECT_EQ(path_of("400204 0201 5ba0 c0110a 0202 00010000 00010001"),
            (Path{{AsPathSegment::Sequence, {23456}}}));
  // An aggregator that is not AS_TRANS: ignored too.
  EXPECT_EQ(path_of("400204 0201 5ba0 c00706 0001 0a000001 c01106 0201 00010000"),
            (Path{{AsPathSegment::Sequence, {23456}}}));
  // Malformed: discarded.
  EXPECT_EQ(path_of("400204 0201 5ba0 c01107 0202 00010000 00"),
            (Path{{AsPathSegment::Sequence, {23456}}}));
  EXPECT_EQ(path_of("400208 0102 0001 0002 0000"), (Path{}));
}

TEST(Update, LongSequencesAreSplit) {
  Attributes attributes;
  attributes.as_path = {{AsPathSegment::Sequence, std::vector<uint32_t>(300, 65000)}};
  const Update update = decoded(join({reach(fake_nlri(1)), encode_attributes(attributes, {})}));
  ASSERT_TRUE(update.attributes);
  ASSERT_EQ(update.attributes->as_path.size(), 2u);
  EXPECT_EQ(update.attributes->as_path[0].as_numbers.size(), 255u);
  EXPECT_EQ(update.attributes->as_path[1].as_numbers.size(), 45u);
}

TEST(Update, ReachGoldenAndPacking) {
  std::vector<Bytes> nlris;
  for (uint32_t i = 0; i < 1000; ++i) nlris.push_back(fake_nlri(i));
  std::vector<std::span<const uint8_t>> views(nlris.begin(), nlris.end());
  const Bytes attributes = join({kOrigin, kAsPath});
  const auto next_hop = *net::IpAddress::parse("192.0.2.1");

  const PackedUpdate two =
      encode_reach(kL2vpnEvpn, next_hop, attributes, std::span(views).first(2), kMaxMessage);
  EXPECT_EQ(two.taken, 2u);
  EXPECT_EQ(two.message, message("003d 02 0000 0026 900e 0015 0019 46 04 c0000201 00"
                                 "0104 00000000 0104 00000001"
                                 "40010100 400206 0201 0000fde8"));

  for (std::size_t limit : {kMaxMessage, kMaxExtendedMessage}) {
    std::span<const std::span<const uint8_t>> rest = views;
    uint32_t expected = 0;
    while (!rest.empty()) {
      const PackedUpdate packed = encode_reach(kL2vpnEvpn, next_hop, attributes, rest, limit);
      ASSERT_GT(packed.taken, 0u);
      ASSERT_LE(packed.message.size(), limit);
      if (packed.taken < rest.size()) {
        EXPECT_GT(packed.message.size() + 6, limit);
      }
      const auto header = decode_header(packed.message, limit);
      ASSERT_TRUE(header);
      EXPECT_EQ(header->length, packed.message.size());
      const auto update = decode_update(body(packed.message), fake_family(), {});
      ASSERT_TRUE(update);
      for (const NlriItem& item : update->reach)
        EXPECT_TRUE(std::ranges::equal(item.bytes, nlris[expected++]));
      rest = rest.subspan(packed.taken);
    }
    EXPECT_EQ(expected, 1000u);
  }
  EXPECT_EQ(encode_reach(kL2vpnEvpn, next_hop, Bytes(4090), views, kMaxMessage).taken, 0u);
  EXPECT_EQ(encode_reach(kL2vpnEvpn, next_hop, Bytes(5000), views, kMaxMessage).taken, 0u);
  const auto v6 = *net::IpAddress::parse("2001:db8::1");
  const auto packed = encode_reach(kL2vpnEvpn, v6, attributes, std::span(views).first(1), 4096);
  const auto update = decode_update(body(packed.message), fake_family(), {});
  ASSERT_TRUE(update && update->attributes);
  EXPECT_EQ(update->attributes->next_hop, v6);
}

TEST(Update, UnreachAndEndOfRibGolden) {
  const Bytes nlri = fake_nlri(7);
  const std::span<const uint8_t> view = nlri;
  const PackedUpdate packed = encode_unreach(kL2vpnEvpn, {&view, 1}, kMaxMessage);
  EXPECT_EQ(packed.message, message("0024 02 0000 000d 900f 0009 0019 46 0104 00000007"));
  const auto update = decode_update(body(packed.message), fake_family(), {});
  ASSERT_TRUE(update);
  EXPECT_FALSE(update->end_of_rib);
  ASSERT_EQ(update->unreach.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(update->unreach[0].bytes, nlri));

  EXPECT_EQ(encode_end_of_rib(kL2vpnEvpn), message("001d 02 0000 0006 800f 03 0019 46"));
  EXPECT_TRUE(decoded(hex("800f 03 0019 46")).end_of_rib);
  EXPECT_TRUE(decoded(hex("900f 0003 0019 46")).end_of_rib);  // extended length is legal
  EXPECT_FALSE(decoded(hex("800f 03 0001 01")).end_of_rib);   // of another family
  EXPECT_FALSE(decoded({}).end_of_rib);                       // of IPv4 unicast
  EXPECT_FALSE(decoded(join({unreach({}), kOrigin})).end_of_rib);
  EXPECT_FALSE(decoded(unreach(hex("6300"))).end_of_rib);
}

// The table of RFC 7606 section 7: value, flags, and what comes of it.
TEST(Update, MalformedAttributes) {
  struct Row {
    const char* attribute;
    ErrorHandling handling;
    DecodeOptions options = {};
  };
  constexpr auto kNone = ErrorHandling::None;
  constexpr auto kDiscard = ErrorHandling::AttributeDiscard;
  constexpr auto kWithdraw = ErrorHandling::TreatAsWithdraw;
  const DecodeOptions external{true, false};
  const DecodeOptions two_octets{false, true};
  for (const Row& row : {
           Row{"40010103", kWithdraw},
           Row{"4001020000", kWithdraw},
           Row{"400100", kWithdraw},
           Row{"c0010100", kWithdraw},  // flags
           Row{"400205 0201 0000fd", kWithdraw},
           Row{"400206 0501 0000fde8", kWithdraw},
           Row{"400202 0200", kWithdraw},
           Row{"400206 0202 0000fde8", kWithdraw},
           Row{"400207 0201 0000fde8 02", kWithdraw},
           Row{"400206 0201 00000000", kWithdraw},            // RFC 7607
           Row{"400206 0301 0000fde8", kWithdraw, external},  // RFC 5065
           Row{"500200 06 0201 0000fde8", kNone},             // extended length, short: FRR
           Row{"400304 00000000", kNone},
           Row{"400303 000000", kWithdraw},
           Row{"800403 000000", kWithdraw},
           Row{"400404 00000000", kWithdraw},  // flags
           Row{"400503 000000", kWithdraw},
           Row{"400503 000000", kDiscard, external},
           Row{"40060100", kDiscard},
           Row{"c00707 00000001000000", kDiscard},
           Row{"c00708 00000000 0a000001", kDiscard},
           Row{"c00803 000000", kWithdraw},
           Row{"c00800", kWithdraw},
           Row{"800903 000000", kWithdraw},
           Row{"800904 00000001", kDiscard, external},
           Row{"800a06 000000000000", kWithdraw},
           Row{"800a00", kWithdraw},
           Row{"c01007 00000000000000", kWithdraw},
           Row{"c01000", kWithdraw},
           Row{"c01008 067f000000000000", kNone},  // unknown sub-types are never an error
           Row{"c01008 0604000000000000", kNone},
           Row{"c01604 00060000", kWithdraw},
           Row{"c01605 000c000000", kNone},  // an undefined tunnel type is the PE's to ignore
           Row{"c0200b 0000000000000000000000", kWithdraw},
           Row{"c01106 0201 00010000", kDiscard},  // AS4_PATH from a peer of four octets
           Row{"c01105 0201 000100", kDiscard, two_octets},
           Row{"40c80101", kWithdraw},  // well-known, not known
           Row{"80c80101", kNone},      // optional, not transitive: dropped
           Row{"c0c80101", kNone},
       }) {
    const Bytes odd = hex(row.attribute);
    Bytes all = reach(fake_nlri(1));
    const Bytes path = row.options.four_octet_as ? kAsPath : hex("400204 0201 fde8");
    for (const Bytes& part : {kOrigin, path})
      if (part[1] != odd[1]) all = join({all, part});
    const Update update = decoded(join({all, odd}), row.options);
    EXPECT_EQ(update.handling, row.handling) << row.attribute;
    EXPECT_EQ(update.reach.empty(), row.handling == kWithdraw) << row.attribute;
    EXPECT_EQ(update.unreach.size(), row.handling == kWithdraw ? 1u : 0u) << row.attribute;
    EXPECT_EQ(update.attributes != nullptr, row.handling != kWithdraw) << row.attribute;
    EXPECT_EQ(update.attributes_discarded, row.handling == kDiscard ? 1u : 0u) << row.attribute;
    if (row.handling != kNone) {
      ASSERT_EQ(update.errors.size(), 1u) << row.attribute;
      EXPECT_EQ(update.errors[0].type, odd[1]);
      EXPECT_EQ(update.errors[0].bytes, odd);
    }
  }
}

TEST(Update, MissingWellKnown) {
  EXPECT_EQ(decoded(join({reach(fake_nlri(1)), kOrigin})).handling, ErrorHandling::TreatAsWithdraw);
  EXPECT_EQ(decoded(join({reach(fake_nlri(1)), kAsPath})).handling, ErrorHandling::TreatAsWithdraw);
  EXPECT_EQ(decoded(join({reach({}), kAsPath})).handling, ErrorHandling::None);
}

TEST(Update, UnknownAttributesTravelOn) {
  const Update update = decoded(join({reach(fake_nlri(1)), kOrigin, kAsPath, hex("c0c80102")}));
  ASSERT_TRUE(update.attributes);
  ASSERT_EQ(update.attributes->unknown.size(), 1u);
  EXPECT_EQ(update.attributes->unknown[0], (UnknownAttribute{0xe0, 200, {2}}));  // Partial set
  EXPECT_TRUE(decoded(join({reach(fake_nlri(1)), kOrigin, kAsPath, hex("80c80102")}))
                  .attributes->unknown.empty());
}

TEST(Update, DuplicatesKeepTheFirst) {
  const Update update =
      decoded(join({reach(fake_nlri(1)), kOrigin, kAsPath, kLocalPref, hex("400504 000000c8")}));
  EXPECT_EQ(update.handling, ErrorHandling::AttributeDiscard);
  ASSERT_TRUE(update.attributes);
  EXPECT_EQ(update.attributes->local_pref, 100u);
  for (const Bytes& twice : {reach(fake_nlri(1)), unreach(fake_nlri(1))})
    EXPECT_EQ(refused(::update(join({twice, twice}))),
              (Notification{ErrorCode::UpdateMessage, 1, twice}));
}

TEST(Update, NlriDefects) {
  const Bytes good = join({kOrigin, kAsPath});
  // Unknown type and values out of scope: only these go.
  const Update update = decoded(join(
      {reach(join({fake_nlri(1), hex("6303 010203"), hex("0102 0102"), fake_nlri(2)})), good}));
  EXPECT_EQ(update.handling, ErrorHandling::None);
  EXPECT_EQ(update.reach.size(), 2u);
  EXPECT_EQ(update.nlri_discarded, 2u);
  // Framing: session reset with the attribute as data.
  const Bytes overrun = reach(join({fake_nlri(1), hex("01ff 00000000")}));
  EXPECT_EQ(refused(::update(join({overrun, good}))),
            (Notification{ErrorCode::UpdateMessage, 9, overrun}));
  EXPECT_EQ(refused(::update(unreach(hex("01")))).subcode, 9);
  // Next hop of 5 octets; too short for its fields; the next hop overruns.
  EXPECT_EQ(refused(::update(join({reach(fake_nlri(1), hex("0102030405")), good}))).subcode, 9);
  EXPECT_EQ(refused(::update(join({hex("800e04 00194600"), good}))).subcode, 9);
  EXPECT_EQ(refused(::update(join({hex("800e05 00194604 00"), good}))).subcode, 9);
  EXPECT_EQ(refused(::update(hex("800f02 0019"))).subcode, 9);
  // Next hops that no VTEP can have.
  for (const char* next_hop : {"00000000", "e0000001"}) {
    const Update odd = decoded(join({reach(fake_nlri(1), hex(next_hop)), good}));
    EXPECT_EQ(odd.handling, ErrorHandling::TreatAsWithdraw);
    EXPECT_EQ(odd.unreach.size(), 1u);
  }
  // Global and link-local: the first counts.
  const Bytes both = hex("20010db8000000000000000000000001 fe800000000000000000000000000001");
  EXPECT_EQ(decoded(join({reach(fake_nlri(1), both), good})).attributes->next_hop,
            net::IpAddress::parse("2001:db8::1"));
}

TEST(Update, OtherFamiliesAreIgnored) {
  const Update update = decoded(join({hex("800e09 0001 01 04 c0000201 00"), kOrigin, kAsPath}));
  EXPECT_EQ(update.handling, ErrorHandling::DisableFamily);
  EXPECT_TRUE(update.reach.empty());
  const auto ipv4 = decode_update(::update(join({kOrigin, kAsPath}), hex("18c00002"), hex("00")),
                                  fake_family(), {});
  ASSERT_TRUE(ipv4);
  EXPECT_EQ(ipv4->handling, ErrorHandling::DisableFamily);
  EXPECT_EQ(refused(::update({}, hex("21c0000200"))).subcode, 10);
  EXPECT_EQ(refused(::update({}, {}, hex("18c000"))).subcode, 10);
}

TEST(Update, BrokenLists) {
  EXPECT_EQ(refused(hex("0001 0000")).subcode, 1);
  EXPECT_EQ(refused(hex("0000 0001")).subcode, 1);
  EXPECT_EQ(refused(hex("0000")).subcode, 1);
  // An attribute that overruns: withdraw what was found (RFC 7606 section 4) ...
  const Update update =
      decoded(join({reach(fake_nlri(1)), kOrigin, kAsPath, hex("400505 00000064")}));
  EXPECT_EQ(update.handling, ErrorHandling::TreatAsWithdraw);
  EXPECT_EQ(update.unreach.size(), 1u);
  // ... unless nothing was found (section 5.2).
  EXPECT_EQ(refused(::update(join({kOrigin, hex("400505 00000064")}))).subcode, 1);
  EXPECT_EQ(refused(::update(hex("40010109"))).subcode, 1);
  EXPECT_EQ(decoded(join({kOrigin, kAsPath})).handling, ErrorHandling::None);
}

TEST(Update, EveryTruncationIsAnswered) {
  const Bytes whole =
      ::update(join({reach(fake_nlri(1)), hex(kFullBytes), Bytes(300, 5), unreach(fake_nlri(2))}));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_update(std::span(whole).first(size), fake_family(), {})) << size;
  // The same with lengths that agree: never a crash, and routes only withdrawn or whole.
  const Bytes attributes = join({reach(fake_nlri(1)), kOrigin, kAsPath, kPmsi});
  for (std::size_t size = 0; size < attributes.size(); ++size) {
    const Bytes cut =
        ::update(Bytes(attributes.begin(), attributes.begin() + static_cast<std::ptrdiff_t>(size)));
    const auto update = decode_update(cut, fake_family(), {});
    const bool announced = update && !update->reach.empty();
    EXPECT_EQ(announced, update && update->attributes) << size;
  }
}
