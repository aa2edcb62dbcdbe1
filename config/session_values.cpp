// SPDX-License-Identifier: GPL-2.0-or-later
// Nothing of a key is ever shown in a message.
#include "config/session_values.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/loader.h"

namespace config {
namespace {

constexpr std::string_view kMinutes = "whole minutes";

bool is_interface(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." &&
         std::ranges::all_of(name,
                             [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != ':'; });
}

// Address and interface of "fe80::1%eth0"; no interface without one.
std::optional<ScopedAddress> split(const Value& value) {
  constexpr std::string_view kExpected = "an IPv4 or IPv6 address";
  const auto text = value.scalar(kExpected);
  if (!text) return std::nullopt;
  const std::size_t percent = text->find('%');
  ScopedAddress out;
  if (percent != std::string_view::npos) {
    out.interface = text->substr(percent + 1);
    if (!is_interface(out.interface)) {
      value.expected("the name of a network device behind the %, 1 to 15 characters");
      return std::nullopt;
    }
  }
  const auto address = net::IpAddress::parse(text->substr(0, percent));
  if (!address) {
    value.expected(kExpected);
    return std::nullopt;
  }
  out.address = *address;
  const bool scoped = address->is_v6() && address->is_link_local();
  if (!scoped && !out.interface.empty()) {
    value.error("only a link-local IPv6 address has an interface");
    return std::nullopt;
  }
  return out;
}

const Table<bgp::TcpAoKey>& ao_key_table() {
  using K = bgp::TcpAoKey;
  static constexpr Word<const char*> kAlgorithms[] = {{"hmac-sha-1-96", "hmac-sha-1-96"},
                                                      {"aes-128-cmac-96", "aes-128-cmac-96"},
                                                      {"hmac-sha-256", "hmac-sha-256"}};
  static const Table<K> table{
      "bgp.neighbors[].ao-keys[]",
      {
          {"send-id",
           [](const Value& v, K& k) {
             if (const auto id = read_number(v, 0, 255)) k.send_id = static_cast<uint8_t>(*id);
           },
           true},
          {"receive-id",
           [](const Value& v, K& k) {
             if (const auto id = read_number(v, 0, 255)) k.receive_id = static_cast<uint8_t>(*id);
           },
           true},
          {"algorithm",
           [](const Value& v, K& k) { assign(k.algorithm, read_word(v, kAlgorithms)); }},
          {"key",
           [](const Value& v, K& k) {
             const auto text = v.scalar("a key");
             if (!text) return;
             if (text->empty() || text->size() > 80)  // TCP_AO_MAXKEYLEN
               v.error(fmt::format("expected a key of 1 to 80 octets, got {}", text->size()));
             else
               k.key = *text;
           },
           true},
      }};
  return table;
}

}  // namespace

std::optional<ScopedAddress> read_scoped_address(const Value& value) {
  const auto scoped = split(value);
  if (scoped && (scoped->address.is_unspecified() || scoped->address.is_multicast())) {
    value.expected("an address of a host");
    return std::nullopt;
  }
  return scoped;
}

std::optional<ScopedAddress> read_scoped_listen_address(const Value& value) {
  const auto scoped = split(value);
  if (scoped && scoped->address.is_multicast()) {
    value.expected("an address of this host, 0.0.0.0 or ::");
    return std::nullopt;
  }
  if (scoped && scoped->address.is_v6() && scoped->address.is_link_local() &&
      scoped->interface.empty()) {
    value.error("a link-local address needs its interface, such as fe80::1%eth0");
    return std::nullopt;
  }
  return scoped;
}

std::vector<bgp::TcpAoKey> read_ao_keys(const Value& value) {
  std::vector<bgp::TcpAoKey> keys;
  for (const Value& item : read_items(value, "keys")) {
    bgp::TcpAoKey key;
    read_table(item, ao_key_table(), key);
    const bool twice = std::ranges::any_of(keys, [&](const bgp::TcpAoKey& other) {
      return other.send_id == key.send_id || other.receive_id == key.receive_id;
    });
    if (twice) item.error("send-id or receive-id listed twice");
    keys.push_back(std::move(key));
  }
  return keys;
}

std::optional<std::string> read_shutdown_message(const Value& value) {
  return read_text(value, 255);
}

std::optional<std::chrono::minutes> read_minutes(const Value& value, uint64_t most) {
  const auto seconds = read_seconds(value, 60, most * 60, true);
  if (!seconds) return std::nullopt;
  if (seconds->count() % 60 != 0) {
    value.expected(kMinutes);
    return std::nullopt;
  }
  return std::chrono::duration_cast<std::chrono::minutes>(*seconds);
}

void ao_key_keys(std::vector<std::string>& keys) { append_keys(keys, ao_key_table()); }

}  // namespace config
