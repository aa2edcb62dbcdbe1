// SPDX-License-Identifier: GPL-2.0-or-later
// What the programs cost by themselves, for bench/bum.sh: BPF_PROG_TEST_RUN on single frames at
// port m1 of this network namespace, all kinds in turns.
//   bum_cost --pins DIR --minimal FOLDER [--rounds N]
// FOLDER: where bpfctl pinned the minimal limiter, whose limits are set. One line for each kind:
// nanoseconds a run, median of the rounds, and what it is.
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "dataplane/fast_path.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bum_cost: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(std::expected<T, dataplane::FastPathError> result) {
  if (!result) fail(result.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

using Frame = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;
constexpr Mac kAlice{2, 0, 0, 1, 0, 1}, kBob{2, 0, 0, 1, 0, 2}, kNobody{2, 0, 0, 1, 9, 9};
constexpr Mac kAll{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, kGroup6{0x33, 0x33, 0, 0, 0, 5};

Frame ethernet(const Mac& to, uint16_t type) {
  Frame out(to.begin(), to.end());
  out.insert(out.end(), kAlice.begin(), kAlice.end());
  out.push_back(static_cast<uint8_t>(type >> 8));
  out.push_back(static_cast<uint8_t>(type & 0xff));
  return out;
}

// UDP to port 9, or TCP.
Frame ipv4(const Mac& to, uint8_t protocol) {
  auto out = ethernet(to, 0x0800);
  const uint8_t header[] = {0x45, 0, 0, 46, 0,   1, 0, 0, 64, protocol, 0, 0,
                            192,  0, 2, 1,  192, 0, 2, 2, 0,  9,        0, 9};
  out.insert(out.end(), std::begin(header), std::end(header));
  out.resize(60);
  return out;
}

Frame ipv6(const Mac& to, uint8_t next) {
  auto out = ethernet(to, 0x86dd);
  out.resize(74);
  out[14] = 0x60;
  out[19] = 20;
  out[20] = next;
  out[21] = 64;
  out[22] = out[38] = 0x20;
  out[37] = 1;
  out[53] = 2;
  out[55] = out[57] = 9;
  return out;
}

Frame other(const Mac& to) {
  auto out = ethernet(to, 0x88b5);
  out.resize(60);
  return out;
}

struct Kind {
  const char* what;
  int program;
  Frame frame;
  std::vector<uint32_t> found = {};
};

uint32_t cost(int program, Frame frame, unsigned ifindex) {
  __sk_buff context{};
  context.ifindex = ifindex;
  bpf_test_run_opts options{};
  options.sz = sizeof options;
  options.data_in = frame.data();
  options.data_size_in = static_cast<uint32_t>(frame.size());
  options.ctx_in = &context;
  options.ctx_size_in = sizeof context;
  options.repeat = 200000;
  if (bpf_prog_test_run_opts(program, &options) != 0) fail("test run");
  return options.duration;
}

int program_of(const std::string& link_pin) {
  const int link = bpf_obj_get(link_pin.c_str());
  bpf_link_info info{};
  uint32_t size = sizeof info;
  if (link < 0 || bpf_obj_get_info_by_fd(link, &info, &size) != 0) fail("no link " + link_pin);
  return bpf_prog_get_fd_by_id(info.prog_id);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> args{{"--rounds", "7"}};
  for (int i = 1; i + 1 < argc; i += 2) args[argv[i]] = argv[i + 1];
  const unsigned m1 = if_nametoindex("m1");
  if (m1 == 0) fail("no device m1");

  dataplane::FastPathOptions options;
  options.pin_directory = args["--pins"];
  auto path = must(dataplane::FastPath::open(options));
  const net::Vni vni(100);
  for (const auto& mac : {kAlice, kBob}) must(path->add_mac(vni, net::MacAddress(mac)));
  dataplane::PortConfig config;
  config.index = net::IfIndex(m1);
  config.vni = vni;
  config.proxy = false;
  config.policy = dataplane::peering_policy();
  config.policy.allowed_ethertypes.push_back(0x88b5);
  config.policy.ingress[static_cast<std::size_t>(dataplane::BumClass::Broadcast)] =
      dataplane::Limit{.packets_per_second = 1000, .bits_per_second = {}};
  config.macs = {net::MacAddress(kAlice)};
  config.enforce_macs = true;
  config.own_macs = {*net::MacAddress::parse("02:00:00:00:be:00")};
  must(path->set_port(config));

  const auto link = options.pin_directory + "/links/" + std::to_string(m1);
  const int in = program_of(link + "_in"), out = program_of(link + "_out");
  const auto minimal = [&](const char* name) {
    const int fd = bpf_obj_get((args["--minimal"] + "/" + name).c_str());
    if (fd < 0) fail(std::string("no minimal program ") + name);
    return fd;
  };
  const int nop = minimal("nop"), limiter = minimal("lim_in");
  constexpr uint8_t kTcp = 6, kUdp = 17;
  std::vector<Kind> kinds{
      {"empty program", nop, ipv4(kBob, kTcp)},
      {"minimal limiter, known unicast", limiter, ipv4(kBob, kTcp)},
      {"minimal limiter, broadcast over its limit", limiter, ipv4(kAll, kUdp)},
      {"ingress, IPv4 to a known MAC", in, ipv4(kBob, kTcp)},
      {"ingress, IPv6 to a known MAC", in, ipv6(kBob, kTcp)},
      {"ingress, another listed EtherType to a known MAC", in, other(kBob)},
      {"egress, IPv4", out, ipv4(kBob, kTcp)},
      {"egress, IPv6", out, ipv6(kBob, kTcp)},
      {"egress, another listed EtherType", out, other(kBob)},
      {"ingress, broadcast over its limit", in, ipv4(kAll, kUdp)},
      {"ingress, multicast of which nothing passes", in, ipv6(kGroup6, kUdp)},
      {"ingress, unknown unicast", in, ipv4(kNobody, kTcp)},
  };
  for (int round = 0; round < std::stoi(args["--rounds"]); ++round)
    for (auto& kind : kinds) kind.found.push_back(cost(kind.program, kind.frame, m1));
  for (auto& kind : kinds) {
    const auto middle = kind.found.begin() + static_cast<std::ptrdiff_t>(kind.found.size() / 2);
    std::nth_element(kind.found.begin(), middle, kind.found.end());
    std::printf("%u %s\n", *middle, kind.what);
  }
  path.reset();
  must(dataplane::FastPath::teardown(options.pin_directory));
}
