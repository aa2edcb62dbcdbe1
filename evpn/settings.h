// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for EVPN in one broadcast domain. config/ fills it, evpn/ obeys it.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"
#include "net/strong.h"

namespace evpn {

// A route target as the 8 octets of its extended community (RFC 4360 section 4).
using RouteTarget = std::array<uint8_t, 8>;

// "65000:100", "192.0.2.1:100" or "4200000000:100"; both ways.
[[nodiscard]] std::optional<RouteTarget> parse_route_target(const std::string& text);
[[nodiscard]] std::string route_target_text(const RouteTarget& target);

struct Settings {
  std::string name;  // of the broadcast domain
  net::Vni vni;
  net::IpAddress vtep;  // our VXLAN source address
  net::AsNumber local_as;
  std::optional<net::RouteDistinguisher> rd;  // absent: router id and a number made from the VNI
  net::IpAddress router_id;
  // Empty: automatic. We then send AS:VNI, as FRRouting does, and import *:VNI as well as the form
  // of RFC 8365 section 5.1.2.1 (AS:0x10000000|VNI).
  std::vector<RouteTarget> import_targets, export_targets;
  // Of the routes of this domain: 0 for VLAN-based service (RFC 7432 section 6.1), another one
  // where a VLAN-aware bundle maps it to the domain (section 6.3). Absent: any is taken, 0 is sent.
  std::optional<uint32_t> ethernet_tag{0};
  // Duplicate MAC detection, RFC 7432 section 15.1. No moves: off. No hold: until the operator
  // clears it.
  uint32_t duplicate_moves = 5;
  std::chrono::seconds duplicate_window{180};
  std::chrono::seconds duplicate_hold{540};
  // Of bindings whose routes don't say whether they are a router's (RFC 9047 section 3.2).
  bool default_router = true;
  // IPv4 bindings that are immutable say so in the ARP/ND extended community (RFC 9047).
  bool arp_nd_for_v4 = true;
  // RFC 9161 section 3.7: every PE has this MAC, so that it takes no part in mobility, nor in the
  // detection of duplicates.
  std::optional<net::MacAddress> anti_spoof_mac;
  // An IPv6 address may be at so many MACs at once (RFC 9161 section 3.2.1); 1: anycast is off.
  uint32_t anycast_macs = 1;
  bool operator==(const Settings&) const = default;
};

}  // namespace evpn
