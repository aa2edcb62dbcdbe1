// SPDX-License-Identifier: GPL-2.0-or-later
// What all parts of the responder of one broadcast domain share: settings, the time of the call
// that is being carried out, and where its actions go. Inside proxyarp/ only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "proxyarp/responder.h"

namespace proxyarp {

using Actions = std::vector<Action>;

struct Context {
  Settings settings;
  uint64_t seed = 0;
  Responder::Identity identity;
  net::TimePoint now{};
  std::optional<net::TimePoint> started;  // the first call
  Actions* out = nullptr;                 // of the call that is being carried out
  uint64_t draws = 0;

  void emit(Action action) { out->push_back(std::move(action)); }

  // splitmix64: spreads timers, nothing else depends on it.
  uint64_t random() {
    uint64_t x = seed + 0x9e3779b97f4a7c15u * ++draws;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  // 15 percent more or less, so that what began together does not stay together.
  net::Duration jittered(net::Duration span) {
    const auto part = static_cast<net::Duration::rep>(random() % 3001);
    return span / 10000 * (8500 + part);
  }
};

// At most so many in each second, a few at once. Zero: none.
class Pacer {
 public:
  Pacer(double per_second, double burst) { set(per_second, burst); }
  void set(double per_second, double burst) {
    rate_ = per_second;
    burst_ = std::max(1.0, burst);
    tokens_ = std::min(tokens_, burst_);
  }
  // In no second more than `per_second`, however long nothing was taken.
  static Pacer strict(double per_second) { return {per_second * 0.95, per_second * 0.05}; }

  bool take(net::TimePoint now) {
    fill(now);
    if (rate_ <= 0 || tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // When take() gives the next one.
  net::TimePoint next(net::TimePoint now) {
    fill(now);
    if (rate_ <= 0) return net::kNever;
    if (tokens_ >= 1) return now;
    const auto wait = std::chrono::duration<double>((1 - tokens_) / rate_);
    return now + std::chrono::duration_cast<net::Duration>(wait) + std::chrono::microseconds(1);
  }

 private:
  void fill(net::TimePoint now) {
    if (!last_) tokens_ = burst_;
    if (last_ && now > *last_)
      tokens_ =
          std::min(burst_, tokens_ + rate_ * std::chrono::duration<double>(now - *last_).count());
    if (!last_ || now > *last_) last_ = now;
  }
  double rate_ = 0, burst_ = 1, tokens_ = 0;
  std::optional<net::TimePoint> last_;
};

}  // namespace proxyarp
