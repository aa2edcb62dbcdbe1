// SPDX-License-Identifier: GPL-2.0-or-later
// Values of JSON documents that may be null.
#pragma once
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace peerland {

// Null when empty.
inline boost::json::value optional_text(const std::string& text) {
  return text.empty() ? boost::json::value(nullptr) : boost::json::value(text);
}

// A number, or its to_string().
template <class T>
boost::json::value or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_integral_v<T>)
    return *value;
  else
    return boost::json::value(to_string(*value));
}

inline boost::json::array texts(const std::vector<std::string>& items) {
  boost::json::array array;
  for (const auto& item : items) array.emplace_back(item);
  return array;
}

}  // namespace peerland
