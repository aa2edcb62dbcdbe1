// SPDX-License-Identifier: GPL-2.0-or-later
// Golden octets of MRT records: RFC 6396 sections 2, 4.3.1, 4.3.3 and 4.3.4.
#include <gtest/gtest.h>

#include "bgp/mrt.h"
#include "fake_family.h"

using namespace bgp;
using namespace bgp::test;

namespace {

net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

}  // namespace

TEST(Mrt, PeerIndexTable) {
  const std::vector<mrt::Peer> peers{{0x0a000001, ip("192.0.2.1"), 65001},
                                     {0x0a000002, ip("2001:db8::2"), 4200000000}};
  EXPECT_EQ(mrt::encode_peer_index(0x5f000000, 0x0a000009, "rs1", peers),
            join({hex("5f000000 000d 0001 00000031 0a000009 0003"),
                  {'r', 's', '1'},
                  hex("0002 02 0a000001 c0000201 0000fde9"),
                  hex("03 0a000002 20010db8000000000000000000000002 fa56ea00")}));
}

// The next hop alone stands for MP_REACH_NLRI, between attributes 5 and 16.
TEST(Mrt, RibGeneric) {
  auto attributes = std::make_shared<Attributes>();
  attributes->next_hop = ip("192.0.2.7");
  attributes->local_pref = 100;
  attributes->extended_communities = {{0x03, 0x0c, 0, 0, 0, 0, 0, 8}};
  const net::Bytes nlri = hex("01 04 00000005");
  const std::vector<mrt::Entry> entries{{1, 0x5e000000, attributes}};
  EXPECT_EQ(mrt::encode_rib_generic(0x5f000000, 9, kL2vpnEvpn, nlri, entries),
            hex("5f000000 000d 0006 00000038 00000009 0019 46 01 04 00000005 0001"
                "0001 5e000000 0021"
                "40 01 01 00  40 02 00  40 05 04 00000064  80 0e 05 04 c0000207"
                "c0 10 08 030c000000000008"));
}

TEST(Mrt, TwoPathsAndAnIpv6NextHop) {
  auto attributes = std::make_shared<Attributes>();
  attributes->next_hop = ip("2001:db8::7");
  const net::Bytes nlri = hex("01 04 00000005");
  const std::vector<mrt::Entry> entries{{0, 1, attributes}, {2, 3, attributes}};
  EXPECT_EQ(
      mrt::encode_rib_generic(2, 0, kL2vpnEvpn, nlri, entries),
      hex("00000002 000d 0006 00000055 00000000 0019 46 01 04 00000005 0002"
          "0000 00000001 001b 40 01 01 00 40 02 00 80 0e 11 10 20010db8000000000000000000000007"
          "0002 00000003 001b 40 01 01 00 40 02 00 80 0e 11 10 "
          "20010db8000000000000000000000007"));
}
