// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/traffic.h"

#include <algorithm>
#include <iterator>

namespace peerland {

FlowCount& FlowCount::operator+=(const FlowCount& other) {
  packets += other.packets;
  bytes += other.bytes;
  dropped_packets += other.dropped_packets;
  dropped_bytes += other.dropped_bytes;
  observed_packets += other.observed_packets;
  return *this;
}

bool is_over_limit(std::string_view reason) {
  static constexpr std::string_view kClasses[] = {
      "arp", "nd", "broadcast", "multicast", "unknown-unicast", "arp-unicast", "nd-unicast"};
  return reason.ends_with("-limit") || std::ranges::find(kClasses, reason) != std::end(kClasses);
}

void TrafficMeter::roll(net::TimePoint now, std::chrono::system_clock::time_point wall) {
  if (current_.begin != net::TimePoint{} && now - current_.begin < interval_) return;
  if (current_.begin != net::TimePoint{}) {
    current_.end = now;
    past_.push_front(std::move(current_));
    if (past_.size() > kIntervals) past_.pop_back();
  }
  current_ = {};
  current_.begin = now;
  current_.from = wall;
}

uint64_t TrafficMeter::sample(const std::string& name, std::span<const dataplane::Counter> counters,
                              net::TimePoint now, std::chrono::system_clock::time_point wall) {
  roll(now, wall);
  Port& port = ports_[name];
  const bool first = port.at == net::TimePoint{};
  const double seconds = std::chrono::duration<double>(now - port.at).count();
  std::map<FlowKey, FlowCount> flows;
  uint64_t over = 0;
  for (const auto& c : counters) {
    const FlowKey key{c.direction, c.bum_class};
    auto& last = port.last[{key, c.reason}];
    // What is less than before was counted anew.
    const uint64_t packets = c.packets - (c.packets < last.first ? 0 : last.first);
    const uint64_t bytes = c.bytes - (c.bytes < last.second ? 0 : last.second);
    last = {c.packets, c.bytes};
    if (first || packets == 0) continue;
    FlowCount count{packets, bytes, 0, 0, 0};
    if (c.dropped) {
      count.dropped_packets = packets;
      count.dropped_bytes = bytes;
    }
    if (c.observed) count.observed_packets = packets;
    flows[key] += count;
    if (!c.dropped && !c.observed) continue;
    current_.reasons[name][{c.direction, c.reason}] += packets;
    if (c.direction == dataplane::Direction::Ingress && is_over_limit(c.reason)) over += packets;
  }
  port.at = now;
  if (first || seconds <= 0) return 0;
  port.rates.clear();
  for (const auto& [key, count] : flows) {
    const auto a_second = [&](uint64_t number) { return static_cast<double>(number) / seconds; };
    const FlowRate rate{a_second(count.packets), a_second(count.bytes) * 8,
                        a_second(count.dropped_packets)};
    port.rates[key] = rate;
    IntervalFlow& flow = current_.ports[name][key];
    flow.count += count;
    flow.peak_packets = std::max(flow.peak_packets, rate.packets);
    flow.peak_bits = std::max(flow.peak_bits, rate.bits);
  }
  return over;
}

void TrafficMeter::note(std::string_view what, uint64_t total, net::TimePoint now,
                        std::chrono::system_clock::time_point wall) {
  roll(now, wall);
  const auto [last, first] = noted_.try_emplace(what, total);
  if (!first && total > last->second) current_.notes[what] += total - last->second;
  last->second = total;
}

const std::map<FlowKey, FlowRate>* TrafficMeter::rates(const std::string& port) const {
  const auto found = ports_.find(port);
  return found == ports_.end() ? nullptr : &found->second.rates;
}

}  // namespace peerland
