// SPDX-License-Identifier: GPL-2.0-or-later
// Golden octets of BMP messages: RFC 7854 section 4, RFC 8671 section 4, RFC 9069 section 4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/bmp.h"
#include "fake_family.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;

namespace {

net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

bmp::PeerHeader peer(bmp::Table table = bmp::Table::InPre, const char* address = "192.0.2.1") {
  return {table, ip(address), 65001, 0x0a000001, false, std::chrono::microseconds(1500000)};
}

// The per-peer header behind type and flags, for 192.0.2.1.
const char* kPeer =
    "0000000000000000 000000000000000000000000c0000201 0000fde9 0a000001 00000001 0007a120";

}  // namespace

TEST(Bmp, Initiation) {
  EXPECT_EQ(bmp::encode_initiation("peerlan 1", "rs1"),
            join({hex("03 0000001a 04 0001 0009"),
                  {'p', 'e', 'e', 'r', 'l', 'a', 'n', ' ', '1'},
                  hex("0002 0003"),
                  {'r', 's', '1'}}));
}

TEST(Bmp, Termination) {
  EXPECT_EQ(bmp::encode_termination(bmp::TerminationReason::AdministrativelyClosed),
            hex("03 0000000c 05 0001 0002 0000"));
}

TEST(Bmp, RouteMonitoringHasTheUpdateVerbatim) {
  const Bytes update = encode_end_of_rib(kL2vpnEvpn);
  EXPECT_EQ(bmp::encode_route_monitoring(peer(), update),
            join({hex("03 0000004d 00 00 00"), hex(kPeer), update}));
}

TEST(Bmp, FlagsSayWhichTable) {
  const auto flags = [](const bmp::PeerHeader& header) {
    const Bytes message = bmp::encode_route_monitoring(header, {});
    return std::pair(message[6], message[7]);  // peer type and flags
  };
  EXPECT_EQ(flags(peer(bmp::Table::InPre)), std::pair(uint8_t{0}, uint8_t{0x00}));
  EXPECT_EQ(flags(peer(bmp::Table::InPost)), std::pair(uint8_t{0}, uint8_t{0x40}));
  EXPECT_EQ(flags(peer(bmp::Table::OutPost)), std::pair(uint8_t{0}, uint8_t{0x50}));
  EXPECT_EQ(flags(peer(bmp::Table::Loc)), std::pair(uint8_t{3}, uint8_t{0x00}));
  EXPECT_EQ(flags(peer(bmp::Table::InPre, "2001:db8::1")), std::pair(uint8_t{0}, uint8_t{0x80}));
  bmp::PeerHeader old = peer();
  old.two_octet_as = true;
  EXPECT_EQ(flags(old), std::pair(uint8_t{0}, uint8_t{0x20}));
}

TEST(Bmp, Ipv6PeerStandsWhole) {
  const Bytes message =
      bmp::encode_route_monitoring(peer(bmp::Table::InPre, "2001:db8::1"), Bytes{});
  EXPECT_EQ(Bytes(message.begin() + 16, message.begin() + 32),
            hex("20010db8000000000000000000000001"));
}

TEST(Bmp, LocRibHasNoAddress) {
  const Bytes message = bmp::encode_route_monitoring(peer(bmp::Table::Loc), Bytes{});
  EXPECT_EQ(Bytes(message.begin() + 8, message.end()),
            hex("0000000000000000 00000000000000000000000000000000 0000fde9 0a000001 00000001 "
                "0007a120"));
}

TEST(Bmp, PeerUpHasBothOpens) {
  const Bytes sent = hex("aa bb"), received = hex("cc");
  EXPECT_EQ(bmp::encode_peer_up(peer(), {ip("192.0.2.9"), 179, 40000, sent, received, "x"}),
            join({hex("03 00000047 03 00 00"), hex(kPeer),
                  hex("000000000000000000000000c0000209 00b3 9c40 aabb cc")}));
}

TEST(Bmp, LocRibUpNamesTheTable) {
  const Bytes open = hex("aa");
  const Bytes message = bmp::encode_peer_up(peer(bmp::Table::Loc),
                                            {ip("192.0.2.9"), 179, 40000, open, open, "global"});
  EXPECT_EQ(Bytes(message.begin() + 48, message.end()),
            join({hex("00000000000000000000000000000000 0000 0000 aa aa 0003 0006"),
                  {'g', 'l', 'o', 'b', 'a', 'l'}}));
}

TEST(Bmp, PeerDownReasons) {
  using Cause = EndReason::Cause;
  using Reason = bmp::PeerDownReason;
  const Notification shutdown{ErrorCode::Cease, cease::kAdministrativeShutdown, {}};
  const struct {
    EndReason end;
    Reason reason;
    Bytes data;
  } kCases[] = {
      {{Cause::NotificationSent, shutdown},
       Reason::LocalNotification,
       encode_notification(shutdown)},
      {{Cause::NotificationReceived, shutdown},
       Reason::RemoteNotification,
       encode_notification(shutdown)},
      {{Cause::ConnectionClosed, {}}, Reason::RemoteNoNotification, {}},
      {{Cause::SendHoldTimer, {}}, Reason::LocalNoNotification, {0, 29}},
      {{Cause::Replaced, {}}, Reason::LocalNoNotification, {0, 17}},
      {{Cause::Stopped, {}}, Reason::LocalNoNotification, {0, 2}},
  };
  for (const auto& c : kCases) {
    const bmp::PeerDown down = bmp::peer_down(c.end);
    EXPECT_EQ(down.reason, c.reason);
    EXPECT_EQ(down.data, c.data);
    const Bytes message = bmp::encode_peer_down(peer(), down.reason, down.data);
    EXPECT_EQ(message[5], 2);
    EXPECT_EQ(message[48], static_cast<uint8_t>(c.reason));
    EXPECT_EQ(Bytes(message.begin() + 49, message.end()), c.data);
    EXPECT_EQ(message[4], message.size());
  }
}

TEST(Bmp, LocRibDown) {
  const Bytes message = bmp::encode_loc_rib_down(peer(bmp::Table::Loc), "global");
  EXPECT_EQ(Bytes(message.begin() + 48, message.end()),
            join({hex("06 0003 0006"), {'g', 'l', 'o', 'b', 'a', 'l'}}));
}

TEST(Bmp, StatisticsCountWhatTheyHave) {
  bmp::Statistics statistics;
  statistics.family = kL2vpnEvpn;
  statistics.adj_rib_in = 258;
  statistics.treated_as_withdraw = 7;
  const Bytes message = bmp::encode_statistics(peer(), statistics);
  EXPECT_EQ(message[5], 1);
  EXPECT_EQ(message[4], message.size());
  EXPECT_EQ(Bytes(message.begin() + 48, message.end()),
            hex("00000003 0007 0008 0000000000000102 0009 000b 0019 46 0000000000000102 "
                "000b 0004 00000007"));
  statistics = {};
  statistics.family = kL2vpnEvpn;
  statistics.loc_rib = 1;
  statistics.adj_rib_out = 2;
  statistics.rejected_by_policy = 3;
  const Bytes other = bmp::encode_statistics(peer(), statistics);
  EXPECT_EQ(Bytes(other.begin() + 48, other.end()),
            hex("00000005 0000 0004 00000003 0008 0008 0000000000000001 "
                "000a 000b 0019 46 0000000000000001 000f 0008 0000000000000002 "
                "0011 000b 0019 46 0000000000000002"));
}
