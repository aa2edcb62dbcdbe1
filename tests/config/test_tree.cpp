// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "config/tree.h"

using namespace config;

namespace {
std::string error_of(const std::expected<NodePtr, Error>& parsed) {
  return parsed ? "no error" : to_string(parsed.error());
}
std::string place(const Node& node) {
  return std::to_string(node.place.line) + ":" + std::to_string(node.place.column);
}
}  // namespace

TEST(Yaml, PlacesCountFromOne) {
  const auto root = parse_yaml("f", "a: 1\nb:\n  - x: \"q\"\n    y:\n  - z\n");
  ASSERT_TRUE(root);
  const Node& map = **root;
  ASSERT_EQ(map.keys.size(), 2u);
  EXPECT_EQ(map.keys[1].place, (Place{2, 1}));
  EXPECT_EQ(place(*map.items[0]), "1:4");
  EXPECT_FALSE(map.items[0]->quoted);
  const Node& list = *map.items[1];
  EXPECT_EQ(place(list), "3:3");
  EXPECT_EQ(place(*list.items[0]), "3:5");
  EXPECT_EQ(place(*list.items[0]->items[0]), "3:8");
  EXPECT_TRUE(list.items[0]->items[0]->quoted);
  EXPECT_EQ(place(*list.items[0]->items[1]), "4:5") << "an empty value is where its key is";
  EXPECT_EQ(list.items[0]->items[1]->kind, Node::Kind::Null);
  EXPECT_EQ(place(*list.items[1]), "5:5");
}

TEST(Yaml, AliasesShareTheirNode) {
  const auto root = parse_yaml("f", "a: &x {k: 1}\nb: *x\n");
  ASSERT_TRUE(root);
  EXPECT_EQ((*root)->items[0], (*root)->items[1]);
}

TEST(Yaml, Errors) {
  EXPECT_EQ(error_of(parse_yaml("f", "")), "f: the file is empty");
  EXPECT_EQ(error_of(parse_yaml("f", "# nothing\n")), "f: the file is empty");
  EXPECT_EQ(error_of(parse_yaml("f", "a: \"open")), "f:1:9: not YAML: illegal EOF in scalar");
  EXPECT_EQ(error_of(parse_yaml("f", "a: 1\nb: c: d\n")), "f:2:5: not YAML: illegal map value");
  EXPECT_EQ(error_of(parse_yaml("f", "a:\n\t- b\n")), "f:2:2: not YAML: illegal block entry");
  EXPECT_EQ(error_of(parse_yaml("f", "a: [1,\nb: 2")),
            "f:2:1: not YAML: end of sequence flow not found");
  EXPECT_EQ(error_of(parse_yaml("f", "a: *nope\n")),
            "f:1:4: not YAML: the referenced anchor is not defined");
  EXPECT_EQ(error_of(parse_yaml("f", "&a [1, *a]")), "f:1:8: an alias inside of what it names");
  EXPECT_EQ(error_of(parse_yaml("f", "---\na: 1\n---\nb: 2\n")),
            "f:3:1: a second document; one is expected");
  EXPECT_FALSE(parse_yaml("f", std::string(100'000, '[')));
}

TEST(Json, PlacesOfAllKinds) {
  const auto root = parse_json(
      "f", "{\"a\": 1,\n \"b\\\"]\" : [true, null, \"x\\n, [\", -1.5e3],\n\t\"c\":{}, \"d\":\"\"}");
  ASSERT_TRUE(root) << error_of(root);
  const Node& map = **root;
  EXPECT_EQ(place(map), "1:1");
  ASSERT_EQ(map.keys.size(), 4u);
  EXPECT_EQ(map.keys[1].text, "b\"]");
  EXPECT_EQ(place(*map.items[0]), "1:7");
  const Node& list = *map.items[1];
  EXPECT_EQ(place(list), "2:11");
  ASSERT_EQ(list.items.size(), 4u);
  EXPECT_EQ(place(*list.items[0]), "2:12");
  EXPECT_EQ(place(*list.items[1]), "2:18");
  EXPECT_EQ(place(*list.items[2]), "2:24");
  EXPECT_EQ(list.items[2]->text, "x\n, [");
  EXPECT_TRUE(list.items[2]->quoted);
  EXPECT_EQ(place(*list.items[3]), "2:34");
  EXPECT_EQ(list.items[3]->text, "-1.5e3");
  EXPECT_FALSE(list.items[3]->quoted);
  EXPECT_EQ(place(*map.items[2]), "3:6");
  EXPECT_EQ(place(*map.items[3]), "3:14");
}

TEST(Json, SurrogatePairsAndByteOrderMark) {
  const auto root = parse_json("f", "\xef\xbb\xbf[\"\\ud83d\\ude00\"]");
  ASSERT_TRUE(root) << error_of(root);
  EXPECT_EQ((*root)->items[0]->text, "\xf0\x9f\x98\x80");
}

TEST(Json, IsStrict) {
  EXPECT_EQ(error_of(parse_json("f", "{\"a\": 1,\n  b: 2}")), "f:2:3: not JSON: syntax error");
  EXPECT_EQ(error_of(parse_json("f", "[1, 2\n] x")), "f:2:3: not JSON: extra data");
  EXPECT_EQ(error_of(parse_json("f", "[1,\n2")), "f:2:2: not JSON: incomplete JSON");
  for (const char* text : {"", "[1,]", "{'a': 1}", "a: 1", "[01]", "[1] // x", "[\"\xff\"]",
                           "[\"\n\"]", "[NaN]", "<html>"})
    EXPECT_FALSE(parse_json("f", text)) << text;
  EXPECT_FALSE(parse_json("f", std::string(100'000, '[')));
}

TEST(ReadFile, OnlyRegularFilesOfBoundedSize) {
  EXPECT_EQ(read_file("/nonexistent/x").error(), "no such file");
  EXPECT_EQ(read_file("/dev/zero").error(), "not a regular file");
  EXPECT_EQ(read_file("/").error(), "not a regular file");
  const std::string sample = PEERLAN_SOURCE_DIR "/configs/pe1.yaml";
  EXPECT_TRUE(read_file(sample)->starts_with("# A PE"));
  EXPECT_EQ(read_file(sample, 100).error(), "larger than 100 octets");
}
