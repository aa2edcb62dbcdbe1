// SPDX-License-Identifier: GPL-2.0-or-later
// Pure functions over messages and attributes.
#include "bgp/io/targets.h"

#include <algorithm>

#include "bgp/export_policy.h"

namespace bgp::io {
namespace {

constexpr uint32_t kFromClient = 200, kFromOther = 100;  // LOCAL_PREF

}  // namespace

AttributesPtr membership_attributes(const AttributesPtr& received, const PeerTraits& peer) {
  if (received == nullptr || !peer.internal) return received;
  auto attributes = std::make_shared<Attributes>(*received);
  attributes->local_pref = peer.role == NeighborRole::ReflectorClient ? kFromClient : kFromOther;
  return attributes;
}

bool is_own_membership(const Attributes& attributes, uint32_t local_as, uint32_t router_id,
                       bool internal) {
  return as_path_contains(attributes, local_as) ||
         (internal && attributes.originator_id == router_id);
}

net::Bytes default_membership(const PeerTraits& peer, const ExportContext& us,
                              const net::IpAddress& next_hop) {
  Attributes attributes;
  attributes.next_hop = next_hop;
  const net::Bytes encoded = encode_attributes(exported(attributes, group_key(peer), us),
                                               {.four_octet_as = peer.four_octet_as});
  const net::Bytes nlri = default_membership_nlri();
  const std::span<const uint8_t> view = nlri;
  return encode_reach(kRouteTargetConstrain, next_hop, encoded, {&view, 1}, kMaxMessage).message;
}

bool drops_default(std::span<const uint8_t> message) {
  if (message.size() < kHeaderSize) return false;
  const auto body = message.subspan(kHeaderSize);
  if (message[18] == static_cast<uint8_t>(MessageType::RouteRefresh)) {
    const auto refresh = decode_route_refresh(body);
    return refresh && refresh->subtype == 1;
  }
  if (message[18] != static_cast<uint8_t>(MessageType::Update)) return false;
  const auto update = decode_update(body, route_target_family(), {});
  return update && std::ranges::any_of(update->unreach, [](const NlriItem& item) {
           return is_default_membership(item.key());
         });
}

}  // namespace bgp::io
