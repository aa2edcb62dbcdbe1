// SPDX-License-Identifier: GPL-2.0-or-later
// `broadcast-domains`: devices, EVPN, proxy ARP/ND, member ports, and the bindings that come out of
// ports, the list `bindings` and IX-F exports. Where these name one address, the port wins over the
// list (an error), and both win over an export (a warning when they differ).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/ixf.h"
#include "config/load_proxy.h"
#include "config/load_security.h"
#include "config/loader.h"

namespace config {
namespace {

using proxyarp::StaticBinding;

struct DomainDraft {
  Loader* loader = nullptr;
  BroadcastDomain domain;
  std::string policy = "peering";  // of ports that name none
  bool has_vni = false;            // that no other domain has
  bool prefixes_known = true;  // false when one was wrong: then no address is said to be outside
  std::map<net::IpAddress, Owner> addresses;
  std::map<net::MacAddress, std::pair<Owner, std::string>> port_macs;  // and the interface
  std::map<net::IpAddress, const dataplane::MemberPort*> bare;  // addresses of ports without MACs
  std::set<std::string> macs_said;  // ports whose settings say something about MACs
  std::vector<IxfBinding> imported;
  std::vector<std::string> imported_from;  // file of each
};

template <class T>
void assign_number(T& to, const Value& value, uint64_t least, uint64_t most) {
  if (const auto number = read_number(value, least, most)) to = static_cast<T>(*number);
}

std::string list_text(const std::vector<net::MacAddress>& macs) {
  std::vector<std::string> all;
  for (const auto& mac : macs) all.push_back(net::to_string(mac));
  std::ranges::sort(all);
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string list_text(const std::vector<net::IpPrefix>& prefixes) {
  std::vector<std::string> all;
  for (const auto& prefix : prefixes) all.push_back(net::to_string(prefix));
  return fmt::format("{}", fmt::join(all, ", "));
}

// An address of a member: a host's, in one of the prefixes.
std::optional<net::IpAddress> read_member_address(const Value& value, const DomainDraft& draft) {
  const auto address = read_unicast(value);
  const auto& prefixes = draft.domain.proxy.prefixes;
  if (!address || prefixes.empty() || !draft.prefixes_known) return address;
  const auto prefix =
      std::ranges::find_if(prefixes, [&](const net::IpPrefix& p) { return p.contains(*address); });
  if (prefix == prefixes.end()) {
    value.error(fmt::format("{} is outside of the prefixes {}", net::to_string(*address),
                            list_text(prefixes)));
    return std::nullopt;
  }
  if (prefix->is_network_or_broadcast(*address)) {
    value.error(fmt::format("{} is the network or broadcast address of {}",
                            net::to_string(*address), net::to_string(*prefix)));
    return std::nullopt;
  }
  return address;
}

// The name of a policy that is there.
std::optional<std::string> read_policy_name(const Value& value, const Loader& loader) {
  const auto name = value.scalar("the name of a policy");
  if (!name) return std::nullopt;
  if (loader.settings.policies.contains(std::string(*name))) return std::string(*name);
  std::vector<std::string> known;
  for (const auto& [policy, settings] : loader.settings.policies) known.push_back(policy);
  value.error(fmt::format("no policy {} in policies{}", quote(*name), did_you_mean(*name, known)));
  return std::nullopt;
}

// --- ports
struct PortDraft {
  DomainDraft* draft = nullptr;
  dataplane::MemberPort port;
};

const Table<PortDraft>& port_table() {
  using P = PortDraft;
  static const Table<P> table{
      "broadcast-domains[].ports[]",
      {
          {"interface",
           [](const Value& v, P& p) {
             const auto name = read_interface(v);
             if (!name) return;
             p.port.interface = *name;
             claim(p.draft->loader->devices, *name, v,
                   fmt::format("port of {}", quote(p.draft->domain.name)),
                   fmt::format("device {}", quote(*name)));
           },
           true},
          {"name", [](const Value& v, P& p) { assign(p.port.member_name, read_text(v)); }},
          {"as", [](const Value& v, P& p) { assign(p.port.member_as, read_as(v)); }},
          {"macs",
           [](const Value& v, P& p) {
             const auto claim_mac = [&](const Value& item, net::MacAddress mac) {
               const auto owner = p.draft->port_macs.find(mac);
               if (owner == p.draft->port_macs.end()) return true;
               item.error(fmt::format("MAC address {} is in use already: {}, line {}",
                                      net::to_string(mac), owner->second.first.what,
                                      owner->second.first.place.line));
               return false;
             };
             read_port_macs(v, claim_mac, p.port);
           }},
          {"enforce-macs",
           [](const Value& v, P& p) {
             if (v.node->text == "true" && p.port.macs.empty() && p.port.temporary_macs.empty())
               v.error("needs macs");
             assign(p.port.enforce_macs, read_bool(v));
           }},
          {"addresses",
           [](const Value& v, P& p) {
             for (const Value& item : read_items(v, "addresses")) {
               const auto address = read_member_address(item, *p.draft);
               if (address &&
                   claim(p.draft->addresses, *address, item,
                         fmt::format("port {}", quote(p.port.interface)), net::to_string(*address)))
                 p.port.addresses.push_back(*address);
             }
           }},
          {"policy", [](const Value& v,
                        P& p) { assign(p.port.policy, read_policy_name(v, *p.draft->loader)); }},
          {"state",
           [](const Value& v, P& p) {
             static constexpr Word<bool> kStates[] = {{"active", false}, {"quarantine", true}};
             assign(p.port.quarantined, read_word(v, kStates));
           }},
          {"observe", [](const Value& v, P& p) { assign(p.port.observe, read_bool(v)); }},
          {"lacp", [](const Value& v, P& p) { assign(p.port.lacp, read_bool(v)); }},
          {"security",
           [](const Value& v, P& p) {
             const auto policy = p.draft->loader->settings.policies.find(p.port.policy);
             if (policy == p.draft->loader->settings.policies.end()) return;
             p.port.security = policy->second.security;
             read_security(v, *p.port.security);
           }},
          {"attach",
           [](const Value& v, P& p) {
             static constexpr Word<dataplane::Attach> kWords[] = {{"auto", dataplane::Attach::Auto},
                                                                  {"tc", dataplane::Attach::Tc},
                                                                  {"xdp", dataplane::Attach::Xdp}};
             assign(p.port.attach, read_word(v, kWords));
           }},
      }};
  return table;
}

void read_ports(const Value& value, DomainDraft& draft) {
  for (const Value& item : read_items(value, "ports")) {
    PortDraft port{&draft, {}};
    port.port.policy = draft.policy;
    const Present present = read_table(item, port_table(), port);
    const auto macs = present.find("macs"), addresses = present.find("addresses");
    if (macs != present.end()) {
      const auto own = [&](net::MacAddress mac) {
        draft.port_macs.emplace(
            mac, std::pair(Owner{macs->second.place(), "port " + quote(port.port.interface)},
                           port.port.interface));
      };
      for (const auto& mac : port.port.macs) own(mac);
      for (const auto& temporary : port.port.temporary_macs) own(temporary.mac);
      draft.macs_said.insert(port.port.interface);
    } else if (present.contains("enforce-macs")) {
      draft.macs_said.insert(port.port.interface);
    } else if (draft.domain.proxy.profile != proxyarp::Profile::Static) {
      port.port.enforce_macs = false;  // learned, unless an export has them
    }
    if (port.port.policy == dataplane::kQuarantinePolicy) port.port.quarantined = true;
    if (const auto policy = draft.loader->settings.policies.find(port.port.policy);
        policy != draft.loader->settings.policies.end()) {
      const auto named = present.find("policy");
      check_own_traffic(named == present.end() ? item : named->second, port.port, policy->second,
                        draft.domain);
    }
    // With macs that were wrong, the error is there already.
    if (draft.domain.proxy.profile == proxyarp::Profile::Static && addresses != present.end() &&
        !port.port.addresses.empty() && (macs == present.end() || macs->second.node->items.empty()))
      addresses->second.error("addresses need macs in the profile static");
    draft.domain.ports.push_back(std::move(port.port));
  }
}

// --- bindings
struct BindingDraft {
  DomainDraft* draft = nullptr;
  StaticBinding binding;
};

const Table<BindingDraft>& binding_table() {
  using B = BindingDraft;
  static const Table<B> table{
      "broadcast-domains[].bindings[]",
      {
          {"ip",
           [](const Value& v, B& b) {
             const auto address = read_member_address(v, *b.draft);
             if (address &&
                 claim(b.draft->addresses, *address, v, "binding", net::to_string(*address)))
               b.binding.ip = *address;
           },
           true},
          {"port",
           [](const Value& v, B& b) {
             const auto name = read_interface(v);
             if (!name) return;
             b.binding.port = *name;
             std::vector<std::string> known;
             for (const auto& port : b.draft->domain.ports) known.push_back(port.interface);
             if (std::ranges::find(known, *name) == known.end())
               v.error(
                   fmt::format("no port {} in ports{}", quote(*name), did_you_mean(*name, known)));
           }},
          {"macs",
           [](const Value& v, B& b) {
             b.binding.macs = read_set(v, "MAC addresses", read_mac);
             if (v.node->kind == Node::Kind::List && v.node->items.empty())
               v.error("expected at least one MAC address");
             for (const auto& mac : b.binding.macs)
               if (const auto owner = b.draft->port_macs.find(mac);
                   owner != b.draft->port_macs.end() && !b.binding.port.empty() &&
                   owner->second.second != b.binding.port)
                 v.error(fmt::format("{} is a MAC address of port {}, not of {}",
                                     net::to_string(mac), quote(owner->second.second),
                                     quote(b.binding.port)));
           },
           true},
          {"as", [](const Value& v, B& b) { assign(b.binding.member_as, read_as(v)); }},
          {"name", [](const Value& v, B& b) { assign(b.binding.member_name, read_text(v)); }},
      }};
  return table;
}

// --- member files
const Table<MemberFile>& members_table() {
  static const Table<MemberFile> table{"broadcast-domains[].members[]", member_file_fields()};
  return table;
}

// Of an export of this very switch: a port here that has no MACs of its own takes those that the
// export has for it, and binds its addresses.
void take_ports(MemberImport& imported, DomainDraft& draft) {
  std::vector<Error> warnings;
  for (auto& port : draft.domain.ports) {
    const auto exported = imported.ports.find(port.interface);
    if (exported == imported.ports.end()) continue;
    const auto& [macs, line, column, where, closed] = exported->second;
    if (closed) {
      port.quarantined = true;
      continue;
    }
    if (!draft.macs_said.contains(port.interface)) {
      port.macs = macs;
      port.enforce_macs = true;
    } else if (port.macs.empty() && !port.enforce_macs) {
      port.macs = macs;
    } else if (!std::ranges::is_permutation(port.macs, macs)) {
      warnings.push_back(
          {.file = imported.path,
           .line = line,
           .column = column,
           .where = where,
           .what = fmt::format("port {} has {} here and {} in the export; the "
                               "former wins",
                               quote(port.interface), list_text(port.macs), list_text(macs))});
    }
  }
  for (IxfBinding& from : imported.bindings) {
    StaticBinding& binding = from.binding;
    const auto port =
        std::ranges::find(draft.domain.ports, binding.port, &dataplane::MemberPort::interface);
    if (port == draft.domain.ports.end()) {
      binding.port.clear();
      continue;
    }
    if (binding.member_as.value == 0) binding.member_as = port->member_as;
    if (!port->member_name.empty()) binding.member_name = port->member_name;
  }
  draft.loader->report.add_warnings(std::move(warnings));
}

void read_members(const Value& value, DomainDraft& draft) {
  for (const Value& item : read_items(value, "member files")) {
    MemberFile members;
    const Present present = read_table(item, members_table(), members);
    // Without prefixes no address could be checked.
    if (draft.domain.proxy.prefixes.empty() || !draft.prefixes_known) continue;
    auto imported =
        import_members(item, present, members, draft.domain.proxy.prefixes, *draft.loader);
    if (!imported) continue;
    take_ports(*imported, draft);
    for (IxfBinding& binding : imported->bindings) {
      draft.imported.push_back(std::move(binding));
      draft.imported_from.push_back(imported->path);
    }
  }
}

// --- the domain

const Table<evpn::Settings>& duplicate_table() {
  using E = evpn::Settings;
  static const Table<E> table{
      "broadcast-domains[].duplicate-mac",
      {
          {"moves", [](const Value& v, E& e) { assign_number(e.duplicate_moves, v, 1, 1000); }},
          {"window",
           [](const Value& v, E& e) { assign(e.duplicate_window, read_seconds(v, 1, 86400)); }},
          {"hold",
           [](const Value& v, E& e) { assign(e.duplicate_hold, read_seconds(v, 1, 86400)); }},
      }};
  return table;
}

void read_device(const Value& value, DomainDraft& draft, const char* kind, std::string& out) {
  const auto name = read_interface(value);
  if (!name) return;
  out = *name;
  claim(draft.loader->devices, *name, value,
        fmt::format("{} of {}", kind, quote(draft.domain.name)),
        fmt::format("device {}", quote(*name)));
}

void read_prefixes(const Value& value, DomainDraft& draft) {
  auto& prefixes = draft.domain.proxy.prefixes;
  for (const Value& item : read_items(value, "prefixes")) {
    const auto prefix = read_prefix(item);
    if (!prefix) draft.prefixes_known = false;
    if (!prefix) continue;
    const auto other = std::ranges::find_if(prefixes, [&](const net::IpPrefix& p) {
      return p.contains(prefix->address) || prefix->contains(p.address);
    });
    if (other != prefixes.end())
      item.error(fmt::format("{} and {} overlap", net::to_string(*prefix), net::to_string(*other)));
    else
      prefixes.push_back(*prefix);
  }
  if (value.node->kind == Node::Kind::List && value.node->items.empty())
    value.error("expected at least one prefix");
}

void read_vni(const Value& value, DomainDraft& draft) {
  const auto number = read_number(value, 1, net::kMaxVni);
  if (!number) return;
  draft.domain.links.vni = draft.domain.evpn.vni = net::Vni(static_cast<uint32_t>(*number));
  draft.has_vni = claim(draft.loader->vnis, static_cast<uint32_t>(*number), value,
                        fmt::format("broadcast domain {}", quote(draft.domain.name)),
                        fmt::format("VNI {}", *number));
}

void read_rd(const Value& value, DomainDraft& draft) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto rd = net::RouteDistinguisher::parse(value.node->text)) {
      draft.domain.evpn.rd = *rd;
      claim(draft.loader->rds, *rd, value,
            fmt::format("broadcast domain {}", quote(draft.domain.name)),
            "route distinguisher " + net::to_string(*rd));
      return;
    }
  value.expected("a route distinguisher such as 10.0.0.1:100 or 65000:100");
}

using D = DomainDraft;

// One of each family: what our own questions are asked from.
void read_pe_addresses(const Value& value, D& draft) {
  auto& addresses = draft.domain.pe_addresses;
  for (const Value& item : read_items(value, "addresses")) {
    const auto address = read_unicast(item);
    if (!address) continue;
    const auto other = std::ranges::find(addresses, address->family(), &net::IpAddress::family);
    if (other != addresses.end())
      item.error(
          fmt::format("one address of each family: {} is there already", net::to_string(*other)));
    else
      addresses.push_back(*address);
  }
}

std::vector<Field<D>> device_fields() {
  static constexpr Word<bool> kUnknownUnicast[] = {{"drop", false}, {"flood", true}};
  return {
      {"name",
       [](const Value& v, D& d) {
         const auto name = read_name(v);
         if (!name) return;
         d.domain.name = *name;
         claim(d.loader->domain_names, *name, v, "broadcast domain",
               fmt::format("the name {}", quote(*name)));
       },
       true},
      {"vni", read_vni, true},
      {"bridge", [](const Value& v, D& d) { read_device(v, d, "bridge", d.domain.links.bridge); },
       true},
      {"vxlan",
       [](const Value& v, D& d) { read_device(v, d, "VXLAN device", d.domain.links.vxlan); }, true},
      {"udp-port",
       [](const Value& v, D& d) { assign_number(d.domain.links.udp_port, v, 1, 65535); }},
      {"mtu", [](const Value& v, D& d) { assign_number(d.domain.links.mtu, v, 1280, 9216); }},
      {"unknown-unicast",
       [](const Value& v, D& d) {
         assign(d.domain.links.flood_unknown_unicast, read_word(v, kUnknownUnicast));
       }},
      {"ageing",
       [](const Value& v, D& d) { assign(d.domain.links.ageing, read_seconds(v, 1, 1'000'000)); }},
  };
}

std::vector<Field<D>> evpn_fields() {
  return {
      {"rd", read_rd},
      {"import-targets",
       [](const Value& v, D& d) {
         d.domain.evpn.import_targets = read_set(v, "route targets", read_route_target);
       }},
      {"export-targets",
       [](const Value& v, D& d) {
         d.domain.evpn.export_targets = read_set(v, "route targets", read_route_target);
       }},
      {"ethernet-tag",
       [](const Value& v, D& d) {
         const auto text = read_text(v);
         if (text && *text == "any")
           d.domain.evpn.ethernet_tag.reset();
         else if (text)
           assign_number(d.domain.evpn.ethernet_tag.emplace(), v, 0, 0xffffff);
       }},
      {"duplicate-mac",
       [](const Value& v, D& d) { read_table(v, duplicate_table(), d.domain.evpn); }},
      {"arp-nd-community-for-ipv4",
       [](const Value& v, D& d) { assign(d.domain.evpn.arp_nd_for_v4, read_bool(v)); }},
  };
}

std::vector<Field<D>> proxy_fields() {
  using proxyarp::Profile;
  static constexpr Word<Profile> kProfiles[] = {{"off", Profile::Off},
                                                {"dynamic", Profile::Dynamic},
                                                {"hybrid", Profile::Hybrid},
                                                {"static", Profile::Static}};
  static constexpr Word<dataplane::ResponderKind> kResponders[] = {
      {"ebpf", dataplane::ResponderKind::Ebpf}, {"pcap", dataplane::ResponderKind::Pcap}};
  return {
      {"profile",
       [](const Value& v, D& d) { assign(d.domain.proxy.profile, read_word(v, kProfiles)); }},
      {"responder",
       [](const Value& v, D& d) { assign(d.domain.responder, read_word(v, kResponders)); }},
      {"prefixes", read_prefixes},
      {"pe-addresses", read_pe_addresses},
  };
}

// The keys of load_proxy.cpp, which knows only the proxy's settings. A Field's reader has no state:
// it finds its key by the name that it stands under.
std::vector<Field<D>> rule_fields() {
  std::vector<Field<D>> fields;
  for (const auto& rule : proxy_rule_fields())
    fields.push_back({rule.key, [](const Value& v, D& d) {
                        static const auto rules = proxy_rule_fields();
                        const auto key = std::string_view(v.where).substr(v.where.rfind('.') + 1);
                        const auto found = std::ranges::find_if(
                            rules, [&](const auto& one) { return key == one.key; });
                        if (found != rules.end()) found->read(v, d.domain.proxy);
                      }});
  return fields;
}

std::vector<Field<D>> member_fields() {
  return {
      {"policy", [](const Value& v, D& d) { assign(d.policy, read_policy_name(v, *d.loader)); }},
      {"core-policy",
       [](const Value& v, D& d) { assign(d.domain.core_policy, read_policy_name(v, *d.loader)); }},
      {"ports", read_ports},
      {"bindings",
       [](const Value& v, D& d) {
         for (const Value& item : read_items(v, "bindings")) {
           BindingDraft binding{&d, {}};
           read_table(item, binding_table(), binding);
           if (!binding.binding.ip.is_unspecified() && !binding.binding.macs.empty())
             d.domain.proxy.bindings.push_back(std::move(binding.binding));
         }
       }},
      {"members", read_members},
  };
}

const Table<D>& domain_table() {
  static const Table<D> table = [] {
    Table<D> made{"broadcast-domains[]", {}};
    for (const auto& part :
         {device_fields(), evpn_fields(), proxy_fields(), rule_fields(), member_fields()})
      made.fields.insert(made.fields.end(), part.begin(), part.end());
    return made;
  }();
  return table;
}

// Bindings of the ports' addresses. In other profiles than static a port may have addresses
// without MACs: they are learned, unless an export knows them.
void add_port_bindings(D& draft) {
  for (const auto& port : draft.domain.ports)
    for (const auto& address : port.addresses) {
      std::vector<net::MacAddress> macs = port.macs;
      for (const auto& temporary : port.temporary_macs) macs.push_back(temporary.mac);
      if (macs.empty())
        draft.bare.emplace(address, &port);
      else
        draft.domain.proxy.bindings.push_back(
            {address, std::move(macs), port.interface, port.member_as, port.member_name});
    }
}

// What is wrong between an export and what is given here; nothing when they agree.
std::string difference(const StaticBinding& here, const StaticBinding& exported) {
  if (list_text(here.macs) != list_text(exported.macs))
    return fmt::format("{} has {} here and {} in the export, for {}{}", net::to_string(here.ip),
                       list_text(here.macs), list_text(exported.macs),
                       exported.member_as.value == 0
                           ? std::string()
                           : fmt::format("AS{} ", exported.member_as.value),
                       quote(exported.member_name));
  if (here.member_as.value != 0 && exported.member_as.value != 0 &&
      here.member_as != exported.member_as)
    return fmt::format("{} is AS{}'s here and AS{}'s in the export", net::to_string(here.ip),
                       here.member_as.value, exported.member_as.value);
  return {};
}

void add_imported(D& draft) {
  auto& bindings = draft.domain.proxy.bindings;
  std::map<net::IpAddress, std::size_t> known;
  for (std::size_t i = 0; i < bindings.size(); ++i) known.emplace(bindings[i].ip, i);
  std::vector<Error> warnings;
  for (std::size_t i = 0; i < draft.imported.size(); ++i) {
    IxfBinding& from = draft.imported[i];
    const auto found = known.find(from.binding.ip);
    if (found == known.end()) {
      if (const auto port = draft.bare.find(from.binding.ip); port != draft.bare.end())
        from.binding.port = port->second->interface;
      known.emplace(from.binding.ip, bindings.size());
      bindings.push_back(std::move(from.binding));
      continue;
    }
    const StaticBinding& here = bindings[found->second];
    std::string what = difference(here, from.binding);
    if (what.empty()) continue;
    if (!here.port.empty())
      what += fmt::format("; port {} wins", quote(here.port));
    else
      what += "; the former wins";
    warnings.push_back({.file = draft.imported_from[i],
                        .line = from.line,
                        .column = from.column,
                        .where = from.where,
                        .what = std::move(what)});
  }
  draft.loader->report.add_warnings(std::move(warnings));
}

void read_domain(const Value& value, Loader& loader) {
  D draft;
  draft.loader = &loader;
  draft.domain.core_policy = "peering";
  const Present present = read_table(value, domain_table(), draft);
  if (value.node->kind != Node::Kind::Map) return;
  auto& proxy = draft.domain.proxy;
  if (!present.contains("prefixes") && proxy.profile != proxyarp::Profile::Off)
    value.error("missing key \"prefixes\" (only the profile off does without)");
  if (draft.domain.ports.empty()) {
    const auto ports = present.find("ports");
    if (ports == present.end())
      value.warning("no ports: no member is connected here");
    else if (ports->second.node->kind == Node::Kind::List)
      ports->second.warning("no ports: no member is connected here");
  }
  add_port_bindings(draft);
  add_imported(draft);
  std::ranges::sort(proxy.bindings, {}, &StaticBinding::ip);
  if (proxy.profile != proxyarp::Profile::Off) check_proxy(value, present, draft.domain);
  // The answers renew the bridge's entries too.
  if (const auto ageing = draft.domain.links.ageing; !proxy.refresh && ageing < proxy.age_time)
    proxy.refresh = std::max(std::chrono::seconds(1), ageing / 3);
  if (proxy.bindings.size() > proxy.max_bindings) {
    const auto most = present.find("max-bindings");
    (most == present.end() ? value : most->second)
        .error(fmt::format("{} bindings are given, more than max-bindings, {}",
                           proxy.bindings.size(), proxy.max_bindings));
  }

  auto& evpn = draft.domain.evpn;
  evpn.default_router = proxy.default_router;
  if (proxy.duplicates.enabled) evpn.anti_spoof_mac = proxy.duplicates.anti_spoof_mac;
  if (proxy.anycast) evpn.anycast_macs = proxy.anycast_macs;

  const NodeSettings& node = loader.settings;
  draft.domain.evpn.name = proxy.name = draft.domain.name;
  draft.domain.evpn.local_as = node.bgp.local_as;
  draft.domain.evpn.router_id = node.bgp.router_id;
  // The automatic one is router id and the VNI's low 16 bits: two domains must not share it.
  if (draft.has_vni && !draft.domain.evpn.rd) {
    const auto rd = net::RouteDistinguisher::from_router_id(
        node.bgp.router_id, static_cast<uint16_t>(draft.domain.evpn.vni.value));
    claim(loader.rds, rd, present.at("vni"),
          fmt::format("broadcast domain {}", quote(draft.domain.name)),
          "automatic route distinguisher " + net::to_string(rd));
  }
  if (node.vtep) draft.domain.evpn.vtep = draft.domain.links.vtep = *node.vtep;
  loader.settings.domains.push_back(std::move(draft.domain));
}

}  // namespace

void load_domains(const Value& value, Loader& loader) {
  for (const Value& item : read_items(value, "broadcast domains")) read_domain(item, loader);
}

void domain_keys(std::vector<std::string>& keys) {
  append_keys(keys, domain_table());
  append_keys(keys, duplicate_table());
  append_keys(keys, port_table());
  append_keys(keys, binding_table());
  append_keys(keys, members_table());
  proxy_keys(keys);
}

}  // namespace config
