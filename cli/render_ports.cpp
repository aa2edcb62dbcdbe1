// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render_ports.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <utility>
#include <vector>

#include "cli/cells.h"
#include "cli/table.h"

namespace cli {
namespace {

namespace json = boost::json;

json::object part(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  return value != nullptr && value->is_object() ? value->as_object() : json::object{};
}

std::string ago(const json::object& row, const char* key) {
  return cell(row, key) == "-" ? "-" : duration(number(row, key));
}

// "20/s", "1000 kbit/s", "20/s and 100 kbit/s, burst 500 ms", "drop", "unlimited"
std::string limit_text(const json::object& row) {
  const auto* value = row.if_contains("limit");
  if (value == nullptr || !value->is_object()) return "unlimited";
  const auto& limit = value->as_object();
  const bool packets = cell(limit, "pps") != "-", bits = cell(limit, "bps") != "-";
  if ((packets && number(limit, "pps") == 0) || (bits && number(limit, "bps") == 0)) return "drop";
  std::string text = packets ? fmt::format("{}/s", number(limit, "pps")) : std::string();
  if (bits) {
    const int64_t rate = number(limit, "bps");
    if (packets) text += " and ";
    text +=
        rate % 1000 == 0 ? fmt::format("{} kbit/s", rate / 1000) : fmt::format("{} bit/s", rate);
  }
  const int64_t burst = number(limit, "burst_ms");
  return burst == 1000 ? text : fmt::format("{}, burst {} ms", text, burst);
}

// Why it is closed and until when; empty: it is open.
std::string closed_text(const json::object& guard) {
  if (cell(guard, "state") == "open" || cell(guard, "state") == "-") return "";
  std::string text = fmt::format("because of {}, for {}", cell(guard, "cause"),
                                 duration(number(guard, "since_seconds")));
  if (cell(guard, "opens_in_seconds") == "-") return text + ", stays so";
  return text + fmt::format(", opens in {}", duration(number(guard, "opens_in_seconds")));
}

void violation_row(Table& table, const json::object& v) {
  table.row({cell(v, "port"), cell(v, "direction"), cell(v, "kind"), cell(v, "reason"),
             cell(v, "mac"), cell(v, "ip"), cell(v, "owner"), cell(v, "reports"),
             ago(v, "first_seconds"), ago(v, "last_seconds")});
}

Table violation_table() {
  return Table({{"PORT"},
                {"DIRECTION"},
                {"KIND"},
                {"REASON"},
                {"MAC SEEN"},
                {"ADDRESS"},
                {"WHOSE"},
                {"REPORTS", true},
                {"FIRST", true},
                {"LAST", true}});
}

// Limits, rates now and drops of one direction and class in one row.
std::string traffic_of(const json::object& port) {
  struct Line {
    std::string limit = "-", pps = "-", bps = "-", dropped = "-";
    int64_t drops = 0, observed = 0;
  };
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, Line> lines;
  const auto line = [&](const json::object& row) -> Line& {
    const std::pair key{cell(row, "direction"), cell(row, "class")};
    if (!lines.contains(key)) order.push_back(key);
    return lines[key];
  };
  each(port, "limits", [&](const json::object& row) { line(row).limit = limit_text(row); });
  each(port, "rates", [&](const json::object& row) {
    Line& to = line(row);
    to.pps = cell(row, "pps");
    to.bps = cell(row, "bps");
    to.dropped = cell(row, "dropped_pps");
  });
  each(port, "frames", [&](const json::object& row) {
    Line& to = line(row);
    if (flag(row, "dropped")) to.drops += number(row, "packets");
    if (flag(row, "observed")) to.observed += number(row, "packets");
  });
  Table table({{"  DIRECTION"},
               {"CLASS"},
               {"LIMIT"},
               {"NOW/S", true},
               {"BIT/S", true},
               {"DROPPED/S", true},
               {"DROPPED", true},
               {"WOULD BE", true}});
  for (const auto& key : order) {
    const Line& l = lines[key];
    table.row({"  " + key.first, key.second, l.limit, l.pps, l.bps, l.dropped,
               fmt::to_string(l.drops), fmt::to_string(l.observed)});
  }
  return table.text();
}

std::string sums(const json::object& row, const char* title, const char* key) {
  std::string text;
  for (const auto& [reason, count] : part(row, key))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", std::string_view(reason),
                        json::serialize(count));
  return text.empty() ? text : fmt::format("  {}: {}\n", title, text);
}

std::string macs_of(const json::object& p) {
  std::string text = flag(p, "enforce_macs") ? list(p, "macs") : "any";
  if (text.empty() || text == "-") text = "none: nothing from the member passes";
  each(p, "temporary_macs", [&](const json::object& t) {
    text += number(t, "left_seconds") > 0 ? fmt::format(" ({} for {} more)", cell(t, "mac"),
                                                        duration(number(t, "left_seconds")))
                                          : fmt::format(" ({} is over)", cell(t, "mac"));
  });
  return text;
}

}  // namespace

std::string render_ports(const json::object& document) {
  Table table({{"DOMAIN"},
               {"PORT"},
               {"STATE"},
               {"FOR", true},
               {"POLICY"},
               {"ANSWERED", true},
               {"PUNTED", true},
               {"DROPPED", true},
               {"DROPPED/S", true},
               {"MACS"},
               {"MEMBER"}});
  std::string notes;
  each(document, "ports", [&](const json::object& p) {
    int64_t answered = 0, punted = 0, dropped = 0;
    double now = 0;
    each(p, "frames", [&](const json::object& f) {
      const std::string reason = cell(f, "reason");
      if (reason == "answered") answered += number(f, "packets");
      if (reason == "punted") punted += number(f, "packets");
      if (flag(f, "dropped")) dropped += number(f, "packets");
    });
    each(p, "rates", [&](const json::object& r) {
      if (const auto* rate = r.if_contains("dropped_pps"); rate != nullptr && rate->is_number())
        now += rate->to_number<double>();
    });
    table.row({cell(p, "domain"), cell(p, "port"),
               cell(p, "state") + (flag(p, "observe") ? " (observe)" : ""),
               duration(number(p, "since_seconds")), cell(p, "policy"), fmt::to_string(answered),
               fmt::to_string(punted), fmt::to_string(dropped), fmt::format("{:.0f}", now),
               list(p, "macs"), member(p)});
    if (cell(p, "problem") != "-")
      notes += fmt::format("{}: {}\n", cell(p, "port"), cell(p, "problem"));
    if (const std::string why = closed_text(part(p, "guard")); !why.empty())
      notes += fmt::format("{}: {} {}\n", cell(p, "port"), cell(p, "state"), why);
  });
  return table.text() + notes;
}

std::string render_port(const json::object& p) {
  const json::object guard = part(p, "guard");
  const bool core = cell(p, "state") == "core";
  std::string text = fmt::format("{}  {}  {}  policy {}{}\n", cell(p, "port"), cell(p, "domain"),
                                 member(p), cell(p, "policy"),
                                 flag(p, "observe") ? ", observed only: nothing is dropped" : "");
  if (!core) {
    text += fmt::format("  {} for {}, link {}, attached by {}, went down {} times\n",
                        cell(p, "state"), duration(number(p, "since_seconds")),
                        flag(p, "link") ? "up" : "down", cell(p, "attached"), cell(p, "flaps"));
    if (const std::string why = closed_text(guard); !why.empty())
      text += fmt::format("  {} {}\n", cell(guard, "state"), why);
    if (cell(p, "problem") != "-") text += fmt::format("  problem: {}\n", cell(p, "problem"));
    text += fmt::format("  MACs: {}\n  addresses: {}\n", macs_of(p), list(p, "addresses"));
    text += fmt::format(
        "  on violations: foreign MACs {}, spoofing {}, protocols {}, loop {}, storm {}; closed {} "
        "times, next for {}\n",
        cell(guard, "macs"), cell(guard, "spoofing"), cell(guard, "protocols"), cell(guard, "loop"),
        cell(guard, "storm"), cell(guard, "closures"),
        duration(number(guard, "next_hold_seconds")));
  }
  text += sums(p, "dropped", "drops") + sums(p, "would be dropped", "observed_drops") +
          sums(p, "responder", "responder") + traffic_of(p);
  Table table = violation_table();
  each(p, "violations", [&](const json::object& v) { violation_row(table, v); });
  if (table.size() > 0) text += "\n" + table.text();
  return text;
}

std::string render_violations(const json::object& document) {
  Table table = violation_table();
  each(document, "violations", [&](const json::object& v) { violation_row(table, v); });
  return table.size() == 0 ? "no violations\n" : table.text();
}

std::string render_underlay(const json::object& document) {
  const json::object u = part(document, "underlay");
  Table devices({{"INTERFACE"}, {"PROTECTED"}, {"PROBLEM"}});
  each(u, "devices", [&](const json::object& d) {
    devices.row({cell(d, "interface"), flag(d, "exists") ? cell(d, "protected") : "missing",
                 cell(d, "problem")});
  });
  std::string text = devices.size() == 0 ? "no underlay interfaces in the settings: frames of "
                                           "unknown VTEPs are not refused\n"
                                         : devices.text();
  text += fmt::format("Limit of each VTEP: {}{}\n", limit_text(u),
                      flag(u, "observe") ? ", observed only" : "");
  Table vteps({{"VTEP"},
               {"KNOWN"},
               {"FRAMES", true},
               {"OCTETS", true},
               {"DROPPED", true},
               {"WOULD BE", true}});
  each(u, "vteps", [&](const json::object& v) {
    vteps.row({cell(v, "vtep") == "-" ? "all others" : cell(v, "vtep"), cell(v, "known"),
               cell(v, "packets"), cell(v, "bytes"), cell(v, "dropped_packets"),
               cell(v, "observed_packets")});
  });
  return text + (vteps.size() == 0 ? std::string() : "\n" + vteps.text());
}

std::string render_frame(const json::object& document) {
  const json::object f = part(document, "frame");
  std::string text = fmt::format("{} octets at {}, {}: {}", cell(f, "octets"), cell(f, "port"),
                                 cell(f, "direction"), cell(f, "verdict"));
  if (cell(f, "reason") != cell(f, "verdict")) text += fmt::format(", {}", cell(f, "reason"));
  if (cell(f, "class") != "-" && !cell(f, "class").empty())
    text += fmt::format(" (class {})", cell(f, "class"));
  text += "\n";
  std::size_t rule = 0;
  if (const auto* rules = f.if_contains("rules"); rules != nullptr && rules->is_array())
    for (const auto& one : rules->as_array())
      text += fmt::format("  {}. {}\n", ++rule,
                          one.is_string() ? std::string(one.as_string()) : json::serialize(one));
  if (cell(f, "answer") != "-") text += fmt::format("  answer: {}\n", cell(f, "answer"));
  return text;
}

namespace {

std::string history_of(const json::object& r) {
  Table table({{"FROM"},
               {"DOMAIN"},
               {"SECONDS", true},
               {"ARP/MIN", true},
               {"ND/MIN", true},
               {"BROADCAST/MIN", true},
               {"MULTICAST/MIN", true},
               {"UNKNOWN/MIN", true},
               {"DROPPED/MIN", true},
               {"SPONGED", true},
               {"TO THE DEAD", true}});
  each(r, "history", [&](const json::object& h) {
    table.row({cell(h, "from") + (flag(h, "running") ? " (runs)" : ""), cell(h, "domain"),
               cell(h, "seconds"), cell(h, "arp_per_minute"), cell(h, "nd_per_minute"),
               cell(h, "broadcast_per_minute"), cell(h, "multicast_per_minute"),
               cell(h, "unknown_unicast_per_minute"), cell(h, "dropped_per_minute"),
               cell(h, "sponged"), cell(h, "to_dead_addresses")});
  });
  return table.size() == 0 ? "nothing was counted yet\n" : table.text();
}

std::string talkers_of(const json::object& r) {
  Table table({{"CLASS"},
               {"PORT"},
               {"FRAMES", true},
               {"A MINUTE", true},
               {"PEAK/S", true},
               {"LIMIT"},
               {"PEAK % OF IT", true},
               {"DROPPED", true},
               {"WOULD BE", true},
               {"MEMBER"}});
  each(r, "talkers", [&](const json::object& t) {
    const bool governed = cell(t, "class") != "unicast" && cell(t, "class") != "control";
    table.row({cell(t, "class"), cell(t, "port"), cell(t, "frames"), cell(t, "per_minute"),
               cell(t, "peak_pps"), governed ? limit_text(t) : "-", cell(t, "peak_share"),
               cell(t, "dropped"), cell(t, "observed"), member(t)});
  });
  return table.size() == 0 ? "" : "\nTop talkers\n" + table.text();
}

std::string sightings_of(const json::object& r) {
  Table table({{"SEEN AND REFUSED"},
               {"PORT"},
               {"DIRECTION"},
               {"FRAMES", true},
               {"A MINUTE", true},
               {"MEMBER"}});
  each(r, "sightings", [&](const json::object& s) {
    table.row({cell(s, "reason"), cell(s, "port"), cell(s, "direction"), cell(s, "frames"),
               cell(s, "per_minute"), member(s)});
  });
  return table.size() == 0 ? "" : "\n" + table.text();
}

}  // namespace

std::string render_report(const json::object& document) {
  const json::object r = part(document, "report");
  std::string text = history_of(r);
  Table classes({{"CLASS"},
                 {"DOMAIN"},
                 {"FRAMES", true},
                 {"A MINUTE", true},
                 {"OCTETS", true},
                 {"DROPPED", true}});
  each(r, "classes", [&](const json::object& c) {
    classes.row({cell(c, "class"), cell(c, "domain"), cell(c, "frames"), cell(c, "per_minute"),
                 cell(c, "bytes"), cell(c, "dropped")});
  });
  if (classes.size() > 0) text += "\nFrom members\n" + classes.text();
  text += talkers_of(r) + sightings_of(r);
  Table closed({{"CLOSED PORTS"}, {"STATE"}, {"CAUSE"}, {"TIMES", true}, {"MEMBER"}});
  each(r, "closed_ports", [&](const json::object& c) {
    closed.row(
        {cell(c, "port"), cell(c, "state"), cell(c, "cause"), cell(c, "closures"), member(c)});
  });
  if (closed.size() > 0) text += "\n" + closed.text();
  Table offenders({{"WHO"}, {"PORT"}, {"MAC"}, {"ADDRESS"}, {"A MINUTE", true}, {"MEMBER"}});
  each(r, "offenders", [&](const json::object& o) {
    offenders.row({cell(o, "kind"), cell(o, "port"), cell(o, "mac"), cell(o, "ip"),
                   cell(o, "per_minute"), member(o)});
  });
  if (offenders.size() > 0) text += "\n" + offenders.text();
  return text;
}

}  // namespace cli
