// SPDX-License-Identifier: GPL-2.0-or-later
// The BUM policy in user space, for `responder: pcap`: the checks of bpf/bum.bpf.c by the same
// code, without the bindings' map (the responder has them) and without unknown unicast (which is
// not captured).
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

#include "dataplane/packet_io.h"
#include "dataplane/port_abi.h"

namespace {
struct pl_source {
  std::span<const uint8_t> frame;
};
int pl_load(const pl_source* source, uint32_t offset, void* to, uint32_t n) {
  if (offset > source->frame.size() || n > source->frame.size() - offset) return -1;
  std::memcpy(to, source->frame.data() + offset, n);
  return 0;
}
}  // namespace
#include "dataplane/bpf/bucket.h"
#include "dataplane/bpf/classify.h"
#include "dataplane/bpf/neighbor.h"

namespace dataplane {

namespace {

struct Verdict {
  unsigned cls;
  unsigned reason;
};

// Target of a request that could be answered at once.
std::optional<net::IpAddress> plain_target(const pl_head& head, const pl_frame& frame) {
  if (frame.cls == PL_CLASS_ARP && pl_arp_plain(&head, &frame))
    return net::IpAddress::from_bytes({head.b + PL_TPA, 4});
  if (frame.nd == PL_NS && pl_ns_plain(&head, &frame))
    return net::IpAddress::from_bytes({head.b + PL_ND_TARGET, 16});
  return std::nullopt;
}

}  // namespace

struct SoftPolicy::Impl {
  struct Port {
    PortKind kind = PortKind::Member;
    pl_config config{};
    pl_state state{};
    std::map<std::tuple<Direction, unsigned, unsigned>, pl_count> counts;
  };
  std::unordered_map<net::IfIndex, Port> ports;
  std::function<bool(net::Vni, const net::IpAddress&)> is_answered;

  Verdict judge(Port& port, int hook, std::span<const uint8_t> frame, uint64_t now) const;
};

Verdict SoftPolicy::Impl::judge(Port& port, int hook, std::span<const uint8_t> bytes,
                                uint64_t now) const {
  if (bytes.size() < PL_ETH) return {PL_CLASS_CONTROL, PL_MALFORMED};
  const auto len = static_cast<uint32_t>(bytes.size());
  pl_source source{bytes};
  pl_head head{};
  const auto seen = std::min<std::size_t>(bytes.size(), sizeof head.b);
  std::memcpy(head.b, bytes.data(), seen);
  pl_frame frame{};
  pl_look(&head, static_cast<uint32_t>(seen), len, &frame);
  const unsigned reason = pl_check(&source, &port.config, hook, &head, &frame);
  if (reason != PL_PASSED) return {frame.cls, reason};
  if (frame.cls == PL_CLASS_UNICAST || frame.cls == PL_CLASS_CONTROL) return {frame.cls, PL_PASSED};

  if (hook == PL_IN && port.config.proxy && !port.config.core && is_answered) {
    const auto target = plain_target(head, frame);
    if (target && is_answered(net::Vni(port.config.vni), *target)) {
      const bool within = pl_charge(&port.config.answers, port.state.answers, now, 1, len) != 0;
      return {frame.cls, within ? unsigned{PL_PASSED} : unsigned{PL_ANSWER_LIMIT}};
    }
  }
  const pl_limit& limit = port.config.limits[hook][frame.cls];
  if (!pl_charge(&limit, port.state.tat[hook][frame.cls], now, 1, len))
    return {frame.cls, pl_limit_reason(frame.cls, limit.mode)};
  return {frame.cls, PL_PASSED};
}

SoftPolicy::SoftPolicy() : impl_(std::make_unique<Impl>()) {}
SoftPolicy::~SoftPolicy() = default;

void SoftPolicy::set_port(const PortConfig& config) {
  auto abi = to_abi(config);
  if (!abi) return;  // the settings' own limits, checked where they are read
  auto& port = impl_->ports[config.index];
  port.kind = config.kind;
  port.config = *abi;
}

void SoftPolicy::remove_port(net::IfIndex port) { impl_->ports.erase(port); }

void SoftPolicy::set_answered(std::function<bool(net::Vni, const net::IpAddress&)> is_answered) {
  impl_->is_answered = std::move(is_answered);
}

bool SoftPolicy::pass(net::IfIndex index, Direction direction, std::span<const uint8_t> frame,
                      net::TimePoint now) {
  const auto found = impl_->ports.find(index);
  if (found == impl_->ports.end()) return true;
  auto& port = found->second;
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  const auto verdict =
      impl_->judge(port, hook_of(direction), frame, static_cast<uint64_t>(nanoseconds));
  auto& count = port.counts[{direction, verdict.cls, verdict.reason}];
  ++count.packets;
  count.bytes += frame.size();
  return verdict.reason == PL_PASSED;
}

std::vector<Counter> SoftPolicy::counters(net::IfIndex index) const {
  std::vector<Counter> out;
  const auto found = impl_->ports.find(index);
  if (found == impl_->ports.end()) return out;
  for (const auto& [key, count] : found->second.counts) {
    const auto& [direction, cls, reason] = key;
    out.push_back({.port = index,
                   .direction = direction,
                   .bum_class = class_name(cls),
                   .reason = reason_name(reason),
                   .dropped = is_drop(reason),
                   .packets = count.packets,
                   .bytes = count.bytes});
  }
  return out;
}

}  // namespace dataplane
