// SPDX-License-Identifier: GPL-2.0-or-later
// `policies`: BUM policies by name. What a policy leaves out is as in the built-in "peering", so
// that nothing is ever unlimited without the word.
#include <fmt/core.h>

#include <algorithm>

#include "config/load_security.h"
#include "config/loader.h"

namespace config {
namespace {

using dataplane::BumClass;
using dataplane::BumPolicy;
using dataplane::Limit;
using dataplane::Limits;

struct PolicyDraft {
  BumPolicy policy;
  Loader* loader = nullptr;
};

const Table<Limit>& limit_table() {
  static const Table<Limit> table{
      "policies.NAME.DIRECTION.CLASS",
      {
          {"pps", [](const Value& v, Limit& l) { assign(l.packets_per_second, read_rate(v)); }},
          {"bps", [](const Value& v, Limit& l) { assign(l.bits_per_second, read_rate(v)); }},
          {"burst", [](const Value& v, Limit& l) { assign(l.burst, read_burst(v)); }},
      }};
  return table;
}

// A mapping of rates; the burst is that of `limit` when it is not given.
std::optional<Limit> read_rates(const Value& value, Limit limit) {
  limit.packets_per_second = limit.bits_per_second = std::nullopt;
  const Present present = read_table(value, limit_table(), limit);
  if (present.contains("pps") || present.contains("bps")) return limit;
  value.error("needs pps or bps, or both");
  return std::nullopt;
}

constexpr Limit kDrop{.packets_per_second = 0, .bits_per_second = {}};

void read_class_limit(const Value& value, std::optional<Limit>& out) {
  const std::string& text = value.node->text;
  if (value.node->kind == Node::Kind::Map)
    assign(out, read_rates(value, Limit{}));
  else if (value.node->kind == Node::Kind::Scalar && text == "drop")
    out = kDrop;
  else if (value.node->kind == Node::Kind::Scalar && text == "unlimited")
    out = std::nullopt;
  else
    value.expected("drop, unlimited, or a mapping of pps, bps and burst");
}

// Answers and punts cost us, not the members: never unlimited.
void read_own_limit(const Value& value, Limit& out) {
  if (value.node->kind == Node::Kind::Map)
    assign(out, read_rates(value, out));
  else if (value.node->kind == Node::Kind::Scalar && value.node->text == "drop")
    out = kDrop;
  else
    value.expected("drop, or a mapping of pps, bps and burst");
}

template <BumClass kClass>
Field<Limits> class_field() {
  return {to_string(kClass), [](const Value& v, Limits& limits) {
            read_class_limit(v, limits[static_cast<std::size_t>(kClass)]);
          }};
}

template <BumClass kClass>
void read_egress_class(const Value& value, PolicyDraft& draft) {
  read_class_limit(value, draft.policy.egress[static_cast<std::size_t>(kClass)]);
}

const Table<Limits>& direction_table() {
  static const Table<Limits> table{
      "policies.NAME.DIRECTION",
      {class_field<BumClass::Arp>(), class_field<BumClass::Nd>(),
       class_field<BumClass::Broadcast>(), class_field<BumClass::Multicast>(),
       class_field<BumClass::UnknownUnicast>(), class_field<BumClass::ArpUnicast>(),
       class_field<BumClass::NdUnicast>()}};
  return table;
}

// `egress` has one limit more: of all classes together.
void read_egress(const Value& value, PolicyDraft& draft) {
  static const Table<PolicyDraft> table{
      "policies.NAME.egress",
      {
          {"arp", [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::Arp>(v, d); }},
          {"nd", [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::Nd>(v, d); }},
          {"broadcast",
           [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::Broadcast>(v, d); }},
          {"multicast",
           [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::Multicast>(v, d); }},
          {"unknown-unicast",
           [](const Value& v, PolicyDraft& d) {
             read_egress_class<BumClass::UnknownUnicast>(v, d);
           }},
          {"arp-unicast",
           [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::ArpUnicast>(v, d); }},
          {"nd-unicast",
           [](const Value& v, PolicyDraft& d) { read_egress_class<BumClass::NdUnicast>(v, d); }},
          {"total",
           [](const Value& v, PolicyDraft& d) { read_class_limit(v, d.policy.egress_total); }},
      }};
  read_table(value, table, draft);
}

std::optional<uint16_t> read_ethertype(const Value& value) {
  static constexpr Word<uint16_t> kNames[] = {
      {"ipv4", 0x0800}, {"arp", 0x0806},  {"ipv6", 0x86dd}, {"lacp", 0x8809}, {"lldp", 0x88cc},
      {"mpls", 0x8847}, {"vlan", 0x8100}, {"qinq", 0x88a8}, {"ptp", 0x88f7},
  };
  constexpr std::string_view kExpected =
      "an EtherType: ipv4, arp, ipv6, lacp, lldp, mpls, vlan, qinq, ptp, or 0x0600 to 0xffff";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  for (const auto& name : kNames)
    if (*text == name.text) return name.meaning;
  if (text->starts_with("0x") && text->size() >= 5 && text->size() <= 6 &&
      text->find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos) {
    const unsigned long number = std::stoul(std::string(*text), nullptr, 16);
    if (number >= 0x0600) return static_cast<uint16_t>(number);
  }
  value.expected(kExpected);
  return std::nullopt;
}

void read_ethertypes(const Value& value, PolicyDraft& draft) {
  constexpr std::size_t kMost = 8;
  auto ethertypes = read_set(value, "EtherTypes", read_ethertype);
  if (value.node->kind != Node::Kind::List) return;
  if (value.node->items.empty()) value.error("without EtherTypes no frame would pass");
  if (value.node->items.size() > kMost)
    value.error(fmt::format("at most {} EtherTypes, got {}", kMost, value.node->items.size()));
  draft.policy.allowed_ethertypes = std::move(ethertypes);
}

void read_allow(const Value& value, PolicyDraft& draft) {
  std::vector<std::string> known, switchable;
  for (const auto& reason : draft.loader->drop_reasons) {
    known.emplace_back(reason.name);
    if (reason.switchable) switchable.emplace_back(reason.name);
  }
  const auto read_reason = [&](const Value& item) -> std::optional<std::string> {
    const auto text = item.scalar("the name of a drop reason");
    if (!text) return std::nullopt;
    if (std::ranges::find(known, *text) == known.end())
      item.error(fmt::format("no drop reason {}{}", quote(*text), did_you_mean(*text, switchable)));
    else if (std::ranges::find(switchable, *text) == switchable.end())
      item.error(fmt::format("the drop reason {} can't be switched off", quote(*text)));
    else
      return std::string(*text);
    return std::nullopt;
  };
  const auto allowed = read_set(value, "names of drop reasons", read_reason);
  draft.policy.allow = {allowed.begin(), allowed.end()};
}

const Table<PolicyDraft>& policy_table() {
  static const Table<PolicyDraft> table{
      "policies.NAME",
      {
          {"ingress", [](const Value& v,
                         PolicyDraft& d) { read_table(v, direction_table(), d.policy.ingress); }},
          {"egress", read_egress},
          {"decap", [](const Value& v,
                       PolicyDraft& d) { read_table(v, direction_table(), d.policy.decap); }},
          {"encap", [](const Value& v,
                       PolicyDraft& d) { read_table(v, direction_table(), d.policy.encap); }},
          {"ethertypes", read_ethertypes},
          {"allow", read_allow},
          {"answers", [](const Value& v, PolicyDraft& d) { read_own_limit(v, d.policy.answers); }},
          {"punts", [](const Value& v, PolicyDraft& d) { read_own_limit(v, d.policy.punts); }},
          {"per-vtep",
           [](const Value& v, PolicyDraft& d) { read_class_limit(v, d.policy.per_vtep); }},
          {"observe",
           [](const Value& v, PolicyDraft& d) { assign(d.policy.observe, read_bool(v)); }},
          {"security", [](const Value& v, PolicyDraft& d) { read_security(v, d.policy.security); }},
      }};
  return table;
}

}  // namespace

void load_policies(const Value& value, Loader& loader) {
  for (const Entry& entry : read_entries(value)) {
    const Node name{Node::Kind::Scalar, true, entry.key.place, entry.key.text, {}, {}};
    if (!read_name({&name, entry.value.where, value.report})) continue;
    if (entry.key.text == dataplane::kQuarantinePolicy) {
      entry.value.error("is built in and can't be changed: nothing passes; take another name");
      continue;
    }
    PolicyDraft draft{dataplane::peering_policy(), &loader};
    draft.policy.name = entry.key.text;
    read_table(entry.value, policy_table(), draft);
    loader.settings.policies[entry.key.text] = std::move(draft.policy);
  }
}

void policy_keys(std::vector<std::string>& keys) {
  append_keys(keys, policy_table());
  append_keys(keys, direction_table());
  append_keys(keys, limit_table());
  keys.emplace_back("policies.NAME.egress.total");
  security_keys(keys);
}

}  // namespace config
