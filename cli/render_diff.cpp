// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render_diff.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/cells.h"

namespace cli {
namespace {

namespace json = boost::json;

// "~ neighbor 10.0.0.9 (rs1): the session starts again", then its fields.
std::string change(const json::object& row) {
  const std::string kind = cell(row, "change");
  const char* mark = kind == "added" ? "+" : kind == "removed" ? "-" : "~";
  std::string text = fmt::format("{} {} {}", mark, cell(row, "what"), cell(row, "name"));
  if (const auto domain = cell(row, "domain"); domain != "-") text += " in " + domain;
  if (const auto effect = cell(row, "effect"); effect != "-") text += ": " + effect;
  text += "\n";
  each(row, "fields", [&](const json::object& field) {
    text += fmt::format("    {}: {} -> {}\n", cell(field, "field"), cell(field, "before"),
                        cell(field, "after"));
  });
  return text;
}

}  // namespace

std::string render_diff(const json::object& document) {
  std::string text;
  std::size_t changes = 0;
  each(document, "changes", [&](const json::object& row) {
    text += change(row);
    ++changes;
  });
  text += changes == 0 ? "no changes\n" : fmt::format("{} changes\n", changes);
  each(document, "members_removed", [&](const json::object& loss) {
    text += fmt::format("{}: {} of {} members would be removed\n", cell(loss, "domain"),
                        cell(loss, "removed"), cell(loss, "members"));
  });
  if (const auto* warnings = document.if_contains("warnings");
      warnings != nullptr && warnings->is_array())
    for (const auto& warning : warnings->as_array())
      if (warning.is_string()) text += "warning: " + std::string(warning.as_string()) + "\n";
  if (const auto refused = cell(document, "refused"); refused != "-")
    text += fmt::format("a reload would be refused: {}{}\n", refused,
                        flag(document, "force_helps") ? "; --force does it all the same" : "");
  return text;
}

}  // namespace cli
