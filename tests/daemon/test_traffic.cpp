// SPDX-License-Identifier: GPL-2.0-or-later
// Rates, intervals and what was seen of violations, from counters and reports, with a clock of our
// own.
#include <gtest/gtest.h>

#include "daemon/traffic.h"
#include "daemon/violation_log.h"

using namespace peerland;
using namespace std::chrono_literals;
using dataplane::Counter;
using dataplane::Direction;

namespace {

Counter passed(const char* bum_class, uint64_t packets, Direction direction = Direction::Ingress) {
  Counter c{};
  c.direction = direction;
  c.bum_class = bum_class;
  c.reason = "passed";
  c.packets = packets;
  c.bytes = packets * 60;
  return c;
}
Counter dropped(const char* bum_class, const char* reason, uint64_t packets,
                Direction direction = Direction::Ingress) {
  Counter c = passed(bum_class, packets, direction);
  c.reason = reason;
  c.dropped = true;
  return c;
}

class Meter : public testing::Test {
 protected:
  uint64_t sample(std::vector<Counter> counters, const char* port = "m1") {
    return meter.sample(port, counters, now, wall);
  }
  void after(std::chrono::seconds time) {
    now += time;
    wall += time;
  }
  const FlowRate& rate(const char* bum_class, Direction direction = Direction::Ingress) {
    return meter.rates("m1")->at({direction, bum_class});
  }

  TrafficMeter meter;
  net::TimePoint now{net::TimePoint{} + 1h};
  std::chrono::system_clock::time_point wall{std::chrono::sys_days(2026y / 12 / 1)};
};

}  // namespace

TEST_F(Meter, WhatWasThereAtFirstIsNoRate) {
  EXPECT_EQ(sample({passed("arp", 1000), dropped("arp", "arp-limit", 5000)}), 0u);
  EXPECT_TRUE(meter.rates("m1")->empty());
  EXPECT_TRUE(meter.current().ports.empty());
  EXPECT_EQ(meter.rates("m2"), nullptr);
}

TEST_F(Meter, RatesAreOfTheLastGap) {
  sample({passed("arp", 1000)});
  after(2s);
  EXPECT_EQ(sample({passed("arp", 1040), dropped("arp", "arp-limit", 160),
                    passed("arp", 6, Direction::Egress)}),
            160u);
  EXPECT_DOUBLE_EQ(rate("arp").packets, 100);
  EXPECT_DOUBLE_EQ(rate("arp").dropped_packets, 80);
  EXPECT_DOUBLE_EQ(rate("arp").bits, 100 * 480);
  EXPECT_DOUBLE_EQ(rate("arp", Direction::Egress).packets, 3);
  after(2s);
  EXPECT_EQ(sample({passed("arp", 1040), dropped("arp", "arp-limit", 160)}), 0u);
  EXPECT_TRUE(meter.rates("m1")->empty());
}

TEST_F(Meter, OnlyWhatIsOverALimitOfTheMemberIsAStorm) {
  sample({});
  after(1s);
  EXPECT_EQ(sample({dropped("arp", "arp-limit", 1), dropped("broadcast", "broadcast", 10),
                    dropped("arp", "answer-limit", 100), dropped("control", "stp", 1000),
                    dropped("unicast", "source-mac", 10000),
                    dropped("arp", "arp-limit", 100000, Direction::Egress)}),
            111u);
}

TEST_F(Meter, CountersThatBeginAnew) {
  sample({passed("nd", 500)});
  after(1s);
  sample({passed("nd", 20)});
  EXPECT_DOUBLE_EQ(rate("nd").packets, 20);
}

TEST_F(Meter, IntervalsHaveSumsAndPeaks) {
  meter.set_interval(10s);
  uint64_t arp = 0, stp = 0;
  sample({});
  for (const uint64_t more : {10u, 50u, 0u, 20u, 20u}) {
    after(2s);
    sample({passed("arp", arp += more), dropped("control", "stp", stp += 1)});
  }
  ASSERT_EQ(meter.past().size(), 1u);  // the last sample is the next one's
  const Interval& last = meter.past().front();
  EXPECT_EQ(last.end - last.begin, 10s);
  EXPECT_EQ(last.from, std::chrono::sys_days(2026y / 12 / 1));
  const auto& flow = last.ports.at("m1").at({Direction::Ingress, "arp"});
  EXPECT_EQ(flow.count.packets, 80u);
  EXPECT_DOUBLE_EQ(flow.peak_packets, 25);
  EXPECT_DOUBLE_EQ(flow.peak_bits, 25 * 480);
  EXPECT_EQ(last.reasons.at("m1").at({Direction::Ingress, "stp"}), 4u);
  EXPECT_EQ(meter.current().ports.at("m1").at({Direction::Ingress, "arp"}).count.packets, 20u);
  for (int i = 0; i < 1000; ++i, after(10s)) sample({});
  EXPECT_EQ(meter.past().size(), TrafficMeter::kIntervals);
}

TEST_F(Meter, NotesAreWhatWasAdded) {
  meter.note("sponged", 7, now, wall);
  EXPECT_TRUE(meter.current().notes.empty());
  meter.note("sponged", 10, now, wall);
  meter.note("sponged", 11, now, wall);
  EXPECT_EQ(meter.current().notes.at("sponged"), 4u);
}

TEST(ViolationLog, LikeOnesAreOneEntryLatestFirst) {
  ViolationLog log;
  net::TimePoint now{net::TimePoint{} + 1h};
  const auto add = [&](const char* port, uint8_t last, const char* reason = "source-mac") {
    ViolationEntry entry;
    entry.port = port;
    entry.reason = reason;
    entry.kind = GuardCause::Macs;
    entry.mac = net::MacAddress({2, 0, 0, 0, 0, last});
    entry.frame.resize(200);
    now += 1s;
    return log.add(std::move(entry), now);
  };
  EXPECT_TRUE(add("m1", 1));
  EXPECT_TRUE(add("m1", 2));
  EXPECT_FALSE(add("m1", 1));
  EXPECT_TRUE(add("m1", 1, "stp"));
  EXPECT_TRUE(add("m2", 1));
  std::vector<std::string> seen;
  log.for_each("m1", [&](const ViolationEntry& one) {
    seen.push_back(to_string(one.mac).substr(16) + " " + one.reason + " " +
                   std::to_string(one.reports));
    EXPECT_EQ(one.frame.size(), ViolationLog::kHead);
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"1 stp 1", "1 source-mac 2", "2 source-mac 1"}));
  for (uint8_t i = 0; i < 200; ++i) add("m1", i);
  std::size_t count = 0;
  log.for_each("", [&](const ViolationEntry&) { ++count; });
  EXPECT_EQ(count, ViolationLog::kMostOfAPort + 1);
  log.forget("m1");
  count = 0;
  log.for_each("", [&](const ViolationEntry&) { ++count; });
  EXPECT_EQ(count, 1u);
}

TEST(ViolationLog, TheAddressThatAFrameSpeaksFor) {
  std::vector<uint8_t> arp(60), nd(86);
  arp[12] = 8;
  arp[13] = 6;
  arp[28] = 192;
  arp[31] = 7;
  EXPECT_EQ(claimed_address(arp), net::IpAddress::parse("192.0.0.7"));
  EXPECT_EQ(claimed_address(std::span(arp).first(31)), std::nullopt);
  nd[12] = 0x86;
  nd[13] = 0xdd;
  nd[20] = 58;
  nd[22] = 0x20;
  nd[62] = 0xfe;
  nd[54] = 135;
  EXPECT_EQ(claimed_address(nd), net::IpAddress::parse("2000::"));
  nd[54] = 136;
  EXPECT_EQ(claimed_address(nd), net::IpAddress::parse("fe00::"));
  nd[54] = 128;
  EXPECT_EQ(claimed_address(nd), std::nullopt);
  for (std::size_t cut = 0; cut < 78; ++cut) {
    nd[54] = 136;
    EXPECT_EQ(claimed_address(std::span(nd).first(cut)), std::nullopt) << cut;
  }
}
