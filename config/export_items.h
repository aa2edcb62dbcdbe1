// SPDX-License-Identifier: GPL-2.0-or-later
// Reading files that others made: what is null or missing is passed over, a value in any usual
// form is taken. Internal to config/.
#pragma once
#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree.h"
#include "net/mac_address.h"

namespace config {

// A node with its path; null when it is missing or a JSON null.
struct Item {
  const Node* node = nullptr;
  std::string where;

  explicit operator bool() const { return node != nullptr; }
  Place place() const { return node->place; }
  bool is(Node::Kind kind) const { return node && node->kind == kind; }
  Item operator[](std::string_view key) const {
    if (!is(Node::Kind::Map)) return {};
    for (std::size_t i = 0; i < node->keys.size(); ++i)
      if (node->keys[i].text == key) {
        const Node* child = node->items[i].get();
        if (child->kind == Node::Kind::Null) return {};
        return {child, where.empty() ? std::string(key) : fmt::format("{}.{}", where, key)};
      }
    return {};
  }
  // Elements of a list; a single value stands for a list of one.
  std::vector<Item> each() const {
    std::vector<Item> all;
    if (!node) return all;
    if (node->kind != Node::Kind::List) return {*this};
    for (std::size_t i = 0; i < node->items.size(); ++i)
      if (node->items[i]->kind != Node::Kind::Null)
        all.push_back({node->items[i].get(), fmt::format("{}[{}]", where, i)});
    return all;
  }
  std::string_view text() const {
    if (!is(Node::Kind::Scalar)) return {};
    std::string_view t = node->text;
    while (!t.empty() && std::isspace(static_cast<unsigned char>(t.front()))) t.remove_prefix(1);
    while (!t.empty() && std::isspace(static_cast<unsigned char>(t.back()))) t.remove_suffix(1);
    return t;
  }
  std::optional<uint32_t> number() const {
    const std::string_view t = text();
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (t.empty() || error != std::errc{} || end != t.data() + t.size()) return std::nullopt;
    return value;
  }
};

bool equals_ignoring_case(std::string_view a, std::string_view b);

// Any of the forms that exports have: six, three or two groups, or none, with any separator;
// leading zeros of a group may be missing where there are six or three.
std::optional<net::MacAddress> parse_any_mac(std::string_view text);

}  // namespace config
