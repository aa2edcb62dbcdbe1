// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon: owns everything, and is the only place where the modules meet.
//
//   Speaker --best routes--> App --by route--> Domain --actions--> Kernel, FastPath, Speaker
//   Kernel, FastPath (ring buffer) --events--> App --by port--> Domain
//
// One thread. The kernel wakes it for the ring buffers. Timers: the domains' deadlines, the
// counters of all ports every 2 s, a few at a time, programs and flags of the ports every 2 s, a
// full reconciliation every 30 s, 50 ms after lost kernel events, and soon after somebody else
// changed a table of ours.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bgp/io/bmp_client.h"
#include "bgp/io/speaker.h"
#include "config/settings.h"
#include "daemon/domain.h"
#include "daemon/log.h"
#include "daemon/loop_delay.h"
#include "daemon/next_hops.h"
#include "daemon/route_policies.h"
#include "dataplane/fast_path.h"
#include "dataplane/kernel.h"
#include "dataplane/packet_io.h"

namespace peerland {

class ControlServer;
class MetricsServer;
class Monitor;
class MrtWriter;
class Underlay;

struct ReloadOptions {
  bool force = false;                           // even if many members would go
  std::optional<std::chrono::seconds> confirm;  // within this time, or it is undone
};

[[nodiscard]] bool any_ebpf(const config::NodeSettings& settings);
[[nodiscard]] bgp::io::ImportTargets import_targets(const config::NodeSettings& settings);

class App {
 public:
  App(boost::asio::io_context& io, config::NodeSettings settings, std::string settings_file);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  [[nodiscard]] std::expected<void, std::string> start();
  // Ends the daemon; the data path stays as it is. Neighbors with graceful restart keep our routes.
  void stop();
  // Reads the settings file again; on any error nothing changes and the text says what is wrong.
  [[nodiscard]] std::expected<std::string, std::string> reload(const ReloadOptions& options = {});
  // What reload() would change, as a JSON document; the errors of the file otherwise.
  [[nodiscard]] std::expected<std::string, std::string> reload_difference() const;
  // After a reload with a time to confirm: the new settings stay, or the former come back now.
  [[nodiscard]] std::expected<std::string, std::string> confirm_reload();
  [[nodiscard]] std::expected<std::string, std::string> roll_back(const std::string& why);
  // Says goodbye to the neighbors, removes the data path, ends the daemon.
  void teardown(std::function<void(std::string)> done);
  // The same without a running daemon: devices, entries, programs and pins of these settings.
  [[nodiscard]] static std::expected<void, std::string> teardown_offline(
      const config::NodeSettings& settings);

  // --- views
  [[nodiscard]] const config::NodeSettings& settings() const { return settings_; }
  [[nodiscard]] const bgp::io::Speaker& speaker() const { return *speaker_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Domain>>& domains() const { return domains_; }
  [[nodiscard]] const dataplane::FastPath* fast_path() const { return fast_path_.get(); }
  [[nodiscard]] const Underlay* underlay() const { return underlay_.get(); }  // null: no programs
  [[nodiscard]] const dataplane::PacketSender* sender() const { return sender_.get(); }
  [[nodiscard]] net::TimePoint started() const { return started_; }
  [[nodiscard]] bool converged() const { return converged_; }
  [[nodiscard]] uint64_t events_lost() const { return events_lost_; }
  [[nodiscard]] uint64_t reconciliations() const { return reconciliations_; }
  [[nodiscard]] uint64_t undecodable_routes() const { return undecodable_routes_; }
  [[nodiscard]] const std::vector<std::shared_ptr<bgp::io::BmpClient>>& bmp_clients() const {
    return bmp_;
  }
  [[nodiscard]] const MrtWriter* mrt_writer() const { return mrt_.get(); }  // null: no dumps
  [[nodiscard]] const Monitor& monitor() const { return *monitor_; }
  [[nodiscard]] net::Duration loop_delay() const { return loop_delay_.longest(); }
  [[nodiscard]] const NextHops& next_hops() const { return next_hops_; }
  // Until a reload is undone unless it is confirmed; nothing: none waits.
  [[nodiscard]] std::optional<net::TimePoint> confirm_until() const;

  // --- for the control socket
  [[nodiscard]] bgp::io::Speaker& speaker() { return *speaker_; }
  [[nodiscard]] Monitor& monitor() { return *monitor_; }
  void deadlines_changed() { arm_tick(); }  // of a domain, by a command

 private:
  [[nodiscard]] std::expected<void, std::string> start_data_path();
  [[nodiscard]] std::expected<void, std::string> open_data_path(
      const config::NodeSettings& settings);
  [[nodiscard]] std::expected<std::string, std::string> apply_settings(
      const config::NodeSettings& fresh);
  std::string apply_domains(const config::NodeSettings& fresh);
  void next_hops_changed(const std::vector<NextHopChange>& changes);
  void check_next_hops();
  Domain* add_domain(const config::BroadcastDomain& settings);
  void remove_domain(std::size_t index);
  void drop_stale_ports();
  void kernel_event(const dataplane::KernelEvent& event);
  // Has all neighbors' routes judged by route_policies_.
  void apply_route_policies();
  void routes_changed(const std::vector<bgp::RibChange>& changes);
  void for_each_best(
      const std::function<void(const evpn::Route&, const bgp::AttributesPtr&)>& visit);
  void converge();
  void drain();
  void arm_drain();
  void drain_violations();
  void arm_drain_violations();
  void arm_tick();
  void arm_sample();
  void sync_underlay();  // VTEPs that may send
  void apply_underlay();
  void arm_reconcile(net::Duration delay);
  void arm_check();
  void finish();
  void start_exports(const bgp::Settings& settings);
  void stop_exports();
  static void remove_data_path(const config::NodeSettings& settings, dataplane::Kernel& kernel,
                               std::vector<std::string>& problems);

  boost::asio::io_context& io_;
  config::NodeSettings settings_;
  std::string settings_file_;
  EventLog log_;
  RoutePolicies route_policies_;
  net::TimePoint started_;
  std::unique_ptr<bgp::io::Speaker> speaker_;
  std::unique_ptr<Monitor> monitor_;
  std::vector<std::shared_ptr<bgp::io::BmpClient>> bmp_;
  std::shared_ptr<MrtWriter> mrt_;
  LoopDelay loop_delay_;
  std::unique_ptr<dataplane::Kernel> kernel_;
  std::unique_ptr<dataplane::FastPath> fast_path_;
  std::unique_ptr<Underlay> underlay_;
  std::unique_ptr<dataplane::PacketSender> sender_;
  dataplane::SoftPolicy soft_policy_;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<MetricsServer> metrics_;
  NextHops next_hops_;
  boost::asio::posix::stream_descriptor punts_, violations_;
  boost::asio::steady_timer tick_timer_, reconcile_timer_, check_timer_, confirm_timer_,
      sample_timer_;
  net::TimePoint tick_at_ = net::kNever;  // what tick_timer_ is armed for
  std::size_t sample_slice_ = 0;
  net::TimePoint last_reconcile_{};
  // The settings before a reload that is not confirmed.
  struct Unconfirmed {
    config::NodeSettings before;
    net::TimePoint until;
  };
  std::optional<Unconfirmed> unconfirmed_;
  bool converged_ = false;
  bool stopping_ = false;
  uint64_t events_lost_ = 0, reconciliations_ = 0, undecodable_routes_ = 0;
};

}  // namespace peerland
