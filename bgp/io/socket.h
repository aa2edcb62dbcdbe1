// SPDX-License-Identifier: GPL-2.0-or-later
// Addresses and options of BGP's TCP sockets.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "bgp/settings.h"
#include "net/ip_address.h"

namespace bgp::io {

using boost::asio::ip::tcp;
using boost::system::error_code;

inline constexpr std::size_t kMaxMd5Key = 80;  // TCP_MD5SIG_MAXKEYLEN

// `interface`: that of a link-local address; 0: none.
tcp::endpoint to_endpoint(const net::IpAddress& address, uint16_t port, uint32_t interface = 0);
// The index of a network device, 0 when there is none of that name; and back.
uint32_t interface_index(const std::string& name);
std::string interface_name(uint32_t index);
// An IPv4-mapped IPv6 address becomes the IPv4 one that it means.
net::IpAddress to_address(const boost::asio::ip::address& address);

// The key of RFC 2385 for segments to and from `peer`; an empty one removes it.
error_code set_md5(tcp::socket::native_handle_type socket, const net::IpAddress& peer,
                   const std::string& key);
// ... to and from a whole prefix.
error_code set_md5(tcp::socket::native_handle_type socket, const net::IpPrefix& peers,
                   const std::string& key);
// TTL or hop limit of what we send, and with ttl_security_hops of what we accept (RFC 5082).
error_code set_hops(tcp::socket::native_handle_type socket, const NeighborSettings& neighbor,
                    bool external);
// A listener answers for all neighbors, those with GTSM among them: it sends 255.
error_code set_listener_hops(tcp::socket::native_handle_type socket, net::IpFamily family);
// No delay, and internetwork control (CS6) as traffic class. Best effort.
void set_common_options(tcp::socket::native_handle_type socket, net::IpFamily family);

}  // namespace bgp::io
