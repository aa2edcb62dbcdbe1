// SPDX-License-Identifier: GPL-2.0-or-later
// A network namespace for the test process, devices in it, sockets on them, pins that go away.
#pragma once
#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

#include "dataplane/fast_path.h"
#include "tests/dataplane/frames.h"

namespace lab {

using net::Bytes;

inline void run(const std::string& command) {
  const int status = std::system(command.c_str());
  ASSERT_EQ(status, 0) << command;
}

// The kernel lets devices send only some time after both ends were set up.
inline void wait_up(std::initializer_list<const char*> devices) {
  for (const char* device : devices)
    run(std::string("until ip link show dev ") + device + " | grep -q 'state UP'; do :; done");
}

inline net::IfIndex index_of(const std::string& name) {
  return net::IfIndex(if_nametoindex(name.c_str()));
}

// Enters a namespace of its own, once per process. Why not, when that can't be.
inline std::optional<std::string> enter_namespace() {
  static const std::optional<std::string> problem = []() -> std::optional<std::string> {
    if (geteuid() != 0) return "needs root";
    if (unshare(CLONE_NEWNET) != 0)
      return std::string("no network namespace: ") + std::strerror(errno);
    if (std::system("sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null; "
                    "ip link set lo up") != 0)
      return "no ip(8)";
    return std::nullopt;
  }();
  return problem;
}

inline std::string pin_directory() { return "/sys/fs/bpf/plbpf-" + std::to_string(getpid()); }

// Skips, aloud, where eBPF or namespaces are not to be had. Removes devices and pins at the end.
class BpfTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto problem = enter_namespace()) GTEST_SKIP() << *problem;
    auto opened = dataplane::FastPath::open(options());
    if (!opened && (opened.error().error == EPERM || opened.error().error == ENOSYS))
      GTEST_SKIP() << "eBPF is not permitted here: " << opened.error().what;
    ASSERT_TRUE(opened) << opened.error().what;
    fast_path = std::move(*opened);
  }
  void TearDown() override {
    fast_path.reset();
    for (const char* device : {"m1", "m2", "br0"})
      if (if_nametoindex(device) != 0) run(std::string("ip link del ") + device);
    if (!std::filesystem::exists(pin_directory())) return;
    const auto gone = dataplane::FastPath::teardown(pin_directory());
    EXPECT_TRUE(gone) << gone.error().what;
    EXPECT_FALSE(std::filesystem::exists(pin_directory()));
  }
  static dataplane::FastPathOptions options() {
    dataplane::FastPathOptions out;
    out.pin_directory = pin_directory();
    out.max_bindings = out.max_macs = 1024;
    out.ring_bytes = 64 << 10;
    return out;
  }
  // A bridge with two member ports, m1 and m2; their members' ends are p1 and p2.
  static void make_bridge() {
    // Where br_netfilter is there: no IP rules for bridged frames.
    std::error_code error;
    if (std::filesystem::exists("/proc/sys/net/bridge", error))
      run("sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0 "
          "net.bridge.bridge-nf-call-arptables=0");
    run("ip link add br0 address 02:00:00:00:be:00 type bridge mcast_snooping 0");
    run("ip link set br0 up");
    for (const char* n : {"1", "2"}) {
      const std::string m = std::string("m") + n, p = std::string("p") + n;
      run("ip link add " + m + " type veth peer name " + p);
      run("ip link set " + p + " address 02:00:00:00:00:0" + n);
      run("ip link set " + m + " master br0");
      run("ip link set " + m + " up");
      run("ip link set " + p + " up");
    }
    wait_up({"m1", "m2", "p1", "p2"});
    for (const char* m : {"m1", "m2"})  // the kernel lets a port forward some time after that
      run(std::string("until bridge link show dev ") + m +
          " | grep -q 'state forwarding'; do :; done");
  }
  void reopen(const dataplane::FastPathOptions& with) {
    fast_path.reset();
    auto opened = dataplane::FastPath::open(with);
    ASSERT_TRUE(opened) << opened.error().what;
    fast_path = std::move(*opened);
  }
  void set(const dataplane::PortConfig& config) {
    const auto done = fast_path->set_port(config);
    ASSERT_TRUE(done) << done.error().what;
  }
  void bind(const char* ip, const net::MacAddress& mac, net::IfIndex port = {}, bool router = true,
            bool override_flag = true) {
    const auto done = fast_path->set_binding({.vni = net::Vni(100),
                                              .ip = frames::ip(ip),
                                              .mac = mac,
                                              .port = port,
                                              .router = router,
                                              .override_flag = override_flag});
    ASSERT_TRUE(done) << done.error().what;
  }
  // Packets by class and reason in one direction; 0 when there is none.
  [[nodiscard]] uint64_t count(net::IfIndex port, dataplane::Direction direction,
                               std::string_view bum_class, std::string_view reason) const {
    for (const auto& c : fast_path->counters(port))
      if (c.direction == direction && c.bum_class == bum_class && c.reason == reason)
        return c.packets;
    return 0;
  }

  std::unique_ptr<dataplane::FastPath> fast_path;
};

// A member: sends and receives whole frames on a device. Does not see what it sends itself.
class Member {
 public:
  explicit Member(const std::string& device) {
    fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    const int size = 16 << 20;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    const int one = 1;
    setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(0x0003);  // ETH_P_ALL
    address.sll_ifindex = static_cast<int>(if_nametoindex(device.c_str()));
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << device;
  }
  ~Member() { close(fd_); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void send(const Bytes& frame) const {
    EXPECT_EQ(::send(fd_, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }
  // The next frame, or nothing when none comes for long.
  [[nodiscard]] std::optional<Bytes> receive(int milliseconds = 5000) const {
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, milliseconds) != 1) return std::nullopt;
    Bytes frame(65536);
    const auto got = recv(fd_, frame.data(), frame.size(), 0);
    if (got < 0) return std::nullopt;
    frame.resize(static_cast<std::size_t>(got));
    return frame;
  }
  [[nodiscard]] bool silent() const { return !receive(0); }

 private:
  int fd_ = -1;
};

}  // namespace lab
