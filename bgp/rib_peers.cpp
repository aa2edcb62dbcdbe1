// SPDX-License-Identifier: GPL-2.0-or-later
// Peers, the groups in which they are sent routes, and the lists of what came from them.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "bgp/rib_impl.h"

namespace bgp {

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
  const bool has_paths = peer.paths != kNoPath || !peer.old.empty();
  if (peer.up || has_paths || peer.busy || peer.id == kLocalPeer) return;
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
  retire_empty_groups();
}

void Rib::Impl::retire_empty_groups() {
  for (auto& group : groups)
    if (group->members().empty() && !group->trim()) retired.push_back(std::move(group));
  std::erase_if(groups,
                [](const auto& group) { return group == nullptr || group->members().empty(); });
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
  for (Walk& walk : peer.walks)
    if (walk.at == ref) walk.at = path.peer_next;
  if (path.peer_next != kNoPath) table.path(path.peer_next).peer_previous = path.peer_previous;
  if (path.peer_previous != kNoPath) {
    table.path(path.peer_previous).peer_next = path.peer_next;
  } else if (peer.paths == ref) {
    peer.paths = path.peer_next;
  } else {
    const auto list = std::ranges::find(peer.old, ref, &OldPaths::head);
    list->head = path.peer_next;
    if (list->head == kNoPath) peer.old.erase(list);
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
  retire_empty_groups();
  announce(peer);
}

}  // namespace bgp
