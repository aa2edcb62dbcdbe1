// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp`: listeners, groups of neighbors, neighbors. A neighbor starts as a copy of its group; its
// own keys override the group's. Rules between keys are checked where one of the keys stands.
#include <fmt/core.h>

#include <algorithm>

#include "config/loader.h"

namespace config {
namespace {

using bgp::NeighborRole;
using bgp::NeighborSettings;

constexpr std::pair<uint8_t, uint8_t> kArpNd{0x06, 0x08};  // RFC 9047

struct NeighborDraft {
  NeighborSettings settings;
  bool arp_nd_community = true;
};

struct BgpDraft {
  Loader* loader = nullptr;
  std::map<std::string, NeighborDraft> groups;
  std::map<net::IpAddress, Owner> neighbors;
  std::map<std::pair<net::IpAddress, uint16_t>, Owner> listeners;
};

std::optional<std::pair<uint8_t, uint8_t>> read_community_type(const Value& value) {
  constexpr std::string_view kExpected =
      "type and sub-type of an extended community as four hexadecimal digits, such as 0x0608";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  if (text->size() == 6 && text->starts_with("0x") &&
      text->find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos) {
    const unsigned long number = std::stoul(std::string(*text), nullptr, 16);
    return std::pair(static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number));
  }
  value.expected(kExpected);
  return std::nullopt;
}

std::optional<net::IpAddress> read_session_address(const Value& value) {
  const auto address = read_unicast(value);
  if (address && address->is_v6() && address->is_link_local()) {
    value.error("a link-local address names no link; use a global one");
    return std::nullopt;
  }
  return address;
}

std::optional<std::string> read_password(const Value& value) {
  const auto text = value.scalar("a password");
  if (!text) return std::nullopt;
  if (text->empty() || text->size() > 80) {  // TCP_MD5SIG_MAXKEYLEN; not shown in the message
    value.error(fmt::format("expected a password of 1 to 80 octets, got {}", text->size()));
    return std::nullopt;
  }
  return std::string(*text);
}

template <class T>
void assign_number(T& to, const Value& value, uint64_t least, uint64_t most) {
  if (const auto number = read_number(value, least, most)) to = static_cast<T>(*number);
}

// The keys that groups and neighbors share.
std::vector<Field<NeighborDraft>> shared_fields() {
  using D = NeighborDraft;
  static constexpr Word<NeighborRole> kRoles[] = {
      {"peer", NeighborRole::Peer},
      {"reflector-client", NeighborRole::ReflectorClient},
      {"route-server-client", NeighborRole::RouteServerClient}};
  static constexpr Word<bgp::BindingGuard> kGuards[] = {{"off", bgp::BindingGuard::Off},
                                                        {"flag", bgp::BindingGuard::Flag},
                                                        {"reject", bgp::BindingGuard::Reject}};
  return {
      {"as", [](const Value& v, D& d) { assign(d.settings.remote_as, read_as(v)); }},
      {"role", [](const Value& v, D& d) { assign(d.settings.role, read_word(v, kRoles)); }},
      {"port", [](const Value& v, D& d) { assign_number(d.settings.port, v, 1, 65535); }},
      {"local-address",
       [](const Value& v, D& d) { assign(d.settings.local_address, read_session_address(v)); }},
      {"passive", [](const Value& v, D& d) { assign(d.settings.passive, read_bool(v)); }},
      {"enabled", [](const Value& v, D& d) { assign(d.settings.enabled, read_bool(v)); }},
      {"hold-time",
       [](const Value& v, D& d) { assign(d.settings.hold_time, read_seconds(v, 3, 65535, true)); }},
      {"connect-retry",
       [](const Value& v, D& d) { assign(d.settings.connect_retry, read_seconds(v, 1, 65535)); }},
      {"password", [](const Value& v, D& d) { assign(d.settings.password, read_password(v)); }},
      {"ttl", [](const Value& v, D& d) { assign_number(d.settings.ttl, v, 1, 255); }},
      {"ttl-security-hops",
       [](const Value& v, D& d) { assign_number(d.settings.ttl_security_hops, v, 0, 254); }},
      {"graceful-restart",
       [](const Value& v, D& d) { assign(d.settings.graceful_restart, read_bool(v)); }},
      {"restart-time",
       [](const Value& v, D& d) { assign(d.settings.restart_time, read_seconds(v, 0, 4095)); }},
      {"max-prefixes",
       [](const Value& v, D& d) { assign_number(d.settings.max_prefixes, v, 0, UINT32_MAX); }},
      {"arp-nd-community", [](const Value& v, D& d) { assign(d.arp_nd_community, read_bool(v)); }},
      {"accept-policy",
       [](const Value& v, D& d) { assign(d.settings.accept_policy, read_name(v)); }},
      {"send-policy", [](const Value& v, D& d) { assign(d.settings.send_policy, read_name(v)); }},
      {"binding-guard",
       [](const Value& v, D& d) { assign(d.settings.binding_guard, read_word(v, kGuards)); }},
      {"strip-extended-communities",
       [](const Value& v, D& d) {
         d.settings.strip_extended_communities =
             read_set(v, "types of extended communities", read_community_type);
       }},
  };
}

const Table<NeighborDraft>& group_table() {
  static const Table<NeighborDraft> table{"bgp.groups.NAME", shared_fields()};
  return table;
}

const Table<NeighborDraft>& neighbor_table() {
  static const Table<NeighborDraft> table = [] {
    using D = NeighborDraft;
    Table<D> made{
        "bgp.neighbors[]",
        {
            {"address",
             [](const Value& v, D& d) { assign(d.settings.address, read_session_address(v)); },
             true},
            {"group", [](const Value&, D&) {}},  // read before all others, see read_neighbor()
            {"description",
             [](const Value& v, D& d) { assign(d.settings.description, read_text(v)); }},
        }};
    for (const auto& field : shared_fields()) made.fields.push_back(field);
    return made;
  }();
  return table;
}

const Value* find(const Present& present, std::string_view key) {
  const auto found = present.find(key);
  return found == present.end() ? nullptr : &found->second;
}

// Rules between keys. Only where this mapping has one of the keys itself, so that a mistake in a
// group is reported once, in the group.
void check_session(const Present& present, const NeighborSettings& settings,
                   net::AsNumber local_as) {
  const Value* at = find(present, "role");
  if (!at) at = find(present, "as");
  if (at && local_as.value != 0 && settings.remote_as.value != 0) {
    const bool same = settings.remote_as == local_as;
    if (settings.role == NeighborRole::ReflectorClient && !same)
      at->error(fmt::format("a reflector-client must be in our AS {}, not in {}", local_as.value,
                            settings.remote_as.value));
    if (settings.role == NeighborRole::RouteServerClient && same)
      at->error(
          fmt::format("a route-server-client must be in another AS than ours, {}", local_as.value));
  }
  const Value* ttl = find(present, "ttl");
  if (!ttl) ttl = find(present, "ttl-security-hops");
  if (ttl && settings.ttl != 0 && settings.ttl_security_hops != 0)
    ttl->error(
        "ttl and ttl-security-hops exclude each other: with the latter all is sent with 255");
  if (const Value* local = find(present, "local-address"))
    if (settings.local_address && find(present, "address") &&
        settings.local_address->family() != settings.address.family())
      local->error("local-address and address must both be IPv4 or both IPv6");
  if (const Value* community = find(present, "arp-nd-community"))
    if (community->node->text == "true" &&
        std::ranges::find(settings.strip_extended_communities, kArpNd) !=
            settings.strip_extended_communities.end())
      community->error("strip-extended-communities has 0x0608, which is this community");
}

void check_policies(const Present& present, const NeighborSettings& settings, Loader& loader) {
  for (const char* key : {"accept-policy", "send-policy"})
    if (const Value* name = find(present, key)) check_route_policy_name(*name, loader);
  const Value* guard = find(present, "binding-guard");
  if (guard && settings.binding_guard != bgp::BindingGuard::Off) loader.guards.push_back(*guard);
}

void read_groups(const Value& value, BgpDraft& draft) {
  for (const Entry& entry : read_entries(value)) {
    const Node name{Node::Kind::Scalar, true, entry.key.place, entry.key.text, {}, {}};
    if (!read_name({&name, entry.value.where, value.report})) continue;
    NeighborDraft group;
    const Present present = read_table(entry.value, group_table(), group);
    check_session(present, group.settings, draft.loader->settings.bgp.local_as);
    check_policies(present, group.settings, *draft.loader);
    draft.groups.emplace(entry.key.text, std::move(group));
  }
}

// The group's keys, or an empty draft.
NeighborDraft from_group(const Value& neighbor, const BgpDraft& draft) {
  if (neighbor.node->kind != Node::Kind::Map) return {};
  for (std::size_t i = 0; i < neighbor.node->keys.size(); ++i) {
    if (neighbor.node->keys[i].text != "group") continue;
    const Value value{neighbor.node->items[i].get(), neighbor.where + ".group", neighbor.report};
    const auto name = value.scalar("the name of a group");
    if (!name) return {};
    if (const auto group = draft.groups.find(std::string(*name)); group != draft.groups.end()) {
      NeighborDraft made = group->second;
      made.settings.group = *name;
      return made;
    }
    std::vector<std::string> known;
    for (const auto& [group, settings] : draft.groups) known.push_back(group);
    value.error(
        fmt::format("no group {} in bgp.groups{}", quote(*name), did_you_mean(*name, known)));
    // Its keys are unknown, so is whether one is missing.
    NeighborDraft made;
    made.settings.group = *name;
    return made;
  }
  return {};
}

void read_neighbor(const Value& value, BgpDraft& draft) {
  NeighborDraft neighbor = from_group(value, draft);
  const Present present = read_table(value, neighbor_table(), neighbor);
  if (value.node->kind != Node::Kind::Map) return;
  NeighborSettings& settings = neighbor.settings;
  const bool group_failed = find(present, "group") && !draft.groups.contains(settings.group);
  if (settings.remote_as.value == 0 && !find(present, "as") && !group_failed)
    value.error("missing key \"as\", here or in the group");
  check_session(present, settings, draft.loader->settings.bgp.local_as);
  check_policies(present, settings, *draft.loader);
  if (!neighbor.arp_nd_community &&
      std::ranges::find(settings.strip_extended_communities, kArpNd) ==
          settings.strip_extended_communities.end())
    settings.strip_extended_communities.push_back(kArpNd);
  if (const Value* address = find(present, "address");
      address && !settings.address.is_unspecified())
    claim(draft.neighbors, settings.address, *address, "neighbor " + to_string(settings.address),
          "neighbor " + to_string(settings.address));
  draft.loader->settings.bgp.neighbors.push_back(std::move(settings));
}

const Table<bgp::ListenSettings>& listen_table() {
  using L = bgp::ListenSettings;
  static const Table<L> table{
      "bgp.listen[]",
      {
          {"address", [](const Value& v, L& l) { assign(l.address, read_listen_address(v)); },
           true},
          {"port", [](const Value& v, L& l) { assign_number(l.port, v, 1, 65535); }},
      }};
  return table;
}

void read_listen(const Value& value, BgpDraft& draft) {
  for (const Value& item : read_items(value, "addresses and ports")) {
    bgp::ListenSettings listen;
    const Present present = read_table(item, listen_table(), listen);
    if (!present.contains("address")) continue;
    const std::string text = fmt::format("{} port {}", to_string(listen.address), listen.port);
    if (claim(draft.listeners, std::pair(listen.address, listen.port), item, "listener", text))
      draft.loader->settings.bgp.listen.push_back(listen);
  }
}

void read_cluster_id(const Value& value, BgpDraft& draft) {
  constexpr std::string_view kExpected =
      "an IPv4 address or a number from 1 to 4294967295";  // RFC 4456 section 7
  const auto text = value.scalar(kExpected);
  if (!text) return;
  uint32_t id = 0;
  if (const auto address = net::IpAddress::parse(*text); address && address->is_v4())
    id = address->v4_value();
  else if (text->find_first_not_of("0123456789") == std::string_view::npos && text->size() <= 10 &&
           !text->empty() && std::stoull(std::string(*text)) <= UINT32_MAX)
    id = static_cast<uint32_t>(std::stoull(std::string(*text)));
  if (id == 0)
    value.expected(kExpected);
  else
    draft.loader->settings.bgp.cluster_id = id;
}

const Table<BgpDraft>& bgp_table() {
  static const Table<BgpDraft> table{
      "bgp",
      {
          {"listen", read_listen},
          {"cluster-id", read_cluster_id},
          {"selection-deferral",
           [](const Value& v, BgpDraft& d) {
             assign(d.loader->settings.bgp.selection_deferral, read_seconds(v, 0, 3600));
           }},
          {"policies", [](const Value& v, BgpDraft& d) { load_route_policies(v, *d.loader); }},
          {"members", [](const Value& v, BgpDraft& d) { load_member_lists(v, *d.loader); }},
          {"groups", read_groups},
          {"neighbors",
           [](const Value& v, BgpDraft& d) {
             for (const Value& item : read_items(v, "neighbors")) read_neighbor(item, d);
           }},
      }};
  return table;
}

}  // namespace

void load_bgp(const Value& value, Loader& loader) {
  BgpDraft draft;
  draft.loader = &loader;
  read_table(value, bgp_table(), draft);
}

void bgp_keys(std::vector<std::string>& keys) {
  append_keys(keys, bgp_table());
  append_keys(keys, listen_table());
  append_keys(keys, group_table());
  append_keys(keys, neighbor_table());
}

}  // namespace config
