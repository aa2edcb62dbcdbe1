// SPDX-License-Identifier: GPL-2.0-or-later
// Linux socket options that Asio has no name for.
#include "bgp/io/socket.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bgp::io {
namespace {

#ifndef IPV6_MINHOPCOUNT
constexpr int IPV6_MINHOPCOUNT = 73;
#endif

error_code last_error() { return {errno, boost::system::system_category()}; }

error_code set_int(int socket, int level, int option, int value) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0) return last_error();
  return {};
}

error_code set_ttl(int socket, net::IpFamily family, int hops) {
  return family == net::IpFamily::V4 ? set_int(socket, IPPROTO_IP, IP_TTL, hops)
                                     : set_int(socket, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hops);
}

}  // namespace

tcp::endpoint to_endpoint(const net::IpAddress& address, uint16_t port, uint32_t interface) {
  if (address.is_v4()) return {boost::asio::ip::address_v4(address.v4_value()), port};
  boost::asio::ip::address_v6::bytes_type bytes;
  std::ranges::copy(address.bytes(), bytes.begin());
  return {boost::asio::ip::address_v6(bytes, interface), port};
}

uint32_t interface_index(const std::string& name) { return ::if_nametoindex(name.c_str()); }

std::string interface_name(uint32_t index) {
  char name[IF_NAMESIZE] = {};
  return ::if_indextoname(index, name) == nullptr ? std::string() : std::string(name);
}

net::IpAddress to_address(const boost::asio::ip::address& address) {
  if (address.is_v4()) return net::IpAddress::v4(address.to_v4().to_uint());
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped())
    return net::IpAddress::v4(
        boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_uint());
  return net::IpAddress::v6(v6.to_bytes());
}

error_code set_md5(int socket, const net::IpAddress& peer, const std::string& key) {
  return set_md5(socket, {peer, peer.bits()}, key);
}

error_code set_md5(int socket, const net::IpPrefix& peers, const std::string& key) {
  tcp_md5sig option{};
  const tcp::endpoint endpoint = to_endpoint(peers.address, 0);
  std::memcpy(&option.tcpm_addr, endpoint.data(), endpoint.size());
  const bool whole = peers.length == peers.address.bits();
  if (!whole) {
    option.tcpm_flags = TCP_MD5SIG_FLAG_PREFIX;
    option.tcpm_prefixlen = peers.length;
  }
  const std::size_t size = std::min(key.size(), kMaxMd5Key);
  option.tcpm_keylen = static_cast<uint16_t>(size);
  std::memcpy(option.tcpm_key, key.data(), size);
  const int name = whole ? TCP_MD5SIG : TCP_MD5SIG_EXT;
  if (::setsockopt(socket, IPPROTO_TCP, name, &option, sizeof option) == 0) return {};
  if (key.empty() && errno == ENOENT) return {};  // there was none
  return last_error();
}

error_code set_hops(int socket, const NeighborSettings& neighbor, bool external) {
  const net::IpFamily family = neighbor.address.family();
  if (neighbor.ttl_security_hops != 0) {
    if (auto error = set_ttl(socket, family, 255)) return error;
    const int least = 256 - neighbor.ttl_security_hops;
    return family == net::IpFamily::V4 ? set_int(socket, IPPROTO_IP, IP_MINTTL, least)
                                       : set_int(socket, IPPROTO_IPV6, IPV6_MINHOPCOUNT, least);
  }
  if (neighbor.ttl != 0) return set_ttl(socket, family, neighbor.ttl);
  if (external) return set_ttl(socket, family, 1);
  return {};
}

error_code set_listener_hops(int socket, net::IpFamily family) {
  return set_ttl(socket, family, 255);
}

void set_common_options(int socket, net::IpFamily family) {
  (void)set_int(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (family == net::IpFamily::V4)
    (void)set_int(socket, IPPROTO_IP, IP_TOS, IPTOS_CLASS_CS6);
  else
    (void)set_int(socket, IPPROTO_IPV6, IPV6_TCLASS, IPTOS_CLASS_CS6);
}

}  // namespace bgp::io
