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
#include "daemon/filter.h"
#include "daemon/mrt_writer.h"
#include "daemon/neighbor_view.h"
#include "daemon/proxy_view.h"
#include "daemon/route_view.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

namespace json = boost::json;

int64_t seconds_between(net::TimePoint from, net::TimePoint to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

// --- documents
// ---------------------------------------------------------------------------------------

json::object summary(const App& app, const Filter& filter) {
  const auto now = net::Clock::now();
  const auto& settings = app.settings();
  const auto neighbors = app.speaker().neighbors();
  json::array domains;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    const auto& s = domain->settings();
    uint64_t local = 0, remote = 0, bindings = 0, answered = 0, up = 0;
    domain->vrf().for_each_mac([&](const evpn::MacView& mac) {
      if (std::holds_alternative<evpn::AtPort>(mac.place)) ++local;
      if (std::holds_alternative<evpn::AtVtep>(mac.place)) ++remote;
    });
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
        {"bridge", s.links.bridge},
        {"vxlan", s.links.vxlan},
        {"profile", kProfiles[static_cast<std::size_t>(s.proxy.profile)]},
        {"responder", s.responder == dataplane::ResponderKind::Ebpf ? "ebpf" : "pcap"},
        {"ports", domain->ports().size()},
        {"ports_up", up},
        {"macs_local", local},
        {"macs_remote", remote},
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
           {"vtep", settings.vtep ? json::value(to_string(*settings.vtep)) : json::value(nullptr)},
           {"uptime_seconds", seconds_between(app.started(), now)},
           {"converged", app.converged()},
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

json::object macs(const App& app, const Filter& filter) {
  json::array rows;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    domain->vrf().for_each_mac([&](const evpn::MacView& view) {
      if (filter.mac && view.mac != *filter.mac) return;
      const auto* at = std::get_if<evpn::AtPort>(&view.place);
      const auto* away = std::get_if<evpn::AtVtep>(&view.place);
      const std::string port = at != nullptr ? domain->port_name(at->port) : "";
      if (!filter.port.empty() && filter.port != port) return;
      json::array ips;
      for (const auto& ip : view.ips) ips.emplace_back(to_string(ip));
      json::object row{
          {"domain", domain->settings().name},
          {"vni", domain->settings().evpn.vni.value},
          {"mac", to_string(view.mac)},
          {"where", at != nullptr     ? "local"
                    : away != nullptr ? "remote"
                                      : "nowhere"},
          {"port", optional_text(port)},
          {"vtep", away != nullptr ? json::value(to_string(away->vtep)) : json::value(nullptr)},
          {"sticky", (at != nullptr && at->sticky) || (away != nullptr && away->sticky)},
          {"sequence", view.sequence},
          {"advertised", view.advertised},
          {"duplicate", view.duplicate},
          {"moves", view.moves},
          {"ips", std::move(ips)},
      };
      add_member(row, at != nullptr ? member_of(*domain, at->port) : nullptr);
      rows.push_back(std::move(row));
    });
  }
  return {{"macs", std::move(rows)}};
}

json::array counter_rows(const Domain& domain, net::IfIndex index) {
  json::array rows;
  for (const auto& c : domain.frame_counters(index))
    rows.push_back(json::object{{"direction", dataplane::to_string(c.direction)},
                                {"class", c.bum_class},
                                {"reason", c.reason},
                                {"dropped", c.dropped},
                                {"packets", c.packets},
                                {"bytes", c.bytes}});
  return rows;
}

json::object ports(const App& app, const Filter& filter) {
  const auto now = net::Clock::now();
  json::array rows;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    for (const auto& [name, port] : domain->ports()) {
      if (!filter.port.empty() && filter.port != name) continue;
      json::array allowed, addresses;
      for (const auto& mac : port.settings.macs) allowed.emplace_back(to_string(mac));
      for (const auto& address : port.settings.addresses)
        addresses.emplace_back(to_string(address));
      json::object responder;
      for (std::size_t i = 0; i < port.verdicts.size(); ++i)
        if (port.verdicts[i] > 0)
          responder[proxyarp::to_string(static_cast<proxyarp::Verdict>(i))] = port.verdicts[i];
      json::object row{
          {"domain", domain->settings().name},
          {"vni", domain->settings().evpn.vni.value},
          {"port", name},
          {"state", port.index.value == 0 ? "missing"
                    : !port.attached      ? "failed"
                    : port.up             ? "up"
                                          : "down"},
          {"problem", optional_text(port.problem)},
          {"since_seconds", port.since == net::TimePoint{} ? 0 : seconds_between(port.since, now)},
          {"flaps", port.flaps},
          {"policy", port.settings.policy},
          {"attached",
           port.attached ? json::value(domain->attach_mode(port.index)) : json::value(nullptr)},
          {"macs", std::move(allowed)},
          {"enforce_macs", port.settings.enforce_macs && !port.settings.macs.empty()},
          {"addresses", std::move(addresses)},
          {"frames", port.index.value == 0 ? json::array{} : counter_rows(*domain, port.index)},
          {"responder", std::move(responder)},
      };
      add_member(row, &port.settings);
      rows.push_back(std::move(row));
    }
    if (!filter.port.empty() && filter.port != domain->settings().links.vxlan) continue;
    rows.push_back(json::object{{"domain", domain->settings().name},
                                {"vni", domain->settings().evpn.vni.value},
                                {"port", domain->settings().links.vxlan},
                                {"state", "core"},
                                {"policy", domain->settings().core_policy},
                                {"frames", counter_rows(*domain, domain->vxlan())}});
  }
  return {{"ports", std::move(rows)}};
}

json::object drops(const App& app, const Filter& filter) {
  json::array rows;
  const auto add = [&](const Domain& domain, const std::string& port,
                       const dataplane::MemberPort* member, const char* direction,
                       const char* bum_class, const char* reason, uint64_t packets,
                       json::value bytes) {
    json::object row{{"domain", domain.settings().name},
                     {"port", port},
                     {"direction", direction},
                     {"class", bum_class},
                     {"reason", reason},
                     {"packets", packets},
                     {"bytes", std::move(bytes)}};
    add_member(row, member);
    rows.push_back(std::move(row));
  };
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    const auto device = [&](const std::string& name, net::IfIndex index,
                            const dataplane::MemberPort* member) {
      if (index.value == 0 || (!filter.port.empty() && filter.port != name)) return;
      for (const auto& c : domain->frame_counters(index))
        if (c.dropped)
          add(*domain, name, member, dataplane::to_string(c.direction), c.bum_class, c.reason,
              c.packets, c.bytes);
    };
    for (const auto& [name, port] : domain->ports()) {
      device(name, port.index, &port.settings);
      if (!filter.port.empty() && filter.port != name) continue;
      for (std::size_t i = 0; i < port.verdicts.size(); ++i) {
        const auto verdict = static_cast<proxyarp::Verdict>(i);
        if (port.verdicts[i] > 0 && is_drop(verdict))
          add(*domain, name, &port.settings, "ingress", "responder", proxyarp::to_string(verdict),
              port.verdicts[i], nullptr);
      }
    }
    device(domain->settings().links.vxlan, domain->vxlan(), nullptr);
  }
  return {{"drops", std::move(rows)}};
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
      {"macs", {"mac", "port", "domain", "vni"}, at_once<macs>},
      {"bindings", {"ip", "mac", "member", "match", "port", "domain", "vni"}, show_bindings},
      {"duplicates", {"ip", "domain", "vni"}, at_once<duplicates>},
      {"sponge", {"ip", "domain", "vni"}, at_once<sponge>},
      {"offenders", {"port", "domain", "vni"}, at_once<offenders>},
      {"explanation", {"ip", "port", "domain", "vni"}, show_explanation},
      {"ports", {"port", "domain", "vni"}, at_once<ports>},
      {"drops", {"port", "domain", "vni"}, at_once<drops>},
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
