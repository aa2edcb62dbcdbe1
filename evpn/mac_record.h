// SPDX-License-Identifier: GPL-2.0-or-later
// What a MAC-VRF keeps of one MAC: the routes of other PEs, our own claim, the place chosen among
// them, and which of our routes are out. Inside evpn/ only.
#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "evpn/import.h"
#include "evpn/mac_vrf.h"

namespace evpn {

// What usable routes of other PEs say of one MAC, without the route they came in.
struct Claim {
  net::IpAddress vtep;  // frames go there
  uint32_t sequence = 0;
  bool sticky = false;
  auto operator<=>(const Claim&) const = default;
};

// RFC 7432 section 15: sticky, then the later sequence number, then the lowest PE address. A sticky
// MAC does not move, so that of two claims to it a sequence number proves nothing (section 15.2).
inline bool better(const Claim& a, const Claim& b) {
  if (a.sticky != b.sticky) return a.sticky;
  if (!a.sticky && a.sequence != b.sequence) return later(a.sequence, b.sequence);
  return a.vtep < b.vtep;
}

struct Local {
  net::IfIndex port;
  bool sticky = false;
  uint32_t sequence = 0;
  bool moved = false;  // came here from another PE: its routes carry the mobility community
};

using OptionalIp = std::optional<net::IpAddress>;

// A route of another PE and where its frames go. Not known (yet) while the A-D routes of its
// Ethernet segment are missing; then it makes no claim (RFC 7432 section 9.2.2).
struct RemoteRoute {
  RemotePath path;
  std::optional<net::IpAddress> to;
};

// Of the routes for one MAC.
struct RouteKey {
  OptionalIp ip;
  net::RouteDistinguisher rd;
  uint32_t ethernet_tag = 0;
  auto operator<=>(const RouteKey&) const = default;
};

struct Record {
  std::map<RouteKey, RemoteRoute> remote;
  std::map<Claim, uint32_t> claims;  // of `remote`, with the number of routes that make each
  std::optional<Local> local;
  std::set<net::IpAddress> local_ips;             // bindings that the proxy found
  std::map<OptionalIp, bgp::AttributesPtr> sent;  // our routes that are out
  MacPlace place;
  std::vector<net::TimePoint> moves;  // to or from a port of ours, inside the window
  std::optional<net::TimePoint> frozen_until;

  bool frozen() const { return frozen_until.has_value(); }
  // Only routes that wait for their segment.
  bool unresolved() const {
    return std::holds_alternative<std::monostate>(place) && claims.empty() && !remote.empty();
  }
  bool shown() const {
    return frozen() || unresolved() || !std::holds_alternative<std::monostate>(place);
  }
  bool sticky_here() const { return local && local->sticky; }
  bool idle() const {
    return remote.empty() && !local && local_ips.empty() && sent.empty() && !frozen();
  }
  const Claim* best() const {
    const Claim* chosen = nullptr;
    for (const auto& [claim, routes] : claims)
      if (chosen == nullptr || better(claim, *chosen)) chosen = &claim;
    return chosen;
  }
  // Of the routes that wait for their segment, the one that would be best.
  const RemotePath* waiting() const {
    const RemotePath* chosen = nullptr;
    for (const auto& [key, route] : remote)
      if (!route.to && (chosen == nullptr || better(claim_of(route.path, route.path.vtep),
                                                    claim_of(*chosen, chosen->vtep))))
        chosen = &route.path;
    return chosen;
  }
  // The segment that its place comes from, or 0.
  net::Esi segment() const {
    const auto* at = std::get_if<AtVtep>(&place);
    if (at == nullptr) return {};
    for (const auto& [key, route] : remote)
      if (route.to == at->vtep) return route.path.esi;
    return {};
  }
  void set_remote(const RouteKey& key, const std::optional<RemotePath>& path,
                  const std::optional<net::IpAddress>& to) {
    if (const auto old = remote.find(key); old != remote.end()) {
      drop_claim(old->second);
      remote.erase(old);
    }
    if (!path) return;
    remote.emplace(key, RemoteRoute{*path, to});
    if (to) ++claims[claim_of(*path, *to)];
  }
  // The same route goes elsewhere now. True when that is news.
  bool redirect(RemoteRoute& route, const std::optional<net::IpAddress>& to) {
    if (route.to == to) return false;
    drop_claim(route);
    route.to = to;
    if (to) ++claims[claim_of(route.path, *to)];
    return true;
  }

 private:
  static Claim claim_of(const RemotePath& path, const net::IpAddress& to) {
    return {to, path.sequence, path.sticky};
  }
  void drop_claim(const RemoteRoute& route) {
    if (!route.to) return;
    const auto claim = claims.find(claim_of(route.path, *route.to));
    if (--claim->second == 0) claims.erase(claim);
  }
};

}  // namespace evpn
