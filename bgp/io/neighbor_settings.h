// SPDX-License-Identifier: GPL-2.0-or-later
// What settings say of neighbors: pure functions for the speaker.
#pragma once
#include <optional>
#include <string>

#include "bgp/io/neighbor.h"
#include "bgp/settings.h"

namespace bgp::io {

// Settings that can't be right, in words; the others are config/'s to refuse.
[[nodiscard]] std::optional<std::string> check(const Settings& settings);
// True when some neighbor is sent what others announce.
[[nodiscard]] bool reflects(const Settings& settings);
// The longest prefix with the address, or null.
[[nodiscard]] const DynamicNeighbors* find_dynamic(const Settings& settings,
                                                   const NeighborKey& key);
[[nodiscard]] NeighborSettings settings_for(const DynamicNeighbors& group, const NeighborKey& key);
// True when the change can be taken over while the session stays up.
[[nodiscard]] bool same_session(const NeighborSettings& a, const NeighborSettings& b);

}  // namespace bgp::io
