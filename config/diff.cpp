// SPDX-License-Identifier: GPL-2.0-or-later
// Two settings side by side. Things are matched by what names them (address, name, VNI, interface);
// of those on both sides the fields are compared as text, under the keys of the file. What differs
// in no field that is written down here still shows, as "other settings". Of secrets only that they
// changed is told.
#include "config/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "config/diff_fields.h"

namespace config {
namespace {

struct Named {
  std::string name;
  Fields fields;
};
template <class Key>
using Table = std::map<Key, Named>;

std::vector<ChangedField> compare(const Fields& before, const Fields& after) {
  std::vector<ChangedField> out;
  std::map<std::string, std::string> old(before.begin(), before.end());
  std::set<std::string> seen;
  for (const auto& [key, text] : after) {
    seen.insert(key);
    const auto found = old.find(key);
    const std::string was = found == old.end() ? std::string() : found->second;
    if (was != text) out.push_back({key, was, text});
  }
  for (const auto& [key, text] : before)
    if (!seen.contains(key) && !text.empty()) out.push_back({key, text, ""});
  return out;
}

// Only that it changed.
void hide_secrets(std::vector<ChangedField>& fields) {
  for (auto& field : fields) {
    if (!is_secret(field.key)) continue;
    if (!field.before.empty()) field.before = "(secret)";
    if (!field.after.empty()) field.after = field.before.empty() ? "(secret)" : "(another secret)";
  }
}

class Builder {
 public:
  explicit Builder(Difference& out) : out_(out) {}

  void changed(Subject subject, const std::string& name, const std::string& domain,
               const Fields& before, const Fields& after, bool equal) {
    if (equal) return;
    auto fields = compare(before, after);
    hide_secrets(fields);
    if (fields.empty()) fields.push_back({"other settings", "", ""});
    out_.changes.push_back({ChangeKind::Changed, subject, name, domain, std::move(fields)});
  }
  void one(ChangeKind kind, Subject subject, const std::string& name, const std::string& domain) {
    out_.changes.push_back({kind, subject, name, domain, {}});
  }

  // Things by key. `name` and `fields` of one; equal things are not looked into.
  template <class Key, class T, class Name, class FieldsOf>
  void tables(Subject subject, const std::string& domain, const std::map<Key, T>& before,
              const std::map<Key, T>& after, const Name& name, const FieldsOf& fields) {
    for (const auto& [key, old] : before)
      if (!after.contains(key)) one(ChangeKind::Removed, subject, name(old), domain);
    for (const auto& [key, fresh] : after) {
      const auto found = before.find(key);
      if (found == before.end())
        one(ChangeKind::Added, subject, name(fresh), domain);
      else
        changed(subject, name(fresh), domain, fields(found->second), fields(fresh),
                found->second == fresh);
    }
  }

  void loss(const std::string& domain, const std::set<std::string>& before,
            const std::set<std::string>& after) {
    MemberLoss loss{domain, before.size(), 0};
    for (const auto& member : before) {
      if (after.contains(member)) continue;
      ++loss.removed;
    }
    if (loss.removed > 0) out_.losses.push_back(std::move(loss));
  }

 private:
  Difference& out_;
};

template <class T, class KeyOf>
auto by_key(const std::vector<T>& all, const KeyOf& key) {
  std::map<decltype(key(all.front())), T> out;
  for (const T& one : all) out.emplace(key(one), one);
  return out;
}

// --- members

// Key (AS, else name) and how it is shown.
using Members = std::map<std::string, std::string>;

void add_member(Members& members, net::AsNumber as, const std::string& name,
                const std::string& otherwise) {
  if (as.value != 0)
    members.emplace(fmt::format("AS{}", as.value), name.empty()
                                                       ? fmt::format("AS{}", as.value)
                                                       : fmt::format("AS{} {}", as.value, name));
  else
    members.emplace(name.empty() ? otherwise : name, name.empty() ? otherwise : name);
}

Members members_of(const BroadcastDomain& domain) {
  Members out;
  for (const auto& port : domain.ports)
    add_member(out, port.member_as, port.member_name, port.interface);
  for (const auto& binding : domain.proxy.bindings)
    if (binding.port.empty() || binding.member_as.value != 0 || !binding.member_name.empty())
      add_member(out, binding.member_as, binding.member_name, net::to_string(binding.ip));
  return out;
}

Members members_of(const evpn::MemberList& list) {
  Members out;
  for (const auto& address : list.addresses)
    add_member(out, address.as, address.name, net::to_string(address.ip));
  for (const auto& mac : list.macs) {
    const bool has_address = std::ranges::any_of(list.addresses, [&](const auto& address) {
      return std::ranges::find(address.macs, mac.mac) != address.macs.end();
    });
    if (!has_address) add_member(out, mac.as, mac.name, net::to_string(mac.mac));
  }
  return out;
}

std::set<std::string> keys(const Members& members) {
  std::set<std::string> out;
  for (const auto& [key, text] : members) out.insert(key);
  return out;
}

void members(Builder& to, const std::string& domain, const Members& before, const Members& after) {
  to.tables(
      Subject::Member, domain, before, after, [](const std::string& text) { return text; },
      [](const std::string& text) { return Fields{{"name", text}}; });
  to.loss(domain, keys(before), keys(after));
}

// --- the parts

void neighbors(Builder& to, const bgp::Settings& before, const bgp::Settings& after) {
  const auto key = [](const bgp::NeighborSettings& n) {
    return net::to_string(n.address) + (n.interface.empty() ? "" : "%" + n.interface);
  };
  to.tables(
      Subject::Neighbor, "", by_key(before.neighbors, key), by_key(after.neighbors, key),
      [&](const bgp::NeighborSettings& n) {
        return n.description.empty() ? key(n) : fmt::format("{} ({})", key(n), n.description);
      },
      [](const bgp::NeighborSettings& n) { return fields_of(n); });
  const auto prefix = [](const bgp::DynamicNeighbors& d) {
    return fmt::format("{}/{}", net::to_string(d.prefix), d.prefix_length) +
           (d.like.interface.empty() ? "" : "%" + d.like.interface);
  };
  to.tables(Subject::DynamicNeighbors, "", by_key(before.dynamic_neighbors, prefix),
            by_key(after.dynamic_neighbors, prefix), prefix, [](const bgp::DynamicNeighbors& d) {
              Fields fields{{"limit", std::to_string(d.limit)}};
              for (auto& field : fields_of(d.like)) fields.push_back(std::move(field));
              return fields;
            });
  const auto collector = [](const bgp::BmpSettings& b) {
    return fmt::format("{} port {}", net::to_string(b.address), b.port);
  };
  to.tables(Subject::Collector, "", by_key(before.bmp, collector), by_key(after.bmp, collector),
            collector, [](const bgp::BmpSettings& b) { return fields_of(b); });
}

void route_policies(Builder& to, const NodeSettings& before, const NodeSettings& after) {
  to.tables(
      Subject::RoutePolicy, "", before.route_policies, after.route_policies,
      [](const evpn::PolicySettings& p) { return p.name; },
      [](const evpn::PolicySettings& p) { return fields_of(p); });
  const auto vni = [](const evpn::MemberList& list) { return list.vni.value; };
  const auto name = [](const evpn::MemberList& list) {
    return fmt::format("VNI {}", list.vni.value);
  };
  const auto old = by_key(before.members, vni), fresh = by_key(after.members, vni);
  for (const auto& [key, list] : old)
    if (!fresh.contains(key)) to.one(ChangeKind::Removed, Subject::MemberList, name(list), "");
  for (const auto& [key, list] : fresh) {
    const auto found = old.find(key);
    if (found == old.end()) {
      to.one(ChangeKind::Added, Subject::MemberList, name(list), "");
      continue;
    }
    const evpn::MemberList& was = found->second;
    if (was == list) continue;
    to.changed(Subject::MemberList, name(list), "", fields_of(was), fields_of(list),
               fields_of(was) == fields_of(list));
    members(to, name(list), members_of(was), members_of(list));
    const auto ip = [](const evpn::MemberAddress& address) { return address.ip; };
    to.tables(
        Subject::Address, name(list), by_key(was.addresses, ip), by_key(list.addresses, ip),
        [](const evpn::MemberAddress& address) { return net::to_string(address.ip); },
        [](const evpn::MemberAddress& address) { return fields_of(address); });
    const auto mac = [](const evpn::MemberMac& one) { return one.mac; };
    to.tables(
        Subject::Address, name(list), by_key(was.macs, mac), by_key(list.macs, mac),
        [](const evpn::MemberMac& one) { return net::to_string(one.mac); },
        [](const evpn::MemberMac& one) { return fields_of(one); });
  }
}

// Ports, addresses and members are subjects of their own.
BroadcastDomain bare(BroadcastDomain domain) {
  domain.ports.clear();
  domain.proxy.bindings.clear();
  return domain;
}

void domain(Builder& to, const BroadcastDomain& before, const BroadcastDomain& after) {
  if (before == after) return;
  const std::string& name = after.name;
  to.changed(Subject::BroadcastDomain, name, "", fields_of(before), fields_of(after),
             bare(before) == bare(after));
  members(to, name, members_of(before), members_of(after));
  const auto interface = [](const dataplane::MemberPort& port) { return port.interface; };
  to.tables(Subject::Port, name, by_key(before.ports, interface), by_key(after.ports, interface),
            interface, [](const dataplane::MemberPort& port) { return fields_of(port); });
  const auto ip = [](const proxyarp::StaticBinding& binding) { return binding.ip; };
  to.tables(
      Subject::Address, name, by_key(before.proxy.bindings, ip), by_key(after.proxy.bindings, ip),
      [](const proxyarp::StaticBinding& binding) { return net::to_string(binding.ip); },
      [](const proxyarp::StaticBinding& binding) { return fields_of(binding); });
}

void domains(Builder& to, const NodeSettings& before, const NodeSettings& after) {
  const auto find = [](const NodeSettings& in, const std::string& name) {
    const auto found = std::ranges::find(in.domains, name, &BroadcastDomain::name);
    return found == in.domains.end() ? nullptr : &*found;
  };
  for (const auto& old : before.domains)
    if (find(after, old.name) == nullptr)
      to.one(ChangeKind::Removed, Subject::BroadcastDomain, old.name, "");
  for (const auto& fresh : after.domains)
    if (const auto* old = find(before, fresh.name))
      domain(to, *old, fresh);
    else
      to.one(ChangeKind::Added, Subject::BroadcastDomain, fresh.name, "");
}

// What is no part with a name of its own. Anything new in NodeSettings that no part knows either
// shows as "other settings".
NodeSettings rest_of(NodeSettings settings) {
  settings.bgp.neighbors.clear();
  settings.bgp.dynamic_neighbors.clear();
  settings.bgp.bmp.clear();
  settings.domains.clear();
  settings.route_policies.clear();
  settings.members.clear();
  settings.policies.clear();
  return settings;
}

}  // namespace

const char* to_string(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::Added: return "added";
    case ChangeKind::Removed: return "removed";
    case ChangeKind::Changed: return "changed";
  }
  return "?";
}

const char* to_string(Subject subject) {
  switch (subject) {
    case Subject::Node: return "node";
    case Subject::Neighbor: return "neighbor";
    case Subject::DynamicNeighbors: return "dynamic-neighbors";
    case Subject::Collector: return "collector";
    case Subject::RoutePolicy: return "route-policy";
    case Subject::MemberList: return "member-list";
    case Subject::Member: return "member";
    case Subject::Address: return "address";
    case Subject::Port: return "port";
    case Subject::BroadcastDomain: return "broadcast-domain";
    case Subject::Policy: return "policy";
  }
  return "?";
}

std::vector<MemberLoss> Difference::beyond(unsigned percent) const {
  std::vector<MemberLoss> out;
  for (const auto& loss : losses)
    if (loss.removed * 100 > loss.before * percent) out.push_back(loss);
  return out;
}

Difference difference(const NodeSettings& before, const NodeSettings& after) {
  Difference out;
  Builder to(out);
  to.changed(Subject::Node, after.name, "", fields_of(before), fields_of(after),
             rest_of(before) == rest_of(after));
  neighbors(to, before.bgp, after.bgp);
  route_policies(to, before, after);
  to.tables(
      Subject::Policy, "", before.policies, after.policies,
      [](const dataplane::BumPolicy& policy) { return policy.name; },
      [](const dataplane::BumPolicy& policy) { return fields_of(policy); });
  domains(to, before, after);
  return out;
}

}  // namespace config
