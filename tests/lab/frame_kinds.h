// SPDX-License-Identifier: GPL-2.0-or-later
// The frames that labs send and count: builders of one frame each, and the class of a frame that
// was received. Written apart from the product's codecs, so that a fault there isn't made twice.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"

namespace lab {

enum class FrameClass : uint8_t {
  ArpRequest,     // not gratuitous
  ArpReply,       // not gratuitous
  GratuitousArp,  // request or reply whose sender and target address are the same; probes aren't
  Ns,
  Na,             // solicited
  UnsolicitedNa,  // without S flag
  Rs,
  Ra,
  Stp,
  Lldp,
  Lacp,
  Cdp,
  Dhcp,  // DHCP and DHCPv6
  Igmp,
  Mld,
  Ospf,
  OtherBroadcast,
  OtherMulticast,
  Unicast,         // to the receiver
  UnknownUnicast,  // to somebody else
  Count
};
inline constexpr std::size_t kFrameClasses = static_cast<std::size_t>(FrameClass::Count);
const char* to_string(FrameClass frame_class);

// `own`: the receiver's MAC. `frame` from the Ethernet destination.
[[nodiscard]] FrameClass classify(std::span<const uint8_t> frame, const net::MacAddress& own);

// The Ethernet frame inside a VXLAN packet (UDP port 4789, IPv4 or IPv6 without options), or none.
[[nodiscard]] std::optional<std::span<const uint8_t>> inside_vxlan(std::span<const uint8_t> frame);

struct Sender {
  net::MacAddress mac;
  net::IpAddress v4, v6;
};

[[nodiscard]] net::Bytes arp_request(const Sender& from, const net::IpAddress& target);
[[nodiscard]] net::Bytes neighbor_solicitation(const Sender& from, const net::IpAddress& target);

// Frames by name: arp, ns, gratuitous-arp, gratuitous-reply, unsolicited-na, rs, ra, stp, lldp,
// lacp, cdp, dhcp, dhcpv6, igmp, mld, ospf, broadcast, multicast, unknown-unicast.
// Nothing for any other name.
[[nodiscard]] std::optional<net::Bytes> named_frame(std::string_view name, const Sender& from);
[[nodiscard]] std::span<const std::string_view> frame_names();

// What is wrong with an answer to a request of `from` for `target`, or nothing.
struct Expected {
  net::IpAddress target;
  net::MacAddress mac;
  uint8_t na_flags = 0xe0;  // R, S and O as in the first octet of the NA's flags
};
[[nodiscard]] std::optional<std::string_view> fault_of_answer(std::span<const uint8_t> frame,
                                                              const Sender& from,
                                                              const Expected& expected);
// The address that an ARP reply or NA speaks for; none for other frames.
[[nodiscard]] std::optional<net::IpAddress> answered_address(std::span<const uint8_t> frame);

// Internet checksum (RFC 1071) over the pseudo header of an IPv6 packet and its payload.
[[nodiscard]] uint16_t icmpv6_checksum(std::span<const uint8_t> source,
                                       std::span<const uint8_t> destination,
                                       std::span<const uint8_t> payload);
[[nodiscard]] uint16_t checksum(std::span<const uint8_t> data, uint32_t sum = 0);

}  // namespace lab
