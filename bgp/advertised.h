// SPDX-License-Identifier: GPL-2.0-or-later
// What a peer has from us, read out of the table again: Adj-RIB-Out keeps no copies.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "bgp/rib_state.h"

namespace bgp {

// See Rib::for_each_advertised_from(). The peer is in an update group.
[[nodiscard]] std::optional<uint32_t> walk_advertised(
    const RibState& state, const Peer& peer, RouteIndex from, uint32_t count,
    const std::function<void(std::span<const uint8_t> nlri, const Attributes& attributes)>& visit);

}  // namespace bgp
