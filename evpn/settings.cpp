// SPDX-License-Identifier: GPL-2.0-or-later
#include "evpn/settings.h"

#include <algorithm>

namespace evpn {

std::optional<RouteTarget> parse_route_target(const std::string& text) {
  // A route target and a route distinguisher of the same text have the same six value octets and
  // the same type octet (RFC 4360 section 3, RFC 4364 section 4.2).
  const auto rd = net::RouteDistinguisher::parse(text);
  if (!rd) return std::nullopt;
  RouteTarget target{};
  std::ranges::copy(rd->bytes(), target.begin());
  target[0] = target[1];
  target[1] = 0x02;
  return target;
}

std::string route_target_text(const RouteTarget& target) {
  RouteTarget rd = target;
  rd[1] = rd[0];
  rd[0] = 0;
  return net::to_string(net::RouteDistinguisher::from_bytes(rd));
}

}  // namespace evpn
