// SPDX-License-Identifier: GPL-2.0-or-later
#include "proxyarp/offenders.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace proxyarp {
namespace {

constexpr uint32_t kSweep = 32;  // different targets a minute that make a sweeper
constexpr std::size_t kMaxAskers = 1024;

}  // namespace

int64_t Offenders::minute_of(net::TimePoint at) {
  return std::chrono::duration_cast<std::chrono::minutes>(at.time_since_epoch()).count();
}

void Offenders::advance(Item& item, int64_t minute) {
  for (int64_t skipped = 0; item.minute < minute && skipped < int64_t{kMinutes}; ++skipped)
    item.minutes[static_cast<std::size_t>(++item.minute) % kMinutes] = 0;
  item.minute = minute;
}

void Offenders::note(OffenderKind kind, const Who& who, uint64_t times) {
  List& list = lists_[static_cast<std::size_t>(kind)];
  const net::TimePoint now = context_.now;
  auto at = list.find(who);
  if (at == list.end()) {
    Item fresh;
    fresh.first = now;
    fresh.minute = minute_of(now);
    if (list.size() >= kSize) {
      const auto least =
          std::ranges::min_element(list, {}, [](const auto& one) { return one.second.count; });
      fresh.count = least->second.count;
      list.erase(least);
    }
    at = list.emplace(who, fresh).first;
  }
  Item& item = at->second;
  item.count += times;
  item.last = now;
  advance(item, minute_of(now));
  item.minutes[static_cast<std::size_t>(item.minute) % kMinutes] += static_cast<uint32_t>(times);
}

void Offenders::missed(net::IfIndex port, net::MacAddress asker, const net::IpAddress& target) {
  note(OffenderKind::Target, {{}, std::nullopt, target});
  const int64_t minute = minute_of(context_.now);
  auto at = targets_.find(asker);
  if (at == targets_.end()) {
    if (targets_.size() >= kMaxAskers)
      std::erase_if(targets_, [&](const auto& one) { return one.second.minute != minute; });
    if (targets_.size() >= kMaxAskers) return;
    at = targets_.try_emplace(asker).first;
  }
  Targets& targets = at->second;
  if (targets.minute != minute) targets = {{}, minute, 0};
  const uint64_t hash = net::hash_bytes(target.bytes(), context_.seed);
  uint64_t& word = targets.bits[hash / 64 % 4];
  const uint64_t bit = uint64_t{1} << (hash % 64);
  if ((word & bit) != 0) return;
  word |= bit;
  if (++targets.different == kSweep)
    note(OffenderKind::Sweeper, {port, asker, std::nullopt}, kSweep);
  else if (targets.different > kSweep)
    note(OffenderKind::Sweeper, {port, asker, std::nullopt});
}

void Offenders::for_each(const std::function<void(const OffenderView&)>& visit) const {
  const net::TimePoint now = context_.now;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    std::vector<std::pair<Who, Item>> most(lists_[kind].begin(), lists_[kind].end());
    std::ranges::sort(most, std::greater{}, [](const auto& one) { return one.second.count; });
    for (auto& [who, item] : most) {
      advance(item, minute_of(now));
      OffenderView view;
      view.kind = static_cast<OffenderKind>(kind);
      view.port = who.port;
      view.mac = who.mac;
      view.ip = who.ip;
      view.count = item.count;
      view.per_minute = std::accumulate(item.minutes.begin(), item.minutes.end(), 0.0) / kMinutes;
      view.first = now - item.first;
      view.last = now - item.last;
      visit(view);
    }
  }
}

}  // namespace proxyarp
