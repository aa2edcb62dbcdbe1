// SPDX-License-Identifier: GPL-2.0-or-later
// Whether a member's port is open: closes it after violations of its security, storms and link
// flaps, and opens it again by itself, later each time. A state machine without clock or effects:
// time comes in, what changed goes out, and the caller closes the port in the data path.
//
//   Open --violations, storm--> Quarantine or Shut --hold--> Open
//   Open --link flaps--> Damped --quiet for a while--> Open
//   any --settings or operator--> Quarantine or Shut --settings or operator--> Open
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "dataplane/settings.h"
#include "net/time.h"

namespace peerland {

enum class GuardState : uint8_t { Open, Quarantine, Shut, Damped };
const char* to_string(GuardState state);  // "open", "quarantine", "shut", "damped"

// Kinds of violations first.
enum class GuardCause : uint8_t {
  Macs,
  Spoofing,
  Protocols,
  Loop,
  Storm,
  Flaps,
  Settings,
  Operator,
  None
};
inline constexpr std::size_t kViolationKinds = static_cast<std::size_t>(GuardCause::Loop) + 1;
const char* to_string(GuardCause cause);  // "macs", ..., "flaps", "settings", "operator", ""

struct GuardSettings {
  dataplane::SecuritySettings security;
  bool quarantined = false;  // by the settings
  bool observe = false;      // say what would happen, but close nothing
  bool operator==(const GuardSettings&) const = default;
};

struct GuardChange {
  GuardState from = GuardState::Open, to = GuardState::Open;
  GuardCause cause = GuardCause::None;
  net::TimePoint until = net::kNever;  // comes back by itself; kNever: it does not
  bool observed = false;               // would have changed: it only observes
};

class PortGuard {
 public:
  using Change = std::optional<GuardChange>;

  [[nodiscard]] Change configure(const GuardSettings& settings, net::TimePoint now);
  // A frame of a violation was reported.
  [[nodiscard]] Change violation(GuardCause kind, net::TimePoint now);
  // So many frames were over the limits since the last call.
  [[nodiscard]] Change over_limits(uint64_t frames, net::TimePoint now);
  [[nodiscard]] Change link_changed(net::TimePoint now);
  // Operators: Quarantine or Shut stay until they say Open, which also ends what violations did.
  [[nodiscard]] Change set(GuardState wanted, net::TimePoint now);
  [[nodiscard]] Change tick(net::TimePoint now);
  [[nodiscard]] net::TimePoint deadline() const { return until_; }

  // --- view
  [[nodiscard]] GuardState state() const { return state_; }
  [[nodiscard]] GuardCause cause() const { return cause_; }
  [[nodiscard]] bool open() const { return state_ == GuardState::Open; }
  [[nodiscard]] net::TimePoint since() const { return since_; }  // epoch: was never closed
  [[nodiscard]] net::TimePoint until() const { return until_; }  // kNever: not by itself
  [[nodiscard]] uint64_t closures() const { return closures_; }  // by violations, storms, flaps
  [[nodiscard]] uint64_t observed() const { return observed_; }  // that would have been
  [[nodiscard]] std::chrono::seconds next_hold(net::TimePoint now) const;

 private:
  void forget();
  Change enter(GuardState to, GuardCause cause, net::TimePoint until, net::TimePoint now);
  Change react(dataplane::Reaction reaction, GuardCause cause, net::TimePoint now);

  GuardSettings settings_;
  GuardState state_ = GuardState::Open;
  GuardCause cause_ = GuardCause::None;
  net::TimePoint since_{}, until_ = net::kNever;
  net::TimePoint returned_{};  // when it last came back by itself
  uint32_t steps_ = 0;         // doublings of `hold` so far
  uint64_t closures_ = 0, observed_ = 0;
  std::array<std::deque<net::TimePoint>, kViolationKinds> recent_;
  std::deque<std::pair<net::TimePoint, uint64_t>> over_;  // frames over the limits
  std::deque<net::TimePoint> transitions_;
};

}  // namespace peerland
