// SPDX-License-Identifier: GPL-2.0-or-later
// The longest turn of the daemon's thread that each operation on a whole table takes, without
// sockets: the call itself, and then, as after each flush of the speaker, work(), take_changes()
// and what is pulled for each peer, until all is done.
//
//   rib_turns [routes]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/rib_routes.h"
#include "bgp/export_policy.h"
#include "bgp/message.h"
#include "bgp/rib.h"
#include "evpn/nlri.h"

namespace {

constexpr std::size_t kQueueOctets = 262144, kTurnOctets = 4 << 20;  // as in bgp/io
constexpr bgp::PeerId kFirst = 1, kSecond = 2, kReceiver = 3, kFiltered = 4, kSlow = 5;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Half final : bgp::RoutePolicy {
  bgp::Verdict judge(std::span<const uint8_t> nlri, const bgp::Attributes&) const override {
    return nlri.size() > 28 && nlri[28] % 2 == 0 ? bgp::Verdict::Reject : bgp::Verdict::Accept;
  }
  std::string explain(std::span<const uint8_t>, const bgp::Attributes&) const override {
    return "half";
  }
};
struct None final : bgp::SendFilter {
  bool wants(const bgp::Attributes&) const override { return false; }
};

bgp::PeerTraits traits(bgp::PeerId peer) {
  bgp::PeerTraits traits;
  traits.role = bgp::NeighborRole::ReflectorClient;
  traits.address = net::IpAddress::v4(0x0a630100 + peer);
  traits.router_id = 0x0a630100 + peer;
  traits.as_number = 65000;
  traits.long_lived = true;
  return traits;
}

class Turns {
 public:
  explicit Turns(uint32_t routes)
      : rib_({.local_as = net::AsNumber(65000),
              .router_id = 0x0a630001,
              .cluster_id = 0x0a630001,
              .hash_seed = 12345}),
        sender_(bench::make_sender(1, routes, false)) {}

  void run() {
    for (const bgp::PeerId peer : {kFirst, kSecond, kReceiver, kFiltered})
      rib_.peer_up(peer, traits(peer));
    measure("first sender announces", nullptr, kFirst);
    measure("second sender announces the same", nullptr, kSecond);
    measure("first sender's session lost, kept", [&] { rib_.peer_down(kFirst, true); });
    measure("kept for long", [&] { rib_.long_lived_stale(kFirst); });
    measure("it is back, with an accept policy", [&] {
      auto here = traits(kFirst);
      here.accept = std::make_shared<Half>();
      rib_.peer_up(kFirst, here);
    });
    measure("it announces again", nullptr, kFirst);
    measure("End-of-RIB", [&] { rib_.end_of_rib(kFirst); });
    measure("its accept policy goes", [&] { rib_.set_policies(kFirst, nullptr, nullptr); });
    measure("a send policy for a receiver",
            [&] { rib_.set_policies(kReceiver, nullptr, std::make_shared<Half>()); });
    measure("it goes", [&] { rib_.set_policies(kReceiver, nullptr, nullptr); });
    measure("a send filter that wants nothing",
            [&] { rib_.set_send_filter(kFiltered, std::make_shared<None>(), false); });
    measure("the receiver asks for a refresh", [&] { rib_.refresh(kReceiver, true); });
    measure("so does the filtered one", [&] { rib_.refresh(kFiltered, true); });
    measure("the filter goes", [&] { rib_.set_send_filter(kFiltered, nullptr, false); });
    measure("a refresh begins", [&] { rib_.refresh_begins(kSecond); });
    measure("and ends without a route", [&] { rib_.refresh_ends(kSecond); });
    measure("a late joiner", [&] { rib_.peer_up(kSlow, traits(kSlow)); });
    slow_ = true;  // takes nothing from here on
    measure("session lost, a slow peer", [&] { rib_.peer_down(kFirst, false); });
    rib_.peer_up(kFirst, traits(kFirst));
    measure("announced, a slow peer", nullptr, kFirst);
    measure("withdrawn, a slow peer", nullptr, kFirst, true);
    measure("announced again, a slow peer", nullptr, kFirst);
    measure("the slow peer goes", [&] { rib_.peer_down(kSlow, false); });
    measure("session lost", [&] { rib_.peer_down(kFirst, false); });
    measure("memory back", nullptr);
  }

 private:
  void measure(const char* name, const std::function<void()>& begin, bgp::PeerId feeds = 0,
               bool withdraws = false) {
    longest_ = 0;
    std::size_t turns = 0;
    const double from = cpu_seconds();
    if (begin) turn(begin);
    const auto& messages = withdraws ? sender_.withdrawals : sender_.announcements;
    std::size_t next = feeds != 0 ? 0 : messages.size();
    for (bool more = true; more; ++turns) {
      more = false;
      if (next < messages.size()) {
        turn([&] {
          for (int i = 0; i < 32 && next < messages.size(); ++i) feed(feeds, messages[next++]);
        });
        more = true;
      }
      turn([&] { more |= flush(); });
    }
    const double seconds = cpu_seconds() - from, longest = longest_;
    longest_ = 0;
    for (bool more = true; more;) turn([&] { more = rib_.tidy(); });
    std::printf("%-36s %6zu turns  %7.1f ms in all  longest %6.2f ms  (tidy %5.2f ms)\n", name,
                turns, seconds * 1e3, longest * 1e3, longest_ * 1e3);
  }
  void turn(const std::function<void()>& what) {
    const double from = cpu_seconds();
    what();
    longest_ = std::max(longest_, cpu_seconds() - from);
  }
  void feed(bgp::PeerId peer, std::span<const uint8_t> message) {
    auto update =
        bgp::decode_update(message.subspan(bgp::kHeaderSize), evpn::family(), {}, &cache_);
    if (!update) std::abort();
    rib_.withdraw(peer, update->unreach);
    rib_.update(peer, update->reach, update->attributes);
  }
  bool flush() {
    bool more = rib_.work();
    (void)rib_.take_changes();
    for (const bgp::PeerId peer : rib_.take_ready())
      if (std::ranges::find(ready_, peer) == ready_.end()) ready_.push_back(peer);
    std::size_t octets = 0;
    std::vector<bgp::PeerId> later;
    for (const bgp::PeerId peer : ready_) {
      if (peer == kSlow && slow_) continue;
      if (octets >= kTurnOctets) {
        later.push_back(peer);
        continue;
      }
      std::size_t mine = 0;
      while (mine < kQueueOctets) {
        const auto message = rib_.pull(peer);
        if (message == nullptr) break;
        mine += message->size();
      }
      octets += mine;
      if (mine >= kQueueOctets || rib_.unfinished(peer)) later.push_back(peer);
    }
    ready_ = later;
    return more || !ready_.empty();
  }

  bgp::Rib rib_;
  bench::Sender sender_;
  bgp::DecodeCache cache_;
  std::vector<bgp::PeerId> ready_;
  double longest_ = 0;
  bool slow_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  Turns(argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 1000000).run();
}
