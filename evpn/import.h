// SPDX-License-Identifier: GPL-2.0-or-later
// What a broadcast domain takes from other PEs' routes. Inside evpn/ only.
#pragma once
#include <cstdint>
#include <optional>

#include "bgp/attributes.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "evpn/settings.h"

namespace evpn {

// A MAC/IP route that we use, as far as the MAC-VRF looks at it.
struct RemotePath {
  net::IpAddress vtep;  // the PE that advertises it
  net::Esi esi;
  uint32_t sequence = 0;
  bool sticky = false;
  ArpNdFlags flags;  // of the binding; the defaults on a MAC-only route
  bool operator==(const RemotePath&) const = default;
};

// `a` is a later sequence number than `b`. The numbers wrap (RFC 7432 section 15).
[[nodiscard]] constexpr bool later(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) > 0;
}

[[nodiscard]] bool is_our_tag(const Settings& settings, uint32_t ethernet_tag);
// True when the MAC and the Ethernet tag may be ours. Both are part of the route key, so that a
// withdraw can be judged as well.
[[nodiscard]] bool is_usable_key(const Settings& settings, const MacIp& route);
// The address of a route that can be bound to a MAC, if it has one.
[[nodiscard]] std::optional<net::IpAddress> bindable_ip(const MacIp& route);

// Nothing when the route is withdrawn (null attributes) or not for us.
[[nodiscard]] std::optional<RemotePath> import_path(const Settings& settings, const MacIp& route,
                                                    const bgp::AttributesPtr& attributes);
// The PE whose A-D route of a segment this is. Nothing when it is withdrawn or not for us.
[[nodiscard]] std::optional<net::IpAddress> import_segment(const Settings& settings,
                                                           const EthernetAutoDiscovery& route,
                                                           const bgp::AttributesPtr& attributes);
struct FloodEndpoint {
  net::IpAddress endpoint;
  net::IpAddress next_hop;
  bool operator==(const FloodEndpoint&) const = default;
};
[[nodiscard]] std::optional<FloodEndpoint> import_endpoint(const Settings& settings,
                                                           const InclusiveMulticast& route,
                                                           const bgp::AttributesPtr& attributes);

}  // namespace evpn
