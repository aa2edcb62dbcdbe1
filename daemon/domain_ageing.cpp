// SPDX-License-Identifier: GPL-2.0-or-later
// Learned MACs that the bridge ages. A member that only receives for longer than the ageing time is
// still there: before its route is withdrawn, and its frames are flooded, it is asked for the
// addresses that the proxy knows of it. Its entry stands meanwhile. Without addresses nobody can be
// asked; provisioned MACs do not age.
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/domain.h"

namespace peerland {
namespace {

constexpr std::chrono::seconds kAnswerTime{3};
constexpr std::size_t kMostAsked = 4096;  // at once; others age as they always did

}  // namespace

void Domain::aged(net::IfIndex port, net::MacAddress mac, net::TimePoint now) {
  std::vector<net::IpAddress> addresses;
  const bool asks = settings_.proxy.profile != proxyarp::Profile::Off && !asked_.contains(mac) &&
                    asked_.size() < kMostAsked;
  const PortState* state = find_port(port);
  if (asks && state != nullptr && state->up)
    responder_.for_each_binding([&](const proxyarp::BindingView& binding) {
      if (binding.mac == mac && binding.where == proxyarp::MacWhere::LocalPort &&
          binding.port == port && !binding.duplicate)
        addresses.push_back(binding.ip);
    });
  if (addresses.empty()) {
    asked_.erase(mac);
    ++counters_.aged_gone;
    run(vrf_.local_mac_gone(mac, port, now), now);
    return;
  }
  ++counters_.aged_asked;
  asked_[mac] = {port, now + kAnswerTime};
  check(services_.kernel.refresh_port_mac(port, mac));
  for (const auto& ip : addresses) run(responder_.probe(ip, now).second, now);
}

void Domain::give_up_silent(net::TimePoint now) {
  for (auto it = asked_.begin(); it != asked_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    const net::MacAddress mac = it->first;
    const net::IfIndex port = it->second.port;
    it = asked_.erase(it);
    ++counters_.aged_gone;
    // The place takes the kernel's entry along.
    run(vrf_.local_mac_gone(mac, port, now), now);
  }
}

}  // namespace peerland
