// SPDX-License-Identifier: GPL-2.0-or-later
// The extended communities that EVPN uses: RFC 7432 section 7.5 to 7.8, RFC 9047, RFC 9012 section
// 4.1, RFC 4360. Each has a reader that finds the first one in a path, and a maker.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bgp/attributes.h"
#include "evpn/settings.h"

namespace evpn {

struct MacMobility {  // 0x06 0x00
  bool sticky = false;
  uint32_t sequence = 0;
  bool operator==(const MacMobility&) const = default;
};
struct ArpNdFlags {  // 0x06 0x08, RFC 9047 section 2
  bool router = true;
  bool override_flag = true;
  bool immutable = false;
  auto operator<=>(const ArpNdFlags&) const = default;
};
inline constexpr uint16_t kEncapsulationVxlan = 8;

[[nodiscard]] bgp::ExtendedCommunity make_mac_mobility(const MacMobility& value);
[[nodiscard]] std::optional<MacMobility> mac_mobility(const bgp::Attributes& attributes);
[[nodiscard]] bgp::ExtendedCommunity make_arp_nd(const ArpNdFlags& value);
[[nodiscard]] std::optional<ArpNdFlags> arp_nd(const bgp::Attributes& attributes);
[[nodiscard]] bgp::ExtendedCommunity make_encapsulation(uint16_t tunnel_type);
[[nodiscard]] std::optional<uint16_t> encapsulation(const bgp::Attributes& attributes);
// True when VXLAN is among the encapsulations the path offers, or none is named (RFC 8365 section
// 5.1.3: then it is the locally configured one).
[[nodiscard]] bool accepts_vxlan(const bgp::Attributes& attributes);

// Route targets: types 0x00, 0x01 and 0x02 with sub-type 0x02.
[[nodiscard]] bool is_route_target(const bgp::ExtendedCommunity& community);
[[nodiscard]] RouteTarget make_route_target(uint32_t as_number,
                                            uint32_t value);  // picks AS2 or AS4
// Automatic targets: (AS & 0xffff):VNI as FRRouting sends, and RFC 8365 section 5.1.2.1.
[[nodiscard]] RouteTarget auto_route_target(net::AsNumber as, net::Vni vni);
[[nodiscard]] RouteTarget rfc8365_route_target(net::AsNumber as, net::Vni vni);
// What is imported and sent in effect, as text: "65000:100", or "*:100" for that number of any AS.
[[nodiscard]] std::vector<std::string> import_target_texts(const Settings& settings);
[[nodiscard]] std::vector<std::string> export_target_texts(const Settings& settings);
// True when the path carries a target that these settings import.
[[nodiscard]] bool imports(const Settings& settings, const bgp::Attributes& attributes);

// "RT:65000:100", "ET:8", "MM:3", "MM:0,sticky", "ND:R,O,I", or "0x0608030000000000" for what has
// no name.
[[nodiscard]] std::string to_string(const bgp::ExtendedCommunity& community);

struct PmsiTunnel {  // RFC 6514 section 5; label = VNI for VXLAN (RFC 8365 section 9)
  uint8_t flags = 0;
  uint8_t tunnel_type = 6;  // ingress replication
  uint32_t label = 0;
  net::IpAddress endpoint;
  bool operator==(const PmsiTunnel&) const = default;
};
[[nodiscard]] net::Bytes encode_pmsi(const PmsiTunnel& value);
// Nothing when it is not ingress replication with a 4 or 16 octet endpoint.
[[nodiscard]] std::optional<PmsiTunnel> decode_pmsi(const net::Bytes& value);

}  // namespace evpn
