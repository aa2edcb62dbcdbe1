// SPDX-License-Identifier: GPL-2.0-or-later
// The BGP speaker: owns every BGP socket, the sessions and the RIB. The only place in bgp/ that
// does I/O. One Asio thread; all calls and callbacks happen on it.
#pragma once
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bgp/family.h"
#include "bgp/rib.h"
#include "bgp/settings.h"

namespace boost::asio {
class io_context;
}

namespace bgp::io {

struct NeighborView {
  NeighborSettings settings;
  PeerId peer = 0;
  std::string state;             // Idle, Connect, Active, OpenSent, OpenConfirm, Established
  std::chrono::seconds since{};  // in this state
  std::optional<net::IpAddress> remote_router_id;
  std::chrono::seconds hold_time{};  // negotiated
  std::vector<std::string> capabilities_sent, capabilities_received;
  uint64_t messages_in = 0, messages_out = 0, updates_in = 0, updates_out = 0;
  uint64_t established_count = 0, dropped_count = 0;
  // RFC 7606 outcomes and discarded NLRI since start.
  uint64_t attributes_discarded = 0, treated_as_withdraw = 0, nlri_discarded = 0;
  PeerCounts counts;
  bool stale_kept = false;      // helper mode, RFC 4724: waiting for its return
  std::string last_error;       // "sent Cease/Administrative Shutdown", "hold timer", ...
  std::string last_error_data;  // NOTIFICATION data in hex
};

// The rules of one neighbor, as the application makes them out of its settings.
struct NeighborPolicies {
  RoutePolicyPtr accept, send;  // null: everything
};

struct StartError {
  std::string what;  // "listen on 192.0.2.1 port 179: Address already in use"
};

class Speaker {
 public:
  Speaker(boost::asio::io_context& io, const Family& family, const Settings& settings);
  ~Speaker();

  // Opens the listeners and starts the neighbors. On an error nothing is left open.
  [[nodiscard]] std::expected<void, StartError> start();
  // Ends all sessions. With graceful, the sockets are closed without NOTIFICATION, so that peers
  // with graceful restart keep our routes (RFC 4724); else Cease/Administrative Shutdown (RFC 9003
  // text). Neither is told to on_changes(): forwarding goes on. `done` is called once everything
  // that had to be written is written or 1 s has passed.
  void stop(bool graceful, const std::string& text, std::function<void()> done);

  // Our own routes. `item` as from Family::next().
  void originate(const NlriItem& item, const AttributesPtr& attributes);
  void withdraw(const NlriItem& item);

  // Called after each batch with what changed in the Loc-RIB, our own routes included (kLocalPeer).
  void on_changes(std::function<void(const std::vector<RibChange>&)> handler);
  // Called once when every neighbor with graceful restart has sent its End-of-RIB after our start,
  // or when the restart time is over: the moment to remove from the kernel what nobody announced
  // again.
  void on_converged(std::function<void()> handler);

  // Asked for each neighbor, from now on and again for those that are there: call it before start()
  // and whenever the rules or the member database changed.
  void set_policies(std::function<NeighborPolicies(const NeighborSettings&)> provider);

  [[nodiscard]] std::vector<NeighborView> neighbors() const;
  [[nodiscard]] const Rib& rib() const;
  // Address (and description) of a peer id, for views; "local" for kLocalPeer.
  [[nodiscard]] std::string peer_name(PeerId peer) const;

  // Applies new settings as a difference: neighbors that did not change keep their sessions.
  // Changes of local AS, router id or listen addresses are refused with the reason.
  [[nodiscard]] std::expected<void, StartError> reconfigure(const Settings& settings);

  // Where we listen, with the port that was given for port 0.
  [[nodiscard]] std::vector<ListenSettings> listening() const;
  // Connections closed because they came from no neighbor, or from one that may not connect now.
  [[nodiscard]] uint64_t rejected_connections() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace bgp::io
