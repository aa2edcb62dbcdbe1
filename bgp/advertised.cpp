// SPDX-License-Identifier: GPL-2.0-or-later
// A route that changed after it was sent is told as it is now, and its new state is on its way to
// the peer; one whose withdrawal waits is left out.
#include "bgp/advertised.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace bgp {

std::optional<uint32_t> walk_advertised(
    const RibState& state, const Peer& peer, RouteIndex from, uint32_t count,
    const std::function<void(std::span<const uint8_t>, const Attributes&)>& visit) {
  const RouteTable& table = state.table;
  const GroupKey& group = peer.group->key();
  const RouteIndex end = from < table.end() ? from + std::min(count, table.end() - from) : from;
  std::pair<AttributeId, uint16_t> last{Arena::kNull, 0};
  Attributes attributes;
  for (RouteIndex index = from; index < end; ++index) {
    if (!UpdateGroup::has(peer.out, index)) continue;
    const PathRef best = table.best(index);
    if (best == kNoPath) continue;
    const Path& path = table.path(best);
    const Peer& source = *state.peers[path.peer];
    if (path.peer == peer.slot ||
        !may_export(group, source.kind, state.attributes.digest(path.attributes).flags))
      continue;
    if (std::pair(path.attributes, path.peer) != last) {
      last = {path.attributes, path.peer};
      attributes = exported(state.attributes.unpack(path.attributes), group,
                            {source.kind, source.traits.router_id, state.options.local_as.value,
                             state.options.cluster_id});
    }
    visit(path.nlri(), attributes);
  }
  return end < table.end() ? std::optional(end) : std::nullopt;
}

}  // namespace bgp
