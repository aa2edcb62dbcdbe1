// SPDX-License-Identifier: GPL-2.0-or-later
// What policies ask of a route. Inside evpn/ only.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "bgp/attributes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

namespace evpn {

struct RouteFacts {
  uint8_t type = 0;  // 0: could not be read
  std::optional<net::RouteDistinguisher> rd;
  // All 24 bits of the label field (RFC 8365 section 5.1.3): types 1 (per EVI), 2 and 5, and the
  // PMSI tunnel's for type 3.
  std::optional<uint32_t> vni;
  std::optional<net::MacAddress> mac;  // type 2
  std::optional<net::IpPrefix> ip;     // type 2, as a host's; type 5
};
[[nodiscard]] RouteFacts facts_of(std::span<const uint8_t> nlri, const bgp::Attributes& attributes);

}  // namespace evpn
