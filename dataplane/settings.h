// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator sets for the data path: devices of a broadcast domain, member ports, BUM
// policies.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"

namespace dataplane {

// Classes that have limits of their own. What is none of these is known unicast and never limited.
// Unicast ARP and ND are limited for the sake of who asks the daemon and the members; they count as
// such only when their destination is known.
enum class BumClass : uint8_t {
  Arp,
  Nd,
  Broadcast,
  Multicast,
  UnknownUnicast,
  ArpUnicast,
  NdUnicast,
  Count
};
inline constexpr std::size_t kBumClasses = static_cast<std::size_t>(BumClass::Count);
const char* to_string(
    BumClass bum_class);  // "arp", "nd", "broadcast", ... "unknown-unicast", "arp-unicast"

// Ingress: from a member. Egress: to a member. Decap: out of a VXLAN tunnel. Encap: into it.
enum class Direction : uint8_t { Ingress, Egress, Decap, Encap, Count };
const char* to_string(Direction direction);

// Absolute rates; both may be set, the tighter wins. Zero means: nothing passes.
struct Limit {
  std::optional<uint64_t> packets_per_second;
  std::optional<uint64_t> bits_per_second;  // Ethernet frame without FCS, preamble and gap
  std::chrono::milliseconds burst{1000};    // at most 1 s
  bool operator==(const Limit&) const = default;
};

// An absent limit: unlimited.
using Limits = std::array<std::optional<Limit>, kBumClasses>;

// What is done about a port that violates its security, beside counting: Drop the frames, let the
// port pass nothing for a while (Quarantine), the same and as if its link were down (Shut).
enum class Reaction : uint8_t { Count, Drop, Quarantine, Shut };
const char* to_string(Reaction reaction);  // "count", "drop", "quarantine", "shut"

// Port security. Only `macs` may be Count: then frames of foreign sources pass.
struct SecuritySettings {
  Reaction macs = Reaction::Drop;       // sources that are not the member's
  Reaction spoofing = Reaction::Drop;   // ARP and ND in the name of others
  Reaction protocols = Reaction::Drop;  // what the policy does not allow: BPDUs, RAs ...
  Reaction loop = Reaction::Shut;       // frames that come back
  Reaction storm = Reaction::Drop;      // frames over the limits
  uint32_t violations = 5;              // reports within `window` that lead to Quarantine or Shut
  std::chrono::seconds window{10};
  uint64_t storm_rate = 1000;  // frames a second over the limits, on average over the window
  // How long the port is closed: `hold`, twice as long each further time, at most `max_hold`; once
  // more `hold` after `forgive` without being closed.
  std::chrono::seconds hold{60}, max_hold{600}, forgive{3600};
  // Flap damping: so many changes of the link within `flap_window` close the port until it was
  // quiet for `flap_hold`. 0: off.
  uint32_t flap_transitions = 4;
  std::chrono::seconds flap_window{5}, flap_hold{10};
  bool operator==(const SecuritySettings&) const = default;
};

struct BumPolicy {
  std::string name;
  Limits ingress, egress, decap, encap;
  // All BUM classes together, to a member: what ARP and ND need comes first, the others share what
  // is left. On top of the limits of `egress`.
  std::optional<Limit> egress_total;
  // All BUM classes together, out of the tunnel of each remote VTEP: none can fill the others'
  // share. On the policy of the VXLAN device.
  std::optional<Limit> per_vtep;
  // Judge and count, but drop nothing because of this policy.
  bool observe = false;
  std::vector<uint16_t> allowed_ethertypes{0x0800, 0x0806, 0x86dd};  // at most 8
  // Names of drop reasons that are switched off: "lacp", "mld", "dhcp" ... (see drop_reasons()).
  std::set<std::string> allow;
  Limit answers{.packets_per_second = 5000,
                .bits_per_second = {},
                .burst = std::chrono::milliseconds(200)};  // proxy replies per port
  Limit punts{.packets_per_second = 1000,
              .bits_per_second = {},
              .burst = std::chrono::milliseconds(200)};  // to the daemon per port
  SecuritySettings security;
  bool operator==(const BumPolicy&) const = default;
};

// Every drop reason by name, with one line of explanation: for documentation, `allow` and metrics.
struct DropReason {
  const char* name;
  const char* text;
  bool switchable = true;  // may stand in `allow`
};
[[nodiscard]] std::span<const DropReason> drop_reasons();

// The common rule of the large exchanges, used where no policy is named: ARP 20/s, ND 50/s in;
// no other broadcast or multicast; unknown unicast dropped; 1 Mbit/s of BUM classes out.
BumPolicy peering_policy();
// Nothing passes: for ports that are not (yet, or no longer) let into the peering LAN.
BumPolicy quarantine_policy();
inline constexpr const char* kQuarantinePolicy = "quarantine";

enum class ResponderKind : uint8_t { Ebpf, Pcap };

// Where ARP and ND are answered at a port with `responder: ebpf`. Auto is tc: to attach XDP makes
// many drivers restart their link, so that it is for the operator to say.
enum class Attach : uint8_t { Auto, Tc, Xdp };

struct TemporaryMac {
  net::MacAddress mac;
  std::chrono::sys_seconds until;
  bool operator==(const TemporaryMac&) const = default;
};

struct MemberPort {
  std::string interface;  // kernel name
  std::string member_name;
  net::AsNumber member_as;
  std::vector<net::MacAddress> macs;      // provisioned; empty: none
  bool enforce_macs = true;               // frames of other sources are dropped; without macs: all
  std::vector<net::IpAddress> addresses;  // provisioned on this port
  std::string policy;                     // name of a BumPolicy
  Attach attach = Attach::Auto;
  std::vector<TemporaryMac> temporary_macs;  // provisioned as well until then
  std::optional<SecuritySettings> security;  // instead of the policy's
  bool quarantined = false;                  // by the settings: nothing passes
  bool observe = false;                      // as of the policy
  bool lacp = false;                         // LACP of the member ends here
  bool operator==(const MemberPort&) const = default;
};

// The kernel's devices of one broadcast domain.
struct Links {
  std::string bridge;  // created when it does not exist, adopted otherwise
  std::string vxlan;
  net::Vni vni;
  net::IpAddress vtep;  // local address of the tunnel
  uint16_t udp_port = 4789;
  uint16_t mtu = 1500;  // of bridge and vxlan device
  bool flood_unknown_unicast = false;
  std::chrono::seconds ageing{14400};  // of learned FDB entries
  bool operator==(const Links&) const = default;
};

}  // namespace dataplane
