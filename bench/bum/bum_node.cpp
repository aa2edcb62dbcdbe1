// SPDX-License-Identifier: GPL-2.0-or-later
// The policy by itself, for bench/bum.sh: on ports m1 to mN of this network namespace until
// SIGTERM.
//   bum_node --pins DIR --ports N [--pps RATE] [--bps RATE] [--burst MS] [--limits FILE] [--clsact]
// With a rate: that is the limit of each class at ingress, and nothing else is limited; ARP and ND
// are not intercepted. FILE: the same for single ports, a line "NUMBER pps|bps RATE BURST_MS" each;
// the others are left alone. Without: the policy `peering` in both directions, sources enforced.
// Prints "ready" when it is.
#include <net/if.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/fast_path.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bum_node: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(std::expected<T, dataplane::FastPathError> result) {
  if (!result) fail(result.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Of the member behind port i: see topology() of measure.py.
net::MacAddress member_mac(unsigned i) {
  return net::MacAddress({2, 0, 0, 1, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)});
}

dataplane::BumPolicy limits_only(const dataplane::Limit& limit) {
  dataplane::BumPolicy policy;
  policy.ingress.fill(limit);
  policy.allowed_ethertypes.push_back(0x88b5);
  return policy;
}

struct PortLimit {
  unsigned port = 0;
  dataplane::Limit limit{.packets_per_second = {}, .bits_per_second = {}};
};

std::vector<PortLimit> read_limits(const std::string& file) {
  std::vector<PortLimit> out;
  std::ifstream in(file);
  if (!in) fail("no file " + file);
  PortLimit line;
  std::string unit;
  uint64_t rate = 0, burst = 0;
  while (in >> line.port >> unit >> rate >> burst) {
    line.limit.packets_per_second = unit == "pps" ? std::optional(rate) : std::nullopt;
    line.limit.bits_per_second = unit == "bps" ? std::optional(rate) : std::nullopt;
    line.limit.burst = std::chrono::milliseconds(burst);
    out.push_back(line);
  }
  return out;
}

// Member i of topology() in measure.py; without a limit: the policy `peering`.
dataplane::PortConfig port_config(unsigned i, const std::optional<dataplane::Limit>& limit) {
  dataplane::PortConfig config;
  config.index = net::IfIndex(if_nametoindex(("m" + std::to_string(i)).c_str()));
  if (config.index.value == 0) fail("no device m" + std::to_string(i));
  config.vni = net::Vni(100);
  config.proxy = !limit;
  config.policy = limit ? limits_only(*limit) : dataplane::peering_policy();
  if (!limit) config.policy.allowed_ethertypes.push_back(0x88b5);
  config.macs = {member_mac(i)};
  config.enforce_macs = true;
  config.own_macs = {*net::MacAddress::parse("02:00:00:00:be:00")};
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> args;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    const bool valued = i + 1 < argc && argv[i + 1][0] != '-';
    args[key] = valued ? argv[++i] : "1";
  }
  const auto number = [&](const char* key) { return std::stoull(args[key]); };
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);

  dataplane::FastPathOptions options;
  options.pin_directory = args["--pins"];
  options.force_clsact = args.contains("--clsact");
  auto path = must(dataplane::FastPath::open(options));
  if (args.contains("--limits")) {
    for (const auto& [port, limit] : read_limits(args["--limits"]))
      must(path->set_port(port_config(port, limit)));
  } else {
    std::optional<dataplane::Limit> limit;
    if (args.contains("--pps") || args.contains("--bps")) {
      limit.emplace();
      if (args.contains("--pps")) limit->packets_per_second = number("--pps");
      if (args.contains("--bps")) limit->bits_per_second = number("--bps");
      if (args.contains("--burst")) limit->burst = std::chrono::milliseconds(number("--burst"));
    }
    for (unsigned i = 1; i <= number("--ports"); ++i) {
      must(path->add_mac(net::Vni(100), member_mac(i)));
      must(path->set_port(port_config(i, limit)));
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&set, &signal);
  path.reset();
  must(dataplane::FastPath::teardown(options.pin_directory));
}
