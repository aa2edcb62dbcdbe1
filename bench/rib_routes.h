// SPDX-License-Identifier: GPL-2.0-or-later
// Routes for the benchmarks of the RIB alone.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bgp/attributes.h"
#include "bgp/message.h"
#include "evpn/nlri.h"
#include "net/bytes.h"

namespace bench {

struct Sender {
  std::vector<net::Bytes> announcements, withdrawals;
};

inline net::Bytes nlri(uint32_t sender, uint32_t number) {
  evpn::MacIp route;
  const net::IpAddress vtep = net::IpAddress::v4(0x0a630100 + sender);
  net::ByteWriter rd;
  rd.u16(1);
  rd.bytes(vtep.bytes());
  rd.u16(1);
  route.rd = net::RouteDistinguisher::from_bytes(rd.view());
  net::ByteWriter mac;
  mac.u8(2);
  mac.u8(static_cast<uint8_t>(sender));
  mac.u32(number);
  route.mac = net::MacAddress::from_bytes(mac.view());
  route.ip = net::IpAddress::v4(0x0a000000 | sender << 20 | number);
  route.label1 = 100;
  return evpn::encode(route);
}

inline bgp::Attributes attributes(uint32_t sender, uint32_t number) {
  bgp::Attributes a;
  a.local_pref = 100;
  a.next_hop = net::IpAddress::v4(0x0a630100 + sender);
  a.extended_communities = {{0x00, 0x02, 0xfd, 0xe8, 0x00, 0x00, 0x00, 0x64},
                            {0x03, 0x0c, 0, 0, 0, 0, 0, 8}};
  if (number != 0)
    a.extended_communities.push_back(
        {0x06, 0x00, 0, 0, static_cast<uint8_t>(number >> 24), static_cast<uint8_t>(number >> 16),
         static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)});
  return a;
}

inline Sender make_sender(uint32_t sender, uint32_t routes, bool unique) {
  std::vector<net::Bytes> storage;
  std::vector<std::span<const uint8_t>> spans;
  for (uint32_t i = 0; i < routes; ++i) storage.push_back(nlri(sender, i));
  for (const net::Bytes& n : storage) spans.push_back(n);
  Sender out;
  for (std::size_t done = 0; done < spans.size();) {
    const auto a = attributes(sender, unique ? static_cast<uint32_t>(done) + 1 : 0);
    auto rest = std::span<const std::span<const uint8_t>>(spans).subspan(done);
    if (unique) rest = rest.first(1);
    auto packed = bgp::encode_reach(bgp::kL2vpnEvpn, a.next_hop, bgp::encode_attributes(a, {}),
                                    rest, bgp::kMaxMessage);
    done += packed.taken;
    out.announcements.push_back(std::move(packed.message));
  }
  for (std::size_t done = 0; done < spans.size();) {
    auto packed = bgp::encode_unreach(
        bgp::kL2vpnEvpn, std::span<const std::span<const uint8_t>>(spans).subspan(done),
        bgp::kMaxMessage);
    done += packed.taken;
    out.withdrawals.push_back(std::move(packed.message));
  }
  return out;
}

}  // namespace bench
