// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/rib_state.h"

#include <algorithm>

namespace bgp {

bool RibState::reap(std::size_t count) {
  constexpr std::size_t kAhead = 8;  // routes that are brought into the cache before their turn
  // More of many, so that those that come do not outrun it; still about a millisecond.
  count = std::max(count, std::min(unused_count / 16, 4 * count));
  for (; count != 0 && unused_count != 0; --count) {
    if (unused_count > kAhead) table.prefetch_path(unused[unused_count - 1 - kAhead]);
    const RouteIndex index = unused[--unused_count];
    table.route(index).listed_unused = false;
    if (is_unused(index)) table.remove(index);
  }
  if (unused_count == 0) unused.clear();
  return unused_count != 0;
}

}  // namespace bgp
