// SPDX-License-Identifier: GPL-2.0-or-later
// To whom a route goes and with which attributes: RFC 4271 sections 5 and 9.2, RFC 4456 (route
// reflection), RFC 7947 (route server), RFC 4360 section 6. Pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bgp/attribute_store.h"
#include "bgp/attributes.h"
#include "bgp/rib.h"
#include "bgp/settings.h"

namespace bgp {

// Where a path comes from, as far as passing it on cares.
enum class SourceKind : uint8_t { Local, External, Client, NonClient };

// Everything that makes a difference to what peers are sent: those with equal keys share one update
// group. Whatever is added to the encoding of a route must be added here.
struct GroupKey {
  bool internal = true;
  NeighborRole role = NeighborRole::Peer;
  bool four_octet_as = true;
  std::size_t max_message = 4096;
  std::vector<std::pair<uint8_t, uint8_t>> strip;  // extended communities; sorted, unique
  bool long_lived = false;                         // may get LLGR_STALE routes, RFC 9494
  bool long_lived_lowered = false;                 // gets them as its section 4.6 says
  RoutePolicyPtr send;                             // the same object, not just equal rules
  bool operator==(const GroupKey&) const = default;
};

[[nodiscard]] SourceKind source_kind(const PeerTraits& traits);
[[nodiscard]] GroupKey group_key(const PeerTraits& traits);

// `flags`: AttributeDigest::Flag, for the well-known communities.
[[nodiscard]] bool may_export(const GroupKey& group, SourceKind source, uint8_t flags);

struct ExportContext {
  SourceKind source = SourceKind::Local;
  uint32_t source_router_id = 0;  // of the peer that we have it from
  uint32_t local_as = 0;
  uint32_t cluster_id = 0;
};
// What the group is sent in place of `attributes`.
[[nodiscard]] Attributes exported(Attributes attributes, const GroupKey& group,
                                  const ExportContext& context);

}  // namespace bgp
