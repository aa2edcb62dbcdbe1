// SPDX-License-Identifier: GPL-2.0-or-later
// A learned part has one timer. It is set anew only when it fires: a frame of the owner just notes
// the time. A round of three questions begins each period; the end comes at age_time.
#include "proxyarp/maintenance.h"

#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr uint8_t kTries = 3;  // of a round; RFC 4861 section 10, MAX_UNICAST_SOLICIT
constexpr auto kBetweenTries = std::chrono::seconds(1);
constexpr auto kProbeQuiet = std::chrono::seconds(10);
constexpr std::size_t kMaxProbed = 16384;
constexpr int kTimersPerTick = 256;

}  // namespace

Maintenance::Maintenance(Context& context, BindingTable& table)
    : context_(context),
      table_(table),
      pacer_(Pacer::strict(context.settings.announcements_per_second)),
      probed_(kProbeQuiet, kMaxProbed) {}

void Maintenance::reconfigure() {
  const double rate = context_.settings.announcements_per_second;
  pacer_.set(rate * 0.95, rate * 0.05);
  // Other periods count from now on.
  std::vector<std::pair<net::IpAddress, net::MacAddress>> parts;
  for (const auto& [ip, binding] : table_.all())
    for (const LearnedPart& part : binding.learned) parts.emplace_back(ip, part.mac);
  for (const auto& [ip, mac] : parts)
    for (LearnedPart& part : table_.find(ip)->learned)
      if (part.mac == mac) table_.set_timer(ip, part, after(part));
}

void Maintenance::probe_seen(const net::IpAddress& ip) {
  if (table_.find(ip)) probed_.renew(ip, context_.now);
}

// Zero: never.
net::Duration Maintenance::period() const {
  const Settings& settings = context_.settings;
  return settings.refresh ? net::Duration(*settings.refresh) : net::Duration(settings.age_time) / 3;
}

// When the part is to be looked at next.
net::TimePoint Maintenance::after(const LearnedPart& part) {
  const net::Duration age = context_.settings.age_time;
  const net::TimePoint end = age.count() > 0 ? part.seen + age : net::kNever;
  const net::Duration every = period();
  if (every.count() <= 0 || !context_.identity.mac.is_unicast()) return end;
  if (part.asked % kTries != 0) return std::min(end, context_.now + kBetweenTries);
  net::TimePoint next = part.seen;
  for (int round = part.asked / kTries; round >= 0; --round) next += every;
  next += context_.jittered(every) - every;
  return std::min(end, std::max(next, context_.now + kBetweenTries));
}

void Maintenance::due(const net::IpAddress& ip, LearnedPart& part) {
  const net::TimePoint now = context_.now;
  const net::Duration age = context_.settings.age_time, every = period();
  if (age.count() > 0 && now - part.seen >= age) return expire(ip, part);
  const bool asks = every.count() > 0 && context_.identity.mac.is_unicast();
  const bool early = part.asked == 0 && now - part.seen < every / 100 * 84;
  if (!asks || early) return table_.set_timer(ip, part, after(part));
  // Only where the MAC is, and only while it is there.
  const auto [where, port] = table_.whereabouts(part.mac);
  const Binding& binding = *table_.find(ip);
  if (where != MacWhere::LocalPort || binding.doubt != Doubt::None)
    return table_.set_timer(ip, part,
                            age.count() > 0 ? std::min(part.seen + age, now + every) : now + every);
  if (const auto probed = probed_.since(ip, now))
    return table_.set_timer(ip, part, *probed + kProbeQuiet);
  if (!pacer_.take(now)) return table_.set_timer(ip, part, pacer_.next(now));
  context_.emit(Transmit{port, *question_to(context_.identity, ip, part.mac)});
  if (part.asked < 250) ++part.asked;
  table_.set_timer(ip, part, after(part));
}

void Maintenance::expire(const net::IpAddress& ip, LearnedPart part) {
  const auto [where, port] = table_.whereabouts(part.mac);
  table_.forget(ip, part.mac);
  // It was asked and is silent in all that it had: the bridge shall forget it as well.
  const bool silent = part.asked > 0 && where == MacWhere::LocalPort &&
                      !table_.provisioned(part.mac) && !table_.has_learned(part.mac);
  if (silent) context_.emit(FlushMac{part.mac, port});
}

void Maintenance::tick() {
  for (int i = 0; i < kTimersPerTick && deadline() <= context_.now; ++i) {
    const auto [when, ip, mac] = *table_.timers().begin();
    for (LearnedPart& part : table_.find(ip)->learned)
      if (part.mac == mac) {
        due(ip, part);
        break;  // it may be gone
      }
  }
}

net::TimePoint Maintenance::deadline() const {
  return table_.timers().empty() ? net::kNever : std::get<0>(*table_.timers().begin());
}

}  // namespace proxyarp
