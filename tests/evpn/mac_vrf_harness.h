// SPDX-License-Identifier: GPL-2.0-or-later
// A MacVrf with a fake clock and a model beside it: every action is replayed onto the model, which
// complains of impossible ones, and after each event the model must equal the views.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evpn/mac_vrf.h"

namespace harness {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

inline net::IpAddress ip(const std::string& text) { return *net::IpAddress::parse(text); }
inline net::MacAddress mac(unsigned n) {
  return net::MacAddress({2, 0, 0, 0, static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)});
}
inline net::IpAddress pe(unsigned n) { return net::IpAddress::v4(0x0a000000u + n); }
inline net::RouteDistinguisher rd_of(const net::IpAddress& vtep) {
  return net::RouteDistinguisher::from_router_id(vtep, 100);
}
inline net::IfIndex port(uint32_t n) { return net::IfIndex(n); }

// "M1" for mac(1): short enough to read in an expectation.
inline std::string name(const net::MacAddress& m) {
  const auto b = m.bytes();
  return b[0] == 2 ? "M" + std::to_string(b[4] << 8 | b[5]) : net::to_string(m);
}
inline std::string text(const evpn::MacPlace& place) {
  if (const auto* at = std::get_if<evpn::AtPort>(&place))
    return "port" + std::to_string(at->port.value) + (at->sticky ? "!" : "");
  if (const auto* at = std::get_if<evpn::AtVtep>(&place))
    return net::to_string(at->vtep) + (at->sticky ? "!" : "");
  return "nowhere";
}
inline std::string text(const evpn::Route& route) {
  if (const auto* r = std::get_if<evpn::MacIp>(&route))
    return name(r->mac) + (r->ip ? "/" + net::to_string(*r->ip) : "");
  return evpn::to_string(route);
}
inline std::string text(const evpn::ArpNdFlags& f) {
  return std::string(f.router ? "R" : "") + (f.override_flag ? "O" : "") + (f.immutable ? "I" : "");
}
inline std::string text(const evpn::Action& action) {
  struct {
    std::string operator()(const evpn::Originate& a) {
      std::string out = "+" + text(a.route);
      for (const auto& c : a.attributes->extended_communities)
        if (c[0] == 0x06) out += " " + evpn::to_string(c);
      return out;
    }
    std::string operator()(const evpn::Withdraw& a) { return "-" + text(a.route); }
    std::string operator()(const evpn::MacPlaced& a) {
      return name(a.mac) + ": " + text(a.before) + " > " + text(a.after);
    }
    std::string operator()(const evpn::FloodChanged& a) {
      return std::string("flood ") + (a.added ? "+" : "-") + net::to_string(a.vtep);
    }
    std::string operator()(const evpn::RemoteBindingChanged& a) {
      if (!a.mac) return net::to_string(a.ip) + " unbound";
      return net::to_string(a.ip) + " = " + name(*a.mac) + " " + text(a.flags) + " @" +
             net::to_string(a.vtep);
    }
    std::string operator()(const evpn::Alarm& a) {
      static const char* const kNames[] = {"duplicate", "cleared", "sticky elsewhere", "mismatch"};
      return std::string("ALARM ") + kNames[static_cast<std::size_t>(a.kind)] + " " + name(a.mac) +
             " " + text(a.first) + " / " + text(a.second);
    }
  } visitor;
  return std::visit(visitor, action);
}

struct Binding {
  net::MacAddress mac;
  evpn::ArpNdFlags flags;
  net::IpAddress vtep;
  auto operator<=>(const Binding&) const = default;
};

struct Model {
  std::map<net::Bytes, std::pair<evpn::Route, bgp::AttributesPtr>> out;  // our routes, by key
  std::map<net::MacAddress, evpn::MacPlace> places;
  std::set<net::IpAddress> flood;
  std::map<net::IpAddress, Binding> bindings;

  static net::Bytes key(const evpn::Route& route) {
    const auto encoded = evpn::encode_item(route);
    const auto item = encoded.item();
    return {item.key().begin(), item.key().end()};
  }
  void operator()(const evpn::Originate& a) {
    ASSERT_TRUE(a.attributes);
    auto& slot = out[key(a.route)];
    EXPECT_FALSE(slot.second && *slot.second == *a.attributes) << "sent again: " << text(a.route);
    slot = {a.route, a.attributes};
  }
  void operator()(const evpn::Withdraw& a) {
    EXPECT_EQ(out.erase(key(a.route)), 1u) << "not out: " << text(a.route);
  }
  void operator()(const evpn::MacPlaced& a) {
    const auto found = places.find(a.mac);
    EXPECT_EQ(found == places.end() ? evpn::MacPlace{} : found->second, a.before) << name(a.mac);
    EXPECT_NE(a.before, a.after);
    if (a.after == evpn::MacPlace{})
      places.erase(a.mac);
    else
      places[a.mac] = a.after;
  }
  void operator()(const evpn::FloodChanged& a) {
    EXPECT_EQ(a.added ? flood.insert(a.vtep).second : flood.erase(a.vtep) == 1, true);
  }
  void operator()(const evpn::RemoteBindingChanged& a) {
    if (!a.mac) {
      EXPECT_EQ(bindings.erase(a.ip), 1u);
      return;
    }
    const Binding binding{*a.mac, a.flags, a.vtep};
    const auto found = bindings.find(a.ip);
    EXPECT_FALSE(found != bindings.end() && found->second == binding) << "no change";
    bindings[a.ip] = binding;
  }
  void operator()(const evpn::Alarm&) {}
};

inline evpn::Settings settings() {
  evpn::Settings s;
  s.name = "peering";
  s.vni = net::Vni(100);
  s.vtep = pe(5);
  s.router_id = pe(5);
  s.local_as = net::AsNumber(65000);
  return s;
}

// A MAC/IP or IMET route of another PE; every field can be bent before use.
struct Remote {
  evpn::MacIp route;
  bgp::Attributes attributes;

  Remote(unsigned from, unsigned m, const std::string& address = "") {
    route.rd = rd_of(pe(from));
    route.mac = mac(m);
    if (!address.empty()) route.ip = ip(address);
    route.label1 = 100;
    attributes.next_hop = pe(from);
    attributes.local_pref = 100;
    attributes.extended_communities = {evpn::make_route_target(65000, 100),
                                       evpn::make_encapsulation(8)};
  }
  Remote& seq(uint32_t sequence, bool sticky = false) {
    return also(evpn::make_mac_mobility({sticky, sequence}));
  }
  Remote& nd(bool router, bool override_flag, bool immutable) {
    return also(evpn::make_arp_nd({router, override_flag, immutable}));
  }
  Remote& also(const bgp::ExtendedCommunity& community) {
    attributes.extended_communities.push_back(community);
    return *this;
  }
};

inline net::Esi esi(unsigned n) {
  return net::Esi::from_bytes(
      std::array<uint8_t, 10>{0, 1, 2, 3, 4, 5, 6, 7, 8, static_cast<uint8_t>(n)});
}
// An Ethernet A-D route of a PE: per ES, or per EVI.
struct AutoDiscovery {
  evpn::EthernetAutoDiscovery route;
  bgp::Attributes attributes;

  AutoDiscovery(unsigned from, const net::Esi& segment, bool per_es, unsigned extra_rd = 0) {
    route.rd = net::RouteDistinguisher::from_router_id(
        pe(from), static_cast<uint16_t>((per_es ? 1 : 100) + extra_rd));
    route.esi = segment;
    route.ethernet_tag = per_es ? evpn::kMaxEthernetTag : 0;
    route.label = per_es ? 0 : 100;
    attributes = Remote(from, 1).attributes;
  }
};
inline AutoDiscovery per_es(unsigned from, const net::Esi& segment, unsigned extra_rd = 0) {
  return {from, segment, true, extra_rd};
}
inline AutoDiscovery per_evi(unsigned from, const net::Esi& segment) {
  return {from, segment, false};
}

class Pe {
 public:
  explicit Pe(const evpn::Settings& s = settings()) : vrf(s) {}

  evpn::MacVrf vrf;
  Model model;
  std::set<net::MacAddress> placeless;  // advertised, but neither here nor there
  net::TimePoint now{1000s};

  Texts take(const evpn::Actions& actions) {
    Texts out;
    for (const auto& action : actions) {
      std::visit(model, action);
      out.push_back(text(action));
    }
    check();
    return out;
  }

  // Of a MAC/IP or an A-D route.
  Texts announce(const auto& r) {
    return take(vrf.remote(r.route, std::make_shared<bgp::Attributes>(r.attributes), now));
  }
  Texts withdraw(const auto& r) { return take(vrf.remote(r.route, nullptr, now)); }
  Texts learn(unsigned m, uint32_t p, bool sticky = false) {
    return take(vrf.local_mac(mac(m), port(p), sticky, now));
  }
  Texts age(unsigned m, uint32_t p) { return take(vrf.local_mac_gone(mac(m), port(p), now)); }
  Texts down(uint32_t p) { return take(vrf.port_down(port(p), now)); }
  Texts bind(const std::string& address, unsigned m, evpn::ArpNdFlags flags = {}) {
    return take(vrf.local_binding(ip(address), mac(m), flags, now));
  }
  Texts unbind(const std::string& address) {
    return take(vrf.local_binding_gone(ip(address), now));
  }
  Texts dispute(const std::string& address, unsigned m) {
    placeless.insert(mac(m));
    return take(vrf.anti_spoof(ip(address), mac(m), now));
  }
  Texts settled(const std::string& address) { return take(vrf.anti_spoof_gone(ip(address), now)); }
  Texts own(std::optional<unsigned> m) {
    if (m) placeless.insert(mac(*m));
    return take(vrf.own_mac(m ? std::optional(mac(*m)) : std::nullopt, now));
  }
  Texts tick() { return take(vrf.tick(now)); }
  Texts clear(unsigned m) { return take(vrf.clear_duplicate(mac(m), now)); }

  std::string place(unsigned m) const { return text(vrf.place_of(mac(m))); }
  evpn::MacView view(unsigned m) const {
    evpn::MacView found;
    vrf.for_each_mac([&](const evpn::MacView& v) {
      if (v.mac == mac(m)) found = v;
    });
    return found;
  }
  bgp::AttributesPtr sent(const evpn::Route& route) const {
    const auto found = model.out.find(Model::key(route));
    return found == model.out.end() ? nullptr : found->second.second;
  }
  evpn::MacIp ours(unsigned m, const std::string& address = "") const {
    evpn::MacIp route;
    route.rd = vrf.rd();
    route.mac = mac(m);
    if (!address.empty()) route.ip = ip(address);
    route.label1 = 100;
    return route;
  }

  // What was said by actions is what the views show.
  void check() const {
    std::map<net::MacAddress, evpn::MacPlace> places;
    std::set<net::MacAddress> advertised;
    vrf.for_each_mac([&](const evpn::MacView& v) {
      if (v.place != evpn::MacPlace{}) places[v.mac] = v.place;
      EXPECT_EQ(vrf.place_of(v.mac), v.place);
      if (v.advertised) advertised.insert(v.mac);
      EXPECT_EQ(v.advertised, std::holds_alternative<evpn::AtPort>(v.place)) << name(v.mac);
    });
    EXPECT_EQ(places, model.places);
    check_pieces_and_counts();
    const auto flood = vrf.flood_list();
    EXPECT_EQ(std::set<net::IpAddress>(flood.begin(), flood.end()), model.flood);
    std::set<net::MacAddress> out;
    for (const auto& [key, sent] : model.out) {
      const auto* route = std::get_if<evpn::MacIp>(&sent.first);
      if (route == nullptr || placeless.contains(route->mac)) continue;
      EXPECT_TRUE(advertised.contains(route->mac)) << text(sent.first);
      if (!route->ip) out.insert(route->mac);
    }
    EXPECT_EQ(out, advertised);
  }

  void check_pieces_and_counts() const {
    std::vector<net::MacAddress> all, pieces;
    evpn::MacCounts counts;
    vrf.for_each_mac([&](const evpn::MacView& v) {
      all.push_back(v.mac);
      if (std::holds_alternative<evpn::AtPort>(v.place)) ++counts.local;
      if (std::holds_alternative<evpn::AtVtep>(v.place)) ++counts.remote;
      if (v.unresolved) ++counts.unresolved;
    });
    std::optional<net::MacAddress> last;
    for (auto piece = vrf.macs_after(last, 2); !piece.empty(); piece = vrf.macs_after(last, 2)) {
      for (const auto& v : piece) pieces.push_back(v.mac);
      last = piece.back().mac;
    }
    EXPECT_EQ(pieces, all);
    EXPECT_EQ(vrf.counts().local, counts.local);
    EXPECT_EQ(vrf.counts().remote, counts.remote);
    EXPECT_EQ(vrf.counts().unresolved, counts.unresolved);
  }
};

}  // namespace harness
