// SPDX-License-Identifier: GPL-2.0-or-later
// The classifying code in user space: the table, the limiter, the answers to the byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "dataplane/packet_io.h"
#include "dataplane/port_abi.h"
#include "tests/dataplane/frames.h"

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
#include "dataplane/bpf/neighbor.h"

using namespace dataplane;
using namespace frames;
using namespace std::chrono_literals;

namespace {

constexpr net::IfIndex kPort{7};
const net::TimePoint kStart{std::chrono::hours(1)};

Direction direction(PortKind kind, bool in) { return direction_of(kind, in ? PL_IN : PL_OUT); }

TEST(SoftPolicyTable, EveryFrameInEveryDirection) {
  for (const auto& c : cases())
    for (PortKind kind : {PortKind::Member, PortKind::Core})
      for (bool in : {true, false}) {
        SCOPED_TRACE(c.name + " " + to_string(direction(kind, in)));
        SoftPolicy policy;
        policy.set_port(config_for(c, kPort, kind));
        const std::string want = c.in_only && !in ? "passed" : c.reason;
        EXPECT_EQ(policy.pass(kPort, direction(kind, in), c.frame, kStart), want == "passed");
        const auto counters = policy.counters(kPort);
        ASSERT_EQ(counters.size(), 1u);
        EXPECT_STREQ(counters[0].bum_class, c.bum_class);
        EXPECT_EQ(counters[0].reason, want);
        EXPECT_EQ(counters[0].direction, direction(kind, in));
        EXPECT_EQ(counters[0].dropped, want != "passed");
        EXPECT_EQ(counters[0].packets, 1u);
        EXPECT_EQ(counters[0].bytes, c.frame.size());
      }
}

TEST(SoftPolicyTable, AllowSwitchesNamedReasonsOffAndNoOthers) {
  std::set<std::string> switchable;
  for (const auto& reason : drop_reasons())
    if (reason.switchable) switchable.insert(reason.name);
  for (const auto& c : cases()) {
    if (std::string_view(c.reason) == "passed") continue;
    SCOPED_TRACE(c.name);
    SoftPolicy policy;
    auto config = config_for(c, kPort, PortKind::Member);
    config.policy.allow.insert(c.reason);
    policy.set_port(config);
    EXPECT_EQ(policy.pass(kPort, Direction::Ingress, c.frame, kStart),
              switchable.contains(c.reason));
  }
}

TEST(SoftPolicyTable, EverySwitchableReasonHasACase) {
  std::set<std::string> tested;
  for (const auto& c : cases()) tested.insert(c.reason);
  for (const auto& reason : drop_reasons())
    EXPECT_TRUE(!reason.switchable || tested.contains(reason.name)) << reason.name;
}

TEST(DropReasons, AreUniqueAndNamed) {
  std::set<std::string> names;
  for (const auto& reason : drop_reasons()) {
    EXPECT_TRUE(names.insert(reason.name).second) << reason.name;
    EXPECT_GT(std::string(reason.text).size(), 5u);
  }
  EXPECT_STREQ(reason_name(PL_PASSED), "passed");
  EXPECT_STREQ(reason_name(PL_VLAN_TAG), "vlan-tag");
  EXPECT_STREQ(reason_name(PL_UNKNOWN_UNICAST), "unknown-unicast");
  EXPECT_STREQ(reason_name(PL_REASONS), "?");
  for (unsigned cls = 0; cls < PL_LIMITED_CLASSES; ++cls) {
    EXPECT_STREQ(class_name(cls), to_string(static_cast<BumClass>(cls)));
    EXPECT_STREQ(reason_name(pl_limit_reason(cls, PL_NOTHING)), class_name(cls));
    EXPECT_EQ(reason_name(pl_limit_reason(cls, PL_LIMITED)),
              std::string(class_name(cls)) + "-limit");
  }
}

TEST(SoftPolicy, UnknownPortPasses) {
  SoftPolicy policy;
  EXPECT_TRUE(policy.pass(kPort, Direction::Ingress, arp_request(), kStart));
  EXPECT_TRUE(policy.counters(kPort).empty());
}

TEST(SoftPolicy, RunningOutOfABucketAndAChangeOfPolicy) {
  SoftPolicy policy;
  auto config = port_config(kPort, peering_policy());
  policy.set_port(config);
  const auto passed = [&](net::TimePoint at, int offered) {
    int n = 0;
    for (int i = 0; i < offered; ++i)
      n += policy.pass(kPort, Direction::Ingress, arp_request(), at);
    return n;
  };
  EXPECT_EQ(passed(kStart, 100), 20);
  EXPECT_EQ(passed(kStart + 1s, 100), 20);
  // A change of the rules is no new bucket.
  config.policy.ingress[0]->packets_per_second = 40;
  policy.set_port(config);
  EXPECT_LT(passed(kStart + 1s, 100), 3);
  EXPECT_EQ(passed(kStart + 3s, 100), 40);
}

TEST(SoftPolicy, AnsweredTargetsAreChargedToAnswers) {
  SoftPolicy policy;
  auto config = port_config(kPort, peering_policy());
  config.policy.answers = {.packets_per_second = 100, .bits_per_second = {}, .burst = 1s};
  policy.set_port(config);
  policy.set_answered([](net::Vni vni, const IpAddress& target) {
    return vni == net::Vni(100) && (target == ip("192.0.2.2") || target == ip("2001:db8:1::2"));
  });
  int arp_passed = 0, nd_passed = 0, other = 0;
  for (int i = 0; i < 60; ++i) {
    arp_passed += policy.pass(kPort, Direction::Ingress, arp_request(), kStart);
    nd_passed += policy.pass(kPort, Direction::Ingress, ns(), kStart);
    other +=
        policy.pass(kPort, Direction::Ingress, arp_request({.target = ip("192.0.2.9")}), kStart);
  }
  EXPECT_EQ(arp_passed + nd_passed, 100);
  EXPECT_EQ(other, 20);
}

// --- the limiter
struct Rate {
  Limit limit;
  uint32_t bytes;
  double offered;  // frames a second
  double want;     // frames a second
  double burst;    // frames at once
};
class Gcra : public testing::TestWithParam<Rate> {};
TEST_P(Gcra, PassesBurstAndRateExactly) {
  const auto& p = GetParam();
  const auto limit = to_abi(std::optional(p.limit));
  __u64 buckets[PL_UNITS] = {};
  const uint64_t start = 3'600'000'000'000;
  uint64_t at_once = 0;
  while (pl_charge(&limit, buckets, start, 1, p.bytes)) ++at_once;
  EXPECT_NEAR(static_cast<double>(at_once), p.burst, 1 + p.burst / 1000);
  constexpr double kSeconds = 20;
  uint64_t passed = 0;
  for (double t = 0; t < kSeconds; t += 1 / p.offered)
    passed += static_cast<uint64_t>(
        pl_charge(&limit, buckets, start + static_cast<uint64_t>(t * 1e9), 1, p.bytes));
  // With no burst to catch up by, each frame that passes waited for the next one offered.
  const double grid = p.burst < 2 ? p.want / p.offered : 0;
  EXPECT_NEAR(static_cast<double>(passed), p.want * kSeconds,
              2 + p.want * kSeconds * (0.001 + grid));
}
Limit pps(uint64_t n, std::chrono::milliseconds burst = 1s) {
  return {.packets_per_second = n, .bits_per_second = {}, .burst = burst};
}
Limit bps(uint64_t n, std::chrono::milliseconds burst = 1s) {
  return {.packets_per_second = {}, .bits_per_second = n, .burst = burst};
}
INSTANTIATE_TEST_SUITE_P(
    Rates, Gcra,
    testing::Values(Rate{pps(1), 60, 50, 1, 1}, Rate{pps(3), 60, 100, 3, 3},
                    Rate{pps(20), 60, 5000, 20, 20}, Rate{pps(1000, 100ms), 60, 20000, 1000, 100},
                    Rate{pps(1000, 0ms), 60, 20000, 1000, 1},
                    Rate{pps(70000, 10ms), 60, 300000, 70000, 700},
                    Rate{bps(1'000'000), 60, 20000, 1e6 / 8 / 60, 2058},
                    Rate{bps(1'000'000), 1514, 20000, 1e6 / 8 / 1514, 82.5},
                    Rate{bps(1'000'000, 1ms), 1514, 20000, 1e6 / 8 / 1514, 1},
                    // the tighter of two
                    Rate{{.packets_per_second = 100, .bits_per_second = 1'000'000, .burst = 1s},
                         1514,
                         20000,
                         1e6 / 8 / 1514,
                         82.5},
                    Rate{{.packets_per_second = 100, .bits_per_second = 1'000'000, .burst = 1s},
                         60,
                         20000,
                         100,
                         100},
                    // no more than a second of burst
                    Rate{pps(50, 5000ms), 60, 1000, 50, 50}));

TEST(Gcra, GsoFramesCountAsManyAndAreNotStarved) {
  const auto limit = to_abi(std::optional(pps(10)));
  __u64 buckets[PL_UNITS] = {};
  const uint64_t start = 3'600'000'000'000;
  EXPECT_TRUE(pl_charge(&limit, buckets, start, 45, 64000));
  for (uint64_t ms = 0; ms < 3500; ms += 10)
    EXPECT_FALSE(pl_charge(&limit, buckets, start + ms * 1'000'000, 1, 60)) << ms;
  EXPECT_TRUE(pl_charge(&limit, buckets, start + 3'700'000'000, 1, 60));
}

TEST(Gcra, NothingAndUnlimited) {
  __u64 buckets[PL_UNITS] = {};
  const auto none = to_abi(std::optional(pps(0))), also_none = to_abi(std::optional(bps(0))),
             all = to_abi(std::nullopt), empty = to_abi(std::optional(Limit{}));
  EXPECT_FALSE(pl_charge(&none, buckets, 1, 1, 60));
  EXPECT_FALSE(pl_charge(&also_none, buckets, 1, 1, 60));
  EXPECT_TRUE(pl_charge(&all, buckets, 1, 1, 60));
  EXPECT_TRUE(pl_charge(&empty, buckets, 1, 1, 60));
}

TEST(Gcra, ExactWhenThreadsShareABucket) {
  const auto limit = to_abi(std::optional(pps(20000)));
  __u64 buckets[PL_UNITS] = {};
  std::atomic<uint64_t> passed = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50000; ++i)
        passed += static_cast<uint64_t>(pl_charge(&limit, buckets, 3'600'000'000'000, 1, 60));
    });
  threads.clear();
  EXPECT_EQ(passed, 20000u);
}

// --- answers
pl_head head_of(const Bytes& frame) {
  pl_head head{};
  std::memcpy(head.b, frame.data(), std::min(frame.size(), sizeof head.b));
  return head;
}
pl_frame look(const Bytes& frame) {
  pl_frame out{};
  const auto head = head_of(frame);
  pl_source source{frame};
  pl_look(&head, static_cast<uint32_t>(std::min(frame.size(), sizeof head.b)),
          static_cast<uint32_t>(frame.size()), &out);
  pl_network_reason(&source, &head, &out);
  return out;
}

TEST(Answer, ArpToTheByte) {
  auto head = head_of(arp_request());
  head.b[50] = 0xee;  // padding of the request is not sent back
  pl_arp_answer(&head, kBob.bytes().data());
  Bytes want = arp(kAlice, kBob,
                   {.op = 2,
                    .sender_mac = kBob,
                    .sender = ip("192.0.2.2"),
                    .target_mac = kAlice,
                    .target = ip("192.0.2.1")});
  want.resize(PL_ARP_ANSWER);
  EXPECT_EQ(Bytes(head.b, head.b + PL_ARP_ANSWER), want);
}

TEST(Answer, NaToTheByteForAllFlags) {
  for (uint8_t flags = 0; flags <= (PL_ROUTER | PL_OVERRIDE); ++flags) {
    auto head = head_of(ns());
    head.b[PL_ETH + 1] = 0x0f;  // neither traffic class nor flow label are sent back
    pl_ns_answer(&head, kBob.bytes().data(), flags);
    const Bytes want = na({.from_mac = kBob,
                           .from = ip("2001:db8:1::2"),
                           .target = ip("2001:db8:1::2"),
                           .to = ip("2001:db8:1::1"),
                           .to_mac = kAlice,
                           .flags = static_cast<uint8_t>(0x40 | (flags & PL_ROUTER ? 0x80 : 0) |
                                                         (flags & PL_OVERRIDE ? 0x20 : 0))});
    EXPECT_EQ(Bytes(head.b, head.b + PL_NS_END), want);
  }
}

TEST(Answer, ChecksumsOfManyAddresses) {
  for (unsigned i = 0; i < 5000; ++i) {
    auto octets = std::array<uint8_t, 16>{0x20, 1, 0xd, 0xb8};
    octets[6] = static_cast<uint8_t>(i * 7);
    octets[13] = static_cast<uint8_t>(i >> 8);
    octets[14] = 0xff;
    octets[15] = static_cast<uint8_t>(i);
    const auto target = IpAddress::v6(octets);
    const auto request = ns({.target = target});
    auto head = head_of(request);
    const auto frame = look(request);
    ASSERT_TRUE(pl_ns_plain(&head, &frame)) << i;
    pl_ns_answer(&head, kBob.bytes().data(), PL_ROUTER);
    const auto want = na({.from_mac = kBob,
                          .from = target,
                          .target = target,
                          .to = ip("2001:db8:1::1"),
                          .to_mac = kAlice,
                          .flags = 0xc0});
    ASSERT_EQ(Bytes(head.b, head.b + PL_NS_END), want) << i;
  }
}

TEST(Plain, ArpForms) {
  const auto plain = [](const Bytes& frame) {
    const auto head = head_of(frame);
    const auto seen = look(frame);
    return pl_arp_plain(&head, &seen) != 0;
  };
  EXPECT_TRUE(plain(arp_request()));
  EXPECT_FALSE(plain(arp_request({.op = 2})));
  EXPECT_FALSE(plain(arp_request({.op = 257})));
  EXPECT_FALSE(plain(arp_request({.sender = ip("0.0.0.0")})));
  EXPECT_FALSE(plain(arp_request({.target = ip("192.0.2.1")})));
  EXPECT_FALSE(plain(arp(kBob, kAlice, {})));
  EXPECT_FALSE(plain(arp(mac("ff:ff:ff:ff:ff:fe"), kAlice, {})));
  EXPECT_FALSE(plain(arp(net::kBroadcastMac, kBob, {})));  // says it is Alice
  for (std::size_t at = 14; at < 20; ++at) {               // hardware and protocol types
    auto frame = arp_request();
    frame[at] ^= 1;
    EXPECT_FALSE(plain(frame)) << at;
  }
}

TEST(Plain, NsForms) {
  const auto plain = [](const Bytes& frame) {
    const auto head = head_of(frame);
    const auto seen = look(frame);
    return pl_ns_plain(&head, &seen) != 0;
  };
  EXPECT_TRUE(plain(ns()));
  EXPECT_TRUE(plain(ns({.target = ip("fe80::aabb:ccdd")})));
  auto padded = ns();
  padded.resize(100);
  EXPECT_TRUE(plain(padded));
  EXPECT_FALSE(plain(ns({.hop_limit = 254})));
  EXPECT_FALSE(plain(ns({.code = 1})));
  EXPECT_FALSE(plain(ns({.from = ip("::")})));
  EXPECT_FALSE(plain(ns({.from = ip("ff02::1")})));
  EXPECT_FALSE(plain(ns({.target = ip("ff02::1")})));
  EXPECT_FALSE(plain(ns({.to = ip("ff02::1:ff00:3")})));  // group of another target
  EXPECT_FALSE(plain(ns({.to = ip("ff02::1")})));
  EXPECT_FALSE(plain(ns({.to_mac = mac("33:33:ff:00:00:03")})));
  EXPECT_FALSE(plain(ns({.to_mac = net::kBroadcastMac})));
  EXPECT_FALSE(plain(ns({.options = Bytes{}})));
  EXPECT_FALSE(plain(ns({.options = option(1, kBob)})));  // says it is Bob
  EXPECT_FALSE(plain(ns({.options = option(2, kAlice)})));
  EXPECT_FALSE(plain(ns({.options = Bytes{1, 0, 2, 0, 0, 0, 0, 1}})));
  auto two = option(1, kAlice);
  two.insert(two.end(), {14, 1, 1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(plain(ns({.options = two})));
  for (std::size_t at = PL_IP6_SOURCE; at < PL_NS_END; ++at) {  // every octet that is summed
    auto frame = ns();
    frame[at] ^= 0x10;
    EXPECT_FALSE(plain(frame)) << at;
  }
  EXPECT_FALSE(plain(cut(ns(), 85)));
}

TEST(Claim, OfUnicastNeighborDiscovery) {
  const auto claim = [](const Bytes& bytes) {
    const auto head = head_of(bytes);
    const auto frame = look(bytes);
    pl_source source{bytes};
    pl_claim out{};
    const auto reason = pl_nd_claim(&source, &head, &frame, &out);
    return reason ? std::string(reason_name(reason))
           : !out.made
               ? "none"
               : to_string(*IpAddress::from_bytes(out.ip)) + " " +
                     to_string(MacAddress::from_bytes({reinterpret_cast<uint8_t*>(&out.mac), 6}));
  };
  EXPECT_EQ(claim(na()), "2001:db8:1::1 02:00:00:00:00:01");
  EXPECT_EQ(claim(na({.options = Bytes{}})), "2001:db8:1::1 02:00:00:00:00:01");
  EXPECT_EQ(claim(na({.options = option(2, kBob)})), "2001:db8:1::1 02:00:00:00:00:02");
  Bytes second{14, 2};
  second.resize(16);
  const auto own = option(2, kBob);
  second.insert(second.end(), own.begin(), own.end());
  EXPECT_EQ(claim(na({.options = second})), "2001:db8:1::1 02:00:00:00:00:02");
  EXPECT_EQ(claim(na({.options = Bytes{2, 0, 0, 0, 0, 0, 0, 0}})), "malformed");
  EXPECT_EQ(claim(na({.options = Bytes{2, 1, 0}})), "malformed");
  EXPECT_EQ(claim(cut(na(), 70)), "malformed");
  const auto bob = ip("2001:db8:1::2");
  EXPECT_EQ(claim(ns({.to = bob, .to_mac = kBob})), "2001:db8:1::1 02:00:00:00:00:01");
  EXPECT_EQ(claim(ns({.to = bob, .to_mac = kBob, .options = option(1, kBob)})),
            "2001:db8:1::1 02:00:00:00:00:02");
  EXPECT_EQ(claim(ns({.to = bob, .to_mac = kBob, .options = Bytes{}})), "none");
}

TEST(PortAbi, RefusesTablesThatAreTooLong) {
  PortConfig config;
  config.macs.resize(PL_MAX_MACS);
  EXPECT_TRUE(to_abi(config));
  config.macs.resize(PL_MAX_MACS + 1);
  EXPECT_THAT(to_abi(config).error(), testing::HasSubstr("64 MAC"));
  config.macs.clear();
  config.policy.allowed_ethertypes.resize(PL_MAX_ETHERTYPES + 1);
  EXPECT_THAT(to_abi(config).error(), testing::HasSubstr("EtherType"));
}

}  // namespace
