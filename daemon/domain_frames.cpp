// SPDX-License-Identifier: GPL-2.0-or-later
// Frames of a broadcast domain: what the data path punts or pcap captures goes to the responder,
// and what that wants sent goes out.
#include <algorithm>
#include <utility>

#include "daemon/domain.h"
#include "daemon/trace.h"
#include "proxyarp/ethernet.h"

namespace peerland {
namespace {

constexpr std::size_t kEthernetHeader = 14;

net::MacAddress source_of(std::span<const uint8_t> frame) {
  return net::MacAddress::from_bytes(frame.subspan(6, 6));
}

bool is_ipv6(std::span<const uint8_t> frame) {
  return frame.size() >= kEthernetHeader && frame[12] == 0x86 && frame[13] == 0xdd;
}

// For a trace.
std::string verdict_text(proxyarp::Verdict verdict, bool copy) {
  return std::string(proxyarp::to_string(verdict)) + (copy ? " (went its way in the kernel)" : "");
}

}  // namespace

void Domain::punt(net::IfIndex port, std::span<const uint8_t> frame, bool copy, bool trapped,
                  net::TimePoint now) {
  if (port == devices_.vxlan) return core_punt(frame, now);
  PortState* state = port_by_index(port);
  if (state == nullptr || frame.size() < kEthernetHeader) return;
  if (trapped) return trap(*state, frame, now);
  // A MAC is learned from what the responder finds in order only.
  auto outcome = responder_.member_frame(port, frame, copy, now);
  count(*state, frame, outcome.verdict);
  trace(port, TraceDirection::In, frame, verdict_text(outcome.verdict, copy));
  switch (outcome.verdict) {
    case proxyarp::Verdict::SpoofedSender:
    case proxyarp::Verdict::NotOwner:
      report_frame(port, GuardCause::Spoofing, proxyarp::to_string(outcome.verdict), frame, now);
      break;
    case proxyarp::Verdict::MalformedArp:
    case proxyarp::Verdict::MalformedNd: break;
    default: seen(*state, source_of(frame), false, now);
  }
  run(std::move(outcome.actions), now);
}

void Domain::count(PortState& port, std::span<const uint8_t> frame, proxyarp::Verdict verdict) {
  const auto index = static_cast<std::size_t>(verdict);
  ++port.verdicts[index];
  ++verdicts_[is_ipv6(frame) ? 1 : 0][index];
}

// Sent to the anti-spoof MAC or to a dead address, and dropped.
void Domain::trap(PortState& port, std::span<const uint8_t> frame, net::TimePoint now) {
  count(port, frame, proxyarp::Verdict::Trapped);
  responder_.trapped_frame(port.index, frame, now);
}

// An answer of a member of another PE to a question of ours. The frame itself goes its way in the
// kernel: none of it is passed on from here.
void Domain::core_punt(std::span<const uint8_t> frame, net::TimePoint now) {
  auto outcome = responder_.core_frame(frame, now);
  trace(devices_.vxlan, TraceDirection::In, frame, verdict_text(outcome.verdict, true));
  std::erase_if(outcome.actions, [](const proxyarp::Action& action) {
    return std::holds_alternative<proxyarp::Flood>(action);
  });
  run(std::move(outcome.actions), now);
}

// What is for the MAC of the bridge is trapped only when it is no answer to a question of ours.
bool Domain::is_trapped(std::span<const uint8_t> frame) const {
  if ((frame[0] & 1) != 0) return false;
  const auto to = net::MacAddress::from_bytes(frame);
  const auto traps = this->traps();
  return std::ranges::find(traps, to, &dataplane::TrapMac::mac) != traps.end() &&
         (to != devices_.bridge_mac || proxyarp::classify(frame) == proxyarp::FrameClass::Other);
}

// pcap mode: a frame was captured at a port or came out of the fabric. The kernel floods nothing,
// so what is broadcast or multicast is ours to pass on; unicast went its way and is for learning
// only.
void Domain::soft_frame(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now) {
  if (frame.size() < kEthernetHeader) return;
  const bool core = port == devices_.vxlan;
  if (const PortState* from = find_port(port); from != nullptr && !from->guard.open()) return;
  if (!core && is_trapped(frame)) return punt(port, frame, false, true, now);
  const auto direction = core ? dataplane::Direction::Decap : dataplane::Direction::Ingress;
  if (!services_.soft_policy.pass(port, direction, frame, now)) {
    trace(port, TraceDirection::In, frame, "dropped by the BUM policy");
    return;
  }
  const bool group = (frame[0] & 1) != 0;
  const bool resolution = proxyarp::classify(frame) != proxyarp::FrameClass::Other;
  if (resolution && settings_.proxy.profile != proxyarp::Profile::Off) {
    if (core)
      soft_core_frame(frame, !group, now);
    else
      punt(port, frame, !group, false, now);
  } else if (group) {
    proxyarp::Flood rest{net::Bytes(frame.begin(), frame.end()), port, true, !core};
    flood(rest, now);
  }
  flush();
}

// Unicast went its way in the kernel.
void Domain::soft_core_frame(std::span<const uint8_t> frame, bool copy, net::TimePoint now) {
  if (copy) return core_punt(frame, now);
  auto outcome = responder_.core_frame(frame, now);
  trace(devices_.vxlan, TraceDirection::In, frame, verdict_text(outcome.verdict, false));
  run(std::move(outcome.actions), now);
}

void Domain::transmit(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now) {
  if (!uses_ebpf()) {
    const auto direction =
        port == devices_.vxlan ? dataplane::Direction::Encap : dataplane::Direction::Egress;
    if (!services_.soft_policy.pass(port, direction, frame, now)) return;
  }
  trace(port, TraceDirection::Out, frame, "sent by the daemon");
  services_.sender.send(port, frame);
}

void Domain::flood(const proxyarp::Flood& flood, net::TimePoint now) {
  if (flood.local)
    for (const auto& [name, port] : ports_)
      if (port.attached && port.up && port.index != flood.except)
        transmit(port.index, flood.frame, now);
  if (flood.core && !core_flood_.empty() && flood.except != devices_.vxlan)
    transmit(devices_.vxlan, flood.frame, now);
}

// --- traces

void Domain::trace(net::IfIndex port, TraceDirection direction, std::span<const uint8_t> frame,
                   std::string_view verdict) {
  for (const auto& one : traces_) one->add(port, direction, frame, verdict);
}

// The kernel answers without a word: while an address is traced, the responder has to.
void Domain::add_trace(const TracePtr& trace) {
  traces_.push_back(trace);
  if (uses_ebpf()) check(services_.fast_path->clear_binding(settings_.evpn.vni, trace->address()));
}

void Domain::remove_trace(const TracePtr& trace) {
  std::erase(traces_, trace);
  if (!uses_ebpf() || traced(trace->address())) return;
  for (const auto& entry : responder_.fast_entries())
    if (entry.ip == trace->address()) set_fast_entry(entry);
}

bool Domain::traced(const net::IpAddress& ip) const {
  return std::ranges::any_of(traces_, [&](const auto& one) { return one->address() == ip; });
}

void Domain::set_fast_entry(const proxyarp::SetFastEntry& entry) {
  if (!uses_ebpf()) {
    answered_.insert(entry.ip);
  } else if (!traced(entry.ip)) {
    check(services_.fast_path->set_binding({settings_.evpn.vni, entry.ip, entry.mac, entry.port,
                                            entry.flags.router, entry.flags.override_flag}));
  }
}

}  // namespace peerland
