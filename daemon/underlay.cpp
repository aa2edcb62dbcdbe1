// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/underlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace peerland {
namespace {

template <class T>
std::optional<T> tighter(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

std::optional<dataplane::Limit> tighter(const std::optional<dataplane::Limit>& a,
                                        const std::optional<dataplane::Limit>& b) {
  if (!a || !b) return a ? a : b;
  return dataplane::Limit{
      .packets_per_second = tighter(a->packets_per_second, b->packets_per_second),
      .bits_per_second = tighter(a->bits_per_second, b->bits_per_second),
      .burst = std::min(a->burst, b->burst)};
}

}  // namespace

dataplane::UnderlayConfig underlay_config(const config::NodeSettings& settings) {
  dataplane::UnderlayConfig out;
  if (settings.vtep) out.local = *settings.vtep;
  for (const auto& domain : settings.domains) {
    if (domain.responder != dataplane::ResponderKind::Ebpf) continue;
    if (out.vnis.empty()) out.udp_port = domain.links.udp_port;
    if (domain.links.udp_port != out.udp_port) continue;
    out.vnis.push_back(domain.links.vni);
    const auto policy = settings.policies.find(domain.core_policy);
    if (policy == settings.policies.end()) continue;
    out.per_vtep = tighter(out.per_vtep, policy->second.per_vtep);
    out.observe |= policy->second.observe;
  }
  return out;
}

void Underlay::refused(const std::string& what) {
  log_.limited(spdlog::level::err, "underlay" + what, "underlay: " + what, net::Clock::now());
}

void Underlay::apply(const config::NodeSettings& settings,
                     const std::vector<dataplane::LinkChanged>& links) {
  config_ = underlay_config(settings);
  std::map<std::string, Device> wanted;
  if (!config_.vnis.empty())
    for (const auto& name : settings.underlay_interfaces)
      wanted[name] = devices_.contains(name) ? devices_.at(name) : Device{};
  devices_ = std::move(wanted);
  for (auto& [name, device] : devices_)
    if (device.attached) attach(name, device);
  for (const auto& link : links) link_changed(link);
  // Those of other settings, and of an earlier run.
  for (const auto index : path_.underlays())
    if (!has_device(index)) check(path_.remove_underlay(index));
  for (const auto& [name, device] : devices_)
    if (device.index.value == 0)
      log_.logger().warn("underlay: interface {} does not exist (yet)", name);
}

void Underlay::attach(const std::string& name, Device& device) {
  dataplane::UnderlayConfig config = config_;
  config.index = device.index;
  const auto set = path_.set_underlay(config);
  device.attached = check(set);
  device.problem = set ? std::string() : set.error().what;
  if (!device.attached) log_.logger().error("underlay: {} is not protected", name);
}

void Underlay::link_changed(const dataplane::LinkChanged& link) {
  for (auto& [name, device] : devices_) {
    const bool ours = link.exists && link.name == name;
    if (device.index == link.index && !ours) {
      if (device.attached) check(path_.remove_underlay(device.index));
      device = {};
    }
    if (!ours || (device.index == link.index && device.attached)) continue;
    device.index = link.index;
    attach(name, device);
  }
}

void Underlay::set_vteps(const std::set<net::IpAddress>& vteps) {
  for (const auto& vtep : vteps)
    if (!vteps_.contains(vtep)) check(path_.add_vtep(vtep));
  for (const auto& vtep : vteps_)
    if (!vteps.contains(vtep)) check(path_.remove_vtep(vtep));
  vteps_ = vteps;
}

void Underlay::converged() {
  for (const auto& counter : path_.vtep_counters())
    if (!counter.vtep.is_unspecified() && !vteps_.contains(counter.vtep))
      check(path_.remove_vtep(counter.vtep));
}

bool Underlay::has_device(net::IfIndex index) const {
  return std::ranges::any_of(devices_, [&](const auto& one) { return one.second.index == index; });
}

void Underlay::violation(const dataplane::Violation& violation, net::TimePoint now) {
  ViolationEntry entry;
  for (const auto& [name, device] : devices_)
    if (device.index == violation.port) entry.port = name;
  entry.direction = violation.direction;
  entry.reason = violation.reason;
  entry.mac = violation.source;
  entry.frame.assign(violation.frame.begin(), violation.frame.end());
  log_.limited(spdlog::level::warn, "underlay" + entry.port + entry.reason,
               fmt::format("underlay {}: frame from {} dropped: {}", entry.port,
                           to_string(entry.mac), entry.reason),
               now);
  violations_.add(std::move(entry), now);
}

}  // namespace peerland
