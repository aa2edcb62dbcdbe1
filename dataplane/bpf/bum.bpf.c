// SPDX-License-Identifier: GPL-2.0-or-later
// The data path of a member port or VXLAN device: pl_ingress at tc ingress, pl_egress at tc egress.
//
// Order: (0) VLAN tags, (1) link-local groups and EtherTypes, (2) source MAC, (3) named protocols,
// (4) ARP/ND: answered, given to the daemon or passed on, (5) BUM buckets; then the bridge. Every
// frame is counted once per hook, by class and reason. (4) only at the ingress of a member port
// with a proxy. All reads go through bpf_skb_load_bytes(), which copes with what is not linear.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "abi.h"

typedef struct __sk_buff pl_source;
static __always_inline int pl_load(pl_source* skb, __u32 offset, void* to, __u32 n) {
  return bpf_skb_load_bytes(skb, offset, to, n) != 0;
}
#include "bucket.h"
#include "classify.h"
#include "neighbor.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_ABI_VERSION);
  __type(key, __u32);
  __type(value, struct pl_meta);
} meta SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PL_MAX_PORTS);
  __type(key, __u32);
  __type(value, struct pl_port);
} ports SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_MAX_CONFIGS);
  __type(key, __u32);
  __type(value, struct pl_config);
} configs SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_MAX_PORTS);
  __type(key, __u32);
  __type(value, struct pl_state);
} state SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, PL_MAX_PORTS* PL_HOOKS* PL_ROWS);
  __type(key, __u32);
  __type(value, struct pl_count);
} passed SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, PL_MAX_DROPS);
  __type(key, struct pl_drop_key);
  __type(value, struct pl_count);
} drops SEC(".maps");
struct {  // max_entries of these three and of the ring buffer are set at load
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, struct pl_key4);
  __type(value, struct pl_binding);
} bind4 SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, struct pl_key6);
  __type(value, struct pl_binding);
} bind6 SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, struct pl_mac_key);
  __type(value, __u32);
} macs SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} punts SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} lost SEC(".maps");

_Static_assert(sizeof(struct pl_punt) == PL_PUNT_RECORD, "the record of a punt");
_Static_assert(PL_REASONS <= 64, "sets of reasons are words");

// What one run of the program works on.
struct run {
  struct __sk_buff* skb;
  const struct pl_config* config;
  struct pl_state* state;
  __u32 slot;
  __u32 hook;
  __u32 frames;
  __u32 bytes;
  __u64 now;  // 0: not asked for yet
};

static __always_inline __u64 now(struct run* run) {
  if (!run->now) run->now = bpf_ktime_get_ns();
  return run->now;
}

static __always_inline void add(struct pl_count* count, const struct run* run) {
  count->packets += run->frames;
  count->bytes += run->bytes;
}

static __always_inline void count_row(const struct run* run, __u32 row) {
  const __u32 index = (run->slot * PL_HOOKS + run->hook) * PL_ROWS + row;
  struct pl_count* count = bpf_map_lookup_elem(&passed, &index);
  if (count) add(count, run);
}

static __always_inline int pass(const struct run* run, __u32 cls) {
  count_row(run, PL_ROW_PASSED + cls);
  return TC_ACT_UNSPEC;
}

static __noinline int count_drop(__u32 ifindex, __u32 what, __u32 frames, __u32 bytes) {
  const struct pl_drop_key key = {
      .ifindex = ifindex, .hook = what >> 16, .cls = what >> 8, .reason = what};
  struct pl_count* count = bpf_map_lookup_elem(&drops, &key);
  if (!count) {
    const struct pl_count none = {};
    bpf_map_update_elem(&drops, &key, &none, BPF_NOEXIST);
    count = bpf_map_lookup_elem(&drops, &key);
    if (!count) return 0;
  }
  count->packets += frames;
  count->bytes += bytes;
  return 0;
}

static __always_inline int drop(const struct run* run, __u32 cls, __u32 reason) {
  if (cls < PL_CLASSES && reason < PL_REASONS) {
    __u64* seen = &run->state->seen[run->hook][cls];
    const __u64 bit = 1ull << reason;
    if (!(*(volatile __u64*)seen & bit)) __sync_fetch_and_or(seen, bit);
    count_drop(run->config->ifindex, run->hook << 16 | cls << 8 | reason, run->frames, run->bytes);
  }
  return TC_ACT_SHOT;
}

// To the daemon. PL_PUNTED, or why not.
static __always_inline __u32 punt(struct run* run, int copy) {
  __u32 len = run->skb->len;
  if (len > PL_PUNT_FRAME) return PL_MALFORMED;
  if (!pl_charge(&run->config->punts, run->state->punts, now(run), 1, len)) return PL_PUNT_LIMIT;
  struct pl_punt* record = bpf_ringbuf_reserve(&punts, sizeof *record, 0);
  if (!record) {
    const __u32 zero = 0;
    __u64* count = bpf_map_lookup_elem(&lost, &zero);
    if (count) ++*count;
    return PL_RING_FULL;
  }
  record->ifindex = run->config->ifindex;
  record->len = len;
  record->copy = copy;
  record->zero = 0;
  asm volatile("" : "+r"(len));  // keeps the compiler from proving, in its own way, what follows
  if (len < 1 || len > PL_PUNT_FRAME || bpf_skb_load_bytes(run->skb, 0, record->frame, len)) {
    bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
    return PL_MALFORMED;
  }
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return PL_PUNTED;
}

// --- bindings, copied out of the map
struct owner {
  __u8 mac[6];
  __u8 flags;
  __u8 found;
  __u32 port;
};

static __always_inline struct owner copied(const struct pl_binding* binding, __u32 check) {
  struct owner owner = {};
  if (!binding) return owner;
  __builtin_memcpy(&owner, binding, 8);
  owner.port = binding->port;
  // An element deleted meanwhile may already hold another address.
  owner.found = *(volatile const __u32*)&binding->check == check;
  return owner;
}

static __always_inline struct owner owner4(const struct run* run, const __u8* ip) {
  struct pl_key4 key = {.vni = run->config->vni};
  __builtin_memcpy(key.ip, ip, 4);
  return copied(bpf_map_lookup_elem(&bind4, &key), pl_word(ip));
}

static __always_inline struct owner owner6(const struct run* run, const __u8* ip) {
  struct pl_key6 key = {.vni = run->config->vni};
  __builtin_memcpy(key.ip, ip, 16);
  return copied(bpf_map_lookup_elem(&bind6, &key),
                pl_word(ip) ^ pl_word(ip + 4) ^ pl_word(ip + 8) ^ pl_word(ip + 12));
}

// The sender tells something that the bindings don't have, and somebody wants to know.
static __always_inline int tells(const struct run* run, const struct owner* sender) {
  return run->config->learn && (!sender->found || sender->port != run->config->ifindex);
}

// Writes the answer over the request and sends it out of the port that it came from.
static __always_inline int reply(struct run* run, const struct pl_head* head, __u32 len,
                                 __u32 cls) {
  if (run->skb->len != len && bpf_skb_change_tail(run->skb, len, 0))
    return drop(run, cls, PL_NO_MEMORY);
  if (bpf_skb_store_bytes(run->skb, 0, head->b, len, BPF_F_RECOMPUTE_CSUM))
    return drop(run, cls, PL_NO_MEMORY);
  count_row(run, PL_ROW_ANSWERED + cls);
  return bpf_redirect(run->config->ifindex, 0);
}

// A plain request for a bound target, from a sender that is who it says: answer, or why not.
static __always_inline __u32 settle(struct run* run, const struct owner* target,
                                    const struct owner* sender, const struct pl_head* head) {
  __u32 reason = PL_ANSWERED;
  if (pl_mac(target->mac) == pl_mac(head->b + 6))
    reason = PL_OWNER_ASKED;
  else if (target->port == run->config->ifindex)
    reason = PL_SAME_PORT;
  else if (!pl_charge(&run->config->answers, run->state->answers, now(run), 1, run->bytes))
    return PL_ANSWER_LIMIT;
  if (tells(run, sender)) punt(run, 1);
  return reason;
}

// Within the limit of its class, out of the path and to the daemon.
static __always_inline int intercept(struct run* run, __u32 cls) {
  const struct pl_limit* limit = &run->config->limits[PL_IN][cls];
  if (limit->mode != PL_UNLIMITED &&
      !pl_charge(limit, run->state->tat[PL_IN][cls], now(run), run->frames, run->bytes))
    return drop(run, cls, pl_limit_reason(cls, limit->mode));
  const __u32 reason = punt(run, 0);
  if (reason != PL_PUNTED) return drop(run, cls, reason);
  count_row(run, PL_ROW_PUNTED + cls);
  return TC_ACT_SHOT;
}

static __always_inline int group_arp(struct run* run, struct pl_head* head,
                                     const struct pl_frame* frame) {
  if (!pl_arp_plain(head, frame)) return intercept(run, PL_CLASS_ARP);
  const struct owner target = owner4(run, head->b + PL_TPA);
  if (!target.found) return intercept(run, PL_CLASS_ARP);
  const struct owner sender = owner4(run, head->b + PL_SPA);
  if (sender.found && pl_mac(sender.mac) != pl_mac(head->b + 6))
    return intercept(run, PL_CLASS_ARP);
  const __u32 reason = settle(run, &target, &sender, head);
  if (reason != PL_ANSWERED) return drop(run, PL_CLASS_ARP, reason);
  pl_arp_answer(head, target.mac);
  return reply(run, head, PL_ARP_ANSWER, PL_CLASS_ARP);
}

static __always_inline int group_nd(struct run* run, struct pl_head* head,
                                    const struct pl_frame* frame) {
  if (frame->nd != PL_NS || frame->len < PL_NS_END ||
      bpf_skb_load_bytes(run->skb, PL_PEEK, head->b + PL_PEEK, PL_NS_END - PL_PEEK) ||
      !pl_ns_plain(head, frame))
    return intercept(run, PL_CLASS_ND);
  const struct owner target = owner6(run, head->b + PL_ND_TARGET);
  if (!target.found) return intercept(run, PL_CLASS_ND);
  const struct owner sender = owner6(run, head->b + PL_IP6_SOURCE);
  if (sender.found && pl_mac(sender.mac) != pl_mac(head->b + 6)) return intercept(run, PL_CLASS_ND);
  const __u32 reason = settle(run, &target, &sender, head);
  if (reason != PL_ANSWERED) return drop(run, PL_CLASS_ND, reason);
  pl_ns_answer(head, target.mac, target.flags);
  return reply(run, head, PL_NS_END, PL_CLASS_ND);
}

// Unicast ARP, NS or NA: PL_PASSED, or the reason to drop it.
static __always_inline __u32 unicast_neighbor(struct run* run, const struct pl_head* head,
                                              const struct pl_frame* frame) {
  struct owner sender;
  __u64 mac;
  if (frame->type == PL_TYPE_ARP) {
    if (!pl_arp_ethernet(head) || pl_word(head->b + PL_SPA) == 0) return PL_PASSED;
    sender = owner4(run, head->b + PL_SPA);
    mac = pl_mac(head->b + PL_SHA);
  } else {
    struct pl_claim claim;
    const __u32 reason = pl_nd_claim(run->skb, head, frame, &claim);
    if (reason) return reason;
    if (!claim.made) return PL_PASSED;
    sender = owner6(run, claim.ip);
    mac = claim.mac;
  }
  const int spoofed = sender.found && pl_mac(sender.mac) != mac;
  if (spoofed || tells(run, &sender)) punt(run, 1);
  return spoofed ? PL_SPOOFED_SENDER : PL_PASSED;
}

static __always_inline int known_unicast(const struct run* run, const struct pl_head* head) {
  struct pl_mac_key key = {.vni = run->config->vni};
  __builtin_memcpy(key.mac, head->b, 6);
  return bpf_map_lookup_elem(&macs, &key) != 0;
}

static __always_inline int data_path(struct __sk_buff* skb, __u32 hook) {
  const __u32 ifindex = skb->ifindex;
  const struct pl_port* found = bpf_map_lookup_elem(&ports, &ifindex);
  if (!found) return TC_ACT_UNSPEC;
  const struct pl_port port = *found;
  struct run run = {.skb = skb, .slot = port.slot, .hook = hook, .frames = 1, .bytes = skb->len};
  run.config = bpf_map_lookup_elem(&configs, &port.config);
  run.state = bpf_map_lookup_elem(&state, &port.slot);
  if (!run.config || !run.state || run.config->ifindex != ifindex) return TC_ACT_UNSPEC;

  struct pl_head head = {};
  struct pl_frame frame;
  __u32 len = skb->len;
  if (len > PL_PEEK) len = PL_PEEK;
  asm volatile("" : "+r"(len));
  if (len < PL_ETH || len > PL_PEEK || bpf_skb_load_bytes(skb, 0, head.b, len))
    return drop(&run, PL_CLASS_CONTROL, PL_MALFORMED);
  pl_look(&head, skb->len, &frame);

  if (skb->vlan_present && !pl_allowed(run.config, PL_VLAN_TAG))
    return drop(&run, frame.cls, PL_VLAN_TAG);
  __u32 reason = pl_check(skb, run.config, hook, &head, &frame);
  if (skb->gso_size) {
    run.frames = skb->gso_segs ?: (skb->len + skb->gso_size - 1) / skb->gso_size;
    run.bytes = pl_wire_bytes(&frame, run.frames);
  }
  if (reason != PL_PASSED) return drop(&run, frame.cls, reason);
  if (frame.cls == PL_CLASS_CONTROL) return pass(&run, PL_CLASS_CONTROL);

  if (hook == PL_IN && run.config->proxy && !run.config->core) {
    if (frame.cls == PL_CLASS_ARP) return group_arp(&run, &head, &frame);
    if (frame.cls == PL_CLASS_ND) return group_nd(&run, &head, &frame);
    if (!frame.group && (frame.type == PL_TYPE_ARP || frame.nd)) {
      reason = unicast_neighbor(&run, &head, &frame);
      if (reason != PL_PASSED) return drop(&run, PL_CLASS_UNICAST, reason);
    }
  }

  __u32 cls = frame.cls;
  if (cls == PL_CLASS_UNICAST) {
    if (run.config->limits[hook][PL_CLASS_UNKNOWN_UNICAST].mode == PL_UNLIMITED ||
        known_unicast(&run, &head))
      return pass(&run, PL_CLASS_UNICAST);
    cls = PL_CLASS_UNKNOWN_UNICAST;
  }
  if (cls >= PL_LIMITED_CLASSES) return pass(&run, PL_CLASS_CONTROL);
  const struct pl_limit* limit = &run.config->limits[hook][cls];
  if (limit->mode != PL_UNLIMITED &&
      !pl_charge(limit, run.state->tat[hook][cls], now(&run), run.frames, run.bytes))
    return drop(&run, cls, pl_limit_reason(cls, limit->mode));
  return pass(&run, cls);
}

SEC("tc")
int pl_ingress(struct __sk_buff* skb) { return data_path(skb, PL_IN); }

SEC("tc")
int pl_egress(struct __sk_buff* skb) { return data_path(skb, PL_OUT); }

char _license[] SEC("license") = "GPL";
