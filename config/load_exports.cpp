// SPDX-License-Identifier: GPL-2.0-or-later
// `bgp.bmp` and `bgp.mrt`: who else is told what we know.
#include <fmt/core.h>

#include <algorithm>

#include "config/loader.h"

namespace config {
namespace {

using bgp::BmpSettings;
using bgp::MrtSettings;

std::optional<BmpSettings::Table> read_bmp_table(const Value& value) {
  const auto text = value.scalar("the name of a table");
  if (!text) return std::nullopt;
  std::vector<std::string> known;
  for (const auto& [name, table] : bgp::kBmpTables) {
    if (*text == name) return table;
    known.emplace_back(name);
  }
  unknown_word(value, known);
  return std::nullopt;
}

void read_bmp_tables(const Value& value, BmpSettings& bmp) {
  const auto tables = read_set(value, "tables", read_bmp_table);
  bmp.tables = 0;
  for (const BmpSettings::Table table : tables)
    bmp.tables = static_cast<uint8_t>(bmp.tables | table);
  if (bmp.tables == 0 && value.node->kind == Node::Kind::List && value.node->items.empty())
    value.error("expected at least one table");
}

const Table<BmpSettings>& bmp_table() {
  using B = BmpSettings;
  static const Table<B> table{
      "bgp.bmp[]",
      {
          {"address", [](const Value& v, B& b) { assign(b.address, read_unicast(v)); }, true},
          {"port",
           [](const Value& v, B& b) {
             if (const auto port = read_number(v, 1, 65535)) b.port = static_cast<uint16_t>(*port);
           },
           true},
          {"description", [](const Value& v, B& b) { assign(b.description, read_text(v)); }},
          {"local-address", [](const Value& v, B& b) { assign(b.local_address, read_unicast(v)); }},
          {"tables", read_bmp_tables},
          {"reconnect",
           [](const Value& v, B& b) { assign(b.reconnect, read_seconds(v, 1, 3600)); }},
          {"statistics",
           [](const Value& v, B& b) { assign(b.statistics, read_seconds(v, 1, 86400, true)); }},
          {"queue-limit",
           [](const Value& v, B& b) {
             constexpr uint64_t kMega = 1u << 20;
             if (const auto mega = read_number(v, 1, 65536)) b.queue_limit = *mega * kMega;
           }},
      }};
  return table;
}

const Table<MrtSettings>& mrt_table() {
  using M = MrtSettings;
  static const Table<M> table{
      "bgp.mrt",
      {
          {"file", [](const Value& v, M& m) { assign(m.file, read_absolute_path(v, 1024)); }, true},
          {"interval",
           [](const Value& v, M& m) { assign(m.interval, read_seconds(v, 10, 604800)); }},
      }};
  return table;
}

}  // namespace

void read_bmp(const Value& value, bgp::Settings& settings) {
  for (const Value& item : read_items(value, "BMP collectors")) {
    BmpSettings bmp;
    const Present present = read_table(item, bmp_table(), bmp);
    if (!present.contains("address") || !present.contains("port")) continue;
    if (const auto local = present.find("local-address");
        local != present.end() && bmp.local_address &&
        bmp.local_address->family() != bmp.address.family())
      local->second.error("local-address and address must both be IPv4 or both IPv6");
    if (std::ranges::any_of(settings.bmp, [&](const BmpSettings& other) {
          return other.address == bmp.address && other.port == bmp.port;
        }))
      item.error(
          fmt::format("collector {} port {} is listed twice", to_string(bmp.address), bmp.port));
    settings.bmp.push_back(std::move(bmp));
  }
}

void read_mrt(const Value& value, bgp::Settings& settings) {
  MrtSettings mrt;
  read_table(value, mrt_table(), mrt);
  settings.mrt = std::move(mrt);
}

void exports_keys(std::vector<std::string>& keys) {
  append_keys(keys, bmp_table());
  append_keys(keys, mrt_table());
}

}  // namespace config
