// SPDX-License-Identifier: GPL-2.0-or-later
// The maps of the eBPF programs; their keys and values are abi.h's.
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "abi.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_ABI_VERSION);
  __type(key, __u32);
  __type(value, struct pl_meta);
} meta SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PL_MAX_PORTS + 1);
  __type(key, __u32);
  __type(value, struct pl_port);
} ports SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_NEAR_PORTS);
  __type(key, __u32);
  __type(value, struct pl_near);
} near SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_SHADOW_CONFIG + 1);
  __type(key, __u32);
  __type(value, struct pl_config);
} configs SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_SHADOW_SLOT + 1);
  __type(key, __u32);
  __type(value, struct pl_state);
} state SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_SHADOW_SLOT + 1);
  __type(key, __u32);
  __type(value, struct pl_name);
} names SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct pl_all);
} all SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, PL_SHADOW_SLOT + 1);
  __type(key, __u32);
  __type(value, struct pl_counts);
} counts SEC(".maps");
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
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PL_NEAR_MACS);
  __type(key, __u32);
  __type(value, __u64);
} near_macs SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} punts SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, PL_REPORT_RING);
} reports SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} lost SEC(".maps");

// --- of the underlay. A new element takes an old one's place only when no program reads that one
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PL_MAX_UNDERLAYS);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u32);
  __type(value, struct pl_underlay);
} underlays SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PL_MAX_VNIS);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct pl_vni_key);
  __type(value, __u32);
} vnis SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PL_MAX_VTEPS);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct pl_vtep_key);
  __type(value, struct pl_vtep);
} vteps SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, PL_MAX_VTEPS + 1);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct pl_vtep_key);
  __type(value, struct pl_vtep_count);
} vtep_counts SEC(".maps");

_Static_assert(sizeof(struct pl_punt) == PL_PUNT_RECORD, "the record of a punt");
_Static_assert(sizeof(struct pl_report) == PL_REPORT_RECORD, "the record of a report");
_Static_assert(PL_REASONS <= 64 * PL_REASON_WORDS, "sets of reasons are words");
_Static_assert(PL_ETHERTYPE < 64 && PL_IRDP < 64, "`allow` is a word");
