// SPDX-License-Identifier: GPL-2.0-or-later
// Events of a real kernel: what is reported, what is not, and what happens when they are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "real_machine.h"

namespace dataplane::testing {
namespace {

class KernelEvents : public ::testing::Test {
 protected:
  void SetUp() override {
    PEERLAN_NEEDS_ROOT();
    machine_ = std::make_unique<RealMachine>();
  }
  Kernel& kernel() { return machine_->kernel(); }
  std::vector<KernelEvent>& events() { return machine_->events(); }
  void expect_shell(const std::string& command) { EXPECT_EQ(shell(command), "") << command; }
  template <class T>
  std::vector<T> of_type() {
    std::vector<T> found;
    for (const KernelEvent& event : events())
      if (const auto* e = std::get_if<T>(&event)) found.push_back(*e);
    return found;
  }
  std::unique_ptr<RealMachine> machine_;
};

auto link_gone(net::IfIndex index) {
  return [=](const KernelEvent& event) {
    const auto* e = std::get_if<LinkChanged>(&event);
    return e && e->index == index && !e->exists;
  };
}

TEST_F(KernelEvents, DevicesComeChangeAndGo) {
  machine_->drain();
  EXPECT_TRUE(events().empty());  // what was there is no event
  expect_shell("ip link add d0 type vxlan id 9 local 192.0.2.1 dstport 4790");
  const auto d0 = machine_->index("d0");
  expect_shell(
      "ip link set d0 up; ip link set d0 up; ip link set d0 mtu 1300;"
      "ip link set d0 down; ip link set d0 name d1; ip link del d1");
  ASSERT_TRUE(machine_->wait_event(link_gone(d0)));
  const auto changes = of_type<LinkChanged>();
  ASSERT_EQ(changes.size(), 5u);  // the MTU is none of ours, and up twice is once
  EXPECT_TRUE(changes[0].exists && !changes[0].up && changes[0].name == "d0");
  EXPECT_TRUE(changes[1].up);
  EXPECT_FALSE(changes[2].up);
  EXPECT_EQ(changes[3].name, "d1");
  EXPECT_FALSE(changes[4].exists);
}

TEST_F(KernelEvents, UpNeedsCarrier) {
  const auto m1 = machine_->port(1);
  const auto changed = [&](bool up) {
    return [=](const KernelEvent& event) {
      const auto* e = std::get_if<LinkChanged>(&event);
      return e && e->index == m1 && e->up == up;
    };
  };
  expect_shell("ip link set p1 down");
  EXPECT_TRUE(machine_->wait_event(changed(false)));
  expect_shell("ip link set p1 up");
  EXPECT_TRUE(machine_->wait_event(changed(true)));
}

TEST_F(KernelEvents, MembershipIsReportedOnce) {
  const auto domain = kernel().ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  machine_->drain();
  events().clear();
  const auto m1 = machine_->port(1);
  ASSERT_TRUE(fine(kernel().attach_port(*domain, m1, false, true)));
  ASSERT_TRUE(fine(kernel().attach_port(*domain, m1, true, false)));
  ASSERT_TRUE(fine(kernel().detach_port(m1)));
  machine_->drain();
  std::vector<net::IfIndex> bridges;
  for (const auto& change : of_type<LinkChanged>())
    if (change.index == m1) bridges.push_back(change.bridge);
  EXPECT_EQ(bridges, (std::vector<net::IfIndex>{domain->bridge, {}}));
}

TEST_F(KernelEvents, LinksListsAllAndBecomesWhatIsKnown) {
  const BridgeDomain domain = set_up(*machine_);
  const auto links = kernel().links();
  ASSERT_TRUE(fine(links));
  std::set<std::string> names;
  for (const auto& link : *links) {
    EXPECT_TRUE(link.exists);
    names.insert(link.name);
    if (link.name == "m1") {
      EXPECT_TRUE(link.up);
      EXPECT_EQ(link.bridge, domain.bridge);
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"lo", "m1", "p1", "m2", "p2", "br100", "vx100"}));
}

TEST_F(KernelEvents, OwnEntriesAreNotLearned) {
  const BridgeDomain domain = set_up(*machine_);
  machine_->drain();
  events().clear();
  const RemoteMac remotes[] = {{mac_of(1), ip("192.0.2.2")}, {mac_of(2), ip("192.0.2.2"), true}};
  ASSERT_TRUE(fine(kernel().apply_remote_macs(domain, remotes)));
  ASSERT_TRUE(fine(kernel().add_flood(domain, ip("192.0.2.2"))));
  ASSERT_TRUE(fine(kernel().remove_flood(domain, ip("192.0.2.2"))));
  ASSERT_TRUE(fine(kernel().remove_tunnel_mac(domain, mac_of(1))));
  expect_shell("ip link set m1 address 02:aa:00:00:00:01");  // a device's own address
  machine_->drain();
  EXPECT_TRUE(of_type<FdbLearned>().empty());
  EXPECT_TRUE(of_type<FdbGone>().empty());
}

TEST_F(KernelEvents, OtherBridgesAreNotReported) {
  set_up(*machine_);
  expect_shell(
      "ip link add brx type bridge; ip link add d0 type veth peer name d0p;"
      "ip link set d0 master brx; ip link set brx up; ip link set d0 up; ip link set d0p up;"
      "bridge fdb add 02:99:00:00:00:01 dev d0 master dynamic;"
      "bridge fdb del 02:99:00:00:00:01 dev d0 master");
  machine_->drain();
  EXPECT_TRUE(of_type<FdbLearned>().empty());
  EXPECT_TRUE(of_type<FdbGone>().empty());
}

TEST_F(KernelEvents, AgedEntryIsGone) {
  Links links = test_links();
  links.ageing = std::chrono::seconds(0);
  const auto domain = kernel().ensure_domain(links);
  ASSERT_TRUE(fine(domain));
  ASSERT_TRUE(fine(kernel().attach_port(*domain, machine_->port(1), false, true)));
  ASSERT_TRUE(fine(kernel().attach_port(*domain, machine_->port(2), false, true)));
  links.ageing = std::chrono::seconds(1);
  ASSERT_TRUE(fine(kernel().ensure_domain(links)));
  machine_->frame(1, mac_of(1));
  ASSERT_TRUE(machine_->wait_event(learned(machine_->port(1), mac_of(1))));
  EXPECT_TRUE(machine_->wait_event(gone(machine_->port(1), mac_of(1))));
}

// A tiny buffer overruns; the event says so once, and a dump brings what was lost.
TEST_F(KernelEvents, OverrunIsReportedAndADumpHeals) {
  machine_->open({.event_buffer_bytes = 65536});
  const BridgeDomain domain = set_up(*machine_);
  machine_->drain();
  Tap tap("p1");
  for (uint32_t i = 0; i < 2000; ++i) tap.send(net::kBroadcastMac, mac_of(i));
  ASSERT_TRUE(machine_->wait_event(
      [](const KernelEvent& event) { return std::holds_alternative<EventsLost>(event); }));
  EXPECT_LT(of_type<FdbLearned>().size(), 2000u);
  EXPECT_LT(of_type<EventsLost>().size(), 10u);
  ASSERT_TRUE(fine(kernel().links()));
  EXPECT_EQ(entries(kernel(), domain).size(), 2000u);
  // It goes on after that, once what is in the buffer has been read.
  machine_->io().restart();
  machine_->io().poll();
  machine_->frame(2, mac_of(5000));
  EXPECT_TRUE(machine_->wait_event(learned(machine_->port(2), mac_of(5000))));
}

TEST_F(KernelEvents, DefaultBufferHoldsABurst) {
  const BridgeDomain domain = set_up(*machine_);
  std::set<net::MacAddress> wanted;
  {
    Tap tap("p1");
    for (uint32_t i = 0; i < 20000; ++i) {
      tap.send(net::kBroadcastMac, mac_of(i));
      wanted.insert(mac_of(i));
    }
  }
  ASSERT_TRUE(machine_->wait_event(learned(machine_->port(1), mac_of(19999))));
  std::set<net::MacAddress> seen;
  for (const auto& event : of_type<FdbLearned>()) seen.insert(event.mac);
  EXPECT_EQ(seen.size(), wanted.size());
  EXPECT_TRUE(of_type<EventsLost>().empty());
  EXPECT_EQ(entries(kernel(), domain).size(), wanted.size());
}

// One turn of the loop reads a bounded number of events.
TEST_F(KernelEvents, OtherWorkGetsItsTurn) {
  set_up(*machine_);
  machine_->drain();
  Tap tap("p1");
  for (uint32_t i = 0; i < 2000; ++i) tap.send(net::kBroadcastMac, mac_of(i));
  events().clear();
  machine_->io().restart();
  EXPECT_EQ(machine_->io().run_one(), 1u);
  EXPECT_GT(events().size(), 0u);
  EXPECT_LE(events().size(), 512u);
}

TEST_F(KernelEvents, HandlerMayDestroyTheKernel) {
  bool called = false;
  kernel().on_event([&](const KernelEvent&) {
    called = true;
    machine_->close();
  });
  expect_shell("ip link add d0 type bridge; ip link add d1 type bridge");
  machine_->io().restart();
  machine_->io().run();  // ends: nothing waits any more
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace dataplane::testing
