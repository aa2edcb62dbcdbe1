// SPDX-License-Identifier: GPL-2.0-or-later
// Forwarding database entries in rtnetlink: neighbour messages of family AF_BRIDGE.
#pragma once
#include <cstdint>
#include <optional>

#include "dataplane/kernel.h"
#include "dataplane/netlink_socket.h"

namespace dataplane::netlink {

// One entry of a RTM_NEWNEIGH or RTM_DELNEIGH.
struct FdbMessage {
  FdbEntry entry;
  net::IfIndex bridge;   // of a master entry
  bool self = false;     // NTF_SELF: of the device's own table
  bool removed = false;  // RTM_DELNEIGH
};
[[nodiscard]] std::optional<FdbMessage> parse_fdb(nlmsghdr* message);

[[nodiscard]] Message dump_fdb(net::IfIndex bridge);

// On the bridge and in the VXLAN device's table, both external.
[[nodiscard]] Message add_remote_mac(net::IfIndex vxlan, net::MacAddress mac,
                                     const net::IpAddress& vtep);
[[nodiscard]] Message add_flood_entry(net::IfIndex vxlan, const net::IpAddress& vtep);
[[nodiscard]] Message remove_flood_entry(net::IfIndex vxlan, const net::IpAddress& vtep);
[[nodiscard]] Message remove_self_mac(net::IfIndex vxlan, net::MacAddress mac);
// Master entries: of the bridge, at `port`.
[[nodiscard]] Message pin_master_mac(net::IfIndex port, net::MacAddress mac);    // static, sticky
[[nodiscard]] Message unpin_master_mac(net::IfIndex port, net::MacAddress mac);  // neither
[[nodiscard]] Message refresh_master_mac(net::IfIndex port, net::MacAddress mac);
[[nodiscard]] Message remove_master_mac(net::IfIndex port, net::MacAddress mac);

}  // namespace dataplane::netlink
