// SPDX-License-Identifier: GPL-2.0-or-later
// The keys of a broadcast domain that say how its proxy ARP/ND works (proxyarp/settings.h), and
// what must hold between them. Internal to config/.
#pragma once
#include <string>
#include <vector>

#include "config/values.h"

namespace config {

// Fields of proxyarp::Settings that stand in the mapping of a broadcast domain.
std::vector<Field<proxyarp::Settings>> proxy_rule_fields();
// Once ports, bindings and exports are read. `present`: the keys of the broadcast domain.
void check_proxy(const Value& domain, const Present& present, const BroadcastDomain& settings);
void proxy_keys(std::vector<std::string>& keys);

}  // namespace config
