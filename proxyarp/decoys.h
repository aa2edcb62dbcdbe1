// SPDX-License-Identifier: GPL-2.0-or-later
// Regular questions for addresses that nobody may have: who answers is a proxy ARP router, which
// would draw the traffic of others to itself. Inside proxyarp/ only.
#pragma once
#include <set>
#include <utility>

#include "proxyarp/context.h"

namespace proxyarp {

class DecoyQuestions {
 public:
  explicit DecoyQuestions(Context& context) : context_(context) {}
  [[nodiscard]] bool contains(const net::IpAddress& ip) const { return all_.contains(ip); }
  // Of settings or identity; also the first time.
  void reconfigure();
  void tick();
  [[nodiscard]] net::TimePoint deadline() const;

 private:
  void ask(const net::IpAddress& ip);

  Context& context_;
  std::set<net::IpAddress> all_;
  std::set<std::pair<net::TimePoint, net::IpAddress>> timers_;
};

}  // namespace proxyarp
