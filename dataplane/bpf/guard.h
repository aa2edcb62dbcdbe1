// SPDX-License-Identifier: GPL-2.0-or-later
// What port security needs: reports of refused frames, and frames that come back. eBPF only.
#pragma once
#include <linux/pkt_cls.h>

#include "run.h"

// Copies the first octets of the frame: 0, or not 0.
static __always_inline int copy_head(struct __sk_buff* skb, struct pl_report* record) {
  __u32 len = skb->len;
  if (len > PL_REPORT_FRAME) len = PL_REPORT_FRAME;
  record->len = len;
  asm volatile("" : "+r"(len));
  return len < 1 || len > PL_REPORT_FRAME || bpf_skb_load_bytes(skb, 0, record->frame, len);
}

__attribute__((noinline)) int send_report(struct __sk_buff* skb, __u32 ifindex, __u32 hook,
                                          __u32 reason) {
  struct pl_report* record = bpf_ringbuf_reserve(&reports, sizeof *record, 0);
  if (!record) return 0;
  record->ifindex = ifindex;
  record->hook = hook;
  record->reason = reason;
  if (copy_head(skb, record))
    bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
  else
    bpf_ringbuf_submit(record, 0);
  return 0;
}

// A frame that came from a member or out of a tunnel and should not have, at the port's rate of
// reports.
static __always_inline void report(struct run* run, __u32 reason) {
  if (run->hook != PL_IN || !run->config->report || run->config->gate == PL_SHUT ||
      run->config->dry)
    return;
  if (charge(&run->config->reports, run->state->reports, run, 1, 0))
    send_report(run->context, run->config->ifindex, run->hook, reason);
}

static __always_inline int came_back(struct run* run, const struct pl_head* head,
                                     const struct pl_frame* frame) {
  return pl_may_come_back(run->config, head) &&
         pl_came_back(run->state->sent, pl_frame_hash(head, frame), now(run));
}

static __always_inline void remember_sent(struct run* run, const struct pl_head* head,
                                          const struct pl_frame* frame) {
  if (run->config->core) return;
  const __u64 hash = pl_frame_hash(head, frame);
  *(volatile __u64*)&run->state->sent[pl_sent_place(hash)] = pl_sent_mark(hash, now(run));
}
