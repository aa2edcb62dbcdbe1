// SPDX-License-Identifier: GPL-2.0-or-later
// A route server of the daemon, without a data path, and a BGP speaker as its neighbor, on the
// loopback and in one loop.
#pragma once
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bgp/io/speaker.h"
#include "config/settings.h"
#include "daemon/app.h"
#include "daemon/views.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "tests/run_until.h"

namespace peerland::test {

namespace json = boost::json;
using namespace std::chrono_literals;

inline net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

inline evpn::MacIp mac_route(uint32_t number, uint32_t vni = 100) {
  evpn::MacIp route;
  route.rd = net::RouteDistinguisher::parse("10.0.0.2:100").value();
  std::array<uint8_t, 6> octets{2,
                                0,
                                static_cast<uint8_t>(number >> 24),
                                static_cast<uint8_t>(number >> 16),
                                static_cast<uint8_t>(number >> 8),
                                static_cast<uint8_t>(number)};
  route.mac = net::MacAddress::from_bytes(octets);
  route.label1 = vni;
  return route;
}

inline std::shared_ptr<bgp::Attributes> attributes(const char* next_hop = "10.0.0.2") {
  auto made = std::make_shared<bgp::Attributes>();
  made->next_hop = ip(next_hop);
  made->extended_communities = {evpn::make_encapsulation(evpn::kEncapsulationVxlan)};
  return made;
}

class DaemonTest : public testing::Test {
 protected:
  DaemonTest() {
    if (spdlog::get("quiet") == nullptr && std::getenv("BGP_TEST_LOG") == nullptr)
      spdlog::set_default_logger(spdlog::null_logger_mt("quiet"));
    folder_ =
        std::filesystem::temp_directory_path() / ("peerlan-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~DaemonTest() override {
    peers.clear();
    app.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Runs the loop until the condition holds; false when it did not within 20 s.
  bool until(const std::function<bool()>& condition) {
    return test_support::run_until(io, condition);
  }

  // The daemon at 127.0.0.1, with clients 127.0.0.2, .3, ...
  config::NodeSettings node(int clients = 1) {
    config::NodeSettings s;
    s.name = "rs1";
    s.bgp.local_as = net::AsNumber(65000);
    s.bgp.router_id = ip("10.0.0.9");
    s.bgp.selection_deferral = 0s;
    s.bgp.listen = {{ip("127.0.0.1"), 0}};
    s.control_socket = (folder_ / "control").string();
    for (int i = 0; i < clients; ++i) {
      bgp::NeighborSettings n;
      n.address = ip(("127.0.0." + std::to_string(2 + i)).c_str());
      n.description = "client" + std::to_string(1 + i);
      n.remote_as = net::AsNumber(65000);
      n.role = bgp::NeighborRole::ReflectorClient;
      n.passive = true;
      n.connect_retry = 1s;
      s.bgp.neighbors.push_back(n);
    }
    return s;
  }
  void start(const config::NodeSettings& settings) {
    app = std::make_unique<App>(io, settings, "test.yaml");
    const auto started = app->start();
    ASSERT_TRUE(started) << started.error();
  }
  // The client at 127.0.0.`number`.
  bgp::io::Speaker& add_peer(int number) {
    const std::string address = "127.0.0." + std::to_string(number);
    bgp::Settings s;
    s.local_as = net::AsNumber(65000);
    s.router_id = ip(("10.0.0." + std::to_string(number)).c_str());
    bgp::NeighborSettings n;
    n.address = ip("127.0.0.1");
    n.local_address = ip(address.c_str());
    n.remote_as = net::AsNumber(65000);
    n.port = app->speaker().listening().at(0).port;
    n.connect_retry = 1s;
    s.neighbors = {n};
    peers.push_back(std::make_unique<bgp::io::Speaker>(io, evpn::family(), s));
    EXPECT_TRUE(peers.back()->start());
    return *peers.back();
  }
  static void announce(bgp::io::Speaker& speaker, const evpn::Route& route,
                       const bgp::AttributesPtr& with = attributes()) {
    const auto encoded = evpn::encode_item(route);
    speaker.originate(encoded.item(), with);
  }
  static void withdraw(bgp::io::Speaker& speaker, const evpn::Route& route) {
    const auto encoded = evpn::encode_item(route);
    speaker.withdraw(encoded.item());
  }
  bool routes_are(std::size_t count) {
    return until([&] { return app->speaker().rib().route_count() == count; });
  }

  // The document, or {"error": ...}.
  json::object show(const std::string& what, const json::object& arguments = {}) {
    auto answer = peerland::show(*app, what, arguments);
    if (!answer) return {{"error", answer.error()}};
    std::string text;
    pieces = 0;
    while (const auto piece = (*answer)()) {
      text += *piece;
      ++pieces;
    }
    return json::parse(text).as_object();
  }
  std::string error_of(const std::string& what, const json::object& arguments) {
    const json::object document = show(what, arguments);
    return document.contains("error") ? std::string(document.at("error").as_string()) : "";
  }

  boost::asio::io_context io;
  std::unique_ptr<App> app;
  std::vector<std::unique_ptr<bgp::io::Speaker>> peers;
  std::size_t pieces = 0;
  std::filesystem::path folder_;
};

}  // namespace peerland::test
