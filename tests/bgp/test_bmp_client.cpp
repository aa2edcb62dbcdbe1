// SPDX-License-Identifier: GPL-2.0-or-later
// A BMP collector in the test's own loop beside a speaker with a neighbor: what it is told, in
// which order, after which of its own misdeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "bgp/io/bmp_client.h"
#include "bgp/io/speaker.h"
#include "bgp/message.h"
#include "fake_family.h"
#include "tests/run_until.h"

using namespace bgp;
using namespace bgp::io;
using namespace bgp::test;
using namespace std::chrono_literals;
using net::Bytes;

namespace {

net::IpAddress ip(const char* text) { return net::IpAddress::parse(text).value(); }

// One BMP message, taken apart.
struct Message {
  bmp::MessageType type = bmp::MessageType::Initiation;
  uint8_t peer_type = 0, flags = 0;
  Bytes address;
  Bytes body;  // behind the per-peer header
};

// Listens, and keeps what the first connection and its successors bring.
struct Collector {
  explicit Collector(boost::asio::io_context& loop)
      : io(loop), acceptor(loop, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)) {
    accept();
  }
  uint16_t port() const { return acceptor.local_endpoint().port(); }
  void accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket peer) {
      if (error) return;
      ++connections;
      socket = std::make_unique<tcp::socket>(std::move(peer));
      stream.clear();
      if (reads) read();
      accept();
    });
  }
  void read() {
    socket->async_read_some(boost::asio::buffer(buffer),
                            [this](const boost::system::error_code& error, std::size_t count) {
                              stream.insert(stream.end(), buffer, buffer + count);
                              ended = static_cast<bool>(error);
                              if (!error) read();
                            });
  }
  std::vector<Message> messages() const {
    std::vector<Message> all;
    net::ByteReader in(stream);
    while (in.remaining() >= bmp::kCommonHeader) {
      net::ByteReader peek = in;
      EXPECT_EQ(peek.u8(), bmp::kVersion);
      const uint32_t length = peek.u32();
      if (length > in.remaining()) break;
      net::ByteReader one = in.sub(length);
      one.bytes(5);
      Message message;
      message.type = static_cast<bmp::MessageType>(one.u8());
      if (message.type != bmp::MessageType::Initiation &&
          message.type != bmp::MessageType::Termination) {
        message.peer_type = one.u8();
        message.flags = one.u8();
        one.u64();
        const auto address = one.bytes(16);
        message.address.assign(address.begin(), address.end());
        one.bytes(16);
      }
      message.body.assign(one.rest().begin(), one.rest().end());
      all.push_back(std::move(message));
    }
    return all;
  }
  // What the collector would have in a table (peer type, flags): NLRI and next hop.
  std::map<Bytes, net::IpAddress> table(uint8_t peer_type, uint8_t flags) const {
    std::map<Bytes, net::IpAddress> routes;
    for (const Message& message : messages()) {
      if (message.type == bmp::MessageType::PeerDown) routes.clear();
      if (message.type != bmp::MessageType::RouteMonitoring || message.peer_type != peer_type ||
          message.flags != flags)
        continue;
      const auto update = decode_update(std::span(message.body).subspan(kHeaderSize), fake_family(),
                                        {.four_octet_as = true, .internal = true});
      EXPECT_TRUE(update);
      if (!update) continue;
      for (const NlriItem& item : update->unreach)
        routes.erase(Bytes(item.bytes.begin(), item.bytes.end()));
      for (const NlriItem& item : update->reach)
        routes[Bytes(item.bytes.begin(), item.bytes.end())] = update->attributes->next_hop;
    }
    return routes;
  }
  std::size_t count(bmp::MessageType type) const {
    return static_cast<std::size_t>(std::ranges::count(messages(), type, &Message::type));
  }

  boost::asio::io_context& io;
  tcp::acceptor acceptor;
  std::unique_ptr<tcp::socket> socket;
  uint8_t buffer[65536];
  Bytes stream;
  std::size_t connections = 0;
  bool reads = true, ended = false;
};

// The messages of a neighbor as they came and went.
struct Recorder : Tap {
  void received(const SessionInfo&, std::span<const uint8_t> message, const Update&) override {
    in.emplace_back(message.begin(), message.end());
  }
  void sent(const SessionInfo&, const std::shared_ptr<const Bytes>& message) override {
    out.push_back(*message);
  }
  std::vector<Bytes> in, out;
};

constexpr uint8_t kPostPolicy = 0x40, kOut = 0x10;

class BmpClientTest : public testing::Test {
 protected:
  BmpClientTest() {
    if (spdlog::get("bgp") == nullptr && std::getenv("BGP_TEST_LOG") == nullptr)
      spdlog::null_logger_mt("bgp");
    Settings s = base("10.0.0.9");
    s.listen = {{ip("127.0.0.1"), 0}};
    s.selection_deferral = 0s;
    for (const char* address : {"127.0.0.2", "127.0.0.3"}) {
      NeighborSettings n;
      n.address = ip(address);
      n.remote_as = net::AsNumber(65000);
      n.role = NeighborRole::ReflectorClient;
      n.passive = true;
      s.neighbors.push_back(n);
    }
    speaker = std::make_unique<Speaker>(io, fake_family(), s);
    EXPECT_TRUE(speaker->start());
    speaker->add_tap(recorder);
  }
  ~BmpClientTest() override {
    if (client) client->stop();
    client.reset();
    speaker->remove_tap(recorder);
  }

  static Settings base(const char* router_id) {
    Settings s;
    s.local_as = net::AsNumber(65000);
    s.router_id = ip(router_id);
    return s;
  }
  Speaker& add_peer(const char* address, const char* router_id) {
    Settings s = base(router_id);
    NeighborSettings n;
    n.address = ip("127.0.0.1");
    n.local_address = ip(address);
    n.remote_as = net::AsNumber(65000);
    n.port = speaker->listening().at(0).port;
    n.connect_retry = 1s;
    s.neighbors = {n};
    peers.push_back(std::make_unique<Speaker>(io, fake_family(), s));
    EXPECT_TRUE(peers.back()->start());
    return *peers.back();
  }
  void monitor(uint8_t tables, const std::function<void(BmpSettings&)>& edit = {}) {
    BmpSettings s;
    s.address = ip("127.0.0.1");
    s.port = collector.port();
    s.tables = tables;
    if (edit) edit(s);
    const BmpNode node{"rs1", "peerlan test", fake_family(), 65000, 0x0a000009};
    client = std::make_shared<BmpClient>(io, *speaker, node, s);
    client->start();
  }
  static void announce(Speaker& from, uint32_t key, const char* next_hop = "192.0.2.1") {
    const Bytes nlri = fake_nlri(key);
    auto attributes = std::make_shared<Attributes>();
    attributes->next_hop = ip(next_hop);
    from.originate(fake_item(nlri), attributes);
  }
  static void withdraw(Speaker& from, uint32_t key) {
    const Bytes nlri = fake_nlri(key);
    from.withdraw(fake_item(nlri));
  }
  bool until(const std::function<bool()>& condition) {
    return test_support::run_until(io, condition);
  }
  bool routes_are(std::size_t count) {
    return until([&] { return speaker->rib().route_count() == count; });
  }
  // Looks at the stream only when there is more of it.
  bool told(uint8_t peer_type, uint8_t flags, std::size_t count) {
    std::size_t seen = SIZE_MAX;
    return until([&] {
      return std::exchange(seen, collector.stream.size()) != collector.stream.size() &&
             collector.table(peer_type, flags).size() == count;
    });
  }

  boost::asio::io_context io;
  Collector collector{io};
  Recorder recorder;
  std::unique_ptr<Speaker> speaker;
  std::vector<std::unique_ptr<Speaker>> peers;
  std::shared_ptr<BmpClient> client;
};

}  // namespace

TEST_F(BmpClientTest, BeginsWithInitiationAndPeerUp) {
  add_peer("127.0.0.2", "10.0.0.2");
  ASSERT_TRUE(until([&] { return speaker->sessions().size() == 1; }));
  monitor(BmpSettings::InPre | BmpSettings::Loc);
  ASSERT_TRUE(until([&] { return collector.messages().size() >= 3; }));
  const auto messages = collector.messages();
  EXPECT_EQ(messages[0].type, bmp::MessageType::Initiation);
  EXPECT_EQ(messages[1].type, bmp::MessageType::PeerUp);
  EXPECT_EQ(messages[1].peer_type, 3);  // Loc-RIB
  EXPECT_EQ(messages[2].type, bmp::MessageType::PeerUp);
  EXPECT_EQ(messages[2].address, hex("0000000000000000000000007f000002"));
  // Local address and port, then both OPENs as they were on the wire.
  const auto session = speaker->sessions().at(0);
  EXPECT_EQ(session->open_sent[18], static_cast<uint8_t>(bgp::MessageType::Open));
  net::ByteWriter ports;
  ports.u16(session->local_port);
  ports.u16(session->remote_port);
  EXPECT_EQ(messages[2].body, join({hex("0000000000000000000000007f000001"), ports.take(),
                                    session->open_sent, session->open_received}));
}

TEST_F(BmpClientTest, PrePolicyIsVerbatim) {
  auto& peer = add_peer("127.0.0.2", "10.0.0.2");
  monitor(BmpSettings::InPre);
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::PeerUp) == 1; }));
  announce(peer, 1);
  announce(peer, 2, "192.0.2.2");
  ASSERT_TRUE(told(0, 0, 2));
  withdraw(peer, 1);
  ASSERT_TRUE(told(0, 0, 1));
  std::vector<Bytes> monitored;
  for (const Message& message : collector.messages())
    if (message.type == bmp::MessageType::RouteMonitoring) monitored.push_back(message.body);
  for (const Bytes& message : recorder.in) EXPECT_THAT(monitored, testing::Contains(message));
}

// A collector that comes late has the same tables as one that was there all the time.
TEST_F(BmpClientTest, LateCollectorIsToldEverything) {
  auto& a = add_peer("127.0.0.2", "10.0.0.2");
  auto& b = add_peer("127.0.0.3", "10.0.0.3");
  constexpr uint32_t kRoutes = 3000;
  for (uint32_t i = 0; i < kRoutes; ++i) announce(a, i, "192.0.2.1");
  for (uint32_t i = 0; i < 10; ++i) announce(b, i, "192.0.2.2");
  ASSERT_TRUE(until([&] { return speaker->rib().path_count() == kRoutes + 10; }));
  ASSERT_TRUE(until([&] { return peers[1]->rib().route_count() == kRoutes; }));
  monitor(BmpSettings::InPre | BmpSettings::InPost | BmpSettings::Loc | BmpSettings::OutPost);
  // Changes while the dump goes on.
  ASSERT_TRUE(until([&] { return !collector.messages().empty(); }));
  for (uint32_t i = 0; i < 100; ++i) withdraw(a, i + 1000);
  announce(b, 5, "192.0.2.5");
  ASSERT_TRUE(routes_are(kRoutes - 100));
  ASSERT_TRUE(told(3, 0, kRoutes - 100));
  std::size_t seen = 0;
  const auto ends =
      [&]() -> std::size_t {  // End-of-RIB: Loc-RIB, and three tables of two peers each
    if (std::exchange(seen, collector.stream.size()) == collector.stream.size()) return 0;
    const Bytes end = encode_end_of_rib(kL2vpnEvpn);
    std::set<std::tuple<uint8_t, uint8_t, Bytes>> tables;
    for (const Message& message : collector.messages())
      if (message.type == bmp::MessageType::RouteMonitoring && message.body == end)
        tables.insert({message.peer_type, message.flags, message.address});
    return tables.size();
  };
  ASSERT_TRUE(until([&] { return ends() == 7; }));
  EXPECT_EQ(client->view().state, "up");
  const auto pre = collector.table(0, 0), post = collector.table(0, kPostPolicy);
  EXPECT_EQ(pre.size(), kRoutes - 100);
  EXPECT_EQ(post, pre);
  const auto loc = collector.table(3, 0);
  EXPECT_EQ(loc.at(fake_nlri(5)), ip("192.0.2.1"));  // lower router id
  // Both clients have from us what the other announced.
  ASSERT_TRUE(told(0, kPostPolicy | kOut, kRoutes - 100));
}

TEST_F(BmpClientTest, SentUpdatesAreVerbatim) {
  auto& a = add_peer("127.0.0.2", "10.0.0.2");
  add_peer("127.0.0.3", "10.0.0.3");
  monitor(BmpSettings::OutPost);
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::PeerUp) == 2; }));
  announce(a, 1);
  ASSERT_TRUE(told(0, kPostPolicy | kOut, 1));
  std::vector<Bytes> monitored;
  for (const Message& message : collector.messages())
    if (message.type == bmp::MessageType::RouteMonitoring) monitored.push_back(message.body);
  EXPECT_THAT(monitored, testing::IsSupersetOf(recorder.out));
  EXPECT_FALSE(recorder.out.empty());
}

TEST_F(BmpClientTest, PostPolicyLeavesOutWhatIsRejected) {
  auto& peer = add_peer("127.0.0.2", "10.0.0.2");
  monitor(BmpSettings::InPre | BmpSettings::InPost);
  announce(peer, 1);
  ASSERT_TRUE(told(0, kPostPolicy, 1));
  // Comes back with our own cluster id in it: a loop.
  const Bytes nlri = fake_nlri(1);
  auto looped = std::make_shared<Attributes>();
  looped->next_hop = ip("192.0.2.1");
  looped->cluster_list = {0x0a000009};
  looped->originator_id = 0x01020304;
  peer.originate(fake_item(nlri), looped);
  EXPECT_TRUE(told(0, kPostPolicy, 0));
  EXPECT_EQ(collector.table(0, 0).size(), 1u);
}

TEST_F(BmpClientTest, PeerDownHasTheNotification) {
  auto& peer = add_peer("127.0.0.2", "10.0.0.2");
  monitor(BmpSettings::InPre);
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::PeerUp) == 1; }));
  bool done = false;
  peer.stop(false, "bye", [&] { done = true; });
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::PeerDown) == 1 && done; }));
  for (const Message& message : collector.messages()) {
    if (message.type != bmp::MessageType::PeerDown) continue;
    EXPECT_EQ(message.body, join({hex("03"), encode_notification(shutdown_notification(
                                                 cease::kAdministrativeShutdown, "bye"))}));
  }
}

TEST_F(BmpClientTest, StatisticsComeFromTimeToTime) {
  auto& peer = add_peer("127.0.0.2", "10.0.0.2");
  announce(peer, 1);
  ASSERT_TRUE(routes_are(1));
  monitor(BmpSettings::InPre | BmpSettings::Loc, [](BmpSettings& s) { s.statistics = 1s; });
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::StatisticsReport) >= 2; }));
  std::set<uint8_t> of;
  for (const Message& message : collector.messages())
    if (message.type == bmp::MessageType::StatisticsReport) of.insert(message.peer_type);
  EXPECT_EQ(of, (std::set<uint8_t>{0, 3}));
}

// A collector that does not read is let go, and told everything anew when it is back; the speaker
// goes on meanwhile.
TEST_F(BmpClientTest, ASlowCollectorIsDropped) {
  collector.reads = false;
  monitor(BmpSettings::InPre | BmpSettings::Loc, [](BmpSettings& s) {
    s.queue_limit = 200000;
    s.reconnect = 1s;
  });
  ASSERT_TRUE(until([&] { return client->view().connects == 1; }));
  auto& peer = add_peer("127.0.0.2", "10.0.0.2");
  // Each with a next hop of its own, so that it fills a message.
  uint32_t next = 0;
  ASSERT_TRUE(until([&] {
    if (speaker->rib().route_count() == next)
      for (int i = 0; i < 1000; ++i, ++next)
        announce(peer, next, net::to_string(net::IpAddress::v4(0x0b000000 + next)).c_str());
    return client->view().drops == 1;
  }));
  collector.reads = true;
  ASSERT_TRUE(routes_are(next));
  ASSERT_TRUE(until([&] { return collector.connections >= 2; }));
  ASSERT_TRUE(until([&] { return client->view().state == "up" && client->view().queued == 0; }));
  EXPECT_TRUE(told(3, 0, next));
  EXPECT_EQ(collector.table(0, 0).size(), next);
}

TEST_F(BmpClientTest, ConnectsAgainAndSaysWhy) {
  monitor(BmpSettings::InPre, [](BmpSettings& s) { s.reconnect = 1s; });
  ASSERT_TRUE(until([&] { return collector.connections == 1 && client->view().state == "up"; }));
  collector.socket->close();
  ASSERT_TRUE(until([&] { return collector.connections == 2; }));
  EXPECT_FALSE(client->view().last_error.empty());
  EXPECT_EQ(client->view().drops, 0u);
}

TEST_F(BmpClientTest, SaysGoodbye) {
  monitor(BmpSettings::InPre);
  ASSERT_TRUE(until([&] { return collector.count(bmp::MessageType::Initiation) == 1; }));
  client->stop();
  ASSERT_TRUE(until([&] { return collector.ended; }));
  EXPECT_EQ(collector.count(bmp::MessageType::Termination), 1u);
}
