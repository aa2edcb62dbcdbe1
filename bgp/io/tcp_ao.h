// SPDX-License-Identifier: GPL-2.0-or-later
// TCP-AO (RFC 5925) of Linux 6.7 and newer, built with CONFIG_TCP_AO. Asked for by number, because
// older headers have no names for it: the running kernel decides.
#pragma once
#include <string>
#include <vector>

#include "bgp/io/socket.h"
#include "bgp/settings.h"
#include "net/ip_address.h"

namespace bgp::io {

enum class AoSocket : uint8_t { Listener, Connecting };

// For segments to and from `peers`. On a connecting socket the first key is the one to begin with.
error_code add_ao_keys(tcp::socket::native_handle_type socket, const net::IpPrefix& peers,
                       const std::vector<TcpAoKey>& keys, AoSocket kind);
// Of a listener. Keys that are not there are passed over.
void remove_ao_keys(tcp::socket::native_handle_type socket, const net::IpPrefix& peers,
                    const std::vector<TcpAoKey>& keys);
// "TCP-AO: the kernel was built without CONFIG_TCP_AO, or is older than 6.7", or the error's text.
std::string ao_failure(const error_code& error);

}  // namespace bgp::io
