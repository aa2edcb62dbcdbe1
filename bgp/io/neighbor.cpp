// SPDX-License-Identifier: GPL-2.0-or-later
// Events from sockets and the timer go into the session, its actions to sockets and the RIB. What
// comes of an action that fails is an event again, but never within the same turn.
#include "bgp/io/neighbor.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kQueueLimit = 262144;  // octets that wait for a socket
constexpr auto kLimitPause = 15min;          // after Maximum Number of Prefixes
constexpr auto kErrorLogInterval = 1s;

net::TimePoint now() { return net::Clock::now(); }

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t octet : bytes) text += fmt::format("{:02x}", octet);
  return text;
}

bool external(const Core& core, const NeighborSettings& neighbor) {
  return core.settings.local_as != neighbor.remote_as;
}

SessionSettings session_settings(const Core& core, const NeighborSettings& neighbor) {
  SessionSettings out;
  out.local_as = core.settings.local_as.value;
  out.remote_as = neighbor.remote_as.value;
  out.router_id = core.settings.router_id.v4_value();
  out.family = core.family;
  out.passive = neighbor.passive;
  out.hold_time = neighbor.hold_time;
  out.connect_retry = std::max<std::chrono::seconds>(1s, neighbor.connect_retry);
  out.graceful_restart = neighbor.graceful_restart;
  out.restart_time = neighbor.restart_time;
  return out;
}

std::string name_of(const NeighborSettings& neighbor) {
  std::string name = net::to_string(neighbor.address);
  if (!neighbor.description.empty()) name += " (" + neighbor.description + ")";
  return name;
}

}  // namespace

Neighbor::Neighbor(Core& core, PeerId peer, NeighborSettings settings, uint64_t seed)
    : core_(core),
      peer_(peer),
      settings_(std::move(settings)),
      name_(name_of(settings_)),
      session_(session_settings(core, settings_), seed),
      timer_(core.io),
      since_(now()) {}

Neighbor::~Neighbor() {
  for (auto& connection : connections_)
    if (connection) connection->close();
}

void Neighbor::start() { dispatch(event::Start{}); }

void Neighbor::stop(const std::optional<Notification>& notification) {
  if (!notification)  // without a word: not even an orderly end
    for (auto& connection : connections_)
      if (auto gone = std::exchange(connection, nullptr)) gone->close();
  dispatch(event::Stop{notification});
}

void Neighbor::adopt(const NeighborSettings& settings) {
  settings_ = settings;
  name_ = name_of(settings_);
  enforce_limit();
}

bool Neighbor::caught_up() const {
  if (!settings_.enabled || !settings_.graceful_restart || end_of_rib_seen_) return true;
  return session_.state() == SessionState::Established && !session_.graceful_restart_negotiated();
}

// --- Session ------------------------------------------------------------------------------------

void Neighbor::dispatch(const Event& event) {
  auto actions = session_.handle(event, now());
  for (Action& action : actions) perform(action);
  note_state();
  arm_timer();
  enforce_limit();
}

void Neighbor::perform(Action& action) {
  if (std::holds_alternative<action::OpenConnection>(action)) {
    connect();
  } else if (auto* send = std::get_if<action::Send>(&action)) {
    if (auto& connection = at(send->slot)) {
      ++counters_.messages_out;
      connection->send(std::make_shared<const net::Bytes>(std::move(send->message)));
    }
  } else if (const auto* close = std::get_if<action::CloseConnection>(&action)) {
    if (close->slot == Slot::Outgoing) connecting_.reset();
    if (auto connection = std::exchange(at(close->slot), nullptr)) connection->finish();
  } else if (const auto* up = std::get_if<action::Up>(&action)) {
    perform_up(up->slot);
  } else if (const auto* ended = std::get_if<action::Ended>(&action)) {
    perform_ended(*ended);
  } else if (const auto* routes = std::get_if<action::Routes>(&action)) {
    perform_routes(routes->update);
  } else if (const auto* refresh = std::get_if<action::Refresh>(&action)) {
    core_.log->info("{}: route refresh asked for", name_);
    core_.rib.refresh(peer_, refresh->enhanced);
    core_.changed();
  } else if (std::holds_alternative<action::FlushStale>(action)) {
    core_.log->info("{}: stale routes removed", name_);
    core_.rib.flush_stale(peer_);
    core_.changed();
  }
}

void Neighbor::perform_up(Slot slot) {
  const Open& open = *session_.peer_open();
  PeerTraits traits;
  traits.internal = !external(core_, settings_);
  traits.role = settings_.role;
  traits.address = settings_.address;
  traits.router_id = open.router_id;
  traits.as_number = open.effective_as();
  traits.four_octet_as = open.capabilities.four_octet_as.has_value();
  traits.max_message = open.capabilities.extended_message ? kMaxExtendedMessage : kMaxMessage;
  traits.strip_extended_communities = settings_.strip_extended_communities;
  core_.log->info("{}: session up, router id {}, hold time {} s{}", name_,
                  net::to_string(net::IpAddress::v4(open.router_id)), session_.hold_time().count(),
                  session_.stale_kept() ? ", routes kept over its restart" : "");
  up_ = slot;
  ++counters_.established_count;
  core_.rib.peer_up(peer_, traits);
  core_.changed();
  core_.progress();
}

void Neighbor::perform_ended(const action::Ended& ended) {
  std::string text = to_string(ended.reason);
  const auto& notification = ended.reason.notification;
  if (notification)
    if (const auto words = shutdown_text(*notification)) text += ": \"" + *words + "\"";
  counters_.last_error = text;
  counters_.last_error_data = notification ? hex(notification->data) : "";
  if (!ended.established) {
    core_.log->info("{}: connection ended: {}", name_, text);
    return;
  }
  core_.log->warn("{}: session down: {}{}", name_, text,
                  ended.keep_stale ? "; routes kept for its restart" : "");
  up_.reset();
  ++counters_.dropped_count;
  core_.rib.peer_down(peer_, ended.keep_stale);
  core_.changed();
}

void Neighbor::perform_routes(const Update& update) {
  ++counters_.updates_in;
  counters_.attributes_discarded += update.attributes_discarded;
  counters_.nlri_discarded += update.nlri_discarded;
  counters_.treated_as_withdraw += std::ranges::any_of(
      update.errors,
      [](const AttributeError& error) { return error.handling == ErrorHandling::TreatAsWithdraw; });
  if (!update.errors.empty() || update.nlri_discarded != 0) log_errors(update);
  core_.rib.withdraw(peer_, update.unreach);
  core_.rib.update(peer_, update.reach, update.attributes);
  if (update.end_of_rib) {
    core_.log->info("{}: End-of-RIB", name_);
    end_of_rib_seen_ = true;
    core_.rib.end_of_rib(peer_);
    core_.progress();
  }
  core_.changed();
}

// At most a line a second for each neighbor.
void Neighbor::log_errors(const Update& update) {
  if (now() - last_error_log_ < kErrorLogInterval) {
    ++errors_not_logged_;
    return;
  }
  last_error_log_ = now();
  if (const auto more = std::exchange(errors_not_logged_, 0))
    core_.log->warn("{}: {} more UPDATEs with errors", name_, more);
  if (update.nlri_discarded != 0)
    core_.log->warn("{}: {} NLRI discarded", name_, update.nlri_discarded);
  for (const AttributeError& error : update.errors)
    core_.log->warn("{}: attribute {}: {}: {}", name_, error.type, to_string(error.handling),
                    hex(error.bytes));
}

// RFC 4486 section 4: AFI, SAFI and the limit go with it.
void Neighbor::enforce_limit() {
  if (settings_.max_prefixes == 0 || !up_ || over_limit_) return;
  if (core_.rib.received(peer_) <= settings_.max_prefixes) return;
  net::ByteWriter data;
  data.u16(core_.family.id.afi);
  data.u8(core_.family.id.safi);
  data.u32(settings_.max_prefixes);
  core_.log->error("{}: more than {} routes", name_, settings_.max_prefixes);
  over_limit_ = true;  // dispatch() ends here again
  dispatch(event::Reset{{ErrorCode::Cease, cease::kMaximumPrefixes, data.take()}, kLimitPause});
  over_limit_ = false;
}

void Neighbor::arm_timer() {
  const net::TimePoint deadline = session_.deadline();
  // A deadline that moved back is found out when the timer fires.
  if (deadline >= armed_) return;
  armed_ = deadline;
  timer_.expires_at(deadline);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    self->armed_ = net::kNever;
    if (self->session_.deadline() <= now())
      self->dispatch(event::Tick{});
    else
      self->arm_timer();
  });
}

void Neighbor::note_state() {
  const SessionState state = session_.state();
  if (state == shown_state_) return;
  core_.log->debug("{}: {} -> {}", name_, to_string(shown_state_), to_string(state));
  shown_state_ = state;
  since_ = now();
}

// --- Connections --------------------------------------------------------------------------------

void Neighbor::connect() {
  const uint64_t number = ++connect_number_;
  connecting_ = std::make_unique<tcp::socket>(core_.io);
  tcp::socket& socket = *connecting_;
  const tcp::endpoint remote = to_endpoint(settings_.address, settings_.port);
  error_code error;
  socket.open(remote.protocol(), error);
  if (error) return fail_connect("socket: " + error.message());
  set_common_options(socket.native_handle(), settings_.address.family());
  if ((error = set_hops(socket.native_handle(), settings_, external(core_, settings_))))
    return fail_connect("TTL: " + error.message());
  if (!settings_.password.empty())
    if ((error = set_md5(socket.native_handle(), settings_.address, settings_.password)))
      return fail_connect("TCP-MD5: " + error.message());
  if (settings_.local_address) {
    socket.bind(to_endpoint(*settings_.local_address, 0), error);
    if (error)
      return fail_connect("bind to " + net::to_string(*settings_.local_address) + ": " +
                          error.message());
  }
  socket.async_connect(remote, [weak = weak_from_this(), number](const error_code& failure) {
    const auto self = weak.lock();
    // The session may have given this one up, and begun another.
    if (self == nullptr || self->connect_number_ != number || self->connecting_ == nullptr) return;
    if (failure) return self->fail_connect("connect: " + failure.message());
    tcp::socket connected = std::move(*self->connecting_);
    self->connecting_.reset();
    self->attach(Slot::Outgoing, std::move(connected));
  });
}

void Neighbor::fail_connect(const std::string& why) {
  connecting_.reset();
  if (counters_.last_error != why) core_.log->info("{}: {}", name_, why);
  counters_.last_error = why;
  counters_.last_error_data.clear();
  boost::asio::post(core_.io, [weak = weak_from_this(), number = connect_number_] {
    const auto self = weak.lock();
    if (self != nullptr && self->connect_number_ == number && self->connecting_ == nullptr &&
        self->at(Slot::Outgoing) == nullptr)
      self->dispatch(event::Closed{Slot::Outgoing});
  });
}

void Neighbor::accept(tcp::socket socket) {
  const auto slot = session_.accept_slot();
  if (!slot) return;
  if (auto old = std::exchange(at(*slot), nullptr)) {
    old->close();
    dispatch(event::Closed{*slot});
  }
  set_common_options(socket.native_handle(), settings_.address.family());
  if (const auto error = set_hops(socket.native_handle(), settings_, external(core_, settings_))) {
    core_.log->warn("{}: TTL: {}", name_, error.message());
    return;
  }
  attach(*slot, std::move(socket));
}

void Neighbor::attach(Slot slot, tcp::socket socket) {
  auto connection = std::make_shared<Connection>(std::move(socket), core_.pool);
  at(slot) = connection;
  const auto weak = weak_from_this();
  const Connection* const expected = connection.get();
  // The slot may hold another connection by the time that something happens on this one.
  const auto here = [weak, slot, expected]() -> std::shared_ptr<Neighbor> {
    auto self = weak.lock();
    return self != nullptr && self->at(slot).get() == expected ? self : nullptr;
  };
  Connection::Callbacks callbacks;
  callbacks.max_message = [here, slot] {
    const auto self = here();
    return self ? self->session_.max_incoming(slot) : kMaxMessage;
  };
  callbacks.message = [here, slot](std::span<const uint8_t> message) {
    if (const auto self = here()) {
      ++self->counters_.messages_in;
      self->dispatch(event::Received{slot, message});
    }
  };
  callbacks.sent = [here, slot] {
    if (const auto self = here()) {
      self->dispatch(event::Sent{slot});
      if (self->up_ == slot) self->refill();
    }
  };
  callbacks.closed = [here, slot](const error_code& error) {
    if (const auto self = here()) {
      self->core_.log->debug("{}: {}", self->name_, error.message());
      self->at(slot) = nullptr;
      self->dispatch(event::Closed{slot});
    }
  };
  connection->start(std::move(callbacks));
  dispatch(event::Connected{slot});
}

void Neighbor::refill() {
  if (!up_ || at(*up_) == nullptr) return;
  Connection& connection = *at(*up_);
  while (connection.queued() < kQueueLimit) {
    auto message = core_.rib.pull(peer_);
    if (message == nullptr) return;
    ++counters_.messages_out;
    if (message->size() > 18 && (*message)[18] == static_cast<uint8_t>(MessageType::Update))
      ++counters_.updates_out;
    connection.send(std::move(message));
  }
}

NeighborView Neighbor::view() const {
  NeighborView view = counters_;
  view.settings = settings_;
  view.peer = peer_;
  view.state = to_string(session_.state());
  view.since = std::chrono::duration_cast<std::chrono::seconds>(now() - since_);
  view.hold_time = session_.hold_time();
  view.capabilities_sent = describe(session_.local_open().capabilities);
  if (const Open* open = session_.peer_open()) {
    view.remote_router_id = net::IpAddress::v4(open->router_id);
    view.capabilities_received = describe(open->capabilities);
  }
  view.counts = core_.rib.counts(peer_);
  view.stale_kept = session_.stale_kept();
  return view;
}

}  // namespace bgp::io
