// SPDX-License-Identifier: GPL-2.0-or-later
// What may come from a neighbor and what may be sent to it, as interfaces: the rules themselves
// know EVPN (evpn/policy.h) and are handed in by the application.
//
// Pure and without state: the same route always gets the same verdict, so that a reason need not be
// kept with a million paths but is found out again when somebody asks for it (explain()).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bgp/attributes.h"

namespace bgp {

enum class Verdict : uint8_t {
  Accept,
  Flag,    // accepted, counted, and shown as suspicious
  Reject,  // kept in Adj-RIB-In and shown with its reason, never selected; or not sent
};
const char* to_string(Verdict verdict);

class RoutePolicy {
 public:
  virtual ~RoutePolicy() = default;
  // `nlri`: type, length, body. Called for each route, so it must not allocate where it can be
  // helped.
  [[nodiscard]] virtual Verdict judge(std::span<const uint8_t> nlri,
                                      const Attributes& attributes) const = 0;
  // In words which rule decided: "policy members, rule 3: route target 65000:101 not allowed".
  [[nodiscard]] virtual std::string explain(std::span<const uint8_t> nlri,
                                            const Attributes& attributes) const = 0;
};
using RoutePolicyPtr = std::shared_ptr<const RoutePolicy>;

// Which routes a peer wants at all, by their route targets (RFC 4684). Looked at once for each
// attribute set that is sent, not for each route.
class SendFilter {
 public:
  virtual ~SendFilter() = default;
  [[nodiscard]] virtual bool wants(const Attributes& attributes) const = 0;
};
using SendFilterPtr = std::shared_ptr<const SendFilter>;

}  // namespace bgp
