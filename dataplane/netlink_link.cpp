// SPDX-License-Identifier: GPL-2.0-or-later
// Attributes of devices: IFLA_* of linux/if_link.h. Bridge and port attributes are handled as
// tables of numbers, so that comparing, changing and naming them is one piece of code; libnl's
// link objects know only some of them.
#include "dataplane/netlink_link.h"

// clang-format off
#include <sys/socket.h>
#include <linux/if.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <arpa/inet.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace dataplane::netlink {
namespace {

using Attributes = std::array<nlattr*, IFLA_MAX + 1>;

std::string text_of(const nlattr* attribute) {
  if (!attribute) return {};
  const auto* characters = static_cast<const char*>(nla_data(attribute));
  return {characters, strnlen(characters, static_cast<std::size_t>(nla_len(attribute)))};
}

std::span<const uint8_t> bytes_of(const nlattr* attribute) {
  return {static_cast<const uint8_t*>(nla_data(attribute)),
          static_cast<std::size_t>(nla_len(attribute))};
}

std::optional<uint32_t> integer_of(const nlattr* attribute) {
  const auto bytes = bytes_of(attribute);
  if (bytes.size() == 1) return bytes[0];
  if (bytes.size() == 2) {
    uint16_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  if (bytes.size() != 4) return {};
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

uint32_t integer_or_zero(const nlattr* attribute) {
  return attribute ? integer_of(attribute).value_or(0) : 0;
}

template <class F>
void for_each_nested(const nlattr* attribute, F&& visit) {
  if (!attribute) return;
  int left = nla_len(attribute);
  for (auto* a = static_cast<nlattr*>(nla_data(attribute)); nla_ok(a, left); a = nla_next(a, &left))
    visit(static_cast<uint16_t>(nla_type(a)), a);
}

Integers integers_of(const nlattr* attribute) {
  Integers integers;
  for_each_nested(attribute, [&](uint16_t type, const nlattr* a) {
    if (const auto value = integer_of(a)) integers[type] = *value;
  });
  return integers;
}

VxlanInfo vxlan_of(const nlattr* data) {
  VxlanInfo vxlan;
  for_each_nested(data, [&](uint16_t type, const nlattr* a) {
    switch (type) {
      case IFLA_VXLAN_ID: vxlan.vni = integer_or_zero(a); break;
      case IFLA_VXLAN_LOCAL:
      case IFLA_VXLAN_LOCAL6: vxlan.local = net::IpAddress::from_bytes(bytes_of(a)); break;
      case IFLA_VXLAN_GROUP:
      case IFLA_VXLAN_GROUP6: vxlan.remote = net::IpAddress::from_bytes(bytes_of(a)); break;
      case IFLA_VXLAN_PORT:
        vxlan.udp_port = ntohs(static_cast<uint16_t>(integer_or_zero(a)));
        break;
      case IFLA_VXLAN_LEARNING: vxlan.learning = integer_or_zero(a) != 0; break;
      case IFLA_VXLAN_COLLECT_METADATA: vxlan.external = integer_or_zero(a) != 0; break;
      default: break;
    }
  });
  return vxlan;
}

std::optional<uint8_t> address_generation_of(const nlattr* families) {
  std::optional<uint8_t> mode;
  for_each_nested(families, [&](uint16_t family, const nlattr* attributes) {
    if (family != AF_INET6) return;
    for_each_nested(attributes, [&](uint16_t type, const nlattr* a) {
      if (type == IFLA_INET6_ADDR_GEN_MODE) mode = static_cast<uint8_t>(integer_or_zero(a));
    });
  });
  return mode;
}

// The header and, in `tb`, the attributes; nullptr for anything else.
const ifinfomsg* parse(nlmsghdr* message, Attributes& tb) {
  if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) return nullptr;
  if (nlmsg_parse(message, sizeof(ifinfomsg), tb.data(), IFLA_MAX, nullptr) < 0) return nullptr;
  return static_cast<const ifinfomsg*>(nlmsg_data(message));
}

ifinfomsg header(net::IfIndex index = {}, unsigned char family = AF_UNSPEC) {
  ifinfomsg info{};
  info.ifi_family = family;
  info.ifi_index = static_cast<int>(index.value);
  return info;
}

void put_settings(Message& message, std::span<const Setting> settings) {
  for (const Setting& setting : settings)
    message.put_integer(setting.type, setting.width, setting.value);
}

// IFLA_LINKINFO with the kind and its data.
void put_kind(Message& message, const char* kind, const std::function<void(Message&)>& data) {
  message.nest(IFLA_LINKINFO, [&](Message& info) {
    info.put_string(IFLA_INFO_KIND, kind);
    info.nest(IFLA_INFO_DATA, data);
  });
}

}  // namespace

std::vector<Setting> differing(std::span<const Setting> wanted, const Integers& current) {
  std::vector<Setting> changes;
  for (const Setting& setting : wanted) {
    const auto it = current.find(setting.type);
    if ((it == current.end() ? 0 : it->second) != setting.value) changes.push_back(setting);
  }
  return changes;
}

// No spanning tree, no groups, nothing sent by the bridge itself, no link-local group forwarded.
std::vector<Setting> bridge_settings(std::chrono::seconds ageing) {
  return {
      {IFLA_BR_AGEING_TIME, 4, static_cast<uint32_t>(ageing.count() * 100), "ageing_time"},
      {IFLA_BR_STP_STATE, 4, 0, "stp_state"},
      {IFLA_BR_GROUP_FWD_MASK, 2, 0, "group_fwd_mask"},
      {IFLA_BR_MCAST_SNOOPING, 1, 0, "mcast_snooping"},
      {IFLA_BR_MCAST_ROUTER, 1, 0, "mcast_router"},
      {IFLA_BR_MCAST_QUERIER, 1, 0, "mcast_querier"},
  };
}

namespace {

std::vector<Setting> port_settings(bool learning, bool flood_unknown_unicast, bool kernel_floods) {
  return {
      {IFLA_BRPORT_LEARNING, 1, learning, "learning"},
      {IFLA_BRPORT_UNICAST_FLOOD, 1, flood_unknown_unicast, "flood"},
      {IFLA_BRPORT_MCAST_FLOOD, 1, kernel_floods, "mcast_flood"},
      {IFLA_BRPORT_BCAST_FLOOD, 1, kernel_floods, "bcast_flood"},
      {IFLA_BRPORT_GROUP_FWD_MASK, 2, 0, "group_fwd_mask"},
      {IFLA_BRPORT_MODE, 1, 0, "hairpin"},
      {IFLA_BRPORT_ISOLATED, 1, 0, "isolated"},
      {IFLA_BRPORT_NEIGH_SUPPRESS, 1, 0, "neigh_suppress"},
      {IFLA_BRPORT_PROXYARP, 1, 0, "proxy_arp"},
      {IFLA_BRPORT_PROXYARP_WIFI, 1, 0, "proxy_arp_wifi"},
      {IFLA_BRPORT_MCAST_TO_UCAST, 1, 0, "mcast_to_unicast"},
      {IFLA_BRPORT_MULTICAST_ROUTER, 1, 0, "mcast_router"},
  };
}

}  // namespace

std::vector<Setting> member_port_settings(bool flood_unknown_unicast, bool kernel_floods) {
  return port_settings(true, flood_unknown_unicast, kernel_floods);
}

std::vector<Setting> core_port_settings(bool flood_unknown_unicast, bool kernel_floods) {
  return port_settings(false, flood_unknown_unicast, kernel_floods);
}

// Broadcast and multicast flooding stay as they are: set_core_flags() knows the responder.
std::vector<Setting> core_port_join_settings(bool flood_unknown_unicast) {
  auto settings = port_settings(false, flood_unknown_unicast, true);
  std::erase_if(settings, [](const Setting& s) {
    return s.type == IFLA_BRPORT_MCAST_FLOOD || s.type == IFLA_BRPORT_BCAST_FLOOD;
  });
  return settings;
}

std::optional<LinkInfo> parse_link(nlmsghdr* message) {
  Attributes tb{};
  const ifinfomsg* info = parse(message, tb);
  if (!info || !tb[IFLA_IFNAME]) return {};
  LinkInfo link;
  link.index = net::IfIndex(static_cast<uint32_t>(info->ifi_index));
  link.master = net::IfIndex(integer_or_zero(tb[IFLA_MASTER]));
  link.name = text_of(tb[IFLA_IFNAME]);
  link.alias = text_of(tb[IFLA_IFALIAS]);
  link.mtu = integer_or_zero(tb[IFLA_MTU]);
  link.admin_up = (info->ifi_flags & IFF_UP) != 0;
  if (tb[IFLA_ADDRESS] && nla_len(tb[IFLA_ADDRESS]) == 6)
    link.mac = net::MacAddress::from_bytes(bytes_of(tb[IFLA_ADDRESS]));
  link.ipv6_address_generation = address_generation_of(tb[IFLA_AF_SPEC]);
  if (!tb[IFLA_LINKINFO]) return link;
  std::array<nlattr*, IFLA_INFO_MAX + 1> kind{};
  if (nla_parse_nested(kind.data(), IFLA_INFO_MAX, tb[IFLA_LINKINFO], nullptr) < 0) return link;
  link.kind = text_of(kind[IFLA_INFO_KIND]);
  if (link.kind == "bridge") link.bridge = integers_of(kind[IFLA_INFO_DATA]);
  if (link.kind == "vxlan") link.vxlan = vxlan_of(kind[IFLA_INFO_DATA]);
  if (text_of(kind[IFLA_INFO_SLAVE_KIND]) == "bridge")
    link.port = integers_of(kind[IFLA_INFO_SLAVE_DATA]);
  return link;
}

std::optional<LinkChanged> parse_link_change(nlmsghdr* message) {
  Attributes tb{};
  const ifinfomsg* info = parse(message, tb);
  if (!info || !tb[IFLA_IFNAME]) return {};
  constexpr unsigned kUp = IFF_UP | IFF_LOWER_UP;
  LinkChanged change;
  change.index = net::IfIndex(static_cast<uint32_t>(info->ifi_index));
  change.name = text_of(tb[IFLA_IFNAME]);
  change.up = (info->ifi_flags & kUp) == kUp;
  change.bridge = net::IfIndex(integer_or_zero(tb[IFLA_MASTER]));
  if (message->nlmsg_type == RTM_DELLINK) {
    change.bridge = {};
    // Of the AF_BRIDGE family it is a port that left its bridge, not a device that is gone.
    change.exists = info->ifi_family == AF_BRIDGE;
    change.up = change.up && change.exists;
  }
  return change;
}

Message get_link(const std::string& name) {
  Message message(RTM_GETLINK, 0, header());
  message.put_string(IFLA_IFNAME, name);
  message.put_integer(IFLA_EXT_MASK, 4, RTEXT_FILTER_SKIP_STATS);
  return message;
}

Message get_link(net::IfIndex index) {
  Message message(RTM_GETLINK, 0, header(index));
  message.put_integer(IFLA_EXT_MASK, 4, RTEXT_FILTER_SKIP_STATS);
  return message;
}

Message dump_links() {
  Message message(RTM_GETLINK, NLM_F_DUMP, header());
  message.put_integer(IFLA_EXT_MASK, 4, RTEXT_FILTER_SKIP_STATS);
  return message;
}

Message create_bridge(const Links& links, net::MacAddress mac) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, header());
  message.put_string(IFLA_IFNAME, links.bridge);
  message.put(IFLA_ADDRESS, mac.bytes());
  message.put_integer(IFLA_MTU, 4, links.mtu);
  put_kind(message, "bridge",
           [&](Message& data) { put_settings(data, bridge_settings(links.ageing)); });
  return message;
}

// No group and no remote: the flood list is FDB entries. TTL and DF stay at the kernel's defaults.
Message create_vxlan(const Links& links, net::MacAddress mac) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, header());
  message.put_string(IFLA_IFNAME, links.vxlan);
  message.put(IFLA_ADDRESS, mac.bytes());
  message.put_integer(IFLA_MTU, 4, links.mtu);
  put_kind(message, "vxlan", [&](Message& data) {
    data.put_integer(IFLA_VXLAN_ID, 4, links.vni.value);
    data.put(links.vtep.is_v4() ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, links.vtep.bytes());
    data.put_integer(IFLA_VXLAN_PORT, 2, htons(links.udp_port));
    data.put_integer(IFLA_VXLAN_LEARNING, 1, 0);
  });
  return message;
}

Message change_bridge(net::IfIndex bridge, std::span<const Setting> settings) {
  Message message(RTM_NEWLINK, 0, header(bridge));
  put_kind(message, "bridge", [&](Message& data) { put_settings(data, settings); });
  return message;
}

Message change_vxlan_learning_off(net::IfIndex vxlan) {
  Message message(RTM_NEWLINK, 0, header(vxlan));
  put_kind(message, "vxlan", [](Message& data) { data.put_integer(IFLA_VXLAN_LEARNING, 1, 0); });
  return message;
}

Message change_vxlan_remote_off(net::IfIndex vxlan, net::IpFamily family) {
  static constexpr std::array<uint8_t, 16> kUnspecified{};
  Message message(RTM_NEWLINK, 0, header(vxlan));
  put_kind(message, "vxlan", [&](Message& data) {
    if (family == net::IpFamily::V4)
      data.put(IFLA_VXLAN_GROUP, std::span(kUnspecified).first(4));
    else
      data.put(IFLA_VXLAN_GROUP6, kUnspecified);
  });
  return message;
}

Message change_port(net::IfIndex port, std::span<const Setting> settings) {
  Message message(RTM_SETLINK, 0, header(port, AF_BRIDGE));
  message.nest(IFLA_PROTINFO, [&](Message& data) { put_settings(data, settings); });
  return message;
}

Message delete_link(net::IfIndex index) { return {RTM_DELLINK, 0, header(index)}; }

bool LinkChange::empty() const {
  return !master && !mtu && !mac && !alias && !no_ipv6_addresses && !up;
}

Message change_link(net::IfIndex index, const LinkChange& change) {
  ifinfomsg info = header(index);
  if (change.up) info.ifi_flags = info.ifi_change = IFF_UP;
  Message message(RTM_SETLINK, 0, info);
  if (change.mac) message.put(IFLA_ADDRESS, change.mac->bytes());
  if (change.mtu) message.put_integer(IFLA_MTU, 4, *change.mtu);
  if (change.alias) message.put_string(IFLA_IFALIAS, *change.alias);
  if (change.master) message.put_integer(IFLA_MASTER, 4, change.master->value);
  if (change.no_ipv6_addresses) {
    message.nest(IFLA_AF_SPEC, [](Message& families) {
      families.nest(AF_INET6, [](Message& inet6) {
        inet6.put_integer(IFLA_INET6_ADDR_GEN_MODE, 1, IN6_ADDR_GEN_MODE_NONE);
      });
    });
  }
  return message;
}

}  // namespace dataplane::netlink
