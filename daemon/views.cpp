// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/app.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

namespace json = boost::json;

json::value optional_text(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::array texts(const std::vector<std::string>& items) {
  json::array array;
  for (const auto& item : items) array.emplace_back(item);
  return array;
}

int64_t seconds_between(net::TimePoint from, net::TimePoint to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

// --- filters
// -----------------------------------------------------------------------------------------

struct Filter {
  std::optional<int64_t> type, vni;
  std::optional<net::MacAddress> mac;
  std::optional<net::IpAddress> ip;
  std::string neighbor, port, domain, rd;
};

std::expected<Filter, std::string> parse_filter(const json::object& arguments) {
  Filter filter;
  for (const auto& [key, value] : arguments) {
    const std::string text =
        value.is_string() ? std::string(value.as_string()) : json::serialize(value);
    const auto bad = [&](const char* wanted) {
      return std::unexpected(
          fmt::format("{}: expected {}, got \"{}\"", std::string_view(key), wanted, text));
    };
    const auto number = [&]() -> std::optional<int64_t> {
      int64_t parsed = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
      if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
      return parsed;
    };
    if (key == "type") {
      if (!(filter.type = number())) return bad("a route type, 1 to 11");
    } else if (key == "vni") {
      if (!(filter.vni = number())) return bad("a VNI");
    } else if (key == "mac") {
      if (!(filter.mac = net::MacAddress::parse(text))) return bad("a MAC address");
    } else if (key == "ip") {
      if (!(filter.ip = net::IpAddress::parse(text))) return bad("an IP address");
    } else if (key == "neighbor") {
      filter.neighbor = text;
    } else if (key == "port") {
      filter.port = text;
    } else if (key == "domain") {
      filter.domain = text;
    } else if (key == "rd") {
      filter.rd = text;
    } else {
      return std::unexpected(fmt::format("unknown filter \"{}\"", std::string_view(key)));
    }
  }
  return filter;
}

bool wants(const Filter& filter, const Domain& domain) {
  return (!filter.vni || *filter.vni == domain.settings().evpn.vni.value) &&
         (filter.domain.empty() || filter.domain == domain.settings().name);
}

// --- documents
// ---------------------------------------------------------------------------------------

const dataplane::MemberPort* member_of(const Domain& domain, net::IfIndex port) {
  const auto* state = domain.find_port(port);
  return state == nullptr ? nullptr : &state->settings;
}

void add_member(json::object& row, const dataplane::MemberPort* member) {
  row["member_as"] = member != nullptr && member->member_as.value != 0
                         ? json::value(member->member_as.value)
                         : json::value(nullptr);
  row["member_name"] =
      member == nullptr ? json::value(nullptr) : optional_text(member->member_name);
}

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
           {"kernel_events_lost", app.events_lost()},
           {"punts_lost", app.fast_path() == nullptr ? 0 : app.fast_path()->punts_lost()},
           {"domains", std::move(domains)},
       }}};
}

const char* role_text(bgp::NeighborRole role) {
  switch (role) {
    case bgp::NeighborRole::Peer: return "peer";
    case bgp::NeighborRole::ReflectorClient: return "reflector-client";
    case bgp::NeighborRole::RouteServerClient: return "route-server-client";
  }
  return "?";
}

json::object neighbors(const App& app, const Filter& filter) {
  json::array rows;
  for (const auto& n : app.speaker().neighbors()) {
    const auto& s = n.settings;
    if (!filter.neighbor.empty() && filter.neighbor != n.address &&
        filter.neighbor != s.description)
      continue;
    rows.push_back(json::object{
        {"address", n.address},
        {"description", optional_text(s.description)},
        {"group", optional_text(s.group)},
        {"remote_as", s.remote_as.value},
        {"role", role_text(s.role)},
        {"state", n.state},
        {"state_seconds", n.since.count()},
        {"remote_router_id",
         n.remote_router_id ? json::value(to_string(*n.remote_router_id)) : json::value(nullptr)},
        {"hold_time_seconds", n.hold_time.count()},
        {"capabilities_sent", texts(n.capabilities_sent)},
        {"capabilities_received", texts(n.capabilities_received)},
        {"messages_in", n.messages_in},
        {"messages_out", n.messages_out},
        {"updates_in", n.updates_in},
        {"updates_out", n.updates_out},
        {"routes_received", n.counts.received},
        {"routes_stale", n.counts.stale},
        {"routes_advertised", n.counts.advertised},
        {"queued", n.counts.queued},
        {"stale_kept", n.stale_kept},
        {"long_lived", n.long_lived},
        {"dynamic", n.dynamic},
        {"shut_down", n.shut_down},
        {"over_warning", n.over_warning},
        {"families", texts(n.families)},
        {"memberships", n.memberships},
        {"established_count", n.established_count},
        {"dropped_count", n.dropped_count},
        {"attributes_discarded", n.attributes_discarded},
        {"treated_as_withdraw", n.treated_as_withdraw},
        {"nlri_discarded", n.nlri_discarded},
        {"last_error", optional_text(n.last_error)},
        {"last_error_data", optional_text(n.last_error_data)},
    });
  }
  return {{"neighbors", std::move(rows)}};
}

struct RouteFields {
  std::optional<net::MacAddress> mac;
  std::optional<net::IpAddress> ip;
  std::optional<uint32_t> label;
};

RouteFields fields_of(const evpn::Route& route, const bgp::AttributesPtr& attributes) {
  RouteFields f;
  if (const auto* r = std::get_if<evpn::MacIp>(&route)) {
    f.mac = r->mac;
    f.ip = r->ip;
    f.label = r->label1;
  } else if (const auto* imet = std::get_if<evpn::InclusiveMulticast>(&route)) {
    f.ip = imet->originator;
    if (attributes && attributes->pmsi_tunnel)
      if (const auto pmsi = evpn::decode_pmsi(*attributes->pmsi_tunnel)) f.label = pmsi->label;
  } else if (const auto* ead = std::get_if<evpn::EthernetAutoDiscovery>(&route)) {
    f.label = ead->label;
  } else if (const auto* es = std::get_if<evpn::EthernetSegment>(&route)) {
    f.ip = es->originator;
  } else if (const auto* prefix = std::get_if<evpn::IpPrefixRoute>(&route)) {
    f.ip = prefix->prefix.address;
    f.label = prefix->label;
  }
  return f;
}

json::object routes(const App& app, const Filter& filter) {
  json::array rows;
  app.speaker().rib().for_each_path([&](const bgp::PathView& path) {
    const uint8_t type = path.nlri.empty() ? 0 : path.nlri[0];
    if (filter.type && *filter.type != type) return true;
    const auto route = evpn::decode(path.nlri);
    if (!route) return true;
    const auto rd = evpn::route_distinguisher(*route);
    const std::string rd_text = rd ? net::to_string(*rd) : "";
    if (!filter.rd.empty() && filter.rd != rd_text) return true;
    const RouteFields f = fields_of(*route, path.attributes);
    if (filter.mac && f.mac != filter.mac) return true;
    if (filter.ip && f.ip != filter.ip) return true;
    if (filter.vni && (!f.label || *filter.vni != *f.label)) return true;
    const std::string peer = app.speaker().peer_name(path.peer);
    if (!filter.neighbor.empty() && peer.find(filter.neighbor) == std::string::npos) return true;
    json::array communities, clusters;
    const auto& a = *path.attributes;
    for (const auto& community : a.extended_communities)
      communities.emplace_back(evpn::to_string(community));
    for (const auto cluster : a.cluster_list)
      clusters.emplace_back(to_string(net::IpAddress::v4(cluster)));
    rows.push_back(json::object{
        {"type", type},
        {"rd", optional_text(rd_text)},
        {"route", evpn::to_string(*route)},
        {"mac", f.mac ? json::value(to_string(*f.mac)) : json::value(nullptr)},
        {"ip", f.ip ? json::value(to_string(*f.ip)) : json::value(nullptr)},
        {"vni", f.label ? json::value(*f.label) : json::value(nullptr)},
        {"next_hop", to_string(a.next_hop)},
        {"neighbor", peer},
        {"best", path.best},
        {"stale", path.stale},
        {"reason", bgp::to_string(path.reason)},
        {"rejected", path.rejected == bgp::Rejected::None
                         ? json::value(nullptr)
                         : json::value(bgp::to_string(path.rejected))},
        {"as_path", bgp::as_path_text(a)},
        {"local_pref", a.local_pref ? json::value(*a.local_pref) : json::value(nullptr)},
        {"med", a.multi_exit_disc ? json::value(*a.multi_exit_disc) : json::value(nullptr)},
        {"originator_id", a.originator_id
                              ? json::value(to_string(net::IpAddress::v4(*a.originator_id)))
                              : json::value(nullptr)},
        {"cluster_list", std::move(clusters)},
        {"communities", std::move(communities)},
    });
    return true;
  });
  // By RD, type and key; paths of one route stay in the order of preference.
  std::vector<std::tuple<std::string, int64_t, std::string, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i].as_object();
    order.emplace_back(json::serialize(row.at("rd")), row.at("type").to_number<int64_t>(),
                       row.at("route").as_string(), i);
  }
  std::ranges::sort(order);
  json::array sorted;
  sorted.reserve(rows.size());
  for (const auto& place : order) sorted.push_back(std::move(rows[std::get<3>(place)]));
  return {{"routes", std::move(sorted)}};
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

json::object bindings(const App& app, const Filter& filter) {
  static constexpr const char* kWhere[] = {"nowhere", "local", "remote"};
  json::array rows;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    domain->responder().for_each_binding([&](const proxyarp::BindingView& view) {
      if (filter.ip && view.ip != *filter.ip) return;
      if (filter.mac && view.mac != filter.mac) return;
      const std::string port =
          view.where == proxyarp::MacWhere::LocalPort ? domain->port_name(view.port) : "";
      if (!filter.port.empty() && filter.port != port) return;
      json::array allowed;
      for (const auto& mac : view.allowed) allowed.emplace_back(to_string(mac));
      rows.push_back(json::object{
          {"domain", domain->settings().name},
          {"vni", domain->settings().evpn.vni.value},
          {"ip", to_string(view.ip)},
          {"mac", view.mac ? json::value(to_string(*view.mac)) : json::value(nullptr)},
          {"allowed_macs", std::move(allowed)},
          {"kind", proxyarp::to_string(view.kind)},
          {"where", kWhere[static_cast<std::size_t>(view.where)]},
          {"port", optional_text(port)},
          {"answered", view.answered},
          {"router", view.flags.router},
          {"override", view.flags.override_flag},
          {"immutable", view.immutable},
          {"age_seconds", std::chrono::duration_cast<std::chrono::seconds>(view.age).count()},
          {"member_as",
           view.member_as.value != 0 ? json::value(view.member_as.value) : json::value(nullptr)},
          {"member_name", optional_text(view.member_name)},
      });
    });
  }
  return {{"bindings", std::move(rows)}};
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

// Verdicts of the responder that mean a frame went nowhere.
bool is_drop(proxyarp::Verdict verdict) {
  using enum proxyarp::Verdict;
  return verdict != Answered && verdict != Learned && verdict != Flooded && verdict != Forwarded;
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

}  // namespace

std::expected<json::object, std::string> show(const App& app, const std::string& what,
                                              const json::object& arguments) {
  static const std::map<std::string, std::function<json::object(const App&, const Filter&)>> kViews{
      {"summary", summary},   {"neighbors", neighbors}, {"routes", routes}, {"macs", macs},
      {"bindings", bindings}, {"ports", ports},         {"drops", drops}};
  const auto view = kViews.find(what);
  if (view == kViews.end()) return std::unexpected("unknown view \"" + what + "\"");
  const auto filter = parse_filter(arguments);
  if (!filter) return std::unexpected(filter.error());
  return view->second(app, *filter);
}

}  // namespace peerland
