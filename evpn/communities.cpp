// SPDX-License-Identifier: GPL-2.0-or-later
// Extended communities of EVPN and the PMSI tunnel attribute: readers and makers side by side.
#include "evpn/communities.h"

#include <algorithm>

namespace evpn {
namespace {

using bgp::ExtendedCommunity;

constexpr uint8_t kEvpnType = 0x06, kOpaqueType = 0x03;  // transitive
constexpr uint8_t kMacMobilitySub = 0x00, kArpNdSub = 0x08, kEncapsulationSub = 0x0c;
constexpr uint8_t kRouteTargetSub = 0x02;
constexpr uint8_t kStickyFlag = 0x01;  // RFC 7432 section 7.7
constexpr uint8_t kRouterFlag = 0x01, kOverrideFlag = 0x02, kImmutableFlag = 0x08;  // RFC 9047
constexpr uint32_t kRfc8365Vxlan = 0x10000000;  // A=0, type 1 (VXLAN), D-ID 0: section 5.1.2.1
constexpr uint8_t kIngressReplication = 6;

uint32_t number(std::span<const uint8_t> octets) {
  uint32_t value = 0;
  for (const uint8_t octet : octets) value = value << 8 | octet;
  return value;
}

template <std::size_t N>
void put(ExtendedCommunity& community, std::size_t at, uint32_t value) {
  for (std::size_t i = 0; i < N; ++i)
    community[at + i] = static_cast<uint8_t>(value >> (8 * (N - 1 - i)));
}

// RFC 9047 section 3.2: of several, the first one counts.
const ExtendedCommunity* first(const bgp::Attributes& attributes, uint8_t type, uint8_t sub_type) {
  for (const auto& community : attributes.extended_communities)
    if (community[0] == type && community[1] == sub_type) return &community;
  return nullptr;
}

uint16_t tunnel_type(const ExtendedCommunity& community) {
  return static_cast<uint16_t>(number(std::span(community).subspan(6, 2)));
}

// The automatic targets of any AS: every PE of an eBGP fabric has its own, so the AS is not looked
// at. Types 1 and 2 have 16 bits for the number, which not every VNI fits in.
bool is_automatic_target(const ExtendedCommunity& target, net::Vni vni) {
  if (target[0] == 0x00) {
    const uint32_t value = number(std::span(target).subspan(4, 4));
    return value == vni.value || value == (kRfc8365Vxlan | vni.value);
  }
  return number(std::span(target).subspan(6, 2)) == vni.value;
}

std::string hex(const ExtendedCommunity& community) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (const uint8_t octet : community) {
    text += kHex[octet >> 4];
    text += kHex[octet & 15];
  }
  return text;
}

std::optional<MacMobility> to_mac_mobility(const ExtendedCommunity& community) {
  if (community[0] != kEvpnType || community[1] != kMacMobilitySub) return std::nullopt;
  return MacMobility{(community[2] & kStickyFlag) != 0, number(std::span(community).subspan(4, 4))};
}

std::optional<ArpNdFlags> to_arp_nd(const ExtendedCommunity& community) {
  if (community[0] != kEvpnType || community[1] != kArpNdSub) return std::nullopt;
  return ArpNdFlags{(community[2] & kRouterFlag) != 0, (community[2] & kOverrideFlag) != 0,
                    (community[2] & kImmutableFlag) != 0};
}

}  // namespace

ExtendedCommunity make_mac_mobility(const MacMobility& value) {
  ExtendedCommunity community{kEvpnType, kMacMobilitySub};
  if (value.sticky) community[2] = kStickyFlag;
  put<4>(community, 4, value.sequence);
  return community;
}

std::optional<MacMobility> mac_mobility(const bgp::Attributes& attributes) {
  const auto* community = first(attributes, kEvpnType, kMacMobilitySub);
  if (community == nullptr) return std::nullopt;
  return to_mac_mobility(*community);
}

ExtendedCommunity make_arp_nd(const ArpNdFlags& value) {
  ExtendedCommunity community{kEvpnType, kArpNdSub};
  community[2] = static_cast<uint8_t>((value.router ? kRouterFlag : 0) |
                                      (value.override_flag ? kOverrideFlag : 0) |
                                      (value.immutable ? kImmutableFlag : 0));
  return community;
}

std::optional<ArpNdFlags> arp_nd(const bgp::Attributes& attributes) {
  const auto* community = first(attributes, kEvpnType, kArpNdSub);
  if (community == nullptr) return std::nullopt;
  return to_arp_nd(*community);
}

ExtendedCommunity make_encapsulation(uint16_t type) {
  ExtendedCommunity community{kOpaqueType, kEncapsulationSub};
  put<2>(community, 6, type);
  return community;
}

std::optional<uint16_t> encapsulation(const bgp::Attributes& attributes) {
  const auto* community = first(attributes, kOpaqueType, kEncapsulationSub);
  if (community == nullptr) return std::nullopt;
  return tunnel_type(*community);
}

bool accepts_vxlan(const bgp::Attributes& attributes) {
  bool any = false;
  for (const auto& community : attributes.extended_communities) {
    if (community[0] != kOpaqueType || community[1] != kEncapsulationSub) continue;
    if (tunnel_type(community) == kEncapsulationVxlan) return true;
    any = true;
  }
  return !any;
}

bool is_route_target(const ExtendedCommunity& community) {
  return community[0] <= 0x02 && community[1] == kRouteTargetSub;
}

RouteTarget make_route_target(uint32_t as_number, uint32_t value) {
  RouteTarget target{0x00, kRouteTargetSub};
  if (as_number <= 0xffff) {
    put<2>(target, 2, as_number);
    put<4>(target, 4, value);
  } else {
    target[0] = 0x02;
    put<4>(target, 2, as_number);
    put<2>(target, 6, value);
  }
  return target;
}

RouteTarget auto_route_target(net::AsNumber as, net::Vni vni) {
  return make_route_target(as.value & 0xffff, vni.value);
}

RouteTarget rfc8365_route_target(net::AsNumber as, net::Vni vni) {
  return make_route_target(as.value & 0xffff, kRfc8365Vxlan | vni.value);
}

std::vector<std::string> import_target_texts(const Settings& settings) {
  const uint32_t vni = settings.vni.value;
  if (settings.import_targets.empty())
    return {"*:" + std::to_string(vni), "*:" + std::to_string(kRfc8365Vxlan | vni)};
  std::vector<std::string> out;
  for (const auto& target : settings.import_targets) out.push_back(route_target_text(target));
  return out;
}

std::vector<std::string> export_target_texts(const Settings& settings) {
  if (settings.export_targets.empty())
    return {route_target_text(auto_route_target(settings.local_as, settings.vni))};
  std::vector<std::string> out;
  for (const auto& target : settings.export_targets) out.push_back(route_target_text(target));
  return out;
}

bool imports(const Settings& settings, const bgp::Attributes& attributes) {
  return std::ranges::any_of(attributes.extended_communities, [&](const auto& community) {
    if (!is_route_target(community)) return false;
    if (settings.import_targets.empty()) return is_automatic_target(community, settings.vni);
    return std::ranges::find(settings.import_targets, community) != settings.import_targets.end();
  });
}

std::string to_string(const ExtendedCommunity& community) {
  if (is_route_target(community)) return "RT:" + route_target_text(community);
  if (community[0] == kOpaqueType && community[1] == kEncapsulationSub)
    return "ET:" + std::to_string(tunnel_type(community));
  if (const auto mobility = to_mac_mobility(community))
    return "MM:" + std::to_string(mobility->sequence) + (mobility->sticky ? ",sticky" : "");
  if (const auto flags = to_arp_nd(community)) {
    std::string text;
    if (flags->router) text += ",R";
    if (flags->override_flag) text += ",O";
    if (flags->immutable) text += ",I";
    return "ND:" + (text.empty() ? "-" : text.substr(1));
  }
  return hex(community);
}

net::Bytes encode_pmsi(const PmsiTunnel& value) {
  net::ByteWriter out;
  out.u8(value.flags);
  out.u8(value.tunnel_type);
  out.u24(value.label);
  out.bytes(value.endpoint.bytes());
  return out.take();
}

std::optional<PmsiTunnel> decode_pmsi(const net::Bytes& value) {
  net::ByteReader in(value);
  PmsiTunnel tunnel;
  tunnel.flags = in.u8();
  tunnel.tunnel_type = in.u8();
  tunnel.label = in.u24();
  const auto endpoint = net::IpAddress::from_bytes(in.rest());
  if (!in.ok() || !endpoint || tunnel.tunnel_type != kIngressReplication) return std::nullopt;
  tunnel.endpoint = *endpoint;
  return tunnel;
}

}  // namespace evpn
