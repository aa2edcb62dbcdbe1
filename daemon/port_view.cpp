// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/port_view.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "daemon/domain_walk.h"
#include "daemon/json_values.h"
#include "daemon/list_answer.h"
#include "daemon/proxy_view.h"
#include "daemon/underlay.h"

namespace peerland {

namespace json = boost::json;

bool next_port(const Domain& domain, std::optional<std::string>& last, const PortState*& port) {
  port = nullptr;
  if (last && last->empty()) return false;  // the device was there
  const auto& ports = domain.ports();
  const auto next = last ? ports.upper_bound(*last) : ports.begin();
  if (next == ports.end()) {
    last = "";
    return true;
  }
  port = &next->second;
  last = next->first;
  return true;
}

json::value limit_value(const std::optional<dataplane::Limit>& limit) {
  if (!limit) return nullptr;
  return json::object{{"pps", or_null(limit->packets_per_second)},
                      {"bps", or_null(limit->bits_per_second)},
                      {"burst_ms", limit->burst.count()}};
}

namespace {

json::array counter_rows(const std::vector<dataplane::Counter>& counters) {
  json::array rows;
  for (const auto& c : counters)
    rows.push_back(json::object{{"direction", dataplane::to_string(c.direction)},
                                {"class", c.bum_class},
                                {"reason", c.reason},
                                {"dropped", c.dropped},
                                {"observed", c.observed},
                                {"packets", c.packets},
                                {"bytes", c.bytes}});
  return rows;
}

json::array rate_rows(const std::map<FlowKey, FlowRate>* rates) {
  json::array rows;
  if (rates == nullptr) return rows;
  const auto rounded = [](double number) { return std::round(number * 10) / 10; };
  for (const auto& [key, rate] : *rates)
    rows.push_back(json::object{{"direction", dataplane::to_string(key.first)},
                                {"class", key.second},
                                {"pps", rounded(rate.packets)},
                                {"bps", rounded(rate.bits)},
                                {"dropped_pps", rounded(rate.dropped_packets)}});
  return rows;
}

void add_limits(json::array& rows, dataplane::Direction direction,
                const dataplane::Limits& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i)
    rows.push_back(
        json::object{{"direction", dataplane::to_string(direction)},
                     {"class", dataplane::to_string(static_cast<dataplane::BumClass>(i))},
                     {"limit", limit_value(limits[i])}});
}

json::array limit_rows(const dataplane::BumPolicy& policy, bool core) {
  using enum dataplane::Direction;
  json::array rows;
  add_limits(rows, core ? Decap : Ingress, core ? policy.decap : policy.ingress);
  add_limits(rows, core ? Encap : Egress, core ? policy.encap : policy.egress);
  const auto& all = core ? policy.per_vtep : policy.egress_total;
  if (all)
    rows.push_back(json::object{{"direction", dataplane::to_string(core ? Decap : Egress)},
                                {"class", core ? "each-vtep" : "total"},
                                {"limit", limit_value(all)}});
  return rows;
}

// Drops of all directions, by reason.
json::object drop_sums(const std::vector<dataplane::Counter>& counters, bool observed) {
  std::map<std::string, uint64_t> sums;
  for (const auto& c : counters)
    if (observed ? c.observed : c.dropped) sums[c.reason] += c.packets;
  json::object out;
  for (const auto& [reason, packets] : sums) out[reason] = packets;
  return out;
}

json::object violation_row(const ViolationEntry& entry) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string head;
  for (const uint8_t octet : entry.frame) {
    head += kDigits[octet >> 4];
    head += kDigits[octet & 15];
  }
  const auto now = net::Clock::now();
  return {{"port", entry.port},
          {"direction", dataplane::to_string(entry.direction)},
          {"kind", to_string(entry.kind)},
          {"reason", entry.reason},
          {"mac", to_string(entry.mac)},
          {"ip", or_null(entry.ip)},
          {"owner", optional_text(entry.owner)},
          {"reports", entry.reports},
          {"first_seconds", seconds_between(entry.first, now)},
          {"last_seconds", seconds_between(entry.last, now)},
          {"frame", optional_text(head)}};
}

const char* state_of(const PortState& port) {
  if (port.index.value == 0) return "missing";
  if (!port.attached) return "failed";
  if (!port.guard.open()) return to_string(port.guard.state());
  return port.up ? "up" : "down";
}

json::object guard_value(const Domain& domain, const PortState& port) {
  const auto now = net::Clock::now();
  const PortGuard& guard = port.guard;
  const auto security = domain.security_of(port);
  const bool closed = !guard.open();
  return {{"state", to_string(guard.state())},
          {"cause", optional_text(to_string(guard.cause()))},
          {"since_seconds", guard.since() == net::TimePoint{}
                                ? json::value(nullptr)
                                : json::value(seconds_between(guard.since(), now))},
          {"opens_in_seconds",
           closed && guard.until() != net::kNever
               ? json::value(std::max<int64_t>(0, seconds_between(now, guard.until())))
               : json::value(nullptr)},
          {"closures", guard.closures()},
          {"observed_closures", guard.observed()},
          {"next_hold_seconds", guard.next_hold(now).count()},
          {"macs", dataplane::to_string(security.macs)},
          {"spoofing", dataplane::to_string(security.spoofing)},
          {"protocols", dataplane::to_string(security.protocols)},
          {"loop", dataplane::to_string(security.loop)},
          {"storm", dataplane::to_string(security.storm)}};
}

json::array temporary_rows(const PortState& port) {
  const auto wall = std::chrono::system_clock::now();
  json::array rows;
  for (const auto& temporary : port.settings.temporary_macs)
    rows.push_back(json::object{
        {"mac", to_string(temporary.mac)},
        {"left_seconds",
         std::max<int64_t>(
             0,
             std::chrono::duration_cast<std::chrono::seconds>(temporary.until - wall).count())}});
  return rows;
}

void add_port(const Domain& domain, const PortState& port, Rows& rows) {
  json::array allowed, addresses, violations;
  for (const auto& mac : port.settings.macs) allowed.emplace_back(to_string(mac));
  for (const auto& address : port.settings.addresses) addresses.emplace_back(to_string(address));
  json::object responder;
  for (std::size_t i = 0; i < port.verdicts.size(); ++i)
    if (port.verdicts[i] > 0)
      responder[proxyarp::to_string(static_cast<proxyarp::Verdict>(i))] = port.verdicts[i];
  domain.violation_log().for_each(port.settings.interface, [&](const ViolationEntry& entry) {
    violations.push_back(violation_row(entry));
  });
  const bool seen = port.since != net::TimePoint{};
  const auto counters =
      port.index.value == 0 ? std::vector<dataplane::Counter>{} : domain.frame_counters(port.index);
  json::object row{
      {"domain", domain.settings().name},
      {"vni", domain.settings().evpn.vni.value},
      {"port", port.settings.interface},
      {"state", state_of(port)},
      {"link", port.link},
      {"problem", optional_text(port.problem)},
      {"since_seconds", seen ? seconds_between(port.since, net::Clock::now()) : 0},
      {"flaps", port.flaps},
      {"policy", port.settings.policy},
      {"observe", domain.observes(port)},
      {"attached",
       port.attached ? json::value(domain.attach_mode(port.index)) : json::value(nullptr)},
      {"macs", std::move(allowed)},
      {"temporary_macs", temporary_rows(port)},
      {"enforce_macs", port.settings.enforce_macs},
      {"addresses", std::move(addresses)},
      {"guard", guard_value(domain, port)},
      {"limits", limit_rows(domain.policy_of(port), false)},
      {"rates", rate_rows(domain.traffic().rates(port.settings.interface))},
      {"drops", drop_sums(counters, false)},
      {"observed_drops", drop_sums(counters, true)},
      {"violations", std::move(violations)},
      {"frames", counter_rows(counters)},
      {"responder", std::move(responder)},
  };
  add_member(row, &port.settings);
  add(rows, row);
}

void add_core(const Domain& domain, Rows& rows) {
  const std::string& name = domain.settings().links.vxlan;
  const auto counters = domain.frame_counters(domain.vxlan());
  json::array violations;
  domain.violation_log().for_each(
      name, [&](const ViolationEntry& entry) { violations.push_back(violation_row(entry)); });
  add(rows, {{"domain", domain.settings().name},
             {"vni", domain.settings().evpn.vni.value},
             {"port", name},
             {"state", "core"},
             {"policy", domain.settings().core_policy},
             {"observe", domain.core_policy().observe},
             {"limits", limit_rows(domain.core_policy(), true)},
             {"rates", rate_rows(domain.traffic().rates(name))},
             {"drops", drop_sums(counters, false)},
             {"observed_drops", drop_sums(counters, true)},
             {"violations", std::move(violations)},
             {"frames", counter_rows(counters)}});
}

bool step_ports(const Domain& domain, const Filter& filter, std::optional<std::string>& last,
                Rows& rows) {
  const PortState* port = nullptr;
  if (!next_port(domain, last, port)) return false;
  const std::string& name =
      port != nullptr ? port->settings.interface : domain.settings().links.vxlan;
  if (!filter.port.empty() && filter.port != name) return true;
  if (port != nullptr)
    add_port(domain, *port, rows);
  else
    add_core(domain, rows);
  return true;
}

bool step_violations(const Domain& domain, const Filter& filter, std::optional<std::string>& last,
                     Rows& rows) {
  const PortState* port = nullptr;
  if (!next_port(domain, last, port)) return false;
  const std::string& name =
      port != nullptr ? port->settings.interface : domain.settings().links.vxlan;
  if (!filter.port.empty() && filter.port != name) return true;
  domain.violation_log().for_each(name, [&](const ViolationEntry& entry) {
    if (filter.mac && entry.mac != *filter.mac) return;
    json::object row{{"domain", domain.settings().name}};
    for (auto& [key, value] : violation_row(entry)) row[key] = std::move(value);
    add_member(row, port != nullptr ? &port->settings : nullptr);
    add(rows, row);
  });
  return true;
}

// Of the underlay: those of no domain.
void add_underlay_violations(const App& app, const Filter& filter, Rows& rows) {
  if (app.underlay() == nullptr || filter.vni || !filter.domain.empty()) return;
  app.underlay()->violation_log().for_each(filter.port, [&](const ViolationEntry& entry) {
    if (filter.mac && entry.mac != *filter.mac) return;
    json::object row{{"domain", nullptr}};
    for (auto& [key, value] : violation_row(entry)) row[key] = std::move(value);
    add_member(row, nullptr);
    add(rows, row);
  });
}

// --- a frame

struct Place {
  net::IfIndex index;
  bool core = false;
};
std::expected<Place, std::string> place_of(const App& app, const Filter& filter) {
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    const bool core = domain->settings().links.vxlan == filter.port;
    const auto port = domain->ports().find(filter.port);
    if (!core && port == domain->ports().end()) continue;
    if (!domain->uses_ebpf())
      return std::unexpected(filter.port +
                             ": responder is pcap there, no program of the kernel judges frames");
    const net::IfIndex index = core ? domain->vxlan() : port->second.index;
    if (!core && !port->second.attached)
      return std::unexpected(filter.port + ": the port has no programs now: " +
                             (index.value == 0 ? "no such interface" : port->second.problem));
    return Place{index, core};
  }
  return std::unexpected("there is no port " + filter.port);
}

}  // namespace

std::expected<Answer, std::string> show_ports(const App& app, const Filter& filter) {
  return list_answer("ports", DomainWalk<std::string>(app, filter, step_ports));
}

std::expected<Answer, std::string> show_violations(const App& app, const Filter& filter) {
  return list_answer("violations", [walk = DomainWalk<std::string>(app, filter, step_violations),
                                    &app, filter](Rows& rows) mutable {
    if (walk(rows)) return true;
    add_underlay_violations(app, filter, rows);
    return false;
  });
}

json::object underlay(const App& app, const Filter&) {
  json::array devices, vteps;
  const Underlay* underlay = app.underlay();
  if (underlay == nullptr)
    return {{"underlay",
             json::object{
                 {"devices", devices}, {"vteps", vteps}, {"limit", nullptr}, {"observe", false}}}};
  for (const auto& [name, device] : underlay->devices())
    devices.push_back(json::object{{"interface", name},
                                   {"exists", device.index.value != 0},
                                   {"protected", device.attached},
                                   {"problem", optional_text(device.problem)}});
  std::map<net::IpAddress, dataplane::VtepCounter> counters;
  for (const auto& counter : underlay->counters()) counters[counter.vtep] = counter;
  for (const auto& vtep : underlay->vteps()) counters[vtep].vtep = vtep;
  for (const auto& [vtep, c] : counters) {
    const bool known = underlay->vteps().contains(vtep);
    vteps.push_back(json::object{
        {"vtep", vtep.is_unspecified() ? json::value(nullptr) : json::value(to_string(vtep))},
        {"known", known},
        {"packets", c.packets},
        {"bytes", c.bytes},
        {"dropped_packets", c.limited_packets},
        {"dropped_bytes", c.limited_bytes},
        {"observed_packets", c.observed_packets}});
  }
  return {{"underlay", json::object{{"devices", std::move(devices)},
                                    {"vteps", std::move(vteps)},
                                    {"limit", limit_value(underlay->limit())},
                                    {"observe", underlay->observe()}}}};
}

std::expected<Answer, std::string> show_frame(const App& app, const Filter& filter) {
  if (filter.port.empty()) return std::unexpected("port: expected the name of a port");
  if (filter.frame.empty()) return std::unexpected("frame: expected an Ethernet frame");
  const auto place = place_of(app, filter);
  if (!place) return std::unexpected(place.error());
  using enum dataplane::Direction;
  const auto direction = filter.direction.value_or(place->core ? Decap : Ingress);
  if ((direction == Decap || direction == Encap) != place->core)
    return std::unexpected(fmt::format("direction: {} has {}", filter.port,
                                       place->core ? "decap and encap" : "ingress and egress"));
  const auto explained = app.fast_path()->explain(place->index, direction, filter.frame);
  if (!explained) return std::unexpected(explained.error().what);
  std::string answer;
  for (const uint8_t octet : explained->answer) answer += fmt::format("{:02x}", octet);
  const json::object document{{"schema", kSchema},
                              {"frame", json::object{{"port", filter.port},
                                                     {"direction", dataplane::to_string(direction)},
                                                     {"octets", filter.frame.size()},
                                                     {"verdict", explained->answered ? "answered"
                                                                 : explained->punted ? "punted"
                                                                 : explained->passed ? "passed"
                                                                                     : "dropped"},
                                                     {"class", explained->bum_class},
                                                     {"reason", explained->reason},
                                                     {"rules", texts(explained->rules)},
                                                     {"answer", optional_text(answer)}}}};
  return whole(json::serialize(document) + "\n");
}

}  // namespace peerland
