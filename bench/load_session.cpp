// SPDX-License-Identifier: GPL-2.0-or-later
// Sessions: connecting, OPEN and KEEPALIVE, what the senders send, timers.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "bench/evpn_load.h"

void arm(Session& s) {
  bool want =
      s.st == Connecting || s.tx_head < s.tx.size() || (s.st == Established && s.gen.active);
  if (want == s.want_out) return;
  s.want_out = want;
  epoll_event ev{};
  ev.events = EPOLLIN | (want ? u32(EPOLLOUT) : 0u);
  ev.data.ptr = &s;
  epoll_ctl(g_ep, EPOLL_CTL_MOD, s.fd, &ev);
}
void shut(Session& s, const std::string& why) {
  if (s.fd >= 0) close(s.fd);
  s.fd = -1;
  State was = s.st;
  s.st = Closed;
  s.gen.active = false;
  s.tx.clear(), s.tx_head = 0, s.rx_len = 0;
  s.error = why;
  if (was >= Established && !s.dropped && !g_started) {  // lost while sessions come up: try again
    g_early_losses++;
    say("evpn_load: %s lost before the start, reconnecting: %s\n", s.name().c_str(), why.c_str());
    s.st = Idle;
    s.retry_at = now() + 0.5;
  } else if (was >= Established && !s.dropped) {
    if (g_fail.empty()) g_fail = s.name() + ": " + why;
    say("evpn_load: %s lost: %s\n", s.name().c_str(), why.c_str());
  } else if (was != Closed && !s.dropped) {
    s.st = Idle;
    s.retry_at = now() + 0.5;
  }
}
void start_connect(Session& s) {
  s.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s.fd < 0) die("socket: %s", strerror(errno));
  int one = 1;
  setsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(s.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
#ifdef IP_BIND_ADDRESS_NO_PORT
  setsockopt(s.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
#endif
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(s.addr);
  if (bind(s.fd, reinterpret_cast<sockaddr*>(&a), sizeof a))
    die("bind %s: %s", ip4(s.addr).c_str(), strerror(errno));
  a.sin_addr.s_addr = htonl(O.target);
  a.sin_port = htons(u16(O.port));
  s.rx.resize(256 * 1024 + 65536);
  s.rx_len = 0;
  s.t_connect = now();
  int rc = connect(s.fd, reinterpret_cast<sockaddr*>(&a), sizeof a);
  if (rc && errno != EINPROGRESS) {
    std::string e = strerror(errno);
    s.st = Connecting;
    shut(s, "connect: " + e);
    return;
  }
  s.st = Connecting;
  s.want_out = true;
  epoll_event ev{};
  ev.events = EPOLLIN | EPOLLOUT;
  ev.data.ptr = &s;
  epoll_ctl(g_ep, EPOLL_CTL_ADD, s.fd, &ev);
}
u8* tx_room(Session& s, size_t n) {
  size_t o = s.tx.size();
  s.tx.resize(o + n);
  return s.tx.data() + o;
}
void tx_trim(Session& s, u8* end) { s.tx.resize(end - s.tx.data()); }
u8* put_header(u8* p, int type) {
  memset(p, 0xff, 16);
  p[18] = u8(type);
  return p + 19;
}
void send_open(Session& s) {
  u8* b = tx_room(s, 128);
  u8* p = put_header(b, 1);
  *p++ = 4;
  w16(p, s.as > 65535 ? 23456 : s.as), p += 2;
  w16(p, O.hold), p += 2;
  w32(p, s.addr), p += 4;
  u8* optlen = p++;
  *p++ = 2;
  u8* caplen = p++;
  *p++ = 1, *p++ = 4, w16(p, 25), p += 2, *p++ = 0, *p++ = 70;  // MP EVPN
  *p++ = 2, *p++ = 0;                                           // route refresh
  *p++ = 65, *p++ = 4, w32(p, s.as), p += 4;                    // 4-byte AS
  if (O.ext_msg) *p++ = 6, *p++ = 0;                            // extended message
  *caplen = u8(p - caplen - 1);
  *optlen = u8(p - optlen - 1);
  w16(b + 16, u32(p - b));
  tx_trim(s, p);
}
void send_keepalive(Session& s) {
  u8* b = tx_room(s, 19);
  put_header(b, 4);
  w16(b + 16, 19);
}
void send_notification(Session& s, int code, int sub) {  // best effort, at once
  u8 b[21];
  put_header(b, 3);
  w16(b + 16, 21);
  b[19] = u8(code), b[20] = u8(sub);
  if (s.fd >= 0 && s.tx_head >= s.tx.size()) (void)!send(s.fd, b, 21, MSG_NOSIGNAL | MSG_DONTWAIT);
}
void put_eor(Session& s) {
  u8* b = tx_room(s, 29);
  u8* p = put_header(b, 2);
  w16(p, 0), w16(p + 2, 6), p += 4;
  *p++ = 0x80, *p++ = 15, *p++ = 3;
  w16(p, 25), p[2] = 70;
  w16(b + 16, 29);
}
// one UPDATE with as many NLRIs as fit; returns false when the generator is done
bool put_update(Session& s) {
  TxGen& g = s.gen;
  u32 si = s.idx;
  if (g.imet_next < g.imet_end || g.next < g.end) {
    bool imet = g.imet_next < g.imet_end;
    u8* b = tx_room(s, s.max_msg);
    u8* lim = b + s.max_msg;
    u8* p = put_header(b, 2);
    w16(p, 0), p += 2;
    u8* alen = p;
    p += 2;
    const std::vector<u8>* at = nullptr;
    u32 v = 0, grp = 0;
    if (imet)
      v = g.imet_next, at = &g_pe[si].imet_attrs[v];
    else
      grp = group_of(g.next), at = &g_pe[si].attrs[grp];
    *p++ = 0x90;
    u8* mlen;
    if (g.withdraw) {
      *p++ = 15;
      mlen = p, p += 2;
      w16(p, 25), p[2] = 70, p += 3;
    } else {
      *p++ = 14;
      mlen = p, p += 2;
      w16(p, 25), p[2] = 70, p[3] = 4, p += 4;
      w32(p, g_pe[si].addr), p += 4;
      *p++ = 0;
      lim -= at->size();
    }
    if (imet) {
      p = put_type3(p, si, g.imet_next++);
    } else {
      while (g.next < g.end && p + g_nlri_len <= lim && (g.withdraw || group_of(g.next) == grp))
        p = put_type2(p, si, g.next++);
    }
    w16(mlen, u32(p - mlen - 2));
    if (!g.withdraw) memcpy(p, at->data(), at->size()), p += at->size();
    w16(alen, u32(p - alen - 2));
    w16(b + 16, u32(p - b));
    tx_trim(s, p);
    return true;
  }
  if (g.eor) {
    put_eor(s);
    g.eor = false;
  }
  g.active = false;
  return false;
}
void flush(Session& s) {
  for (int round = 0; round < 4; round++) {
    if (s.tx_head >= s.tx.size()) {
      s.tx.clear();
      s.tx_head = 0;
      if (s.st == Established && s.gen.active)
        while (s.tx.size() < 64 * 1024 && put_update(s)) {
        }
      if (s.tx.empty()) break;
    }
    ssize_t n = send(s.fd, s.tx.data() + s.tx_head, s.tx.size() - s.tx_head, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) break;
      shut(s, std::string("send: ") + strerror(errno));
      return;
    }
    s.tx_head += n;
    g_total_tx += n;
    s.last_tx = g_now;
  }
  arm(s);
}

void timers() {
  static double next = 0;
  if (g_now < next) return;
  next = g_now + 0.1;
  for (auto& sp : g_all) {
    Session& s = *sp;
    if (s.st == Idle && !s.dropped && s.retry_at > 0 && g_now >= s.retry_at) {
      s.retry_at = 0;
      start_connect(s);
    }
    if (s.st == Established) {
      if (s.tx_head >= s.tx.size() && g_now - s.last_tx > O.hold / 3.0) {
        send_keepalive(s);
        flush(s);
      }
      u32 h = std::min<u32>(O.hold, s.peer_hold);
      if (s.st == Established && h && g_now - s.last_rx > h) {
        send_notification(s, 4, 0);
        shut(s, "hold timer expired (nothing from the target)");
      }
    }
  }
}
void poll_once(int ms) {
  epoll_event ev[64];
  int n = epoll_wait(g_ep, ev, 64, ms);
  g_now = now();
  for (int k = 0; k < n; k++) {
    Session& s = *static_cast<Session*>(ev[k].data.ptr);
    if (s.fd < 0) continue;
    if (s.st == Connecting) {
      if (!(ev[k].events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) continue;
      int err = 0;
      socklen_t l = sizeof err;
      getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &err, &l);
      if (err) {
        shut(s, std::string("connect: ") + strerror(err));
        continue;
      }
      s.st = OpenSent;
      s.last_rx = s.last_tx = g_now;
      send_open(s);
      flush(s);
      continue;
    }
    if (ev[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
      on_readable(s);
      if (s.fd >= 0 && g_after_rx) g_after_rx(s);
    }
    if (s.fd >= 0 && (ev[k].events & EPOLLOUT)) flush(s);
  }
  timers();
}
bool run_until(const std::function<bool()>& done, double timeout) {
  double end = now() + timeout;
  while (!done()) {
    if (!g_fail.empty()) return false;
    if (now() > end) return false;
    poll_once(50);
  }
  return true;
}
// until no UPDATE came on any session for `quiet` seconds and nothing is left to send
void settle(double quiet, double timeout) {
  double t0 = now();
  run_until(
      [&] {
        for (auto* s : g_snd)
          if (s->fd >= 0 && (s->gen.active || s->tx_head < s->tx.size())) return false;
        return now() - std::max(g_last_rx_any, t0) > quiet;
      },
      timeout);
}
