// SPDX-License-Identifier: GPL-2.0-or-later
// The words that operators see.
#include <array>

#include "proxyarp/responder.h"

namespace proxyarp {
namespace {

template <class Enum, std::size_t N>
const char* word(const std::array<const char*, N>& words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? words[index] : "?";
}

}  // namespace

const char* to_string(Verdict verdict) {
  static constexpr std::array<const char*, static_cast<std::size_t>(Verdict::Count)> kWords{
      "answered",       "learned",        "flooded",
      "forwarded",      "unknown-target", "gratuitous-dropped",
      "owner-asked",    "same-port",      "spoofed-sender",
      "outside-prefix", "malformed-arp",  "malformed-nd",
      "unknown-option", "binding-limit",  "not-owner",
      "sponged",        "unassigned",     "duplicate",
      "pending",        "exempt",         "trapped",
      "rate-limit",     "probe-ignored"};
  return word(kWords, verdict);
}

const char* to_string(AlarmKind kind) {
  static constexpr std::array<const char*, 10> kWords{
      "spoofed-sender", "not-owner",          "duplicate-ip",   "duplicate-over", "binding-limit",
      "table-filling",  "immutable-conflict", "decoy-answered", "address-dead",   "address-back"};
  return word(kWords, kind);
}

const char* to_string(BindingKind kind) {
  static constexpr std::array<const char*, 3> kWords{"static", "learned", "evpn"};
  return word(kWords, kind);
}

const char* to_string(SpongeState state) {
  static constexpr std::array<const char*, 4> kWords{"alive", "pending", "dead", "static"};
  return word(kWords, state);
}

const char* to_string(OffenderKind kind) {
  static constexpr std::array<const char*, 7> kWords{"asker",   "target",  "proxy-arp", "dead-peer",
                                                     "spoofer", "sweeper", "anti-spoof"};
  return word(kWords, kind);
}

}  // namespace proxyarp
