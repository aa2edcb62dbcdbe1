// SPDX-License-Identifier: GPL-2.0-or-later
#include "proxyarp/questions.h"

#include "proxyarp/arp.h"
#include "proxyarp/ethernet.h"
#include "proxyarp/nd.h"

namespace proxyarp {
namespace {

ArpFrame request(const Responder::Identity& identity, const net::IpAddress& ip) {
  ArpFrame arp;
  arp.destination = net::kBroadcastMac;
  arp.source = arp.sender_mac = identity.mac;
  arp.sender_ip = identity.ipv4.value_or(net::IpAddress{});
  arp.target_ip = ip;
  return arp;
}

NdFrame solicitation(const Responder::Identity& identity, const net::IpAddress& ip) {
  NdFrame nd;
  nd.source = identity.mac;
  nd.from = identity.ipv6 ? *identity.ipv6 : eui64_link_local(identity.mac);
  nd.to = net::solicited_node(ip);
  nd.destination = multicast_mac(nd.to);
  nd.target = ip;
  nd.link_layer = identity.mac;
  return nd;
}

}  // namespace

std::optional<net::Bytes> question_to(const Responder::Identity& identity, const net::IpAddress& ip,
                                      net::MacAddress mac) {
  if (!identity.mac.is_unicast()) return std::nullopt;
  if (ip.is_v4()) {
    ArpFrame arp = request(identity, ip);
    arp.destination = mac;
    return encode_arp(arp);
  }
  NdFrame nd = solicitation(identity, ip);
  nd.destination = mac;
  nd.to = ip;
  return encode_nd(nd);
}

std::optional<net::Bytes> question_to_all(const Responder::Identity& identity,
                                          const net::IpAddress& ip,
                                          const std::optional<net::IpAddress>& sender) {
  if (!identity.mac.is_unicast()) return std::nullopt;
  if (ip.is_v6()) return encode_nd(solicitation(identity, ip));
  ArpFrame arp = request(identity, ip);
  if (!identity.ipv4 && sender) arp.sender_ip = *sender;
  return encode_arp(arp);
}

}  // namespace proxyarp
