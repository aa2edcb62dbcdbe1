// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/port_guard.h"

#include <algorithm>
#include <utility>

namespace peerland {
namespace {

using dataplane::Reaction;

constexpr uint32_t kMostSteps = 16;  // 2^16 times any hold is beyond every max_hold

template <class Times, class When>
void drop_before(Times& times, net::TimePoint limit, When when) {
  while (!times.empty() && when(times.front()) <= limit) times.pop_front();
}

}  // namespace

const char* to_string(GuardState state) {
  switch (state) {
    case GuardState::Open: return "open";
    case GuardState::Quarantine: return "quarantine";
    case GuardState::Shut: return "shut";
    case GuardState::Damped: return "damped";
  }
  return "?";
}

const char* to_string(GuardCause cause) {
  switch (cause) {
    case GuardCause::Macs: return "macs";
    case GuardCause::Spoofing: return "spoofing";
    case GuardCause::Protocols: return "protocols";
    case GuardCause::Loop: return "loop";
    case GuardCause::Storm: return "storm";
    case GuardCause::Flaps: return "flaps";
    case GuardCause::Settings: return "settings";
    case GuardCause::Operator: return "operator";
    case GuardCause::None: return "";
  }
  return "?";
}

void PortGuard::forget() {
  for (auto& times : recent_) times.clear();
  over_.clear();
}

std::chrono::seconds PortGuard::next_hold(net::TimePoint now) const {
  const auto& s = settings_.security;
  const bool forgiven = returned_ == net::TimePoint{} || now - returned_ >= s.forgive;
  const uint32_t steps = open() && forgiven ? 0 : steps_;
  return std::min(s.hold * (int64_t{1} << std::min(steps, kMostSteps)), s.max_hold);
}

PortGuard::Change PortGuard::enter(GuardState to, GuardCause cause, net::TimePoint until,
                                   net::TimePoint now) {
  const GuardChange change{state_, to, cause, until, false};
  state_ = to;
  cause_ = to == GuardState::Open ? GuardCause::None : cause;
  until_ = until;
  since_ = now;
  forget();
  return change;
}

// Closed for a reason of our own: for `hold`, longer each time.
PortGuard::Change PortGuard::react(Reaction reaction, GuardCause cause, net::TimePoint now) {
  if (reaction != Reaction::Quarantine && reaction != Reaction::Shut) return std::nullopt;
  const GuardState to = reaction == Reaction::Shut ? GuardState::Shut : GuardState::Quarantine;
  const auto until = now + next_hold(now);
  if (settings_.observe) {
    ++observed_;
    forget();
    return GuardChange{state_, to, cause, until, true};
  }
  const bool forgiven =
      returned_ == net::TimePoint{} || now - returned_ >= settings_.security.forgive;
  steps_ = forgiven ? 1 : std::min(steps_ + 1, kMostSteps);
  ++closures_;
  return enter(to, cause, until, now);
}

PortGuard::Change PortGuard::configure(const GuardSettings& settings, net::TimePoint now) {
  settings_ = settings;
  const bool by_settings = cause_ == GuardCause::Settings;
  if (settings.quarantined && !by_settings)
    return enter(GuardState::Quarantine, GuardCause::Settings, net::kNever, now);
  const bool ours = !open() && !by_settings && cause_ != GuardCause::Operator;
  if ((by_settings && !settings.quarantined) || (ours && settings.observe))
    return enter(GuardState::Open, cause_, net::kNever, now);
  return std::nullopt;
}

PortGuard::Change PortGuard::violation(GuardCause kind, net::TimePoint now) {
  const auto index = static_cast<std::size_t>(kind);
  if (!open() || index >= kViolationKinds) return std::nullopt;
  const auto& s = settings_.security;
  auto& times = recent_[index];
  drop_before(times, now - s.window, [](net::TimePoint at) { return at; });
  times.push_back(now);
  if (times.size() < s.violations) return std::nullopt;
  times.pop_front();
  switch (kind) {
    case GuardCause::Macs: return react(s.macs, kind, now);
    case GuardCause::Spoofing: return react(s.spoofing, kind, now);
    case GuardCause::Protocols: return react(s.protocols, kind, now);
    default: return react(s.loop, GuardCause::Loop, now);
  }
}

PortGuard::Change PortGuard::over_limits(uint64_t frames, net::TimePoint now) {
  const auto& s = settings_.security;
  drop_before(over_, now - s.window, [](const auto& one) { return one.first; });
  if (!open() || frames == 0) return std::nullopt;
  over_.emplace_back(now, frames);
  uint64_t sum = 0;
  for (const auto& [at, count] : over_) sum += count;
  if (sum / static_cast<uint64_t>(s.window.count()) < s.storm_rate) return std::nullopt;
  return react(s.storm, GuardCause::Storm, now);
}

PortGuard::Change PortGuard::link_changed(net::TimePoint now) {
  const auto& s = settings_.security;
  if (s.flap_transitions == 0) return std::nullopt;
  drop_before(transitions_, now - s.flap_window, [](net::TimePoint at) { return at; });
  transitions_.push_back(now);
  while (transitions_.size() > s.flap_transitions) transitions_.pop_front();
  if (state_ == GuardState::Damped) {
    until_ = now + s.flap_hold;  // it must be quiet for so long
    return std::nullopt;
  }
  if (!open() || transitions_.size() < s.flap_transitions) return std::nullopt;
  const auto until = now + s.flap_hold;
  if (settings_.observe) {
    ++observed_;
    transitions_.clear();
    return GuardChange{state_, GuardState::Damped, GuardCause::Flaps, until, true};
  }
  ++closures_;
  return enter(GuardState::Damped, GuardCause::Flaps, until, now);
}

PortGuard::Change PortGuard::set(GuardState wanted, net::TimePoint now) {
  steps_ = 0;
  transitions_.clear();
  if (settings_.quarantined) return std::nullopt;  // the settings say otherwise
  if (wanted == GuardState::Open)
    return open() ? std::nullopt : enter(GuardState::Open, cause_, net::kNever, now);
  if (state_ == wanted && cause_ == GuardCause::Operator) return std::nullopt;
  return enter(wanted, GuardCause::Operator, net::kNever, now);
}

PortGuard::Change PortGuard::tick(net::TimePoint now) {
  if (open() || now < until_) return std::nullopt;
  if (state_ != GuardState::Damped) returned_ = now;
  transitions_.clear();
  return enter(GuardState::Open, cause_, net::kNever, now);
}

}  // namespace peerland
