// SPDX-License-Identifier: GPL-2.0-or-later
// A broadcast domain at work. In: kernel events, punted or captured frames, best routes. Out:
// kernel and eBPF entries, frames, our own routes.
//
// Order matters in two places. A MAC enters the eBPF mirror of the FDB after the FDB and leaves it
// before (the other way round it would be flooded without limit); and the eBPF programs stand
// before a port joins the bridge, so that nothing unwanted enters in between.
#include "daemon/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxyarp/arp.h"
#include "proxyarp/ethernet.h"
#include "proxyarp/nd.h"

namespace peerland {
namespace {

// Remote MACs collected before they go to the kernel in one batch, within one event.
constexpr std::size_t kFlushAt = 4096;

const dataplane::BumPolicy& policy_of(const Domain::Policies& policies, const std::string& name) {
  static const dataplane::BumPolicy fallback = dataplane::peering_policy();
  const auto found = policies.find(name);
  return found == policies.end() ? fallback : found->second;
}

bool contains(const std::vector<net::MacAddress>& macs, net::MacAddress mac) {
  return std::ranges::find(macs, mac) != macs.end();
}

net::MacAddress source_of(std::span<const uint8_t> frame) {
  return net::MacAddress::from_bytes(frame.subspan(6, 6));
}

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

}  // namespace

Domain::Domain(const config::BroadcastDomain& settings, const Policies& policies, Services services)
    : settings_(settings),
      policies_(policies),
      services_(services),
      vrf_(settings.evpn),
      responder_(settings.proxy, settings.evpn.vni.value) {
  for (const auto& port : settings_.ports) ports_[port.interface].settings = port;
}

Domain::~Domain() = default;

void Domain::kernel_refused(const std::string& what) {
  ++counters_.kernel_errors;
  services_.log.limited(spdlog::level::err, settings_.name + what,
                        fmt::format("{}: {}", settings_.name, what), net::Clock::now());
}

// --- start, settings -----------------------------------------------------------------------------

dataplane::PortConfig Domain::port_config(const PortState& port) const {
  dataplane::PortConfig config;
  config.index = port.index;
  config.vni = settings_.evpn.vni;
  config.policy = policy_of(policies_, port.settings.policy);
  config.proxy = settings_.proxy.profile != proxyarp::Profile::Off;
  // A list of several MACs: the one in use is found by seeing it (RFC 9161 section 3.2).
  config.learn = settings_.proxy.learns() || port.settings.macs.size() > 1;
  config.macs = port.settings.macs;
  config.enforce_macs = port.settings.enforce_macs && !port.settings.macs.empty();
  return config;
}

dataplane::PortConfig Domain::core_config() const {
  dataplane::PortConfig config;
  config.index = devices_.vxlan;
  config.kind = dataplane::PortKind::Core;
  config.vni = settings_.evpn.vni;
  config.policy = policy_of(policies_, settings_.core_policy);
  config.proxy = false;
  return config;
}

bool Domain::configure_core(std::string& problem) {
  if (uses_ebpf()) {
    if (auto set = services_.fast_path->set_port(core_config()); !set) {
      problem = set.error().what;
      return false;
    }
    return true;
  }
  services_.soft_policy.set_port(core_config());
  if (core_capture_) return true;
  auto capture =
      dataplane::PcapCapture::open(services_.io, settings_.links.vxlan, devices_.vxlan,
                                   [this](net::IfIndex port, std::span<const uint8_t> frame) {
                                     soft_frame(port, frame, net::Clock::now());
                                   });
  if (!capture) {
    problem = capture.error().what;
    return false;
  }
  core_capture_ = std::move(*capture);
  return true;
}

std::expected<void, std::string> Domain::start(net::TimePoint now) {
  const auto failed = [&](const std::string& what) {
    return std::unexpected(fmt::format("broadcast domain {}: {}", settings_.name, what));
  };
  auto devices = services_.kernel.ensure_domain(settings_.links);
  if (!devices) return failed(devices.error().what);
  devices_ = *devices;
  std::string problem;
  if (!configure_core(problem)) return failed(problem);
  if (auto set = services_.kernel.set_core_flags(devices_, settings_.links.flood_unknown_unicast,
                                                 uses_ebpf());
      !set)
    return failed(set.error().what);
  // What an earlier run installed stays in force until converged(); its flood list is known again.
  auto fdb = services_.kernel.dump_fdb(devices_);
  if (!fdb) return failed(fdb.error().what);
  for (const auto& entry : *fdb)
    if (!entry.on_bridge && entry.mac.is_zero() && entry.vtep) core_flood_.insert(*entry.vtep);
  started_ = true;
  run(vrf_.start(now), now);
  auto links = services_.kernel.links();
  if (!links) return failed(links.error().what);
  for (const auto& link : *links) link_changed(link, now);
  for (const auto& entry : *fdb)
    if (entry.on_bridge && !entry.permanent && !entry.external)
      fdb_learned(entry.port, entry.mac, now);
  adopt_learned(now);
  for (const auto& [name, port] : ports_)
    if (port.index.value == 0)
      services_.log.logger().warn("{}: member port {} does not exist (yet)", settings_.name, name);
  flush();
  return {};
}

// Learned bindings of the earlier run, from the pinned eBPF map: they are as good as an
// announcement of their owner when its MAC is still at the same port.
void Domain::adopt_learned(net::TimePoint now) {
  if (!uses_ebpf() || !settings_.proxy.learns()) return;
  for (const auto& binding : services_.fast_path->bindings()) {
    if (binding.vni != settings_.evpn.vni || binding.port.value == 0) continue;
    const auto place = vrf_.place_of(binding.mac);
    const auto* at = std::get_if<evpn::AtPort>(&place);
    if (at == nullptr || at->port != binding.port) continue;
    const net::Bytes frame =
        binding.ip.is_v4()
            ? proxyarp::encode_arp(proxyarp::arp_announcement(binding.ip, binding.mac))
            : proxyarp::encode_nd(proxyarp::unsolicited_advertisement(binding.ip, binding.mac,
                                                                      {binding.router, true}));
    run(responder_.member_frame(binding.port, frame, true, now).actions, now);
  }
}

void Domain::apply(const config::BroadcastDomain& settings, const Policies& policies,
                   net::TimePoint now) {
  settings_ = settings;
  policies_ = policies;
  std::map<std::string, dataplane::MemberPort> wanted;
  for (const auto& port : settings.ports) wanted[port.interface] = port;
  for (auto it = ports_.begin(); it != ports_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    PortState& port = it->second;
    set_up(port, false, now);
    if (port.attached) {
      for (const auto& mac : port.settings.macs)
        check(services_.kernel.remove_port_mac(port.index, mac));
      check(services_.kernel.detach_port(port.index));
      if (uses_ebpf())
        check(services_.fast_path->remove_port(port.index));
      else
        services_.soft_policy.remove_port(port.index);
    }
    port_names_.erase(port.index);
    it = ports_.erase(it);
  }
  std::string problem;
  if (!configure_core(problem)) services_.log.logger().error("{}: {}", settings_.name, problem);
  run(responder_.reconfigure(settings.proxy, now), now);
  auto links = services_.kernel.links();
  for (const auto& [name, port_settings] : wanted) {
    PortState& port = ports_[name];
    const auto before = std::exchange(port.settings, port_settings);
    if (!port.attached) continue;
    for (const auto& mac : before.macs) {
      if (contains(port_settings.macs, mac)) continue;
      check(services_.kernel.remove_port_mac(port.index, mac));
      run(vrf_.local_mac_gone(mac, port.index, now), now);
    }
    if (uses_ebpf())
      check(services_.fast_path->set_port(port_config(port)));
    else
      services_.soft_policy.set_port(port_config(port));
    if (port.up) provision(port, now);
  }
  if (check(links))
    for (const auto& link : *links) link_changed(link, now);
  flush();
}

void Domain::withdraw_all(net::TimePoint now) {
  for (auto& [name, port] : ports_) set_up(port, false, now);
  services_.speaker.withdraw(
      evpn::encode_item(evpn::InclusiveMulticast{vrf_.rd(), 0, settings_.evpn.vtep}).item());
  flush();
}

// --- member ports --------------------------------------------------------------------------------

bool Domain::wants_interface(const std::string& name) const { return ports_.contains(name); }

bool Domain::has_port(net::IfIndex port) const {
  return port == devices_.vxlan || port_names_.contains(port);
}

PortState* Domain::port_by_index(net::IfIndex port) {
  const auto found = port_names_.find(port);
  return found == port_names_.end() ? nullptr : &ports_.at(found->second);
}

const PortState* Domain::find_port(net::IfIndex port) const {
  const auto found = port_names_.find(port);
  return found == port_names_.end() ? nullptr : &ports_.at(found->second);
}

void Domain::link_changed(const dataplane::LinkChanged& event, net::TimePoint now) {
  // A renamed or deleted interface leaves its port.
  if (PortState* known = port_by_index(event.index);
      known != nullptr && (!event.exists || known->settings.interface != event.name)) {
    set_up(*known, false, now);
    if (uses_ebpf())
      check(services_.fast_path->remove_port(known->index));
    else
      services_.soft_policy.remove_port(known->index);
    known->capture.reset();
    known->index = {};
    known->attached = false;
    port_names_.erase(event.index);
  }
  if (!event.exists) return;
  const auto found = ports_.find(event.name);
  if (found == ports_.end()) return;
  PortState& port = found->second;
  if (port.index != event.index) {
    port.index = event.index;
    port.attached = false;
    port_names_[event.index] = event.name;
  }
  if (!port.attached || event.bridge != devices_.bridge) attach(port, now);
  if (port.attached) set_up(port, event.up, now);
}

void Domain::attach(PortState& port, net::TimePoint now) {
  port.problem.clear();
  if (uses_ebpf()) {
    if (auto set = services_.fast_path->set_port(port_config(port)); !set)
      port.problem = set.error().what;
  } else {
    services_.soft_policy.set_port(port_config(port));
    auto capture =
        dataplane::PcapCapture::open(services_.io, port.settings.interface, port.index,
                                     [this](net::IfIndex index, std::span<const uint8_t> frame) {
                                       soft_frame(index, frame, net::Clock::now());
                                     });
    if (capture)
      port.capture = std::move(*capture);
    else
      port.problem = capture.error().what;
  }
  if (port.problem.empty()) {
    if (auto joined = services_.kernel.attach_port(
            devices_, port.index, settings_.links.flood_unknown_unicast, uses_ebpf());
        !joined)
      port.problem = joined.error().what;
  }
  port.attached = port.problem.empty();
  if (!port.attached) {
    ++counters_.kernel_errors;
    services_.log.limited(spdlog::level::err, "attach" + port.settings.interface,
                          fmt::format("{}: port {} not attached: {}", settings_.name,
                                      port_text(port.index), port.problem),
                          now);
  }
}

void Domain::set_up(PortState& port, bool up, net::TimePoint now) {
  if (port.up == up) return;
  port.up = up;
  port.since = now;
  services_.log.logger().info("{}: port {} is {}", settings_.name, port_text(port.index),
                              up ? "up" : "down");
  if (up) {
    run(responder_.port_up(port.index, port.settings.interface, now), now);
    provision(port, now);
  } else {
    ++port.flaps;
    run(vrf_.port_down(port.index, now), now);
    run(responder_.port_down(port.index, now), now);
  }
  flush();
}

// A single provisioned MAC is there while its port is up; of several, the one that is seen.
void Domain::provision(const PortState& port, net::TimePoint now) {
  if (port.settings.macs.size() == 1)
    run(vrf_.local_mac(port.settings.macs.front(), port.index, true, now), now);
}

// A frame or the bridge showed a MAC at a port.
void Domain::seen(PortState& port, net::MacAddress mac, bool by_bridge, net::TimePoint now) {
  if (!mac.is_unicast() || !port.up) return;
  const bool provisioned = contains(port.settings.macs, mac);
  if (!provisioned && port.settings.enforce_macs && !port.settings.macs.empty()) return;
  const auto place = vrf_.place_of(mac);
  if (const auto* at = std::get_if<evpn::AtPort>(&place); at != nullptr && at->port == port.index)
    return;
  run(vrf_.local_mac(mac, port.index, provisioned, now), now);
  const auto after = vrf_.place_of(mac);
  const auto* at = std::get_if<evpn::AtPort>(&after);
  const bool here = at != nullptr && at->port == port.index;
  // What tc answered, the bridge did not learn.
  if (here && !by_bridge && !provisioned) check(services_.kernel.refresh_port_mac(port.index, mac));
  // The bridge learned what must stay elsewhere: put its entry right again.
  if (!here && by_bridge) {
    ++counters_.repairs;
    if (const auto* away = std::get_if<evpn::AtVtep>(&after)) {
      pending_macs_.push_back({mac, away->vtep, away->sticky});
    } else if (at != nullptr && at->sticky) {
      check(services_.kernel.set_port_mac(at->port, mac));
    } else {
      check(services_.kernel.remove_port_mac(port.index, mac));
    }
  }
}

void Domain::fdb_learned(net::IfIndex port, net::MacAddress mac, net::TimePoint now) {
  if (PortState* state = port_by_index(port)) seen(*state, mac, true, now);
}

void Domain::fdb_gone(net::IfIndex port, net::MacAddress mac, net::TimePoint now) {
  const auto place = vrf_.place_of(mac);
  if (const auto* at = std::get_if<evpn::AtPort>(&place); at != nullptr && at->port == port) {
    PortState* state = port_by_index(port);
    if (at->sticky && state != nullptr && state->up) {
      ++counters_.repairs;
      check(services_.kernel.set_port_mac(port, mac));
    } else {
      run(vrf_.local_mac_gone(mac, port, now), now);
    }
  } else if (const auto* away = std::get_if<evpn::AtVtep>(&place);
             away != nullptr && port == devices_.vxlan) {
    ++counters_.repairs;
    pending_macs_.push_back({mac, away->vtep, away->sticky});
  }
}

// --- frames --------------------------------------------------------------------------------------

void Domain::punt(net::IfIndex port, std::span<const uint8_t> frame, bool copy,
                  net::TimePoint now) {
  PortState* state = port_by_index(port);
  if (state == nullptr || frame.size() < 14) return;
  // A MAC is learned from what the responder finds in order only.
  auto outcome = responder_.member_frame(port, frame, copy, now);
  ++state->verdicts[static_cast<std::size_t>(outcome.verdict)];
  switch (outcome.verdict) {
    case proxyarp::Verdict::SpoofedSender:
    case proxyarp::Verdict::NotOwner:
    case proxyarp::Verdict::MalformedArp:
    case proxyarp::Verdict::MalformedNd: break;
    default: seen(*state, source_of(frame), false, now);
  }
  run(std::move(outcome.actions), now);
}

// pcap mode: a frame was captured at a port or came out of the fabric. The kernel floods nothing,
// so what is broadcast or multicast is ours to pass on; unicast went its way and is for learning
// only.
void Domain::soft_frame(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now) {
  if (frame.size() < 14) return;
  const bool core = port == devices_.vxlan;
  const auto direction = core ? dataplane::Direction::Decap : dataplane::Direction::Ingress;
  if (!services_.soft_policy.pass(port, direction, frame, now)) return;
  const bool group = (frame[0] & 1) != 0;
  const bool resolution = proxyarp::classify(frame) != proxyarp::FrameClass::Other;
  if (resolution && settings_.proxy.profile != proxyarp::Profile::Off) {
    if (core)
      run(responder_.core_frame(frame, now).actions, now);
    else
      punt(port, frame, !group, now);
  } else if (group) {
    proxyarp::Flood rest{net::Bytes(frame.begin(), frame.end()), port, true, !core};
    flood(rest, now);
  }
  flush();
}

void Domain::transmit(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now) {
  if (!uses_ebpf()) {
    const auto direction =
        port == devices_.vxlan ? dataplane::Direction::Encap : dataplane::Direction::Egress;
    if (!services_.soft_policy.pass(port, direction, frame, now)) return;
  }
  services_.sender.send(port, frame);
}

void Domain::flood(const proxyarp::Flood& flood, net::TimePoint now) {
  if (flood.local)
    for (const auto& [name, port] : ports_)
      if (port.attached && port.up && port.index != flood.except)
        transmit(port.index, flood.frame, now);
  if (flood.core && !core_flood_.empty() && flood.except != devices_.vxlan)
    transmit(devices_.vxlan, flood.frame, now);
}

// --- routes --------------------------------------------------------------------------------------

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
    flush();
    if (const auto* at = std::get_if<evpn::AtPort>(&placed.after)) {
      if (std::holds_alternative<evpn::AtVtep>(placed.before))
        check(services_.kernel.remove_tunnel_mac(devices_, placed.mac));
      if (at->sticky) check(services_.kernel.set_port_mac(at->port, placed.mac));
      if (mirror) check(services_.fast_path->add_mac(settings_.evpn.vni, placed.mac));
    } else {
      if (mirror) check(services_.fast_path->remove_mac(settings_.evpn.vni, placed.mac));
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
  const auto changes = std::exchange(pending_macs_, {});
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
  for (auto& action : actions) {
    if (auto* out = std::get_if<proxyarp::Transmit>(&action)) {
      transmit(out->port, out->frame, now);
    } else if (auto* core = std::get_if<proxyarp::TransmitCore>(&action)) {
      transmit(devices_.vxlan, core->frame, now);
    } else if (auto* wide = std::get_if<proxyarp::Flood>(&action)) {
      flood(*wide, now);
    } else if (auto* entry = std::get_if<proxyarp::SetFastEntry>(&action)) {
      if (uses_ebpf())
        check(services_.fast_path->set_binding({settings_.evpn.vni, entry->ip, entry->mac,
                                                entry->port, entry->flags.router,
                                                entry->flags.override_flag}));
      else
        answered_.insert(entry->ip);
    } else if (auto* clear = std::get_if<proxyarp::ClearFastEntry>(&action)) {
      if (uses_ebpf())
        check(services_.fast_path->clear_binding(settings_.evpn.vni, clear->ip));
      else
        answered_.erase(clear->ip);
    } else if (auto* bound = std::get_if<proxyarp::LocalBindingUp>(&action)) {
      run(vrf_.local_binding(bound->ip, bound->mac,
                             {bound->flags.router, bound->flags.override_flag, bound->immutable},
                             now),
          now);
    } else if (auto* unbound = std::get_if<proxyarp::LocalBindingDown>(&action)) {
      run(vrf_.local_binding_gone(unbound->ip, unbound->mac, now), now);
    } else if (auto* raised = std::get_if<proxyarp::Alarm>(&action)) {
      alarm(*raised);
    }
  }
}

// --- timers
// ---------------------------------------------------------------------------------------

net::TimePoint Domain::deadline() const { return std::min(vrf_.deadline(), responder_.deadline()); }

void Domain::tick(net::TimePoint now) {
  if (vrf_.deadline() <= now) run(vrf_.tick(now), now);
  if (responder_.deadline() <= now) run(responder_.tick(now), now);
  flush();
}

// --- words for people
// ------------------------------------------------------------------------------

std::string Domain::port_name(net::IfIndex port) const {
  if (port == devices_.vxlan) return settings_.links.vxlan;
  const auto found = port_names_.find(port);
  return found == port_names_.end() ? fmt::format("#{}", port.value) : found->second;
}

std::string Domain::port_text(net::IfIndex port) const {
  const PortState* state = find_port(port);
  if (state == nullptr) return port_name(port);
  const auto& s = state->settings;
  if (s.member_as.value == 0 && s.member_name.empty()) return s.interface;
  return fmt::format("{} (AS{} {})", s.interface, s.member_as.value, s.member_name);
}

std::string Domain::place_text(const evpn::MacPlace& place) const {
  if (const auto* at = std::get_if<evpn::AtPort>(&place)) return "port " + port_text(at->port);
  if (const auto* away = std::get_if<evpn::AtVtep>(&place)) return "PE " + to_string(away->vtep);
  return "nowhere";
}

void Domain::alarm(const evpn::Alarm& alarm) {
  const std::string places = place_text(alarm.first) + " and " + place_text(alarm.second);
  std::string text;
  switch (alarm.kind) {
    case evpn::AlarmKind::DuplicateMac:
      ++counters_.duplicate_macs;
      text =
          fmt::format("duplicate MAC {}: moves between {}; frozen", to_string(alarm.mac), places);
      break;
    case evpn::AlarmKind::DuplicateMacCleared:
      text = fmt::format("duplicate MAC {}: cleared", to_string(alarm.mac));
      break;
    case evpn::AlarmKind::StickyMacElsewhere:
      ++counters_.sticky_violations;
      text = fmt::format("provisioned MAC {} seen at a second place: {}", to_string(alarm.mac),
                         places);
      break;
    case evpn::AlarmKind::VtepMismatch:
      text =
          fmt::format("inclusive multicast route: tunnel endpoint and next hop differ: {}", places);
      break;
  }
  services_.log.limited(
      spdlog::level::warn,
      fmt::format("{}{}{}", settings_.name, to_string(alarm.mac), static_cast<int>(alarm.kind)),
      settings_.name + ": " + text, net::Clock::now());
}

void Domain::alarm(const proxyarp::Alarm& alarm) {
  std::string text;
  const std::string where = port_text(alarm.port);
  switch (alarm.kind) {
    case proxyarp::AlarmKind::SpoofedSender:
      ++counters_.spoofed;
      text = fmt::format("port {}: sender {} with MAC {} is bound to {}; not answered", where,
                         to_string(alarm.ip), to_string(alarm.seen), to_string(alarm.bound));
      break;
    case proxyarp::AlarmKind::NotOwner:
      ++counters_.not_owner;
      text = fmt::format("port {}: {} claims {}, which is bound to {}; refused", where,
                         to_string(alarm.seen), to_string(alarm.ip), to_string(alarm.bound));
      break;
    case proxyarp::AlarmKind::DuplicateIp:
      ++counters_.duplicate_ips;
      text = fmt::format("port {}: duplicate address {}: MACs {} and {}", where,
                         to_string(alarm.ip), to_string(alarm.bound), to_string(alarm.seen));
      break;
    case proxyarp::AlarmKind::BindingLimit:
      text = fmt::format("port {}: binding limit reached, {} at {} not learned", where,
                         to_string(alarm.ip), to_string(alarm.seen));
      break;
    default: break;
  }
  services_.log.limited(spdlog::level::warn,
                        fmt::format("{}{}{}{}", settings_.name, alarm.port.value,
                                    to_string(alarm.ip), static_cast<int>(alarm.kind)),
                        settings_.name + ": " + text, net::Clock::now());
}

std::vector<dataplane::Counter> Domain::frame_counters(net::IfIndex port) const {
  return uses_ebpf() ? services_.fast_path->counters(port) : services_.soft_policy.counters(port);
}

}  // namespace peerland
