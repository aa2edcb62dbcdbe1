// SPDX-License-Identifier: GPL-2.0-or-later
// Text to typed values, with what was expected and what was found.
#include "config/values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace config {
namespace {

std::optional<uint64_t> parse_digits(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Unit {
  std::string_view text;
  uint64_t factor;
};

// Digits and one of `units`; an absent unit has the factor `plain`.
std::optional<uint64_t> parse_with_unit(std::string_view text, std::span<const Unit> units,
                                        uint64_t plain) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_digits(text.substr(0, digits));
  if (!number) return std::nullopt;
  uint64_t factor = plain;
  if (const auto suffix = text.substr(digits); !suffix.empty()) {
    const auto unit = std::ranges::find(units, suffix, &Unit::text);
    if (unit == units.end()) return std::nullopt;
    factor = unit->factor;
  }
  if (*number > UINT64_MAX / factor) return std::nullopt;
  return *number * factor;
}

std::optional<uint64_t> parse_milliseconds(std::string_view text) {
  static constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  return parse_with_unit(text, kUnits, 1000);
}

bool printable(std::string_view text) {
  return std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::optional<net::IpAddress> parse_address(const Value& value, std::string_view expected) {
  if (value.node->kind == Node::Kind::Scalar)
    if (auto address = net::IpAddress::parse(value.node->text)) return address;
  value.expected(expected);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> read_text(const Value& value, std::size_t most) {
  const auto text = value.scalar("text");
  if (!text) return std::nullopt;
  if (text->empty() || text->size() > most || !printable(*text)) {
    value.expected(fmt::format("1 to {} printable characters", most));
    return std::nullopt;
  }
  return std::string(*text);
}

std::optional<std::string> read_name(const Value& value) {
  constexpr std::string_view kExpected = "a name of 1 to 64 letters, digits, '.', '_' or '-'";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  if (!is_name(*text)) {
    value.expected(kExpected);
    return std::nullopt;
  }
  return std::string(*text);
}

std::optional<std::string> read_interface(const Value& value) {
  constexpr std::string_view kExpected = "the name of a network device, 1 to 15 characters";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  const bool good = !text->empty() && text->size() <= 15 && *text != "." && *text != ".." &&
                    std::ranges::all_of(
                        *text, [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != ':'; });
  if (!good) {
    value.expected(kExpected);
    return std::nullopt;
  }
  return std::string(*text);
}

std::optional<std::string> read_absolute_path(const Value& value, std::size_t most) {
  const auto text = value.scalar("an absolute path");
  if (!text) return std::nullopt;
  if (!text->starts_with('/') || text->size() > most || !printable(*text)) {
    value.expected(fmt::format("an absolute path of at most {} characters", most));
    return std::nullopt;
  }
  return std::string(*text);
}

std::optional<bool> read_bool(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar) {
    if (value.node->text == "true") return true;
    if (value.node->text == "false") return false;
  }
  value.expected("true or false");
  return std::nullopt;
}

std::optional<uint64_t> read_number(const Value& value, uint64_t least, uint64_t most) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto number = parse_digits(value.node->text);
        number && *number >= least && *number <= most)
      return number;
  value.expected(fmt::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<double> read_decimal(const Value& value, double least, double most) {
  if (value.node->kind == Node::Kind::Scalar) {
    const std::string& text = value.node->text;
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error == std::errc{} && end == text.data() + text.size() && number >= least &&
        number <= most)
      return number;
  }
  value.expected(fmt::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<net::AsNumber> read_as(const Value& value) {
  const auto number = read_number(value, 1, UINT32_MAX);
  if (!number) return std::nullopt;
  if (*number == 23456) {  // RFC 6793 section 9
    value.error("AS 23456 is AS_TRANS and nobody's own");
    return std::nullopt;
  }
  return net::AsNumber(static_cast<uint32_t>(*number));
}

std::optional<std::chrono::seconds> read_seconds(const Value& value, uint64_t least, uint64_t most,
                                                 bool zero) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto ms = parse_milliseconds(value.node->text); ms && *ms % 1000 == 0) {
      const uint64_t seconds = *ms / 1000;
      if ((zero && seconds == 0) || (seconds >= least && seconds <= most))
        return std::chrono::seconds(seconds);
    }
  value.expected(
      fmt::format("a whole number of seconds, {}{} to {}", zero ? "0 or " : "", least, most));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> read_burst(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto ms = parse_milliseconds(value.node->text); ms && *ms >= 1 && *ms <= 1000)
      return std::chrono::milliseconds(*ms);
  value.expected("a duration from 1ms to 1s");
  return std::nullopt;
}

std::optional<uint64_t> read_rate(const Value& value) {
  static constexpr Unit kUnits[] = {{"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
  constexpr uint64_t kMost = 1'000'000'000'000;
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto rate = parse_with_unit(value.node->text, kUnits, 1); rate && *rate <= kMost)
      return rate;
  // 1 % of 100G is more than a whole 1G port: no protection for anybody.
  if (value.node->kind == Node::Kind::Scalar && value.node->text.ends_with('%')) {
    value.expected("an absolute rate a second such as 20, 100k, 1M or 2G, never percent of a port");
    return std::nullopt;
  }
  value.expected("a rate a second such as 20, 100k, 1M or 2G, at most 1000G");
  return std::nullopt;
}

std::optional<net::IpAddress> read_unicast(const Value& value) {
  const auto address = parse_address(value, "an IPv4 or IPv6 address");
  if (address && (address->is_unspecified() || address->is_multicast())) {
    value.expected("an address of a host");
    return std::nullopt;
  }
  return address;
}

std::optional<net::IpAddress> read_listen_address(const Value& value) {
  const auto address = parse_address(value, "an IPv4 or IPv6 address");
  if (address && address->is_multicast()) {
    value.expected("an address of this host, 0.0.0.0 or ::");
    return std::nullopt;
  }
  return address;
}

std::optional<net::IpAddress> read_ipv4(const Value& value) {
  constexpr std::string_view kExpected = "an IPv4 address";
  const auto address = parse_address(value, kExpected);
  if (address && (!address->is_v4() || address->is_unspecified() || address->is_multicast())) {
    value.expected(kExpected);
    return std::nullopt;
  }
  return address;
}

std::optional<net::IpPrefix> read_prefix(const Value& value) {
  const auto text = value.scalar("a prefix such as 192.0.2.0/24");
  if (!text) return std::nullopt;
  const auto prefix = net::IpPrefix::parse(*text);
  if (!prefix || prefix->address.is_multicast()) {
    value.expected("a prefix such as 192.0.2.0/24");
    return std::nullopt;
  }
  if (prefix->masked() != *prefix) {
    value.error(fmt::format("{} has host bits set; the prefix is {}", quote(*text),
                            net::to_string(prefix->masked())));
    return std::nullopt;
  }
  return prefix;
}

std::optional<net::MacAddress> read_mac(const Value& value) {
  if (value.node->kind == Node::Kind::Scalar)
    if (const auto mac = net::MacAddress::parse(value.node->text)) {
      if (mac->is_unicast()) return mac;
      value.error(fmt::format("{} is {} and can't be a member's", quote(value.node->text),
                              mac->is_zero()        ? "the zero address"
                              : mac->is_broadcast() ? "the broadcast address"
                                                    : "a group address"));
      return std::nullopt;
    }
  value.expected("a MAC address such as 02:00:00:00:00:01");
  return std::nullopt;
}

std::optional<std::pair<net::IpAddress, uint16_t>> read_endpoint(const Value& value) {
  constexpr std::string_view kExpected =
      "an address and a port such as 127.0.0.1:9477 or [::1]:9477";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  if (const auto colon = text->rfind(':'); colon != std::string_view::npos) {
    std::string_view host = text->substr(0, colon);
    const bool brackets = host.starts_with('[') && host.ends_with(']');
    if (brackets) host = host.substr(1, host.size() - 2);
    const auto address = net::IpAddress::parse(host);
    const auto port = parse_digits(text->substr(colon + 1));
    if (address && address->is_v6() == brackets && !address->is_multicast() && port && *port >= 1 &&
        *port <= 65535)
      return std::pair(*address, static_cast<uint16_t>(*port));
  }
  value.expected(kExpected);
  return std::nullopt;
}

void unknown_word(const Value& value, const std::vector<std::string>& known) {
  std::string what =
      fmt::format("expected {}, got {}", fmt::join(known, " or "), describe(*value.node));
  if (known.size() > 2)
    what = fmt::format("expected one of {}, got {}", fmt::join(known, ", "), describe(*value.node));
  value.error(what);
}

std::vector<Value> read_items(const Value& value, std::string_view of_what) {
  if (value.node->kind != Node::Kind::List) {
    value.expected(fmt::format("a list of {}", of_what));
    return {};
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < value.node->items.size(); ++i) items.push_back(value.item(i));
  return items;
}

std::vector<Entry> read_entries(const Value& value) {
  if (value.node->kind != Node::Kind::Map) {
    value.expected("a mapping");
    return {};
  }
  std::vector<Entry> entries;
  std::map<std::string, Place> seen;
  for (std::size_t i = 0; i < value.node->keys.size(); ++i) {
    const Key& key = value.node->keys[i];
    if (!key.is_scalar) {
      value.report->error(key.place, value.where, "expected a word as key");
      continue;
    }
    const std::string word = is_name(key.text) ? key.text : quote(key.text);
    const std::string where = value.where.empty() ? word : value.where + "." + word;
    if (const auto [first, fresh] = seen.emplace(key.text, key.place); !fresh) {
      value.report->error(key.place, where,
                          fmt::format("key given twice, first in line {}", first->second.line));
      continue;
    }
    entries.push_back({key, {value.node->items[i].get(), where, value.report}});
  }
  return entries;
}

Present read_known(const Value& value, const std::vector<std::string>& known,
                   const std::vector<std::string>& required) {
  Present present;
  if (value.node->kind != Node::Kind::Map) {
    value.expected("a mapping");
    return present;
  }
  for (Entry& entry : read_entries(value)) {
    if (std::ranges::find(known, entry.key.text) == known.end())
      value.report->error(entry.key.place, entry.value.where,
                          "unknown key" + did_you_mean(entry.key.text, known));
    else
      present.emplace(entry.key.text, entry.value);
  }
  for (const std::string& key : required)
    if (!present.contains(key)) value.error(fmt::format("missing key \"{}\"", key));
  return present;
}

}  // namespace config
