// SPDX-License-Identifier: GPL-2.0-or-later
// ARP for Ethernet and IPv4 (RFC 826): whole frames, from Ethernet destination on.
#pragma once
#include <cstdint>
#include <expected>
#include <span>

#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"

namespace proxyarp {

enum class ArpOperation : uint8_t { Request = 1, Reply = 2 };

struct ArpFrame {
  net::MacAddress destination, source;  // Ethernet
  ArpOperation operation = ArpOperation::Request;
  net::MacAddress sender_mac;
  net::IpAddress sender_ip;
  net::MacAddress target_mac;
  net::IpAddress target_ip;
  bool operator==(const ArpFrame&) const = default;

  bool is_request() const { return operation == ArpOperation::Request; }
  bool is_probe() const { return is_request() && sender_ip.is_unspecified(); }  // RFC 5227
  bool is_gratuitous() const { return sender_ip == target_ip && !is_probe(); }
};

enum class ArpError : uint8_t { Truncated, EtherType, HardwareType, Protocol, Lengths, Operation };

// Octets after the ARP packet are padding.
[[nodiscard]] std::expected<ArpFrame, ArpError> decode_arp(std::span<const uint8_t> frame);
// Padded to the 60 octets of the smallest Ethernet frame.
[[nodiscard]] net::Bytes encode_arp(const ArpFrame& arp);

// The answer that the owner of the target would give, Ethernet source included. To a probe the
// target address is 0.0.0.0.
[[nodiscard]] ArpFrame arp_reply(const ArpFrame& request, net::MacAddress owner);
// RFC 5227 section 3: a broadcast request with sender and target address alike, target MAC zero.
[[nodiscard]] ArpFrame arp_announcement(const net::IpAddress& ip, net::MacAddress mac);

}  // namespace proxyarp
