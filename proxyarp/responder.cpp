// SPDX-License-Identifier: GPL-2.0-or-later
// The public face: each call gives its time and its actions to the parts, and takes out what they
// want done.
#include "proxyarp/responder.h"

#include <algorithm>

#include "proxyarp/impl.h"
#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr auto kAlarmInterval = std::chrono::minutes(1);
constexpr std::size_t kMaxAlarms = 1024;  // within the interval
// A defender answers within a second; twice that and some for the way through the fabric.
constexpr auto kDadAnswer = std::chrono::seconds(3);
constexpr std::size_t kMaxDad = 4096;
constexpr double kHints = 20;  // a second

}  // namespace

Responder::Impl::Impl(const Settings& settings, uint64_t seed)
    : context{settings, seed, {}, {}, {}, nullptr, 0},
      announcements(context, [this](const net::IpAddress& ip) { return announcement(ip); }),
      table(context, announcements),
      maintenance(context, table),
      duplicates(context, table, announcements),
      sponge(context, announcements),
      offenders(context),
      decoys(context),
      alarms(kAlarmInterval, kMaxAlarms),
      dad(kDadAnswer, kMaxDad),
      hints(kHints, kHints) {
  decoys.reconfigure();
}

// What members are told of an address when its turn has come.
std::optional<Announcement> Responder::Impl::announcement(const net::IpAddress& ip) const {
  const NaFlags plain{context.settings.default_router, true};
  if (duplicates.is_frozen(ip)) {
    if (const auto& mac = context.settings.duplicates.anti_spoof_mac)
      return Announcement{*mac, plain, std::nullopt};
    return std::nullopt;
  }
  const Binding* binding = table.find(ip);
  const InUse* owner = binding ? binding->answerable() : nullptr;
  if (!owner) return sponge.announcement(ip);
  if (binding->doubt != Doubt::None) return std::nullopt;
  std::optional<net::IfIndex> except;
  if (owner->where == MacWhere::LocalPort) except = owner->port;
  return Announcement{
      owner->mac, {owner->flags.router, !binding->several || owner->flags.override_flag}, except};
}

// What one part found out and another one must know, and the announcements that may go now.
void Responder::Impl::finish() {
  for (const net::IpAddress& ip : table.take_deserted()) duplicates.deserted(ip);
  for (const net::IpAddress& ip : table.take_arrived()) {
    if (!sponge.watches(ip)) continue;
    const Binding* binding = table.find(ip);
    if (binding && binding->answerable())
      sponge.alive(ip, binding->in_use->mac, binding->in_use->port);
  }
  announcements.flush();
}

Responder::Responder(const Settings& settings, uint64_t seed)
    : impl_(std::make_unique<Impl>(settings, seed)) {}
Responder::~Responder() = default;
Responder::Responder(Responder&&) noexcept = default;
Responder& Responder::operator=(Responder&&) noexcept = default;

// --- events

std::vector<Action> Responder::port_up(net::IfIndex port, const std::string& name,
                                       net::TimePoint now) {
  return impl_->at(now, [&] { impl_->table.port_up(port, name); });
}

std::vector<Action> Responder::port_down(net::IfIndex port, net::TimePoint now) {
  return impl_->at(now, [&] { impl_->table.port_down(port); });
}

std::vector<Action> Responder::set_identity(const Identity& identity, net::TimePoint now) {
  return impl_->at(now, [&] {
    if (impl_->context.identity == identity) return;
    impl_->context.identity = identity;
    impl_->table.reconfigure();
    impl_->maintenance.reconfigure();
    impl_->decoys.reconfigure();
  });
}

std::vector<Action> Responder::reconfigure(const Settings& settings, net::TimePoint now) {
  return impl_->at(now, [&] {
    const bool same_decoys = impl_->context.settings.decoys == settings.decoys &&
                             impl_->context.settings.profile == settings.profile;
    impl_->context.settings = settings;
    impl_->announcements.reconfigure();
    impl_->table.reconfigure();
    impl_->maintenance.reconfigure();
    impl_->duplicates.reconfigure();
    impl_->sponge.reconfigure([this](const net::IpAddress& ip) {
      return impl_->policy_for(ip) == Unassigned::Sponge && impl_->table.inside(ip);
    });
    if (!same_decoys) impl_->decoys.reconfigure();
  });
}

Outcome Responder::member_frame(net::IfIndex port, std::span<const uint8_t> frame, bool copy,
                                net::TimePoint now) {
  Outcome outcome;
  outcome.actions = impl_->at(now, [&] {
    Incoming in;
    in.port = port;
    in.frame = frame;
    in.copy = copy;
    outcome.verdict = impl_->frame(in);
    // Members have seen the owner's own frame.
    if (in.learned && in.seen_by_members && outcome.verdict == Verdict::Flooded)
      impl_->table.members_saw(in.of, in.to);
    if (copy && (outcome.verdict == Verdict::Answered || outcome.verdict == Verdict::Flooded ||
                 outcome.verdict == Verdict::Forwarded))
      outcome.verdict = in.learned ? Verdict::Learned : Verdict::Forwarded;
    impl_->count(outcome.verdict);
    if (in.learned && outcome.verdict != Verdict::Learned) impl_->count(Verdict::Learned);
  });
  return outcome;
}

Outcome Responder::core_frame(std::span<const uint8_t> frame, net::TimePoint now) {
  Outcome outcome;
  outcome.actions = impl_->at(now, [&] {
    Incoming in;
    in.frame = frame;
    outcome.verdict = impl_->frame(in);
    impl_->count(outcome.verdict);
  });
  return outcome;
}

void Responder::trapped_frame(net::IfIndex port, std::span<const uint8_t> frame,
                              net::TimePoint now) {
  impl_->context.now = now;
  impl_->trapped(port, frame);
}

std::vector<Action> Responder::mac_placed(net::MacAddress mac, MacWhere where, net::IfIndex port,
                                          net::TimePoint now) {
  return impl_->at(now, [&] { impl_->table.place_mac(mac, where, port); });
}

std::vector<Action> Responder::evpn_binding(net::IpAddress ip, std::optional<net::MacAddress> mac,
                                            NaFlags flags, bool immutable, net::TimePoint now) {
  if (!mac) return evpn_bindings(ip, {}, now);
  const EvpnBinding one{*mac, flags, immutable};
  return evpn_bindings(ip, {&one, 1}, now);
}

std::vector<Action> Responder::evpn_bindings(net::IpAddress ip,
                                             std::span<const EvpnBinding> bindings,
                                             net::TimePoint now) {
  return impl_->at(now, [&] { impl_->set_evpn(ip, bindings); });
}

// --- commands

std::pair<bool, std::vector<Action>> Responder::clear_binding(const net::IpAddress& ip,
                                                              net::TimePoint now) {
  std::pair<bool, std::vector<Action>> result;
  result.second = impl_->at(now, [&] { result.first = impl_->table.forget(ip); });
  return result;
}

std::pair<bool, std::vector<Action>> Responder::clear_duplicate(const net::IpAddress& ip,
                                                                net::TimePoint now) {
  std::pair<bool, std::vector<Action>> result;
  result.second = impl_->at(now, [&] { result.first = impl_->duplicates.clear(ip); });
  return result;
}

std::pair<bool, std::vector<Action>> Responder::set_sponge(const net::IpAddress& ip,
                                                           SpongeState state, net::TimePoint now) {
  std::pair<bool, std::vector<Action>> result;
  result.second = impl_->at(now, [&] {
    const Binding* binding = impl_->table.find(ip);
    const bool bound = binding && binding->answerable();
    if (!bound && !impl_->is_own(ip) && impl_->table.inside(ip) &&
        impl_->policy_for(ip) == Unassigned::Sponge)
      result.first = impl_->sponge.set(ip, state);
  });
  return result;
}

std::pair<bool, std::vector<Action>> Responder::probe(const net::IpAddress& ip,
                                                      net::TimePoint now) {
  std::pair<bool, std::vector<Action>> result;
  result.second = impl_->at(now, [&] {
    Context& context = impl_->context;
    if (!impl_->table.inside(ip) || impl_->is_own(ip) || !context.identity.mac.is_unicast()) return;
    result.first = true;
    const Binding* binding = impl_->table.find(ip);
    if (!binding || !binding->answerable()) {
      context.emit(Flood{*question_to_all(context.identity, ip), std::nullopt, true, true});
      return;
    }
    for (const InUse& one : impl_->table.owners(ip, *binding)) {
      net::Bytes question = *question_to(context.identity, ip, one.mac);
      if (one.where == MacWhere::LocalPort)
        context.emit(Transmit{one.port, std::move(question)});
      else
        context.emit(TransmitCore{std::move(question)});
    }
  });
  return result;
}

// --- time

net::TimePoint Responder::deadline() const {
  return std::min({impl_->announcements.deadline(), impl_->maintenance.deadline(),
                   impl_->duplicates.deadline(), impl_->sponge.deadline(),
                   impl_->decoys.deadline()});
}

std::vector<Action> Responder::tick(net::TimePoint now) {
  return impl_->at(now, [&] {
    impl_->maintenance.tick();
    impl_->duplicates.tick();
    impl_->sponge.tick([this](const net::IpAddress& ip) {
      const Binding* binding = impl_->table.find(ip);
      return impl_->table.inside(ip) && !(binding && binding->answerable());
    });
    impl_->decoys.tick();
  });
}

const std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)>& Responder::counters() const {
  return impl_->counters;
}

}  // namespace proxyarp
