// SPDX-License-Identifier: GPL-2.0-or-later
// Paths come in (update, withdraw), the best path of a route is decided anew, and where it changed
// the update groups and take_changes() are told. RFC 4271 section 9, RFC 4456 section 8.
#include <algorithm>
#include <functional>
#include <utility>

#include "bgp/rib_impl.h"

namespace bgp {

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
  c.stale = is_stale(peer, path);
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
  const bool stale = is_stale(peer, path);
  make_current(peer, path);
  if (!stale) return;
  const Before was = before(route);
  path.long_lived = false;
  --peer.stale;
  unlink_from_peer(peer, ref);
  link(peer.paths, ref);
  judge(peer, path);  // the rules may have changed since
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
    make_current(peer, table.path(now));
    route.first = now;
    link(peer.paths, now);
    ++peer.received;
    ++live_paths;
  }
  Path& path = table.path(now);
  if (ref != kNoPath) {
    Path& old = table.path(ref);
    attributes.release(old.attributes);
    const bool relink = now == ref && is_stale(peer, old);
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
  if (is_stale(peer, path)) --peer.stale;
  path.long_lived = false;
  make_current(peer, path);
  set_verdict(peer, path, Rejected::None, false);
}

}  // namespace bgp
