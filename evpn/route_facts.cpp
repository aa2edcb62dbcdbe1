// SPDX-License-Identifier: GPL-2.0-or-later
#include "evpn/route_facts.h"

#include <variant>

#include "evpn/nlri.h"

namespace evpn {
namespace {

struct Gather {
  const bgp::Attributes& attributes;
  RouteFacts& facts;

  void operator()(const EthernetAutoDiscovery& route) const {
    facts.rd = route.rd;
    if (route.ethernet_tag != kMaxEthernetTag) facts.vni = route.label;
  }
  void operator()(const MacIp& route) const {
    facts.rd = route.rd;
    facts.vni = route.label1;
    facts.mac = route.mac;
    if (route.ip) facts.ip = net::IpPrefix{*route.ip, route.ip->bits()};
  }
  void operator()(const InclusiveMulticast& route) const {
    facts.rd = route.rd;
    // RFC 6514 section 5: flags, tunnel type, label; whatever the tunnel is.
    const auto& pmsi = attributes.pmsi_tunnel;
    if (!pmsi || pmsi->size() < 5) return;
    facts.vni = uint32_t{(*pmsi)[2]} << 16 | uint32_t{(*pmsi)[3]} << 8 | uint32_t{(*pmsi)[4]};
  }
  void operator()(const EthernetSegment& route) const { facts.rd = route.rd; }
  void operator()(const IpPrefixRoute& route) const {
    facts.rd = route.rd;
    facts.vni = route.label;
    facts.ip = route.prefix.masked();
  }
  void operator()(const OpaqueRoute& route) const { facts.rd = route_distinguisher(route); }
};

}  // namespace

RouteFacts facts_of(std::span<const uint8_t> nlri, const bgp::Attributes& attributes) {
  RouteFacts facts;
  const auto route = decode(nlri);
  if (!route) return facts;
  facts.type = nlri[0];
  std::visit(Gather{attributes, facts}, *route);
  return facts;
}

}  // namespace evpn
