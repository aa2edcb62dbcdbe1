// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <string_view>

namespace peerland {
namespace {

namespace json = boost::json;

constexpr uint64_t kMaxRouteType = 11, kMaxVni = 0xffffff;

std::optional<uint64_t> number(const std::string& text, uint64_t least, uint64_t most) {
  uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return parsed < least || parsed > most ? std::nullopt : std::optional(parsed);
}

std::optional<bool> flag(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

constexpr std::size_t kLongestFrame = 9234;  // jumbo, with an Ethernet header and two tags

// Hexadecimal digits, at most a jumbo frame.
std::optional<std::vector<uint8_t>> octets(const std::string& text) {
  if (text.empty() || text.size() % 2 != 0 || text.size() / 2 > kLongestFrame) return std::nullopt;
  std::vector<uint8_t> out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char* end = text.data() + 2 * i + 2;
    const auto [stop, error] = std::from_chars(end - 2, end, out[i], 16);
    if (error != std::errc{} || stop != end) return std::nullopt;
  }
  return out;
}

std::optional<dataplane::Direction> direction(const std::string& text) {
  using enum dataplane::Direction;
  for (const auto one : {Ingress, Egress, Decap, Encap})
    if (text == dataplane::to_string(one)) return one;
  return std::nullopt;
}

// What was wanted, when the value is none.
const char* take(Filter& filter, std::string_view key, const std::string& text) {
  const auto word = [&](std::string& to) -> const char* {
    to = text;
    return text.empty() ? "a name" : nullptr;
  };
  const auto boolean = [&](bool& to) -> const char* {
    const auto value = flag(text);
    to = value.value_or(false);
    return value ? nullptr : "true or false";
  };
  if (key == "type") {
    const auto value = number(text, 1, kMaxRouteType);
    if (value) filter.type = static_cast<uint8_t>(*value);
    return value ? nullptr : "a route type, 1 to 11";
  }
  if (key == "vni") {
    const auto value = number(text, 0, kMaxVni);
    if (value) filter.vni = static_cast<uint32_t>(*value);
    return value ? nullptr : "a VNI, 0 to 16777215";
  }
  if (key == "mac") return (filter.mac = net::MacAddress::parse(text)) ? nullptr : "a MAC address";
  if (key == "ip") return (filter.ip = net::IpAddress::parse(text)) ? nullptr : "an IP address";
  if (key == "rd")
    return (filter.rd = net::RouteDistinguisher::parse(text))
               ? nullptr
               : "a route distinguisher, AS:number or address:number";
  if (key == "limit")
    return (filter.limit = number(text, 0, UINT64_MAX)) ? nullptr : "a number of rows";
  if (key == "neighbor") return word(filter.neighbor);
  if (key == "port") return word(filter.port);
  if (key == "domain") return word(filter.domain);
  if (key == "member") return word(filter.member);
  // One word for any of three.
  if (key == "match") {
    if ((filter.ip = net::IpAddress::parse(text)) || (filter.mac = net::MacAddress::parse(text)))
      return nullptr;
    return word(filter.member) == nullptr
               ? nullptr
               : "an IP address, a MAC address, or an AS number or name of a member";
  }
  if (key == "intervals")
    return (filter.intervals = number(text, 0, 96)) ? nullptr : "a number from 0 to 96";
  if (key == "frame") {
    auto frame = octets(text);
    if (frame) filter.frame = std::move(*frame);
    return frame ? nullptr : "an Ethernet frame in hexadecimal digits, at most 9234 octets";
  }
  if (key == "direction")
    return (filter.direction = direction(text)) ? nullptr : "ingress, egress, decap or encap";
  if (key == "rejected") return boolean(filter.rejected);
  if (key == "flagged") return boolean(filter.flagged);
  if (key == "best") return boolean(filter.best);
  if (key == "why") return boolean(filter.why);
  return "another filter";
}

}  // namespace

std::expected<Filter, std::string> parse_filter(const json::object& arguments,
                                                std::span<const char* const> allowed) {
  Filter filter;
  for (const auto& [key, value] : arguments) {
    const std::string_view name = key;
    if (std::ranges::find(allowed, name) == allowed.end()) {
      std::string known;
      for (const char* one : allowed) known += (known.empty() ? "" : ", ") + std::string(one);
      return std::unexpected(fmt::format("unknown filter \"{}\"; there is {}", name,
                                         known.empty() ? "none here" : known));
    }
    const std::string text =
        value.is_string() ? std::string(value.as_string()) : json::serialize(value);
    if (const char* wanted = take(filter, name, text))
      return std::unexpected(fmt::format("{}: expected {}, got \"{}\"", name, wanted, text));
  }
  return filter;
}

}  // namespace peerland
