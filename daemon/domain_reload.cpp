// SPDX-License-Identifier: GPL-2.0-or-later
// Settings of a live broadcast domain that change more than ports and bindings.
#include <utility>

#include "daemon/domain.h"

namespace peerland {

// MTU, ageing time, flooding of unknown unicast.
void Domain::change_devices() {
  if (!started_) return;
  const auto devices = services_.kernel.ensure_domain(settings_.links);
  if (!check(devices)) return;
  devices_ = *devices;
  const bool floods = settings_.links.flood_unknown_unicast;
  check(services_.kernel.set_core_flags(devices_, floods, uses_ebpf()));
  for (const auto& [name, port] : ports_)
    if (port.attached && (uses_ebpf() || port.guard.open()))
      check(services_.kernel.attach_port(devices_, port.index, floods, uses_ebpf()));
}

// A MAC-VRF of the new settings takes the place of the old one: only what differs between the two
// goes to the neighbors and to the kernel.
void Domain::change_evpn(const evpn::Settings& settings, const EachRoute& routes,
                         net::TimePoint now) {
  flush();
  evpn::MacVrf fresh(settings);
  fresh.inherit(vrf_, now);
  routes([&](const evpn::Route& route, const bgp::AttributesPtr& attributes) {
    static_cast<void>(fresh.remote(route, attributes, now));
  });
  auto actions = fresh.succeed(vrf_);
  vrf_ = std::move(fresh);
  run(std::move(actions), now);
  flush();
}

void Domain::reachable(const net::IpAddress& vtep, bool yes, net::TimePoint now) {
  run(vrf_.reachable(vtep, yes, now), now);
  flush();
}

}  // namespace peerland
