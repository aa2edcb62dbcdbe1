// SPDX-License-Identifier: GPL-2.0-or-later
// Port security and the policy's finer points by BPF_PROG_TEST_RUN: gates, loops, observing,
// reports, the shared cap to a member, VTEPs, and counters that outlive a device.
#include "tests/dataplane/program.h"

using namespace lab;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

namespace {

const Limit kNothing{.packets_per_second = 0, .bits_per_second = {}};

Bytes tcp(const net::MacAddress& from = kAlice) {
  return eth(kBob, from, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(20)));
}
Bytes lacp() { return to_group("01:80:c2:00:00:02", 0x8809); }
Bytes ra() { return icmpv6_to(mac("33:33:00:00:00:01"), "ff02::1", 134); }

struct Seen {
  net::IfIndex port;
  Direction direction;
  std::string reason;
  net::MacAddress source;
  Bytes frame;
};

class Guard : public BpfProgram {
 protected:
  std::vector<Seen> violations(std::size_t max = 1024) {
    std::vector<Seen> out;
    fast_path->drain_violations(
        [&](const Violation& v) {
          out.push_back(
              {v.port, v.direction, v.reason, v.source, Bytes(v.frame.begin(), v.frame.end())});
        },
        max);
    return out;
  }
  [[nodiscard]] uint64_t counted(Direction direction, std::string_view bum_class,
                                 std::string_view reason, bool observed = false) const {
    for (const auto& c : fast_path->counters(port))
      if (c.direction == direction && c.bum_class == bum_class && c.reason == reason &&
          c.observed == observed)
        return c.packets;
    return 0;
  }
};

// --- gates
TEST_F(Guard, NothingPassesAClosedGateInEitherDirection) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  for (const auto& [gate, reason] :
       {std::pair{Gate::Quarantine, "quarantine"}, std::pair{Gate::Shut, "shut"}})
    for (int hook : {PL_IN, PL_OUT})
      for (const auto& c : cases()) {
        if (kernel_refuses(c.frame)) continue;
        SCOPED_TRACE(c.name + " " + reason + (hook == PL_IN ? " in" : " out"));
        auto config = config_for(c, port, PortKind::Member);
        config.proxy = true;
        config.gate = gate;
        set(config);
        Result result;
        const auto changed = moved([&] { result = run(c.frame, hook); });
        EXPECT_EQ(result.verdict, TC_ACT_SHOT);
        ASSERT_THAT(changed, SizeIs(1));
        EXPECT_THAT(changed[0], testing::EndsWith(std::string(" ") + reason));
        EXPECT_THAT(punts(), IsEmpty());
      }
  set(port_config(port));
  EXPECT_EQ(run(arp_request()).verdict, TC_ACT_REDIRECT);
  EXPECT_EQ(run(tcp()).verdict, kUnspec);
}

TEST_F(Guard, LacpInQuarantineButNotWhenShut) {
  auto config = port_config(port);
  config.gate = Gate::Quarantine;
  set(config);
  expect(lacp(), TC_ACT_SHOT, "control quarantine");
  config.policy.allow = {"lacp"};
  set(config);
  expect(lacp(), kUnspec, "control passed");
  // The bridge floods BPDUs, whatever the policy allows.
  config.policy.allow = {"lacp", "stp"};
  set(config);
  expect(to_group("01:80:c2:00:00:00", 38, Bytes{0x42, 0x42, 3, 0}), TC_ACT_SHOT,
         "multicast quarantine");
  config.gate = Gate::Shut;
  set(config);
  expect(lacp(), TC_ACT_SHOT, "control shut");
}

TEST_F(Guard, QuarantineStillTellsWhatIsWrong) {
  auto config = port_config(port);
  config.gate = Gate::Quarantine;
  set(config);
  expect(ra(), TC_ACT_SHOT, "multicast quarantine");
  run(tcp());
  const auto seen = violations();
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].reason, "ra");
  config.gate = Gate::Shut;
  set(config);
  run(ra());
  EXPECT_THAT(violations(), IsEmpty());
}

// --- loops
TEST_F(Guard, OwnMacsComeBackThroughALoopOnly) {
  auto config = port_config(port);
  config.own_macs = {mac("02:00:00:00:be:00"), mac("02:00:00:00:be:01")};
  set(config);
  for (const auto& own : config.own_macs) {
    expect(tcp(own), TC_ACT_SHOT, "unicast loop");
    expect(arp_request({.sender_mac = own}), TC_ACT_SHOT, "broadcast loop");
    expect(eth(mac("01:80:c2:00:00:0e"), own, 0x88cc, Bytes(46)), TC_ACT_SHOT, "multicast loop");
    EXPECT_EQ(run(tcp(own), PL_OUT).verdict, kUnspec);
  }
  expect(tcp(), kUnspec, "unicast passed");
  const auto seen = violations();
  ASSERT_THAT(seen, SizeIs(6));
  EXPECT_EQ(seen[0].source, config.own_macs[0]);
  EXPECT_EQ(seen[0].reason, "loop");
}

TEST_F(Guard, TheSameFrameComesBack) {
  const auto flood = udp4("255.255.255.255", 9);
  auto another = flood;
  another[40] ^= 1;
  auto config = port_config(port);
  set(config);
  expect(flood, kUnspec, "broadcast passed");  // not sent out so far
  EXPECT_EQ(run(flood, PL_OUT).verdict, kUnspec);
  expect(another, kUnspec, "broadcast passed");
  expect(flood, TC_ACT_SHOT, "broadcast loop");
  EXPECT_EQ(violations().size(), 1u);
  // Unicast comes and goes; a source that is provisioned here repeats what it likes.
  EXPECT_EQ(run(tcp(), PL_OUT).verdict, kUnspec);
  expect(tcp(), kUnspec, "unicast passed");
  config.macs = {kAlice};
  set(config);
  expect(flood, kUnspec, "broadcast passed");
  // What did not go out can't come back.
  config.macs = {};
  config.policy.egress[3] = kNothing;
  set(config);
  const auto group = udp4("239.1.2.3", 9);
  EXPECT_EQ(run(group, PL_OUT).verdict, TC_ACT_SHOT);
  expect(group, kUnspec, "multicast passed");
  // Core ports are not looked at: the tunnels have split horizon.
  config.kind = PortKind::Core;
  set(config);
  expect(flood, kUnspec, "broadcast passed");
}

// --- observing
TEST_F(Guard, ObservedIsJudgedTheSameAndPasses) {
  for (const auto& c : cases()) {
    if (kernel_refuses(c.frame)) continue;
    for (PortKind kind : {PortKind::Member, PortKind::Core})
      for (int hook : {PL_IN, PL_OUT}) {
        SCOPED_TRACE(c.name + (kind == PortKind::Core ? " core" : " member") +
                     (hook == PL_IN ? " in" : " out"));
        auto config = config_for(c, port, kind);
        config.policy.observe = true;
        set(config);
        const bool passes = std::string_view(c.reason) == "passed" || (c.in_only && hook == PL_OUT);
        Result result;
        const auto changed = moved([&] { result = run(c.frame, hook); });
        if (std::string_view(c.reason) == "malformed" && c.tags) continue;  // nothing to go on with
        EXPECT_EQ(result.verdict, kUnspec);
        ASSERT_THAT(changed, SizeIs(1));
        if (passes)
          EXPECT_EQ(changed[0], std::string(c.bum_class) + " passed");
        else  // the class may be known better than where the frame would have been dropped
          EXPECT_THAT(changed[0], testing::EndsWith(std::string(" ") + c.reason + " observed"));
        for (const auto& counter : fast_path->counters(port))
          EXPECT_FALSE(counter.observed && counter.dropped);
      }
  }
}

TEST_F(Guard, ObservedLimitsCountWhatTheyWouldDrop) {
  auto config = port_config(port);
  config.policy.observe = true;
  config.policy.ingress[2] = at_once(10);
  config.policy.egress_total = at_once(5);
  set(config);
  const auto frame = udp4("255.255.255.255", 9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(run(frame).verdict, kUnspec);
  const auto passed = counted(Direction::Ingress, "broadcast", "passed");
  EXPECT_GE(passed, 10u);
  EXPECT_LE(passed, 15u);
  EXPECT_EQ(counted(Direction::Ingress, "broadcast", "broadcast-limit", true), 100 - passed);
  EXPECT_EQ(counted(Direction::Ingress, "broadcast", "broadcast-limit"), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(run(frame, PL_OUT).verdict, kUnspec);
  EXPECT_GE(counted(Direction::Egress, "broadcast", "egress-cap", true), 90u);
}

TEST_F(Guard, ObservingGoesOnWithTheProxy) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  auto config = port_config(port);
  config.policy.observe = true;
  config.policy.allowed_ethertypes = {0x0800};
  set(config);
  Result result;
  EXPECT_THAT(moved([&] { result = run(arp_request()); }),
              UnorderedElementsAre("arp answered", "arp ethertype observed"));
  EXPECT_EQ(result.verdict, TC_ACT_REDIRECT);
  // A false claim is seen, and told as it is without observing.
  EXPECT_THAT(moved([&] { result = run(arp(kBob, kCarol, {.op = 2, .sender_mac = kCarol})); }),
              ElementsAre("arp-unicast ethertype observed"));
  EXPECT_EQ(result.verdict, kUnspec);
  config.policy.allowed_ethertypes = {0x0806};
  set(config);
  EXPECT_THAT(moved([&] { result = run(arp(kBob, kCarol, {.op = 2, .sender_mac = kCarol})); }),
              ElementsAre("arp-unicast spoofed-sender observed"));
  EXPECT_EQ(result.verdict, kUnspec);
}

TEST_F(Guard, ForeignSourcesThatAreOnlyCountedAreLimitedAllTheSame) {
  auto config = port_config(port);
  config.enforce_macs = config.observe_macs = true;
  config.macs = {kBob};
  config.policy.ingress[2] = at_once(10);
  set(config);
  EXPECT_EQ(run(tcp()).verdict, kUnspec);
  EXPECT_EQ(counted(Direction::Ingress, "unicast", "source-mac", true), 1u);
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += run(udp4("255.255.255.255", 9)).verdict == kUnspec;
  EXPECT_GE(passed, 10);
  EXPECT_LE(passed, 15);
  EXPECT_EQ(run(ra()).verdict, TC_ACT_SHOT);
  EXPECT_EQ(violations().at(0).reason, "source-mac");
}

// --- reports
TEST_F(Guard, ReportsNameReasonAndSourceWithTheHeadOfTheFrame) {
  auto config = port_config(port);
  config.enforce_macs = true;
  config.macs = {kAlice};
  set(config);
  bind_alice();
  auto longer = tcp(kCarol);
  longer.resize(1000, 0x77);
  run(longer);
  run(ra());
  run(arp(kBob, kAlice, {.op = 2, .sender_mac = kCarol}));
  run(ra(), PL_OUT);  // not the member's fault
  run(tcp());
  const auto seen = violations();
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[0].port, port);
  EXPECT_EQ(seen[0].direction, Direction::Ingress);
  EXPECT_EQ(seen[0].reason, "source-mac");
  EXPECT_EQ(seen[0].source, kCarol);
  EXPECT_EQ(seen[0].frame, cut(longer, PL_REPORT_FRAME));
  EXPECT_EQ(seen[1].reason, "ra");
  EXPECT_EQ(seen[1].frame, ra());
  EXPECT_EQ(seen[2].reason, "spoofed-sender");
  config.report_violations = false;
  set(config);
  run(ra());
  EXPECT_THAT(violations(), IsEmpty());
  config.report_violations = true;
  config.kind = PortKind::Core;
  set(config);
  run(ra());
  const auto core = violations();
  ASSERT_THAT(core, SizeIs(1));
  EXPECT_EQ(core[0].direction, Direction::Decap);
}

TEST_F(Guard, AStormOfViolationsIsReportedAtARate) {
  set(port_config(port));
  auto second = port_config(other);
  set(second);
  const auto begin = std::chrono::steady_clock::now();
  run(ra(), PL_IN, 5000);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto seen = violations(100000).size();
  EXPECT_GE(seen, 20u);
  EXPECT_LE(seen, 21 + static_cast<std::size_t>(took.count() * 20));
  EXPECT_EQ(counted(Direction::Ingress, "multicast", "ra"), 5000u);
  const auto mine = port;
  port = other;  // has a rate of its own
  run(ra());
  port = mine;
  EXPECT_EQ(violations().size(), 1u);
  EXPECT_EQ(violations(0).size(), 0u);
}

// --- what all classes share to a member
TEST_F(Guard, ArpAndNdComeFirstUnderTheCap) {
  auto config = port_config(port);
  config.proxy = false;
  config.policy.egress_total = at_once(100);
  set(config);
  const Bytes others[] = {udp4("255.255.255.255", 9), udp4("239.1.2.3", 9)};
  for (int i = 0; i < 200; ++i) run(others[i % 2], PL_OUT);
  const auto passed = counted(Direction::Egress, "broadcast", "passed") +
                      counted(Direction::Egress, "multicast", "passed");
  EXPECT_GE(passed, 45u);
  EXPECT_LE(passed, 70u);  // half of the burst is kept for ARP and ND
  int arp_passed = 0, nd_passed = 0;
  for (int i = 0; i < 10; ++i) {
    arp_passed += run(arp_request(), PL_OUT).verdict == kUnspec;
    nd_passed += run(ns(), PL_OUT).verdict == kUnspec;
  }
  EXPECT_EQ(arp_passed, 10);
  EXPECT_EQ(nd_passed, 10);
  for (int i = 0; i < 200; ++i) run(arp_request(), PL_OUT);
  EXPECT_GE(counted(Direction::Egress, "arp", "egress-cap"), 120u);
  EXPECT_GE(counted(Direction::Egress, "broadcast", "egress-cap"), 50u);
  // Neither ingress nor what is for one host, nor the tunnel's side.
  EXPECT_EQ(run(others[0]).verdict, TC_ACT_SHOT) << "came back";
  EXPECT_EQ(run(udp4("239.9.9.9", 9)).verdict, kUnspec);
  ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
  EXPECT_EQ(run(tcp(), PL_OUT).verdict, kUnspec);
  EXPECT_EQ(run(arp(kBob, kAlice, {}), PL_OUT).verdict, kUnspec);
  config.kind = PortKind::Core;
  set(config);
  EXPECT_EQ(run(others[0], PL_OUT).verdict, kUnspec);
}

TEST_F(Guard, UnknownUnicastIsUnderTheCapUnlessItIsKeptOutAnyway) {
  auto config = port_config(port);
  config.policy.egress_total = kNothing;
  set(config);
  EXPECT_EQ(run(tcp(), PL_OUT).verdict, TC_ACT_SHOT);
  EXPECT_EQ(counted(Direction::Egress, "unknown-unicast", "egress-cap"), 1u);
  config.policy.egress[4] = kNothing;
  set(config);
  EXPECT_EQ(run(tcp(), PL_OUT).verdict, kUnspec);
}

TEST_F(Guard, TheCapDoesNotChargeTheClassForWhatItRefuses) {
  auto config = port_config(port);
  config.policy.egress[2] = at_once(1000);
  config.policy.egress_total = kNothing;
  set(config);
  for (int i = 0; i < 500; ++i) run(udp4("255.255.255.255", 9), PL_OUT);
  EXPECT_EQ(counted(Direction::Egress, "broadcast", "egress-cap"), 500u);
  config.policy.egress_total = {};
  set(config);
  int passed = 0;
  for (int i = 0; i < 1000; ++i) passed += run(udp4("255.255.255.255", 9), PL_OUT).verdict == -1;
  EXPECT_EQ(passed, 1000);
}

// --- the underlay
struct Vxlan {
  const char* from = "198.51.100.2";
  const char* to = "198.51.100.1";
  uint32_t vni = 100;
  uint16_t port = 4789;
  Bytes inner = tcp();
  Bytes options = {};
  uint16_t fragment = 0;
  std::vector<uint8_t> chain = {};  // IPv6 extension headers
};
Bytes vxlan(const Vxlan& v) {
  net::ByteWriter out;
  out.u16(50000);
  out.u16(v.port);
  out.u16(static_cast<uint16_t>(16 + v.inner.size()));
  out.u16(0);
  out.u32(0x08000000);
  out.u32(v.vni << 8);
  out.bytes(v.inner);
  const auto from = ip(v.from), to = ip(v.to);
  if (from.is_v4())
    return eth(kBob, kAlice, 0x0800, ipv4(17, from, to, out.take(), v.options, v.fragment));
  net::ByteWriter chain;
  for (std::size_t i = 0; i < v.chain.size(); ++i) {
    chain.u8(i + 1 < v.chain.size() ? v.chain[i + 1] : 17);
    chain.u8(0);
    chain.u16(v.chain[i] == 44 ? v.fragment : 0);
    chain.u32(0);
  }
  chain.bytes(out.take());
  return eth(kBob, kAlice, 0x86dd, ipv6(v.chain.empty() ? 17 : v.chain[0], from, to, chain.take()));
}

class Underlay : public Guard {
 protected:
  void SetUp() override {
    Guard::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    put(underlay());
    for (const char* vtep : {"198.51.100.2", "2001:db8:ff::2"})
      ASSERT_TRUE(fast_path->add_vtep(ip(vtep)));
  }
  [[nodiscard]] UnderlayConfig underlay() const {
    UnderlayConfig out;
    out.index = other;
    out.local = ip("198.51.100.1");
    out.vnis = {net::Vni(100), net::Vni(200)};
    return out;
  }
  void put(const UnderlayConfig& config) {
    const auto done = fast_path->set_underlay(config);
    ASSERT_TRUE(done) << done.error().what;
    if (guard >= 0) close(guard);
    const int link =
        bpf_obj_get((pin_directory() + "/links/" + std::to_string(other.value) + "_under").c_str());
    ASSERT_GE(link, 0);
    bpf_link_info info{};
    uint32_t size = sizeof info;
    ASSERT_EQ(bpf_obj_get_info_by_fd(link, &info, &size), 0);
    guard = bpf_prog_get_fd_by_id(info.prog_id);
    close(link);
  }
  int judge(const Bytes& frame) {
    const int mine = program[PL_IN];
    const auto device = port;
    program[PL_IN] = guard;
    port = other;
    const int verdict = run(frame).verdict;
    program[PL_IN] = mine;
    port = device;
    return verdict;
  }
  [[nodiscard]] VtepCounter counter(const char* vtep) const {
    for (const auto& c : fast_path->vtep_counters())
      if (*vtep == 0 ? c.vtep.is_unspecified() : c.vtep == ip(vtep)) return c;
    return {};
  }
  void TearDown() override {
    if (guard >= 0) close(guard);
    Guard::TearDown();
  }
  int guard = -1;
};

TEST_F(Underlay, OnlyKnownVtepsSendIntoOurTunnels) {
  const auto big = Bytes(1000, 0x31);
  const struct {
    const char* what;
    Vxlan v;
    bool ours;
  } table[] = {
      {"plain", {}, true},
      {"another of our VNIs", {.vni = 200}, true},
      {"IP options", {.options = Bytes(8, 1)}, true},
      {"longest IP header", {.options = Bytes(40, 1)}, true},
      {"first fragment", {.fragment = 0x2000}, true},
      {"later fragment", {.fragment = 0x2005}, false},
      {"don't fragment", {.fragment = 0x4000}, true},
      {"VNI of others", {.vni = 101}, false},
      {"another port", {.port = 8472}, false},
      {"another host", {.to = "198.51.100.9"}, false},
      {"IPv6", {.from = "2001:db8:ff::2", .to = "2001:db8:ff::1"}, false},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    auto v = row.v;
    EXPECT_EQ(judge(vxlan(v)), kUnspec);
    if (v.from[0] == '1') v.from = "198.51.100.66";
    EXPECT_EQ(judge(vxlan(v)), row.ours ? TC_ACT_SHOT : kUnspec);
    EXPECT_EQ(judge(tagged(vxlan(v))), row.ours ? TC_ACT_SHOT : kUnspec);
    EXPECT_EQ(judge(tagged(tagged(vxlan(v)), 0x88a8)), row.ours ? TC_ACT_SHOT : kUnspec);
  }
  EXPECT_EQ(counter("198.51.100.2").packets, 6u);
  EXPECT_EQ(counter("198.51.100.2").bytes, 6 * tcp().size());
  EXPECT_EQ(counter("").limited_packets, 18u);
  const auto seen = violations();
  ASSERT_THAT(seen, SizeIs(18));
  EXPECT_EQ(seen[0].reason, "rogue-vtep");
  EXPECT_EQ(seen[0].port, other);
  EXPECT_EQ(seen[0].direction, Direction::Decap);
  // What is no VXLAN at all.
  for (const auto& frame : {tcp(), arp_request(), ns(), lacp(), Bytes(14, 0x08)})
    EXPECT_EQ(judge(frame), kUnspec);
}

TEST_F(Underlay, Ipv6WithHeadersInBetween) {
  auto config = underlay();
  config.local = ip("2001:db8:ff::1");
  put(config);
  const Vxlan known{.from = "2001:db8:ff::2", .to = "2001:db8:ff::1"};
  const std::vector<uint8_t> chains[] = {{},          {0},  {60, 60},
                                         {0, 60, 43}, {44}, std::vector<uint8_t>(7, 60)};
  for (const auto& chain : chains) {
    SCOPED_TRACE(chain.size());
    auto v = known;
    v.chain = chain;
    EXPECT_EQ(judge(vxlan(v)), kUnspec);
    v.from = "2001:db8:ff::66";
    EXPECT_EQ(judge(vxlan(v)), TC_ACT_SHOT);
    v.from = "::";
    EXPECT_EQ(judge(vxlan(v)), TC_ACT_SHOT);
  }
  EXPECT_EQ(counter("2001:db8:ff::2").packets, std::size(chains));
  auto v = known;
  v.from = "2001:db8:ff::66";
  v.chain = std::vector<uint8_t>(8, 60);  // too many to look behind
  EXPECT_EQ(judge(vxlan(v)), TC_ACT_SHOT);
  v.from = known.from;
  EXPECT_EQ(judge(vxlan(v)), kUnspec);
  v = known;
  v.from = "2001:db8:ff::66";
  v.chain = {44};
  v.fragment = 16 << 3;  // a later one
  EXPECT_EQ(judge(vxlan(v)), kUnspec);
}

// A stranger can't hide the VNI in a second fragment.
TEST_F(Underlay, ShortFirstFragments) {
  Vxlan v{.from = "198.51.100.66", .fragment = 0x2000};
  EXPECT_EQ(judge(cut(vxlan(v), 14 + 20 + 8)), TC_ACT_SHOT);
  v.from = "198.51.100.2";
  EXPECT_EQ(judge(cut(vxlan(v), 14 + 20 + 8)), kUnspec);
  v = {.from = "198.51.100.66"};
  EXPECT_EQ(judge(cut(vxlan(v), 14 + 20 + 8)), kUnspec) << "cut off: the kernel's business";
  v.vni = 101;
  EXPECT_EQ(judge(vxlan(v)), kUnspec);
}

TEST_F(Underlay, EachVtepHasAShareOfWhatIsForGroups) {
  auto config = underlay();
  config.per_vtep = at_once(10);
  put(config);
  ASSERT_TRUE(fast_path->add_vtep(ip("198.51.100.3")));
  const auto flood = udp4("255.255.255.255", 9);
  int first = 0, second = 0, unicast = 0;
  for (int i = 0; i < 100; ++i) first += judge(vxlan({.inner = flood})) == kUnspec;
  for (int i = 0; i < 10; ++i)
    second += judge(vxlan({.from = "198.51.100.3", .inner = flood})) == kUnspec;
  for (int i = 0; i < 100; ++i) unicast += judge(vxlan({})) == kUnspec;
  EXPECT_GE(first, 10);
  EXPECT_LE(first, 14);
  EXPECT_EQ(second, 10);
  EXPECT_EQ(unicast, 100);
  const auto counts = counter("198.51.100.2");
  EXPECT_EQ(counts.packets, 100u + static_cast<unsigned>(first));
  EXPECT_EQ(counts.limited_packets, 100u - static_cast<unsigned>(first));
  EXPECT_EQ(counts.limited_bytes, counts.limited_packets * flood.size());
  // Live: another limit, the buckets stay; observing.
  config.per_vtep = kNothing;
  put(config);
  EXPECT_EQ(judge(vxlan({.inner = flood})), TC_ACT_SHOT);
  config.observe = true;
  put(config);
  EXPECT_EQ(judge(vxlan({.inner = flood})), kUnspec);
  EXPECT_EQ(judge(vxlan({.from = "198.51.100.66"})), kUnspec);
  EXPECT_EQ(counter("198.51.100.2").observed_packets, 1u);
  EXPECT_EQ(counter("").observed_packets, 1u);
}

TEST_F(Underlay, OutlivesItsOwnerAndFollowsChanges) {
  for (bool force : {false, true}) {
    SCOPED_TRACE(force);
    auto with = options();
    with.force_clsact = force;
    reopen(with);
    EXPECT_THAT(fast_path->underlays(), ElementsAre(other));
    EXPECT_THAT(fast_path->ports(), ElementsAre(port));
    EXPECT_EQ(fast_path->vtep_counters().size(), 3u);
  }
  reopen(options());
  put(underlay());
  EXPECT_EQ(judge(vxlan({})), kUnspec);
  ASSERT_TRUE(fast_path->remove_vtep(ip("198.51.100.2")));
  EXPECT_EQ(judge(vxlan({})), TC_ACT_SHOT);
  ASSERT_TRUE(fast_path->add_vtep(ip("198.51.100.2")));
  EXPECT_EQ(judge(vxlan({})), kUnspec);
  auto config = underlay();
  config.vnis = {net::Vni(200)};
  put(config);
  EXPECT_EQ(judge(vxlan({.from = "198.51.100.66"})), kUnspec) << "VNI of others now";
  // Another layout: known VTEPs are known there too.
  auto large = options();
  large.max_bindings = 2048;
  reopen(large);
  EXPECT_THAT(fast_path->underlays(), ElementsAre(other));
  put(underlay());
  EXPECT_EQ(judge(vxlan({})), kUnspec);
  EXPECT_EQ(judge(vxlan({.from = "198.51.100.66"})), TC_ACT_SHOT);
  ASSERT_TRUE(fast_path->remove_underlay(other));
  EXPECT_THAT(fast_path->underlays(), IsEmpty());
  EXPECT_EQ(judge(vxlan({.from = "198.51.100.66"})), kUnspec);
  EXPECT_TRUE(fast_path->remove_underlay(other)) << "twice is fine";
  config.index = net::IfIndex(99999);
  EXPECT_FALSE(fast_path->set_underlay(config));
}

// --- a port's counters belong to its name
TEST_F(Guard, CountersStayWithTheNameOfAPort) {
  auto config = port_config(port);
  config.name = "member-a";
  // One frame passes, the next one half a minute later.
  config.policy.ingress[2] = Limit{.packets_per_second = {}, .bits_per_second = 16};
  set(config);
  run(ra(), PL_IN, 7);
  run(udp4("255.255.255.255", 9), PL_IN, 100);
  const auto before = fast_path->counters(port);
  ASSERT_THAT(before, SizeIs(3));
  const auto comes_back = [&] {
    lab::run("ip link add m1 type veth peer name p1 && ip link set m1 up && ip link set p1 up");
    port = index_of("m1");
    config.index = port;
    set(config);
    find_programs();
    EXPECT_EQ(counted(Direction::Ingress, "multicast", "ra"), 7u);
    EXPECT_EQ(run(udp4("255.255.255.255", 9)).verdict, TC_ACT_SHOT) << "the bucket is still empty";
    EXPECT_THAT(fast_path->counters(port), SizeIs(3));
  };
  // The daemon removes it, and sees its counters till then.
  auto old = port;
  lab::run("ip link del m1");
  ASSERT_TRUE(fast_path->remove_port(old));
  EXPECT_EQ(fast_path->counters(old).size(), before.size());
  EXPECT_THAT(fast_path->ports(), IsEmpty());
  comes_back();
  EXPECT_THAT(fast_path->counters(old), IsEmpty());
  // It comes back before it was removed.
  old = port;
  lab::run("ip link del m1");
  comes_back();
  EXPECT_THAT(fast_path->ports(), ElementsAre(port));
  // The daemon is not there meanwhile.
  lab::run("ip link del m1");
  reopen(options());
  EXPECT_THAT(fast_path->ports(), IsEmpty());
  comes_back();
  // Renamed: the same device, the same port.
  lab::run("ip link set m1 down && ip link set m1 name m9 && ip link set m9 up");
  set(config);
  EXPECT_EQ(counted(Direction::Ingress, "multicast", "ra"), 7u);
  lab::run("ip link set m9 down && ip link set m9 name m1");
  // Taken out of the settings: they go.
  ASSERT_TRUE(fast_path->remove_port(port));
  set(config);
  EXPECT_THAT(fast_path->counters(port), IsEmpty());
}

// --- explanations
class Explain : public Guard {
 protected:
  FrameExplanation explain(const Bytes& frame, Direction direction = Direction::Ingress) {
    auto said = fast_path->explain(port, direction, frame);
    EXPECT_TRUE(said) << said.error().what;
    return said ? *said : FrameExplanation{};
  }
  // What the counters, buckets, bindings and ring buffers hold.
  std::string everything() {
    std::string out;
    for (auto where : {port, other})
      for (const auto& c : fast_path->counters(where))
        out += std::string(c.bum_class) + c.reason + std::to_string(c.packets) + ' ';
    for (const auto* address : {"192.0.2.2", "2001:db8:1::2"})
      if (const auto use = fast_path->use_of(net::Vni(100), ip(address)))
        out += std::to_string(use->answers) + (use->last_asker ? to_string(*use->last_asker) : "");
    return out + std::to_string(punts().size()) + ' ' + std::to_string(violations().size());
  }
};

TEST_F(Explain, SaysForEveryFrameWhatTheProgramDoesAndChangesNothing) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  bind("2001:db8:1::2", kBob, other);
  for (const auto& c : cases())
    for (PortKind kind : {PortKind::Member, PortKind::Core})
      for (int hook : {PL_IN, PL_OUT})
        for (bool observe : {false, true}) {
          const auto direction = kind == PortKind::Core
                                     ? (hook == PL_IN ? Direction::Decap : Direction::Encap)
                                     : (hook == PL_IN ? Direction::Ingress : Direction::Egress);
          SCOPED_TRACE(c.name + " " + to_string(direction) + (observe ? " observed" : ""));
          auto config = config_for(c, port, kind);
          config.proxy = kind == PortKind::Member;
          config.policy.observe = observe;
          set(config);
          const auto before = everything();
          const auto said = explain(c.frame, direction);
          EXPECT_EQ(everything(), before);
          ASSERT_THAT(said.rules, testing::Not(IsEmpty()));
          EXPECT_THAT(said.rules.back(), testing::StartsWith("verdict: "));
          for (const auto& rule : said.rules)
            EXPECT_THAT(rule, testing::Not(testing::HasSubstr("kernel disagrees"))) << rule;
          if (kernel_refuses(c.frame)) continue;
          Result result;
          const auto changed = moved([&] { result = run(c.frame, hook); });
          const bool passed = result.verdict == kUnspec;
          EXPECT_EQ(said.passed, passed);
          EXPECT_EQ(said.answered, result.verdict == TC_ACT_REDIRECT);
          if (said.answered) {
            EXPECT_EQ(said.answer, result.frame);
          }
          EXPECT_EQ(said.punted, !punts().empty() && !passed);
          bool counted_so = false;
          for (const auto& counter : changed)
            counted_so |= counter.starts_with(std::string(said.bum_class) + " " + said.reason);
          EXPECT_TRUE(counted_so) << said.bum_class << ' ' << said.reason;
          violations();
        }
}

TEST_F(Explain, RulesInTheirOrder) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  auto config = port_config(port, peering_policy());
  config.enforce_macs = true;
  config.macs = {kAlice};
  set(config);
  using testing::Contains;
  using testing::HasSubstr;
  auto said = explain(arp_request());
  EXPECT_TRUE(said.answered);
  EXPECT_STREQ(said.reason, "answered");
  EXPECT_THAT(said.rules, Contains(HasSubstr("EtherType 0x0806: listed")));
  EXPECT_THAT(said.rules, Contains(HasSubstr("source MAC 02:00:00:00:00:01: provisioned")));
  EXPECT_THAT(said.rules, Contains(HasSubstr("192.0.2.2 is bound to 02:00:00:00:00:02")));
  EXPECT_THAT(said.rules, Contains(HasSubstr("192.0.2.1 is bound to 02:00:00:00:00:01")));
  EXPECT_EQ(said.rules.back(), "verdict: answered");
  said = explain(arp_request({.target = ip("192.0.2.9")}));
  EXPECT_TRUE(said.punted);
  EXPECT_THAT(said.rules, Contains(HasSubstr("192.0.2.9 is not bound")));
  EXPECT_THAT(said.rules, Contains(HasSubstr("limit of arp at ingress: 20 frames/s")));
  EXPECT_EQ(said.rules.back(), "verdict: punted");
  said = explain(tcp(kCarol));
  EXPECT_FALSE(said.passed);
  EXPECT_STREQ(said.reason, "source-mac");
  EXPECT_THAT(said.rules, Contains(HasSubstr("source MAC 02:00:00:00:00:03: not provisioned")));
  said = explain(ra());
  EXPECT_THAT(said.rules, Contains(HasSubstr("ra, router advertisement: not allowed")));
  // An empty bucket is seen, and not emptied by looking.
  run(arp_request({.target = ip("192.0.2.9")}), PL_IN, 100);
  said = explain(arp_request({.target = ip("192.0.2.9")}));
  EXPECT_STREQ(said.reason, "arp-limit");
  config.gate = Gate::Quarantine;
  set(config);
  EXPECT_STREQ(explain(tcp()).reason, "quarantine");
  EXPECT_THAT(explain(tcp()).rules, Contains(HasSubstr("port: in quarantine")));
}

TEST_F(Explain, AnswersByXdpTooAndErrors) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  auto config = port_config(port);
  config.xdp = true;
  set(config);
  const auto request = cut(arp_request(), 60);
  const auto said = explain(request);
  EXPECT_TRUE(said.answered);
  EXPECT_THAT(said.rules, testing::Contains(testing::HasSubstr("by XDP")));
  EXPECT_EQ(said.answer, run(request).frame);
  EXPECT_FALSE(fast_path->explain(port, Direction::Decap, request));
  EXPECT_FALSE(fast_path->explain(other, Direction::Ingress, request));
  EXPECT_FALSE(fast_path->explain(port, Direction::Ingress, Bytes(13)));
  EXPECT_FALSE(fast_path->explain(port, Direction::Ingress, Bytes(70000)));
}

}  // namespace
