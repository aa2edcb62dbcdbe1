// SPDX-License-Identifier: GPL-2.0-or-later
// Within the speaker an event is only kept; its line is made when the client takes it.
#include "daemon/monitor.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <expected>
#include <utility>

#include "daemon/answer.h"
#include "daemon/app.h"
#include "daemon/route_view.h"

namespace peerland {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxClients = 16;
constexpr std::size_t kMaxEvents = 4096;  // that wait for one client

// "2026-11-30T21:01:48.123Z", RFC 3339.
std::string text_of(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)), ms.count() % 1000);
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace

Monitor::~Monitor() = default;

std::expected<Monitor::ClientPtr, std::string> Monitor::add(const std::string& what,
                                                            const Filter& filter,
                                                            std::function<void()> wake) {
  if (!what.empty() && what != "routes" && what != "neighbors")
    return std::unexpected("monitor: expected routes or neighbors, got \"" + what + "\"");
  if (clients_.size() >= kMaxClients)
    return std::unexpected(
        fmt::format("monitor: there are {} already, no more are served", kMaxClients));
  std::vector<bgp::PeerId> peers;
  if (!filter.neighbor.empty()) {
    auto named = peers_named(app_, filter.neighbor);
    if (!named) return std::unexpected(named.error());
    peers = std::move(*named);
  }
  const ClientPtr client(new Client(*this, filter, std::move(peers)));
  client->routes_ = what != "neighbors";
  client->neighbors_ = what != "routes";
  client->wake_ = std::move(wake);
  if (clients_.empty()) app_.speaker().add_tap(*this);
  clients_.push_back(client);
  return client;
}

void Monitor::remove(const ClientPtr& client) {
  if (std::erase(clients_, client) == 0) return;
  client->wake_ = nullptr;
  if (clients_.empty()) app_.speaker().remove_tap(*this);
}

// --- What happens -------------------------------------------------------------------------------

void Monitor::state_changed(bgp::PeerId peer, const std::string& name, bgp::SessionState from,
                            bgp::SessionState to) {
  for (const auto& client : clients_)
    if (client->neighbors_ && client->wants(peer))
      client->add({std::chrono::system_clock::now(), Client::Event::State{peer, name, from, to}});
}

void Monitor::session_up(const bgp::io::SessionInfo& session) {
  for (const auto& client : clients_)
    if (client->neighbors_ && client->wants(session.peer))
      client->add({std::chrono::system_clock::now(),
                   Client::Event::Up{session.peer, session.name, session.router_id}});
}

void Monitor::session_down(const bgp::io::SessionInfo& session, const bgp::EndReason&,
                           const std::string& text) {
  for (const auto& client : clients_)
    if (client->neighbors_ && client->wants(session.peer))
      client->add({std::chrono::system_clock::now(),
                   Client::Event::Down{session.peer, session.name, text}});
}

void Monitor::best_changed(const std::vector<bgp::RibChange>& changes) {
  const auto time = std::chrono::system_clock::now();
  for (const auto& client : clients_) {
    if (!client->routes_) continue;
    for (const bgp::RibChange& change : changes)
      if (client->wants(change)) client->add({time, bgp::KeptRibChange(change)});
  }
}

// --- A client -----------------------------------------------------------------------------------

bool Monitor::Client::wants(bgp::PeerId peer) const {
  return peers_.empty() || std::ranges::find(peers_, peer) != peers_.end();
}

bool Monitor::Client::wants(const bgp::RibChange& change) const {
  const bool from = (change.attributes != nullptr && wants(change.peer)) ||
                    (change.previous && wants(*change.previous));
  if (!from || !wants_nlri(filter_, change.nlri)) return false;
  if (!filter_.vni) return true;
  const auto route = evpn::decode(change.nlri);
  if (!route) return false;
  // The VNI of a withdrawn multicast route is not known any more: it is told.
  return (!change.attributes && std::holds_alternative<evpn::InclusiveMulticast>(*route)) ||
         wants_vni(filter_, *route, change.attributes);
}

void Monitor::Client::add(Event event) {
  if (events_.size() >= kMaxEvents) {
    ++lost_;
    ++monitor_.lost_;
    return;
  }
  const bool idle = events_.empty();
  if (lost_ > 0) events_.push_back({event.time, Event::Lost{std::exchange(lost_, 0)}});
  events_.push_back(std::move(event));
  if (idle && wake_) wake_();
}

std::string Monitor::Client::take() {
  std::string text;
  const auto limit = net::Clock::now() + kPieceTime;
  while (!events_.empty() && text.size() < kPieceOctets && net::Clock::now() < limit) {
    text += line(events_.front());
    events_.pop_front();
  }
  if (events_.empty() && lost_ > 0)
    text += line({std::chrono::system_clock::now(), Event::Lost{std::exchange(lost_, 0)}});
  return text;
}

std::string Monitor::Client::line(const Event& event) const {
  json::object row{{"schema", kSchema}, {"time", text_of(event.time)}};
  std::visit(Overloaded{
                 [&](const Event::State& state) {
                   row["event"] = "neighbor-state";
                   row["neighbor"] = state.name;
                   row["from"] = bgp::to_string(state.from);
                   row["to"] = bgp::to_string(state.to);
                 },
                 [&](const Event::Down& down) {
                   row["event"] = "neighbor-down";
                   row["neighbor"] = down.name;
                   row["reason"] = down.reason;
                 },
                 [&](const Event::Up& up) {
                   row["event"] = "neighbor-up";
                   row["neighbor"] = up.name;
                   row["remote_router_id"] = to_string(net::IpAddress::v4(up.router_id));
                 },
                 [&](const Event::Lost& lost) {
                   row["event"] = "lost";
                   row["count"] = lost.count;
                 },
                 [&](const bgp::KeptRibChange& change) {
                   const auto& speaker = monitor_.app_.speaker();
                   row["event"] = change.attributes ? "route-changed" : "route-withdrawn";
                   if (const auto route = evpn::decode(change.nlri))
                     add_nlri_fields(row, *route, change.nlri[0], change.attributes);
                   row["neighbor"] = change.attributes ? json::value(speaker.peer_name(change.peer))
                                                       : json::value(nullptr);
                   row["previous"] = change.previous
                                         ? json::value(speaker.peer_name(*change.previous))
                                         : json::value(nullptr);
                   if (change.attributes) add_attribute_fields(row, *change.attributes);
                 },
             },
             event.what);
  return json::serialize(row) + "\n";
}

}  // namespace peerland
