// SPDX-License-Identifier: GPL-2.0-or-later
// Learned bindings are asked for before they are too old, and go when nobody answers (RFC 9161
// section 3.5). Questions go to the owner alone, spread over time. Inside proxyarp/ only.
#pragma once
#include "proxyarp/bindings.h"
#include "proxyarp/recent.h"

namespace proxyarp {

class Maintenance {
 public:
  Maintenance(Context& context, BindingTable& table);
  void reconfigure();
  // Somebody probes for the address: a question of ours could be taken for a conflict (RFC 5227
  // section 2.1.1).
  void probe_seen(const net::IpAddress& ip);
  void tick();
  [[nodiscard]] net::TimePoint deadline() const;

 private:
  [[nodiscard]] net::Duration period() const;
  net::TimePoint after(const LearnedPart& part);
  void due(const net::IpAddress& ip, LearnedPart& part);
  void expire(const net::IpAddress& ip, LearnedPart part);

  Context& context_;
  BindingTable& table_;
  Pacer pacer_;
  Recent<net::IpAddress> probed_;
};

}  // namespace proxyarp
