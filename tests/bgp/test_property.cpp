// SPDX-License-Identifier: GPL-2.0-or-later
// decode(encode(x)) == x for what we send: OPEN, path attributes, EVPN NLRI and communities, with
// rapidcheck. The attributes are drawn so that each has one form on the wire (an AS_PATH has no two
// sequences in a row, and none of over 255).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "bgp/message.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"

using namespace bgp;
using net::Bytes;

namespace {

template <class T>
T any() {
  return *rc::gen::arbitrary<T>();
}
template <class T>
T among(T from, T to) {
  return *rc::gen::inRange<T>(from, static_cast<T>(to + 1));
}
bool coin() { return any<bool>(); }

template <class Make>
auto list(int most, Make make) {
  std::vector<decltype(make())> out;
  for (int count = among(0, most); count > 0; --count) out.push_back(make());
  return out;
}

Bytes octets(int most) {
  return list(most, [] { return any<uint8_t>(); });
}
Bytes exactly(int count) {
  Bytes out;
  while (count-- > 0) out.push_back(any<uint8_t>());
  return out;
}
uint32_t as_number() { return std::max(1u, any<uint32_t>()); }
net::IpAddress address() {
  // The first octet keeps away from the unspecified and from multicast, which are no next hops.
  if (coin()) return net::IpAddress::v4(0x0a000000 | (any<uint32_t>() & 0xffffff));
  std::array<uint8_t, 16> v6;
  for (uint8_t& octet : v6) octet = any<uint8_t>();
  v6[0] = 0x20;
  return net::IpAddress::v6(v6);
}
AfiSafi family() { return {any<uint16_t>(), any<uint8_t>()}; }

Open make_open() {
  Open open;
  open.as_number = std::max<uint16_t>(1, any<uint16_t>());
  open.hold_time = coin() ? among<uint16_t>(3, 65534) : uint16_t{0};
  open.router_id = std::max(1u, any<uint32_t>());
  Capabilities& c = open.capabilities;
  for (const AfiSafi& one : list(coin() ? 80 : 3, family))
    if (!c.has(one)) c.multiprotocol.push_back(one);
  c.route_refresh = coin();
  c.enhanced_route_refresh = coin();
  c.extended_message = coin();
  if (coin()) c.four_octet_as = as_number();
  if (coin()) {
    GracefulRestart restart;
    restart.restarted = coin();
    restart.notification = coin();
    restart.time = among<uint16_t>(0, 4095);
    restart.families = list(3, [] { return GracefulRestart::Entry{family(), coin()}; });
    c.graceful_restart = restart;
  }
  return open;
}

std::vector<AsPathSegment> make_path() {
  std::vector<AsPathSegment> path;
  for (int count = among(0, 3); count > 0; --count) {
    AsPathSegment segment;
    segment.type = static_cast<AsPathSegment::Type>(among(1, 4));
    segment.as_numbers = list(coin() ? 255 : 4, as_number);
    if (segment.as_numbers.empty()) segment.as_numbers = {1};
    const bool again = !path.empty() && path.back().type == AsPathSegment::Sequence &&
                       segment.type == AsPathSegment::Sequence;
    if (!again) path.push_back(segment);
  }
  return path;
}

ExtendedCommunity extended_community() {
  ExtendedCommunity community;
  for (uint8_t& octet : community) octet = any<uint8_t>();
  return community;
}

Attributes make_attributes() {
  Attributes a;
  a.origin = static_cast<Origin>(among(0, 2));
  a.as_path = make_path();
  a.next_hop = address();
  if (coin()) a.multi_exit_disc = any<uint32_t>();
  if (coin()) a.local_pref = any<uint32_t>();
  a.atomic_aggregate = coin();
  if (coin()) a.aggregator = Aggregator{as_number(), any<uint32_t>()};
  a.communities = list(coin() ? 100 : 2, any<uint32_t>);
  a.extended_communities = list(4, extended_community);
  a.large_communities =
      list(3, [] { return LargeCommunity{any<uint32_t>(), any<uint32_t>(), any<uint32_t>()}; });
  if (coin()) a.originator_id = any<uint32_t>();
  a.cluster_list = list(4, any<uint32_t>);
  if (coin()) {
    a.pmsi_tunnel = octets(20);
    a.pmsi_tunnel->resize(std::max<std::size_t>(5, a.pmsi_tunnel->size()));
    if ((*a.pmsi_tunnel)[1] == 6) a.pmsi_tunnel->resize(coin() ? 9 : 21);
  }
  for (uint8_t type = 200; coin() && type < 205; ++type)
    a.unknown.push_back({kFlagOptional | kFlagTransitive | kFlagPartial, type, octets(300)});
  a.partial = static_cast<uint8_t>(
      (a.aggregator ? coin() : false) * 1 | (a.communities.empty() ? false : coin()) * 2 |
      (a.extended_communities.empty() ? false : coin()) * 4 | (a.pmsi_tunnel ? coin() : false) * 8 |
      (a.large_communities.empty() ? false : coin()) * 16);
  return a;
}

net::RouteDistinguisher rd() { return net::RouteDistinguisher::from_bytes(exactly(8)); }
net::Esi esi() { return net::Esi::from_bytes(exactly(10)); }
uint32_t label() { return any<uint32_t>() & 0xffffff; }

evpn::Route make_route() {
  switch (among(1, 6)) {
    case 1: return evpn::EthernetAutoDiscovery{rd(), esi(), any<uint32_t>(), label()};
    case 2: {
      evpn::MacIp route{rd(), esi(), any<uint32_t>(), {}, {}, label(), {}};
      route.mac = net::MacAddress::from_bytes(exactly(6));
      if (coin()) route.ip = address();
      if (coin()) route.label2 = label();
      return route;
    }
    case 3: return evpn::InclusiveMulticast{rd(), any<uint32_t>(), address()};
    case 4: return evpn::EthernetSegment{rd(), esi(), address()};
    case 5: {
      evpn::IpPrefixRoute route{rd(), {}, any<uint32_t>(), {}, {}, label()};
      const net::IpAddress prefix = address();
      const uint8_t bits = prefix.bytes().size() == 4 ? 32 : 128;
      route.prefix = {prefix, among<uint8_t>(0, bits)};
      // RFC 9136 section 3.2: not both of ESI and gateway.
      route.gateway =
          bits == 32 ? net::IpAddress::v4(any<uint32_t>()) : *net::IpAddress::parse("::");
      return route;
    }
    default: return evpn::OpaqueRoute{9, exactly(20)};  // RFC 9572 section 3.1
  }
}

void check(const char* what, const std::function<void()>& property) {
  EXPECT_TRUE(rc::check(what, property));
}

}  // namespace

TEST(Property, OpenComesBack) {
  check("decode(encode(OPEN))", [] {
    const Open open = make_open();
    const Bytes message = encode_open(open);
    RC_ASSERT((decode_header(message, kMaxMessage)->length == message.size()));
    const auto again = decode_open(std::span(message).subspan(kHeaderSize));
    RC_ASSERT(again.has_value());
    RC_ASSERT((*again == open));
  });
}

TEST(Property, NotificationComesBack) {
  check("decode(encode(NOTIFICATION))", [] {
    const Notification value{static_cast<ErrorCode>(any<uint8_t>()), any<uint8_t>(), octets(500)};
    const Bytes message = encode_notification(value);
    RC_ASSERT((decode_notification(std::span(message).subspan(kHeaderSize)) == value));
  });
}

TEST(Property, AttributesComeBack) {
  check("decode(encode(UPDATE))", [] {
    const Attributes attributes = make_attributes();
    const Bytes route = evpn::encode(evpn::InclusiveMulticast{rd(), 0, address()});
    const std::span<const uint8_t> nlris[] = {route};
    const PackedUpdate packed =
        encode_reach(kL2vpnEvpn, attributes.next_hop, encode_attributes(attributes, {}), nlris,
                     kMaxExtendedMessage);
    RC_ASSERT((packed.taken == 1u));
    const auto update =
        decode_update(std::span(packed.message).subspan(kHeaderSize), evpn::family(), {});
    RC_ASSERT(update.has_value());
    RC_ASSERT((update->handling == ErrorHandling::None));
    RC_ASSERT((*update->attributes == attributes));
  });
}

// Through a speaker of two-octet numbers: the path and the aggregator come back whole (RFC 6793).
TEST(Property, AttributesComeBackThroughTwoOctetNumbers) {
  check("RFC 6793", [] {
    Attributes attributes;
    attributes.next_hop = address();
    attributes.as_path = {{AsPathSegment::Sequence, list(20, as_number)}};
    if (attributes.as_path[0].as_numbers.empty()) attributes.as_path.clear();
    if (coin()) attributes.aggregator = Aggregator{as_number(), any<uint32_t>()};
    // An aggregator of two octets tells that the AS4 attributes are old (section 4.2.3).
    if (attributes.aggregator && attributes.aggregator->as_number <= 0xffff)
      attributes.aggregator->as_number += 0x10000;
    const Bytes route = evpn::encode(evpn::InclusiveMulticast{rd(), 0, address()});
    const std::span<const uint8_t> nlris[] = {route};
    const PackedUpdate packed =
        encode_reach(kL2vpnEvpn, attributes.next_hop, encode_attributes(attributes, {false}), nlris,
                     kMaxMessage);
    const auto update = decode_update(std::span(packed.message).subspan(kHeaderSize),
                                      evpn::family(), {false, true});
    RC_ASSERT(update.has_value());
    RC_ASSERT((update->handling == ErrorHandling::None));
    RC_ASSERT((*update->attributes == attributes));
  });
}

TEST(Property, RoutesComeBackWithTheirKeys) {
  check("decode(encode(NLRI))", [] {
    const evpn::Route route = make_route();
    const Bytes wire = evpn::encode(route);
    RC_ASSERT((wire.size() == wire[1] + 2u));
    const auto again = evpn::decode(wire);
    RC_ASSERT(again.has_value());
    RC_ASSERT((*again == route));
    net::ByteReader in(wire);
    NlriItem item;
    RC_ASSERT((evpn::family().next(in, item) == NlriStatus::Ok));
    RC_ASSERT(in.done());
    RC_ASSERT(std::ranges::equal(item.key(), evpn::encode_item(route).item().key()));
  });
}

TEST(Property, CommunitiesComeBack) {
  check("decode(encode(community))", [] {
    const auto with = [](const ExtendedCommunity& community) {
      Attributes attributes;
      attributes.extended_communities = {community};
      return attributes;
    };
    const evpn::MacMobility mobility{coin(), any<uint32_t>()};
    RC_ASSERT((evpn::mac_mobility(with(evpn::make_mac_mobility(mobility))) == mobility));
    const evpn::ArpNdFlags flags{coin(), coin(), coin()};
    RC_ASSERT((evpn::arp_nd(with(evpn::make_arp_nd(flags))) == flags));
    const auto type = any<uint16_t>();
    RC_ASSERT((evpn::encapsulation(with(evpn::make_encapsulation(type))) == type));
    const auto target = evpn::make_route_target(among<uint32_t>(1, 65535), any<uint32_t>());
    RC_ASSERT((evpn::parse_route_target(evpn::route_target_text(target)) == target));
    const evpn::PmsiTunnel tunnel{any<uint8_t>(), 6, label(), address()};
    RC_ASSERT((evpn::decode_pmsi(evpn::encode_pmsi(tunnel)) == tunnel));
  });
}
