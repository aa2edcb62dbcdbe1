// SPDX-License-Identifier: GPL-2.0-or-later
#include "dataplane/settings.h"

#include "dataplane/bpf/abi.h"

namespace dataplane {

const char* to_string(BumClass bum_class) {
  switch (bum_class) {
    case BumClass::Arp: return "arp";
    case BumClass::Nd: return "nd";
    case BumClass::Broadcast: return "broadcast";
    case BumClass::Multicast: return "multicast";
    case BumClass::UnknownUnicast: return "unknown-unicast";
    case BumClass::ArpUnicast: return "arp-unicast";
    case BumClass::NdUnicast: return "nd-unicast";
    case BumClass::Count: break;
  }
  return "?";
}

const char* to_string(Direction direction) {
  switch (direction) {
    case Direction::Ingress: return "ingress";
    case Direction::Egress: return "egress";
    case Direction::Decap: return "decap";
    case Direction::Encap: return "encap";
    case Direction::Count: break;
  }
  return "?";
}

const char* to_string(Reaction reaction) {
  switch (reaction) {
    case Reaction::Count: return "count";
    case Reaction::Drop: return "drop";
    case Reaction::Quarantine: return "quarantine";
    case Reaction::Shut: return "shut";
  }
  return "?";
}

std::span<const DropReason> drop_reasons() {
  static constexpr DropReason kReasons[] = {
#define PL_X(enumerator, name, switchable, text) {name, text, switchable != 0},
      PL_DROP_REASONS(PL_X)
#undef PL_X
  };
  static_assert(std::size(kReasons) == PL_REASONS - PL_FIRST_DROP);
  return kReasons;
}

BumPolicy peering_policy() {
  const Limit nothing{.packets_per_second = 0, .bits_per_second = {}};
  const auto pps = [](uint64_t rate) {
    return Limit{.packets_per_second = rate, .bits_per_second = {}};
  };
  BumPolicy policy;
  policy.name = "peering";
  policy.ingress = {pps(20), pps(50), nothing, nothing, nothing, pps(100), pps(100)};
  policy.egress = {pps(200), pps(200), nothing, nothing, nothing, {}, {}};
  policy.decap = {pps(200), pps(200), nothing, nothing, nothing, {}, {}};
  policy.encap = {pps(200), pps(200), nothing, nothing, nothing, {}, {}};
  policy.egress_total = Limit{.packets_per_second = {}, .bits_per_second = 1'000'000};
  policy.per_vtep = pps(100);
  return policy;
}

BumPolicy quarantine_policy() {
  const Limit nothing{.packets_per_second = 0, .bits_per_second = {}};
  BumPolicy policy;
  policy.name = kQuarantinePolicy;
  for (Limits* limits : {&policy.ingress, &policy.egress, &policy.decap, &policy.encap})
    limits->fill(nothing);
  policy.answers = policy.punts = nothing;
  return policy;
}

}  // namespace dataplane
