// SPDX-License-Identifier: GPL-2.0-or-later
// Routes for people and programs: the view `routes`, and what `monitor` tells of a route.
#pragma once
#include <boost/json/fwd.hpp>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "bgp/rib.h"
#include "daemon/answer.h"
#include "daemon/filter.h"
#include "evpn/nlri.h"

namespace peerland {

class App;

// Peers that a neighbor filter names: by address, by description, or "local". Nothing is an error.
[[nodiscard]] std::expected<std::vector<bgp::PeerId>, std::string> peers_named(
    const App& app, const std::string& name);

// True when the fields of the NLRI are as wanted: type, MAC, IP, RD.
[[nodiscard]] bool wants_nlri(const Filter& filter, std::span<const uint8_t> nlri);
// ... and the VNI, which for some types stands in an attribute. `attributes` may be null.
[[nodiscard]] bool wants_vni(const Filter& filter, const evpn::Route& route,
                             const bgp::AttributesPtr& attributes);

// type, rd, route, mac, ip, vni; null attributes: of a withdrawn route.
void add_nlri_fields(boost::json::object& row, const evpn::Route& route, uint8_t type,
                     const bgp::AttributesPtr& attributes);
// next_hop, as_path, local_pref, med, originator_id, cluster_list, communities.
void add_attribute_fields(boost::json::object& row, const bgp::Attributes& attributes);

// {"schema":1,"routes":[rows],"total":..,"shown":..}: a row a line, all paths of a route together,
// best first, in the order of the table.
[[nodiscard]] std::expected<Answer, std::string> show_routes(const App& app, const Filter& filter);

}  // namespace peerland
