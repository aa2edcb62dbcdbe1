// SPDX-License-Identifier: GPL-2.0-or-later
// Filters as words: "type 2 mac 02:00:00:00:00:01 why" is --type 2 --mac 02:00:00:00:00:01 --why.
#pragma once
#include <expected>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cli {

struct FilterWord {
  const char* name;
  bool flag = false;  // has no value
};

// Adds to `arguments`. A single word that is no filter's name is the value of `lone`, if that is
// not null. The error is a line for the user.
[[nodiscard]] std::expected<void, std::string> take_words(
    const std::vector<std::string>& words, std::span<const FilterWord> filters, const char* lone,
    std::map<std::string, std::string>& arguments);

}  // namespace cli
