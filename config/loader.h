// SPDX-License-Identifier: GPL-2.0-or-later
// What the parts of the loader share while one file is read. Internal to config/.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/ixf.h"
#include "config/ixp_manager.h"
#include "config/values.h"

namespace config {

// Where a thing that must be unique was first given.
struct Owner {
  Place place;
  std::string what;  // "VNI of broadcast domain \"peering\""
};

struct Loader {
  Report report;
  std::filesystem::path base;  // folder that relative file names start from
  std::span<const dataplane::DropReason> drop_reasons;
  NodeSettings settings;
  // Unique on the node.
  std::map<std::string, Owner> domain_names, devices;
  std::map<uint32_t, Owner> vnis;
  std::map<net::RouteDistinguisher, Owner> rds;
  std::vector<Value> guards;  // where a binding guard is switched on
};

// False, and an error at `value`, when `key` has an owner already; else `owner` is it.
template <class K>
bool claim(std::map<K, Owner>& owners, const K& key, const Value& value, std::string what,
           const std::string& text) {
  const auto [first, fresh] = owners.emplace(key, Owner{value.place(), std::move(what)});
  if (!fresh)
    value.error(text + " is in use already: " + first->second.what + ", line " +
                std::to_string(first->second.place.line));
  return fresh;
}

// One member export that a list of `keys` names, for these prefixes; nothing when it can't be used,
// which is reported then.
struct MemberFile {
  std::string ixf, ixp_manager, configured_macs, vlans;  // files; one of the first two
  std::optional<uint64_t> vlan_id, ixp_id;               // IX-F
  std::string vlan;                                      // IXP Manager
  bool this_switch = false;  // names of ports are those of this node's interfaces
};
struct MemberImport {
  std::string path;
  std::vector<IxfBinding> bindings;  // port: only with this_switch
  std::map<std::string, ExportedPort> ports;
};
std::vector<Field<MemberFile>> member_file_fields();
std::optional<MemberImport> import_members(const Value& value, const Present& present,
                                           const MemberFile& members,
                                           const std::vector<net::IpPrefix>& prefixes,
                                           Loader& loader);

// bgp.policies and bgp.members.
void load_route_policies(const Value& value, Loader& loader);
void load_member_lists(const Value& value, Loader& loader);
// The name of one of bgp.policies; an error otherwise.
void check_route_policy_name(const Value& value, const Loader& loader);
// A guard without any list of members guards nothing: an error.
void check_guards(const Loader& loader);
std::optional<evpn::RouteTarget> read_route_target(const Value& value);

void load_bgp(const Value& value, Loader& loader);
void read_bmp(const Value& value, bgp::Settings& settings);
void read_mrt(const Value& value, bgp::Settings& settings);
void load_policies(const Value& value, Loader& loader);
void load_domains(const Value& value, Loader& loader);

// "path.key" of every key of the mappings that each part reads.
void bgp_keys(std::vector<std::string>& keys);
void exports_keys(std::vector<std::string>& keys);
void route_policy_keys(std::vector<std::string>& keys);
void member_keys(std::vector<std::string>& keys);
void policy_keys(std::vector<std::string>& keys);
void domain_keys(std::vector<std::string>& keys);

template <class T>
void append_keys(std::vector<std::string>& keys, const Table<T>& table) {
  const std::string path = table.path;
  for (const auto& field : table.fields)
    keys.push_back(path.empty() ? field.key : path + "." + field.key);
}

}  // namespace config
