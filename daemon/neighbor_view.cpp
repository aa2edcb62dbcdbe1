// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/neighbor_view.h"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/app.h"
#include "daemon/json_values.h"
#include "daemon/list_answer.h"
#include "daemon/route_view.h"

namespace peerland {
namespace {

namespace json = boost::json;

json::value optional_seconds(const std::optional<std::chrono::seconds>& time) {
  return time ? json::value(time->count()) : json::value(nullptr);
}

const char* role_text(bgp::NeighborRole role) {
  switch (role) {
    case bgp::NeighborRole::Peer: return "peer";
    case bgp::NeighborRole::ReflectorClient: return "reflector-client";
    case bgp::NeighborRole::RouteServerClient: return "route-server-client";
  }
  return "?";
}

json::object messages(const std::array<uint64_t, bgp::io::NeighborView::kMessageTypes>& counts) {
  const auto of = [&](bgp::MessageType type) { return counts[static_cast<std::size_t>(type)]; };
  return {{"open", of(bgp::MessageType::Open)},
          {"update", of(bgp::MessageType::Update)},
          {"notification", of(bgp::MessageType::Notification)},
          {"keepalive", of(bgp::MessageType::Keepalive)},
          {"route_refresh", of(bgp::MessageType::RouteRefresh)},
          {"unknown", counts[0]}};
}

json::object rejected_by(const bgp::PeerCounts& counts) {
  const auto of = [&](bgp::Rejected reason) {
    return counts.rejected_by[static_cast<std::size_t>(reason)];
  };
  return {{"own_as_in_path", of(bgp::Rejected::OwnAsInPath)},
          {"own_originator_id", of(bgp::Rejected::OwnOriginatorId)},
          {"own_cluster_id", of(bgp::Rejected::OwnClusterId)},
          {"policy", of(bgp::Rejected::Policy)}};
}

uint64_t resets(const bgp::io::NeighborView& n) {
  uint64_t count = 0;
  for (const auto& one : n.notifications)
    if (one.sent && one.code == bgp::ErrorCode::UpdateMessage) count += one.count;
  return count;
}

}  // namespace

json::object neighbor_row(const bgp::io::NeighborView& n) {
  const auto& s = n.settings;
  json::array timers, notifications;
  for (const auto& timer : n.timers)
    timers.push_back(json::object{{"name", timer.name}, {"left_seconds", timer.left.count()}});
  for (const auto& one : n.notifications)
    notifications.push_back(json::object{{"direction", one.sent ? "sent" : "received"},
                                         {"code", static_cast<int>(one.code)},
                                         {"subcode", one.subcode},
                                         {"text", one.text},
                                         {"count", one.count}});
  const bool connected = n.local_address.has_value();
  return {
      {"address", n.address},
      {"description", optional_text(s.description)},
      {"group", optional_text(s.group)},
      {"remote_as", s.remote_as.value},
      {"role", role_text(s.role)},
      {"enabled", s.enabled},
      {"dynamic", n.dynamic},
      {"shut_down", n.shut_down},
      {"state", n.state},
      {"state_seconds", n.since.count()},
      {"remote_router_id", or_null(n.remote_router_id)},
      {"local_address", or_null(n.local_address)},
      {"local_port", connected ? json::value(n.local_port) : json::value(nullptr)},
      {"remote_address", or_null(n.remote_address)},
      {"remote_port", connected ? json::value(n.remote_port) : json::value(nullptr)},
      {"hold_time_seconds", n.hold_time.count()},
      {"keepalive_seconds", n.hold_time.count() / 3},
      {"connect_retry_seconds", s.connect_retry.count()},
      {"timers", std::move(timers)},
      {"capabilities_sent", texts(n.capabilities_sent)},
      {"capabilities_received", texts(n.capabilities_received)},
      {"messages_in", n.messages_in},
      {"messages_out", n.messages_out},
      {"updates_in", n.updates_in},
      {"updates_out", n.updates_out},
      {"messages_in_by_type", messages(n.in_by_type)},
      {"messages_out_by_type", messages(n.out_by_type)},
      {"routes_received", n.counts.received},
      {"routes_accepted", n.counts.received - std::min(n.counts.received, n.counts.rejected)},
      {"routes_rejected", n.counts.rejected},
      {"routes_rejected_by_reason", rejected_by(n.counts)},
      {"routes_flagged", n.counts.flagged},
      {"routes_stale", n.counts.stale},
      {"routes_advertised", n.counts.advertised},
      {"queued", n.counts.queued},
      {"stale_kept", n.stale_kept},
      {"long_lived", n.long_lived},
      {"families", texts(n.families)},
      {"memberships", n.memberships},
      {"over_warning", n.over_warning},
      {"max_prefix_warnings", n.max_prefix_warnings},
      {"established_count", n.established_count},
      {"dropped_count", n.dropped_count},
      {"attributes_discarded", n.attributes_discarded},
      {"treated_as_withdraw", n.treated_as_withdraw},
      {"nlri_discarded", n.nlri_discarded},
      {"family_ignored", n.family_ignored},
      {"sessions_reset", resets(n)},
      {"notifications", std::move(notifications)},
      {"last_error", optional_text(n.last_error)},
      {"last_error_direction", optional_text(n.last_error_direction)},
      {"last_error_data", optional_text(n.last_error_data)},
      {"last_error_seconds", optional_seconds(n.last_error_age)},
      {"last_notification", optional_text(n.last_notification)},
      {"last_notification_direction", optional_text(n.last_notification_direction)},
      {"last_notification_data", optional_text(n.last_notification_data)},
      {"last_notification_seconds", optional_seconds(n.last_notification_age)},
      {"last_update_error", optional_text(n.last_update_error)},
      {"last_update_error_data", optional_text(n.last_update_error_data)},
      {"last_update_error_seconds", optional_seconds(n.last_update_error_age)},
  };
}

std::expected<Answer, std::string> show_neighbors(const App& app, const Filter& filter) {
  std::vector<bgp::PeerId> peers = app.speaker().neighbor_ids();
  if (!filter.neighbor.empty()) {
    auto named = peers_named(app, filter.neighbor);
    if (!named) return std::unexpected(named.error());
    peers = std::move(*named);
    if (peers.front() == bgp::kLocalPeer)
      return std::unexpected("neighbor: there is no \"" + filter.neighbor + "\"");
  }
  return list_answer("neighbors", [&app, peers = std::move(peers),
                                   next = std::size_t{0}](std::vector<std::string>& rows) mutable {
    if (next < peers.size())
      if (const auto view = app.speaker().neighbor(peers[next++]))  // or removed meanwhile
        rows.push_back(json::serialize(neighbor_row(*view)));
    return next < peers.size();
  });
}

}  // namespace peerland
