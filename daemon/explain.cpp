// SPDX-License-Identifier: GPL-2.0-or-later
// The steps are those of bgp/best_path.cpp; the values are what these compared.
#include "daemon/explain.h"

#include <fmt/format.h>

namespace peerland {
namespace {

using bgp::BestPathReason;
using bgp::PathView;
using bgp::Rejected;

std::string address(uint32_t id) { return net::to_string(net::IpAddress::v4(id)); }

const char* origin(const PathView& path) {
  switch (path.attributes->origin) {
    case bgp::Origin::Igp: return "IGP";
    case bgp::Origin::Egp: return "EGP";
    case bgp::Origin::Incomplete: return "incomplete";
  }
  return "?";
}

uint32_t router_id(const PathView& path, const PathSource& source) {
  return source.internal ? path.attributes->originator_id.value_or(source.router_id)
                         : source.router_id;
}

uint32_t local_pref(const PathView& path, const PathSource& source) {
  return source.internal ? path.attributes->local_pref.value_or(100) : 100;
}

std::string rejection(const PathView& path, const PathSource& source, const Identity& us) {
  switch (path.rejected) {
    case Rejected::OwnAsInPath:
      return fmt::format("rejected: our AS {} is in its AS path \"{}\"", us.local_as,
                         bgp::as_path_text(*path.attributes));
    case Rejected::OwnOriginatorId:
      return fmt::format("rejected: its originator id {} is ours", address(us.router_id));
    case Rejected::OwnClusterId:
      return fmt::format("rejected: our cluster id {} is in its cluster list",
                         address(us.cluster_id));
    case Rejected::Policy:
      return "rejected: " + (source.accept ? source.accept->explain(path.nlri, *path.attributes)
                                           : std::string("policy"));
    default: break;
  }
  return fmt::format("rejected: {}", bgp::to_string(path.rejected));
}

std::string loss(const PathView& path, const PathSource& source, const PathView& best,
                 const PathSource& winner) {
  const std::string than = "than the path from " + winner.name;
  const auto compared = [&](const char* what, auto ours, auto theirs) {
    return fmt::format("lost: {} ({}) {} ({})", what, ours, than, theirs);
  };
  switch (path.reason) {
    case BestPathReason::LongLivedStale:
      return "lost: kept beyond the restart time, the path from " + winner.name + " is current";
    case BestPathReason::LocalRoute: return "lost: this node announces the route itself";
    case BestPathReason::LocalPref:
      return compared("lower local preference", local_pref(path, source), local_pref(best, winner));
    case BestPathReason::AsPathLength:
      return compared("longer AS path", bgp::as_path_length(*path.attributes),
                      bgp::as_path_length(*best.attributes));
    case BestPathReason::Origin: return compared("worse origin", origin(path), origin(best));
    case BestPathReason::MultiExitDisc:
      return fmt::format("lost: higher MED ({}) than another path of the same neighbor AS",
                         path.attributes->multi_exit_disc.value_or(0));
    case BestPathReason::ExternalOverInternal:
      return "lost: from inside the AS, the path from " + winner.name + " is external";
    case BestPathReason::Stale:
      return "lost: kept over a restart, the path from " + winner.name + " is current";
    case BestPathReason::RouterId:
      return compared("higher router id", address(router_id(path, source)),
                      address(router_id(best, winner)));
    case BestPathReason::ClusterListLength:
      return compared("longer cluster list", path.attributes->cluster_list.size(),
                      best.attributes->cluster_list.size());
    case BestPathReason::PeerAddress:
      return "lost: equal in all else, but from a higher address " + than;
    default: break;
  }
  return fmt::format("lost: {}", bgp::to_string(path.reason));
}

}  // namespace

std::string explain(const PathView& path, const PathSource& source, const PathView* best,
                    const PathSource& best_source, const Identity& us) {
  if (path.rejected != Rejected::None) return rejection(path, source, us);
  std::string text;
  if (path.best)
    text = path.reason == BestPathReason::OnlyPath
               ? "best: the only usable path"
               : fmt::format("best: the last other path lost by {}", bgp::to_string(path.reason));
  else if (best != nullptr)
    text = loss(path, source, *best, best_source);
  else
    text = bgp::to_string(path.reason);
  if (path.flagged)
    text += "; flagged: " + (source.accept ? source.accept->explain(path.nlri, *path.attributes)
                                           : std::string("policy"));
  return text;
}

}  // namespace peerland
