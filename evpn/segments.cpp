// SPDX-License-Identifier: GPL-2.0-or-later
// Which PEs have which Ethernet segment. A PE withdraws its A-D per ES route when it loses the
// segment, which moves or removes all MACs on it at once (mass withdraw, RFC 7432 section 8.2).
#include "evpn/segments.h"

namespace evpn {

bool Segments::set(const EthernetAutoDiscovery& route, const std::optional<net::IpAddress>& vtep) {
  const auto key = std::tuple(route.rd, route.esi, route.ethernet_tag);
  const auto old = routes_.find(key);
  if (old == routes_.end() ? !vtep : vtep && *vtep == old->second) return false;
  if (old != routes_.end()) {
    count(route, old->second, false);
    routes_.erase(old);
  }
  if (vtep) {
    routes_.emplace(key, *vtep);
    count(route, *vtep, true);
  }
  forget_if_idle(route.esi);
  return true;
}

void Segments::count(const EthernetAutoDiscovery& route, const net::IpAddress& vtep, bool more) {
  auto& pes = segments_[route.esi].pes;
  Pe& pe = pes[vtep];
  uint32_t& routes = route.ethernet_tag == kMaxEthernetTag ? pe.per_es : pe.per_evi;
  routes = more ? routes + 1 : routes - 1;
  if (pe.per_es == 0 && pe.per_evi == 0) pes.erase(vtep);
}

std::optional<net::IpAddress> Segments::resolve(const net::Esi& esi,
                                                const net::IpAddress& advertiser) const {
  if (!is_segment(esi)) return is_reachable(advertiser) ? std::optional(advertiser) : std::nullopt;
  const auto found = segments_.find(esi);
  if (found == segments_.end()) return std::nullopt;
  const auto& pes = found->second.pes;
  if (const auto own = pes.find(advertiser);
      own != pes.end() && own->second.per_es > 0 && is_reachable(advertiser))
    return advertiser;
  for (const auto& [vtep, pe] : pes)
    if (pe.per_es > 0 && pe.per_evi > 0 && is_reachable(vtep)) return vtep;
  return std::nullopt;
}

void Segments::collect_pes(std::set<net::IpAddress>& into) const {
  for (const auto& [key, vtep] : routes_) into.insert(vtep);
}

bool Segments::set_reachable(const net::IpAddress& vtep, bool yes) {
  return yes ? unreachable_.erase(vtep) > 0 : unreachable_.insert(vtep).second;
}

void Segments::attach(const net::Esi& esi, net::MacAddress mac) {
  if (is_segment(esi)) ++segments_[esi].macs[mac];
}

void Segments::detach(const net::Esi& esi, net::MacAddress mac) {
  const auto found = segments_.find(esi);
  if (found == segments_.end()) return;
  auto& macs = found->second.macs;
  if (const auto entry = macs.find(mac); entry != macs.end() && --entry->second == 0)
    macs.erase(entry);
  forget_if_idle(esi);
}

std::vector<net::MacAddress> Segments::macs(const net::Esi& esi) const {
  std::vector<net::MacAddress> out;
  if (const auto found = segments_.find(esi); found != segments_.end())
    for (const auto& [mac, routes] : found->second.macs) out.push_back(mac);
  return out;
}

void Segments::forget_if_idle(const net::Esi& esi) {
  const auto found = segments_.find(esi);
  if (found != segments_.end() && found->second.pes.empty() && found->second.macs.empty())
    segments_.erase(found);
}

}  // namespace evpn
