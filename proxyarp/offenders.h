// SPDX-License-Identifier: GPL-2.0-or-later
// Who asks most, what is asked for most, and who does what he should not: top lists of fixed size.
// Exact as long as a list has room; then the least goes, and who takes its place begins with its
// count (the "space saving" algorithm), so that none of the big ones is missed. Inside proxyarp/
// only.
#pragma once
#include <array>
#include <compare>
#include <functional>
#include <map>
#include <optional>

#include "proxyarp/context.h"

namespace proxyarp {

class Offenders {
 public:
  struct Who {
    net::IfIndex port;
    std::optional<net::MacAddress> mac;
    std::optional<net::IpAddress> ip;
    auto operator<=>(const Who&) const = default;
  };
  explicit Offenders(Context& context) : context_(context) {}

  void note(OffenderKind kind, const Who& who, uint64_t times = 1);
  // A question of a member for an address that nobody has.
  void missed(net::IfIndex port, net::MacAddress asker, const net::IpAddress& target);
  void for_each(const std::function<void(const OffenderView&)>& visit) const;

 private:
  static constexpr std::size_t kKinds = 7, kSize = 256, kMinutes = 5;
  struct Item {
    uint64_t count = 0;
    net::TimePoint first, last;
    std::array<uint32_t, kMinutes> minutes{};  // a ring
    int64_t minute = 0;                        // of the last one
  };
  using List = std::map<Who, Item>;
  // The targets of one asker within a minute, as bits.
  struct Targets {
    std::array<uint64_t, 4> bits{};
    int64_t minute = 0;
    uint32_t different = 0;
  };
  [[nodiscard]] static int64_t minute_of(net::TimePoint at);
  static void advance(Item& item, int64_t minute);

  Context& context_;
  std::array<List, kKinds> lists_;
  std::map<net::MacAddress, Targets> targets_;
};

}  // namespace proxyarp
