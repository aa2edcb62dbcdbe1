// SPDX-License-Identifier: GPL-2.0-or-later
// Listeners, the set of neighbors and the RIB between them. After each turn in which the RIB was
// touched, flush() hands its changes to the application and lets the neighbors fill their sockets.
#include "bgp/io/speaker.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "bgp/io/accept_limits.h"
#include "bgp/io/listeners.h"
#include "bgp/io/neighbor.h"
#include "bgp/io/neighbor_settings.h"
#include "bgp/io/protection.h"

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopLimit = 1s;
constexpr auto kRejectLogInterval = 1s;
constexpr std::size_t kMaxUnestablished = 1024;  // accepted connections without a session, of all
// UPDATEs, if no flush came earlier: what they changed is to be sent while the caches have it.
constexpr unsigned kFlushAfter = 32;
constexpr std::size_t kTurnOctets = 4 << 20;  // that flush() puts into queues, some milliseconds
constexpr auto kMemoryInterval = 100ms;       // while the RIB grows or shrinks
constexpr auto kTidyInterval = 2ms;           // ... when it does no longer, until it is tidy

Rib::Options rib_options(AfiSafi family, const Settings& settings) {
  const uint32_t router_id = settings.router_id.v4_value();
  Rib::Options options;
  options.local_as = settings.local_as;
  options.router_id = router_id;
  options.cluster_id = settings.cluster_id.value_or(router_id);
  options.family = family;
  options.track_changes = false;               // see track_changes()
  options.hash_seed = std::random_device{}();  // keys come from the neighbors
  return options;
}

std::shared_ptr<spdlog::logger> logger() {
  if (auto known = spdlog::get("bgp")) return known;
  return spdlog::default_logger()->clone("bgp");
}

}  // namespace

struct Speaker::Impl : std::enable_shared_from_this<Speaker::Impl> {
  Impl(boost::asio::io_context& io, const Family& family, const Settings& settings)
      : core{io,
             family,
             settings,
             Rib(rib_options(family.id, settings)),
             Rib(rib_options(kRouteTargetConstrain, settings)),
             std::make_shared<ConnectionPool>(),
             logger(),
             {},
             {},
             {},
             {}},
        listeners(io, core.log),
        convergence(io),
        deferral(io),
        stop_limit(io),
        memory_watch(io) {
    core.changed = [this] {
      if (++touched >= kFlushAfter && !flushing)
        flush();
      else
        schedule_flush();
    };
    core.progress = [this] { check_convergence(); };
    core.at_rest = [this] { schedule_dismissal(); };
    core.pool->trickled = [this] { flush_early(); };
  }

  std::expected<void, StartError> start();
  void accepted(tcp::socket socket);
  bool may_accept(const NeighborKey& key, const DynamicNeighbors* group);
  Neighbor* accept_dynamic(const NeighborKey& key, const DynamicNeighbors& group);
  void reject(uint64_t& counter, const std::string& from, const std::string& why);
  std::expected<Neighbor*, std::string> find(const std::string& name) const;
  void schedule_dismissal();
  void dismiss();
  void keep_dynamic();
  void set_import_targets(const ImportTargets& wanted);
  Neighbor& add(const NeighborSettings& settings, PeerId peer);
  void stop(bool graceful, const std::string& text, std::function<void()> done);
  void finish_stop();
  std::expected<void, StartError> reconfigure(const Settings& settings);
  void schedule_flush();
  void flush_early();
  void flush();
  void serve();
  void track_changes() { core.rib.track_changes(changes_handler != nullptr || !core.taps.empty()); }
  void watch_memory();
  void arm_memory_watch(net::Duration interval);
  [[nodiscard]] bool tidy();
  void trim_memory();
  void check_convergence();
  void converge();
  void defer_selection();
  void advertise();

  Core core;
  Listeners listeners;
  std::map<NeighborKey, std::shared_ptr<Neighbor>> neighbors;
  AcceptLimits limits;
  ImportTargets import_targets;
  std::map<PeerId, Neighbor*> by_peer;
  std::deque<PeerId> ready;  // to be served by the next flush()
  std::set<PeerId> waiting;  // the same
  std::function<void(const std::vector<RibChange>&)> changes_handler;
  std::function<void()> converged_handler;
  std::function<void()> stopped;
  boost::asio::steady_timer convergence, deferral, stop_limit, memory_watch;
  std::mt19937_64 random{std::random_device{}()};
  PeerId next_peer = 1;
  bool started = false, stopping = false, converged = false;
  bool flush_pending = false, flush_posted = false, flushed_early = false;
  bool dismissal_pending = false;
  RejectedConnections rejected;
  std::size_t memory_peak = 0;  // of the RIB, since malloc was last trimmed
  std::size_t memory_seen = 0;
  bool memory_watched = false;
  bool flushing = false;
  unsigned touched = 0;                    // times that the RIB was, since the last flush
  uint64_t flushes = 0, flushes_seen = 0;  // the latter by watch_memory()
  uint64_t rejects_not_logged = 0;
  net::TimePoint last_reject_log{};
};

// --- Start --------------------------------------------------------------------------------------

std::expected<void, StartError> Speaker::Impl::start() {
  auto failure = check(core.settings);
  for (const ListenSettings& settings : core.settings.listen)
    if (!failure) failure = listeners.open(settings);
  if (!failure) failure = listeners.protect(protections_of(core.settings));
  if (failure) {
    listeners.close();
    return std::unexpected(StartError{std::move(*failure)});
  }
  started = true;
  std::chrono::seconds longest{0};
  for (const NeighborSettings& settings : core.settings.neighbors) {
    Neighbor& neighbor = add(settings, next_peer++);
    neighbor.set_restarting(true);
    if (settings.enabled && settings.graceful_restart)
      longest = std::max(longest, settings.restart_time);
  }
  if (longest > 0s && reflects(core.settings)) defer_selection();
  listeners.accept([weak = weak_from_this()](tcp::socket socket) {
    if (const auto self = weak.lock()) self->accepted(std::move(socket));
  });
  for (const auto& [address, neighbor] : neighbors)
    if (neighbor->settings().enabled) neighbor->start();
  convergence.expires_after(longest);
  convergence.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->converge();
  });
  return {};
}

Neighbor& Speaker::Impl::add(const NeighborSettings& settings, PeerId peer) {
  auto neighbor = std::make_shared<Neighbor>(core, peer, settings, random());
  Neighbor& added = *neighbor;
  by_peer[peer] = &added;
  if (const auto* why = listeners.why_unprotected(peers_of(settings))) added.set_unprotected(*why);
  neighbors[key_of(settings)] = std::move(neighbor);
  return added;
}

// --- Accepting ----------------------------------------------------------------------------------

void Speaker::Impl::accepted(tcp::socket socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;
  NeighborKey key{to_address(remote.address()), {}};
  if (key.address.is_v6() && key.address.is_link_local())
    key.interface = interface_name(static_cast<uint32_t>(remote.address().to_v6().scope_id()));
  const auto found = neighbors.find(key);
  const DynamicNeighbors* group =
      found == neighbors.end() ? find_dynamic(core.settings, key) : nullptr;
  if (found == neighbors.end() && group == nullptr)
    return reject(rejected.not_a_neighbor, to_string(key), "not a neighbor");
  if (!may_accept(key, group)) return;
  Neighbor* neighbor = found != neighbors.end() ? found->second.get() : accept_dynamic(key, *group);
  if (neighbor == nullptr) return;
  if (!neighbor->unprotected().empty())
    return reject(rejected.unprotected, neighbor->name(), neighbor->unprotected());
  if (neighbor->refuses_connections()) return reject(rejected.not_now, neighbor->name(), "not now");
  neighbor->accept(std::move(socket));
}

bool Speaker::Impl::may_accept(const NeighborKey& key, const DynamicNeighbors* group) {
  if (!limits.admit(key.address, net::Clock::now())) {
    reject(rejected.rate, to_string(key), "too many connections in a short time");
    return false;
  }
  std::size_t unestablished = 0;
  for (const auto& [known, neighbor] : neighbors) unestablished += neighbor->unestablished();
  if (unestablished >= kMaxUnestablished) {
    reject(rejected.unestablished, to_string(key), "too many connections without a session");
    return false;
  }
  if (group == nullptr) return true;
  const net::IpPrefix peers = peers_of(*group);
  const auto taken =
      std::ranges::count_if(neighbors, [&](const auto& n) { return n.second->dynamic() == peers; });
  if (static_cast<std::size_t>(taken) < group->limit) return true;
  reject(rejected.dynamic_limit, to_string(key),
         net::to_string(peers) + " has all its " + std::to_string(group->limit) + " neighbors");
  return false;
}

Neighbor* Speaker::Impl::accept_dynamic(const NeighborKey& key, const DynamicNeighbors& group) {
  const NeighborSettings settings = settings_for(group, key);
  if (const auto* why = listeners.why_unprotected(peers_of(group))) {
    reject(rejected.unprotected, to_string(key), *why);
    return nullptr;
  }
  if (!settings.enabled) {
    reject(rejected.not_now, to_string(key), "not now");
    return nullptr;
  }
  Neighbor& neighbor = add(settings, next_peer++);
  neighbor.set_dynamic(peers_of(group));
  neighbor.set_restarting(!converged);
  core.log->info("{}: dynamic neighbor of {}", neighbor.name(), net::to_string(peers_of(group)));
  neighbor.start();
  return &neighbor;
}

void Speaker::Impl::schedule_dismissal() {
  if (std::exchange(dismissal_pending, true)) return;
  boost::asio::post(core.io, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->dismiss();
  });
}

// Dynamic neighbors that are gone.
void Speaker::Impl::dismiss() {
  dismissal_pending = false;
  std::erase_if(neighbors, [this](const auto& entry) {
    Neighbor& neighbor = *entry.second;
    if (!neighbor.may_go()) return false;
    core.log->info("{}: gone", neighbor.name());
    neighbor.stop(std::nullopt);
    by_peer.erase(neighbor.peer());
    return true;
  });
  check_convergence();
}

void Speaker::Impl::reject(uint64_t& counter, const std::string& from, const std::string& why) {
  ++counter;
  const auto now = net::Clock::now();
  if (now - last_reject_log < kRejectLogInterval) {
    ++rejects_not_logged;
    return;
  }
  last_reject_log = now;
  core.log->info("{}: connection refused: {} ({} more since the last such line)", from, why,
                 std::exchange(rejects_not_logged, 0));
}

// --- Running ------------------------------------------------------------------------------------

void Speaker::Impl::schedule_flush() {
  flush_pending = true;
  if (std::exchange(flush_posted, true)) return;
  boost::asio::post(core.io, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->flush_posted = self->flushed_early = false;
    if (self->flush_pending) self->flush();
  });
}

// The first that trickles in does not wait for what else the loop has to do; more in the same turn
// goes out together.
void Speaker::Impl::flush_early() {
  if (flush_pending && !flushing && !std::exchange(flushed_early, true)) flush();
}

void Speaker::Impl::flush() {
  flush_pending = false;
  touched = 0;
  if (stopping) return;  // the sessions end, but forwarding goes on
  for (Rib* rib : {&core.target_rib, &core.rib})
    if (rib->work()) schedule_flush();
  const auto changes = core.rib.take_changes();
  if (!changes.empty())
    for (Tap* tap : core.taps) tap->best_changed(changes);
  if (!changes.empty() && changes_handler) {
    const auto handler = changes_handler;  // may be replaced within
    flushing = true;
    handler(changes);
    flushing = false;
  }
  for (const auto& [key, neighbor] : neighbors) neighbor->apply_memberships();
  for (Rib* rib : {&core.target_rib, &core.rib})
    for (const PeerId peer : rib->take_ready())
      if (waiting.insert(peer).second) ready.push_back(peer);
  flushing = true;
  serve();
  flushing = false;
  watch_memory();
}

// Those who have something to be sent, as many as a turn is to see to.
void Speaker::Impl::serve() {
  for (std::size_t octets = 0; !ready.empty() && octets < kTurnOctets;) {
    const PeerId peer = ready.front();
    ready.pop_front();
    waiting.erase(peer);
    if (const auto found = by_peer.find(peer); found != by_peer.end())
      octets += found->second->refill();
  }
  if (!ready.empty()) schedule_flush();
}

// Making room is not urgent: it has its turn when the RIB is at rest, and now and then if it is
// not.
void Speaker::Impl::watch_memory() {
  ++flushes;
  if (std::exchange(memory_watched, true)) return;
  arm_memory_watch(kMemoryInterval);
}

void Speaker::Impl::arm_memory_watch(net::Duration interval) {
  memory_watch.expires_after(interval);
  memory_watch.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    const bool at_rest = std::exchange(self->flushes_seen, self->flushes) == self->flushes;
    const std::size_t before = std::exchange(self->memory_seen, self->core.rib.memory_bytes());
    const bool more = self->tidy();
    if (!more && at_rest) self->trim_memory();
    if (at_rest && more)
      self->arm_memory_watch(kTidyInterval);
    else if (more || !at_rest || before != self->memory_seen)
      self->arm_memory_watch(kMemoryInterval);
    else
      self->memory_watched = false;
  });
}

bool Speaker::Impl::tidy() {
  bool more = false;
  for (Rib* rib : {&core.target_rib, &core.rib}) more |= rib->tidy();
  return more;
}

// malloc keeps what is freed; once most of a large table is gone, it is to give it back.
void Speaker::Impl::trim_memory() {
  constexpr std::size_t kSmall = 4 << 20;
  const std::size_t now = core.rib.memory_bytes();
  memory_peak = std::max(memory_peak, now);
  if (memory_peak < kSmall || now >= memory_peak / 4) return;
  memory_peak = now;
  malloc_trim(0);
}

void Speaker::Impl::check_convergence() {
  if (converged || !started) return;
  // Clients hold their routes back until they know what is wanted: that can't wait for routes.
  if (std::ranges::all_of(neighbors, [](const auto& n) { return n.second->targets_caught_up(); })) {
    core.target_rib.hold_advertisements(false);
    schedule_flush();
  }
  if (std::ranges::all_of(neighbors, [](const auto& n) { return n.second->caught_up(); }))
    boost::asio::post(core.io, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->converge();
    });
}

// A reflector's neighbors take its End-of-RIB as the word that what they kept and did not hear
// again is gone. So it waits for the others' routes first.
void Speaker::Impl::defer_selection() {
  core.rib.hold_advertisements(true);
  core.target_rib.hold_advertisements(true);
  deferral.expires_after(core.settings.selection_deferral);
  deferral.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->advertise();
  });
}

void Speaker::Impl::advertise() {
  deferral.cancel();
  core.rib.hold_advertisements(false);
  core.target_rib.hold_advertisements(false);
  schedule_flush();
}

void Speaker::Impl::converge() {
  if (stopping || std::exchange(converged, true)) return;
  convergence.cancel();
  advertise();
  for (const auto& [address, neighbor] : neighbors) neighbor->set_restarting(false);
  flush();  // what was learned comes before the word that this is all
  core.log->info("converged after start: {} routes", core.rib.route_count());
  if (const auto handler = converged_handler) handler();
}

// --- Stop and reconfigure -----------------------------------------------------------------------

void Speaker::Impl::stop(bool graceful, const std::string& text, std::function<void()> done) {
  stopping = true;
  convergence.cancel();
  deferral.cancel();
  memory_watch.cancel();
  listeners.close();
  for (const auto& [address, neighbor] : neighbors) {
    if (graceful)
      neighbor->stop(std::nullopt);
    else
      neighbor->shut_down(cease::kAdministrativeShutdown, text);
  }
  stopped = std::move(done);
  const auto finish = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->finish_stop();
  };
  core.pool->all_closed = [finish, &io = core.io] { boost::asio::post(io, finish); };
  if (core.pool->open == 0) core.pool->all_closed();
  stop_limit.expires_after(kStopLimit);
  stop_limit.async_wait([finish](const error_code& error) {
    if (!error) finish();
  });
}

void Speaker::Impl::finish_stop() {
  stop_limit.cancel();
  core.pool->all_closed = nullptr;
  if (const auto done = std::exchange(stopped, nullptr)) done();
}

std::expected<void, StartError> Speaker::Impl::reconfigure(const Settings& wanted) {
  const auto refuse = [](const char* what) {
    return std::unexpected(StartError{std::string(what) + " can't change while running"});
  };
  const Settings& have = core.settings;
  if (wanted.local_as != have.local_as) return refuse("local AS");
  if (wanted.router_id != have.router_id) return refuse("router id");
  if (wanted.cluster_id != have.cluster_id) return refuse("cluster id");
  if (wanted.listen != have.listen) return refuse("listen addresses");
  if (auto failure = check(wanted)) return std::unexpected(StartError{std::move(*failure)});
  // Keys first: they can fail.
  if (auto failure = listeners.protect(protections_of(wanted)))
    return std::unexpected(StartError{std::move(*failure)});
  // Those that are gone.
  for (auto it = neighbors.begin(); it != neighbors.end();) {
    const bool kept = std::ranges::any_of(
        wanted.neighbors, [&](const NeighborSettings& n) { return key_of(n) == it->first; });
    if (kept || it->second->dynamic()) {
      ++it;
      continue;
    }
    it->second->shut_down(cease::kPeerDeconfigured);
    core.log->info("{}: removed", it->second->name());
    by_peer.erase(it->second->peer());
    it = neighbors.erase(it);
  }
  core.settings = wanted;
  keep_dynamic();
  for (const NeighborSettings& settings : wanted.neighbors) {
    const auto found = neighbors.find(key_of(settings));
    PeerId peer = 0;
    bool shut_down = false;
    if (found == neighbors.end()) {
      peer = next_peer++;
    } else if (same_session(found->second->settings(), settings)) {
      found->second->adopt(settings);
      continue;
    } else {
      peer = found->second->peer();
      shut_down = found->second->is_shut_down();
      found->second->shut_down(
          settings.enabled ? cease::kOtherConfigurationChange : cease::kAdministrativeShutdown,
          settings.shutdown_message);
    }
    Neighbor& neighbor = add(settings, peer);
    neighbor.set_restarting(!converged);
    core.log->info("{}: configured", neighbor.name());
    if (shut_down) neighbor.keep_shut_down();
    if (settings.enabled && !shut_down) neighbor.start();
  }
  listeners.unprotect(protections_of(core.settings));
  check_convergence();
  schedule_flush();
  return {};
}

// Dynamic neighbors after a change of settings: those of a prefix that is as it was stay.
void Speaker::Impl::keep_dynamic() {
  std::erase_if(neighbors, [this](const auto& entry) {
    const auto& [key, neighbor] = entry;
    if (!neighbor->dynamic()) return false;
    const bool exact = std::ranges::any_of(core.settings.neighbors, [&](const auto& settings) {
      return key_of(settings) == entry.first;
    });
    const DynamicNeighbors* group = exact ? nullptr : find_dynamic(core.settings, key);
    if (group != nullptr && peers_of(*group) == *neighbor->dynamic()) {
      const NeighborSettings settings = settings_for(*group, key);
      if (same_session(neighbor->settings(), settings)) {
        neighbor->adopt(settings);
        return false;
      }
    }
    neighbor->shut_down(group == nullptr && !exact ? cease::kPeerDeconfigured
                                                   : cease::kOtherConfigurationChange);
    core.log->info("{}: removed", neighbor->name());
    by_peer.erase(neighbor->peer());
    return true;
  });
}

// --- Operators ----------------------------------------------------------------------------------

std::expected<Neighbor*, std::string> Speaker::Impl::find(const std::string& name) const {
  Neighbor* match = nullptr;
  for (const auto& [key, neighbor] : neighbors) {
    const bool exact = name == to_string(key) || name == neighbor->name();
    if (exact) return neighbor.get();
    if (name.empty() ||
        (name != neighbor->settings().description && name != net::to_string(key.address)))
      continue;
    if (match != nullptr) return std::unexpected("several neighbors are called " + name);
    match = neighbor.get();
  }
  if (match == nullptr) return std::unexpected("no neighbor " + name);
  return match;
}

// Our memberships as routes of our own (RFC 4684 section 4: origin AS and target).
void Speaker::Impl::set_import_targets(const ImportTargets& wanted) {
  const auto memberships = [&](const ImportTargets& targets) {
    std::vector<net::Bytes> nlris;
    if (targets.everything) nlris.push_back(default_membership_nlri());
    for (const ExtendedCommunity& target : targets.targets)
      nlris.push_back(membership_nlri(core.settings.local_as.value, target));
    std::ranges::sort(nlris);
    return nlris;
  };
  const auto old = memberships(std::exchange(import_targets, wanted));
  const auto now = memberships(wanted);
  auto attributes = std::make_shared<Attributes>();
  attributes->next_hop = core.settings.router_id;
  for (const net::Bytes& nlri : old)
    if (!std::ranges::binary_search(now, nlri))
      core.target_rib.withdraw(kLocalPeer, membership_item(nlri).key());
  for (const net::Bytes& nlri : now)
    core.target_rib.update(kLocalPeer, membership_item(nlri), attributes);
  schedule_flush();
}

// --- Speaker ------------------------------------------------------------------------------------

Speaker::Speaker(boost::asio::io_context& io, const Family& family, const Settings& settings)
    : impl_(std::make_shared<Impl>(io, family, settings)) {}

Speaker::~Speaker() {
  impl_->listeners.close();
  impl_->core.pool->all_closed = impl_->core.pool->trickled = nullptr;
}

std::expected<void, StartError> Speaker::start() { return impl_->start(); }

void Speaker::stop(bool graceful, const std::string& text, std::function<void()> done) {
  impl_->stop(graceful, text, std::move(done));
}

void Speaker::originate(const NlriItem& item, const AttributesPtr& attributes) {
  impl_->core.rib.update(kLocalPeer, item, attributes);
  impl_->schedule_flush();
}

void Speaker::withdraw(const NlriItem& item) {
  impl_->core.rib.withdraw(kLocalPeer, item.key());
  impl_->schedule_flush();
}

void Speaker::on_changes(std::function<void(const std::vector<RibChange>&)> handler) {
  impl_->changes_handler = std::move(handler);
  impl_->track_changes();
}

void Speaker::on_converged(std::function<void()> handler) {
  impl_->converged_handler = std::move(handler);
}

void Speaker::set_policies(std::function<NeighborPolicies(const NeighborSettings&)> provider) {
  impl_->core.policies = std::move(provider);
  for (const auto& [address, neighbor] : impl_->neighbors) neighbor->apply_policies();
}

std::vector<NeighborView> Speaker::neighbors() const {
  std::vector<NeighborView> views;
  for (const auto& [address, neighbor] : impl_->neighbors) views.push_back(neighbor->view());
  return views;
}

std::vector<PeerId> Speaker::neighbor_ids() const {
  std::vector<PeerId> ids;
  for (const auto& [address, neighbor] : impl_->neighbors) ids.push_back(neighbor->peer());
  return ids;
}

std::optional<NeighborView> Speaker::neighbor(PeerId peer) const {
  const auto found = impl_->by_peer.find(peer);
  if (found == impl_->by_peer.end()) return std::nullopt;
  return found->second->view();
}

bool Speaker::is_named(PeerId peer, const std::string& name) const {
  const auto found = impl_->by_peer.find(peer);
  if (found == impl_->by_peer.end()) return false;
  const NeighborSettings& settings = found->second->settings();
  return name == to_string(key_of(settings)) || name == found->second->name() ||
         (!name.empty() && name == settings.description);
}

std::vector<SessionInfoPtr> Speaker::sessions() const {
  std::vector<SessionInfoPtr> up;
  for (const auto& [peer, neighbor] : impl_->by_peer)
    if (neighbor->session_info()) up.push_back(neighbor->session_info());
  return up;
}

RoutePolicyPtr Speaker::accept_policy(PeerId peer) const {
  const PeerTraits* traits = peer == kLocalPeer ? nullptr : rib().traits(peer);
  return traits == nullptr ? nullptr : traits->accept;
}

void Speaker::add_tap(Tap& tap) {
  impl_->core.taps.push_back(&tap);
  impl_->track_changes();
}

void Speaker::remove_tap(Tap& tap) {
  std::erase(impl_->core.taps, &tap);
  impl_->track_changes();
}

const Rib& Speaker::rib() const { return impl_->core.rib; }

std::string Speaker::peer_name(PeerId peer) const {
  if (peer == kLocalPeer) return "local";
  const auto found = impl_->by_peer.find(peer);
  return found == impl_->by_peer.end() ? "peer " + std::to_string(peer) : found->second->name();
}

std::expected<void, StartError> Speaker::reconfigure(const Settings& settings) {
  return impl_->reconfigure(settings);
}

std::vector<ListenSettings> Speaker::listening() const { return impl_->listeners.listening(); }

const RejectedConnections& Speaker::rejected_connections() const { return impl_->rejected; }

const Rib& Speaker::target_rib() const { return impl_->core.target_rib; }

void Speaker::set_import_targets(const ImportTargets& targets) {
  impl_->set_import_targets(targets);
}

std::expected<void, std::string> Speaker::reset(const std::string& neighbor,
                                                const std::string& text) {
  const auto found = impl_->find(neighbor);
  if (!found) return std::unexpected(found.error());
  if ((*found)->is_shut_down() || !(*found)->settings().enabled)
    return std::unexpected((*found)->name() + " is disabled");
  (*found)->reset(text);
  return {};
}

std::expected<void, std::string> Speaker::set_enabled(const std::string& neighbor, bool enabled,
                                                      const std::string& text) {
  const auto found = impl_->find(neighbor);
  if (!found) return std::unexpected(found.error());
  if (!(*found)->settings().enabled)
    return std::unexpected((*found)->name() + " is disabled in the settings");
  (*found)->set_enabled(enabled, text);
  return {};
}

std::expected<void, std::string> Speaker::ask_refresh(const std::string& neighbor) {
  const auto found = impl_->find(neighbor);
  if (!found) return std::unexpected(found.error());
  return (*found)->ask_refresh();
}

}  // namespace bgp::io
