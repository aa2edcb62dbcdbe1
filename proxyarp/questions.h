// SPDX-License-Identifier: GPL-2.0-or-later
// Our own questions: of a refresh, of a confirmation, and for dead addresses and decoys. Sent from
// the PE's MAC, so that the answers come to it (RFC 9161 section 3.5). Inside proxyarp/ only.
#pragma once
#include <optional>

#include "proxyarp/responder.h"

namespace proxyarp {

// To one MAC: a broadcast request with sender address 0 would be an ARP probe, which a host that
// is probing itself must take for a conflict (RFC 5227 section 2.1.1). Nothing without our own MAC.
[[nodiscard]] std::optional<net::Bytes> question_to(const Responder::Identity& identity,
                                                    const net::IpAddress& ip, net::MacAddress mac);
// To all. `sender` is the IPv4 address to ask from when the PE has none.
[[nodiscard]] std::optional<net::Bytes> question_to_all(
    const Responder::Identity& identity, const net::IpAddress& ip,
    const std::optional<net::IpAddress>& sender = std::nullopt);

}  // namespace proxyarp
