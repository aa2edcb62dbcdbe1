// SPDX-License-Identifier: GPL-2.0-or-later
// The files that `members` and `files` name: IX-F member exports, and what IXP Manager's
// provisioner gives out.
#include <fmt/core.h>

#include "config/loader.h"

namespace config {
namespace {

struct Text {
  std::string path, text;
};

// Nothing, and an error at `key`, when it can't be read.
std::optional<Text> read_named(const Present& present, const char* key, const std::string& file,
                               const Loader& loader) {
  const std::string path = (loader.base / file).lexically_normal().string();
  auto text = read_file(path);
  if (text) return Text{path, std::move(*text)};
  present.at(key).error(fmt::format("can't read {}: {}", path, text.error()));
  return std::nullopt;
}

// A key that belongs to the other format.
bool misplaced(const Present& present, std::initializer_list<const char*> keys, const char* with) {
  bool any = false;
  for (const char* key : keys)
    if (const auto found = present.find(std::string_view(key)); found != present.end()) {
      found->second.error(fmt::format("goes with {} only", with));
      any = true;
    }
  return any;
}

template <class Result>
std::optional<Result> reported(std::expected<Result, std::vector<Error>>&& read, Loader& loader) {
  if (!read) {
    loader.report.add_errors(std::move(read.error()));
    return std::nullopt;
  }
  loader.report.add_warnings(std::move(read->warnings));
  return std::move(*read);
}

std::optional<MemberImport> import_ixf(const Present& present, const MemberFile& members,
                                       const std::vector<net::IpPrefix>& prefixes, Loader& loader) {
  if (misplaced(present, {"vlan", "configured-macs", "vlans", "this-switch"}, "ixp-manager"))
    return std::nullopt;
  const auto file = read_named(present, "ixf", members.ixf, loader);
  if (!file) return std::nullopt;
  IxfQuery query{prefixes, {}, {}};
  if (members.vlan_id) query.vlan_id = static_cast<uint32_t>(*members.vlan_id);
  if (members.ixp_id) query.ixp_id = static_cast<uint32_t>(*members.ixp_id);
  auto imported = reported(read_ixf(file->path, file->text, query), loader);
  if (!imported) return std::nullopt;
  return MemberImport{file->path, std::move(imported->bindings), {}};
}

std::optional<MemberImport> import_ixp_manager(const Present& present, const MemberFile& members,
                                               const std::vector<net::IpPrefix>& prefixes,
                                               Loader& loader) {
  if (misplaced(present, {"vlan-id", "ixp-id"}, "ixf")) return std::nullopt;
  const auto interfaces = read_named(present, "ixp-manager", members.ixp_manager, loader);
  std::optional<Text> macs, vlans;
  if (!members.configured_macs.empty()) {
    macs = read_named(present, "configured-macs", members.configured_macs, loader);
    if (!macs) return std::nullopt;
  }
  if (!members.vlans.empty()) {
    vlans = read_named(present, "vlans", members.vlans, loader);
    if (!vlans) return std::nullopt;
  }
  if (!interfaces) return std::nullopt;
  IxpManagerQuery query{.prefixes = prefixes,
                        .vlan = members.vlan,
                        .interfaces = {interfaces->path, interfaces->text},
                        .configured_macs = {},
                        .vlans = {}};
  if (macs) query.configured_macs = {macs->path, macs->text};
  if (vlans) query.vlans = {vlans->path, vlans->text};
  auto imported = reported(read_ixp_manager(query), loader);
  if (!imported) return std::nullopt;
  // The same name stands for other ports on other switches.
  if (!members.this_switch) {
    for (auto& binding : imported->bindings) binding.binding.port.clear();
    imported->ports.clear();
  }
  return MemberImport{interfaces->path, std::move(imported->bindings), std::move(imported->ports)};
}

}  // namespace

std::vector<Field<MemberFile>> member_file_fields() {
  using M = MemberFile;
  return {
      {"ixf", [](const Value& v, M& m) { assign(m.ixf, read_text(v, 4096)); }},
      {"vlan-id", [](const Value& v, M& m) { m.vlan_id = read_number(v, 0, UINT32_MAX); }},
      {"ixp-id", [](const Value& v, M& m) { m.ixp_id = read_number(v, 0, UINT32_MAX); }},
      {"ixp-manager", [](const Value& v, M& m) { assign(m.ixp_manager, read_text(v, 4096)); }},
      {"vlan", [](const Value& v, M& m) { assign(m.vlan, read_text(v)); }},
      {"configured-macs",
       [](const Value& v, M& m) { assign(m.configured_macs, read_text(v, 4096)); }},
      {"vlans", [](const Value& v, M& m) { assign(m.vlans, read_text(v, 4096)); }},
      {"this-switch", [](const Value& v, M& m) { assign(m.this_switch, read_bool(v)); }},
  };
}

std::optional<MemberImport> import_members(const Value& value, const Present& present,
                                           const MemberFile& members,
                                           const std::vector<net::IpPrefix>& prefixes,
                                           Loader& loader) {
  if (value.node->kind != Node::Kind::Map) return std::nullopt;
  const bool ixf = present.contains("ixf"), manager = present.contains("ixp-manager");
  if (ixf == manager) {
    value.error(ixf ? "ixf or ixp-manager, not both" : "needs ixf or ixp-manager");
    return std::nullopt;
  }
  if (ixf) {
    if (members.ixf.empty()) return std::nullopt;
    return import_ixf(present, members, prefixes, loader);
  }
  if (members.ixp_manager.empty()) return std::nullopt;
  return import_ixp_manager(present, members, prefixes, loader);
}

}  // namespace config
