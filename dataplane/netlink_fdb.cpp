// SPDX-License-Identifier: GPL-2.0-or-later
// A bridge entry carries NDA_MASTER and no NTF_SELF; an entry of the VXLAN device's own table has
// NTF_SELF and, in NDA_DST, the VTEP. States as the bridge reads them: NUD_PERMANENT is an address
// of the device itself, NUD_NOARP is static, NUD_REACHABLE ages.
#include "dataplane/netlink_fdb.h"

// clang-format off
#include <sys/socket.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <array>

namespace dataplane::netlink {
namespace {

constexpr std::size_t kCapacity = 96;  // header, MAC, IPv6 address, master
constexpr uint16_t kUpsert = NLM_F_CREATE | NLM_F_REPLACE;

Message fdb_message(uint16_t type, uint16_t netlink_flags, net::IfIndex port, net::MacAddress mac,
                    uint16_t state, unsigned flags) {
  ndmsg neighbour{};
  neighbour.ndm_family = AF_BRIDGE;
  neighbour.ndm_ifindex = static_cast<int>(port.value);
  neighbour.ndm_state = state;
  neighbour.ndm_flags = static_cast<uint8_t>(flags);
  Message message(type, netlink_flags, neighbour, kCapacity);
  message.put(NDA_LLADDR, mac.bytes());
  return message;
}

}  // namespace

std::optional<FdbMessage> parse_fdb(nlmsghdr* message) {
  if (message->nlmsg_type != RTM_NEWNEIGH && message->nlmsg_type != RTM_DELNEIGH) return {};
  std::array<nlattr*, NDA_MAX + 1> tb{};
  if (nlmsg_parse(message, sizeof(ndmsg), tb.data(), NDA_MAX, nullptr) < 0) return {};
  const auto* neighbour = static_cast<const ndmsg*>(nlmsg_data(message));
  if (neighbour->ndm_family != AF_BRIDGE) return {};
  if (!tb[NDA_LLADDR] || nla_len(tb[NDA_LLADDR]) != 6) return {};
  const auto bytes = [](const nlattr* a) {
    return std::span(static_cast<const uint8_t*>(nla_data(a)),
                     static_cast<std::size_t>(nla_len(a)));
  };
  FdbMessage result;
  FdbEntry& entry = result.entry;
  entry.port = net::IfIndex(static_cast<uint32_t>(neighbour->ndm_ifindex));
  entry.mac = net::MacAddress::from_bytes(bytes(tb[NDA_LLADDR]));
  result.self = (neighbour->ndm_flags & NTF_SELF) != 0;
  result.removed = message->nlmsg_type == RTM_DELNEIGH;
  if (tb[NDA_MASTER] && nla_len(tb[NDA_MASTER]) == 4)
    result.bridge = net::IfIndex(nla_get_u32(tb[NDA_MASTER]));
  entry.on_bridge = !result.self && result.bridge.value != 0;
  entry.permanent = entry.on_bridge && (neighbour->ndm_state & NUD_PERMANENT) != 0;
  entry.is_static = entry.on_bridge && (neighbour->ndm_state & NUD_NOARP) != 0;
  entry.sticky = (neighbour->ndm_flags & NTF_STICKY) != 0;
  entry.external = (neighbour->ndm_flags & NTF_EXT_LEARNED) != 0;
  if (tb[NDA_DST]) entry.vtep = net::IpAddress::from_bytes(bytes(tb[NDA_DST]));
  return result;
}

Message dump_fdb(net::IfIndex bridge) {
  ndmsg neighbour{};
  neighbour.ndm_family = AF_BRIDGE;
  Message message(RTM_GETNEIGH, NLM_F_DUMP, neighbour, kCapacity);
  message.put_integer(NDA_MASTER, 4, bridge.value);
  return message;
}

Message add_remote_mac(net::IfIndex vxlan, net::MacAddress mac, const net::IpAddress& vtep) {
  Message message = fdb_message(RTM_NEWNEIGH, kUpsert, vxlan, mac, NUD_NOARP | NUD_REACHABLE,
                                NTF_SELF | NTF_MASTER | NTF_EXT_LEARNED);
  message.put(NDA_DST, vtep.bytes());
  return message;
}

Message add_flood_entry(net::IfIndex vxlan, const net::IpAddress& vtep) {
  Message message = fdb_message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_APPEND, vxlan, {},
                                NUD_NOARP | NUD_PERMANENT, NTF_SELF);
  message.put(NDA_DST, vtep.bytes());
  return message;
}

Message remove_flood_entry(net::IfIndex vxlan, const net::IpAddress& vtep) {
  Message message = fdb_message(RTM_DELNEIGH, 0, vxlan, {}, NUD_NOARP | NUD_PERMANENT, NTF_SELF);
  message.put(NDA_DST, vtep.bytes());
  return message;
}

Message remove_self_mac(net::IfIndex vxlan, net::MacAddress mac) {
  return fdb_message(RTM_DELNEIGH, 0, vxlan, mac, 0, NTF_SELF);
}

Message pin_master_mac(net::IfIndex port, net::MacAddress mac) {
  return fdb_message(RTM_NEWNEIGH, kUpsert, port, mac, NUD_NOARP, NTF_MASTER | NTF_STICKY);
}

Message unpin_master_mac(net::IfIndex port, net::MacAddress mac) {
  return fdb_message(RTM_NEWNEIGH, kUpsert, port, mac, NUD_REACHABLE, NTF_MASTER);
}

// NTF_USE: as if a frame of that MAC had come in at the port.
Message refresh_master_mac(net::IfIndex port, net::MacAddress mac) {
  return fdb_message(RTM_NEWNEIGH, kUpsert, port, mac, NUD_REACHABLE, NTF_MASTER | NTF_USE);
}

Message remove_master_mac(net::IfIndex port, net::MacAddress mac) {
  return fdb_message(RTM_DELNEIGH, 0, port, mac, 0, NTF_MASTER);
}

}  // namespace dataplane::netlink
