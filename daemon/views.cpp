// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <expected>
#include <utility>
#include <vector>

#include "bgp/io/bmp_client.h"
#include "daemon/app.h"
#include "daemon/domain_views.h"
#include "daemon/filter.h"
#include "daemon/json_values.h"
#include "daemon/mrt_writer.h"
#include "daemon/neighbor_view.h"
#include "daemon/port_view.h"
#include "daemon/proxy_view.h"
#include "daemon/report.h"
#include "daemon/route_view.h"
#include "evpn/communities.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

namespace json = boost::json;

// --- documents
// ---------------------------------------------------------------------------------------

json::object next_hops(const NextHops& hops) {
  json::array unreachable;
  for (const auto& vtep : hops.unreachable()) unreachable.emplace_back(to_string(vtep));
  return {{"tracked", hops.all().size()},
          {"unreachable", std::move(unreachable)},
          {"changes", hops.changes()},
          {"problem", optional_text(hops.problem())}};
}

json::object summary(const App& app, const Filter& filter) {
  const auto now = net::Clock::now();
  const auto& settings = app.settings();
  const auto neighbors = app.speaker().neighbors();
  json::array domains;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    const auto& s = domain->settings();
    const evpn::MacCounts macs = domain->vrf().counts();
    uint64_t bindings = 0, answered = 0, up = 0;
    domain->responder().for_each_binding([&](const proxyarp::BindingView& binding) {
      ++bindings;
      if (binding.answered) ++answered;
    });
    for (const auto& [name, port] : domain->ports()) up += port.up ? 1 : 0;
    static constexpr const char* kProfiles[] = {"off", "dynamic", "hybrid", "static"};
    domains.push_back(json::object{
        {"name", s.name},
        {"vni", s.evpn.vni.value},
        {"rd", net::to_string(domain->vrf().rd())},
        {"import_targets", texts(evpn::import_target_texts(s.evpn))},
        {"export_targets", texts(evpn::export_target_texts(s.evpn))},
        {"bridge", s.links.bridge},
        {"vxlan", s.links.vxlan},
        {"profile", kProfiles[static_cast<std::size_t>(s.proxy.profile)]},
        {"responder", s.responder == dataplane::ResponderKind::Ebpf ? "ebpf" : "pcap"},
        {"ports", domain->ports().size()},
        {"ports_up", up},
        {"macs_local", macs.local},
        {"macs_remote", macs.remote},
        {"macs_unresolved", macs.unresolved},
        {"bindings", bindings},
        {"bindings_answered", answered},
        {"remote_vteps", domain->vrf().flood_list().size()},
        {"repairs", domain->counters().repairs},
        {"kernel_errors", domain->counters().kernel_errors},
    });
  }
  uint64_t established = 0;
  for (const auto& neighbor : neighbors) established += neighbor.state == "Established" ? 1 : 0;
  return {
      {"summary",
       json::object{
           {"node", settings.name},
           {"version", PEERLAN_VERSION},
           {"router_id", to_string(settings.bgp.router_id)},
           {"as", settings.bgp.local_as.value},
           {"vtep", or_null(settings.vtep)},
           {"uptime_seconds", seconds_between(app.started(), now)},
           {"converged", app.converged()},
           {"confirm_seconds", app.confirm_until()
                                   ? json::value(seconds_between(now, *app.confirm_until()))
                                   : json::value(nullptr)},
           {"next_hops", next_hops(app.next_hops())},
           {"data_path", app.fast_path() == nullptr ? json::value(nullptr)
                                                    : json::value(app.fast_path()->attach_mode())},
           {"neighbors", neighbors.size()},
           {"neighbors_established", established},
           {"routes", app.speaker().rib().route_count()},
           {"paths", app.speaker().rib().path_count()},
           {"rib_octets", app.speaker().rib().memory_bytes()},
           {"kernel_events_lost", app.events_lost()},
           {"punts_lost", app.fast_path() == nullptr ? 0 : app.fast_path()->punts_lost()},
           {"domains", std::move(domains)},
       }}};
}

json::array bmp_tables(uint8_t tables) {
  json::array names;
  for (const auto& [name, table] : bgp::kBmpTables)
    if ((tables & table) != 0) names.emplace_back(name);
  return names;
}

json::object collectors(const App& app, const Filter&) {
  json::array rows;
  for (const auto& client : app.bmp_clients()) {
    const bgp::io::BmpView v = client->view();
    rows.push_back(json::object{
        {"address", to_string(v.settings.address)},
        {"port", v.settings.port},
        {"description", optional_text(v.settings.description)},
        {"tables", bmp_tables(v.settings.tables)},
        {"state", v.state},
        {"state_seconds", v.since.count()},
        {"connects", v.connects},
        {"drops", v.drops},
        {"messages", v.messages},
        {"octets", v.octets},
        {"queued", v.queued},
        {"last_error", optional_text(v.last_error)},
    });
  }
  json::value dump = nullptr;
  if (const auto* writer = app.mrt_writer())
    dump = json::object{{"file", writer->settings().file},
                        {"interval_seconds", writer->settings().interval.count()},
                        {"written", writer->written()},
                        {"failed", writer->failed()},
                        {"last_file", optional_text(writer->last_file())},
                        {"last_error", optional_text(writer->last_error())}};
  return {{"collectors", std::move(rows)}, {"mrt", std::move(dump)}};
}

// --- the table of views
// ------------------------------------------------------------------------------

using Document = json::object (*)(const App&, const Filter&);

template <Document document>
std::expected<Answer, std::string> at_once(const App& app, const Filter& filter) {
  json::object made{{"schema", kSchema}};
  for (auto& [key, value] : document(app, filter)) made[key] = std::move(value);
  return whole(json::serialize(made) + "\n");
}

struct View {
  const char* name;
  std::vector<const char*> filters;
  std::expected<Answer, std::string> (*show)(const App& app, const Filter& filter);
};

const View* find_view(const std::string& name) {
  static const std::vector<View> kViews{
      {"summary", {"domain", "vni"}, at_once<summary>},
      {"neighbors", {"neighbor"}, show_neighbors},
      {"routes",
       {"type", "mac", "ip", "vni", "rd", "neighbor", "rejected", "flagged", "best", "why",
        "limit"},
       show_routes},
      {"collectors", {}, at_once<collectors>},
      {"macs", {"mac", "port", "domain", "vni"}, show_macs},
      {"bindings", {"ip", "mac", "member", "match", "port", "domain", "vni"}, show_bindings},
      {"duplicates", {"ip", "domain", "vni"}, at_once<duplicates>},
      {"sponge", {"ip", "domain", "vni"}, at_once<sponge>},
      {"offenders", {"port", "domain", "vni"}, at_once<offenders>},
      {"explanation", {"ip", "port", "domain", "vni"}, show_explanation},
      {"ports", {"port", "domain", "vni"}, show_ports},
      {"drops", {"port", "domain", "vni"}, show_drops},
      {"violations", {"mac", "port", "domain", "vni"}, show_violations},
      {"underlay", {}, at_once<underlay>},
      {"frame", {"frame", "port", "direction", "domain", "vni"}, show_frame},
      {"report", {"intervals", "limit", "port", "domain", "vni"}, at_once<report>},
  };
  const auto found = std::ranges::find(kViews, name, &View::name);
  return found == kViews.end() ? nullptr : &*found;
}

}  // namespace

std::expected<Answer, std::string> show(const App& app, const std::string& what,
                                        const json::object& arguments) {
  const View* view = find_view(what);
  if (view == nullptr) return std::unexpected("unknown view \"" + what + "\"");
  const auto filter = parse_filter(arguments, view->filters);
  if (!filter) return std::unexpected(filter.error());
  return view->show(app, *filter);
}

}  // namespace peerland
