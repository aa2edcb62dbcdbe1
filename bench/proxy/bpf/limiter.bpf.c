// SPDX-License-Identifier: GPL-2.0-or-later
// BUM limiter per port and class at tc ingress and tc egress. One 64-bit GCRA state per bucket,
// advanced by compare-and-swap: no lock, exact over CPUs. Classes: 0 broadcast, 1 multicast, 2
// unknown unicast, 3 known.
#include "common.h"

struct lim {
  __u64 pps_t, pps_tau;
  __u64 byte_q16, bps_tau;
};  // ns per frame, ns of burst; ns/byte << 16
struct lst {
  __u64 pps_tat, bps_tat;
};
struct cnt {
  __u64 pass, drop;
};
struct pkey {
  __u32 ifindex_dir_cls;
};

// index = slot * 8 + dir * 4 + class; slot = ifindex & 1023
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct lim);
} lcfg SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct lst);
} lstate SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct cnt);
} lcnt SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 262144);
  __type(key, __u64);
  __type(value, __u32);
} known SEC(".maps");
struct sl {
  struct bpf_spin_lock l;
  __u32 pad;
  __u64 tokens, last;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct sl);
} slstate SEC(".maps");

static __always_inline int gcra(__u64* tat, __u64 now, __u64 t, __u64 tau) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    __u64 old = *(volatile __u64*)tat;
    if (old > now + tau) return 0;
    __u64 nw = (old > now ? old : now) + t;
    if (__sync_val_compare_and_swap(tat, old, nw) == old) return 1;
  }
  return 0;  // four lost races in a row: under such contention the bucket is being spent by others
}

static __always_inline int classify(struct __sk_buff* skb, int uuc) {
  void *data = (void*)(long)skb->data, *end = (void*)(long)skb->data_end;
  if (data + 6 > end) return -1;
  __u8* d = data;
  if (d[0] & 1) {
    __u32 hi = *(__u32*)d;
    __u16 lo = *(__u16*)(d + 4);
    return hi == 0xffffffff && lo == 0xffff ? 0 : 1;
  }
  if (!uuc) return 3;
  __u64 k = (__u64) * (__u32*)d | (__u64) * (__u16*)(d + 4) << 32;
  return bpf_map_lookup_elem(&known, &k) ? 3 : 2;
}

static __always_inline int limit(struct __sk_buff* skb, int dir, int uuc, int count_known) {
  int cls = classify(skb, uuc);
  if (cls < 0) return TC_ACT_UNSPEC;
  if (cls == 3 && !count_known) return TC_ACT_UNSPEC;
  __u32 ix = (skb->ifindex & 1023) * 8 + dir * 4 + cls;
  struct cnt* c = bpf_map_lookup_elem(&lcnt, &ix);
  if (!c) return TC_ACT_UNSPEC;
  if (cls == 3) {
    c->pass++;
    return TC_ACT_UNSPEC;
  }
  struct lim* l = bpf_map_lookup_elem(&lcfg, &ix);
  struct lst* s = bpf_map_lookup_elem(&lstate, &ix);
  if (!l || !s) return TC_ACT_UNSPEC;
  if (l->pps_t | l->byte_q16) {
    __u64 now = bpf_ktime_get_ns();
    if (l->pps_t && !gcra(&s->pps_tat, now, l->pps_t, l->pps_tau)) {
      c->drop++;
      return TC_ACT_SHOT;
    }
    if (l->byte_q16 && !gcra(&s->bps_tat, now, (skb->len * l->byte_q16) >> 16, l->bps_tau)) {
      c->drop++;
      return TC_ACT_SHOT;
    }
  }
  c->pass++;
  return TC_ACT_UNSPEC;
}

SEC("tc") int lim_in(struct __sk_buff* s) { return limit(s, 0, 0, 0); }
SEC("tc") int lim_out(struct __sk_buff* s) { return limit(s, 1, 0, 0); }
SEC("tc") int lim_in_uuc(struct __sk_buff* s) { return limit(s, 0, 1, 0); }
SEC("tc") int lim_out_uuc(struct __sk_buff* s) { return limit(s, 1, 1, 0); }
SEC("tc") int lim_in_cnt(struct __sk_buff* s) { return limit(s, 0, 1, 1); }
SEC("tc") int lim_out_cnt(struct __sk_buff* s) { return limit(s, 1, 1, 1); }
SEC("tc") int nop(struct __sk_buff* s) { return TC_ACT_UNSPEC; }

// The textbook token bucket under bpf_spin_lock, for comparison (pps only).
SEC("tc") int lim_in_spin(struct __sk_buff* skb) {
  int cls = classify(skb, 0);
  if (cls < 0 || cls == 3) return TC_ACT_UNSPEC;
  __u32 ix = (skb->ifindex & 1023) * 8 + cls;
  struct lim* l = bpf_map_lookup_elem(&lcfg, &ix);
  struct sl* s = bpf_map_lookup_elem(&slstate, &ix);
  struct cnt* c = bpf_map_lookup_elem(&lcnt, &ix);
  if (!l || !s || !c || !l->pps_t) return TC_ACT_UNSPEC;
  __u64 now = bpf_ktime_get_ns();
  int ok = 0;
  bpf_spin_lock(&s->l);
  s->tokens += now - s->last;
  s->last = now;
  if (s->tokens > l->pps_tau + l->pps_t) s->tokens = l->pps_tau + l->pps_t;
  if (s->tokens >= l->pps_t) {
    s->tokens -= l->pps_t;
    ok = 1;
  }
  bpf_spin_unlock(&s->l);
  if (ok) {
    c->pass++;
    return TC_ACT_UNSPEC;
  }
  c->drop++;
  return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
