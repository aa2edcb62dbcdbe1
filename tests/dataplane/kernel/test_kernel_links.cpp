// SPDX-License-Identifier: GPL-2.0-or-later
// Devices in a real kernel: created, adopted, refused, silent, removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real_machine.h"

namespace dataplane::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KernelLinks : public ::testing::Test {
 protected:
  void SetUp() override {
    PEERLAN_NEEDS_ROOT();
    machine_ = std::make_unique<RealMachine>();
  }
  Kernel& kernel() { return machine_->kernel(); }
  void expect_shell(const std::string& command) { EXPECT_EQ(shell(command), "") << command; }
  // Words of `ip -d link show DEVICE`.
  void expect_link(const std::string& device, std::initializer_list<std::string> words) {
    const std::string output = shell("ip -d link show " + device);
    for (const std::string& word : words) EXPECT_THAT(output, HasSubstr(" " + word + " "));
  }
  std::string refusal(const Links& links) {
    const auto result = kernel().ensure_domain(links);
    EXPECT_FALSE(result);
    return result ? "" : result.error().what;
  }
  std::unique_ptr<RealMachine> machine_;
};

TEST_F(KernelLinks, CreatesBridgeAndVxlan) {
  Links links = test_links();
  links.mtu = 1400;
  const auto domain = kernel().ensure_domain(links);
  ASSERT_TRUE(fine(domain));
  EXPECT_EQ(domain->bridge, machine_->index("br100"));
  EXPECT_EQ(domain->vxlan, machine_->index("vx100"));
  expect_link("br100",
              {"mtu 1400", "ageing_time 1440000", "stp_state 0", "mcast_snooping 0",
               "mcast_router 0", "mcast_querier 0", "group_fwd_mask 0", "addrgenmode none",
               "link/ether " + to_string(device_mac("br100", links.vni, links.vtep)), "state UP"});
  expect_link("vx100", {"mtu 1400", "vxlan id 100", "local 192.0.2.1", "dstport 4789", "nolearning",
                        "master br100", "addrgenmode none", "learning off", "flood off",
                        "neigh_suppress off"});
  for (const char* device : {"br100", "vx100"})
    EXPECT_THAT(shell(std::string("ip link show ") + device),
                HasSubstr(std::string("alias peerlan:") + device + "\n"));
  EXPECT_THAT(shell("ip -d link show vx100"), Not(HasSubstr("remote")));
  EXPECT_EQ(shell("bridge fdb show dev vx100 | grep 00:00:00:00:00:00 || true"), "");
}

TEST_F(KernelLinks, MacIsDeterministicAndLocal) {
  const Links links = test_links();
  const auto mac = device_mac(links.bridge, links.vni, links.vtep);
  EXPECT_EQ(mac, device_mac(links.bridge, links.vni, links.vtep));
  EXPECT_NE(mac, device_mac(links.bridge, net::Vni(101), links.vtep));
  EXPECT_NE(mac, device_mac("br101", links.vni, links.vtep));
  EXPECT_NE(mac, device_mac(links.bridge, links.vni, ip("192.0.2.2")));
  EXPECT_EQ(mac.bytes()[0] & 3, 2);
}

// A second call sends no change: the kernel reports none to anybody.
TEST_F(KernelLinks, TwiceChangesNothing) {
  const BridgeDomain domain = set_up(*machine_);
  ASSERT_TRUE(fine(kernel().set_core_flags(domain, false, false)));
  machine_->open();  // a restart, which adopts
  // The kernel finds links operational a moment after they were set up, and reports that too.
  ASSERT_EQ(shell("for i in $(seq 100); do"
                  " ip -o link show up | grep -Eq 'state (LOWERLAYER)?DOWN' || exit 0; sleep 0.05;"
                  "done; echo a link stays down"),
            "");
  ChangeCounter changes;
  const auto again = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(again));
  EXPECT_EQ(again->bridge, domain.bridge);
  EXPECT_EQ(again->vxlan, domain.vxlan);
  for (int i : {1, 2})
    EXPECT_TRUE(fine(kernel().attach_port(domain, machine_->port(i), false, true)));
  EXPECT_TRUE(fine(kernel().set_core_flags(domain, false, false)));
  EXPECT_EQ(changes.count(), 0u);
}

TEST_F(KernelLinks, SetsPortFlags) {
  const BridgeDomain domain = set_up(*machine_);
  const auto m1 = machine_->port(1);
  expect_link("m1", {"master br100", "learning on", "flood off", "mcast_flood on", "bcast_flood on",
                     "group_fwd_mask 0", "isolated off", "hairpin off", "addrgenmode none"});
  ASSERT_TRUE(fine(kernel().attach_port(domain, m1, true, false)));
  expect_link("m1", {"flood on", "mcast_flood off", "bcast_flood off"});
  // Somebody opened the port for LACP; joining again closes it.
  expect_shell("ip link set m1 type bridge_slave group_fwd_mask 0x4 isolated on learning off");
  ASSERT_TRUE(fine(kernel().attach_port(domain, m1, true, false)));
  expect_link("m1", {"group_fwd_mask 0", "isolated off", "learning on"});
  ASSERT_TRUE(fine(kernel().set_core_flags(domain, true, false)));
  expect_link("vx100", {"learning off", "flood on", "mcast_flood off", "bcast_flood off"});
  ASSERT_TRUE(fine(kernel().set_core_flags(domain, false, true)));
  expect_link("vx100", {"learning off", "flood off", "mcast_flood on", "bcast_flood on"});
}

TEST_F(KernelLinks, PortOfAnotherBridgeIsNotTaken) {
  const auto domain = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  expect_shell("ip link add brx type bridge; ip link set m1 master brx");
  const auto result = kernel().attach_port(*domain, machine_->port(1), false, true);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("port m1: master is brx"));
}

TEST_F(KernelLinks, AdoptsAndCorrectsForeignDevices) {
  expect_shell(
      "ip link add br100 address 02:00:00:00:aa:01 type bridge stp_state 1 group_fwd_mask 0x8;"
      "ip link add vx100 type vxlan id 100 local 192.0.2.1 dstport 4789 learning"
      " remote 192.0.2.77;"
      "ip link set vx100 mtu 1400; ip link set m1 master br100");
  const auto bridge = machine_->index("br100"), vxlan = machine_->index("vx100");
  const auto domain = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  EXPECT_EQ(domain->bridge, bridge);
  EXPECT_EQ(domain->vxlan, vxlan);
  expect_link("br100", {"link/ether 02:00:00:00:aa:01", "stp_state 0", "group_fwd_mask 0",
                        "mcast_snooping 0", "ageing_time 1440000", "state UP"});
  expect_link("vx100", {"mtu 1500", "nolearning", "learning off", "master br100"});
  EXPECT_THAT(shell("ip -d link show vx100"), Not(HasSubstr("remote")));
  EXPECT_EQ(shell("bridge fdb show dev vx100 | grep 192.0.2.77 || true"), "");
  EXPECT_THAT(shell("ip -d link show"), Not(HasSubstr("peerlan:")));
  expect_link("m1", {"master br100"});
}

// A port with a lower address joins later: the bridge keeps its own.
TEST_F(KernelLinks, AdoptedBridgeKeepsItsMac) {
  expect_shell(
      "ip link set m1 address 02:00:00:00:aa:02; ip link set m2 address 02:00:00:00:aa:01;"
      "ip link add br100 type bridge; ip link set m1 master br100");
  const auto domain = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  expect_link("br100", {"link/ether 02:00:00:00:aa:02"});
  ASSERT_TRUE(fine(kernel().attach_port(*domain, machine_->port(2), false, true)));
  expect_link("br100", {"link/ether 02:00:00:00:aa:02"});
}

TEST_F(KernelLinks, RefusesWhatCannotBeChanged) {
  const auto vxlan = [&](const std::string& options) {
    shell("ip link del vx100");
    expect_shell("ip link add vx100 type vxlan " + options);
    return refusal(test_links());
  };
  EXPECT_THAT(vxlan("id 99 local 192.0.2.1 dstport 4789"),
              HasSubstr("vxlan vx100: vni is 99, wanted 100"));
  EXPECT_THAT(vxlan("id 100 local 192.0.2.9 dstport 4789"),
              HasSubstr("vxlan vx100: local is 192.0.2.9, wanted 192.0.2.1"));
  EXPECT_THAT(vxlan("id 100 dstport 4789"),
              HasSubstr("vxlan vx100: local is none, wanted 192.0.2.1"));
  EXPECT_THAT(vxlan("id 100 local 192.0.2.1 dstport 8472"),
              HasSubstr("vxlan vx100: dstport is 8472, wanted 4789"));
  EXPECT_THAT(vxlan("id 100 local 192.0.2.1 dstport 4789 group 239.1.1.1 dev lo"),
              HasSubstr("vxlan vx100: group is 239.1.1.1, wanted none"));
  EXPECT_THAT(vxlan("external dstport 4789 local 192.0.2.1"),
              HasSubstr("vxlan vx100: external is on, wanted off"));
  expect_shell(
      "ip link del vx100; ip link add brx type bridge;"
      "ip link add vx100 master brx type vxlan id 100 local 192.0.2.1 dstport 4789");
  EXPECT_THAT(refusal(test_links()), HasSubstr("vxlan vx100: master is brx, wanted br100"));
  expect_shell("ip link del vx100; ip link add vx100 type veth");
  EXPECT_THAT(refusal(test_links()), HasSubstr("vx100 is a device of kind veth"));
  expect_shell("ip link del vx100; ip link add vx0 type vxlan id 100 local 192.0.2.1 dstport 4789");
  EXPECT_THAT(refusal(test_links()), HasSubstr("create vxlan vx100: File exists"));
  expect_shell("ip link del br100; ip link add br100 type veth");
  EXPECT_THAT(refusal(test_links()), HasSubstr("br100 is a device of kind veth"));
  Links long_name = test_links();
  long_name.bridge = "a-name-that-is-too-long";
  EXPECT_FALSE(kernel().ensure_domain(long_name));
}

TEST_F(KernelLinks, RefusesAVlanAwareBridge) {
  if (shell("ip link add br100 type bridge vlan_filtering 1") != "")
    GTEST_SKIP() << "SKIPPED: this kernel's bridge has no VLAN filtering";
  EXPECT_THAT(refusal(test_links()), HasSubstr("bridge br100: vlan_filtering is 1, wanted 0"));
  expect_link("br100", {"vlan_filtering 1"});
}

// With the kernel's defaults bridge, VXLAN device and ports would send MLD, RS and DAD.
TEST_F(KernelLinks, SendsNothingOfItsOwn) {
  expect_shell(
      "ip link set m1 down; ip link set m2 down;"
      "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
  Tap one("p1");
  const auto domain = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  for (int i : {1, 2})
    ASSERT_TRUE(fine(kernel().attach_port(*domain, machine_->port(i), false, true)));
  for (const char* device : {"br100", "vx100", "m1", "m2"}) {
    const std::string conf = "/proc/sys/net/ipv6/conf/" + std::string(device);
    EXPECT_EQ(shell("cat " + conf + "/disable_ipv6"), "1\n") << device;
    EXPECT_EQ(shell("ip -6 address show dev " + std::string(device)), "");
  }
  expect_shell("ip link set m1 up; ip link set m2 up");
  ASSERT_TRUE(machine_->wait_event([&](const KernelEvent& event) {
    const auto* e = std::get_if<LinkChanged>(&event);
    return e && e->index == machine_->port(1) && e->up;
  }));
  EXPECT_THAT(one.received(), ::testing::IsEmpty());
}

// Who-has for an address of another device of the router: no answer from the peering LAN. For one
// of the bridge itself there is.
TEST_F(KernelLinks, BridgeAnswersOnlyForItsOwnAddresses) {
  set_up(*machine_);
  expect_shell("ip address add 192.0.2.1/32 dev lo; ip address add 203.0.113.1/24 dev br100");
  Tap one("p1");
  const auto who_has = [&](const net::IpAddress& target) {
    std::vector<uint8_t> frame;
    const auto put = [&](auto bytes) { frame.insert(frame.end(), bytes.begin(), bytes.end()); };
    put(net::kBroadcastMac.bytes());
    put(mac_of(1).bytes());
    put(std::array<uint8_t, 10>{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1});
    put(mac_of(1).bytes());
    put(ip("203.0.113.7").bytes());
    put(net::MacAddress().bytes());
    put(target.bytes());
    one.send(frame);
    // Behind it, a frame that must arrive: the request has been handled then.
    machine_->frame(2, mac_of(2));
    machine_->drain();
    auto frames = one.received();
    std::erase_if(frames, [](const auto& f) { return f[12] != 0x08 || f[13] != 0x06; });
    return frames.size();
  };
  EXPECT_EQ(who_has(ip("192.0.2.1")), 0u);
  EXPECT_EQ(who_has(ip("203.0.113.1")), 1u);
}

TEST_F(KernelLinks, OperatorsAddressOnAdoptedBridgeStays) {
  expect_shell(
      "ip link add br100 type bridge; ip link set br100 up;"
      "ip address add 2001:db8::5/64 dev br100 nodad");
  ASSERT_TRUE(fine(kernel().ensure_domain(test_links())));
  EXPECT_THAT(shell("ip -6 address show dev br100"), HasSubstr("2001:db8::5/64"));
}

TEST_F(KernelLinks, ChangedSettingsAreApplied) {
  Links links = test_links();
  ASSERT_TRUE(fine(kernel().ensure_domain(links)));
  links.mtu = 9000;
  links.ageing = std::chrono::seconds(300);
  links.flood_unknown_unicast = true;
  ASSERT_TRUE(fine(kernel().ensure_domain(links)));
  expect_link("br100", {"mtu 9000", "ageing_time 30000"});
  expect_link("vx100", {"mtu 9000", "flood on"});
}

TEST_F(KernelLinks, TeardownKeepsForeignDevices) {
  expect_shell(
      "ip link add br100 type bridge;"
      "ip link add vx100 type vxlan id 100 local 192.0.2.1 dstport 4789 nolearning;"
      "ip link set vx100 master br100");
  const BridgeDomain domain = set_up(*machine_);
  expect_shell("bridge fdb add 02:99:00:00:00:01 dev m1 master static");
  const RemoteMac remote{mac_of(1), ip("192.0.2.2")};
  ASSERT_TRUE(fine(kernel().apply_remote_macs(domain, std::span(&remote, 1))));
  ASSERT_TRUE(fine(kernel().add_flood(domain, ip("192.0.2.2"))));
  ASSERT_TRUE(fine(kernel().set_port_mac(machine_->port(1), mac_of(2))));
  ASSERT_TRUE(fine(kernel().teardown(test_links())));
  EXPECT_EQ(machine_->index("br100"), domain.bridge);
  EXPECT_EQ(machine_->index("vx100"), domain.vxlan);
  FdbEntry operators = on_bridge(machine_->port(1), *net::MacAddress::parse("02:99:00:00:00:01"));
  operators.is_static = true;
  EXPECT_ENTRIES(kernel(), domain, {operators});
}

TEST_F(KernelLinks, TeardownOfOurVxlanInAForeignBridge) {
  expect_shell("ip link add br100 type bridge");
  const BridgeDomain domain = set_up(*machine_);
  machine_->open();  // a later run tears down
  ASSERT_TRUE(fine(kernel().teardown(test_links())));
  EXPECT_EQ(machine_->index("br100"), domain.bridge);
  EXPECT_EQ(machine_->index("vx100"), net::IfIndex());
}

TEST_F(KernelLinks, TeardownLeavesNothing) {
  const std::string before = shell("ip -o link show | cut -d: -f2");
  const BridgeDomain domain = set_up(*machine_);
  const RemoteMac remote{mac_of(1), ip("192.0.2.2")};
  ASSERT_TRUE(fine(kernel().apply_remote_macs(domain, std::span(&remote, 1))));
  ASSERT_TRUE(fine(kernel().set_port_mac(machine_->port(1), mac_of(2))));
  machine_->open();
  ASSERT_TRUE(fine(kernel().teardown(test_links())));
  EXPECT_EQ(shell("ip -o link show | cut -d: -f2"), before);
  EXPECT_EQ(shell("bridge fdb show | grep -e 02:10:00 -e br100 -e vx100 || true"), "");
}

}  // namespace
}  // namespace dataplane::testing
