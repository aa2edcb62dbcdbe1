// SPDX-License-Identifier: GPL-2.0-or-later
// Settings in, keys out; the listeners' owner sets them.
#include "bgp/io/protection.h"

namespace bgp::io {

net::IpPrefix peers_of(const NeighborSettings& neighbor) {
  return {neighbor.address, neighbor.address.bits()};
}

net::IpPrefix peers_of(const DynamicNeighbors& neighbors) {
  return {neighbors.prefix, neighbors.prefix_length};
}

Protections protections_of(const Settings& settings) {
  Protections out;
  const auto add = [&](const net::IpPrefix& peers, const NeighborSettings& neighbor) {
    if (!neighbor.password.empty() || !neighbor.ao_keys.empty())
      out[peers] = {neighbor.password, neighbor.ao_keys};
  };
  for (const NeighborSettings& neighbor : settings.neighbors) add(peers_of(neighbor), neighbor);
  for (const DynamicNeighbors& group : settings.dynamic_neighbors) add(peers_of(group), group.like);
  return out;
}

std::optional<std::string> check_protections(const Settings& settings) {
  const Protections known = protections_of(settings);
  const auto name = [](const NeighborSettings& n) {
    return "neighbor " + net::to_string(n.address);
  };
  for (const NeighborSettings& neighbor : settings.neighbors) {
    if (neighbor.password.size() > kMaxMd5Key)
      return name(neighbor) + ": password of more than " + std::to_string(kMaxMd5Key) + " octets";
    if (!neighbor.password.empty() && !neighbor.ao_keys.empty())
      return name(neighbor) + ": password and ao-keys exclude each other";
    const Protection own{neighbor.password, neighbor.ao_keys};
    const auto same = known.find(peers_of(neighbor));
    if (same != known.end() && same->second != own)
      return name(neighbor) + ": on two interfaces it can't have different passwords or ao-keys";
    if (same != known.end()) continue;
    for (const DynamicNeighbors& group : settings.dynamic_neighbors)
      if (peers_of(group).contains(neighbor.address) && known.contains(peers_of(group)))
        return name(neighbor) + ": without password or ao-keys, but dynamic neighbors " +
               net::to_string(peers_of(group)) + " have them, and TCP would ask for theirs";
  }
  return std::nullopt;
}

}  // namespace bgp::io
