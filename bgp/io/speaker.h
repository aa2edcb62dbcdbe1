// SPDX-License-Identifier: GPL-2.0-or-later
// The BGP speaker: owns every BGP socket, the sessions and the RIB. The only place in bgp/ that
// does I/O. One Asio thread; all calls and callbacks happen on it.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bgp/attributes.h"
#include "bgp/family.h"
#include "bgp/io/tap.h"
#include "bgp/message.h"
#include "bgp/rib.h"
#include "bgp/settings.h"

namespace boost::asio {
class io_context;
}

namespace bgp::io {

struct NeighborView {
  NeighborSettings settings;
  std::string address;  // with the interface of a link-local one: "fe80::1%eth0"
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
  bool stale_kept = false;    // helper mode, RFC 4724: waiting for its return
  bool long_lived = false;    // ... beyond its restart time, RFC 9494
  bool dynamic = false;       // accepted from a prefix; `settings` are those of the prefix
  bool shut_down = false;     // by the operator, see set_enabled()
  bool over_warning = false;  // more routes than max_prefixes_warning allows
  uint64_t max_prefix_warnings = 0;
  uint64_t memberships = 0;           // route targets that it has asked for, RFC 4684
  std::vector<std::string> families;  // negotiated: "25/70", "1/132"
  std::string last_error;             // "sent Cease/Administrative Shutdown", "hold timer", ...
  std::string last_error_data;        // NOTIFICATION data in hex

  // By MessageType; 0: of no known type.
  static constexpr std::size_t kMessageTypes = 6;
  std::array<uint64_t, kMessageTypes> in_by_type{}, out_by_type{};
  struct Notifications {
    bool sent = false;
    ErrorCode code = ErrorCode::Cease;
    uint8_t subcode = 0;
    std::string text;  // "Cease/Administrative Reset"
    uint64_t count = 0;
  };
  std::vector<Notifications> notifications;
  uint64_t family_ignored = 0;       // UPDATEs with NLRI of a family that was not negotiated
  std::string last_error_direction;  // "sent", "received"; empty: no NOTIFICATION
  std::optional<std::chrono::seconds> last_error_age, last_update_error_age;
  // The last NOTIFICATION either way; a connection that fails later does not hide it.
  std::string last_notification, last_notification_direction;  // as last_error
  std::string last_notification_data;                          // in hex
  std::optional<std::chrono::seconds> last_notification_age;
  std::string last_update_error;  // "attribute 16: treat-as-withdraw": RFC 7606
  std::string last_update_error_data;
  std::optional<net::IpAddress> local_address, remote_address;  // of the connection
  uint16_t local_port = 0, remote_port = 0;
  struct Timer {
    std::string name;             // "hold", "keepalive", "connect-retry", ...
    std::chrono::seconds left{};  // until it expires
  };
  std::vector<Timer> timers;  // those that run
};

// The rules of one neighbor, as the application makes them out of its settings.
struct NeighborPolicies {
  RoutePolicyPtr accept, send;  // null: everything
};

// Connections that were closed unread, by reason.
struct RejectedConnections {
  uint64_t not_a_neighbor = 0;
  uint64_t not_now = 0;        // disabled, or pausing after an error
  uint64_t unprotected = 0;    // the neighbor's keys could not be set
  uint64_t dynamic_limit = 0;  // a prefix has all its neighbors already
  uint64_t rate = 0;           // too many from this source in a short time
  uint64_t unestablished = 0;  // too many connections without a session, of all neighbors
  [[nodiscard]] uint64_t total() const {
    return not_a_neighbor + not_now + unprotected + dynamic_limit + rate + unestablished;
  }
};

// What the route targets of our own broadcast domains ask for (RFC 4684).
struct ImportTargets {
  bool everything = false;  // a domain imports by a pattern that no prefix can say
  std::vector<ExtendedCommunity> targets;
  bool operator==(const ImportTargets&) const = default;
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

  // What an operator asks of one neighbor, named as in peer_name(), by its address (link-local:
  // "fe80::1%eth0") or by its description. The error says that there is none, or several.
  //
  // Ends the session with Cease/Administrative Reset and `text` (RFC 9003); it comes again.
  [[nodiscard]] std::expected<void, std::string> reset(const std::string& neighbor,
                                                       const std::string& text);
  // Down with Cease/Administrative Shutdown until enabled again; a reload changes nothing in that.
  [[nodiscard]] std::expected<void, std::string> set_enabled(const std::string& neighbor,
                                                             bool enabled, const std::string& text);
  // Has the neighbor send all its routes again (RFC 2918), each family that was negotiated.
  [[nodiscard]] std::expected<void, std::string> ask_refresh(const std::string& neighbor);

  // For neighbors with route_target_constrain; call again when it changed.
  void set_import_targets(const ImportTargets& targets);

  [[nodiscard]] std::vector<NeighborView> neighbors() const;
  // The same one by one.
  [[nodiscard]] std::vector<PeerId> neighbor_ids() const;
  [[nodiscard]] std::optional<NeighborView> neighbor(PeerId peer) const;
  // Whether `name` is the neighbor's address, its description, or both as in peer_name().
  [[nodiscard]] bool is_named(PeerId peer, const std::string& name) const;
  // The sessions that are up.
  [[nodiscard]] std::vector<SessionInfoPtr> sessions() const;
  // What judges the neighbor's routes now; null: nothing does.
  [[nodiscard]] RoutePolicyPtr accept_policy(PeerId peer) const;
  // A watcher must outlive the speaker, or be removed; not from within one of its calls.
  void add_tap(Tap& tap);
  void remove_tap(Tap& tap);
  [[nodiscard]] const Rib& rib() const;
  // Address (and description) of a peer id, for views; "local" for kLocalPeer.
  [[nodiscard]] std::string peer_name(PeerId peer) const;

  // Applies new settings as a difference: neighbors that did not change keep their sessions.
  // Changes of local AS, router id or listen addresses are refused with the reason.
  [[nodiscard]] std::expected<void, StartError> reconfigure(const Settings& settings);

  // Where we listen, with the port that was given for port 0.
  [[nodiscard]] std::vector<ListenSettings> listening() const;
  // Connections closed because they came from no neighbor, or from one that may not connect now.
  [[nodiscard]] const RejectedConnections& rejected_connections() const;
  // Memberships of route targets, family 1/132.
  [[nodiscard]] const Rib& target_rib() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace bgp::io
