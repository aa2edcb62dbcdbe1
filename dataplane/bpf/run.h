// SPDX-License-Identifier: GPL-2.0-or-later
// What the programs of both hooks do alike: find the port's configuration, count, look up bindings,
// and decide on a plain request. eBPF only.
#pragma once
#include "bucket.h"
#include "classify.h"
#include "maps.h"
#include "neighbor.h"

// What one run of a program works on.
struct run {
  void* context;
  const struct pl_config* config;
  struct pl_state* state;
  __u32 slot;
  __u32 hook;
  __u32 frames;
  __u32 bytes;
  __u64 now;     // 0: not asked for yet
  int observed;  // counted as such
};

// 0: not a port of ours.
static __always_inline int find_port(struct run* run, __u32 ifindex) {
  const __u32 index = ifindex % PL_NEAR_PORTS;
  const struct pl_near* nearby = bpf_map_lookup_elem(&near, &index);
  const struct pl_port* found = 0;
  if (nearby && nearby->ifindex == ifindex)
    found = &nearby->port;
  else
    found = bpf_map_lookup_elem(&ports, &ifindex);
  if (!found) return 0;
  const struct pl_port port = *found;
  run->slot = port.slot;
  run->config = bpf_map_lookup_elem(&configs, &port.config);
  run->state = bpf_map_lookup_elem(&state, &port.slot);
  return run->config && run->state && run->config->device == ifindex;
}

static __always_inline __u64 now(struct run* run) {
  if (!run->now) run->now = bpf_ktime_get_ns();
  return run->now;
}

// --- limits. Functions that the verifier looks at once, not wherever they are called.
struct bucket_pair {
  __u64 tat[PL_UNITS];
};

// See pl_charge().
__attribute__((noinline)) int charge_bucket(const struct pl_limit* limit, struct bucket_pair* pair,
                                            __u64 at, __u32 frames, __u32 bytes) {
  if (!limit || !pair) return 0;
  return pl_charge(limit, pair->tat, at, frames, bytes);
}
static __always_inline int charge(const struct pl_limit* limit, __u64* tat, struct run* run,
                                  __u32 frames, __u32 bytes) {
  return limit->mode == PL_UNLIMITED ||
         charge_bucket(limit, (struct bucket_pair*)tat, now(run), frames, bytes);
}

// See pl_within(); size: frames << 32 | octets.
__attribute__((noinline)) __u32 within_limits(const struct pl_config* config,
                                              struct pl_state* port_state, __u32 hook_and_class,
                                              __u64 at, __u64 size) {
  const __u32 hook = hook_and_class >> 8 & 1, cls = hook_and_class & 0xff;
  if (!config || !port_state || cls >= PL_LIMITED_CLASSES) return PL_PASSED;
  return pl_within(config, port_state, hook, cls, at, size >> 32, (__u32)size);
}

// --- counters
static __always_inline void add(struct pl_count* count, const struct run* run) {
  count->packets += run->frames;
  count->bytes += run->bytes;
}

static __always_inline void count_row(const struct run* run, __u32 row) {
  const __u32 slot = run->slot;  // helpers get no address of what is in *run: it stays in registers
  struct pl_counts* of = bpf_map_lookup_elem(&counts, &slot);
  if (of) add(&of->rows[run->hook][row % PL_ROWS], run);
}

enum { PL_ONLY_OBSERVED = 1 << 7 };  // added to a reason

// what: hook << 16 | class << 8 | reason, perhaps one that is only observed.
__attribute__((noinline)) int count_drop_of(struct pl_state* of, __u32 slot, __u32 what,
                                            __u32 frames, __u32 bytes) {
  const __u32 hook = what >> 16 & 1, cls = what >> 8 & 0xff, reason = what & 0x7f;
  const int observed = (what & PL_ONLY_OBSERVED) != 0;
  if (!of || cls >= PL_CLASSES || reason >= PL_REASONS) return 0;
  // The index by one word: the verifier keeps what it knows of it.
  __u32 word = (hook * PL_CLASSES + cls) * 2 * PL_REASON_WORDS;
  word += (observed ? PL_REASON_WORDS : 0) + (reason >> 6);
  if (word >= PL_HOOKS * PL_CLASSES * 2 * PL_REASON_WORDS) return 0;
  __u64* seen = &of->seen[0][0][0] + word;
  const __u64 bit = 1ull << (reason & 63);
  if (!(*(volatile __u64*)seen & bit)) __sync_fetch_and_or(seen, bit);
  const struct pl_drop_key key = {
      .slot = slot, .hook = hook, .cls = cls, .reason = reason, .observed = observed};
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

static __always_inline void count_drop(const struct run* run, __u32 cls, __u32 reason) {
  count_drop_of(run->state, run->slot, run->hook << 16 | cls << 8 | reason, run->frames,
                run->bytes);
}

// --- bindings
struct owner {
  struct pl_binding* entry;  // none: not bound
  __u8 mac[6];
  __u8 flags;
  __u8 zero;
};

static __always_inline struct owner copied(struct pl_binding* entry, __u32 check) {
  struct owner owner = {};
  if (!entry) return owner;
  __builtin_memcpy(owner.mac, entry, 8);
  // An element deleted meanwhile may already hold another address.
  if (*(volatile const __u32*)&entry->check == check) owner.entry = entry;
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

// It is bound to this MAC, behind this port.
static __always_inline int at_home(const struct run* run, const struct owner* sender, __u64 mac) {
  return sender->entry && pl_mac(sender->mac) == mac && sender->entry->port == run->config->ifindex;
}

// It is long since the daemon heard of this sender, which is bound.
static __always_inline int renewal_due(struct run* run, const struct owner* sender) {
  return run->config->renew && now(run) - sender->entry->renewed >= run->config->renew;
}

// What becomes of a plain request (neighbor.h). PL_PASSED: nothing that is decided here, the
// responder must see it. Its rules for the others are the same (proxyarp/responder.cpp).
static __always_inline __u32 settle(struct run* run, const struct owner* target,
                                    const struct owner* sender, const struct pl_head* head) {
  const __u64 asker = pl_mac(head->b + 6);
  if (!target->entry || !at_home(run, sender, asker)) return PL_PASSED;
  if (pl_mac(target->mac) == asker) return PL_OWNER_ASKED;
  if (target->entry->port == run->config->ifindex) return PL_SAME_PORT;
  if (!charge(&run->config->answers, run->state->answers, run, 1, run->bytes))
    return PL_ANSWER_LIMIT;
  return PL_ANSWERED;
}

// The answer is on its way.
static __always_inline void count_answer(const struct run* run, const struct owner* target,
                                         __u64 asker, __u32 cls) {
  struct pl_binding* entry = target->entry;
  count_row(run, PL_ROW_ANSWERED + cls);
  if (run->config->dry) return;
  __sync_fetch_and_add(&entry->answers, 1);
  if (*(volatile __u64*)&entry->asker != asker) *(volatile __u64*)&entry->asker = asker;
}

// --- the first octets of a frame, from memory that the verifier has seen the end of. Words that
// are aligned in pl_head need not be so in the frame.
static __always_inline void take(struct pl_head* head, const void* data) {  // PL_PEEK octets
  *(__u16*)head->b = *(const __u16*)data;
  *(__u32*)(head->b + 2) = *(const __u32*)(data + 2);
  for (int i = 6; i < PL_PEEK; i += 8) *(__u64*)(head->b + i) = *(const __u64*)(data + i);
}
static __always_inline void take_ns(struct pl_head* head,
                                    const void* data) {  // the others of an NS
  for (int i = PL_PEEK; i < PL_NS_END; i += 8) *(__u64*)(head->b + i) = *(const __u64*)(data + i);
}
