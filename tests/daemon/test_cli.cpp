// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/frame_source.h"
#include "cli/render.h"
#include "cli/render_ports.h"
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
  EXPECT_THAT(text,
              testing::ContainsRegex(
                  "m1 +up +1m15s +peering +5 +0 +5 +0 +02:00:00:00:00:01 +AS64501 Alpha Net"));
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

// --- ports and their security

TEST(Render, AClosedPortSaysWhyAndUntilWhen) {
  const auto text = rendered(
      "ports", R"({"ports":[{"port":"m1","state":"shut","observe":false,"guard":{"state":"shut",
    "cause":"loop","since_seconds":10,"opens_in_seconds":50}},{"port":"m2","state":"quarantine",
    "guard":{"state":"quarantine","cause":"settings","since_seconds":3,"opens_in_seconds":null}},
    {"port":"m3","state":"up","observe":true,"guard":{"state":"open","cause":null}}]})");
  EXPECT_THAT(text, HasSubstr("m1: shut because of loop, for 10s, opens in 50s\n"));
  EXPECT_THAT(text, HasSubstr("m2: quarantine because of settings, for 3s, stays so\n"));
  EXPECT_THAT(text, HasSubstr("up (observe)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("m3: ")));
}

TEST(Render, AllAboutAPort) {
  const auto text = cli::render_port(
      boost::json::parse(R"({"port":"m1","domain":"peering","state":"up","link":true,"policy":"p",
    "enforce_macs":true,"macs":["02:00:00:00:00:01","02:00:00:00:00:02"],"temporary_macs":[
    {"mac":"02:00:00:00:00:02","left_seconds":75},{"mac":"02:00:00:00:00:03","left_seconds":0}],
    "guard":{"state":"open","macs":"drop","loop":"shut","closures":2,"next_hold_seconds":120},
    "limits":[{"direction":"ingress","class":"arp","limit":{"pps":20,"bps":null,"burst_ms":1000}},
    {"direction":"ingress","class":"nd","limit":{"pps":50,"bps":64000,"burst_ms":100}},
    {"direction":"ingress","class":"broadcast","limit":{"pps":0,"bps":null,"burst_ms":1000}},
    {"direction":"egress","class":"arp","limit":null}],
    "rates":[{"direction":"ingress","class":"arp","pps":31.5,"bps":15120,"dropped_pps":11.5}],
    "frames":[{"direction":"ingress","class":"arp","reason":"arp-limit","dropped":true,"packets":9},
    {"direction":"ingress","class":"arp","reason":"nd","observed":true,"packets":4}],
    "drops":{"arp-limit":9},"violations":[{"port":"m1","direction":"ingress","kind":"macs",
    "reason":"source-mac","mac":"02:00:00:00:00:77","owner":null,"reports":3,"first_seconds":9,
    "last_seconds":1}]})")
          .as_object());
  for (const char* line :
       {"MACs: 02:00:00:00:00:01 02:00:00:00:00:02 \\(02:00:00:00:00:02 for 1m15s more\\) "
        "\\(02:00:00:00:00:03 is over\\)",
        "foreign MACs drop, .* loop shut, .*closed 2 times, next for 2m00s",
        "ingress +arp +20/s +31.5 +15120 +11.5 +9 +4", "ingress +nd +50/s and 64 kbit/s, burst 100",
        "ingress +broadcast +drop", "egress +arp +unlimited", "dropped: arp-limit 9",
        "m1 +ingress +macs +source-mac +02:00:00:00:00:77 +- +- +3 +9s +1s"})
    EXPECT_THAT(text, testing::ContainsRegex(line)) << text;
}

TEST(Render, AFrameAndItsRules) {
  const auto text = rendered("frame", R"({"frame":{"port":"m1","direction":"ingress","octets":60,
    "verdict":"dropped","class":"control","reason":"stp","rules":["gate: open","group: stp"],
    "answer":null}})");
  EXPECT_EQ(text,
            "60 octets at m1, ingress: dropped, stp (class control)\n"
            "  1. gate: open\n  2. group: stp\n");
}

TEST(Render, Report) {
  const auto text =
      rendered("report", R"({"report":{"history":[{"domain":"peering","from":"2026-12-01T00:00:00Z",
    "seconds":900,"running":false,"arp_per_minute":61.5,"sponged":4}],"classes":[{"class":"arp",
    "domain":"peering","frames":922,"per_minute":61.5,"bytes":55320,"dropped":12}],"talkers":[
    {"class":"arp","port":"m1","frames":900,"per_minute":60,"peak_pps":33,"peak_share":165,
    "limit":{"pps":20,"bps":null,"burst_ms":1000},"dropped":12,"observed":0,"member_as":64501,
    "member_name":"Alpha Net"}],"sightings":[{"reason":"stp","port":"m2","direction":"ingress",
    "frames":30,"per_minute":2}],"closed_ports":[{"port":"m3","state":"open","cause":null,
    "closures":1}],"offenders":[{"kind":"asker","port":"m1","per_minute":12}]}})");
  for (const char* line : {"2026-12-01T00:00:00Z +peering +900 +61.5",
                           "arp +m1 +900 +60 +33 +20/s +165 +12 +0 +AS64501 Alpha Net",
                           "stp +m2 +ingress +30 +2", "m3 +open +- +1", "asker +m1"})
    EXPECT_THAT(text, testing::ContainsRegex(line)) << text;
  EXPECT_EQ(rendered("report", R"({"report":{"history":[]}})"), "nothing was counted yet\n");
}

// A list whose rows come one by one is shown with them.
TEST(RowPrinter, ShowsTheRowsOfAnyList) {
  std::string text;
  cli::RowPrinter rows("drops", false, [&](const std::string& part) { text += part; });
  rows.add({{"port", "m7"}, {"reason", "stp"}});
  rows.finish({{"schema", 1}, {"drops", boost::json::array{}}});
  EXPECT_THAT(text, HasSubstr("m7"));
}

TEST(FrameSource, Octets) {
  const std::string digits = "0180c2000000020000000001002642420300";
  EXPECT_EQ(cli::frames_of(digits, 9)->at(0), digits);
  EXPECT_EQ(cli::frames_of("01:80:c2:00:00:00 0200.0000.0001 00-26 42 42 03 00", 9)->at(0), digits);
  EXPECT_THAT(cli::frames_of("0180", 9).error(), HasSubstr("14 octets at least"));
  EXPECT_THAT(cli::frames_of("nothing.pcap", 9).error(), HasSubstr("neither a file nor octets"));
  EXPECT_THAT(cli::frames_of(digits + "0", 9).error(), HasSubstr("neither a file nor octets"));
}

TEST(FrameSource, CaptureFiles) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("peerlan-frames-" + std::to_string(::getpid()) + ".pcap");
  const auto write = [&](const std::string& octets) {
    std::ofstream(file, std::ios::binary) << octets;
  };
  const auto little = [](uint32_t number) {
    std::string octets;
    for (int i = 0; i < 4; ++i) octets += static_cast<char>(number >> (8 * i));
    return octets;
  };
  const auto header = [&](uint32_t link) {
    return little(0xa1b2c3d4) + little(0x00040002) + little(0) + little(0) + little(65535) +
           little(link);
  };
  std::string frames;
  for (char last = 'a'; last < 'd'; ++last)
    frames += little(0) + little(0) + little(14) + little(14) + std::string(13, '\0') + last;
  write(header(1) + frames);
  const auto read = cli::frames_of(file.string(), 9);
  ASSERT_TRUE(read) << read.error();
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ(read->at(2), std::string(26, '0') + "63");
  EXPECT_EQ(cli::frames_of(file.string(), 2)->size(), 2u);
  write(header(101) + frames);
  EXPECT_THAT(cli::frames_of(file.string(), 9).error(), HasSubstr("no capture of Ethernet"));
  write(header(1));
  EXPECT_THAT(cli::frames_of(file.string(), 9).error(), HasSubstr("no frames"));
  write("text, and longer than the header of a capture file");
  EXPECT_FALSE(cli::frames_of(file.string(), 9));
  std::filesystem::remove(file);
}
