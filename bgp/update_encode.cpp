// SPDX-License-Identifier: GPL-2.0-or-later
// UPDATE, to bytes: path attributes in order of their type (RFC 4271 section 5) and whole messages
// filled with as many NLRI as fit. MP_REACH_NLRI or MP_UNREACH_NLRI comes first (RFC 7606 section
// 5.1), so that a receiver finds the routes whatever it thinks of the rest.
#include <algorithm>
#include <array>
#include <cstring>

#include "bgp/message.h"
#include "bgp/message_frame.h"

namespace bgp {
namespace {

constexpr uint8_t kOptionalTransitive = kFlagOptional | kFlagTransitive;

// A value of more than 65535 octets (a path of two-octet numbers that grew) has a wrong length
// here, but also no message that could hold it: encode_reach() never takes it.
void attribute(net::ByteWriter& out, uint8_t flags, uint8_t type, std::span<const uint8_t> value) {
  const bool extended = value.size() > 255;
  out.u8(
      static_cast<uint8_t>(extended ? flags | kFlagExtendedLength : flags & ~kFlagExtendedLength));
  out.u8(type);
  if (extended)
    out.u16(static_cast<uint16_t>(value.size()));
  else
    out.u8(static_cast<uint8_t>(value.size()));
  out.bytes(value);
}
void attribute(net::ByteWriter& out, uint8_t flags, AttributeType type,
               std::span<const uint8_t> value) {
  attribute(out, flags, static_cast<uint8_t>(type), value);
}

std::array<uint8_t, 4> number(uint32_t value) {
  return {static_cast<uint8_t>(value >> 24), static_cast<uint8_t>(value >> 16),
          static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)};
}

net::Bytes numbers(std::span<const uint32_t> values) {
  net::ByteWriter out;
  for (uint32_t value : values) out.u32(value);
  return out.take();
}

void as_number(net::ByteWriter& out, uint32_t value, bool four_octets) {
  if (four_octets)
    out.u32(value);
  else
    out.u16(value > 0xffff ? kAsTrans : static_cast<uint16_t>(value));
}

bool is_confederation(const AsPathSegment& segment) {
  return segment.type == AsPathSegment::ConfedSequence || segment.type == AsPathSegment::ConfedSet;
}

// A segment counts its ASes in one octet: a longer sequence goes on in the next.
net::Bytes as_path(std::span<const AsPathSegment> path, bool four_octets, bool confederations) {
  net::ByteWriter out;
  for (const AsPathSegment& segment : path) {
    if (is_confederation(segment) && !confederations) continue;
    std::span<const uint32_t> rest = segment.as_numbers;
    while (!rest.empty()) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), 255));
      out.u8(segment.type);
      out.u8(static_cast<uint8_t>(part.size()));
      for (uint32_t value : part) as_number(out, value, four_octets);
      rest = rest.subspan(part.size());
    }
  }
  return out.take();
}

bool needs_four_octets(const Attributes& attributes) {
  return std::ranges::any_of(attributes.as_path, [](const AsPathSegment& segment) {
    return !is_confederation(segment) &&
           std::ranges::any_of(segment.as_numbers, [](uint32_t value) { return value > 0xffff; });
  });
}

net::Bytes aggregator(const Aggregator& value, bool four_octets) {
  net::ByteWriter out;
  as_number(out, value.as_number, four_octets);
  out.u32(value.router_id);
  return out.take();
}

std::array<uint8_t, 3> octets(AfiSafi family) {
  return {static_cast<uint8_t>(family.afi >> 8), static_cast<uint8_t>(family.afi), family.safi};
}

// Message, then the attribute `type` with as many NLRI behind `head` as fit, then `tail`.
PackedUpdate pack(AttributeType type, std::span<const uint8_t> head, std::span<const uint8_t> tail,
                  std::span<const std::span<const uint8_t>> nlris, std::size_t max_message) {
  constexpr std::size_t kFixed = kHeaderSize + 2 + 2 + 4;  // the two lengths, attribute header
  max_message = std::min(max_message, kMaxExtendedMessage);
  const std::size_t fixed = kFixed + head.size() + tail.size();
  PackedUpdate packed;
  std::size_t size = 0;
  while (packed.taken < nlris.size() && fixed <= max_message &&
         nlris[packed.taken].size() <= max_message - fixed - size)
    size += nlris[packed.taken++].size();
  if (packed.taken == 0) return packed;
  net::Bytes& out = packed.message;
  out.assign(fixed + size, 0xff);  // the marker, and what is written over at once
  uint8_t* at = out.data() + 16;
  const auto u16 = [&at](std::size_t value) {
    *at++ = static_cast<uint8_t>(value >> 8);
    *at++ = static_cast<uint8_t>(value);
  };
  const auto bytes = [&at](std::span<const uint8_t> octets) {
    if (!octets.empty()) std::memcpy(at, octets.data(), octets.size());
    at += octets.size();
  };
  u16(out.size());
  *at++ = static_cast<uint8_t>(MessageType::Update);
  u16(0);  // withdrawn IPv4 routes
  u16(4 + head.size() + size + tail.size());
  *at++ = kFlagOptional | kFlagExtendedLength;
  *at++ = static_cast<uint8_t>(type);
  u16(head.size() + size);
  bytes(head);
  for (const auto& nlri : nlris.first(packed.taken)) bytes(nlri);
  bytes(tail);
  return packed;
}

}  // namespace

net::Bytes encode_attributes(const Attributes& a, const EncodeOptions& options) {
  net::ByteWriter out;
  out.reserve(256);  // room for nearly all, at once
  out.truncate(0);
  auto next_unknown = a.unknown.begin();
  const auto unknown_below = [&](AttributeType type) {
    for (; next_unknown != a.unknown.end() && next_unknown->type < static_cast<uint8_t>(type);
         ++next_unknown)
      attribute(out, next_unknown->flags, next_unknown->type, next_unknown->value);
  };
  const auto put = [&](uint8_t flags, AttributeType type, std::span<const uint8_t> value) {
    unknown_below(type);
    const bool partial = (a.partial & partial_bit(type)) != 0;
    attribute(out, static_cast<uint8_t>(partial ? flags | kFlagPartial : flags), type, value);
  };
  put(kFlagTransitive, AttributeType::Origin, std::array{static_cast<uint8_t>(a.origin)});
  put(kFlagTransitive, AttributeType::AsPath, as_path(a.as_path, options.four_octet_as, true));
  if (a.multi_exit_disc)
    put(kFlagOptional, AttributeType::MultiExitDisc, number(*a.multi_exit_disc));
  if (a.local_pref) put(kFlagTransitive, AttributeType::LocalPref, number(*a.local_pref));
  if (a.atomic_aggregate) put(kFlagTransitive, AttributeType::AtomicAggregate, {});
  if (a.aggregator)
    put(kOptionalTransitive, AttributeType::Aggregator,
        aggregator(*a.aggregator, options.four_octet_as));
  if (!a.communities.empty())
    put(kOptionalTransitive, AttributeType::Communities, numbers(a.communities));
  if (a.originator_id) put(kFlagOptional, AttributeType::OriginatorId, number(*a.originator_id));
  if (!a.cluster_list.empty())
    put(kFlagOptional, AttributeType::ClusterList, numbers(a.cluster_list));
  if (!a.extended_communities.empty()) {
    static_assert(sizeof(ExtendedCommunity) == 8);  // octets in a row
    put(kOptionalTransitive, AttributeType::ExtendedCommunities,
        {a.extended_communities.data()->data(), a.extended_communities.size() * 8});
  }
  if (!options.four_octet_as && needs_four_octets(a))
    put(kOptionalTransitive, AttributeType::As4Path, as_path(a.as_path, true, false));
  if (!options.four_octet_as && a.aggregator && a.aggregator->as_number > 0xffff)
    put(kOptionalTransitive, AttributeType::As4Aggregator, aggregator(*a.aggregator, true));
  if (a.pmsi_tunnel) put(kOptionalTransitive, AttributeType::PmsiTunnel, *a.pmsi_tunnel);
  if (!a.large_communities.empty()) {
    net::ByteWriter value;
    for (const LargeCommunity& community : a.large_communities)
      for (uint32_t part : community) value.u32(part);
    put(kOptionalTransitive, AttributeType::LargeCommunities, value.view());
  }
  for (; next_unknown != a.unknown.end(); ++next_unknown)
    attribute(out, next_unknown->flags, next_unknown->type, next_unknown->value);
  return out.take();
}

PackedUpdate encode_reach(AfiSafi family, const net::IpAddress& next_hop,
                          std::span<const uint8_t> encoded_attributes,
                          std::span<const std::span<const uint8_t>> nlris,
                          std::size_t max_message) {
  const auto address = next_hop.bytes();
  std::array<uint8_t, 4 + 16 + 1> head{};
  const auto afi_safi = octets(family);
  std::ranges::copy(afi_safi, head.begin());
  head[3] = static_cast<uint8_t>(address.size());
  std::ranges::copy(address, head.begin() + 4);  // one reserved octet follows
  return pack(AttributeType::MpReachNlri, std::span(head).first(4 + address.size() + 1),
              encoded_attributes, nlris, max_message);
}

PackedUpdate encode_unreach(AfiSafi family, std::span<const std::span<const uint8_t>> nlris,
                            std::size_t max_message) {
  return pack(AttributeType::MpUnreachNlri, octets(family), {}, nlris, max_message);
}

// RFC 4724 section 2.
net::Bytes encode_end_of_rib(AfiSafi family) {
  net::ByteWriter out;
  const std::size_t length = begin_message(out, MessageType::Update);
  out.u16(0);
  out.u16(6);
  out.u8(kFlagOptional);
  out.u8(static_cast<uint8_t>(AttributeType::MpUnreachNlri));
  out.u8(3);
  out.u16(family.afi);
  out.u8(family.safi);
  out.patch_u16(length, out.size());
  return out.take();
}

}  // namespace bgp
