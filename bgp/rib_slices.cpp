// SPDX-License-Identifier: GPL-2.0-or-later
// What concerns all of a peer's paths is done in parts, with others having their turn between: what
// a session left behind goes, stale routes are decided anew or kept for long, new rules are
// applied, what a refresh did not bring goes. Each is a walk along a list of the peer's; a path
// that is announced anew meanwhile goes to the front of Peer::paths, where no walk comes any more,
// and is all that it has to be by then. What must hold at once does so without a walk: a path is
// stale when its era is not the peer's (is_stale()), and not refreshed when its round is not.
#include <algorithm>
#include <utility>

#include "bgp/rib_impl.h"

namespace bgp {

// --- Walks --------------------------------------------------------------------------------------

void Rib::Impl::make_busy(Peer& peer) {
  if (!std::exchange(peer.busy, true)) busy.push_back(peer.slot);
}

void Rib::Impl::begin(Peer& peer, Walk::Kind kind, PathRef list) {
  if (list == kNoPath) return;
  peer.walks.push_back({kind, list});
  make_busy(peer);
}

void Rib::Impl::stop(Peer& peer, Walk::Kind kind) {
  std::erase_if(peer.walks, [kind](const Walk& walk) { return walk.kind == kind; });
}

void Rib::Impl::visit(Peer& peer, Walk::Kind kind, PathRef ref) {
  switch (kind) {
    case Walk::Kind::Decide: decide_again(ref); break;
    case Walk::Kind::LongLived: make_long_lived(peer, ref); break;
    case Walk::Kind::Judge: judge_again(peer, ref); break;
    case Walk::Kind::Sweep:
      if (table.path(ref).round != peer.round) withdraw(ref);
      break;
  }
}

// It became stale: another path of the route may be better now.
void Rib::Impl::decide_again(PathRef ref) {
  const Path& path = table.path(ref);
  if (path.next == kNoPath && table.route(path.route).first == ref) return;
  const Before was = before(path.route);
  decide(path.route);
  if (table.best(path.route) != was.best) publish(path.route, was);
}

// RFC 9494 section 4.3.
void Rib::Impl::make_long_lived(Peer& peer, PathRef ref) {
  Path& path = table.path(ref);
  if (path.long_lived) return;
  const uint8_t flags = attributes.digest(path.attributes).flags;
  if ((flags & AttributeDigest::kNoLlgr) != 0) {
    withdraw(ref);
    return;
  }
  path.long_lived = true;
  if ((flags & AttributeDigest::kLlgrStale) != 0) return;  // the last choice already
  const Before was = before(path.route);
  Attributes marked = attributes.unpack(path.attributes);
  marked.communities.push_back(kLlgrStaleCommunity);
  attributes.release(std::exchange(path.attributes, attributes.intern(marked)));
  judge(peer, path);
  decide(path.route);
  const PathRef best = table.best(path.route);
  if (was.best == ref || best != was.best) publish(path.route, was);
}

void Rib::Impl::judge_again(Peer& peer, PathRef ref) {
  Path& path = table.path(ref);
  const Before was = before(path.route);
  const Rejected rejected = path.rejected;
  judge(peer, path);
  if (path.rejected == rejected) return;
  decide(path.route);
  if (table.best(path.route) != was.best) publish(path.route, was);
}

// --- What begins them ---------------------------------------------------------------------------

// The session ended, and its paths are kept (RFC 4724 section 4.2): all of them are stale now. What
// still was so from the restart before goes, but for what is kept for long anyway.
void Rib::Impl::mark_stale(Peer& peer) {
  // What the walk has not come to is to be kept for long as well.
  const auto unmarked = [](const Walk& walk) { return walk.kind == Walk::Kind::LongLived; };
  if (std::ranges::any_of(peer.walks, unmarked)) (void)finish(peer, SIZE_MAX);
  doom_stale(peer, true);
  // Eras come round: none of an earlier one may be left that would look like of this.
  if (!std::ranges::any_of(peer.old, &OldPaths::doomed)) {
    peer.eras = 0;
  } else if (++peer.eras == kEras - 1) {
    (void)finish(peer, SIZE_MAX);
    peer.eras = 0;
  }
  peer.era = (peer.era + 1) & (kEras - 1);
  peer.refreshes = 0;
  peer.stale = peer.received;
  if (peer.paths == kNoPath) return;
  begin(peer, Walk::Kind::Decide, peer.paths);
  peer.old.push_back({.head = std::exchange(peer.paths, kNoPath)});
}

void Rib::Impl::make_all_long_lived(Peer& peer) {
  stop(peer, Walk::Kind::LongLived);
  for (const OldPaths& list : peer.old)
    if (!list.doomed) begin(peer, Walk::Kind::LongLived, list.head);
}

// The accept policy changed. A walk that is under way judges by the new one, but has to begin
// again.
void Rib::Impl::judge_all(Peer& peer) {
  stop(peer, Walk::Kind::Judge);
  begin(peer, Walk::Kind::Judge, peer.paths);
  for (const OldPaths& list : peer.old)
    if (!list.doomed || list.but_long_lived) begin(peer, Walk::Kind::Judge, list.head);
}

void Rib::Impl::begin_refresh(Peer& peer) {
  // The sweep that ended the last one goes by the round that was.
  const auto sweeps = [](const Walk& walk) { return walk.kind == Walk::Kind::Sweep; };
  if (std::ranges::any_of(peer.walks, sweeps)) (void)finish(peer, SIZE_MAX);
  // Rounds come round too: of very many begun, and none ended, the last ones count as one.
  if (peer.refreshes == kEras - 2) return;
  ++peer.refreshes;
  peer.round = (peer.round + 1) & (kEras - 1);
}

// What is stale is to go, or all of it but what is kept for long.
void Rib::Impl::doom_stale(Peer& peer, bool but_long_lived) {
  if (!but_long_lived) {
    stop(peer, Walk::Kind::LongLived);
    stop(peer, Walk::Kind::Decide);
  }
  if (!peer.old.empty()) make_busy(peer);
  for (OldPaths& list : peer.old) {
    list.but_long_lived = but_long_lived && (!list.doomed || list.but_long_lived);
    list.doomed = true;
  }
}

// All of the peer's paths are to go; its id is free for a new session, in a slot of its own.
void Rib::Impl::end(Peer& peer) {
  peer.walks.clear();
  if (peer.paths != kNoPath) peer.old.push_back({.head = std::exchange(peer.paths, kNoPath)});
  doom_stale(peer, false);
  slots.erase(peer.id);
  peer.ended = true;
}

// --- Work ---------------------------------------------------------------------------------------

// Both: true when it is through before `left` is 0.
bool Rib::Impl::walk(Peer& peer, std::size_t& left) {
  while (!peer.walks.empty()) {
    const auto [kind, ref] = peer.walks.back();
    if (ref == kNoPath) {
      peer.walks.pop_back();
      continue;
    }
    if (left-- == 0) return false;
    const PathRef next = table.path(ref).peer_next;
    if (next != kNoPath) table.prefetch(next);
    peer.walks.back().at = next;
    visit(peer, kind, ref);
  }
  return true;
}

bool Rib::Impl::remove_doomed(Peer& peer, std::size_t& left) {
  for (;;) {
    const auto found = std::ranges::find_if(peer.old, &OldPaths::doomed);
    if (found == peer.old.end()) return true;
    if (left-- == 0) return false;
    const PathRef ref = found->head;
    const Path& path = table.path(ref);
    if (path.peer_next != kNoPath) table.prefetch(path.peer_next);
    if (!found->but_long_lived || !path.long_lived) {
      withdraw(ref);
      continue;
    }
    unlink_from_peer(peer, ref);
    auto kept = std::ranges::find_if_not(peer.old, &OldPaths::doomed);
    if (kept == peer.old.end()) kept = peer.old.insert(kept, OldPaths{});
    link(kept->head, ref);
  }
}

bool Rib::Impl::finish(Peer& peer, std::size_t left) {
  return walk(peer, left) && remove_doomed(peer, left);
}

bool Rib::Impl::work() {
  std::size_t left = std::max<std::size_t>(1, options.work_paths);
  while (!busy.empty()) {
    Peer& peer = *peers[busy.back()];
    if (!walk(peer, left) || !remove_doomed(peer, left)) return true;
    busy.pop_back();
    peer.busy = false;
    drop_peer_if_unused(peer);
  }
  while (!retired.empty()) {
    if (!retired.back()->trim()) return true;
    retired.pop_back();
  }
  return false;
}

}  // namespace bgp
