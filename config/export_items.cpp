// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/export_items.h"

#include <algorithm>

namespace config {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::optional<net::MacAddress> parse_any_mac(std::string_view text) {
  std::vector<std::string_view> groups;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i)
    if (i == text.size() || text[i] == ':' || text[i] == '-' || text[i] == '.') {
      groups.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  if (groups.empty() || 12 % groups.size() != 0 || groups.size() > 6) return std::nullopt;
  const std::size_t width = 12 / groups.size();
  if (width != 2 && width != 4 && width != 6 && width != 12) return std::nullopt;
  std::string digits;
  for (std::string_view group : groups) {
    if (group.empty() || group.size() > width || (width > 4 && group.size() != width))
      return std::nullopt;
    digits.append(width - group.size(), '0').append(group);
  }
  return net::MacAddress::parse(digits);
}

}  // namespace config
