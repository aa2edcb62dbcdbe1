// SPDX-License-Identifier: GPL-2.0-or-later
// What of a reload reaches the RIB: rules and members that did not change stay the same objects.
#include "daemon/route_policies.h"

#include <gtest/gtest.h>

using namespace peerland;

namespace {

config::NodeSettings settings() {
  config::NodeSettings s;
  s.route_policies["a"] = {"a", {{}}};
  s.route_policies["b"] = {"b", {{}}};
  s.members.push_back({net::Vni(100), {}, {*net::IpPrefix::parse("192.0.2.0/24")}, {}, {}});
  return s;
}
bgp::NeighborSettings neighbor(const std::string& accept, bgp::BindingGuard guard,
                               const std::string& send = "") {
  bgp::NeighborSettings n;
  n.accept_policy = accept;
  n.send_policy = send;
  n.binding_guard = guard;
  return n;
}
using enum bgp::BindingGuard;

}  // namespace

TEST(RoutePolicies, NeighborsShareThem) {
  const RoutePolicies policies(settings(), {});
  EXPECT_EQ(policies.of(neighbor("", Off)).accept, nullptr);
  EXPECT_EQ(policies.of(neighbor("", Off)).send, nullptr);
  for (const auto guard : {Off, Flag, Reject})
    EXPECT_EQ(policies.of(neighbor("a", guard)).accept, policies.of(neighbor("a", guard)).accept);
  EXPECT_EQ(policies.of(neighbor("a", Off, "b")).send, policies.of(neighbor("b", Off)).accept);
  EXPECT_NE(policies.of(neighbor("", Flag)).accept, policies.of(neighbor("", Reject)).accept);
  EXPECT_NE(policies.of(neighbor("a", Flag)).accept, policies.of(neighbor("a", Off)).accept);
}

TEST(RoutePolicies, AReloadReplacesOnlyWhatChanged) {
  const RoutePolicies before(settings(), {});
  const auto rejecting = before.of(neighbor("a", Reject)).accept;

  const RoutePolicies same(settings(), before);
  EXPECT_EQ(same.of(neighbor("a", Reject)).accept, rejecting);
  EXPECT_EQ(same.of(neighbor("", Reject)).accept, before.of(neighbor("", Reject)).accept);

  auto changed = settings();
  changed.route_policies["b"].rules[0].then = evpn::RuleAction::Flag;
  const RoutePolicies rules(changed, before);
  EXPECT_EQ(rules.of(neighbor("a", Reject)).accept, rejecting);
  EXPECT_NE(rules.of(neighbor("b", Off)).accept, before.of(neighbor("b", Off)).accept);

  changed = settings();
  changed.members[0].macs.push_back({*net::MacAddress::parse("02:00:00:00:00:01"), {}, "", {}});
  const RoutePolicies members(changed, before);
  EXPECT_NE(members.of(neighbor("a", Reject)).accept, rejecting);
  EXPECT_EQ(members.of(neighbor("a", Off)).accept, before.of(neighbor("a", Off)).accept);
}

TEST(MemberLists, ADomainCountsWhenTheWholeLanIsKnown) {
  config::NodeSettings s;
  s.domains.resize(1);
  auto& domain = s.domains[0];
  domain.evpn.vni = net::Vni(100);
  domain.proxy.prefixes = {*net::IpPrefix::parse("192.0.2.0/24")};
  const auto mac = *net::MacAddress::parse("02:00:00:00:00:01");
  const auto one = *net::IpAddress::parse("192.0.2.1"), two = *net::IpAddress::parse("192.0.2.2");
  dataplane::MemberPort port;
  port.interface = "m1";
  port.macs = {mac};
  port.addresses = {one};
  domain.ports = {port};
  domain.proxy.bindings = {{one, {mac}, "m1", net::AsNumber(64501), "Alpha"}};
  EXPECT_TRUE(member_lists(s).empty());
  domain.proxy.bindings.push_back({two, {mac}, "", net::AsNumber(64502), ""});
  const auto lists = member_lists(s);
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_EQ(lists[0].addresses.size(), 2u);
  EXPECT_EQ(lists[0].macs.size(), 1u);
  s.members.push_back({net::Vni(100), {}, domain.proxy.prefixes, {}, {}});
  EXPECT_TRUE(member_lists(s).at(0).addresses.empty());  // bgp.members wins
}
