// SPDX-License-Identifier: GPL-2.0-or-later
// Which routes of other PEs a broadcast domain uses: RFC 7432 sections 9.2.2 and 11.2, RFC 8365
// section 5.1.3, RFC 9047 section 3.2. Pure checks, in the order in which they are written.
#include "evpn/import.h"

namespace evpn {
namespace {

// An address that frames may be sent to: no group, loopback, 0/8, 240/4, or IPv4-mapped one.
bool is_host(const net::IpAddress& address) {
  if (address.is_unspecified() || address.is_multicast() || address.is_loopback()) return false;
  if (address.is_v4()) {
    const uint32_t first = address.v4_value() >> 24;
    return first != 0 && first < 240;
  }
  static const net::IpPrefix kMapped = net::IpPrefix::parse("::ffff:0:0/96").value();
  return !kMapped.contains(address);
}

// A tunnel has one address family, ours.
bool is_remote_vtep(const Settings& settings, const net::IpAddress& address) {
  return is_host(address) && address.family() == settings.vtep.family() && address != settings.vtep;
}

// Common to all route types: target, encapsulation, and a next hop that is another PE.
bool is_ours(const Settings& settings, const bgp::Attributes& attributes) {
  if (!is_remote_vtep(settings, attributes.next_hop)) return false;
  return imports(settings, attributes) && accepts_vxlan(attributes);
}

// Frames go out with our VNI, so a PE that wants another one would put them into another domain.
// 0 is "not said".
bool is_our_label(const Settings& settings, uint32_t label) {
  return label == settings.vni.value || label == 0;
}

}  // namespace

bool is_usable_key(const MacIp& route) { return route.ethernet_tag == 0 && route.mac.is_unicast(); }

std::optional<net::IpAddress> bindable_ip(const MacIp& route) {
  if (!route.ip || !is_host(*route.ip)) return std::nullopt;
  return route.ip;
}

// The ESI is not looked at: a MAC behind a multihomed Ethernet segment is installed from its MAC/IP
// route alone, towards the PE that advertises it. Ethernet A-D routes (RFC 7432 section 9.2.2:
// install only when they are there; section 8.4: aliasing) are not handled.
std::optional<RemotePath> import_path(const Settings& settings, const MacIp& route,
                                      const bgp::AttributesPtr& attributes) {
  if (attributes == nullptr || !is_usable_key(route)) return std::nullopt;
  if (!is_ours(settings, *attributes) || !is_our_label(settings, route.label1)) return std::nullopt;
  RemotePath path;
  path.vtep = attributes->next_hop;
  if (const auto mobility = mac_mobility(*attributes)) {
    path.sequence = mobility->sequence;
    path.sticky = mobility->sticky;
  }
  path.flags.router = settings.default_router;
  if (const auto flags = arp_nd(*attributes); flags && route.ip) {
    path.flags.immutable = flags->immutable;
    if (route.ip->is_v6()) path.flags = *flags;  // R and O mean nothing for IPv4
  }
  return path;
}

std::optional<FloodEndpoint> import_endpoint(const Settings& settings,
                                             const InclusiveMulticast& route,
                                             const bgp::AttributesPtr& attributes) {
  if (attributes == nullptr || route.ethernet_tag != 0) return std::nullopt;
  if (!is_ours(settings, *attributes) || !attributes->pmsi_tunnel) return std::nullopt;
  const auto tunnel = decode_pmsi(*attributes->pmsi_tunnel);
  if (!tunnel || !is_our_label(settings, tunnel->label)) return std::nullopt;
  if (!is_remote_vtep(settings, tunnel->endpoint)) return std::nullopt;
  return FloodEndpoint{tunnel->endpoint, attributes->next_hop};
}

}  // namespace evpn
