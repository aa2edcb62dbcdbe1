// SPDX-License-Identifier: GPL-2.0-or-later
// The whole file: text to nodes, nodes to settings, all errors in file order. The parts are in
// load_bgp.cpp, load_policies.cpp and load_domains.cpp.
#include <filesystem>

#include "config/loader.h"

namespace config {
namespace {

const Table<LogSettings>& log_table() {
  static constexpr Word<const char*> kLevels[] = {{"trace", "trace"},
                                                  {"debug", "debug"},
                                                  {"info", "info"},
                                                  {"warning", "warning"},
                                                  {"error", "error"}};
  static const Table<LogSettings> table{
      "log",
      {
          {"level", [](const Value& v, LogSettings& l) { assign(l.level, read_word(v, kLevels)); }},
          {"file",
           [](const Value& v, LogSettings& l) { assign(l.file, read_absolute_path(v, 4095)); }},
      }};
  return table;
}

const Table<NodeSettings>& control_table() {
  static const Table<NodeSettings> table{
      "control", {{"socket", [](const Value& v, NodeSettings& s) {
                     assign(s.control_socket, read_absolute_path(v, 107));  // sun_path, unix(7)
                   }}}};
  return table;
}

const Table<NodeSettings>& metrics_table() {
  static const Table<NodeSettings> table{
      "metrics",
      {{"listen", [](const Value& v, NodeSettings& s) { s.metrics_listen = read_endpoint(v); }}}};
  return table;
}

const Table<ReloadSettings>& reload_table() {
  static const Table<ReloadSettings> table{
      "reload", {{"max-removed-members", [](const Value& v, ReloadSettings& r) {
                    if (const auto percent = read_number(v, 0, 100))
                      r.max_removed_members = static_cast<unsigned>(*percent);
                  }}}};
  return table;
}

const Table<Loader>& underlay_table() {
  static const Table<Loader> table{
      "underlay",
      {{"interfaces",
        [](const Value& v, Loader& l) {
          const auto read_device = [&](const Value& item) {
            auto name = read_interface(item);
            if (name && !claim(l.devices, *name, item, "underlay", "device " + quote(*name)))
              name.reset();
            return name;
          };
          l.settings.underlay_interfaces = read_set(v, "devices", read_device);
        },
        true}}};
  return table;
}

// Everywhere: as if each policy said so.
void read_observe(const Value& value, Loader& loader) {
  assign(loader.settings.observe, read_bool(value));
  if (!loader.settings.observe) return;
  for (auto& [name, policy] : loader.settings.policies) policy.observe = true;
}

const Table<Loader>& node_table() {
  using L = Loader;
  static const Table<L> table{
      "",
      {
          {"node", [](const Value& v, L& l) { assign(l.settings.name, read_name(v)); }, true},
          {"router-id",
           [](const Value& v, L& l) { assign(l.settings.bgp.router_id, read_ipv4(v)); }, true},
          {"as", [](const Value& v, L& l) { assign(l.settings.bgp.local_as, read_as(v)); }, true},
          {"vtep", [](const Value& v, L& l) { l.settings.vtep = read_unicast(v); }},
          {"log", [](const Value& v, L& l) { read_table(v, log_table(), l.settings.log); }},
          {"control", [](const Value& v, L& l) { read_table(v, control_table(), l.settings); }},
          {"metrics", [](const Value& v, L& l) { read_table(v, metrics_table(), l.settings); }},
          {"pin-directory",
           [](const Value& v, L& l) {
             assign(l.settings.pin_directory, read_absolute_path(v, 4000));
           }},
          {"next-hop-tracking",
           [](const Value& v, L& l) {
             static constexpr Word<NextHopTracking> kWords[] = {
                 {"off", NextHopTracking::Off},
                 {"any-route", NextHopTracking::AnyRoute},
                 {"no-default-route", NextHopTracking::SpecialRoute}};
             assign(l.settings.next_hop_tracking, read_word(v, kWords));
           }},
          {"reload",
           [](const Value& v, L& l) { read_table(v, reload_table(), l.settings.reload); }},
          {"bgp", load_bgp},
          {"policies", load_policies},
          {"observe", read_observe},
          {"report-interval",
           [](const Value& v, L& l) {
             assign(l.settings.report_interval, read_seconds(v, 10, 86400));
           }},
          {"underlay", [](const Value& v, L& l) { read_table(v, underlay_table(), l); }},
          {"broadcast-domains", load_domains},
      }};
  return table;
}

}  // namespace

std::expected<Loaded, std::vector<Error>> load_text(const std::string& name,
                                                    const std::string& yaml,
                                                    const std::filesystem::path& base) {
  const auto root = parse_yaml(name, yaml);
  if (!root) return std::unexpected(std::vector{root.error()});
  Loader loader{.report = Report(name),
                .base = base,
                .drop_reasons = dataplane::drop_reasons(),
                .settings = {},
                .domain_names = {},
                .devices = {},
                .vnis = {},
                .rds = {},
                .guards = {}};
  for (const auto& policy : {dataplane::peering_policy(), dataplane::quarantine_policy()})
    loader.settings.policies[policy.name] = policy;
  const Present present = read_table(Value{root->get(), "", &loader.report}, node_table(), loader);
  if (const auto domains = present.find("broadcast-domains");
      domains != present.end() && !present.contains("vtep"))
    domains->second.error("broadcast-domains need the key \"vtep\"");
  if (const auto underlay = present.find("underlay");
      underlay != present.end() && !present.contains("vtep"))
    underlay->second.error("underlay needs the key \"vtep\"");
  check_guards(loader);
  if (loader.report.failed()) return std::unexpected(loader.report.errors());
  return Loaded{std::move(loader.settings), loader.report.warnings()};
}

std::expected<Loaded, std::vector<Error>> load(const std::string& file) {
  const auto text = read_file(file);
  if (!text)
    return std::unexpected(std::vector{
        Error{.file = file, .line = 0, .column = 0, .where = "", .what = text.error()}});
  return load_text(file, *text, std::filesystem::path(file).parent_path());
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  append_keys(keys, node_table());
  append_keys(keys, log_table());
  append_keys(keys, control_table());
  append_keys(keys, metrics_table());
  append_keys(keys, reload_table());
  append_keys(keys, underlay_table());
  bgp_keys(keys);
  exports_keys(keys);
  route_policy_keys(keys);
  member_keys(keys);
  policy_keys(keys);
  domain_keys(keys);
  return keys;
}

}  // namespace config
