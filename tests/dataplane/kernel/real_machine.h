// SPDX-License-Identifier: GPL-2.0-or-later
// A network namespace of its own with two veth pairs, p1-m1 and p2-m2, and the real Kernel in it.
// m1 and m2 are the member ports, p1 and p2 the members' ends.
#pragma once
// clang-format off
#include <sys/socket.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contract.h"

namespace dataplane::testing {

// The calling thread is in a new network namespace while this lives.
class Namespace {
 public:
  Namespace() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (before_ < 0 || ::unshare(CLONE_NEWNET) != 0) std::abort();
  }
  ~Namespace() {
    if (::setns(before_, CLONE_NEWNET) != 0) std::abort();  // the rest would run in the wrong one
    ::close(before_);
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

 private:
  int before_;
};

// Runs a shell command in the namespace; its output, with "failed" where it fails.
inline std::string shell(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "re");
  if (!pipe) return "failed";
  std::array<char, 4096> text{};
  while (const std::size_t length = std::fread(text.data(), 1, text.size(), pipe))
    output.append(text.data(), length);
  if (::pclose(pipe) != 0) output += "failed";
  return output;
}

// Sends and counts whole frames at a device.
class Tap {
 public:
  explicit Tap(const std::string& device)
      : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL))) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(device.c_str()));
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      ADD_FAILURE() << "no packet socket on " << device;
  }
  ~Tap() { ::close(fd_); }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // EtherType 0x88b5 (local experiments).
  void send(net::MacAddress destination, net::MacAddress source) {
    std::array<uint8_t, 60> frame{};
    std::ranges::copy(destination.bytes(), frame.begin());
    std::ranges::copy(source.bytes(), frame.begin() + 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    send(frame);
  }
  void send(std::span<const uint8_t> frame) {
    EXPECT_EQ(::send(fd_, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }
  // Frames that came in so far. On veth a frame is delivered before send() returns or soon after.
  std::vector<std::vector<uint8_t>> received() {
    std::vector<std::vector<uint8_t>> frames;
    std::array<uint8_t, 2048> buffer{};
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    for (;;) {
      const ssize_t length = ::recvfrom(fd_, buffer.data(), buffer.size(), 0,
                                        reinterpret_cast<sockaddr*>(&from), &size);
      if (length < 0) return frames;
      if (from.sll_pkttype == PACKET_OUTGOING) continue;
      frames.emplace_back(buffer.begin(), buffer.begin() + length);
    }
  }

 private:
  int fd_;
};

// Counts what the kernel reports of devices in the namespace: any change, also one to the same
// value.
class ChangeCounter {
 public:
  ChangeCounter()
      : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      ADD_FAILURE() << "no netlink socket";
  }
  ~ChangeCounter() { ::close(fd_); }
  ChangeCounter(const ChangeCounter&) = delete;
  ChangeCounter& operator=(const ChangeCounter&) = delete;

  // Reports are made inside of the request that causes them.
  std::size_t count() {
    std::array<char, 65536> buffer{};
    std::size_t count = 0;
    while (::recv(fd_, buffer.data(), buffer.size(), 0) > 0) ++count;
    return count;
  }

 private:
  int fd_;
};

class RealMachine final : public Machine {
 public:
  explicit RealMachine(const KernelOptions& options = {}) {
    quiet_ = shell(
        "ip link set lo up;"
        "for i in 1 2; do"
        " ip link add m$i type veth peer name p$i;"
        " echo 1 > /proc/sys/net/ipv6/conf/p$i/disable_ipv6;"
        " echo 8 > /proc/sys/net/ipv4/conf/p$i/arp_ignore;"
        " ip link set p$i up; ip link set m$i up;"
        "done");
    EXPECT_EQ(quiet_, "");
    open(options);
  }
  // As after a restart of the daemon.
  void open(const KernelOptions& options = {}) {
    kernel_.reset();
    auto kernel = open_kernel(io_, options);
    if (!kernel) {
      ADD_FAILURE() << kernel.error().what;
      return;
    }
    kernel_ = std::move(*kernel);
    kernel_->on_event([this](const KernelEvent& event) { events_.push_back(event); });
  }
  void close() { kernel_.reset(); }

  Kernel& kernel() override { return *kernel_; }
  boost::asio::io_context& io() { return io_; }
  net::IfIndex index(const std::string& name) {
    return net::IfIndex(::if_nametoindex(name.c_str()));
  }
  net::IfIndex port(int number) override { return index("m" + std::to_string(number)); }
  void frame(int number, net::MacAddress source) override {
    Tap(member(number)).send(net::kBroadcastMac, source);
  }
  std::string member(int number) { return "p" + std::to_string(number); }

  bool wait_event(const std::function<bool(const KernelEvent&)>& enough) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!std::ranges::any_of(events_, enough)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return true;
  }
  // Reads on until the event socket has nothing more: everything until now has been handled when
  // a device that is made here has been reported.
  void drain() {
    const std::string name = "mark" + std::to_string(marks_++);
    EXPECT_EQ(shell("ip link add " + name + " type bridge"), "");
    EXPECT_TRUE(wait_event([&](const KernelEvent& event) {
      const auto* e = std::get_if<LinkChanged>(&event);
      return e && e->name == name;
    }));
    std::erase_if(events_, [&](const KernelEvent& event) {
      const auto* e = std::get_if<LinkChanged>(&event);
      return e && e->name == name;
    });
  }
  std::vector<KernelEvent>& events() { return events_; }

 private:
  Namespace namespace_;
  std::string quiet_;
  boost::asio::io_context io_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<KernelEvent> events_;
  int marks_ = 0;
};

#define PEERLAN_NEEDS_ROOT()                                                              \
  if (::geteuid() != 0) {                                                                 \
    GTEST_SKIP() << "SKIPPED: needs root to make network namespaces, nothing was tested"; \
  }                                                                                       \
  static_assert(true)

}  // namespace dataplane::testing
