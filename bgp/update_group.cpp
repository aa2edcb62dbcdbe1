// SPDX-License-Identifier: GPL-2.0-or-later
// Three things keep this right when peers are at different places:
//  - A place in the log moves on only when the batch is through, so whatever a peer is still to be
//    sent is in the log behind its place or in the batch it has, and withdrawn routes stay known as
//    long as they are in the log (RibState::pin).
//  - A batch of the table may be used by a peer whose place is not after the log's end at the time
//    it was made: newer states follow from the log.
//  - Per peer one bit a route tells whether it has the route. Withdrawals go only to those that do.
#include "bgp/update_group.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "bgp/message.h"
#include "bgp/rib_state.h"

namespace bgp {
namespace {

constexpr uint32_t kWalkBatchesPerLogTurn = 16;
constexpr uint64_t kCountedExactly = 1024;

}  // namespace

UpdateGroup::UpdateGroup(RibState& state, GroupKey key)
    : state_(state),
      key_(std::move(key)),
      newest_(state.pages),
      compact_at_(state.options.log_slack),
      window_(state.options.batch_routes * (key_.max_message > kMaxMessage ? 4 : 1)) {}

UpdateGroup::~UpdateGroup() = default;

void UpdateGroup::join(Subscriber& subscriber) {
  members_.push_back(&subscriber);
  if (!subscriber.started) subscriber.walk = Subscriber::Walk::Initial;
}

void UpdateGroup::leave(Subscriber& subscriber) {
  std::erase(members_, &subscriber);
  // With nobody in it the log does not go on: what is kept would not be told from the current.
  if (subscriber.started && --started_ == 0) shared_.clear();
  const uint16_t slot = subscriber.slot;
  subscriber = Subscriber{};
  subscriber.slot = slot;
  (void)trim();
}

void UpdateGroup::refresh(Subscriber& subscriber, bool enhanced) {
  // Before the first pull the whole table is to come anyway; BoRR has to wait for End-of-RIB
  // (RFC 7313 section 4). Several requests are answered by one.
  if (!subscriber.started && !enhanced) return;
  if (subscriber.request != Subscriber::Request::Enhanced)
    subscriber.request = enhanced ? Subscriber::Request::Enhanced : Subscriber::Request::Plain;
}

void UpdateGroup::set_filter(Subscriber& subscriber, SendFilterPtr filter, bool hold) {
  subscriber.filter_hold = hold;
  if (std::exchange(subscriber.filter, std::move(filter)) == subscriber.filter) return;
  if (!subscriber.started) return;  // the first walk heeds it
  if (subscriber.batch && !subscriber.batch->filterable) {
    // Made when nobody had a filter: once more, from where it began.
    subscriber.batch.reset();
    subscriber.next_message = 0;
  }
  start_resync(subscriber);
}

// As soon as no other walk is under way; a first walk becomes one of this kind.
void UpdateGroup::start_resync(Subscriber& subscriber) {
  subscriber.resync = true;
  if (subscriber.walk == Subscriber::Walk::Initial) subscriber.owes_end_of_rib = true;
  if (subscriber.walk == Subscriber::Walk::Refresh) return;
  if (subscriber.batch && subscriber.batch->of_table) {
    subscriber.batch.reset();
    subscriber.next_message = 0;
  }
  subscriber.walk = Subscriber::Walk::None;
}

void UpdateGroup::hand_over(Subscriber& subscriber, UpdateGroup& to) {
  // What the peer has and was to be told about is put into the other group's log, because there
  // nothing else keeps it; what it lacks the walk finds.
  std::vector<RouteIndex> pending;
  if (subscriber.started) {
    for (LogPosition at = subscriber.cursor; at < log_end(); ++at)
      if (const RouteIndex route = logged(at); route != kNoRoute && holds(subscriber, route))
        pending.push_back(route);
  }
  Subscriber moved = subscriber;
  moved.batch.reset();
  moved.next_message = 0;
  if (moved.started) {
    moved.cursor = moved.examined = to.log_end();
    if (moved.walk == Subscriber::Walk::Refresh) moved.walk_next = 0;
    to.start_resync(moved);
    ++to.started_;
  }
  to.members_.push_back(&subscriber);
  for (const RouteIndex route : pending) state_.pin(route);
  leave(subscriber);
  subscriber = std::move(moved);
  for (const RouteIndex route : pending) {
    to.push(route);
    state_.unpin(route);
  }
}

// --- What concerns whom ---------------------------------------------------------------------

PathRef UpdateGroup::wanted(RouteIndex route) const {
  const PathRef best = state_.table.best(route);
  if (best == kNoPath) return kNoPath;
  const Path& path = state_.table.path(best);
  const Peer& source = *state_.peers[path.peer];
  if (source.ended) return kNoPath;  // about to be removed
  const bool may = may_export(key_, source.kind, state_.attributes.digest(path.attributes).flags);
  return may ? best : kNoPath;
}

bool UpdateGroup::Judge::passes(PathRef ref) {
  const RoutePolicy* policy = group_.key_.send.get();
  if (policy == nullptr && filter_ == nullptr) return true;
  const Path& path = group_.state_.table.path(ref);
  if (path.attributes != last_) {
    last_ = path.attributes;
    attributes_ = group_.state_.attributes.unpack(last_);
    wanted_ = filter_ == nullptr || filter_->wants(attributes_);
  }
  return wanted_ &&
         (policy == nullptr || policy->judge(path.nlri(), attributes_) != Verdict::Reject);
}

bool UpdateGroup::filters() const {
  return std::ranges::any_of(members_, [](const Subscriber* m) { return m->filter != nullptr; });
}

bool UpdateGroup::holds(const Subscriber& subscriber, RouteIndex route) {
  const std::size_t word = route / 64;
  return word < subscriber.holds.size() && (subscriber.holds[word] >> (route % 64) & 1) != 0;
}

void UpdateGroup::set_holds(Subscriber& subscriber, RouteIndex route, bool value) {
  if (holds(subscriber, route) == value) return;
  const std::size_t word = route / 64;
  if (word >= subscriber.holds.size()) subscriber.holds.resize(word + 1);
  subscriber.holds[word] ^= uint64_t{1} << (route % 64);
  if (value)
    ++subscriber.held;
  else
    --subscriber.held;
}

void UpdateGroup::set_holds(Subscriber& subscriber, std::span<const Batch::Bits> bits, bool value) {
  for (const auto& [word, mask] : bits) {
    if (word >= subscriber.holds.size()) {
      if (!value) continue;
      subscriber.holds.resize(word + 1);
    }
    uint64_t& held = subscriber.holds[word];
    const auto before = static_cast<uint64_t>(std::popcount(held & mask));
    if (value) {
      held |= mask;
      subscriber.held += static_cast<uint64_t>(std::popcount(mask)) - before;
    } else {
      held &= ~mask;
      subscriber.held -= before;
    }
  }
}

bool UpdateGroup::concerns(const Subscriber& subscriber, RouteIndex route) const {
  const PathRef path = wanted(route);
  if (path != kNoPath && state_.table.path(path).peer != subscriber.slot) return true;
  return holds(subscriber, route);  // to be withdrawn
}

bool UpdateGroup::concerns(const Subscriber& subscriber, const Batch& batch,
                           const Batch::Message& message) const {
  const auto held = [&](const Batch::Bits& bits) {
    return bits.word < subscriber.holds.size() ? subscriber.holds[bits.word] & bits.mask : 0;
  };
  const auto bits = bits_of(batch, message);
  if (message.withdraws || !is_for(subscriber, message))
    return std::ranges::any_of(bits, [&](const Batch::Bits& b) { return held(b) != 0; });
  // In a first walk over the table, what the log has brought already need not come again.
  const bool again = !batch.of_table || subscriber.walk == Subscriber::Walk::Refresh;
  return again ||
         !std::ranges::all_of(bits, [&](const Batch::Bits& b) { return held(b) == b.mask; });
}

// --- Sending --------------------------------------------------------------------------------

MessagePtr UpdateGroup::pull(Subscriber& subscriber) {
  subscriber.unfinished = false;
  if (subscriber.filter_hold) return nullptr;
  if (!subscriber.started) start(subscriber);
  std::size_t looked_at = 0;
  for (;;) {
    if (subscriber.batch) {
      while (subscriber.next_message < subscriber.batch->messages.size()) {
        const auto& message = subscriber.batch->messages[subscriber.next_message++];
        if (MessagePtr bytes = deliver(subscriber, message)) return bytes;
      }
      looked_at += subscriber.batch->looked_at;
      finish_batch(subscriber);
      if (looked_at < state_.options.pull_routes) continue;
      subscriber.unfinished = true;
      return nullptr;
    }
    if (subscriber.resync && subscriber.walk == Subscriber::Walk::None) {
      subscriber.resync = false;
      start_walk(subscriber, Subscriber::Walk::Resync);
    }
    const bool log_waits = subscriber.cursor < log_end();
    if (!log_waits) subscriber.log_turn = false;
    if (subscriber.walk != Subscriber::Walk::None && !subscriber.log_turn) {
      if (subscriber.walk_next < subscriber.walk_end)
        take_table_batch(subscriber);
      else if (MessagePtr bytes = finish_walk(subscriber))
        return bytes;
      continue;
    }
    if (log_waits) {
      take_log_batch(subscriber);
      continue;
    }
    if (subscriber.request == Subscriber::Request::None) return nullptr;
    subscriber.walk_enhanced = subscriber.request == Subscriber::Request::Enhanced;
    subscriber.request = Subscriber::Request::None;
    start_walk(subscriber, Subscriber::Walk::Refresh);
    if (subscriber.walk_enhanced) return encode_refresh_mark(1);
  }
}

MessagePtr UpdateGroup::encode_refresh_mark(uint8_t subtype) const {
  return std::make_shared<const net::Bytes>(encode_route_refresh(state_.options.family, subtype));
}

void UpdateGroup::start(Subscriber& subscriber) {
  subscriber.started = true;
  ++started_;
  subscriber.cursor = subscriber.examined = log_end();
  start_walk(subscriber, Subscriber::Walk::Initial);
}

void UpdateGroup::start_walk(Subscriber& subscriber, Subscriber::Walk walk) {
  subscriber.walk = walk;
  subscriber.walk_batches = 0;
  subscriber.walk_next = 0;
  subscriber.walk_end = state_.table.end();
}

MessagePtr UpdateGroup::finish_walk(Subscriber& subscriber) {
  const Subscriber::Walk walk = std::exchange(subscriber.walk, Subscriber::Walk::None);
  const bool walking = std::ranges::any_of(
      members_, [](const Subscriber* member) { return member->walk != Subscriber::Walk::None; });
  if (!walking) std::erase_if(shared_, [](const auto& batch) { return batch->of_table; });
  if (walk == Subscriber::Walk::Initial ||
      (walk == Subscriber::Walk::Resync && std::exchange(subscriber.owes_end_of_rib, false)))
    return std::make_shared<const net::Bytes>(encode_end_of_rib(state_.options.family));
  return std::exchange(subscriber.walk_enhanced, false) ? encode_refresh_mark(2) : nullptr;
}

MessagePtr UpdateGroup::deliver(Subscriber& subscriber, const Batch::Message& message) {
  const Batch& batch = *subscriber.batch;
  if (!concerns(subscriber, batch, message)) return nullptr;
  const auto routes = std::span(batch.routes).subspan(message.first, message.last - message.first);
  if (!message.withdraws && !is_for(subscriber, message)) return withdraw_held(subscriber, routes);
  // Where much is never sent, withdrawals are not for all who get them.
  const bool selective = key_.send != nullptr || subscriber.filter != nullptr;
  if (message.withdraws && selective &&
      !std::ranges::all_of(routes, [&](RouteIndex route) { return holds(subscriber, route); }))
    return withdraw_held(subscriber, routes);
  set_holds(subscriber, bits_of(batch, message), !message.withdraws);
  return message.bytes;
}

// A peer's own routes became the best ones, or it does not want them any longer: what it has of
// them from us goes.
MessagePtr UpdateGroup::withdraw_held(Subscriber& subscriber, std::span<const RouteIndex> routes) {
  withdrawn_.clear();
  nlris_.clear();
  for (const RouteIndex route : routes) {
    if (!holds(subscriber, route)) continue;
    withdrawn_.push_back(route);
    nlris_.push_back(state_.table.path(state_.table.route(route).first).nlri());
  }
  PackedUpdate packed = encode_unreach(state_.options.family, nlris_, key_.max_message);
  if (packed.taken == 0) return nullptr;
  for (const RouteIndex route : std::span(withdrawn_).first(packed.taken))
    set_holds(subscriber, route, false);
  if (packed.taken < withdrawn_.size()) --subscriber.next_message;  // once more for the rest
  return std::make_shared<const net::Bytes>(std::move(packed.message));
}

void UpdateGroup::take_table_batch(Subscriber& subscriber) {
  if (++subscriber.walk_batches % kWalkBatchesPerLogTurn == 0) subscriber.log_turn = true;
  subscriber.next_message = 0;
  subscriber.after = subscriber.cursor;
  if (subscriber.walk == Subscriber::Walk::Resync) {
    subscriber.batch = resync_batch(subscriber);
    return;
  }
  const auto usable = [&](const std::shared_ptr<Batch>& batch) {
    return batch->of_table && (batch->filterable || subscriber.filter == nullptr) &&
           batch->table_from == subscriber.walk_next && batch->log_to >= subscriber.cursor;
  };
  const auto found = std::ranges::find_if(shared_, usable);
  subscriber.batch = found != shared_.end() ? *found : table_batch(subscriber.walk_next);
}

void UpdateGroup::take_log_batch(Subscriber& subscriber) {
  const auto usable = [&](const std::shared_ptr<Batch>& batch) {
    return !batch->of_table && batch->log_from == subscriber.cursor &&
           (batch->filterable || subscriber.filter == nullptr);
  };
  const auto found = std::ranges::find_if(shared_, usable);
  subscriber.batch = found != shared_.end() ? *found : log_batch(subscriber.cursor);
  subscriber.next_message = 0;
  subscriber.after = subscriber.batch->log_to;
}

void UpdateGroup::finish_batch(Subscriber& subscriber) {
  if (subscriber.batch->of_table) subscriber.walk_next = subscriber.batch->table_to;
  subscriber.batch.reset();
  subscriber.cursor = subscriber.examined = subscriber.after;
  (void)trim();
}

bool UpdateGroup::has_work(Subscriber& subscriber) {
  if (subscriber.filter_hold) return false;
  if (!subscriber.started || subscriber.walk == Subscriber::Walk::Initial) return true;
  if (subscriber.resync || subscriber.walk == Subscriber::Walk::Resync) return true;
  if (subscriber.request != Subscriber::Request::None || subscriber.walk_enhanced) return true;
  if (subscriber.batch) {
    const auto& messages = subscriber.batch->messages;
    for (std::size_t i = subscriber.next_message; i < messages.size(); ++i)
      if (concerns(subscriber, *subscriber.batch, messages[i])) return true;
    finish_batch(subscriber);
  }
  std::size_t left = state_.options.pull_routes;  // then pull() may look
  if (subscriber.walk == Subscriber::Walk::Refresh) {
    for (RouteIndex route = subscriber.walk_next; route < subscriber.walk_end; ++route) {
      if (route >= state_.table.end()) break;
      if (left-- == 0) return true;
      if (state_.table.best(route) != kNoPath && concerns(subscriber, route)) return true;
    }
  }
  for (; subscriber.examined < log_end(); ++subscriber.examined) {
    const RouteIndex route = logged(subscriber.examined);
    if (left == 0 || (route != kNoRoute && concerns(subscriber, route))) return true;
    --left;
  }
  subscriber.cursor = log_end();
  (void)trim();
  return false;
}

uint64_t UpdateGroup::queued(const Subscriber& subscriber) const {
  uint64_t count = 0;
  const bool refreshes = subscriber.walk == Subscriber::Walk::Refresh;
  const LogPosition from = subscriber.batch ? subscriber.after : subscriber.cursor;
  RouteIndex walk_from = subscriber.walk_next, walk_to = subscriber.walk_end;
  if (!subscriber.started) walk_to = state_.table.end();
  if (subscriber.batch) {
    const Batch& batch = *subscriber.batch;
    if (batch.of_table) walk_from = batch.table_to;
    for (std::size_t i = subscriber.next_message; i < batch.messages.size(); ++i) {
      const Batch::Message& message = batch.messages[i];
      if (!concerns(subscriber, batch, message)) continue;
      const bool all = !message.withdraws && is_for(subscriber, message);
      for (uint32_t r = message.first; r < message.last; ++r)
        if ((all || holds(subscriber, batch.routes[r])) && !logged_from(batch.routes[r], from))
          ++count;
    }
  }
  if (subscriber.started && log_end() - from > kCountedExactly) {
    count += log_end() - from;
  } else if (subscriber.started) {
    for (LogPosition at = from; at < log_end(); ++at) {
      const RouteIndex route = logged(at);
      if (route != kNoRoute && concerns(subscriber, route)) ++count;
    }
  }
  if (subscriber.walk == Subscriber::Walk::None) return count;
  walk_to = std::min(walk_to, state_.table.end());
  if (walk_to > walk_from && walk_to - walk_from > kCountedExactly)
    return count + (walk_to - walk_from);
  for (RouteIndex route = walk_from; route < walk_to; ++route) {
    const PathRef path = wanted(route);
    if (path == kNoPath || state_.table.path(path).peer == subscriber.slot) continue;
    if (subscriber.started && logged_from(route, from)) continue;
    if (refreshes || !holds(subscriber, route)) ++count;
  }
  return count;
}

}  // namespace bgp
