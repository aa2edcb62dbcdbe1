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
  bool observed = false;  // counted, but it passes
};

// Target of a request that could be answered at once.
std::optional<net::IpAddress> plain_target(const pl_head& head, const pl_frame& frame) {
  if (frame.tags != 0) return std::nullopt;
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
    std::map<std::tuple<Direction, unsigned, unsigned, bool>, pl_count> counts;
  };
  std::unordered_map<net::IfIndex, Port> ports;
  std::function<bool(net::Vni, const net::IpAddress&)> is_answered;

  std::function<void(const Violation&)> on_violation;

  Verdict judge(Port& port, int hook, std::span<const uint8_t> frame, uint64_t now) const;
  Verdict by_kind(Port& port, int hook, pl_source& source, pl_head& head, pl_frame& frame,
                  uint64_t now) const;
  void report(Port& port, unsigned reason, std::span<const uint8_t> frame, uint64_t now) const;
};

// Steps (0) to (3) of the data path.
Verdict SoftPolicy::Impl::by_kind(Port& port, int hook, pl_source& source, pl_head& head,
                                  pl_frame& frame, uint64_t now) const {
  const auto& config = port.config;
  unsigned reason = PL_PASSED;
  const bool back = hook == PL_IN && frame.group != 0 && !config.core &&
                    pl_came_back(port.state.sent, pl_frame_hash(&head, &frame), now) != 0 &&
                    !pl_source_listed(&config, pl_mac(head.b + 6));
  if (back && !pl_observed(config.observe, &frame, PL_LOOPED))
    reason = PL_LOOPED;
  else
    reason = pl_check(&source, &config, hook, &head, &frame);
  const unsigned wrong = reason != PL_PASSED ? reason : frame.observed;
  if (wrong != PL_PASSED && hook == PL_IN) report(port, wrong, source.frame, now);
  if (config.gate != PL_PASSED &&
      !(config.gate == PL_QUARANTINE && wrong == PL_PASSED && frame.cls == PL_CLASS_CONTROL))
    return {frame.cls, config.gate};
  if (reason == PL_PASSED && frame.observed != 0) return {frame.cls, frame.observed, true};
  return {frame.cls, reason};
}

void SoftPolicy::Impl::report(Port& port, unsigned reason, std::span<const uint8_t> frame,
                              uint64_t now) const {
  const auto& config = port.config;
  if (!on_violation || config.report == 0 || config.gate == PL_SHUT ||
      !pl_charge(&config.reports, port.state.reports, now, 1, 0))
    return;
  on_violation({.port = net::IfIndex(config.ifindex),
                .direction = direction_of(port.kind, PL_IN),
                .reason = reason_name(reason),
                .source = net::MacAddress::from_bytes(frame.subspan<6, 6>()),
                .frame = frame.first(std::min<std::size_t>(frame.size(), PL_REPORT_FRAME))});
}

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
  const auto kind = by_kind(port, hook, source, head, frame, now);
  if (kind.reason != PL_PASSED && !(kind.observed && port.config.observe == 0)) return kind;
  if (frame.cls == PL_CLASS_UNICAST || frame.cls == PL_CLASS_CONTROL) return kind;

  if (hook == PL_IN && port.config.proxy && !port.config.core && is_answered) {
    const auto target = plain_target(head, frame);
    if (target && is_answered(net::Vni(port.config.vni), *target)) {
      const bool within = pl_charge(&port.config.answers, port.state.answers, now, 1, len) != 0;
      return within ? kind : Verdict{frame.cls, PL_ANSWER_LIMIT};
    }
  }
  const unsigned reason = pl_within(&port.config, &port.state, hook, frame.cls, now, 1, len);
  if (reason != PL_PASSED && port.config.observe == 0) return {frame.cls, reason};
  if (hook == PL_OUT && frame.group != 0 && !port.config.core) {
    const auto hash = pl_frame_hash(&head, &frame);
    port.state.sent[hash >> 58 & (PL_SENT - 1)] = pl_sent_mark(hash, now);
  }
  if (kind.observed) return kind;
  return {frame.cls, reason, reason != PL_PASSED};
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

void SoftPolicy::set_violation_handler(std::function<void(const Violation&)> handler) {
  impl_->on_violation = std::move(handler);
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
  auto& count = port.counts[{direction, verdict.cls, verdict.reason, verdict.observed}];
  ++count.packets;
  count.bytes += frame.size();
  return verdict.reason == PL_PASSED || verdict.observed;
}

std::vector<Counter> SoftPolicy::counters(net::IfIndex index) const {
  std::vector<Counter> out;
  const auto found = impl_->ports.find(index);
  if (found == impl_->ports.end()) return out;
  for (const auto& [key, count] : found->second.counts) {
    const auto& [direction, cls, reason, observed] = key;
    out.push_back({.port = index,
                   .direction = direction,
                   .bum_class = class_name(cls),
                   .reason = reason_name(reason),
                   .dropped = is_drop(reason) && !observed,
                   .observed = observed,
                   .packets = count.packets,
                   .bytes = count.bytes});
  }
  return out;
}

}  // namespace dataplane
