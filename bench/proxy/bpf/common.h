// SPDX-License-Identifier: GPL-2.0-or-later
// Shared by the bench BPF programs.
#pragma once
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct mac8 {
  __u8 m[6];
  __u8 flags, pad;
};
struct ip6key {
  __u64 hi, lo;
};

struct arp_eth {
  __be16 htype, ptype;
  __u8 hlen, plen;
  __be16 op;
  __u8 sha[6];
  __u8 sip[4];
  __u8 tha[6];
  __u8 tip[4];
} __attribute__((packed));
struct ip6h {
  __u8 vtc[4];
  __be16 plen;
  __u8 nh, hl;
  __u8 src[16], dst[16];
} __attribute__((packed));
struct ndmsg {
  __u8 type, code;
  __u16 csum;
  __u8 flags[4];
  __u8 target[16];
  __u8 otype, olen, omac[6];
} __attribute__((packed));

#define ST_SEEN 0
#define ST_ANSWERED 1
#define ST_MISS 2
#define ST_OTHER 3
