// SPDX-License-Identifier: GPL-2.0-or-later
// Forwarding entries in a real kernel: the cases of the contract, and what only the real one has.
#include <gtest/gtest.h>

#include "real_machine.h"

namespace dataplane::testing {
namespace {

class RealKernelContract : public ::testing::TestWithParam<Case> {};

TEST_P(RealKernelContract, Holds) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  GetParam().run(machine);
}

INSTANTIATE_TEST_SUITE_P(All, RealKernelContract, ::testing::ValuesIn(contract_cases()), case_name);

TEST(KernelFdb, TwentyThousandRemoteMacs) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  const BridgeDomain domain = set_up(machine);
  std::vector<RemoteMac> changes;
  for (uint32_t i = 0; i < 20000; ++i)
    changes.push_back({mac_of(i), net::IpAddress::v4(0xc0000202 + i % 50)});
  ASSERT_TRUE(fine(machine.kernel().apply_remote_macs(domain, changes)));
  std::vector<FdbEntry> wanted;
  for (const RemoteMac& change : changes) {
    wanted.push_back(external_on_bridge(domain.vxlan, change.mac));
    wanted.push_back(in_tunnel(domain.vxlan, change.mac, *change.vtep));
  }
  std::ranges::sort(wanted, entry_less);
  EXPECT_TRUE(entries(machine.kernel(), domain) == wanted);
  for (RemoteMac& change : changes) change.vtep = {};
  ASSERT_TRUE(fine(machine.kernel().apply_remote_macs(domain, changes)));
  ASSERT_TRUE(fine(machine.kernel().apply_remote_macs(domain, changes)));
  EXPECT_ENTRIES(machine.kernel(), domain, {});
}

TEST(KernelFdb, TriesAllAndReportsTheFirstError) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  const BridgeDomain domain = set_up(machine);
  // An IPv6 VTEP behind an IPv4 tunnel device, between two good ones.
  const auto result = machine.kernel().apply_remote_macs(
      domain, std::vector<RemoteMac>{{mac_of(1), ip("192.0.2.2")},
                                     {mac_of(2), ip("2001:db8::2")},
                                     {mac_of(3), ip("192.0.2.3")}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().error, 0);
  EXPECT_NE(result.error().what.find("02:10:00:00:00:02 behind 2001:db8::2"), std::string::npos)
      << result.error().what;
  const auto dump = entries(machine.kernel(), domain);
  for (const auto& good : {in_tunnel(domain.vxlan, mac_of(1), ip("192.0.2.2")),
                           in_tunnel(domain.vxlan, mac_of(3), ip("192.0.2.3"))})
    EXPECT_NE(std::ranges::find(dump, good), dump.end());
}

TEST(KernelFdb, Ipv6Vteps) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  Links links = test_links();
  links.vtep = ip("2001:db8::1");
  const auto domain = machine.kernel().ensure_domain(links);
  ASSERT_TRUE(fine(domain));
  ASSERT_TRUE(fine(machine.kernel().ensure_domain(links)));
  const RemoteMac remote{mac_of(1), ip("2001:db8::2")}, gone_again{mac_of(1), {}};
  EXPECT_TRUE(fine(machine.kernel().apply_remote_macs(*domain, std::span(&remote, 1))));
  EXPECT_TRUE(fine(machine.kernel().add_flood(*domain, ip("2001:db8::2"))));
  EXPECT_TRUE(fine(machine.kernel().add_flood(*domain, ip("2001:db8::3"))));
  EXPECT_ENTRIES(machine.kernel(), *domain,
                 {external_on_bridge(domain->vxlan, mac_of(1)),
                  in_tunnel(domain->vxlan, mac_of(1), ip("2001:db8::2")),
                  in_tunnel(domain->vxlan, {}, ip("2001:db8::2")),
                  in_tunnel(domain->vxlan, {}, ip("2001:db8::3"))});
  EXPECT_TRUE(fine(machine.kernel().apply_remote_macs(*domain, std::span(&gone_again, 1))));
  EXPECT_TRUE(fine(machine.kernel().remove_flood(*domain, ip("2001:db8::2"))));
  EXPECT_TRUE(fine(machine.kernel().remove_flood(*domain, ip("2001:db8::3"))));
  EXPECT_ENTRIES(machine.kernel(), *domain, {});
}

// Two senders with one MAC: the provisioned port keeps it, both pass frames, and it gets answers.
TEST(KernelFdb, BothPortsPassFramesOfAProvisionedMac) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  const BridgeDomain domain = set_up(machine);
  ASSERT_TRUE(fine(machine.kernel().set_port_mac(machine.port(1), mac_of(1))));
  ASSERT_TRUE(fine(machine.kernel().set_port_mac(machine.port(2), mac_of(2))));
  Tap one("p1"), two("p2");
  two.send(mac_of(2), mac_of(1));           // to itself: nothing to see
  two.send(net::kBroadcastMac, mac_of(1));  // the intruder
  machine.drain();
  EXPECT_EQ(one.received().size(), 1u);
  one.send(mac_of(2), mac_of(1));  // the owner
  machine.drain();
  EXPECT_EQ(two.received().size(), 1u);
  two.send(mac_of(1), mac_of(2));  // and the way back goes to the owner
  machine.drain();
  EXPECT_EQ(one.received().size(), 1u);
  EXPECT_ENTRIES(
      machine.kernel(), domain,
      {sticky_on_bridge(machine.port(1), mac_of(1)), sticky_on_bridge(machine.port(2), mac_of(2))});
}

TEST(KernelFdb, RestartKnowsWhatIsSticky) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  BridgeDomain domain = set_up(machine);
  RemoteMac remote{mac_of(1), ip("192.0.2.2"), true};
  ASSERT_TRUE(fine(machine.kernel().apply_remote_macs(domain, std::span(&remote, 1))));
  machine.open();
  domain = set_up(machine);
  ASSERT_TRUE(fine(machine.kernel().dump_fdb(domain)));  // as the daemon does when it starts
  remote.sticky = false;
  ASSERT_TRUE(fine(machine.kernel().apply_remote_macs(domain, std::span(&remote, 1))));
  EXPECT_ENTRIES(machine.kernel(), domain,
                 {external_on_bridge(domain.vxlan, mac_of(1)),
                  in_tunnel(domain.vxlan, mac_of(1), ip("192.0.2.2"))});
}

// Entries of other bridges and devices are not in the dump.
TEST(KernelFdb, DumpIsOfOneDomain) {
  PEERLAN_NEEDS_ROOT();
  RealMachine machine;
  const BridgeDomain domain = set_up(machine);
  ASSERT_EQ(shell("ip link add brx type bridge; ip link add d0 type veth peer name d0p;"
                  "ip link set d0 master brx; ip link set brx up; ip link set d0 up;"
                  "ip link add vxx type vxlan id 7 dstport 4790 local 192.0.2.1;"
                  "bridge fdb add 02:99:00:00:00:01 dev d0 master static;"
                  "bridge fdb add 02:99:00:00:00:02 dev vxx dst 192.0.2.9"),
            "");
  EXPECT_ENTRIES(machine.kernel(), domain, {});
  const auto dump = machine.kernel().dump_fdb(domain);
  ASSERT_TRUE(fine(dump));
  for (const FdbEntry& entry : *dump) {
    EXPECT_TRUE(entry.permanent) << ::testing::PrintToString(entry);
    EXPECT_TRUE(entry.port == domain.bridge || entry.port == domain.vxlan ||
                entry.port == machine.port(1) || entry.port == machine.port(2))
        << ::testing::PrintToString(entry);
  }
  EXPECT_EQ(dump->size(), 4u);
}

}  // namespace
}  // namespace dataplane::testing
