// SPDX-License-Identifier: GPL-2.0-or-later
// Why a path is used or not, in words.
#pragma once
#include <cstdint>
#include <string>

#include "bgp/policy.h"
#include "bgp/rib.h"

namespace peerland {

// What an explanation needs to know of a peer.
struct PathSource {
  std::string name;
  uint32_t router_id = 0;  // host order
  bool internal = true;
  bgp::RoutePolicyPtr accept;  // null: everything
};
struct Identity {
  uint32_t local_as = 0;
  uint32_t router_id = 0;   // host order
  uint32_t cluster_id = 0;  // host order
};

// "lost: longer AS path (3) than the path from 10.0.0.2 (2)". `best`: the path of the same route
// that was selected; null when there is none.
[[nodiscard]] std::string explain(const bgp::PathView& path, const PathSource& source,
                                  const bgp::PathView* best, const PathSource& best_source,
                                  const Identity& us);

}  // namespace peerland
