// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/cells.h"
#include "cli/render_ports.h"
#include "cli/render_proxy.h"
#include "cli/table.h"

namespace cli {
namespace {

namespace json = boost::json;

std::string summary(const json::object& document) {
  const auto* found = document.if_contains("summary");
  if (found == nullptr || !found->is_object()) return "";
  const auto& s = found->as_object();
  std::string text = fmt::format(
      "{}  AS {}  router id {}  VTEP {}  up {}  peerlan {}\n"
      "BGP: {} of {} neighbors established, {} routes, {} paths{}\n",
      cell(s, "node"), cell(s, "as"), cell(s, "router_id"), cell(s, "vtep"),
      duration(number(s, "uptime_seconds")), cell(s, "version"), number(s, "neighbors_established"),
      number(s, "neighbors"), number(s, "routes"), number(s, "paths"),
      flag(s, "converged") ? "" : ", waiting for the neighbors' tables");
  if (cell(s, "data_path") != "-")
    text += fmt::format("Data path: eBPF by {}\n", cell(s, "data_path"));
  if (cell(s, "confirm_seconds") != "-")
    text += fmt::format("The settings are not confirmed: in {} s the former ones come back\n",
                        cell(s, "confirm_seconds"));
  if (const auto* hops = s.if_contains("next_hops"); hops != nullptr && hops->is_object())
    if (const std::string lost = list(hops->as_object(), "unreachable");
        lost != "-" && !lost.empty())
      text += "No route to PE " + lost + ": its MACs are not used\n";
  Table table({{"DOMAIN"},
               {"VNI", true},
               {"PROFILE"},
               {"RESPONDER"},
               {"PORTS UP", true},
               {"LOCAL MACS", true},
               {"REMOTE MACS", true},
               {"BINDINGS", true},
               {"ANSWERED", true},
               {"REMOTE PES", true}});
  each(s, "domains", [&](const json::object& d) {
    table.row({cell(d, "name"), cell(d, "vni"), cell(d, "profile"), cell(d, "responder"),
               cell(d, "ports_up") + "/" + cell(d, "ports"), cell(d, "macs_local"),
               cell(d, "macs_remote"), cell(d, "bindings"), cell(d, "bindings_answered"),
               cell(d, "remote_vteps")});
  });
  if (table.size() > 0) text += "\n" + table.text();
  each(s, "domains", [&](const json::object& d) {
    text += fmt::format("\n{}: takes routes of {}; sends {}", cell(d, "name"),
                        list(d, "import_targets"), list(d, "export_targets"));
  });
  if (table.size() > 0) text += "\n";
  return text;
}

std::string neighbors(const json::object& document) {
  Table table({{"NEIGHBOR"},
               {"NAME"},
               {"AS", true},
               {"ROLE"},
               {"STATE"},
               {"FOR", true},
               {"RECEIVED", true},
               {"REJECTED", true},
               {"FLAGGED", true},
               {"STALE", true},
               {"SENT", true},
               {"QUEUED", true},
               {"LAST ERROR"}});
  each(document, "neighbors", [&](const json::object& n) {
    table.row({cell(n, "address"), cell(n, "description"), cell(n, "remote_as"), cell(n, "role"),
               cell(n, "state"), duration(number(n, "state_seconds")), cell(n, "routes_received"),
               cell(n, "routes_rejected"), cell(n, "routes_flagged"), cell(n, "routes_stale"),
               cell(n, "routes_advertised"), cell(n, "queued"), cell(n, "last_error")});
  });
  return table.text();
}

std::string route_rows(const std::vector<json::object>& rows, bool with_header) {
  Table table(
      {{""}, {"RD"}, {"ROUTE"}, {"VNI", true}, {"NEXT HOP"}, {"FROM"}, {"COMMUNITIES"}, {"WHY"}});
  for (const json::object& r : rows) {
    const bool rejected = cell(r, "rejected") != "-";
    const std::string mark = rejected ? "r" : flag(r, "best") ? "*>" : "*";
    const char* kept = flag(r, "long_lived") ? "L" : flag(r, "stale") ? "S" : "";
    const std::string why = cell(r, "why") != "-" ? cell(r, "why")
                            : rejected            ? cell(r, "rejected")
                                                  : cell(r, "reason");
    table.row({mark + kept + (flag(r, "flagged") ? "f" : ""), cell(r, "rd"), cell(r, "route"),
               cell(r, "vni"), cell(r, "next_hop"), cell(r, "neighbor"), list(r, "communities"),
               why});
  }
  return table.text(with_header);
}

std::string route_footer(const json::object& rest) {
  const int64_t total = number(rest, "total"), shown = number(rest, "shown");
  return (total == shown ? fmt::format("{} paths.", total)
                         : fmt::format("{} of {} paths.", shown, total)) +
         "  *> best  * other  r rejected  f flagged  S kept over a restart  L beyond its time\n";
}

std::string routes(const json::object& document) {
  std::vector<json::object> rows;
  each(document, "routes", [&](const json::object& r) { rows.push_back(r); });
  json::object rest = document;
  if (!rest.contains("total")) rest["total"] = rest["shown"] = rows.size();
  return route_rows(rows, true) + route_footer(rest);
}

// By RD, type and key; paths of one route stay in the order of preference.
void sort_routes(std::vector<json::object>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::ranges::generate(order, [at = std::size_t{0}]() mutable { return at++; });
  std::ranges::sort(order, {}, [&](std::size_t at) {
    const json::object& r = rows[at];
    return std::tuple(cell(r, "rd"), number(r, "type"), cell(r, "route"), at);
  });
  std::vector<json::object> sorted;
  for (const std::size_t at : order) sorted.push_back(std::move(rows[at]));
  rows = std::move(sorted);
}

std::string collectors(const json::object& document) {
  Table table({{"COLLECTOR"},
               {"PORT", true},
               {"NAME"},
               {"TABLES"},
               {"STATE"},
               {"FOR", true},
               {"CONNECTS", true},
               {"DROPS", true},
               {"MESSAGES", true},
               {"QUEUED", true},
               {"LAST ERROR"}});
  each(document, "collectors", [&](const json::object& c) {
    table.row({cell(c, "address"), cell(c, "port"), cell(c, "description"), list(c, "tables"),
               cell(c, "state"), duration(number(c, "state_seconds")), cell(c, "connects"),
               cell(c, "drops"), cell(c, "messages"), cell(c, "queued"), cell(c, "last_error")});
  });
  std::string text = table.size() > 0 ? table.text() : "no BMP collectors\n";
  const auto* dumps = document.if_contains("mrt");
  if (dumps == nullptr || !dumps->is_object()) return text;
  const auto& mrt = dumps->as_object();
  return text + fmt::format("MRT: every {} to {}, {} written, {} failed, last {}, last error {}\n",
                            duration(number(mrt, "interval_seconds")), cell(mrt, "file"),
                            cell(mrt, "written"), cell(mrt, "failed"), cell(mrt, "last_file"),
                            cell(mrt, "last_error"));
}

std::string macs(const json::object& document) {
  Table table({{"DOMAIN"},
               {"MAC"},
               {"WHERE"},
               {"PORT OR PE"},
               {"STICKY"},
               {"SEQ", true},
               {"ADVERTISED"},
               {"ADDRESSES"},
               {"MEMBER"}});
  each(document, "macs", [&](const json::object& m) {
    const bool local = cell(m, "where") == "local";
    table.row({cell(m, "domain"), cell(m, "mac"),
               flag(m, "duplicate")            ? "duplicate"
               : cell(m, "unreachable") != "-" ? "unreachable"
               : flag(m, "unresolved")         ? "unresolved"
                                               : cell(m, "where"),
               cell(m, "unreachable") != "-" ? cell(m, "unreachable")
               : flag(m, "unresolved")       ? cell(m, "esi")
                                             : cell(m, local ? "port" : "vtep"),
               cell(m, "sticky"), cell(m, "sequence"), cell(m, "advertised"), list(m, "ips"),
               member(m)});
  });
  return table.text();
}

std::string drops(const json::object& document) {
  Table table({{"DOMAIN"},
               {"PORT"},
               {"DIRECTION"},
               {"CLASS"},
               {"REASON"},
               {"FRAMES", true},
               {"OCTETS", true},
               {"MEMBER"}});
  each(document, "drops", [&](const json::object& d) {
    table.row({cell(d, "domain"), cell(d, "port"), cell(d, "direction"), cell(d, "class"),
               cell(d, "reason"), cell(d, "packets"), cell(d, "bytes"), member(d)});
  });
  return table.size() == 0 ? "nothing was dropped\n" : table.text();
}

}  // namespace

std::string render(const std::string& what, const boost::json::object& document) {
  using Renderer = std::string (*)(const json::object&);
  static const std::map<std::string, Renderer> kRenderers{{"summary", summary},
                                                          {"neighbors", neighbors},
                                                          {"routes", routes},
                                                          {"macs", macs},
                                                          {"bindings", render_bindings},
                                                          {"ports", render_ports},
                                                          {"violations", render_violations},
                                                          {"underlay", render_underlay},
                                                          {"frame", render_frame},
                                                          {"report", render_report},
                                                          {"drops", drops},
                                                          {"collectors", collectors},
                                                          {"duplicates", render_duplicates},
                                                          {"sponge", render_sponge},
                                                          {"offenders", render_offenders},
                                                          {"explanation", render_explanation}};
  const auto found = kRenderers.find(what);
  return found == kRenderers.end() ? json::serialize(document) + "\n" : found->second(document);
}

namespace {

constexpr std::size_t kStretch = 5000;  // rows

json::object part(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  return value != nullptr && value->is_object() ? value->as_object() : json::object{};
}

std::string sides(const json::object& n) {
  Table table({{"  CAPABILITIES SENT"}, {"RECEIVED"}});
  const auto of = [&](const char* key) {
    std::vector<std::string> items;
    if (const auto* value = n.if_contains(key); value != nullptr && value->is_array())
      for (const auto& item : value->as_array())
        if (item.is_string()) items.emplace_back(item.as_string());
    return items;
  };
  // What both sides said stands in one line.
  const auto sent = of("capabilities_sent");
  auto received = of("capabilities_received");
  for (const std::string& one : sent) {
    const auto same = std::ranges::find(received, one);
    table.row({"  " + one, same == received.end() ? "" : one});
    if (same != received.end()) received.erase(same);
  }
  for (const std::string& one : received) table.row({"", one});
  return table.text();
}

std::string exchanged(const json::object& n) {
  const json::object in = part(n, "messages_in_by_type"), out = part(n, "messages_out_by_type");
  Table table({{"  MESSAGES"}, {"RECEIVED", true}, {"SENT", true}});
  for (const char* type : {"open", "update", "notification", "keepalive", "route_refresh"})
    table.row({std::string("  ") + type, cell(in, type), cell(out, type)});
  table.row({"  all", cell(n, "messages_in"), cell(n, "messages_out")});
  return table.text();
}

std::string trouble(const json::object& n, const char* title, const std::string& key) {
  const std::string text = cell(n, key.c_str());
  if (text == "-") return "";
  std::string line = fmt::format("  {}: {}", title, text);
  if (const std::string data = cell(n, (key + "_data").c_str()); data != "-")
    line += ", octets " + data;
  if (const std::string age = cell(n, (key + "_seconds").c_str()); age != "-")
    line += fmt::format(", {} ago", duration(number(n, (key + "_seconds").c_str())));
  return line + "\n";
}

}  // namespace

std::string render_neighbor(const json::object& n) {
  std::string text = fmt::format("{}  {}  AS {}  {}{}\n", cell(n, "address"),
                                 cell(n, "description"), cell(n, "remote_as"), cell(n, "role"),
                                 cell(n, "group") == "-" ? "" : "  group " + cell(n, "group"));
  text += fmt::format("  {} for {}, established {} times, lost {} times{}{}\n", cell(n, "state"),
                      duration(number(n, "state_seconds")), cell(n, "established_count"),
                      cell(n, "dropped_count"), flag(n, "enabled") ? "" : ", not enabled",
                      flag(n, "stale_kept") ? ", routes kept over its restart" : "");
  text += fmt::format("  local {} port {}, remote {} port {}, router id {}\n",
                      cell(n, "local_address"), cell(n, "local_port"), cell(n, "remote_address"),
                      cell(n, "remote_port"), cell(n, "remote_router_id"));
  text += fmt::format("  hold time {} s, keepalive every {} s, connect retry {} s; running:",
                      cell(n, "hold_time_seconds"), cell(n, "keepalive_seconds"),
                      cell(n, "connect_retry_seconds"));
  std::string timers;
  each(n, "timers", [&](const json::object& timer) {
    timers += fmt::format(" {} {}s", cell(timer, "name"), cell(timer, "left_seconds"));
  });
  text += (timers.empty() ? " none" : timers) + "\n";
  text += fmt::format(
      "  routes: {} received, {} accepted, {} rejected, {} flagged, {} stale; {} advertised, "
      "{} queued\n",
      cell(n, "routes_received"), cell(n, "routes_accepted"), cell(n, "routes_rejected"),
      cell(n, "routes_flagged"), cell(n, "routes_stale"), cell(n, "routes_advertised"),
      cell(n, "queued"));
  text += fmt::format(
      "  errors in UPDATEs (RFC 7606): {} attributes discarded, {} treated as withdraw, "
      "{} NLRI discarded, {} of another family, {} sessions reset\n",
      cell(n, "attributes_discarded"), cell(n, "treated_as_withdraw"), cell(n, "nlri_discarded"),
      cell(n, "family_ignored"), cell(n, "sessions_reset"));
  text += trouble(n, "last error", "last_error");
  if (cell(n, "last_notification") != cell(n, "last_error"))
    text += trouble(n, "last NOTIFICATION", "last_notification");
  text += trouble(n, "last error in an UPDATE", "last_update_error");
  each(n, "notifications", [&](const json::object& one) {
    text += fmt::format("  NOTIFICATION {}: {} ({} times)\n", cell(one, "direction"),
                        cell(one, "text"), cell(one, "count"));
  });
  return text + sides(n) + exchanged(n);
}

std::string render_event(const json::object& e) {
  const std::string event = cell(e, "event"), time = cell(e, "time");
  if (event == "watching") return "";
  if (event == "lost")
    return fmt::format("{} {} events were lost: this reader is too slow\n", time, cell(e, "count"));
  if (event == "neighbor-up")
    return fmt::format("{} {} up, router id {}\n", time, cell(e, "neighbor"),
                       cell(e, "remote_router_id"));
  if (event == "neighbor-down")
    return fmt::format("{} {} down: {}\n", time, cell(e, "neighbor"), cell(e, "reason"));
  if (event == "neighbor-state")
    return fmt::format("{} {} {} -> {}\n", time, cell(e, "neighbor"), cell(e, "from"),
                       cell(e, "to"));
  const std::string route = cell(e, "rd") + " " + cell(e, "route");
  if (event == "route-withdrawn")
    return fmt::format("{} - {} (was from {})\n", time, route, cell(e, "previous"));
  if (event == "route-changed")
    return fmt::format("{} + {} vni {} via {} from {} (before: {}) {}\n", time, route,
                       cell(e, "vni"), cell(e, "next_hop"), cell(e, "neighbor"),
                       cell(e, "previous"), list(e, "communities"));
  return json::serialize(e) + "\n";
}

void RowPrinter::add(json::object row) {
  rows_.push_back(std::move(row));
  if ((what_ == "routes" || what_ == "bindings") && rows_.size() >= kStretch) flush();
}

void RowPrinter::flush() {
  const bool first = !std::exchange(begun_, true);
  print_(what_ == "bindings" ? binding_rows(rows_, first) : route_rows(rows_, first));
  rows_.clear();
}

void RowPrinter::finish(const json::object& rest) {
  if (what_ == "routes") {
    if (!begun_) sort_routes(rows_);
    if (!begun_ || !rows_.empty()) flush();
    print_(route_footer(rest));
  } else if (what_ == "bindings") {
    if (!begun_ || !rows_.empty()) flush();
  } else if (what_ == "neighbors" && detail_) {
    for (const json::object& row : rows_) print_(render_neighbor(row));
  } else if (what_ == "ports" && detail_) {
    for (const json::object& row : rows_) print_(render_port(row));
    if (rows_.empty()) print_("there is no such port\n");
  } else {
    json::object document = rest;
    if (!rows_.empty()) document[what_] = json::array(rows_.begin(), rows_.end());
    print_(render(what_, document));
  }
}

}  // namespace cli
