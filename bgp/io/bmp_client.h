// SPDX-License-Identifier: GPL-2.0-or-later
// Tells one BMP collector (RFC 7854, 8671, 9069) what the speaker receives, selects and sends: when
// connected first the sessions and the tables in small parts, then every change. What waits for the
// collector is bounded; one that does not take it is disconnected, told everything anew when it is
// back, and never holds the speaker up.
#pragma once
#include <spdlog/logger.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bgp/bmp.h"
#include "bgp/family.h"
#include "bgp/io/socket.h"
#include "bgp/io/speaker.h"
#include "bgp/io/tap.h"
#include "bgp/settings.h"

namespace bgp::io {

// What all clients of a speaker share.
struct BmpNode {
  std::string name;         // sysName
  std::string description;  // sysDescr
  Family family;
  uint32_t local_as = 0;
  uint32_t router_id = 0;  // host order
};

struct BmpView {
  BmpSettings settings;
  std::string state;                  // connecting, waiting, dumping, up
  std::chrono::seconds since{};       // in this state
  uint64_t connects = 0;              // times it was connected
  uint64_t drops = 0;                 // disconnected because it did not take what waited for it
  uint64_t messages = 0, octets = 0;  // handed to the connection
  uint64_t queued = 0;                // octets that wait
  std::string last_error;
};

class BmpClient : public Tap, public std::enable_shared_from_this<BmpClient> {
 public:
  BmpClient(boost::asio::io_context& io, Speaker& speaker, const BmpNode& node,
            const BmpSettings& settings);
  ~BmpClient() override;
  BmpClient(const BmpClient&) = delete;
  BmpClient& operator=(const BmpClient&) = delete;

  void start();
  // With a Termination message, as far as the socket takes it at once.
  void stop();
  [[nodiscard]] const BmpSettings& settings() const { return settings_; }
  [[nodiscard]] BmpView view() const;

  void session_up(const SessionInfo& session) override;
  void session_down(const SessionInfo& session, const EndReason& reason,
                    const std::string& text) override;
  void received(const SessionInfo& session, std::span<const uint8_t> message,
                const Update& update) override;
  void sent(const SessionInfo& session, const std::shared_ptr<const net::Bytes>& message) override;
  void policies_changed(PeerId peer) override;
  void best_changed(const std::vector<RibChange>& changes) override;

 private:
  enum class State : uint8_t { Stopped, Waiting, Connecting, Up };
  // A walk over a table, done in parts.
  struct Job {
    enum class Kind : uint8_t { In, Out, Statistics };
    Kind kind = Kind::In;
    std::optional<PeerId> peer;  // In: only its post-policy table, rejected routes withdrawn
    uint32_t next = 0;
  };
  class Packer;

  void connect();
  void connected();
  void lost(const std::string& why);
  void read();
  void write();
  void queue(net::Bytes message);
  void overflow();
  void tell_changes();
  void arm_statistics();
  void schedule_work();
  void work();
  [[nodiscard]] bool run(Job& job);  // true when it is through
  void walk_in(Job& job);
  void walk_out(Job& job);
  void end_of_in(const Job& job);
  void statistics(PeerId peer);
  void peer_up(const SessionInfo& session);
  void loc_rib_up();
  [[nodiscard]] bool tells(BmpSettings::Table table) const {
    return (settings_.tables & table) != 0;
  }
  [[nodiscard]] bool tells_in() const {
    return tells(BmpSettings::InPre) || tells(BmpSettings::InPost);
  }
  [[nodiscard]] bmp::PeerHeader header(bmp::Table table, const SessionInfo& session) const;
  [[nodiscard]] bmp::PeerHeader loc_header() const;
  void set_state(State state);

  boost::asio::io_context& io_;
  Speaker& speaker_;
  const BmpNode node_;
  const BmpSettings settings_;
  std::shared_ptr<spdlog::logger> log_;
  std::string name_;
  State state_ = State::Stopped;
  net::TimePoint since_;
  std::unique_ptr<tcp::socket> socket_;
  uint64_t generation_ = 0;  // of the connection: handlers of an older one do nothing
  boost::asio::steady_timer retry_, statistics_;
  std::chrono::seconds pause_{1};
  std::deque<net::Bytes> queue_;
  std::deque<KeptRibChange> changes_;  // of the Loc-RIB, not encoded yet
  std::size_t queued_ = 0;             // octets of both
  bool overflowed_ = false;
  std::size_t writing_ = 0;  // messages of the queue that are being written
  uint8_t input_[256];
  std::map<PeerId, SessionInfoPtr> told_;  // sessions that the collector knows to be up
  std::deque<Job> jobs_;
  bool work_scheduled_ = false;
  BmpView counters_;  // only the counters and the last error
};

}  // namespace bgp::io
