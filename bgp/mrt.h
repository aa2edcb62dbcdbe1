// SPDX-License-Identifier: GPL-2.0-or-later
// MRT records of a table dump: TABLE_DUMP_V2 of RFC 6396 section 4.3 with RIB_GENERIC, the form for
// families other than IPv4 and IPv6.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bgp/attributes.h"
#include "bgp/family.h"
#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp::mrt {

struct Peer {
  uint32_t router_id = 0;  // host order
  net::IpAddress address;
  uint32_t as_number = 0;
};

// PEER_INDEX_TABLE, section 4.3.1: the first record of a dump; entries name peers by their place in
// it. `time`: seconds since 1970. At most 65535 peers.
[[nodiscard]] net::Bytes encode_peer_index(uint32_t time, uint32_t collector_id,
                                           std::string_view view_name, std::span<const Peer> peers);

struct Entry {
  uint16_t peer = 0;
  uint32_t originated = 0;  // seconds since 1970
  AttributesPtr attributes;
};

// RIB_GENERIC, section 4.3.3: one NLRI with its paths.
[[nodiscard]] net::Bytes encode_rib_generic(uint32_t time, uint32_t sequence, AfiSafi family,
                                            std::span<const uint8_t> nlri,
                                            std::span<const Entry> entries);

}  // namespace bgp::mrt
