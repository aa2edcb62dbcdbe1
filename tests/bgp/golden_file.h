// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a golden file: name, octets, and what tshark must find, which golden_tshark.py checks.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "fake_family.h"
#include "net/bytes.h"

namespace bgp::test {

using GoldenFile = std::map<std::string, net::Bytes>;

inline GoldenFile read_golden(const std::string& path) {
  GoldenFile rows;
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    EXPECT_NE(second, std::string::npos) << line;
    const std::string octets = line.substr(first + 1, second - first - 1);
    EXPECT_TRUE(rows.emplace(line.substr(0, first), hex(octets.c_str())).second) << line;
  }
  return rows;
}

}  // namespace bgp::test
