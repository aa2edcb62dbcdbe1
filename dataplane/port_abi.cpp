// SPDX-License-Identifier: GPL-2.0-or-later
// Settings to the words of bpf/abi.h. Costs are nanoseconds << 16 per frame or octet, so that 7
// million frames a second are as exact as 7; tau is what GCRA tolerates beyond the first frame.
#include "dataplane/port_abi.h"

#include <algorithm>
#include <cstring>

namespace dataplane {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMaxBurst = kSecond;
constexpr uint64_t kFrame = 1514;  // longest frame that a short burst must let pass
// Below this a GSO frame of 512 KiB would overflow 64 bits: 16 bit/s.
constexpr uint64_t kMaxByteCost = uint64_t{1} << 45;

uint64_t burst_less(uint64_t burst, uint64_t cost_q16) {
  const uint64_t cost = cost_q16 >> 16;
  return burst > cost ? burst - cost : 0;
}

const char* const kClasses[PL_CLASSES] = {
    "arp", "nd", "broadcast", "multicast", "unknown-unicast", "unicast", "control"};

}  // namespace

pl_limit to_abi(const std::optional<Limit>& limit) {
  pl_limit out{};
  if (!limit || (!limit->packets_per_second && !limit->bits_per_second)) return out;
  if (limit->packets_per_second == 0u || limit->bits_per_second == 0u) {
    out.mode = PL_NOTHING;
    return out;
  }
  const auto wanted = std::max<int64_t>(0, std::chrono::nanoseconds(limit->burst).count());
  const uint64_t burst = std::min(static_cast<uint64_t>(wanted), kMaxBurst);
  out.mode = PL_LIMITED;
  if (limit->packets_per_second) {
    out.frame_q16 = std::max<uint64_t>(1, (kSecond << 16) / *limit->packets_per_second);
    out.frame_tau = burst_less(burst, out.frame_q16);
  }
  if (limit->bits_per_second) {
    out.byte_q16 =
        std::clamp<uint64_t>((8 * kSecond << 16) / *limit->bits_per_second, 1, kMaxByteCost);
    out.byte_tau = burst_less(burst, kFrame * out.byte_q16);
  }
  return out;
}

uint64_t to_abi(const net::MacAddress& mac) {
  uint64_t out = 0;
  std::memcpy(&out, mac.bytes().data(), mac.bytes().size());
  return out;
}

namespace {

std::optional<std::string> put_traps(const PortConfig& config, pl_config& out) {
  if (config.traps.size() > PL_MAX_TRAPS)
    return "more than " + std::to_string(PL_MAX_TRAPS) + " trapped MAC addresses";
  for (auto& trap : out.traps) trap = {.mac = PL_NO_MAC, .reason = PL_PASSED, .zero = 0};
  auto* next = out.traps;
  for (const auto& trap : config.traps) {
    const std::string_view reason = trap.reason;
    if (reason != "sponge" && reason != "anti-spoof")
      return "no reason of a trap: " + std::string(reason);
    *next++ = {.mac = to_abi(trap.mac),
               .reason = reason == "sponge" ? PL_SPONGE : PL_ANTI_SPOOF,
               .zero = 0};
  }
  out.own_mac = config.own_mac ? to_abi(*config.own_mac) : PL_NO_MAC;
  return std::nullopt;
}

// What members send to nobody is told to the daemon at a tenth of the rate of questions, which it
// must not keep from being heard.
Limit trapped_limit(Limit limit) {
  for (auto* rate : {&limit.packets_per_second, &limit.bits_per_second})
    if (*rate && **rate != 0) *rate = std::max<uint64_t>(1, **rate / 10);
  return limit;
}

}  // namespace

std::expected<pl_config, std::string> to_abi(const PortConfig& config) {
  const auto& policy = config.policy;
  if (config.macs.size() > PL_MAX_MACS)
    return std::unexpected("more than " + std::to_string(PL_MAX_MACS) + " MAC addresses");
  if (policy.allowed_ethertypes.size() > PL_MAX_ETHERTYPES)
    return std::unexpected("more than " + std::to_string(PL_MAX_ETHERTYPES) + " EtherTypes");
  pl_config out{};
  const bool core = config.kind == PortKind::Core;
  out.ifindex = config.index.value;
  out.vni = config.vni.value;
  out.core = core;
  out.proxy = config.proxy;
  out.learn = config.learn;
  out.enforce_macs = config.enforce_macs;
  unsigned reason = PL_FIRST_DROP;
  for (const auto& entry : drop_reasons()) {
    if (entry.switchable && policy.allow.contains(entry.name)) out.allow |= uint64_t{1} << reason;
    ++reason;
  }
  for (uint16_t type : policy.allowed_ethertypes) out.ethertypes[out.ethertype_count++] = type;
  const Limits* limits[PL_HOOKS] = {core ? &policy.decap : &policy.ingress,
                                    core ? &policy.encap : &policy.egress};
  for (int hook = 0; hook < PL_HOOKS; ++hook)
    for (std::size_t cls = 0; cls < kBumClasses; ++cls)
      out.limits[hook][cls] = to_abi((*limits[hook])[cls]);
  // What ingress and the bridge's flags keep out is not looked up again for every unicast frame.
  auto& unknown_out = out.limits[PL_OUT][PL_CLASS_UNKNOWN_UNICAST];
  if (unknown_out.mode == PL_NOTHING) unknown_out.mode = PL_UNLIMITED;
  out.answers = to_abi(policy.answers);
  out.punts = to_abi(policy.punts);
  out.trapped = to_abi(trapped_limit(policy.punts));
  out.renew =
      static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::nanoseconds(config.renew).count()));
  if (auto problem = put_traps(config, out)) return std::unexpected(std::move(*problem));
  for (const auto& mac : config.macs) out.macs[out.mac_count++] = to_abi(mac);
  return out;
}

const char* class_name(unsigned cls) { return cls < PL_CLASSES ? kClasses[cls] : "?"; }

const char* reason_name(unsigned reason) {
  switch (reason) {
    case PL_PASSED: return "passed";
    case PL_ANSWERED: return "answered";
    case PL_PUNTED: return "punted";
    default: break;
  }
  const auto drops = drop_reasons();
  const unsigned index = reason - PL_FIRST_DROP;
  return index < drops.size() ? drops[index].name : "?";
}

}  // namespace dataplane
