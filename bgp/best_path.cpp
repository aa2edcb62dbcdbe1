// SPDX-License-Identifier: GPL-2.0-or-later
// Each step takes away what is worse than the best of those still in, as RFC 4271 section 9.1.2.2
// words it, so that MED, which compares only paths of one neighbor AS, does not make the result
// depend on the order of arrival.
#include "bgp/best_path.h"

#include <algorithm>
#include <utility>

namespace bgp {
namespace {

bool is_in(const Candidate& c) { return c.reason == BestPathReason::OnlyPath; }

// One step: only those with the lowest value stay. True when only one is left.
template <class Value>
bool keep_lowest(std::span<Candidate> candidates, BestPathReason reason, Value&& value) {
  const Candidate* lowest = nullptr;
  for (const Candidate& c : candidates)
    if (is_in(c) && (lowest == nullptr || value(c) < value(*lowest))) lowest = &c;
  const auto limit = value(*lowest);
  std::size_t left = 0;
  for (Candidate& c : candidates) {
    if (!is_in(c)) continue;
    if (limit < value(c))
      c.reason = reason;
    else
      ++left;
  }
  return left == 1;
}

bool keep_lowest_med(std::span<Candidate> candidates) {
  std::size_t left = 0;
  for (Candidate& c : candidates) {
    if (!is_in(c)) continue;
    // Whoever was taken away in this step still counts: its own better stands behind it.
    const bool worse = std::ranges::any_of(candidates, [&](const Candidate& other) {
      return (is_in(other) || other.reason == BestPathReason::MultiExitDisc) &&
             other.neighbor_as == c.neighbor_as && other.multi_exit_disc < c.multi_exit_disc;
    });
    if (worse)
      c.reason = BestPathReason::MultiExitDisc;
    else
      ++left;
  }
  return left == 1;
}

BestPathReason decide(std::span<Candidate> all) {
  using enum BestPathReason;
  // 0. Whatever is not long-lived stale (RFC 9494 section 4.3).
  if (keep_lowest(all, LongLivedStale, [](const Candidate& c) { return c.long_lived_stale; }))
    return LongLivedStale;
  // 1. What we announce ourselves.
  if (keep_lowest(all, LocalRoute, [](const Candidate& c) { return !c.local; })) return LocalRoute;
  // 2. The highest LOCAL_PREF.
  if (keep_lowest(all, LocalPref, [](const Candidate& c) { return ~c.local_pref; }))
    return LocalPref;
  // 3. The shortest AS path.
  if (keep_lowest(all, AsPathLength, [](const Candidate& c) { return c.as_path_length; }))
    return AsPathLength;
  // 4. The lowest ORIGIN.
  if (keep_lowest(all, BestPathReason::Origin, [](const Candidate& c) { return c.origin; }))
    return BestPathReason::Origin;
  // 5. The lowest MULTI_EXIT_DISC among those of one neighbor AS.
  if (keep_lowest_med(all)) return MultiExitDisc;
  // 6. eBGP over iBGP.
  if (keep_lowest(all, ExternalOverInternal, [](const Candidate& c) { return !c.external; }))
    return ExternalOverInternal;
  // 7. What a peer has announced since its restart over what was kept (the RFC leaves this open).
  if (keep_lowest(all, Stale, [](const Candidate& c) { return c.stale; })) return Stale;
  // 8. The lowest router id, ORIGINATOR_ID in its place.
  if (keep_lowest(all, RouterId, [](const Candidate& c) { return c.router_id; })) return RouterId;
  // 9. The shortest CLUSTER_LIST (RFC 4456 section 9).
  if (keep_lowest(all, ClusterListLength, [](const Candidate& c) { return c.cluster_list_length; }))
    return ClusterListLength;
  // 10. The lowest peer address; with the same, the lowest number.
  keep_lowest(all, PeerAddress,
              [](const Candidate& c) { return std::pair(c.peer_address, c.tie); });
  return PeerAddress;
}

}  // namespace

std::size_t select_best(std::span<Candidate> candidates) {
  for (Candidate& c : candidates) c.reason = BestPathReason::OnlyPath;
  if (candidates.size() == 1) return 0;
  const BestPathReason last = decide(candidates);
  const auto best = std::ranges::find_if(candidates, is_in);
  best->reason = last;
  return static_cast<std::size_t>(best - candidates.begin());
}

const char* to_string(BestPathReason reason) {
  switch (reason) {
    case BestPathReason::OnlyPath: return "only path";
    case BestPathReason::LongLivedStale: return "long-lived stale";
    case BestPathReason::LocalRoute: return "local route";
    case BestPathReason::LocalPref: return "local preference";
    case BestPathReason::AsPathLength: return "AS path length";
    case BestPathReason::Origin: return "origin";
    case BestPathReason::MultiExitDisc: return "MED";
    case BestPathReason::ExternalOverInternal: return "eBGP over iBGP";
    case BestPathReason::Stale: return "stale";
    case BestPathReason::RouterId: return "router id";
    case BestPathReason::ClusterListLength: return "cluster list length";
    case BestPathReason::PeerAddress: return "peer address";
  }
  return "unknown";
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Accept: return "accept";
    case Verdict::Flag: return "flag";
    case Verdict::Reject: return "reject";
  }
  return "unknown";
}

const char* to_string(Rejected rejected) {
  switch (rejected) {
    case Rejected::None: return "none";
    case Rejected::OwnAsInPath: return "own AS in path";
    case Rejected::OwnOriginatorId: return "own originator id";
    case Rejected::OwnClusterId: return "own cluster id";
    case Rejected::Policy: return "policy";
  }
  return "unknown";
}

}  // namespace bgp
