// SPDX-License-Identifier: GPL-2.0-or-later
// How often one source may connect: a bucket of `kBurst` connections each, refilled by
// `kPerSecond`. Bounded: sources that were quiet long enough are forgotten. Pure.
#pragma once
#include <cstddef>
#include <map>

#include "net/ip_address.h"
#include "net/time.h"

namespace bgp::io {

class AcceptLimits {
 public:
  static constexpr double kBurst = 20;
  static constexpr double kPerSecond = 2;
  static constexpr std::size_t kMaxSources = 4096;

  // False when the source has to be turned away.
  [[nodiscard]] bool admit(const net::IpAddress& source, net::TimePoint now);
  [[nodiscard]] std::size_t sources() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = kBurst;
    net::TimePoint at{};
  };
  static double filled(const Bucket& bucket, net::TimePoint now);
  void forget(net::TimePoint now);

  std::map<net::IpAddress, Bucket> buckets_;
};

}  // namespace bgp::io
