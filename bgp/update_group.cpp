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

constexpr std::size_t kSharedBatches = 8;
constexpr uint32_t kWalkBatchesPerLogTurn = 16;
constexpr LogPosition kAhead = 8;  // routes that are brought into the cache before their turn
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
  trim();
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

// --- The log --------------------------------------------------------------------------------

RouteIndex UpdateGroup::logged(LogPosition position) const {
  const RouteIndex route = log_[index_of(position)];
  return route != kNoRoute && newest_[route] == static_cast<uint32_t>(position) ? route : kNoRoute;
}

bool UpdateGroup::logged_from(RouteIndex route, LogPosition from) const {
  const uint32_t newest = newest_.get(route);
  if (newest == 0) return false;
  const uint32_t behind = static_cast<uint32_t>(log_end()) - newest;  // 1: the last one
  return log_end() - behind >= from;
}

void UpdateGroup::push(RouteIndex route) {
  if (started_ == 0) return;
  uint32_t& newest = newest_.grow_to(route);
  if (newest == 0) {
    state_.pin(route);
  } else {
    const LogPosition old = log_end() - (static_cast<uint32_t>(log_end()) - newest);
    std::erase_if(shared_, [&](const std::shared_ptr<Batch>& batch) {
      return !batch->of_table && batch->log_from <= old && old < batch->log_to;
    });
  }
  if (static_cast<uint32_t>(log_end()) == 0) log_.push_back(kNoRoute);  // 0 means none in newest_
  newest = static_cast<uint32_t>(log_end());
  log_.push_back(route);
  dirty_ = true;
  if (log_.size() >= compact_at_) compact();
}

bool UpdateGroup::take_dirty() { return std::exchange(dirty_, false); }

// Drops what every peer has passed.
void UpdateGroup::trim() {
  LogPosition lowest = log_end();
  // From the back: peers are mostly served in order, so one that is still at the front ends this.
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (!(*member)->started) continue;
    lowest = std::min(lowest, (*member)->cursor);
    if (lowest == log_begin_) return;
  }
  while (log_begin_ < lowest) {
    const RouteIndex route = logged(log_begin_);
    log_.pop_front();
    ++log_begin_;
    if (route == kNoRoute) continue;
    newest_[route] = 0;
    state_.unpin(route);
  }
  if (log_.empty()) {
    compact_at_ = state_.options.log_slack;
    // All of newest_ is 0. Most of it may be of routes that are no more.
    if (newest_.size() > 2 * std::size_t{state_.table.end()} + kCountedExactly) newest_.clear();
  }
  std::erase_if(shared_, [&](const std::shared_ptr<Batch>& batch) {
    return !batch->of_table && batch->log_to <= log_begin_;
  });
}

// Bounds the log when a peer does not come along: outdated entries go, and withdrawals that nobody
// has to be told. What stays is at most one entry a route.
void UpdateGroup::compact() {
  std::vector<bool> in_hand(state_.table.end());  // in messages that a peer is still to be sent
  std::vector<LogPosition*> positions;
  for (Subscriber* member : members_) {
    if (!member->started) continue;
    positions.insert(positions.end(), {&member->cursor, &member->after, &member->examined});
    if (!member->batch) continue;
    for (std::size_t i = member->next_message; i < member->batch->messages.size(); ++i) {
      const Batch::Message& message = member->batch->messages[i];
      for (uint32_t r = message.first; r < message.last; ++r)
        in_hand[member->batch->routes[r]] = true;
    }
  }
  const auto needed = [&](RouteIndex route) {
    return wanted(route) != kNoPath || in_hand[route] ||
           std::ranges::any_of(members_,
                               [&](const Subscriber* member) { return holds(*member, route); });
  };
  // Positions go on counting where the log ended, so that old and new ones are never equal.
  std::ranges::sort(positions, {}, [](const LogPosition* p) { return *p; });
  std::deque<RouteIndex> kept;
  const LogPosition begin = log_end();
  std::vector<RouteIndex> dropped;
  auto next = positions.begin();
  for (LogPosition at = log_begin_; at < begin; ++at) {
    for (; next != positions.end() && **next <= at; ++next) **next = begin + kept.size();
    const RouteIndex route = logged(at);
    if (route == kNoRoute) continue;
    if (needed(route)) {
      if (static_cast<uint32_t>(begin + kept.size()) == 0) kept.push_back(kNoRoute);
      newest_[route] = static_cast<uint32_t>(begin + kept.size());
      kept.push_back(route);
    } else {
      newest_[route] = 0;
      dropped.push_back(route);
    }
  }
  for (; next != positions.end(); ++next) **next = begin + kept.size();
  log_ = std::move(kept);
  log_begin_ = begin;
  compact_at_ = std::max(state_.options.log_slack, log_.size() * 2);
  shared_.clear();
  for (const RouteIndex route : dropped) state_.unpin(route);
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
  if (subscriber.filter_hold) return nullptr;
  if (!subscriber.started) start(subscriber);
  for (;;) {
    if (subscriber.batch) {
      while (subscriber.next_message < subscriber.batch->messages.size()) {
        const auto& message = subscriber.batch->messages[subscriber.next_message++];
        if (MessagePtr bytes = deliver(subscriber, message)) return bytes;
      }
      finish_batch(subscriber);
      continue;
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
  trim();
  // No bit is set above the table's end.
  const std::size_t words = state_.table.end() / 64 + 1;
  if (subscriber.holds.size() > 2 * words + 1024) {
    subscriber.holds.resize(words);
    subscriber.holds.shrink_to_fit();
  }
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
  if (subscriber.walk == Subscriber::Walk::Refresh) {
    for (RouteIndex route = subscriber.walk_next; route < subscriber.walk_end; ++route) {
      if (route >= state_.table.end()) break;
      if (state_.table.best(route) != kNoPath && concerns(subscriber, route)) return true;
    }
  }
  for (; subscriber.examined < log_end(); ++subscriber.examined) {
    const RouteIndex route = logged(subscriber.examined);
    if (route != kNoRoute && concerns(subscriber, route)) return true;
  }
  subscriber.cursor = log_end();
  trim();
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

// --- Making messages ------------------------------------------------------------------------

std::shared_ptr<Batch> UpdateGroup::log_batch(LogPosition from) {
  // Not beyond the place of the next peer ahead: from there on both go on with the same batches.
  LogPosition limit = log_end();
  for (const Subscriber* member : members_)
    if (member->started && member->cursor > from) limit = std::min(limit, member->cursor);
  announced_.clear();
  withdrawn_.clear();
  Judge judge(*this, nullptr);
  LogPosition at = from;
  for (; at < limit && announced_.size() + withdrawn_.size() < window_; ++at) {
    if (at + kAhead < limit) state_.table.prefetch_path(log_[index_of(at + kAhead)]);
    const RouteIndex route = logged(at);
    if (route == kNoRoute) continue;
    const PathRef ref = wanted(route);
    if (ref == kNoPath || !judge.passes(ref)) {
      withdrawn_.push_back(route);
    } else {
      add_item(route, ref);
    }
  }
  auto batch = std::make_shared<Batch>();
  batch->log_from = from;
  batch->log_to = at;
  encode(*batch, announced_, withdrawn_);
  share(batch);
  return batch;
}

std::shared_ptr<Batch> UpdateGroup::table_batch(RouteIndex from) {
  announced_.clear();
  withdrawn_.clear();
  Judge judge(*this, nullptr);
  const RouteIndex end = state_.table.end();
  RouteIndex at = from;
  for (; at < end && announced_.size() < window_ && at - from < 8 * window_; ++at) {
    const PathRef ref = wanted(at);
    if (ref == kNoPath || !judge.passes(ref)) continue;
    add_item(at, ref);
  }
  auto batch = std::make_shared<Batch>();
  batch->of_table = true;
  batch->table_from = from;
  batch->table_to = at < end ? at : kNoRoute;
  batch->log_from = batch->log_to = log_end();
  encode(*batch, announced_, withdrawn_);
  share(batch);
  return batch;
}

// For one peer only: routes that it lacks, and withdrawals of what it has too much. Routes without
// a best path are in the log.
std::shared_ptr<Batch> UpdateGroup::resync_batch(const Subscriber& subscriber) {
  announced_.clear();
  withdrawn_.clear();
  Judge judge(*this, subscriber.filter.get());
  const RouteIndex end = std::min(state_.table.end(), subscriber.walk_end);
  RouteIndex at = subscriber.walk_next;
  for (; at < end && announced_.size() + withdrawn_.size() < window_; ++at) {
    if (state_.table.best(at) == kNoPath) continue;
    const PathRef ref = wanted(at);
    const bool wants =
        ref != kNoPath && state_.table.path(ref).peer != subscriber.slot && judge.passes(ref);
    if (wants == holds(subscriber, at)) continue;
    if (wants)
      add_item(at, ref);
    else
      withdrawn_.push_back(at);
  }
  auto batch = std::make_shared<Batch>();
  batch->of_table = true;
  batch->table_from = subscriber.walk_next;
  batch->table_to = at < end ? at : kNoRoute;
  batch->log_from = batch->log_to = log_end();
  encode(*batch, announced_, withdrawn_);
  return batch;
}

void UpdateGroup::share(const std::shared_ptr<Batch>& batch) {
  std::erase_if(shared_, [&](const std::shared_ptr<Batch>& old) {
    return old->of_table == batch->of_table &&
           (batch->of_table ? old->table_from == batch->table_from
                            : old->log_from == batch->log_from);
  });
  if (shared_.size() == kSharedBatches) shared_.pop_front();
  shared_.push_back(batch);
}

void UpdateGroup::add_item(RouteIndex route, PathRef ref) {
  const Path& path = state_.table.path(ref);
  announced_.push_back({uint64_t{path.attributes} << 16 | path.peer, route, ref});
}

// Items of one bucket come together, in the order in which they were. Mostly there are few buckets
// and long stretches of each.
void UpdateGroup::group_by_bucket(std::vector<Item>& items) {
  constexpr std::size_t kFew = 64;
  struct Bucket {
    uint64_t name;
    std::size_t end;  // first the count
  };
  std::array<Bucket, kFew> buckets;
  std::size_t used = 0, last = 0;
  const auto find = [&](uint64_t name) {
    if (last < used && buckets[last].name == name) return true;
    for (last = 0; last < used; ++last)
      if (buckets[last].name == name) return true;
    return false;
  };
  bool grouped = true;
  for (const Item& item : items) {
    const std::size_t before = last;
    if (find(item.bucket)) {
      grouped = grouped && last == before;
    } else {
      if (used == kFew) {
        std::ranges::sort(items, {}, [](const Item& i) { return std::pair(i.bucket, i.route); });
        return;
      }
      last = used;
      buckets[used++] = {item.bucket, 0};
    }
    ++buckets[last].end;
  }
  if (grouped) return;
  std::size_t begin = 0;
  for (Bucket& bucket : std::span(buckets).first(used)) begin += std::exchange(bucket.end, begin);
  grouped_.resize(items.size());
  for (const Item& item : items) {
    (void)find(item.bucket);
    grouped_[buckets[last].end++] = item;
  }
  items.swap(grouped_);
}

void UpdateGroup::encode(Batch& batch, std::vector<Item>& announced,
                         std::vector<RouteIndex>& withdrawn) {
  group_by_bucket(announced);
  batch.routes.reserve(announced.size() + withdrawn.size());
  batch.filterable = filters();
  for (std::size_t from = 0; from < announced.size();) {
    std::size_t to = from;
    while (to < announced.size() && announced[to].bucket == announced[from].bucket) ++to;
    const std::size_t fit = encode_bucket(batch, std::span(announced).subspan(from, to - from));
    // Attributes too long for this session's messages: not advertised, and withdrawn if it was
    // (RFC 8654 section 4).
    for (from += fit; from < to; ++from) withdrawn.push_back(announced[from].route);
  }
  encode_withdrawn(batch, withdrawn);
}

// The message for the routes of the batch from `first` on.
void UpdateGroup::add_message(Batch& batch, net::Bytes bytes, std::size_t first, bool withdraws,
                              uint16_t source) {
  Batch::Message message;
  message.bytes = std::make_shared<const net::Bytes>(std::move(bytes));
  message.first = static_cast<uint32_t>(first);
  message.last = static_cast<uint32_t>(batch.routes.size());
  message.first_bits = static_cast<uint32_t>(batch.bits.size());
  message.withdraws = withdraws;
  message.source = source;
  Batch::Bits bits;
  for (const RouteIndex route : std::span(batch.routes).subspan(first)) {
    if (route / 64 != bits.word || bits.mask == 0) {
      if (bits.mask != 0) batch.bits.push_back(bits);
      bits = {route / 64, 0};
    }
    bits.mask |= uint64_t{1} << (route % 64);
  }
  if (bits.mask != 0) batch.bits.push_back(bits);
  message.last_bits = static_cast<uint32_t>(batch.bits.size());
  batch.messages.push_back(std::move(message));
}

// Returns how many of the items were encoded.
std::size_t UpdateGroup::encode_bucket(Batch& batch, std::span<const Item> items) {
  const RouteTable& table = state_.table;
  const Path& first = table.path(items[0].path);
  const Peer& source = *state_.peers[first.peer];
  Attributes stored = state_.attributes.unpack(first.attributes);
  const auto for_filters =
      batch.filterable ? std::make_shared<const Attributes>(stored) : AttributesPtr();
  const Attributes attributes =
      exported(std::move(stored), key_,
               {source.kind, source.traits.router_id, state_.options.local_as.value,
                state_.options.cluster_id});
  const net::Bytes encoded = encode_attributes(attributes, {.four_octet_as = key_.four_octet_as});
  nlris_.clear();
  for (const Item& item : items) nlris_.push_back(table.path(item.path).nlri());
  std::size_t done = 0;
  while (done < items.size()) {
    PackedUpdate packed = encode_reach(state_.options.family, attributes.next_hop, encoded,
                                       std::span(nlris_).subspan(done), key_.max_message);
    if (packed.taken == 0) break;
    const std::size_t begin = batch.routes.size();
    for (const Item& item : items.subspan(done, packed.taken)) batch.routes.push_back(item.route);
    add_message(batch, std::move(packed.message), begin, false, source.slot);
    batch.messages.back().attributes = for_filters;
    done += packed.taken;
  }
  return done;
}

void UpdateGroup::encode_withdrawn(Batch& batch, std::span<const RouteIndex> routes) {
  const RouteTable& table = state_.table;
  nlris_.clear();
  for (const RouteIndex route : routes)
    nlris_.push_back(table.path(table.route(route).first).nlri());
  for (std::size_t done = 0; done < routes.size();) {
    PackedUpdate packed =
        encode_unreach(state_.options.family, std::span(nlris_).subspan(done), key_.max_message);
    if (packed.taken == 0) break;  // max_message below the smallest that BGP has
    const std::size_t begin = batch.routes.size();
    for (const RouteIndex route : routes.subspan(done, packed.taken)) batch.routes.push_back(route);
    add_message(batch, std::move(packed.message), begin, true, 0);
    done += packed.taken;
  }
}

}  // namespace bgp
