// SPDX-License-Identifier: GPL-2.0-or-later
// The short way: IPv4 and IPv6 from one provisioned host to another that is known, which nothing in
// data_path() would refuse, take out or limit. It must say so only of frames that data_path() would
// count as passed unicast; all others go there. eBPF only.
#pragma once
#include "run.h"

// Next headers that need a look behind them: extension headers and ICMPv6.
#define PL_LOOK_BEHIND (1ull << 0 | 1ull << 43 | 1ull << 44 | 1ull << 51 | 1ull << 58 | 1ull << 60)

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

static __always_inline int quick_source(const struct pl_config* config, __u32 ways, __u64 from) {
  const int listed = from == config->quick_macs[0] || from == config->quick_macs[1];
  if (ways & PL_QUICK_LISTED) return listed;
  return !listed && from != 0 && !(from & 1);
}

static __always_inline int quick_destination(const struct pl_config* config, __u32 ways, __u32 hook,
                                             __u64 to) {
  if (hook == PL_IN && (to == config->traps[0].mac || to == config->traps[1].mac)) return 0;
  if (!(ways & PL_QUICK_LOOK_UP)) return 1;
  const __u32 index = pl_near_mac_index(config->vni, to);
  const __u64* known = bpf_map_lookup_elem(&near_macs, &index);
  return known && *known == pl_near_mac(config->vni, to);
}

// 1: counted, and may pass.
static __always_inline int quick(struct __sk_buff* skb, __u32 hook) {
  const __u8* frame = (const __u8*)(long)skb->data;
  const void* end = (const void*)(long)skb->data_end;
  if ((const void*)(frame + PL_ETH + 20) > end || (frame[0] & 1) || skb->vlan_present ||
      skb->gso_size)
    return 0;
  const __u32 kind = quick_kind(frame, end);
  if (!kind) return 0;

  const __u32 ifindex = skb->ifindex, place = ifindex % PL_NEAR_PORTS;
  const struct pl_near* nearby = bpf_map_lookup_elem(&near, &place);
  if (!nearby || nearby->ifindex != ifindex) return 0;
  const struct pl_port port = nearby->port;
  const struct pl_config* config = bpf_map_lookup_elem(&configs, &port.config);
  if (!config || config->device != ifindex) return 0;
  const __u32 ways = config->quick[hook];
  if (!(ways & kind)) return 0;
  // Eight octets that begin with the MAC, or end with it.
  const __u64 to = *(const __u64*)frame << 16 >> 16, from = *(const __u64*)(frame + 4) >> 16;
  if (hook == PL_IN && !quick_source(config, ways, from)) return 0;
  if (!quick_destination(config, ways, hook, to)) return 0;

  struct pl_counts* of = bpf_map_lookup_elem(&counts, &port.slot);
  if (!of) return 0;
  struct pl_count* count = &of->rows[hook][PL_ROW_PASSED + PL_CLASS_UNICAST];
  count->packets++;
  count->bytes += skb->len;
  return 1;
}
