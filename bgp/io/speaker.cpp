// SPDX-License-Identifier: GPL-2.0-or-later
// Listeners, the set of neighbors and the RIB between them. After each turn in which the RIB was
// touched, flush() hands its changes to the application and lets the neighbors fill their sockets.
#include "bgp/io/speaker.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <random>
#include <utility>

#include "bgp/io/neighbor.h"

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopLimit = 1s;
constexpr auto kAcceptPause = 100ms;  // when there are no file descriptors left
constexpr auto kRejectLogInterval = 1s;
// UPDATEs, if no flush came earlier: what they changed is to be sent while the caches have it.
constexpr unsigned kFlushAfter = 32;
constexpr auto kMemoryInterval = 100ms;  // while the RIB grows or shrinks

Rib::Options rib_options(const Family& family, const Settings& settings) {
  const uint32_t router_id = settings.router_id.v4_value();
  Rib::Options options;
  options.local_as = settings.local_as;
  options.router_id = router_id;
  options.cluster_id = settings.cluster_id.value_or(router_id);
  options.family = family.id;
  options.hash_seed = std::random_device{}();  // keys come from the neighbors
  return options;
}

std::shared_ptr<spdlog::logger> logger() {
  if (auto known = spdlog::get("bgp")) return known;
  return spdlog::default_logger()->clone("bgp");
}

std::string where(const ListenSettings& listen) {
  return "listen on " + net::to_string(listen.address) + " port " + std::to_string(listen.port);
}

// Settings that can't be right; the others are config/'s to refuse.
std::optional<StartError> check(const Settings& settings) {
  std::vector<net::IpAddress> addresses;
  for (const NeighborSettings& neighbor : settings.neighbors) {
    if (neighbor.password.size() > kMaxMd5Key)
      return StartError{"neighbor " + net::to_string(neighbor.address) +
                        ": password of more than " + std::to_string(kMaxMd5Key) + " octets"};
    addresses.push_back(neighbor.address);
  }
  std::ranges::sort(addresses);
  if (const auto twice = std::ranges::adjacent_find(addresses); twice != addresses.end())
    return StartError{"neighbor " + net::to_string(*twice) + " twice"};
  return std::nullopt;
}

bool reflects(const Settings& settings) {
  return std::ranges::any_of(settings.neighbors, [](const NeighborSettings& neighbor) {
    return neighbor.enabled && neighbor.role != NeighborRole::Peer;
  });
}

// True when the change can be taken over while the session stays up.
bool same_session(const NeighborSettings& a, const NeighborSettings& b) {
  NeighborSettings like_b = a;
  like_b.description = b.description;
  like_b.group = b.group;
  like_b.max_prefixes = b.max_prefixes;
  return like_b == b;
}

}  // namespace

struct Speaker::Impl : std::enable_shared_from_this<Speaker::Impl> {
  struct Listener {
    ListenSettings settings;
    tcp::acceptor acceptor;
    boost::asio::steady_timer pause;
  };

  Impl(boost::asio::io_context& io, const Family& family, const Settings& settings)
      : core{io,
             family,
             settings,
             Rib(rib_options(family, settings)),
             std::make_shared<ConnectionPool>(),
             logger(),
             {},
             {}},
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
  }

  std::expected<void, StartError> start();
  std::optional<StartError> listen(const ListenSettings& settings);
  std::optional<StartError> set_key(const NeighborSettings& neighbor, const std::string& key);
  void accept(const std::shared_ptr<Listener>& listener);
  void accepted(tcp::socket socket);
  void reject(const std::string& from, const char* why);
  Neighbor& add(const NeighborSettings& settings, PeerId peer);
  void stop(bool graceful, const std::string& text, std::function<void()> done);
  void finish_stop();
  std::expected<void, StartError> reconfigure(const Settings& settings);
  void schedule_flush();
  void flush();
  void watch_memory();
  void trim_memory();
  void check_convergence();
  void converge();
  void defer_selection();
  void advertise();
  void shut();

  Core core;
  std::vector<std::shared_ptr<Listener>> listeners;
  std::map<net::IpAddress, std::shared_ptr<Neighbor>> neighbors;
  std::map<PeerId, Neighbor*> by_peer;
  std::function<void(const std::vector<RibChange>&)> changes_handler;
  std::function<void()> converged_handler;
  std::function<void()> stopped;
  boost::asio::steady_timer convergence, deferral, stop_limit, memory_watch;
  std::mt19937_64 random{std::random_device{}()};
  PeerId next_peer = 1;
  bool started = false, stopping = false, converged = false, flush_pending = false;
  std::size_t memory_peak = 0;  // of the RIB, since malloc was last trimmed
  std::size_t memory_seen = 0;
  bool memory_watched = false;
  bool flushing = false;
  unsigned touched = 0;  // times that the RIB was, since the last flush
  uint64_t rejected = 0;
  uint64_t rejects_not_logged = 0;
  net::TimePoint last_reject_log{};
};

// --- Start --------------------------------------------------------------------------------------

std::expected<void, StartError> Speaker::Impl::start() {
  auto failure = check(core.settings);
  for (const ListenSettings& settings : core.settings.listen)
    if (!failure) failure = listen(settings);
  for (const NeighborSettings& neighbor : core.settings.neighbors)
    if (!failure && !neighbor.password.empty()) failure = set_key(neighbor, neighbor.password);
  if (failure) {
    shut();
    return std::unexpected(std::move(*failure));
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
  for (const auto& listener : listeners) accept(listener);
  for (const auto& [address, neighbor] : neighbors)
    if (neighbor->settings().enabled) neighbor->start();
  convergence.expires_after(longest);
  convergence.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->converge();
  });
  return {};
}

std::optional<StartError> Speaker::Impl::listen(const ListenSettings& settings) {
  const tcp::endpoint endpoint = to_endpoint(settings.address, settings.port);
  const auto listener = std::make_shared<Listener>(settings, tcp::acceptor(core.io),
                                                   boost::asio::steady_timer(core.io));
  tcp::acceptor& acceptor = listener->acceptor;
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && settings.address.is_v6())
    acceptor.set_option(boost::asio::ip::v6_only(true), error);
  if (!error) error = set_listener_hops(acceptor.native_handle(), settings.address.family());
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return StartError{where(settings) + ": " + error.message()};
  listener->settings.port = acceptor.local_endpoint(error).port();
  listeners.push_back(listener);
  return std::nullopt;
}

std::optional<StartError> Speaker::Impl::set_key(const NeighborSettings& neighbor,
                                                 const std::string& key) {
  for (const auto& listener : listeners) {
    if (listener->settings.address.family() != neighbor.address.family()) continue;
    if (const auto error = set_md5(listener->acceptor.native_handle(), neighbor.address, key))
      return StartError{"TCP-MD5 for " + net::to_string(neighbor.address) + ": " + error.message()};
  }
  return std::nullopt;
}

Neighbor& Speaker::Impl::add(const NeighborSettings& settings, PeerId peer) {
  auto neighbor = std::make_shared<Neighbor>(core, peer, settings, random());
  Neighbor& added = *neighbor;
  by_peer[peer] = &added;
  neighbors[settings.address] = std::move(neighbor);
  return added;
}

// --- Accepting ----------------------------------------------------------------------------------

void Speaker::Impl::accept(const std::shared_ptr<Listener>& listener) {
  listener->acceptor.async_accept(
      [weak = weak_from_this(), listener](const error_code& error, tcp::socket socket) {
        const auto self = weak.lock();
        if (self == nullptr || !listener->acceptor.is_open()) return;
        if (!error) {
          self->accepted(std::move(socket));
          return self->accept(listener);
        }
        listener->pause.expires_after(kAcceptPause);
        listener->pause.async_wait([weak, listener](const error_code& cancelled) {
          const auto again = weak.lock();
          if (!cancelled && again != nullptr && listener->acceptor.is_open())
            again->accept(listener);
        });
      });
}

void Speaker::Impl::accepted(tcp::socket socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;
  const net::IpAddress address = to_address(remote.address());
  const auto found = neighbors.find(address);
  if (found == neighbors.end()) return reject(net::to_string(address), "not a neighbor");
  Neighbor& neighbor = *found->second;
  if (neighbor.refuses_connections()) return reject(neighbor.name(), "not now");
  neighbor.accept(std::move(socket));
}

void Speaker::Impl::reject(const std::string& from, const char* why) {
  ++rejected;
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
  if (std::exchange(flush_pending, true)) return;
  boost::asio::post(core.io, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

void Speaker::Impl::flush() {
  flush_pending = false;
  touched = 0;
  if (stopping) return;  // the sessions end, but forwarding goes on
  if (core.rib.work()) schedule_flush();
  const auto changes = core.rib.take_changes();
  if (!changes.empty() && changes_handler) {
    const auto handler = changes_handler;  // may be replaced within
    flushing = true;
    handler(changes);
    flushing = false;
  }
  for (const PeerId peer : core.rib.take_ready())
    if (const auto found = by_peer.find(peer); found != by_peer.end()) found->second->refill();
  watch_memory();
}

// Routes go when the last neighbor was told, which may be after the last flush.
void Speaker::Impl::watch_memory() {
  if (std::exchange(memory_watched, true)) return;
  memory_watch.expires_after(kMemoryInterval);
  memory_watch.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    self->memory_watched = false;
    const std::size_t before = std::exchange(self->memory_seen, self->core.rib.memory_bytes());
    self->trim_memory();
    if (before != self->memory_seen) self->watch_memory();
  });
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
  if (std::ranges::all_of(neighbors, [](const auto& n) { return n.second->caught_up(); }))
    boost::asio::post(core.io, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->converge();
    });
}

// A reflector's neighbors take its End-of-RIB as the word that what they kept and did not hear
// again is gone. So it waits for the others' routes first.
void Speaker::Impl::defer_selection() {
  core.rib.hold_advertisements(true);
  deferral.expires_after(core.settings.selection_deferral);
  deferral.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->advertise();
  });
}

void Speaker::Impl::advertise() {
  deferral.cancel();
  core.rib.hold_advertisements(false);
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

void Speaker::Impl::shut() {
  for (const auto& listener : listeners) {
    error_code error;
    listener->acceptor.close(error);
    listener->pause.cancel();
  }
  listeners.clear();
}

void Speaker::Impl::stop(bool graceful, const std::string& text, std::function<void()> done) {
  stopping = true;
  convergence.cancel();
  deferral.cancel();
  memory_watch.cancel();
  shut();
  for (const auto& [address, neighbor] : neighbors) {
    if (graceful)
      neighbor->stop(std::nullopt);
    else
      neighbor->stop(shutdown_notification(cease::kAdministrativeShutdown, text));
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
  if (auto failure = check(wanted)) return std::unexpected(std::move(*failure));
  // Keys first: they can fail. Those that were set are put back.
  std::vector<const NeighborSettings*> keyed;
  for (const NeighborSettings& neighbor : wanted.neighbors) {
    const auto found = neighbors.find(neighbor.address);
    const std::string old = found == neighbors.end() ? "" : found->second->settings().password;
    if (old == neighbor.password) continue;
    keyed.push_back(&neighbor);
    auto failure = set_key(neighbor, neighbor.password);
    if (!failure) continue;
    for (const NeighborSettings* undo : keyed) {
      const auto before = neighbors.find(undo->address);
      (void)set_key(*undo, before == neighbors.end() ? "" : before->second->settings().password);
    }
    return std::unexpected(std::move(*failure));
  }
  // Those that are gone.
  for (auto it = neighbors.begin(); it != neighbors.end();) {
    const bool kept = std::ranges::any_of(
        wanted.neighbors, [&](const NeighborSettings& n) { return n.address == it->first; });
    if (kept) {
      ++it;
      continue;
    }
    it->second->stop(Notification{ErrorCode::Cease, cease::kPeerDeconfigured, {}});
    (void)set_key(it->second->settings(), "");
    core.log->info("{}: removed", it->second->name());
    by_peer.erase(it->second->peer());
    it = neighbors.erase(it);
  }
  core.settings = wanted;
  for (const NeighborSettings& settings : wanted.neighbors) {
    const auto found = neighbors.find(settings.address);
    PeerId peer = 0;
    if (found == neighbors.end()) {
      peer = next_peer++;
    } else if (same_session(found->second->settings(), settings)) {
      found->second->adopt(settings);
      continue;
    } else {
      peer = found->second->peer();
      const uint8_t why =
          settings.enabled ? cease::kOtherConfigurationChange : cease::kAdministrativeShutdown;
      found->second->stop(Notification{ErrorCode::Cease, why, {}});
    }
    Neighbor& neighbor = add(settings, peer);
    neighbor.set_restarting(!converged);
    core.log->info("{}: configured", neighbor.name());
    if (settings.enabled) neighbor.start();
  }
  check_convergence();
  schedule_flush();
  return {};
}

// --- Speaker ------------------------------------------------------------------------------------

Speaker::Speaker(boost::asio::io_context& io, const Family& family, const Settings& settings)
    : impl_(std::make_shared<Impl>(io, family, settings)) {}

Speaker::~Speaker() {
  impl_->shut();
  impl_->core.pool->all_closed = nullptr;
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
}

void Speaker::on_converged(std::function<void()> handler) {
  impl_->converged_handler = std::move(handler);
}

std::vector<NeighborView> Speaker::neighbors() const {
  std::vector<NeighborView> views;
  for (const auto& [address, neighbor] : impl_->neighbors) views.push_back(neighbor->view());
  return views;
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

std::vector<ListenSettings> Speaker::listening() const {
  std::vector<ListenSettings> out;
  for (const auto& listener : impl_->listeners) out.push_back(listener->settings);
  return out;
}

uint64_t Speaker::rejected_connections() const { return impl_->rejected; }

}  // namespace bgp::io
