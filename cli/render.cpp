// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <tuple>
#include <vector>

#include "cli/table.h"

namespace cli {
namespace {

namespace json = boost::json;

// A field as a cell: "-" when absent or null.
std::string cell(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_string()) return std::string(value->as_string());
  if (value->is_bool()) return value->as_bool() ? "yes" : "no";
  return json::serialize(*value);
}

std::string list(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr || !value->is_array() || value->as_array().empty()) return "-";
  std::string text;
  for (const auto& item : value->as_array())
    text += (text.empty() ? "" : " ") +
            (item.is_string() ? std::string(item.as_string()) : json::serialize(item));
  return text;
}

int64_t number(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->as_int64();
  return value->is_uint64() ? static_cast<int64_t>(value->as_uint64()) : 0;
}

bool flag(const json::object& row, const char* key) {
  const auto* value = row.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// 75 -> "1m15s"
std::string duration(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string member(const json::object& row) {
  const std::string name = cell(row, "member_name"), as = cell(row, "member_as");
  if (as == "-") return name;
  return name == "-" ? "AS" + as : "AS" + as + " " + name;
}

template <class Visit>
void each(const json::object& document, const char* key, Visit visit) {
  const auto* rows = document.if_contains(key);
  if (rows == nullptr || !rows->is_array()) return;
  for (const auto& row : rows->as_array())
    if (row.is_object()) visit(row.as_object());
}

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
               {"STALE", true},
               {"SENT", true},
               {"QUEUED", true},
               {"LAST ERROR"}});
  each(document, "neighbors", [&](const json::object& n) {
    table.row({cell(n, "address"), cell(n, "description"), cell(n, "remote_as"), cell(n, "role"),
               cell(n, "state"), duration(number(n, "state_seconds")), cell(n, "routes_received"),
               cell(n, "routes_stale"), cell(n, "routes_advertised"), cell(n, "queued"),
               cell(n, "last_error")});
  });
  return table.text();
}

std::string routes(const json::object& document) {
  Table table(
      {{""}, {"RD"}, {"ROUTE"}, {"VNI", true}, {"NEXT HOP"}, {"FROM"}, {"COMMUNITIES"}, {"WHY"}});
  std::size_t count = 0;
  each(document, "routes", [&](const json::object& r) {
    ++count;
    const std::string mark = cell(r, "rejected") != "-" ? "r" : flag(r, "best") ? "*>" : "*";
    const std::string why = cell(r, "rejected") != "-" ? cell(r, "rejected") : cell(r, "reason");
    table.row({mark + (flag(r, "stale") ? "S" : ""), cell(r, "rd"), cell(r, "route"),
               cell(r, "vni"), cell(r, "next_hop"), cell(r, "neighbor"), list(r, "communities"),
               why});
  });
  return table.text() +
         fmt::format("{} paths.  *> best  * other  r rejected  S kept over a restart\n", count);
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
               flag(m, "duplicate") ? "duplicate" : cell(m, "where"),
               cell(m, local ? "port" : "vtep"), cell(m, "sticky"), cell(m, "sequence"),
               cell(m, "advertised"), list(m, "ips"), member(m)});
  });
  return table.text();
}

std::string bindings(const json::object& document) {
  Table table({{"DOMAIN"},
               {"ADDRESS"},
               {"MAC"},
               {"KIND"},
               {"WHERE"},
               {"PORT"},
               {"ANSWERED"},
               {"FLAGS"},
               {"MEMBER"}});
  each(document, "bindings", [&](const json::object& b) {
    std::string flags;
    if (flag(b, "router")) flags += "R";
    if (flag(b, "override")) flags += "O";
    if (flag(b, "immutable")) flags += "I";
    table.row({cell(b, "domain"), cell(b, "ip"), cell(b, "mac"), cell(b, "kind"), cell(b, "where"),
               cell(b, "port"), cell(b, "answered"), flags, member(b)});
  });
  return table.text();
}

std::string ports(const json::object& document) {
  Table table({{"DOMAIN"},
               {"PORT"},
               {"STATE"},
               {"FOR", true},
               {"POLICY"},
               {"ANSWERED", true},
               {"PUNTED", true},
               {"DROPPED", true},
               {"MACS"},
               {"MEMBER"}});
  std::string problems;
  each(document, "ports", [&](const json::object& p) {
    int64_t answered = 0, punted = 0, dropped = 0;
    each(p, "frames", [&](const json::object& f) {
      const std::string reason = cell(f, "reason");
      if (reason == "answered") answered += number(f, "packets");
      if (reason == "punted") punted += number(f, "packets");
      if (flag(f, "dropped")) dropped += number(f, "packets");
    });
    table.row({cell(p, "domain"), cell(p, "port"), cell(p, "state"),
               duration(number(p, "since_seconds")), cell(p, "policy"), fmt::to_string(answered),
               fmt::to_string(punted), fmt::to_string(dropped), list(p, "macs"), member(p)});
    if (cell(p, "problem") != "-")
      problems += fmt::format("{}: {}\n", cell(p, "port"), cell(p, "problem"));
  });
  return table.text() + problems;
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
  static const std::map<std::string, Renderer> kRenderers{
      {"summary", summary},   {"neighbors", neighbors}, {"routes", routes}, {"macs", macs},
      {"bindings", bindings}, {"ports", ports},         {"drops", drops}};
  const auto found = kRenderers.find(what);
  return found == kRenderers.end() ? json::serialize(document) + "\n" : found->second(document);
}

}  // namespace cli
