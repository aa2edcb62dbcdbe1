// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/mac_address.h"

namespace net {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// True when the separators of `text` make one of the four accepted forms.
bool well_formed(std::string_view text) {
  const auto separator_every = [&](std::size_t step, char separator) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool at_separator = i % step == step - 1;
      if (at_separator != (text[i] == separator)) return false;
    }
    return true;
  };
  switch (text.size()) {
    case 12: return true;
    case 14: return separator_every(5, '.');
    case 17: return separator_every(3, ':') || separator_every(3, '-');
    default: return false;
  }
}

}  // namespace

std::optional<MacAddress> MacAddress::parse(std::string_view text) {
  if (!well_formed(text)) return std::nullopt;
  std::array<uint8_t, 6> octets{};
  std::size_t nibble = 0;
  for (char c : text) {
    if (c == ':' || c == '-' || c == '.') continue;
    const int digit = hex_digit(c);
    if (digit < 0 || nibble >= 12) return std::nullopt;
    octets[nibble / 2] = static_cast<uint8_t>(octets[nibble / 2] << 4 | digit);
    ++nibble;
  }
  if (nibble != 12) return std::nullopt;
  return MacAddress{octets};
}

std::string to_string(const MacAddress& mac) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(17);
  for (uint8_t octet : mac.bytes()) {
    if (!text.empty()) text += ':';
    text += kHex[octet >> 4];
    text += kHex[octet & 15];
  }
  return text;
}

}  // namespace net
