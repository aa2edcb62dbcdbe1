// SPDX-License-Identifier: GPL-2.0-or-later
// Which address families an UPDATE is about, found without decoding it: a session with several
// families decodes it by those.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "bgp/family.h"

namespace bgp {

struct UpdateFamilies {
  std::optional<AfiSafi> reach, unreach;  // of the first MP_REACH_NLRI and MP_UNREACH_NLRI
};
// `body`: the message without its header. What is malformed is just not found: that is
// decode_update()'s to report.
[[nodiscard]] UpdateFamilies update_families(std::span<const uint8_t> body);

}  // namespace bgp
