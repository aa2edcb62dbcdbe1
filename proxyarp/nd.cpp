// SPDX-License-Identifier: GPL-2.0-or-later
// ND codec: neighbor solicitation and advertisement of RFC 4861 in Ethernet frames, with all checks
// of sections 7.1.1 and 7.1.2. Frames in, values out, and back; no policy here.
#include "proxyarp/nd.h"

#include <algorithm>
#include <array>

#include "proxyarp/ethernet.h"

namespace proxyarp {
namespace {

constexpr std::size_t kNdFixed = 24;  // type to target
constexpr uint8_t kIcmpv6 = 58, kHopLimit = 255;
constexpr uint8_t kOptionSourceLla = 1, kOptionTargetLla = 2;
constexpr uint32_t kFlagRouter = 0x80000000, kFlagSolicited = 0x40000000,
                   kFlagOverride = 0x20000000;

net::IpAddress all_nodes() {
  return net::IpAddress::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

uint32_t sum16(std::span<const uint8_t> bytes, uint32_t sum) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum += i % 2 == 0 ? static_cast<uint32_t>(bytes[i]) << 8 : bytes[i];
  return sum;
}

// RFC 4443 section 2.3: zero over a message with the right checksum in it. `addresses` are source
// and destination as in the IPv6 header.
uint16_t checksum(std::span<const uint8_t> addresses, std::span<const uint8_t> message) {
  uint32_t sum = sum16(message, sum16(addresses, kIcmpv6));
  sum += static_cast<uint32_t>(message.size());
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::optional<NdError> decode_options(net::ByteReader& in, NdFrame& nd) {
  const uint8_t link_layer = nd.is_solicitation() ? kOptionSourceLla : kOptionTargetLla;
  while (!in.done()) {
    const uint8_t type = in.u8();
    const std::size_t octets = in.u8() * std::size_t{8};
    if (!in.ok() || octets == 0) return NdError::Option;
    const auto value = in.bytes(octets - 2);
    if (!in.ok()) return NdError::Option;
    if (type != link_layer) {
      nd.options.push_back({type, net::Bytes(value.begin(), value.end())});
      continue;
    }
    if (value.size() != 6 || nd.link_layer) return NdError::Option;
    nd.link_layer = net::MacAddress::from_bytes(value);
  }
  return std::nullopt;
}

// RFC 4861 sections 7.1.1 and 7.1.2 as far as they concern addresses.
std::optional<NdError> check_addresses(const NdFrame& nd) {
  if (nd.target.is_multicast() || nd.target.is_unspecified()) return NdError::Target;
  if (nd.from.is_multicast()) return NdError::Source;
  if (nd.from.is_unspecified() && !nd.is_solicitation()) return NdError::Source;
  if (nd.destination.is_multicast() &&
      (!nd.to.is_multicast() || nd.destination != multicast_mac(nd.to)))
    return NdError::Destination;
  if (!nd.is_solicitation())
    return nd.to.is_multicast() && nd.solicited ? std::optional(NdError::Solicited) : std::nullopt;
  if (nd.to.is_multicast() && nd.to != net::solicited_node(nd.target)) return NdError::Destination;
  if (nd.is_dad() && !nd.to.is_multicast()) return NdError::Destination;
  if (nd.is_dad() && nd.link_layer) return NdError::SourceLla;
  return std::nullopt;
}

}  // namespace

bool NdFrame::is_secured() const {
  return std::ranges::any_of(options, [](const NdOption& option) {
    return option.type == kOptionCga || option.type == kOptionRsaSignature;
  });
}

bool NdFrame::has_option_beyond(const std::set<uint8_t>& known) const {
  if (link_layer && !known.contains(is_solicitation() ? kOptionSourceLla : kOptionTargetLla))
    return true;
  return std::ranges::any_of(options,
                             [&](const NdOption& option) { return !known.contains(option.type); });
}

std::expected<NdFrame, NdError> decode_nd(std::span<const uint8_t> frame) {
  net::ByteReader in(frame);
  NdFrame nd;
  const auto destination = in.bytes(6);
  const auto source = in.bytes(6);
  const uint16_t ethertype = in.u16();
  const uint32_t version = in.u32() >> 28;
  const std::size_t payload = in.u16();
  const uint8_t next = in.u8();
  const uint8_t hop_limit = in.u8();
  const auto addresses = in.bytes(32);
  if (!in.ok()) return std::unexpected(NdError::Truncated);
  if (ethertype != kEtherTypeIpv6 || version != 6 || next != kIcmpv6)
    return std::unexpected(NdError::NotNd);
  if (payload > in.remaining()) return std::unexpected(NdError::Truncated);
  if (payload < kNdFixed) return std::unexpected(NdError::Length);
  if (hop_limit != kHopLimit) return std::unexpected(NdError::HopLimit);
  const auto message = in.bytes(payload);
  if (checksum(addresses, message) != 0) return std::unexpected(NdError::Checksum);

  net::ByteReader body(message);
  const uint8_t type = body.u8();
  if (type != static_cast<uint8_t>(NdType::Solicitation) &&
      type != static_cast<uint8_t>(NdType::Advertisement))
    return std::unexpected(NdError::NotNd);
  if (body.u8() != 0) return std::unexpected(NdError::Code);
  body.u16();
  const uint32_t flags = body.u32();
  nd.destination = net::MacAddress::from_bytes(destination);
  nd.source = net::MacAddress::from_bytes(source);
  nd.from = *net::IpAddress::from_bytes(addresses.first(16));
  nd.to = *net::IpAddress::from_bytes(addresses.last(16));
  nd.type = static_cast<NdType>(type);
  if (!nd.is_solicitation()) {
    nd.router = (flags & kFlagRouter) != 0;
    nd.solicited = (flags & kFlagSolicited) != 0;
    nd.override_flag = (flags & kFlagOverride) != 0;
  }
  nd.target = *net::IpAddress::from_bytes(body.bytes(16));
  if (const auto error = decode_options(body, nd)) return std::unexpected(*error);
  if (const auto error = check_addresses(nd)) return std::unexpected(*error);
  return nd;
}

net::Bytes encode_nd(const NdFrame& nd) {
  net::ByteWriter out;
  out.bytes(nd.destination.bytes());
  out.bytes(nd.source.bytes());
  out.u16(kEtherTypeIpv6);
  out.u32(6u << 28);
  const std::size_t length_at = out.reserve(2);
  out.u8(kIcmpv6);
  out.u8(kHopLimit);
  const std::size_t addresses_at = out.size();
  out.bytes(nd.from.bytes());
  out.bytes(nd.to.bytes());
  const std::size_t message_at = out.size();
  out.u8(static_cast<uint8_t>(nd.type));
  out.u8(0);
  const std::size_t checksum_at = out.reserve(2);
  out.u32((nd.router ? kFlagRouter : 0) | (nd.solicited ? kFlagSolicited : 0) |
          (nd.override_flag ? kFlagOverride : 0));
  out.bytes(nd.target.bytes());
  if (nd.link_layer) {
    out.u8(nd.is_solicitation() ? kOptionSourceLla : kOptionTargetLla);
    out.u8(1);
    out.bytes(nd.link_layer->bytes());
  }
  for (const NdOption& option : nd.options) {
    out.u8(option.type);
    out.u8(static_cast<uint8_t>((option.value.size() + 2) / 8));
    out.bytes(option.value);
  }
  out.patch_u16(length_at, out.size() - message_at);
  out.patch_u16(checksum_at,
                checksum(out.view().subspan(addresses_at, 32), out.view().subspan(message_at)));
  return out.take();
}

NdFrame neighbor_advertisement(const NdFrame& solicitation, net::MacAddress owner, NaFlags flags) {
  NdFrame nd = unsolicited_advertisement(solicitation.target, owner, flags);
  if (!solicitation.is_dad()) {
    nd.destination = solicitation.source;
    nd.to = solicitation.from;
    nd.solicited = true;
  }
  return nd;
}

NdFrame unsolicited_advertisement(const net::IpAddress& ip, net::MacAddress mac, NaFlags flags) {
  NdFrame nd;
  nd.type = NdType::Advertisement;
  nd.to = all_nodes();
  nd.destination = multicast_mac(nd.to);
  nd.source = mac;
  nd.from = ip;
  nd.router = flags.router;
  nd.override_flag = flags.override_flag;
  nd.target = ip;
  nd.link_layer = mac;
  return nd;
}

net::IpAddress eui64_link_local(net::MacAddress mac) {
  const auto m = mac.bytes();
  return net::IpAddress::v6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(m[0] ^ 2), m[1],
                             m[2], 0xff, 0xfe, m[3], m[4], m[5]});
}

}  // namespace proxyarp
