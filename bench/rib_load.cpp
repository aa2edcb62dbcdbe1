// SPDX-License-Identifier: GPL-2.0-or-later
// How long the RIB alone takes for a route, without sockets: UPDATEs of some senders are decoded
// and put in, a read's worth of each in turn, and what each peer is to be sent is pulled out. Every
// peer is a reflector client. For profiles; the figures that count come from run.sh.
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bench/rib_routes.h"
#include "bgp/message.h"
#include "bgp/rib.h"
#include "evpn/nlri.h"
#include "net/bytes.h"

using namespace bench;

namespace {

constexpr std::size_t kTurnOctets = 131072;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

struct Load {
  bgp::Rib rib;
  std::vector<Sender> senders;
  std::map<bgp::PeerId, bgp::DecodeCache> caches{};
  uint64_t octets_out = 0;

  void feed(bgp::PeerId peer, std::span<const uint8_t> message) {
    auto update =
        bgp::decode_update(message.subspan(bgp::kHeaderSize), evpn::family(), {}, &caches[peer]);
    if (!update) std::abort();
    rib.withdraw(peer, update->unreach);
    rib.update(peer, update->reach, update->attributes);
  }
  void pull() {
    for (const bgp::PeerId peer : rib.take_ready())
      while (const auto message = rib.pull(peer)) octets_out += message->size();
  }
  void phase(const char* name, std::vector<net::Bytes> Sender::* list, double routes) {
    std::vector<std::size_t> next(senders.size());
    octets_out = 0;
    const long faults = page_faults();
    const double begin = cpu_seconds();
    for (bool more = true; more;) {
      more = false;
      for (std::size_t s = 0; s < senders.size(); ++s) {
        const auto& messages = senders[s].*list;
        std::size_t octets = 0;
        while (octets < kTurnOctets && next[s] < messages.size()) {
          octets += messages[next[s]].size();
          feed(static_cast<bgp::PeerId>(s + 1), messages[next[s]++]);
        }
        more |= next[s] < messages.size();
        pull();
      }
    }
    const double seconds = cpu_seconds() - begin;
    const long faulted = page_faults() - faults;
    const double tidied = cpu_seconds();
    while (rib.tidy()) {
    }
    (void)rib.tidy();  // what was not needed since the call before
    while (rib.tidy()) {
    }
    malloc_trim(0);
    std::printf(
        "%-12s %8.0f ns a route  %9.0f routes/s  out %6.1f octets a route  RSS %zu MiB, "
        "tidy %.0f ns a route, %ld page faults\n",
        name, seconds * 1e9 / routes, routes / seconds, static_cast<double>(octets_out) / routes,
        resident_bytes() >> 20, (cpu_seconds() - tidied) * 1e9 / routes, faulted);
  }
};

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_TRIM_THRESHOLD, 16 << 20);  // as daemon/main.cpp
  mallopt(M_TOP_PAD, 1 << 20);
  const auto number = [&](int at, uint32_t otherwise) {
    return argc > at ? static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
  };
  const uint32_t senders = number(1, 4), receivers = number(2, 2), routes = number(3, 1000000);
  const bool unique = number(4, 0) != 0;
  Load load{bgp::Rib({.local_as = net::AsNumber(65000),
                      .router_id = 0x0a630001,
                      .cluster_id = 0x0a630001,
                      .hash_seed = 12345,
                      .track_changes = number(5, 0) != 0}),
            {}};
  for (uint32_t s = 0; s < senders; ++s)
    load.senders.push_back(make_sender(s + 1, routes / senders, unique));
  for (uint32_t p = 1; p <= senders + receivers; ++p) {
    bgp::PeerTraits traits;
    traits.role = bgp::NeighborRole::ReflectorClient;
    traits.address = net::IpAddress::v4(0x0a630100 + p);
    traits.router_id = 0x0a630100 + p;
    traits.as_number = 65000;
    load.rib.peer_up(p, traits);
  }
  load.pull();
  std::printf("RSS before %zu MiB\n", resident_bytes() >> 20);
  load.phase("announce", &Sender::announcements, routes);
  load.phase("same again", &Sender::announcements, routes);
  load.phase("withdraw", &Sender::withdrawals, routes);
  load.phase("re-announce", &Sender::announcements, routes);
  load.phase("withdraw", &Sender::withdrawals, routes);
}
