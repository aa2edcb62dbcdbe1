// SPDX-License-Identifier: GPL-2.0-or-later
// Keys of port security: allowed MACs of a port, what is done about violations, and what a policy
// must not do to a port. Internal to config/.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/values.h"

namespace config {

void read_security(const Value& value, dataplane::SecuritySettings& out);
// MACs of a port: `any`, or a list of MACs and of mappings with a MAC and when it ends. `claim`
// takes a MAC that no other port has, or reports who has it.
using ClaimMac = std::function<bool(const Value& item, net::MacAddress mac)>;
void read_port_macs(const Value& value, const ClaimMac& claim, dataplane::MemberPort& port);
// An error where `policy` would keep the port's own member from BGP over the exchange, or from LACP
// with this node.
void check_own_traffic(const Value& value, const dataplane::MemberPort& port,
                       const dataplane::BumPolicy& policy, const BroadcastDomain& domain);
void security_keys(std::vector<std::string>& keys);

}  // namespace config
