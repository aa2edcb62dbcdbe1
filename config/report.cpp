// SPDX-License-Identifier: GPL-2.0-or-later
// Errors: collecting, ordering, wording.
#include "config/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace config {
namespace {

Error make(const std::string& file, Place place, std::string where, std::string what) {
  return {.file = file,
          .line = place.line,
          .column = place.column,
          .where = std::move(where),
          .what = std::move(what)};
}

std::vector<Error> in_file_order(const std::multimap<Place, Error>& own,
                                 const std::vector<Error>& others) {
  std::vector<Error> all;
  for (const auto& [place, error] : own) all.push_back(error);
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

void append(std::vector<Error>& to, std::vector<Error> from) {
  std::ranges::move(from, std::back_inserter(to));
}

// Levenshtein's distance: insertions, deletions and replacements.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string to_string(const Error& error) {
  std::string text = error.file;
  if (error.line > 0) text += fmt::format(":{}:{}", error.line, error.column);
  if (!error.where.empty()) text += ": " + error.where;
  return text + ": " + error.what;
}

void Report::error(Place place, std::string where, std::string what) {
  own_errors_.emplace(place, make(file_, place, std::move(where), std::move(what)));
}
void Report::warning(Place place, std::string where, std::string what) {
  own_warnings_.emplace(place, make(file_, place, std::move(where), std::move(what)));
}
void Report::add_errors(std::vector<Error> errors) { append(other_errors_, std::move(errors)); }
void Report::add_warnings(std::vector<Error> warnings) {
  append(other_warnings_, std::move(warnings));
}
std::vector<Error> Report::errors() const { return in_file_order(own_errors_, other_errors_); }
std::vector<Error> Report::warnings() const {
  return in_file_order(own_warnings_, other_warnings_);
}

void Value::expected(std::string_view what) const {
  error(fmt::format("expected {}, got {}", what, describe(*node)));
}

std::optional<std::string_view> Value::scalar(std::string_view expected_what) const {
  if (node->kind == Node::Kind::Scalar) return node->text;
  expected(expected_what);
  return std::nullopt;
}

Value Value::item(std::size_t index) const {
  return {node->items[index].get(), fmt::format("{}[{}]", where, index), report};
}

std::string quote(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::size_t length = std::min(text.size(), kMost);
  // Not in the middle of a UTF-8 sequence.
  while (length < text.size() && length > 0 && (text[length] & 0xc0) == 0x80) --length;
  std::string quoted = "\"";
  for (char c : text.substr(0, length))
    quoted += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return quoted + (length < text.size() ? "...\"" : "\"");
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null: return "nothing";
    case Node::Kind::Scalar: return quote(node.text);
    case Node::Kind::List: return "a list";
    case Node::Kind::Map: return "a mapping";
  }
  return "?";
}

std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  if (text.size() > 64) return best;
  for (const std::string& word : known) {
    const std::size_t d = distance(text, word);
    if (d < best_distance && d < word.size()) {
      best = word;
      best_distance = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  const auto word = nearest(text, known);
  return word ? fmt::format("; did you mean \"{}\"?", *word) : std::string();
}

}  // namespace config
