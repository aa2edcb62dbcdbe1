// SPDX-License-Identifier: GPL-2.0-or-later
// Neighbors with link-local addresses, in a network namespace of the test's own: two pairs of
// devices with the same two addresses, so that only the interface tells the neighbors apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "speaker_support.h"

using namespace bgp;
using namespace bgp::test;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

class LinkLocal : public SpeakerTest {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "needs the right to make a namespace";
    const std::string devices =
        "ip link set lo up;"
        "for p in a b; do"
        "  ip link add ${p}0 type veth peer name ${p}1;"
        "  for i in 0 1; do"
        "    ip link set $p$i addrgenmode none;"
        "    ip link set $p$i up;"
        "    ip addr add fe80::$((i + 1))/64 dev $p$i nodad;"
        "  done;"
        "done";
    ASSERT_EQ(std::system(devices.c_str()), 0);
  }
};

NeighborSettings link_local(const char* address, const char* interface) {
  NeighborSettings n;
  n.address = ip(address);
  n.interface = interface;
  n.remote_as = net::AsNumber(65000);
  n.connect_retry = 1s;
  return n;
}

Settings client_at(const char* router_id, const char* interface, uint16_t port) {
  Settings s = base(router_id);
  s.neighbors = {link_local("fe80::2", interface)};
  s.neighbors[0].port = port;
  return s;
}

std::string state(const Node& node, const std::string& address) {
  for (const NeighborView& view : node.speaker->neighbors())
    if (view.address == address) return view.state;
  return "none";
}

}  // namespace

TEST_F(LinkLocal, SameAddressOnTwoInterfaces) {
  Settings s = base("10.0.0.9");
  s.listen = {{ip("::"), 0}};
  s.neighbors = {link_local("fe80::1", "a1"), link_local("fe80::1", "b1")};
  for (NeighborSettings& n : s.neighbors) {
    n.passive = true;
    n.role = NeighborRole::ReflectorClient;
  }
  Node rr(io, s);
  Node a(io, client_at("10.0.0.2", "a0", rr.port()));
  Node b(io, client_at("10.0.0.3", "b0", rr.port()));
  a.originate(1);
  ASSERT_TRUE(until([&] { return b.has(1); }));
  EXPECT_EQ(state(rr, "fe80::1%a1"), "Established");
  EXPECT_EQ(state(rr, "fe80::1%b1"), "Established");
  EXPECT_EQ(state(a, "fe80::2%a0"), "Established");
  EXPECT_EQ(rr.speaker->reset("fe80::1", "").error(), "several neighbors are called fe80::1");
  EXPECT_TRUE(rr.speaker->reset("fe80::1%b1", ""));
  ASSERT_TRUE(until([&] { return b.view("fe80::2").dropped_count == 1; }));
  EXPECT_EQ(a.view("fe80::2").dropped_count, 0u);
}

TEST_F(LinkLocal, ListensOnALinkLocalAddress) {
  Settings s = base("10.0.0.9");
  s.listen = {{ip("fe80::2"), 0, "a1"}};
  s.neighbors = {link_local("fe80::1", "a1")};
  s.neighbors[0].passive = true;
  Node rr(io, s);
  Node a(io, client_at("10.0.0.2", "a0", rr.port()));
  a.originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));
}

TEST_F(LinkLocal, OnlyWhereItIsANeighbor) {
  Settings s = base("10.0.0.9");
  s.listen = {{ip("::"), 0}};
  s.neighbors = {link_local("fe80::1", "a1")};
  s.neighbors[0].passive = true;
  Node rr(io, s);
  Node b(io, client_at("10.0.0.3", "b0", rr.port()));
  ASSERT_TRUE(until([&] { return rr.speaker->rejected_connections().not_a_neighbor > 0; }));
  EXPECT_EQ(state(rr, "fe80::1%a1"), "Active");
}

TEST_F(LinkLocal, MissingInterface) {
  Node a(io, client_at("10.0.0.2", "nowhere", 1790));
  ASSERT_TRUE(until([&] { return !a.view("fe80::2").last_error.empty(); }));
  EXPECT_THAT(a.view("fe80::2").last_error, HasSubstr("interface nowhere: no such device"));
}
