// SPDX-License-Identifier: GPL-2.0-or-later
#include "proxyarp/decoys.h"

#include <algorithm>

#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr int kPerTick = 16;

}  // namespace

void DecoyQuestions::reconfigure() {
  const auto& settings = context_.settings;
  all_ = {settings.decoys.addresses.begin(), settings.decoys.addresses.end()};
  timers_.clear();
  if (settings.profile == Profile::Off || settings.decoys.interval.count() <= 0 ||
      !context_.identity.mac.is_unicast())
    return;
  // The first round is spread over an interval; after that each keeps its own time.
  const net::Duration interval = settings.decoys.interval;
  int64_t n = 0;
  for (const net::IpAddress& ip : all_)
    timers_.emplace(context_.now + interval * n++ / static_cast<int64_t>(all_.size()), ip);
}

void DecoyQuestions::tick() {
  for (int i = 0; i < kPerTick && deadline() <= context_.now; ++i) {
    const net::IpAddress ip = timers_.begin()->second;
    timers_.erase(timers_.begin());
    ask(ip);
    timers_.emplace(context_.now + context_.jittered(context_.settings.decoys.interval), ip);
  }
}

// A router answers in the name of others only when it is asked from an address of its LAN. Where
// the PE has none, another decoy, which nobody has either, is lent.
void DecoyQuestions::ask(const net::IpAddress& ip) {
  std::optional<net::IpAddress> sender;
  for (const net::IpAddress& other : all_)
    if (other.is_v4() && other != ip &&
        std::ranges::any_of(context_.settings.prefixes,
                            [&](const net::IpPrefix& prefix) { return prefix.contains(other); })) {
      sender = other;
      break;
    }
  if (auto question = question_to_all(context_.identity, ip, sender))
    context_.emit(Flood{std::move(*question), std::nullopt, true, false});
}

net::TimePoint DecoyQuestions::deadline() const {
  return timers_.empty() ? net::kNever : timers_.begin()->first;
}

}  // namespace proxyarp
