// SPDX-License-Identifier: GPL-2.0-or-later
// One configured neighbor: its session, its connections, and what it puts into and takes out of the
// RIB. Carries out the session's actions; decides nothing itself but how much is queued.
#pragma once
#include <spdlog/logger.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "bgp/io/connection.h"
#include "bgp/io/speaker.h"
#include "bgp/rib.h"
#include "bgp/session.h"

namespace bgp::io {

// What the neighbors of a speaker share.
struct Core {
  boost::asio::io_context& io;
  Family family;
  Settings settings;
  Rib rib;
  std::shared_ptr<ConnectionPool> pool;
  std::shared_ptr<spdlog::logger> log;
  std::function<void()> changed;   // the RIB was touched: have it flushed soon
  std::function<void()> progress;  // a neighbor came up or sent its End-of-RIB
  std::function<NeighborPolicies(const NeighborSettings&)> policies{};  // empty: none

  [[nodiscard]] NeighborPolicies policies_of(const NeighborSettings& neighbor) const {
    return policies ? policies(neighbor) : NeighborPolicies{};
  }
};

class Neighbor : public std::enable_shared_from_this<Neighbor> {
 public:
  Neighbor(Core& core, PeerId peer, NeighborSettings settings, uint64_t seed);
  ~Neighbor();

  void start();
  void stop(const std::optional<Notification>& notification);
  void accept(tcp::socket socket);
  // Fills the socket's queue from the RIB.
  void refill();
  // What needs no new session: description, group, limit, policies.
  void adopt(const NeighborSettings& settings);
  // Asks for the policies again; what is in the RIB is judged by them.
  void apply_policies();
  void set_restarting(bool restarting) { session_.set_restarting(restarting); }

  PeerId peer() const { return peer_; }
  const NeighborSettings& settings() const { return settings_; }
  const std::string& name() const { return name_; }
  bool refuses_connections() const { return !session_.accept_slot().has_value(); }
  // For convergence after our start: nothing more is to be waited for.
  bool caught_up() const;
  NeighborView view() const;

 private:
  void dispatch(const Event& event);
  void perform(Action& action);
  void perform_up(Slot slot);
  void perform_ended(const action::Ended& ended);
  void perform_routes(const Update& update);
  void log_errors(const Update& update);
  void enforce_limit();
  void connect();
  void fail_connect(const std::string& why);
  void attach(Slot slot, tcp::socket socket);
  void arm_timer();
  void note_state();
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
  bool over_limit_ = false;
  bool end_of_rib_seen_ = false;  // since our start
  net::TimePoint last_error_log_{};
  uint64_t errors_not_logged_ = 0;
  SessionState shown_state_ = SessionState::Idle;
  net::TimePoint since_;
  NeighborView counters_;  // only counters and last_error are used
};

}  // namespace bgp::io
