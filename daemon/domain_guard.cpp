// SPDX-License-Identifier: GPL-2.0-or-later
// Port security of a broadcast domain: what the data path and the responder report becomes a line
// for the operator and an entry of `show violations`, and goes to the port's guard. What that
// decides is carried out here: the port's gate in the data path, and whether it counts as up.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/domain.h"

namespace peerland {
namespace {

constexpr std::size_t kMostReports = 4096;
constexpr auto kRecent = std::chrono::seconds(10);
constexpr auto kLongestWait = std::chrono::seconds(30);  // the wall clock may be set

const dataplane::BumPolicy& find_policy(const Domain::Policies& policies, const std::string& name) {
  static const dataplane::BumPolicy fallback = dataplane::peering_policy();
  const auto found = policies.find(name);
  return found == policies.end() ? fallback : found->second;
}

bool is_group(std::span<const uint8_t> frame) { return !frame.empty() && (frame[0] & 1) != 0; }

const char* outcome_text(const GuardChange& change) {
  switch (change.to) {
    case GuardState::Quarantine: return "put in quarantine";
    case GuardState::Shut: return "shut";
    case GuardState::Damped: return "damped";
    case GuardState::Open: break;
  }
  return "open again";
}

std::string cause_text(GuardCause cause) {
  switch (cause) {
    case GuardCause::Macs: return "frames of foreign MAC addresses";
    case GuardCause::Spoofing: return "ARP or ND in the name of others";
    case GuardCause::Protocols: return "frames that the policy does not allow";
    case GuardCause::Loop: return "a loop";
    case GuardCause::Storm: return "a storm";
    case GuardCause::Flaps: return "a flapping link";
    case GuardCause::Settings: return "the settings";
    case GuardCause::Operator: return "an operator";
    case GuardCause::None: break;
  }
  return "nothing";
}

}  // namespace

// --- settings

const dataplane::BumPolicy& Domain::policy_of(const PortState& port) const {
  return find_policy(policies_, port.settings.policy);
}
const dataplane::BumPolicy& Domain::core_policy() const {
  return find_policy(policies_, settings_.core_policy);
}
bool Domain::observes(const PortState& port) const {
  return port.settings.observe || policy_of(port).observe;
}
dataplane::SecuritySettings Domain::security_of(const PortState& port) const {
  return port.settings.security.value_or(policy_of(port).security);
}

// MACs that only this PE sends from.
std::vector<net::MacAddress> Domain::own_macs() const {
  std::vector<net::MacAddress> macs;
  if (const auto mac = own_mac()) macs.push_back(*mac);
  for (const auto& trap : traps())
    if (std::ranges::find(macs, trap.mac) == macs.end()) macs.push_back(trap.mac);
  return macs;
}

dataplane::MemberPort Domain::in_force(const dataplane::MemberPort& given) const {
  dataplane::MemberPort port = given;
  const auto now = std::chrono::system_clock::now();
  for (const auto& temporary : given.temporary_macs)
    if (temporary.until > now && std::ranges::find(port.macs, temporary.mac) == port.macs.end())
      port.macs.push_back(temporary.mac);
  return port;
}

void Domain::note_expiry(net::TimePoint now) {
  next_expiry_ = net::kNever;
  const auto wall = std::chrono::system_clock::now();
  for (const auto& port : settings_.ports)
    for (const auto& temporary : port.temporary_macs) {
      if (temporary.until <= wall) continue;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(temporary.until - wall);
      next_expiry_ = std::min(next_expiry_, now + std::min<net::Duration>(left, kLongestWait));
    }
}

void Domain::expire_macs(net::TimePoint now) {
  for (const auto& given : settings_.ports) {
    if (given.temporary_macs.empty()) continue;
    const auto port = ports_.find(given.interface);
    if (port == ports_.end()) continue;
    const auto fresh = in_force(given);
    if (fresh == port->second.settings) continue;
    services_.log.logger().info("{}: port {}: a temporary MAC address is over", settings_.name,
                                port_text(port->second.index));
    change_port(port->second, fresh, false, now);
  }
  note_expiry(now);
}

// New settings of a port that may be at work.
void Domain::change_port(PortState& port, const dataplane::MemberPort& fresh, bool traps_changed,
                         net::TimePoint now) {
  const auto before = std::exchange(port.settings, fresh);
  configure_guard(port, now);
  if (!port.attached) return;
  if (uses_ebpf())
    check(services_.fast_path->set_port(port_config(port)));
  else
    services_.soft_policy.set_port(port_config(port));
  for (const auto& mac : before.macs) {
    if (std::ranges::find(fresh.macs, mac) != fresh.macs.end()) continue;
    check(services_.kernel.remove_port_mac(port.index, mac));
    run(vrf_.local_mac_gone(mac, port.index, now), now);
  }
  if (!uses_ebpf() && traps_changed) open_capture(port);
  if (port.up) provision(port, now);
}

void Domain::configure_guard(PortState& port, net::TimePoint now) {
  guard_changed(port,
                port.guard.configure({.security = security_of(port),
                                      .quarantined = port.settings.quarantined,
                                      .observe = observes(port)},
                                     now),
                now);
}

bool Domain::refuses(const PortState& port, net::MacAddress mac) const {
  return port.settings.enforce_macs && !observes(port) &&
         security_of(port).macs != dataplane::Reaction::Count &&
         std::ranges::find(port.settings.macs, mac) == port.settings.macs.end();
}

std::expected<std::string, std::string> Domain::set_port(const std::string& name, GuardState wanted,
                                                         net::TimePoint now) {
  PortState& port = ports_.at(name);
  if (port.settings.quarantined)
    return std::unexpected(
        fmt::format("{} is in quarantine by the settings; change its state there", name));
  const auto change = port.guard.set(wanted, now);
  guard_changed(port, change, now);
  flush();
  const std::string state = wanted == GuardState::Open         ? "open"
                            : wanted == GuardState::Quarantine ? "in quarantine"
                                                               : "shut";
  return fmt::format("{} {} {}", name, change ? "is now" : "was already", state);
}

// --- reports

// The fabric sends each frame of a group out of every port: one that comes in with the source of
// somebody elsewhere has most likely come back.
GuardCause Domain::kind_of(const dataplane::Violation& violation) const {
  const std::string_view reason = violation.reason;
  if (reason == "loop") return GuardCause::Loop;
  if (reason == "spoofed-sender") return GuardCause::Spoofing;
  if (reason == "source-invalid") return GuardCause::Macs;
  if (reason != "source-mac") return GuardCause::Protocols;
  const auto place = vrf_.place_of(violation.source);
  const auto* at = std::get_if<evpn::AtPort>(&place);
  const bool elsewhere =
      std::holds_alternative<evpn::AtVtep>(place) || (at != nullptr && at->port != violation.port);
  return elsewhere && is_group(violation.frame) ? GuardCause::Loop : GuardCause::Macs;
}

void Domain::violation(const dataplane::Violation& violation, net::TimePoint now) {
  ViolationEntry entry;
  entry.direction = violation.direction;
  entry.reason = violation.reason;
  entry.kind = kind_of(violation);
  entry.mac = violation.source;
  entry.frame.assign(violation.frame.begin(), violation.frame.end());
  report(violation.port, std::move(entry), now);
}

void Domain::report_frame(net::IfIndex port, GuardCause kind, const char* reason,
                          std::span<const uint8_t> frame, net::TimePoint now) {
  ViolationEntry entry;
  entry.reason = reason;
  entry.kind = kind;
  if (frame.size() >= 12) entry.mac = net::MacAddress::from_bytes(frame.subspan(6, 6));
  entry.frame.assign(frame.begin(), frame.end());
  report(port, std::move(entry), now);
}

void Domain::report_loop(const evpn::MacPlace& at, net::MacAddress mac, net::TimePoint now) {
  const auto* here = std::get_if<evpn::AtPort>(&at);
  if (here == nullptr) return;
  ViolationEntry entry;
  entry.reason = "mac-elsewhere";
  entry.kind = GuardCause::Loop;
  entry.mac = mac;
  report(here->port, std::move(entry), now);
}

void Domain::report(net::IfIndex port, ViolationEntry entry, net::TimePoint now) {
  entry.port = port_name(port);
  const auto place = vrf_.place_of(entry.mac);
  const auto* at = std::get_if<evpn::AtPort>(&place);
  if (at != nullptr && at->port == port) {
    entry.owner = "this port";
  } else if (!std::holds_alternative<std::monostate>(place)) {
    entry.owner = place_text(place);
  } else if (const std::string member = member_of(entry.mac); !member.empty()) {
    entry.owner = member;
  }
  if (entry.mac == devices_.bridge_mac) entry.owner = "this PE";
  entry.ip = claimed_address(entry.frame);
  services_.log.limited(spdlog::level::warn,
                        fmt::format("{}{}{}", settings_.name, port.value, to_string(entry.kind)),
                        settings_.name + ": " + violation_text(port, entry), now);
  const GuardCause kind = entry.kind;
  const bool of_member = entry.direction == dataplane::Direction::Ingress;
  violation_log_.add(std::move(entry), now);
  PortState* state = port_by_index(port);
  if (state == nullptr || !of_member) return;
  ++state->violations[static_cast<std::size_t>(kind)];
  if (guard_reports_.size() < kMostReports) guard_reports_.emplace_back(port, kind);
}

std::string Domain::violation_text(net::IfIndex port, const ViolationEntry& e) const {
  const std::string of = e.owner.empty() ? std::string() : fmt::format(" ({})", e.owner);
  const char* what = e.kind == GuardCause::Loop
                         ? ": it came back, a loop, or somebody sends as another"
                     : e.kind == GuardCause::Macs     ? ": not a MAC address of this port"
                     : e.kind == GuardCause::Spoofing ? ": speaks for an address of another"
                                                      : ": the policy does not allow it";
  std::string ip;
  if (e.ip && e.kind == GuardCause::Spoofing) ip = ", " + to_string(*e.ip);
  return fmt::format("port {}: {} frame from {}{}{}{} ({})", port_text(port),
                     dataplane::to_string(e.direction), to_string(e.mac), of, what, ip, e.reason);
}

// --- the guards

net::TimePoint Domain::guard_deadline() const {
  if (!guard_reports_.empty()) return net::TimePoint{};
  net::TimePoint next = next_expiry_;
  for (const auto& [name, port] : ports_) next = std::min(next, port.guard.deadline());
  return next;
}

void Domain::settle(net::TimePoint now) {
  for (const auto& [index, kind] : std::exchange(guard_reports_, {}))
    if (PortState* port = port_by_index(index))
      guard_changed(*port, port->guard.violation(kind, now), now);
  for (auto& [name, port] : ports_)
    if (port.guard.deadline() <= now) guard_changed(port, port.guard.tick(now), now);
  if (next_expiry_ <= now) expire_macs(now);
}

void Domain::refresh_gate(PortState& port) {
  if (uses_ebpf()) {
    check(services_.fast_path->set_port(port_config(port)));
    return;
  }
  if (port.guard.open())
    check(services_.kernel.attach_port(devices_, port.index, settings_.links.flood_unknown_unicast,
                                       uses_ebpf()));
  else
    check(services_.kernel.detach_port(port.index));
}

void Domain::guard_changed(PortState& port, const PortGuard::Change& change, net::TimePoint now) {
  if (!change) return;
  const std::string name = port.index.value != 0 ? port_text(port.index) : port.settings.interface;
  std::string text = fmt::format("{}: port {} {} {} because of {}", settings_.name, name,
                                 change->observed ? "would be" : "is", outcome_text(*change),
                                 cause_text(change->cause));
  if (change->until != net::kNever)
    text += fmt::format(", for {} s",
                        std::chrono::ceil<std::chrono::seconds>(change->until - now).count());
  if (change->to == GuardState::Open && !change->observed)
    text = fmt::format("{}: port {} is open again (was closed because of {})", settings_.name, name,
                       cause_text(change->cause));
  violation_log_.for_each(port.settings.interface, [&](const ViolationEntry& entry) {
    if (change->to != GuardState::Open && entry.kind == change->cause && entry.last + kRecent > now)
      text += fmt::format("; {}{}", to_string(entry.mac),
                          entry.owner.empty() ? std::string() : " (" + entry.owner + ")");
  });
  services_.log.logger().log(
      change->to == GuardState::Open ? spdlog::level::info : spdlog::level::warn, "{}", text);
  if (change->observed) return;
  if (port.attached) {
    refresh_gate(port);
    set_up(port, port.link && port.guard.open(), now);
  }
}

// --- rates

void Domain::sample(std::size_t slice, std::size_t slices, net::TimePoint now) {
  const auto wall = std::chrono::system_clock::now();
  if (slice == 0) traffic_.sample(settings_.links.vxlan, frame_counters(devices_.vxlan), now, wall);
  std::size_t number = 0;
  for (auto& [name, port] : ports_) {
    if (number++ % slices != slice || port.index.value == 0) continue;
    const uint64_t over = traffic_.sample(name, frame_counters(port.index), now, wall);
    guard_changed(port, port.guard.over_limits(over, now), now);
  }
  flush();
}

}  // namespace peerland
