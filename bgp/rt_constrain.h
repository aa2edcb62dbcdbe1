// SPDX-License-Identifier: GPL-2.0-or-later
// RT-constrain (RFC 4684): the address family of route target memberships, and what follows from
// the memberships that one peer has announced: which routes it is sent.
#pragma once
#include <cstdint>
#include <map>
#include <span>

#include "bgp/attributes.h"
#include "bgp/family.h"
#include "bgp/policy.h"
#include "net/bytes.h"

namespace bgp {

inline constexpr AfiSafi kRouteTargetConstrain{1, 132};

// NLRI of section 4: a length in bits, 0 or 32 to 96, then origin AS and as much of a route target.
// Lengths of 1 to 31 name no origin: that route is discarded; longer than 96 is a syntax error of
// the field (RFC 7606 section 5.3).
[[nodiscard]] Family route_target_family();
[[nodiscard]] net::Bytes membership_nlri(uint32_t origin_as, const ExtendedCommunity& target);
[[nodiscard]] net::Bytes default_membership_nlri();  // wants everything
// From bytes that are one NLRI.
[[nodiscard]] NlriItem membership_item(const net::Bytes& nlri);
[[nodiscard]] bool is_default_membership(std::span<const uint8_t> key);

// Everything that one peer has announced, whether it is the best path or not (section 3.2). Keys
// are those of route_target_family().
class TargetMemberships {
 public:
  void announce(std::span<const uint8_t> key) { members_[net::Bytes(key.begin(), key.end())] = {}; }
  void withdraw(std::span<const uint8_t> key);
  void clear() { members_.clear(); }
  // Over a restart of the peer (RFC 4724 section 4.2).
  void mark_stale();
  void remove_stale();
  // Over a route refresh (RFC 7313 section 4).
  void begin_refresh();
  void end_refresh();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  // A filter that lets through what matches one of them. Routes without a route target only go to
  // whoever wants everything.
  [[nodiscard]] SendFilterPtr filter() const;

 private:
  struct Marks {
    bool stale = false;
    bool not_refreshed = false;
  };
  std::map<net::Bytes, Marks> members_;
};

}  // namespace bgp
