// SPDX-License-Identifier: GPL-2.0-or-later
// The data path by itself, for bench/proxy.sh: attaches to ports of this network namespace, fills
// the map of bindings, prints one line of JSON when it is ready, and waits for SIGTERM.
//   proxy_node --pins DIR --ports IF[,IF...] [--xdp] [--clsact] [--n N] [--v4 BASE] [--v6 BASE]
//              [--mac-base MAC] [--asker MAC --asker4 IP --asker6 IP] [--changes N]
// The N bindings from BASE on are behind another PE, the asker is behind the first port.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include <net/if.h>

#include "dataplane/fast_path.h"

namespace {

using Clock = std::chrono::steady_clock;

std::map<std::string, std::string> arguments(int argc, char** argv) {
  std::map<std::string, std::string> out;
  for (int i = 1; i < argc; ++i) {
    std::string key = argv[i];
    key.erase(0, 2);
    if (i + 1 < argc && std::string(argv[i + 1]).substr(0, 2) != "--")
      out[key] = argv[++i];
    else
      out[key] = "1";
  }
  return out;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "proxy_node: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(std::expected<T, dataplane::FastPathError> result) {
  if (!result) fail(result.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

net::IpAddress plus(const net::IpAddress& base, uint32_t n) {
  if (base.is_v4()) {
    const auto b = base.bytes();
    return net::IpAddress::v4(
        (uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3]) + n);
  }
  std::array<uint8_t, 16> octets{};
  std::ranges::copy(base.bytes(), octets.begin());
  for (std::size_t i = 15; n != 0; --i, n >>= 8) {
    const uint32_t sum = octets[i] + (n & 255);
    octets[i] = static_cast<uint8_t>(sum);
    if (sum > 255) n += 256;
  }
  return net::IpAddress::v6(octets);
}

net::MacAddress plus(const net::MacAddress& base, uint32_t n) {
  std::array<uint8_t, 6> octets{};
  std::ranges::copy(base.bytes(), octets.begin());
  for (std::size_t i = 5; n != 0 && i > 0; --i) {
    n += octets[i];
    octets[i] = static_cast<uint8_t>(n);
    n >>= 8;
  }
  return net::MacAddress::from_bytes(octets);
}

uint64_t resident_kib() {
  std::ifstream in("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

// Octets of a pinned map as the kernel accounts them.
uint64_t map_memory(const std::string& pins, const char* name) {
  const std::string command = "bpftool -j map show pinned " + pins + "/maps1/" + name +
                              " | sed 's/.*\"bytes_memlock\":\\([0-9]*\\).*/\\1/'";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  unsigned long long bytes = 0;
  const int got = std::fscanf(pipe, "%llu", &bytes);
  pclose(pipe);
  return got == 1 ? bytes : 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto args = arguments(argc, argv);
  const auto text = [&](const char* key, const char* otherwise) {
    const auto found = args.find(key);
    return found == args.end() ? std::string(otherwise) : found->second;
  };
  const auto n = static_cast<uint32_t>(std::stoul(text("n", "100000")));
  const auto base4 = *net::IpAddress::parse(text("v4", "10.1.0.0"));
  const auto base6 = *net::IpAddress::parse(text("v6", "2001:db8:1::"));
  const auto mac_base = *net::MacAddress::parse(text("mac-base", "02:10:00:00:00:00"));
  const auto asker = *net::MacAddress::parse(text("asker", "02:00:00:00:00:01"));
  const net::Vni vni(100);

  dataplane::FastPathOptions options;
  options.pin_directory = text("pins", "/sys/fs/bpf/plbench");
  options.max_bindings = std::max(262144u, n + 16);
  options.force_clsact = args.contains("clsact");
  auto path = must(dataplane::FastPath::open(options));

  std::vector<net::IfIndex> ports;
  std::string names = text("ports", "m0");
  while (!names.empty()) {
    const auto comma = names.find(',');
    const auto index = net::IfIndex(if_nametoindex(names.substr(0, comma).c_str()));
    if (index.value == 0) fail("no device " + names.substr(0, comma));
    ports.push_back(index);
    names.erase(0, comma == std::string::npos ? comma : comma + 1);
  }
  for (auto index : ports) {
    dataplane::PortConfig config;
    config.index = index;
    config.vni = vni;
    config.policy = dataplane::peering_policy();
    config.policy.answers = {};
    config.enforce_macs = index == ports.front();
    config.macs = {asker};
    config.xdp = args.contains("xdp") && index == ports.front();
    must(path->set_port(config));
  }
  const auto bind = [&](const net::IpAddress& ip, const net::MacAddress& mac, net::IfIndex port) {
    must(path->set_binding({.vni = vni, .ip = ip, .mac = mac, .port = port, .router = false}));
  };
  const uint64_t before = resident_kib();
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < n; ++i) {
    bind(plus(base4, i), plus(mac_base, i), {});
    bind(plus(base6, i), plus(mac_base, i), {});
  }
  const std::chrono::duration<double> filled = Clock::now() - begin;
  bind(*net::IpAddress::parse(text("asker4", "10.255.0.1")), asker, ports.front());
  bind(*net::IpAddress::parse(text("asker6", "2001:db8:ffff::1")), asker, ports.front());

  std::vector<double> microseconds;
  const auto changes = static_cast<uint32_t>(std::stoul(text("changes", "20000")));
  for (uint32_t i = 0; i < changes; ++i) {  // there and back, so that the map is as it was
    const uint32_t which = (i / 2) * 7919 % std::max(1u, n);
    const auto start = Clock::now();
    bind(plus(base4, which), plus(mac_base, which + (i % 2 == 0 ? 1 : 0)), {});
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::ranges::sort(microseconds);
  const auto quantile = [&](double q) {
    if (microseconds.empty()) return 0.0;
    return microseconds[static_cast<std::size_t>(q * static_cast<double>(microseconds.size() - 1))];
  };
  std::printf(
      "{\"mode\":\"%s\",\"bindings\":%u,\"fill_s\":%.3f,\"change_p50_us\":%.1f,"
      "\"change_p99_us\":%.1f,\"map_bytes\":%llu,\"user_kib\":%llu}\n",
      path->attach_mode(ports.front()).c_str(), 2 * n, filled.count(), quantile(0.5),
      quantile(0.99),
      static_cast<unsigned long long>(map_memory(options.pin_directory, "bind4") +
                                      map_memory(options.pin_directory, "bind6")),
      static_cast<unsigned long long>(resident_kib() - before));
  std::fflush(stdout);

  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  int signal = 0;
  sigwait(&set, &signal);
  for (const auto& counter : path->counters(ports.front()))
    std::fprintf(stderr, "%s %s %s %llu\n", to_string(counter.direction), counter.bum_class,
                 counter.reason, static_cast<unsigned long long>(counter.packets));
  path.reset();
  must(dataplane::FastPath::teardown(options.pin_directory));
}
