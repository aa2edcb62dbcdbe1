// SPDX-License-Identifier: GPL-2.0-or-later
// Port security. A policy cuts a member off when the frames that BGP over the exchange needs can't
// pass: IPv4 or IPv6 itself, and the resolution of the neighbor's address.
#include "config/load_security.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "config/loader.h"

namespace config {
namespace {

using namespace std::chrono_literals;
using dataplane::BumClass;
using dataplane::BumPolicy;
using dataplane::MemberPort;
using dataplane::Reaction;
using dataplane::SecuritySettings;

constexpr std::size_t kMostMacs = 64;  // that the data path has room for
constexpr uint64_t kDay = 86400;

template <class T>
void assign_number(T& to, const Value& value, uint64_t least, uint64_t most) {
  if (const auto number = read_number(value, least, most)) to = static_cast<T>(*number);
}

// What is no foreign source is dropped at least.
std::optional<Reaction> read_reaction(const Value& value) {
  static constexpr Word<Reaction> kWords[] = {
      {"drop", Reaction::Drop}, {"quarantine", Reaction::Quarantine}, {"shut", Reaction::Shut}};
  return read_word(value, kWords);
}

std::optional<Reaction> read_mac_reaction(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar && value.node->text == "count") return Reaction::Count;
  static constexpr Word<Reaction> kWords[] = {{"count", Reaction::Count},
                                              {"drop", Reaction::Drop},
                                              {"quarantine", Reaction::Quarantine},
                                              {"shut", Reaction::Shut}};
  return read_word(value, kWords);
}

const Table<SecuritySettings>& security_table() {
  using S = SecuritySettings;
  static const Table<S> table{
      "policies.NAME.security",
      {
          {"macs", [](const Value& v, S& s) { assign(s.macs, read_mac_reaction(v)); }},
          {"spoofing", [](const Value& v, S& s) { assign(s.spoofing, read_reaction(v)); }},
          {"protocols", [](const Value& v, S& s) { assign(s.protocols, read_reaction(v)); }},
          {"loop", [](const Value& v, S& s) { assign(s.loop, read_reaction(v)); }},
          {"storm", [](const Value& v, S& s) { assign(s.storm, read_reaction(v)); }},
          {"violations", [](const Value& v, S& s) { assign_number(s.violations, v, 1, 1000); }},
          {"window", [](const Value& v, S& s) { assign(s.window, read_seconds(v, 1, 3600)); }},
          {"storm-rate",
           [](const Value& v, S& s) {
             const auto rate = read_rate(v);
             if (rate == 0u)
               v.error("without frames over the limits there is no storm: at least 1");
             else
               assign(s.storm_rate, rate);
           }},
          {"hold", [](const Value& v, S& s) { assign(s.hold, read_seconds(v, 1, kDay)); }},
          {"max-hold",
           [](const Value& v, S& s) {
             const auto most = read_seconds(v, 1, kDay);
             if (most && *most < s.hold)
               v.error(fmt::format("shorter than hold, {}s", s.hold.count()));
             else
               assign(s.max_hold, most);
           }},
          {"forgive", [](const Value& v, S& s) { assign(s.forgive, read_seconds(v, 1, kDay)); }},
          {"flap-transitions",
           [](const Value& v, S& s) { assign_number(s.flap_transitions, v, 0, 1000); }},
          {"flap-window",
           [](const Value& v, S& s) { assign(s.flap_window, read_seconds(v, 1, 3600)); }},
          {"flap-hold",
           [](const Value& v, S& s) { assign(s.flap_hold, read_seconds(v, 1, kDay)); }},
      }};
  return table;
}

// --- MACs

std::optional<unsigned> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  unsigned number = 0;
  const char* end = text.data() + at + count;
  const auto [stop, error] = std::from_chars(text.data() + at, end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// RFC 3339 in UTC, whole seconds.
std::optional<std::chrono::sys_seconds> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return std::nullopt;
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2),
             hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

struct MacDraft {
  std::optional<net::MacAddress> mac;
  std::optional<std::chrono::sys_seconds> until;
};

const Table<MacDraft>& mac_table() {
  static const Table<MacDraft> table{
      "broadcast-domains[].ports[].macs[]",
      {
          {"mac", [](const Value& v, MacDraft& m) { m.mac = read_mac(v); }, true},
          {"until",
           [](const Value& v, MacDraft& m) {
             constexpr std::string_view kExpected = "a time in UTC such as 2026-12-02T06:00:00Z";
             const auto text = v.scalar(kExpected);
             if (!text) return;
             m.until = parse_time(*text);
             if (!m.until)
               v.expected(kExpected);
             else if (*m.until <= std::chrono::system_clock::now())
               v.warning("is over: frames from this MAC address are not let in");
           },
           true},
      }};
  return table;
}

// --- the member's own traffic

const std::optional<dataplane::Limit>& of(const dataplane::Limits& limits, BumClass bum_class) {
  return limits[static_cast<std::size_t>(bum_class)];
}

bool drops(const std::optional<dataplane::Limit>& limit) {
  return limit && (limit->packets_per_second == 0u || limit->bits_per_second == 0u);
}

// Why no session can be had in this family; empty: it can.
std::string cut_in(bool ipv6, const BumPolicy& policy, bool proxied) {
  const auto listed = [&](uint16_t type) {
    return std::ranges::find(policy.allowed_ethertypes, type) != policy.allowed_ethertypes.end();
  };
  if (!listed(ipv6 ? 0x86dd : 0x0800))
    return fmt::format("ethertypes has no {}", ipv6 ? "ipv6" : "ipv4");
  if (!ipv6 && !listed(0x0806)) return "ethertypes has no arp";
  if (proxied)
    return drops(policy.answers) ? fmt::format("answers is drop: no {} would be answered",
                                               ipv6 ? "neighbor solicitation" : "ARP request")
                                 : std::string();
  const BumClass resolution = ipv6 ? BumClass::Nd : BumClass::Arp;
  const char* name = ipv6 ? "nd" : "arp";
  if (drops(of(policy.ingress, resolution))) return fmt::format("ingress.{} is drop", name);
  if (drops(of(policy.egress, resolution))) return fmt::format("egress.{} is drop", name);
  if (drops(policy.egress_total)) return "egress.total is drop";
  return {};
}

// By the port's addresses, or else by what the LAN has.
bool has_family(bool ipv6, const MemberPort& port, const BroadcastDomain& domain) {
  if (!port.addresses.empty())
    return std::ranges::any_of(port.addresses,
                               [&](const auto& address) { return address.is_v6() == ipv6; });
  return std::ranges::any_of(domain.proxy.prefixes,
                             [&](const auto& prefix) { return prefix.address.is_v6() == ipv6; });
}

}  // namespace

void read_security(const Value& value, SecuritySettings& out) {
  const Present present = read_table(value, security_table(), out);
  if (!present.contains("max-hold")) out.max_hold = std::max(out.max_hold, out.hold);
}

void read_port_macs(const Value& value, const ClaimMac& claim, MemberPort& port) {
  if (value.node->kind == Node::Kind::Scalar && value.node->text == "any") {
    port.enforce_macs = false;
    return;
  }
  if (value.node->kind != Node::Kind::List)
    return value.expected("a list of MAC addresses, or any");
  std::vector<net::MacAddress> all;
  for (const Value& item : read_items(value, "MAC addresses")) {
    MacDraft draft;
    if (item.node->kind == Node::Kind::Map)
      read_table(item, mac_table(), draft);
    else
      draft.mac = read_mac(item);
    if (!draft.mac) continue;
    if (std::ranges::find(all, *draft.mac) != all.end()) {
      item.error("listed twice");
      continue;
    }
    all.push_back(*draft.mac);
    if (!claim(item, *draft.mac)) continue;
    if (draft.until)
      port.temporary_macs.push_back({*draft.mac, *draft.until});
    else if (item.node->kind != Node::Kind::Map)
      port.macs.push_back(*draft.mac);
  }
  if (all.size() > kMostMacs)
    value.error(fmt::format("at most {} MAC addresses, got {}", kMostMacs, all.size()));
}

void check_own_traffic(const Value& value, const MemberPort& port, const BumPolicy& policy,
                       const BroadcastDomain& domain) {
  if (port.quarantined) return;
  const bool proxied = domain.proxy.profile != proxyarp::Profile::Off;
  for (const bool ipv6 : {false, true}) {
    if (!has_family(ipv6, port, domain)) continue;
    if (const std::string why = cut_in(ipv6, policy, proxied); !why.empty())
      value.error(fmt::format("policy {} would cut this port's own BGP over IPv{}: {}",
                              quote(policy.name), ipv6 ? 6 : 4, why));
  }
  if (port.lacp && !policy.allow.contains("lacp"))
    value.error(fmt::format("policy {} would cut this port's own LACP: allow has no lacp",
                            quote(policy.name)));
}

void security_keys(std::vector<std::string>& keys) {
  for (const auto& field : security_table().fields)
    for (const char* path : {"policies.NAME.security", "broadcast-domains[].ports[].security"})
      keys.push_back(std::string(path) + "." + field.key);
  append_keys(keys, mac_table());
}

}  // namespace config
