// SPDX-License-Identifier: GPL-2.0-or-later
// What the eBPF programs and user space share: reasons, classes, and the maps' keys and values.
// Plain C. Change PL_ABI_VERSION with every change of a layout or of an enumerator's number: pinned
// maps of another version are not reused.
#pragma once
#include <linux/types.h>

#define PL_INLINE static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define PL_LOOP _Pragma("clang loop unroll(disable)")
#else
#define PL_LOOP
#endif

enum {
#ifdef PL_OTHER_BUILD  // for tests of upgrades; a value has another size, too, see pl_near
  PL_ABI_VERSION = 9999,
#else
  PL_ABI_VERSION = 4,
#endif
  PL_BINDING_VERSION = 2,  // of the keys and values of bind4, bind6 and macs alone

  PL_MAX_PORTS = 1024,
  PL_NEAR_PORTS = 4096,  // a power of two
  PL_NEAR_MACS = 65536,  // likewise
  PL_QUICK_MACS = 2,
  PL_MAX_CONFIGS = 2 * PL_MAX_PORTS,  // an update goes to a free slot, then the port points there
  // Explanations: a port's configuration and state are copied to places of their own, which the
  // programs find by the index of the loopback device, where they are never attached.
  PL_SHADOW_DEVICE = 1,
  PL_SHADOW_SLOT = PL_MAX_PORTS,
  PL_SHADOW_CONFIG = PL_MAX_CONFIGS,
  PL_NAME = 32,  // of a port, with its zero
  PL_MAX_MACS = 64,
  PL_MAX_OWN_MACS = 8,
  PL_SENT = 64,  // a power of two
  PL_MAX_ETHERTYPES = 8,
  PL_MAX_TRAPS = 2,
  PL_MAX_DROPS = 32768,  // (port, direction, class, reason) that ever dropped something
  PL_MAX_UNDERLAYS = 64,
  PL_MAX_VNIS = 4096,  // (underlay device, VNI)
  PL_MAX_VTEPS = 4096,

  PL_PUNT_FRAME = 504,  // longest frame that is punted; the record has 512 octets
  PL_PUNT_RECORD = 512,
  PL_REPORT_FRAME = 120,  // octets of a frame that a report has at most
  PL_REPORT_RECORD = 128,
  PL_REPORT_RING = 256 << 10,
};

// X(enumerator, name, may be switched off by a policy's `allow`, explanation)
#define PL_DROP_REASONS(X)                                                                    \
  X(VLAN_TAG, "vlan-tag", 1, "802.1Q or 802.1ad tag")                                         \
  X(STP, "stp", 1, "spanning tree BPDU (01:80:c2:00:00:00 or :08)")                           \
  X(PAUSE, "pause", 1, "MAC control, IEEE 802.3 pause (01:80:c2:00:00:01, 0x8808)")           \
  X(LACP, "lacp", 1, "slow protocols: LACP, OAM (01:80:c2:00:00:02, 0x8809)")                 \
  X(DOT1X, "dot1x", 1, "802.1X port access (01:80:c2:00:00:03, 0x888e)")                      \
  X(LLDP, "lldp", 1, "LLDP (01:80:c2:00:00:0e, 0x88cc)")                                      \
  X(LINK_LOCAL_GROUP, "link-local-group", 1, "other group of 01:80:c2:00:00:00 to :0f")       \
  X(MVRP, "mvrp", 1, "GARP, MVRP and MMRP (01:80:c2:00:00:20 to :2f)")                        \
  X(PVST, "pvst", 1, "per-VLAN spanning tree (01:00:0c:cc:cc:cd)")                            \
  X(CDP, "cdp", 1, "CDP, VTP, DTP, UDLD (01:00:0c:cc:cc:cc)")                                 \
  X(ISL, "isl", 1, "inter-switch link (01:00:0c:00:00:00)")                                   \
  X(EDP, "edp", 1, "Extreme discovery and its kin (00:e0:2b:00:00:0x)")                       \
  X(ISIS, "is-is", 1, "IS-IS, by group or by LLC")                                            \
  X(MIKROTIK, "mikrotik", 1, "RouterOS layer 2 protocols (0x88bf)")                           \
  X(LOOP_TEST, "loop-test", 1, "configuration test and keepalive frames (0x9000)")            \
  X(ETHERTYPE, "ethertype", 0, "EtherType that the policy does not list, or LLC")             \
  X(SOURCE_INVALID, "source-invalid", 0, "source MAC is zero or a group")                     \
  X(SOURCE_MAC, "source-mac", 0, "source MAC is not provisioned on the port")                 \
  X(MALFORMED, "malformed", 0, "cut off or impossible headers, or too long for what it is")   \
  X(HEADER_CHAIN, "header-chain", 1,                                                          \
    "IPv6 extension headers cut off, too many, or ND in fragments (RFC 6980, 7112)")          \
  X(RA, "ra", 1, "router advertisement")                                                      \
  X(RS, "rs", 1, "router solicitation")                                                       \
  X(REDIRECT, "redirect", 1, "ICMP or ICMPv6 redirect")                                       \
  X(DHCP, "dhcp", 1, "DHCP and BOOTP to a group")                                             \
  X(DHCPV6, "dhcpv6", 1, "DHCPv6 to a group")                                                 \
  X(IGMP, "igmp", 1, "IGMP, DVMRP")                                                           \
  X(MLD, "mld", 1, "MLD and multicast router discovery")                                      \
  X(MDNS, "mdns", 1, "multicast DNS")                                                         \
  X(SSDP, "ssdp", 1, "SSDP, UPnP discovery")                                                  \
  X(LLMNR, "llmnr", 1, "link-local multicast name resolution")                                \
  X(NETBIOS, "netbios", 1, "NetBIOS over UDP to a group")                                     \
  X(OSPF, "ospf", 1, "OSPF to a group")                                                       \
  X(EIGRP, "eigrp", 1, "EIGRP and IGRP to a group")                                           \
  X(RIP, "rip", 1, "RIP and RIPng to a group")                                                \
  X(PIM, "pim", 1, "PIM to a group")                                                          \
  X(VRRP, "vrrp", 1, "VRRP and CARP")                                                         \
  X(HSRP, "hsrp", 1, "HSRP and GLBP")                                                         \
  X(MNDP, "mndp", 1, "MikroTik neighbor discovery (UDP 5678)")                                \
  X(LDP, "ldp", 1, "LDP discovery")                                                           \
  X(IRDP, "irdp", 1, "ICMP router discovery")                                                 \
  X(SAME_PORT, "same-port", 0, "asks for an address behind its own port (RFC 9161, 3.3 b)")   \
  X(OWNER_ASKED, "owner-asked", 0, "asks for its own address")                                \
  X(SPOOFED_SENDER, "spoofed-sender", 0, "claims an address that is bound to another MAC")    \
  X(ANSWER_LIMIT, "answer-limit", 0, "over the port's rate of proxy answers")                 \
  X(PUNT_LIMIT, "punt-limit", 0, "over the port's rate of frames to the daemon")              \
  X(PUNT_LIMIT_ALL, "punt-limit-all", 0, "over the rate of all ports to the daemon")          \
  X(ANTI_SPOOF, "anti-spoof", 0, "for the anti-spoof MAC of a duplicate address")             \
  X(SPONGE, "sponge", 0, "for an address that nobody has")                                    \
  X(RING_FULL, "ring-full", 0, "the daemon did not fetch its frames in time")                 \
  X(NO_MEMORY, "no-memory", 0, "the kernel could not make the answer")                        \
  X(ARP_LIMIT, "arp-limit", 0, "over the limit of broadcast ARP")                             \
  X(ND_LIMIT, "nd-limit", 0, "over the limit of multicast neighbor discovery")                \
  X(BROADCAST_LIMIT, "broadcast-limit", 0, "over the limit of broadcast")                     \
  X(MULTICAST_LIMIT, "multicast-limit", 0, "over the limit of multicast")                     \
  X(UNKNOWN_UNICAST_LIMIT, "unknown-unicast-limit", 0, "over the limit of unknown unicast")   \
  X(ARP_UNICAST_LIMIT, "arp-unicast-limit", 0, "over the limit of unicast ARP")               \
  X(ND_UNICAST_LIMIT, "nd-unicast-limit", 0, "over the limit of unicast neighbor discovery")  \
  X(ARP, "arp", 0, "broadcast ARP, of which the policy lets nothing pass")                    \
  X(ND, "nd", 0, "multicast neighbor discovery, of which the policy lets nothing pass")       \
  X(BROADCAST, "broadcast", 0, "broadcast, of which the policy lets nothing pass")            \
  X(MULTICAST, "multicast", 0, "multicast, of which the policy lets nothing pass")            \
  X(UNKNOWN_UNICAST, "unknown-unicast", 0,                                                    \
    "unknown unicast, of which the policy lets nothing pass")                                 \
  X(ARP_UNICAST, "arp-unicast", 0, "unicast ARP, of which the policy lets nothing pass")      \
  X(ND_UNICAST, "nd-unicast", 0,                                                              \
    "unicast neighbor discovery, of which the policy lets nothing pass")                      \
  X(LOOPED, "loop", 0, "came back through a loop: from the PE's own MAC, or sent out before") \
  X(QUARANTINE, "quarantine", 0, "the port is in quarantine")                                 \
  X(SHUT, "shut", 0, "the port is shut")                                                      \
  X(EGRESS_CAP, "egress-cap", 0, "over what all classes together may send to the member")     \
  X(ROGUE_VTEP, "rogue-vtep", 0, "VXLAN from an address that is no VTEP of the fabric")       \
  X(VTEP_LIMIT, "vtep-limit", 0, "over the limit of the remote VTEP")

// What became of a frame. At most 127 of them, those that `allow` may name less than 64.
enum pl_reason {
  PL_PASSED,
  PL_ANSWERED,
  PL_PUNTED,
#define PL_X(enumerator, name, switchable, text) PL_##enumerator,
  PL_DROP_REASONS(PL_X)
#undef PL_X
      PL_REASONS,
  PL_FIRST_DROP = PL_PUNTED + 1,
  PL_REASON_WORDS = 2,
};

// Those that have limits are dataplane::BumClass.
enum pl_class {
  PL_CLASS_ARP,
  PL_CLASS_ND,
  PL_CLASS_BROADCAST,
  PL_CLASS_MULTICAST,
  PL_CLASS_UNKNOWN_UNICAST,
  PL_CLASS_ARP_UNICAST,
  PL_CLASS_ND_UNICAST,
  PL_CLASS_UNICAST,
  PL_CLASS_CONTROL,  // link-local groups: no limit governs them
  PL_CLASSES,
  PL_LIMITED_CLASSES = PL_CLASS_ND_UNICAST + 1,
};

// The two hooks of a device. For the VXLAN device they are decapsulation and encapsulation.
enum pl_hook { PL_IN, PL_OUT, PL_HOOKS };

// --- limits. GCRA with times in nanoseconds; rates as ns << 16 per frame or octet.
enum pl_limit_mode { PL_UNLIMITED, PL_LIMITED, PL_NOTHING };
struct pl_limit {
  __u32 mode;
  __u32 zero;
  __u64 frame_q16, frame_tau;  // 0: no limit in frames
  __u64 byte_q16, byte_tau;    // 0: no limit in octets
};
enum pl_bucket_unit { PL_FRAMES, PL_OCTETS, PL_UNITS };
// Who comes first when all classes share a bucket: the second rank only takes what leaves room.
enum pl_rank { PL_ARP_AND_ND, PL_OTHERS, PL_RANKS };

// --- map "ports": ifindex -> where its state, its counters and its present configuration are
struct pl_port {
  __u32 slot;
  __u32 config;
} __attribute__((aligned(8)));

// --- map "near": the same, for a start: at ifindex modulo PL_NEAR_PORTS one of those with it
struct pl_near {
  struct pl_port port;
  __u32 ifindex;
  __u32 zero;
#ifdef PL_OTHER_BUILD
} __attribute__((aligned(32)));
#else
};
#endif

// Frames to this MAC end here; what is no ARP or ND only, when it is `own_mac` as well.
struct pl_trap {
  __u64 mac;  // as in the frame, then two octets of zero; PL_NO_MAC: none
  __u32 reason;
  __u32 zero;
};
#define PL_NO_MAC (~0ull)

// Which frames may go the short way past all else (quick.h), by hook. Bits of pl_config.quick.
enum {
  PL_QUICK_IPV4 = 1,
  PL_QUICK_IPV6 = 2,
  PL_QUICK_LISTED = 4,   // ingress: those from one of quick_macs; else those from none of them
  PL_QUICK_LOOK_UP = 8,  // only to known destinations
  PL_QUICK_GROUPS = 16,
  PL_QUICK_REMEMBER = 32,  // egress: what went out to groups
};

// --- map "configs". The first words are what the short way needs, then comes what every frame of
// the long way needs: a cache line each.
struct pl_config {
  __u32 ifindex;
  __u32 device;  // the index that the programs find it by: ifindex, or PL_SHADOW_DEVICE
  __u32 vni;
  __u8 quick[PL_HOOKS];
  __u8 limited[PL_HOOKS];           // bit = class: has a limit or a share in one
  __u64 quick_macs[PL_QUICK_MACS];  // as `macs`; PL_NO_MAC: none
  struct pl_trap traps[PL_MAX_TRAPS];

  __u64 allow;  // bit = reason: switched off
  __u8 core;    // VXLAN device
  __u8 proxy;
  __u8 learn;
  __u8 enforce_macs;
  __u8 gate;     // enum pl_reason why nothing passes; PL_PASSED: open
  __u8 observe;  // count, but drop nothing
  __u8 observe_macs;
  __u8 report;
  __u8 look_up[PL_HOOKS];  // unicast is known or unknown
  __u8 dry;                // an explanation: nothing but its own slot changes
  __u8 own_mac_count;
  __u16 mac_count;
  __u16 ethertype_count;
  __u16 ethertypes[PL_MAX_ETHERTYPES];  // host order
  __u64 own_mac;                        // as those of the traps
  __u64 renew;                          // ns after which a bound sender is told again; 0: never
  __u64 zero;

  struct pl_limit limits[PL_HOOKS][PL_LIMITED_CLASSES];
  struct pl_limit total[PL_RANKS];  // of all BUM classes to the member
  struct pl_limit answers;
  struct pl_limit punts;
  struct pl_limit trapped;  // punts of trapped frames
  struct pl_limit reports;
  __u64 own_macs[PL_MAX_OWN_MACS];  // no member's
  __u64 macs[PL_MAX_MACS];          // six octets as in the frame, then two of zero
} __attribute__((aligned(64)));

// --- map "state": what a change of configuration leaves alone
struct pl_state {
  __u64 tat[PL_HOOKS][PL_LIMITED_CLASSES][PL_UNITS];  // theoretical arrival times
  __u64 answers[PL_UNITS];
  __u64 punts[PL_UNITS];
  __u64 trapped[PL_UNITS];
  __u64 total[PL_UNITS];
  __u64 reports[PL_UNITS];
  // Bit = reason: map "drops" has a counter; second half: of what was only observed.
  __u64 seen[PL_HOOKS][PL_CLASSES][2 * PL_REASON_WORDS];
  // Frames to groups that went out to the member: half a hash of each and when, 2^20 ns.
  __u64 sent[PL_SENT];
};

// --- map "names": slot -> the port's name, by which it gets its slot back
struct pl_name {
  __u8 text[PL_NAME];
};

// --- map "all": what the ports share, one entry
struct pl_all {
  struct pl_limit punts;
  __u64 tat[PL_UNITS];
};

// --- map "counts": by slot, what is counted often: what passed, and what storms are dropped for
enum {
  PL_ROW_PASSED = 0,                                     // + class
  PL_ROW_ANSWERED = PL_CLASSES,                          // + PL_CLASS_ARP or PL_CLASS_ND
  PL_ROW_PUNTED = PL_CLASSES + 2,                        // likewise
  PL_ROW_LIMITED = PL_CLASSES + 4,                       // + class: over its limit
  PL_ROW_NOTHING = PL_ROW_LIMITED + PL_LIMITED_CLASSES,  // + class: nothing of it passes
  PL_ROWS = 32,                                          // a power of two
};
struct pl_count {
  __u64 packets, bytes;
};
struct pl_counts {
  struct pl_count rows[PL_HOOKS][PL_ROWS];
};

// --- map "drops": all else that was dropped or would have been
struct pl_drop_key {
  __u32 slot;
  __u8 hook, cls, reason;
  __u8 observed;  // passed all the same
};

// --- maps "bind4", "bind6"
struct pl_key4 {
  __u32 vni;
  __u8 ip[4];
};
struct pl_key6 {
  __u32 vni;
  __u8 ip[16];
};
enum { PL_ROUTER = 1, PL_OVERRIDE = 2 };
struct pl_binding {
  __u8 mac[6];
  __u8 flags;
  __u8 zero;
  __u32 port;   // ifindex; 0: behind another PE
  __u32 check;  // the address folded to a word: tells an element that was reused while being read
  // Written by the programs, kept by user space.
  __u64 answers;
  __u64 asker;    // MAC of the last one, as pl_mac() has it; 0: nobody
  __u64 renewed;  // when a frame of this sender was last told, ns of the monotonic clock
} __attribute__((aligned(8)));

// --- map "macs"
struct pl_mac_key {
  __u32 vni;
  __u8 mac[6];
  __u8 zero[2];
};

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
// --- map "near_macs": some of those in "macs". An element is one word: no program sees half of it.
PL_INLINE __u32 pl_near_mac_index(__u32 vni, __u64 mac) {
  return ((__u32)(mac * 0x9e3779b97f4a7c15ull >> 40) ^ vni >> 16) % PL_NEAR_MACS;
}
// Never 0 for the MAC of one host. With its index it tells VNI and MAC.
PL_INLINE __u64 pl_near_mac(__u32 vni, __u64 mac) { return ~(mac | (__u64)vni << 48); }
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

// --- ring buffer "punts"
enum pl_punt_kind {
  PL_PUNT_TAKEN,    // out of the path: the daemon decides
  PL_PUNT_COPY,     // the frame goes its way
  PL_PUNT_TRAPPED,  // the frame was dropped; its first PL_PUNT_FRAME octets at most
};
struct pl_punt {
  __u32 ifindex;
  __u16 len;
  __u8 kind;  // enum pl_punt_kind
  __u8 zero;
  __u8 frame[PL_PUNT_FRAME];
};

// --- ring buffer "reports": frames that were refused, some a second of each port
struct pl_report {
  __u32 ifindex;
  __u16 len;  // of what is here of the frame
  __u8 hook;
  __u8 reason;
  __u8 frame[PL_REPORT_FRAME];
};

// --- the underlay. Map "underlays": ifindex -> what tunnels look like there
struct pl_underlay {
  __u8 local[16];  // the VTEP's own address; IPv4 as ::ffff:a.b.c.d
  __u16 port;      // UDP, host order
  __u8 header;     // octets before the IP header: PL_ETH, or 0
  __u8 observe;
  __u32 zero;
  struct pl_limit per_vtep;
  struct pl_limit reports;
  __u64 tat[PL_UNITS];  // of the reports
};
// --- map "vnis": which are ours
struct pl_vni_key {
  __u32 ifindex;
  __u32 vni;
};
// --- maps "vteps" and "vtep_counts"; an address of zeros counts all that are not known
struct pl_vtep_key {
  __u8 ip[16];  // as pl_underlay.local
};
struct pl_vtep {
  __u64 tat[PL_UNITS];
};
struct pl_vtep_count {
  struct pl_count passed, limited, observed;
};

// --- map "meta", one entry a version number, so that the pinned map's size tells the version; only
// the first is used
struct pl_meta {
  __u64 netns;  // cookie of the network namespace that the ifindexes belong to
  __u32 binding_version;
  __u32 zero;
};
