// SPDX-License-Identifier: GPL-2.0-or-later
// The routing information bases: peers' paths come in (update, withdraw, sessions going up and
// down), the best path of a route is decided anew, and where it changed the update groups and
// take_changes() are told. RFC 4271 section 9, RFC 4456 section 8, RFC 4724 section 4.
#include "bgp/rib.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <utility>

#include "bgp/advertised.h"
#include "bgp/best_path.h"
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
  void announce(Peer& peer);

  template <class Act>
  void for_each(std::span<const NlriItem> items, Act&& act);
  void update(Peer& peer, const NlriItem& item, uint32_t hash, AttributeId id);
  void withdraw(const Peer& peer, std::span<const uint8_t> key, uint32_t hash);
  void replace(Peer& peer, RouteIndex route, PathRef ref, const NlriItem& item, AttributeId id);
  void withdraw(PathRef ref);
  void doom_stale(Peer& peer, bool but_long_lived);
  void mark_stale(Peer& peer);
  void make_long_lived(Peer& peer);
  void judge(Peer& peer, Path& path);
  void set_verdict(Peer& peer, Path& path, Rejected rejected, bool flagged);
  void forget_marks(Peer& peer, Path& path);
  void judge_all(Peer& peer);
  void change_group(Peer& peer);
  void doom(Peer& peer, PathRef& list);
  void end(Peer& peer);
  bool work();
  void remove_ended(const Peer& peer, std::span<const uint8_t> key, uint32_t hash);

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
  std::vector<PeerId> announced;   // peers with `announced` set
  std::vector<uint16_t> to_clean;  // slots with doomed paths
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

Rib::Impl::Impl(const Options& rib_options) : RibState(rib_options) {
  make_peer(kLocalPeer).up = true;
}

// --- Peers ----------------------------------------------------------------------------------

Peer* Rib::Impl::find_peer(PeerId id) const {
  const auto found = slots.find(id);
  return found == slots.end() ? nullptr : peers[found->second].get();
}

Peer& Rib::Impl::make_peer(PeerId id) {
  if (Peer* peer = find_peer(id)) return *peer;
  uint16_t slot = static_cast<uint16_t>(peers.size());
  if (!free_slots.empty()) {
    slot = free_slots.back();
    free_slots.pop_back();
  } else {
    if (peers.size() > 0xffff) std::abort();
    peers.emplace_back();
  }
  peers[slot] = std::make_unique<Peer>();
  peers[slot]->id = id;
  peers[slot]->slot = peers[slot]->out.slot = slot;
  peers[slot]->has_ended = std::ranges::any_of(peers, [&](const auto& other) {
    return other != nullptr && other->ended && other->id == id;
  });
  slots[id] = slot;
  return *peers[slot];
}

void Rib::Impl::drop_peer_if_unused(Peer& peer) {
  const bool has_paths =
      peer.paths != kNoPath || peer.stale_paths != kNoPath || !peer.doomed.empty();
  if (peer.up || has_paths || peer.id == kLocalPeer) return;
  const uint16_t slot = peer.slot;
  if (!peer.ended) {
    slots.erase(peer.id);
  } else if (Peer* successor = find_peer(peer.id)) {
    successor->has_ended = std::ranges::any_of(peers, [&](const auto& other) {
      return other != nullptr && other->ended && other->id == peer.id && other.get() != &peer;
    });
  }
  peers[slot].reset();
  free_slots.push_back(slot);
  for (const auto& group : groups) group->forget_batches();
}

UpdateGroup& Rib::Impl::group_of(const PeerTraits& traits) {
  GroupKey key = group_key(traits);
  for (const auto& group : groups)
    if (group->key() == key) return *group;
  return *groups.emplace_back(std::make_unique<UpdateGroup>(*this, std::move(key)));
}

void Rib::Impl::leave_group(Peer& peer) {
  if (peer.group == nullptr) return;
  peer.group->leave(peer.out);
  peer.group = nullptr;
  std::erase_if(groups, [](const auto& group) { return group->members().empty(); });
}

void Rib::Impl::announce(Peer& peer) {
  if (!std::exchange(peer.announced, true)) announced.push_back(peer.id);
}

// To the front of one of the peer's lists.
void Rib::Impl::link(PathRef& list, PathRef ref) {
  Path& path = table.path(ref);
  path.peer_previous = kNoPath;
  path.peer_next = list;
  if (list != kNoPath) table.path(list).peer_previous = ref;
  list = ref;
}

void Rib::Impl::unlink_from_peer(Peer& peer, PathRef ref) {
  const Path& path = table.path(ref);
  if (path.peer_next != kNoPath) table.path(path.peer_next).peer_previous = path.peer_previous;
  if (path.peer_previous != kNoPath)
    table.path(path.peer_previous).peer_next = path.peer_next;
  else if (peer.paths == ref)
    peer.paths = path.peer_next;
  else if (peer.stale_paths == ref)
    peer.stale_paths = path.peer_next;
  else
    *std::ranges::find(peer.doomed, ref) = path.peer_next;
}

// --- Attributes -----------------------------------------------------------------------------

AttributeId Rib::Impl::intern(const AttributesPtr& received) {
  if (received != last_received) {
    const AttributeId id = attributes.intern(*received);
    if (last_id != Arena::kNull) attributes.release(last_id);
    last_received = received;
    last_id = id;
  }
  attributes.retain(last_id);
  return last_id;
}

AttributesPtr Rib::Impl::share(AttributeId id) {
  if (id != last_id) {
    attributes.retain(id);
    if (last_id != Arena::kNull) attributes.release(last_id);
    last_received = std::make_shared<const Attributes>(attributes.unpack(id));
    last_id = id;
  }
  return last_received;
}

// --- Decision -------------------------------------------------------------------------------

Rejected Rib::Impl::reject(const Peer& peer, AttributeId id) const {
  if (peer.kind == SourceKind::Local) return Rejected::None;
  const uint8_t flags = attributes.digest(id).flags;
  if ((flags & AttributeDigest::kOwnAs) != 0) return Rejected::OwnAsInPath;
  if (peer.kind == SourceKind::External) return Rejected::None;  // the others count inside an AS
  if ((flags & AttributeDigest::kOwnOriginator) != 0) return Rejected::OwnOriginatorId;
  if ((flags & AttributeDigest::kOwnCluster) != 0) return Rejected::OwnClusterId;
  return Rejected::None;
}

Candidate Rib::Impl::candidate(const Path& path) const {
  const AttributeDigest& digest = attributes.digest(path.attributes);
  const Peer& peer = *peers[path.peer];
  const bool external = peer.kind == SourceKind::External;
  Candidate c;
  c.local = peer.kind == SourceKind::Local;
  c.external = external;
  c.stale = path.stale;
  c.long_lived_stale = (digest.flags & AttributeDigest::kLlgrStale) != 0;
  if (!external && digest.has_local_pref()) c.local_pref = digest.local_pref;
  c.as_path_length = digest.as_path_length;
  c.origin = digest.origin;
  c.multi_exit_disc = digest.multi_exit_disc;
  c.neighbor_as = digest.neighbor_as;
  c.router_id =
      !external && digest.has_originator_id() ? digest.originator_id : peer.traits.router_id;
  c.cluster_list_length = external ? 0u : digest.cluster_list_length;
  c.peer_address = peer.traits.address;
  c.tie = peer.id;
  return c;
}

// Puts the paths of a route in order, best first, those that lost earlier later, rejected ones
// last.
void Rib::Impl::decide(RouteIndex index) {
  Route& route = table.route(index);
  Path& first = table.path(route.first);
  if (first.next == kNoPath) {
    first.reason = BestPathReason::OnlyPath;
    return;
  }
  order.clear();
  candidates.clear();
  for (const bool usable : {true, false}) {
    for (PathRef ref = route.first; ref != kNoPath; ref = table.path(ref).next) {
      Path& path = table.path(ref);
      if ((path.rejected == Rejected::None) != usable) continue;
      path.reason = BestPathReason::OnlyPath;
      order.push_back(ref);
      if (usable) candidates.push_back(candidate(path));
    }
  }
  const std::span usable(order.data(), candidates.size());
  if (!usable.empty()) {
    const std::size_t best = select_best(candidates);
    for (std::size_t i = 0; i < usable.size(); ++i)
      table.path(usable[i]).reason = candidates[i].reason;
    std::swap(usable[0], usable[best]);
    std::ranges::sort(usable.subspan(1), std::greater{}, [&](PathRef ref) {
      return std::pair(table.path(ref).reason, table.path(ref).peer);
    });
  }
  route.first = order.front();
  for (std::size_t i = 0; i < order.size(); ++i)
    table.path(order[i]).next = i + 1 < order.size() ? order[i + 1] : kNoPath;
}

Rib::Impl::Before Rib::Impl::before(RouteIndex index) const {
  const PathRef best = table.best(index);
  if (best == kNoPath) return {};
  const Path& path = table.path(best);
  return {best, peers[path.peer]->kind, attributes.digest(path.attributes).flags,
          peers[path.peer]->id};
}

// The best path of the route changed.
void Rib::Impl::publish(RouteIndex index, const Before& was) {
  const Before is = before(index);
  pin(index);  // a group that has nobody to tell lets go of it at once
  for (const auto& group : groups) {
    if ((was.best != kNoPath && may_export(group->key(), was.source, was.flags)) ||
        (is.best != kNoPath && may_export(group->key(), is.source, is.flags)))
      group->push(index);
  }
  Route& route = table.route(index);
  if (route.change_waits) {
    // Its turn comes.
  } else if (!options.track_changes) {
    route.change_told = is.best != kNoPath;
  } else if (is.best != kNoPath || route.change_told) {
    route.change_waits = true;
    changed.push_back({index, was.best != kNoPath ? std::optional(was.peer) : std::nullopt});
  }
  unpin(index);
}

// --- Paths in -------------------------------------------------------------------------------

PathRef Rib::Impl::path_of(RouteIndex route, const Peer& peer) const {
  for (PathRef ref = table.route(route).first; ref != kNoPath; ref = table.path(ref).next)
    if (table.path(ref).peer == peer.slot && !table.path(ref).is_tombstone()) return ref;
  return kNoPath;
}

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

// One of the references to `id` goes over to us.
void Rib::Impl::update(Peer& peer, const NlriItem& item, uint32_t hash, AttributeId id) {
  RouteIndex route = table.find(item.key(), hash);
  if (route == kNoRoute) {
    route = table.add(hash);
    replace(peer, route, kNoPath, item, id);
    return;
  }
  const PathRef ref = path_of(route, peer);
  if (ref == kNoPath || table.path(ref).attributes != id ||
      !std::ranges::equal(table.path(ref).nlri(), item.bytes)) {
    replace(peer, route, ref, item, id);
    return;
  }
  // The same once more: at most it is not stale any longer.
  attributes.release(id);
  Path& path = table.path(ref);
  path.not_refreshed = false;
  if (!path.stale) return;
  const Before was = before(route);
  path.stale = path.long_lived = false;
  --peer.stale;
  unlink_from_peer(peer, ref);
  link(peer.paths, ref);
  decide(route);
  if (table.best(route) != was.best) publish(route, was);
}

// The peer's path `ref` of the route (kNoPath: there is none yet) becomes this one.
void Rib::Impl::replace(Peer& peer, RouteIndex index, PathRef ref, const NlriItem& item,
                        AttributeId id) {
  Route& route = table.route(index);
  const Before was = before(index);
  const bool was_best = ref != kNoPath && ref == was.best;
  PathRef now = ref;
  if (ref == kNoPath || !table.rewrite(ref, item.bytes, item.key())) {
    now = table.new_path(index, item.bytes, item.key());
    const bool tombstone = route.first != kNoPath && table.path(route.first).is_tombstone();
    if (tombstone) table.free_path(std::exchange(route.first, kNoPath));
    if (route.first == kNoPath) ++live_routes;
    table.path(now).next = route.first;
    table.path(now).peer = peer.slot;
    route.first = now;
    link(peer.paths, now);
    ++peer.received;
    ++live_paths;
  }
  Path& path = table.path(now);
  if (ref != kNoPath) {
    Path& old = table.path(ref);
    attributes.release(old.attributes);
    const bool relink = now == ref && old.stale;
    forget_marks(peer, old);
    if (relink) {
      unlink_from_peer(peer, ref);
      link(peer.paths, ref);
    }
    if (now != ref) {
      unlink_from_peer(peer, ref);
      unlink_from_route(ref);
      table.free_path(ref);
      --peer.received;
      --live_paths;
    }
  }
  path.attributes = id;
  judge(peer, path);
  decide(index);
  const PathRef best = table.best(index);
  if (was_best || best == now || best != was.best) {
    if (was.best != kNoPath || best != kNoPath) publish(index, was);
  }
}

void Rib::Impl::unlink_from_route(PathRef ref) {
  const Path& gone = table.path(ref);
  Route& route = table.route(gone.route);
  if (route.first == ref) {
    route.first = gone.next;
    return;
  }
  PathRef at = route.first;
  while (table.path(at).next != ref) at = table.path(at).next;
  table.path(at).next = gone.next;
}

void Rib::Impl::withdraw(const Peer& peer, std::span<const uint8_t> key, uint32_t hash) {
  const RouteIndex route = table.find(key, hash);
  if (route == kNoRoute) return;
  const PathRef path = path_of(route, peer);
  if (path != kNoPath) withdraw(path);
}

void Rib::Impl::withdraw(PathRef ref) {
  Path& path = table.path(ref);
  const RouteIndex index = path.route;
  Peer& peer = *peers[path.peer];
  const Before was = before(index);
  unlink_from_peer(peer, ref);
  --peer.received;
  --live_paths;
  forget_marks(peer, path);
  attributes.release(path.attributes);
  if (table.route(index).first == ref && path.next == kNoPath) {
    --live_routes;
    path.attributes = Arena::kNull;  // stays as tombstone, for as long as it is needed
    if (was.best != kNoPath)
      publish(index, was);
    else
      remove_if_unused(index);
    return;
  }
  unlink_from_route(ref);
  table.free_path(ref);
  decide(index);
  // A freed place is not taken again before this comparison.
  if (table.best(index) != was.best) publish(index, was);
}

// All fresh paths are stale now. What is stale already is kept for long.
void Rib::Impl::mark_stale(Peer& peer) {
  PathRef last = kNoPath;
  for (PathRef ref = peer.paths; ref != kNoPath; ref = table.path(ref).peer_next) {
    Path& path = table.path(ref);
    if (path.peer_next != kNoPath) table.prefetch(path.peer_next);
    path.stale = true;
    path.not_refreshed = false;
    last = ref;
    if (path.next == kNoPath && table.route(path.route).first == ref) continue;
    const Before was = before(path.route);
    decide(path.route);
    if (table.best(path.route) != was.best) publish(path.route, was);
  }
  peer.stale = peer.received;
  if (last == kNoPath) return;
  table.path(last).peer_next = peer.stale_paths;
  if (peer.stale_paths != kNoPath) table.path(peer.stale_paths).peer_previous = last;
  peer.stale_paths = std::exchange(peer.paths, kNoPath);
}

// --- Removal in slices ----------------------------------------------------------------------

// The paths of the list are to go.
void Rib::Impl::doom(Peer& peer, PathRef& list) {
  if (list == kNoPath) return;
  if (peer.doomed.empty()) to_clean.push_back(peer.slot);
  peer.doomed.push_back(std::exchange(list, kNoPath));
}

// What is stale is to go, or all of it but what is kept for long.
void Rib::Impl::doom_stale(Peer& peer, bool but_long_lived) {
  if (!but_long_lived) return doom(peer, peer.stale_paths);
  PathRef going = kNoPath;
  for (PathRef ref = peer.stale_paths; ref != kNoPath;) {
    const PathRef here = std::exchange(ref, table.path(ref).peer_next);
    if (table.path(here).long_lived) continue;
    unlink_from_peer(peer, here);
    link(going, here);
  }
  doom(peer, going);
}

// All of the peer's paths are to go; its id is free for a new session, in a slot of its own.
void Rib::Impl::end(Peer& peer) {
  doom(peer, peer.paths);
  doom(peer, peer.stale_paths);
  slots.erase(peer.id);
  peer.ended = true;
}

bool Rib::Impl::work() {
  std::size_t left = std::max<std::size_t>(1, options.work_paths);
  while (!to_clean.empty()) {
    Peer& peer = *peers[to_clean.back()];
    while (!peer.doomed.empty() && peer.doomed.back() != kNoPath) {
      if (left-- == 0) return true;
      const PathRef next = table.path(peer.doomed.back()).peer_next;
      if (next != kNoPath) table.prefetch(next);
      withdraw(peer.doomed.back());
    }
    if (!peer.doomed.empty()) {
      peer.doomed.pop_back();
      continue;
    }
    to_clean.pop_back();
    drop_peer_if_unused(peer);
  }
  return false;
}

// The peer announced a route again that it had in a session before, whose paths are being removed.
void Rib::Impl::remove_ended(const Peer& peer, std::span<const uint8_t> key, uint32_t hash) {
  const RouteIndex route = table.find(key, hash);
  for (PathRef ref = table.route(route).first; ref != kNoPath;) {
    const PathRef next = table.path(ref).next;
    const Peer& other = *peers[table.path(ref).peer];
    if (other.ended && other.id == peer.id) withdraw(ref);
    ref = next;
  }
}

// RFC 9494 section 4.3.
void Rib::Impl::make_long_lived(Peer& peer) {
  for (PathRef ref = peer.stale_paths; ref != kNoPath;) {
    Path& path = table.path(ref);
    const PathRef here = std::exchange(ref, path.peer_next);
    if (path.long_lived) continue;
    const uint8_t flags = attributes.digest(path.attributes).flags;
    if ((flags & AttributeDigest::kNoLlgr) != 0) {
      withdraw(here);
      continue;
    }
    path.long_lived = true;
    if ((flags & AttributeDigest::kLlgrStale) != 0) continue;  // the last choice already
    const Before was = before(path.route);
    Attributes marked = attributes.unpack(path.attributes);
    marked.communities.push_back(kLlgrStaleCommunity);
    attributes.release(std::exchange(path.attributes, attributes.intern(marked)));
    judge(peer, path);
    decide(path.route);
    const PathRef best = table.best(path.route);
    if (was.best == here || best != was.best) publish(path.route, was);
  }
}

// --- Policy ---------------------------------------------------------------------------------

void Rib::Impl::judge(Peer& peer, Path& path) {
  Rejected rejected = reject(peer, path.attributes);
  Verdict verdict = Verdict::Accept;
  if (rejected == Rejected::None && peer.traits.accept != nullptr)
    verdict = peer.traits.accept->judge(path.nlri(), *share(path.attributes));
  if (verdict == Verdict::Reject) rejected = Rejected::Policy;
  set_verdict(peer, path, rejected, verdict == Verdict::Flag);
}

void Rib::Impl::set_verdict(Peer& peer, Path& path, Rejected rejected, bool flagged) {
  if (path.rejected != Rejected::None) {
    --peer.rejected;
    --peer.rejected_by[static_cast<std::size_t>(path.rejected)];
  }
  if (rejected != Rejected::None) {
    ++peer.rejected;
    ++peer.rejected_by[static_cast<std::size_t>(rejected)];
  }
  if (path.flagged) --peer.flagged;
  if (flagged) ++peer.flagged;
  path.rejected = rejected;
  path.flagged = flagged;
}

// The path goes, or makes place for a newer one: it counts as nothing any longer.
void Rib::Impl::forget_marks(Peer& peer, Path& path) {
  if (path.stale) --peer.stale;
  path.stale = path.long_lived = path.not_refreshed = false;
  set_verdict(peer, path, Rejected::None, false);
}

// The accept policy changed.
void Rib::Impl::judge_all(Peer& peer) {
  for (const PathRef list : {peer.paths, peer.stale_paths}) {
    for (PathRef ref = list; ref != kNoPath; ref = table.path(ref).peer_next) {
      Path& path = table.path(ref);
      const Before was = before(path.route);
      const Rejected rejected = path.rejected;
      judge(peer, path);
      if (path.rejected == rejected) continue;
      decide(path.route);
      if (table.best(path.route) != was.best) publish(path.route, was);
    }
  }
}

// The send policy changed: another group, which goes on with what the peer has.
void Rib::Impl::change_group(Peer& peer) {
  if (peer.group == nullptr) return;
  UpdateGroup& from = *peer.group;
  UpdateGroup& to = group_of(peer.traits);
  if (&from == &to) return;
  from.hand_over(peer.out, to);
  peer.group = &to;
  std::erase_if(groups, [](const auto& group) { return group->members().empty(); });
  announce(peer);
}

// --- Rib ------------------------------------------------------------------------------------

Rib::Rib(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Rib::~Rib() = default;

void Rib::peer_up(PeerId id, const PeerTraits& traits) {
  if (id == kLocalPeer) return;
  Peer* known = impl_->find_peer(id);
  if (known != nullptr && known->up) peer_down(id, true);
  known = impl_->find_peer(id);
  if (known != nullptr) {
    // What was kept belongs to the router that it came from.
    const PeerTraits& old = known->traits;
    const bool same = old.router_id == traits.router_id && old.as_number == traits.as_number &&
                      old.address == traits.address && source_kind(old) == source_kind(traits);
    if (!same) peer_down(id, false);
  }
  Peer& peer = impl_->make_peer(id);
  peer.up = true;
  const RoutePolicyPtr judged_by = std::exchange(peer.traits, traits).accept;
  if (judged_by != traits.accept) impl_->judge_all(peer);
  peer.kind = source_kind(traits);
  peer.group = &impl_->group_of(traits);
  peer.group->join(peer.out);
  impl_->announce(peer);
}

void Rib::peer_down(PeerId id, bool keep_stale) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || id == kLocalPeer) return;
  if (peer->up) {
    peer->up = false;
    impl_->leave_group(*peer);
    // What was still stale from the restart before goes (RFC 4724 section 4.2), but for what is
    // kept for long anyway.
    impl_->doom_stale(*peer, keep_stale);
    if (keep_stale) impl_->mark_stale(*peer);
  }
  if (!keep_stale) impl_->end(*peer);
  if (peer->doomed.empty())
    impl_->drop_peer_if_unused(*peer);
  else
    work();
}

void Rib::end_of_rib(PeerId id) { flush_stale(id); }

void Rib::flush_stale(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return;
  impl_->doom(*peer, peer->stale_paths);
  work();
}

bool Rib::work() { return impl_->work(); }

bool Rib::tidy() {
  constexpr std::size_t kCalls = 8;  // to the system, each some hundred microseconds at worst
  if (impl_->reap(impl_->options.work_paths)) return true;
  impl_->table.tidy();
  impl_->attributes.tidy();
  return impl_->pages.give_back(kCalls);
}

void Rib::track_changes(bool track) { impl_->options.track_changes = track; }

void Rib::refresh_begins(PeerId id) {
  const Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || !peer->up) return;
  for (PathRef ref = peer->paths; ref != kNoPath; ref = impl_->table.path(ref).peer_next)
    impl_->table.path(ref).not_refreshed = true;
}

void Rib::refresh_ends(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || !peer->up) return;
  PathRef going = kNoPath;
  for (PathRef ref = peer->paths; ref != kNoPath;) {
    Path& path = impl_->table.path(ref);
    const PathRef here = std::exchange(ref, path.peer_next);
    if (!path.not_refreshed) continue;
    // As what is stale: when it is announced again before its turn comes, it stays.
    path.stale = true;
    ++peer->stale;
    impl_->unlink_from_peer(*peer, here);
    impl_->link(going, here);
  }
  impl_->doom(*peer, going);
  work();
}

void Rib::long_lived_stale(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return;
  impl_->make_long_lived(*peer);
  impl_->drop_peer_if_unused(*peer);
}

void Rib::set_policies(PeerId id, RoutePolicyPtr accept, RoutePolicyPtr send) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || id == kLocalPeer) return;
  if (std::exchange(peer->traits.accept, accept) != accept) impl_->judge_all(*peer);
  if (std::exchange(peer->traits.send, send) != send) impl_->change_group(*peer);
}

void Rib::set_send_filter(PeerId id, SendFilterPtr filter, bool hold) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || peer->group == nullptr) return;
  peer->group->set_filter(peer->out, std::move(filter), hold);
  impl_->announce(*peer);
}

void Rib::refresh(PeerId id, bool enhanced) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || peer->group == nullptr) return;
  peer->group->refresh(peer->out, enhanced);
  impl_->announce(*peer);
}

void Rib::update(PeerId id, std::span<const NlriItem> items, const AttributesPtr& attributes) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || !peer->up || attributes == nullptr || items.empty()) return;
  const AttributeId set = impl_->intern(attributes);
  impl_->for_each(items, [&](const NlriItem& item, uint32_t hash) {
    impl_->attributes.retain(set);
    impl_->update(*peer, item, hash, set);
    if (peer->has_ended) impl_->remove_ended(*peer, item.key(), hash);
  });
  impl_->attributes.release(set);
}

void Rib::withdraw(PeerId id, std::span<const NlriItem> items) {
  const Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return;
  impl_->for_each(items, [&](const NlriItem& item, uint32_t hash) {
    impl_->withdraw(*peer, item.key(), hash);
  });
}

void Rib::withdraw(PeerId id, std::span<const uint8_t> key) {
  const Peer* peer = impl_->find_peer(id);
  if (peer != nullptr) impl_->withdraw(*peer, key, impl_->table.hash(key));
}

void Rib::hold_advertisements(bool hold) {
  if (std::exchange(impl_->held, hold) == hold || hold) return;
  for (const auto& peer : impl_->peers)
    if (peer != nullptr && peer->group != nullptr) impl_->announce(*peer);
}

std::vector<RibChange> Rib::take_changes() {
  std::vector<RibChange> changes;
  changes.reserve(impl_->changed.size());
  const auto shown = [&](RouteIndex index) -> const Path& {
    const PathRef best = impl_->table.best(index);
    return impl_->table.path(best != kNoPath ? best : impl_->table.route(index).first);
  };
  std::size_t size = 0;
  for (const auto& entry : impl_->changed) size += shown(entry.route).nlri_size;
  net::Bytes& nlris = impl_->changed_nlris;
  constexpr std::size_t kKept = 1 << 20;
  if (nlris.capacity() > kKept && size < kKept)
    nlris = net::Bytes();
  else
    nlris.clear();
  nlris.reserve(size);
  for (const auto& [index, previous] : std::exchange(impl_->changed, {})) {
    Route& route = impl_->table.route(index);
    const PathRef best = impl_->table.best(index);
    const Path& path = shown(index);
    const bool known = route.change_told;
    route.change_told = best != kNoPath;
    if (best != kNoPath || known) {
      RibChange& change = changes.emplace_back();
      const auto nlri = path.nlri();
      change.nlri = {nlris.data() + nlris.size(), nlri.size()};
      nlris.insert(nlris.end(), nlri.begin(), nlri.end());
      change.previous = previous;
      if (best != kNoPath) {
        change.attributes = impl_->share(path.attributes);
        change.peer = impl_->peers[path.peer]->id;
      }
    }
    route.change_waits = false;
    impl_->remove_if_unused(index);
  }
  return changes;
}

std::vector<PeerId> Rib::take_ready() {
  if (impl_->held) return {};
  for (const auto& group : impl_->groups) {
    if (!group->take_dirty()) continue;
    for (const Subscriber* member : group->members()) impl_->announce(*impl_->peers[member->slot]);
  }
  std::vector<PeerId> ready;
  for (const PeerId id : std::exchange(impl_->announced, {})) {
    Peer* peer = impl_->find_peer(id);
    if (peer == nullptr) continue;
    peer->announced = false;
    if (peer->group != nullptr && peer->group->has_work(peer->out)) ready.push_back(id);
  }
  return ready;
}

std::shared_ptr<const net::Bytes> Rib::pull(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (impl_->held || peer == nullptr || peer->group == nullptr) return nullptr;
  return peer->group->pull(peer->out);
}

PeerCounts Rib::counts(PeerId id) const {
  const Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return {};
  return {peer->received,   peer->stale,
          peer->out.held,   peer->group != nullptr ? peer->group->queued(peer->out) : 0,
          peer->rejected,   peer->flagged,
          peer->rejected_by};
}

std::string Rib::explain(const PathView& path) const {
  if (!path.flagged && path.rejected != Rejected::Policy)
    return path.rejected == Rejected::None ? "" : to_string(path.rejected);
  const Peer* peer = impl_->find_peer(path.peer);
  if (peer == nullptr || peer->traits.accept == nullptr || path.attributes == nullptr)
    return to_string(Rejected::Policy);
  return peer->traits.accept->explain(path.nlri, *path.attributes);
}

uint64_t Rib::received(PeerId id) const {
  const Peer* peer = impl_->find_peer(id);
  return peer != nullptr ? peer->received : 0;
}

std::size_t Rib::route_count() const { return impl_->live_routes; }
std::size_t Rib::path_count() const { return impl_->live_paths; }

std::size_t Rib::memory_bytes() const {
  return impl_->table.mapped_bytes() + impl_->attributes.mapped_bytes();
}

void Rib::for_each_path(const std::function<bool(const PathView&)>& visit) const {
  (void)for_each_path_from(0, impl_->table.end(), visit);
}

std::optional<uint32_t> Rib::for_each_path_from(uint32_t from, uint32_t count,
                                                const std::function<bool(const PathView&)>& visit,
                                                const Wanted& wanted) const {
  const RouteTable& table = impl_->table;
  const RouteIndex end = from < table.end() ? from + std::min(count, table.end() - from) : from;
  AttributeId last = Arena::kNull;
  AttributesPtr attributes;
  for (RouteIndex index = from; index < end; ++index) {
    if (!table.is_live(index)) continue;
    if (wanted && !wanted(table.path(table.route(index).first).nlri())) continue;
    const PathRef best = table.best(index);
    for (PathRef ref = table.route(index).first; ref != kNoPath; ref = table.path(ref).next) {
      const Path& path = table.path(ref);
      if (path.attributes != last) {
        last = path.attributes;
        attributes = std::make_shared<const Attributes>(impl_->attributes.unpack(last));
      }
      if (!visit({.nlri = path.nlri(),
                  .peer = impl_->peers[path.peer]->id,
                  .attributes = attributes,
                  .best = ref == best,
                  .stale = path.stale,
                  .long_lived = path.long_lived,
                  .flagged = path.flagged,
                  .rejected = path.rejected,
                  .reason = path.reason}))
        return std::nullopt;
    }
  }
  return end < table.end() ? std::optional(end) : std::nullopt;
}

std::optional<uint32_t> Rib::for_each_advertised_from(
    PeerId id, uint32_t from, uint32_t count,
    const std::function<void(std::span<const uint8_t>, const Attributes&)>& visit) const {
  const Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || peer->group == nullptr) return std::nullopt;
  return walk_advertised(*impl_, *peer, from, count, visit);
}

std::optional<Rejected> Rib::standing(PeerId id, std::span<const uint8_t> key) const {
  const Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return std::nullopt;
  const RouteIndex route = impl_->table.find(key, impl_->table.hash(key));
  if (route == kNoRoute) return std::nullopt;
  const PathRef path = impl_->path_of(route, *peer);
  return path == kNoPath ? std::nullopt : std::optional(impl_->table.path(path).rejected);
}

const PeerTraits* Rib::traits(PeerId id) const {
  const Peer* peer = impl_->find_peer(id);
  return peer == nullptr ? nullptr : &peer->traits;
}

}  // namespace bgp
