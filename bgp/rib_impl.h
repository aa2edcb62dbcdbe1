// SPDX-License-Identifier: GPL-2.0-or-later
// How the RIB works inside, for rib*.cpp: rib.cpp has what is called from outside, rib_peers.cpp
// the peers and their lists, rib_paths.cpp what comes in and the decision, rib_slices.cpp what
// takes long and is done in parts.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "bgp/best_path.h"
#include "bgp/rib.h"
#include "bgp/rib_state.h"

namespace bgp {

struct Rib::Impl : RibState {
  // What a route was before it is touched, as far as the update groups care.
  struct Before {
    PathRef best = kNoPath;
    SourceKind source = SourceKind::Local;
    uint8_t flags = 0;
    PeerId peer = kLocalPeer;
  };
  struct Changed {
    RouteIndex route = kNoRoute;
    std::optional<PeerId> previous;  // whose path was the best; the peer may be gone since
  };

  explicit Impl(const Options& rib_options);

  Peer* find_peer(PeerId id) const;
  Peer& make_peer(PeerId id);
  void drop_peer_if_unused(Peer& peer);
  UpdateGroup& group_of(const PeerTraits& traits);
  void leave_group(Peer& peer);
  void retire_empty_groups();
  void announce(Peer& peer);

  template <class Act>
  void for_each(std::span<const NlriItem> items, Act&& act);
  void update(Peer& peer, const NlriItem& item, uint32_t hash, AttributeId id);
  void withdraw(const Peer& peer, std::span<const uint8_t> key, uint32_t hash);
  void replace(Peer& peer, RouteIndex route, PathRef ref, const NlriItem& item, AttributeId id);
  void withdraw(PathRef ref);
  void judge(Peer& peer, Path& path);
  void set_verdict(Peer& peer, Path& path, Rejected rejected, bool flagged);
  void forget_marks(Peer& peer, Path& path);
  void change_group(Peer& peer);
  void remove_ended(const Peer& peer, std::span<const uint8_t> key, uint32_t hash);

  // rib_slices.cpp
  void begin(Peer& peer, Walk::Kind kind, PathRef list);
  void stop(Peer& peer, Walk::Kind kind);
  void visit(Peer& peer, Walk::Kind kind, PathRef ref);
  void decide_again(PathRef ref);
  void make_long_lived(Peer& peer, PathRef ref);
  void judge_again(Peer& peer, PathRef ref);
  void mark_stale(Peer& peer);
  void make_all_long_lived(Peer& peer);
  void judge_all(Peer& peer);
  void begin_refresh(Peer& peer);
  void doom_stale(Peer& peer, bool but_long_lived);
  void end(Peer& peer);
  void make_busy(Peer& peer);
  bool walk(Peer& peer, std::size_t& left);
  bool remove_doomed(Peer& peer, std::size_t& left);
  bool finish(Peer& peer, std::size_t left);
  bool work();

  AttributeId intern(const AttributesPtr& received);
  AttributesPtr share(AttributeId id);
  PathRef path_of(RouteIndex route, const Peer& peer) const;
  Rejected reject(const Peer& peer, AttributeId id) const;
  Before before(RouteIndex route) const;
  void decide(RouteIndex route);
  Candidate candidate(const Path& path) const;
  void publish(RouteIndex route, const Before& before);

  void link(PathRef& list, PathRef ref);
  void unlink_from_peer(Peer& peer, PathRef ref);
  void unlink_from_route(PathRef ref);

  std::unordered_map<PeerId, uint16_t> slots;
  std::vector<uint16_t> free_slots;
  std::vector<std::unique_ptr<UpdateGroup>> groups;
  std::vector<std::unique_ptr<UpdateGroup>> retired;  // that nobody is in; their logs hold routes
  std::vector<PeerId> announced;                      // peers with `announced` set
  std::vector<uint16_t> busy;                         // slots with something left for work()
  std::vector<Changed> changed;
  net::Bytes changed_nlris;  // what the last take_changes() names
  bool held = false;
  std::size_t live_routes = 0, live_paths = 0;

  // The set that the last UPDATE came with: its NLRIs are handed in one by one.
  AttributesPtr last_received;
  AttributeId last_id = Arena::kNull;

  std::vector<PathRef> order;  // scratch of decide()
  std::vector<Candidate> candidates;
};

// act(item, hash) for each, some at a time, with what a look-up touches fetched before: in a large
// table each of its steps would wait for memory.
template <class Act>
void Rib::Impl::for_each(std::span<const NlriItem> items, Act&& act) {
  constexpr std::size_t kAtATime = 32;
  std::array<uint32_t, kAtATime> hashes;
  std::array<RouteIndex, kAtATime> routes;
  for (; !items.empty(); items = items.subspan(std::min(items.size(), kAtATime))) {
    const auto some = items.first(std::min(items.size(), kAtATime));
    for (std::size_t i = 0; i < some.size(); ++i) {
      hashes[i] = table.hash(some[i].key());
      if (some.size() > 1) table.prefetch_index(hashes[i]);
    }
    if (some.size() > 1) {
      for (std::size_t i = 0; i < some.size(); ++i) routes[i] = table.prefetch_route(hashes[i]);
      for (std::size_t i = 0; i < some.size(); ++i) table.prefetch_path(routes[i]);
    }
    for (std::size_t i = 0; i < some.size(); ++i) act(some[i], hashes[i]);
  }
}

}  // namespace bgp
