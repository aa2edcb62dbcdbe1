// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp.members`: who the members of a peering LAN are, for a node that has no ports of its own (a
// route server) or not theirs; and the reading of one IX-F export, which broadcast domains share.
#include <fmt/core.h>

#include <algorithm>

#include "config/loader.h"

namespace config {
namespace {

struct ListDraft {
  Loader* loader = nullptr;
  std::map<uint32_t, Owner>* vnis = nullptr;
  evpn::MemberList list;
  bool prefixes_known = true;
  std::map<net::IpAddress, Owner> addresses;
  std::map<net::MacAddress, Owner> macs;
};

struct MemberDraft {
  ListDraft* draft = nullptr;
  net::AsNumber as;
  std::string name;
  std::vector<net::MacAddress> macs;
  std::vector<net::IpAddress> addresses, pes;
};

// One of a list that nobody has named yet; its owner is what `what` says.
template <class T, class Reader>
void read_claimed(std::vector<T>& out, const Value& value, std::string_view of_what,
                  std::map<T, Owner>& owners, const std::string& what, Reader reader) {
  for (const Value& item : read_items(value, of_what))
    if (const std::optional<T> one = reader(item);
        one && claim(owners, *one, item, what, net::to_string(*one)))
      out.push_back(*one);
}

std::optional<net::IpAddress> read_address(const Value& value, const ListDraft& draft) {
  const auto address = read_unicast(value);
  const auto& prefixes = draft.list.prefixes;
  const auto inside = [&](const net::IpPrefix& prefix) { return prefix.contains(*address); };
  if (!address || prefixes.empty() || !draft.prefixes_known ||
      std::ranges::any_of(prefixes, inside))
    return address;
  value.error(fmt::format("{} is outside of the prefixes", net::to_string(*address)));
  return std::nullopt;
}

const Table<MemberDraft>& member_table() {
  using M = MemberDraft;
  static const Table<M> table{
      "bgp.members[].list[]",
      {
          {"as", [](const Value& v, M& m) { assign(m.as, read_as(v)); }},
          {"name", [](const Value& v, M& m) { assign(m.name, read_text(v)); }},
          {"macs",
           [](const Value& v, M& m) {
             read_claimed(m.macs, v, "MAC addresses", m.draft->macs, "member", read_mac);
             if (v.node->kind == Node::Kind::List && v.node->items.empty())
               v.error("expected at least one MAC address");
           },
           true},
          {"addresses",
           [](const Value& v, M& m) {
             read_claimed(m.addresses, v, "addresses", m.draft->addresses, "member",
                          [&](const Value& item) { return read_address(item, *m.draft); });
           }},
          {"pes", [](const Value& v, M& m) { m.pes = read_set(v, "addresses", read_unicast); }},
      }};
  return table;
}

void read_list(const Value& value, ListDraft& draft) {
  for (const Value& item : read_items(value, "members")) {
    MemberDraft member;
    member.draft = &draft;
    read_table(item, member_table(), member);
    for (const auto& mac : member.macs)
      draft.list.macs.push_back({mac, member.as, member.name, member.pes});
    for (const auto& address : member.addresses)
      draft.list.addresses.push_back({address, member.macs, member.as, member.name});
  }
}

const Table<MemberFile>& file_table() {
  static const Table<MemberFile> table{"bgp.members[].files[]", member_file_fields()};
  return table;
}

// What `list` says of an address wins.
void add_imported(ListDraft& draft, const std::string& path, std::vector<IxfBinding> bindings) {
  std::vector<Error> warnings;
  for (IxfBinding& from : bindings) {
    auto& to = draft.list.addresses;
    const auto known = std::ranges::find(to, from.binding.ip, &evpn::MemberAddress::ip);
    if (known == to.end()) {
      to.push_back({from.binding.ip, std::move(from.binding.macs), from.binding.member_as,
                    std::move(from.binding.member_name)});
      continue;
    }
    if (std::ranges::is_permutation(known->macs, from.binding.macs)) continue;
    warnings.push_back({.file = path,
                        .line = from.line,
                        .column = from.column,
                        .where = from.where,
                        .what = fmt::format("{} has other MAC addresses here than in the list of "
                                            "members or an earlier export, which wins",
                                            net::to_string(from.binding.ip))});
  }
  draft.loader->report.add_warnings(std::move(warnings));
}

void read_files(const Value& value, ListDraft& draft) {
  for (const Value& item : read_items(value, "member files")) {
    MemberFile file;
    const Present present = read_table(item, file_table(), file);
    if (draft.list.prefixes.empty() || !draft.prefixes_known) continue;
    if (file.this_switch) present.at("this-switch").error("only a broadcast domain has ports");
    auto imported = import_members(item, present, file, draft.list.prefixes, *draft.loader);
    if (imported) add_imported(draft, imported->path, std::move(imported->bindings));
  }
}

const Table<ListDraft>& list_table() {
  using L = ListDraft;
  static const Table<L> table{
      "bgp.members[]",
      {
          {"vni",
           [](const Value& v, L& l) {
             const auto number = read_number(v, 1, net::kMaxVni);
             if (!number) return;
             l.list.vni = net::Vni(static_cast<uint32_t>(*number));
             claim(*l.vnis, l.list.vni.value, v, "list of members", fmt::format("VNI {}", *number));
           },
           true},
          {"route-targets",
           [](const Value& v, L& l) {
             l.list.route_targets = read_set(v, "route targets", read_route_target);
           }},
          {"prefixes",
           [](const Value& v, L& l) {
             l.list.prefixes = read_set(v, "prefixes", read_prefix);
             l.prefixes_known =
                 v.node->kind == Node::Kind::List && l.list.prefixes.size() == v.node->items.size();
             if (v.node->kind == Node::Kind::List && v.node->items.empty())
               v.error("expected at least one prefix");
           },
           true},
          {"list", read_list},
          {"files", read_files},
      }};
  return table;
}

}  // namespace

void load_member_lists(const Value& value, Loader& loader) {
  std::map<uint32_t, Owner> vnis;
  for (const Value& item : read_items(value, "lists of members")) {
    ListDraft draft;
    draft.loader = &loader;
    draft.vnis = &vnis;
    const Present present = read_table(item, list_table(), draft);
    if (item.node->kind == Node::Kind::Map && !present.contains("list") &&
        !present.contains("files"))
      item.error("needs list or files, or both");
    loader.settings.members.push_back(std::move(draft.list));
  }
}

void check_guards(const Loader& loader) {
  const auto& settings = loader.settings;
  const bool domains = std::ranges::any_of(settings.domains, [](const BroadcastDomain& domain) {
    return std::ranges::any_of(domain.proxy.bindings,
                               [](const auto& binding) { return binding.port.empty(); });
  });
  if (!settings.members.empty() || domains) return;
  for (const Value& guard : loader.guards)
    guard.error("needs bgp.members, or a broadcast domain with members: nothing would be checked");
}

std::optional<evpn::RouteTarget> read_route_target(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto target = evpn::parse_route_target(value.node->text)) return target;
  value.expected("a route target such as 65000:100 or 192.0.2.1:100");
  return std::nullopt;
}

void member_keys(std::vector<std::string>& keys) {
  append_keys(keys, list_table());
  append_keys(keys, member_table());
  append_keys(keys, file_table());
}

}  // namespace config
