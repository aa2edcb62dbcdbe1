// SPDX-License-Identifier: GPL-2.0-or-later
// An update group's log of changed routes: what is newest in it, and what nobody needs any longer.
#include <algorithm>
#include <deque>
#include <utility>

#include "bgp/rib_state.h"
#include "bgp/update_group.h"

namespace bgp {
namespace {

constexpr std::size_t kSmall = 1024;  // routes

}  // namespace

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

bool UpdateGroup::trim() {
  LogPosition lowest = log_end();
  // From the back: peers are mostly served in order, so one that is still at the front ends this.
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (!(*member)->started) continue;
    lowest = std::min(lowest, (*member)->cursor);
    if (lowest == log_begin_) return true;
  }
  // More than a batch, so that it keeps up with them.
  std::size_t left = 2 * std::max(window_, state_.options.work_paths);
  for (; log_begin_ < lowest && left != 0; --left) {
    const RouteIndex route = logged(log_begin_);
    log_.pop_front();
    ++log_begin_;
    if (route == kNoRoute) continue;
    newest_[route] = 0;
    state_.unpin(route);
  }
  if (log_.empty()) compact_at_ = state_.options.log_slack;
  std::erase_if(shared_, [&](const std::shared_ptr<Batch>& batch) {
    return !batch->of_table && batch->log_to <= log_begin_;
  });
  return log_begin_ == lowest;
}

void UpdateGroup::tidy() {
  (void)trim();
  const std::size_t routes = state_.table.end();
  // All of newest_ is 0 then.
  if (log_.empty() && newest_.size() > 2 * routes + kSmall) newest_.clear();
  for (Subscriber* member : members_) {
    const std::size_t words = routes / 64 + 1;  // no bit is set above the table's end
    if (member->holds.size() <= 2 * words + kSmall) continue;
    member->holds.resize(words);
    member->holds.shrink_to_fit();
  }
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

}  // namespace bgp
