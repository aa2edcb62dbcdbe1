// SPDX-License-Identifier: GPL-2.0-or-later
// The short way of known unicast (dataplane/bpf/quick.h) against the long one, and the table of
// known MACs in front of the hash.
#include <random>

#include "tests/dataplane/program.h"

using namespace lab;

namespace {

const net::Vni kVni(100);

class QuickWay : public BpfProgram {
 protected:
  void SetUp() override {
    BpfProgram::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(fast_path->add_mac(kVni, kBob));
  }
  [[nodiscard]] static int map(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(pin_directory()))
      if (entry.path().filename().string().starts_with("maps"))
        return bpf_obj_get((entry.path() / name).c_str());
    return -1;
  }
  // From here on the programs find the port by the map "ports" alone, so nothing is quick there.
  static void only_long(net::IfIndex index) {
    const int near = map("near");
    const uint32_t place = index.value % PL_NEAR_PORTS;
    const pl_near nothing{};
    EXPECT_EQ(bpf_map_update_elem(near, &place, &nothing, BPF_ANY), 0);
    close(near);
  }
  // The MAC is in the hash no more, but still in the table that the short way reads.
  static void remove_from_hash(const net::MacAddress& mac) {
    const int macs = map("macs");
    pl_mac_key key{};
    key.vni = kVni.value;
    std::ranges::copy(mac.bytes(), key.mac);
    EXPECT_EQ(bpf_map_delete_elem(macs, &key), 0);
    close(macs);
  }
  [[nodiscard]] PortConfig looked_up(net::IfIndex index) const {
    auto config = port_config(index, peering_policy());
    config.proxy = false;
    config.enforce_macs = true;
    config.macs = {kAlice};
    config.traps = {{.mac = kCarol, .reason = "sponge"}};
    return config;
  }
  // Both ways, at two ports: the same verdict, the same counters.
  void compare(const Bytes& frame, net::IfIndex quick, net::IfIndex slow) {
    if (kernel_refuses(frame)) return;
    for (int hook : {PL_IN, PL_OUT}) {
      Result result[2];
      std::vector<std::string> counted[2];
      for (int i : {0, 1}) {
        port = i == 0 ? quick : slow;
        counted[i] = moved([&] { result[i] = run(frame, hook); });
      }
      EXPECT_EQ(result[0].verdict, result[1].verdict);
      EXPECT_EQ(counted[0], counted[1]);
    }
    port = quick;
  }
  static Bytes tcp(const net::MacAddress& to, const net::MacAddress& from = kAlice) {
    return eth(to, from, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(40)));
  }
  static Bytes tcp6(const net::MacAddress& to, const net::MacAddress& from = kAlice) {
    return eth(to, from, 0x86dd, ipv6(6, ip("2001:db8:1::1"), ip("2001:db8:1::2"), Bytes(40), 64));
  }
};

TEST_F(QuickWay, IsTakenByProvisionedHosts) {
  set(looked_up(port));
  remove_from_hash(kBob);
  expect(tcp(kBob), kUnspec, "unicast passed");
  expect(tcp6(kBob), kUnspec, "unicast passed");
  ASSERT_TRUE(fast_path->remove_mac(kVni, kBob));
  expect(tcp(kBob), TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  expect(tcp6(kBob), TC_ACT_SHOT, "unknown-unicast unknown-unicast");
}

// Ports whose settings close it, in the ways that there are.
TEST_F(QuickWay, IsClosedBySettings) {
  const auto changed = [&](auto change) {
    auto config = looked_up(port);
    change(config);
    set(config);
  };
  changed([](PortConfig& c) { c.gate = Gate::Quarantine; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast quarantine");
  changed([](PortConfig& c) { c.gate = Gate::Shut; });
  expect(tcp6(kBob), TC_ACT_SHOT, "unicast shut");
  changed([](PortConfig& c) { c.policy.allowed_ethertypes = {0x86dd}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast ethertype");
  expect(tcp6(kBob), kUnspec, "unicast passed");
  changed([](PortConfig& c) { c.policy.allowed_ethertypes = {0x0800}; });
  expect(tcp(kBob), kUnspec, "unicast passed");
  expect(tcp6(kBob), TC_ACT_SHOT, "unicast ethertype");
  changed([](PortConfig& c) { c.macs = {}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast source-mac");
  changed([](PortConfig& c) { c.macs = {kCarol}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast source-mac");
  changed([](PortConfig& c) { c.own_macs = {kAlice}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast loop");
  changed([](PortConfig& c) { c.enforce_macs = false, c.own_macs = {kCarol, kAlice}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast loop");
  changed([](PortConfig& c) {
    c.enforce_macs = false;
    c.own_macs = {kCarol, mac("02:00:00:00:00:09"), kAlice};
  });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast loop");
  changed([](PortConfig& c) { c.traps = {{.mac = kBob, .reason = "anti-spoof"}}; });
  expect(tcp(kBob), TC_ACT_SHOT, "unicast anti-spoof");
  changed([](PortConfig& c) {
    c.traps = {{.mac = kCarol, .reason = "sponge"}, {.mac = kBob, .reason = "anti-spoof"}};
  });
  expect(tcp6(kBob), TC_ACT_SHOT, "unicast anti-spoof");
}

// One octet after the other takes other values: both ways must say and count the same.
TEST_F(QuickWay, SaysWhatTheLongWaySays) {
  const net::IfIndex quick = port, slow = other;
  std::mt19937 random(1);
  using Change = std::function<void(PortConfig&)>;
  const Change settings[] = {
      [](PortConfig&) {},
      [](PortConfig& c) { c.enforce_macs = false; },
      [](PortConfig& c) { c.kind = PortKind::Core, c.enforce_macs = false; },
      [](PortConfig& c) { c.policy.observe = true; },
      [](PortConfig& c) { c.observe_macs = true, c.macs = {kCarol}; },
      [](PortConfig& c) { c.policy.allow = {"redirect", "vlan-tag"}; },
      [](PortConfig& c) { c.policy.ingress = c.policy.egress = {}, c.policy.egress_total = {}; },
      [](PortConfig& c) {
        c.policy.ingress.fill(at_once(100));
        c.policy.egress = {};
        c.policy.egress_total = {};
      },
  };
  for (const auto& change : settings) {
    for (const auto index : {quick, slow}) {
      auto config = looked_up(index);
      config.own_macs = {mac("02:00:00:00:be:00")};
      change(config);
      set(config);
    }
    only_long(slow);
    for (const auto& frame : cases()) compare(frame.frame, quick, slow);
    for (const auto& plain : {tcp(kBob), tcp6(kBob), udp4("255.255.255.255", 9),
                              udp4("239.1.1.1", 9), udp6("ff02::99", 9)})
      for (std::size_t at = 0; at < 60; ++at)
        for (int turn = &change == settings ? 0 : 1; turn < 2; ++turn) {
          auto frame = plain;
          frame.resize(std::max<std::size_t>(frame.size(), 60));
          frame[at] = static_cast<uint8_t>(turn == 0 ? frame[at] ^ 1u << random() % 8 : random());
          SCOPED_TRACE(std::to_string(at) + ": " + std::to_string(frame[at]));
          compare(frame, quick, slow);
          ASSERT_FALSE(HasFailure());
        }
  }
}

// The buckets are the same, whichever way a frame goes.
TEST_F(QuickWay, LimitsGroups) {
  auto config = looked_up(port);
  config.policy.ingress[2] = config.policy.ingress[3] = at_once(6);
  set(config);
  const Bytes frames[] = {udp4("255.255.255.255", 9), udp4("239.1.1.1", 9)};
  for (const auto& frame : frames) {
    const std::string name = &frame == frames ? "broadcast" : "multicast";
    const auto of = [&](const std::string& reason) {
      return count(port, Direction::Ingress, name, reason);
    };
    for (int i = 0; i < 4; ++i) EXPECT_EQ(run(frame).verdict, kUnspec);
    only_long(port);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(run(frame).verdict, kUnspec);
    EXPECT_EQ(run(frame).verdict, TC_ACT_SHOT);
    set(config);  // quick again
    EXPECT_EQ(run(frame).verdict, TC_ACT_SHOT);
    EXPECT_EQ(of("passed"), 6u);
    EXPECT_EQ(of(name + "-limit"), 2u);
  }
}

// What went out the short way is known when it comes back.
TEST_F(QuickWay, RemembersWhatWentOut) {
  auto config = looked_up(port);
  config.policy.egress = {};
  config.policy.egress_total = {};
  config.macs = {kCarol};
  config.traps = {};
  set(config);
  for (const auto& frame : {udp4("239.1.1.1", 9), udp6("ff02::99", 9)}) {
    expect(frame, TC_ACT_SHOT, "multicast source-mac");
    EXPECT_EQ(run(frame, PL_OUT).verdict, kUnspec);
    expect(frame, TC_ACT_SHOT, "multicast loop");
  }
}

TEST_F(QuickWay, CountsOctetsAndSegments) {
  set(looked_up(port));
  const auto frame = tcp(kBob);
  run(frame);
  EXPECT_EQ(count(port, Direction::Ingress, "unicast", "passed"), 1u);
  run(frame, PL_IN, 1, 3, 10);
  EXPECT_EQ(count(port, Direction::Ingress, "unicast", "passed"), 4u);
  const auto counters = fast_path->counters(port);
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].bytes, frame.size() + frame.size() + 2 * (14 + 20 + 20));
}

// MACs that share a place in the table are all known, whatever comes and goes.
TEST_F(QuickWay, MacsThatShareAPlace) {
  const auto numbered = [](uint32_t n) {
    return net::MacAddress({2, 0, static_cast<uint8_t>(n >> 24), static_cast<uint8_t>(n >> 16),
                            static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)});
  };
  const auto place = [](const net::MacAddress& m) {
    uint64_t word = 0;
    std::memcpy(&word, m.bytes().data(), 6);
    return pl_near_mac_index(kVni.value, word);
  };
  const auto first = numbered(0x10000);
  uint32_t n = 0x10001;
  while (place(numbered(n)) != place(first)) ++n;
  const auto second = numbered(n);
  set(looked_up(port));
  const auto known = [&](const net::MacAddress& m) { return run(tcp(m)).verdict == kUnspec; };

  EXPECT_FALSE(known(first) || known(second));
  ASSERT_TRUE(fast_path->add_mac(kVni, first));
  EXPECT_TRUE(known(first) && !known(second));
  ASSERT_TRUE(fast_path->add_mac(kVni, second));
  EXPECT_TRUE(known(first) && known(second));
  ASSERT_TRUE(fast_path->remove_mac(kVni, first));
  EXPECT_TRUE(!known(first) && known(second));
  ASSERT_TRUE(fast_path->add_mac(kVni, second));  // again: into the table now
  ASSERT_TRUE(fast_path->add_mac(kVni, first));
  EXPECT_TRUE(known(first) && known(second));
  ASSERT_TRUE(fast_path->remove_mac(kVni, second));
  EXPECT_TRUE(known(first) && !known(second));
  ASSERT_TRUE(fast_path->remove_mac(kVni, first));
  EXPECT_FALSE(known(first) || known(second));
}

TEST_F(QuickWay, MacsOfOtherDomainsAreUnknown) {
  for (const uint32_t vni : {101u, 100u + 65536u, 100u + 255u * 65536u}) {
    ASSERT_TRUE(fast_path->add_mac(net::Vni(vni), kCarol));
    auto config = looked_up(port);
    config.traps = {};
    set(config);
    expect(tcp(kCarol), TC_ACT_SHOT, "unknown-unicast unknown-unicast");
    config.vni = net::Vni(vni);
    set(config);
    expect(tcp(kCarol), kUnspec, "unicast passed");
    ASSERT_TRUE(fast_path->remove_mac(net::Vni(vni), kCarol));
    expect(tcp(kCarol), TC_ACT_SHOT, "unknown-unicast unknown-unicast");
  }
}

// A daemon that starts again goes on with the same tables.
TEST_F(QuickWay, TableStaysOverARestart) {
  set(looked_up(port));
  reopen(options());
  find_programs();
  expect(tcp(kBob), kUnspec, "unicast passed");
  ASSERT_TRUE(fast_path->remove_mac(kVni, kBob));
  expect(tcp(kBob), TC_ACT_SHOT, "unknown-unicast unknown-unicast");
}

}  // namespace
