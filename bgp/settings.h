// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for BGP. config/ fills it, bgp/io/ obeys it.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/ip_address.h"
#include "net/strong.h"

namespace bgp {

// What a neighbor is to us when routes are passed on.
enum class NeighborRole : uint8_t {
  Peer,               // plain iBGP or eBGP
  ReflectorClient,    // iBGP: RFC 4456
  RouteServerClient,  // eBGP: RFC 7947, next hop, AS path and MED untouched
};

// What happens to a MAC/IP route that the member database does not have so.
enum class BindingGuard : uint8_t { Off, Flag, Reject };

// A key of TCP-AO, RFC 5925.
struct TcpAoKey {
  uint8_t send_id = 0, receive_id = 0;
  std::string algorithm = "hmac-sha-1-96";  // or aes-128-cmac-96 (RFC 5926), hmac-sha-256
  std::string key;
  bool operator==(const TcpAoKey&) const = default;
};

struct NeighborSettings {
  net::IpAddress address;
  std::string interface;    // of a link-local address
  std::string description;  // shown beside the address; may be empty
  std::string group;        // name of the group it was taken from; may be empty
  net::AsNumber remote_as;
  uint16_t port = 179;  // where we connect to
  std::optional<net::IpAddress> local_address;
  NeighborRole role = NeighborRole::Peer;
  bool passive = false;  // never connect, only accept
  bool enabled = true;
  std::chrono::seconds hold_time{90};  // 0, or at least 3
  std::chrono::seconds connect_retry{5};
  std::string password;           // TCP-MD5, RFC 2385; empty: none
  uint8_t ttl = 0;                // 0: kernel default for iBGP, 1 for directly connected eBGP
  uint8_t ttl_security_hops = 0;  // GTSM, RFC 5082; 0: off
  bool graceful_restart = true;   // RFC 4724, both as helper and as restarting speaker
  std::chrono::seconds restart_time{120};  // 0..4095
  uint32_t max_prefixes = 0;  // 0: no limit; above it the session ends with Cease (RFC 4486)
  uint8_t max_prefixes_warning = 75;    // percent of it at which a line is logged; 0: never
  bool max_prefixes_warn_only = false;  // above the limit the session stays, and it is logged
  std::chrono::minutes max_prefixes_idle{
      15};                                  // how long the session then stays down; 0: until reset
  std::chrono::seconds delay_open{0};       // RFC 4271 section 8.1.1
  std::chrono::seconds send_hold_time{0};   // RFC 9687; 0: eight minutes, or twice the hold time
  std::chrono::seconds long_lived_time{0};  // LLGR, RFC 9494; 0: off; up to 16777215
  // Long-lived stale routes go to this internal neighbor even if it does not know LLGR, with
  // NO_EXPORT and LOCAL_PREF 0 (RFC 9494 section 4.6).
  bool long_lived_partial = false;
  bool route_target_constrain = false;  // RFC 4684
  std::vector<TcpAoKey> ao_keys;        // not together with a password
  // How long an accepted connection may stay without the neighbor's OPEN.
  std::chrono::seconds open_time{30};
  // For the other operator when the neighbor is disabled or removed or we stop for good, RFC 9003;
  // UTF-8, at most 255 octets.
  std::string shutdown_message;
  std::string accept_policy, send_policy;  // by name; empty: everything
  BindingGuard binding_guard = BindingGuard::Off;
  // Extended communities never sent to this neighbor, by (type, sub-type).
  std::vector<std::pair<uint8_t, uint8_t>> strip_extended_communities;

  bool operator==(const NeighborSettings&) const = default;
};

// Neighbors that are not known by address: whoever connects from the prefix. They are passive.
struct DynamicNeighbors {
  net::IpAddress prefix;
  uint8_t prefix_length = 0;
  uint32_t limit = 0;     // how many at once; at least 1
  NeighborSettings like;  // but the address
  bool operator==(const DynamicNeighbors&) const = default;
};

// A collector that is told what we receive, select and send: BMP, RFC 7854.
struct BmpSettings {
  enum Table : uint8_t {
    InPre = 1,    // Adj-RIB-In as received
    InPost = 2,   // ... what of it may be selected
    Loc = 4,      // Loc-RIB, RFC 9069
    OutPost = 8,  // Adj-RIB-Out as sent, RFC 8671
  };
  net::IpAddress address;
  uint16_t port = 0;
  std::string description;
  std::optional<net::IpAddress> local_address;
  uint8_t tables = InPre | Loc;
  std::chrono::seconds reconnect{60};   // the longest pause before the next attempt
  std::chrono::seconds statistics{60};  // between statistics reports; 0: none
  uint64_t queue_limit = 64u << 20;     // octets that wait for it; above, the connection is dropped
  bool operator==(const BmpSettings&) const = default;
};

inline constexpr std::pair<const char*, BmpSettings::Table> kBmpTables[] = {
    {"in-pre", BmpSettings::InPre},
    {"in-post", BmpSettings::InPost},
    {"loc", BmpSettings::Loc},
    {"out-post", BmpSettings::OutPost}};

// Dumps of the table to files: MRT, RFC 6396.
struct MrtSettings {
  std::string file;  // with the conversions of strftime()
  std::chrono::seconds interval{3600};
  bool operator==(const MrtSettings&) const = default;
};

struct ListenSettings {
  net::IpAddress address;
  uint16_t port = 179;
  std::string interface{};  // of a link-local address
  bool operator==(const ListenSettings&) const = default;
};

struct Settings {
  net::AsNumber local_as;
  net::IpAddress router_id;            // IPv4
  std::optional<uint32_t> cluster_id;  // host order; router id when absent
  std::vector<ListenSettings> listen;  // empty: no listener
  // A reflector or route server that has just started collects this long before it advertises, or
  // until every neighbor has sent its End-of-RIB: its own End-of-RIB must not come before the
  // routes it shall reflect (RFC 4724 section 4.1, Selection_Deferral_Timer).
  std::chrono::seconds selection_deferral{10};
  std::vector<NeighborSettings> neighbors;
  std::vector<DynamicNeighbors> dynamic_neighbors;
  std::vector<BmpSettings> bmp;
  std::optional<MrtSettings> mrt;
  bool operator==(const Settings&) const = default;
};

}  // namespace bgp
