// SPDX-License-Identifier: GPL-2.0-or-later
// What the listeners must know about who may connect: TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925) keys
// by address or prefix.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bgp/io/socket.h"
#include "bgp/settings.h"
#include "net/ip_address.h"

namespace bgp::io {

struct Protection {
  std::string password;
  std::vector<TcpAoKey> ao_keys;
  bool operator==(const Protection&) const = default;
};
// Only for those that have one.
using Protections = std::map<net::IpPrefix, Protection>;
[[nodiscard]] Protections protections_of(const Settings& settings);
[[nodiscard]] net::IpPrefix peers_of(const NeighborSettings& neighbor);
[[nodiscard]] net::IpPrefix peers_of(const DynamicNeighbors& neighbors);

// Keys that can't be right together, in words: two neighbors of one link-local address and a
// neighbor inside of a prefix share what the kernel looks up by address.
[[nodiscard]] std::optional<std::string> check_protections(const Settings& settings);

}  // namespace bgp::io
