// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for the routes that neighbors announce and are sent: rules, and who the
// members are. config/ fills it, evpn/policy and evpn/binding_guard obey it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "evpn/settings.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"
#include "net/strong.h"

namespace evpn {

enum class RuleAction : uint8_t { Accept, Flag, Reject };

struct MacPrefix {
  net::MacAddress address;
  uint8_t length = 48;  // in bits
  bool operator==(const MacPrefix&) const = default;
};

struct StandardCommunity {  // RFC 1997
  uint32_t value = 0;
  bool operator==(const StandardCommunity&) const = default;
};
using Community = std::variant<StandardCommunity, std::array<uint32_t, 3>,  // large, RFC 8092
                               std::array<uint8_t, 8>>;  // extended, octets as on the wire

// All kinds of match that are given (not empty) must hold; of one kind any of its values will do.
struct PolicyRule {
  std::vector<uint8_t> route_types{};  // 1 to 11
  std::vector<RouteTarget> route_targets{};
  std::vector<net::Vni> vnis{};
  std::vector<net::RouteDistinguisher> rds{};
  std::vector<MacPrefix> macs{};
  std::vector<net::IpPrefix> ips{};
  std::vector<Community> communities{};
  std::vector<net::IpPrefix> next_hops{};
  RuleAction then = RuleAction::Accept;
  bool operator==(const PolicyRule&) const = default;
};

// The first rule that matches decides. What no rule matches is rejected.
struct PolicySettings {
  std::string name;
  std::vector<PolicyRule> rules;
  bool operator==(const PolicySettings&) const = default;
};

// An address of a member and the MACs that may have it.
struct MemberAddress {
  net::IpAddress ip;
  std::vector<net::MacAddress> macs;  // empty: any that is nobody else's
  net::AsNumber as;                   // 0: not known
  std::string name;
  bool operator==(const MemberAddress&) const = default;
};
struct MemberMac {
  net::MacAddress mac;
  net::AsNumber as;  // 0: not known
  std::string name;
  std::vector<net::IpAddress> pes;  // next hops that may announce it; empty: any
  bool operator==(const MemberMac&) const = default;
};

// Who may use what on one peering LAN.
struct MemberList {
  net::Vni vni;
  std::vector<RouteTarget> route_targets;  // of the LAN; empty: those made from the VNI
  std::vector<net::IpPrefix> prefixes;
  std::vector<MemberAddress> addresses;  // each once
  std::vector<MemberMac> macs;           // also those without an address
  bool operator==(const MemberList&) const = default;
};

}  // namespace evpn
