// SPDX-License-Identifier: GPL-2.0-or-later
// Speakers with real sockets on the loopback: exchange of routes, graceful restart, TCP-MD5, GTSM,
// reconfiguration, limits, and a scripted peer that misbehaves.
#include <gmock/gmock.h>
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

using namespace bgp;
using namespace bgp::io;
using namespace bgp::test;
using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using net::Bytes;
using testing::HasSubstr;

namespace {

net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

class SpeakerTest : public testing::Test {
 protected:
  SpeakerTest() {
    if (spdlog::get("bgp") == nullptr && std::getenv("BGP_TEST_LOG") == nullptr)
      spdlog::null_logger_mt("bgp");
  }

  // Runs the loop until the condition holds; false when it did not within 20 s.
  bool until(const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      io.restart();
      io.run_one_for(20ms);
    }
    return true;
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
    const Bytes nlri = fake_nlri(key);
    auto attributes = std::make_shared<Attributes>();
    attributes->next_hop = ip(next_hop);
    attributes->extended_communities = {{0x06, 0x7f, 1, 2, 3, 4, 5, 6}};
    speaker->originate(fake_item(nlri), attributes);
  }
  void withdraw(uint32_t key) {
    const Bytes nlri = fake_nlri(key);
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

  std::map<Bytes, AttributesPtr> routes;
  std::size_t change_count = 0;
  bool converged = false;
  std::unique_ptr<Speaker> speaker;
  std::expected<void, StartError> started;
};

NeighborSettings neighbor(const char* address, const char* local) {
  NeighborSettings n;
  n.address = ip(address);
  n.local_address = ip(local);
  n.remote_as = net::AsNumber(65000);
  n.connect_retry = 1s;
  return n;
}

Settings base(const char* router_id) {
  Settings s;
  s.local_as = net::AsNumber(65000);
  s.router_id = ip(router_id);
  return s;
}

// Listens on 127.0.0.1 and waits for 127.0.0.2, .3, ...
Settings reflector(int clients = 1) {
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
Settings client(int number, uint16_t port) {
  Settings s = base(("10.0.0." + std::to_string(number)).c_str());
  auto n = neighbor("127.0.0.1", ("127.0.0." + std::to_string(number)).c_str());
  n.port = port;
  s.neighbors = {n};
  return s;
}

// A peer that says only what it is told.
struct Script {
  Script(boost::asio::io_context& io, const char* local, uint16_t port) : socket(io) {
    socket.open(tcp::v4());
    socket.bind({boost::asio::ip::make_address(local), 0});
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    socket.non_blocking(true);
  }
  void send(const Bytes& bytes) { boost::asio::write(socket, boost::asio::buffer(bytes)); }
  // What has arrived so far, as messages.
  std::vector<Bytes> poll() {
    Bytes chunk(65536);
    for (;;) {
      boost::system::error_code error;
      const auto count = socket.read_some(boost::asio::buffer(chunk), error);
      closed |= error && error != boost::asio::error::would_block;
      if (error) break;
      input.insert(input.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count));
    }
    std::vector<Bytes> out;
    auto at = input.begin();
    while (input.end() - at >= static_cast<std::ptrdiff_t>(kHeaderSize)) {
      const std::ptrdiff_t size = at[16] << 8 | at[17];
      if (input.end() - at < size) break;
      out.emplace_back(at, at + size);
      at += size;
    }
    input.erase(input.begin(), at);
    for (const Bytes& message : out) seen.push_back(message);
    return out;
  }
  std::optional<Notification> notification() {
    poll();
    for (const Bytes& message : seen)
      if (message[18] == 3) return *decode_notification(std::span(message).subspan(kHeaderSize));
    return std::nullopt;
  }
  static Bytes open(uint32_t router_id) {
    Open open;
    open.as_number = 65000;
    open.hold_time = 90;
    open.router_id = router_id;
    open.capabilities.multiprotocol = {kL2vpnEvpn};
    open.capabilities.four_octet_as = 65000;
    return encode_open(open);
  }
  tcp::socket socket;
  Bytes input;
  std::vector<Bytes> seen;
  bool closed = false;
};

}  // namespace

TEST_F(SpeakerTest, TwoExchangeRoutes) {
  Node a(io, reflector());
  Node b(io, client(2, a.port()));
  a.originate(1);
  b.originate(2, "192.0.2.2");
  ASSERT_TRUE(until([&] { return a.has(2) && b.has(1) && a.converged && b.converged; }));
  EXPECT_EQ(a.routes[fake_nlri(2)]->next_hop, ip("192.0.2.2"));
  EXPECT_EQ(a.routes[fake_nlri(2)]->extended_communities[0][1], 0x7f);
  const NeighborView view = a.view("127.0.0.2");
  EXPECT_EQ(view.state, "Established");
  EXPECT_EQ(view.remote_router_id, ip("10.0.0.2"));
  EXPECT_EQ(view.hold_time, 90s);
  EXPECT_THAT(view.capabilities_received, testing::Contains("multiprotocol 25/70"));
  EXPECT_EQ(view.counts.received, 1u);
  EXPECT_EQ(view.counts.advertised, 1u);
  EXPECT_GE(view.updates_in, 2u);  // the route and End-of-RIB
  EXPECT_EQ(a.speaker->peer_name(view.peer), "127.0.0.2");
  b.withdraw(2);
  ASSERT_TRUE(until([&] { return !a.has(2); }));
  a.originate(3);
  ASSERT_TRUE(until([&] { return b.has(3); }));
}

TEST_F(SpeakerTest, ManyRoutesThroughAReflector) {
  Node rr(io, reflector(2));
  Node b(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  constexpr uint32_t kRoutes = 20000;
  for (uint32_t i = 0; i < kRoutes; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return c.routes.size() == kRoutes; }));
  EXPECT_EQ(rr.view("127.0.0.3").counts.advertised, kRoutes);
}

// A PE is killed and comes back. Nobody but the reflector notices.
TEST_F(SpeakerTest, GracefulRestartShowsNoWithdraw) {
  Node rr(io, reflector(2));
  auto b = std::make_unique<Node>(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  for (uint32_t i = 0; i < 100; ++i) b->originate(i);
  ASSERT_TRUE(until([&] { return c.routes.size() == 100 && rr.converged; }));
  const auto seen = c.change_count;

  b.reset();  // the sockets close without a word
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").stale_kept; }));
  EXPECT_EQ(rr.view("127.0.0.2").counts.stale, 100u);
  EXPECT_EQ(rr.view("127.0.0.2").last_error, "connection closed");
  EXPECT_EQ(c.routes.size(), 100u);

  b = std::make_unique<Node>(io, client(2, rr.port()));
  for (uint32_t i = 0; i < 99; ++i) b->originate(i);  // but not the last
  ASSERT_TRUE(until([&] { return !c.has(99); }));
  EXPECT_EQ(c.routes.size(), 99u);
  EXPECT_EQ(c.change_count, seen + 1);  // that one withdraw and nothing else
  EXPECT_FALSE(rr.view("127.0.0.2").stale_kept);
  EXPECT_EQ(rr.view("127.0.0.2").counts.stale, 0u);
  EXPECT_TRUE(until([&] { return b->converged; }));
  EXPECT_THAT(rr.view("127.0.0.2").capabilities_received,
              testing::Contains(HasSubstr("restarted, notification, 25/70 forwarding preserved")));
}

// The reflector is restarted. The client that is back first must not take the reflector's
// End-of-RIB for the word that the other's routes are gone.
TEST_F(SpeakerTest, ReflectorRestartShowsNoWithdraw) {
  Settings settings = reflector(2);
  auto rr = std::make_unique<Node>(io, settings);
  settings.listen[0].port = rr->port();
  Settings late = client(2, rr->port());
  late.neighbors[0].connect_retry = 3s;
  Node b(io, late);
  Node c(io, client(3, rr->port()));
  for (uint32_t i = 0; i < 100; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return c.routes.size() == 100 && c.converged && rr->converged; }));
  const auto seen = c.change_count;
  rr.reset();
  ASSERT_TRUE(until([&] { return c.view("127.0.0.1").stale_kept; }));
  rr = std::make_unique<Node>(io, settings);
  ASSERT_TRUE(until([&] { return rr->converged && c.view("127.0.0.1").counts.stale == 0; }));
  EXPECT_EQ(c.change_count, seen);
  EXPECT_EQ(c.routes.size(), 100u);
}

// A client that never comes holds the others up no longer than selection_deferral.
TEST_F(SpeakerTest, DeferralEnds) {
  Settings settings = reflector(3);
  settings.selection_deferral = 1s;
  Node rr(io, settings);
  Node b(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  b.originate(1);
  EXPECT_TRUE(until([&] { return c.has(1); }));
  EXPECT_FALSE(rr.converged);
}

TEST_F(SpeakerTest, RestartTimeEnds) {
  Node rr(io, reflector(2));
  Settings settings = client(2, rr.port());
  settings.neighbors[0].restart_time = 1s;
  auto b = std::make_unique<Node>(io, settings);
  Node c(io, client(3, rr.port()));
  b->originate(1);
  ASSERT_TRUE(until([&] { return c.has(1); }));
  b.reset();
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").stale_kept; }));
  EXPECT_TRUE(c.has(1));
  EXPECT_TRUE(until([&] { return !c.has(1); }));
  EXPECT_FALSE(rr.view("127.0.0.2").stale_kept);
}

TEST_F(SpeakerTest, ConvergesByTimeWhenANeighborStaysAway) {
  Settings settings = reflector();
  settings.neighbors[0].restart_time = 1s;
  Node rr(io, settings);
  EXPECT_FALSE(rr.converged);
  EXPECT_TRUE(until([&] { return rr.converged; }));
}

TEST_F(SpeakerTest, StopWithText) {
  Node rr(io, reflector());
  Node b(io, client(2, rr.port()));
  b.originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));
  bool done = false;
  b.speaker->stop(false, "new kernel", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && !rr.up("127.0.0.2"); }));
  EXPECT_EQ(rr.view("127.0.0.2").last_error,
            "received Cease/Administrative Shutdown: \"new kernel\"");
  EXPECT_TRUE(until([&] { return !rr.has(1); }));
  EXPECT_TRUE(b.has(1));  // stopping is not told as a change
}

TEST_F(SpeakerTest, GracefulStopKeepsRoutes) {
  Node rr(io, reflector());
  Node b(io, client(2, rr.port()));
  b.originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));
  bool done = false;
  b.speaker->stop(true, "", [&] { done = true; });
  ASSERT_TRUE(until([&] { return done && rr.view("127.0.0.2").stale_kept; }));
  EXPECT_TRUE(rr.has(1));
}

TEST_F(SpeakerTest, Md5) {
  Settings right = reflector(2);
  right.neighbors[0].password = "secret";
  Settings wrong = right;
  wrong.neighbors[0].password = "other";
  Node rr(io, wrong);
  Settings settings = client(2, rr.port());
  settings.neighbors[0].password = "secret";
  Node b(io, settings);
  Node c(io, client(3, rr.port()));  // without a key, beside it
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.3") && b.view("127.0.0.1").state == "Connect"; }));
  run_for(300ms);
  EXPECT_FALSE(b.up("127.0.0.1"));
  ASSERT_TRUE(rr.speaker->reconfigure(right));
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1"); }));
  EXPECT_EQ(rr.view("127.0.0.3").established_count, 1u);
  // Without its key the peer is not heard any more.
  settings.neighbors[0].password.clear();
  ASSERT_TRUE(b.speaker->reconfigure(settings));
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").state == "Connect"; }));
  run_for(300ms);
  EXPECT_FALSE(b.up("127.0.0.1"));
  right.neighbors[0].password.clear();
  ASSERT_TRUE(rr.speaker->reconfigure(right));
  EXPECT_TRUE(until([&] { return b.up("127.0.0.1"); }));
}

TEST_F(SpeakerTest, Gtsm) {
  Settings server = reflector();
  server.neighbors[0].ttl_security_hops = 1;
  Node rr(io, server);
  Settings settings = client(2, rr.port());
  settings.neighbors[0].ttl = 64;  // too far away
  Node b(io, settings);
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").state == "OpenSent"; }));
  run_for(300ms);
  EXPECT_FALSE(b.up("127.0.0.1"));
  settings.neighbors[0].ttl = 0;
  settings.neighbors[0].ttl_security_hops = 1;
  ASSERT_TRUE(b.speaker->reconfigure(settings));
  EXPECT_TRUE(until([&] { return b.up("127.0.0.1"); }));
}

TEST_F(SpeakerTest, ExternalSession) {
  Settings server = reflector();
  server.neighbors[0].remote_as = net::AsNumber(4200000001);
  server.neighbors[0].role = NeighborRole::RouteServerClient;
  Node rs(io, server);
  Settings settings = client(2, rs.port());
  settings.local_as = net::AsNumber(4200000001);
  Node b(io, settings);
  b.originate(1);
  ASSERT_TRUE(until([&] { return rs.has(1); }));
  EXPECT_EQ(rs.routes[fake_nlri(1)]->as_path,
            (std::vector<AsPathSegment>{{AsPathSegment::Sequence, {4200000001}}}));
}

TEST_F(SpeakerTest, IPv6WithMd5AndGtsm) {
  Settings server = base("10.0.0.9");
  server.listen = {{ip("::1"), 0}};
  auto n = neighbor("::1", "::1");
  n.password = "secret";
  n.ttl_security_hops = 1;
  n.passive = true;
  server.neighbors = {n};
  Node a(io, server);
  Settings settings = base("10.0.0.1");
  n.passive = false;
  n.port = a.port();
  settings.neighbors = {n};
  Node b(io, settings);
  b.originate(1, "2001:db8::1");
  ASSERT_TRUE(until([&] { return a.has(1); }));
  EXPECT_EQ(a.routes[fake_nlri(1)]->next_hop, ip("2001:db8::1"));
}

TEST_F(SpeakerTest, BothConnect) {
  Settings left = base("10.0.0.1");
  left.listen = {{ip("127.0.0.11"), 0}};
  Settings right = base("10.0.0.2");
  right.listen = {{ip("127.0.0.12"), 0}};
  left.neighbors = {neighbor("127.0.0.12", "127.0.0.11")};
  right.neighbors = {neighbor("127.0.0.11", "127.0.0.12")};
  // The ports must be known to both before either starts.
  const auto free_port = [&](const char* address) {
    tcp::acceptor acceptor(io, {boost::asio::ip::make_address(address), 0});
    return acceptor.local_endpoint().port();
  };
  left.listen[0].port = right.neighbors[0].port = free_port("127.0.0.11");
  right.listen[0].port = left.neighbors[0].port = free_port("127.0.0.12");
  Node a(io, left);
  Node b(io, right);
  a.originate(1);
  b.originate(2);
  ASSERT_TRUE(until([&] { return a.has(2) && b.has(1); }));
  run_for(200ms);
  EXPECT_TRUE(a.up("127.0.0.12") && b.up("127.0.0.11"));
}

TEST_F(SpeakerTest, Reconfigure) {
  Node rr(io, reflector(2));
  Node b(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  c.originate(3);
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && b.has(3); }));

  Settings settings = reflector(2);
  settings.neighbors[0].description = "pe2";
  ASSERT_TRUE(rr.speaker->reconfigure(settings));
  EXPECT_TRUE(rr.up("127.0.0.2"));
  EXPECT_EQ(rr.speaker->peer_name(rr.view("127.0.0.2").peer), "127.0.0.2 (pe2)");

  settings.neighbors[0].hold_time = 30s;
  ASSERT_TRUE(rr.speaker->reconfigure(settings));
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").hold_time == 30s && b.up("127.0.0.1"); }));
  EXPECT_EQ(b.view("127.0.0.1").last_error, "received Cease/Other Configuration Change");
  EXPECT_EQ(rr.view("127.0.0.3").established_count, 1u);
  ASSERT_TRUE(until([&] { return b.has(3); }));

  Settings refused = settings;
  refused.local_as = net::AsNumber(1);
  EXPECT_EQ(rr.speaker->reconfigure(refused).error().what, "local AS can't change while running");
  refused = settings;
  refused.router_id = ip("10.9.9.9");
  EXPECT_FALSE(rr.speaker->reconfigure(refused));
  refused = settings;
  refused.listen.clear();
  EXPECT_FALSE(rr.speaker->reconfigure(refused));
  refused = settings;
  refused.neighbors.push_back(settings.neighbors[0]);
  EXPECT_EQ(rr.speaker->reconfigure(refused).error().what, "neighbor 127.0.0.2 twice");
  EXPECT_TRUE(rr.up("127.0.0.2"));

  settings.neighbors.erase(settings.neighbors.begin() + 1);
  ASSERT_TRUE(rr.speaker->reconfigure(settings));
  ASSERT_TRUE(until([&] { return !b.has(3) && !c.up("127.0.0.1"); }));
  EXPECT_EQ(c.view("127.0.0.1").last_error, "received Cease/Peer De-configured");
  EXPECT_EQ(rr.speaker->neighbors().size(), 1u);

  ASSERT_TRUE(rr.speaker->reconfigure(reflector(2)));
  EXPECT_TRUE(until([&] { return c.up("127.0.0.1") && b.has(3); }));
}

TEST_F(SpeakerTest, DisabledNeighbor) {
  Node rr(io, reflector());
  Node b(io, client(2, rr.port()));
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && b.up("127.0.0.1"); }));
  Settings settings = reflector();
  settings.neighbors[0].enabled = false;
  ASSERT_TRUE(rr.speaker->reconfigure(settings));
  ASSERT_TRUE(until([&] { return !b.up("127.0.0.1"); }));
  EXPECT_EQ(b.view("127.0.0.1").last_error, "received Cease/Administrative Shutdown");
  ASSERT_TRUE(until([&] { return rr.speaker->rejected_connections() > 0; }));
  EXPECT_EQ(rr.view("127.0.0.2").state, "Idle");
  ASSERT_TRUE(rr.speaker->reconfigure(reflector()));
  EXPECT_TRUE(until([&] { return rr.up("127.0.0.2"); }));
}

TEST_F(SpeakerTest, MaximumPrefixes) {
  Settings settings = reflector(2);
  settings.neighbors[0].max_prefixes = 3;
  Node rr(io, settings);
  Node b(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  for (uint32_t i = 0; i < 3; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return c.routes.size() == 3; }));
  EXPECT_TRUE(rr.up("127.0.0.2"));
  b.originate(3);
  ASSERT_TRUE(until([&] { return !b.up("127.0.0.1") && c.routes.empty(); }));
  EXPECT_EQ(b.view("127.0.0.1").last_error, "received Cease/Maximum Number of Prefixes Reached");
  EXPECT_EQ(b.view("127.0.0.1").last_error_data, "00194600000003");
  EXPECT_EQ(rr.view("127.0.0.2").state, "Idle");
  EXPECT_TRUE(rr.up("127.0.0.3"));
}

TEST_F(SpeakerTest, GarbageAndStrangers) {
  Node rr(io, reflector(2));
  Node c(io, client(3, rr.port()));
  c.originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));

  Script stranger(io, "127.0.0.77", rr.port());
  ASSERT_TRUE(until([&] { return stranger.poll(), stranger.closed; }));
  EXPECT_TRUE(stranger.seen.empty());
  EXPECT_EQ(rr.speaker->rejected_connections(), 1u);

  Script garbage(io, "127.0.0.2", rr.port());
  garbage.send(Bytes(5000, 0x47));
  ASSERT_TRUE(until([&] { return garbage.notification().has_value(); }));
  EXPECT_EQ(garbage.notification(), (Notification{ErrorCode::MessageHeader, 1, {}}));
  ASSERT_TRUE(until([&] { return garbage.poll(), garbage.closed; }));
  EXPECT_EQ(rr.view("127.0.0.2").last_error,
            "sent Message Header Error/Connection Not Synchronized");
  EXPECT_TRUE(rr.up("127.0.0.3"));
  EXPECT_TRUE(rr.has(1));
}

TEST_F(SpeakerTest, MalformedUpdatesStayWhereTheyAre) {
  Node rr(io, reflector(2));
  Node c(io, client(3, rr.port()));
  Script peer(io, "127.0.0.2", rr.port());
  peer.send(Script::open(0x0a000002));
  peer.send(encode_keepalive());
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && rr.up("127.0.0.3"); }));
  const Bytes good = hex("40010100 400200 400504 00000064");
  const auto announce = [&](const Bytes& nlri, const Bytes& attributes) {
    const std::span<const uint8_t> view = nlri;
    return encode_reach(kL2vpnEvpn, ip("192.0.2.2"), attributes, {&view, 1}, kMaxMessage).message;
  };
  // In pieces, as a network may deliver it.
  const Bytes first = announce(fake_nlri(1), good);
  peer.send(Bytes(first.begin(), first.begin() + 10));
  run_for(20ms);
  peer.send(Bytes(first.begin() + 10, first.end()));
  ASSERT_TRUE(until([&] { return c.has(1); }));
  // Treated as withdraw; one NLRI discarded; an attribute discarded.
  peer.send(announce(fake_nlri(1), join({good, hex("c01007 00000000000000")})));
  ASSERT_TRUE(until([&] { return !c.has(1); }));
  peer.send(announce(join({hex("6300"), fake_nlri(2)}), good));
  ASSERT_TRUE(until([&] { return c.has(2); }));
  peer.send(announce(fake_nlri(3), join({good, hex("c00703 000000")})));
  ASSERT_TRUE(until([&] { return c.has(3); }));
  const NeighborView view = rr.view("127.0.0.2");
  EXPECT_EQ(view.treated_as_withdraw, 1u);
  EXPECT_EQ(view.nlri_discarded, 1u);
  EXPECT_EQ(view.attributes_discarded, 1u);
  EXPECT_TRUE(rr.up("127.0.0.2"));
  // Framing: this session ends, with the attribute in the NOTIFICATION, and no other.
  peer.send(announce(hex("01ff00"), good));
  ASSERT_TRUE(until([&] { return peer.notification().has_value(); }));
  EXPECT_EQ(peer.notification()->subcode, 9);
  EXPECT_EQ(rr.view("127.0.0.2").last_error, "sent UPDATE Message Error/Optional Attribute Error");
  EXPECT_THAT(rr.view("127.0.0.2").last_error_data, HasSubstr("01ff00"));
  ASSERT_TRUE(until([&] { return c.routes.empty(); }));
  EXPECT_EQ(c.view("127.0.0.1").established_count, 1u);
  EXPECT_TRUE(c.up("127.0.0.1"));
}

// Who does not read does not hold up the others, and costs no memory beyond the socket's queue.
TEST_F(SpeakerTest, SlowReader) {
  Node rr(io, reflector(3));
  Script slow(io, "127.0.0.2", rr.port());
  slow.send(Script::open(0x0a000002));
  slow.send(encode_keepalive());
  Node c(io, client(3, rr.port()));
  Node d(io, client(4, rr.port()));
  ASSERT_TRUE(
      until([&] { return rr.up("127.0.0.2") && rr.up("127.0.0.3") && rr.up("127.0.0.4"); }));
  // More than the kernel buffers: 12 MB.
  constexpr uint32_t kRoutes = 60000;
  auto attributes = std::make_shared<Attributes>();
  attributes->next_hop = ip("192.0.2.4");
  for (uint32_t i = 0; i < kRoutes; ++i) {
    Bytes nlri = fake_nlri(i);
    nlri[1] = 200;
    nlri.resize(202);
    d.speaker->originate(fake_item(nlri), attributes);
  }
  ASSERT_TRUE(until([&] { return c.routes.size() == kRoutes; }));
  EXPECT_GT(rr.view("127.0.0.2").counts.queued, 0u);
  EXPECT_EQ(rr.view("127.0.0.3").counts.queued, 0u);
  // Once it reads it gets all of it.
  std::size_t taken = 0;
  std::size_t last = 0;
  ASSERT_TRUE(until([&] {
    for (const Bytes& message : slow.poll()) {
      const auto update = decode_update(std::span(message).subspan(kHeaderSize), fake_family(), {});
      if (message[18] == 2 && update) taken += update->reach.size();
    }
    slow.seen.clear();
    last = taken;
    return last == kRoutes;
  })) << last;
}

TEST_F(SpeakerTest, RouteRefresh) {
  Node rr(io, reflector());
  Script peer(io, "127.0.0.2", rr.port());
  rr.originate(1);
  peer.send(Script::open(0x0a000002));
  peer.send(encode_keepalive());
  const auto updates = [&] {
    peer.poll();
    return std::ranges::count_if(peer.seen, [](const Bytes& m) { return m[18] == 2; });
  };
  ASSERT_TRUE(until([&] { return updates() == 2; }));  // the route, End-of-RIB
  EXPECT_EQ(peer.seen.back(), encode_end_of_rib(kL2vpnEvpn));
  peer.send(encode_route_refresh(kL2vpnEvpn, 0));
  EXPECT_TRUE(until([&] { return updates() == 3; }));
}

TEST_F(SpeakerTest, PortInUse) {
  Node rr(io, reflector());
  Settings settings = reflector();
  settings.listen[0].port = rr.port();
  Speaker second(io, fake_family(), settings);
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().what,
            "listen on 127.0.0.1 port " + std::to_string(rr.port()) + ": Address already in use");
  EXPECT_TRUE(second.listening().empty());
}

TEST_F(SpeakerTest, NoNeighborsConvergeAtOnce) {
  Node alone(io, base("10.0.0.1"));
  EXPECT_TRUE(until([&] { return alone.converged; }));
}
