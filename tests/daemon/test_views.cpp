// SPDX-License-Identifier: GPL-2.0-or-later
// What the daemon shows: filters, reasons, pieces, and that docs/json.md and docs/metrics.md say
// what it emits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "daemon/metrics.h"
#include "daemon/monitor.h"
#include "daemon/mrt_writer.h"
#include "daemon/port_commands.h"
#include "daemon/proxy_commands.h"
#include "daemon/trace.h"
#include "daemon_support.h"
#include "tests/document_tables.h"

using namespace peerland;
using namespace peerland::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsSubsetOf;
using testing::UnorderedElementsAre;

namespace {

const std::filesystem::path kSource = PEERLAN_SOURCE_DIR;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "path.key" of the tables of docs/json.md that are about the view.
std::set<std::string> documented(const std::string& view) {
  std::set<std::string> keys;
  for (const auto& [path, key] : test_support::documented_keys(text_of(kSource / "docs/json.md")))
    if (path == view || path.starts_with(view + ".")) keys.insert(path + "." + key);
  return keys;
}

void collect(const json::value& value, const std::string& path, std::set<std::string>& keys) {
  if (value.is_array())
    for (const auto& item : value.as_array()) collect(item, path + "[]", keys);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.as_object()) {
    keys.insert(path + "." + std::string(key));
    collect(inner, path + "." + std::string(key), keys);
  }
}

std::set<std::string> emitted(const std::string& view, const json::value& document) {
  std::set<std::string> keys;
  collect(document, view, keys);
  return keys;
}

class ViewsTest : public DaemonTest {
 protected:
  std::vector<std::string> macs(const json::object& arguments) {
    std::vector<std::string> found;
    const json::object document = show("routes", arguments);
    for (const auto& row : document.at("routes").as_array())
      found.emplace_back(row.as_object().at("mac").as_string());
    return found;
  }
  std::string why(const json::object& row) { return std::string(row.at("why").as_string()); }
};

}  // namespace

TEST_F(ViewsTest, DocumentsAreAsDescribed) {
  auto settings = node(2);
  settings.bgp.bmp = {
      {.address = ip("127.0.0.1"), .port = 1, .description = "", .local_address = std::nullopt}};
  settings.bgp.mrt = {{"/nowhere/x", 3600s}};
  start(settings);
  auto& peer = add_peer(2);
  announce(peer, mac_route(1));
  ASSERT_TRUE(routes_are(1));
  // A NOTIFICATION, so that there is one to be shown.
  auto& other = add_peer(3);
  ASSERT_TRUE(until([&] { return app->speaker().sessions().size() == 2; }));
  bool done = false;
  other.stop(false, "bye", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && app->speaker().sessions().size() == 1; }));
  for (const char* view : {"neighbors", "routes", "collectors"})
    EXPECT_EQ(emitted(view, show(view)), documented(view)) << view;
  for (const char* view : {"summary", "macs", "bindings", "duplicates", "sponge", "offenders",
                           "ports", "drops", "violations", "underlay", "report"})
    EXPECT_THAT(emitted(view, show(view)), IsSubsetOf(documented(view))) << view;
  for (const char* view :
       {"summary", "neighbors", "routes", "collectors", "macs", "bindings", "duplicates", "sponge",
        "offenders", "ports", "drops", "violations", "underlay", "report"}) {
    const json::object document = show(view);
    EXPECT_EQ(document.begin()->key(), "schema") << view;
    EXPECT_EQ(document.at("schema"), 1) << view;
  }
}

TEST_F(ViewsTest, FiltersOfRoutes) {
  start(node());
  auto& peer = add_peer(2);
  announce(peer, mac_route(1, 100));
  announce(peer, mac_route(2, 200));
  evpn::InclusiveMulticast imet;
  imet.rd = net::RouteDistinguisher::parse("65000:7").value();
  imet.originator = ip("10.0.0.2");
  auto with = attributes();
  with->pmsi_tunnel = evpn::encode_pmsi({.label = 300, .endpoint = ip("10.0.0.2")});
  announce(peer, imet, with);
  ASSERT_TRUE(routes_are(3));
  const auto count = [&](const json::object& filter) {
    return show("routes", filter).at("routes").as_array().size();
  };
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(count({{"type", 2}}), 2u);
  EXPECT_EQ(count({{"type", "3"}}), 1u);
  EXPECT_EQ(count({{"type", 5}}), 0u);
  EXPECT_THAT(macs({{"vni", 200}}), UnorderedElementsAre("02:00:00:00:00:02"));
  EXPECT_EQ(count({{"vni", 300}}), 1u);
  EXPECT_THAT(macs({{"mac", "02:00:00:00:00:01"}}), UnorderedElementsAre("02:00:00:00:00:01"));
  EXPECT_EQ(count({{"rd", "10.0.0.2:100"}}), 2u);
  EXPECT_EQ(count({{"rd", "65000:7"}}), 1u);
  EXPECT_EQ(count({{"ip", "10.0.0.2"}}), 1u);
  EXPECT_EQ(count({{"neighbor", "127.0.0.2"}}), 3u);
  EXPECT_EQ(count({{"neighbor", "client1"}}), 3u);
  EXPECT_EQ(count({{"neighbor", "local"}}), 0u);
  EXPECT_EQ(count({{"best", true}}), 3u);
  EXPECT_EQ(count({{"rejected", true}}), 0u);
  const json::object limited = show("routes", {{"limit", 1}});
  EXPECT_EQ(limited.at("routes").as_array().size(), 1u);
  EXPECT_EQ(limited.at("total"), 3);
  EXPECT_EQ(limited.at("shown"), 1);
}

TEST_F(ViewsTest, FramesAndPortsThatAreNotThere) {
  start(node());
  EXPECT_THAT(error_of("frame", {{"port", "m1"}}), HasSubstr("frame: expected an Ethernet frame"));
  EXPECT_THAT(error_of("frame", {{"frame", "00"}}), HasSubstr("port: expected the name"));
  EXPECT_THAT(error_of("frame", {{"frame", "0g"}, {"port", "m1"}}),
              HasSubstr("frame: expected an Ethernet frame in hexadecimal digits"));
  EXPECT_THAT(error_of("frame", {{"frame", "00"}, {"port", "m1"}, {"direction", "up"}}),
              HasSubstr("direction: expected ingress, egress, decap or encap"));
  EXPECT_THAT(error_of("frame", {{"frame", "00"}, {"port", "m1"}}), HasSubstr("no port m1"));
  EXPECT_THAT(error_of("report", {{"intervals", 97}}), HasSubstr("intervals: expected"));
  for (const char* command : {"open-port", "quarantine-port", "shut-port"}) {
    const auto done = act_on_port(*app, command, {{"port", "m1"}});
    ASSERT_TRUE(done && !*done) << command;
    EXPECT_THAT(done->error(), HasSubstr("there is no member port m1"));
    EXPECT_THAT(act_on_port(*app, command, json::object{})->error(), HasSubstr("port: expected"));
  }
  EXPECT_FALSE(act_on_port(*app, "close-port", {}).has_value());
}

TEST_F(ViewsTest, AddressesOfNoDomain) {
  start(node());
  EXPECT_THAT(error_of("explanation", {}), HasSubstr("ip: expected an IP address"));
  EXPECT_THAT(error_of("explanation", {{"ip", "192.0.2.1"}}),
              HasSubstr("there is no such broadcast domain"));
  EXPECT_THAT(error_of("bindings", {{"match", ""}}), testing::StartsWith("match: expected"));
  EXPECT_THAT(error_of("bindings", {{"member", ""}}), testing::StartsWith("member: expected"));
  EXPECT_EQ(show("bindings", {{"match", "AS64501"}}).at("total"), 0);
  EXPECT_FALSE(act_on_address(*app, "clear-neighbor", {}).has_value());
  for (const char* command : {"clear-binding", "clear-duplicate", "sponge-dead", "probe"}) {
    const auto done = act_on_address(*app, command, {{"ip", "192.0.2.1"}});
    ASSERT_TRUE(done) << command;
    ASSERT_FALSE(*done) << command;
    EXPECT_THAT(done->error(), HasSubstr("broadcast domain"));
    const auto nothing = act_on_address(*app, command, json::object{});
    ASSERT_TRUE(nothing && !*nothing);
    EXPECT_THAT(nothing->error(), testing::StartsWith("ip: "));
  }
  for (const json::object& wrong :
       {json::object{{"ip", "192.0.2.1"}, {"seconds", 0}},
        json::object{{"ip", "192.0.2.1"}, {"frames", "many"}}, json::object{{"ip", "x"}}}) {
    const auto trace = begin_trace(*app, io, wrong, [] {});
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error(), HasSubstr("expected"));
  }
}

TEST_F(ViewsTest, BadFiltersAreErrorsThatNameThem) {
  start(node());
  const std::pair<const char*, json::value> kBad[] = {
      {"vni", -1},       {"vni", "16777216"}, {"vni", "ten"},    {"type", 99},
      {"type", 0},       {"type", "2x"},      {"mac", "02:zz"},  {"ip", "10.0.0.300"},
      {"rd", "nothing"}, {"limit", -5},       {"why", "maybe"},  {"neighbor", "10.9.9.9"},
      {"neighbor", ""},  {"rejected", 3},     {"type", nullptr}, {"mac", json::array{}}};
  for (const auto& [filter, value] : kBad)
    EXPECT_THAT(error_of("routes", {{filter, value}}), testing::StartsWith(filter))
        << filter << " " << value;
  EXPECT_THAT(error_of("routes", {{"port", "m1"}}), HasSubstr("unknown filter \"port\""));
  EXPECT_THAT(error_of("neighbors", {{"neighbor", "local"}}), HasSubstr("neighbor"));
  EXPECT_THAT(error_of("neighbors", {{"type", 2}}), HasSubstr("unknown filter"));
  EXPECT_THAT(error_of("nothing", {}), HasSubstr("unknown view"));
}

TEST_F(ViewsTest, WhySaysWhichStepDecided) {
  start(node(2));
  auto& a = add_peer(2);
  auto& b = add_peer(3);
  auto low = attributes();
  low->local_pref = 50;
  auto high = attributes("10.0.0.3");
  high->local_pref = 200;
  announce(a, mac_route(1), low);
  announce(b, mac_route(1), high);
  auto looped = attributes();
  looped->cluster_list = {0x0a000009};
  looped->originator_id = 0x0a000063;
  announce(a, mac_route(2), looped);
  ASSERT_TRUE(until([&] { return app->speaker().rib().path_count() == 3; }));
  const json::object explained = show("routes", {{"why", true}});
  for (const auto& value : explained.at("routes").as_array()) {
    const auto& row = value.as_object();
    if (row.at("rejected").is_string())
      EXPECT_EQ(why(row), "rejected: our cluster id 10.0.0.9 is in its cluster list");
    else if (row.at("best").as_bool())
      EXPECT_EQ(why(row), "best: the last other path lost by local preference");
    else
      EXPECT_EQ(why(row),
                "lost: lower local preference (50) than the path from 127.0.0.3 (client2) (200)");
  }
  const auto rejected = show("routes", {{"rejected", true}}).at("routes").as_array();
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].at("rejected"), "own cluster id");
  EXPECT_TRUE(rejected[0].at("why").is_null());
}

TEST_F(ViewsTest, NeighborHasBothSides) {
  start(node());
  add_peer(2);
  ASSERT_TRUE(until([&] { return app->speaker().sessions().size() == 1; }));
  const json::object document = show("neighbors", {{"neighbor", "client1"}});
  const json::object& n = document.at("neighbors").at(0).as_object();
  EXPECT_EQ(n.at("state"), "Established");
  EXPECT_EQ(n.at("local_address"), "127.0.0.1");
  EXPECT_EQ(n.at("local_port"), app->speaker().listening().at(0).port);
  EXPECT_EQ(n.at("remote_address"), "127.0.0.2");
  EXPECT_GT(n.at("remote_port").as_int64(), 0);
  EXPECT_EQ(n.at("messages_in_by_type").at("open"), 1);
  EXPECT_EQ(n.at("messages_out_by_type").at("open"), 1);
  EXPECT_GE(n.at("messages_in_by_type").at("keepalive").as_int64(), 1);
  EXPECT_FALSE(n.at("capabilities_sent").as_array().empty());
  EXPECT_EQ(n.at("capabilities_sent"), n.at("capabilities_received"));
  std::set<std::string> timers;
  for (const auto& timer : n.at("timers").as_array()) timers.emplace(timer.at("name").as_string());
  EXPECT_THAT(timers, testing::IsSupersetOf({"hold", "keepalive"}));
}

TEST_F(ViewsTest, LastErrorHasDirectionAndOctets) {
  start(node());
  auto& peer = add_peer(2);
  ASSERT_TRUE(until([&] { return app->speaker().sessions().size() == 1; }));
  bool done = false;
  peer.stop(false, "hi", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && app->speaker().sessions().empty(); }));
  const json::object document = show("neighbors");
  const json::object& n = document.at("neighbors").at(0).as_object();
  EXPECT_EQ(n.at("last_error_direction"), "received");
  EXPECT_EQ(n.at("last_error_data"), "026869");
  EXPECT_THAT(std::string(n.at("last_error").as_string()),
              AllOf(HasSubstr("Administrative Shutdown"), HasSubstr("hi")));
  const auto& notification = n.at("notifications").at(0);
  EXPECT_EQ(notification.at("direction"), "received");
  EXPECT_EQ(notification.at("code"), 6);
  EXPECT_EQ(notification.at("subcode"), 2);
  EXPECT_EQ(notification.at("count"), 1);
}

// A large table comes in many pieces, and the loop runs between them.
TEST_F(ViewsTest, RoutesComeInPieces) {
  start(node());
  auto& peer = add_peer(2);
  constexpr uint32_t kRoutes = 5000;
  for (uint32_t i = 0; i < kRoutes; ++i) announce(peer, mac_route(i));
  ASSERT_TRUE(routes_are(kRoutes));
  EXPECT_EQ(show("routes").at("total"), kRoutes);
  EXPECT_GT(pieces, 10u);
  // What goes meanwhile is left out; what stays is there once.
  auto answer = peerland::show(*app, "routes", {});
  std::string text = *(*answer)();
  for (uint32_t i = 0; i < kRoutes; i += 2) withdraw(peer, mac_route(i));
  ASSERT_TRUE(routes_are(kRoutes / 2));
  while (const auto piece = (*answer)()) text += *piece;
  std::multiset<std::string> seen;
  const json::value document = json::parse(text);
  for (const auto& row : document.at("routes").as_array()) seen.emplace(row.at("mac").as_string());
  for (uint32_t i = 1; i < kRoutes; i += 2)
    EXPECT_EQ(seen.count(net::to_string(mac_route(i).mac)), 1u);
}

// --- The socket -----------------------------------------------------------------------------

namespace {

// A client of the control socket in the loop of the test.
struct Caller {
  Caller(boost::asio::io_context& io, const std::string& path, const json::object& request)
      : socket(io) {
    socket.connect(boost::asio::local::stream_protocol::endpoint(path));
    boost::asio::write(socket, boost::asio::buffer(json::serialize(request) + "\n"));
  }
  // Reads on from now on.
  void read() {
    socket.async_read_some(boost::asio::buffer(buffer),
                           [this](const boost::system::error_code& error, std::size_t count) {
                             text.append(buffer, count);
                             ended = static_cast<bool>(error);
                             if (!error) read();
                           });
  }
  // The whole lines that have come, each parsed once however often this is asked.
  const std::vector<json::object>& lines() {
    for (std::size_t end; (end = text.find('\n', parsed_to)) != std::string::npos;
         parsed_to = end + 1)
      parsed.push_back(json::parse(text.substr(parsed_to, end - parsed_to)).as_object());
    return parsed;
  }
  boost::asio::local::stream_protocol::socket socket;
  char buffer[65536];
  std::string text;
  bool ended = false;
  std::vector<json::object> parsed;
  std::size_t parsed_to = 0;
};

}  // namespace

TEST_F(ViewsTest, ALargeAnswerGoesThroughTheSocketWhole) {
  start(node());
  auto& peer = add_peer(2);
  for (uint32_t i = 0; i < 3000; ++i) announce(peer, mac_route(i));
  ASSERT_TRUE(routes_are(3000));
  Caller caller(io, app->settings().control_socket, {{"command", "show"}, {"what", "routes"}});
  caller.read();
  ASSERT_TRUE(until([&] { return caller.ended; }));
  EXPECT_EQ(json::parse(caller.text).at("routes").as_array().size(), 3000u);
}

TEST_F(ViewsTest, UnknownCommandsAreErrors) {
  start(node());
  for (const char* request : {R"({"command":"dance"})", R"([1])", "not JSON"}) {
    Caller caller(io, app->settings().control_socket, {{"command", "dance"}});
    caller.read();
    ASSERT_TRUE(until([&] { return caller.ended; }));
    EXPECT_TRUE(json::parse(caller.text).as_object().contains("error")) << request;
  }
}

TEST_F(ViewsTest, MonitorTellsOfSessionsAndRoutes) {
  start(node(2));
  Caller caller(io, app->settings().control_socket, {{"command", "monitor"}});
  caller.read();
  ASSERT_TRUE(until([&] { return !caller.lines().empty(); }));
  auto& a = add_peer(2);
  auto& b = add_peer(3);
  auto low = attributes();
  low->local_pref = 50;
  announce(a, mac_route(1), low);
  ASSERT_TRUE(routes_are(1));
  announce(b, mac_route(1), attributes("10.0.0.3"));
  ASSERT_TRUE(until([&] { return app->speaker().rib().path_count() == 2; }));
  bool done = false;
  b.stop(false, "bye", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && app->speaker().rib().path_count() == 1; }));
  withdraw(a, mac_route(1));
  ASSERT_TRUE(routes_are(0));
  ASSERT_TRUE(until([&] { return caller.text.find("route-withdrawn") != std::string::npos; }));
  std::vector<std::string> routes, sessions;
  std::set<std::string> keys;
  for (const json::object& event : caller.lines()) {
    collect(event, "monitor", keys);
    const std::string kind(event.at("event").as_string());
    if (kind.starts_with("route-"))
      routes.push_back(kind + " " + json::serialize(event.at("neighbor")) + " " +
                       json::serialize(event.at("previous")));
    if (kind == "neighbor-down") sessions.emplace_back(event.at("reason").as_string());
  }
  EXPECT_THAT(routes,
              testing::ElementsAre("route-changed \"127.0.0.2 (client1)\" null",
                                   "route-changed \"127.0.0.3 (client2)\" \"127.0.0.2 (client1)\"",
                                   HasSubstr("route-changed \"127.0.0.2 (client1)\""),
                                   "route-withdrawn null \"127.0.0.2 (client1)\""));
  EXPECT_THAT(sessions, testing::ElementsAre(HasSubstr("Administrative Shutdown")));
  keys.insert("monitor.count");  // of the event that the next test has
  EXPECT_EQ(keys, documented("monitor"));
}

TEST_F(ViewsTest, ASlowMonitorIsToldWhatItLost) {
  start(node());
  Caller caller(io, app->settings().control_socket, {{"command", "monitor"}, {"what", "routes"}});
  ASSERT_TRUE(until([&] { return app->monitor().clients() == 1; }));
  auto& peer = add_peer(2);
  constexpr uint32_t kRoutes = 20000;
  for (uint32_t i = 0; i < kRoutes; ++i) announce(peer, mac_route(i));
  ASSERT_TRUE(routes_are(kRoutes));
  EXPECT_GT(app->monitor().lost(), 0u);
  caller.read();
  uint64_t told = 0;
  std::size_t seen = 0;
  ASSERT_TRUE(until([&] {
    for (const auto& events = caller.lines(); seen < events.size(); ++seen) {
      const json::object& event = events[seen];
      if (event.at("event") == "route-changed") ++told;
      if (event.at("event") == "lost") told += event.at("count").to_number<uint64_t>();
    }
    return told >= kRoutes;
  }));
  EXPECT_EQ(told, kRoutes);
}

TEST_F(ViewsTest, AMonitorThatHangsUpIsForgotten) {
  start(node());
  auto caller = std::make_unique<Caller>(io, app->settings().control_socket,
                                         json::object{{"command", "monitor"}});
  ASSERT_TRUE(until([&] { return app->monitor().clients() == 1; }));
  caller.reset();
  EXPECT_TRUE(until([&] { return app->monitor().clients() == 0; }));
}

TEST_F(ViewsTest, MonitorRefusesWhatItDoesNotKnow) {
  start(node());
  for (const json::object& request :
       {json::object{{"command", "monitor"}, {"what", "weather"}},
        json::object{{"command", "monitor"}, {"arguments", {{"vni", -1}}}},
        json::object{{"command", "monitor"}, {"arguments", {{"limit", 1}}}}}) {
    Caller caller(io, app->settings().control_socket, request);
    caller.read();
    ASSERT_TRUE(until([&] { return caller.ended; }));
    EXPECT_TRUE(json::parse(caller.text).as_object().contains("error")) << request;
  }
}

// --- MRT ------------------------------------------------------------------------------------

TEST_F(ViewsTest, MrtDumpHasEachRouteOnce) {
  start(node());
  auto& peer = add_peer(2);
  for (uint32_t i = 0; i < 500; ++i) announce(peer, mac_route(i));
  ASSERT_TRUE(routes_are(500));
  auto dump = mrt_dump(*app);
  std::string text;
  while (const auto piece = dump()) text += *piece;
  net::ByteReader in({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  std::set<net::Bytes> nlris;
  uint32_t records = 0;
  while (in.remaining() > 0) {
    in.u32();
    EXPECT_EQ(in.u16(), 13);
    const uint16_t subtype = in.u16();
    net::ByteReader body = in.sub(in.u32());
    ASSERT_TRUE(in.ok());
    if (records++ == 0) {
      EXPECT_EQ(subtype, 1);
      EXPECT_EQ(body.u32(), 0x0a000009u);
      EXPECT_EQ(body.u16(), 3);  // "rs1"
      body.bytes(3);
      EXPECT_EQ(body.u16(), 2);  // ourselves and the neighbor
      continue;
    }
    EXPECT_EQ(subtype, 6);
    EXPECT_EQ(body.u32(), records - 2);
    EXPECT_EQ(body.u16(), 25);
    EXPECT_EQ(body.u8(), 70);
    const auto rest = body.rest();
    const auto nlri = rest.first(rest[1] + 2u);
    nlris.insert({nlri.begin(), nlri.end()});
    body.bytes(nlri.size());
    EXPECT_EQ(body.u16(), 1);
    EXPECT_EQ(body.u16(), 1);  // peer 1
    body.u32();
    const std::size_t size = body.u16();
    EXPECT_EQ(size, body.remaining());
  }
  EXPECT_EQ(nlris.size(), 500u);
}

TEST_F(ViewsTest, MrtFilesAreWrittenAndNamed) {
  auto settings = node();
  settings.bgp.mrt = {{(folder_ / "rib.%Y.mrt").string(), 1s}};
  start(settings);
  ASSERT_TRUE(until([&] { return app->mrt_writer()->written() >= 1; }));
  const auto name = app->mrt_writer()->last_file();
  EXPECT_EQ(name, dump_name(settings.bgp.mrt->file, std::chrono::system_clock::now()));
  EXPECT_GT(std::filesystem::file_size(name), 20u);
  EXPECT_FALSE(std::filesystem::exists(name + ".tmp"));
}

TEST_F(ViewsTest, MrtFailuresAreCounted) {
  auto settings = node();
  settings.bgp.mrt = {{(folder_ / "missing/rib.mrt").string(), 1s}};
  start(settings);
  ASSERT_TRUE(until([&] { return app->mrt_writer()->failed() >= 1; }));
  EXPECT_THAT(app->mrt_writer()->last_error(), HasSubstr("No such file"));
}

// --- Metrics --------------------------------------------------------------------------------

TEST_F(ViewsTest, MetricsAreDocumented) {
  auto settings = node();
  settings.bgp.bmp = {
      {.address = ip("127.0.0.1"), .port = 1, .description = "", .local_address = std::nullopt}};
  settings.bgp.mrt = {{"/nowhere/x", 3600s}};
  start(settings);
  auto& peer = add_peer(2);
  ASSERT_TRUE(until([&] { return app->speaker().sessions().size() == 1; }));
  bool done = false;
  peer.stop(false, "bye", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && app->speaker().sessions().empty(); }));
  // "| name | type | labels | meaning |"; a row may name several.
  std::map<std::string, std::pair<std::string, std::set<std::string>>> described;
  std::istringstream lines(text_of(kSource / "docs/metrics.md"));
  static const std::regex kName("peerlan_[a-z_0-9]+"), kLabel("[a-z_]+");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| peerlan_")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 5u) << line;
    std::set<std::string> labels;
    for (std::sregex_iterator i(cells[3].begin(), cells[3].end(), kLabel), end; i != end; ++i)
      labels.insert(i->str());
    const std::string type = std::regex_replace(cells[2], std::regex(" "), "");
    for (std::sregex_iterator i(cells[1].begin(), cells[1].end(), kName), end; i != end; ++i)
      described[i->str()] = {type, labels};
  }
  std::istringstream text(metrics_text(*app));
  static const std::regex kSample("^(peerlan_[a-z_0-9]+)(\\{(.*)\\})? .*"),
      kKey("([a-z_]+)=\"[^\"]*\"");
  std::set<std::string> seen;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line);
      std::string hash, kind, name, type;
      words >> hash >> kind >> name >> type;
      ASSERT_TRUE(described.contains(name)) << name;
      EXPECT_EQ(described[name].first, type) << name;
    }
    std::smatch match;
    if (!std::regex_match(line, match, kSample)) continue;
    seen.insert(match[1]);
    std::set<std::string> labels;
    const std::string inner = match[3];
    for (std::sregex_iterator i(inner.begin(), inner.end(), kKey), end; i != end; ++i)
      labels.insert((*i)[1]);
    EXPECT_EQ(labels, described[match[1]].second) << line;
  }
  // Those of a data path, which this node has not.
  static const std::set<std::string> kOfDomains{"peerlan_evpn_macs",
                                                "peerlan_aged_macs_asked_total",
                                                "peerlan_aged_macs_gone_total",
                                                "peerlan_evpn_remote_vteps",
                                                "peerlan_bindings",
                                                "peerlan_responder_frames_total",
                                                "peerlan_kernel_repairs_total",
                                                "peerlan_kernel_errors_total",
                                                "peerlan_alarms_total",
                                                "peerlan_port_up",
                                                "peerlan_port_flaps_total",
                                                "peerlan_port_frames_total",
                                                "peerlan_port_bytes_total",
                                                "peerlan_punts_lost_total",
                                                "peerlan_arpnd_queries_total",
                                                "peerlan_arpnd_replies_total",
                                                "peerlan_arpnd_dropped_total",
                                                "peerlan_arpnd_sponged_total",
                                                "peerlan_arpnd_entries",
                                                "peerlan_sponge_addresses",
                                                "peerlan_sponge_bgp_attempts",
                                                "peerlan_offenders",
                                                "peerlan_offender_frames_per_minute",
                                                "peerlan_dup_ip_events_total",
                                                "peerlan_dup_mac_events_total",
                                                "peerlan_port_mac_violations_total",
                                                "peerlan_port_drops_total",
                                                "peerlan_port_closures_total",
                                                "peerlan_port_guard_state",
                                                "peerlan_port_limit_bits",
                                                "peerlan_port_limit_packets",
                                                "peerlan_port_violations_total",
                                                "peerlan_underlay_protected",
                                                "peerlan_vtep_frames_total"};
  for (const auto& [name, about] : described)
    EXPECT_TRUE(seen.contains(name) || kOfDomains.contains(name)) << name;
}
