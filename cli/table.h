// SPDX-License-Identifier: GPL-2.0-or-later
// Tables that a person likes to read: a header, aligned columns, numbers to the right.
#pragma once
#include <string>
#include <vector>

namespace cli {

struct Column {
  std::string title;
  bool right = false;  // numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string text(bool with_header = true) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cli
