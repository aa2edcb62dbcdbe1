// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render_proxy.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "cli/cells.h"
#include "cli/table.h"

namespace cli {
namespace {

namespace json = boost::json;

std::string flags(const json::object& binding) {
  std::string text;
  if (flag(binding, "router")) text += "R";
  if (flag(binding, "override")) text += "O";
  if (flag(binding, "immutable")) text += "I";
  return text;
}

std::string place(const json::object& row, const std::string& prefix) {
  const std::string port = cell(row, (prefix + "port").c_str());
  return port != "-" ? port : cell(row, (prefix + "vtep").c_str());
}

std::string ago(const json::object& row, const char* key) {
  return row.contains(key) ? duration(number(row, key)) : "-";
}

}  // namespace

std::string binding_rows(const std::vector<json::object>& rows, bool with_header) {
  Table table({{"DOMAIN"},
               {"ADDRESS"},
               {"MAC"},
               {"KIND"},
               {"STATE"},
               {"PORT OR PE"},
               {"FLAGS"},
               {"AGE", true},
               {"BY KERNEL", true},
               {"BY DAEMON", true},
               {"LAST ASKER"},
               {"MEMBER"}});
  for (const json::object& b : rows)
    table.row({cell(b, "domain"), cell(b, "ip"), cell(b, "mac"), cell(b, "kind"), cell(b, "state"),
               place(b, ""), flags(b), cell(b, "kind") == "learned" ? ago(b, "age_seconds") : "-",
               cell(b, "kernel_answers"), cell(b, "daemon_answers"), cell(b, "last_asker"),
               member(b)});
  return table.text(with_header);
}

std::string render_bindings(const json::object& document) {
  std::vector<json::object> rows;
  each(document, "bindings", [&](const json::object& b) { rows.push_back(b); });
  return binding_rows(rows, true);
}

std::string render_duplicates(const json::object& document) {
  Table table({{"DOMAIN"},
               {"ADDRESS"},
               {"STATE"},
               {"MOVES", true},
               {"FIRST MAC"},
               {"AT"},
               {"AS", true},
               {"SECOND MAC"},
               {"AT"},
               {"AS", true},
               {"FOR", true},
               {"LEFT", true},
               {"ANTI-SPOOF"}});
  each(document, "duplicates", [&](const json::object& d) {
    const bool frozen = flag(d, "frozen");
    table.row({cell(d, "domain"), cell(d, "ip"), frozen ? "frozen" : "moving", cell(d, "moves"),
               cell(d, "first_mac"), place(d, "first_"), cell(d, "first_as"), cell(d, "second_mac"),
               place(d, "second_"), cell(d, "second_as"), ago(d, "since_seconds"),
               frozen ? ago(d, "remaining_seconds") : "-", cell(d, "anti_spoof")});
  });
  return table.size() == 0 ? "no duplicate addresses\n" : table.text();
}

std::string render_sponge(const json::object& document) {
  Table table({{"DOMAIN"},
               {"ADDRESS"},
               {"STATE"},
               {"FOR", true},
               {"QUEUED", true},
               {"A MINUTE", true},
               {"QUESTIONS", true},
               {"ANSWERS", true},
               {"BGP", true},
               {"ASKED", true},
               {"LAST ASKER"}});
  each(document, "sponge", [&](const json::object& s) {
    table.row({cell(s, "domain"), cell(s, "ip"), cell(s, "state"), ago(s, "state_seconds"),
               cell(s, "queued"), cell(s, "per_minute"), cell(s, "questions"), cell(s, "answers"),
               cell(s, "bgp_attempts"), ago(s, "asked_seconds"), cell(s, "last_asker")});
  });
  return table.size() == 0 ? "no address is watched by the sponge\n" : table.text();
}

std::string render_offenders(const json::object& document) {
  Table table({{"DOMAIN"},
               {"KIND"},
               {"PORT"},
               {"MAC"},
               {"ADDRESS"},
               {"COUNT", true},
               {"A MINUTE", true},
               {"FIRST", true},
               {"LAST", true},
               {"MEMBER"}});
  each(document, "offenders", [&](const json::object& o) {
    table.row({cell(o, "domain"), cell(o, "kind"), cell(o, "port"), cell(o, "mac"), cell(o, "ip"),
               cell(o, "count"), cell(o, "per_minute"), ago(o, "first_seconds"),
               ago(o, "last_seconds"), member(o)});
  });
  return table.size() == 0 ? "nobody\n" : table.text();
}

std::string render_explanation(const json::object& document) {
  const auto* found = document.if_contains("explanation");
  if (found == nullptr || !found->is_object()) return "";
  const auto& e = found->as_object();
  const auto who = [&](const char* by, const char* key) {
    return fmt::format("  by {}: {}\n", by, cell(e, key) == "-" ? "nobody" : cell(e, key));
  };
  std::string text = fmt::format("{} in {}\n", cell(e, "ip"), cell(e, "domain"));
  text += who("the database", "database") + who("learning", "learned") + who("EVPN", "evpn");
  text += fmt::format("The next question for it{} is: {}",
                      cell(e, "port") == "-" ? std::string() : " from port " + cell(e, "port"),
                      cell(e, "verdict"));
  if (cell(e, "answer") != "-")
    text += fmt::format(", with {}{}", cell(e, "answer"),
                        flag(e, "by_kernel") ? ", by the kernel" : ", by the daemon");
  text += "\n";
  std::size_t rule = 0;
  if (const auto* rules = e.if_contains("rules"); rules != nullptr && rules->is_array())
    for (const auto& one : rules->as_array())
      text += fmt::format("  {}. {}\n", ++rule,
                          one.is_string() ? std::string(one.as_string()) : json::serialize(one));
  if (const auto* binding = e.if_contains("binding"); binding != nullptr && binding->is_object())
    text += "\n" + binding_rows({binding->as_object()}, true);
  return text;
}

}  // namespace cli
