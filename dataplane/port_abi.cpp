// SPDX-License-Identifier: GPL-2.0-or-later
// Settings to the words of bpf/abi.h. Costs are nanoseconds << 16 per frame or octet, so that 7
// million frames a second are as exact as 7; tau is what GCRA tolerates beyond the first frame.
#include "dataplane/port_abi.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

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
    "arp",         "nd",         "broadcast", "multicast", "unknown-unicast",
    "arp-unicast", "nd-unicast", "unicast",   "control"};
static_assert(PL_LIMITED_CLASSES == kBumClasses);

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

namespace {

// What is told of refused frames: enough to see who it is, not enough to fill the ring buffer.
const Limit kReports{
    .packets_per_second = 20, .bits_per_second = {}, .burst = std::chrono::milliseconds(1000)};

void put_limits(const BumPolicy& policy, bool bridge_floods_unknown, pl_config& out) {
  const bool core = out.core != 0;
  const Limits* limits[PL_HOOKS] = {core ? &policy.decap : &policy.ingress,
                                    core ? &policy.encap : &policy.egress};
  for (int hook = 0; hook < PL_HOOKS; ++hook)
    for (std::size_t cls = 0; cls < kBumClasses; ++cls)
      out.limits[hook][cls] = to_abi((*limits[hook])[cls]);
  if (!core && policy.egress_total) {
    // The others stop where half of the burst is left: for ARP and ND.
    out.total[PL_ARP_AND_ND] = out.total[PL_OTHERS] = to_abi(policy.egress_total);
    out.total[PL_OTHERS].frame_tau /= 2;
    out.total[PL_OTHERS].byte_tau /= 2;
  }
  auto& unknown_in = out.limits[PL_IN][PL_CLASS_UNKNOWN_UNICAST];
  auto& unknown_out = out.limits[PL_OUT][PL_CLASS_UNKNOWN_UNICAST];
  out.look_up[PL_IN] = unknown_in.mode != PL_UNLIMITED;
  // What ingress and the bridge's flags keep out is not looked up again for every unicast frame.
  const bool kept_out = unknown_out.mode == PL_NOTHING && !bridge_floods_unknown;
  if (kept_out) unknown_out.mode = PL_UNLIMITED;
  out.look_up[PL_OUT] =
      !kept_out && (unknown_out.mode != PL_UNLIMITED || out.total[PL_OTHERS].mode != PL_UNLIMITED);
  for (int hook : {PL_IN, PL_OUT})
    for (unsigned cls = 0; cls < kBumClasses; ++cls) {
      const bool capped = hook == PL_OUT && cls <= PL_CLASS_UNKNOWN_UNICAST &&
                          out.total[PL_OTHERS].mode != PL_UNLIMITED;
      if (capped || out.limits[hook][cls].mode != PL_UNLIMITED)
        out.limited[hook] = static_cast<uint8_t>(out.limited[hook] | 1u << cls);
    }
}

std::optional<std::string> put_macs(const PortConfig& config, pl_config& out) {
  if (config.macs.size() > PL_MAX_MACS)
    return "more than " + std::to_string(PL_MAX_MACS) + " MAC addresses";
  if (config.own_macs.size() > PL_MAX_OWN_MACS)
    return "more than " + std::to_string(PL_MAX_OWN_MACS) + " MAC addresses of its own";
  for (const auto& mac : config.macs) out.macs[out.mac_count++] = to_abi(mac);
  for (const auto& mac : config.own_macs) out.own_macs[out.own_mac_count++] = to_abi(mac);
  return put_traps(config, out);
}

}  // namespace

namespace {

// What may go the short way. Nothing at a port that is closed.
void put_quick(pl_config& out) {
  for (auto& mac : out.quick_macs) mac = PL_NO_MAC;
  if (out.gate != PL_PASSED) return;
  uint8_t kinds = 0;
  for (int i = 0; i < out.ethertype_count; ++i) {
    if (out.ethertypes[i] == 0x0800) kinds |= PL_QUICK_IPV4;
    if (out.ethertypes[i] == 0x86dd) kinds |= PL_QUICK_IPV6;
  }
  if (kinds == 0) return;
  if (!out.observe) kinds |= PL_QUICK_GROUPS;
  for (int hook : {PL_IN, PL_OUT})
    out.quick[hook] = static_cast<uint8_t>(kinds | (out.look_up[hook] ? PL_QUICK_LOOK_UP : 0));
  if (!out.core) out.quick[PL_OUT] |= PL_QUICK_REMEMBER;
  const std::span own(out.own_macs, out.own_mac_count);
  auto* next = out.quick_macs;
  if (out.enforce_macs) {
    out.quick[PL_IN] |= PL_QUICK_LISTED;
    for (int i = 0; i < out.mac_count && next != std::end(out.quick_macs); ++i) {
      const uint64_t mac = out.macs[i];
      const bool host = mac != 0 && (mac & 1) == 0;
      if (host && std::ranges::find(own, mac) == own.end()) *next++ = mac;
    }
  } else if (own.size() <= PL_QUICK_MACS) {
    std::ranges::copy(own, next);
  } else {
    out.quick[PL_IN] = 0;
  }
}

}  // namespace

std::expected<pl_config, std::string> to_abi(const PortConfig& config) {
  const auto& policy = config.policy;
  if (policy.allowed_ethertypes.size() > PL_MAX_ETHERTYPES)
    return std::unexpected("more than " + std::to_string(PL_MAX_ETHERTYPES) + " EtherTypes");
  if (config.name.size() >= PL_NAME) return std::unexpected("name too long: " + config.name);
  pl_config out{};
  out.ifindex = out.device = config.index.value;
  out.vni = config.vni.value;
  out.core = config.kind == PortKind::Core;
  out.proxy = config.proxy;
  out.learn = config.learn;
  out.enforce_macs = config.enforce_macs;
  out.observe_macs = config.observe_macs;
  out.observe = policy.observe;
  out.report = config.report_violations;
  out.gate = config.gate == Gate::Open         ? PL_PASSED
             : config.gate == Gate::Quarantine ? PL_QUARANTINE
                                               : PL_SHUT;
  unsigned reason = PL_FIRST_DROP;
  for (const auto& entry : drop_reasons()) {
    if (entry.switchable && policy.allow.contains(entry.name)) out.allow |= uint64_t{1} << reason;
    ++reason;
  }
  for (uint16_t type : policy.allowed_ethertypes) out.ethertypes[out.ethertype_count++] = type;
  put_limits(policy, config.bridge_floods_unknown, out);
  out.answers = to_abi(policy.answers);
  out.punts = to_abi(policy.punts);
  out.trapped = to_abi(trapped_limit(policy.punts));
  out.reports = to_abi(kReports);
  out.renew =
      static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::nanoseconds(config.renew).count()));
  if (auto problem = put_macs(config, out)) return std::unexpected(std::move(*problem));
  put_quick(out);
  return out;
}

pl_limit report_limit() { return to_abi(kReports); }

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
