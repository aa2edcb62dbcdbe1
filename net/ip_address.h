// SPDX-License-Identifier: GPL-2.0-or-later
// An IPv4 or IPv6 address, and a prefix of either.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/hash.h"

namespace net {

enum class IpFamily : uint8_t { V4 = 4, V6 = 6 };

class IpAddress {
 public:
  constexpr IpAddress() = default;  // 0.0.0.0
  static constexpr IpAddress v4(uint32_t host_order) {
    IpAddress a;
    for (std::size_t i = 0; i < 4; ++i)
      a.octets_[i] = static_cast<uint8_t>(host_order >> (24 - 8 * i));
    return a;
  }
  static constexpr IpAddress v6(const std::array<uint8_t, 16>& octets) {
    IpAddress a;
    a.family_ = IpFamily::V6;
    a.octets_ = octets;
    return a;
  }
  // 4 or 16 octets in network order; anything else is nothing.
  static std::optional<IpAddress> from_bytes(std::span<const uint8_t> bytes);
  // Dotted quad or RFC 4291 text, without zone.
  static std::optional<IpAddress> parse(std::string_view text);

  constexpr IpFamily family() const { return family_; }
  constexpr bool is_v4() const { return family_ == IpFamily::V4; }
  constexpr bool is_v6() const { return family_ == IpFamily::V6; }
  constexpr uint8_t bits() const { return is_v4() ? 32 : 128; }
  constexpr std::span<const uint8_t> bytes() const { return {octets_.data(), is_v4() ? 4u : 16u}; }
  constexpr uint32_t v4_value() const {  // host order; 0 for IPv6
    if (!is_v4()) return 0;
    return static_cast<uint32_t>(octets_[0]) << 24 | static_cast<uint32_t>(octets_[1]) << 16 |
           static_cast<uint32_t>(octets_[2]) << 8 | octets_[3];
  }
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_multicast() const;
  bool is_link_local() const;  // 169.254/16, fe80::/10
  constexpr auto operator<=>(const IpAddress&) const = default;

 private:
  IpFamily family_ = IpFamily::V4;
  std::array<uint8_t, 16> octets_{};
};

std::string to_string(const IpAddress& address);

struct IpPrefix {
  IpAddress address;   // host bits may be set; contains() ignores them
  uint8_t length = 0;  // 0..32 or 0..128

  static std::optional<IpPrefix> parse(std::string_view text);  // address/length
  bool contains(const IpAddress& other) const;
  IpPrefix masked() const;
  // The network or (IPv4, length <= 30) directed-broadcast address of the prefix; for IPv6 the
  // subnet-router anycast address (RFC 4291 section 2.6.1). Never a host's.
  bool is_network_or_broadcast(const IpAddress& other) const;
  constexpr auto operator<=>(const IpPrefix&) const = default;
};

std::string to_string(const IpPrefix& prefix);

// The solicited-node multicast group of an IPv6 address, RFC 4291 section 2.7.1.
IpAddress solicited_node(const IpAddress& address);

}  // namespace net

template <>
struct std::hash<net::IpAddress> {
  std::size_t operator()(const net::IpAddress& a) const noexcept {
    return net::hash_bytes(a.bytes());
  }
};
