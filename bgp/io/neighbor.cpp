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

#include "bgp/io/targets.h"
#include "bgp/io/tcp_ao.h"

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kQueueLimit = 262144;  // octets that wait for a socket
constexpr auto kResetPause = 1s;             // after an operator's reset
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
  if (neighbor.route_target_constrain) out.other_families = {route_target_family()};
  out.passive = neighbor.passive;
  out.hold_time = neighbor.hold_time;
  out.connect_retry = std::max<std::chrono::seconds>(1s, neighbor.connect_retry);
  out.delay_open = neighbor.delay_open;
  out.send_hold = neighbor.send_hold_time;
  out.open_time = neighbor.open_time;
  out.graceful_restart = neighbor.graceful_restart;
  out.restart_time = neighbor.restart_time;
  out.long_lived_time = neighbor.long_lived_time;
  return out;
}

std::string name_of(const NeighborSettings& neighbor) {
  std::string name = to_string(key_of(neighbor));
  if (!neighbor.description.empty()) name += " (" + neighbor.description + ")";
  return name;
}

}  // namespace

NeighborKey key_of(const NeighborSettings& settings) {
  return {settings.address, settings.interface};
}

std::string to_string(const NeighborKey& key) {
  std::string text = net::to_string(key.address);
  if (!key.interface.empty()) text += "%" + key.interface;
  return text;
}

Neighbor::Neighbor(Core& core, PeerId peer, NeighborSettings settings, uint64_t seed)
    : core_(core),
      peer_(peer),
      settings_(std::move(settings)),
      name_(name_of(settings_)),
      session_(session_settings(core, settings_), seed),
      timer_(core.io),
      since_(now()),
      observer_(core.taps, peer) {}

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

// RFC 9003 has a text for two subcodes only: a removal with a message goes as a shutdown.
void Neighbor::shut_down(uint8_t why, const std::string& text) {
  const std::string& message = text.empty() ? settings_.shutdown_message : text;
  if (why == cease::kPeerDeconfigured && !message.empty()) why = cease::kAdministrativeShutdown;
  const bool has_text = why == cease::kAdministrativeShutdown;
  stop(has_text ? shutdown_notification(why, message) : Notification{ErrorCode::Cease, why, {}});
}

void Neighbor::reset(const std::string& text) {
  core_.log->info("{}: reset by the operator", name_);
  held_down_ = false;
  const auto live = [](const auto& connection) { return connection != nullptr; };
  if (std::ranges::any_of(connections_, live))
    return dispatch(
        event::Reset{shutdown_notification(cease::kAdministrativeReset, text), kResetPause});
  stop(std::nullopt);  // a pause after an error is over, too
  start();
}

void Neighbor::set_enabled(bool enabled, const std::string& text) {
  core_.log->info("{}: {} by the operator", name_, enabled ? "enabled" : "shut down");
  shut_down_ = !enabled;
  held_down_ = false;
  if (enabled)
    start();
  else
    shut_down(cease::kAdministrativeShutdown, text);
}

std::expected<void, std::string> Neighbor::ask_refresh() {
  if (session_.state() != SessionState::Established) return std::unexpected(name_ + ": no session");
  if (!session_.peer_open()->capabilities.route_refresh)
    return std::unexpected(name_ + ": the neighbor does not have route refresh");
  core_.log->info("{}: asked for a route refresh", name_);
  dispatch(event::AskRefresh{});
  return {};
}

bool Neighbor::may_go() const {
  return dynamic_ && !held_down_ && !shut_down_ && session_.at_rest() && !connecting_;
}

std::size_t Neighbor::unestablished() const {
  std::size_t count = 0;
  for (const Slot slot : {Slot::Incoming, Slot::Spare})
    count += connections_[static_cast<std::size_t>(slot)] != nullptr &&
             session_.state(slot) != SessionState::Established;
  return count;
}

void Neighbor::adopt(const NeighborSettings& settings) {
  settings_ = settings;
  name_ = name_of(settings_);
  apply_policies();
  enforce_limit();
}

void Neighbor::apply_policies() {
  NeighborPolicies policies = core_.policies_of(settings_);
  const PeerTraits* before = core_.rib.traits(peer_);
  const bool judged_anew = before != nullptr && before->accept != policies.accept;
  core_.rib.set_policies(peer_, std::move(policies.accept), std::move(policies.send));
  if (judged_anew) observer_.policies_changed();
  core_.changed();
}

bool Neighbor::caught_up() const {
  if (!settings_.enabled || shut_down_ || !settings_.graceful_restart || end_of_rib_seen_)
    return true;
  return session_.state() == SessionState::Established && !session_.graceful_restart_negotiated();
}

bool Neighbor::targets_caught_up() const {
  if (!settings_.enabled || shut_down_ || !settings_.route_target_constrain || targets_seen_)
    return true;
  return session_.state() == SessionState::Established && !targets_;
}

// --- Session ------------------------------------------------------------------------------------

void Neighbor::dispatch(const Event& event) {
  auto actions = session_.handle(event, now());
  for (Action& action : actions) perform(action);
  note_state();
  arm_timer();
  enforce_limit();
  rest();
}

void Neighbor::rest() {
  const bool now_at_rest = may_go();
  if (now_at_rest && !std::exchange(resting_, true)) core_.at_rest();
  if (!now_at_rest) resting_ = false;
}

void Neighbor::perform(Action& action) {
  if (std::holds_alternative<action::OpenConnection>(action)) {
    connect();
  } else if (auto* send = std::get_if<action::Send>(&action)) {
    if (auto& connection = at(send->slot)) {
      ++counters_.messages_out;
      observer_.message_out(send->slot, send->message);
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
    perform_routes(*routes);
  } else if (const auto* told = std::get_if<action::Told>(&action)) {
    perform_told(told->family);
  } else if (const auto* refresh = std::get_if<action::Refresh>(&action)) {
    perform_refresh(*refresh);
  } else if (const auto* begins = std::get_if<action::RefreshBegins>(&action)) {
    perform_refresh_begins(begins->family);
  } else if (const auto* ends = std::get_if<action::RefreshEnds>(&action)) {
    perform_refresh_ends(*ends);
  } else if (const auto* stale = std::get_if<action::FlushStale>(&action)) {
    perform_stale(stale->family, false);
  } else if (const auto* kept = std::get_if<action::LongLivedStale>(&action)) {
    perform_stale(kept->family, true);
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
  traits.long_lived_partial = settings_.long_lived_partial;
  NeighborPolicies policies = core_.policies_of(settings_);
  traits.accept = std::move(policies.accept);
  traits.send = std::move(policies.send);
  core_.log->info("{}: session up, router id {}, hold time {} s{}", name_,
                  net::to_string(net::IpAddress::v4(open.router_id)), session_.hold_time().count(),
                  session_.stale_kept() ? ", routes kept over its restart" : "");
  up_ = slot;
  traits_ = traits;
  targets_ = targets_seen_ = default_owed_ = false;
  ++counters_.established_count;
  for (const AfiSafi family : session_.families()) {
    PeerTraits here = traits;
    here.long_lived =
        open.capabilities.long_lived &&
        std::ranges::any_of(open.capabilities.long_lived->families,
                            [&](const auto& entry) { return entry.family == family; });
    if (family != core_.family.id) here.accept = here.send = nullptr;  // policies are for EVPN
    core_.rib_of(family).peer_up(peer_, here);
    targets_ |= family == kRouteTargetConstrain;
  }
  default_owed_ = owes_default();
  if (settings_.route_target_constrain) {
    memberships_dirty_ = true;
    apply_memberships();
  }
  observer_.session_up(slot, session_info_of(slot, open));
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
  observer_.ended(ended.reason, ended.established, text, now());
  if (!ended.established) {
    core_.log->info("{}: connection ended: {}", name_, text);
    return;
  }
  core_.log->warn("{}: session down: {}{}", name_, text,
                  !ended.kept.empty() ? "; routes kept for its restart" : "");
  up_.reset();
  ++counters_.dropped_count;
  const auto kept = [&](AfiSafi family) {
    return std::ranges::find(ended.kept, family) != ended.kept.end();
  };
  core_.rib.peer_down(peer_, kept(core_.family.id));
  core_.target_rib.peer_down(peer_, kept(kRouteTargetConstrain));
  if (kept(kRouteTargetConstrain))
    memberships_.mark_stale();
  else
    memberships_.clear();
  targets_ = default_owed_ = limit_logged_ = false;
  core_.changed();
}

void Neighbor::perform_routes(const action::Routes& routes) {
  const Update& update = routes.update;
  ++counters_.updates_in;
  counters_.attributes_discarded += update.attributes_discarded;
  counters_.nlri_discarded += update.nlri_discarded;
  counters_.treated_as_withdraw += std::ranges::any_of(
      update.errors,
      [](const AttributeError& error) { return error.handling == ErrorHandling::TreatAsWithdraw; });
  if (!update.errors.empty() || update.nlri_discarded != 0) log_errors(update);
  if (routes.family == kRouteTargetConstrain) return perform_membership_routes(update);
  core_.rib.withdraw(peer_, update.unreach);
  core_.rib.update(peer_, update.reach, update.attributes);
  if (update.end_of_rib) {
    core_.log->info("{}: End-of-RIB", name_);
    end_of_rib_seen_ = true;
    core_.rib.end_of_rib(peer_);
    core_.progress();
  }
  observer_.update_done(update, now());
  core_.changed();
}

// A membership for everything counts for this neighbor and is not passed on: ours is sent to those
// who need it.
void Neighbor::perform_membership_routes(const Update& update) {
  for (const NlriItem& item : update.unreach) {
    memberships_.withdraw(item.key());
    core_.target_rib.withdraw(peer_, item.key());
  }
  const bool own = update.attributes != nullptr &&
                   is_own_membership(*update.attributes, core_.settings.local_as.value,
                                     core_.settings.router_id.v4_value(), traits_.internal);
  const AttributesPtr attributes = membership_attributes(update.attributes, traits_);
  for (const NlriItem& item : update.reach) {
    if (own)
      memberships_.withdraw(item.key());
    else
      memberships_.announce(item.key());
    if (!is_default_membership(item.key())) core_.target_rib.update(peer_, item, attributes);
  }
  if (update.end_of_rib) {
    core_.log->info("{}: End-of-RIB of route target memberships", name_);
    memberships_.remove_stale();
    core_.target_rib.end_of_rib(peer_);
  }
  memberships_changed();
}

void Neighbor::memberships_changed() {
  memberships_dirty_ = true;
  core_.changed();
}

void Neighbor::apply_memberships() {
  if (!std::exchange(memberships_dirty_, false) || !up_) return;
  core_.rib.set_send_filter(peer_, targets_ ? memberships_.filter() : nullptr,
                            targets_ && !targets_seen_);
}

void Neighbor::perform_told(AfiSafi family) {
  if (family != kRouteTargetConstrain) return;
  targets_seen_ = true;
  memberships_changed();  // what waited for it can go out
  core_.progress();
}

void Neighbor::perform_refresh(const action::Refresh& refresh) {
  core_.log->info("{}: route refresh asked for", name_);
  core_.rib_of(refresh.family).refresh(peer_, refresh.enhanced);
  if (refresh.family == kRouteTargetConstrain) default_owed_ = owes_default();
  core_.changed();
}

void Neighbor::perform_refresh_begins(AfiSafi family) {
  core_.rib_of(family).refresh_begins(peer_);
  if (family == kRouteTargetConstrain) memberships_.begin_refresh();
}

void Neighbor::perform_refresh_ends(const action::RefreshEnds& ends) {
  if (!ends.in_time)
    core_.log->warn("{}: the end of a route refresh did not come; what is old goes", name_);
  core_.rib_of(ends.family).refresh_ends(peer_);
  if (ends.family == kRouteTargetConstrain) {
    memberships_.end_refresh();
    memberships_changed();
  }
  core_.changed();
}

void Neighbor::perform_stale(AfiSafi family, bool long_lived) {
  core_.log->info("{}: stale routes {}", name_,
                  long_lived ? "kept for the long-lived time" : "removed");
  if (long_lived)
    core_.rib_of(family).long_lived_stale(peer_);
  else
    core_.rib_of(family).flush_stale(peer_);
  if (family == kRouteTargetConstrain && !long_lived) {
    memberships_.remove_stale();
    memberships_changed();
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

void Neighbor::enforce_limit() {
  if (settings_.max_prefixes == 0 || !up_ || over_limit_) return;
  const uint64_t received = core_.rib.received(peer_);
  note_limit(received);
  if (received > settings_.max_prefixes) return exceed_limit(core_.family.id, received);
  if (memberships_.size() > settings_.max_prefixes)
    exceed_limit(kRouteTargetConstrain, memberships_.size());
}

// One line each time that the number of routes rises above the mark.
void Neighbor::note_limit(uint64_t received) {
  const uint64_t mark = uint64_t{settings_.max_prefixes} * settings_.max_prefixes_warning / 100;
  const bool over = settings_.max_prefixes_warning != 0 && received > mark;
  if (!std::exchange(counters_.over_warning, over) && over) {
    ++counters_.max_prefix_warnings;
    core_.log->warn("{}: {} routes, more than {} % of the {} that are allowed", name_, received,
                    settings_.max_prefixes_warning, settings_.max_prefixes);
  }
}

// RFC 4486 section 4: AFI, SAFI and the limit go with it.
void Neighbor::exceed_limit(AfiSafi family, uint64_t received) {
  if (!std::exchange(limit_logged_, true))
    core_.log->error("{}: {} routes of {}/{}, allowed are {}", name_, received, family.afi,
                     family.safi, settings_.max_prefixes);
  if (settings_.max_prefixes_warn_only) return;
  net::ByteWriter data;
  data.u16(family.afi);
  data.u8(family.safi);
  data.u32(settings_.max_prefixes);
  const Notification notification{ErrorCode::Cease, cease::kMaximumPrefixes, data.take()};
  over_limit_ = true;  // dispatch() ends here again
  held_down_ = settings_.max_prefixes_idle.count() == 0;
  if (held_down_)
    dispatch(event::Stop{notification});
  else
    dispatch(event::Reset{notification, settings_.max_prefixes_idle});
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
  observer_.state_changed(name_, shown_state_, state);
  shown_state_ = state;
  since_ = now();
}

// --- Connections --------------------------------------------------------------------------------

void Neighbor::connect() {
  const uint64_t number = ++connect_number_;
  connecting_ = std::make_unique<tcp::socket>(core_.io);
  tcp::socket& socket = *connecting_;
  const auto scope = interface();
  if (!scope) return fail_connect("interface " + settings_.interface + ": no such device");
  const tcp::endpoint remote = to_endpoint(settings_.address, settings_.port, *scope);
  error_code error;
  socket.open(remote.protocol(), error);
  if (error) return fail_connect("socket: " + error.message());
  set_common_options(socket.native_handle(), settings_.address.family());
  if ((error = set_hops(socket.native_handle(), settings_, external(core_, settings_))))
    return fail_connect("TTL: " + error.message());
  if (!settings_.password.empty())
    if ((error = set_md5(socket.native_handle(), settings_.address, settings_.password)))
      return fail_connect("TCP-MD5: " + error.message());
  if (!settings_.ao_keys.empty())
    if ((error = add_ao_keys(socket.native_handle(), {settings_.address, settings_.address.bits()},
                             settings_.ao_keys, AoSocket::Connecting)))
      return fail_connect(ao_failure(error));
  if (settings_.local_address) {
    socket.bind(to_endpoint(*settings_.local_address, 0, *scope), error);
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

// The scope of our addresses: 0 for all but link-local ones.
std::optional<uint32_t> Neighbor::interface() const {
  if (settings_.interface.empty()) return 0;
  const uint32_t index = interface_index(settings_.interface);
  if (index == 0) return std::nullopt;
  return index;
}

void Neighbor::fail_connect(const std::string& why) {
  connecting_.reset();
  if (counters_.last_error != why) core_.log->info("{}: {}", name_, why);
  counters_.last_error = why;
  counters_.last_error_data.clear();
  observer_.failed_to_connect(now());
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
      self->observer_.message_in(slot, message);
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

// Memberships first: they decide what the neighbor sends.
std::size_t Neighbor::refill() {
  if (!up_ || at(*up_) == nullptr) return 0;
  const auto connection = at(*up_);
  const std::size_t before = connection->queued();
  connection->cork();
  fill(*connection);
  const std::size_t now = connection->queued();
  connection->uncork();
  return now - std::min(now, before);
}

void Neighbor::fill(const Connection& connection) {
  while (connection.queued() < kQueueLimit) {
    if (std::exchange(default_owed_, false)) send_default();
    auto message = targets_ ? core_.target_rib.pull(peer_) : nullptr;
    if (message != nullptr && owes_default()) default_owed_ = drops_default(*message);
    const bool of_targets = message != nullptr;
    if (message == nullptr) message = core_.rib.pull(peer_);
    if (message == nullptr) {
      if (core_.rib.unfinished(peer_) || core_.target_rib.unfinished(peer_)) core_.changed();
      return;
    }
    send(std::move(message), of_targets);
  }
}

void Neighbor::send(std::shared_ptr<const net::Bytes> message, bool of_targets) {
  ++counters_.messages_out;
  if (message->size() > 18 && (*message)[18] == static_cast<uint8_t>(MessageType::Update))
    ++counters_.updates_out;
  if (of_targets)
    observer_.message_out(*up_, *message);
  else
    observer_.update_out(*up_, message);
  at(*up_)->send(std::move(message));
}

bool Neighbor::owes_default() const { return targets_ && settings_.role != NeighborRole::Peer; }

void Neighbor::send_default() {
  ExportContext us;
  us.local_as = core_.settings.local_as.value;
  us.source_router_id = core_.settings.router_id.v4_value();
  send(std::make_shared<const net::Bytes>(
           default_membership(traits_, us, to_address(at(*up_)->local().address()))),
       true);
}

NeighborView Neighbor::view() const {
  NeighborView view = counters_;
  view.settings = settings_;
  view.address = to_string(key_of(settings_));
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
  view.long_lived = session_.long_lived_kept();
  view.dynamic = dynamic_.has_value();
  view.shut_down = shut_down_;
  view.memberships = memberships_.size();
  for (const AfiSafi family : session_.families())
    view.families.push_back(std::to_string(family.afi) + "/" + std::to_string(family.safi));
  observer_.fill(view, now());
  add_connection(view);
  return view;
}

SessionInfo Neighbor::session_info_of(Slot slot, const Open& open) {
  SessionInfo info;
  info.peer = peer_;
  info.name = name_;
  info.address = settings_.address;
  info.remote_as = open.effective_as();
  info.router_id = open.router_id;
  info.four_octet_as = open.capabilities.four_octet_as.has_value();
  if (const auto& connection = at(slot)) {
    const tcp::endpoint local = connection->local(), remote = connection->remote();
    info.local_address = to_address(local.address());
    info.local_port = local.port();
    info.remote_port = remote.port();
  }
  return info;
}

void Neighbor::add_connection(NeighborView& view) const {
  const Connection* connection = nullptr;
  SessionState furthest = SessionState::Idle;
  for (const Slot slot : kSlots) {
    const auto& here = connections_[static_cast<std::size_t>(slot)];
    if (here && session_.state(slot) >= furthest) {
      connection = here.get();
      furthest = session_.state(slot);
    }
  }
  if (connection != nullptr) {
    const tcp::endpoint local = connection->local(), remote = connection->remote();
    view.local_address = to_address(local.address());
    view.remote_address = to_address(remote.address());
    view.local_port = local.port();
    view.remote_port = remote.port();
  }
  for (const auto& timer : session_.running_timers())
    view.timers.push_back(
        {timer.name, std::max(std::chrono::ceil<std::chrono::seconds>(timer.due - now()),
                              std::chrono::seconds(0))});
}

}  // namespace bgp::io
