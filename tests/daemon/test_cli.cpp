// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "cli/render.h"
#include "cli/table.h"

using testing::HasSubstr;

namespace {

std::string rendered(const char* what, const char* document) {
  return cli::render(what, boost::json::parse(document).as_object());
}

}  // namespace

TEST(Table, AlignsByCharactersNotOctets) {
  cli::Table table({{"NAME"}, {"N", true}});
  table.row({"Zürich", "7"});
  table.row({"Bern", "10"});
  EXPECT_EQ(table.text(), "NAME     N\nZürich   7\nBern    10\n");
}

TEST(Table, ShortRowIsFilled) {
  cli::Table table({{"A"}, {"B"}});
  table.row({"x"});
  EXPECT_EQ(table.text(), "A  B\nx\n");
}

TEST(Render, NullsAndMissingKeysAreDashes) {
  const auto text =
      rendered("neighbors", R"({"neighbors":[{"address":"10.0.0.9","description":null}]})");
  EXPECT_THAT(text, HasSubstr("10.0.0.9  -"));
}

TEST(Render, RejectedPathSaysWhy) {
  const auto text = rendered("routes", R"({"routes":[
    {"route":"[3]:[0]:[32]:[10.0.0.1]","best":true,"rejected":null,"reason":"only path","communities":["ET:8"]},
    {"route":"[3]:[0]:[32]:[10.0.0.2]","best":false,"rejected":"own AS in path","reason":"only path","communities":[]}]})");
  EXPECT_THAT(text, HasSubstr("*>"));
  EXPECT_THAT(text, HasSubstr("own AS in path"));
  EXPECT_THAT(text, HasSubstr("2 paths."));
}

TEST(Render, PortsSumTheirCounters) {
  const auto text = rendered(
      "ports", R"({"ports":[{"port":"m1","state":"up","since_seconds":75,"policy":"peering",
    "macs":["02:00:00:00:00:01"],"member_as":64501,"member_name":"Alpha Net","frames":[
    {"reason":"answered","packets":5,"dropped":false},{"reason":"stp","packets":2,"dropped":true},
    {"reason":"lldp","packets":3,"dropped":true}]}]})");
  EXPECT_THAT(text, testing::ContainsRegex(
                        "m1 +up +1m15s +peering +5 +0 +5 +02:00:00:00:00:01 +AS64501 Alpha Net"));
}

TEST(Render, NoDropsIsSaid) {
  EXPECT_EQ(rendered("drops", R"({"drops":[]})"), "nothing was dropped\n");
}

TEST(Render, WrongShapesDoNotCrash) {
  for (const char* what :
       {"summary", "neighbors", "routes", "macs", "bindings", "ports", "drops", "else"})
    for (const char* document : {"{}", R"({"summary":1,"ports":{},"routes":[1,null],"drops":"x"})"})
      EXPECT_NO_THROW(rendered(what, document)) << what << document;
}
