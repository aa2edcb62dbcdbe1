// SPDX-License-Identifier: GPL-2.0-or-later
// What the fuzzers of bgp/ share.
#pragma once
#include <cstdlib>
#include <utility>
#include <vector>

#include "bgp/attributes.h"

namespace bgp::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

// A path that was merged (RFC 6793 section 4.2.3) may be cut into segments of 255 differently.
inline Attributes with_flat_path(Attributes attributes) {
  std::vector<AsPathSegment> flat;
  for (AsPathSegment& segment : attributes.as_path) {
    const bool joins = !flat.empty() && flat.back().type == AsPathSegment::Sequence &&
                       segment.type == AsPathSegment::Sequence;
    if (!joins) flat.push_back({segment.type, {}});
    auto& to = flat.back().as_numbers;
    to.insert(to.end(), segment.as_numbers.begin(), segment.as_numbers.end());
  }
  attributes.as_path = std::move(flat);
  return attributes;
}

}  // namespace bgp::fuzz
