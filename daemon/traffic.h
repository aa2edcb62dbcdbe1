// SPDX-License-Identifier: GPL-2.0-or-later
// From the data path's counters to rates now and counts by interval, by port, direction and class.
// A port is known by its name, so that it may go and come back. No clock: time comes in.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/fast_path.h"
#include "net/time.h"

namespace peerland {

struct FlowCount {
  uint64_t packets = 0, bytes = 0;                  // all that were seen
  uint64_t dropped_packets = 0, dropped_bytes = 0;  // of these
  uint64_t observed_packets = 0;                    // would have been dropped
  FlowCount& operator+=(const FlowCount& other);
};
struct FlowRate {
  double packets = 0, bits = 0;  // a second
  double dropped_packets = 0;
};
// Direction and class; names of classes and reasons are the data path's, which live forever.
using FlowKey = std::pair<dataplane::Direction, std::string_view>;

struct IntervalFlow {
  FlowCount count;
  double peak_packets = 0, peak_bits = 0;  // a second, between two samples
};
struct Interval {
  std::chrono::system_clock::time_point from{};
  net::TimePoint begin{}, end{};  // end: epoch while it lasts
  std::map<std::string, std::map<FlowKey, IntervalFlow>> ports;
  // Frames that were dropped, or would have been, by port and reason.
  std::map<std::string, std::map<std::pair<dataplane::Direction, std::string_view>, uint64_t>>
      reasons;
  std::map<std::string_view, uint64_t> notes;  // by what was noted
};

// True for the reasons that mean: over a limit, or of a class that has none.
[[nodiscard]] bool is_over_limit(std::string_view reason);

class TrafficMeter {
 public:
  static constexpr std::size_t kIntervals = 96;  // kept

  void set_interval(std::chrono::seconds interval) { interval_ = interval; }
  [[nodiscard]] std::chrono::seconds interval() const { return interval_; }
  // All counters of a port at this time. Returns how many frames of the member were over limits
  // since the last sample.
  uint64_t sample(const std::string& port, std::span<const dataplane::Counter> counters,
                  net::TimePoint now, std::chrono::system_clock::time_point wall);
  // Another number that only grows, of the whole domain; `what` lives forever.
  void note(std::string_view what, uint64_t total, net::TimePoint now,
            std::chrono::system_clock::time_point wall);
  void forget(const std::string& port) { ports_.erase(port); }

  [[nodiscard]] const std::map<FlowKey, FlowRate>* rates(const std::string& port) const;
  [[nodiscard]] const Interval& current() const { return current_; }
  [[nodiscard]] const std::deque<Interval>& past() const { return past_; }  // latest first

 private:
  struct Port {
    std::map<std::pair<FlowKey, std::string_view>, std::pair<uint64_t, uint64_t>> last;
    net::TimePoint at{};
    std::map<FlowKey, FlowRate> rates;
  };
  void roll(net::TimePoint now, std::chrono::system_clock::time_point wall);

  std::chrono::seconds interval_{900};
  std::map<std::string, Port> ports_;
  std::map<std::string_view, uint64_t> noted_;
  Interval current_;
  std::deque<Interval> past_;
};

}  // namespace peerland
