// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for proxy ARP/ND in one broadcast domain (RFC 9161).
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"

namespace proxyarp {

// The deployments of RFC 9161 section 5.1 to 5.4, as one word.
enum class Profile : uint8_t {
  Off,      // no interception at all
  Dynamic,  // learn, answer, flood what is unknown
  Hybrid,   // as dynamic; static bindings can't be overridden
  Static,   // only provisioned bindings; unknown targets and gratuitous frames are not flooded
};

// One address of a member as provisioned, on a port here or (from a member export) anywhere.
struct StaticBinding {
  net::IpAddress ip;
  std::vector<net::MacAddress> macs;  // allowed; the one that was seen is used
  std::string port;                   // name of the member port here; empty: any place
  net::AsNumber member_as;
  std::string member_name;
  bool operator==(const StaticBinding&) const = default;
};

struct Settings {
  std::string name;  // of the broadcast domain
  Profile profile = Profile::Static;
  std::vector<net::IpPrefix> prefixes;  // of the peering LAN; senders outside are not learned
  // Overrides of what the profile says; absent: by profile.
  std::optional<bool> learning;          // snoop bindings from members
  std::optional<bool> flood_unknown;     // ARP requests and NS for unknown targets
  std::optional<bool> flood_gratuitous;  // gratuitous ARP, unsolicited NA
  bool default_router = true;            // R flag when nothing says otherwise
  std::chrono::seconds age_time{14400};  // of learned bindings
  uint32_t max_bindings = 16384;         // in the broadcast domain
  uint32_t max_bindings_per_port = 8;    // learned ones
  std::vector<StaticBinding> bindings;
  bool operator==(const Settings&) const = default;

  [[nodiscard]] bool learns() const {
    return learning.value_or(profile == Profile::Dynamic || profile == Profile::Hybrid);
  }
  [[nodiscard]] bool floods_unknown() const {
    return flood_unknown.value_or(profile == Profile::Dynamic || profile == Profile::Hybrid);
  }
  [[nodiscard]] bool floods_gratuitous() const {
    return flood_gratuitous.value_or(profile == Profile::Dynamic || profile == Profile::Hybrid);
  }
};

}  // namespace proxyarp
