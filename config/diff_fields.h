// SPDX-License-Identifier: GPL-2.0-or-later
// Settings as pairs of key and text, to be compared. Inside config/ only.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace config {

// Keys as in the settings file; an empty text: not set.
using Fields = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] bool is_secret(std::string_view key);

// Of the parts that have fields of their own: neighbors, domains, policies and so on are left out
// of the node, ports and bindings out of the domain.
[[nodiscard]] Fields fields_of(const NodeSettings& node);
[[nodiscard]] Fields fields_of(const bgp::NeighborSettings& neighbor);
[[nodiscard]] Fields fields_of(const bgp::BmpSettings& collector);
[[nodiscard]] Fields fields_of(const evpn::PolicySettings& policy);
[[nodiscard]] Fields fields_of(const evpn::MemberList& list);
[[nodiscard]] Fields fields_of(const evpn::MemberAddress& address);
[[nodiscard]] Fields fields_of(const evpn::MemberMac& mac);
[[nodiscard]] Fields fields_of(const BroadcastDomain& domain);
[[nodiscard]] Fields fields_of(const dataplane::MemberPort& port);
[[nodiscard]] Fields fields_of(const proxyarp::StaticBinding& binding);
[[nodiscard]] Fields fields_of(const dataplane::BumPolicy& policy);

}  // namespace config
