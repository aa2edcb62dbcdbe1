// SPDX-License-Identifier: GPL-2.0-or-later
// One neighbor, configured or accepted from a prefix: its session, its connections, and what it
// puts into and takes out of the RIB. Carries out the session's actions; decides nothing itself but
// how much is queued.
#pragma once
#include <spdlog/logger.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bgp/io/connection.h"
#include "bgp/io/observer.h"
#include "bgp/io/speaker.h"
#include "bgp/rib.h"
#include "bgp/rt_constrain.h"
#include "bgp/session.h"

namespace bgp::io {

// What the neighbors of a speaker share.
struct Core {
  boost::asio::io_context& io;
  Family family;
  Settings settings;
  Rib rib;
  Rib target_rib;  // family 1/132, RFC 4684
  std::shared_ptr<ConnectionPool> pool;
  std::shared_ptr<spdlog::logger> log;
  std::function<void()> changed;   // the RIB was touched: have it flushed soon
  std::function<void()> progress;  // a neighbor came up or sent its End-of-RIB
  std::vector<Tap*> taps;
  std::function<void()> at_rest;  // a dynamic neighbor has nothing more to it

  Rib& rib_of(AfiSafi family_id) { return family_id == kRouteTargetConstrain ? target_rib : rib; }
  std::function<NeighborPolicies(const NeighborSettings&)> policies{};  // empty: none

  [[nodiscard]] NeighborPolicies policies_of(const NeighborSettings& neighbor) const {
    return policies ? policies(neighbor) : NeighborPolicies{};
  }
};

// Tells neighbors apart: a link-local address may be that of another one on each interface.
struct NeighborKey {
  net::IpAddress address;
  std::string interface;
  auto operator<=>(const NeighborKey&) const = default;
};
[[nodiscard]] NeighborKey key_of(const NeighborSettings& settings);
[[nodiscard]] std::string to_string(const NeighborKey& key);  // "fe80::1%eth0"

class Neighbor : public std::enable_shared_from_this<Neighbor> {
 public:
  Neighbor(Core& core, PeerId peer, NeighborSettings settings, uint64_t seed);
  ~Neighbor();

  void start();
  void stop(const std::optional<Notification>& notification);
  // Ends the session for good, `why` being a subcode of Cease, with a text for the other operator:
  // `text`, or that of the settings.
  void shut_down(uint8_t why, const std::string& text = {});
  void reset(const std::string& text);
  void set_enabled(bool enabled, const std::string& text);
  [[nodiscard]] std::expected<void, std::string> ask_refresh();
  void accept(tcp::socket socket);
  // Fills the socket's queue from the RIB. Returns how many octets that were.
  std::size_t refill();
  // What needs no new session: description, group, limit, policies.
  void adopt(const NeighborSettings& settings);
  // Asks for the policies again; what is in the RIB is judged by them.
  void apply_policies();
  void set_restarting(bool restarting) { session_.set_restarting(restarting); }

  PeerId peer() const { return peer_; }
  const NeighborSettings& settings() const { return settings_; }
  const std::string& name() const { return name_; }
  // The prefix that it was accepted from.
  void set_dynamic(const net::IpPrefix& prefix) { dynamic_ = prefix; }
  const std::optional<net::IpPrefix>& dynamic() const { return dynamic_; }
  // A dynamic one whose session is over and of which nothing is kept.
  [[nodiscard]] bool may_go() const;
  bool is_shut_down() const { return shut_down_; }
  void keep_shut_down() { shut_down_ = true; }  // over a change of its settings
  // Why connections of it must not be accepted: its keys could not be set on a listener.
  void set_unprotected(std::string why) { unprotected_ = std::move(why); }
  const std::string& unprotected() const { return unprotected_; }
  std::size_t unestablished() const;  // accepted connections that are no session
  // Hands a changed set of memberships to the RIB as a filter.
  void apply_memberships();
  bool refuses_connections() const { return !session_.accept_slot().has_value(); }
  // For convergence after our start: nothing more is to be waited for.
  bool caught_up() const;
  bool targets_caught_up() const;
  NeighborView view() const;
  const SessionInfoPtr& session_info() const { return observer_.session(); }  // null: not up

 private:
  void dispatch(const Event& event);
  void perform(Action& action);
  void perform_up(Slot slot);
  void perform_ended(const action::Ended& ended);
  void perform_routes(const action::Routes& routes);
  void perform_membership_routes(const Update& update);
  void perform_told(AfiSafi family);
  void perform_refresh(const action::Refresh& refresh);
  void perform_refresh_begins(AfiSafi family);
  void perform_refresh_ends(const action::RefreshEnds& ends);
  void perform_stale(AfiSafi family, bool long_lived);
  void memberships_changed();
  bool owes_default() const;
  void send_default();
  void fill(const Connection& connection);
  void send(std::shared_ptr<const net::Bytes> message, bool of_targets);
  void log_errors(const Update& update);
  void enforce_limit();
  void note_limit(uint64_t received);
  void exceed_limit(AfiSafi family, uint64_t received);
  void rest();
  std::optional<uint32_t> interface() const;
  void connect();
  void fail_connect(const std::string& why);
  void attach(Slot slot, tcp::socket socket);
  void arm_timer();
  void note_state();
  SessionInfo session_info_of(Slot slot, const Open& open);
  void add_connection(NeighborView& view) const;
  std::shared_ptr<Connection>& at(Slot slot) { return connections_[static_cast<size_t>(slot)]; }

  Core& core_;
  const PeerId peer_;
  NeighborSettings settings_;
  std::string name_;  // "192.0.2.1 (rs1)"
  Session session_;
  boost::asio::steady_timer timer_;
  net::TimePoint armed_ = net::kNever;
  std::array<std::shared_ptr<Connection>, 3> connections_;
  std::unique_ptr<tcp::socket> connecting_;
  uint64_t connect_number_ = 0;
  std::optional<Slot> up_;
  PeerTraits traits_;  // while up
  std::optional<net::IpPrefix> dynamic_;
  std::string unprotected_;
  bool shut_down_ = false;  // by the operator
  bool held_down_ = false;  // after Maximum Number of Prefixes, until the operator resets it
  bool over_limit_ = false;
  bool limit_logged_ = false;
  bool resting_ = false;          // at_rest() was called
  bool end_of_rib_seen_ = false;  // since our start
  bool targets_seen_ = false;     // the End-of-RIB of memberships, in this session
  bool targets_ = false;          // RT-constrain was negotiated
  bool memberships_dirty_ = false;
  bool default_owed_ = false;  // the membership for everything is to be sent
  TargetMemberships memberships_;
  net::TimePoint last_error_log_{};
  uint64_t errors_not_logged_ = 0;
  SessionState shown_state_ = SessionState::Idle;
  net::TimePoint since_;
  Observer observer_;
  NeighborView counters_;  // only counters and last_error are used
};

}  // namespace bgp::io
