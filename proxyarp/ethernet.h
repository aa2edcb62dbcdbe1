// SPDX-License-Identifier: GPL-2.0-or-later
// What kind of frame it is, before ARP or ND is decoded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/ip_address.h"
#include "net/mac_address.h"

namespace proxyarp {

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr std::size_t kEthernetHeader = 14;
inline constexpr std::size_t kMinimumFrame = 60;  // without FCS

enum class FrameClass : uint8_t {
  Arp,
  Nd,        // neighbor solicitation or advertisement, directly behind the IPv6 header
  HiddenNd,  // ND behind extension headers or a fragment header (RFC 6980), or an IPv6 header
             // chain that is cut off: not to be passed on
  Other,
  Truncated,  // no Ethernet header
};
[[nodiscard]] FrameClass classify(std::span<const uint8_t> frame);

// RFC 2464 section 7.
[[nodiscard]] net::MacAddress multicast_mac(const net::IpAddress& group);

}  // namespace proxyarp
