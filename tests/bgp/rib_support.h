// SPDX-License-Identifier: GPL-2.0-or-later
// What the tests of the RIB share: NLRIs in the manner of EVPN type 2, a family that cuts them, and
// a receiver that keeps what the messages to one peer tell it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bgp/message.h"
#include "bgp/rib.h"
#include "net/bytes.h"

namespace bgp::test {

// RD 8, ESI 10, tag 4, MAC length 1, MAC 6, IP length 1, IP 0 or 4, label 3.
inline net::Bytes make_nlri(uint32_t number, uint32_t label = 100, uint8_t esi = 0,
                            bool with_ip = false) {
  net::ByteWriter out;
  out.u8(2);
  out.u8(with_ip ? 37 : 33);
  out.u64(0x0001c00002010064);
  for (int i = 0; i < 10; ++i) out.u8(esi);
  out.u32(0);
  out.u8(48);
  out.u16(0x0200);
  out.u32(number);
  out.u8(with_ip ? 32 : 0);
  if (with_ip) out.u32(0x0a000000 | number);
  out.u24(label);
  return out.take();
}

inline NlriStatus next_item(net::ByteReader& in, NlriItem& out) {
  const auto whole = in.rest();
  out.type = in.u8();
  const uint8_t size = in.u8();
  const auto body = in.bytes(size);
  if (!in.ok() || size < 33) return NlriStatus::Framing;
  out.bytes = whole.first(size + 2u);
  out.key_storage[0] = out.type;
  const auto end = std::copy_n(body.begin(), 8, out.key_storage + 1);
  const auto rest = body.subspan(18, size - 21u);
  std::copy(rest.begin(), rest.end(), end);
  out.key_size = static_cast<uint8_t>(9 + rest.size());
  return NlriStatus::Ok;
}

inline const Family kTestFamily{kL2vpnEvpn, "test", next_item};

inline NlriItem make_item(const net::Bytes& nlri) {
  NlriItem item;
  net::ByteReader in(nlri);
  EXPECT_EQ(next_item(in, item), NlriStatus::Ok);
  return item;
}

inline net::Bytes key_of(const net::Bytes& nlri) {
  const NlriItem item = make_item(nlri);
  return {item.key().begin(), item.key().end()};
}

inline AttributesPtr share(Attributes attributes) {
  return std::make_shared<const Attributes>(std::move(attributes));
}

inline Attributes vtep(uint32_t last_octet) {
  Attributes a;
  a.next_hop = net::IpAddress::v4(0xc0000200 | last_octet);
  a.extended_communities = {{0x00, 0x02, 0xfd, 0xe8, 0x00, 0x00, 0x00, 0x64},
                            {0x03, 0x0c, 0, 0, 0, 0, 0, 8}};
  return a;
}

inline PeerTraits ibgp(uint32_t number, NeighborRole role = NeighborRole::ReflectorClient) {
  PeerTraits traits;
  traits.internal = true;
  traits.role = role;
  traits.address = net::IpAddress::v4(0x0a000000 | number);
  traits.router_id = 0x0a000000 | number;
  traits.as_number = 65000;
  return traits;
}

inline PeerTraits ebgp(uint32_t number, NeighborRole role = NeighborRole::RouteServerClient) {
  PeerTraits traits = ibgp(number, role);
  traits.internal = false;
  traits.as_number = 65000 + number;
  return traits;
}

inline Rib::Options options() {
  return {.local_as = net::AsNumber(65000),
          .router_id = 0x0a0000fe,
          .cluster_id = 0x0a0000ff,
          .hash_seed = 7};
}

// A peer's view: what it holds after the messages so far.
struct Receiver {
  struct Held {
    net::Bytes nlri;
    AttributesPtr attributes;
  };
  bool internal = true;
  bool four_octet_as = true;
  std::size_t max_message = 4096;
  std::map<net::Bytes, Held> held;
  std::vector<std::string> events;  // "+2", "-1", "EoR", "BoRR", "EoRR"
  std::size_t announced = 0, withdrawn = 0, needless = 0;

  explicit Receiver(const PeerTraits& traits)
      : internal(traits.internal),
        four_octet_as(traits.four_octet_as),
        max_message(traits.max_message) {}

  void take(const net::Bytes& message) {
    ASSERT_LE(message.size(), max_message);
    const auto header = decode_header(message, kMaxExtendedMessage);
    ASSERT_TRUE(header.has_value());
    ASSERT_EQ(header->length, message.size());
    const auto body = std::span<const uint8_t>(message).subspan(kHeaderSize);
    if (header->type == MessageType::RouteRefresh) {
      const auto refresh = decode_route_refresh(body);
      ASSERT_TRUE(refresh.has_value());
      events.push_back(refresh->subtype == 1 ? "BoRR" : "EoRR");
      return;
    }
    ASSERT_EQ(header->type, MessageType::Update);
    const auto update = decode_update(body, kTestFamily, {four_octet_as, internal});
    ASSERT_TRUE(update.has_value());
    ASSERT_EQ(update->handling, ErrorHandling::None);
    if (update->end_of_rib) events.push_back("EoR");
    if (!update->reach.empty()) events.push_back("+" + std::to_string(update->reach.size()));
    if (!update->unreach.empty()) events.push_back("-" + std::to_string(update->unreach.size()));
    for (const NlriItem& item : update->unreach) {
      ++withdrawn;
      needless += 1 - held.erase({item.key().begin(), item.key().end()});
    }
    for (const NlriItem& item : update->reach) {
      ++announced;
      held[{item.key().begin(), item.key().end()}] = {{item.bytes.begin(), item.bytes.end()},
                                                      update->attributes};
    }
  }
  // All that the RIB has for the peer; returns how many messages.
  std::size_t drain(Rib& rib, PeerId peer) {
    std::size_t messages = 0;
    for (;;) {
      const auto message = rib.pull(peer);
      if (message == nullptr && rib.unfinished(peer)) continue;
      if (message == nullptr) break;
      take(*message);
      ++messages;
      if (::testing::Test::HasFatalFailure()) return messages;
    }
    return messages;
  }
  const Held* find(const net::Bytes& nlri) const {
    const auto found = held.find(key_of(nlri));
    return found == held.end() ? nullptr : &found->second;
  }
};

}  // namespace bgp::test
