// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp`: listeners, groups of neighbors, neighbors by address and by prefix. A neighbor starts as a
// copy of its group; its own keys override the group's. Rules between keys are checked where one of
// the keys stands.
#include <fmt/core.h>

#include <algorithm>

#include "config/loader.h"
#include "config/session_values.h"

namespace config {
namespace {

using bgp::NeighborRole;
using bgp::NeighborSettings;

constexpr std::pair<uint8_t, uint8_t> kArpNd{0x06, 0x08};  // RFC 9047

struct NeighborDraft {
  NeighborSettings settings;
  bool arp_nd_community = true;
};

struct DynamicDraft : NeighborDraft {
  net::IpPrefix prefix;
  uint32_t limit = 0;
};

struct BgpDraft {
  Loader* loader = nullptr;
  std::map<std::string, NeighborDraft> groups;
  std::map<std::string, Owner> neighbors;  // by address and interface
  std::map<net::IpPrefix, Owner> prefixes;
  std::map<std::string, Owner> listeners;
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
       [](const Value& v, D& d) { assign(d.settings.local_address, read_unicast(v)); }},
      {"passive", [](const Value& v, D& d) { assign(d.settings.passive, read_bool(v)); }},
      {"enabled", [](const Value& v, D& d) { assign(d.settings.enabled, read_bool(v)); }},
      {"hold-time",
       [](const Value& v, D& d) { assign(d.settings.hold_time, read_seconds(v, 3, 65535, true)); }},
      {"connect-retry",
       [](const Value& v, D& d) { assign(d.settings.connect_retry, read_seconds(v, 1, 65535)); }},
      {"password", [](const Value& v, D& d) { assign(d.settings.password, read_password(v)); }},
      {"ao-keys", [](const Value& v, D& d) { d.settings.ao_keys = read_ao_keys(v); }},
      {"delay-open",
       [](const Value& v, D& d) { assign(d.settings.delay_open, read_seconds(v, 1, 240, true)); }},
      {"open-time",
       [](const Value& v, D& d) { assign(d.settings.open_time, read_seconds(v, 1, 240)); }},
      {"send-hold-time",
       [](const Value& v, D& d) {
         assign(d.settings.send_hold_time, read_seconds(v, 3, 65535, true));
       }},
      {"shutdown-message",
       [](const Value& v, D& d) { assign(d.settings.shutdown_message, read_shutdown_message(v)); }},
      {"ttl", [](const Value& v, D& d) { assign_number(d.settings.ttl, v, 1, 255); }},
      {"ttl-security-hops",
       [](const Value& v, D& d) { assign_number(d.settings.ttl_security_hops, v, 0, 254); }},
      {"graceful-restart",
       [](const Value& v, D& d) { assign(d.settings.graceful_restart, read_bool(v)); }},
      {"restart-time",
       [](const Value& v, D& d) { assign(d.settings.restart_time, read_seconds(v, 0, 4095)); }},
      {"max-prefixes",
       [](const Value& v, D& d) { assign_number(d.settings.max_prefixes, v, 0, UINT32_MAX); }},
      {"max-prefixes-warning",
       [](const Value& v, D& d) { assign_number(d.settings.max_prefixes_warning, v, 0, 100); }},
      {"max-prefixes-action",
       [](const Value& v, D& d) {
         static constexpr Word<bool> kActions[] = {{"drop", false}, {"warn", true}};
         assign(d.settings.max_prefixes_warn_only, read_word(v, kActions));
       }},
      {"max-prefixes-idle",
       [](const Value& v, D& d) { assign(d.settings.max_prefixes_idle, read_minutes(v, 10080)); }},
      {"long-lived-time",
       [](const Value& v, D& d) {
         assign(d.settings.long_lived_time, read_seconds(v, 0, 16777215));
       }},
      {"long-lived-partial-deployment",
       [](const Value& v, D& d) { assign(d.settings.long_lived_partial, read_bool(v)); }},
      {"route-target-constrain",
       [](const Value& v, D& d) { assign(d.settings.route_target_constrain, read_bool(v)); }},
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
             [](const Value& v, D& d) {
               if (auto scoped = read_scoped_address(v)) {
                 d.settings.address = scoped->address;
                 if (!scoped->interface.empty()) d.settings.interface = scoped->interface;
               }
             },
             true},
            {"interface",
             [](const Value& v, D& d) { assign(d.settings.interface, read_interface(v)); }},
            {"group", [](const Value&, D&) {}},  // read before all others, see read_neighbor()
            {"description",
             [](const Value& v, D& d) { assign(d.settings.description, read_text(v)); }},
        }};
    for (const auto& field : shared_fields()) made.fields.push_back(field);
    return made;
  }();
  return table;
}

const Table<DynamicDraft>& dynamic_table() {
  using D = DynamicDraft;
  static const Table<D> table{
      "bgp.dynamic-neighbors[]",
      {
          {"prefix", [](const Value& v, D& d) { assign(d.prefix, read_prefix(v)); }, true},
          {"limit", [](const Value& v, D& d) { assign_number(d.limit, v, 1, 65535); }, true},
          {"group", [](const Value&, D&) {}},
          {"description",
           [](const Value& v, D& d) { assign(d.settings.description, read_text(v)); }},
          {"interface",
           [](const Value& v, D& d) { assign(d.settings.interface, read_interface(v)); }},
      }};
  return table;
}

// The shared keys are read by their own table, so that there is one list of them.
const std::vector<std::string>& dynamic_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all = dynamic_table().keys();
    for (const auto& field : shared_fields()) all.emplace_back(field.key);
    return all;
  }();
  return keys;
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
  const Value* key = find(present, "ao-keys");
  if (!key) key = find(present, "password");
  if (key && !settings.password.empty() && !settings.ao_keys.empty())
    key->error("password and ao-keys exclude each other");
  const Value* long_lived = find(present, "long-lived-time");
  if (!long_lived) long_lived = find(present, "graceful-restart");
  if (long_lived && settings.long_lived_time.count() != 0 && !settings.graceful_restart)
    long_lived->error("long-lived-time needs graceful-restart");
  const Value* partial = find(present, "long-lived-partial-deployment");
  if (!partial) partial = find(present, "as");
  if (partial && settings.long_lived_partial && local_as.value != 0 &&
      settings.remote_as.value != 0 && settings.remote_as != local_as)
    partial->error("long-lived-partial-deployment is for neighbors in our own AS");
  const Value* send_hold = find(present, "send-hold-time");
  if (!send_hold) send_hold = find(present, "hold-time");
  if (send_hold && settings.send_hold_time.count() != 0 &&
      settings.send_hold_time <= settings.hold_time)
    send_hold->error("send-hold-time must be longer than hold-time");
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

void strip_arp_nd(NeighborDraft& neighbor) {
  auto& strip = neighbor.settings.strip_extended_communities;
  if (!neighbor.arp_nd_community && std::ranges::find(strip, kArpNd) == strip.end())
    strip.push_back(kArpNd);
}

// A link-local address says nothing without its interface; elsewhere there is none.
void check_scope(const Present& present, const NeighborSettings& settings) {
  const auto scoped = [](const net::IpAddress& a) { return a.is_v6() && a.is_link_local(); };
  const Value* address = find(present, "address");
  const Value* interface = find(present, "interface");
  if (address && scoped(settings.address) && settings.interface.empty() && !interface)
    address->error("a link-local address needs its interface: fe80::1%eth0, or the key interface");
  if (interface && address && !scoped(settings.address) && !settings.address.is_unspecified())
    interface->error("only a neighbor with a link-local IPv6 address has an interface");
  const Value* local = find(present, "local-address");
  if (local && settings.local_address && scoped(*settings.local_address) &&
      !scoped(settings.address))
    local->error("a link-local address is only for a neighbor with one");
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
  strip_arp_nd(neighbor);
  check_scope(present, settings);
  if (const Value* address = find(present, "address");
      address && !settings.address.is_unspecified()) {
    std::string name = to_string(settings.address);
    if (!settings.interface.empty()) name += "%" + settings.interface;
    claim(draft.neighbors, name, *address, "neighbor " + name, "neighbor " + name);
  }
  draft.loader->settings.bgp.neighbors.push_back(std::move(settings));
}

void read_dynamic(const Value& value, BgpDraft& draft) {
  DynamicDraft dynamic;
  static_cast<NeighborDraft&>(dynamic) = from_group(value, draft);
  const Present present = read_known(value, dynamic_keys(), {"prefix", "limit"});
  if (value.node->kind != Node::Kind::Map) return;
  for (const auto& field : dynamic_table().fields)
    if (const Value* own = find(present, field.key)) field.read(*own, dynamic);
  for (const auto& field : shared_fields())
    if (const Value* own = find(present, field.key)) field.read(*own, dynamic);
  NeighborSettings& settings = dynamic.settings;
  const bool group_failed = find(present, "group") && !draft.groups.contains(settings.group);
  if (settings.remote_as.value == 0 && !find(present, "as") && !group_failed)
    value.error("missing key \"as\", here or in the group");
  check_session(present, settings, draft.loader->settings.bgp.local_as);
  strip_arp_nd(dynamic);
  settings.passive = true;
  const Value* prefix = find(present, "prefix");
  const std::string text = "prefix " + net::to_string(dynamic.prefix);
  if (prefix && dynamic.limit != 0 && !claim(draft.prefixes, dynamic.prefix, *prefix, text, text))
    return;
  draft.loader->settings.bgp.dynamic_neighbors.push_back(
      {dynamic.prefix.address, dynamic.prefix.length, dynamic.limit, std::move(settings)});
}

const Table<bgp::ListenSettings>& listen_table() {
  using L = bgp::ListenSettings;
  static const Table<L> table{
      "bgp.listen[]",
      {
          {"address",
           [](const Value& v, L& l) {
             if (auto scoped = read_scoped_listen_address(v)) {
               l.address = scoped->address;
               l.interface = scoped->interface;
             }
           },
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
    const std::string text =
        fmt::format("{}{}{} port {}", to_string(listen.address),
                    listen.interface.empty() ? "" : "%", listen.interface, listen.port);
    if (claim(draft.listeners, text, item, "listener", text))
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
          {"bmp", [](const Value& v, BgpDraft& d) { read_bmp(v, d.loader->settings.bgp); }},
          {"mrt", [](const Value& v, BgpDraft& d) { read_mrt(v, d.loader->settings.bgp); }},
          {"policies", [](const Value& v, BgpDraft& d) { load_route_policies(v, *d.loader); }},
          {"members", [](const Value& v, BgpDraft& d) { load_member_lists(v, *d.loader); }},
          {"groups", read_groups},
          {"neighbors",
           [](const Value& v, BgpDraft& d) {
             for (const Value& item : read_items(v, "neighbors")) read_neighbor(item, d);
           }},
          {"dynamic-neighbors",
           [](const Value& v, BgpDraft& d) {
             for (const Value& item : read_items(v, "prefixes")) read_dynamic(item, d);
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
  append_keys(keys, dynamic_table());
  ao_key_keys(keys);
}

}  // namespace config
