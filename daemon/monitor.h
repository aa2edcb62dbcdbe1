// SPDX-License-Identifier: GPL-2.0-or-later
// The command `monitor`: sessions that go up and down and best routes that change, as they do. Each
// client has a bounded number of events that wait for it; how many it lost it is told.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bgp/io/tap.h"
#include "daemon/filter.h"

namespace peerland {

class App;

class Monitor : public bgp::io::Tap {
 public:
  explicit Monitor(App& app) : app_(app) {}
  ~Monitor() override;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  class Client {
   public:
    // Lines for what happened since the last call, bounded in size and time; empty: nothing.
    [[nodiscard]] std::string take();

   private:
    friend class Monitor;
    struct Event {
      std::chrono::system_clock::time_point time;
      struct State {
        bgp::PeerId peer;
        std::string name;
        bgp::SessionState from, to;
      };
      struct Down {
        bgp::PeerId peer;
        std::string name, reason;
      };
      struct Up {
        bgp::PeerId peer;
        std::string name;
        uint32_t router_id;
      };
      struct Lost {
        uint64_t count;
      };
      std::variant<State, Down, Up, Lost, bgp::KeptRibChange> what;
    };
    Client(Monitor& monitor, Filter filter, std::vector<bgp::PeerId> peers)
        : monitor_(monitor), filter_(std::move(filter)), peers_(std::move(peers)) {}
    void add(Event event);
    [[nodiscard]] bool wants(bgp::PeerId peer) const;
    [[nodiscard]] bool wants(const bgp::RibChange& change) const;
    [[nodiscard]] std::string line(const Event& event) const;

    Monitor& monitor_;
    Filter filter_;
    std::vector<bgp::PeerId> peers_;  // empty: all
    bool routes_ = true, neighbors_ = true;
    std::deque<Event> events_;
    uint64_t lost_ = 0;  // since the last event that was kept
    std::function<void()> wake_;
  };
  using ClientPtr = std::shared_ptr<Client>;

  // `what`: "routes", "neighbors", or "" for both. `wake` is called when there is something to
  // take; from within the speaker, so it must put off what it does. The client is told as long as
  // the caller keeps it.
  [[nodiscard]] std::expected<ClientPtr, std::string> add(const std::string& what,
                                                          const Filter& filter,
                                                          std::function<void()> wake);
  void remove(const ClientPtr& client);

  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  [[nodiscard]] uint64_t lost() const { return lost_; }  // events, of all clients

  void state_changed(bgp::PeerId peer, const std::string& name, bgp::SessionState from,
                     bgp::SessionState to) override;
  void session_up(const bgp::io::SessionInfo& session) override;
  void session_down(const bgp::io::SessionInfo& session, const bgp::EndReason& reason,
                    const std::string& text) override;
  void best_changed(const std::vector<bgp::RibChange>& changes) override;

 private:
  App& app_;
  std::vector<ClientPtr> clients_;
  uint64_t lost_ = 0;
};

}  // namespace peerland
