// SPDX-License-Identifier: GPL-2.0-or-later
// What the target sends: messages are taken apart, and each NLRI is looked up among ours.
#include <errno.h>

#include <algorithm>

#include "bench/evpn_load.h"

// ---------------------------------------------------------------- receiving
// returns slot, or -1 when the NLRI is none of ours
int64_t slot_of(RxSet& set, const u8* b, u32 type, u32 len, u32& sender, bool withdraw) {
  if (type == 2 && len >= 33) {
    u32 ipbits = b[29], ipb = ipbits / 8;
    if (b[22] != 48 || (ipbits != 0 && ipbits != 32 && ipbits != 128) ||
        (len != 33 + ipb && len != 36 + ipb)) {
      g_malformed++;
      return -1;
    }
    u32 s = b[24], i = r32(b + 25) * g_inv;
    if (b[23] == 0x02 && s < u32(O.P) && i < g_stride &&
        ipb == (O.ip == 0   ? 0u
                : O.ip == 4 ? 4u
                            : 16u)) {
      u32 v = group_of(i) / O.attr_sets;
      bool ok = !memcmp(b, g_pe[s].rd[v].data(), 8) && r32(b + 18) == 0;
      if (ok && O.ip == 4) {
        ok = r32(b + 30) == ip4_of(s, i);
      } else if (ok && O.ip) {
        u8 ip[16];
        make_ip(ip, s, i);
        ok = !memcmp(ip, b + 30, ipb);
      }
      if (ok) {
        if (!withdraw) {
          u8 l[3];
          w24(l, O.vni + v);
          if (memcmp(l, b + 30 + ipb, 3)) set.bad_label++;
        }
        sender = s;
        return int64_t(s) * g_stride + i;
      }
    }
  } else if (type == 3 && (len == 17 || len == 29)) {
    if (len == 17 && b[12] == 32) {
      u32 s = r32(b + 13) - O.sender_base, v = r16(b + 6) - 1;
      if (s < u32(O.P) && v < O.vnis && !memcmp(b, g_pe[s].rd[v].data(), 8) && r32(b + 8) == 0) {
        sender = s;
        return int64_t(O.P) * g_stride + int64_t(s) * O.vnis + v;
      }
    }
  }
  return -1;
}
void rx_nlris(Session& s, const u8* p, const u8* e, bool withdraw, u32 nh) {
  RxSet& set = *s.set;
  bool nh_checked = false;
  while (p < e) {
    if (e - p < 2 || e - p - 2 < p[1]) {
      g_malformed++;
      return;
    }
    u32 type = p[0], len = p[1], snd = 0;
    const u8* b = p + 2;
    int64_t slot = slot_of(set, b, type, len, snd, withdraw);
    if (slot < 0) {
      std::string key(reinterpret_cast<const char*>(p), 2 + len);
      if (type == 2 && len >= 33) {  // key: without ESI and labels
        u32 ipb = std::min<u32>(b[29] / 8, len - 33);
        key.assign(reinterpret_cast<const char*>(b), 8)
            .append(reinterpret_cast<const char*>(b) + 18, 12 + ipb);
      }
      if (withdraw)
        set.foreign.erase(key);
      else
        set.foreign.insert(key);
    } else {
      u64& w = set.bits[slot >> 6];
      u64 m = u64(1) << (slot & 63);
      if (withdraw) {
        if (w & m)
          w &= ~m, set.count--, set.per_sender[snd]--, set.withdrawn++;
        else
          set.ghost_wd++;
      } else {
        if (!(w & m))
          w |= m, set.count++, set.per_sender[snd]++, set.announced++;
        else
          set.dup++;
        if (!nh_checked) {
          nh_checked = true;
          if (nh != g_pe[snd].addr) set.bad_nh++;
        }
      }
    }
    p += 2 + len;
  }
}
void rx_update(Session& s, const u8* p, u32 len) {
  if (!s.set) return;
  RxSet& set = *s.set;
  set.updates++;
  set.bytes += len + 19;
  const u8* e = p + len;
  if (len < 4) {
    g_malformed++;
    return;
  }
  u32 wl = r16(p);
  p += 2;
  if (p + wl + 2 > e) {
    g_malformed++;
    return;
  }
  p += wl;
  u32 al = r16(p);
  p += 2;
  if (p + al != e) {
    g_malformed++;
    return;
  }
  const u8 *reach = nullptr, *unreach = nullptr;
  u32 reach_len = 0, unreach_len = 0;
  bool ec_ok = false;
  while (p < e) {
    if (e - p < 3) {
      g_malformed++;
      return;
    }
    u32 fl = p[0], ty = p[1], l;
    if (fl & 0x10) {
      if (e - p < 4) {
        g_malformed++;
        return;
      }
      l = r16(p + 2), p += 4;
    } else
      l = p[2], p += 3;
    if (u32(e - p) < l) {
      g_malformed++;
      return;
    }
    if (ty == 14)
      reach = p, reach_len = l;
    else if (ty == 15)
      unreach = p, unreach_len = l;
    else if (ty == 16) {
      bool rt = false, enc = false;
      for (u32 k = 0; k + 8 <= l; k += 8) {
        if (p[k] == 0 && p[k + 1] == 2 && r16(p + k + 2) == (O.rt_as & 0xffff)) rt = true;
        if (p[k] == 3 && p[k + 1] == 0x0c && p[k + 7] == 8) enc = true;
      }
      ec_ok = rt && enc;
    }
    p += l;
  }
  if (unreach) {
    if (unreach_len < 3) {
      g_malformed++;
      return;
    }
    if (r16(unreach) == 25 && unreach[2] == 70) {
      if (unreach_len == 3 && !reach) set.eor++;
      rx_nlris(s, unreach + 3, unreach + unreach_len, true, 0);
    }
  }
  if (reach) {
    if (reach_len < 5 || reach_len < 5u + reach[3]) {
      g_malformed++;
      return;
    }
    if (r16(reach) == 25 && reach[2] == 70) {
      u32 nhl = reach[3];
      if (!ec_ok) set.bad_attr++;
      rx_nlris(s, reach + 5 + nhl, reach + reach_len, false, nhl == 4 ? r32(reach + 4) : 0);
    }
  }
}
void rx_open(Session& s, const u8* p, u32 len) {
  if (len < 10) return shut(s, "short OPEN");
  u32 as = r16(p + 1);
  s.peer_hold = r16(p + 3);
  bool evpn = false, ext = false;
  const u8 *q = p + 10, *e = p + len;
  if (u32(e - q) < p[9]) return shut(s, "bad OPEN options");
  while (q + 2 <= e) {
    u32 pt = q[0], pl = q[1];
    q += 2;
    if (u32(e - q) < pl) break;
    if (pt == 2) {
      const u8 *c = q, *ce = q + pl;
      while (c + 2 <= ce && c + 2 + c[1] <= ce) {
        if (c[0] == 1 && c[1] == 4 && r16(c + 2) == 25 && c[5] == 70) evpn = true;
        if (c[0] == 65 && c[1] == 4) as = r32(c + 2);
        if (c[0] == 6) ext = true;
        c += 2 + c[1];
      }
    }
    q += pl;
  }
  if (as != O.peer_as) {
    send_notification(s, 2, 2);
    return shut(s, "peer AS is " + std::to_string(as));
  }
  if (!evpn) {
    send_notification(s, 2, 7);
    return shut(s, "peer has no EVPN capability");
  }
  if (ext && O.ext_msg) s.max_msg = 65535;
  send_keepalive(s);
  s.st = OpenConfirm;
  flush(s);
}
void restart_gen(Session& s) {  // route refresh: everything that is announced now
  s.refresh++;
  if (s.gen.active || s.held_to == s.held_from) return;
  s.gen = TxGen{};
  s.gen.active = true;
  s.gen.next = s.held_from, s.gen.end = s.held_to;
  s.gen.imet_end = s.held_imet ? O.vnis : 0;
  s.gen.eor = true;
}
void rx_message(Session& s, int type, const u8* p, u32 len) {
  s.rx_msgs++;
  switch (type) {
    case 1:
      if (s.st == OpenSent) rx_open(s, p, len);
      break;
    case 2:
      if (s.st == Established) rx_update(s, p, len);
      break;
    case 3: {
      char b[64];
      snprintf(b, sizeof b, "NOTIFICATION %d/%d", len > 0 ? p[0] : 0, len > 1 ? p[1] : 0);
      shut(s, b);
      break;
    }
    case 4:
      if (s.st == OpenConfirm) {
        s.st = Established;
        s.t_est = now();
        if (!s.sender) put_eor(s);
        flush(s);
      }
      break;
    case 5:
      restart_gen(s);
      flush(s);
      break;
    default: g_malformed++;
  }
}
void on_readable(Session& s) {
  // one recv per event: keeps many sessions fair
  ssize_t n = recv(s.fd, s.rx.data() + s.rx_len, s.rx.size() - s.rx_len, 0);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    return shut(s, std::string("recv: ") + strerror(errno));
  }
  if (n == 0) return shut(s, "closed by peer");
  s.rx_len += n;
  s.last_rx = g_now;
  const u8* p = s.rx.data();
  const u8* e = p + s.rx_len;
  static const u8 ones[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                              255, 255, 255, 255, 255, 255, 255, 255};
  bool upd = false;
  while (e - p >= 19) {
    u32 len = r16(p + 16);
    if (memcmp(p, ones, 16) || len < 19) {
      g_malformed++;
      return shut(s, "bad BGP header");
    }
    if (u32(e - p) < len) break;
    if (p[18] == 2) upd = true;
    rx_message(s, p[18], p + 19, len - 19);
    if (s.fd < 0 || s.st == Idle) return;
    p += len;
  }
  s.rx_len = e - p;
  if (s.rx_len && p != s.rx.data()) memmove(s.rx.data(), p, s.rx_len);
  if (upd) g_last_rx_any = now();
}