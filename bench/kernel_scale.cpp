// SPDX-License-Identifier: GPL-2.0-or-later
// How fast the daemon's netlink layer installs and removes remote MACs, in the network namespace
// that it is run in: a line of JSON. bench/failover.sh runs it beside nlbench, which does the same
// without a layer.
//   kernel_scale [MACS]
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "dataplane/kernel.h"

namespace {

double seconds_of(const std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

net::MacAddress mac(uint32_t n) {
  return net::MacAddress::from_bytes(
      std::array<uint8_t, 6>{2, 0x10, static_cast<uint8_t>(n >> 24), static_cast<uint8_t>(n >> 16),
                             static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)});
}

int fail(const char* step, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", step, what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000);
  boost::asio::io_context io;
  auto kernel = dataplane::open_kernel(io);
  if (!kernel) return fail("open", kernel.error().what);
  dataplane::Links links;
  links.bridge = "br100";
  links.vxlan = "vx100";
  links.vni = net::Vni(100);
  links.vtep = *net::IpAddress::parse("10.0.0.1");
  const auto domain = (*kernel)->ensure_domain(links);
  if (!domain) return fail("devices", domain.error().what);
  const auto vtep = *net::IpAddress::parse("10.0.0.2");
  std::vector<dataplane::RemoteMac> changes;
  changes.reserve(count);
  for (uint32_t n = 0; n < count; ++n) changes.push_back({mac(n), vtep, false});
  // In pieces, as the daemon does it.
  constexpr std::size_t kPiece = 4096;
  const auto apply = [&](const char* step) {
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < changes.size(); at += kPiece) {
      const auto piece = std::span(changes).subspan(at, std::min(kPiece, changes.size() - at));
      if (auto done = (*kernel)->apply_remote_macs(*domain, piece); !done)
        std::exit(fail(step, done.error().what));
    }
    return seconds_of(began);
  };
  const double added = apply("add");
  auto began = std::chrono::steady_clock::now();
  const auto fdb = (*kernel)->dump_fdb(*domain);
  if (!fdb) return fail("dump", fdb.error().what);
  const double dumped = seconds_of(began);
  for (auto& change : changes) change.vtep.reset();
  const double removed = apply("remove");
  if (auto gone = (*kernel)->teardown(links); !gone) return fail("teardown", gone.error().what);
  std::printf(
      "{\"macs\": %u, \"add_s\": %.4f, \"dump_s\": %.4f, \"dumped\": %zu, \"remove_s\": %.4f}\n",
      count, added, dumped, fdb->size(), removed);
  return 0;
}
