// SPDX-License-Identifier: GPL-2.0-or-later
// Speakers with real sockets on the loopback, and a scripted peer.
#pragma once
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <map>

#include "bgp/io/speaker.h"
#include "bgp/message.h"
#include "fake_family.h"
#include "tests/run_until.h"

namespace bgp::test {

using namespace bgp::io;
using namespace std::chrono_literals;

inline net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

class SpeakerTest : public testing::Test {
 protected:
  SpeakerTest() {
    if (spdlog::get("bgp") == nullptr && std::getenv("BGP_TEST_LOG") == nullptr)
      spdlog::null_logger_mt("bgp");
  }

  // Runs the loop until the condition holds; false when it did not within 20 s.
  bool until(const std::function<bool()>& condition) {
    return test_support::run_until(io, condition);
  }
  void run_for(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }

  boost::asio::io_context io;
};

// A speaker and what it has learned.
struct Node {
  Node(boost::asio::io_context& io, const Settings& settings)
      : speaker(std::make_unique<Speaker>(io, fake_family(), settings)) {
    speaker->on_changes([this](const std::vector<RibChange>& changes) {
      for (const RibChange& change : changes) {
        ++change_count;
        if (change.attributes)
          routes[{change.nlri.begin(), change.nlri.end()}] = change.attributes;
        else
          routes.erase({change.nlri.begin(), change.nlri.end()});
      }
    });
    speaker->on_converged([this] { converged = true; });
    started = speaker->start();
    EXPECT_TRUE(started) << started.error().what;
  }
  void originate(uint32_t key, const char* next_hop = "192.0.2.1") {
    const net::Bytes nlri = fake_nlri(key);
    auto attributes = std::make_shared<Attributes>();
    attributes->next_hop = ip(next_hop);
    attributes->extended_communities = {{0x06, 0x7f, 1, 2, 3, 4, 5, 6}};
    speaker->originate(fake_item(nlri), attributes);
  }
  void withdraw(uint32_t key) {
    const net::Bytes nlri = fake_nlri(key);
    speaker->withdraw(fake_item(nlri));
  }
  NeighborView view(const char* address) const {
    for (NeighborView& view : speaker->neighbors())
      if (view.settings.address == ip(address)) return view;
    ADD_FAILURE() << "no neighbor " << address;
    return {};
  }
  bool up(const char* address) const { return view(address).state == "Established"; }
  bool has(uint32_t key) const { return routes.contains(fake_nlri(key)); }
  uint16_t port() const { return speaker->listening().at(0).port; }

  std::map<net::Bytes, AttributesPtr> routes;
  std::size_t change_count = 0;
  bool converged = false;
  std::unique_ptr<Speaker> speaker;
  std::expected<void, StartError> started;
};

inline NeighborSettings neighbor(const char* address, const char* local) {
  NeighborSettings n;
  n.address = ip(address);
  n.local_address = ip(local);
  n.remote_as = net::AsNumber(65000);
  n.connect_retry = 1s;
  return n;
}

inline Settings base(const char* router_id) {
  Settings s;
  s.local_as = net::AsNumber(65000);
  s.router_id = ip(router_id);
  return s;
}

// Listens on 127.0.0.1 and waits for 127.0.0.2, .3, ...
inline Settings reflector(int clients = 1) {
  Settings s = base("10.0.0.9");
  s.listen = {{ip("127.0.0.1"), 0}};
  for (int i = 0; i < clients; ++i) {
    auto n = neighbor(("127.0.0." + std::to_string(2 + i)).c_str(), "127.0.0.1");
    n.passive = true;
    n.role = NeighborRole::ReflectorClient;
    s.neighbors.push_back(n);
  }
  return s;
}

// Connects from 127.0.0.<number> to the reflector.
inline Settings client(int number, uint16_t port) {
  Settings s = base(("10.0.0." + std::to_string(number)).c_str());
  auto n = neighbor("127.0.0.1", ("127.0.0." + std::to_string(number)).c_str());
  n.port = port;
  s.neighbors = {n};
  return s;
}

// A peer that says only what it is told.
struct Script {
  Script(boost::asio::io_context& io, const char* local, uint16_t port) : socket(io) {
    socket.open(boost::asio::ip::tcp::v4());
    socket.bind({boost::asio::ip::make_address(local), 0});
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    socket.non_blocking(true);
  }
  void send(const net::Bytes& bytes) { boost::asio::write(socket, boost::asio::buffer(bytes)); }
  // What has arrived so far, as messages.
  std::vector<net::Bytes> poll() {
    net::Bytes chunk(65536);
    for (;;) {
      boost::system::error_code error;
      const auto count = socket.read_some(boost::asio::buffer(chunk), error);
      closed |= error && error != boost::asio::error::would_block;
      if (error) break;
      input.insert(input.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count));
    }
    std::vector<net::Bytes> out;
    auto at = input.begin();
    while (input.end() - at >= static_cast<std::ptrdiff_t>(kHeaderSize)) {
      const std::ptrdiff_t size = at[16] << 8 | at[17];
      if (input.end() - at < size) break;
      out.emplace_back(at, at + size);
      at += size;
    }
    input.erase(input.begin(), at);
    for (const net::Bytes& message : out) seen.push_back(message);
    return out;
  }
  std::optional<Notification> notification() {
    poll();
    for (const net::Bytes& message : seen)
      if (message[18] == 3) return *decode_notification(std::span(message).subspan(kHeaderSize));
    return std::nullopt;
  }
  static net::Bytes open(uint32_t router_id) {
    Open open;
    open.as_number = 65000;
    open.hold_time = 90;
    open.router_id = router_id;
    open.capabilities.multiprotocol = {kL2vpnEvpn};
    open.capabilities.four_octet_as = 65000;
    return encode_open(open);
  }
  boost::asio::ip::tcp::socket socket;
  net::Bytes input;
  std::vector<net::Bytes> seen;
  bool closed = false;
};

}  // namespace bgp::test
