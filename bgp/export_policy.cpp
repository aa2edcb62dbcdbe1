// SPDX-License-Identifier: GPL-2.0-or-later
// The next hop is the VTEP and is never touched, whoever the neighbor is (RFC 8365 section 5.1.3);
// neither is the PMSI tunnel, nor what we don't know.
#include "bgp/export_policy.h"

#include <algorithm>
#include <utility>

namespace bgp {
namespace {

constexpr uint8_t kNonTransitive = 0x40;  // of an extended community's type, RFC 4360 section 2
constexpr uint32_t kDefaultLocalPref = 100;

void prepend(std::vector<AsPathSegment>& path, uint32_t as_number) {
  if (path.empty() || path[0].type != AsPathSegment::Sequence || path[0].as_numbers.size() >= 255)
    path.insert(path.begin(), AsPathSegment{AsPathSegment::Sequence, {}});
  auto& first = path[0].as_numbers;
  first.insert(first.begin(), as_number);
}

void to_internal(Attributes& a, const ExportContext& context) {
  if (context.source == SourceKind::Local) {
    if (!a.local_pref) a.local_pref = kDefaultLocalPref;
  } else if (context.source == SourceKind::External) {
    // These don't pass an AS border; what another AS says in them does not count (RFC 4271
    // section 5.1.5, RFC 4456 section 8).
    a.local_pref = kDefaultLocalPref;
    a.originator_id.reset();
    a.cluster_list.clear();
  } else {
    if (!a.originator_id) a.originator_id = context.source_router_id;
    a.cluster_list.insert(a.cluster_list.begin(), context.cluster_id);
  }
}

void to_external(Attributes& a, const GroupKey& group, const ExportContext& context) {
  a.local_pref.reset();
  a.originator_id.reset();
  a.cluster_list.clear();
  if (group.role == NeighborRole::RouteServerClient) {
    // A client's path is not touched. A route that began in our own AS has to carry our AS all the
    // same: an empty path from an external neighbor is an error (RFC 4271 section 5.1.2).
    if (context.source != SourceKind::External && a.as_path.empty())
      prepend(a.as_path, context.local_as);
    return;
  }
  prepend(a.as_path, context.local_as);
  if (context.source != SourceKind::Local) a.multi_exit_disc.reset();
  std::erase_if(a.extended_communities,
                [](const ExtendedCommunity& c) { return (c[0] & kNonTransitive) != 0; });
}

// RFC 9047 section 3.2: of several ARP/ND communities only the first counts, and only that one is
// passed on.
void keep_first_arp_nd(std::vector<ExtendedCommunity>& communities) {
  bool seen = false;
  std::erase_if(communities, [&](const ExtendedCommunity& c) {
    return c[0] == 0x06 && c[1] == 0x08 && std::exchange(seen, true);
  });
}

}  // namespace

SourceKind source_kind(const PeerTraits& traits) {
  if (!traits.internal) return SourceKind::External;
  return traits.role == NeighborRole::ReflectorClient ? SourceKind::Client : SourceKind::NonClient;
}

GroupKey group_key(const PeerTraits& traits) {
  GroupKey key{traits.internal,
               traits.role,
               traits.four_octet_as,
               traits.max_message,
               traits.strip_extended_communities,
               traits.long_lived,
               traits.send};
  // A role that does not belong to the kind of session means nothing.
  const NeighborRole belongs =
      traits.internal ? NeighborRole::ReflectorClient : NeighborRole::RouteServerClient;
  if (key.role != belongs) key.role = NeighborRole::Peer;
  std::ranges::sort(key.strip);
  key.strip.erase(std::unique(key.strip.begin(), key.strip.end()), key.strip.end());
  return key;
}

bool may_export(const GroupKey& group, SourceKind source, uint8_t flags) {
  if ((flags & AttributeDigest::kLlgrStale) != 0 && !group.long_lived) return false;
  // A route server hands communities through to its clients and does not act on them (RFC 7947
  // section 2.2.4).
  if (group.role != NeighborRole::RouteServerClient) {
    if ((flags & AttributeDigest::kNoAdvertise) != 0) return false;
    if ((flags & AttributeDigest::kNoExport) != 0 && !group.internal) return false;
  }
  // RFC 4456 section 6: what a non-client says goes to clients, and out of the AS.
  return source != SourceKind::NonClient || !group.internal ||
         group.role == NeighborRole::ReflectorClient;
}

Attributes exported(Attributes a, const GroupKey& group, const ExportContext& context) {
  if (group.internal)
    to_internal(a, context);
  else
    to_external(a, group, context);
  std::erase_if(a.extended_communities, [&](const ExtendedCommunity& c) {
    return std::ranges::binary_search(group.strip, std::pair(c[0], c[1]));
  });
  keep_first_arp_nd(a.extended_communities);
  return a;
}

}  // namespace bgp
