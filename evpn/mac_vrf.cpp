// SPDX-License-Identifier: GPL-2.0-or-later
// The MAC-VRF of one broadcast domain. Events of the data path, the proxy and BGP go in, actions
// come out. It owns
//   - for each MAC: the routes of other PEs, our own claim, and the one place chosen among them
//     (RFC 7432 sections 7.7 and 15);
//   - which of our routes are out, always made equal to what should be out (sync());
//   - the flood list (section 11) and the bindings of other PEs (section 10, RFC 9047).
//
// Who has a MAC: our own claim is made once, at local_mac(), against the routes known then, and is
// lost for good when a route beats it; the kernel learns the MAC again if it is still here. So a
// record with a local claim is always placed at its port. Routes of other PEs are kept whatever
// happens, and the best of them has the MAC when we have no claim.
#include "evpn/mac_vrf.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "evpn/import.h"
#include "evpn/mac_record.h"
#include "evpn/originate.h"
#include "evpn/remote_bindings.h"
#include "evpn/segments.h"

namespace evpn {
namespace {

enum class Cause : uint8_t { Other, RemoteRoute };

}  // namespace

struct MacVrf::Impl {
  explicit Impl(const Settings& s)
      : settings(s), originator(s), remote_bindings(s.anti_spoof_mac, s.anycast_macs) {}

  // RFC 9047 section 3.1. IPv6 bindings always carry it; of IPv4 only immutable ones need it.
  std::optional<ArpNdFlags> advertised_flags(const net::IpAddress& ip,
                                             const ArpNdFlags& flags) const {
    if (ip.is_v6()) return flags;
    if (!flags.immutable || !settings.arp_nd_for_v4) return std::nullopt;
    return ArpNdFlags{false, false, true};
  }

  Settings settings;
  Originator originator;
  bool started = false;
  std::map<net::MacAddress, Record> macs;
  std::set<std::pair<net::IfIndex, net::MacAddress>> by_port;  // of local claims
  std::set<std::pair<net::TimePoint, net::MacAddress>> holds;  // of frozen MACs
  std::map<net::IpAddress, std::map<net::MacAddress, ArpNdFlags>> local_bindings;
  // Addresses in dispute: ours, and routes of other PEs for the MAC, which is at no place.
  std::map<net::IpAddress, net::MacAddress> anti_spoofed;
  std::map<RouteKey, RemotePath> anti_spoof_routes;
  std::optional<net::MacAddress> own;  // of the PE itself; likewise at no place here
  RemoteBindings remote_bindings;
  Segments segments;
  std::map<std::tuple<net::RouteDistinguisher, uint32_t, net::IpAddress>, FloodEndpoint>
      flood_routes;
  std::map<net::IpAddress, uint32_t> flood_list;  // with the number of routes for each
  // When a sticky MAC was last reported at a place that isn't its own.
  std::map<net::MacAddress, std::map<MacPlace, net::TimePoint>> strays;

  // --- claims and moves

  void set_local(net::MacAddress mac, Record& record, const Local& local) {
    drop_local(mac, record);
    record.local = local;
    by_port.emplace(local.port, mac);
  }
  void drop_local(net::MacAddress mac, Record& record) {
    if (!record.local) return;
    by_port.erase({record.local->port, mac});
    record.local.reset();
  }
  bool beats(const Claim& claim, const Local& local) const {
    if (local.sticky) return false;  // provisioned here: never moved by anyone
    return better(claim, {settings.vtep, local.sequence, false});
  }

  // One more move. True when that makes the MAC a duplicate (RFC 7432 section 15.1): it is then
  // frozen where it was, and the move must not be carried out.
  bool is_one_move_too_many(net::MacAddress mac, Record& record, const MacPlace& to,
                            net::TimePoint now, Actions& out) {
    if (settings.duplicate_moves == 0) return false;  // off
    std::erase_if(record.moves,
                  [&](net::TimePoint at) { return now - at >= settings.duplicate_window; });
    record.moves.push_back(now);
    if (record.moves.size() < settings.duplicate_moves) return false;
    const bool for_ever = settings.duplicate_hold <= std::chrono::seconds{0} ||
                          settings.duplicate_hold >= net::kNever - now;
    record.frozen_until = for_ever ? net::kNever : now + settings.duplicate_hold;
    holds.emplace(*record.frozen_until, mac);
    out.push_back(Alarm{AlarmKind::DuplicateMac, mac, record.place, to});
    return true;
  }

  void unfreeze(net::MacAddress mac, Record& record, Actions& out) {
    holds.erase({*record.frozen_until, mac});
    record.frozen_until.reset();
    record.moves.clear();
    out.push_back(Alarm{AlarmKind::DuplicateMacCleared, mac, record.place, {}});
  }

  // Once for each place, and again when it is still seen there a window later.
  void report_stray(net::MacAddress mac, const MacPlace& owner, const MacPlace& stray,
                    net::TimePoint now, Actions& out) {
    auto& reported = strays[mac];
    const auto [at, fresh] = reported.try_emplace(stray, now);
    if (!fresh && now - at->second < settings.duplicate_window) return;
    at->second = now;
    out.push_back(Alarm{AlarmKind::StickyMacElsewhere, mac, owner, stray});
  }

  // --- the one place

  // A frozen MAC stays where it is for as long as it can be there at all.
  static bool stands(const Record& record) {
    if (std::holds_alternative<AtPort>(record.place)) return record.local.has_value();
    const auto* at = std::get_if<AtVtep>(&record.place);
    return at != nullptr && std::ranges::any_of(record.claims, [&](const auto& entry) {
             return entry.first.vtep == at->vtep;
           });
  }

  static MacPlace wanted(const Record& record) {
    if (record.frozen() && stands(record)) return record.place;
    if (record.local) return AtPort{record.local->port, record.local->sticky};
    if (const Claim* best = record.best()) return AtVtep{best->vtep, best->sticky};
    return {};
  }

  // Our claim against the best route; reports what contradicts a provisioned MAC.
  void contest(net::MacAddress mac, Record& record, Cause cause, net::TimePoint now, Actions& out) {
    const Claim* best = record.best();
    if (best == nullptr) return;
    const MacPlace there = AtVtep{best->vtep, best->sticky};
    if (record.sticky_here()) {
      const MacPlace here = AtPort{record.local->port, true};
      for (const auto& [claim, routes] : record.claims)
        report_stray(mac, here, AtVtep{claim.vtep, claim.sticky}, now, out);
      return;
    }
    if (best->sticky) {
      if (record.local) report_stray(mac, there, AtPort{record.local->port, false}, now, out);
      for (const auto& [claim, routes] : record.claims)  // provisioned at two PEs
        if (claim.sticky && claim.vtep != best->vtep)
          report_stray(mac, there, AtVtep{claim.vtep, true}, now, out);
    }
    if (!record.local || record.frozen() || !beats(*best, *record.local)) return;
    const bool counts = cause == Cause::RemoteRoute && !best->sticky;
    if (counts && is_one_move_too_many(mac, record, there, now, out)) return;
    drop_local(mac, record);
  }

  // Brings place, our routes and the bindings of other PEs in line with the claims.
  void settle(net::MacAddress mac, Record& record, Cause cause, net::TimePoint now, Actions& out) {
    const Claim* best = record.best();
    const bool provisioned = record.sticky_here() || (best != nullptr && best->sticky);
    // Provisioned MACs are immune: where they belong is known.
    const bool thaws = record.frozen() && (provisioned || *record.frozen_until <= now);
    if (thaws) unfreeze(mac, record, out);
    contest(mac, record, cause, now, out);
    if (const MacPlace place = wanted(record); place != record.place) {
      out.push_back(MacPlaced{mac, record.place, place});
      record.place = place;
    }
    sync(mac, record, out);
    if (thaws) {
      std::set<net::IpAddress> ips;
      for (const auto& [key, path] : record.remote)
        if (key.ip) ips.insert(*key.ip);
      for (const auto& ip : ips) choose_binding(ip, out);
    }
  }

  // --- our routes

  // Makes what is out equal to what should be out, withdrawals first. Of a frozen MAC nothing new
  // is sent (RFC 7432 section 15.1).
  void sync(net::MacAddress mac, Record& record, Actions& out) {
    std::map<OptionalIp, bgp::AttributesPtr> target;
    if (record.local) {
      const Local& local = *record.local;
      std::optional<MacMobility> mobility;
      if (local.sticky || local.moved) mobility = MacMobility{local.sticky, local.sequence};
      target[std::nullopt] = originator.mac_attributes(mobility, std::nullopt);
      for (const auto& ip : record.local_ips)
        target[ip] = originator.mac_attributes(mobility,
                                               advertised_flags(ip, local_bindings.at(ip).at(mac)));
    }
    std::erase_if(record.sent, [&](const auto& entry) {
      if (target.contains(entry.first)) return false;
      out.push_back(Withdraw{originator.mac_ip(mac, entry.first)});
      return true;
    });
    if (record.frozen()) return;
    for (const auto& [ip, attributes] : target) {
      auto& sent = record.sent[ip];
      if (sent == attributes) continue;  // shared: equal ones are one object
      sent = attributes;
      out.push_back(Originate{originator.mac_ip(mac, ip), attributes});
    }
  }

  // --- bindings of other PEs

  void choose_binding(net::IpAddress ip, Actions& out) {
    std::optional<RemoteBindings::Binding> winner;
    std::vector<RemoteBindings::Binding> others;
    const auto frozen = [&](net::MacAddress mac) {
      const auto found = macs.find(mac);
      return found != macs.end() && found->second.frozen();
    };
    const auto resolve = [&](const RemotePath& path) {
      return segments.resolve(path.esi, path.vtep);
    };
    if (!remote_bindings.choose(ip, frozen, resolve, winner, others)) return;
    out.push_back(binding_change(ip, winner, others));
  }
  static RemoteBindingChanged binding_change(net::IpAddress ip,
                                             const std::optional<RemoteBindings::Binding>& winner,
                                             const std::vector<RemoteBindings::Binding>& others) {
    RemoteBindingChanged change{ip, std::nullopt, {}, {}, {}};
    if (winner) {
      change.mac = winner->mac;
      change.flags = winner->flags;
      change.vtep = winner->vtep;
    }
    for (const auto& other : others) change.others.push_back({other.mac, other.flags, other.vtep});
    return change;
  }

  // --- MACs that are at no place

  bool placeless(net::MacAddress mac) const {
    return mac == settings.anti_spoof_mac || (own && mac == *own);
  }

  // Only what it says of an address counts.
  void remote_anti_spoof(const MacIp& route, const std::optional<RemotePath>& path, Actions& out) {
    const auto ip = bindable_ip(route);
    if (!ip) return;
    const RouteKey key{route.ip, route.rd, route.ethernet_tag};
    const auto known = anti_spoof_routes.find(key);
    if (known == anti_spoof_routes.end() ? !path : path && *path == known->second) return;
    if (path)
      anti_spoof_routes[key] = *path;
    else
      anti_spoof_routes.erase(known);
    remote_bindings.set(*ip, route, path);
    choose_binding(*ip, out);
  }

  void anti_spoof(net::IpAddress ip, net::MacAddress mac, Actions& out) {
    if (!mac.is_unicast() || ip.is_unspecified() || ip.is_multicast()) return;
    if (const auto known = anti_spoofed.find(ip); known != anti_spoofed.end()) {
      if (known->second == mac) return;
      anti_spoof_gone(ip, out);
    }
    anti_spoofed[ip] = mac;
    const ArpNdFlags flags{settings.default_router, true, false};
    out.push_back(
        Originate{originator.mac_ip(mac, ip),
                  originator.mac_attributes(MacMobility{true, 0}, advertised_flags(ip, flags))});
  }
  void anti_spoof_gone(net::IpAddress ip, Actions& out) {
    const auto known = anti_spoofed.find(ip);
    if (known == anti_spoofed.end()) return;
    out.push_back(Withdraw{originator.mac_ip(known->second, ip)});
    anti_spoofed.erase(known);
  }

  void own_mac(std::optional<net::MacAddress> mac, Actions& out) {
    if (mac && !mac->is_unicast()) mac.reset();
    if (mac == own) return;
    if (own) out.push_back(Withdraw{originator.mac_ip(*own, std::nullopt)});
    own = mac;
    if (own)
      out.push_back(Originate{originator.mac_ip(*own, std::nullopt),
                              originator.mac_attributes(MacMobility{true, 0}, std::nullopt)});
  }

  // --- events

  void forget_if_idle(net::MacAddress mac) {
    const auto found = macs.find(mac);
    if (found == macs.end() || !found->second.idle()) return;
    macs.erase(found);
    strays.erase(mac);
  }

  void remote(const MacIp& route, const bgp::AttributesPtr& attributes, net::TimePoint now,
              Actions& out) {
    if (!is_usable_key(settings, route)) return;
    const RouteKey key{route.ip, route.rd, route.ethernet_tag};
    const auto path = import_path(settings, route, attributes);
    if (route.mac == settings.anti_spoof_mac) return remote_anti_spoof(route, path, out);
    if (placeless(route.mac)) return;
    const auto known = macs.find(route.mac);
    if (!path && known == macs.end()) return;
    Record& record = known != macs.end() ? known->second : macs[route.mac];
    const auto old = record.remote.find(key);
    const bool known_route = old != record.remote.end();
    if (known_route ? path && *path == old->second.path : !path) return;  // no news
    if (known_route) segments.detach(old->second.path.esi, route.mac);
    if (path) segments.attach(path->esi, route.mac);
    record.set_remote(key, path, path ? segments.resolve(path->esi, path->vtep) : std::nullopt);
    if (const auto ip = bindable_ip(route)) remote_bindings.set(*ip, route, path);
    settle(route.mac, record, Cause::RemoteRoute, now, out);
    if (const auto ip = bindable_ip(route)) choose_binding(*ip, out);
    forget_if_idle(route.mac);
  }

  void remote(const InclusiveMulticast& route, const bgp::AttributesPtr& attributes, net::TimePoint,
              Actions& out) {
    if (!is_our_tag(settings, route.ethernet_tag)) return;
    const auto key = std::tuple(route.rd, route.ethernet_tag, route.originator);
    const auto found = flood_routes.find(key);
    std::optional<FloodEndpoint> before;
    if (found != flood_routes.end()) before = found->second;
    const auto after = import_endpoint(settings, route, attributes);
    if (after == before) return;
    if (after) {
      flood_routes[key] = *after;
      // Added before the old one goes, so that no frame misses the PE.
      if (++flood_list[after->endpoint] == 1) out.push_back(FloodChanged{after->endpoint, true});
      if (after->endpoint != after->next_hop)
        out.push_back(Alarm{AlarmKind::VtepMismatch,
                            {},
                            AtVtep{after->endpoint, false},
                            AtVtep{after->next_hop, false}});
    } else {
      flood_routes.erase(key);
    }
    if (before && --flood_list[before->endpoint] == 0) {
      flood_list.erase(before->endpoint);
      out.push_back(FloodChanged{before->endpoint, false});
    }
  }

  // RFC 7432 section 8.2: of all MACs of a segment at once.
  void remote(const EthernetAutoDiscovery& route, const bgp::AttributesPtr& attributes,
              net::TimePoint now, Actions& out) {
    if (!segments.set(route, import_segment(settings, route, attributes))) return;
    for (const auto& mac : segments.macs(route.esi)) {
      Record& record = macs.at(mac);
      bool news = false;
      std::set<net::IpAddress> ips;
      for (auto& [key, held] : record.remote) {
        if (held.path.esi != route.esi) continue;
        if (!record.redirect(held, segments.resolve(route.esi, held.path.vtep))) continue;
        news = true;
        if (key.ip) ips.insert(*key.ip);
      }
      if (!news) continue;
      settle(mac, record, Cause::RemoteRoute, now, out);
      for (const auto& ip : ips) choose_binding(ip, out);
    }
  }

  // The kernel's route to a PE came or went: the MACs whose frames go there move, wait or come
  // back.
  void reachable(const net::IpAddress& vtep, bool yes, net::TimePoint now, Actions& out) {
    if (!segments.set_reachable(vtep, yes)) return;
    for (auto& [mac, record] : macs) {
      bool news = false;
      std::set<net::IpAddress> ips;
      for (auto& [key, held] : record.remote) {
        if (held.path.vtep != vtep && !Segments::is_segment(held.path.esi)) continue;
        if (!record.redirect(held, segments.resolve(held.path.esi, held.path.vtep))) continue;
        news = true;
        if (key.ip) ips.insert(*key.ip);
      }
      if (!news) continue;
      settle(mac, record, Cause::Other, now, out);
      for (const auto& ip : ips) choose_binding(ip, out);
    }
    for (const auto& [key, path] : anti_spoof_routes)
      if (key.ip && path.vtep == vtep) choose_binding(*key.ip, out);
  }

  template <class Other>
  void remote(const Other&, const bgp::AttributesPtr&, net::TimePoint, Actions&) {
    // ES routes: we have no segments; IP prefixes and multicast state: not layer 2.
  }

  // What a local claim would be, or nothing when it must not be made.
  std::optional<Local> local_claim(net::MacAddress mac, Record& record, net::IfIndex port,
                                   bool sticky, net::TimePoint now, Actions& out) {
    const MacPlace here = AtPort{port, sticky};
    if (sticky) return Local{port, true, 0, false};
    if (record.frozen()) return std::nullopt;
    if (record.local) {
      if (record.local->port == port) return std::nullopt;  // known
      if (record.local->sticky) {
        report_stray(mac, record.place, here, now, out);
        return std::nullopt;
      }
      if (is_one_move_too_many(mac, record, here, now, out)) return std::nullopt;
      Local moved = *record.local;  // still our MAC: no new sequence number
      moved.port = port;
      return moved;
    }
    const Claim* best = record.best();
    const RemotePath* waiting = record.waiting();  // must not beat us when its segment comes
    if (best == nullptr && waiting == nullptr) return Local{port, false, 0, false};
    if (best == nullptr) return Local{port, false, waiting->sequence + 1, true};
    if (best->sticky) {
      report_stray(mac, record.place, here, now, out);
      return std::nullopt;
    }
    if (is_one_move_too_many(mac, record, here, now, out)) return std::nullopt;
    const bool waiting_is_later = waiting != nullptr && later(waiting->sequence, best->sequence);
    const uint32_t sequence = waiting_is_later ? waiting->sequence : best->sequence;
    return Local{port, false, sequence + 1, true};  // wraps
  }

  void local_mac(net::MacAddress mac, net::IfIndex port, bool sticky, net::TimePoint now,
                 Actions& out) {
    if (!mac.is_unicast()) return;
    if (placeless(mac)) {  // a member sends from it
      report_stray(mac, {}, AtPort{port, sticky}, now, out);
      return;
    }
    Record& record = macs[mac];
    if (record.frozen() && *record.frozen_until <= now)
      settle(mac, record, Cause::Other, now, out);  // its hold-down is over: judge it afresh
    if (const auto claim = local_claim(mac, record, port, sticky, now, out)) {
      const bool another_owner =
          sticky && (!record.sticky_here() || record.local->port != claim->port);
      if (another_owner) strays.erase(mac);
      set_local(mac, record, *claim);
    }
    settle(mac, record, Cause::Other, now, out);
    forget_if_idle(mac);
  }

  void local_mac_gone(net::MacAddress mac, net::IfIndex port, net::TimePoint now, Actions& out) {
    const auto found = macs.find(mac);
    if (found == macs.end()) return;
    Record& record = found->second;
    if (const auto stray = strays.find(mac); stray != strays.end()) {
      stray->second.erase(AtPort{port, false});
      if (stray->second.empty()) strays.erase(stray);
    }
    if (!record.local || record.local->port != port) return;
    drop_local(mac, record);
    settle(mac, record, Cause::Other, now, out);
    forget_if_idle(mac);
  }

  void port_down(net::IfIndex port, net::TimePoint now, Actions& out) {
    std::vector<net::MacAddress> behind;
    for (auto it = by_port.lower_bound({port, {}}); it != by_port.end() && it->first == port; ++it)
      behind.push_back(it->second);
    for (const auto& mac : behind) local_mac_gone(mac, port, now, out);
  }

  void resync(net::MacAddress mac, Actions& out) {
    if (const auto found = macs.find(mac); found != macs.end()) sync(mac, found->second, out);
    forget_if_idle(mac);
  }

  void local_binding(net::IpAddress ip, net::MacAddress mac, const ArpNdFlags& flags,
                     Actions& out) {
    if (!mac.is_unicast() || ip.is_unspecified() || ip.is_multicast()) return;
    // RFC 9047 / G14: the old MAC's route is withdrawn before the new one's goes out.
    const bool anycast = settings.anycast_macs > 1 && ip.is_v6();
    if (const auto old = local_bindings.find(ip);
        !anycast && old != local_bindings.end() && !old->second.contains(mac))
      local_binding_gone(ip, out);
    local_bindings[ip][mac] = flags;
    macs[mac].local_ips.insert(ip);
    resync(mac, out);
  }

  void local_binding_gone(net::IpAddress ip, Actions& out) {
    const auto found = local_bindings.find(ip);
    if (found == local_bindings.end()) return;
    std::vector<net::MacAddress> bound;
    for (const auto& [mac, flags] : found->second) bound.push_back(mac);
    for (const auto& mac : bound) local_binding_gone(ip, mac, out);
  }
  void local_binding_gone(net::IpAddress ip, net::MacAddress mac, Actions& out) {
    const auto found = local_bindings.find(ip);
    if (found == local_bindings.end() || found->second.erase(mac) == 0) return;
    if (found->second.empty()) local_bindings.erase(found);
    macs[mac].local_ips.erase(ip);
    resync(mac, out);
  }

  void tick(net::TimePoint now, Actions& out) {
    while (!holds.empty() && holds.begin()->first <= now) {
      const net::MacAddress mac = holds.begin()->second;
      settle(mac, macs.at(mac), Cause::Other, now, out);
      forget_if_idle(mac);
    }
  }

  void clear_duplicate(net::MacAddress mac, net::TimePoint now, Actions& out) {
    const auto found = macs.find(mac);
    if (found == macs.end() || !found->second.frozen()) return;
    Record& record = found->second;
    holds.erase({*record.frozen_until, mac});
    record.frozen_until = now;
    settle(mac, record, Cause::Other, now, out);
    forget_if_idle(mac);
  }

  // --- other settings, see MacVrf::inherit() and succeed()

  void inherit(const Impl& before, net::TimePoint now) {
    started = before.started;
    own = before.own;
    anti_spoofed = before.anti_spoofed;
    local_bindings = before.local_bindings;
    strays = before.strays;
    segments.set_unreachable(before.segments.unreachable());
    for (const auto& [mac, old] : before.macs) {
      if (placeless(mac) || (!old.local && old.local_ips.empty() && old.moves.empty())) continue;
      Record& record = macs[mac];
      record.local_ips = old.local_ips;
      record.moves = old.moves;
      if (old.local) set_local(mac, record, *old.local);
      if (old.local) record.place = AtPort{old.local->port, old.local->sticky};
      const bool frozen = old.frozen() && settings.duplicate_moves > 0;
      Actions not_needed;  // succeed() tells the difference
      if (!frozen || !old.sent.empty()) sync(mac, record, not_needed);
      if (frozen) {
        record.frozen_until = old.frozen_until;
        holds.emplace(*record.frozen_until, mac);
        if (*record.frozen_until <= now) settle(mac, record, Cause::Other, now, not_needed);
      }
    }
  }

  struct Out {
    Route route;
    bgp::AttributesPtr attributes;
  };
  // All routes of ours that are out, by their key in the RIB.
  std::map<net::Bytes, Out> routes_out() {
    std::map<net::Bytes, Out> all;
    const auto add = [&](const Route& route, const bgp::AttributesPtr& attributes) {
      const auto encoded = encode_item(route);
      const auto item = encoded.item();  // holds the key
      const auto key = item.key();
      all.emplace(net::Bytes(key.begin(), key.end()), Out{route, attributes});
    };
    const auto fixed = MacMobility{true, 0};
    if (started) add(originator.multicast(), originator.multicast_attributes());
    if (own)
      add(originator.mac_ip(*own, std::nullopt), originator.mac_attributes(fixed, std::nullopt));
    for (const auto& [ip, mac] : anti_spoofed)
      add(originator.mac_ip(mac, ip),
          originator.mac_attributes(
              fixed, advertised_flags(ip, ArpNdFlags{settings.default_router, true, false})));
    for (const auto& [mac, record] : macs)
      for (const auto& [ip, attributes] : record.sent) add(originator.mac_ip(mac, ip), attributes);
    return all;
  }

  // New routes go out before old ones are withdrawn, and what did not change is not sent.
  void succeed_routes(Impl& before, Actions& out) {
    const auto old = before.routes_out(), fresh = routes_out();
    for (const auto& [key, route] : fresh) {
      const auto found = old.find(key);
      if (found == old.end() || *found->second.attributes != *route.attributes)
        out.push_back(Originate{route.route, route.attributes});
    }
    for (const auto& [key, route] : old)
      if (!fresh.contains(key)) out.push_back(Withdraw{route.route});
  }

  void succeed(Impl& before, Actions& out) {
    const auto place_in = [](const Impl& vrf, net::MacAddress mac) {
      const auto found = vrf.macs.find(mac);
      return found == vrf.macs.end() ? MacPlace{} : found->second.place;
    };
    for (const auto& [mac, record] : macs)
      if (const MacPlace was = place_in(before, mac); was != record.place)
        out.push_back(MacPlaced{mac, was, record.place});
    for (const auto& [mac, record] : before.macs)
      if (!macs.contains(mac) && record.place != MacPlace{})
        out.push_back(MacPlaced{mac, record.place, {}});
    for (const auto& [vtep, routes] : flood_list)
      if (!before.flood_list.contains(vtep)) out.push_back(FloodChanged{vtep, true});
    for (const auto& [vtep, routes] : before.flood_list)
      if (!flood_list.contains(vtep)) out.push_back(FloodChanged{vtep, false});
    succeed_routes(before, out);
    std::set<net::IpAddress> ips;
    const auto add = [&](const net::IpAddress& ip) { ips.insert(ip); };
    before.remote_bindings.for_each_address(add);
    remote_bindings.for_each_address(add);
    for (const auto& ip : ips) {
      const auto change = remote_bindings.chosen(ip), was = before.remote_bindings.chosen(ip);
      if (change != was) out.push_back(binding_change(ip, change.first, change.second));
    }
  }

  MacView view(net::MacAddress mac, const Record& record) const {
    MacView v;
    v.mac = mac;
    v.place = record.place;
    if (record.local)
      v.sequence = record.local->sequence;
    else if (const Claim* best = record.best())
      v.sequence = best->sequence;
    v.esi = record.segment();
    if (record.unresolved()) {
      const RemotePath* waiting = record.waiting();
      v.unresolved = true;
      if (!segments.is_reachable(waiting->vtep)) v.unreachable = waiting->vtep;
      v.esi = waiting->esi;
      v.sequence = waiting->sequence;
    }
    v.duplicate = record.frozen();
    v.advertised = record.sent.contains(std::nullopt);
    v.moves = static_cast<uint32_t>(record.moves.size());
    std::set<net::IpAddress> ips;
    if (record.local) ips = record.local_ips;
    for (const auto& [key, path] : record.remote)
      if (key.ip) ips.insert(*key.ip);
    v.ips.assign(ips.begin(), ips.end());
    return v;
  }
};

MacVrf::MacVrf(const Settings& settings) : impl_(std::make_unique<Impl>(settings)) {}
MacVrf::~MacVrf() = default;
MacVrf::MacVrf(MacVrf&&) noexcept = default;
MacVrf& MacVrf::operator=(MacVrf&&) noexcept = default;

const Settings& MacVrf::settings() const { return impl_->settings; }
net::RouteDistinguisher MacVrf::rd() const { return impl_->originator.rd(); }

Actions MacVrf::start(net::TimePoint) {
  if (std::exchange(impl_->started, true)) return {};
  const auto& originator = impl_->originator;
  return {Originate{originator.multicast(), originator.multicast_attributes()}};
}

Actions MacVrf::stop() {
  Actions out;
  for (const auto& [key, route] : impl_->routes_out()) out.push_back(Withdraw{route.route});
  return out;
}

Actions MacVrf::remote(const Route& route, const bgp::AttributesPtr& attributes,
                       net::TimePoint now) {
  Actions out;
  std::visit([&](const auto& value) { impl_->remote(value, attributes, now, out); }, route);
  return out;
}

Actions MacVrf::reachable(const net::IpAddress& vtep, bool yes, net::TimePoint now) {
  Actions out;
  impl_->reachable(vtep, yes, now, out);
  return out;
}

std::set<net::IpAddress> MacVrf::vteps() const {
  std::set<net::IpAddress> all;
  for (const auto& [mac, record] : impl_->macs)
    for (const auto& [key, route] : record.remote) all.insert(route.path.vtep);
  for (const auto& [key, path] : impl_->anti_spoof_routes) all.insert(path.vtep);
  for (const auto& [vtep, routes] : impl_->flood_list) all.insert(vtep);
  impl_->segments.collect_pes(all);
  return all;
}

void MacVrf::inherit(const MacVrf& before, net::TimePoint now) {
  impl_->inherit(*before.impl_, now);
}

Actions MacVrf::succeed(const MacVrf& before) {
  Actions out;
  impl_->succeed(*before.impl_, out);
  return out;
}

Actions MacVrf::local_mac(net::MacAddress mac, net::IfIndex port, bool sticky, net::TimePoint now) {
  Actions out;
  impl_->local_mac(mac, port, sticky, now, out);
  return out;
}

Actions MacVrf::local_mac_gone(net::MacAddress mac, net::IfIndex port, net::TimePoint now) {
  Actions out;
  impl_->local_mac_gone(mac, port, now, out);
  return out;
}

Actions MacVrf::port_down(net::IfIndex port, net::TimePoint now) {
  Actions out;
  impl_->port_down(port, now, out);
  return out;
}

Actions MacVrf::local_binding(net::IpAddress ip, net::MacAddress mac, ArpNdFlags flags,
                              net::TimePoint) {
  Actions out;
  impl_->local_binding(ip, mac, flags, out);
  return out;
}

Actions MacVrf::local_binding_gone(net::IpAddress ip, net::TimePoint) {
  Actions out;
  impl_->local_binding_gone(ip, out);
  return out;
}

Actions MacVrf::local_binding_gone(net::IpAddress ip, net::MacAddress mac, net::TimePoint) {
  Actions out;
  impl_->local_binding_gone(ip, mac, out);
  return out;
}

Actions MacVrf::own_mac(std::optional<net::MacAddress> mac, net::TimePoint) {
  Actions out;
  impl_->own_mac(mac, out);
  return out;
}

Actions MacVrf::anti_spoof(net::IpAddress ip, net::MacAddress mac, net::TimePoint) {
  Actions out;
  impl_->anti_spoof(ip, mac, out);
  return out;
}

Actions MacVrf::anti_spoof_gone(net::IpAddress ip, net::TimePoint) {
  Actions out;
  impl_->anti_spoof_gone(ip, out);
  return out;
}

net::TimePoint MacVrf::deadline() const {
  return impl_->holds.empty() ? net::kNever : impl_->holds.begin()->first;
}

Actions MacVrf::tick(net::TimePoint now) {
  Actions out;
  impl_->tick(now, out);
  return out;
}

Actions MacVrf::clear_duplicate(net::MacAddress mac, net::TimePoint now) {
  Actions out;
  impl_->clear_duplicate(mac, now, out);
  return out;
}

MacPlace MacVrf::place_of(net::MacAddress mac) const {
  const auto found = impl_->macs.find(mac);
  return found == impl_->macs.end() ? MacPlace{} : found->second.place;
}

std::vector<net::IpAddress> MacVrf::flood_list() const {
  std::vector<net::IpAddress> list;
  for (const auto& [vtep, routes] : impl_->flood_list) list.push_back(vtep);
  return list;
}

void MacVrf::for_each_mac(const std::function<void(const MacView&)>& visit) const {
  for (const auto& [mac, record] : impl_->macs)
    if (record.shown()) visit(impl_->view(mac, record));
}

std::vector<MacView> MacVrf::macs_after(const std::optional<net::MacAddress>& last,
                                        std::size_t count) const {
  std::vector<MacView> out;
  auto at = last ? impl_->macs.upper_bound(*last) : impl_->macs.begin();
  for (; at != impl_->macs.end() && out.size() < count; ++at)
    if (at->second.shown()) out.push_back(impl_->view(at->first, at->second));
  return out;
}

MacCounts MacVrf::counts() const {
  MacCounts out;
  for (const auto& [mac, record] : impl_->macs) {
    if (std::holds_alternative<AtPort>(record.place)) ++out.local;
    if (std::holds_alternative<AtVtep>(record.place)) ++out.remote;
    if (record.unresolved()) ++out.unresolved;
  }
  return out;
}

}  // namespace evpn
