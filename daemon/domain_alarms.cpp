// SPDX-License-Identifier: GPL-2.0-or-later
// Alarms of a broadcast domain, one log line an event: what happened, both MACs, where each is,
// whose they are, and since when.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "daemon/domain.h"

namespace peerland {
namespace {

std::string member_words(net::AsNumber as, const std::string& name) {
  if (as.value == 0) return name;
  return name.empty() ? fmt::format("AS{}", as.value) : fmt::format("AS{} {}", as.value, name);
}

// Time of day in UTC of a moment of the steady clock.
std::string time_text(net::TimePoint time) {
  const auto now = std::chrono::system_clock::now();
  const auto then = now - std::chrono::duration_cast<std::chrono::system_clock::duration>(
                              net::Clock::now() - time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     std::chrono::time_point_cast<std::chrono::seconds>(then));
}

}  // namespace

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
  const std::string owner = member_of(alarm.mac);
  const std::string mac = to_string(alarm.mac) + (owner.empty() ? "" : " (" + owner + ")");
  std::string text;
  switch (alarm.kind) {
    case evpn::AlarmKind::DuplicateMac:
      ++counters_.duplicate_macs;
      report_loop(alarm.second, alarm.mac, net::Clock::now());
      text = fmt::format("duplicate MAC {}: moves between {}; frozen", mac, places);
      break;
    case evpn::AlarmKind::DuplicateMacCleared:
      text = fmt::format("duplicate MAC {}: cleared", mac);
      break;
    case evpn::AlarmKind::StickyMacElsewhere:
      ++counters_.sticky_violations;
      report_loop(alarm.second, alarm.mac, net::Clock::now());
      text = fmt::format("provisioned MAC {} seen at a second place: {}", mac, places);
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

// Whose a MAC is by ports, bindings and exports; empty: nobody's.
std::string Domain::member_of(net::MacAddress mac) const {
  for (const auto& [name, port] : ports_)
    if (std::ranges::find(port.settings.macs, mac) != port.settings.macs.end())
      return member_words(port.settings.member_as, port.settings.member_name);
  for (const auto& binding : settings_.proxy.bindings)
    if (std::ranges::find(binding.macs, mac) != binding.macs.end())
      return member_words(binding.member_as, binding.member_name);
  return {};
}

// "02:00:00:00:00:01 at port m1 (AS64501 Alpha Net)", "... at PE 10.0.0.2 (AS64503 Charlie Net)"
std::string Domain::claim_text(net::MacAddress mac, const proxyarp::ClaimPlace& place) const {
  std::string text = to_string(mac);
  if (place.where == proxyarp::MacWhere::LocalPort)
    return text + " at port " + port_text(place.port);
  const auto at = vrf_.place_of(mac);
  if (const auto* away = std::get_if<evpn::AtVtep>(&at))
    text += " at PE " + to_string(away->vtep);
  else if (place.where == proxyarp::MacWhere::Remote)
    text += " at another PE";
  const std::string member = member_of(mac);
  return member.empty() ? text : fmt::format("{} ({})", text, member);
}

std::string Domain::alarm_text(const proxyarp::Alarm& a) const {
  using enum proxyarp::AlarmKind;
  const std::string where = port_text(a.port), ip = to_string(a.ip);
  const auto both = [&] {
    return claim_text(a.bound, a.bound_at) + " and " + claim_text(a.seen, a.seen_at);
  };
  switch (a.kind) {
    case SpoofedSender:
      return fmt::format("port {}: sender {} with MAC {} is bound to {}; not answered", where, ip,
                         to_string(a.seen), claim_text(a.bound, a.bound_at));
    case NotOwner:
      return fmt::format("port {}: {} claims {}, which is bound to {}; refused", where,
                         to_string(a.seen), ip, claim_text(a.bound, a.bound_at));
    case DuplicateIp:
      return fmt::format("duplicate address {}: {}; {} moves between {} and {}", ip, both(),
                         a.number, time_text(a.first), time_text(a.last));
    case DuplicateOver:
      return fmt::format("duplicate address {}: no longer frozen; was {}, first {}, last {}", ip,
                         both(), time_text(a.first), time_text(a.last));
    case BindingLimit:
      return fmt::format("port {}: binding limit reached, {} at {} not learned", where, ip,
                         to_string(a.seen));
    case TableFilling: return fmt::format("the table of bindings is {} % full", a.number);
    case ImmutableConflict:
      return fmt::format("address {} is claimed for good (RFC 9047) by two: {}; the latter is used",
                         ip, both());
    case DecoyAnswered:
      return fmt::format("port {}: {} answers for {}, which nobody has: a router with proxy ARP",
                         where, claim_text(a.seen, a.seen_at), ip);
    case AddressDead:
      return fmt::format("address {} is dead, the sponge answers for it{}", ip,
                         a.seen.is_zero() ? std::string()
                                          : "; asked for last by " + claim_text(a.seen, a.seen_at));
    case AddressBack:
      return fmt::format("address {} is back: {}{}", ip,
                         a.seen.is_zero() ? std::string("an operator said so") : to_string(a.seen),
                         a.port.value == 0 ? std::string() : " at port " + where);
  }
  return to_string(a.kind);
}

void Domain::alarm(const proxyarp::Alarm& alarm) {
  using enum proxyarp::AlarmKind;
  ++counters_.alarms[static_cast<std::size_t>(alarm.kind)];
  const bool good = alarm.kind == DuplicateOver || alarm.kind == AddressBack;
  // One member can make any number of addresses come and go: his share a line now and then, the
  // table of the sponge has them all. Each mark of a filling table has its own.
  const bool of_sponge = alarm.kind == AddressDead || alarm.kind == AddressBack;
  const std::string about = of_sponge                    ? to_string(alarm.seen)
                            : alarm.kind == TableFilling ? fmt::to_string(alarm.number)
                                                         : to_string(alarm.ip);
  services_.log.limited(good ? spdlog::level::info : spdlog::level::warn,
                        fmt::format("{}{}{}{}", settings_.name, of_sponge ? 0 : alarm.port.value,
                                    about, static_cast<int>(alarm.kind)),
                        settings_.name + ": " + alarm_text(alarm), net::Clock::now());
}

}  // namespace peerland
