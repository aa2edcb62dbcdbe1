// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/app.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/control.h"
#include "daemon/metrics.h"
#include "daemon/monitor.h"
#include "daemon/mrt_writer.h"
#include "daemon/underlay.h"
#include "evpn/nlri.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

using namespace std::chrono_literals;

constexpr net::Duration kReconcileEvery = 30s, kReconcileAfterLoss = 50ms;
// After a change that is not ours; and no more often than this: it reads whole tables.
constexpr net::Duration kReconcileAfterMeddling = 200ms, kReconcileSpacing = 2s;
constexpr net::Duration kCheckEvery = 2s;
constexpr std::size_t kPuntsPerTurn = 64;  // then timers and sessions have their turn
constexpr std::size_t kViolationsPerTurn = 1024;
constexpr net::Duration kSampleEvery = 100ms;  // one slice of the ports
constexpr std::size_t kSampleSlices = 20;

}  // namespace

bool any_ebpf(const config::NodeSettings& settings) {
  return std::ranges::any_of(settings.domains, [](const auto& domain) {
    return domain.responder == dataplane::ResponderKind::Ebpf;
  });
}

App::App(boost::asio::io_context& io, config::NodeSettings settings, std::string settings_file)
    : io_(io),
      settings_(std::move(settings)),
      settings_file_(std::move(settings_file)),
      started_(net::Clock::now()),
      loop_delay_(io),
      next_hops_(io, [this](const auto& changes) { next_hops_changed(changes); }),
      punts_(io),
      violations_(io),
      tick_timer_(io),
      reconcile_timer_(io),
      check_timer_(io),
      confirm_timer_(io),
      sample_timer_(io) {}

App::~App() = default;

// --- start and stop
// --------------------------------------------------------------------------------

// What RT-constrain (RFC 4684) has to ask for. Automatic import targets take any AS, which no
// membership can say.
bgp::io::ImportTargets import_targets(const config::NodeSettings& settings) {
  bgp::io::ImportTargets out;
  for (const auto& domain : settings.domains) {
    const auto& targets = domain.evpn.import_targets;
    out.everything |= targets.empty();
    out.targets.insert(out.targets.end(), targets.begin(), targets.end());
  }
  std::ranges::sort(out.targets);
  out.targets.erase(std::unique(out.targets.begin(), out.targets.end()), out.targets.end());
  return out;
}

std::expected<void, std::string> App::start() {
  speaker_ = std::make_unique<bgp::io::Speaker>(io_, evpn::family(), settings_.bgp);
  route_policies_ = RoutePolicies(settings_, {});
  apply_route_policies();
  speaker_->on_converged([this] { converge(); });
  monitor_ = std::make_unique<Monitor>(*this);
  speaker_->set_import_targets(import_targets(settings_));
  control_ = std::make_unique<ControlServer>(io_, *this);
  if (auto opened = control_->open(settings_.control_socket); !opened) return opened;
  if (settings_.metrics_listen) {
    metrics_ = std::make_unique<MetricsServer>(io_, *this);
    if (auto opened =
            metrics_->open(settings_.metrics_listen->first, settings_.metrics_listen->second);
        !opened)
      return opened;
  }
  if (!settings_.domains.empty())
    if (auto path = start_data_path(); !path) return path;
  // The data path stands: now the neighbors may come.
  if (auto speaking = speaker_->start(); !speaking) return std::unexpected(speaking.error().what);
  start_exports(settings_.bgp);
  loop_delay_.start();
  log_.logger().info("{}: up, AS {}, router id {}, {} neighbors, {} broadcast domains",
                     settings_.name, settings_.bgp.local_as.value,
                     to_string(settings_.bgp.router_id), settings_.bgp.neighbors.size(),
                     domains_.size());
  return {};
}

void App::apply_route_policies() {
  speaker_->set_policies([this](const auto& neighbor) { return route_policies_.of(neighbor); });
}

// What the settings need and is not there yet.
std::expected<void, std::string> App::open_data_path(const config::NodeSettings& settings) {
  if (!sender_) {
    auto sender = dataplane::PacketSender::open();
    if (!sender) return std::unexpected(sender.error().what);
    sender_ = std::move(*sender);
  }
  if (any_ebpf(settings) && !fast_path_) {
    dataplane::FastPathOptions options;
    options.pin_directory = settings.pin_directory;
    auto path = dataplane::FastPath::open(options);
    if (!path) return std::unexpected(path.error().what);
    fast_path_ = std::move(*path);
    underlay_ = std::make_unique<Underlay>(*fast_path_, log_);
    log_.logger().info("eBPF data path: {}, pinned in {}", fast_path_->attach_mode(),
                       settings.pin_directory);
    punts_.assign(::dup(fast_path_->punt_descriptor()));
    arm_drain();
    violations_.assign(::dup(fast_path_->violation_descriptor()));
    arm_drain_violations();
  }
  if (kernel_) return {};
  auto kernel = dataplane::open_kernel(io_);
  if (!kernel) return std::unexpected(kernel.error().what);
  kernel_ = std::move(*kernel);
  soft_policy_.set_answered([this](net::Vni vni, const net::IpAddress& ip) {
    return std::ranges::any_of(domains_, [&](const auto& domain) {
      return domain->settings().evpn.vni == vni && domain->answers(ip);
    });
  });
  kernel_->on_event([this](const auto& event) { kernel_event(event); });
  kernel_->on_tunnel_change([this](const dataplane::TunnelChanged& change) {
    if (!std::ranges::any_of(domains_, [&](const auto& d) { return d->is_meddling(change); }))
      return;
    const net::Duration since = net::Clock::now() - last_reconcile_;
    arm_reconcile(std::max<net::Duration>(kReconcileAfterMeddling, kReconcileSpacing - since));
  });
  arm_reconcile(kReconcileEvery);
  arm_check();
  arm_sample();
  return {};
}

std::expected<void, std::string> App::start_data_path() {
  if (auto opened = open_data_path(settings_); !opened) return opened;
  next_hops_.configure(settings_.next_hop_tracking);
  const auto now = net::Clock::now();
  for (const auto& domain : settings_.domains)
    if (auto begun = add_domain(domain)->start(now); !begun) return begun;
  drop_stale_ports();
  apply_underlay();
  arm_tick();
  return {};
}

Domain* App::add_domain(const config::BroadcastDomain& settings) {
  // Not before there is one: a mere reflector need not be told.
  speaker_->on_changes([this](const auto& changes) { routes_changed(changes); });
  domains_.push_back(std::make_unique<Domain>(
      settings, settings_.policies,
      Services{io_, *speaker_, *kernel_, fast_path_.get(), *sender_, soft_policy_, log_}));
  domains_.back()->traffic().set_interval(settings_.report_interval);
  return domains_.back().get();
}

// Programs of an earlier run on ports that these settings no longer have.
void App::drop_stale_ports() {
  if (!fast_path_) return;
  for (const auto port : fast_path_->ports()) {
    if (std::ranges::any_of(domains_, [&](const auto& d) { return d->has_port(port); })) continue;
    if (auto removed = fast_path_->remove_port(port); !removed)
      log_.logger().warn("{}", removed.error().what);
  }
}

void App::stop() {
  if (std::exchange(stopping_, true)) return;
  log_.logger().info("{}: stopping; the data path stays", settings_.name);
  speaker_->stop(true, "", [this] { finish(); });
  stop_exports();
}

// --- BMP and MRT
// -----------------------------------------------------------------------------------

// What did not change goes on.
void App::start_exports(const bgp::Settings& settings) {
  std::vector<std::shared_ptr<bgp::io::BmpClient>> kept;
  for (const auto& client : bmp_) {
    if (std::ranges::find(settings.bmp, client->settings()) != settings.bmp.end())
      kept.push_back(client);
    else
      client->stop();
  }
  bmp_ = std::move(kept);
  for (const auto& wanted : settings.bmp) {
    if (std::ranges::any_of(bmp_, [&](const auto& c) { return c->settings() == wanted; })) continue;
    const bgp::io::BmpNode node{settings_.name, "peerlan " PEERLAN_VERSION, evpn::family(),
                                settings.local_as.value, settings.router_id.v4_value()};
    bmp_.push_back(std::make_shared<bgp::io::BmpClient>(io_, *speaker_, node, wanted));
    bmp_.back()->start();
  }
  if (mrt_ && settings.mrt && mrt_->settings() == *settings.mrt) return;
  if (mrt_) mrt_->stop();
  mrt_ = settings.mrt ? std::make_shared<MrtWriter>(io_, *this, *settings.mrt) : nullptr;
  if (mrt_) mrt_->start();
}

void App::stop_exports() {
  for (const auto& client : bmp_) client->stop();
  if (mrt_) mrt_->stop();
  loop_delay_.stop();
}

void App::finish() {
  punts_.close();
  violations_.close();
  tick_timer_.cancel();
  reconcile_timer_.cancel();
  check_timer_.cancel();
  confirm_timer_.cancel();
  next_hops_.stop();
  sample_timer_.cancel();
  io_.stop();
}

// --- events
// ----------------------------------------------------------------------------------------

void App::kernel_event(const dataplane::KernelEvent& event) {
  const auto now = net::Clock::now();
  if (std::holds_alternative<dataplane::EventsLost>(event)) {
    ++events_lost_;
    arm_reconcile(kReconcileAfterLoss);
    return;
  }
  if (const auto* link = std::get_if<dataplane::LinkChanged>(&event); link != nullptr && underlay_)
    underlay_->link_changed(*link);
  for (const auto& domain : domains_) {
    if (const auto* link = std::get_if<dataplane::LinkChanged>(&event)) {
      if (domain->is_device(link->index) && (!link->exists || !link->up))
        arm_reconcile(kReconcileAfterLoss);
      if (domain->wants_interface(link->name) || domain->has_port(link->index))
        domain->link_changed(*link, now);
    } else if (const auto* learned = std::get_if<dataplane::FdbLearned>(&event)) {
      if (domain->has_port(learned->port)) domain->fdb_learned(learned->port, learned->mac, now);
    } else if (const auto* gone = std::get_if<dataplane::FdbGone>(&event)) {
      if (domain->has_port(gone->port)) domain->fdb_gone(gone->port, gone->mac, now);
    }
    domain->flush();
  }
  arm_tick();
}

void App::routes_changed(const std::vector<bgp::RibChange>& changes) {
  if (domains_.empty()) return;
  const auto now = net::Clock::now();
  for (const auto& change : changes) {
    const auto route = evpn::decode(change.nlri);
    if (!route) {
      ++undecodable_routes_;
      continue;
    }
    // Before the route is used: frames to where no route leads are lost.
    if (change.attributes) next_hops_.track(change.attributes->next_hop);
    for (const auto& domain : domains_) domain->remote_route(*route, change.attributes, now);
  }
  for (const auto& domain : domains_) domain->flush();
  sync_underlay();
  arm_tick();
}

// What the RIB already has, of other PEs.
void App::for_each_best(
    const std::function<void(const evpn::Route&, const bgp::AttributesPtr&)>& visit) {
  speaker_->rib().for_each_path([&](const bgp::PathView& path) {
    if (path.best && path.peer != bgp::kLocalPeer && path.rejected == bgp::Rejected::None)
      if (const auto route = evpn::decode(path.nlri)) visit(*route, path.attributes);
    return true;
  });
}

// The kernel's routes to other PEs came or went.
void App::next_hops_changed(const std::vector<NextHopChange>& changes) {
  const auto now = net::Clock::now();
  for (const auto& [vtep, reachable] : changes) {
    log_.limited(reachable ? spdlog::level::info : spdlog::level::warn,
                 "next hop " + to_string(vtep),
                 fmt::format("{}: {} route to PE {}{}", settings_.name,
                             reachable ? "there is a" : "there is no", to_string(vtep),
                             reachable ? "" : "; its MACs are not used"),
                 now);
    for (const auto& domain : domains_) domain->reachable(vtep, reachable, now);
  }
  for (const auto& domain : domains_) domain->flush();
  arm_tick();
}

void App::converge() {
  if (std::exchange(converged_, true)) return;
  log_.logger().info("{}: all neighbors have told what they have", settings_.name);
  for (const auto& domain : domains_) domain->converged(net::Clock::now());
  sync_underlay();
  if (underlay_) underlay_->converged();
}

void App::apply_underlay() {
  if (!underlay_) return;
  auto links = kernel_->links();
  if (!links) log_.logger().error("underlay: {}", links.error().what);
  sync_underlay();  // before frames are judged by them
  underlay_->apply(settings_, links ? *links : std::vector<dataplane::LinkChanged>{});
}

void App::sync_underlay() {
  if (!underlay_) return;
  std::set<net::IpAddress> vteps;
  for (const auto& domain : domains_)
    if (domain->uses_ebpf())
      vteps.insert(domain->flood_peers().begin(), domain->flood_peers().end());
  if (vteps != underlay_->vteps()) underlay_->set_vteps(vteps);
}

void App::drain() {
  const auto now = net::Clock::now();
  const std::size_t count = fast_path_->drain(
      [&](const dataplane::Punt& punt) {
        for (const auto& domain : domains_)
          if (domain->has_port(punt.port))
            domain->punt(punt.port, punt.frame, punt.copy, punt.trapped, now);
      },
      kPuntsPerTurn);
  if (count > 0) {
    for (const auto& domain : domains_) domain->flush();
    arm_tick();
  }
}

void App::arm_drain() {
  punts_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      drain();
                      arm_drain();  // comes back at once while punts are left
                    });
}

void App::drain_violations() {
  const auto now = net::Clock::now();
  const std::size_t count = fast_path_->drain_violations(
      [&](const dataplane::Violation& violation) {
        for (const auto& domain : domains_)
          if (domain->has_port(violation.port)) domain->violation(violation, now);
        if (underlay_->has_device(violation.port)) underlay_->violation(violation, now);
      },
      kViolationsPerTurn);
  if (count > 0) {
    for (const auto& domain : domains_) domain->flush();
    arm_tick();
  }
}

void App::arm_drain_violations() {
  violations_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (error) return;
                           drain_violations();
                           arm_drain_violations();
                         });
}

void App::arm_sample() {
  sample_timer_.expires_after(kSampleEvery);
  sample_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const auto now = net::Clock::now();
    for (const auto& domain : domains_) domain->sample(sample_slice_, kSampleSlices, now);
    sample_slice_ = (sample_slice_ + 1) % kSampleSlices;
    arm_tick();
    arm_sample();
  });
}

void App::arm_tick() {
  net::TimePoint next = net::kNever;
  for (const auto& domain : domains_) next = std::min(next, domain->deadline());
  if (next == tick_at_) return;
  tick_at_ = next;
  tick_timer_.cancel();
  if (next == net::kNever) return;
  tick_timer_.expires_at(next);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    tick_at_ = net::kNever;
    const auto now = net::Clock::now();
    for (const auto& domain : domains_) domain->tick(now);
    arm_tick();
  });
}

void App::arm_check() {
  check_timer_.expires_after(kCheckEvery);
  check_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& domain : domains_) domain->check_ports();
    arm_check();
  });
}

// Forgets those that no route names any more, and looks at the others again.
void App::check_next_hops() {
  std::set<net::IpAddress> named;
  for (const auto& domain : domains_) named.merge(domain->vrf().vteps());
  next_hops_.keep(named);
  next_hops_.check();
}

void App::arm_reconcile(net::Duration delay) {
  const auto at = net::Clock::now() + delay;
  if (delay != kReconcileEvery && reconcile_timer_.expiry() <= at) return;
  reconcile_timer_.expires_at(at);
  reconcile_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    ++reconciliations_;
    const auto now = last_reconcile_ = net::Clock::now();
    for (const auto& domain : domains_) domain->restore_devices(now);
    if (auto links = kernel_->links())
      for (const auto& domain : domains_)
        for (const auto& link : *links)
          if (domain->wants_interface(link.name) || domain->has_port(link.index))
            domain->link_changed(link, now);
    for (const auto& domain : domains_) domain->reconcile(now);
    check_next_hops();
    if (underlay_) {
      if (auto links = kernel_->links())
        for (const auto& link : *links) underlay_->link_changed(link);
      sync_underlay();
    }
    arm_tick();
    arm_reconcile(kReconcileEvery);
  });
}

// --- teardown
// --------------------------------------------------------------------------------------

// Nothing is removed beside a daemon: the pins' lock is asked first, then the devices go, then the
// programs, so that no port forwards without them.
void App::remove_data_path(const config::NodeSettings& settings, dataplane::Kernel& kernel,
                           std::vector<std::string>& problems) {
  if (any_ebpf(settings))
    if (auto free = dataplane::FastPath::check_unused(settings.pin_directory); !free) {
      problems.push_back(free.error().what + "; nothing was removed");
      return;
    }
  for (const auto& domain : settings.domains)
    if (auto removed = kernel.teardown(domain.links); !removed)
      problems.push_back(removed.error().what);
  if (any_ebpf(settings))
    if (auto removed = dataplane::FastPath::teardown(settings.pin_directory); !removed)
      problems.push_back(removed.error().what);
}

void App::teardown(std::function<void(std::string)> done) {
  if (std::exchange(stopping_, true)) {
    done("already stopping");
    return;
  }
  log_.logger().info("{}: teardown asked for: removing the data path", settings_.name);
  speaker_->stop(false, "teardown", [this, done = std::move(done)] {
    std::vector<std::string> problems;
    punts_.close();
    violations_.close();
    reconcile_timer_.cancel();
    check_timer_.cancel();
    tick_timer_.cancel();
    sample_timer_.cancel();
    domains_.clear();
    stop_exports();
    underlay_.reset();
    fast_path_.reset();
    if (kernel_) remove_data_path(settings_, *kernel_, problems);
    std::string text;
    for (const auto& problem : problems) text += problem + "\n";
    done(text.empty() ? "data path removed" : text);
    // The answer goes out before the loop ends.
    auto last = std::make_shared<boost::asio::steady_timer>(io_, 50ms);
    last->async_wait([this, last](const boost::system::error_code&) { finish(); });
  });
}

std::expected<void, std::string> App::teardown_offline(const config::NodeSettings& settings) {
  boost::asio::io_context io;
  if (ControlServer::answers(io, settings.control_socket))
    return std::unexpected("a daemon answers at " + settings.control_socket +
                           ": use peerlan teardown; nothing was removed\n");
  auto kernel = dataplane::open_kernel(io);
  if (!kernel) return std::unexpected(kernel.error().what);
  std::vector<std::string> problems;
  remove_data_path(settings, **kernel, problems);
  std::string text;
  for (const auto& problem : problems) text += problem + "\n";
  if (!text.empty()) return std::unexpected(text);
  return {};
}

}  // namespace peerland
