// SPDX-License-Identifier: GPL-2.0-or-later
// What happened within the last seconds, bounded: keys come from the network.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "net/time.h"

namespace proxyarp {

template <class Key>
class Recent {
 public:
  Recent(net::Duration span, std::size_t limit) : span_(span), limit_(limit) {}

  // True when the key was not there; false also when there is no room.
  bool add(const Key& key, net::TimePoint now) {
    expire(now);
    if (since_.size() >= limit_ || !since_.emplace(key, now).second) return false;
    order_.emplace(now, key);
    return true;
  }
  // As add(), but for a key that is there its time starts again.
  void renew(const Key& key, net::TimePoint now) {
    if (const auto at = since_.find(key); at != since_.end()) {
      order_.erase({at->second, key});
      since_.erase(at);
    }
    add(key, now);
  }
  bool contains(const Key& key, net::TimePoint now) const { return since(key, now).has_value(); }
  // When it happened, if it did.
  std::optional<net::TimePoint> since(const Key& key, net::TimePoint now) const {
    const auto at = since_.find(key);
    if (at == since_.end() || now - at->second >= span_) return std::nullopt;
    return at->second;
  }

 private:
  void expire(net::TimePoint now) {
    while (!order_.empty() && now - order_.begin()->first >= span_) {
      since_.erase(order_.begin()->second);
      order_.erase(order_.begin());
    }
  }
  net::Duration span_;
  std::size_t limit_;
  std::map<Key, net::TimePoint> since_;
  std::set<std::pair<net::TimePoint, Key>> order_;
};

}  // namespace proxyarp
