// SPDX-License-Identifier: GPL-2.0-or-later
// An update group's batches: which routes are in one, and the messages that it is.
#include <algorithm>
#include <array>
#include <utility>

#include "bgp/message.h"
#include "bgp/rib_state.h"
#include "bgp/update_group.h"

namespace bgp {
namespace {

constexpr std::size_t kSharedBatches = 8;
constexpr LogPosition kAhead = 8;  // routes that are brought into the cache before their turn

}  // namespace

// Routes that are looked at for a batch: less where each is judged.
std::size_t UpdateGroup::stretch() const {
  const bool judged = key_.send != nullptr || filters();
  return judged ? std::min(window_, std::max<std::size_t>(1, state_.options.work_paths))
                : 8 * window_;
}

std::shared_ptr<Batch> UpdateGroup::log_batch(LogPosition from) {
  // Not beyond the place of the next peer ahead: from there on both go on with the same batches.
  LogPosition limit = log_end();
  for (const Subscriber* member : members_)
    if (member->started && member->cursor > from) limit = std::min(limit, member->cursor);
  announced_.clear();
  withdrawn_.clear();
  Judge judge(*this, nullptr);
  LogPosition at = from;
  limit = std::min(limit, from + stretch());
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
  batch->looked_at = static_cast<std::size_t>(at - from);
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
  for (; at < end && announced_.size() < window_ && at - from < stretch(); ++at) {
    const PathRef ref = wanted(at);
    if (ref == kNoPath || !judge.passes(ref)) continue;
    add_item(at, ref);
  }
  auto batch = std::make_shared<Batch>();
  batch->of_table = true;
  batch->table_from = from;
  batch->table_to = at < end ? at : kNoRoute;
  batch->looked_at = at - from;
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
  for (; at < end && announced_.size() + withdrawn_.size() < window_ &&
         at - subscriber.walk_next < stretch();
       ++at) {
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
  batch->looked_at = at - std::min(at, subscriber.walk_next);
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
