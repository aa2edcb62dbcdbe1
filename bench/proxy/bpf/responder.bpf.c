// SPDX-License-Identifier: GPL-2.0-or-later
// Minimal ARP/ND responders: tc ingress (rewrite + bpf_redirect out of the same port) and XDP_TX.
#include "common.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 262144);
  __type(key, __u32);
  __type(value, struct mac8);
} neigh4 SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 262144);
  __type(key, struct ip6key);
  __type(value, struct mac8);
} neigh6 SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __u64);
} stats SEC(".maps");

static __always_inline void stat(__u32 k) {
  __u64* v = bpf_map_lookup_elem(&stats, &k);
  if (v) ++*v;
}

// Rewrites the request at data into its reply in place. 1 = reply ready, 0 = not ours.
static __always_inline int answer(void* data, void* end) {
  struct ethhdr* eth = data;
  if ((void*)(eth + 1) > end) return 0;
  if (eth->h_proto == bpf_htons(ETH_P_ARP)) {
    struct arp_eth* a = (void*)(eth + 1);
    if ((void*)(a + 1) > end || a->op != bpf_htons(1)) return 0;
    __u32 tip;
    __builtin_memcpy(&tip, a->tip, 4);
    struct mac8* m = bpf_map_lookup_elem(&neigh4, &tip);
    if (!m) {
      stat(ST_MISS);
      return 0;
    }
    __u8 sip[4];
    __builtin_memcpy(sip, a->sip, 4);
    __builtin_memcpy(eth->h_dest, eth->h_source, 6);
    __builtin_memcpy(eth->h_source, m->m, 6);
    a->op = bpf_htons(2);
    __builtin_memcpy(a->tha, a->sha, 6);
    __builtin_memcpy(a->tip, sip, 4);
    __builtin_memcpy(a->sha, m->m, 6);
    __builtin_memcpy(a->sip, &tip, 4);
    stat(ST_ANSWERED);
    return 1;
  }
  if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
    struct ip6h* ip = (void*)(eth + 1);
    struct ndmsg* n = (void*)(ip + 1);
    // Only the plain form: NS with exactly one source link-layer address option. The rest is slow
    // path.
    if ((void*)(n + 1) > end) return 0;
    if (ip->nh != 58 || n->type != 135) return 0;
    if (ip->hl != 255 || ip->plen != bpf_htons(32) || n->otype != 1 || n->olen != 1) return 0;
    struct ip6key k;
    __builtin_memcpy(&k, n->target, 16);
    struct mac8* m = bpf_map_lookup_elem(&neigh6, &k);
    if (!m) {
      stat(ST_MISS);
      return 0;
    }
    // Everything that the checksum covers: addresses (32) and the ICMPv6 message (32), before and
    // after.
    __be32 old[16], new[16];
    __builtin_memcpy(old, ip->src, 32);
    __builtin_memcpy((char*)old + 32, n, 32);
    __builtin_memcpy((char*)new, n->target, 16);     // src = target
    __builtin_memcpy((char*)new + 16, ip->src, 16);  // dst = asker
    __builtin_memcpy((char*)new + 32, n, 32);
    struct ndmsg* r = (void*)((char*)new + 32);
    r->type = 136;
    r->flags[0] = 0x60;  // solicited | override
    r->otype = 2;
    __builtin_memcpy(r->omac, m->m, 6);
    __u64 s = bpf_csum_diff(old, 64, new, 64, (__u16)~n->csum);
    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    r->csum = (__u16)~s;
    __builtin_memcpy(ip->src, new, 32);
    __builtin_memcpy(n, (char*)new + 32, 32);
    __builtin_memcpy(eth->h_dest, eth->h_source, 6);
    __builtin_memcpy(eth->h_source, m->m, 6);
    stat(ST_ANSWERED);
    return 1;
  }
  return 0;
}

SEC("tc")
int tc_responder(struct __sk_buff* skb) {
  void *data = (void*)(long)skb->data, *end = (void*)(long)skb->data_end;
  struct ethhdr* eth = data;
  if ((void*)(eth + 1) > end) return TC_ACT_UNSPEC;
  if (eth->h_proto != bpf_htons(ETH_P_ARP) && eth->h_proto != bpf_htons(ETH_P_IPV6))
    return TC_ACT_UNSPEC;
  __u32 need = eth->h_proto == bpf_htons(ETH_P_ARP) ? 42 : 86;
  if (data + need > end) {  // only what is not linear is pulled
    if (skb->len < need || bpf_skb_pull_data(skb, need)) return TC_ACT_UNSPEC;
    data = (void*)(long)skb->data;
    end = (void*)(long)skb->data_end;
  }
  if (!answer(data, end)) return TC_ACT_UNSPEC;
  return bpf_redirect(skb->ifindex, 0);
}

SEC("tc")
int tc_responder_badsum(struct __sk_buff* skb) {  // a broken checksum on purpose: who notices?
  if (bpf_skb_pull_data(skb, skb->len < 86 ? skb->len : 86)) return TC_ACT_UNSPEC;
  void *data = (void*)(long)skb->data, *end = (void*)(long)skb->data_end;
  if (!answer(data, end)) return TC_ACT_UNSPEC;
  struct ndmsg* n = data + sizeof(struct ethhdr) + sizeof(struct ip6h);
  if ((void*)(n + 1) <= end) n->csum ^= 0x5555;
  return bpf_redirect(skb->ifindex, 0);
}

SEC("xdp")
int xdp_responder(struct xdp_md* x) {
  return answer((void*)(long)x->data, (void*)(long)x->data_end) ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int xdp_responder_rd(struct xdp_md* x) {  // the same by XDP_REDIRECT to its own port
  return answer((void*)(long)x->data, (void*)(long)x->data_end)
             ? bpf_redirect(x->ingress_ifindex, 0)
             : XDP_PASS;
}

SEC("xdp")
int xdp_pass(struct xdp_md* x) { return XDP_PASS; }

SEC("tc")
int tc_drop(struct __sk_buff* skb) {
  stat(ST_SEEN);
  return TC_ACT_SHOT;
}
SEC("tc")
int tc_reflect(struct __sk_buff* skb) { return bpf_redirect(skb->ifindex, 0); }

char _license[] SEC("license") = "GPL";
