// SPDX-License-Identifier: GPL-2.0-or-later
// Route identity: route i of sender s has MAC 02:ss:ii:ii:ii:ii (i times an odd constant
// with --scatter), RD type 1
// <router-id of s>:<vni index + 1>, Ethernet tag 0 and (with --ip) an address made from
// (s, i). A received type-2 NLRI is parsed in full; its MAC gives the only slot it can
// belong to, and RD, tag, MAC, IP length and IP are then compared with that slot's own
// values. So the per-receiver set is an exact set with a perfect hash (a bitmap), and
// anything else that arrives goes into a std::unordered_set of the raw key bytes and is
// reported as "foreign".
#include "bench/evpn_load.h"

u8* put_type2(u8* p, u32 s, u32 i) {
  u32 v = group_of(i) / O.attr_sets;
  *p++ = 2;
  *p++ = u8(g_nlri_len - 2);
  memcpy(p, g_pe[s].rd[v].data(), 8), p += 8;
  memset(p, 0, 14), p += 14;
  *p++ = 48;
  p[0] = 0x02, p[1] = u8(s), w32(p + 2, i * g_mul), p += 6;
  *p++ = O.ip == 0 ? 0 : O.ip == 4 ? 32 : 128;
  if (O.ip) make_ip(p, s, i), p += O.ip == 4 ? 4 : 16;
  w24(p, O.vni + v);
  return p + 3;
}
u8* put_type3(u8* p, u32 s, u32 v) {
  *p++ = 3;
  *p++ = 17;
  memcpy(p, g_pe[s].rd[v].data(), 8), p += 8;
  w32(p, 0), p += 4;
  *p++ = 32;
  w32(p, g_pe[s].addr);
  return p + 4;
}

void make_pes() {
  g_pe.resize(O.P);
  for (int s = 0; s < O.P; s++) {
    Pe& pe = g_pe[s];
    pe.addr = O.sender_base + s;
    pe.as = O.as + s * O.as_step;
    bool ebgp = pe.as != O.peer_as;
    for (u32 v = 0; v < O.vnis; v++) {
      std::array<u8, 8> rd{};
      rd[1] = 1;
      w32(&rd[2], pe.addr);
      w16(&rd[6], v + 1);
      pe.rd.push_back(rd);
    }
    auto build = [&](u32 v, u32 a, bool imet) {
      std::vector<u8> b;
      auto add = [&](std::initializer_list<int> l) {
        for (int x : l) b.push_back(u8(x));
      };
      add({0x40, 1, 1, 0});  // ORIGIN IGP
      if (ebgp) {            // AS_PATH, 4-byte
        add({0x40, 2, 6, 2, 1});
        add({int(pe.as >> 24), int(pe.as >> 16), int(pe.as >> 8), int(pe.as)});
      } else {
        add({0x40, 2, 0});
        add({0x40, 5, 4, 0, 0, 0, 100});  // LOCAL_PREF 100
      }
      u32 vni = O.vni + v;
      std::vector<u8> ec;
      auto addec = [&](std::initializer_list<int> l) {
        for (int x : l) ec.push_back(u8(x));
      };
      addec({0x00, 0x02, int(O.rt_as >> 8), int(O.rt_as), int(vni >> 24), int(vni >> 16),
             int(vni >> 8), int(vni)});
      addec({0x03, 0x0c, 0, 0, 0, 0, 0, 8});  // encapsulation VXLAN
      if (!imet && O.arp_nd)
        addec({0x06, 0x08, O.ip == 6 ? 0x0a : 0x08, 0, 0, 0, 0, 0});  // RFC 9047, I (+O)
      if (!imet && O.mobility)
        addec({0x06, 0x00, 0, 0, int((a + 1) >> 24), int((a + 1) >> 16), int((a + 1) >> 8),
               int(a + 1)});
      if (!imet && !O.mobility && a > 0) {  // attribute sets told apart by a plain community
        add({0xc0, 8, 4, 0xfd, 0xe8, int(a >> 8), int(a)});
      }
      add({0xc0, 16, int(ec.size())});
      b.insert(b.end(), ec.begin(), ec.end());
      if (imet) {  // PMSI tunnel: ingress replication
        add({0xc0, 22, 9, 0, 6, int(vni >> 16), int(vni >> 8), int(vni)});
        add({int(pe.addr >> 24), int(pe.addr >> 16), int(pe.addr >> 8), int(pe.addr)});
      }
      return b;
    };
    for (u32 g = 0; g < g_groups; g++)
      pe.attrs.push_back(build(g / O.attr_sets, g % O.attr_sets, false));
    for (u32 v = 0; v < O.vnis; v++) pe.imet_attrs.push_back(build(v, 0, true));
  }
}
