// SPDX-License-Identifier: GPL-2.0-or-later
// Proxy ARP/ND: every knob of RFC 9161 and what an exchange wants beyond. A single key can be right
// and still be nonsense beside the others: check_proxy() refuses that.
#include "config/load_proxy.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "config/loader.h"

namespace config {
namespace {

using namespace std::chrono_literals;
using proxyarp::FloodTo;
using proxyarp::Settings;

constexpr uint64_t kMonth = 2'592'000;  // seconds

template <class T>
void assign_number(T& to, const Value& value, uint64_t least, uint64_t most) {
  if (const auto number = read_number(value, least, most)) to = static_cast<T>(*number);
}

std::optional<FloodTo> read_flood(const Value& value) {
  static constexpr Word<FloodTo> kWords[] = {{"true", {true, true}},
                                             {"false", {false, false}},
                                             {"core", {true, false}},
                                             {"local", {false, true}}};
  return read_word(value, kWords);
}

// --- duplicate addresses
const Table<proxyarp::DuplicateDetection>& duplicate_ip_table() {
  using D = proxyarp::DuplicateDetection;
  static const Table<D> table{
      "broadcast-domains[].duplicate-ip",
      {
          {"enabled", [](const Value& v, D& d) { assign(d.enabled, read_bool(v)); }},
          {"moves", [](const Value& v, D& d) { assign_number(d.moves, v, 2, 1000); }},
          {"window", [](const Value& v, D& d) { assign(d.window, read_seconds(v, 1, 86400)); }},
          {"hold",
           [](const Value& v, D& d) { assign(d.hold_down, read_seconds(v, 1, 86400, true)); }},
          {"confirm",
           [](const Value& v, D& d) { assign(d.confirm_wait, read_seconds(v, 1, 600)); }},
          {"anti-spoof-mac", [](const Value& v, D& d) { d.anti_spoof_mac = read_mac(v); }},
      }};
  return table;
}

// --- addresses that nobody has
const Table<proxyarp::Sponge>& sponge_table() {
  using S = proxyarp::Sponge;
  static const Table<S> table{
      "broadcast-domains[].sponge",
      {
          {"mac", [](const Value& v, S& s) { s.mac = read_mac(v); }},
          {"queue", [](const Value& v, S& s) { assign_number(s.queue, v, 2, 100'000); }},
          {"rate", [](const Value& v, S& s) { assign(s.rate, read_decimal(v, 1, 1'000'000)); }},
          {"pending", [](const Value& v, S& s) { assign_number(s.pending, v, 1, 1000); }},
          {"age", [](const Value& v, S& s) { assign(s.age, read_seconds(v, 1, 86400)); }},
          {"probe-rate",
           [](const Value& v, S& s) { assign(s.probe_rate, read_decimal(v, 1, 10'000)); }},
          {"flood-protection",
           [](const Value& v, S& s) { assign(s.flood_protection, read_decimal(v, 0, 10'000)); }},
          {"passive", [](const Value& v, S& s) { assign(s.passive, read_bool(v)); }},
          {"observe", [](const Value& v, S& s) { assign(s.observe, read_bool(v)); }},
          {"announce", [](const Value& v, S& s) { assign(s.announce, read_bool(v)); }},
          {"learning",
           [](const Value& v, S& s) { assign(s.learning, read_seconds(v, 1, 86400, true)); }},
          {"sweep-interval",
           [](const Value& v, S& s) {
             assign(s.sweep_interval, read_seconds(v, 10, kMonth, true));
           }},
          {"sweep-silence",
           [](const Value& v, S& s) { assign(s.sweep_silence, read_seconds(v, 10, kMonth)); }},
      }};
  return table;
}

const Table<proxyarp::UnassignedPrefix>& unassigned_table() {
  using U = proxyarp::UnassignedPrefix;
  using proxyarp::Unassigned;
  static constexpr Word<Unassigned> kPolicies[] = {{"by-profile", Unassigned::ByProfile},
                                                   {"flood", Unassigned::Flood},
                                                   {"drop", Unassigned::Drop},
                                                   {"sponge", Unassigned::Sponge}};
  static const Table<U> table{
      "broadcast-domains[].unassigned[]",
      {
          {"prefix", [](const Value& v, U& u) { assign(u.prefix, read_prefix(v)); }, true},
          {"policy", [](const Value& v, U& u) { assign(u.policy, read_word(v, kPolicies)); }, true},
      }};
  return table;
}

void read_unassigned(const Value& value, Settings& settings) {
  for (const Value& item : read_items(value, "prefixes")) {
    proxyarp::UnassignedPrefix one;
    const Present present = read_table(item, unassigned_table(), one);
    if (!present.contains("prefix") || one.prefix == net::IpPrefix{}) continue;
    if (std::ranges::find(settings.unassigned, one.prefix, &proxyarp::UnassignedPrefix::prefix) !=
        settings.unassigned.end())
      item.error(fmt::format("{} is listed twice", net::to_string(one.prefix)));
    else
      settings.unassigned.push_back(one);
  }
}

const Table<proxyarp::Decoys>& decoy_table() {
  using D = proxyarp::Decoys;
  static const Table<D> table{
      "broadcast-domains[].decoys",
      {
          {"addresses",
           [](const Value& v, D& d) { d.addresses = read_set(v, "addresses", read_unicast); },
           true},
          {"interval",
           [](const Value& v, D& d) { assign(d.interval, read_seconds(v, 1, kMonth, true)); }},
      }};
  return table;
}

// --- the keys of the domain itself
using F = std::vector<Field<Settings>>;

F flood_fields() {
  return {
      {"flood-unknown",
       [](const Value& v, Settings& s) {
         if (const auto to = read_flood(v)) s.flood_unknown_arp = s.flood_unknown_ns = *to;
       }},
      {"flood-unknown-arp",
       [](const Value& v, Settings& s) { assign(s.flood_unknown_arp, read_flood(v)); }},
      {"flood-unknown-ns",
       [](const Value& v, Settings& s) { assign(s.flood_unknown_ns, read_flood(v)); }},
      {"flood-gratuitous",
       [](const Value& v, Settings& s) {
         if (const auto to = read_flood(v))
           s.flood_gratuitous_arp = s.flood_router_na = s.flood_host_na = *to;
       }},
      {"flood-gratuitous-arp",
       [](const Value& v, Settings& s) { assign(s.flood_gratuitous_arp, read_flood(v)); }},
      {"flood-router-na",
       [](const Value& v, Settings& s) { assign(s.flood_router_na, read_flood(v)); }},
      {"flood-host-na",
       [](const Value& v, Settings& s) { assign(s.flood_host_na, read_flood(v)); }},
  };
}

F answer_fields() {
  using proxyarp::Probes;
  using proxyarp::UnicastForward;
  using proxyarp::UnknownOptions;
  static constexpr Word<UnknownOptions> kUnknown[] = {
      {"reply", UnknownOptions::Reply},
      {"discard", UnknownOptions::Discard},
      {"unicast-forward", UnknownOptions::UnicastForward},
      {"forward", UnknownOptions::Forward}};
  static constexpr Word<UnicastForward> kForward[] = {
      {"never", UnicastForward::Never},
      {"unknown-options", UnicastForward::UnknownOptions},
      {"always", UnicastForward::Always}};
  static constexpr Word<Probes> kProbes[] = {
      {"strangers", Probes::Strangers}, {"pass", Probes::Pass}, {"ignore", Probes::Ignore}};
  return {
      {"unknown-options",
       [](const Value& v, Settings& s) { assign(s.unknown_options, read_word(v, kUnknown)); }},
      {"known-options",
       [](const Value& v, Settings& s) {
         const auto options = read_set(v, "option types",
                                       [](const Value& item) { return read_number(item, 1, 255); });
         s.known_options.clear();
         for (const uint64_t option : options) s.known_options.insert(static_cast<uint8_t>(option));
       }},
      {"unicast-forward",
       [](const Value& v, Settings& s) { assign(s.unicast_forward, read_word(v, kForward)); }},
      {"probes", [](const Value& v, Settings& s) { assign(s.probes, read_word(v, kProbes)); }},
      {"unassigned", read_unassigned},
      {"exempt",
       [](const Value& v, Settings& s) { s.exempt = read_set(v, "prefixes", read_prefix); }},
      {"sponge", [](const Value& v, Settings& s) { read_table(v, sponge_table(), s.sponge); }},
      {"decoys", [](const Value& v, Settings& s) { read_table(v, decoy_table(), s.decoys); }},
      {"default-router",
       [](const Value& v, Settings& s) { assign(s.default_router, read_bool(v)); }},
  };
}

F table_fields() {
  using proxyarp::AdvertiseNeighbors;
  using proxyarp::LinkLocal;
  static constexpr Word<LinkLocal> kLinkLocal[] = {{"learn", LinkLocal::Learn},
                                                   {"eui-64", LinkLocal::Eui64},
                                                   {"both", LinkLocal::Both},
                                                   {"none", LinkLocal::None}};
  static constexpr Word<AdvertiseNeighbors> kAdvertise[] = {{"router", AdvertiseNeighbors::Router},
                                                            {"host", AdvertiseNeighbors::Host},
                                                            {"all", AdvertiseNeighbors::All}};
  return {
      {"learning", [](const Value& v, Settings& s) { assign(s.learning, read_bool(v)); }},
      {"link-local",
       [](const Value& v, Settings& s) { assign(s.link_local, read_word(v, kLinkLocal)); }},
      {"link-locals-per-mac",
       [](const Value& v, Settings& s) { assign_number(s.link_locals_per_mac, v, 0, 64); }},
      {"advertise-neighbors",
       [](const Value& v, Settings& s) { assign(s.advertise, read_word(v, kAdvertise)); }},
      {"anycast", [](const Value& v, Settings& s) { assign(s.anycast, read_bool(v)); }},
      {"anycast-macs",
       [](const Value& v, Settings& s) { assign_number(s.anycast_macs, v, 1, 64); }},
      {"duplicate-ip",
       [](const Value& v, Settings& s) { read_table(v, duplicate_ip_table(), s.duplicates); }},
      {"age-time",
       [](const Value& v, Settings& s) { assign(s.age_time, read_seconds(v, 1, kMonth)); }},
      {"refresh",
       [](const Value& v, Settings& s) { assign(s.refresh, read_seconds(v, 1, kMonth, true)); }},
      {"announcements-per-second",
       [](const Value& v, Settings& s) {
         assign_number(s.announcements_per_second, v, 1, 100'000);
       }},
      {"new-bindings-per-second",
       [](const Value& v, Settings& s) {
         assign_number(s.new_bindings_per_second, v, 1, 100'000);
       }},
      {"max-bindings",
       [](const Value& v, Settings& s) { assign_number(s.max_bindings, v, 1, 1'048'576); }},
      {"max-bindings-per-port",
       [](const Value& v, Settings& s) { assign_number(s.max_bindings_per_port, v, 1, 65536); }},
  };
}

// --- what must hold between keys

// A key of the domain, and below it.
struct Keys {
  const Value& domain;
  const Present& present;
  Value operator()(std::string_view key, std::string_view below = {}) const {
    const auto found = present.find(key);
    if (found == present.end()) return domain;
    const Node& node = *found->second.node;
    for (std::size_t i = 0; i < node.keys.size() && !below.empty(); ++i)
      if (node.keys[i].text == below)
        return {node.items[i].get(), fmt::format("{}.{}", found->second.where, below),
                domain.report};
    return found->second;
  }
  bool has(std::string_view key) const { return present.contains(key); }
};

// Who has which MAC and address by the settings and the exports, as words.
struct Members {
  std::map<net::MacAddress, std::string> macs;
  std::map<net::IpAddress, std::string> addresses;

  explicit Members(const BroadcastDomain& domain) {
    for (const auto& port : domain.ports) {
      const std::string text = "port " + quote(port.interface);
      for (const auto& mac : port.macs) macs.emplace(mac, text);
      for (const auto& address : port.addresses) addresses.emplace(address, text);
    }
    for (const auto& binding : domain.proxy.bindings) {
      const std::string text = binding.member_name.empty()
                                   ? fmt::format("AS{}", binding.member_as.value)
                                   : quote(binding.member_name);
      for (const auto& mac : binding.macs) macs.emplace(mac, text);
      addresses.emplace(binding.ip, text);
    }
  }
};

bool inside(const std::vector<net::IpPrefix>& prefixes, const net::IpAddress& address) {
  return std::ranges::any_of(prefixes,
                             [&](const net::IpPrefix& prefix) { return prefix.contains(address); });
}

void check_macs(const Keys& keys, const Settings& proxy, const Members& members) {
  const auto foreign = [&](const std::optional<net::MacAddress>& mac, const Value& at) {
    if (!mac) return;
    if (const auto owner = members.macs.find(*mac); owner != members.macs.end())
      at.error(fmt::format("{} is a MAC address of {}", net::to_string(*mac), owner->second));
  };
  foreign(proxy.duplicates.anti_spoof_mac, keys("duplicate-ip", "anti-spoof-mac"));
  foreign(proxy.sponge.mac, keys("sponge", "mac"));
  if (proxy.sponge.mac && proxy.sponge.mac == proxy.duplicates.anti_spoof_mac)
    keys("sponge", "mac").error("is the anti-spoof MAC too: frames to it could not be told apart");
}

void check_decoys(const Keys& keys, const BroadcastDomain& domain, const Members& members) {
  const Value list = keys("decoys", "addresses");
  for (std::size_t i = 0; i < domain.proxy.decoys.addresses.size(); ++i) {
    const net::IpAddress& decoy = domain.proxy.decoys.addresses[i];
    const Value at =
        list.node->kind == Node::Kind::List && i < list.node->items.size() ? list.item(i) : list;
    if (const auto owner = members.addresses.find(decoy); owner != members.addresses.end())
      at.error(fmt::format("{} is an address of {}; a decoy must be nobody's",
                           net::to_string(decoy), owner->second));
    else if (std::ranges::find(domain.pe_addresses, decoy) != domain.pe_addresses.end())
      at.error(
          fmt::format("{} is in pe-addresses; a decoy must be nobody's", net::to_string(decoy)));
    else if (std::ranges::any_of(domain.proxy.prefixes, [&](const net::IpPrefix& prefix) {
               return prefix.is_network_or_broadcast(decoy);
             }))
      at.error(fmt::format("{} is a network or broadcast address", net::to_string(decoy)));
  }
}

// What a rule is about must be on the LAN.
void check_prefixes(const Keys& keys, const Settings& proxy) {
  if (proxy.prefixes.empty()) return;
  for (const auto& one : proxy.unassigned)
    if (std::ranges::none_of(proxy.prefixes, [&](const net::IpPrefix& lan) {
          return lan.contains(one.prefix.address) && lan.length <= one.prefix.length;
        }))
      keys("unassigned")
          .error(fmt::format("{} is not inside of prefixes", net::to_string(one.prefix)));
  for (const auto& exempt : proxy.exempt)
    if (!inside(proxy.prefixes, exempt.address) && !exempt.address.is_link_local() &&
        std::ranges::none_of(
            proxy.prefixes, [&](const net::IpPrefix& lan) { return exempt.contains(lan.address); }))
      keys("exempt").error(
          fmt::format("{} has nothing to do with prefixes", net::to_string(exempt)));
}

// RFC 9161 section 3.6: floods must not be suppressed unless every local binding is known.
void check_flooding(const Keys& keys, const BroadcastDomain& domain) {
  const Settings& proxy = domain.proxy;
  const FloodTo both{true, true};
  if (!proxy.learns() || (proxy.unknown_arp() == both && proxy.unknown_ns() == both)) return;
  if (!proxy.unassigned.empty()) return;  // the policy for silent hosts
  const auto unknown = std::ranges::find_if(domain.ports, [&](const dataplane::MemberPort& port) {
    return std::ranges::none_of(proxy.bindings, [&](const auto& binding) {
      return binding.port == port.interface ||
             (binding.port.empty() && std::ranges::any_of(binding.macs, [&](const auto& mac) {
                return std::ranges::find(port.macs, mac) != port.macs.end();
              }));
    });
  });
  if (unknown == domain.ports.end()) return;
  keys(keys.has("flood-unknown")       ? "flood-unknown"
       : keys.has("flood-unknown-arp") ? "flood-unknown-arp"
       : keys.has("flood-unknown-ns")  ? "flood-unknown-ns"
                                       : "learning")
      .warning(fmt::format("requests for unknown addresses are not flooded everywhere, but the "
                           "addresses of port {} are only learned: as long as it is silent it "
                           "can't be found (RFC 9161, 3.6); give its addresses, or say in "
                           "unassigned what becomes of such requests",
                           quote(unknown->interface)));
}

void check_sponge(const Keys& keys, const Settings& proxy) {
  const bool used = std::ranges::any_of(
      proxy.unassigned, [](const auto& one) { return one.policy == proxyarp::Unassigned::Sponge; });
  if (keys.has("sponge") && !used)
    keys("sponge").warning("no prefix in unassigned has the policy sponge: without effect");
  if (used && keys.has("pe-addresses") && !proxy.sponge.mac)
    keys("pe-addresses")
        .warning(
            "the sponge needs a mac of its own, or what is sent to dead addresses is not "
            "told from what is sent to this PE, and not counted");
}

void check_times(const Keys& keys, const Settings& proxy) {
  if (proxy.refresh && *proxy.refresh >= proxy.age_time)
    keys("refresh").error(
        fmt::format("must be shorter than age-time, {} s: bindings would age "
                    "before they are refreshed",
                    proxy.age_time.count()));
  if (proxy.refresh && *proxy.refresh == 0s && proxy.learns() && keys.has("refresh"))
    keys("refresh").warning(
        "bindings of members that are alive but silent will age out (RFC 9161, 3.5)");
}

void check_anycast(const Keys& keys, const Settings& proxy) {
  if (proxy.anycast && keys.has("duplicate-ip"))
    keys("duplicate-ip")
        .warning("with anycast several MACs may have one address: duplicates are not detected");
  if (!proxy.anycast && keys.has("anycast-macs"))
    keys("anycast-macs").warning("without anycast: without effect");
}

void check_pe_addresses(const Keys& keys, const BroadcastDomain& domain, const Members& members) {
  for (const auto& address : domain.pe_addresses) {
    if (const auto owner = members.addresses.find(address); owner != members.addresses.end())
      keys("pe-addresses")
          .error(fmt::format("{} is an address of {}", net::to_string(address), owner->second));
    if (!domain.proxy.prefixes.empty() && !inside(domain.proxy.prefixes, address))
      keys("pe-addresses").error(fmt::format("{} is outside of prefixes", net::to_string(address)));
  }
}

}  // namespace

std::vector<Field<Settings>> proxy_rule_fields() {
  F all;
  for (const F& part : {table_fields(), flood_fields(), answer_fields()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void check_proxy(const Value& domain, const Present& present, const BroadcastDomain& settings) {
  const Keys keys{domain, present};
  const Members members(settings);
  check_macs(keys, settings.proxy, members);
  check_decoys(keys, settings, members);
  check_prefixes(keys, settings.proxy);
  check_flooding(keys, settings);
  check_sponge(keys, settings.proxy);
  check_times(keys, settings.proxy);
  check_anycast(keys, settings.proxy);
  check_pe_addresses(keys, settings, members);
}

void proxy_keys(std::vector<std::string>& keys) {
  append_keys(keys, duplicate_ip_table());
  append_keys(keys, sponge_table());
  append_keys(keys, unassigned_table());
  append_keys(keys, decoy_table());
}

}  // namespace config
