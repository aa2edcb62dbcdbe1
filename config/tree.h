// SPDX-License-Identifier: GPL-2.0-or-later
// A document, YAML or JSON, as plain nodes that know their place in the file. The typed loader
// reads only these; yaml-cpp and Boost.JSON are behind the two parse functions.
#pragma once
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace config {

struct Place {
  int line = 0, column = 0;  // from 1, in octets; 0: the file as a whole
  auto operator<=>(const Place&) const = default;
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Key {
  std::string text;
  Place place;
  bool is_scalar = true;
};

struct Node {
  enum class Kind : uint8_t { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  bool quoted = false;  // a scalar in quotes: text, whatever it looks like
  Place place;
  std::string text;            // of a scalar
  std::vector<Key> keys;       // of a map, in file order, repeated ones included
  std::vector<NodePtr> items;  // of a list, or the values that belong to `keys`
};

// One YAML document. Aliases share their node. An error has the place where the parser stopped.
[[nodiscard]] std::expected<NodePtr, Error> parse_yaml(const std::string& name,
                                                       const std::string& text);
// One JSON text as RFC 8259 has it, UTF-8; a byte order mark in front is skipped.
[[nodiscard]] std::expected<NodePtr, Error> parse_json(const std::string& name,
                                                       std::string_view text);

// The whole of a regular file of at most `limit` octets, or why not.
[[nodiscard]] std::expected<std::string, std::string> read_file(const std::string& path,
                                                                std::size_t limit = 64u << 20);

}  // namespace config
