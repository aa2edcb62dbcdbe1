// SPDX-License-Identifier: GPL-2.0-or-later
// The states of an address: alive, pending, dead; static is what an operator says. Time drives
// them, not the sending of questions, so that a sponge that may not ask gets there too.
#include "proxyarp/sponge.h"

#include <algorithm>

#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr std::size_t kMaxAddresses = 16384;
constexpr std::size_t kMaxQueued = std::size_t{1} << 20;
constexpr std::size_t kLookBack = 64;  // questions that are compared for flood protection
constexpr auto kBetweenQuestions = std::chrono::seconds(1);
constexpr int kTimersPerTick = 256;
constexpr int kSweepStep = 64;          // addresses looked at in one call
constexpr uint8_t kShortestSweep = 16;  // longer than that: 65536 addresses at most

}  // namespace

SpongeTable::SpongeTable(Context& context, Announcements& announcements)
    : context_(context),
      announcements_(announcements),
      pacer_(context.settings.sponge.probe_rate, 1) {}

std::optional<net::MacAddress> SpongeTable::mac() const {
  if (context_.settings.sponge.mac) return context_.settings.sponge.mac;
  if (!context_.identity.mac.is_unicast()) return std::nullopt;
  return context_.identity.mac;
}

bool SpongeTable::is_learning() const {
  return context_.started && context_.now - *context_.started < context_.settings.sponge.learning;
}

// --- the queue

void SpongeTable::clear(Queue& queue) {
  queued_ -= queue.ring.size();
  queue = {};
}

void SpongeTable::push(Queue& queue, const Question& question) {
  const std::size_t limit = std::max<std::size_t>(2, context_.settings.sponge.queue);
  if (queue.ring.size() >= limit) {
    queue.ring[queue.head] = question;
    queue.head = (queue.head + 1) % queue.ring.size();
    return;
  }
  if (queued_ >= kMaxQueued) return;
  queue.ring.push_back(question);  // head is 0 until it is full
  ++queued_;
}

// Not when the same source asked a moment ago: one broken host does not kill an address.
bool SpongeTable::counts(const Queue& queue, const Question& question) const {
  const double limit = context_.settings.sponge.flood_protection;
  if (limit <= 0) return true;
  const auto apart = static_cast<uint32_t>(1000.0 / limit);
  for (std::size_t i = 0; i < std::min(kLookBack, queue.ring.size()); ++i) {
    const Question& before = queue.back(i);
    if (question.at - before.at >= apart) return true;
    if (before.source == question.source) return false;
  }
  return true;
}

double SpongeTable::rate(const Queue& queue) const {
  if (queue.ring.size() < 2) return 0;
  const double span = std::max(1u, queue.back(0).at - queue.front().at);
  return static_cast<double>(queue.ring.size() - 1) * 60000.0 / span;
}

// --- events

SpongeTable::Address* SpongeTable::find(const net::IpAddress& ip) {
  const auto at = addresses_.find(ip);
  return at == addresses_.end() ? nullptr : &at->second;
}

// Of those that are alive, the one that nobody asked for longest.
void SpongeTable::make_room() {
  while (addresses_.size() >= kMaxAddresses || queued_ >= kMaxQueued) {
    if (alive_.empty()) return;
    forget(addresses_.find(alive_.begin()->second));
  }
}

SpongeTable::Address* SpongeTable::watch(const net::IpAddress& ip) {
  if (Address* known = find(ip)) return known;
  make_room();
  if (addresses_.size() >= kMaxAddresses) return nullptr;
  Address& fresh = addresses_[ip];
  fresh.since = fresh.asked = context_.now;
  alive_.emplace(fresh.asked, ip);
  set_due(ip, fresh, context_.now + context_.settings.sponge.age);
  return &fresh;
}

void SpongeTable::forget(Addresses::iterator at) {
  set_due(at->first, at->second, net::kNever);
  alive_.erase({at->second.asked, at->first});
  clear(at->second.queue);
  addresses_.erase(at);
}

void SpongeTable::touch(const net::IpAddress& ip, Address& address) {
  if (address.asked == context_.now) return;
  if (alive_.erase({address.asked, ip}) != 0) alive_.emplace(context_.now, ip);
  address.asked = context_.now;
}

void SpongeTable::question(const net::IpAddress& ip, net::MacAddress asker) {
  Address* address = watch(ip);
  if (!address) return;
  touch(ip, *address);
  ++address->questions;
  address->last_asker = asker;
  if (address->state != SpongeState::Alive) return;
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(
      context_.now - context_.started.value_or(context_.now));
  const Question question{static_cast<uint32_t>(at.count()),
                          static_cast<uint32_t>(net::hash_bytes(asker.bytes(), context_.seed))};
  if (!counts(address->queue, question)) return;
  if (queued_ >= kMaxQueued) make_room();
  address = find(ip);  // it may have been the one to go
  if (!address) return;
  push(address->queue, question);
  const bool full =
      address->queue.ring.size() >= std::max<std::size_t>(2, context_.settings.sponge.queue);
  if (full && !is_learning() && rate(address->queue) > context_.settings.sponge.rate)
    enter(ip, *address, SpongeState::Pending);
}

void SpongeTable::probed(const net::IpAddress& ip) {
  Address* address = find(ip);
  if (address && address->state == SpongeState::Dead) enter(ip, *address, SpongeState::Pending);
}

void SpongeTable::answered(const net::IpAddress& ip) {
  if (Address* address = find(ip)) ++address->answers;
}

void SpongeTable::reached(const net::IpAddress& ip, bool bgp) {
  Address* address = find(ip);
  if (address && bgp) ++address->bgp_attempts;
}

void SpongeTable::alive(const net::IpAddress& ip, std::optional<net::MacAddress> mac,
                        net::IfIndex port) {
  Address* address = find(ip);
  if (!address || address->state == SpongeState::Static) return;
  const bool answered = address->answers > 0 || address->state == SpongeState::Dead;
  const bool dead = address->state == SpongeState::Dead;
  if (mac) address->owner = mac;
  address->owner_port = port;
  enter(ip, *address, SpongeState::Alive);
  if (dead) {
    Alarm back{};
    back.kind = AlarmKind::AddressBack;
    back.ip = ip;
    back.seen = mac.value_or(net::MacAddress{});
    back.port = port;
    context_.emit(back);
  }
  // Those who asked have our MAC in their caches, and are told.
  if (answered) announcements_.want(ip, true);
  address->answers = 0;
}

bool SpongeTable::answers_for(const net::IpAddress& ip) const {
  const auto at = addresses_.find(ip);
  return at != addresses_.end() &&
         (at->second.state == SpongeState::Dead || at->second.state == SpongeState::Static);
}

std::optional<Announcement> SpongeTable::announcement(const net::IpAddress& ip) const {
  const auto at = addresses_.find(ip);
  if (at == addresses_.end()) return std::nullopt;
  const Address& address = at->second;
  if (answers_for(ip)) {
    const auto own = mac();
    if (!own || !context_.settings.sponge.announce) return std::nullopt;
    return Announcement{*own, {false, false}, std::nullopt};
  }
  if (!address.owner) return std::nullopt;
  std::optional<net::IfIndex> except;
  if (address.owner_port.value != 0) except = address.owner_port;
  return Announcement{*address.owner, {context_.settings.default_router, true}, except};
}

bool SpongeTable::set(const net::IpAddress& ip, SpongeState state) {
  Address* address = state == SpongeState::Alive ? find(ip) : watch(ip);
  if (!address) return false;
  if (address->state != state) enter(ip, *address, state);
  return true;
}

// --- states

void SpongeTable::enter(const net::IpAddress& ip, Address& address, SpongeState state) {
  const net::TimePoint now = context_.now;
  if (address.state != state) address.since = now;
  address.state = state;
  address.asked_by_us = 0;
  alive_.erase({address.asked, ip});
  clear(address.queue);
  switch (state) {
    case SpongeState::Alive:
      alive_.emplace(address.asked, ip);
      set_due(ip, address, now + context_.settings.sponge.age);
      break;
    case SpongeState::Pending: set_due(ip, address, now); break;
    case SpongeState::Dead: {
      set_due(ip, address, now + context_.settings.sponge.age);
      Alarm dead{};
      dead.kind = AlarmKind::AddressDead;
      dead.ip = ip;
      dead.seen = address.last_asker.value_or(net::MacAddress{});
      context_.emit(dead);
      if (context_.settings.sponge.announce) announcements_.want(ip, true);
      break;
    }
    case SpongeState::Static:
      set_due(ip, address, net::kNever);
      if (context_.settings.sponge.announce) announcements_.want(ip, true);
      break;
  }
}

bool SpongeTable::ask(const net::IpAddress& ip) {
  auto question = question_to_all(context_.identity, ip);
  if (!question) return false;
  context_.emit(Flood{std::move(*question), std::nullopt, true, true});
  return true;
}

void SpongeTable::due(const net::IpAddress& ip, Address& address) {
  const net::TimePoint now = context_.now;
  const auto& settings = context_.settings.sponge;
  switch (address.state) {
    case SpongeState::Static: return set_due(ip, address, net::kNever);
    case SpongeState::Alive:
    case SpongeState::Dead: {
      const net::TimePoint end = std::max(address.asked, address.since) + settings.age;
      if (end > now) return set_due(ip, address, end);
      return forget(addresses_.find(ip));
    }
    case SpongeState::Pending: break;
  }
  if (address.asked_by_us >= settings.pending) return enter(ip, address, SpongeState::Dead);
  if (!settings.passive && context_.identity.mac.is_unicast()) {
    if (!pacer_.take(now)) return set_due(ip, address, pacer_.next(now));
    ask(ip);
  }
  ++address.asked_by_us;
  set_due(ip, address, now + kBetweenQuestions);
}

void SpongeTable::set_due(const net::IpAddress& ip, Address& address, net::TimePoint due) {
  if (address.due != net::kNever) timers_.erase({address.due, ip});
  address.due = due;
  if (due != net::kNever) timers_.emplace(due, ip);
}

void SpongeTable::tick(const std::function<bool(const net::IpAddress&)>& quiet) {
  for (int i = 0; i < kTimersPerTick && !timers_.empty(); ++i) {
    const auto [when, ip] = *timers_.begin();
    if (when > context_.now) break;
    due(ip, addresses_.at(ip));
  }
  if (sweep_due_ <= context_.now) sweep(quiet);
}

net::TimePoint SpongeTable::deadline() const {
  const net::TimePoint first = timers_.empty() ? net::kNever : timers_.begin()->first;
  return std::min(first, sweep_due_);
}

void SpongeTable::reconfigure(const std::function<bool(const net::IpAddress&)>& sponged) {
  const auto& settings = context_.settings.sponge;
  pacer_.set(settings.probe_rate, 1);
  for (auto at = addresses_.begin(); at != addresses_.end();) {
    const auto next = std::next(at);
    if (!sponged(at->first))
      forget(at);
    else if (at->second.queue.ring.size() > std::max<std::size_t>(2, settings.queue))
      clear(at->second.queue);
    at = next;
  }
  plan_sweep();
}

// --- sweep: IPv4 only; nobody can ask for all addresses of an IPv6 prefix

void SpongeTable::plan_sweep() {
  const auto& settings = context_.settings;
  ranges_.clear();
  range_ = offset_ = 0;
  sweep_due_ = net::kNever;
  if (settings.sponge.sweep_interval.count() <= 0 || settings.profile == Profile::Off) return;
  for (const UnassignedPrefix& one : settings.unassigned)
    if (one.policy == Unassigned::Sponge && one.prefix.address.is_v4() &&
        one.prefix.length >= kShortestSweep)
      ranges_.push_back(one.prefix.masked());
  if (!ranges_.empty() && context_.started)
    sweep_due_ = context_.now + settings.sponge.sweep_interval;
}

void SpongeTable::sweep(const std::function<bool(const net::IpAddress&)>& quiet) {
  const net::TimePoint now = context_.now;
  for (int i = 0; i < kSweepStep; ++i) {
    if (range_ >= ranges_.size()) {
      range_ = offset_ = 0;
      sweep_due_ = now + context_.settings.sponge.sweep_interval;
      return;
    }
    const net::IpPrefix& range = ranges_[range_];
    const uint64_t size = uint64_t{1} << (32 - range.length);
    const auto ip = net::IpAddress::v4(range.address.v4_value() + offset_);
    Address* known = find(ip);
    const net::TimePoint heard = known ? known->since : context_.started.value_or(now);
    const bool silent = quiet(ip) && !range.is_network_or_broadcast(ip) &&
                        now - heard >= context_.settings.sponge.sweep_silence &&
                        (!known || known->state == SpongeState::Alive);
    if (silent && !pacer_.take(now)) {
      sweep_due_ = pacer_.next(now);
      return;
    }
    if (silent && known)
      enter(ip, *known, SpongeState::Pending);
    else if (silent)
      ask(ip);
    if (++offset_ >= size) {
      ++range_;
      offset_ = 0;
    }
  }
  sweep_due_ = now + std::chrono::milliseconds(10);
}

void SpongeTable::for_each(const std::function<void(const SpongeView&)>& visit) const {
  for (const auto& [ip, address] : addresses_) {
    SpongeView view;
    view.ip = ip;
    view.state = address.state;
    view.queued = static_cast<uint32_t>(address.queue.ring.size());
    view.rate = rate(address.queue);
    view.questions = address.questions;
    view.answers = address.answers;
    view.bgp_attempts = address.bgp_attempts;
    view.since = context_.now - address.since;
    view.asked = context_.now - address.asked;
    view.last_asker = address.last_asker;
    visit(view);
  }
}

}  // namespace proxyarp
