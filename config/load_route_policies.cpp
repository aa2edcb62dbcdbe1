// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp.policies`: rules about the routes of neighbors. Groups and neighbors name them.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "config/loader.h"

namespace config {
namespace {

using evpn::PolicyRule;
using evpn::RuleAction;

// A value, or a list of at least one.
template <class T, class Reader>
void read_values(std::vector<T>& out, const Value& value, std::string_view of_what, Reader reader) {
  if (value.node->kind == Node::Kind::Scalar) {
    if (const auto one = reader(value)) out = {*one};
    return;
  }
  out = read_set(value, of_what, reader);
  if (value.node->kind == Node::Kind::List && value.node->items.empty())
    value.error("an empty list would match nothing; leave the key out to match everything");
}

std::optional<uint8_t> read_route_type(const Value& value) {
  const auto number = read_number(value, 1, 11);
  if (!number) return std::nullopt;
  return static_cast<uint8_t>(*number);
}

std::optional<net::Vni> read_rule_vni(const Value& value) {
  const auto number = read_number(value, 0, net::kMaxVni);
  if (!number) return std::nullopt;
  return net::Vni(static_cast<uint32_t>(*number));
}

std::optional<net::RouteDistinguisher> read_rule_rd(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto rd = net::RouteDistinguisher::parse(value.node->text)) return rd;
  value.expected("a route distinguisher such as 10.0.0.1:100 or 65000:100");
  return std::nullopt;
}

bool has_host_bits(const evpn::MacPrefix& prefix) {
  const auto octets = prefix.address.bytes();
  for (std::size_t bit = prefix.length; bit < 48; ++bit)
    if ((octets[bit / 8] >> (7 - bit % 8) & 1) != 0) return true;
  return false;
}

std::optional<evpn::MacPrefix> read_mac_prefix(const Value& value) {
  constexpr std::string_view kExpected =
      "a MAC address, or the first bits of one such as 02:00:00:00:00:00/24";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  const std::size_t slash = std::min(text->find('/'), text->size());
  const auto mac = net::MacAddress::parse(text->substr(0, slash));
  evpn::MacPrefix prefix{mac.value_or(net::MacAddress{}), 48};
  bool good = mac.has_value();
  if (good && slash < text->size()) {
    const auto digits = text->substr(slash + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), prefix.length);
    good = error == std::errc{} && end == digits.data() + digits.size() && prefix.length <= 48;
  }
  if (!good) {
    value.expected(kExpected);
    return std::nullopt;
  }
  if (has_host_bits(prefix)) {
    value.error(fmt::format("{} has bits set behind the first {}", quote(*text), prefix.length));
    return std::nullopt;
  }
  return prefix;
}

std::optional<evpn::Community> read_hex_community(std::string_view digits) {
  std::array<uint8_t, 8> octets{};
  if (digits.size() != 16) return std::nullopt;
  for (std::size_t i = 0; i < octets.size(); ++i) {
    const char* from = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(from, from + 2, octets[i], 16);
    if (error != std::errc{} || end != from + 2) return std::nullopt;
  }
  return evpn::Community(octets);
}

// Numbers between colons: two of 16 bits, or three of 32.
std::optional<evpn::Community> read_decimal_community(std::string_view text) {
  std::vector<uint32_t> numbers;
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  for (;;) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(at, last, number);
    if (error != std::errc{}) return std::nullopt;
    numbers.push_back(number);
    if (end == last) break;
    if (*end != ':' || numbers.size() == 3) return std::nullopt;
    at = end + 1;
  }
  if (numbers.size() == 3)
    return evpn::Community(std::array<uint32_t, 3>{numbers[0], numbers[1], numbers[2]});
  if (numbers.size() != 2 || numbers[0] > 0xffff || numbers[1] > 0xffff) return std::nullopt;
  return evpn::Community(evpn::StandardCommunity{numbers[0] << 16 | numbers[1]});
}

std::optional<evpn::Community> read_community(const Value& value) {
  constexpr std::string_view kExpected =
      "a community: 65000:1, large 65000:1:2, or extended as 16 hexadecimal digits after 0x";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  const auto community =
      text->starts_with("0x") ? read_hex_community(text->substr(2)) : read_decimal_community(*text);
  if (!community) value.expected(kExpected);
  return community;
}

const Table<PolicyRule>& rule_table() {
  using R = PolicyRule;
  static constexpr Word<RuleAction> kActions[] = {
      {"accept", RuleAction::Accept}, {"flag", RuleAction::Flag}, {"reject", RuleAction::Reject}};
  static const Table<R> table{
      "bgp.policies.NAME[]",
      {
          {"route-type",
           [](const Value& v, R& r) {
             read_values(r.route_types, v, "route types", read_route_type);
           }},
          {"route-target",
           [](const Value& v, R& r) {
             read_values(r.route_targets, v, "route targets", read_route_target);
           }},
          {"vni", [](const Value& v, R& r) { read_values(r.vnis, v, "VNIs", read_rule_vni); }},
          {"rd", [](const Value& v,
                    R& r) { read_values(r.rds, v, "route distinguishers", read_rule_rd); }},
          {"mac",
           [](const Value& v, R& r) { read_values(r.macs, v, "MAC addresses", read_mac_prefix); }},
          {"ip", [](const Value& v, R& r) { read_values(r.ips, v, "prefixes", read_prefix); }},
          {"community", [](const Value& v,
                           R& r) { read_values(r.communities, v, "communities", read_community); }},
          {"next-hop",
           [](const Value& v, R& r) { read_values(r.next_hops, v, "prefixes", read_prefix); }},
          {"then", [](const Value& v, R& r) { assign(r.then, read_word(v, kActions)); }, true},
      }};
  return table;
}

void read_rules(const Value& value, evpn::PolicySettings& policy) {
  bool all = false, said = false;
  for (const Value& item : read_items(value, "rules")) {
    PolicyRule rule;
    const Present present = read_table(item, rule_table(), rule);
    if (all && !std::exchange(said, true))
      item.warning("never reached: an earlier rule matches every route");
    all = all || (present.size() == 1 && present.contains("then"));
    policy.rules.push_back(std::move(rule));
  }
  if (value.node->kind != Node::Kind::List) return;
  if (policy.rules.empty()) value.error("expected at least one rule");
  const auto rejects = [](const PolicyRule& rule) { return rule.then == RuleAction::Reject; };
  // One that says so at its end is meant so.
  if (!policy.rules.empty() && !all && std::ranges::all_of(policy.rules, rejects))
    value.warning("no rule accepts anything: every route is rejected");
}

}  // namespace

void load_route_policies(const Value& value, Loader& loader) {
  for (const Entry& entry : read_entries(value)) {
    const Node name{Node::Kind::Scalar, true, entry.key.place, entry.key.text, {}, {}};
    if (!read_name({&name, entry.value.where, value.report})) continue;
    evpn::PolicySettings policy;
    policy.name = entry.key.text;
    read_rules(entry.value, policy);
    loader.settings.route_policies.emplace(entry.key.text, std::move(policy));
  }
}

void check_route_policy_name(const Value& value, const Loader& loader) {
  if (value.node->kind != Node::Kind::Scalar) return;  // said already
  const std::string& name = value.node->text;
  const auto& policies = loader.settings.route_policies;
  if (policies.contains(name)) return;
  std::vector<std::string> known;
  for (const auto& [policy, settings] : policies) known.push_back(policy);
  value.error(
      fmt::format("no policy {} in bgp.policies{}", quote(name), did_you_mean(name, known)));
}

void route_policy_keys(std::vector<std::string>& keys) { append_keys(keys, rule_table()); }

}  // namespace config
