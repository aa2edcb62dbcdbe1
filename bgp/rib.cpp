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

#include "bgp/best_path.h"
#include "bgp/rib_state.h"

namespace bgp {

struct Rib::Impl : RibState {
  // What a route was before it is touched, as far as the update groups care.
  struct Before {
    PathRef best = kNoPath;
    SourceKind source = SourceKind::Local;
    uint8_t flags = 0;
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
  void mark_stale(Peer& peer);
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

  void link_to_peer(Peer& peer, PathRef ref);
  void unlink_from_peer(Peer& peer, PathRef ref);
  void unlink_from_route(PathRef ref);

  std::unordered_map<PeerId, uint16_t> slots;
  std::vector<uint16_t> free_slots;
  std::vector<std::unique_ptr<UpdateGroup>> groups;
  std::vector<PeerId> announced;   // peers with `announced` set
  std::vector<uint16_t> to_clean;  // slots with doomed paths
  std::vector<RouteIndex> changed;
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

void Rib::Impl::link_to_peer(Peer& peer, PathRef ref) {
  Path& path = table.path(ref);
  path.peer_previous = kNoPath;
  path.peer_next = peer.paths;
  if (peer.paths != kNoPath) table.path(peer.paths).peer_previous = ref;
  peer.paths = ref;
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
  return {best, peers[path.peer]->kind, attributes.digest(path.attributes).flags};
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
  if (options.track_changes && !route.change_waits && (is.best != kNoPath || route.change_told)) {
    route.change_waits = true;
    changed.push_back(index);
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
  if (!path.stale) return;
  const Before was = before(route);
  path.stale = false;
  --peer.stale;
  unlink_from_peer(peer, ref);
  link_to_peer(peer, ref);
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
    link_to_peer(peer, now);
    ++peer.received;
    ++live_paths;
  }
  Path& path = table.path(now);
  if (ref != kNoPath) {
    Path& old = table.path(ref);
    attributes.release(old.attributes);
    if (old.stale) --peer.stale;
    if (now == ref && old.stale) {
      unlink_from_peer(peer, ref);
      link_to_peer(peer, ref);
    }
    old.stale = false;
    if (now != ref) {
      unlink_from_peer(peer, ref);
      unlink_from_route(ref);
      table.free_path(ref);
      --peer.received;
      --live_paths;
    }
  }
  path.attributes = id;
  path.rejected = reject(peer, id);
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
  if (path.stale) --peer.stale;
  attributes.release(path.attributes);
  path.stale = false;
  if (table.route(index).first == ref && path.next == kNoPath) {
    --live_routes;
    path.attributes = Arena::kNull;  // stays as tombstone, for as long as it is needed
    path.rejected = Rejected::None;
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

void Rib::Impl::mark_stale(Peer& peer) {
  for (PathRef ref = peer.paths; ref != kNoPath; ref = table.path(ref).peer_next) {
    Path& path = table.path(ref);
    if (path.peer_next != kNoPath) table.prefetch(path.peer_next);
    path.stale = true;
    if (path.next == kNoPath && table.route(path.route).first == ref) continue;
    const Before was = before(path.route);
    decide(path.route);
    if (table.best(path.route) != was.best) publish(path.route, was);
  }
  peer.stale = peer.received;
  peer.stale_paths = std::exchange(peer.paths, kNoPath);
}

// --- Removal in slices ----------------------------------------------------------------------

// The paths of the list are to go.
void Rib::Impl::doom(Peer& peer, PathRef& list) {
  if (list == kNoPath) return;
  if (peer.doomed.empty()) to_clean.push_back(peer.slot);
  peer.doomed.push_back(std::exchange(list, kNoPath));
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
  peer.traits = traits;
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
    // What was still stale from the restart before goes (RFC 4724 section 4.2).
    impl_->doom(*peer, peer->stale_paths);
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
  for (const RouteIndex index : impl_->changed) size += shown(index).nlri_size;
  net::Bytes& nlris = impl_->changed_nlris;
  constexpr std::size_t kKept = 1 << 20;
  if (nlris.capacity() > kKept && size < kKept)
    nlris = net::Bytes();
  else
    nlris.clear();
  nlris.reserve(size);
  for (const RouteIndex index : std::exchange(impl_->changed, {})) {
    Route& route = impl_->table.route(index);
    const PathRef best = impl_->table.best(index);
    const Path& path = shown(index);
    const bool known = std::exchange(route.change_told, best != kNoPath);
    if (best != kNoPath || known) {
      RibChange& change = changes.emplace_back();
      const auto nlri = path.nlri();
      change.nlri = {nlris.data() + nlris.size(), nlri.size()};
      nlris.insert(nlris.end(), nlri.begin(), nlri.end());
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
  return {peer->received, peer->stale, peer->out.held,
          peer->group != nullptr ? peer->group->queued(peer->out) : 0};
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
  const RouteTable& table = impl_->table;
  AttributeId last = Arena::kNull;
  AttributesPtr attributes;
  for (RouteIndex index = 0; index < table.end(); ++index) {
    if (!table.is_live(index)) continue;
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
                  .rejected = path.rejected,
                  .reason = path.reason}))
        return;
    }
  }
}

}  // namespace bgp
