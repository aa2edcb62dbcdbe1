// SPDX-License-Identifier: GPL-2.0-or-later
// Devices in rtnetlink: what a RTM_NEWLINK says, and the requests that create and change bridges,
// VXLAN devices and bridge ports.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/kernel.h"
#include "dataplane/netlink_socket.h"

namespace dataplane::netlink {

// Attribute number to value, of those with 1, 2 or 4 octets (in host order).
using Integers = std::map<uint16_t, uint32_t>;

struct VxlanInfo {
  uint32_t vni = 0;
  std::optional<net::IpAddress> local;
  std::optional<net::IpAddress> remote;  // unspecified: none
  uint16_t udp_port = 0;
  bool learning = false;
  bool external = false;  // collect metadata: the VNI comes from elsewhere
};

struct LinkInfo {
  net::IfIndex index;
  net::IfIndex master;
  std::string name;
  std::string alias;
  std::string kind;  // "bridge", "vxlan", "veth"; empty for hardware
  net::MacAddress mac;
  uint32_t mtu = 0;
  bool admin_up = false;
  std::optional<uint8_t> ipv6_address_generation;
  Integers bridge;  // IFLA_BR_*, of a bridge
  Integers port;    // IFLA_BRPORT_*, of a port of a bridge
  VxlanInfo vxlan;
};

// An attribute as it is wanted.
struct Setting {
  uint16_t type;
  uint8_t width;  // octets
  uint32_t value;
  const char* name;
};
// Those of `wanted` that differ. One that this kernel does not report is taken as 0.
[[nodiscard]] std::vector<Setting> differing(std::span<const Setting> wanted,
                                             const Integers& current);

[[nodiscard]] std::vector<Setting> bridge_settings(std::chrono::seconds ageing);
[[nodiscard]] std::vector<Setting> member_port_settings(bool flood_unknown_unicast,
                                                        bool kernel_floods);
[[nodiscard]] std::vector<Setting> core_port_settings(bool flood_unknown_unicast,
                                                      bool kernel_floods);
[[nodiscard]] std::vector<Setting> core_port_join_settings(bool flood_unknown_unicast);

// The whole of a RTM_NEWLINK.
[[nodiscard]] std::optional<LinkInfo> parse_link(nlmsghdr* message);
// Only what LinkChanged has; also of RTM_DELLINK and of AF_BRIDGE messages.
[[nodiscard]] std::optional<LinkChanged> parse_link_change(nlmsghdr* message);

[[nodiscard]] Message get_link(const std::string& name);
[[nodiscard]] Message get_link(net::IfIndex index);
[[nodiscard]] Message dump_links();
[[nodiscard]] Message create_bridge(const Links& links, net::MacAddress mac);
[[nodiscard]] Message create_vxlan(const Links& links, net::MacAddress mac);
[[nodiscard]] Message change_bridge(net::IfIndex bridge, std::span<const Setting> settings);
[[nodiscard]] Message change_vxlan_learning_off(net::IfIndex vxlan);
[[nodiscard]] Message change_vxlan_remote_off(net::IfIndex vxlan, net::IpFamily family);
[[nodiscard]] Message change_port(net::IfIndex port, std::span<const Setting> settings);
[[nodiscard]] Message delete_link(net::IfIndex index);

// Any of the changes that do not depend on the kind of device, in one request.
struct LinkChange {
  std::optional<net::IfIndex> master = {};
  std::optional<uint32_t> mtu = {};
  std::optional<net::MacAddress> mac = {};
  std::optional<std::string> alias = {};
  bool no_ipv6_addresses = false;  // address generation: none
  bool up = false;                 // false: as it is
  bool empty() const;
};
[[nodiscard]] Message change_link(net::IfIndex index, const LinkChange& change);

}  // namespace dataplane::netlink
