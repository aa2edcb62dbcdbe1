// SPDX-License-Identifier: GPL-2.0-or-later
// The manual and the samples say what the loader does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "config/settings.h"
#include "config/tree.h"
#include "tests/config/helpers.h"
#include "tests/document_tables.h"

using namespace config;

namespace {

const std::filesystem::path kSource = PEERLAN_SOURCE_DIR;

std::string manual() { return *read_file((kSource / "docs/configuration.md").string()); }

std::set<std::string> documented() {
  std::set<std::string> keys;
  for (const auto& [path, key] : test_support::documented_keys(manual()))
    keys.insert(path == "(top level)" ? key : path + "." + key);
  return keys;
}

}  // namespace

TEST(Manual, HasEveryKeyAndNoOther) {
  const auto known = known_keys();
  EXPECT_THAT(documented(), testing::UnorderedElementsAreArray(known));
  EXPECT_GT(known.size(), 90u);
}

// A row for each drop reason, those for `allow` in the first of the two tables.
TEST(Manual, HasEveryDropReason) {
  const std::string text = manual();
  const auto begin = text.find("### Drop reasons");
  const auto middle = text.find("These can't be switched off", begin);
  ASSERT_NE(middle, std::string::npos);
  for (const auto& reason : dataplane::drop_reasons()) {
    const auto row =
        text.find("| `" + std::string(reason.name) + "` | " + reason.text + " |", begin);
    EXPECT_NE(row, std::string::npos) << reason.name;
    EXPECT_EQ(row < middle, reason.switchable) << reason.name;
  }
}

TEST(Manual, ExampleLoadsClean) {
  const std::string text = manual();
  const auto begin = text.find("```yaml\n");
  ASSERT_NE(begin, std::string::npos);
  const auto end = text.find("\n```", begin);
  const std::string example = text.substr(begin + 8, end - begin - 8 + 1);
  const auto loaded = load_text("example", example, kSource / "configs");
  ASSERT_TRUE(loaded) << text_of(loaded.error());
  EXPECT_EQ(text_of(loaded->warnings), "");
  EXPECT_EQ(loaded->settings.domains.front().proxy.bindings.size(), 13u);
}

// Those that begin with a key of the top level, after what every PE has.
TEST(PortSecurity, ExamplesLoadClean) {
  std::istringstream lines(*read_file((kSource / "docs/port-security.md").string()) + "end\n");
  const std::string
      omitted = "    # ...\n",
      device = "    vni: 100\n    bridge: br100\n    vxlan: vx100\n    prefixes: [192.0.2.0/24]\n";
  std::string example;
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("    ")) {
      example += line.empty() ? "\n" : line.substr(4) + "\n";
      continue;
    }
    while (example.starts_with("\n")) example.erase(0, 1);
    if (const auto at = example.find(omitted); at != std::string::npos)
      example.replace(at, omitted.size(), device);
    if (example.starts_with("policies:") || example.starts_with("bgp:")) {
      ++count;
      const auto loaded = load_text("example", kPe + example, kSource / "configs");
      ASSERT_TRUE(loaded) << example << text_of(loaded.error());
      EXPECT_EQ(text_of(loaded->warnings), "") << example;
    }
    example.clear();
  }
  EXPECT_EQ(count, 2);
}

TEST(Samples, LoadClean) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    const auto loaded = load(entry.path().string());
    ASSERT_TRUE(loaded) << text_of(loaded.error());
    // The export of IXP Manager has a port in quarantine, as real ones do.
    if (entry.path().filename() == "pe2.yaml")
      EXPECT_THAT(text_of(loaded->warnings), testing::ContainsRegex("quarantine.*\n$"));
    else
      EXPECT_EQ(text_of(loaded->warnings), "");
  }
  EXPECT_GE(count, 3);
}
