// SPDX-License-Identifier: GPL-2.0-or-later
// A full bucket is as good as none, so that those can go when the table is full. When none is full
// it is a flood from many sources, and nobody new is let in until it ends.
#include "bgp/io/accept_limits.h"

#include <algorithm>
#include <chrono>

namespace bgp::io {

double AcceptLimits::filled(const Bucket& bucket, net::TimePoint now) {
  const std::chrono::duration<double> passed = now - bucket.at;
  return std::min(kBurst, bucket.tokens + passed.count() * kPerSecond);
}

void AcceptLimits::forget(net::TimePoint now) {
  std::erase_if(buckets_, [&](const auto& entry) { return filled(entry.second, now) >= kBurst; });
}

bool AcceptLimits::admit(const net::IpAddress& source, net::TimePoint now) {
  auto found = buckets_.find(source);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxSources) forget(now);
    if (buckets_.size() >= kMaxSources) return false;
    found = buckets_.emplace(source, Bucket{kBurst, now}).first;
  }
  Bucket& bucket = found->second;
  bucket = {filled(bucket, now), now};
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

}  // namespace bgp::io
