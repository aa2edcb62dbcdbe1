// SPDX-License-Identifier: GPL-2.0-or-later
// The limiter: GCRA (ITU-T I.371), one word a bucket, advanced by compare-and-swap, so that it is
// exact over CPUs without a lock. Plain C for the eBPF programs and for user space.
#pragma once
#include "abi.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

// A frame conforms while the backlog is at most tau; then it adds its cost to the backlog. Eight
// lost races in a row mean that others are spending the bucket.
PL_INLINE int pl_spend(__u64* tat, __u64 now, __u64 cost, __u64 tau) {
  PL_LOOP
  for (int i = 0; i < 8; i++) {
    const __u64 old = *(volatile __u64*)tat;
    if (old > now + tau) return 0;
    if (__sync_val_compare_and_swap(tat, old, (old > now ? old : now) + cost) == old) return 1;
  }
  return 0;
}

// 1: within the limit, which is charged. What one unit refuses is not charged to the other one.
PL_INLINE int pl_charge(const struct pl_limit* limit, __u64* buckets, __u64 now, __u32 frames,
                        __u32 bytes) {
  if (limit->mode == PL_UNLIMITED) return 1;
  if (limit->mode == PL_NOTHING) return 0;
  if (limit->byte_q16 && *(volatile __u64*)&buckets[PL_OCTETS] > now + limit->byte_tau) return 0;
  if (limit->frame_q16 &&
      !pl_spend(&buckets[PL_FRAMES], now, (frames * limit->frame_q16) >> 16, limit->frame_tau))
    return 0;
  return !limit->byte_q16 ||
         pl_spend(&buckets[PL_OCTETS], now, (bytes * limit->byte_q16) >> 16, limit->byte_tau);
}

// 1: a frame would conform now; nothing is charged.
PL_INLINE int pl_room(const struct pl_limit* limit, const __u64* buckets, __u64 now) {
  if (limit->mode == PL_UNLIMITED) return 1;
  if (limit->mode == PL_NOTHING) return 0;
  if (limit->frame_q16 && *(volatile const __u64*)&buckets[PL_FRAMES] > now + limit->frame_tau)
    return 0;
  return !limit->byte_q16 || *(volatile const __u64*)&buckets[PL_OCTETS] <= now + limit->byte_tau;
}

// The reason of a class that is over its limit.
PL_INLINE __u32 pl_limit_reason(__u32 cls, __u32 mode) {
  return (mode == PL_NOTHING ? (__u32)PL_ARP : (__u32)PL_ARP_LIMIT) + cls;
}

PL_INLINE enum pl_rank pl_rank_of(__u32 cls) {
  return cls == PL_CLASS_ARP || cls == PL_CLASS_ND ? PL_ARP_AND_ND : PL_OTHERS;
}

// A frame by the limit of its class and hook and, out to a member, by what all classes share:
// PL_PASSED, or why not.
PL_INLINE __u32 pl_within(const struct pl_config* config, struct pl_state* state, int hook,
                          __u32 cls, __u64 now, __u32 frames, __u32 bytes) {
  const struct pl_limit* limit = &config->limits[hook][cls];
  const struct pl_limit* total = &config->total[pl_rank_of(cls)];
  const int capped =
      hook == PL_OUT && cls <= PL_CLASS_UNKNOWN_UNICAST && total->mode != PL_UNLIMITED;
  // What the cap refuses is not charged to the class.
  if (capped && !pl_room(total, state->total, now)) return PL_EGRESS_CAP;
  if (!pl_charge(limit, state->tat[hook][cls], now, frames, bytes))
    return pl_limit_reason(cls, limit->mode);
  if (capped && !pl_charge(total, state->total, now, frames, bytes)) return PL_EGRESS_CAP;
  return PL_PASSED;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
