// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/route_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/app.h"
#include "daemon/explain.h"
#include "daemon/json_values.h"
#include "evpn/communities.h"

namespace peerland {
namespace {

namespace json = boost::json;

constexpr uint32_t kPlaces = 256;  // of the table, between two looks at the clock

struct RouteFields {
  std::optional<net::MacAddress> mac;
  std::optional<net::IpAddress> ip;
  std::optional<uint32_t> label;
};

RouteFields fields_of(const evpn::Route& route) {
  RouteFields f;
  if (const auto* r = std::get_if<evpn::MacIp>(&route)) {
    f.mac = r->mac;
    f.ip = r->ip;
    f.label = r->label1;
  } else if (const auto* imet = std::get_if<evpn::InclusiveMulticast>(&route)) {
    f.ip = imet->originator;
  } else if (const auto* ead = std::get_if<evpn::EthernetAutoDiscovery>(&route)) {
    f.label = ead->label;
  } else if (const auto* es = std::get_if<evpn::EthernetSegment>(&route)) {
    f.ip = es->originator;
  } else if (const auto* prefix = std::get_if<evpn::IpPrefixRoute>(&route)) {
    f.ip = prefix->prefix.address;
    f.label = prefix->label;
  }
  return f;
}

std::optional<uint32_t> vni_of(const evpn::Route& route, const bgp::AttributesPtr& attributes) {
  if (std::holds_alternative<evpn::InclusiveMulticast>(route)) {
    if (!attributes || !attributes->pmsi_tunnel) return std::nullopt;
    const auto pmsi = evpn::decode_pmsi(*attributes->pmsi_tunnel);
    return pmsi ? std::optional(pmsi->label) : std::nullopt;
  }
  return fields_of(route).label;
}

// One walk over the table.
class RouteWalk {
 public:
  RouteWalk(const App& app, const Filter& filter, std::vector<bgp::PeerId> peers)
      : app_(app), filter_(filter), peers_(std::move(peers)) {
    if (filter.type || filter.mac || filter.ip || filter.rd)
      wanted_ = [this](std::span<const uint8_t> nlri) { return wants_nlri(filter_, nlri); };
  }
  RouteWalk(const RouteWalk&) = delete;
  RouteWalk& operator=(const RouteWalk&) = delete;

  std::optional<std::string> next() {
    if (through_) return std::nullopt;
    std::string text;
    if (!std::exchange(begun_, true)) text = fmt::format("{{\"schema\":{},\"routes\":[", kSchema);
    const auto limit = net::Clock::now() + kPieceTime;
    while (place_ && text.size() < kPieceOctets && net::Clock::now() < limit) {
      for (uint32_t i = 0; i < kPlaces && place_; ++i) {
        paths_.clear();
        place_ = app_.speaker().rib().for_each_path_from(
            *place_, 1,
            [this](const bgp::PathView& path) {
              paths_.push_back(path);
              return true;
            },
            wanted_);
        if (!paths_.empty()) add(text);
        if (text.size() >= kPieceOctets) break;
      }
    }
    if (!place_) {
      through_ = true;
      text += fmt::format("\n],\"total\":{},\"shown\":{}}}\n", total_, shown_);
    }
    return text;
  }

 private:
  // The paths of one route.
  void add(std::string& text) {
    const auto route = evpn::decode(paths_.front().nlri);
    if (!route) return;
    for (const bgp::PathView& path : paths_) {
      if (!wants(path)) continue;
      ++total_;
      if (filter_.limit && shown_ >= *filter_.limit) continue;
      text += shown_++ == 0 ? "\n" : ",\n";
      text += json::serialize(row(path));
    }
  }

  bool wants(const bgp::PathView& path) const {
    if (!peers_.empty() && std::ranges::find(peers_, path.peer) == peers_.end()) return false;
    if (filter_.best && !path.best) return false;
    const bool rejected = path.rejected != bgp::Rejected::None;
    if ((filter_.rejected || filter_.flagged) && !(filter_.rejected && rejected) &&
        !(filter_.flagged && path.flagged))
      return false;
    if (!filter_.vni) return true;
    const auto route = evpn::decode(path.nlri);
    return route && wants_vni(filter_, *route, path.attributes);
  }

  json::object row(const bgp::PathView& path) const {
    const auto route = evpn::decode(path.nlri);
    json::object row;
    if (route) add_nlri_fields(row, *route, path.nlri[0], path.attributes);
    row["neighbor"] = app_.speaker().peer_name(path.peer);
    row["best"] = path.best;
    row["stale"] = path.stale;
    row["long_lived"] = path.long_lived;
    row["flagged"] = path.flagged;
    row["reason"] = bgp::to_string(path.reason);
    row["rejected"] = path.rejected == bgp::Rejected::None
                          ? json::value(nullptr)
                          : json::value(bgp::to_string(path.rejected));
    row["why"] = filter_.why ? json::value(why(path)) : json::value(nullptr);
    add_attribute_fields(row, *path.attributes);
    return row;
  }

  std::string why(const bgp::PathView& path) const {
    const auto best = std::ranges::find_if(paths_, &bgp::PathView::best);
    const bgp::PathView* winner = best == paths_.end() ? nullptr : &*best;
    const auto& bgp = app_.settings().bgp;
    const uint32_t router_id = bgp.router_id.v4_value();
    return explain(path, source(path.peer), winner, winner ? source(winner->peer) : PathSource{},
                   {bgp.local_as.value, router_id, bgp.cluster_id.value_or(router_id)});
  }

  PathSource source(bgp::PeerId peer) const {
    PathSource out{.name = app_.speaker().peer_name(peer),
                   .router_id = 0,
                   .internal = true,
                   .accept = app_.speaker().accept_policy(peer)};
    if (const auto* traits = app_.speaker().rib().traits(peer)) {
      out.router_id = traits->router_id;
      out.internal = traits->internal;
    }
    return out;
  }

  const App& app_;
  const Filter filter_;
  const std::vector<bgp::PeerId> peers_;  // empty: all
  bgp::Rib::Wanted wanted_;
  std::vector<bgp::PathView> paths_;
  std::optional<uint32_t> place_ = 0;
  uint64_t total_ = 0, shown_ = 0;
  bool begun_ = false, through_ = false;
};

}  // namespace

std::expected<std::vector<bgp::PeerId>, std::string> peers_named(const App& app,
                                                                 const std::string& name) {
  std::vector<bgp::PeerId> peers;
  if (name == "local") peers.push_back(bgp::kLocalPeer);
  for (const bgp::PeerId peer : app.speaker().neighbor_ids())
    if (app.speaker().is_named(peer, name)) peers.push_back(peer);
  if (peers.empty()) return std::unexpected(fmt::format("neighbor: there is no \"{}\"", name));
  return peers;
}

bool wants_nlri(const Filter& filter, std::span<const uint8_t> nlri) {
  if (filter.type && (nlri.empty() || nlri[0] != *filter.type)) return false;
  if (!filter.mac && !filter.ip && !filter.rd) return true;
  const auto route = evpn::decode(nlri);
  if (!route) return false;
  const RouteFields f = fields_of(*route);
  if (filter.mac && f.mac != filter.mac) return false;
  if (filter.ip && f.ip != filter.ip) return false;
  if (!filter.rd) return true;
  // The text AS:number may stand for two types of RD.
  const auto rd = evpn::route_distinguisher(*route);
  return rd && (*rd == *filter.rd || net::to_string(*rd) == net::to_string(*filter.rd));
}

bool wants_vni(const Filter& filter, const evpn::Route& route,
               const bgp::AttributesPtr& attributes) {
  return !filter.vni || vni_of(route, attributes) == filter.vni;
}

void add_nlri_fields(json::object& row, const evpn::Route& route, uint8_t type,
                     const bgp::AttributesPtr& attributes) {
  const RouteFields f = fields_of(route);
  row["type"] = type;
  row["rd"] = or_null(evpn::route_distinguisher(route));
  row["route"] = evpn::to_string(route);
  row["mac"] = or_null(f.mac);
  row["ip"] = or_null(f.ip);
  row["vni"] = or_null(vni_of(route, attributes));
}

void add_attribute_fields(json::object& row, const bgp::Attributes& a) {
  json::array communities, clusters;
  for (const auto& community : a.extended_communities)
    communities.emplace_back(evpn::to_string(community));
  for (const auto cluster : a.cluster_list)
    clusters.emplace_back(to_string(net::IpAddress::v4(cluster)));
  row["next_hop"] = to_string(a.next_hop);
  row["as_path"] = bgp::as_path_text(a);
  row["local_pref"] = or_null(a.local_pref);
  row["med"] = or_null(a.multi_exit_disc);
  row["originator_id"] = a.originator_id
                             ? json::value(to_string(net::IpAddress::v4(*a.originator_id)))
                             : json::value(nullptr);
  row["cluster_list"] = std::move(clusters);
  row["communities"] = std::move(communities);
}

std::expected<Answer, std::string> show_routes(const App& app, const Filter& filter) {
  std::vector<bgp::PeerId> peers;
  if (!filter.neighbor.empty()) {
    auto named = peers_named(app, filter.neighbor);
    if (!named) return std::unexpected(named.error());
    peers = std::move(*named);
  }
  return
      [walk = std::make_shared<RouteWalk>(app, filter, std::move(peers))] { return walk->next(); };
}

}  // namespace peerland
