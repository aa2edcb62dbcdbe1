// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/table.h"

#include <algorithm>

namespace cli {
namespace {

// Columns on a terminal, not octets: names may be UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::text(bool with_header) const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string padding(widths[i] - width_of(cell), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].right ? padding + cell : cell + padding;
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  if (with_header) line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  static const std::string kEmpty;
  for (const auto& row : rows_)
    line([&](std::size_t i) -> const std::string& { return i < row.size() ? row[i] : kEmpty; });
  return out;
}

}  // namespace cli
