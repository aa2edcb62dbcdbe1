// SPDX-License-Identifier: GPL-2.0-or-later
// A 48-bit IEEE 802 MAC address.
#pragma once
#include <algorithm>
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

class MacAddress {
 public:
  constexpr MacAddress() = default;
  constexpr explicit MacAddress(std::array<uint8_t, 6> octets) : octets_(octets) {}
  // `bytes` must hold at least 6 octets.
  static constexpr MacAddress from_bytes(std::span<const uint8_t> bytes) {
    MacAddress mac;
    std::copy_n(bytes.begin(), 6, mac.octets_.begin());
    return mac;
  }
  // Accepts aa:bb:cc:dd:ee:ff, aa-bb-cc-dd-ee-ff, aabb.ccdd.eeff and aabbccddeeff, in either case.
  static std::optional<MacAddress> parse(std::string_view text);

  constexpr std::span<const uint8_t, 6> bytes() const { return octets_; }
  constexpr bool is_multicast() const { return (octets_[0] & 1) != 0; }  // broadcast included
  constexpr bool is_broadcast() const {
    return std::ranges::all_of(octets_, [](uint8_t b) { return b == 0xff; });
  }
  constexpr bool is_zero() const {
    return std::ranges::all_of(octets_, [](uint8_t b) { return b == 0; });
  }
  // A host's address: neither zero nor a group.
  constexpr bool is_unicast() const { return !is_multicast() && !is_zero(); }
  constexpr auto operator<=>(const MacAddress&) const = default;

 private:
  std::array<uint8_t, 6> octets_{};
};

inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

std::string to_string(const MacAddress& mac);  // aa:bb:cc:dd:ee:ff

}  // namespace net

template <>
struct std::hash<net::MacAddress> {
  std::size_t operator()(const net::MacAddress& m) const noexcept {
    return net::hash_bytes(m.bytes());
  }
};
