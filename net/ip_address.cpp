// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace net {

std::optional<IpAddress> IpAddress::from_bytes(std::span<const uint8_t> bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
  IpAddress a;
  a.family_ = bytes.size() == 4 ? IpFamily::V4 : IpFamily::V6;
  std::ranges::copy(bytes, a.octets_.begin());
  return a;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string terminated(text);
  std::array<uint8_t, 16> octets{};
  if (inet_pton(AF_INET, terminated.c_str(), octets.data()) == 1)
    return from_bytes(std::span(octets).first(4));
  if (inet_pton(AF_INET6, terminated.c_str(), octets.data()) == 1) return v6(octets);
  return std::nullopt;
}

bool IpAddress::is_unspecified() const {
  return std::ranges::all_of(bytes(), [](uint8_t b) { return b == 0; });
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return octets_[0] == 127;
  IpAddress one = v6({});
  one.octets_[15] = 1;
  return *this == one;
}

bool IpAddress::is_multicast() const {
  return is_v4() ? (octets_[0] & 0xf0) == 0xe0 : octets_[0] == 0xff;
}

bool IpAddress::is_link_local() const {
  return is_v4() ? octets_[0] == 169 && octets_[1] == 254
                 : octets_[0] == 0xfe && (octets_[1] & 0xc0) == 0x80;
}

std::string to_string(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(address.is_v4() ? AF_INET : AF_INET6, address.bytes().data(), text, sizeof text);
  return text;
}

std::optional<IpPrefix> IpPrefix::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length > address->bits())
    return std::nullopt;
  return IpPrefix{*address, static_cast<uint8_t>(length)};
}

bool IpPrefix::contains(const IpAddress& other) const {
  if (other.family() != address.family()) return false;
  const auto a = address.bytes(), b = other.bytes();
  const std::size_t whole = length / 8u, rest = length % 8u;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin()))
    return false;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

IpPrefix IpPrefix::masked() const {
  std::array<uint8_t, 16> octets{};
  const auto bytes = address.bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t first_bit = i * 8;
    if (first_bit + 8 <= length)
      octets[i] = bytes[i];
    else if (first_bit < length)
      octets[i] = static_cast<uint8_t>(bytes[i] & (0xff << (8 - (length - first_bit))));
  }
  return {*IpAddress::from_bytes(std::span(octets).first(bytes.size())), length};
}

bool IpPrefix::is_network_or_broadcast(const IpAddress& other) const {
  if (!contains(other)) return false;
  if (address.is_v6()) return length < 127 && other == masked().address;
  if (length > 30) return false;
  const uint32_t host_mask = length == 0 ? ~uint32_t{0} : (uint32_t{1} << (32 - length)) - 1;
  const uint32_t host = other.v4_value() & host_mask;
  return host == 0 || host == host_mask;
}

std::string to_string(const IpPrefix& prefix) {
  return to_string(prefix.address) + "/" + std::to_string(prefix.length);
}

IpAddress solicited_node(const IpAddress& address) {
  std::array<uint8_t, 16> group{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0};
  const auto bytes = address.bytes();
  if (address.is_v6()) std::copy_n(bytes.begin() + 13, 3, group.begin() + 13);
  return IpAddress::v6(group);
}

}  // namespace net
