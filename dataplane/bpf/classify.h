// SPDX-License-Identifier: GPL-2.0-or-later
// What a frame is: its class, and the reason to drop it that its protocol gives. Plain C for the
// eBPF programs and for user space; the includer defines before it
//     pl_source                                        what frames are read from
//     int pl_load(pl_source *, __u32 offset, void *to, __u32 n)   0, or not 0 when out of bounds
// In the order of use: pl_link_reason() by Ethernet header alone, then (past the source's check)
// pl_network_reason(), which also tells the class. A reason is only a proposal; the policy may have
// it switched off.
#pragma once
#include "abi.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

// Steps that the includer may have as functions of their own: the verifier then looks at them once.
#ifndef PL_STEP
#define PL_STEP PL_INLINE
#endif

enum {
  PL_ETH = 14,      // length of an Ethernet header
  PL_PEEK = 54,     // Ethernet and IPv6 headers: what is read of every frame
  PL_ARP_END = 42,  // Ethernet and ARP
  PL_NS_END = 86,   // Ethernet, IPv6, and NS or NA with one link-layer option
  PL_MAX_EXTENSIONS = 8,

  PL_TYPE_IPV4 = 0x0800,
  PL_TYPE_ARP = 0x0806,
  PL_TYPE_IPV6 = 0x86dd,
  PL_ICMPV6 = 58,
  PL_NS = 135,
  PL_NA = 136,
};

// The first octets of a frame; two of padding align the IP header.
struct pl_head {
  __u8 pad[2];
  __u8 b[PL_NS_END];
} __attribute__((aligned(8)));

struct pl_frame {
  __u32 len;
  __u16 type;     // EtherType; below 0x600: IEEE 802.3 length, so LLC
  __u16 l4;       // offset of what follows the IP headers; 0: none seen
  __u16 head;     // how many octets pl_head has of it
  __u16 tags;     // octets of VLAN tags that pl_head does not have
  __u8 proto;     // of that
  __u8 group;     // destination is not one host
  __u8 nd;        // ICMPv6 type of an NS or NA, else 0
  __u8 cls;       // enum pl_class; UNICAST is told from UNKNOWN_UNICAST by the caller
  __u8 observed;  // the first reason to drop it that is only observed; 0: none
};

PL_INLINE __u16 pl_u16(const __u8* p) { return (__u16)(p[0] << 8 | p[1]); }
PL_INLINE __u32 pl_word(const __u8* p) {  // in the machine's order: to compare, not to calculate
  __u32 v;
  __builtin_memcpy(&v, p, 4);
  return v;
}
PL_INLINE __u64 pl_mac(const __u8* p) {
  __u64 v = 0;
  __builtin_memcpy(&v, p, 6);
  return v;
}
// p starts with the octets a..e
PL_INLINE int pl_starts(const __u8* p, __u8 a, __u8 b, __u8 c, __u8 d, __u8 e) {
  return p[0] == a && p[1] == b && p[2] == c && p[3] == d && p[4] == e;
}

// head has the frame's first `seen` octets, at least PL_ETH, and zeros after its end.
PL_INLINE void pl_look(const struct pl_head* head, __u32 seen, __u32 len, struct pl_frame* frame) {
  frame->len = len;
  frame->head = (__u16)seen;
  frame->type = pl_u16(head->b + 12);
  frame->tags = 0;
  frame->observed = 0;
  frame->l4 = 0;
  frame->proto = 0;
  frame->nd = 0;
  frame->group = head->b[0] & 1;
  if (!frame->group)
    frame->cls = PL_CLASS_UNICAST;
  else if (pl_word(head->b) == 0xffffffff && pl_u16(head->b + 4) == 0xffff)
    frame->cls = PL_CLASS_BROADCAST;
  else
    frame->cls = PL_CLASS_MULTICAST;
}

PL_INLINE int pl_is_tag(__u16 type) { return type == 0x8100 || type == 0x88a8 || type == 0x9100; }

// Takes one or two VLAN tags out of the head, so that what is behind them is seen. 0, or
// PL_MALFORMED.
PL_STEP __u32 pl_untag(pl_source* source, struct pl_head* head, struct pl_frame* frame) {
  if (!head || !frame) return PL_MALFORMED;
  PL_LOOP
  for (int i = 0; i < 2; i++) {
    __u8 tag[4];
    if (!pl_is_tag(frame->type)) break;
    if (pl_load(source, PL_ETH + frame->tags, tag, 4)) return PL_MALFORMED;
    frame->tags = (__u16)(frame->tags + 4);
    frame->type = pl_u16(tag + 2);
  }
  if (pl_is_tag(frame->type)) return PL_MALFORMED;
  frame->len -= frame->tags;
  for (int i = 12; i < PL_NS_END; i++) head->b[i] = 0;
  __u32 n = frame->len - 12;
  if (n > PL_PEEK - 12) n = PL_PEEK - 12;
  frame->head = (__u16)(12 + n);
  asm volatile("" : "+r"(n));  // the compiler's proof of what follows is not the verifier's
  if (n < 2 || n > PL_PEEK - 12 || pl_load(source, 12 + frame->tags, head->b + 12, n))
    return PL_MALFORMED;
  return 0;
}

// IEEE 802.1Q table 8-1: never forwarded by a bridge.
PL_INLINE __u32 pl_bridge_group(__u8 last) {
  switch (last) {
    case 0x00:
    case 0x08: return PL_STP;
    case 0x01: return PL_PAUSE;
    case 0x02: return PL_LACP;
    case 0x03: return PL_DOT1X;
    case 0x0e: return PL_LLDP;
    default: return PL_LINK_LOCAL_GROUP;
  }
}

// Protocols that their Ethernet header gives away. PL_PASSED: none of them.
PL_INLINE __u32 pl_link_reason(const struct pl_head* head, struct pl_frame* frame) {
  const __u8* d = head->b;
  const __u16 type = frame->type;
  // Groups of the protocols below begin with 01 or 09.
  if (d[0] != 0x01 && d[0] != 0x09 &&
      (type == PL_TYPE_IPV4 || type == PL_TYPE_IPV6 || type == PL_TYPE_ARP))
    return PL_PASSED;
  if (pl_is_tag(type)) return PL_VLAN_TAG;
  if (pl_starts(d, 0x01, 0x80, 0xc2, 0x00, 0x00)) {
    if (d[5] <= 0x0f) {
      frame->cls = PL_CLASS_CONTROL;
      return pl_bridge_group(d[5]);
    }
    if (d[5] >= 0x20 && d[5] <= 0x2f) return PL_MVRP;
    if (d[5] == 0x14 || d[5] == 0x15) return PL_ISIS;
  }
  if (pl_starts(d, 0x01, 0x00, 0x0c, 0xcc, 0xcc)) {
    if (d[5] == 0xcc) return PL_CDP;
    if (d[5] == 0xcd) return PL_PVST;
  }
  if (pl_starts(d, 0x01, 0x00, 0x0c, 0x00, 0x00)) return PL_ISL;
  if (pl_starts(d, 0x00, 0xe0, 0x2b, 0x00, 0x00)) return PL_EDP;
  if (pl_starts(d, 0x09, 0x00, 0x2b, 0x00, 0x00) && d[5] == 0x05) return PL_ISIS;
  switch (type) {
    case 0x8808: return PL_PAUSE;
    case 0x8809: return PL_LACP;
    case 0x888e: return PL_DOT1X;
    case 0x88cc: return PL_LLDP;
    case 0x88bf: return PL_MIKROTIK;
    case 0x9000: return PL_LOOP_TEST;
    default: break;
  }
  if (type < 0x600) {  // LLC: the service access points of IS-IS and of spanning tree
    if (d[14] == 0xfe && d[15] == 0xfe) return PL_ISIS;
    if (d[14] == 0x42 && d[15] == 0x42) return PL_STP;
  }
  return PL_PASSED;
}

// UDP to a group, by destination port.
PL_INLINE __u32 pl_udp_reason(__u16 port) {
  switch (port) {
    case 67:
    case 68: return PL_DHCP;
    case 137:
    case 138: return PL_NETBIOS;
    case 520:
    case 521: return PL_RIP;
    case 546:
    case 547: return PL_DHCPV6;
    case 646: return PL_LDP;
    case 1900: return PL_SSDP;
    case 1985:
    case 2029:
    case 3222: return PL_HSRP;
    case 5353: return PL_MDNS;
    case 5355: return PL_LLMNR;
    case 5678: return PL_MNDP;
    default: return PL_PASSED;
  }
}

// The first octets behind the IP headers, `n` of at most four: from the head where it has them, at
// the two places where they mostly are.
PL_INLINE int pl_load_l4(pl_source* source, const struct pl_head* head,
                         const struct pl_frame* frame, __u8* to, __u32 n) {
  enum { PL_L4_IPV4 = PL_ETH + 20 };
  if (frame->l4 == PL_L4_IPV4 && frame->head >= PL_L4_IPV4 + 4)
    __builtin_memcpy(to, head->b + PL_L4_IPV4, n);
  else if (frame->l4 == PL_PEEK && frame->head >= PL_PEEK + 4)
    __builtin_memcpy(to, head->b + PL_PEEK, n);
  else
    return pl_load(source, frame->l4 + frame->tags, to, n);
  return 0;
}

// IP protocols to a group. UDP's ports are at frame->l4.
PL_INLINE __u32 pl_group_reason(pl_source* source, const struct pl_head* head,
                                const struct pl_frame* frame) {
  switch (frame->proto) {
    case 2: return PL_IGMP;
    case 9:
    case 88: return PL_EIGRP;
    case 89: return PL_OSPF;
    case 103: return PL_PIM;
    case 112: return PL_VRRP;
    case 17: {
      __u8 ports[4];
      if (pl_load_l4(source, head, frame, ports, 4)) return PL_MALFORMED;
      return pl_udp_reason(pl_u16(ports + 2));
    }
    default: return PL_PASSED;
  }
}

PL_INLINE __u32 pl_ipv4_reason(pl_source* source, const struct pl_head* head,
                               struct pl_frame* frame) {
  const __u8* ip = head->b + PL_ETH;
  const __u32 header = (ip[0] & 0x0fu) * 4u;
  if (frame->len < PL_ETH + 20 || ip[0] >> 4 != 4 || header < 20) return PL_MALFORMED;
  frame->proto = ip[9];
  if ((ip[6] & 0x1f) != 0 || ip[7] != 0) return PL_PASSED;  // not the first fragment
  frame->l4 = (__u16)(PL_ETH + header);
  if (frame->proto == 1) {
    __u8 type = 0;
    if (pl_load_l4(source, head, frame, &type, 1)) return PL_MALFORMED;
    if (type == 5) return PL_REDIRECT;
    if (frame->group && (type == 9 || type == 10)) return PL_IRDP;
  }
  return frame->group ? pl_group_reason(source, head, frame) : (__u32)PL_PASSED;
}

PL_INLINE __u32 pl_icmpv6_reason(__u8 type, int fragmented, struct pl_frame* frame) {
  switch (type) {
    case 133: return PL_RS;
    case 134: return PL_RA;
    case 137: return PL_REDIRECT;
    case 130:
    case 131:
    case 132:
    case 143:
    case 151:
    case 152:
    case 153: return PL_MLD;
    case PL_NS:
    case PL_NA:
      if (fragmented) return PL_HEADER_CHAIN;  // RFC 6980 section 5
      frame->nd = type;
      frame->cls = frame->group ? PL_CLASS_ND : PL_CLASS_ND_UNICAST;
      return PL_PASSED;
    default: return PL_PASSED;
  }
}

// Walks the extension headers: neighbor discovery hides behind them (RFC 7113).
PL_INLINE __u32 pl_ipv6_reason(pl_source* source, const struct pl_head* head,
                               struct pl_frame* frame) {
  if (frame->len < PL_PEEK || head->b[PL_ETH] >> 4 != 6) return PL_MALFORMED;
  __u32 offset = PL_PEEK;
  __u8 next = head->b[PL_ETH + 6];
  int fragmented = 0, i;
  PL_LOOP
  for (i = 0; i < PL_MAX_EXTENSIONS; i++) {
    if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60 && next != 135 &&
        next != 139 && next != 140)
      break;
    __u8 extension[4];
    if (pl_load(source, offset + frame->tags, extension, 4)) return PL_HEADER_CHAIN;
    if (next == 44) {
      // Not the first one: nothing to see, and no use without the first one, which is checked.
      if (extension[2] != 0 || (extension[3] & 0xf8) != 0) return PL_PASSED;
      fragmented = 1;
      offset += 8;
    } else if (next == 51) {
      offset += (extension[1] + 2u) * 4u;
    } else {
      offset += (extension[1] + 1u) * 8u;
    }
    next = extension[0];
  }
  if (i == PL_MAX_EXTENSIONS) return PL_HEADER_CHAIN;
  frame->proto = next;
  frame->l4 = (__u16)offset;
  if (next == PL_ICMPV6) {
    __u8 type = head->b[PL_PEEK];
    if ((offset != PL_PEEK || frame->head <= PL_PEEK) &&
        pl_load(source, offset + frame->tags, &type, 1))
      return PL_HEADER_CHAIN;
    return pl_icmpv6_reason(type, fragmented, frame);
  }
  return frame->group ? pl_group_reason(source, head, frame) : (__u32)PL_PASSED;
}

// Protocols inside ARP, IPv4 and IPv6. Completes class, nd, proto and l4 of the frame.
PL_STEP __u32 pl_network_reason(pl_source* source, const struct pl_head* head,
                                struct pl_frame* frame) {
  if (!head || !frame) return PL_MALFORMED;
  switch (frame->type) {
    case PL_TYPE_IPV4: return pl_ipv4_reason(source, head, frame);
    case PL_TYPE_IPV6: return pl_ipv6_reason(source, head, frame);
    case PL_TYPE_ARP:
      if (frame->len < PL_ARP_END) return PL_MALFORMED;
      frame->cls = frame->group ? PL_CLASS_ARP : PL_CLASS_ARP_UNICAST;
      return PL_PASSED;
    default: return PL_PASSED;
  }
}

PL_INLINE int pl_ethertype_listed(const struct pl_config* config, __u16 type) {
  PL_LOOP
  for (int i = 0; i < PL_MAX_ETHERTYPES; i++) {
    if (i >= config->ethertype_count) break;
    if (config->ethertypes[i] == type) return 1;
  }
  return 0;
}

PL_INLINE int pl_source_listed(const struct pl_config* config, __u64 mac) {
  PL_LOOP
  for (int i = 0; i < PL_MAX_MACS; i++) {
    if (i >= config->mac_count) break;
    if (config->macs[i] == mac) return 1;
  }
  return 0;
}

// One of the first that are listed, and not the PE's own: no need to look further.
PL_INLINE int pl_quick_source(const struct pl_config* config, __u64 mac) {
  return (config->quick[PL_IN] & PL_QUICK_LISTED) &&
         (mac == config->quick_macs[0] || mac == config->quick_macs[1]);
}

PL_INLINE int pl_own_source(const struct pl_config* config, __u64 mac) {
  PL_LOOP
  for (int i = 0; i < PL_MAX_OWN_MACS; i++) {
    if (i >= config->own_mac_count) break;
    if (config->own_macs[i] == mac) return 1;
  }
  return 0;
}

PL_INLINE int pl_allowed(const struct pl_config* config, __u32 reason) {
  return (config->allow >> (reason & 63)) & 1;
}

// The policy does not drop for this reason, but counts it (the first one of each frame).
PL_INLINE int pl_observed(int observe, struct pl_frame* frame, __u32 reason) {
  if (observe && !frame->observed) frame->observed = (__u8)reason;
  return observe;
}

PL_INLINE __u32 pl_check_source(const struct pl_config* config, const struct pl_head* head,
                                struct pl_frame* frame) {
  const __u64 mac = pl_mac(head->b + 6);
  if (pl_quick_source(config, mac)) return PL_PASSED;
  if ((mac == 0 || (head->b[6] & 1)) && !pl_observed(config->observe, frame, PL_SOURCE_INVALID))
    return PL_SOURCE_INVALID;
  if (config->enforce_macs && !pl_source_listed(config, mac) &&
      !pl_observed(config->observe | config->observe_macs, frame, PL_SOURCE_MAC))
    return PL_SOURCE_MAC;
  return PL_PASSED;
}

// Steps (1) and (2) of the data path: loops, link-local groups and EtherTypes, source. PL_PASSED:
// go on, unless the class is PL_CLASS_CONTROL now.
PL_STEP __u32 pl_check_link(const struct pl_config* config, int hook, const struct pl_head* head,
                            struct pl_frame* frame) {
  if (!config || !head || !frame) return PL_MALFORMED;
  if (hook == PL_IN && config->own_mac_count && pl_own_source(config, pl_mac(head->b + 6)) &&
      !pl_observed(config->observe, frame, PL_LOOPED))
    return PL_LOOPED;
  const __u32 reason = pl_link_reason(head, frame);
  if (reason != PL_PASSED) {
    if (!pl_allowed(config, reason) && !pl_observed(config->observe, frame, reason)) return reason;
    if (frame->cls == PL_CLASS_CONTROL) {
      // Some LAGs send LACPDUs from an unregistered MAC. But BPDUs are flooded by a bridge without
      // spanning tree.
      if (reason != PL_STP) return PL_PASSED;
      frame->cls = PL_CLASS_MULTICAST;
    }
  } else if (!pl_ethertype_listed(config, frame->type) &&
             !pl_observed(config->observe, frame, PL_ETHERTYPE)) {
    return PL_ETHERTYPE;
  }
  return hook == PL_IN ? pl_check_source(config, head, frame) : (__u32)PL_PASSED;
}

// Steps (1) to (3) of the data path: tags, pl_check_link(), then named protocols. PL_PASSED: go on
// by class. A class of PL_CLASS_CONTROL then: pass without any further check, the bridge keeps it
// to itself.
PL_INLINE __u32 pl_check(pl_source* source, const struct pl_config* config, int hook,
                         struct pl_head* head, struct pl_frame* frame) {
  __u32 reason = PL_PASSED;
  if (pl_is_tag(frame->type)) {
    if (!pl_allowed(config, PL_VLAN_TAG) && !pl_observed(config->observe, frame, PL_VLAN_TAG))
      return PL_VLAN_TAG;
    reason = pl_untag(source, head, frame);
    if (reason) return reason;
  }
  reason = pl_check_link(config, hook, head, frame);
  if (reason != PL_PASSED || frame->cls == PL_CLASS_CONTROL) return reason;
  reason = pl_network_reason(source, head, frame);
  if (reason != PL_PASSED && !pl_allowed(config, reason) &&
      !pl_observed(config->observe, frame, reason))
    return reason;
  return PL_PASSED;
}

// Octets of a frame on the wire when it is `segments` frames, each with headers of its own.
PL_INLINE __u32 pl_wire_bytes(const struct pl_frame* frame, __u32 segments) {
  const __u32 header = frame->tags + frame->l4 + (frame->proto == 6 ? 20u : 8u);
  const __u32 len = frame->len + frame->tags;
  return segments > 1 ? len + (segments - 1) * header : len;
}

// --- frames to groups that come back: the same octets, out of a port and into it within two
// seconds. Not those of a source that is provisioned here.
PL_INLINE int pl_may_come_back(const struct pl_config* config, const struct pl_head* head) {
  const __u64 source = pl_mac(head->b + 6);
  return !config->core && !pl_quick_source(config, source) && !pl_source_listed(config, source);
}
// Of the first PL_PEEK octets: the first six as a word behind two of zero, and the others.
PL_INLINE __u64 pl_hash(__u32 len, __u64 first, const __u8* others) {
  // Words by odd factors of their own: the multiplications do not wait for one another.
  __u64 factor = 0x9e3779b97f4a7c15ull, hash = len + (first ^ first >> 32) * factor;
  for (int i = 0; i + 8 <= PL_PEEK - 6; i += 8) {
    __u64 word;
    __builtin_memcpy(&word, others + i, 8);
    factor *= 0xd1342543de82ef95ull;
    hash += (word ^ word >> 32) * factor;
  }
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}
PL_INLINE __u64 pl_frame_hash(const struct pl_head* head, const struct pl_frame* frame) {
  return pl_hash(frame->len, pl_mac(head->b) << 16, head->b + 6);
}
PL_INLINE __u64 pl_sent_place(__u64 hash) { return hash >> 58 & (PL_SENT - 1); }
PL_INLINE __u64 pl_sent_mark(__u64 hash, __u64 now) { return hash << 32 | (__u32)(now >> 20); }
PL_INLINE int pl_came_back(const __u64* sent, __u64 hash, __u64 now) {
  enum { PL_TWO_SECONDS = 1907 };
  const __u64 mark = *(volatile const __u64*)&sent[pl_sent_place(hash)];
  return mark >> 32 == (hash & 0xffffffff) &&
         (__u32)((__u32)(now >> 20) - (__u32)mark) <= PL_TWO_SECONDS;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
