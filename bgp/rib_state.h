// SPDX-License-Identifier: GPL-2.0-or-later
// What the parts of the RIB share: routes, attributes and peers. Owned by Rib.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "bgp/attribute_store.h"
#include "bgp/chunked_array.h"
#include "bgp/export_policy.h"
#include "bgp/rib.h"
#include "bgp/route_table.h"
#include "bgp/update_group.h"
#include "net/bytes.h"

namespace bgp {

// Paths of a peer's earlier sessions, as a list by peer_next.
struct OldPaths {
  PathRef head = kNoPath;
  bool doomed = false;          // work() removes them
  bool but_long_lived = false;  // ... the others
};
// Something that is done to all paths of a list, see rib_slices.cpp.
struct Walk {
  enum class Kind : uint8_t { Decide, LongLived, Judge, Sweep };
  Kind kind = Kind::Decide;
  PathRef at = kNoPath;  // what comes next
};

struct Peer {
  PeerId id = kLocalPeer;
  uint16_t slot = 0;
  bool up = false;
  bool announced = false;  // something happened that take_ready() has to look at
  PeerTraits traits;
  SourceKind kind = SourceKind::Local;
  PathRef paths = kNoPath;       // Adj-RIB-In
  std::vector<OldPaths> old;     // ... of it what was not announced again since a restart
  std::vector<Walk> walks;       // the last one is under way
  uint8_t era : kEraBits = 0;    // of its session
  uint8_t round : kEraBits = 0;  // of its refreshes
  uint8_t eras = 0;              // that began since nothing was doomed
  uint8_t refreshes = 0;         // that were begun and not ended
  bool busy = false;             // in Rib::Impl::busy
  bool ended = false;      // its session ended and nothing is kept: the id may have a new slot
  bool has_ended = false;  // there is such another under its id
  uint64_t received = 0;
  uint64_t stale = 0;
  uint64_t rejected = 0;
  std::array<uint64_t, kRejectedKinds> rejected_by{};
  uint64_t flagged = 0;
  UpdateGroup* group = nullptr;  // while up
  Subscriber out;
};

// Kept over a restart of the peer (RFC 4724), and not announced again since.
inline bool is_stale(const Peer& peer, const Path& path) {
  return path.long_lived || path.era != peer.era;
}
inline void make_current(const Peer& peer, Path& path) {
  path.era = peer.era;
  path.round = peer.round;
}

struct RibState {
  explicit RibState(const Rib::Options& rib_options)
      : options(rib_options),
        attributes(pages, {rib_options.local_as.value, rib_options.router_id,
                           rib_options.cluster_id, rib_options.hash_seed}),
        table(pages, rib_options.hash_seed) {}

  Rib::Options options;
  PagePool pages;
  AttributeStore attributes;
  RouteTable table;
  std::vector<std::unique_ptr<Peer>> peers;  // by slot; 0 is ourselves

  // What an update group has in its log is pinned: its route does not go, even withdrawn.
  void pin(RouteIndex route) { ++table.route(route).pins; }
  void unpin(RouteIndex route) {
    --table.route(route).pins;
    remove_if_unused(route);
  }
  // Later, in reap(): first everybody is told, then comes what only makes room.
  void remove_if_unused(RouteIndex index) {
    Route& route = table.route(index);
    if (route.listed_unused || !is_unused(index)) return;
    route.listed_unused = true;
    unused.grow_to(unused_count++) = index;
  }
  // Removes what is unused still, `count` routes at least and at a time. True when there are more.
  bool reap(std::size_t count);
  [[nodiscard]] bool is_unused(RouteIndex index) const {
    const Route& route = table.route(index);
    return route.pins == 0 && !route.change_waits && !table.is_live(index);
  }

  ChunkedArray<RouteIndex> unused{pages};  // the first of them: have `listed_unused`
  std::size_t unused_count = 0;
};

}  // namespace bgp
