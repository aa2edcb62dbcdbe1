// SPDX-License-Identifier: GPL-2.0-or-later
// ARP (RFC 826) and neighbor discovery (RFC 4861): the plain forms that are answered in the kernel,
// their answers, and what a unicast frame claims. Plain C, see classify.h.
#pragma once
#include "classify.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

enum {
  // ARP
  PL_OP = 20,
  PL_SHA = 22,
  PL_SPA = 28,
  PL_THA = 32,
  PL_TPA = 38,
  // IPv6 and ICMPv6 without extension headers
  PL_IP6_SOURCE = 22,
  PL_IP6_DESTINATION = 38,
  PL_ICMP6 = 54,
  PL_ND_TARGET = 62,
  PL_ND_OPTION = 78,

  PL_ARP_ANSWER = 60,  // padded to the shortest Ethernet frame
  PL_MAX_ND_OPTIONS = 8,
};

PL_INLINE int pl_same16(const __u8* a, const __u8* b) {
  return ((pl_word(a) ^ pl_word(b)) | (pl_word(a + 4) ^ pl_word(b + 4)) |
          (pl_word(a + 8) ^ pl_word(b + 8)) | (pl_word(a + 12) ^ pl_word(b + 12))) == 0;
}
PL_INLINE int pl_zero16(const __u8* a) {
  return (pl_word(a) | pl_word(a + 4) | pl_word(a + 8) | pl_word(a + 12)) == 0;
}

// Ethernet/IPv4, any operation.
PL_INLINE int pl_arp_ethernet(const struct pl_head* head) {
  const __u8* a = head->b + PL_ETH;
  return a[0] == 0 && a[1] == 1 && a[2] == 8 && a[3] == 0 && a[4] == 6 && a[5] == 4;
}

// A broadcast request by an honest sender for another one's address. Probes (sender address zero)
// and announcements (sender = target) are not plain: RFC 5227.
PL_INLINE int pl_arp_plain(const struct pl_head* head, const struct pl_frame* frame) {
  const __u8* b = head->b;
  return frame->len >= PL_ARP_END && pl_arp_ethernet(head) && b[PL_OP] == 0 && b[PL_OP + 1] == 1 &&
         pl_word(b) == 0xffffffff && pl_u16(b + 4) == 0xffff &&
         pl_mac(b + PL_SHA) == pl_mac(b + 6) && pl_word(b + PL_SPA) != 0 &&
         pl_word(b + PL_SPA) != pl_word(b + PL_TPA);
}

// Makes the reply of the request, PL_ARP_ANSWER octets.
PL_INLINE void pl_arp_answer(struct pl_head* head, const __u8* mac) {
  __u8* b = head->b;
  __u8 target[4];
  __builtin_memcpy(target, b + PL_TPA, 4);
  __builtin_memcpy(b, b + 6, 6);
  __builtin_memcpy(b + 6, mac, 6);
  b[PL_OP + 1] = 2;
  __builtin_memcpy(b + PL_THA, b, 6);
  __builtin_memcpy(b + PL_TPA, b + PL_SPA, 4);
  __builtin_memcpy(b + PL_SHA, mac, 6);
  __builtin_memcpy(b + PL_SPA, target, 4);
  __builtin_memset(b + PL_ARP_END, 0, sizeof(struct pl_head) - 2 - PL_ARP_END);
}

// Internet checksum over pseudo-header (RFC 8200 section 8.1) and the 32 octets of an NS or NA with
// one option, in the machine's byte order; 0xffff: right.
PL_INLINE __u16 pl_nd_sum(const struct pl_head* head) {
  __u64 sum = 0;
  for (int i = 0; i < 64; i += 4) sum += pl_word(head->b + PL_IP6_SOURCE + i);
  __u8 rest[4] = {0, 32, 0, PL_ICMPV6};
  sum += pl_word(rest);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)sum;
}

// A multicast NS with the source link-layer address as its only option, valid by RFC 4861 section
// 7.1.1, from an honest sender. head has PL_NS_END octets of the frame.
PL_INLINE int pl_ns_plain(const struct pl_head* head, const struct pl_frame* frame) {
  const __u8* b = head->b;
  const __u8 *destination = b + PL_IP6_DESTINATION, *target = b + PL_ND_TARGET;
  if (frame->len < PL_NS_END || b[PL_ETH] >> 4 != 6 || b[PL_ETH + 6] != PL_ICMPV6 ||
      b[PL_ETH + 7] != 255 || pl_u16(b + PL_ETH + 4) != PL_NS_END - PL_PEEK ||
      b[PL_ICMP6] != PL_NS || b[PL_ICMP6 + 1] != 0)
    return 0;
  if (b[PL_ND_OPTION] != 1 || b[PL_ND_OPTION + 1] != 1 ||
      pl_mac(b + PL_ND_OPTION + 2) != pl_mac(b + 6))
    return 0;
  if (b[PL_IP6_SOURCE] == 0xff || pl_zero16(b + PL_IP6_SOURCE) || target[0] == 0xff) return 0;
  // The group of the target, RFC 4291 section 2.7.1, at both layers.
  if (pl_u16(destination) != 0xff02 || pl_u16(destination + 2) != 0 ||
      pl_word(destination + 4) != 0 || pl_u16(destination + 8) != 0 ||
      pl_u16(destination + 10) != 1 || destination[12] != 0xff || destination[13] != target[13] ||
      pl_u16(destination + 14) != pl_u16(target + 14))
    return 0;
  if (pl_u16(b) != 0x3333 || pl_u16(b + 2) != pl_u16(destination + 12) ||
      pl_u16(b + 4) != pl_u16(destination + 14))
    return 0;
  return pl_nd_sum(head) == 0xffff;
}

// Makes the solicited NA of the NS, PL_NS_END octets.
PL_INLINE void pl_ns_answer(struct pl_head* head, const __u8* mac, __u8 flags) {
  __u8* b = head->b;
  __builtin_memcpy(b, b + 6, 6);
  __builtin_memcpy(b + 6, mac, 6);
  b[PL_ETH] = 0x60;
  b[PL_ETH + 1] = b[PL_ETH + 2] = b[PL_ETH + 3] = 0;
  __builtin_memcpy(b + PL_IP6_DESTINATION, b + PL_IP6_SOURCE, 16);
  __builtin_memcpy(b + PL_IP6_SOURCE, b + PL_ND_TARGET, 16);
  b[PL_ICMP6] = PL_NA;
  b[PL_ICMP6 + 2] = b[PL_ICMP6 + 3] = 0;
  b[PL_ICMP6 + 4] =
      (__u8)(0x40 | (flags & PL_ROUTER ? 0x80 : 0) | (flags & PL_OVERRIDE ? 0x20 : 0));
  b[PL_ICMP6 + 5] = b[PL_ICMP6 + 6] = b[PL_ICMP6 + 7] = 0;
  b[PL_ND_OPTION] = 2;
  __builtin_memcpy(b + PL_ND_OPTION + 2, mac, 6);
  const __u16 sum = (__u16)~pl_nd_sum(head);
  __builtin_memcpy(b + PL_ICMP6 + 2, &sum, 2);
}

// What a frame makes its receiver believe: `ip` is at `mac`.
struct pl_claim {
  __u8 ip[16];
  __u64 mac;  // as pl_mac()
  int made;
};

// The claim of an NS (its source, by the source link-layer option) or NA (its target, by the target
// link-layer option, or the Ethernet source). 0, or PL_MALFORMED.
PL_INLINE __u32 pl_nd_claim(pl_source* source, const struct pl_head* head,
                            const struct pl_frame* frame, struct pl_claim* claim) {
  const int advertisement = frame->nd == PL_NA;
  claim->made = 0;
  claim->mac = pl_mac(head->b + 6);
  if (pl_load(source, frame->l4 + 8u, claim->ip, 16)) return PL_MALFORMED;
  if (!advertisement) __builtin_memcpy(claim->ip, head->b + PL_IP6_SOURCE, 16);
  // Options end with the payload; what follows is padding.
  const __u32 end = PL_PEEK + pl_u16(head->b + PL_ETH + 4);
  if (end > frame->len) return PL_MALFORMED;
  __u32 offset = frame->l4 + 24u;
  int option_seen = 0;
  PL_LOOP
  for (int i = 0; i < PL_MAX_ND_OPTIONS; i++) {
    if (offset >= end) break;
    __u8 option[8];
    if (pl_load(source, offset, option, 8) || option[1] == 0) return PL_MALFORMED;
    if (option[0] == (advertisement ? 2 : 1)) {
      claim->mac = pl_mac(option + 2);
      option_seen = 1;
    }
    offset += option[1] * 8u;
  }
  claim->made = (advertisement || option_seen) && !pl_zero16(claim->ip);
  return 0;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
