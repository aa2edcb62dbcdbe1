// SPDX-License-Identifier: GPL-2.0-or-later
// XDP live-frame generator (BPF_PROG_TEST_RUN, BPF_F_TEST_XDP_LIVE_FRAMES) and reply sink.
#include "common.h"

struct gencfg {
  __u32 ifindex, n, v6, mode;
  __u64 macbase;
};  // mode 0: ARP/NS targets, 1: frame as given
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct gencfg);
} gcfg SEC(".maps");
struct tmpl {
  __u8 b[128];
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tmpl);
} gtmpl SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __u64);
} gstat SEC(".maps");

static __always_inline void gs(__u32 k) {
  __u64* v = bpf_map_lookup_elem(&gstat, &k);
  if (v) ++*v;
}

SEC("xdp")
int xdp_gen(struct xdp_md* x) {
  void *data = (void*)(long)x->data, *end = (void*)(long)x->data_end;
  __u32 z = 0;
  struct gencfg* c = bpf_map_lookup_elem(&gcfg, &z);
  __u64* ctr = bpf_map_lookup_elem(&gstat, &z);
  if (!c || !ctr) return XDP_DROP;
  __u64 seq = (*ctr)++;
  // A live frame is recycled as the program under test left it: every byte that matters is written
  // anew.
  struct tmpl* t = bpf_map_lookup_elem(&gtmpl, &z);
  if (!t) return XDP_DROP;
  __u32 i = c->n ? (__u32)(seq % c->n) : 0;
  struct ethhdr* eth = data;
  if (c->mode == 1) {
    if (data + 60 > end) return XDP_DROP;
    __builtin_memcpy(data, t->b, 60);
  } else if (!c->v6) {
    struct arp_eth* a = (void*)(eth + 1);
    if ((void*)(a + 1) > end) return XDP_DROP;
    __builtin_memcpy(data, t->b, 42);
    a->tip[0] = 10;
    a->tip[1] = 1 + (i >> 16);
    a->tip[2] = i >> 8;
    a->tip[3] = i;
  } else {
    struct ip6h* ip = (void*)(eth + 1);
    struct ndmsg* n = (void*)(ip + 1);
    if ((void*)(n + 1) > end) return XDP_DROP;
    __builtin_memcpy(data, t->b, 86);
    n->target[12] = i >> 24;
    n->target[13] = i >> 16;
    n->target[14] = i >> 8;
    n->target[15] = i;
    __u32 s = (__u16)~bpf_ntohs(n->csum);  // template: target and group with low bits 0
    s += (i >> 16) + (i & 0xffff) + ((i >> 16) & 0xff) + (i & 0xffff);
    ip->dst[13] = i >> 16;
    ip->dst[14] = i >> 8;
    ip->dst[15] = i;
    eth->h_dest[3] = i >> 16;
    eth->h_dest[4] = i >> 8;
    eth->h_dest[5] = i;
    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    n->csum = bpf_htons((__u16)~s);
  }
  return bpf_redirect(c->ifindex, 0);
}

// On the generator's port: counts replies (1 ARP, 2 NA, 3 other) and their MAC errors (4), then
// drops or passes.
static __always_inline int sink(void* data, void* end) {
  struct ethhdr* eth = data;
  __u32 z = 0;
  struct gencfg* c = bpf_map_lookup_elem(&gcfg, &z);
  if (!c || (void*)(eth + 1) > end) return 0;
  if (eth->h_proto == bpf_htons(ETH_P_ARP)) {
    struct arp_eth* a = (void*)(eth + 1);
    if ((void*)(a + 1) > end || a->op != bpf_htons(2)) return 0;
    gs(1);
    if (a->sha[3] != (__u8)(a->sip[1] - 1) || a->sha[4] != a->sip[2] || a->sha[5] != a->sip[3])
      gs(4);
    return 1;
  }
  if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
    struct ndmsg* n = (void*)(eth + 1) + sizeof(struct ip6h);
    if ((void*)(n + 1) > end || n->type != 136) return 0;
    gs(2);
    if (n->omac[4] != n->target[14] || n->omac[5] != n->target[15]) gs(4);
    return 1;
  }
  gs(3);
  return 1;
}
SEC("xdp")
int xdp_sink(struct xdp_md* x) {
  return sink((void*)(long)x->data, (void*)(long)x->data_end) ? XDP_DROP : XDP_PASS;
}
SEC("tc")
int tc_sink(struct __sk_buff* s) {
  return sink((void*)(long)s->data, (void*)(long)s->data_end) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
