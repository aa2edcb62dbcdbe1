// SPDX-License-Identifier: GPL-2.0-or-later
// The short way, for most of what members exchange and for what storms are made of: IPv4 and IPv6
// from a provisioned host to one that is known, and UDP from one to a group. It must do just what
// data_path() would do with the same frame; what it is not sure of goes there. eBPF only.
#pragma once
#include <linux/pkt_cls.h>

#include "run.h"

enum { PL_LONG_WAY = -2 };  // no action of a tc program

// Next headers that need a look behind them: extension headers and ICMPv6.
#define PL_LOOK_BEHIND (1ull << 0 | 1ull << 43 | 1ull << 44 | 1ull << 51 | 1ull << 58 | 1ull << 60)

struct quick_port {
  const struct pl_config* config;
  __u32 slot;
  __u32 ways;
};

// 1: a port where frames of this kind may be quick.
static __always_inline int quick_port(struct __sk_buff* skb, __u32 hook, __u32 kind,
                                      struct quick_port* port) {
  const __u32 ifindex = skb->ifindex, place = ifindex % PL_NEAR_PORTS;
  const struct pl_near* nearby = bpf_map_lookup_elem(&near, &place);
  if (!nearby || nearby->ifindex != ifindex) return 0;
  const struct pl_port where = nearby->port;
  port->slot = where.slot;
  port->config = bpf_map_lookup_elem(&configs, &where.config);
  if (!port->config || port->config->device != ifindex) return 0;
  port->ways = port->config->quick[hook];
  return (port->ways & kind) == kind;
}

static __always_inline int quick_count(struct __sk_buff* skb, __u32 hook, __u32 slot, __u32 row) {
  struct pl_counts* of = bpf_map_lookup_elem(&counts, &slot);
  if (!of) return 0;
  struct pl_count* count = &of->rows[hook][row % PL_ROWS];
  count->packets++;
  count->bytes += skb->len;
  return 1;
}

static __always_inline int quick_from(const struct quick_port* port, __u64 from) {
  const int listed = from == port->config->quick_macs[0] || from == port->config->quick_macs[1];
  if (port->ways & PL_QUICK_LISTED) return listed;
  return !listed && from != 0 && !(from & 1);
}

// --- to one host

// Which of PL_QUICK_IPV4 and PL_QUICK_IPV6 it is, or 0. No ICMP: redirects are looked for.
static __always_inline __u32 quick_kind(const __u8* frame, const void* end) {
  const __u16 type = *(const __u16*)(frame + 12);
  const __u8 first = frame[PL_ETH];
  if (type == __builtin_bswap16(PL_TYPE_IPV4))
    return (__u8)(first - 0x45) <= 0x4f - 0x45 && frame[PL_ETH + 9] != 1 ? PL_QUICK_IPV4 : 0;
  if (type != __builtin_bswap16(PL_TYPE_IPV6) || first >> 4 != 6) return 0;
  if ((const void*)(frame + PL_PEEK) > end) return 0;
  const __u8 next = frame[PL_ETH + 6];
  return next < 64 && !(PL_LOOK_BEHIND >> next & 1) ? PL_QUICK_IPV6 : 0;
}

static __always_inline int quick_to(const struct quick_port* port, __u32 hook, __u64 to) {
  const struct pl_config* config = port->config;
  if (hook == PL_IN && (to == config->traps[0].mac || to == config->traps[1].mac)) return 0;
  if (!(port->ways & PL_QUICK_LOOK_UP)) return 1;
  const __u32 index = pl_near_mac_index(config->vni, to);
  const __u64* known = bpf_map_lookup_elem(&near_macs, &index);
  return known && *known == pl_near_mac(config->vni, to);
}

static __always_inline int quick_unicast(struct __sk_buff* skb, __u32 hook, const __u8* frame,
                                         const void* end) {
  const __u32 kind = quick_kind(frame, end);
  struct quick_port port;
  if (!kind || !quick_port(skb, hook, kind, &port)) return PL_LONG_WAY;
  // Eight octets that begin with the MAC, or end with it.
  const __u64 to = *(const __u64*)frame << 16 >> 16, from = *(const __u64*)(frame + 4) >> 16;
  if (hook == PL_IN && !quick_from(&port, from)) return PL_LONG_WAY;
  if (!quick_to(&port, hook, to)) return PL_LONG_WAY;
  return quick_count(skb, hook, port.slot, PL_ROW_PASSED + PL_CLASS_UNICAST) ? TC_ACT_UNSPEC
                                                                             : PL_LONG_WAY;
}

// --- to a group

enum { PL_QUICK_UDP_END = PL_PEEK + 4 };  // of the ports behind an IPv6 header

// UDP of one piece to a port that is no named protocol's: its kind, else 0.
static __always_inline __u32 quick_udp(const __u8* frame) {
  const __u16 type = *(const __u16*)(frame + 12);
  if (type == __builtin_bswap16(PL_TYPE_IPV4)) {
    const __u16 fragment = *(const __u16*)(frame + PL_ETH + 6) & __builtin_bswap16(0x1fff);
    if (frame[PL_ETH] != 0x45 || fragment || frame[PL_ETH + 9] != 17) return 0;
    return pl_udp_reason(pl_u16(frame + PL_ETH + 22)) ? 0 : PL_QUICK_IPV4;
  }
  if (type != __builtin_bswap16(PL_TYPE_IPV6)) return 0;
  if (frame[PL_ETH] >> 4 != 6 || frame[PL_ETH + 6] != 17) return 0;
  return pl_udp_reason(pl_u16(frame + PL_PEEK + 2)) ? 0 : PL_QUICK_IPV6;
}

// The buckets of its class, which is limited.
static __always_inline int quick_limited(struct __sk_buff* skb, const struct quick_port* port,
                                         __u32 cls) {
  const struct pl_limit* limit = &port->config->limits[PL_IN][cls];
  __u32 row = PL_ROW_NOTHING + cls;
  if (limit->mode != PL_NOTHING) {
    struct pl_state* of = bpf_map_lookup_elem(&state, &port->slot);
    if (!of) return PL_LONG_WAY;
    const int within = charge_bucket(limit, (struct bucket_pair*)of->tat[PL_IN][cls],
                                     bpf_ktime_get_ns(), 1, skb->len);
    row = (within ? (__u32)PL_ROW_PASSED : (__u32)PL_ROW_LIMITED) + cls;
  }
  quick_count(skb, PL_IN, port->slot, row);
  return row == PL_ROW_PASSED + cls ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

static __always_inline int quick_group(struct __sk_buff* skb, __u32 hook, const __u8* frame,
                                       const void* end) {
  if ((const void*)(frame + PL_QUICK_UDP_END) > end) return PL_LONG_WAY;
  const __u64 to = *(const __u64*)frame << 16 >> 16, from = *(const __u64*)(frame + 4) >> 16;
  // Broadcast, 33:33 of IPv6, 01:00:5e of IPv4.
  const int broadcast = to == 0xffffffffffff;
  if (!broadcast && (to & 0xffff) != 0x3333 && (to & 0xffffff) != 0x5e0001) return PL_LONG_WAY;
  const __u32 kind = quick_udp(frame);
  struct quick_port port;
  if (!kind || !quick_port(skb, hook, kind | PL_QUICK_GROUPS, &port)) return PL_LONG_WAY;
  const __u32 cls = broadcast ? PL_CLASS_BROADCAST : PL_CLASS_MULTICAST;
  const int limited = port.config->limited[hook] >> cls & 1;
  if (hook == PL_IN) {
    if (!(port.ways & PL_QUICK_LISTED) || !quick_from(&port, from)) return PL_LONG_WAY;
    if (limited) return quick_limited(skb, &port, cls);
  } else {
    if (limited) return PL_LONG_WAY;
    if (port.ways & PL_QUICK_REMEMBER) {
      struct pl_state* of = bpf_map_lookup_elem(&state, &port.slot);
      if (!of) return PL_LONG_WAY;
      const __u64 hash = pl_hash(skb->len, to << 16, frame + 6);
      *(volatile __u64*)&of->sent[pl_sent_place(hash)] = pl_sent_mark(hash, bpf_ktime_get_ns());
    }
  }
  return quick_count(skb, hook, port.slot, PL_ROW_PASSED + cls) ? TC_ACT_UNSPEC : PL_LONG_WAY;
}

// What becomes of the frame, or PL_LONG_WAY.
static __always_inline int quick(struct __sk_buff* skb, __u32 hook) {
  const __u8* frame = (const __u8*)(long)skb->data;
  const void* end = (const void*)(long)skb->data_end;
  if ((const void*)(frame + PL_ETH + 20) > end || skb->vlan_present || skb->gso_size)
    return PL_LONG_WAY;
  return frame[0] & 1 ? quick_group(skb, hook, frame, end) : quick_unicast(skb, hook, frame, end);
}
