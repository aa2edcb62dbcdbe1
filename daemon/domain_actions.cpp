// SPDX-License-Identifier: GPL-2.0-or-later
// What the MAC-VRF and the responder decided, carried out: routes, kernel and eBPF entries, frames.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "daemon/domain.h"
#include "evpn/nlri.h"

namespace peerland {
namespace {

// Remote MACs collected before they go to the kernel in one batch, within one event.
constexpr std::size_t kFlushAt = 4096;

// All MACs that other PEs bind the address to: one, or those of an anycast address.
std::vector<proxyarp::Responder::EvpnBinding> evpn_bindings(
    const evpn::RemoteBindingChanged& change) {
  std::vector<proxyarp::Responder::EvpnBinding> bindings;
  const auto add = [&](net::MacAddress mac, const evpn::ArpNdFlags& flags) {
    bindings.push_back({mac, {flags.router, flags.override_flag}, flags.immutable});
  };
  if (change.mac) add(*change.mac, change.flags);
  for (const auto& other : change.others) add(other.mac, other.flags);
  return bindings;
}

// Of several changes of one MAC the last counts: one that was placed and is gone again must not
// get into the mirror.
std::vector<dataplane::RemoteMac> last_of_each(std::vector<dataplane::RemoteMac> changes) {
  std::unordered_set<net::MacAddress> seen;
  std::vector<dataplane::RemoteMac> kept;
  kept.reserve(changes.size());
  for (auto it = changes.rbegin(); it != changes.rend(); ++it)
    if (seen.insert(it->mac).second) kept.push_back(*it);
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace

void Domain::remote_route(const evpn::Route& route, const bgp::AttributesPtr& attributes,
                          net::TimePoint now) {
  if (evpn::route_distinguisher(route) == vrf_.rd()) return;  // our own
  run(vrf_.remote(route, attributes, now), now);
  if (pending_macs_.size() >= kFlushAt) flush();
}

void Domain::place(const evpn::MacPlaced& placed, net::TimePoint now) {
  const bool mirror = uses_ebpf();
  if (const auto* away = std::get_if<evpn::AtVtep>(&placed.after)) {
    pending_macs_.push_back({placed.mac, away->vtep, away->sticky});
  } else {
    if (const auto* at = std::get_if<evpn::AtPort>(&placed.after)) {
      flush();
      if (std::holds_alternative<evpn::AtVtep>(placed.before))
        check(services_.kernel.remove_tunnel_mac(devices_, placed.mac));
      if (at->sticky) check(services_.kernel.set_port_mac(at->port, placed.mac));
      if (mirror) check(services_.fast_path->add_mac(settings_.evpn.vni, placed.mac));
    } else {
      if (mirror) check(services_.fast_path->remove_mac(settings_.evpn.vni, placed.mac));
      // Removals are collected, too: many MACs may go at once. See flush() for their order.
      if (const auto* was = std::get_if<evpn::AtPort>(&placed.before))
        check(services_.kernel.remove_port_mac(was->port, placed.mac));
      else
        pending_macs_.push_back({placed.mac, std::nullopt, false});
    }
  }
  proxyarp::MacWhere where = proxyarp::MacWhere::Nowhere;
  net::IfIndex port;
  if (const auto* at = std::get_if<evpn::AtPort>(&placed.after)) {
    where = proxyarp::MacWhere::LocalPort;
    port = at->port;
  } else if (std::holds_alternative<evpn::AtVtep>(placed.after)) {
    where = proxyarp::MacWhere::Remote;
  }
  run(responder_.mac_placed(placed.mac, where, port, now), now);
}

void Domain::flush() {
  if (pending_macs_.empty()) return;
  const auto changes = last_of_each(std::exchange(pending_macs_, {}));
  const bool all = check(services_.kernel.apply_remote_macs(devices_, changes));
  if (!uses_ebpf()) return;
  for (const auto& change : changes) {
    if (!change.vtep) continue;
    // After an error it is not known which the FDB has: in the mirror they would be flooded without
    // limit. The next reconciliation, which reads the FDB, adds those that are there.
    if (all)
      check(services_.fast_path->add_mac(settings_.evpn.vni, change.mac));
    else
      check(services_.fast_path->remove_mac(settings_.evpn.vni, change.mac));
  }
}

void Domain::run(std::vector<evpn::Action>&& actions, net::TimePoint now) {
  for (auto& action : actions) {
    if (auto* originate = std::get_if<evpn::Originate>(&action)) {
      services_.speaker.originate(evpn::encode_item(originate->route).item(),
                                  originate->attributes);
    } else if (auto* withdraw = std::get_if<evpn::Withdraw>(&action)) {
      services_.speaker.withdraw(evpn::encode_item(withdraw->route).item());
    } else if (auto* placed = std::get_if<evpn::MacPlaced>(&action)) {
      place(*placed, now);
    } else if (auto* change = std::get_if<evpn::FloodChanged>(&action)) {
      if (change->added) {
        core_flood_.insert(change->vtep);
        check(services_.kernel.add_flood(devices_, change->vtep));
      } else {
        core_flood_.erase(change->vtep);
        check(services_.kernel.remove_flood(devices_, change->vtep));
      }
    } else if (auto* binding = std::get_if<evpn::RemoteBindingChanged>(&action)) {
      run(responder_.evpn_bindings(binding->ip, evpn_bindings(*binding), now), now);
    } else if (auto* raised = std::get_if<evpn::Alarm>(&action)) {
      alarm(*raised);
    }
  }
}

void Domain::run(std::vector<proxyarp::Action>&& actions, net::TimePoint now) {
  for (auto& action : actions) std::visit([&](auto& what) { carry_out(what, now); }, action);
}

void Domain::carry_out(const proxyarp::Transmit& out, net::TimePoint now) {
  transmit(out.port, out.frame, now);
}
void Domain::carry_out(const proxyarp::TransmitCore& out, net::TimePoint now) {
  transmit(devices_.vxlan, out.frame, now);
}
void Domain::carry_out(const proxyarp::Flood& wide, net::TimePoint now) { flood(wide, now); }

void Domain::carry_out(const proxyarp::SetFastEntry& entry, net::TimePoint) {
  set_fast_entry(entry);
}
void Domain::carry_out(const proxyarp::ClearFastEntry& entry, net::TimePoint) {
  if (uses_ebpf())
    check(services_.fast_path->clear_binding(settings_.evpn.vni, entry.ip));
  else
    answered_.erase(entry.ip);
}

void Domain::carry_out(const proxyarp::LocalBindingUp& bound, net::TimePoint now) {
  run(vrf_.local_binding(bound.ip, bound.mac,
                         {bound.flags.router, bound.flags.override_flag, bound.immutable}, now),
      now);
}
void Domain::carry_out(const proxyarp::LocalBindingDown& unbound, net::TimePoint now) {
  run(vrf_.local_binding_gone(unbound.ip, unbound.mac, now), now);
}

void Domain::carry_out(const proxyarp::Alarm& raised, net::TimePoint) { alarm(raised); }

// The MAC-VRF takes the bridge's entry and the mirror's along. A provisioned MAC stays as long as
// its port is up.
void Domain::carry_out(const proxyarp::FlushMac& gone, net::TimePoint now) {
  const PortState* port = find_port(gone.port);
  if (port != nullptr &&
      std::ranges::find(port->settings.macs, gone.mac) != port->settings.macs.end())
    return;
  check(services_.kernel.remove_port_mac(gone.port, gone.mac));
  run(vrf_.local_mac_gone(gone.mac, gone.port, now), now);
}

void Domain::carry_out(const proxyarp::AntiSpoofUp& up, net::TimePoint now) {
  run(vrf_.anti_spoof(up.ip, up.mac, now), now);
}
void Domain::carry_out(const proxyarp::AntiSpoofDown& down, net::TimePoint now) {
  run(vrf_.anti_spoof_gone(down.ip, now), now);
}

// --- timers

net::TimePoint Domain::deadline() const {
  net::TimePoint next = std::min({vrf_.deadline(), responder_.deadline(), guard_deadline()});
  for (const auto& [mac, asked] : asked_) next = std::min(next, asked.until);
  return next;
}

void Domain::tick(net::TimePoint now) {
  if (vrf_.deadline() <= now) run(vrf_.tick(now), now);
  if (responder_.deadline() <= now) run(responder_.tick(now), now);
  give_up_silent(now);
  if (guard_deadline() <= now) settle(now);
  flush();
}

}  // namespace peerland
