// SPDX-License-Identifier: GPL-2.0-or-later
// Speakers with real sockets on the loopback: neighbors by prefix, RT-constrain, what operators ask
// for, limits, TCP-AO.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bgp/io/accept_limits.h"
#include "bgp/io/targets.h"
#include "bgp/rt_constrain.h"
#include "speaker_support.h"

using namespace bgp;
using namespace bgp::io;
using namespace bgp::test;
using namespace std::chrono_literals;
using net::Bytes;
using testing::HasSubstr;

namespace {

class SpeakerSessions : public SpeakerTest {};

constexpr ExtendedCommunity kRed{0x00, 0x02, 0xfd, 0xe8, 0, 0, 0, 100};
constexpr ExtendedCommunity kBlue{0x00, 0x02, 0xfd, 0xe8, 0, 0, 0, 101};

DynamicNeighbors dynamic(const char* prefix, uint32_t limit) {
  const auto parsed = net::IpPrefix::parse(prefix).value();
  DynamicNeighbors d;
  d.prefix = parsed.address;
  d.prefix_length = parsed.length;
  d.limit = limit;
  d.like = neighbor("127.0.0.9", "127.0.0.1");
  d.like.role = NeighborRole::ReflectorClient;
  d.like.description = prefix;
  return d;
}

Settings dynamic_reflector(std::vector<DynamicNeighbors> groups) {
  Settings s = reflector(0);
  s.dynamic_neighbors = std::move(groups);
  return s;
}

std::size_t count_dynamic(const Node& node) {
  std::size_t count = 0;
  for (const NeighborView& view : node.speaker->neighbors()) count += view.dynamic;
  return count;
}

Settings constrained(Settings s) {
  for (NeighborSettings& n : s.neighbors) n.route_target_constrain = true;
  return s;
}

void originate(Node& node, uint32_t key, const ExtendedCommunity& target) {
  const Bytes nlri = fake_nlri(key);
  auto attributes = std::make_shared<Attributes>();
  attributes->next_hop = ip("192.0.2.1");
  attributes->extended_communities = {target};
  node.speaker->originate(fake_item(nlri), attributes);
}

}  // namespace

// --- Neighbors by prefix ---

TEST_F(SpeakerSessions, DynamicNeighborComesAndGoes) {
  Node rr(io, dynamic_reflector({dynamic("127.0.0.0/29", 3)}));
  Settings without_restart = client(2, rr.port());
  without_restart.neighbors[0].graceful_restart = false;
  auto b = std::make_unique<Node>(io, without_restart);
  Node c(io, client(3, rr.port()));
  b->originate(1);
  ASSERT_TRUE(until([&] { return c.has(1) && count_dynamic(rr) == 2; }));
  const NeighborView view = rr.view("127.0.0.2");
  EXPECT_TRUE(view.dynamic && view.settings.passive);
  EXPECT_EQ(view.settings.description, "127.0.0.0/29");
  b.reset();
  ASSERT_TRUE(until([&] { return !c.has(1) && count_dynamic(rr) == 1; }));
  EXPECT_TRUE(rr.up("127.0.0.3"));
}

TEST_F(SpeakerSessions, DynamicNeighborStaysWhileItsRoutesAreKept) {
  Node rr(io, dynamic_reflector({dynamic("127.0.0.0/29", 3)}));
  auto b = std::make_unique<Node>(io, client(2, rr.port()));
  b->originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));
  b.reset();
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").stale_kept; }));
  run_for(50ms);
  EXPECT_EQ(count_dynamic(rr), 1u);
  EXPECT_TRUE(rr.has(1));
}

TEST_F(SpeakerSessions, DynamicLimitAndPrecedence) {
  Settings s = dynamic_reflector({dynamic("127.0.0.0/28", 1), dynamic("127.0.0.4/32", 1)});
  s.neighbors = {neighbor("127.0.0.2", "127.0.0.1")};
  s.neighbors[0].passive = true;
  s.neighbors[0].description = "exact";
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  Node c(io, client(3, rr.port()));
  Node d(io, client(4, rr.port()));
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1") && c.up("127.0.0.1") && d.up("127.0.0.1"); }));
  EXPECT_EQ(rr.view("127.0.0.2").settings.description, "exact");
  EXPECT_EQ(rr.view("127.0.0.3").settings.description, "127.0.0.0/28");
  EXPECT_EQ(rr.view("127.0.0.4").settings.description, "127.0.0.4/32");
  EXPECT_FALSE(rr.view("127.0.0.2").dynamic);
  Script e(io, "127.0.0.5", rr.port());
  ASSERT_TRUE(until([&] { return e.poll().empty() && e.closed; }));
  EXPECT_EQ(rr.speaker->rejected_connections().dynamic_limit, 1u);
  EXPECT_EQ(count_dynamic(rr), 2u);
  Script f(io, "127.0.0.17", rr.port());
  ASSERT_TRUE(until([&] { return f.poll().empty() && f.closed; }));
  EXPECT_EQ(rr.speaker->rejected_connections().not_a_neighbor, 1u);
}

TEST_F(SpeakerSessions, DynamicWithMd5) {
  auto group = dynamic("127.0.0.0/29", 3);
  group.like.password = "secret";
  Node rr(io, dynamic_reflector({group}));
  Settings right = client(2, rr.port());
  right.neighbors[0].password = "secret";
  Node b(io, right);
  Settings wrong = client(3, rr.port());
  wrong.neighbors[0].password = "other";
  Node c(io, wrong);
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1"); }));
  run_for(300ms);
  EXPECT_EQ(count_dynamic(rr), 1u);
  EXPECT_FALSE(c.up("127.0.0.1"));
}

TEST_F(SpeakerSessions, DynamicReconfigured) {
  Settings s = dynamic_reflector({dynamic("127.0.0.0/29", 3)});
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1"); }));
  s.dynamic_neighbors[0].like.description = "renamed";
  ASSERT_TRUE(rr.speaker->reconfigure(s));
  EXPECT_EQ(rr.view("127.0.0.2").settings.description, "renamed");
  EXPECT_TRUE(rr.up("127.0.0.2"));
  s.dynamic_neighbors.clear();
  ASSERT_TRUE(rr.speaker->reconfigure(s));
  EXPECT_TRUE(rr.speaker->neighbors().empty());
  ASSERT_TRUE(until([&] { return !b.up("127.0.0.1"); }));
}

// --- RT-constrain ---

TEST_F(SpeakerSessions, RoutesGoWhereTheyAreWanted) {
  Node rr(io, constrained(reflector(3)));
  Node a(io, constrained(client(2, rr.port())));
  Node b(io, constrained(client(3, rr.port())));
  Node without(io, client(4, rr.port()));  // does not have it: everything
  a.speaker->set_import_targets({false, {kRed}});
  b.speaker->set_import_targets({false, {kRed}});
  originate(a, 1, kRed);
  originate(a, 2, kBlue);
  ASSERT_TRUE(until([&] { return without.has(1) && without.has(2) && b.has(1); }));
  EXPECT_FALSE(b.has(2));
  EXPECT_TRUE(rr.has(1) && rr.has(2));  // a reflector asks its clients for everything
  EXPECT_THAT(rr.view("127.0.0.2").families, testing::ElementsAre("25/70", "1/132"));
  EXPECT_EQ(rr.view("127.0.0.3").memberships, 1u);
  // The set grows, and shrinks again.
  b.speaker->set_import_targets({false, {kRed, kBlue}});
  ASSERT_TRUE(until([&] { return b.has(1) && b.has(2); }));
  b.speaker->set_import_targets({false, {kBlue}});
  ASSERT_TRUE(until([&] { return !b.has(1) && b.has(2); }));
  b.speaker->set_import_targets({true, {}});
  ASSERT_TRUE(until([&] { return b.has(1) && b.has(2); }));
  b.speaker->set_import_targets({});
  ASSERT_TRUE(until([&] { return b.routes.empty(); }));
  originate(a, 3, kRed);
  ASSERT_TRUE(until([&] { return without.has(3); }));
  EXPECT_FALSE(b.has(3));
}

TEST_F(SpeakerSessions, MembershipsPassTheReflector) {
  Node rr(io, constrained(reflector(2)));
  Node a(io, constrained(client(2, rr.port())));
  Node b(io, constrained(client(3, rr.port())));
  const auto knows = [](const Node& node, const ExtendedCommunity& target) {
    bool found = false;
    node.speaker->target_rib().for_each_path([&](const PathView& path) {
      found |=
          path.peer != kLocalPeer && std::ranges::equal(path.nlri, membership_nlri(65000, target));
      return true;
    });
    return found;
  };
  a.speaker->set_import_targets({false, {kRed}});
  ASSERT_TRUE(until([&] { return knows(b, kRed); }));
  // The reflector's own for everything, and nothing else.
  EXPECT_EQ(b.view("127.0.0.1").memberships, 2u);
  EXPECT_EQ(a.view("127.0.0.1").memberships, 1u);
  a.speaker->set_import_targets({});
  ASSERT_TRUE(until([&] { return !knows(b, kRed); }));
  EXPECT_EQ(b.view("127.0.0.1").memberships, 1u);
}

// RFC 4684 section 6: nothing goes out before the neighbor has said what it wants.
TEST_F(SpeakerSessions, NothingBeforeTheMembershipsAreKnown) {
  Settings s = constrained(reflector());
  s.neighbors[0].graceful_restart = false;
  Node rr(io, s);
  originate(rr, 1, kRed);
  originate(rr, 2, kBlue);
  Script peer(io, "127.0.0.2", rr.port());
  Open open;
  open.as_number = 65000;
  open.hold_time = 90;
  open.router_id = 0x0a000002;
  open.capabilities.multiprotocol = {kL2vpnEvpn, kRouteTargetConstrain};
  open.capabilities.four_octet_as = 65000;
  peer.send(encode_open(open));
  peer.send(encode_keepalive());
  const auto evpn = [&] {
    std::size_t count = 0;
    peer.poll();
    for (const Bytes& message : peer.seen) {
      if (message[18] != 2) continue;
      const auto update = decode_update(std::span(message).subspan(kHeaderSize), fake_family(), {});
      count += update ? update->reach.size() : 0;
    }
    return count;
  };
  const auto has = [&](const Bytes& wanted) {
    peer.poll();
    return std::ranges::find(peer.seen, wanted) != peer.seen.end();
  };
  ASSERT_TRUE(until([&] { return has(encode_end_of_rib(kRouteTargetConstrain)); }));
  run_for(100ms);
  EXPECT_EQ(evpn(), 0u);
  const Bytes nlri = membership_nlri(65000, kBlue);
  const std::span<const uint8_t> view = nlri;
  peer.send(encode_reach(kRouteTargetConstrain, ip("10.0.0.2"), encode_attributes({}, {}),
                         {&view, 1}, kMaxMessage)
                .message);
  peer.send(encode_end_of_rib(kRouteTargetConstrain));
  ASSERT_TRUE(until([&] { return has(encode_end_of_rib(kL2vpnEvpn)); }));
  EXPECT_EQ(evpn(), 1u);
  // The membership for everything went to the client, before the End-of-RIB of its family.
  std::size_t defaults = 0;
  for (const Bytes& message : peer.seen) {
    if (message == encode_end_of_rib(kRouteTargetConstrain)) break;
    if (message[18] != 2) continue;
    const auto update =
        decode_update(std::span(message).subspan(kHeaderSize), route_target_family(), {});
    ASSERT_TRUE(update);
    for (const NlriItem& item : update->reach) defaults += is_default_membership(item.key());
  }
  EXPECT_EQ(defaults, 1u);
}

// RFC 4684 section 3.2: other non-clients must hear of what a client asks for, even if a non-client
// asks for the same.
TEST(Targets, ClientsPathGoesFirst) {
  PeerTraits client, other, external;
  client.role = NeighborRole::ReflectorClient;
  external.internal = false;
  auto received = std::make_shared<Attributes>();
  received->local_pref = 1000;
  EXPECT_GT(membership_attributes(received, client)->local_pref,
            membership_attributes(received, other)->local_pref);
  EXPECT_EQ(membership_attributes(received, external), received);
  EXPECT_EQ(membership_attributes(nullptr, client), nullptr);
}

TEST(Targets, OurOwnThatCameBack) {
  Attributes attributes;
  EXPECT_FALSE(is_own_membership(attributes, 65000, 7, true));
  attributes.originator_id = 7;
  EXPECT_TRUE(is_own_membership(attributes, 65000, 7, true));
  EXPECT_FALSE(is_own_membership(attributes, 65000, 7, false));
  attributes.as_path = {{AsPathSegment::Sequence, {65001, 65000}}};
  EXPECT_TRUE(is_own_membership(attributes, 65000, 8, false));
}

TEST(Targets, WhatTakesTheDefaultAway) {
  EXPECT_TRUE(drops_default(encode_route_refresh(kRouteTargetConstrain, 1)));
  EXPECT_FALSE(drops_default(encode_route_refresh(kRouteTargetConstrain, 2)));
  EXPECT_FALSE(drops_default(encode_end_of_rib(kRouteTargetConstrain)));
  for (const bool everything : {true, false}) {
    const Bytes nlri = everything ? default_membership_nlri() : membership_nlri(65000, kRed);
    const std::span<const uint8_t> view = nlri;
    EXPECT_EQ(drops_default(encode_unreach(kRouteTargetConstrain, {&view, 1}, kMaxMessage).message),
              everything);
  }
}

// --- What operators ask for ---

TEST_F(SpeakerSessions, ResetShutdownEnableRefresh) {
  Settings s = reflector();
  s.neighbors[0].description = "pe2";
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  b.originate(1);
  ASSERT_TRUE(until([&] { return rr.has(1); }));
  ASSERT_TRUE(rr.speaker->reset("127.0.0.2", "new cable"));
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").dropped_count == 1; }));
  EXPECT_THAT(b.view("127.0.0.1").last_error, HasSubstr("Administrative Reset: \"new cable\""));
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && rr.has(1); }));
  ASSERT_TRUE(rr.speaker->set_enabled("pe2", false, "maintenance"));
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").dropped_count == 2 && !rr.has(1); }));
  EXPECT_THAT(b.view("127.0.0.1").last_error, HasSubstr("Shutdown: \"maintenance\""));
  EXPECT_TRUE(rr.view("127.0.0.2").shut_down);
  EXPECT_FALSE(rr.speaker->reset("pe2", ""));
  s.neighbors[0].hold_time = 30s;
  ASSERT_TRUE(rr.speaker->reconfigure(s));  // changes nothing in that
  EXPECT_TRUE(rr.view("127.0.0.2").shut_down);
  ASSERT_TRUE(rr.speaker->set_enabled("127.0.0.2 (pe2)", true, ""));
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && rr.has(1); }));
  const uint64_t before = rr.view("127.0.0.2").updates_in;
  ASSERT_TRUE(rr.speaker->ask_refresh("pe2"));
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").updates_in > before; }));
  EXPECT_TRUE(rr.has(1));
  EXPECT_EQ(rr.speaker->ask_refresh("pe3").error(), "no neighbor pe3");
  EXPECT_EQ(rr.change_count, 5u);  // came, came again after the reset, gone, came: not refreshed
}

TEST_F(SpeakerSessions, RefreshRemovesWhatIsNotAnnouncedAgain) {
  Settings s = reflector();
  Node rr(io, s);
  Script peer(io, "127.0.0.2", rr.port());
  const Bytes plain = Script::open(0x0a000002);
  Open open = *decode_open(std::span(plain).subspan(kHeaderSize));
  open.capabilities.route_refresh = open.capabilities.enhanced_route_refresh = true;
  peer.send(encode_open(open));
  peer.send(encode_keepalive());
  Attributes attributes;
  attributes.local_pref = 100;
  const auto announce = [&](uint32_t key) {
    const Bytes nlri = fake_nlri(key);
    const std::span<const uint8_t> view = nlri;
    peer.send(encode_reach(kL2vpnEvpn, ip("192.0.2.2"), encode_attributes(attributes, {}),
                           {&view, 1}, kMaxMessage)
                  .message);
  };
  announce(1);
  announce(2);
  peer.send(encode_end_of_rib(kL2vpnEvpn));
  ASSERT_TRUE(until([&] { return rr.has(1) && rr.has(2); }));
  peer.send(encode_route_refresh(kL2vpnEvpn, 1));
  announce(1);
  announce(3);
  ASSERT_TRUE(until([&] { return rr.has(3); }));
  EXPECT_TRUE(rr.has(2));
  peer.send(encode_route_refresh(kL2vpnEvpn, 2));
  ASSERT_TRUE(until([&] { return !rr.has(2); }));
  EXPECT_TRUE(rr.has(1) && rr.has(3));
  EXPECT_EQ(rr.change_count, 4u);  // 1, 2, 3 came, 2 went
}

TEST_F(SpeakerSessions, ShutdownMessageOfTheSettings) {
  Settings s = reflector();
  s.neighbors[0].shutdown_message = "moved to rr2";
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1"); }));
  s.neighbors.clear();
  ASSERT_TRUE(rr.speaker->reconfigure(s));
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").dropped_count == 1; }));
  EXPECT_THAT(b.view("127.0.0.1").last_error, HasSubstr("Shutdown: \"moved to rr2\""));
}

// --- Limits ---

TEST_F(SpeakerSessions, MaximumPrefixesWarnOnly) {
  Settings s = reflector();
  s.neighbors[0].max_prefixes = 10;
  s.neighbors[0].max_prefixes_warning = 50;
  s.neighbors[0].max_prefixes_warn_only = true;
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  for (uint32_t i = 0; i < 5; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return rr.routes.size() == 5; }));
  EXPECT_EQ(rr.view("127.0.0.2").max_prefix_warnings, 0u);
  b.originate(5);
  ASSERT_TRUE(until([&] { return rr.view("127.0.0.2").over_warning; }));
  b.withdraw(5);
  ASSERT_TRUE(until([&] { return !rr.view("127.0.0.2").over_warning; }));
  for (uint32_t i = 5; i < 20; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return rr.routes.size() == 20; }));
  EXPECT_TRUE(rr.up("127.0.0.2"));
  EXPECT_EQ(rr.view("127.0.0.2").max_prefix_warnings, 2u);
}

TEST_F(SpeakerSessions, MaximumPrefixesUntilReset) {
  Settings s = reflector();
  s.neighbors[0].max_prefixes = 2;
  s.neighbors[0].max_prefixes_idle = 0min;
  Node rr(io, s);
  Node b(io, client(2, rr.port()));
  for (uint32_t i = 0; i < 3; ++i) b.originate(i);
  ASSERT_TRUE(until([&] { return b.view("127.0.0.1").dropped_count == 1; }));
  EXPECT_THAT(b.view("127.0.0.1").last_error, HasSubstr("Maximum Number of Prefixes"));
  EXPECT_EQ(rr.view("127.0.0.2").state, "Idle");
  ASSERT_TRUE(until([&] { return rr.speaker->rejected_connections().not_now > 0; }));
  b.withdraw(0);
  ASSERT_TRUE(rr.speaker->reset("127.0.0.2", ""));
  ASSERT_TRUE(until([&] { return rr.up("127.0.0.2") && rr.routes.size() == 2; }));
}

TEST_F(SpeakerSessions, ConnectionFlood) {
  Node rr(io, reflector());
  std::vector<std::unique_ptr<Script>> flood;
  for (int i = 0; i < 40; ++i)
    flood.push_back(std::make_unique<Script>(io, "127.0.0.2", rr.port()));
  ASSERT_TRUE(until([&] { return rr.speaker->rejected_connections().rate >= 15; }));
  std::size_t open = 0;
  ASSERT_TRUE(until([&] {
    open = 0;
    for (auto& one : flood) {
      one->poll();
      open += !one->closed;
    }
    return open <= 2;  // as many as a neighbor may have without a session
  }));
  EXPECT_EQ(rr.speaker->rejected_connections().total(), rr.speaker->rejected_connections().rate);
}

TEST(AcceptLimits, BurstAndRefill) {
  AcceptLimits limits;
  net::TimePoint now{1000s};
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += limits.admit(ip("192.0.2.1"), now);
  EXPECT_EQ(admitted, 20);
  EXPECT_TRUE(limits.admit(ip("192.0.2.2"), now));
  now += 1s;
  admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += limits.admit(ip("192.0.2.1"), now);
  EXPECT_EQ(admitted, 2);
}

TEST(AcceptLimits, Bounded) {
  AcceptLimits limits;
  net::TimePoint now{1000s};
  std::size_t admitted = 0;
  for (uint32_t i = 0; i < 10000; ++i) admitted += limits.admit(net::IpAddress::v4(i), now);
  EXPECT_EQ(admitted, AcceptLimits::kMaxSources);
  EXPECT_EQ(limits.sources(), AcceptLimits::kMaxSources);
  now += 1s;  // their buckets are full again
  EXPECT_TRUE(limits.admit(ip("198.51.100.1"), now));
  EXPECT_EQ(limits.sources(), 1u);
}

// --- TCP-AO ---

// With a kernel that has it the session comes up, else it stays down with the reason, and the other
// neighbor is well.
TEST_F(SpeakerSessions, TcpAo) {
  Settings s = reflector(2);
  s.neighbors[0].ao_keys = {{1, 2, "hmac-sha-1-96", "secret"}};
  Node rr(io, s);
  Settings c = client(2, rr.port());
  c.neighbors[0].ao_keys = {{2, 1, "hmac-sha-1-96", "secret"}};
  Node b(io, c);
  Node other(io, client(3, rr.port()));
  ASSERT_TRUE(until([&] { return other.up("127.0.0.1"); }));
  ASSERT_TRUE(until([&] { return b.up("127.0.0.1") || !b.view("127.0.0.1").last_error.empty(); }));
  if (b.up("127.0.0.1")) return;
  EXPECT_THAT(b.view("127.0.0.1").last_error, HasSubstr("CONFIG_TCP_AO"));
  // Nobody may come without the keys.
  Script script(io, "127.0.0.2", rr.port());
  ASSERT_TRUE(until([&] { return script.poll().empty() && script.closed; }));
  EXPECT_EQ(rr.speaker->rejected_connections().unprotected, 1u);
}

TEST_F(SpeakerSessions, KeysThatExcludeEachOther) {
  Settings s = reflector();
  s.neighbors[0].ao_keys = {{1, 2, "hmac-sha-1-96", "secret"}};
  s.neighbors[0].password = "x";
  Speaker both(io, fake_family(), s);
  EXPECT_THAT(both.start().error().what, HasSubstr("exclude each other"));
  s = dynamic_reflector({dynamic("127.0.0.0/29", 3)});
  s.dynamic_neighbors[0].like.password = "x";
  s.neighbors = {neighbor("127.0.0.2", "127.0.0.1")};
  Speaker inside(io, fake_family(), s);
  EXPECT_THAT(inside.start().error().what, HasSubstr("127.0.0.0/29"));
}
