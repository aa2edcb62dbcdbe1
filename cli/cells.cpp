// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/cells.h"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace cli {

namespace json = boost::json;

// A field as a cell: "-" when absent or null.
std::string cell(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_string()) return std::string(value->as_string());
  if (value->is_bool()) return value->as_bool() ? "yes" : "no";
  if (value->is_double()) return fmt::format("{}", value->as_double());  // not 3.15E1
  return json::serialize(*value);
}

std::string list(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr || !value->is_array() || value->as_array().empty()) return "-";
  std::string text;
  for (const auto& item : value->as_array())
    text += (text.empty() ? "" : " ") +
            (item.is_string() ? std::string(item.as_string()) : json::serialize(item));
  return text;
}

int64_t number(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->as_int64();
  return value->is_uint64() ? static_cast<int64_t>(value->as_uint64()) : 0;
}

bool flag(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// 75 -> "1m15s"
std::string duration(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string member(const json::object& row) {
  const std::string name = cell(row, "member_name"), as = cell(row, "member_as");
  if (as == "-") return name;
  return name == "-" ? "AS" + as : "AS" + as + " " + name;
}

}  // namespace cli
