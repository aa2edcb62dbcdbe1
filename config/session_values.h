// SPDX-License-Identifier: GPL-2.0-or-later
// Readers of what only BGP sessions have: addresses with an interface, TCP-AO keys. Internal to
// config/. A reader that returns nothing has reported why.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bgp/settings.h"
#include "config/values.h"

namespace config {

// "192.0.2.1", "2001:db8::1" or "fe80::1%eth0": the interface is part of a link-local address.
struct ScopedAddress {
  net::IpAddress address;
  std::string interface;
};
std::optional<ScopedAddress> read_scoped_address(const Value& value);
std::optional<ScopedAddress> read_scoped_listen_address(const Value& value);

std::vector<bgp::TcpAoKey> read_ao_keys(const Value& value);
// A text for another operator, RFC 9003.
std::optional<std::string> read_shutdown_message(const Value& value);
std::optional<std::chrono::minutes> read_minutes(const Value& value, uint64_t most);

void ao_key_keys(std::vector<std::string>& keys);  // for known_keys()

}  // namespace config
