// SPDX-License-Identifier: GPL-2.0-or-later
// Frames out by PacketSender and in by PcapCapture, over a veth pair.
#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "dataplane/packet_io.h"
#include "tests/dataplane/namespace.h"

using namespace dataplane;
using namespace frames;
using lab::Bytes;

namespace {

class PacketIo : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto problem = lab::enter_namespace()) GTEST_SKIP() << *problem;
    lab::run("ip link add m1 type veth peer name p1 && ip link set m1 up && ip link set p1 up");
    lab::wait_up({"m1", "p1"});
    m1 = lab::index_of("m1");
    member = std::make_unique<lab::Member>("p1");
  }
  void TearDown() override {
    if (if_nametoindex("m1") != 0) lab::run("ip link del m1");
  }
  // Runs until `done`; a bound for the case that it never is.
  void run_until(const std::function<bool()>& done) {
    boost::asio::steady_timer bound(io, std::chrono::seconds(10));
    bool over = false;
    bound.async_wait([&](const boost::system::error_code& e) { over = !e; });
    while (!done() && !over) io.run_one();
    EXPECT_FALSE(over);
    bound.cancel();
    io.poll();
  }
  boost::asio::io_context io;
  net::IfIndex m1;
  std::unique_ptr<lab::Member> member;
};

TEST_F(PacketIo, SendsPaddedAndReceivesNothing) {
  auto sender = PacketSender::open();
  ASSERT_TRUE(sender) << sender.error().what;
  EXPECT_TRUE((*sender)->send(m1, arp_request()));
  EXPECT_EQ(member->receive(), cut(arp_request(), 60));
  auto full = arp_request();
  full.resize(1514, 0x77);
  EXPECT_TRUE((*sender)->send(m1, full));
  EXPECT_EQ(member->receive(), full);
  EXPECT_EQ((*sender)->errors(), 0u);
  EXPECT_FALSE((*sender)->send(net::IfIndex(9999), full));
  full.resize(9000);
  EXPECT_FALSE((*sender)->send(m1, full));
  EXPECT_FALSE((*sender)->send(m1, Bytes(13)));
  EXPECT_EQ((*sender)->errors(), 3u);
}

TEST_F(PacketIo, ABatchKeepsTheOrderAndLosesOnlyWhatIsRefused) {
  const auto sender = PacketSender::open();
  ASSERT_TRUE(sender) << sender.error().what;
  // More than is held, some too long to be, one to a device that is not there.
  const auto frame = [](uint8_t n) {
    Bytes f = arp_request();
    f.resize(n % 16 == 0 ? 300 : 60 + n % 4);
    f.back() = n;
    return f;
  };
  {
    const PacketSender::Batch outer(**sender);
    for (uint8_t n = 0; n < 150; ++n) {
      const PacketSender::Batch inner(**sender);
      EXPECT_TRUE((*sender)->send(m1, frame(n)));
      if (n == 70) {
        EXPECT_TRUE((*sender)->send(net::IfIndex(9999), frame(1)));
      }
    }
    EXPECT_FALSE((*sender)->send(m1, Bytes(13)));
    Bytes too_short = arp_request();
    too_short.resize(42);
    EXPECT_TRUE((*sender)->send(m1, too_short));
  }
  for (uint8_t n = 0; n < 150; ++n) ASSERT_EQ(member->receive(), frame(n)) << int{n};
  Bytes padded = arp_request();
  padded.resize(42);
  padded.resize(60);
  EXPECT_EQ(member->receive(), padded);
  EXPECT_EQ((*sender)->errors(), 2u);
}

TEST_F(PacketIo, CapturesWhatComesInAndIsNotPlainUnicast) {
  std::vector<Bytes> seen;
  auto capture =
      PcapCapture::open(io, "m1", m1, [&](net::IfIndex port, std::span<const uint8_t> f) {
        EXPECT_EQ(port, m1);
        seen.emplace_back(f.begin(), f.end());
      });
  ASSERT_TRUE(capture) << capture.error().what;
  const auto sender = PacketSender::open();
  ASSERT_TRUE(sender);
  ASSERT_TRUE((*sender)->send(m1, arp_request()));  // goes out: not captured
  const std::vector<Bytes> want = {
      arp_request(),         ns(), udp4("255.255.255.255", 9), to_group("01:80:c2:00:00:00", 38),
      arp(kBob, kAlice, {}), na(),
  };
  member->send(eth(kBob, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(26))));
  for (const auto& frame : want) member->send(frame);
  run_until([&] { return seen.size() >= want.size(); });
  EXPECT_EQ(seen, want);
  EXPECT_EQ((*capture)->lost(), 0u);
  // Many at once: more than one turn of reading.
  seen.clear();
  for (int i = 0; i < 1000; ++i) member->send(arp_request());
  run_until([&] { return seen.size() >= 1000; });
  EXPECT_EQ(seen.size() + (*capture)->lost(), 1000u);
}

TEST_F(PacketIo, CaptureMayBeClosedByItsOwnHandler) {
  int calls = 0;
  std::unique_ptr<PcapCapture> capture;
  auto opened = PcapCapture::open(io, "m1", m1, [&](net::IfIndex, std::span<const uint8_t>) {
    ++calls;
    capture.reset();
  });
  ASSERT_TRUE(opened) << opened.error().what;
  capture = std::move(*opened);
  for (int i = 0; i < 10; ++i) member->send(arp_request());
  run_until([&] { return calls > 0; });
  io.restart();
  io.poll();
  EXPECT_EQ(calls, 1);
}

TEST_F(PacketIo, CaptureEndsWithItsDeviceOrItself) {
  {
    auto opened = PcapCapture::open(io, "m1", m1, [](net::IfIndex, std::span<const uint8_t>) {});
    ASSERT_TRUE(opened);
  }
  EXPECT_GT(io.run(), 0u);  // nothing waits any more
  io.restart();
  auto opened = PcapCapture::open(io, "m1", m1, [](net::IfIndex, std::span<const uint8_t>) {});
  ASSERT_TRUE(opened);
  lab::run("ip link del m1");
  io.run();  // returns: a dead device is not waited for
  const auto none =
      PcapCapture::open(io, "nonexistent0", m1, [](net::IfIndex, std::span<const uint8_t>) {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, testing::HasSubstr("nonexistent0"));
}

}  // namespace
