// SPDX-License-Identifier: GPL-2.0-or-later
// Typed readers of single values, and of mappings by a table of their keys. A reader that returns
// nothing has reported why.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/report.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"

namespace config {

template <class T, class U>
void assign(T& to, const std::optional<U>& from) {
  if (from) to = *from;
}

// --- scalars
// Printable text, 1 to `most` octets.
std::optional<std::string> read_text(const Value& value, std::size_t most = 255);
// A name: letters, digits, '.', '_' and '-', 1 to 64 of them.
std::optional<std::string> read_name(const Value& value);
// What Linux takes for a network device.
std::optional<std::string> read_interface(const Value& value);
std::optional<std::string> read_absolute_path(const Value& value, std::size_t most);
std::optional<bool> read_bool(const Value& value);
std::optional<uint64_t> read_number(const Value& value, uint64_t least, uint64_t most);
std::optional<double> read_decimal(const Value& value, double least, double most);  // "2.5"
std::optional<net::AsNumber> read_as(const Value& value);
// "90", "90s", "3m", "4h": whole seconds; also 0 with `zero`.
std::optional<std::chrono::seconds> read_seconds(const Value& value, uint64_t least, uint64_t most,
                                                 bool zero = false);
std::optional<std::chrono::milliseconds> read_burst(const Value& value);  // 1 ms to 1 s
// "20", "100k", "1M", "2G": decimal.
std::optional<uint64_t> read_rate(const Value& value);

// --- addresses
std::optional<net::IpAddress> read_unicast(const Value& value);  // not unspecified, not multicast
std::optional<net::IpAddress> read_listen_address(const Value& value);  // also 0.0.0.0 and ::
std::optional<net::IpAddress> read_ipv4(const Value& value);            // unicast
std::optional<net::IpPrefix> read_prefix(const Value& value);           // no host bits
std::optional<net::MacAddress> read_mac(const Value& value);            // of a host
std::optional<std::pair<net::IpAddress, uint16_t>> read_endpoint(const Value& value);

// --- words
template <class T>
struct Word {
  const char* text;
  T meaning;
};
void unknown_word(const Value& value, const std::vector<std::string>& known);
template <class T, std::size_t N>
std::optional<T> read_word(const Value& value, const Word<T> (&words)[N]) {
  std::vector<std::string> known;
  for (const Word<T>& word : words) {
    if (value.node->kind == Node::Kind::Scalar && value.node->text == word.text)
      return word.meaning;
    known.emplace_back(word.text);
  }
  unknown_word(value, known);
  return std::nullopt;
}

// --- lists
// Items of a list; an error and nothing when it is none.
std::vector<Value> read_items(const Value& value, std::string_view of_what);
// Each item by `reader`; one that comes twice is an error.
template <class Reader>
auto read_set(const Value& value, std::string_view of_what, Reader reader) {
  using T = typename decltype(reader(value))::value_type;
  std::vector<T> all;
  for (const Value& item : read_items(value, of_what)) {
    const auto one = reader(item);
    if (!one) continue;
    if (std::ranges::find(all, *one) != all.end())
      item.error("listed twice");
    else
      all.push_back(*one);
  }
  return all;
}

// --- mappings
struct Entry {
  Key key;
  Value value;
};
// Entries of a mapping with free keys, without repeated ones; errors for what is wrong.
std::vector<Entry> read_entries(const Value& value);

using Present = std::map<std::string, Value, std::less<>>;  // by key
// As read_entries(), where only `known` keys may be, and `required` ones must.
Present read_known(const Value& value, const std::vector<std::string>& known,
                   const std::vector<std::string>& required);

template <class T>
struct Field {
  const char* key;
  void (*read)(const Value& value, T& out);
  bool required = false;
};
template <class T>
struct Table {
  const char* path;  // of the mapping in the documentation
  std::vector<Field<T>> fields;

  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& field : fields) all.emplace_back(field.key);
    return all;
  }
};
// Reads by the table, in its order (not the file's): what others refer to stands first in it.
// Returns the keys that are there.
template <class T>
Present read_table(const Value& value, const Table<T>& table, T& out) {
  std::vector<std::string> required;
  for (const auto& field : table.fields)
    if (field.required) required.emplace_back(field.key);
  Present present = read_known(value, table.keys(), required);
  for (const auto& field : table.fields)
    if (const auto found = present.find(field.key); found != present.end())
      field.read(found->second, out);
  return present;
}

}  // namespace config
