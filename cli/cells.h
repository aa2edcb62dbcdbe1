// SPDX-License-Identifier: GPL-2.0-or-later
// Fields of the daemon's documents as cells of a table.
#pragma once
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

namespace cli {

// "-" when absent or null; "yes", "no".
[[nodiscard]] std::string cell(const boost::json::object& row, const char* key);
[[nodiscard]] std::string list(const boost::json::object& row, const char* key);
[[nodiscard]] int64_t number(const boost::json::object& row, const char* key);
[[nodiscard]] bool flag(const boost::json::object& row, const char* key);
[[nodiscard]] std::string duration(int64_t seconds);  // 75 -> "1m15s"
[[nodiscard]] std::string member(const boost::json::object& row);

template <class Visit>
void each(const boost::json::object& document, const char* key, Visit visit) {
  const auto* rows = document.if_contains(key);
  if (rows == nullptr || !rows->is_array()) return;
  for (const auto& row : rows->as_array())
    if (row.is_object()) visit(row.as_object());
}

}  // namespace cli
