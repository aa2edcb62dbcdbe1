// SPDX-License-Identifier: GPL-2.0-or-later
// Attributes stand as in an UPDATE with four-octet AS numbers; of MP_REACH_NLRI only the next hop
// (RFC 6396 section 4.3.4), and it comes in order of type.
#include "bgp/mrt.h"

#include <algorithm>

#include "bgp/message.h"

namespace bgp::mrt {
namespace {

constexpr uint16_t kTableDumpV2 = 13;
constexpr uint16_t kPeerIndexTable = 1, kRibGeneric = 6;
constexpr uint8_t kIpv6 = 1, kFourOctetAs = 2;  // peer type

// Header of section 2; the length is patched by finish().
net::ByteWriter begin(uint32_t time, uint16_t subtype) {
  net::ByteWriter out;
  out.u32(time);
  out.u16(kTableDumpV2);
  out.u16(subtype);
  out.u32(0);
  return out;
}

net::Bytes finish(net::ByteWriter& out) {
  const std::size_t length = out.size() - 12;
  out.patch_u16(8, length >> 16);
  out.patch_u16(10, length & 0xffff);
  return out.take();
}

// Where the attribute after MP_REACH_NLRI begins.
std::size_t place_of_next_hop(std::span<const uint8_t> attributes) {
  net::ByteReader in(attributes);
  while (in.remaining() > 0) {
    const std::size_t at = attributes.size() - in.remaining();
    const uint8_t flags = in.u8();
    if (in.u8() > static_cast<uint8_t>(AttributeType::MpReachNlri)) return at;
    in.bytes((flags & kFlagExtendedLength) != 0 ? in.u16() : in.u8());
  }
  return attributes.size();
}

}  // namespace

net::Bytes encode_peer_index(uint32_t time, uint32_t collector_id, std::string_view view_name,
                             std::span<const Peer> peers) {
  view_name = view_name.substr(0, 0xffff);
  net::ByteWriter out = begin(time, kPeerIndexTable);
  out.u32(collector_id);
  out.u16(static_cast<uint16_t>(view_name.size()));
  out.bytes({reinterpret_cast<const uint8_t*>(view_name.data()), view_name.size()});
  out.u16(static_cast<uint16_t>(peers.size()));
  for (const Peer& peer : peers) {
    out.u8(peer.address.is_v6() ? kIpv6 | kFourOctetAs : kFourOctetAs);
    out.u32(peer.router_id);
    out.bytes(peer.address.bytes());
    out.u32(peer.as_number);
  }
  return finish(out);
}

net::Bytes encode_rib_generic(uint32_t time, uint32_t sequence, AfiSafi family,
                              std::span<const uint8_t> nlri, std::span<const Entry> entries) {
  net::ByteWriter out = begin(time, kRibGeneric);
  out.u32(sequence);
  out.u16(family.afi);
  out.u8(family.safi);
  out.bytes(nlri);
  out.u16(static_cast<uint16_t>(entries.size()));
  for (const Entry& entry : entries) {
    const net::Bytes attributes = encode_attributes(*entry.attributes, {.four_octet_as = true});
    const auto next_hop = entry.attributes->next_hop.bytes();
    const std::size_t split = place_of_next_hop(attributes);
    out.u16(entry.peer);
    out.u32(entry.originated);
    out.u16(static_cast<uint16_t>(attributes.size() + 3 + 1 + next_hop.size()));
    out.bytes(std::span(attributes).first(split));
    out.u8(kFlagOptional);
    out.u8(static_cast<uint8_t>(AttributeType::MpReachNlri));
    out.u8(static_cast<uint8_t>(1 + next_hop.size()));
    out.u8(static_cast<uint8_t>(next_hop.size()));
    out.bytes(next_hop);
    out.bytes(std::span(attributes).subspan(split));
  }
  return finish(out);
}

}  // namespace bgp::mrt
