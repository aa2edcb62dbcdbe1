// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "cli/render.h"
#include "cli/table.h"
#include "cli/words.h"

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
       {"summary", "neighbors", "routes", "macs", "bindings", "ports", "drops", "collectors",
        "duplicates", "sponge", "offenders", "explanation", "else"})
    for (const char* document : {"{}", R"({"summary":1,"ports":{},"routes":[1,null],"drops":"x"})"})
      EXPECT_NO_THROW(rendered(what, document)) << what << document;
}

TEST(Render, BindingsSayTheirState) {
  const auto text = rendered("bindings", R"({"bindings":[{"domain":"lan","ip":"192.0.2.1",
    "mac":"02:00:00:00:00:01","kind":"learned","state":"pending","port":"m1","router":true,
    "override":true,"immutable":false,"age_seconds":75,"kernel_answers":7,"daemon_answers":2,
    "last_asker":"02:00:00:00:00:02","member_as":64501,"member_name":"Alpha"}]})");
  EXPECT_THAT(text, testing::ContainsRegex(
                        "192.0.2.1 +02:00:00:00:00:01 +learned +pending +m1 +RO +1m15s +7 +2 "
                        "+02:00:00:00:00:02 +AS64501 Alpha"));
}

TEST(Render, DuplicatesNameBothSides) {
  const auto text = rendered("duplicates", R"({"duplicates":[{"domain":"lan","ip":"192.0.2.1",
    "frozen":true,"moves":5,"first_mac":"02:00:00:00:00:01","first_port":"m1","first_as":64501,
    "second_mac":"02:00:00:00:00:02","second_port":null,"second_vtep":"10.0.0.2","second_as":null,
    "since_seconds":3,"remaining_seconds":537,"anti_spoof":true}]})");
  EXPECT_THAT(text, testing::ContainsRegex("frozen +5 +02:00:00:00:00:01 +m1 +64501 "
                                           "+02:00:00:00:00:02 +10.0.0.2 +- +3s +8m57s +yes"));
  EXPECT_EQ(rendered("duplicates", R"({"duplicates":[]})"), "no duplicate addresses\n");
}

TEST(Render, ExplanationIsNumbered) {
  const auto text = rendered("explanation", R"({"explanation":{"ip":"192.0.2.3","domain":"lan",
    "port":"m1","database":"AS64503 Charlie","learned":null,"evpn":"PE 10.0.0.2",
    "verdict":"answered","answer":"02:00:00:00:00:03","by_kernel":true,
    "rules":["not a probe","bound"],"binding":null}})");
  EXPECT_THAT(text, HasSubstr("by the database: AS64503 Charlie\n"));
  EXPECT_THAT(text, HasSubstr("by learning: nobody\n"));
  EXPECT_THAT(text, HasSubstr("The next question for it from port m1 is: answered, with "
                              "02:00:00:00:00:03, by the kernel\n  1. not a probe\n  2. bound\n"));
}

TEST(Render, WhyGoesBeforeTheReason) {
  const auto text = rendered("routes", R"j({"routes":[
    {"route":"[3]","best":false,"rejected":null,"reason":"MED","why":"lost: higher MED (2)"}]})j");
  EXPECT_THAT(text, HasSubstr("lost: higher MED (2)"));
}

TEST(Render, NeighborShowsBothSides) {
  const auto text = cli::render_neighbor(boost::json::parse(R"({"address":"10.0.0.1",
    "state":"Established","state_seconds":75,"enabled":true,
    "capabilities_sent":["route refresh","mine"],"capabilities_received":["route refresh","its"],
    "timers":[{"name":"hold","left_seconds":7}],
    "messages_in_by_type":{"open":1},"messages_out_by_type":{"open":2},
    "last_error":"received Cease","last_error_data":"026869","last_error_seconds":3})")
                                             .as_object());
  EXPECT_THAT(text, testing::ContainsRegex("route refresh +route refresh\n"));
  EXPECT_THAT(text, testing::ContainsRegex("  mine\n"));
  EXPECT_THAT(text, testing::ContainsRegex(" +its\n"));
  EXPECT_THAT(text, HasSubstr("hold 7s"));
  EXPECT_THAT(text, testing::ContainsRegex("open +1 +2\n"));
  EXPECT_THAT(text, HasSubstr("last error: received Cease, octets 026869, 3s ago"));
}

TEST(Render, EventsAreLines) {
  const auto line = [](const char* event) {
    return cli::render_event(boost::json::parse(event).as_object());
  };
  EXPECT_EQ(line(R"({"event":"watching"})"), "");
  EXPECT_EQ(line(R"({"event":"lost","time":"T","count":5})"),
            "T 5 events were lost: this reader is too slow\n");
  EXPECT_EQ(line(R"({"event":"neighbor-down","time":"T","neighbor":"a","reason":"x"})"),
            "T a down: x\n");
  EXPECT_EQ(
      line(R"({"event":"route-withdrawn","time":"T","rd":"1:1","route":"[3]","previous":"a"})"),
      "T - 1:1 [3] (was from a)\n");
}

// What fits one stretch is sorted; a longer table comes as it is, in stretches with one header.
TEST(RowPrinter, SortsShortAndStreamsLong) {
  std::string text;
  const auto print = [&](const std::string& part) { text += part; };
  const auto row = [](int number) {
    return boost::json::object{{"rd", "1:1"}, {"type", 2}, {"route", std::to_string(number)}};
  };
  cli::RowPrinter shorter("routes", false, print);
  for (int i : {3, 1, 2}) shorter.add(row(i));
  shorter.finish({{"total", 9}, {"shown", 3}});
  EXPECT_LT(text.find(" 1 "), text.find(" 3 "));
  EXPECT_THAT(text, HasSubstr("3 of 9 paths."));
  text.clear();
  cli::RowPrinter longer("routes", false, print);
  for (int i = 0; i < 12000; ++i) longer.add(row(100000 + i));
  EXPECT_FALSE(text.empty());
  longer.finish({{"total", 12000}, {"shown", 12000}});
  EXPECT_EQ(text.find("NEXT HOP"), text.rfind("NEXT HOP"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 12002);
}

// Rows come one by one, whatever the table.
TEST(RowPrinter, PrintsTheRowsOfEachTable) {
  for (const char* what : {"routes", "neighbors", "macs", "bindings", "ports", "drops",
                           "collectors", "duplicates", "sponge", "offenders"}) {
    std::string text;
    cli::RowPrinter rows(what, false, [&](const std::string& part) { text += part; });
    rows.add({{"domain", "here"},
              {"name", "here"},
              {"address", "here"},
              {"route", "here"},
              {"rd", "1:1"},
              {"type", 2},
              {"collector", "here"}});
    rows.finish({{"schema", 1}, {"total", 1}, {"shown", 1}});
    EXPECT_THAT(text, HasSubstr("here")) << what;
  }
}

TEST(Words, AreFilters) {
  const cli::FilterWord filters[] = {{"type"}, {"mac"}, {"why", true}};
  std::map<std::string, std::string> arguments;
  ASSERT_TRUE(cli::take_words({"type", "2", "why", "mac", "x"}, filters, nullptr, arguments));
  EXPECT_EQ(arguments,
            (std::map<std::string, std::string>{{"type", "2"}, {"why", "true"}, {"mac", "x"}}));
  EXPECT_THAT(cli::take_words({"dance"}, filters, nullptr, arguments).error(),
              HasSubstr("\"dance\""));
  EXPECT_THAT(cli::take_words({"why", "type"}, filters, nullptr, arguments).error(),
              HasSubstr("type: a value"));
  arguments.clear();
  const cli::FilterWord neighbor[] = {{"neighbor"}};
  ASSERT_TRUE(cli::take_words({"pe1"}, neighbor, "neighbor", arguments));
  EXPECT_EQ(arguments["neighbor"], "pe1");
  EXPECT_FALSE(cli::take_words({"pe2"}, neighbor, "neighbor", arguments));
}
