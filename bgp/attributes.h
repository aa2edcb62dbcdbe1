// SPDX-License-Identifier: GPL-2.0-or-later
// Path attributes as a value (RFC 4271 section 5, RFC 4456, RFC 4760, RFC 6514, RFC 8092). What is
// not understood travels on as bytes. MP_REACH_NLRI and MP_UNREACH_NLRI are not kept here, but for
// the next hop.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp {

enum class Origin : uint8_t { Igp = 0, Egp = 1, Incomplete = 2 };

struct AsPathSegment {
  enum Type : uint8_t { Set = 1, Sequence = 2, ConfedSequence = 3, ConfedSet = 4 };
  Type type = Sequence;
  std::vector<uint32_t> as_numbers;
  auto operator<=>(const AsPathSegment&) const = default;
};

struct Aggregator {
  uint32_t as_number = 0;
  uint32_t router_id = 0;
  auto operator<=>(const Aggregator&) const = default;
};

using ExtendedCommunity = std::array<uint8_t, 8>;  // RFC 4360; octets as on the wire
using LargeCommunity = std::array<uint32_t, 3>;    // RFC 8092

struct UnknownAttribute {
  uint8_t flags = 0;
  uint8_t type = 0;
  net::Bytes value;
  auto operator<=>(const UnknownAttribute&) const = default;
};

struct Attributes {
  Origin origin = Origin::Igp;
  std::vector<AsPathSegment> as_path;
  net::IpAddress next_hop;  // of MP_REACH_NLRI: the VTEP, for EVPN
  std::optional<uint32_t> multi_exit_disc;
  std::optional<uint32_t> local_pref;
  bool atomic_aggregate = false;
  std::optional<Aggregator> aggregator;
  std::vector<uint32_t> communities;
  std::vector<ExtendedCommunity> extended_communities;
  std::vector<LargeCommunity> large_communities;
  std::optional<uint32_t> originator_id;  // host order
  std::vector<uint32_t> cluster_list;
  std::optional<net::Bytes> pmsi_tunnel;  // value verbatim, RFC 6514 section 5
  std::vector<UnknownAttribute> unknown;  // optional transitive ones only; Partial set when relayed
  uint8_t partial = 0;  // of those that came with Partial set: partial_bit() of bgp/message.h

  auto operator<=>(const Attributes&) const = default;
};

// RFC 9494: with it a route is the last choice, and goes to no peer without the capability.
inline constexpr uint32_t kLlgrStaleCommunity = 0xffff0006;

// Interned or not: a path points to its attributes and never changes them.
using AttributesPtr = std::shared_ptr<const Attributes>;

// Number of ASes for the decision process: a set counts one, confederation segments none.
[[nodiscard]] std::size_t as_path_length(const Attributes& attributes);
[[nodiscard]] bool as_path_contains(const Attributes& attributes, uint32_t as_number);
// "65001 65002 {65003,65004}"
[[nodiscard]] std::string as_path_text(const Attributes& attributes);

}  // namespace bgp
