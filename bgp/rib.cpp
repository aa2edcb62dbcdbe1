// SPDX-License-Identifier: GPL-2.0-or-later
// The routing information bases, as they are used from outside. See rib_impl.h for what is inside.
#include "bgp/rib.h"

#include <algorithm>
#include <utility>

#include "bgp/advertised.h"
#include "bgp/rib_impl.h"

namespace bgp {

Rib::Impl::Impl(const Options& rib_options) : RibState(rib_options) {
  make_peer(kLocalPeer).up = true;
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
  work();
}

void Rib::peer_down(PeerId id, bool keep_stale) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || id == kLocalPeer) return;
  if (peer->up) {
    peer->up = false;
    impl_->leave_group(*peer);
    if (keep_stale) impl_->mark_stale(*peer);
  }
  if (!keep_stale) impl_->end(*peer);
  impl_->drop_peer_if_unused(*peer);
  work();
}

void Rib::end_of_rib(PeerId id) { flush_stale(id); }

void Rib::flush_stale(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return;
  impl_->doom_stale(*peer, false);
  work();
}

bool Rib::work() { return impl_->work(); }

bool Rib::tidy() {
  constexpr std::size_t kCalls = 4;  // to the system, each up to a millisecond
  if (impl_->reap(impl_->options.work_paths)) return true;
  for (const auto& group : impl_->groups) group->tidy();
  impl_->table.tidy();
  impl_->attributes.tidy();
  return impl_->pages.give_back(kCalls);
}

void Rib::track_changes(bool track) { impl_->options.track_changes = track; }

void Rib::refresh_begins(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer != nullptr && peer->up) impl_->begin_refresh(*peer);
}

void Rib::refresh_ends(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || !peer->up) return;
  peer->refreshes = 0;
  impl_->begin(*peer, Walk::Kind::Sweep, peer->paths);
  work();
}

void Rib::long_lived_stale(PeerId id) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr) return;
  impl_->make_all_long_lived(*peer);
  work();
}

void Rib::set_policies(PeerId id, RoutePolicyPtr accept, RoutePolicyPtr send) {
  Peer* peer = impl_->find_peer(id);
  if (peer == nullptr || id == kLocalPeer) return;
  if (std::exchange(peer->traits.accept, accept) != accept) impl_->judge_all(*peer);
  if (std::exchange(peer->traits.send, send) != send) impl_->change_group(*peer);
  work();
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
  MessagePtr message = peer->group->pull(peer->out);
  if (peer->out.unfinished) impl_->announce(*peer);
  return message;
}

bool Rib::unfinished(PeerId id) const {
  const Peer* peer = impl_->find_peer(id);
  return !impl_->held && peer != nullptr && peer->out.unfinished;
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
                  .stale = is_stale(*impl_->peers[path.peer], path),
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
