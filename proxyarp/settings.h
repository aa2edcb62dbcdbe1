// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for proxy ARP/ND in one broadcast domain (RFC 9161).
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
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

// Where a frame that is nobody's in particular may be flooded to.
struct FloodTo {
  bool core = false;   // the other PEs
  bool local = false;  // the other member ports here
  bool operator==(const FloodTo&) const = default;
};

// Solicitations with options that are not known (RFC 9161 section 3.3 f).
enum class UnknownOptions : uint8_t { Reply, Discard, UnicastForward, Forward };
// Hand a question to the owner instead of answering it (section 3.4).
enum class UnicastForward : uint8_t { Never, UnknownOptions, Always };
// ARP probes and solicitations of duplicate address detection for a bound address.
enum class Probes : uint8_t {
  Strangers,  // answered, but for those of the owner or of a MAC that may become the owner
  Pass,       // handed to the owner
  Ignore,     // dropped
};
// What becomes of a question for an address that nobody has.
enum class Unassigned : uint8_t {
  ByProfile,  // flooded or dropped as the flood settings say
  Flood,
  Drop,  // probes and duplicate address detection as well
  Sponge,
};
struct UnassignedPrefix {  // the longest one that contains the address counts
  net::IpPrefix prefix;
  Unassigned policy = Unassigned::ByProfile;
  bool operator==(const UnassignedPrefix&) const = default;
};
// IPv6 link-local addresses of provisioned members.
enum class LinkLocal : uint8_t {
  Learn,  // those that a provisioned MAC uses, a few a MAC
  Eui64,  // the one made from the MAC only
  Both,
  None,
};
// Which IPv6 bindings become MAC/IP routes.
enum class AdvertiseNeighbors : uint8_t { Router, Host, All };

// RFC 9161 section 3.7.
struct DuplicateDetection {
  bool enabled = true;
  uint32_t moves = 5;
  std::chrono::seconds window{180};
  std::chrono::seconds hold_down{540};    // zero: until an operator clears it
  std::chrono::seconds confirm_wait{30};  // for the former owner's answer
  std::optional<net::MacAddress> anti_spoof_mac;
  bool operator==(const DuplicateDetection&) const = default;
};

// Dead addresses: asked for again and again, and nobody answers.
struct Sponge {
  std::optional<net::MacAddress> mac;  // we answer with; none: the PE's own
  uint32_t queue = 1000;               // questions kept an address
  double rate = 50;                  // questions a minute, over a full queue, that make it suspect
  uint32_t pending = 5;              // own questions, one a second, before it is dead
  std::chrono::seconds age{600};     // without question or sign of life: forgotten
  double probe_rate = 100;           // own questions a second, in all
  double flood_protection = 3;       // questions a second of one source that count
  bool passive = false;              // never ask ourselves: time alone makes it dead
  bool observe = false;              // decide and count, but let the question go its way
  bool announce = false;             // tell all members when an address is taken over
  std::chrono::seconds learning{5};  // after the start: watch only
  std::chrono::seconds sweep_interval{0};    // ask for addresses that were silent; 0: never
  std::chrono::seconds sweep_silence{3600};  // for so long
  bool operator==(const Sponge&) const = default;
};

// Who answers for an address that nobody may have, answers for others too.
struct Decoys {
  std::vector<net::IpAddress> addresses;  // reserved and unused, inside a prefix or beside it
  std::chrono::seconds interval{600};     // between two questions for the same one; 0: never
  bool operator==(const Decoys&) const = default;
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
  std::optional<bool> learning;  // snoop bindings from members
  std::optional<FloodTo> flood_unknown_arp, flood_unknown_ns;
  std::optional<FloodTo> flood_gratuitous_arp, flood_router_na, flood_host_na;
  std::optional<UnknownOptions> unknown_options;  // static: Discard; else Forward
  std::set<uint8_t> known_options{1, 14};         // of solicitations
  UnicastForward unicast_forward = UnicastForward::Never;
  Probes probes = Probes::Strangers;
  std::vector<UnassignedPrefix> unassigned;
  std::vector<net::IpPrefix> exempt;  // never answered, always handed on
  LinkLocal link_local = LinkLocal::Both;
  uint32_t link_locals_per_mac = 2;  // learned ones
  AdvertiseNeighbors advertise = AdvertiseNeighbors::All;
  bool anycast = false;       // several MACs for one address (section 3.2.1 and 6)
  uint32_t anycast_macs = 4;  // at most
  DuplicateDetection duplicates;
  Sponge sponge;
  Decoys decoys;
  std::optional<std::chrono::seconds> refresh;  // none: age_time / 3; zero: never
  uint32_t announcements_per_second = 100;      // our own gratuitous frames and refreshes each
  uint32_t new_bindings_per_second = 10;        // learned ones, a port
  bool default_router = true;                   // R flag when nothing says otherwise
  std::chrono::seconds age_time{14400};         // of learned bindings
  uint32_t max_bindings = 16384;                // in the broadcast domain
  uint32_t max_bindings_per_port = 8;           // learned ones
  std::vector<StaticBinding> bindings;
  bool operator==(const Settings&) const = default;

  [[nodiscard]] bool learns() const {
    return learning.value_or(profile == Profile::Dynamic || profile == Profile::Hybrid);
  }
  // What the profile floods when nothing else is said.
  [[nodiscard]] FloodTo by_profile() const {
    const bool floods = profile == Profile::Dynamic || profile == Profile::Hybrid;
    return {floods, floods};
  }
  [[nodiscard]] FloodTo unknown_arp() const { return flood_unknown_arp.value_or(by_profile()); }
  [[nodiscard]] FloodTo unknown_ns() const { return flood_unknown_ns.value_or(by_profile()); }
  [[nodiscard]] FloodTo gratuitous_arp() const {
    return flood_gratuitous_arp.value_or(by_profile());
  }
  [[nodiscard]] FloodTo router_na() const { return flood_router_na.value_or(by_profile()); }
  [[nodiscard]] FloodTo host_na() const { return flood_host_na.value_or(by_profile()); }
  [[nodiscard]] UnknownOptions options_policy() const {
    return unknown_options.value_or(profile == Profile::Static ? UnknownOptions::Discard
                                                               : UnknownOptions::Forward);
  }
};

}  // namespace proxyarp
