// SPDX-License-Identifier: GPL-2.0-or-later
// pl_underlay, at tc ingress of a device that tunnels come in through: VXLAN (RFC 7348) to our own
// address, port and VNIs is let in from known VTEPs only, and of each only so much of what is for
// groups. All else passes untouched. eBPF only.
//
// Fragments: a first one tells the UDP port, and without it later ones are nothing; so first ones
// of strangers are dropped even when they are too short to tell the VNI. IPv6 headers that are too
// many to look behind are dropped when a stranger sends them to the VTEP's address.
#pragma once
#include "guard.h"

enum { PL_VXLAN = 16, PL_UDP = 17 };  // UDP and VXLAN headers; IP protocol

// The outer headers, read as far as they go.
struct outer {
  struct pl_vtep_key source;
  __u32 l4;         // offset of the UDP header
  __u8 fragment;    // the first of several
  __u8 unreadable;  // too many headers
};

// Where the IP header begins, and the EtherType; 0: no IP.
static __always_inline __u32 behind_tags(struct __sk_buff* skb, __u32 header, __u16* type) {
  if (header == 0) {
    *type = __builtin_bswap16((__u16)skb->protocol);
    return 0;
  }
  __u8 octets[4];
  if (bpf_skb_load_bytes(skb, 12, octets, 2)) return 0;
  *type = pl_u16(octets);
  PL_LOOP
  for (int i = 0; i < 2; i++) {
    if (!pl_is_tag(*type)) break;
    if (bpf_skb_load_bytes(skb, header, octets, 4)) return 0;
    *type = pl_u16(octets + 2);
    header += 4;
  }
  return header;
}

// 1: UDP to the VTEP, or what can't be read to the end.
static __always_inline int outer_ipv4(struct __sk_buff* skb, __u32 at, const __u8* local,
                                      struct outer* outer) {
  __u8 ip[20];
  if (bpf_skb_load_bytes(skb, at, ip, sizeof ip)) return 0;
  const __u32 header = (ip[0] & 0x0fu) * 4u;
  if (ip[0] >> 4 != 4 || header < 20 || ip[9] != PL_UDP || pl_word(ip + 16) != pl_word(local + 12))
    return 0;
  if ((ip[6] & 0x1f) != 0 || ip[7] != 0) return 0;
  outer->fragment = (ip[6] & 0x20) != 0;
  outer->source.ip[10] = outer->source.ip[11] = 0xff;
  __builtin_memcpy(outer->source.ip + 12, ip + 12, 4);
  outer->l4 = at + header;
  return 1;
}

static __always_inline int outer_ipv6(struct __sk_buff* skb, __u32 at, const __u8* local,
                                      struct outer* outer) {
  __u8 ip[40];
  if (bpf_skb_load_bytes(skb, at, ip, sizeof ip)) return 0;
  if (ip[0] >> 4 != 6 || !pl_same16(ip + 24, local)) return 0;
  __builtin_memcpy(outer->source.ip, ip + 8, 16);
  __u32 offset = at + 40;
  __u8 next = ip[6];
  int i;
  PL_LOOP
  for (i = 0; i < PL_MAX_EXTENSIONS; i++) {
    __u8 extension[4];
    if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60) break;
    if (bpf_skb_load_bytes(skb, offset, extension, 4)) return 0;
    if (next == 44) {
      if (extension[2] != 0 || (extension[3] & 0xf8) != 0) return 0;
      outer->fragment |= extension[3] & 1;
      offset += 8;
    } else {
      offset += next == 51 ? (extension[1] + 2u) * 4u : (extension[1] + 1u) * 8u;
    }
    next = extension[0];
  }
  outer->unreadable = i == PL_MAX_EXTENSIONS;
  outer->l4 = offset;
  return outer->unreadable || next == PL_UDP;
}

// Whether the frame is for one of our tunnels, as far as can be seen.
__attribute__((noinline)) int for_our_tunnel(struct __sk_buff* skb, const struct pl_underlay* here,
                                             struct outer* outer) {
  if (!here || !outer) return 0;
  __u16 type = 0;
  const __u32 at = behind_tags(skb, here->header, &type);
  if (at == 0 && here->header != 0) return 0;
  const int v4 = pl_word(here->local) == 0 && pl_word(here->local + 4) == 0 &&
                 pl_word(here->local + 8) == 0xffff0000;
  if (type == PL_TYPE_IPV4) {
    if (!v4 || !outer_ipv4(skb, at, here->local, outer)) return 0;
  } else if (type == PL_TYPE_IPV6) {
    if (v4 || !outer_ipv6(skb, at, here->local, outer)) return 0;
  } else {
    return 0;
  }
  if (outer->unreadable) return 1;
  __u8 octets[8];
  if (bpf_skb_load_bytes(skb, outer->l4, octets, 8) || pl_u16(octets + 2) != here->port) return 0;
  if (bpf_skb_load_bytes(skb, outer->l4 + 8, octets, 8)) return outer->fragment;
  const struct pl_vni_key key = {.ifindex = skb->ifindex,
                                 .vni = (__u32)octets[4] << 16 | (__u32)octets[5] << 8 | octets[6]};
  return bpf_map_lookup_elem(&vnis, &key) != 0;
}

static __always_inline void count_vtep(struct pl_count* count, __u32 frames, __u32 bytes) {
  count->packets += frames;
  count->bytes += bytes;
}

// Within the limit of what a VTEP may send to groups.
static __always_inline int within_vtep_limit(struct __sk_buff* skb, const struct pl_underlay* here,
                                             const struct outer* outer, __u32 frames, __u32 bytes) {
  __u8 to = 1;
  // Too short for the inner destination: a fragment that keeps it secret.
  if (bpf_skb_load_bytes(skb, outer->l4 + PL_VXLAN, &to, 1)) to = 1;
  if (!(to & 1)) return 1;
  struct pl_vtep* vtep = bpf_map_lookup_elem(&vteps, &outer->source);
  return !vtep || charge_bucket(&here->per_vtep, (struct bucket_pair*)vtep->tat, bpf_ktime_get_ns(),
                                frames, bytes);
}

static __always_inline int from_vtep(struct __sk_buff* skb, struct pl_underlay* here,
                                     struct outer* outer) {
  __u32 frames = 1, bytes = skb->len - outer->l4 - PL_VXLAN;
  if (skb->len < outer->l4 + PL_VXLAN) bytes = skb->len;
  if (skb->gso_size) frames = skb->gso_segs ?: (bytes + skb->gso_size - 1) / skb->gso_size;
  struct pl_vtep_key key = outer->source;
  struct pl_vtep_count* count = 0;
  __u32 reason = PL_ROGUE_VTEP;
  if (!pl_zero16(key.ip)) count = bpf_map_lookup_elem(&vtep_counts, &key);
  if (count) {
    reason = PL_VTEP_LIMIT;
    if (here->per_vtep.mode == PL_UNLIMITED || within_vtep_limit(skb, here, outer, frames, bytes)) {
      count_vtep(&count->passed, frames, bytes);
      return TC_ACT_UNSPEC;
    }
  } else {
    __builtin_memset(&key, 0, sizeof key);
    count = bpf_map_lookup_elem(&vtep_counts, &key);
  }
  if (count) {
    if (here->observe) count_vtep(&count->passed, frames, bytes);
    count_vtep(here->observe ? &count->observed : &count->limited, frames, bytes);
  }
  if (reason == PL_ROGUE_VTEP &&
      charge_bucket(&here->reports, (struct bucket_pair*)here->tat, bpf_ktime_get_ns(), 1, 0))
    send_report(skb, skb->ifindex, PL_IN, reason);
  return here->observe ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

SEC("tc")
int pl_underlay(struct __sk_buff* skb) {
  const __u32 ifindex = skb->ifindex;
  struct pl_underlay* here = bpf_map_lookup_elem(&underlays, &ifindex);
  if (!here) return TC_ACT_UNSPEC;
  struct outer outer = {};
  if (!for_our_tunnel(skb, here, &outer)) return TC_ACT_UNSPEC;
  return from_vtep(skb, here, &outer);
}
