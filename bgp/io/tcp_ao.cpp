// SPDX-License-Identifier: GPL-2.0-or-later
// The structures are those of linux/tcp.h since 6.7: user space interface, fixed for good.
#include "bgp/io/tcp_ao.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace bgp::io {
namespace {

constexpr int kAddKey = 38;     // TCP_AO_ADD_KEY
constexpr int kDeleteKey = 39;  // TCP_AO_DEL_KEY
constexpr std::size_t kMaxKey = 80;

struct alignas(8) AddKey {  // struct tcp_ao_add
  sockaddr_storage address;
  char algorithm[64];
  int32_t interface;
  uint32_t set_current : 1;
  uint32_t set_next : 1;
  uint32_t reserved : 30;
  uint16_t reserved2;
  uint8_t prefix_length;
  uint8_t send_id;
  uint8_t receive_id;
  uint8_t mac_size;
  uint8_t flags;
  uint8_t key_size;
  uint8_t key[kMaxKey];
};
static_assert(sizeof(AddKey) == 288);

struct alignas(8) DeleteKey {  // struct tcp_ao_del
  sockaddr_storage address;
  int32_t interface;
  uint32_t set_current : 1;
  uint32_t set_next : 1;
  uint32_t asynchronous : 1;
  uint32_t reserved : 29;
  uint16_t reserved2;
  uint8_t prefix_length;
  uint8_t send_id;
  uint8_t receive_id;
  uint8_t current;
  uint8_t next;
  uint8_t flags;
};
static_assert(sizeof(DeleteKey) == 144);

struct Algorithm {
  std::string_view name;
  const char* kernel_name;
  uint8_t mac_size;
};
// RFC 5926 section 3.1; with SHA-256 the code is cut to 96 bits as well, so that it fits into the
// options.
constexpr std::array kAlgorithms{Algorithm{"hmac-sha-1-96", "hmac(sha1)", 12},
                                 Algorithm{"aes-128-cmac-96", "cmac(aes128)", 12},
                                 Algorithm{"hmac-sha-256", "hmac(sha256)", 12}};

error_code system_error(int number) { return {number, boost::system::system_category()}; }

sockaddr_storage storage(const net::IpAddress& address) {
  sockaddr_storage out{};
  const tcp::endpoint endpoint = to_endpoint(address, 0);
  std::memcpy(&out, endpoint.data(), endpoint.size());
  return out;
}

}  // namespace

error_code add_ao_keys(int socket, const net::IpPrefix& peers, const std::vector<TcpAoKey>& keys,
                       AoSocket kind) {
  bool first = kind == AoSocket::Connecting;
  for (const TcpAoKey& key : keys) {
    const auto algorithm = std::ranges::find(kAlgorithms, key.algorithm, &Algorithm::name);
    if (algorithm == kAlgorithms.end()) return system_error(EINVAL);
    AddKey option{};
    option.address = storage(peers.address);
    option.prefix_length = peers.length;
    std::strncpy(option.algorithm, algorithm->kernel_name, sizeof option.algorithm - 1);
    option.mac_size = algorithm->mac_size;
    option.set_current = option.set_next = first ? 1 : 0;
    first = false;
    option.send_id = key.send_id;
    option.receive_id = key.receive_id;
    const std::size_t size = std::min(key.key.size(), kMaxKey);
    option.key_size = static_cast<uint8_t>(size);
    std::memcpy(option.key, key.key.data(), size);
    if (::setsockopt(socket, IPPROTO_TCP, kAddKey, &option, sizeof option) != 0)
      return system_error(errno);
  }
  return {};
}

void remove_ao_keys(int socket, const net::IpPrefix& peers, const std::vector<TcpAoKey>& keys) {
  for (const TcpAoKey& key : keys) {
    DeleteKey option{};
    option.address = storage(peers.address);
    option.prefix_length = peers.length;
    option.send_id = key.send_id;
    option.receive_id = key.receive_id;
    (void)::setsockopt(socket, IPPROTO_TCP, kDeleteKey, &option, sizeof option);
  }
}

std::string ao_failure(const error_code& error) {
  if (error.value() == ENOPROTOOPT || error.value() == EOPNOTSUPP)
    return "TCP-AO: the kernel was built without CONFIG_TCP_AO, or is older than 6.7";
  return "TCP-AO: " + error.message();
}

}  // namespace bgp::io
