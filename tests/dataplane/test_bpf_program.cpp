// SPDX-License-Identifier: GPL-2.0-or-later
// The programs as loaded and attached, run on single frames by BPF_PROG_TEST_RUN: the table that
// SoftPolicy agrees with as well, then ARP/ND, unknown unicast, punts and limits.
#include "tests/dataplane/program.h"

using namespace lab;

namespace {

TEST_F(BpfProgram, TableInEveryDirection) {
  for (const auto& c : cases()) {
    if (kernel_refuses(c.frame)) continue;
    for (PortKind kind : {PortKind::Member, PortKind::Core})
      for (int hook : {PL_IN, PL_OUT}) {
        SCOPED_TRACE(c.name + (kind == PortKind::Core ? " core" : " member") +
                     (hook == PL_IN ? " in" : " out"));
        set(config_for(c, port, kind));
        const bool passes = std::string_view(c.reason) == "passed" || (c.in_only && hook == PL_OUT);
        Result result;
        const auto changed = moved([&] { result = run(c.frame, hook); });
        EXPECT_EQ(result.verdict, passes ? kUnspec : TC_ACT_SHOT);
        EXPECT_THAT(changed,
                    ElementsAre(std::string(c.bum_class) + " " + (passes ? "passed" : c.reason)));
        EXPECT_EQ(result.frame, c.frame);
      }
  }
}

TEST_F(BpfProgram, AllowSwitchesNamedReasonsOff) {
  std::set<std::string> switchable;
  for (const auto& reason : drop_reasons())
    if (reason.switchable) switchable.insert(reason.name);
  for (const auto& c : cases()) {
    if (std::string_view(c.reason) == "passed" || kernel_refuses(c.frame)) continue;
    SCOPED_TRACE(c.name);
    auto config = config_for(c, port, PortKind::Member);
    config.policy.allow.insert(c.reason);
    set(config);
    EXPECT_EQ(run(c.frame).verdict, switchable.contains(c.reason) ? kUnspec : TC_ACT_SHOT);
  }
}

TEST_F(BpfProgram, AllProvisionedMacsAndNoOther) {
  auto config = port_config(port);
  config.enforce_macs = true;
  for (unsigned i = 0; i < PL_MAX_MACS; ++i)
    config.macs.push_back(mac("02:00:00:01:00:" + std::string(1, "0123456789abcdef"[i / 16]) +
                              "0123456789abcdef"[i % 16]));
  set(config);
  const auto payload = ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(20));
  for (const auto& source : config.macs)
    EXPECT_EQ(run(eth(kBob, source, 0x0800, payload)).verdict, kUnspec) << to_string(source);
  EXPECT_EQ(run(eth(kBob, mac("02:00:00:01:00:40"), 0x0800, payload)).verdict, TC_ACT_SHOT);
  config.macs.clear();  // enforced and empty: nobody
  set(config);
  expect(eth(kBob, kAlice, 0x0800, payload), TC_ACT_SHOT, "unicast source-mac");
}

// --- answers
TEST_F(BpfProgram, ArpAnswerToTheByte) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  const Arp want{.op = 2,
                 .sender_mac = kBob,
                 .sender = ip("192.0.2.2"),
                 .target_mac = kAlice,
                 .target = ip("192.0.2.1")};
  for (std::size_t size : {42u, 60u, 64u, 200u}) {  // whatever padding the request had
    auto request = arp_request();
    request.resize(size, 0x5a);
    Result result;
    EXPECT_THAT(moved([&] { result = run(request); }), ElementsAre("arp answered"));
    EXPECT_EQ(result.verdict, TC_ACT_REDIRECT);
    EXPECT_EQ(result.frame, cut(arp(kAlice, kBob, want), 60));
  }
}

TEST_F(BpfProgram, NaToTheByteForAllFlags) {
  bind_alice();
  for (bool router : {false, true})
    for (bool override_flag : {false, true})
      for (net::IfIndex where : {other, net::IfIndex(0)}) {
        bind("2001:db8:1::2", kBob, where, router, override_flag);
        Result result;
        auto request = ns();
        request.resize(90, 0x5a);
        EXPECT_THAT(moved([&] { result = run(request); }), ElementsAre("nd answered"));
        EXPECT_EQ(result.verdict, TC_ACT_REDIRECT);
        EXPECT_EQ(result.frame, na({.from_mac = kBob,
                                    .from = ip("2001:db8:1::2"),
                                    .target = ip("2001:db8:1::2"),
                                    .to = ip("2001:db8:1::1"),
                                    .to_mac = kAlice,
                                    .flags = static_cast<uint8_t>(0x40 | (router ? 0x80 : 0) |
                                                                  (override_flag ? 0x20 : 0))}));
      }
}

TEST_F(BpfProgram, BindingsOfAnotherDomainDoNotAnswer) {
  bind_alice();
  ASSERT_TRUE(fast_path->set_binding(
      {.vni = net::Vni(101), .ip = ip("192.0.2.2"), .mac = kBob, .port = {}}));
  expect(arp_request(), TC_ACT_SHOT, "arp punted");
  bind("192.0.2.2", kBob);
  expect(arp_request(), TC_ACT_REDIRECT, "arp answered");
  ASSERT_TRUE(fast_path->clear_binding(net::Vni(100), ip("192.0.2.2")));
  expect(arp_request(), TC_ACT_SHOT, "arp punted");
}

TEST_F(BpfProgram, WhoIsNotAnswered) {
  bind_alice();
  bind("192.0.2.2", kBob, port);
  bind("192.0.2.9", kAlice, {});
  bind("2001:db8:1::2", kBob, port);
  bind("2001:db8:1::9", kAlice, {});
  expect(arp_request(), TC_ACT_SHOT, "arp same-port");
  expect(ns(), TC_ACT_SHOT, "nd same-port");
  expect(arp_request({.target = ip("192.0.2.9")}), TC_ACT_SHOT, "arp owner-asked");
  expect(ns({.target = ip("2001:db8:1::9")}), TC_ACT_SHOT, "nd owner-asked");
  EXPECT_TRUE(punts().empty());
}

TEST_F(BpfProgram, OddFormsGoToTheDaemonUnanswered) {
  bind("192.0.2.2", kBob, other);
  bind("192.0.2.1", kAlice, port);
  bind("2001:db8:1::1", kAlice, port);
  bind("2001:db8:1::2", kBob, other);
  auto bad_sum = ns();
  bad_sum[57] ^= 1;
  const Bytes odd[] = {
      arp_request({.sender = ip("0.0.0.0")}),    // probe
      arp_request({.target = ip("192.0.2.1")}),  // announcement
      arp_request({.op = 2}),
      arp(net::kBroadcastMac, kCarol, {}),  // Carol says that she is Alice
      arp_request({.sender_mac = kCarol}),  // and so she does here
      ns({.hop_limit = 64}),
      ns({.from = ip("::"), .options = Bytes{}}),  // duplicate address detection
      ns({.options = Bytes{}}),
      ns({.options = option(1, kCarol)}),
      ns({.from_mac = kCarol}),
      bad_sum,
      behind({0}, 135, mac("33:33:00:00:00:01")),
      na({.to = ip("ff02::1"), .to_mac = mac("33:33:00:00:00:01")}),
  };
  for (const auto& frame : odd) {
    const bool is_arp = frame[12] == 0x08;
    expect(frame, TC_ACT_SHOT, is_arp ? "arp punted" : "nd punted");
    const auto seen = punts();
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].port, port);
    EXPECT_FALSE(seen[0].copy);
    EXPECT_EQ(seen[0].frame, frame);
  }
}

// The responder knows limits, prefixes and moves; the kernel answers those only of whom it is sure.
TEST_F(BpfProgram, WhoIsNotBoundHereIsLeftToTheDaemon) {
  bind("192.0.2.2", kBob, other);
  bind("2001:db8:1::2", kBob, other);
  for (const auto& request : {arp_request(), ns()})
    for (bool learn : {false, true}) {
      set(proxy(learn));
      const bool is_arp = request[12] == 0x08;
      const auto address = ip(is_arp ? "192.0.2.1" : "2001:db8:1::1");
      const auto left_to_the_daemon = [&] {
        expect(request, TC_ACT_SHOT, is_arp ? "arp punted" : "nd punted");
        const auto seen = punts();
        ASSERT_EQ(seen.size(), 1u);
        EXPECT_FALSE(seen[0].copy);
        EXPECT_EQ(seen[0].frame, request);
      };
      left_to_the_daemon();
      bind(to_string(address).c_str(), kAlice, other);  // bound, but elsewhere
      left_to_the_daemon();
      bind(to_string(address).c_str(), kCarol, port);
      left_to_the_daemon();
      bind(to_string(address).c_str(), kAlice, port);
      expect(request, TC_ACT_REDIRECT, is_arp ? "arp answered" : "nd answered");
      EXPECT_TRUE(punts().empty());
      ASSERT_TRUE(fast_path->clear_binding(net::Vni(100), address));
    }
}

TEST_F(BpfProgram, BoundSendersAreToldAgainWhenItIsTime) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  bind("2001:db8:1::2", kBob, other);
  auto config = proxy();
  config.renew = std::chrono::hours(1);
  set(config);
  const auto to = ip("2001:db8:1::2");
  const Bytes frames[] = {arp_request(), arp(kBob, kAlice, {.op = 2}), ns(),
                          na({.target = ip("2001:db8:1::1"), .to = to, .to_mac = kBob})};
  // Never told so far: the first of each address is, the others aren't.
  for (std::size_t i = 0; i < std::size(frames); ++i) {
    run(frames[i]);
    const auto seen = punts();
    ASSERT_EQ(seen.size(), i % 2 == 0 ? 1u : 0u) << i;
    EXPECT_TRUE(seen.empty() || seen[0].copy);
  }
  // A change of the entry by user space does not start it anew.
  bind_alice();
  for (const auto& frame : frames) run(frame);
  EXPECT_TRUE(punts().empty());
  config.renew = std::chrono::milliseconds(1);
  set(config);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(2)) {
  }
  EXPECT_EQ(run(arp_request()).verdict, TC_ACT_REDIRECT);
  EXPECT_EQ(punts().size(), 1u);
  // Not when the daemon can't hear it: then the next one is told.
  config.policy.punts = at_once(0);
  set(config);
  run(ns());
  EXPECT_TRUE(punts().empty());
  config.renew = {};
  set(config);
  run(arp_request());
  EXPECT_TRUE(punts().empty());
}

TEST_F(BpfProgram, CountsPerEntryWhoAskedAndHowOften) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  bind("2001:db8:1::2", kBob, other);
  const auto use = [&](const char* address) {
    return fast_path->use_of(net::Vni(100), ip(address));
  };
  ASSERT_TRUE(use("192.0.2.2"));
  EXPECT_EQ(use("192.0.2.2")->answers, 0u);
  EXPECT_FALSE(use("192.0.2.2")->last_asker);
  for (int i = 0; i < 3; ++i) run(arp_request());
  run(ns());
  bind("192.0.2.2", kCarol, {});  // the owner has another MAC now
  run(arp_request());
  EXPECT_EQ(use("192.0.2.2")->answers, 4u);
  EXPECT_EQ(use("192.0.2.2")->last_asker, kAlice);
  EXPECT_EQ(use("2001:db8:1::2")->answers, 1u);
  EXPECT_EQ(use("2001:db8:1::2")->last_asker, kAlice);
  EXPECT_FALSE(use("192.0.2.77"));
  EXPECT_FALSE(fast_path->use_of(net::Vni(101), ip("192.0.2.2")));
}

// Answers to the daemon's own questions, and frames that end here.
TEST_F(BpfProgram, FramesToOurselvesAndIntoTraps) {
  const auto own = mac("02:00:00:00:be:00"), spoof = mac("02:00:00:00:a5:00");
  auto config = proxy();
  config.own_mac = own;
  config.traps = {{.mac = own, .reason = "sponge"}, {.mac = spoof, .reason = "anti-spoof"}};
  bind_alice();
  const auto to = ip("2001:db8:1::2");
  const auto one_copy = [&](const Bytes& frame) {
    expect(frame, kUnspec, name_of_unicast(frame) + " passed");
    const auto seen = punts();
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_TRUE(seen[0].copy);
    EXPECT_FALSE(seen[0].trapped);
    EXPECT_EQ(seen[0].frame, frame);
  };
  for (bool core : {false, true}) {
    SCOPED_TRACE(core);
    config.kind = core ? PortKind::Core : PortKind::Member;
    config.proxy = !core;
    set(config);
    one_copy(arp(own, kAlice, {.op = 2}));
    one_copy(arp(own, kAlice, {.op = 1}));
    one_copy(na({.to = to, .to_mac = own}));
    expect(ns({.to = to, .to_mac = own}), kUnspec, "nd-unicast passed");  // the kernel's business
    EXPECT_TRUE(punts().empty());
    expect(arp(kBob, kAlice, {.op = 2}), kUnspec, "arp-unicast passed");  // somebody else's
    EXPECT_TRUE(punts().empty());
    const auto trapped = [&](const Bytes& frame, const char* counter) {
      expect(frame, TC_ACT_SHOT, counter);
      const auto seen = punts();
      ASSERT_EQ(seen.size(), 1u);
      EXPECT_TRUE(seen[0].trapped);
      EXPECT_FALSE(seen[0].copy);
      EXPECT_EQ(seen[0].frame, cut(frame, std::min<std::size_t>(frame.size(), PL_PUNT_FRAME)));
    };
    for (std::size_t size : {20u, 1400u}) {
      trapped(eth(own, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.50"), Bytes(size))),
              "unicast sponge");
      trapped(eth(spoof, kAlice, 0x86dd,
                  ipv6(6, ip("2001:db8:1::1"), ip("2001:db8:1::50"), Bytes(size), 64)),
              "unicast anti-spoof");
    }
    // To a MAC that is nobody's, neighbor discovery ends here too.
    trapped(arp(spoof, kAlice, {}), "arp-unicast anti-spoof");
    trapped(ns({.to = to, .to_mac = spoof}), "nd-unicast anti-spoof");
    // Towards the member or the fabric nothing is in the way.
    EXPECT_EQ(run(arp(spoof, kAlice, {}), PL_OUT).verdict, kUnspec);
  }
  // Trapped or not, what the policy refuses is refused by its name.
  config.kind = PortKind::Member;
  config.enforce_macs = true;
  set(config);
  expect(arp(spoof, kAlice, {}), TC_ACT_SHOT, "unicast source-mac");
  EXPECT_TRUE(punts().empty());
  config.traps.push_back({.mac = kBob, .reason = "sponge"});
  EXPECT_FALSE(fast_path->set_port(config));
}

// Traffic into a trap must not keep the port's questions from being heard.
TEST_F(BpfProgram, TrapsHaveAPuntLimitOfTheirOwn) {
  const auto spoof = mac("02:00:00:00:a5:00");
  auto config = proxy();
  config.traps = {{.mac = spoof, .reason = "anti-spoof"}};
  config.policy.punts = at_once(100);
  set(config);
  run(arp(spoof, kAlice, {}), PL_IN, 5000);
  EXPECT_EQ(count(port, Direction::Ingress, "arp-unicast", "anti-spoof"), 5000u);
  const auto told = punts().size();
  EXPECT_GE(told, 10u);
  EXPECT_LE(told, 20u);
  expect(arp_request(), TC_ACT_SHOT, "arp punted");
}

TEST_F(BpfProgram, AllPortsTogetherHaveAPuntLimit) {
  auto with = options();
  with.punts_per_second = 50;  // of which a fifth at once
  reopen(with);
  auto config = proxy();
  config.policy.punts = {};
  set(config);
  auto second = config;
  second.index = other;
  set(second);
  find_programs();
  const auto begin = std::chrono::steady_clock::now();
  run(arp_request(), PL_IN, 60);
  const auto mine = port;
  port = other;  // the same bucket
  run(arp_request(), PL_IN, 60);
  port = mine;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto punted = count(port, Direction::Ingress, "arp", "punted") +
                      count(other, Direction::Ingress, "arp", "punted");
  EXPECT_GE(punted, 10u);
  EXPECT_LE(punted, 11 + static_cast<uint64_t>(took.count() * 50));
  EXPECT_EQ(punted + count(port, Direction::Ingress, "arp", "punt-limit-all") +
                count(other, Direction::Ingress, "arp", "punt-limit-all"),
            120u);
  EXPECT_EQ(punts().size(), punted);
}

TEST_F(BpfProgram, UnicastIsCheckedAgainstTheBindings) {
  bind("192.0.2.1", kAlice, port);
  bind("2001:db8:1::1", kAlice, port);
  const auto to = ip("2001:db8:1::2");
  const Bytes honest[] = {arp(kBob, kAlice, {.op = 2}), arp(kBob, kAlice, {}), na(),
                          na({.options = Bytes{}}), ns({.to = to, .to_mac = kBob})};
  for (const auto& frame : honest) {
    set(proxy(true));
    expect(frame, kUnspec, name_of_unicast(frame) + " passed");
    EXPECT_TRUE(punts().empty());
  }
  const Bytes forged[] = {
      arp(kBob, kCarol, {.op = 2, .sender_mac = kCarol}),
      arp(kBob, kAlice, {.op = 2, .sender_mac = kCarol}),
      na({.from_mac = kCarol}),
      na({.from_mac = kCarol, .options = Bytes{}}),
      na({.options = option(2, kCarol)}),
      ns({.from_mac = kCarol, .to = to, .to_mac = kBob}),
  };
  for (bool learn : {false, true})
    for (const auto& frame : forged) {
      set(proxy(learn));
      expect(frame, TC_ACT_SHOT, name_of_unicast(frame) + " spoofed-sender");
      const auto seen = punts();
      ASSERT_EQ(seen.size(), 1u);
      EXPECT_TRUE(seen[0].copy);
      EXPECT_EQ(seen[0].frame, frame);
    }
  expect(na({.options = Bytes{2, 0, 0, 0, 0, 0, 0, 0}}), TC_ACT_SHOT, "nd-unicast malformed");
  // Not bound: on it goes, and the daemon learns of it.
  for (bool learn : {false, true}) {
    set(proxy(learn));
    expect(arp(kBob, kAlice, {.op = 2, .sender = ip("192.0.2.77")}), kUnspec, "arp-unicast passed");
    EXPECT_EQ(punts().size(), learn ? 1u : 0u);
    expect(na({.target = ip("2001:db8:1::77")}), kUnspec, "nd-unicast passed");
    EXPECT_EQ(punts().size(), learn ? 1u : 0u);
    expect(arp(kBob, kAlice, {.sender = ip("0.0.0.0")}), kUnspec, "arp-unicast passed");
    EXPECT_EQ(punts().size(), 0u);
  }
}

TEST_F(BpfProgram, NoProxyNoInterception) {
  bind("192.0.2.2", kBob, other);
  bind("192.0.2.1", kBob, other);
  bind("2001:db8:1::2", kBob, other);
  auto config = port_config(port);
  config.proxy = false;
  config.learn = true;
  set(config);
  expect(arp_request(), kUnspec, "arp passed");
  expect(ns(), kUnspec, "nd passed");
  expect(arp(kBob, kAlice, {}), kUnspec, "arp-unicast passed");
  config.proxy = true;
  config.kind = PortKind::Core;
  set(config);
  expect(arp_request(), kUnspec, "arp passed");
  expect(ns(), kUnspec, "nd passed");
  EXPECT_TRUE(punts().empty());
  // Towards members nothing is intercepted either.
  set(proxy(true));
  EXPECT_EQ(run(arp_request(), PL_OUT).verdict, kUnspec);
  EXPECT_TRUE(punts().empty());
}

// --- limits
// The frames that pass of many at once: what the rate says for the time that it took.
TEST_F(BpfProgram, LimitsOfAllClassesInBothDirections) {
  const std::pair<const char*, Bytes> frames_of[] = {
      {"arp", arp_request()},
      {"nd", ns()},
      {"broadcast", udp4("255.255.255.255", 9)},
      {"multicast", udp4("239.1.2.3", 9)},
      {"unknown-unicast",
       eth(kCarol, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(20)))},
      {"arp-unicast", arp(kBob, kAlice, {})},
      {"nd-unicast", na()}};
  ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
  constexpr int kOffered = 5000;
  for (PortKind kind : {PortKind::Member, PortKind::Core})
    for (int hook : {PL_IN, PL_OUT}) {
      auto config = port_config(port);
      config.kind = kind;
      config.proxy = false;
      auto& limits = kind == PortKind::Core
                         ? (hook == PL_IN ? config.policy.decap : config.policy.encap)
                         : (hook == PL_IN ? config.policy.ingress : config.policy.egress);
      for (std::size_t cls = 0; cls < kBumClasses; ++cls) limits[cls] = at_once(10 + cls);
      ASSERT_TRUE(fast_path->remove_port(port));  // fresh buckets and counters
      set(config);
      const auto direction = kind == PortKind::Core
                                 ? (hook == PL_IN ? Direction::Decap : Direction::Encap)
                                 : (hook == PL_IN ? Direction::Ingress : Direction::Egress);
      for (std::size_t cls = 0; cls < kBumClasses; ++cls) {
        const auto& [name, frame] = frames_of[cls];
        SCOPED_TRACE(std::string(name) + " " + to_string(direction));
        const auto begin = std::chrono::steady_clock::now();
        run(frame, hook, kOffered);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        const auto passed = count(port, direction, name, "passed");
        const auto rate = 10 + cls;
        EXPECT_GE(passed, rate);
        EXPECT_LE(passed,
                  rate + 1 + static_cast<uint64_t>(took.count() * static_cast<double>(rate)));
        EXPECT_EQ(passed + count(port, direction, name, std::string(name) + "-limit"), kOffered);
      }
    }
}

TEST_F(BpfProgram, RateOverTime) {
  auto config = port_config(port);
  config.policy.ingress[2] = {
      .packets_per_second = 10000, .bits_per_second = {}, .burst = std::chrono::milliseconds(1000)};
  set(config);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto storm = [&] { run(udp4("255.255.255.255", 9), PL_IN, 30000); };
  storm();  // the bucket is empty from here on
  const double empty_at = elapsed();
  while (elapsed() < 0.5) storm();
  const double outer = elapsed();
  const auto passed = static_cast<double>(count(port, Direction::Ingress, "broadcast", "passed"));
  EXPECT_LE(passed, 10000 + 10000 * outer + 2);
  EXPECT_GE(passed, 10000 + 10000 * (outer - empty_at) - 30);
}

TEST_F(BpfProgram, BitsPerSecondAndGso) {
  auto config = port_config(port);
  config.policy.ingress[3] = {.packets_per_second = {},
                              .bits_per_second = 80000,
                              .burst = std::chrono::milliseconds(1000)};  // 10 kB
  set(config);
  const auto big = eth(mac("01:00:5e:01:02:03"), kAlice, 0x0800,
                       ipv4(17, ip("192.0.2.1"), ip("239.1.2.3"), udp(9, 958)));  // 1000 octets
  ASSERT_EQ(big.size(), 1000u);
  run(big, PL_IN, 100);
  const auto passed = count(port, Direction::Ingress, "multicast", "passed");
  EXPECT_GE(passed, 9u);  // 10 kB, less the tolerance for one long frame
  EXPECT_LE(passed, 11u);
  // A GSO frame is as many frames, each with headers.
  config.policy.ingress[3] = at_once(10);
  ASSERT_TRUE(fast_path->remove_port(port));
  set(config);
  EXPECT_EQ(run(big, PL_IN, 1, 20, 48).verdict, kUnspec);
  EXPECT_EQ(run(big, PL_IN, 1, 20, 48).verdict, TC_ACT_SHOT);
  EXPECT_EQ(count(port, Direction::Ingress, "multicast", "passed"), 20u);
  for (const auto& c : fast_path->counters(port))
    EXPECT_TRUE(c.reason != std::string_view("passed") || c.bytes == 1000 + 19 * 42) << c.bytes;
  // The number of segments is not always told.
  run(big, PL_IN, 1, 0, 100);
  EXPECT_EQ(count(port, Direction::Ingress, "multicast", "multicast-limit"), 20u + 10u);
}

TEST_F(BpfProgram, AnswersAndPuntsHaveBucketsOfTheirOwn) {
  bind_alice();
  bind("192.0.2.2", kBob, other);
  auto config = port_config(port, peering_policy());
  config.policy.ingress[0] = at_once(30);
  config.policy.answers = at_once(50);
  config.policy.punts = at_once(10);
  set(config);
  // Runs are repeated on a fresh frame each: an answer is written over the request.
  for (int i = 0; i < 100; ++i) run(arp_request());
  const auto answered = count(port, Direction::Ingress, "arp", "answered");
  EXPECT_GE(answered, 50u);
  EXPECT_EQ(answered + count(port, Direction::Ingress, "arp", "answer-limit"), 100u);
  run(arp_request({.target = ip("192.0.2.99")}), PL_IN, 100);
  const auto punted = count(port, Direction::Ingress, "arp", "punted");
  const auto over_punts = count(port, Direction::Ingress, "arp", "punt-limit");
  const auto over_class = count(port, Direction::Ingress, "arp", "arp-limit");
  EXPECT_GE(punted, 10u);
  EXPECT_GE(punted + over_punts, 30u);
  EXPECT_GE(over_punts, 15u);
  EXPECT_EQ(punted + over_punts + over_class, 100u);
  EXPECT_EQ(punts().size(), punted);
  // Nothing at all for ND, and it says so.
  config.policy.ingress[1] = at_once(0);
  set(config);
  expect(ns(), TC_ACT_SHOT, "nd nd");
}

TEST_F(BpfProgram, RingBuffer) {
  auto config = port_config(port);
  config.policy.punts = {};
  set(config);
  auto frame = arp_request();
  frame.resize(504, 0x11);
  expect(frame, TC_ACT_SHOT, "arp punted");
  ASSERT_EQ(punts().size(), 1u);
  frame.resize(505);
  expect(frame, TC_ACT_SHOT, "arp malformed");
  EXPECT_TRUE(punts().empty());
  // 64 KiB of records of 520 octets.
  run(arp_request(), PL_IN, 200);
  const auto punted = count(port, Direction::Ingress, "arp", "punted") - 1;
  EXPECT_GT(punted, 100u);
  EXPECT_EQ(punted + count(port, Direction::Ingress, "arp", "ring-full"), 200u);
  EXPECT_EQ(fast_path->punts_lost(), 200 - punted);
  EXPECT_EQ(punts(10).size(), 10u);
  EXPECT_EQ(punts(0).size(), 0u);
  EXPECT_EQ(punts().size(), punted - 10);
  EXPECT_TRUE(punts().empty());
}

TEST_F(BpfProgram, UnknownUnicastByTheMirrorOfTheFdb) {
  const auto frame =
      eth(kBob, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(20)));
  auto config = port_config(port);
  set(config);
  expect(frame, kUnspec, "unicast passed");  // no limit: not looked up
  config.policy.ingress[4] = at_once(0);
  set(config);
  expect(frame, TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  ASSERT_TRUE(fast_path->add_mac(net::Vni(101), kBob));
  expect(frame, TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
  expect(frame, kUnspec, "unicast passed");
  EXPECT_EQ(fast_path->macs().size(), 2u);
  ASSERT_TRUE(fast_path->remove_mac(net::Vni(100), kBob));
  ASSERT_TRUE(fast_path->remove_mac(net::Vni(100), kBob));
  expect(frame, TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  // Answers to our own questions reach the bridge, whose entry of the sender they renew.
  const auto own = mac("02:00:00:00:be:00");
  const auto answer = arp(own, kAlice, {.op = 2});
  expect(answer, TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  config.own_mac = own;
  set(config);
  expect(answer, kUnspec, "arp-unicast passed");
  expect(na({.to = ip("2001:db8:1::2"), .to_mac = own}), kUnspec, "nd-unicast passed");
  expect(eth(own, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(20))),
         TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  // Towards the member only a rate makes it look, and a bridge that floods.
  config.policy.egress[4] = at_once(0);
  set(config);
  EXPECT_EQ(run(frame, PL_OUT).verdict, kUnspec);
  config.bridge_floods_unknown = true;
  set(config);
  EXPECT_EQ(run(frame, PL_OUT).verdict, TC_ACT_SHOT);
  config.policy.egress[4] = at_once(1);
  set(config);
  EXPECT_EQ(run(frame, PL_OUT).verdict, kUnspec);
  EXPECT_EQ(run(frame, PL_OUT).verdict, TC_ACT_SHOT);
}

TEST_F(BpfProgram, BucketsAndCountersSurviveAChangeOfPolicy) {
  auto config = port_config(port);
  config.policy.ingress[2] = at_once(5);
  set(config);
  run(udp4("255.255.255.255", 9), PL_IN, 50);
  const auto before = count(port, Direction::Ingress, "broadcast", "passed");
  config.policy.ingress[2] = at_once(6);
  for (int i = 0; i < 3000; ++i) set(config);  // more often than there are configuration slots
  EXPECT_EQ(count(port, Direction::Ingress, "broadcast", "passed"), before);
  EXPECT_GE(count(port, Direction::Ingress, "broadcast", "broadcast-limit"), 40u);
}

TEST_F(BpfProgram, UnconfiguredDevicePasses) {
  const int held = dup(program[PL_IN]);
  ASSERT_TRUE(fast_path->remove_port(port));
  EXPECT_EQ(run(to_group("01:80:c2:00:00:00", 38)).verdict, kUnspec);
  EXPECT_TRUE(fast_path->counters(port).empty());
  close(held);
}

TEST_F(BpfProgram, BindingsAndMacsAsSet) {
  std::vector<FastBinding> want;
  for (uint32_t i = 0; i < 500; ++i) {
    want.push_back({.vni = net::Vni(i % 3),
                    .ip = IpAddress::v4(0xc0000200 + i),
                    .mac = kBob,
                    .port = net::IfIndex(i),
                    .router = i % 2 == 0,
                    .override_flag = i % 5 == 0});
    auto octets = std::array<uint8_t, 16>{0x20, 1, 0xd, 0xb8};
    octets[15] = static_cast<uint8_t>(i);
    octets[14] = static_cast<uint8_t>(i >> 8);
    want.push_back({.vni = net::Vni(100), .ip = IpAddress::v6(octets), .mac = kAlice, .port = {}});
  }
  for (const auto& binding : want) ASSERT_TRUE(fast_path->set_binding(binding));
  EXPECT_THAT(fast_path->bindings(), testing::UnorderedElementsAreArray(want));
  EXPECT_TRUE(fast_path->clear_binding(net::Vni(77), ip("192.0.2.1")));  // was not there
}

// Not a test: what a run costs, --gtest_also_run_disabled_tests.
TEST_F(BpfProgram, DISABLED_Cost) {
  auto config = port_config(port, peering_policy());
  const auto tcp = eth(kBob, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(40)));
  const auto tcp6 =
      eth(kBob, kAlice, 0x86dd, ipv6(6, ip("2001:db8:1::1"), ip("2001:db8:1::2"), Bytes(40), 64));
  ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
  const auto show = [&](const char* what, const Bytes& frame, int hook = PL_IN) {
    std::printf("%-40s %u ns\n", what, run(frame, hook, 1000000).nanoseconds);
  };
  config.policy.ingress[4] = {};
  config.enforce_macs = true;
  config.macs = {kAlice};
  set(config);
  show("known unicast in, IPv4", tcp);
  show("known unicast in, IPv6", tcp6);
  show("known unicast out", tcp, PL_OUT);
  show("broadcast dropped", udp4("255.255.255.255", 9));
  show("mdns dropped", udp4("224.0.0.251", 5353));
  show("unknown ARP dropped", arp_request());
  show("unknown NS dropped", ns());
  config.policy.ingress[4] = at_once(0);
  set(config);
  show("known unicast in, looked up", tcp);
  bind_alice();
  bind("192.0.2.2", kBob, port);
  bind("2001:db8:1::2", kBob, port);
  show("known ARP, same port", arp_request());
  show("known NS, same port", ns());
}

}  // namespace
