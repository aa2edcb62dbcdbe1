// SPDX-License-Identifier: GPL-2.0-or-later
// Every message, capability and path attribute in both directions against golden.tsv, whose octets
// tshark reads as the same (golden_tshark.py).
#include <gtest/gtest.h>

#include <variant>

#include "bgp/message.h"
#include "bgp/rt_constrain.h"
#include "golden_file.h"

using namespace bgp;
using namespace bgp::test;
using net::Bytes;

namespace {

struct Keepalive {};
struct UpdateValue {
  Attributes attributes;
  bool four_octet_as = true;
  enum Kind { Reach, Unreach, EndOfRib } kind = Reach;
  AfiSafi family = kL2vpnEvpn;
  Bytes nlri = hex("03 11 0001 0a000001 0064 00000000 20 0a000001");
};
using Value = std::variant<Open, Notification, Keepalive, RouteRefresh, UpdateValue>;

struct Golden {
  const char* name;
  Value value;
};

// An IMET route: the family has no say in what is tested here.
NlriStatus next_of_any(net::ByteReader& in, NlriItem& out) {
  const auto from = in.rest();
  out.type = in.u8();
  const auto body = in.bytes(in.u8());
  out.bytes = from.first(std::min(from.size(), body.size() + 2));
  return in.ok() ? NlriStatus::Ok : NlriStatus::Framing;
}
const Family kAny{kL2vpnEvpn, "any", next_of_any};

template <class Fill>
Golden open(const char* name, Fill fill) {
  Open value;
  value.as_number = 65000;
  value.hold_time = 90;
  value.router_id = 0x0a000015;
  fill(value);
  return {name, value};
}

template <class Fill>
Golden update(const char* name, Fill fill) {
  UpdateValue value;
  value.attributes.next_hop = net::IpAddress::v4(0x0a000001);
  fill(value.attributes);
  return {name, value};
}

Golden notification(const char* name, uint8_t code, uint8_t subcode, Bytes data = {}) {
  return {name, Notification{static_cast<ErrorCode>(code), subcode, std::move(data)}};
}

net::IpAddress v6() { return *net::IpAddress::parse("2001:db8::9"); }
constexpr auto kSequence = AsPathSegment::Sequence;
constexpr uint32_t kBigAs = 4200000000;

std::vector<Golden> opens() {
  return {
      open("open without capabilities", [](Open&) {}),
      open("open multiprotocol", [](Open& o) { o.capabilities.multiprotocol = {kL2vpnEvpn}; }),
      open("open two families",
           [](Open& o) { o.capabilities.multiprotocol = {kL2vpnEvpn, {1, 132}}; }),
      open("open route refresh", [](Open& o) { o.capabilities.route_refresh = true; }),
      open("open extended message", [](Open& o) { o.capabilities.extended_message = true; }),
      open("open graceful restart",
           [](Open& o) {
             o.capabilities.graceful_restart =
                 GracefulRestart{true, false, 120, {{kL2vpnEvpn, true}}};
           }),
      open("open graceful restart with notification",
           [](Open& o) {
             o.capabilities.graceful_restart =
                 GracefulRestart{false, true, 4095, {{kL2vpnEvpn, false}}};
           }),
      open("open four-octet AS",
           [](Open& o) {
             o.as_number = kAsTrans;
             o.capabilities.four_octet_as = kBigAs;
           }),
      open("open enhanced route refresh",
           [](Open& o) { o.capabilities.enhanced_route_refresh = true; }),
      open("open with all",
           [](Open& o) {
             o.hold_time = 0;
             o.capabilities.multiprotocol = {kL2vpnEvpn};
             o.capabilities.route_refresh = true;
             o.capabilities.enhanced_route_refresh = true;
             o.capabilities.extended_message = true;
             o.capabilities.four_octet_as = 65000;
             o.capabilities.graceful_restart =
                 GracefulRestart{true, true, 120, {{kL2vpnEvpn, true}}};
           }),
      open("open long-lived graceful restart",
           [](Open& o) {
             o.capabilities.long_lived = LongLivedRestart{{{kL2vpnEvpn, true, 86400}}};
           }),
      open("open long-lived graceful restart without forwarding",
           [](Open& o) {
             o.capabilities.long_lived = LongLivedRestart{{{kL2vpnEvpn, false, 0xffffff}}};
           }),
      open("open extended optional parameters",
           [](Open& o) {
             for (uint16_t afi = 1; afi <= 50; ++afi)
               o.capabilities.multiprotocol.push_back({afi, 70});
           }),
  };
}

std::vector<Golden> short_messages() {
  return {
      {"keepalive", Keepalive{}},
      notification("notification not synchronized", 1, 1),
      notification("notification bad length", 1, 2, hex("0013")),
      notification("notification bad type", 1, 3, hex("4d")),
      notification("notification version", 2, 1, hex("0004")),
      notification("notification bad peer AS", 2, 2),
      notification("notification bad identifier", 2, 3),
      notification("notification unsupported parameter", 2, 4),
      notification("notification hold time", 2, 6),
      notification("notification unsupported capability", 2, 7, hex("0104 0019 0046")),
      notification("notification malformed attribute list", 3, 1),
      notification("notification attribute flags", 3, 4),
      notification("notification optional attribute", 3, 9, hex("800e05 0019 46 05 00")),
      notification("notification invalid network", 3, 10),
      notification("notification hold timer", 4, 0),
      notification("notification OPEN expected", 5, 1),
      notification("notification unexpected message in OpenConfirm", 5, fsm_error::kInOpenConfirm),
      notification("notification unexpected message in Established", 5, fsm_error::kInEstablished),
      notification("notification maximum prefixes", 6, 1),
      {"notification shutdown with text",
       shutdown_notification(cease::kAdministrativeShutdown, "maint")},
      {"notification reset with UTF-8",
       shutdown_notification(cease::kAdministrativeReset, "gr\xc3\xbc\xc3\x9f")},
      notification("notification peer deconfigured", 6, cease::kPeerDeconfigured),
      notification("notification connection rejected", 6, cease::kConnectionRejected),
      notification("notification other configuration change", 6, cease::kOtherConfigurationChange),
      notification("notification out of resources", 6, cease::kOutOfResources),
      notification("notification collision", 6, 7),
      notification("notification hard reset", 6, 9, hex("0602")),
      notification("notification route refresh length", 7, 1),
      notification("notification send hold timer", 8, 0),
      {"route refresh request", RouteRefresh{kL2vpnEvpn, 0}},
      {"route refresh begin", RouteRefresh{kL2vpnEvpn, 1}},
      {"route refresh end", RouteRefresh{kL2vpnEvpn, 2}},
      {"route refresh of memberships", RouteRefresh{kRouteTargetConstrain, 0}},
  };
}

std::vector<Golden> updates() {
  using A = Attributes;
  std::vector<Golden> all{
      update("update origin igp", [](A&) {}),
      update("update origin egp", [](A& a) { a.origin = Origin::Egp; }),
      update("update origin incomplete", [](A& a) { a.origin = Origin::Incomplete; }),
      update("update as sequence", [](A& a) { a.as_path = {{kSequence, {65001, kBigAs}}}; }),
      update("update as sequence and set",
             [](A& a) { a.as_path = {{kSequence, {65001}}, {AsPathSegment::Set, {1, 2}}}; }),
      update("update confederation",
             [](A& a) {
               a.as_path = {{AsPathSegment::ConfedSequence, {65001}},
                            {AsPathSegment::ConfedSet, {65002}}};
             }),
      update("update next hop v6", [](A& a) { a.next_hop = v6(); }),
      update("update med", [](A& a) { a.multi_exit_disc = 7; }),
      update("update local pref", [](A& a) { a.local_pref = 100; }),
      update("update atomic aggregate", [](A& a) { a.atomic_aggregate = true; }),
      update("update aggregator", [](A& a) { a.aggregator = Aggregator{kBigAs, 0x0a000001}; }),
      update("update communities", [](A& a) { a.communities = {0xfde80001, 0xffffff01}; }),
      update("update long-lived stale",
             [](A& a) { a.communities = {kLlgrStaleCommunity, 0xffff0007}; }),
      update("update originator and cluster list",
             [](A& a) {
               a.originator_id = 0x0a000001;
               a.cluster_list = {0x0a000009, 0x0a00000a};
             }),
      update("update extended communities",
             [](A& a) {
               a.extended_communities = {{0, 2, 0xfd, 0xe8, 0, 0, 0, 100},
                                         {3, 12, 0, 0, 0, 0, 0, 8}};
             }),
      update("update pmsi v4", [](A& a) { a.pmsi_tunnel = hex("00 06 abcdef 0a000001"); }),
      update("update pmsi v6",
             [](A& a) {
               a.next_hop = v6();
               a.pmsi_tunnel = hex("00 06 fffffe 20010db8 00000000 00000000 00000009");
             }),
      update("update large communities", [](A& a) { a.large_communities = {{65000, 1, 2}}; }),
      update("update unknown attribute", [](A& a) { a.unknown = {{0xe0, 200, {1, 2, 3}}}; }),
      update("update extended length",
             [](A& a) {
               for (uint32_t i = 0; i < 70; ++i) a.communities.push_back(0xfde80000 | i);
             }),
  };
  UpdateValue two_octets;
  two_octets.four_octet_as = false;
  two_octets.attributes.next_hop = net::IpAddress::v4(0x0a000001);
  two_octets.attributes.as_path = {{kSequence, {65001, kBigAs}}};
  two_octets.attributes.aggregator = Aggregator{kBigAs, 0x0a000001};
  all.push_back({"update of a two-octet speaker", two_octets});
  const auto memberships = [&](const char* name, UpdateValue::Kind kind, const Bytes& nlri) {
    UpdateValue value;
    value.attributes.next_hop = net::IpAddress::v4(0x0a000001);
    value.kind = kind;
    value.family = kRouteTargetConstrain;
    value.nlri = nlri;
    all.push_back({name, value});
  };
  const Bytes membership = membership_nlri(65000, {0, 2, 0xfd, 0xe8, 0, 0, 0, 100});
  memberships("update membership", UpdateValue::Reach, membership);
  memberships("update membership default", UpdateValue::Reach, default_membership_nlri());
  memberships("update membership withdraw", UpdateValue::Unreach, membership);
  memberships("update membership end of rib", UpdateValue::EndOfRib, membership);
  all.push_back({"update withdraw",
                 UpdateValue{{}, true, UpdateValue::Unreach, kL2vpnEvpn, UpdateValue{}.nlri}});
  all.push_back({"update end of rib",
                 UpdateValue{{}, true, UpdateValue::EndOfRib, kL2vpnEvpn, UpdateValue{}.nlri}});
  return all;
}

Bytes encode(const Open& value) { return encode_open(value); }
Bytes encode(const Notification& value) { return encode_notification(value); }
Bytes encode(const Keepalive&) { return encode_keepalive(); }
Bytes encode(const RouteRefresh& value) {
  return encode_route_refresh(value.family, value.subtype);
}
Bytes encode(const UpdateValue& value) {
  if (value.kind == UpdateValue::EndOfRib) return encode_end_of_rib(value.family);
  const std::span<const uint8_t> routes[] = {value.nlri};
  if (value.kind == UpdateValue::Unreach)
    return encode_unreach(value.family, routes, kMaxMessage).message;
  const Bytes attributes = encode_attributes(value.attributes, {value.four_octet_as});
  return encode_reach(value.family, value.attributes.next_hop, attributes, routes, kMaxMessage)
      .message;
}

using Body = std::span<const uint8_t>;

void expect_decoded(Body body, const Open& value) { EXPECT_EQ(decode_open(body), value); }
void expect_decoded(Body body, const Notification& value) {
  EXPECT_EQ(decode_notification(body), value);
}
void expect_decoded(Body body, const Keepalive&) { EXPECT_TRUE(body.empty()); }
void expect_decoded(Body body, const RouteRefresh& value) {
  EXPECT_EQ(decode_route_refresh(body), value);
}
void expect_decoded(Body body, const UpdateValue& value) {
  const Family family = value.family == kL2vpnEvpn ? kAny : route_target_family();
  const auto update = decode_update(body, family, {value.four_octet_as, true});
  ASSERT_TRUE(update.has_value()) << to_string(update.error());
  EXPECT_EQ(update->handling, ErrorHandling::None);
  EXPECT_EQ(update->end_of_rib, value.kind == UpdateValue::EndOfRib);
  ASSERT_EQ(update->reach.size(), value.kind == UpdateValue::Reach ? 1u : 0u);
  ASSERT_EQ(update->unreach.size(), value.kind == UpdateValue::Unreach ? 1u : 0u);
  for (const auto* items : {&update->reach, &update->unreach})
    for (const NlriItem& item : *items) EXPECT_TRUE(std::ranges::equal(item.bytes, value.nlri));
  if (value.kind == UpdateValue::Reach) {
    EXPECT_EQ(*update->attributes, value.attributes);
  }
}

void check(GoldenFile& file, const std::vector<Golden>& goldens) {
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    const auto row = file.find(golden.name);
    ASSERT_NE(row, file.end()) << "not in golden.tsv";
    Bytes octets(16, 0xff);
    octets.insert(octets.end(), row->second.begin(), row->second.end());
    file.erase(row);
    const auto header = decode_header(octets, kMaxMessage);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->length, octets.size());
    std::visit(
        [&](const auto& value) {
          EXPECT_EQ(encode(value), octets);
          expect_decoded(Body(octets).subspan(kHeaderSize), value);
        },
        golden.value);
  }
}

}  // namespace

TEST(Golden, EveryMessageCapabilityAndAttributeBothWays) {
  GoldenFile file = read_golden(GOLDEN_FILE);
  check(file, opens());
  check(file, short_messages());
  check(file, updates());
  for (const auto& row : file) ADD_FAILURE() << "no value for " << row.first;
}
