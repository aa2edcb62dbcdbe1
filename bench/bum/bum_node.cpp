// SPDX-License-Identifier: GPL-2.0-or-later
// The policy by itself, for bench/bum.sh: on ports m1 to mN of this network namespace until
// SIGTERM.
//   bum_node --pins DIR --ports N [--pps RATE] [--bps RATE] [--burst MS] [--clsact]
// With a rate: that is the limit of each class at ingress, and nothing else is limited; ARP and ND
// are not intercepted. Without: the policy `peering` in both directions, sources enforced.
// Prints "ready" when it is.
#include <net/if.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

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
  policy.allowed_ethertypes.push_back(0x88b5);  // what arpblast sends
  return policy;
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
  dataplane::Limit limit{.packets_per_second = {}, .bits_per_second = {}};
  if (args.contains("--pps")) limit.packets_per_second = number("--pps");
  if (args.contains("--bps")) limit.bits_per_second = number("--bps");
  if (args.contains("--burst")) limit.burst = std::chrono::milliseconds(number("--burst"));
  const bool rates = limit.packets_per_second || limit.bits_per_second;

  const net::Vni vni(100);
  const auto ports = static_cast<unsigned>(number("--ports"));
  for (unsigned i = 1; i <= ports; ++i) {
    must(path->add_mac(vni, member_mac(i)));
    dataplane::PortConfig config;
    config.index = net::IfIndex(if_nametoindex(("m" + std::to_string(i)).c_str()));
    if (config.index.value == 0) fail("no device m" + std::to_string(i));
    config.vni = vni;
    config.proxy = !rates;
    config.policy = rates ? limits_only(limit) : dataplane::peering_policy();
    if (!rates) config.policy.allowed_ethertypes.push_back(0x88b5);
    config.macs = {member_mac(i)};
    config.enforce_macs = !rates;
    config.own_macs = {*net::MacAddress::parse("02:00:00:00:be:00")};
    must(path->set_port(config));
  }
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&set, &signal);
  path.reset();
  must(dataplane::FastPath::teardown(options.pin_directory));
}
