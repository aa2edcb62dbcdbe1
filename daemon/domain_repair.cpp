// SPDX-License-Identifier: GPL-2.0-or-later
// Keeping the kernel true: what an earlier run left, what somebody meddled with, and what events
// that were lost would have told. Compares and repairs the difference; each repair is counted.
#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "daemon/domain.h"

namespace peerland {

// -----------------------------------------------------------------------

void Domain::converged(net::TimePoint now) {
  converged_ = true;
  reconcile(now);
  if (!uses_ebpf()) return;
  std::set<net::IpAddress> wanted;
  for (const auto& entry : responder_.fast_entries()) wanted.insert(entry.ip);
  for (const auto& binding : services_.fast_path->bindings())
    if (binding.vni == settings_.evpn.vni && !wanted.contains(binding.ip))
      check(services_.fast_path->clear_binding(binding.vni, binding.ip));
}

void Domain::repaired(const std::string& what) {
  constexpr unsigned kMostLines = 20;
  ++counters_.repairs;
  if (++repair_lines_ > kMostLines) return;
  services_.log.logger().warn("{}: put right: {}{}", settings_.name, what,
                              repair_lines_ == kMostLines ? "; more of them are only counted" : "");
}

// Asked of many events: most are ours, and fit what should be.
bool Domain::is_meddling(const dataplane::TunnelChanged& change) const {
  if (change.vxlan != devices_.vxlan) return false;
  if (change.mac.is_zero()) return core_flood_.contains(change.vtep) == change.removed;
  const auto place = vrf_.place_of(change.mac);
  const auto* away = std::get_if<evpn::AtVtep>(&place);
  if (away == nullptr) return !change.removed && change.external && converged_;
  return (away->vtep == change.vtep) == change.removed;
}

void Domain::restore_devices(net::TimePoint now) {
  if (!started_) return;
  auto devices = services_.kernel.ensure_domain(settings_.links);
  if (!check(devices)) return;
  if (devices->bridge == devices_.bridge && devices->vxlan == devices_.vxlan) return;
  repaired(fmt::format("{} or {} was removed", settings_.links.bridge, settings_.links.vxlan));
  if (devices->vxlan != devices_.vxlan) {
    if (uses_ebpf())
      check(services_.fast_path->remove_port(devices_.vxlan));
    else
      services_.soft_policy.remove_port(devices_.vxlan);
    core_capture_.reset();
  }
  devices_ = *devices;
  std::string problem;
  if (!configure_core(problem)) services_.log.logger().error("{}: {}", settings_.name, problem);
  check(services_.kernel.set_core_flags(devices_, settings_.links.flood_unknown_unicast,
                                        uses_ebpf()));
  for (auto& [name, port] : ports_) port.attached = false;
  identify(now);
}

// Programs that somebody detached, port flags that somebody changed.
void Domain::check_ports() {
  if (!started_) return;
  const auto repair = [&](net::IfIndex port) {
    if (!uses_ebpf()) return;
    const auto attached = services_.fast_path->repair_port(port);
    if (!check(attached) || !*attached) return;
    repaired(fmt::format("the eBPF programs of {} were detached", port_text(port)));
  };
  repair(devices_.vxlan);
  for (const auto& [name, port] : ports_) {
    if (!port.attached) continue;
    repair(port.index);
    if (!uses_ebpf() && !port.guard.open()) continue;
    check(services_.kernel.attach_port(devices_, port.index, settings_.links.flood_unknown_unicast,
                                       uses_ebpf()));
  }
  check(services_.kernel.set_core_flags(devices_, settings_.links.flood_unknown_unicast,
                                        uses_ebpf()));
}

void Domain::reconcile(net::TimePoint now) {
  if (!started_) return;
  check_ports();
  flush();
  auto fdb = services_.kernel.dump_fdb(devices_);
  if (!check(fdb)) return;
  struct Held {
    std::optional<net::IpAddress> vtep;  // tunnel entry
    std::optional<net::IfIndex> port;    // bridge entry
    bool external = false, sticky = false;
  };
  std::unordered_map<net::MacAddress, Held> held;
  std::set<net::IpAddress> flood_held;
  for (const auto& entry : *fdb) {
    if (entry.permanent && !entry.sticky && !entry.mac.is_zero() && !entry.vtep) continue;
    if (!entry.on_bridge && entry.mac.is_zero()) {
      if (entry.vtep) flood_held.insert(*entry.vtep);
      continue;
    }
    Held& of = held[entry.mac];
    of.external = of.external || entry.external;
    if (entry.on_bridge) {
      of.port = entry.port;
      of.sticky = entry.sticky;
    } else {
      of.vtep = entry.vtep;
    }
  }
  // 1. What should be there. 2. Local entries that nobody told us of. 3. What should not.
  const uint64_t repairs_before = counters_.repairs;
  std::unordered_map<net::MacAddress, evpn::MacPlace> wanted;
  vrf_.for_each_mac([&](const evpn::MacView& view) {
    if (!std::holds_alternative<std::monostate>(view.place)) wanted[view.mac] = view.place;
  });
  std::vector<std::pair<net::IfIndex, net::MacAddress>> not_there;
  for (const auto& [mac, place] : wanted) {
    const auto found = held.find(mac);
    if (const auto* away = std::get_if<evpn::AtVtep>(&place)) {
      if (found == held.end() || found->second.vtep != away->vtep ||
          found->second.port != devices_.vxlan) {
        repaired(fmt::format("{} was not at PE {}", to_string(mac), to_string(away->vtep)));
        pending_macs_.push_back({mac, away->vtep, away->sticky});
      }
    } else if (const auto* at = std::get_if<evpn::AtPort>(&place)) {
      const bool there = found != held.end() && found->second.port == at->port;
      if (at->sticky && (!there || !found->second.sticky)) {
        repaired(fmt::format("{} was not fixed at {}", to_string(mac), port_text(at->port)));
        check(services_.kernel.set_port_mac(at->port, mac));
      } else if (!at->sticky && !there) {
        not_there.emplace_back(at->port, mac);
      }
      if (found != held.end() && found->second.vtep) {
        repaired(fmt::format("{} of {} was at PE {} as well", to_string(mac), port_text(at->port),
                             to_string(*found->second.vtep)));
        check(services_.kernel.remove_tunnel_mac(devices_, mac));
      }
    }
  }
  std::set<std::pair<net::IfIndex, net::MacAddress>> still_missing;
  for (const auto& [port, mac] : not_there) {
    if (missing_.contains({port, mac}))
      aged(port, mac, now);
    else
      still_missing.emplace(port, mac);
  }
  missing_ = std::move(still_missing);
  for (const auto& [mac, of] : held) {
    if (of.port && *of.port != devices_.vxlan && !of.external)
      fdb_learned(*of.port, mac, now);
    else if (converged_ && of.external && !wanted.contains(mac)) {
      repaired(fmt::format("{} has an entry that nobody announces", to_string(mac)));
      pending_macs_.push_back({mac, std::nullopt, false});
    }
  }
  const auto flood_wanted = vrf_.flood_list();
  core_flood_ = {flood_wanted.begin(), flood_wanted.end()};
  for (const auto& vtep : flood_wanted) {
    if (flood_held.contains(vtep)) continue;
    repaired(fmt::format("PE {} was not in the flood list", to_string(vtep)));
    check(services_.kernel.add_flood(devices_, vtep));
  }
  for (const auto& vtep : flood_held) {
    if (core_flood_.contains(vtep)) continue;
    if (!converged_) {
      core_flood_.insert(vtep);
      continue;
    }
    repaired(fmt::format("PE {} is in the flood list and announces nothing", to_string(vtep)));
    check(services_.kernel.remove_flood(devices_, vtep));
  }
  flush();
  if (uses_ebpf() && converged_) {
    std::unordered_set<net::MacAddress> mirrored;
    for (const auto& [vni, mac] : services_.fast_path->macs()) {
      if (vni != settings_.evpn.vni) continue;
      if (std::holds_alternative<std::monostate>(vrf_.place_of(mac)))
        check(services_.fast_path->remove_mac(vni, mac));
      else
        mirrored.insert(mac);
    }
    // Only what this dump showed: the mirror follows the FDB.
    for (const auto& [mac, of] : held)
      if (of.port && !mirrored.contains(mac) &&
          !std::holds_alternative<std::monostate>(vrf_.place_of(mac)))
        check(services_.fast_path->add_mac(settings_.evpn.vni, mac));
  }
  repair_lines_ = 0;
  if (counters_.repairs != repairs_before)
    services_.log.logger().warn("{}: {} kernel entries put right", settings_.name,
                                counters_.repairs - repairs_before);
}

}  // namespace peerland
