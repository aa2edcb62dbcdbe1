// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/io/neighbor_settings.h"

#include <algorithm>
#include <vector>

#include "bgp/io/protection.h"

namespace bgp::io {

std::optional<std::string> check(const Settings& settings) {
  if (auto wrong = check_protections(settings)) return wrong;
  std::vector<NeighborKey> keys;
  for (const NeighborSettings& neighbor : settings.neighbors) keys.push_back(key_of(neighbor));
  std::ranges::sort(keys);
  if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end())
    return "neighbor " + to_string(*twice) + " twice";
  return std::nullopt;
}

bool reflects(const Settings& settings) {
  const auto is_client = [](const NeighborSettings& neighbor) {
    return neighbor.enabled && neighbor.role != NeighborRole::Peer;
  };
  return std::ranges::any_of(settings.neighbors, is_client) ||
         std::ranges::any_of(settings.dynamic_neighbors, is_client, &DynamicNeighbors::like);
}

const DynamicNeighbors* find_dynamic(const Settings& settings, const NeighborKey& key) {
  const DynamicNeighbors* best = nullptr;
  for (const DynamicNeighbors& group : settings.dynamic_neighbors) {
    if (!peers_of(group).contains(key.address)) continue;
    if (!group.like.interface.empty() && group.like.interface != key.interface) continue;
    if (best == nullptr || group.prefix_length > best->prefix_length) best = &group;
  }
  return best;
}

NeighborSettings settings_for(const DynamicNeighbors& group, const NeighborKey& key) {
  NeighborSettings settings = group.like;
  settings.address = key.address;
  settings.interface = key.interface;
  settings.passive = true;
  return settings;
}

bool same_session(const NeighborSettings& a, const NeighborSettings& b) {
  NeighborSettings like_b = a;
  like_b.description = b.description;
  like_b.group = b.group;
  like_b.max_prefixes = b.max_prefixes;
  like_b.max_prefixes_warning = b.max_prefixes_warning;
  like_b.max_prefixes_warn_only = b.max_prefixes_warn_only;
  like_b.max_prefixes_idle = b.max_prefixes_idle;
  like_b.shutdown_message = b.shutdown_message;
  like_b.accept_policy = b.accept_policy;
  like_b.send_policy = b.send_policy;
  like_b.binding_guard = b.binding_guard;
  return like_b == b;
}

}  // namespace bgp::io
