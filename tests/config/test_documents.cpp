// SPDX-License-Identifier: GPL-2.0-or-later
// The manual and the samples say what the loader does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

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
