// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/next_hops.h"

#include <spdlog/spdlog.h>

namespace peerland {

NextHops::NextHops(boost::asio::io_context& io,
                   std::function<void(const std::vector<NextHopChange>&)> changed)
    : io_(io), changed_(std::move(changed)) {}

void NextHops::configure(config::NextHopTracking mode) {
  if (mode == mode_ && (watch_ != nullptr || mode == config::NextHopTracking::Off)) return;
  mode_ = mode;
  problem_.clear();
  if (mode == config::NextHopTracking::Off) {
    watch_.reset();
  } else if (!watch_) {
    auto watch = dataplane::RouteWatch::open(io_, [this] { check(); });
    if (watch) {
      watch_ = std::move(*watch);
    } else {
      problem_ = watch.error().what;
      spdlog::error("next-hop tracking: {}", problem_);
    }
  }
  check();
}

bool NextHops::look_up(const net::IpAddress& vtep) {
  if (!watch_) return true;
  const auto route = watch_->route_to(vtep);
  if (!route) return true;
  if (*route == dataplane::RouteTo::Default) return mode_ == config::NextHopTracking::AnyRoute;
  return *route == dataplane::RouteTo::Special;
}

void NextHops::track(const net::IpAddress& vtep) {
  const auto [at, fresh] = reachable_.emplace(vtep, true);
  if (!fresh || look_up(vtep)) return;
  at->second = false;
  ++changes_;
  changed_({{vtep, false}});
}

void NextHops::keep(const std::set<net::IpAddress>& vteps) {
  std::vector<NextHopChange> changes;
  std::erase_if(reachable_, [&](const auto& entry) {
    if (vteps.contains(entry.first)) return false;
    if (!entry.second) changes.emplace_back(entry.first, true);
    return true;
  });
  if (!changes.empty()) changed_(changes);
}

void NextHops::check() {
  std::vector<NextHopChange> changes;
  for (auto& [vtep, reachable] : reachable_) {
    const bool now = look_up(vtep);
    if (now == reachable) continue;
    reachable = now;
    changes.emplace_back(vtep, now);
  }
  changes_ += changes.size();
  if (!changes.empty()) changed_(changes);
}

std::set<net::IpAddress> NextHops::unreachable() const {
  std::set<net::IpAddress> out;
  for (const auto& [vtep, reachable] : reachable_)
    if (!reachable) out.insert(vtep);
  return out;
}

}  // namespace peerland
