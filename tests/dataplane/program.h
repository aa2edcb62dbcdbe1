// SPDX-License-Identifier: GPL-2.0-or-later
// A port with the programs on it, and single frames through them by BPF_PROG_TEST_RUN.
#pragma once
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <linux/pkt_cls.h>

#include <chrono>
#include <functional>
#include <map>

#include "dataplane/bpf/abi.h"
#include "tests/dataplane/namespace.h"

namespace lab {

using namespace dataplane;
using namespace frames;
using net::Bytes;
using testing::ElementsAre;

inline constexpr int kUnspec = -1;
inline const net::MacAddress kCarol = mac("02:00:00:00:00:03");

inline Limit at_once(uint64_t frames) {  // one a second, `frames` a first time
  return {.packets_per_second = frames, .bits_per_second = {}, .burst = std::chrono::seconds(1)};
}

struct Result {
  int verdict = 0;
  uint32_t nanoseconds = 0;  // of one run, on average
  Bytes frame;
};

struct PuntSeen {
  net::IfIndex port;
  bool copy, trapped;
  Bytes frame;
};

class BpfProgram : public BpfTest {
 protected:
  void SetUp() override {
    BpfTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    make_bridge();
    port = index_of("m1");
    other = index_of("m2");
    set(port_config(port));
    find_programs();
  }
  void find_programs() {
    for (int hook : {PL_IN, PL_OUT}) {
      const auto pin = pin_directory() + "/links/" + std::to_string(port.value) +
                       (hook == PL_IN ? "_in" : "_out");
      const int link = bpf_obj_get(pin.c_str());
      ASSERT_GE(link, 0) << "these tests find the program by its tcx link";
      bpf_link_info info{};
      uint32_t size = sizeof info;
      ASSERT_EQ(bpf_obj_get_info_by_fd(link, &info, &size), 0);
      if (program[hook] >= 0) close(program[hook]);
      program[hook] = bpf_prog_get_fd_by_id(info.prog_id);
      close(link);
      ASSERT_GE(program[hook], 0);
    }
  }
  void TearDown() override {
    for (int fd : program)
      if (fd >= 0) close(fd);
    BpfTest::TearDown();
  }
  Result run(const Bytes& frame, int hook = PL_IN, int repeat = 1, uint32_t gso_segs = 0,
             uint32_t gso_size = 0) {
    __sk_buff context{};
    context.ifindex = port.value;
    context.gso_segs = gso_segs;
    context.gso_size = gso_size;
    Result out;
    out.frame.resize(frame.size() + 64);
    bpf_test_run_opts o{};
    o.sz = sizeof o;
    o.data_in = frame.data();
    o.data_size_in = static_cast<uint32_t>(frame.size());
    o.data_out = out.frame.data();
    o.data_size_out = static_cast<uint32_t>(out.frame.size());
    o.ctx_in = &context;
    o.ctx_size_in = sizeof context;
    o.repeat = repeat;
    EXPECT_EQ(bpf_prog_test_run_opts(program[hook], &o), 0) << std::strerror(errno);
    out.frame.resize(o.data_size_out);
    out.verdict = static_cast<int>(o.retval);
    out.nanoseconds = o.duration;
    return out;
  }
  // The counters that one run moves, as "class reason".
  std::vector<std::string> moved(const std::function<void()>& action) {
    std::map<std::string, uint64_t> before;
    const auto key = [](const Counter& c) {
      return std::string(c.bum_class) + " " + c.reason + " " + to_string(c.direction) +
             (c.observed ? " observed" : "");
    };
    for (const auto& c : fast_path->counters(port)) before[key(c)] = c.packets;
    action();
    std::vector<std::string> out;
    for (const auto& c : fast_path->counters(port))
      if (c.packets != before[key(c)])
        out.push_back(std::string(c.bum_class) + " " + c.reason + (c.observed ? " observed" : ""));
    return out;
  }
  std::vector<PuntSeen> punts(std::size_t max = 1024) {
    std::vector<PuntSeen> out;
    fast_path->drain(
        [&](const Punt& p) {
          out.push_back({p.port, p.copy, p.trapped, Bytes(p.frame.begin(), p.frame.end())});
        },
        max);
    return out;
  }
  // How the class of a unicast ARP or ND frame is called.
  static std::string name_of_unicast(const Bytes& frame) {
    return frame[12] == 0x08 ? "arp-unicast" : "nd-unicast";
  }
  // Expects the frame to be taken out of the path with this reason, whatever is punted.
  void expect(const Bytes& frame, int verdict, const std::string& counter) {
    Result result;
    const auto changed = moved([&] { result = run(frame); });
    EXPECT_EQ(result.verdict, verdict);
    EXPECT_THAT(changed, ElementsAre(counter));
  }
  // The asker of arp_request() and ns(), at home: others the kernel does not answer.
  void bind_alice() {
    bind("192.0.2.1", kAlice, port);
    bind("2001:db8:1::1", kAlice, port);
  }
  PortConfig proxy(bool learn = false) {
    auto config = port_config(port);
    config.learn = learn;
    return config;
  }

  net::IfIndex port, other;
  int program[PL_HOOKS] = {-1, -1};
};

// BPF_PROG_TEST_RUN itself wants whole IP headers; test_fast_path sends the others.
inline bool kernel_refuses(const Bytes& frame) {
  const bool ip4 = frame[12] == 0x08 && frame[13] == 0x00, ip6 = frame[12] == 0x86;
  return (ip4 && frame.size() < 34) || (ip6 && frame.size() < 54);
}

}  // namespace lab
