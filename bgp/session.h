// SPDX-License-Identifier: GPL-2.0-or-later
// The session with one neighbor: the state machine of RFC 4271 section 8 with both directions of
// connection and their collision (section 6.8), all timers, the helper's side of graceful restart
// (RFC 4724) and its long-lived form (RFC 9494), and route refresh (RFC 2918, 7313), each by
// address family. Pure: events and the time go in, actions come out, and the caller does the
// I/O. handle() with Tick must be called when deadline() is reached.
//
// TCP connections live in slots. The caller opens one when told (OpenConnection: slot Outgoing) and
// asks accept_slot() where an accepted one goes.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bgp/message.h"
#include "net/time.h"

namespace bgp {

enum class SessionState : uint8_t { Idle, Connect, Active, OpenSent, OpenConfirm, Established };
const char* to_string(SessionState state);

// Two places for accepted connections: a neighbor that restarted may come back before we notice
// that its old connection is dead.
enum class Slot : uint8_t { Outgoing, Incoming, Spare };
inline constexpr std::array kSlots{Slot::Outgoing, Slot::Incoming, Slot::Spare};

struct SessionSettings {
  uint32_t local_as = 0;
  uint32_t remote_as = 0;
  uint32_t router_id = 0;              // host order
  Family family;                       // without it there is no session
  std::vector<Family> other_families;  // used when the peer has them too
  bool passive = false;
  std::chrono::seconds hold_time{90};
  std::chrono::seconds connect_retry{5};
  std::chrono::seconds delay_open{0};  // RFC 4271 section 8.1.1; 0: off
  std::chrono::seconds send_hold{0};   // RFC 9687; 0: eight minutes, or twice the hold time
  std::chrono::seconds open_time{0};   // for the OPEN on an accepted connection; 0: four minutes
  bool graceful_restart = true;
  std::chrono::seconds restart_time{120};
  std::chrono::seconds long_lived_time{0};  // RFC 9494; 0: off. Longest that we keep, too
};

// Why a connection ended.
struct EndReason {
  enum class Cause : uint8_t {
    NotificationSent,
    NotificationReceived,
    ConnectionClosed,  // by the peer or the network, without NOTIFICATION
    SendHoldTimer,
    Replaced,  // the neighbor came back on a new connection (RFC 4724 section 4.2)
    Stopped,   // by us, without NOTIFICATION
  };
  Cause cause = Cause::ConnectionClosed;
  std::optional<Notification> notification;
  bool operator==(const EndReason&) const = default;
};
[[nodiscard]] std::string to_string(const EndReason& reason);

namespace event {
struct Start {};
// Ends everything; without notification the connections are just closed.
struct Stop {
  std::optional<Notification> notification;
};
// Ends the session and stays idle for `idle` (0: as after any error).
struct Reset {
  Notification notification;
  std::chrono::seconds idle{0};
};
struct Connected {
  Slot slot;
};
struct Closed {  // or could not be opened
  Slot slot;
};
// A whole message as framed by decode_header(), or only the header when that refused it. Must
// outlive the returned actions.
struct Received {
  Slot slot;
  std::span<const uint8_t> message;
};
struct Sent {  // the socket took octets
  Slot slot;
};
struct AskRefresh {};  // of every family; nothing without a session
struct Tick {};
}  // namespace event
using Event = std::variant<event::Start, event::Stop, event::Reset, event::Connected, event::Closed,
                           event::Received, event::Sent, event::AskRefresh, event::Tick>;

namespace action {
struct OpenConnection {};  // slot Outgoing
struct Send {
  Slot slot;
  net::Bytes message;
};
// Close once what was sent is written; the slot is free at once. No Closed event follows.
struct CloseConnection {
  Slot slot;
};
struct Up {
  Slot slot;
};
// `established`: the session was up on it, and is down now. `kept`: families whose routes stay (RFC
// 4724).
struct Ended {
  Slot slot;
  EndReason reason;
  bool established = false;
  std::vector<AfiSafi> kept;
};
struct Routes {
  AfiSafi family;
  Update update;
};
// Of other_families: the peer has told all that it has. Its first End-of-RIB of this session has
// come, or was waited for long enough.
struct Told {
  AfiSafi family;
};
struct Refresh {  // the peer wants everything again
  AfiSafi family;
  bool enhanced = false;
};
// The peer begins to send everything again, and has done so (RFC 7313 section 4): what it did not
// announce in between goes.
struct RefreshBegins {
  AfiSafi family;
};
struct RefreshEnds {
  AfiSafi family;
  bool in_time = true;
};
struct FlushStale {
  AfiSafi family;
};
struct LongLivedStale {  // RFC 9494 section 4.2: its restart time is over
  AfiSafi family;
};
}  // namespace action
using Action = std::variant<action::OpenConnection, action::Send, action::CloseConnection,
                            action::Up, action::Ended, action::Routes, action::Told,
                            action::Refresh, action::RefreshBegins, action::RefreshEnds,
                            action::FlushStale, action::LongLivedStale>;

class Session {
 public:
  Session(const SessionSettings& settings, uint64_t seed);

  [[nodiscard]] std::vector<Action> handle(const Event& event, net::TimePoint now);
  [[nodiscard]] net::TimePoint deadline() const;

  // Where a connection that was just accepted goes; nothing: close it. A slot that holds a
  // connection may be named: close that one first and say Closed.
  [[nodiscard]] std::optional<Slot> accept_slot() const;
  // For decode_header().
  [[nodiscard]] std::size_t max_incoming(Slot slot) const;

  // While true, our OPENs say that we come back from a restart (RFC 4724 section 3, R bit).
  void set_restarting(bool restarting) { restarting_ = restarting; }

  [[nodiscard]] SessionState state() const;  // of the connection that is furthest
  [[nodiscard]] SessionState state(Slot slot) const { return at(slot).state; }
  [[nodiscard]] Open local_open() const;
  // Of the session that is up, or that is being negotiated.
  [[nodiscard]] const Open* peer_open() const;
  [[nodiscard]] std::chrono::seconds hold_time() const;
  // Timers that run, with when they are due; those of the connection that is furthest, of the
  // neighbor, and of its families: "hold", "keepalive", "send-hold", "delay-open", "connect-retry",
  // ...
  struct RunningTimer {
    const char* name = "";
    net::TimePoint due = net::kNever;
  };
  [[nodiscard]] std::vector<RunningTimer> running_timers() const;
  [[nodiscard]] bool stale_kept() const;       // of any family
  [[nodiscard]] bool long_lived_kept() const;  // ... beyond the restart time
  [[nodiscard]] bool graceful_restart_negotiated() const;
  // Of the session that is up: both sides have it.
  [[nodiscard]] std::vector<AfiSafi> families() const;
  // No connection, nothing kept, and no pause after an error: a dynamic neighbor may go.
  [[nodiscard]] bool at_rest() const;

 private:
  enum class ConnectionTimer : uint8_t { Hold, Keepalive, SendHold, DelayOpen };
  enum class SessionTimer : uint8_t {
    ConnectRetry,
    IdleHold,
    Restart,  // RFC 4724 section 4.2: until the peer must be back
  };
  enum class FamilyTimer : uint8_t {
    StaleEnd,   // until the End-of-RIB of a peer that came back must have come
    LongLived,  // RFC 9494 section 4.2
    Told,       // until the first End-of-RIB is no longer waited for
    Refresh,    // until EoRR must have come
  };
  enum class Input : uint8_t {
    Connected,
    Closed,
    Open,
    Update,
    Notification,
    Keepalive,
    RouteRefresh,
    Malformed,
    ConnectRetryExpired,
    HoldExpired,
    KeepaliveExpired,
    SendHoldExpired,
    DelayOpenExpired,
  };
  struct Inbound {
    Input input;
    std::span<const uint8_t> body{};
    Notification notification{};  // received, or what Malformed asks for
  };
  struct Connection {
    Slot slot = Slot::Outgoing;
    SessionState state = SessionState::Idle;
    bool tcp = false;
    bool waiting = false;  // confirmed, but see must_wait()
    uint64_t number = 0;   // in order of connecting
    std::optional<Open> peer;
    DecodeCache decode_cache;
    std::chrono::seconds hold_time{};
    std::array<net::TimePoint, 4> timers;
  };

  struct FamilyState {
    Family family;
    bool stale = false;
    bool long_lived = false;  // the restart time is over, the long-lived time runs
    bool end_of_rib = false;  // it has come in this session
    bool refreshing = false;  // between BoRR and EoRR
    std::array<net::TimePoint, 4> timers;
  };

  Connection& at(Slot slot) { return connections_[static_cast<std::size_t>(slot)]; }
  const Connection& at(Slot slot) const { return connections_[static_cast<std::size_t>(slot)]; }
  net::TimePoint& timer(Connection& c, ConnectionTimer t) {
    return c.timers[static_cast<std::size_t>(t)];
  }
  net::TimePoint& timer(SessionTimer t) { return timers_[static_cast<std::size_t>(t)]; }

  static net::TimePoint& timer(FamilyState& f, FamilyTimer t) {
    return f.timers[static_cast<std::size_t>(t)];
  }
  FamilyState* find_family(AfiSafi id);

  void received(const event::Received& event);
  void tick();
  void tick(FamilyState& f);
  void restart_time_over();
  void flush(FamilyState& f);
  void step(Connection& c, const Inbound& in);
  SessionState next_state(Connection& c, const Inbound& in);
  SessionState connected(Connection& c);
  SessionState send_open(Connection& c);
  SessionState open_received(Connection& c, std::span<const uint8_t> body);
  std::optional<Notification> refuse(const Open& open) const;
  bool loses_collision(Connection& c, const Open& open);
  bool must_wait(const Connection& c) const;
  SessionState confirmed(Connection& c);
  SessionState update_received(Connection& c, std::span<const uint8_t> body);
  SessionState routes_received(Connection& c, std::span<const uint8_t> body, FamilyState& f);
  SessionState refresh_received(Connection& c, std::span<const uint8_t> body);
  void ask_refresh();
  void came_back(const Connection& c, FamilyState& f);
  void went_down(const Connection& c, const EndReason& reason, std::vector<AfiSafi>& kept);
  SessionState notify(Connection& c, Notification notification);
  SessionState end(Connection& c, EndReason reason);
  void leave(Connection& c);
  void stop(const std::optional<Notification>& notification);
  void settle();
  void restart_hold(Connection& c);
  void restart_keepalive(Connection& c);
  void restart_send_hold(Connection& c);
  // Of the first family, which decides in collisions.
  bool keeps_routes(const Connection& c) const { return keeps_routes(c, settings_.family.id); }
  bool keeps_routes(const Connection& c, AfiSafi family) const;
  [[nodiscard]] bool keeps_routes_after(const Connection& c, const EndReason& reason,
                                        AfiSafi family) const;
  [[nodiscard]] bool survives_notification(const Connection& c) const;  // RFC 8538 N bit
  // What the peer says of a family; null: nothing.
  const GracefulRestart::Entry* restart_entry(const Open& open, AfiSafi family) const;
  const LongLivedRestart::Entry* long_lived_entry(const Open& open, AfiSafi family) const;
  bool any_live() const;
  const Connection* furthest() const;
  static const char* name(ConnectionTimer timer);
  static const char* name(SessionTimer timer);
  static const char* name(FamilyTimer timer);
  net::Duration jittered(std::chrono::seconds interval);

  SessionSettings settings_;
  uint64_t random_;
  bool enabled_ = false;
  bool restarting_ = false;
  bool connect_now_ = false;
  bool penalty_ = false;  // something went wrong in this turn that calls for a pause
  std::chrono::seconds idle_override_{0};
  unsigned failures_ = 0;  // in a row; each doubles the pause
  uint64_t connects_ = 0;
  uint64_t established_after_ = 0;  // connects_ when the session came up
  net::TimePoint now_{};
  net::TimePoint established_at_{};
  std::array<Connection, 3> connections_;
  std::array<net::TimePoint, 3> timers_;
  std::vector<FamilyState> families_;  // settings_.family first
  std::optional<Open> last_peer_;      // of the last session: its times count
  std::vector<Action> actions_;
};

}  // namespace bgp
