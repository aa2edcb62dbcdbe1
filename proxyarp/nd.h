// SPDX-License-Identifier: GPL-2.0-or-later
// Neighbor solicitations and advertisements (RFC 4861 sections 4.3, 4.4, 7.1): whole frames, from
// Ethernet destination on.
#pragma once
#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "proxyarp/responder.h"

namespace proxyarp {

enum class NdType : uint8_t { Solicitation = 135, Advertisement = 136 };

inline constexpr uint8_t kOptionCga = 11, kOptionRsaSignature = 12, kOptionNonce = 14;

struct NdOption {
  uint8_t type = 0;
  net::Bytes value;  // without type and length; 6 octets, or 8 more and so on
  bool operator==(const NdOption&) const = default;
};

struct NdFrame {
  net::MacAddress destination, source;  // Ethernet
  net::IpAddress from = net::IpAddress::v6({}), to = net::IpAddress::v6({});
  NdType type = NdType::Solicitation;
  bool router = false, solicited = false, override_flag = false;  // advertisement
  net::IpAddress target = net::IpAddress::v6({});
  // Source link-layer address of a solicitation, target link-layer address of an advertisement.
  std::optional<net::MacAddress> link_layer;
  std::vector<NdOption> options;  // all others, as they came
  bool operator==(const NdFrame&) const = default;

  bool is_solicitation() const { return type == NdType::Solicitation; }
  // Duplicate address detection, RFC 4862 section 5.4.
  bool is_dad() const { return is_solicitation() && from.is_unspecified(); }
  bool is_secured() const;  // SEND (RFC 3971): CGA or RSA signature
  // An option whose type is not in the list; link-layer addresses are options as well.
  bool has_option_beyond(const std::set<uint8_t>& known) const;
};

enum class NdError : uint8_t {
  Truncated,
  NotNd,
  HopLimit,
  Length,  // of the IPv6 payload, or of the message
  Checksum,
  Code,
  Source,
  Destination,  // group that is not the target's, or an Ethernet address that does not go with it
  Target,
  Option,     // length zero or beyond the end, or a link-layer address of other length or twice
  SourceLla,  // in duplicate address detection
  Solicited,  // S flag in a multicast advertisement
};

// Only messages that are valid by RFC 4861 section 7.1.1 and 7.1.2, and solicitations whose group
// is the target's. Octets after the IPv6 payload are padding.
[[nodiscard]] std::expected<NdFrame, NdError> decode_nd(std::span<const uint8_t> frame);
[[nodiscard]] net::Bytes encode_nd(const NdFrame& nd);

// The answer that the owner of the target would give, Ethernet source included: to the asker with
// S set, or for duplicate address detection to all nodes without (RFC 4861 section 7.2.4).
[[nodiscard]] NdFrame neighbor_advertisement(const NdFrame& solicitation, net::MacAddress owner,
                                             NaFlags flags);
// To all nodes (RFC 4861 section 7.2.6).
[[nodiscard]] NdFrame unsolicited_advertisement(const net::IpAddress& ip, net::MacAddress mac,
                                                NaFlags flags);
// RFC 4291 appendix A, in fe80::/64.
[[nodiscard]] net::IpAddress eui64_link_local(net::MacAddress mac);

}  // namespace proxyarp
