// SPDX-License-Identifier: GPL-2.0-or-later
// Collects what is wrong in a file, and hands out nodes as values that know their path.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree.h"

namespace config {

class Report {
 public:
  explicit Report(std::string file) : file_(std::move(file)) {}
  void error(Place place, std::string where, std::string what);
  void warning(Place place, std::string where, std::string what);
  // Of another file that this one names: kept after those of this file.
  void add_errors(std::vector<Error> errors);
  void add_warnings(std::vector<Error> warnings);

  const std::string& file() const { return file_; }
  bool failed() const { return !own_errors_.empty() || !other_errors_.empty(); }
  // In file order; other files after this one.
  std::vector<Error> errors() const;
  std::vector<Error> warnings() const;

 private:
  std::string file_;
  std::multimap<Place, Error> own_errors_, own_warnings_;
  std::vector<Error> other_errors_, other_warnings_;
};

// A node with its path, such as "bgp.neighbors[2].hold-time".
struct Value {
  const Node* node = nullptr;
  std::string where;
  Report* report = nullptr;

  Place place() const { return node->place; }
  void error(std::string what) const { report->error(node->place, where, std::move(what)); }
  void warning(std::string what) const { report->warning(node->place, where, std::move(what)); }
  // "expected <what>, got <what is there>"
  void expected(std::string_view what) const;
  // The text of a scalar; an error otherwise.
  std::optional<std::string_view> scalar(std::string_view expected_what) const;
  Value item(std::size_t index) const;  // of a list
};

// `"abc"`, `nothing`, `a list`, `a mapping`: at most 60 characters of text, control ones as '?'.
std::string describe(const Node& node);
std::string quote(std::string_view text);

// Of `known`, the word that `text` was probably meant to be.
std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& known);
// `; did you mean "vni"?`, or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

}  // namespace config
