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

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
