// SPDX-License-Identifier: GPL-2.0-or-later
// The tables of a manual, for tests that compare them with what the program knows.
#pragma once
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace test_support {

// (path, key) of the first column of each table below a "### `path`" heading (or several paths).
inline std::set<std::pair<std::string, std::string>> documented_keys(const std::string& manual) {
  static const std::regex kCode("`([^`]+)`"), kRow("^\\| `([^`]+)` \\|.*");
  std::set<std::pair<std::string, std::string>> keys;
  std::vector<std::string> paths;
  std::istringstream lines(manual);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("#")) {
      paths.clear();
      if (line.starts_with("### "))
        for (std::sregex_iterator i(line.begin(), line.end(), kCode), end; i != end; ++i)
          paths.push_back((*i)[1]);
    } else if (std::regex_match(line, match, kRow)) {
      for (const std::string& path : paths) keys.emplace(path, match[1].str());
    }
  }
  return keys;
}

}  // namespace test_support
