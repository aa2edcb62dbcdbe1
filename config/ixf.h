// SPDX-License-Identifier: GPL-2.0-or-later
// The IX-F member export (euro-ix, schemas 0.6 to 1.0): which member uses which address with which
// MACs on a peering LAN. Liberal in form, strict in meaning: an entry that can't be right is left
// out with a warning that names it, and never takes others with it.
#pragma once
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace config {

struct IxfQuery {
  std::vector<net::IpPrefix> prefixes;  // of the broadcast domain; addresses outside are refused
  // `vlan[].id` of the export: a number of its database, not the 802.1Q tag. Absent: the one VLAN
  // that has one of the prefixes.
  std::optional<uint32_t> vlan_id;
  std::optional<uint32_t> ixp_id;  // where the export has several exchanges
};

struct IxfBinding {
  proxyarp::StaticBinding binding;  // port is always empty: the export knows no ports
  int line = 0, column = 0;
  std::string where;  // "member_list[0].connection_list[0].vlan_list[0].ipv4"
};

struct IxfMembers {
  std::vector<IxfBinding> bindings;  // at least one, in file order, no address twice
  std::vector<Error> warnings;
};

// Errors: no JSON, no IX-F export, no VLAN that fits, or nothing usable in it.
[[nodiscard]] std::expected<IxfMembers, std::vector<Error>> read_ixf(const std::string& name,
                                                                     std::string_view json,
                                                                     const IxfQuery& query);

}  // namespace config
