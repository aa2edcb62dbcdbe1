// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/diff_fields.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace config {
namespace {

// --- values as text

std::string text(const std::string& value) { return value; }
std::string text(bool value) { return value ? "true" : "false"; }
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
std::string text(T value) {
  return fmt::format("{}", value);
}
std::string text(std::chrono::seconds value) { return fmt::format("{}s", value.count()); }
std::string text(std::chrono::minutes value) { return fmt::format("{}m", value.count()); }
std::string text(std::chrono::milliseconds value) { return fmt::format("{}ms", value.count()); }
std::string text(net::AsNumber value) { return fmt::format("{}", value.value); }
std::string text(net::Vni value) { return fmt::format("{}", value.value); }
std::string text(const net::IpAddress& value) { return net::to_string(value); }
std::string text(const net::IpPrefix& value) { return net::to_string(value); }
std::string text(const net::MacAddress& value) { return net::to_string(value); }
std::string text(const net::RouteDistinguisher& value) { return net::to_string(value); }
std::string text(const evpn::RouteTarget& value) { return evpn::route_target_text(value); }

// Words of an enumeration, in its order.
template <class E, std::size_t N>
std::string word(E value, const char* const (&words)[N]) {
  const auto n = static_cast<std::size_t>(value);
  return n < N ? words[n] : "?";
}

std::string text(const bgp::ListenSettings& value) {
  return fmt::format("{}{}{} port {}", text(value.address), value.interface.empty() ? "" : "%",
                     value.interface, value.port);
}
std::string text(const proxyarp::FloodTo& to) {
  if (to.core && to.local) return "true";
  return to.core ? "core" : to.local ? "local" : "false";
}
std::string text(const dataplane::Limit& limit) {
  std::string out;
  if (limit.packets_per_second) out += fmt::format("{} pps ", *limit.packets_per_second);
  if (limit.bits_per_second) out += fmt::format("{} bps ", *limit.bits_per_second);
  return out + "burst " + text(limit.burst);
}
std::string text(dataplane::ResponderKind kind) {
  static constexpr const char* kWords[] = {"ebpf", "pcap"};
  return word(kind, kWords);
}
std::string text(proxyarp::UnknownOptions value) {
  static constexpr const char* kWords[] = {"reply", "discard", "unicast-forward", "forward"};
  return word(value, kWords);
}
std::string text(const proxyarp::UnassignedPrefix& one) {
  static constexpr const char* kWords[] = {"by-profile", "flood", "drop", "sponge"};
  return text(one.prefix) + " " + word(one.policy, kWords);
}

// --- rules of route policies

std::string text(const evpn::Community& community) {
  if (const auto* standard = std::get_if<evpn::StandardCommunity>(&community))
    return fmt::format("{}:{}", standard->value >> 16, standard->value & 0xffff);
  if (const auto* large = std::get_if<std::array<uint32_t, 3>>(&community))
    return fmt::format("{}:{}:{}", (*large)[0], (*large)[1], (*large)[2]);
  std::string out = "0x";
  for (const uint8_t octet : std::get<std::array<uint8_t, 8>>(community))
    out += fmt::format("{:02x}", octet);
  return out;
}
std::string text(const evpn::MacPrefix& prefix) {
  return prefix.length == 48 ? text(prefix.address)
                             : fmt::format("{}/{}", text(prefix.address), prefix.length);
}

std::string text(const bgp::TcpAoKey& key) {
  return fmt::format("{} {} {} {}", key.send_id, key.receive_id, key.algorithm, key.key);
}

// --- after all that they are for

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : std::string();
}
template <class List, class Text>
std::string list(const List& items, const Text& of) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : " ") + of(item);
  return out;
}
template <class List>
std::string list(const List& items) {
  return list(items, [](const auto& item) { return text(item); });
}

std::string text(const evpn::PolicyRule& rule) {
  static constexpr const char* kActions[] = {"accept", "flag", "reject"};
  std::string out;
  const auto add = [&](const char* key, const std::string& values) {
    if (!values.empty()) out += fmt::format("{} {}; ", key, values);
  };
  add("route-type", list(rule.route_types));
  add("route-target", list(rule.route_targets));
  add("vni", list(rule.vnis));
  add("rd", list(rule.rds));
  add("mac", list(rule.macs));
  add("ip", list(rule.ips));
  add("community", list(rule.communities));
  add("next-hop", list(rule.next_hops));
  return out + word(rule.then, kActions);
}

void add(Fields& fields, const std::string& prefix, const proxyarp::DuplicateDetection& d) {
  fields.emplace_back(prefix + "enabled", text(d.enabled));
  fields.emplace_back(prefix + "moves", text(d.moves));
  fields.emplace_back(prefix + "window", text(d.window));
  fields.emplace_back(prefix + "hold", text(d.hold_down));
  fields.emplace_back(prefix + "confirm", text(d.confirm_wait));
  fields.emplace_back(prefix + "anti-spoof-mac", text(d.anti_spoof_mac));
}

void add(Fields& fields, const std::string& prefix, const proxyarp::Sponge& s) {
  fields.emplace_back(prefix + "mac", text(s.mac));
  fields.emplace_back(prefix + "queue", text(s.queue));
  fields.emplace_back(prefix + "rate", text(s.rate));
  fields.emplace_back(prefix + "pending", text(s.pending));
  fields.emplace_back(prefix + "age", text(s.age));
  fields.emplace_back(prefix + "probe-rate", text(s.probe_rate));
  fields.emplace_back(prefix + "flood-protection", text(s.flood_protection));
  fields.emplace_back(prefix + "passive", text(s.passive));
  fields.emplace_back(prefix + "observe", text(s.observe));
  fields.emplace_back(prefix + "announce", text(s.announce));
  fields.emplace_back(prefix + "learning", text(s.learning));
  fields.emplace_back(prefix + "sweep-interval", text(s.sweep_interval));
  fields.emplace_back(prefix + "sweep-silence", text(s.sweep_silence));
}

void add(Fields& fields, const proxyarp::Settings& p) {
  static constexpr const char* kProfiles[] = {"off", "dynamic", "hybrid", "static"};
  static constexpr const char* kForward[] = {"never", "unknown-options", "always"};
  static constexpr const char* kProbes[] = {"strangers", "pass", "ignore"};
  static constexpr const char* kLinkLocal[] = {"learn", "eui-64", "both", "none"};
  static constexpr const char* kAdvertise[] = {"router", "host", "all"};
  fields.insert(fields.end(), {{"profile", word(p.profile, kProfiles)},
                               {"prefixes", list(p.prefixes)},
                               {"learning", text(p.learning)},
                               {"flood-unknown-arp", text(p.flood_unknown_arp)},
                               {"flood-unknown-ns", text(p.flood_unknown_ns)},
                               {"flood-gratuitous-arp", text(p.flood_gratuitous_arp)},
                               {"flood-router-na", text(p.flood_router_na)},
                               {"flood-host-na", text(p.flood_host_na)},
                               {"unknown-options", text(p.unknown_options)},
                               {"known-options", list(p.known_options)},
                               {"unicast-forward", word(p.unicast_forward, kForward)},
                               {"probes", word(p.probes, kProbes)},
                               {"unassigned", list(p.unassigned)},
                               {"exempt", list(p.exempt)},
                               {"link-local", word(p.link_local, kLinkLocal)},
                               {"link-locals-per-mac", text(p.link_locals_per_mac)},
                               {"advertise-neighbors", word(p.advertise, kAdvertise)},
                               {"anycast", text(p.anycast)},
                               {"anycast-macs", text(p.anycast_macs)},
                               {"decoys.addresses", list(p.decoys.addresses)},
                               {"decoys.interval", text(p.decoys.interval)},
                               {"refresh", text(p.refresh)},
                               {"announcements-per-second", text(p.announcements_per_second)},
                               {"new-bindings-per-second", text(p.new_bindings_per_second)},
                               {"default-router", text(p.default_router)},
                               {"age-time", text(p.age_time)},
                               {"max-bindings", text(p.max_bindings)},
                               {"max-bindings-per-port", text(p.max_bindings_per_port)}});
  add(fields, "duplicate-ip.", p.duplicates);
  add(fields, "sponge.", p.sponge);
}

}  // namespace

bool is_secret(std::string_view key) { return key == "password" || key == "ao-keys"; }

Fields fields_of(const NodeSettings& n) {
  static constexpr const char* kTracking[] = {"off", "any-route", "no-default-route"};
  Fields fields{{"node", n.name},
                {"router-id", text(n.bgp.router_id)},
                {"as", text(n.bgp.local_as)},
                {"vtep", text(n.vtep)},
                {"log.level", n.log.level},
                {"log.file", n.log.file},
                {"control.socket", n.control_socket},
                {"pin-directory", n.pin_directory},
                {"next-hop-tracking", word(n.next_hop_tracking, kTracking)},
                {"reload.max-removed-members", text(n.reload.max_removed_members)},
                {"observe", text(n.observe)},
                {"report-interval", text(n.report_interval)},
                {"underlay.interfaces", list(n.underlay_interfaces)},
                {"bgp.cluster-id",
                 n.bgp.cluster_id ? text(net::IpAddress::v4(*n.bgp.cluster_id)) : std::string()},
                {"bgp.listen", list(n.bgp.listen)},
                {"bgp.selection-deferral", text(n.bgp.selection_deferral)},
                {"bgp.mrt.file", n.bgp.mrt ? n.bgp.mrt->file : std::string()},
                {"bgp.mrt.interval", n.bgp.mrt ? text(n.bgp.mrt->interval) : std::string()}};
  if (n.metrics_listen)
    fields.emplace_back("metrics.listen", fmt::format("{} port {}", text(n.metrics_listen->first),
                                                      n.metrics_listen->second));
  return fields;
}

Fields fields_of(const bgp::NeighborSettings& n) {
  static constexpr const char* kRoles[] = {"peer", "reflector-client", "route-server-client"};
  static constexpr const char* kGuards[] = {"off", "flag", "reject"};
  return {{"description", n.description},
          {"group", n.group},
          {"as", text(n.remote_as)},
          {"port", text(n.port)},
          {"local-address", text(n.local_address)},
          {"role", word(n.role, kRoles)},
          {"passive", text(n.passive)},
          {"enabled", text(n.enabled)},
          {"hold-time", text(n.hold_time)},
          {"connect-retry", text(n.connect_retry)},
          {"password", n.password},
          {"ao-keys", list(n.ao_keys)},
          {"ttl", text(n.ttl)},
          {"ttl-security-hops", text(n.ttl_security_hops)},
          {"graceful-restart", text(n.graceful_restart)},
          {"restart-time", text(n.restart_time)},
          {"max-prefixes", text(n.max_prefixes)},
          {"max-prefixes-warning", text(n.max_prefixes_warning)},
          {"max-prefixes-action", n.max_prefixes_warn_only ? "warn" : "drop"},
          {"max-prefixes-idle", text(n.max_prefixes_idle)},
          {"delay-open", text(n.delay_open)},
          {"open-time", text(n.open_time)},
          {"send-hold-time", text(n.send_hold_time)},
          {"long-lived-time", text(n.long_lived_time)},
          {"long-lived-partial-deployment", text(n.long_lived_partial)},
          {"route-target-constrain", text(n.route_target_constrain)},
          {"shutdown-message", n.shutdown_message},
          {"accept-policy", n.accept_policy},
          {"send-policy", n.send_policy},
          {"binding-guard", word(n.binding_guard, kGuards)},
          {"strip-extended-communities", list(n.strip_extended_communities, [](const auto& one) {
             return fmt::format("0x{:02x}{:02x}", one.first, one.second);
           })}};
}

Fields fields_of(const bgp::BmpSettings& b) {
  std::string tables;
  for (const auto& [name, table] : bgp::kBmpTables)
    if ((b.tables & table) != 0) tables += (tables.empty() ? "" : " ") + std::string(name);
  return {{"description", b.description},
          {"local-address", text(b.local_address)},
          {"tables", tables},
          {"reconnect", text(b.reconnect)},
          {"statistics", text(b.statistics)},
          {"queue-limit", text(b.queue_limit)}};
}

Fields fields_of(const evpn::PolicySettings& policy) {
  Fields fields;
  for (std::size_t i = 0; i < policy.rules.size(); ++i)
    fields.emplace_back(fmt::format("rules[{}]", i), text(policy.rules[i]));
  return fields;
}

Fields fields_of(const evpn::MemberList& l) {
  return {{"route-targets", list(l.route_targets)}, {"prefixes", list(l.prefixes)}};
}

Fields fields_of(const evpn::MemberAddress& a) {
  return {{"macs", list(a.macs)}, {"as", text(a.as)}, {"name", a.name}};
}

Fields fields_of(const evpn::MemberMac& m) {
  return {{"as", text(m.as)}, {"name", m.name}, {"pes", list(m.pes)}};
}

Fields fields_of(const BroadcastDomain& d) {
  Fields fields{{"vni", text(d.evpn.vni)},
                {"bridge", d.links.bridge},
                {"vxlan", d.links.vxlan},
                {"udp-port", text(d.links.udp_port)},
                {"mtu", text(d.links.mtu)},
                {"unknown-unicast", d.links.flood_unknown_unicast ? "flood" : "drop"},
                {"ageing", text(d.links.ageing)},
                {"rd", text(d.evpn.rd)},
                {"import-targets", list(d.evpn.import_targets)},
                {"export-targets", list(d.evpn.export_targets)},
                {"ethernet-tag", d.evpn.ethernet_tag ? text(*d.evpn.ethernet_tag) : "any"},
                {"duplicate-mac.moves", text(d.evpn.duplicate_moves)},
                {"duplicate-mac.window", text(d.evpn.duplicate_window)},
                {"duplicate-mac.hold", text(d.evpn.duplicate_hold)},
                {"arp-nd-community-for-ipv4", text(d.evpn.arp_nd_for_v4)},
                {"responder", text(d.responder)},
                {"pe-addresses", list(d.pe_addresses)},
                {"core-policy", d.core_policy}};
  add(fields, d.proxy);
  return fields;
}

namespace {

void add(Fields& fields, const dataplane::SecuritySettings& s) {
  const std::string prefix = "security.";
  for (const auto& [key, reaction] : {std::pair{"macs", s.macs},
                                      {"spoofing", s.spoofing},
                                      {"protocols", s.protocols},
                                      {"loop", s.loop},
                                      {"storm", s.storm}})
    fields.emplace_back(prefix + key, to_string(reaction));
  fields.emplace_back(prefix + "violations", text(s.violations));
  fields.emplace_back(prefix + "window", text(s.window));
  fields.emplace_back(prefix + "storm-rate", text(s.storm_rate));
  fields.emplace_back(prefix + "hold", text(s.hold));
  fields.emplace_back(prefix + "max-hold", text(s.max_hold));
  fields.emplace_back(prefix + "forgive", text(s.forgive));
  fields.emplace_back(prefix + "flap-transitions", text(s.flap_transitions));
  fields.emplace_back(prefix + "flap-window", text(s.flap_window));
  fields.emplace_back(prefix + "flap-hold", text(s.flap_hold));
}

// Those that are allowed until a time after the others.
std::string macs_of(const dataplane::MemberPort& p) {
  std::string out = list(p.macs);
  for (const auto& one : p.temporary_macs)
    out += fmt::format("{}{} until {:%Y-%m-%dT%H:%M:%SZ}", out.empty() ? "" : " ", text(one.mac),
                       one.until);
  return out;
}

}  // namespace

Fields fields_of(const dataplane::MemberPort& p) {
  static constexpr const char* kAttach[] = {"auto", "tc", "xdp"};
  Fields fields{{"name", p.member_name},
                {"as", text(p.member_as)},
                {"macs", macs_of(p)},
                {"enforce-macs", text(p.enforce_macs)},
                {"addresses", list(p.addresses)},
                {"policy", p.policy},
                {"attach", word(p.attach, kAttach)},
                {"state", p.quarantined ? "quarantine" : "active"},
                {"observe", text(p.observe)},
                {"lacp", text(p.lacp)}};
  if (p.security) add(fields, *p.security);
  return fields;
}

Fields fields_of(const proxyarp::StaticBinding& b) {
  return {
      {"macs", list(b.macs)}, {"port", b.port}, {"as", text(b.member_as)}, {"name", b.member_name}};
}

Fields fields_of(const dataplane::BumPolicy& p) {
  Fields fields;
  const auto add_limits = [&](const char* direction, const dataplane::Limits& limits) {
    for (std::size_t i = 0; i < limits.size(); ++i)
      fields.emplace_back(
          fmt::format("{}.{}", direction, to_string(static_cast<dataplane::BumClass>(i))),
          limits[i] ? text(*limits[i]) : "unlimited");
  };
  add_limits("ingress", p.ingress);
  add_limits("egress", p.egress);
  add_limits("decap", p.decap);
  add_limits("encap", p.encap);
  fields.emplace_back("egress.total", p.egress_total ? text(*p.egress_total) : "unlimited");
  fields.emplace_back("per-vtep", p.per_vtep ? text(*p.per_vtep) : "unlimited");
  fields.emplace_back("ethertypes", list(p.allowed_ethertypes, [](uint16_t type) {
                        return fmt::format("0x{:04x}", type);
                      }));
  fields.emplace_back("allow", list(p.allow));
  fields.emplace_back("answers", text(p.answers));
  fields.emplace_back("punts", text(p.punts));
  fields.emplace_back("observe", text(p.observe));
  add(fields, p.security);
  return fields;
}

}  // namespace config
