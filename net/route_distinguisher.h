// SPDX-License-Identifier: GPL-2.0-or-later
// Route distinguisher (RFC 4364 section 4.2) and Ethernet segment identifier (RFC 7432 section 5).
#pragma once
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/ip_address.h"

namespace net {

class RouteDistinguisher {
 public:
  constexpr RouteDistinguisher() = default;
  // Type 1, the form RFC 7432 section 7.9 wants: router id and a number of the broadcast domain.
  static RouteDistinguisher from_router_id(const IpAddress& router_id, uint16_t number);
  static constexpr RouteDistinguisher from_bytes(std::span<const uint8_t> bytes) {  // 8 octets
    RouteDistinguisher rd;
    std::copy_n(bytes.begin(), 8, rd.octets_.begin());
    return rd;
  }
  // AS:n (type 0, or type 2 for an AS above 65535) and a.b.c.d:n (type 1).
  static std::optional<RouteDistinguisher> parse(std::string_view text);
  constexpr std::span<const uint8_t, 8> bytes() const { return octets_; }
  constexpr auto operator<=>(const RouteDistinguisher&) const = default;

 private:
  std::array<uint8_t, 8> octets_{};
};

std::string to_string(const RouteDistinguisher& rd);

class Esi {
 public:
  constexpr Esi() = default;                                         // zero: single-homed
  static constexpr Esi from_bytes(std::span<const uint8_t> bytes) {  // 10 octets
    Esi esi;
    std::copy_n(bytes.begin(), 10, esi.octets_.begin());
    return esi;
  }
  constexpr std::span<const uint8_t, 10> bytes() const { return octets_; }
  constexpr bool is_zero() const {
    return std::ranges::all_of(octets_, [](uint8_t b) { return b == 0; });
  }
  constexpr bool is_max() const {  // MAX-ESI
    return std::ranges::all_of(octets_, [](uint8_t b) { return b == 0xff; });
  }
  constexpr auto operator<=>(const Esi&) const = default;

 private:
  std::array<uint8_t, 10> octets_{};
};

std::string to_string(const Esi& esi);  // ten hex octets with colons

}  // namespace net
