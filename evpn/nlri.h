// SPDX-License-Identifier: GPL-2.0-or-later
// EVPN NLRI: RFC 7432 section 7 (types 1 to 4), RFC 9136 section 3.1 (type 5), RFC 9251 and RFC
// 9572 (types 6 to 11, opaque but with the right key). decode() and encode() stand side by side.
#pragma once
#include <compare>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "bgp/family.h"
#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

namespace evpn {

enum class RouteType : uint8_t {
  EthernetAutoDiscovery = 1,
  MacIp = 2,
  InclusiveMulticast = 3,
  EthernetSegment = 4,
  IpPrefix = 5,
};

inline constexpr uint32_t kMaxEthernetTag = 0xffffffff;  // MAX-ET, RFC 7432 section 8.2.1

struct EthernetAutoDiscovery {
  net::RouteDistinguisher rd;
  net::Esi esi;
  uint32_t ethernet_tag = 0;
  uint32_t label = 0;  // 24 bits as on the wire: the VNI for VXLAN (RFC 8365 section 5.1.3)
  auto operator<=>(const EthernetAutoDiscovery&) const = default;
};
struct MacIp {
  net::RouteDistinguisher rd;
  net::Esi esi;
  uint32_t ethernet_tag = 0;
  net::MacAddress mac;
  std::optional<net::IpAddress> ip;
  uint32_t label1 = 0;
  std::optional<uint32_t> label2;
  auto operator<=>(const MacIp&) const = default;
};
struct InclusiveMulticast {
  net::RouteDistinguisher rd;
  uint32_t ethernet_tag = 0;
  net::IpAddress originator;
  auto operator<=>(const InclusiveMulticast&) const = default;
};
struct EthernetSegment {
  net::RouteDistinguisher rd;
  net::Esi esi;
  net::IpAddress originator;
  auto operator<=>(const EthernetSegment&) const = default;
};
struct IpPrefixRoute {
  net::RouteDistinguisher rd;
  net::Esi esi;
  uint32_t ethernet_tag = 0;
  net::IpPrefix prefix;
  net::IpAddress gateway;  // same family as prefix
  uint32_t label = 0;
  auto operator<=>(const IpPrefixRoute&) const = default;
};
// Types 6 to 11: relayed, shown as bytes.
struct OpaqueRoute {
  uint8_t type = 0;
  net::Bytes body;
  auto operator<=>(const OpaqueRoute&) const = default;
};
using Route = std::variant<EthernetAutoDiscovery, MacIp, InclusiveMulticast, EthernetSegment,
                           IpPrefixRoute, OpaqueRoute>;

struct NlriError {
  bgp::NlriStatus status = bgp::NlriStatus::Invalid;
  std::size_t offset = 0;  // of the octet that is wrong, from the start of the NLRI
  bool operator==(const NlriError&) const = default;
};

// One whole NLRI: type, length, body.
[[nodiscard]] std::expected<Route, NlriError> decode(std::span<const uint8_t> nlri);
[[nodiscard]] net::Bytes encode(const Route& route);
// Encoded NLRI with its key, as the RIB takes it. `storage` keeps the octets that item.bytes names.
struct EncodedRoute {
  net::Bytes storage;
  [[nodiscard]] bgp::NlriItem item() const;
};
[[nodiscard]] EncodedRoute encode_item(const Route& route);
// The row of AFI 25, SAFI 70 that bgp/ works with.
[[nodiscard]] const bgp::Family& family();
// "[2]:[0]:[48]:[02:00:00:00:0a:01]:[32]:[192.0.2.1]": FRRouting's notation, without the RD.
[[nodiscard]] std::string to_string(const Route& route);
[[nodiscard]] std::optional<net::RouteDistinguisher> route_distinguisher(const Route& route);

}  // namespace evpn
