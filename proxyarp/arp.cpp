// SPDX-License-Identifier: GPL-2.0-or-later
// ARP codec, RFC 826 and the two special requests of RFC 5227 (probe, announcement). Frames in,
// values out, and back; no policy here.
#include "proxyarp/arp.h"

#include "proxyarp/ethernet.h"

namespace proxyarp {
namespace {

constexpr uint16_t kHardwareEthernet = 1;
constexpr uint8_t kMacLength = 6;
constexpr uint8_t kIpLength = 4;

}  // namespace

std::expected<ArpFrame, ArpError> decode_arp(std::span<const uint8_t> frame) {
  net::ByteReader in(frame);
  const auto destination = in.bytes(kMacLength);
  const auto source = in.bytes(kMacLength);
  const uint16_t ethertype = in.u16();
  const uint16_t hardware = in.u16();
  const uint16_t protocol = in.u16();
  const uint8_t mac_length = in.u8();
  const uint8_t ip_length = in.u8();
  const uint16_t operation = in.u16();
  const auto sender_mac = in.bytes(kMacLength);
  const uint32_t sender_ip = in.u32();
  const auto target_mac = in.bytes(kMacLength);
  const uint32_t target_ip = in.u32();
  if (!in.ok()) return std::unexpected(ArpError::Truncated);
  if (ethertype != kEtherTypeArp) return std::unexpected(ArpError::EtherType);
  if (hardware != kHardwareEthernet) return std::unexpected(ArpError::HardwareType);
  if (protocol != kEtherTypeIpv4) return std::unexpected(ArpError::Protocol);
  if (mac_length != kMacLength || ip_length != kIpLength) return std::unexpected(ArpError::Lengths);
  if (operation != 1 && operation != 2) return std::unexpected(ArpError::Operation);
  return ArpFrame{.destination = net::MacAddress::from_bytes(destination),
                  .source = net::MacAddress::from_bytes(source),
                  .operation = operation == 1 ? ArpOperation::Request : ArpOperation::Reply,
                  .sender_mac = net::MacAddress::from_bytes(sender_mac),
                  .sender_ip = net::IpAddress::v4(sender_ip),
                  .target_mac = net::MacAddress::from_bytes(target_mac),
                  .target_ip = net::IpAddress::v4(target_ip)};
}

net::Bytes encode_arp(const ArpFrame& arp) {
  net::ByteWriter out;
  out.bytes(arp.destination.bytes());
  out.bytes(arp.source.bytes());
  out.u16(kEtherTypeArp);
  out.u16(kHardwareEthernet);
  out.u16(kEtherTypeIpv4);
  out.u8(kMacLength);
  out.u8(kIpLength);
  out.u16(static_cast<uint16_t>(arp.operation));
  out.bytes(arp.sender_mac.bytes());
  out.bytes(arp.sender_ip.bytes());
  out.bytes(arp.target_mac.bytes());
  out.bytes(arp.target_ip.bytes());
  out.reserve(kMinimumFrame - out.size());
  return out.take();
}

ArpFrame arp_reply(const ArpFrame& request, net::MacAddress owner) {
  return {.destination = request.sender_mac,
          .source = owner,
          .operation = ArpOperation::Reply,
          .sender_mac = owner,
          .sender_ip = request.target_ip,
          .target_mac = request.sender_mac,
          .target_ip = request.sender_ip};
}

ArpFrame arp_announcement(const net::IpAddress& ip, net::MacAddress mac) {
  return {.destination = net::kBroadcastMac,
          .source = mac,
          .operation = ArpOperation::Request,
          .sender_mac = mac,
          .sender_ip = ip,
          .target_mac = {},
          .target_ip = ip};
}

}  // namespace proxyarp
