// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/route_distinguisher.h"

#include <charconv>

namespace net {
namespace {

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr uint8_t octet(uint32_t value, unsigned shift) {
  return static_cast<uint8_t>(value >> shift);
}

}  // namespace

RouteDistinguisher RouteDistinguisher::from_router_id(const IpAddress& router_id, uint16_t number) {
  const uint32_t id = router_id.v4_value();
  const std::array<uint8_t, 8> octets{0,
                                      1,
                                      octet(id, 24),
                                      octet(id, 16),
                                      octet(id, 8),
                                      octet(id, 0),
                                      octet(number, 8),
                                      octet(number, 0)};
  return from_bytes(octets);
}

std::optional<RouteDistinguisher> RouteDistinguisher::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto number = parse_number(text.substr(colon + 1));
  if (!number) return std::nullopt;
  const std::string_view admin = text.substr(0, colon);
  if (const auto address = IpAddress::parse(admin); address && address->is_v4()) {
    if (*number > 0xffff) return std::nullopt;
    return from_router_id(*address, static_cast<uint16_t>(*number));
  }
  const auto as = parse_number(admin);
  if (!as) return std::nullopt;
  const uint32_t n = *number;
  if (*as <= 0xffff)
    return from_bytes(std::array<uint8_t, 8>{0, 0, octet(*as, 8), octet(*as, 0), octet(n, 24),
                                             octet(n, 16), octet(n, 8), octet(n, 0)});
  if (n > 0xffff) return std::nullopt;
  return from_bytes(std::array<uint8_t, 8>{0, 2, octet(*as, 24), octet(*as, 16), octet(*as, 8),
                                           octet(*as, 0), octet(n, 8), octet(n, 0)});
}

std::string to_string(const RouteDistinguisher& rd) {
  const auto b = rd.bytes();
  const auto number = [&](std::size_t from, std::size_t count) {
    uint32_t value = 0;
    for (std::size_t i = from; i < from + count; ++i) value = value << 8 | b[i];
    return value;
  };
  switch (number(0, 2)) {
    case 0: return std::to_string(number(2, 2)) + ":" + std::to_string(number(4, 4));
    case 1: return to_string(IpAddress::v4(number(2, 4))) + ":" + std::to_string(number(6, 2));
    case 2: return std::to_string(number(2, 4)) + ":" + std::to_string(number(6, 2));
    default: break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (uint8_t o : b) {
    text += kHex[o >> 4];
    text += kHex[o & 15];
  }
  return text;
}

std::string to_string(const Esi& esi) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (uint8_t o : esi.bytes()) {
    if (!text.empty()) text += ':';
    text += kHex[o >> 4];
    text += kHex[o & 15];
  }
  return text;
}

}  // namespace net
