// SPDX-License-Identifier: GPL-2.0-or-later
// Builds our type 2 and type 3 routes: RFC 7432 sections 7.2, 7.3, 7.7 to 7.10, RFC 8365 sections
// 5.1.2.1, 5.1.3 and 9, RFC 9047 section 3.1.
#include "evpn/originate.h"

namespace evpn {

Originator::Originator(const Settings& settings)
    : settings_(settings),
      rd_(settings.rd.value_or(net::RouteDistinguisher::from_router_id(
          settings.router_id, static_cast<uint16_t>(settings.vni.value)))) {
  targets_ = settings_.export_targets;
  if (targets_.empty()) targets_.push_back(auto_route_target(settings_.local_as, settings_.vni));
  targets_.push_back(make_encapsulation(kEncapsulationVxlan));
}

MacIp Originator::mac_ip(net::MacAddress mac, const std::optional<net::IpAddress>& ip) const {
  MacIp route;
  route.rd = rd_;
  route.ethernet_tag = settings_.ethernet_tag.value_or(0);
  route.mac = mac;
  route.ip = ip;
  route.label1 = settings_.vni.value;
  return route;
}

InclusiveMulticast Originator::multicast() const {
  return {rd_, settings_.ethernet_tag.value_or(0), settings_.vtep};
}

bgp::Attributes Originator::base() const {
  bgp::Attributes attributes;
  attributes.origin = bgp::Origin::Igp;
  attributes.next_hop = settings_.vtep;
  attributes.extended_communities = targets_;
  return attributes;
}

bgp::AttributesPtr Originator::mac_attributes(const std::optional<MacMobility>& mobility,
                                              const std::optional<ArpNdFlags>& flags) {
  std::vector<bgp::ExtendedCommunity> communities = targets_;
  if (mobility) communities.push_back(make_mac_mobility(*mobility));
  if (flags) communities.push_back(make_arp_nd(*flags));
  auto& slot = shared_[communities];
  if (auto attributes = slot.lock()) return attributes;
  auto fresh = std::make_shared<bgp::Attributes>(base());
  fresh->extended_communities = std::move(communities);
  slot = fresh;
  if (shared_.size() >= sweep_at_) {
    std::erase_if(shared_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * shared_.size() + 64;
  }
  return fresh;
}

bgp::AttributesPtr Originator::multicast_attributes() const {
  auto attributes = std::make_shared<bgp::Attributes>(base());
  attributes->pmsi_tunnel = encode_pmsi({0, 6, settings_.vni.value, settings_.vtep});
  return attributes;
}

}  // namespace evpn
