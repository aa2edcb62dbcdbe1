// SPDX-License-Identifier: GPL-2.0-or-later
// A broadcast domain at work: its devices, its settings and its ports. Frames are in
// domain_frames.cpp, what the modules decide is carried out in domain_actions.cpp, and
// domain_repair.cpp keeps the kernel true.
//
// Order matters in two places. A MAC enters the eBPF mirror of the FDB after the FDB and leaves it
// before (the other way round it would be flooded without limit); and the eBPF programs stand
// before a port joins the bridge, so that nothing unwanted enters in between.
#include "daemon/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/trace.h"
#include "dataplane/driver.h"
#include "proxyarp/arp.h"
#include "proxyarp/nd.h"

namespace peerland {
namespace {

// Not at a veth: what is sent by XDP there is lost, without a word, unless the peer has a program
// or GRO, which cannot be seen from here.
bool wants_xdp(const PortState& port) {
  return port.settings.attach == dataplane::Attach::Xdp &&
         dataplane::driver_of(port.settings.interface) != "veth";
}

bool sponges(const proxyarp::Settings& proxy) {
  return std::ranges::any_of(
      proxy.unassigned, [](const auto& one) { return one.policy == proxyarp::Unassigned::Sponge; });
}

// How often the kernel shows us a bound sender while it answers in its name.
std::chrono::milliseconds renew_period(const proxyarp::Settings& proxy) {
  using namespace std::chrono_literals;
  if (!proxy.learns()) return 0ms;
  auto refresh = proxy.refresh.value_or(proxy.age_time / 3);
  if (refresh == 0s) refresh = proxy.age_time / 3;
  return std::clamp<std::chrono::milliseconds>(std::chrono::milliseconds(refresh) / 10, 1s, 60s);
}

bool contains(const std::vector<net::MacAddress>& macs, net::MacAddress mac) {
  return std::ranges::find(macs, mac) != macs.end();
}

}  // namespace

Domain::Domain(const config::BroadcastDomain& settings, const Policies& policies, Services services)
    : settings_(settings),
      policies_(policies),
      services_(services),
      vrf_(settings.evpn),
      responder_(settings.proxy, settings.evpn.vni.value) {
  for (const auto& port : settings_.ports) ports_[port.interface].settings = in_force(port);
}

Domain::~Domain() {
  const auto traces = traces_;  // each takes itself away
  for (const auto& trace : traces) trace->end();
}

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
  config.name = port.settings.interface;
  config.policy = policy_of(port);
  config.policy.observe = observes(port);
  config.gate = port.guard.open()                              ? dataplane::Gate::Open
                : port.guard.state() == GuardState::Quarantine ? dataplane::Gate::Quarantine
                                                               : dataplane::Gate::Shut;
  config.own_macs = own_macs();
  config.bridge_floods_unknown = settings_.links.flood_unknown_unicast;
  config.proxy = settings_.proxy.profile != proxyarp::Profile::Off;
  // A list of several MACs: the one in use is found by seeing it (RFC 9161 section 3.2).
  config.learn = settings_.proxy.learns() || port.settings.macs.size() > 1;
  if (config.proxy) {
    config.renew = renew_period(settings_.proxy);
    config.own_mac = own_mac();
    config.traps = traps();
  }
  config.xdp = wants_xdp(port);
  config.macs = port.settings.macs;
  config.enforce_macs = port.settings.enforce_macs;
  config.observe_macs = security_of(port).macs == dataplane::Reaction::Count;
  return config;
}

dataplane::PortConfig Domain::core_config() const {
  dataplane::PortConfig config;
  config.index = devices_.vxlan;
  config.kind = dataplane::PortKind::Core;
  config.vni = settings_.evpn.vni;
  config.name = settings_.links.vxlan;
  config.policy = core_policy();
  config.bridge_floods_unknown = settings_.links.flood_unknown_unicast;
  config.proxy = false;
  if (settings_.proxy.profile != proxyarp::Profile::Off) config.own_mac = own_mac();
  return config;
}

std::optional<net::MacAddress> Domain::own_mac() const {
  return devices_.bridge_mac.is_unicast() ? std::optional(devices_.bridge_mac) : std::nullopt;
}

proxyarp::Responder::Identity Domain::identity() const {
  proxyarp::Responder::Identity identity;
  identity.mac = devices_.bridge_mac;
  // What eBPF punts does not reach the stack.
  identity.stack_answers = !uses_ebpf();
  for (const auto& address : settings_.pe_addresses)
    (address.is_v4() ? identity.ipv4 : identity.ipv6) = address;
  return identity;
}

// Where members of other PEs may be asked, answers must find their way back through the fabric.
// With given bindings alone nobody is.
void Domain::identify(net::TimePoint now) {
  const auto& proxy = settings_.proxy;
  const bool asks = proxy.profile != proxyarp::Profile::Off &&
                    (proxy.learns() || sponges(proxy) || !proxy.decoys.addresses.empty());
  run(vrf_.own_mac(asks ? own_mac() : std::nullopt, now), now);
  run(responder_.set_identity(identity(), now), now);
}

// Destinations that nobody may be reached by. A PE with an address of its own on the LAN is reached
// by the bridge's MAC: then what goes to dead addresses is counted only with a MAC of the sponge's.
std::vector<dataplane::TrapMac> Domain::traps() const {
  std::vector<dataplane::TrapMac> traps;
  const auto& proxy = settings_.proxy;
  if (proxy.duplicates.anti_spoof_mac && proxy.duplicates.enabled)
    traps.push_back({*proxy.duplicates.anti_spoof_mac, "anti-spoof"});
  const bool sponge = std::ranges::any_of(
      proxy.unassigned, [](const auto& one) { return one.policy == proxyarp::Unassigned::Sponge; });
  if (!sponge) return traps;
  if (proxy.sponge.mac)
    traps.push_back({*proxy.sponge.mac, "sponge"});
  else if (const auto mac = own_mac(); mac && settings_.pe_addresses.empty())
    traps.push_back({*mac, "sponge"});
  return traps;
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
  auto capture = dataplane::PcapCapture::open(
      services_.io, settings_.links.vxlan, devices_.vxlan,
      [this](net::IfIndex port, std::span<const uint8_t> frame) {
        soft_frame(port, frame, net::Clock::now());
      },
      &services_.sender);
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
  identify(now);
  note_expiry(now);
  for (auto& [name, port] : ports_) configure_guard(port, now);
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
                   const EachRoute& routes, net::TimePoint now) {
  const auto traps_before = traps();
  const bool other_devices = settings.links != settings_.links;
  settings_ = settings;
  policies_ = policies;
  if (other_devices) change_devices();
  std::map<std::string, dataplane::MemberPort> wanted;
  for (const auto& port : settings.ports) wanted[port.interface] = in_force(port);
  note_expiry(now);
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
    traffic_.forget(it->first);
    violation_log_.forget(it->first);
    it = ports_.erase(it);
  }
  std::string problem;
  if (!configure_core(problem)) services_.log.logger().error("{}: {}", settings_.name, problem);
  if (settings.evpn != vrf_.settings()) change_evpn(settings.evpn, routes, now);
  run(responder_.reconfigure(settings.proxy, now), now);
  identify(now);
  auto links = services_.kernel.links();
  for (const auto& [name, port_settings] : wanted) {
    change_port(ports_[name], port_settings, traps() != traps_before, now);
  }
  if (check(links))
    for (const auto& link : *links) link_changed(link, now);
  flush();
}

void Domain::withdraw_all(net::TimePoint now) {
  for (auto& [name, port] : ports_) set_up(port, false, now);
  run(vrf_.stop(), now);
  flush();
  if (!uses_ebpf()) return;
  for (const auto& binding : services_.fast_path->bindings())
    if (binding.vni == settings_.evpn.vni)
      check(services_.fast_path->clear_binding(binding.vni, binding.ip));
  for (const auto& [vni, mac] : services_.fast_path->macs())
    if (vni == settings_.evpn.vni) check(services_.fast_path->remove_mac(vni, mac));
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
    const bool was_attached = std::exchange(known->attached, false);
    set_up(*known, false, now);
    // Under a name that is no port's it must not stay in the bridge without the programs.
    if (event.exists && !ports_.contains(event.name) && was_attached)
      check(services_.kernel.detach_port(known->index));
    // The programs of a renamed one stay, and with them its counters: its name may come back.
    if (!uses_ebpf())
      services_.soft_policy.remove_port(known->index);
    else if (!event.exists)
      check(services_.fast_path->remove_port(known->index));
    known->capture.reset();
    known->index = {};
    port_names_.erase(event.index);
    if (std::exchange(known->link, false))
      guard_changed(*known, known->guard.link_changed(now), now);
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
  const bool belongs = uses_ebpf() || port.guard.open();  // else it is no port of the bridge
  if (port.attached && belongs && event.bridge.value == 0 &&
      now - port.since > std::chrono::seconds(1))
    repaired(fmt::format("{} had left the bridge", port_text(port.index)));
  if (!port.attached || event.bridge != devices_.bridge) attach(port, now);
  if (!port.attached) return;
  if (std::exchange(port.link, event.up) != event.up)
    guard_changed(port, port.guard.link_changed(now), now);
  set_up(port, port.link && port.guard.open(), now);
}

// pcap mode. A second time it takes the place of the first, which has caught what came until then.
void Domain::open_capture(PortState& port) {
  std::vector<net::MacAddress> destinations;
  for (const auto& trap : traps()) destinations.push_back(trap.mac);
  auto capture = dataplane::PcapCapture::open(
      services_.io, port.settings.interface, port.index,
      [this](net::IfIndex index, std::span<const uint8_t> frame) {
        soft_frame(index, frame, net::Clock::now());
      },
      &services_.sender, destinations);
  if (capture)
    port.capture = std::move(*capture);
  else
    port.problem = capture.error().what;
}

void Domain::attach(PortState& port, net::TimePoint now) {
  port.problem.clear();
  if (uses_ebpf() && port.settings.attach == dataplane::Attach::Xdp && !wants_xdp(port))
    services_.log.limited(
        spdlog::level::warn, "xdp" + port.settings.interface,
        fmt::format("{}: port {}: attach: xdp: a veth loses what XDP sends unless its peer "
                    "receives by NAPI; answered by tc",
                    settings_.name, port_text(port.index)),
        now);
  if (uses_ebpf()) {
    if (auto set = services_.fast_path->set_port(port_config(port)); !set)
      port.problem = set.error().what;
  } else {
    services_.soft_policy.set_port(port_config(port));
    open_capture(port);
  }
  // Where the kernel forwards without programs, a closed port is no port of the bridge.
  if (port.problem.empty() && (uses_ebpf() || port.guard.open())) {
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
  if (!by_bridge) asked_.erase(mac);  // it is there; what the bridge says may be our own doing
  const bool provisioned = contains(port.settings.macs, mac);
  if (refuses(port, mac)) return;
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
    repaired(fmt::format("{} was learned at {} and stays at {}", to_string(mac),
                         port_text(port.index), place_text(after)));
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
      repaired(fmt::format("the entry of {} at {} was removed", to_string(mac), port_text(port)));
      check(services_.kernel.set_port_mac(port, mac));
    } else {
      aged(port, mac, now);
    }
  } else if (const auto* away = std::get_if<evpn::AtVtep>(&place);
             away != nullptr && port == devices_.vxlan) {
    repaired(
        fmt::format("the entry of {} at PE {} was removed", to_string(mac), to_string(away->vtep)));
    pending_macs_.push_back({mac, away->vtep, away->sticky});
  }
}

// --- commands of operators

bool Domain::carry_out(std::pair<bool, std::vector<proxyarp::Action>>&& done, net::TimePoint now) {
  run(std::move(done.second), now);
  flush();
  return done.first;
}
bool Domain::clear_binding(const net::IpAddress& ip, net::TimePoint now) {
  return carry_out(responder_.clear_binding(ip, now), now);
}
bool Domain::clear_duplicate(const net::IpAddress& ip, net::TimePoint now) {
  return carry_out(responder_.clear_duplicate(ip, now), now);
}
bool Domain::clear_duplicate(const net::MacAddress& mac, net::TimePoint now) {
  auto actions = vrf_.clear_duplicate(mac, now);
  const bool was_frozen = !actions.empty();
  run(std::move(actions), now);
  flush();
  return was_frozen;
}
bool Domain::set_sponge(const net::IpAddress& ip, proxyarp::SpongeState state, net::TimePoint now) {
  return carry_out(responder_.set_sponge(ip, state, now), now);
}
bool Domain::probe(const net::IpAddress& ip, net::TimePoint now) {
  return carry_out(responder_.probe(ip, now), now);
}

// --- views

std::optional<dataplane::FastBindingUse> Domain::kernel_use(const net::IpAddress& ip) const {
  if (!uses_ebpf()) return std::nullopt;
  return services_.fast_path->use_of(settings_.evpn.vni, ip);
}

std::string Domain::attach_mode(net::IfIndex port) const {
  return uses_ebpf() ? services_.fast_path->attach_mode(port) : "pcap";
}

std::vector<dataplane::Counter> Domain::frame_counters(net::IfIndex port) const {
  return uses_ebpf() ? services_.fast_path->counters(port) : services_.soft_policy.counters(port);
}

}  // namespace peerland
