// SPDX-License-Identifier: GPL-2.0-or-later
// The data path of a member port or VXLAN device: pl_ingress at tc ingress, pl_egress at tc egress,
// and pl_xdp, which answers the plain requests earlier where the driver can.
//
// Order: (0) loops and VLAN tags, (1) link-local groups and EtherTypes, (2) source MAC, (3) named
// protocols, then whether the port is open at all, (4) ARP/ND: answered, given to the daemon or
// passed on; frames that end here, (5) BUM buckets; then the bridge. Every frame is counted once
// per hook, by class and reason; an answer once, at ingress. What a policy only observes is counted
// as that and goes on: not as passed, but in addition as answered, given to the daemon, or dropped
// by what is no policy. (4) only at the ingress of a member port with a proxy, but for the PE's own
// and the trapped MACs. pl_underlay of underlay.h stands where tunnels come in. Reads beyond the
// first octets go through bpf_skb_load_bytes(), which copes with what is not linear. Most of what
// members exchange goes a short way past all that: quick.h.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "abi.h"

typedef struct __sk_buff pl_source;
static __always_inline int pl_load(pl_source* skb, __u32 offset, void* to, __u32 n) {
  return bpf_skb_load_bytes(skb, offset, to, n) != 0;
}
#define PL_STEP __attribute__((noinline))
#include "run.h"

#include "guard.h"
#include "quick.h"
#include "underlay.h"

// Written to skb->tc_index of an answer, which goes out at once: nothing of it is to be checked,
// and it was counted as answered.
enum { PL_IS_ANSWER = 0x706c };

static __always_inline struct __sk_buff* skb_of(const struct run* run) { return run->context; }

static __always_inline int pass(const struct run* run, __u32 cls) {
  if (!run->observed) count_row(run, PL_ROW_PASSED + cls);
  return TC_ACT_UNSPEC;
}

static __always_inline int drop(const struct run* run, __u32 cls, __u32 reason) {
  count_drop(run, cls, reason);
  return TC_ACT_SHOT;
}

// Out of the path because of the policy: 1, or 0 when that is only to be observed.
static __always_inline int refused(struct run* run, __u32 cls, __u32 reason) {
  const int observe = run->config->observe;
  if (!run->observed) count_drop(run, cls, observe ? reason | PL_ONLY_OBSERVED : reason);
  if (observe) run->observed = 1;
  return !observe;
}

// Within the rate of this port and that of all; PL_PUNTED, or why not.
static __always_inline __u32 punt_allowed(struct run* run, __u32 kind, __u32 len) {
  const int trapped = kind == PL_PUNT_TRAPPED;
  if (!charge(trapped ? &run->config->trapped : &run->config->punts,
              trapped ? run->state->trapped : run->state->punts, run, 1, len))
    return PL_PUNT_LIMIT;
  if (run->config->dry) return PL_PUNTED;
  const __u32 zero = 0;
  struct pl_all* shared = bpf_map_lookup_elem(&all, &zero);
  if (!shared || !charge(&shared->punts, shared->tat, run, 1, len)) return PL_PUNT_LIMIT_ALL;
  return PL_PUNTED;
}

// To the daemon. PL_PUNTED, or why not.
static __always_inline __u32 punt(struct run* run, __u32 kind) {
  __u32 len = skb_of(run)->len;
  if (len > PL_PUNT_FRAME) {
    if (kind != PL_PUNT_TRAPPED) return PL_MALFORMED;
    len = PL_PUNT_FRAME;
  }
  const __u32 allowed = punt_allowed(run, kind, len);
  if (allowed != PL_PUNTED || run->config->dry) return allowed;
  struct pl_punt* record = bpf_ringbuf_reserve(&punts, sizeof *record, 0);
  if (!record) {
    const __u32 zero = 0;
    __u64* count = bpf_map_lookup_elem(&lost, &zero);
    if (count) ++*count;
    return PL_RING_FULL;
  }
  record->ifindex = run->config->ifindex;
  record->len = len;
  record->kind = kind;
  record->zero = 0;
  asm volatile("" : "+r"(len));  // keeps the compiler from proving, in its own way, what follows
  if (len < 1 || len > PL_PUNT_FRAME || bpf_skb_load_bytes(skb_of(run), 0, record->frame, len)) {
    bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
    return PL_MALFORMED;
  }
  bpf_ringbuf_submit(record, 0);  // wakes the daemon when it has read all before
  return PL_PUNTED;
}

// A copy of what a bound sender sent, now and then: its binding must not age while the kernel
// answers in the daemon's place.
static __always_inline void renew(struct run* run, const struct owner* sender) {
  if (renewal_due(run, sender) && punt(run, PL_PUNT_COPY) == PL_PUNTED && !run->config->dry)
    *(volatile __u64*)&sender->entry->renewed = now(run);
}

// What the limits say of a frame of a class that has some: PL_PASSED, or why not.
static __always_inline __u32 limit_reason(struct run* run, __u32 cls) {
  if (!(run->config->limited[run->hook] >> cls & 1)) return PL_PASSED;
  if (run->hook == PL_OUT)
    return within_limits(run->config, run->state, run->hook << 8 | cls, now(run),
                         (__u64)run->frames << 32 | run->bytes);
  const struct pl_limit* limit = &run->config->limits[PL_IN][cls];
  if (limit->mode == PL_NOTHING) return pl_limit_reason(cls, PL_NOTHING);
  return charge(limit, run->state->tat[PL_IN][cls], run, run->frames, run->bytes)
             ? (__u32)PL_PASSED
             : pl_limit_reason(cls, PL_LIMITED);
}

// Whether the limits drop the frame, or would do so but for the policy, which only observes.
static __always_inline int limited(struct run* run, __u32 cls) {
  if (run->observed && run->config->observe) return 0;
  if (cls >= PL_LIMITED_CLASSES) return 0;
  const __u32 reason = limit_reason(run, cls);
  if (reason == PL_PASSED) return 0;
  if (reason == PL_EGRESS_CAP || run->config->observe) return refused(run, cls, reason);
  if (!run->observed) count_row(run, (reason >= PL_ARP ? PL_ROW_NOTHING : PL_ROW_LIMITED) + cls);
  return 1;
}

// Within the limit of its class, out of the path and to the daemon.
static __always_inline int intercept(struct run* run, __u32 cls) {
  if (limited(run, cls)) return TC_ACT_SHOT;
  const __u32 reason = punt(run, PL_PUNT_TAKEN);
  if (reason != PL_PUNTED) return drop(run, cls, reason);
  count_row(run, PL_ROW_PUNTED + (cls == PL_CLASS_ND));
  return TC_ACT_SHOT;
}

// Writes the first `len` octets, PL_ARP_ANSWER or PL_NS_END, into memory whose end was checked.
static __always_inline void put(void* data, const struct pl_head* head, int len) {
  *(__u16*)data = *(const __u16*)head->b;
  *(__u32*)(data + 2) = *(const __u32*)(head->b + 2);
  for (int i = 6; i + 8 <= len; i += 8) *(__u64*)(data + i) = *(const __u64*)(head->b + i);
  if (len != PL_ARP_ANSWER) return;
  *(__u32*)(data + PL_PEEK) = 0;
  *(__u16*)(data + PL_PEEK + 4) = 0;
}

// Writes the answer over the request and sends it out of the port that it came from.
static __always_inline int reply(struct run* run, const struct pl_head* head, __u32 len, __u32 cls,
                                 const struct owner* target, __u64 asker) {
  struct __sk_buff* skb = skb_of(run);
  if (skb->len != len && bpf_skb_change_tail(skb, len, 0)) return drop(run, cls, PL_NO_MEMORY);
  void *data = (void*)(long)skb->data, *end = (void*)(long)skb->data_end;
  if (data + len > end) {  // not in one piece
    if (bpf_skb_pull_data(skb, len)) return drop(run, cls, PL_NO_MEMORY);
    data = (void*)(long)skb->data;
    end = (void*)(long)skb->data_end;
    if (data + len > end) return drop(run, cls, PL_NO_MEMORY);
  }
  put(data, head, len);
  count_answer(run, target, asker, cls);
  skb->tc_index = PL_IS_ANSWER;
  return bpf_redirect(run->config->ifindex, 0);
}

static __always_inline int group_arp(struct run* run, struct pl_head* head,
                                     const struct pl_frame* frame) {
  if (!pl_arp_plain(head, frame)) return intercept(run, PL_CLASS_ARP);
  const struct owner target = owner4(run, head->b + PL_TPA);
  const struct owner sender = owner4(run, head->b + PL_SPA);
  const __u32 reason = settle(run, &target, &sender, head);
  if (reason == PL_PASSED) return intercept(run, PL_CLASS_ARP);
  if (reason != PL_ANSWER_LIMIT) renew(run, &sender);
  if (reason != PL_ANSWERED) return drop(run, PL_CLASS_ARP, reason);
  const __u64 asker = pl_mac(head->b + 6);
  pl_arp_answer(head, target.mac);
  return reply(run, head, PL_ARP_ANSWER, PL_CLASS_ARP, &target, asker);
}

static __always_inline int load_ns(struct __sk_buff* skb, struct pl_head* head, __u32 seen) {
  return seen < PL_NS_END &&
         bpf_skb_load_bytes(skb, PL_PEEK, head->b + PL_PEEK, PL_NS_END - PL_PEEK) != 0;
}

static __always_inline int group_nd(struct run* run, struct pl_head* head,
                                    const struct pl_frame* frame) {
  if (frame->nd != PL_NS || frame->len < PL_NS_END || load_ns(skb_of(run), head, frame->head) ||
      !pl_ns_plain(head, frame))
    return intercept(run, PL_CLASS_ND);
  const struct owner target = owner6(run, head->b + PL_ND_TARGET);
  const struct owner sender = owner6(run, head->b + PL_IP6_SOURCE);
  const __u32 reason = settle(run, &target, &sender, head);
  if (reason == PL_PASSED) return intercept(run, PL_CLASS_ND);
  if (reason != PL_ANSWER_LIMIT) renew(run, &sender);
  if (reason != PL_ANSWERED) return drop(run, PL_CLASS_ND, reason);
  const __u64 asker = pl_mac(head->b + 6);
  pl_ns_answer(head, target.mac, target.flags);
  return reply(run, head, PL_NS_END, PL_CLASS_ND, &target, asker);
}

// Unicast ARP, NS or NA: PL_PASSED, or the reason to drop it. `to_us`: an answer to the daemon's
// own question, perhaps.
static __always_inline __u32 unicast_neighbor(struct run* run, const struct pl_head* head,
                                              const struct pl_frame* frame, int to_us) {
  const __u64 source = pl_mac(head->b + 6);
  struct owner sender = {};
  __u64 mac = source;
  int made = 0, spoofed = 0;
  if (frame->type == PL_TYPE_ARP) {
    if (pl_arp_ethernet(head)) {
      made = pl_word(head->b + PL_SPA) != 0;
      if (made) sender = owner4(run, head->b + PL_SPA);
      mac = pl_mac(head->b + PL_SHA);
    }
  } else {
    struct pl_claim claim;
    const __u32 reason = pl_nd_claim(skb_of(run), head, frame, &claim);
    if (reason) return reason;
    made = claim.made;
    if (made) sender = owner6(run, claim.ip);
    mac = claim.mac;
    if (frame->nd == PL_NA && !pl_same16(claim.ip, head->b + PL_IP6_SOURCE)) {
      const struct owner speaker = owner6(run, head->b + PL_IP6_SOURCE);
      spoofed = speaker.entry && pl_mac(speaker.mac) != source;
    }
  }
  spoofed |= mac != source || (sender.entry && pl_mac(sender.mac) != mac);
  const int news = made && run->config->learn && !at_home(run, &sender, mac);
  if (spoofed || news || to_us)
    punt(run, PL_PUNT_COPY);
  else if (sender.entry)
    renew(run, &sender);
  return spoofed ? PL_SPOOFED_SENDER : PL_PASSED;
}

// The trap that a unicast frame is in, or PL_PASSED. Neighbor discovery with the PE itself goes on.
static __always_inline __u32 trap_of(const struct run* run, __u64 to, int neighbor) {
  PL_LOOP
  for (int i = 0; i < PL_MAX_TRAPS; i++)
    if (run->config->traps[i].mac == to && !(neighbor && to == run->config->own_mac))
      return run->config->traps[i].reason;
  return PL_PASSED;
}

// The PE's own MAC is known as far as ARP and ND go: answers to its questions renew the bridge's
// entry of who answers. For all else it is no host of this LAN.
static __always_inline int known_unicast(const struct run* run, const struct pl_head* head,
                                         const struct pl_frame* frame) {
  struct pl_mac_key key = {.vni = run->config->vni};
  __builtin_memcpy(key.mac, head->b, 6);
  if (bpf_map_lookup_elem(&macs, &key)) return 1;
  return (frame->type == PL_TYPE_ARP || frame->nd) && pl_mac(head->b) == run->config->own_mac;
}

// Step (4), a frame to one host at ingress: PL_PASSED, or the reason to drop it.
static __always_inline __u32 to_one(struct run* run, const struct pl_head* head,
                                    const struct pl_frame* frame) {
  const __u64 to = pl_mac(head->b);
  const int neighbor = frame->type == PL_TYPE_ARP || frame->nd;
  const __u32 trap = trap_of(run, to, neighbor);
  if (trap != PL_PASSED) {
    punt(run, PL_PUNT_TRAPPED);
    return trap;
  }
  if (!neighbor) return PL_PASSED;
  const int to_us = to == run->config->own_mac && frame->nd != PL_NS;
  if (run->config->core) {
    if (to_us) punt(run, PL_PUNT_COPY);
    return PL_PASSED;
  }
  return run->config->proxy ? unicast_neighbor(run, head, frame, to_us) : (__u32)PL_PASSED;
}

// IEEE 802.1Q: a tag with VLAN 0 is a priority and no VLAN.
static __always_inline int in_a_vlan(const struct __sk_buff* skb) {
  return skb->vlan_present && (skb->vlan_tci & 0xfff) != 0;
}

// How many of the first octets it has got, at least PL_ETH; 0: the frame is too short.
static __always_inline __u32 load_head(struct __sk_buff* skb, struct pl_head* head) {
  const void *data = (const void*)(long)skb->data, *end = (const void*)(long)skb->data_end;
  if (data + PL_PEEK <= end) {
    take(head, data);
    if (data + PL_NS_END > end) return PL_PEEK;
    take_ns(head, data);
    return PL_NS_END;
  }
  __u32 len = skb->len;
  if (len > PL_PEEK) len = PL_PEEK;
  asm volatile("" : "+r"(len));
  if (len < PL_ETH || len > PL_PEEK || bpf_skb_load_bytes(skb, 0, head->b, len)) return 0;
  return len;
}

// Step (4), a frame to one host: PL_PASSED, or the reason to drop it. What it claims falsely is the
// policy's business.
static __always_inline int dropped_to_one(struct run* run, const struct pl_head* head,
                                          const struct pl_frame* frame) {
  const __u32 reason = to_one(run, head, frame);
  if (reason == PL_PASSED) return 0;
  if (reason != PL_SPOOFED_SENDER && reason != PL_MALFORMED) {
    count_drop(run, frame->cls, reason);
    return 1;
  }
  report(run, reason);
  return refused(run, frame->cls, reason);
}

// Steps (0) to (3): 1 when the frame is dropped.
static __always_inline int dropped_by_kind(struct run* run, struct pl_head* head,
                                           struct pl_frame* frame) {
  struct __sk_buff* skb = skb_of(run);
  const __u32 hook = run->hook;
  __u32 reason = PL_PASSED;
  if (hook == PL_IN && frame->group && came_back(run, head, frame) &&
      !pl_observed(run->config->observe, frame, PL_LOOPED))
    reason = PL_LOOPED;
  else if (skb->vlan_present && !pl_allowed(run->config, PL_VLAN_TAG) &&
           !pl_observed(run->config->observe, frame, PL_VLAN_TAG))
    reason = PL_VLAN_TAG;
  else
    reason = pl_check(skb, run->config, hook, head, frame);
  if (skb->gso_size) {
    run->frames = skb->gso_segs ?: (skb->len + skb->gso_size - 1) / skb->gso_size;
    run->bytes = pl_wire_bytes(frame, run->frames);
  }
  const __u32 wrong = reason != PL_PASSED ? reason : frame->observed;
  if (wrong) report(run, wrong);
  if (run->config->gate &&
      !(run->config->gate == PL_QUARANTINE && !wrong && frame->cls == PL_CLASS_CONTROL)) {
    count_drop(run, frame->cls, run->config->gate);
    return 1;
  }
  if (reason != PL_PASSED) {
    count_drop(run, frame->cls, reason);
    return 1;
  }
  if (frame->observed) {
    count_drop(run, frame->cls, frame->observed | PL_ONLY_OBSERVED);
    run->observed = 1;
  }
  return 0;
}

static __always_inline int data_path(struct __sk_buff* skb, __u32 hook) {
  const __u32 len = skb->len;
  struct run run = {.context = skb, .hook = hook, .frames = 1, .bytes = len};
  if (!find_port(&run, skb->ifindex)) return TC_ACT_UNSPEC;

  struct pl_head head = {};
  struct pl_frame frame;
  const __u32 seen = load_head(skb, &head);
  if (!seen) return drop(&run, PL_CLASS_CONTROL, PL_MALFORMED);
  pl_look(&head, seen, len, &frame);
  if (dropped_by_kind(&run, &head, &frame)) return TC_ACT_SHOT;
  if (frame.cls == PL_CLASS_CONTROL) return pass(&run, PL_CLASS_CONTROL);

  // The addresses of a VLAN that is passed on are not those of the peering LAN.
  if (hook == PL_IN && !in_a_vlan(skb) && !frame.tags) {
    if (!frame.group) {
      if (dropped_to_one(&run, &head, &frame)) return TC_ACT_SHOT;
    } else if (run.config->proxy && !run.config->core) {
      if (frame.cls == PL_CLASS_ARP) return group_arp(&run, &head, &frame);
      if (frame.cls == PL_CLASS_ND) return group_nd(&run, &head, &frame);
    }
  }

  __u32 cls = frame.cls;
  if (!frame.group && run.config->look_up[hook] && !known_unicast(&run, &head, &frame))
    cls = PL_CLASS_UNKNOWN_UNICAST;
  if (limited(&run, cls)) return TC_ACT_SHOT;
  if (hook == PL_OUT && frame.group) remember_sent(&run, &head, &frame);
  return pass(&run, cls);
}

SEC("tc")
int pl_ingress(struct __sk_buff* skb) {
  if (skb->tc_index == PL_IS_ANSWER) skb->tc_index = 0;  // whoever says so
  const int action = quick(skb, PL_IN);
  return action == PL_LONG_WAY ? data_path(skb, PL_IN) : action;
}

SEC("tc")
int pl_egress(struct __sk_buff* skb) {
  if (skb->tc_index == PL_IS_ANSWER) {
    skb->tc_index = 0;
    return TC_ACT_UNSPEC;
  }
  const int action = quick(skb, PL_OUT);
  return action == PL_LONG_WAY ? data_path(skb, PL_OUT) : action;
}

// --- native XDP at a member's port: the answers to plain requests of the usual length. The tc
// program sees all else, so nothing is refused here but what is over the limit of answers.

static __always_inline int answer_in_xdp(struct run* run, const struct owner* target,
                                         const struct owner* sender, const struct pl_head* head,
                                         __u32 cls) {
  if (sender->entry && renewal_due(run, sender)) return XDP_PASS;
  const __u32 reason = settle(run, target, sender, head);
  if (reason == PL_ANSWER_LIMIT) {
    count_drop(run, cls, reason);
    return XDP_DROP;
  }
  if (reason != PL_ANSWERED) return XDP_PASS;
  count_answer(run, target, pl_mac(head->b + 6), cls);
  return XDP_TX;
}

SEC("xdp")
int pl_xdp(struct xdp_md* context) {
  void *data = (void*)(long)context->data, *end = (void*)(long)context->data_end;
  const __u32 len = end - data;
  if (len != PL_ARP_ANSWER && len != PL_NS_END) return XDP_PASS;
  if (data + PL_ARP_ANSWER > end || !(*(__u8*)data & 1)) return XDP_PASS;
  struct run run = {.context = context, .hook = PL_IN, .frames = 1, .bytes = len};
  if (!find_port(&run, context->ingress_ifindex) || !run.config->proxy || run.config->core)
    return XDP_PASS;
  struct pl_head head = {};
  struct pl_frame frame;
  take(&head, data);
  pl_look(&head, PL_PEEK, len, &frame);
  if (pl_check_link(run.config, PL_IN, &head, &frame) != PL_PASSED || frame.cls == PL_CLASS_CONTROL)
    return XDP_PASS;

  if (len == PL_ARP_ANSWER && frame.type == PL_TYPE_ARP) {
    if (!pl_arp_plain(&head, &frame)) return XDP_PASS;
    const struct owner target = owner4(&run, head.b + PL_TPA);
    const struct owner sender = owner4(&run, head.b + PL_SPA);
    const int action = answer_in_xdp(&run, &target, &sender, &head, PL_CLASS_ARP);
    if (action != XDP_TX) return action;
    pl_arp_answer(&head, target.mac);
    put(data, &head, PL_ARP_ANSWER);
    return XDP_TX;
  }
  if (frame.type != PL_TYPE_IPV6 || data + PL_NS_END > end) return XDP_PASS;
  take_ns(&head, data);
  if (!pl_ns_plain(&head, &frame)) return XDP_PASS;
  const struct owner target = owner6(&run, head.b + PL_ND_TARGET);
  const struct owner sender = owner6(&run, head.b + PL_IP6_SOURCE);
  const int action = answer_in_xdp(&run, &target, &sender, &head, PL_CLASS_ND);
  if (action != XDP_TX) return action;
  pl_ns_answer(&head, target.mac, target.flags);
  put(data, &head, PL_NS_END);
  return XDP_TX;
}

char _license[] SEC("license") = "GPL";
