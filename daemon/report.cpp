// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "daemon/app.h"
#include "daemon/domain_views.h"
#include "daemon/json_values.h"
#include "daemon/port_view.h"
#include "daemon/proxy_view.h"

namespace peerland {
namespace {

namespace json = boost::json;
using dataplane::Direction;

constexpr std::size_t kUsualTop = 10;

double tenth(double number) { return std::round(number * 10) / 10; }

std::string time_text(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     std::chrono::time_point_cast<std::chrono::seconds>(time));
}

double seconds_of(const Interval& interval, net::TimePoint now) {
  const auto end = interval.end == net::TimePoint{} ? now : interval.end;
  return std::max(0.001, std::chrono::duration<double>(end - interval.begin).count());
}

// The intervals that were asked for, latest first; the one that runs when no other is there.
std::vector<const Interval*> chosen(const TrafficMeter& traffic, const Filter& filter) {
  std::vector<const Interval*> out;
  const std::size_t wanted = filter.intervals.value_or(1);
  for (const auto& past : traffic.past())
    if (out.size() < wanted) out.push_back(&past);
  if (out.empty() && traffic.current().begin != net::TimePoint{}) out.push_back(&traffic.current());
  return out;
}

// Several intervals as one.
struct Sum {
  double seconds = 0;
  std::map<std::string, std::map<FlowKey, IntervalFlow>> ports;
  std::map<std::string, std::map<std::pair<Direction, std::string_view>, uint64_t>> reasons;
  std::map<std::string_view, uint64_t> notes;
};

Sum sum_of(const std::vector<const Interval*>& intervals, net::TimePoint now) {
  Sum sum;
  for (const Interval* one : intervals) {
    sum.seconds += seconds_of(*one, now);
    for (const auto& [port, flows] : one->ports)
      for (const auto& [key, flow] : flows) {
        IntervalFlow& to = sum.ports[port][key];
        to.count += flow.count;
        to.peak_packets = std::max(to.peak_packets, flow.peak_packets);
        to.peak_bits = std::max(to.peak_bits, flow.peak_bits);
      }
    for (const auto& [port, reasons] : one->reasons)
      for (const auto& [key, packets] : reasons) sum.reasons[port][key] += packets;
    for (const auto& [what, count] : one->notes) sum.notes[what] += count;
  }
  return sum;
}

struct Context {
  const Domain& domain;
  const Filter& filter;
  std::size_t top;
  Sum sum;

  const dataplane::MemberPort* member(const std::string& port) const {
    const auto found = domain.ports().find(port);
    return found == domain.ports().end() ? nullptr : &found->second.settings;
  }
  bool wants_port(const std::string& port) const {
    return filter.port.empty() || filter.port == port;
  }
  double per_minute(uint64_t count) const {
    return tenth(static_cast<double>(count) * 60 / sum.seconds);
  }
};

// What members sent, by class.
void add_classes(const Context& c, json::array& rows) {
  std::map<std::string_view, FlowCount> classes;
  for (const auto& [port, flows] : c.sum.ports)
    for (const auto& [key, flow] : flows)
      if (key.first == Direction::Ingress && c.wants_port(port)) classes[key.second] += flow.count;
  for (const auto& [name, count] : classes)
    rows.push_back(json::object{{"domain", c.domain.settings().name},
                                {"class", name},
                                {"frames", count.packets},
                                {"bytes", count.bytes},
                                {"per_minute", c.per_minute(count.packets)},
                                {"dropped", count.dropped_packets},
                                {"observed", count.observed_packets}});
}

const std::optional<dataplane::Limit>* limit_of(const Domain& domain, const std::string& port,
                                                std::string_view bum_class) {
  const auto found = domain.ports().find(port);
  if (found == domain.ports().end()) return nullptr;
  const auto& limits = domain.policy_of(found->second).ingress;
  for (std::size_t i = 0; i < limits.size(); ++i)
    if (bum_class == dataplane::to_string(static_cast<dataplane::BumClass>(i))) return &limits[i];
  return nullptr;
}

// The peak against the limit, the tighter of both units; null where nothing limits.
json::value share_of(const IntervalFlow& flow, const std::optional<dataplane::Limit>* limit) {
  if (limit == nullptr || !*limit) return nullptr;
  double share = 0;
  const auto against = [&](const std::optional<uint64_t>& rate, double peak) {
    if (rate && *rate > 0) share = std::max(share, peak * 100 / static_cast<double>(*rate));
  };
  against((*limit)->packets_per_second, flow.peak_packets);
  against((*limit)->bits_per_second, flow.peak_bits);
  return share > 0 ? json::value(tenth(share)) : json::value(nullptr);
}

void add_talkers(const Context& c, json::array& rows) {
  struct Talker {
    std::string port;
    const IntervalFlow* flow;
  };
  std::map<std::string_view, std::vector<Talker>> classes;
  for (const auto& [port, flows] : c.sum.ports)
    for (const auto& [key, flow] : flows)
      if (key.first == Direction::Ingress && c.wants_port(port))
        classes[key.second].push_back({port, &flow});
  for (auto& [name, talkers] : classes) {
    std::ranges::sort(talkers, [](const Talker& a, const Talker& b) {
      return a.flow->count.packets > b.flow->count.packets;
    });
    talkers.resize(std::min(talkers.size(), c.top));
    for (const Talker& talker : talkers) {
      const auto* limit = limit_of(c.domain, talker.port, name);
      const auto& count = talker.flow->count;
      json::object row{{"domain", c.domain.settings().name},
                       {"port", talker.port},
                       {"class", name},
                       {"frames", count.packets},
                       {"per_minute", c.per_minute(count.packets)},
                       {"bps", tenth(static_cast<double>(count.bytes) * 8 / c.sum.seconds)},
                       {"peak_pps", tenth(talker.flow->peak_packets)},
                       {"peak_bps", tenth(talker.flow->peak_bits)},
                       {"dropped", count.dropped_packets},
                       {"observed", count.observed_packets},
                       {"limit", limit == nullptr ? json::value(nullptr) : limit_value(*limit)},
                       {"peak_share", share_of(*talker.flow, limit)}};
      add_member(row, c.member(talker.port));
      rows.push_back(std::move(row));
    }
  }
}

// What should not be there.
void add_sightings(const Context& c, json::array& rows) {
  for (const auto& [port, reasons] : c.sum.reasons)
    for (const auto& [key, frames] : reasons) {
      if (!c.wants_port(port)) continue;
      json::object row{{"domain", c.domain.settings().name},
                       {"port", port},
                       {"direction", dataplane::to_string(key.first)},
                       {"reason", key.second},
                       {"frames", frames},
                       {"per_minute", c.per_minute(frames)}};
      add_member(row, c.member(port));
      rows.push_back(std::move(row));
    }
}

void add_history(const Context& c, const std::vector<const Interval*>& intervals,
                 net::TimePoint now, json::array& rows) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> kClasses{
      {{"arp", "arp_per_minute"},
       {"nd", "nd_per_minute"},
       {"broadcast", "broadcast_per_minute"},
       {"multicast", "multicast_per_minute"},
       {"unknown-unicast", "unknown_unicast_per_minute"}}};
  for (const Interval* one : intervals) {
    const double seconds = seconds_of(*one, now);
    const auto minute = [&](uint64_t n) { return tenth(static_cast<double>(n) * 60 / seconds); };
    std::map<std::string_view, uint64_t> frames;
    uint64_t dropped = 0;
    for (const auto& [port, flows] : one->ports)
      for (const auto& [key, flow] : flows) {
        if (key.first != Direction::Ingress || !c.wants_port(port)) continue;
        frames[key.second] += flow.count.packets;
        dropped += flow.count.dropped_packets;
      }
    const auto noted = [&](const char* what) {
      const auto found = one->notes.find(what);
      return found == one->notes.end() ? uint64_t{0} : found->second;
    };
    json::object row{{"domain", c.domain.settings().name},
                     {"from", time_text(one->from)},
                     {"seconds", std::llround(seconds)},
                     {"running", one->end == net::TimePoint{}}};
    for (const auto& [name, key] : kClasses) row[key] = minute(frames[name]);
    row["dropped_per_minute"] = minute(dropped);
    row["sponged"] = noted("sponged");
    row["to_dead_addresses"] = noted("to-dead-addresses");
    rows.push_back(std::move(row));
  }
}

// Who asks most, what is asked for most, who misbehaves: the busiest of each kind.
json::array offenders_of(const App& app, const Filter& filter, std::size_t top) {
  const json::object all = offenders(app, filter);
  std::map<std::string, std::vector<json::object>> kinds;
  for (const auto& row : all.at("offenders").as_array())
    kinds[std::string(row.as_object().at("kind").as_string())].push_back(row.as_object());
  json::array rows;
  for (auto& [kind, views] : kinds) {
    std::vector<std::pair<double, std::size_t>> order;  // those that are equal stay as they were
    for (std::size_t i = 0; i < views.size(); ++i)
      order.emplace_back(-views[i].at("per_minute").to_number<double>(), i);
    std::ranges::sort(order);
    order.resize(std::min(order.size(), top));
    for (const auto& [rate, i] : order) rows.push_back(std::move(views[i]));
  }
  return rows;
}

void add_closed(const Domain& domain, const Filter& filter, json::array& rows) {
  const auto now = net::Clock::now();
  for (const auto& [name, port] : domain.ports()) {
    if (!filter.port.empty() && filter.port != name) continue;
    if (port.guard.open() && port.guard.closures() == 0) continue;
    json::object row{{"domain", domain.settings().name},
                     {"port", name},
                     {"state", to_string(port.guard.state())},
                     {"cause", optional_text(to_string(port.guard.cause()))},
                     {"since_seconds", seconds_between(port.guard.since(), now)},
                     {"closures", port.guard.closures()}};
    add_member(row, &port.settings);
    rows.push_back(std::move(row));
  }
}

}  // namespace

json::object report(const App& app, const Filter& filter) {
  json::array history, classes, talkers, sightings, closed;
  const auto now = net::Clock::now();
  const auto top = static_cast<std::size_t>(filter.limit.value_or(kUsualTop));
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    const auto intervals = chosen(domain->traffic(), filter);
    if (intervals.empty()) continue;
    const Context context{*domain, filter, top, sum_of(intervals, now)};
    add_history(context, intervals, now, history);
    add_classes(context, classes);
    add_talkers(context, talkers);
    add_sightings(context, sightings);
    add_closed(*domain, filter, closed);
  }
  return {{"report", json::object{{"interval_seconds", app.settings().report_interval.count()},
                                  {"history", std::move(history)},
                                  {"classes", std::move(classes)},
                                  {"talkers", std::move(talkers)},
                                  {"sightings", std::move(sightings)},
                                  {"closed_ports", std::move(closed)},
                                  {"offenders", offenders_of(app, filter, top)}}}};
}

}  // namespace peerland
