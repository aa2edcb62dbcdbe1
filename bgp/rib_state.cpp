// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/rib_state.h"

#include <algorithm>

namespace bgp {

bool RibState::reap(std::size_t count) {
  constexpr std::size_t kAhead = 8;  // routes that are brought into the cache before their turn
  // More of many, so that those that come do not outrun it; still about a millisecond.
  count = std::max(count, std::min(unused.size() / 16, 4 * count));
  for (; count != 0 && !unused.empty(); --count) {
    if (unused.size() > kAhead) table.prefetch_path(unused[unused.size() - 1 - kAhead]);
    const RouteIndex index = unused.back();
    unused.pop_back();
    table.route(index).listed_unused = false;
    if (is_unused(index)) table.remove(index);
  }
  if (unused.empty()) unused = {};
  return !unused.empty();
}

}  // namespace bgp
