// SPDX-License-Identifier: GPL-2.0-or-later
// evpn_load - BGP EVPN load generator and meter for route reflectors / route servers.
//
//   cmake --preset release -DPEERLAN_BENCH=ON && cmake --build build/release --target evpn_load
//
// P sender sessions (PEs) announce EVPN type-2 (and one type-3 per VNI) routes to one
// target speaker; R receiver sessions count distinct NLRIs that come back. One thread,
// non-blocking sockets, epoll. See --help and docs/performance.md.
//
// Route identity. Route i of sender s has MAC 02:ss:ii:ii:ii:ii (i times an odd constant
// with --scatter), RD type 1
// <router-id of s>:<vni index + 1>, Ethernet tag 0 and (with --ip) an address made from
// (s, i). A received type-2 NLRI is parsed in full; its MAC gives the only slot it can
// belong to, and RD, tag, MAC, IP length and IP are then compared with that slot's own
// values. So the per-receiver set is an exact set with a perfect hash (a bitmap), and
// anything else that arrives goes into a std::unordered_set of the raw key bytes and is
// reported as "foreign".
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// ---------------------------------------------------------------- helpers
static double now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return double(ts.tv_sec) + double(ts.tv_nsec) * 1e-9;
}
static bool g_json = false;
static void say(const char* fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fflush(stderr);
}
[[noreturn]] static void die(const char* fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("evpn_load: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  exit(2);
}
static inline void w16(u8* p, u32 v) { p[0] = u8(v >> 8), p[1] = u8(v); }
static inline void w24(u8* p, u32 v) { p[0] = u8(v >> 16), w16(p + 1, v); }
static inline void w32(u8* p, u32 v) { w16(p, v >> 16), w16(p + 2, v); }
static inline u32 r16(const u8* p) { return p[0] << 8 | p[1]; }
static inline u32 r32(const u8* p) { return u32(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static std::string ip4(u32 a) {
  char b[20];
  snprintf(b, sizeof b, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
  return b;
}
static u32 parse_ip4(const std::string& s) {
  in_addr a;
  if (inet_pton(AF_INET, s.c_str(), &a) != 1) die("bad IPv4 address '%s'", s.c_str());
  return ntohl(a.s_addr);
}

// ---------------------------------------------------------------- options
struct Opt {
  u32 target = 0x7f000001;
  int port = 179;
  int P = 4, R = 2;
  u32 per = 2500;  // type-2 routes per sender
  u64 total = 0;   // alternative: total over all senders
  u32 as = 65000, peer_as = 65000, as_step = 0, rt_as = 0;
  u32 sender_base = 0x7f000101, receiver_base = 0x7f000201;
  int ip = 0;                 // 0: MAC only, 4, 6
  u32 vni = 10010, vnis = 1;  // first VNI, number of VNIs per PE
  u32 attr_sets = 1;          // distinct attribute sets per VNI and PE
  bool scatter = false;       // MACs spread over the 32-bit suffix instead of counting up
  bool arp_nd = false, mobility = false, ext_msg = false, imet = true;
  int hold = 180;
  double timeout = 300, connect_timeout = 60, warmup = 4, quiet = 0.7, pause = 0;
  std::string pause_after;
  u32 lat_n = 1000;
  std::vector<int> pids;
  std::string phases = "announce,withdraw,reannounce,latency,late,drop";
  std::string label;
} O;

// ---------------------------------------------------------------- /proc of the target
struct ProcSample {
  u64 rss_kb = 0, hwm_kb = 0;
  double cpu = 0;
};
static ProcSample proc_sample() {
  ProcSample r;
  static const double tick = double(sysconf(_SC_CLK_TCK));
  for (int pid : O.pids) {
    char path[64], buf[4096];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (FILE* f = fopen(path, "r")) {
      size_t n = fread(buf, 1, sizeof buf - 1, f);
      buf[n] = 0;
      fclose(f);
      if (char* p = strrchr(buf, ')')) {
        unsigned long ut = 0, st = 0;
        if (sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ut, &st) == 2)
          r.cpu += double(ut + st) / tick;
      }
    }
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (FILE* f = fopen(path, "r")) {
      unsigned long v;
      while (fgets(buf, sizeof buf, f)) {
        if (sscanf(buf, "VmHWM: %lu", &v) == 1) r.hwm_kb += v;
        if (sscanf(buf, "VmRSS: %lu", &v) == 1) r.rss_kb += v;
      }
      fclose(f);
    }
  }
  return r;
}
static void proc_reset_peak() {
  for (int pid : O.pids) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", pid);
    int fd = open(path, O_WRONLY);
    if (fd >= 0) {
      (void)!write(fd, "5", 1);
      close(fd);
    }
  }
}
static double self_cpu() {
  rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  return double(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
         double(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
}

// ---------------------------------------------------------------- the routes
static u32 g_stride;    // slots of one sender (table routes + latency routes)
static u32 g_groups;    // attribute groups per sender
static u32 g_block;     // routes per attribute group
static u32 g_nlri_len;  // whole NLRI, type and length bytes included
static u64 g_slots;     // all slots, IMETs included

// --scatter: an odd multiplier permutes the 32-bit MAC suffix, its inverse maps back
static u32 g_mul = 1, g_inv = 1;

static inline u32 group_of(u32 i) { return g_groups == 1 || i >= O.per ? 0 : i / g_block; }

struct Pe {
  u32 addr, as;
  std::vector<std::vector<u8>> attrs;  // per group: all attributes except MP_REACH
  std::vector<std::vector<u8>> imet_attrs;
  std::vector<std::array<u8, 8>> rd;  // per VNI index
};
static std::vector<Pe> g_pe;

static void make_ip(u8* p, u32 s, u32 i) {
  if (O.ip == 4) {
    w32(p, 0x0a000000u + s * g_stride + i);
  } else {
    static const u8 pre[8] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1};
    memcpy(p, pre, 8);
    w32(p + 8, s + 1);
    w32(p + 12, i + 1);
  }
}
// RFC 7432 7.2: RD 8, ESI 10, tag 4, MAC length 1, MAC 6, IP length 1, IP 0/4/16, label 3
static u8* put_type2(u8* p, u32 s, u32 i) {
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
static u8* put_type3(u8* p, u32 s, u32 v) {
  *p++ = 3;
  *p++ = 17;
  memcpy(p, g_pe[s].rd[v].data(), 8), p += 8;
  w32(p, 0), p += 4;
  *p++ = 32;
  w32(p, g_pe[s].addr);
  return p + 4;
}

static void make_pes() {
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

// ---------------------------------------------------------------- sessions
enum State { Idle, Connecting, OpenSent, OpenConfirm, Established, Closed };
struct TxGen {
  bool active = false, withdraw = false, eor = false;
  u32 next = 0, end = 0;
  u32 imet_next = 0, imet_end = 0;
};
struct RxSet {
  std::vector<u64> bits;
  u64 count = 0;
  std::vector<u32> per_sender;
  std::unordered_set<std::string> foreign;
  // counters of this phase
  u64 announced = 0, withdrawn = 0, dup = 0, ghost_wd = 0, updates = 0, bytes = 0;
  u64 bad_nh = 0, bad_label = 0, bad_attr = 0, eor = 0;
  double t_done = 0;
  void init() {
    bits.assign((g_slots + 63) / 64, 0);
    per_sender.assign(O.P, 0);
    count = 0;
  }
  void reset_counters() {
    announced = withdrawn = dup = ghost_wd = updates = bytes = bad_nh = bad_label = bad_attr = eor =
        0;
    t_done = 0;
  }
  bool has(u64 slot) const { return bits[slot >> 6] >> (slot & 63) & 1; }
};
struct Session {
  bool sender = false;
  int idx = 0, fd = -1;
  u32 addr = 0, as = 0;
  State st = Idle;
  bool want_out = false, dropped = false;
  u32 max_msg = 4096;
  u32 peer_hold = 180;
  std::vector<u8> rx;
  size_t rx_len = 0;
  std::vector<u8> tx;
  size_t tx_head = 0;
  TxGen gen;
  u32 held_from = 0, held_to = 0;  // what this sender has announced, for route refresh
  bool held_imet = false;
  double t_connect = 0, t_est = 0, last_rx = 0, last_tx = 0, retry_at = 0;
  u64 rx_msgs = 0, refresh = 0;
  std::string error;
  std::unique_ptr<RxSet> set;
  std::string name() const {
    return std::string(sender ? "sender " : "receiver ") + std::to_string(idx) + " (" + ip4(addr) +
           ")";
  }
};
static int g_ep = -1;
static std::vector<std::unique_ptr<Session>> g_all;
static std::vector<Session*> g_snd, g_rcv;
static double g_last_rx_any = 0, g_now = 0;
static std::string g_fail;
static bool g_started = false;  // all sessions are up and the warm-up is over
static u64 g_early_losses = 0;  // sessions that the target closed before that
static u64 g_total_tx = 0;
static u64 g_malformed = 0;

static void arm(Session& s) {
  bool want =
      s.st == Connecting || s.tx_head < s.tx.size() || (s.st == Established && s.gen.active);
  if (want == s.want_out) return;
  s.want_out = want;
  epoll_event ev{};
  ev.events = EPOLLIN | (want ? u32(EPOLLOUT) : 0u);
  ev.data.ptr = &s;
  epoll_ctl(g_ep, EPOLL_CTL_MOD, s.fd, &ev);
}
static void shut(Session& s, const std::string& why) {
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
static void start_connect(Session& s) {
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
static u8* tx_room(Session& s, size_t n) {
  size_t o = s.tx.size();
  s.tx.resize(o + n);
  return s.tx.data() + o;
}
static void tx_trim(Session& s, u8* end) { s.tx.resize(end - s.tx.data()); }
static u8* put_header(u8* p, int type) {
  memset(p, 0xff, 16);
  p[18] = u8(type);
  return p + 19;
}
static void send_open(Session& s) {
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
static void send_keepalive(Session& s) {
  u8* b = tx_room(s, 19);
  put_header(b, 4);
  w16(b + 16, 19);
}
static void send_notification(Session& s, int code, int sub) {  // best effort, at once
  u8 b[21];
  put_header(b, 3);
  w16(b + 16, 21);
  b[19] = u8(code), b[20] = u8(sub);
  if (s.fd >= 0 && s.tx_head >= s.tx.size()) (void)!send(s.fd, b, 21, MSG_NOSIGNAL | MSG_DONTWAIT);
}
static void put_eor(Session& s) {
  u8* b = tx_room(s, 29);
  u8* p = put_header(b, 2);
  w16(p, 0), w16(p + 2, 6), p += 4;
  *p++ = 0x80, *p++ = 15, *p++ = 3;
  w16(p, 25), p[2] = 70;
  w16(b + 16, 29);
}
// one UPDATE with as many NLRIs as fit; returns false when the generator is done
static bool put_update(Session& s) {
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
static void flush(Session& s) {
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

// ---------------------------------------------------------------- receiving
// returns slot, or -1 when the NLRI is none of ours
static inline int64_t slot_of(RxSet& set, const u8* b, u32 type, u32 len, u32& sender,
                              bool withdraw) {
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
      if (ok && O.ip) {
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
static void rx_nlris(Session& s, const u8* p, const u8* e, bool withdraw, u32 nh) {
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
static void rx_update(Session& s, const u8* p, u32 len) {
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
static void rx_open(Session& s, const u8* p, u32 len) {
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
static void restart_gen(Session& s) {  // route refresh: everything that is announced now
  s.refresh++;
  if (s.gen.active || s.held_to == s.held_from) return;
  s.gen = TxGen{};
  s.gen.active = true;
  s.gen.next = s.held_from, s.gen.end = s.held_to;
  s.gen.imet_end = s.held_imet ? O.vnis : 0;
  s.gen.eor = true;
}
static void rx_message(Session& s, int type, const u8* p, u32 len) {
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
static void on_readable(Session& s) {
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
static void timers() {
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
static std::function<void(Session&)> g_after_rx;
static void poll_once(int ms) {
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
static bool run_until(const std::function<bool()>& done, double timeout) {
  double end = now() + timeout;
  while (!done()) {
    if (!g_fail.empty()) return false;
    if (now() > end) return false;
    poll_once(50);
  }
  return true;
}
// until no UPDATE came on any session for `quiet` seconds and nothing is left to send
static void settle(double quiet, double timeout) {
  double t0 = now();
  run_until(
      [&] {
        for (auto* s : g_snd)
          if (s->fd >= 0 && (s->gen.active || s->tx_head < s->tx.size())) return false;
        return now() - std::max(g_last_rx_any, t0) > quiet;
      },
      timeout);
}

// ---------------------------------------------------------------- phases
struct Phase {
  std::string name;
  bool ok = false;
  double secs = 0, fastest = 0, sent = 0, drained = 0;
  u64 routes = 0;
  u64 announced = 0, withdrawn = 0, dup = 0, ghost = 0, updates = 0, bytes = 0, foreign = 0;
  u64 bad_nh = 0, bad_label = 0, bad_attr = 0;
  u64 min_have = 0;
  double cpu_done = 0, cpu_all = 0, tool_cpu = 0;
  u64 rss_before = 0, rss_done = 0, rss_after = 0, rss_peak = 0;
  double established = 0;                  // late joiner: seconds from connect
  std::vector<double> lat_first, lat_all;  // latency
};
static std::vector<Phase> g_res;
static ProcSample g_p0;
static double g_tool0;

static void begin_phase(Phase& ph, const char* name) {
  ph.name = name;
  for (auto* r : g_rcv) r->set->reset_counters();
  proc_reset_peak();
  g_p0 = proc_sample();
  g_tool0 = self_cpu();
  ph.rss_before = g_p0.rss_kb;
}
static void end_phase(Phase& ph, double t0, double slow_drain = 120) {
  ProcSample p = proc_sample();
  ph.cpu_done = p.cpu - g_p0.cpu;
  ph.rss_done = p.rss_kb;
  ph.tool_cpu = self_cpu() - g_tool0;
  if (g_fail.empty()) settle(O.quiet, slow_drain);
  ph.drained = g_last_rx_any > t0 ? g_last_rx_any - t0 : 0;
  p = proc_sample();
  ph.cpu_all = p.cpu - g_p0.cpu;
  ph.rss_after = p.rss_kb;
  ph.rss_peak = p.hwm_kb;
  u64 mn = ~0ull;
  for (auto* r : g_rcv) {
    RxSet& q = *r->set;
    ph.announced += q.announced, ph.withdrawn += q.withdrawn, ph.dup += q.dup,
        ph.ghost += q.ghost_wd;
    ph.updates += q.updates, ph.bytes += q.bytes, ph.foreign += q.foreign.size();
    ph.bad_nh += q.bad_nh, ph.bad_label += q.bad_label, ph.bad_attr += q.bad_attr;
    mn = std::min(mn, q.count);
  }
  ph.min_have = mn;
}
static void report(const Phase& p) {
  if (p.lat_first.size()) {
    auto pc = [](std::vector<double> v, double q) {
      std::sort(v.begin(), v.end());
      return v[std::min<size_t>(v.size() - 1, size_t(q * double(v.size())))] * 1e6;
    };
    say("%-11s %s n=%zu first receiver p50 %.0f us p99 %.0f us max %.0f us; all receivers p50 %.0f "
        "us p99 %.0f us; cpu %.2f s\n",
        p.name.c_str(), p.ok ? "ok" : "FAIL", p.lat_first.size(), pc(p.lat_first, .5),
        pc(p.lat_first, .99), pc(p.lat_first, 1), pc(p.lat_all, .5), pc(p.lat_all, .99), p.cpu_all);
    return;
  }
  say("%-11s %s %.3f s (fastest receiver %.3f, sent by %.3f, all drained %.3f) %.0f routes/s, "
      "updates %lu (%.1f NLRI each), dup %lu, cpu %.2f/%.2f s, tool cpu %.2f s, rss %lu->%lu peak "
      "%lu MiB%s%s\n",
      p.name.c_str(), p.ok ? "ok" : "FAIL", p.secs, p.fastest, p.sent, p.drained,
      p.secs > 0 ? double(p.routes) / p.secs : 0, p.updates,
      p.updates ? double(p.announced + p.withdrawn + p.dup) / double(p.updates) : 0, p.dup,
      p.cpu_done, p.cpu_all, p.tool_cpu, p.rss_before >> 10, p.rss_after >> 10, p.rss_peak >> 10,
      p.foreign || p.bad_nh || p.bad_label || p.bad_attr ? " ATTR/FOREIGN MISMATCH" : "",
      p.ok ? "" : (" have " + std::to_string(p.min_have)).c_str());
}

// all senders announce or withdraw their whole table
static bool bulk(const char* name, bool withdraw) {
  Phase ph;
  begin_phase(ph, name);
  u64 per_all = u64(O.per) + (O.imet ? O.vnis : 0);
  ph.routes = per_all * O.P;
  u64 want = withdraw ? 0 : ph.routes;
  for (auto* s : g_snd) {
    s->gen = TxGen{};
    s->gen.active = true;
    s->gen.withdraw = withdraw;
    s->gen.end = O.per;
    s->gen.imet_end = O.imet ? O.vnis : 0;
    s->gen.eor = !withdraw;
    s->held_from = 0, s->held_to = withdraw ? 0 : O.per, s->held_imet = !withdraw && O.imet;
  }
  size_t left = g_rcv.size();
  for (auto* r : g_rcv) r->set->t_done = 0;
  g_after_rx = [&](Session& s) {
    if (s.sender || !s.set) return;
    if (s.set->count == want && s.set->t_done == 0 && (s.set->announced || s.set->withdrawn))
      s.set->t_done = now(), left--;
  };
  double t0 = now();
  g_now = t0;
  for (auto* s : g_snd) flush(*s);
  double t_sent = 0;
  bool ok = run_until(
      [&] {
        if (t_sent == 0) {
          bool all = true;
          for (auto* s : g_snd) all &= !s->gen.active && s->tx_head >= s->tx.size();
          if (all) t_sent = now();
        }
        return left == 0;
      },
      O.timeout);
  g_after_rx = nullptr;
  double mx = 0, mn = 1e9;
  for (auto* r : g_rcv) {
    double d = r->set->t_done ? r->set->t_done - t0 : now() - t0;
    mx = std::max(mx, d), mn = std::min(mn, d);
  }
  ph.ok = ok;
  ph.secs = mx, ph.fastest = mn, ph.sent = t_sent ? t_sent - t0 : 0;
  end_phase(ph, t0);
  for (auto* r : g_rcv) ok &= r->set->count == want;
  ph.ok = ok;
  report(ph);
  g_res.push_back(ph);
  return ok;
}

static bool latency(bool withdraw) {
  Phase ph;
  begin_phase(ph, withdraw ? "lat_withdraw" : "latency");
  ph.routes = O.lat_n;
  bool ok = true;
  double start = now();
  Session& s = *g_snd[0];
  u32 k = 0;
  for (; k < O.lat_n && ok; k++) {
    u32 i = O.per + k;
    u64 slot = i;  // sender 0
    size_t left = g_rcv.size();
    std::vector<char> seen(g_rcv.size(), 0);
    double t_first = 0, t_all = 0;
    g_after_rx = [&](Session& r) {
      if (r.sender || !r.set || size_t(r.idx) >= seen.size() || seen[r.idx]) return;
      if (r.set->has(slot) == !withdraw) {
        double t = now();
        if (t_first == 0) t_first = t;
        seen[r.idx] = 1;
        if (--left == 0) t_all = t;
      }
    };
    s.gen = TxGen{};
    s.gen.active = true;
    s.gen.withdraw = withdraw;
    s.gen.next = i, s.gen.end = i + 1;
    double t0 = now();
    g_now = t0;
    flush(s);
    ok = run_until([&] { return left == 0; }, 30);
    if (ok) ph.lat_first.push_back(t_first - t0), ph.lat_all.push_back(t_all - t0);
    if (now() - start > O.timeout) {
      k++;
      break;
    }
  }
  g_after_rx = nullptr;
  ph.ok = ok && ph.lat_first.size() > 0;
  ph.secs = now() - start;
  end_phase(ph, start);
  report(ph);
  g_res.push_back(ph);
  if (!withdraw && ok && k < O.lat_n) O.lat_n = k;  // withdraw only what was announced
  return ok;
}

static bool late_joiner() {
  Phase ph;
  auto sp = std::make_unique<Session>();
  Session& s = *sp;
  s.idx = O.R;
  s.addr = O.receiver_base + O.R;
  s.as = O.as + (O.P + O.R) * O.as_step;
  s.set = std::make_unique<RxSet>();
  s.set->init();
  begin_phase(ph, "late");
  u64 want = g_rcv.empty() ? 0 : g_rcv[0]->set->count;
  ph.routes = want;
  g_all.push_back(std::move(sp));
  g_rcv.push_back(&s);
  g_after_rx = [&](Session& r) {
    if (&r == &s && s.set->count == want && s.set->t_done == 0) s.set->t_done = now();
  };
  double t0 = now();
  g_now = t0;
  start_connect(s);
  bool ok = run_until([&] { return s.set->t_done > 0; }, O.timeout);
  g_after_rx = nullptr;
  ph.secs = ph.fastest = (s.set->t_done ? s.set->t_done : now()) - t0;
  ph.established = s.t_est ? s.t_est - t0 : 0;
  ph.ok = ok;
  end_phase(ph, t0);
  report(ph);
  say("            established after %.3f s\n", ph.established);
  g_res.push_back(ph);
  g_rcv.pop_back();
  s.dropped = true;
  if (s.fd >= 0) {
    send_notification(s, 6, 3);
    shut(s, "done");
  }
  settle(O.quiet, 10);
  return ok;
}

static bool session_drop() {
  Phase ph;
  begin_phase(ph, "drop");
  Session& s = *g_snd[0];
  ph.routes = u64(O.per) + (O.imet ? O.vnis : 0);
  size_t left = g_rcv.size();
  g_after_rx = [&](Session& r) {
    if (r.sender || !r.set) return;
    if (r.set->per_sender[0] == 0 && r.set->t_done == 0) r.set->t_done = now(), left--;
  };
  s.dropped = true;
  double t0 = now();
  g_now = t0;
  shut(s, "dropped on purpose");
  bool ok = run_until([&] { return left == 0; }, O.timeout);
  g_after_rx = nullptr;
  double mx = 0, mn = 1e9;
  for (auto* r : g_rcv) {
    double d = r->set->t_done ? r->set->t_done - t0 : now() - t0;
    mx = std::max(mx, d), mn = std::min(mn, d);
  }
  ph.secs = mx, ph.fastest = mn;
  ph.ok = ok;
  end_phase(ph, t0);
  report(ph);
  g_res.push_back(ph);
  return ok;
}

// ---------------------------------------------------------------- output
static void print_json(u64 rss_start, u64 rss_est) {
  auto pc = [](std::vector<double> v, double q) {
    if (v.empty()) return 0.0;
    std::sort(v.begin(), v.end());
    return v[std::min<size_t>(v.size() - 1, size_t(q * double(v.size())))] * 1e6;
  };
  u64 peak = 0;
  for (auto& p : g_res) peak = std::max(peak, p.rss_peak);
  u64 refresh = 0;
  for (auto* s : g_snd) refresh += s->refresh;
  printf(
      "{\"label\":\"%s\",\"senders\":%d,\"receivers\":%d,\"routes_per_sender\":%u,\"type2_total\":%"
      "lu,\"ip\":%d,\"vnis\":%u,\"attr_sets\":%u,\"scatter\":%s,\"ebgp\":%s,\"nlri_len\":%u,"
      "\"rss_start_kb\":%lu,\"rss_established_kb\":%lu,\"rss_peak_kb\":%lu,\"malformed\":%lu,"
      "\"route_refresh_rx\":%lu,\"early_session_losses\":%lu,\"fail\":\"%s\",\"phases\":[",
      O.label.c_str(), O.P, O.R, O.per, u64(O.per) * O.P, O.ip, O.vnis, O.attr_sets,
      O.scatter ? "true" : "false", O.as != O.peer_as || O.as_step ? "true" : "false", g_nlri_len,
      rss_start, rss_est, peak, g_malformed, refresh, g_early_losses, g_fail.c_str());
  bool first = true;
  for (auto& p : g_res) {
    printf(
        "%s\n "
        "{\"name\":\"%s\",\"ok\":%s,\"secs\":%.6f,\"fastest_secs\":%.6f,\"sent_secs\":%.6f,"
        "\"drained_secs\":%.6f,\"routes\":%lu,\"routes_per_s\":%.0f,"
        "\"rx_announced\":%lu,\"rx_withdrawn\":%lu,\"rx_dup\":%lu,\"rx_ghost_withdraw\":%lu,\"rx_"
        "updates\":%lu,\"rx_bytes\":%lu,\"foreign\":%lu,"
        "\"bad_nexthop\":%lu,\"bad_label\":%lu,\"bad_attr\":%lu,\"min_have\":%lu,"
        "\"cpu_s\":%.2f,\"cpu_at_done_s\":%.2f,\"tool_cpu_s\":%.2f,\"rss_before_kb\":%lu,\"rss_at_"
        "done_kb\":%lu,\"rss_after_kb\":%lu,\"rss_peak_kb\":%lu",
        first ? "" : ",", p.name.c_str(), p.ok ? "true" : "false", p.secs, p.fastest, p.sent,
        p.drained, p.routes, p.secs > 0 ? double(p.routes) / p.secs : 0, p.announced, p.withdrawn,
        p.dup, p.ghost, p.updates, p.bytes, p.foreign, p.bad_nh, p.bad_label, p.bad_attr,
        p.min_have, p.cpu_all, p.cpu_done, p.tool_cpu, p.rss_before, p.rss_done, p.rss_after,
        p.rss_peak);
    if (p.name == "late")
      printf(",\"established_secs\":%.6f,\"secs_after_established\":%.6f", p.established,
             p.secs - p.established);
    if (p.lat_first.size())
      printf(
          ",\"n\":%zu,\"first_p50_us\":%.1f,\"first_p99_us\":%.1f,\"first_max_us\":%.1f,\"all_p50_"
          "us\":%.1f,\"all_p99_us\":%.1f,\"all_max_us\":%.1f",
          p.lat_first.size(), pc(p.lat_first, .5), pc(p.lat_first, .99), pc(p.lat_first, 1),
          pc(p.lat_all, .5), pc(p.lat_all, .99), pc(p.lat_all, 1));
    printf("}");
    first = false;
  }
  printf("\n]}\n");
}

static void usage() {
  puts(R"(evpn_load [options]
  --target A            address of the route reflector/server (127.0.0.1)
  --port N              its TCP port (179)
  --senders P           sender sessions (4)         --receivers R   receiver sessions (2)
  --routes N            type-2 routes per sender    --total N       ... in all (divided by P)
  --sender-base A       source address of sender 0; the others follow (127.0.1.1)
  --receiver-base A     source address of receiver 0; the others and the late joiner follow (127.0.2.1)
  --as N --peer-as N    own AS of the sessions and the target's (65000, 65000: iBGP)
  --as-step N           1: sessions have AS, AS+1, ... (eBGP route server clients; receivers
                        follow the senders)         --rt-as N       AS in the route target (peer AS)
  --ip 0|4|6            MAC only, MAC+IPv4, MAC+IPv6
  --vni N --vnis V      first VNI (10010), VNIs per sender (1; routes are split over them)
  --attr-sets A         distinct attribute sets per sender and VNI (1)
  --arp-nd --mobility   add the ARP/ND (RFC 9047) / MAC mobility extended community
  --scatter             MAC suffixes spread over 32 bits instead of counting up
  --no-imet             no type-3 routes            --ext-msg       offer BGP extended messages
  --hold S              hold time (180)
  --phases LIST         announce,withdraw,reannounce,latency,late,drop
  --latency-n N         single-route announcements (1000; withdrawn one at a time after that)
  --timeout S           per phase (300)             --connect-timeout S  (60)
  --warmup S            wait after the last session is up (4)
  --quiet S             a phase's tail ends when no UPDATE came for S seconds (0.7)
  --pause-after PHASE:S keep the sessions up for S seconds after PHASE (for outside checks)
  --pid N[,N]           target's processes: RSS and CPU are read from /proc
  --json                JSON on stdout (the readable report is on stderr either way)
  --label TEXT          copied into the JSON)");
}
int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  for (int k = 1; k < argc; k++) {
    std::string a = argv[k];
    auto val = [&]() -> std::string {
      if (k + 1 >= argc) die("%s needs a value", a.c_str());
      return argv[++k];
    };
    auto num = [&]() -> u64 {
      std::string v = val();
      char* e;
      u64 n = strtoull(v.c_str(), &e, 0);
      if (*e || v.empty()) die("%s: bad number '%s'", a.c_str(), v.c_str());
      return n;
    };
    if (a == "--target")
      O.target = parse_ip4(val());
    else if (a == "--port")
      O.port = int(num());
    else if (a == "--senders")
      O.P = int(num());
    else if (a == "--receivers")
      O.R = int(num());
    else if (a == "--routes")
      O.per = u32(num());
    else if (a == "--total")
      O.total = num();
    else if (a == "--sender-base")
      O.sender_base = parse_ip4(val());
    else if (a == "--receiver-base")
      O.receiver_base = parse_ip4(val());
    else if (a == "--as")
      O.as = u32(num());
    else if (a == "--peer-as")
      O.peer_as = u32(num());
    else if (a == "--as-step")
      O.as_step = u32(num());
    else if (a == "--rt-as")
      O.rt_as = u32(num());
    else if (a == "--ip")
      O.ip = int(num());
    else if (a == "--vni")
      O.vni = u32(num());
    else if (a == "--vnis")
      O.vnis = u32(num());
    else if (a == "--attr-sets")
      O.attr_sets = u32(num());
    else if (a == "--arp-nd")
      O.arp_nd = true;
    else if (a == "--mobility")
      O.mobility = true;
    else if (a == "--scatter")
      O.scatter = true;
    else if (a == "--no-imet")
      O.imet = false;
    else if (a == "--ext-msg")
      O.ext_msg = true;
    else if (a == "--hold")
      O.hold = int(num());
    else if (a == "--phases")
      O.phases = val();
    else if (a == "--latency-n")
      O.lat_n = u32(num());
    else if (a == "--timeout")
      O.timeout = double(num());
    else if (a == "--connect-timeout")
      O.connect_timeout = double(num());
    else if (a == "--warmup")
      O.warmup = atof(val().c_str());
    else if (a == "--quiet")
      O.quiet = atof(val().c_str());
    else if (a == "--pause-after") {
      std::string v = val();
      size_t c = v.find(':');
      if (c == std::string::npos) die("--pause-after PHASE:SECONDS");
      O.pause_after = v.substr(0, c), O.pause = atof(v.c_str() + c + 1);
    } else if (a == "--pid") {
      std::string v = val();
      for (char* p = strtok(v.data(), ","); p; p = strtok(nullptr, ",")) O.pids.push_back(atoi(p));
    } else if (a == "--json")
      g_json = true;
    else if (a == "--label")
      O.label = val();
    else if (a == "--help" || a == "-h")
      return usage(), 0;
    else
      die("unknown option %s (--help)", a.c_str());
  }
  if (O.P < 1 || O.P > 256 || O.R < 1 || O.R > 1000) die("1..256 senders and 1..1000 receivers");
  if (O.ip != 0 && O.ip != 4 && O.ip != 6) die("--ip 0, 4 or 6");
  if (!O.vnis || !O.attr_sets || O.vnis > 65535) die("--vnis and --attr-sets are 1 or more");
  if (O.total) O.per = u32((O.total + u64(O.P) - 1) / u64(O.P));
  if (!O.rt_as) O.rt_as = O.peer_as & 0xffff;
  if (O.scatter) {
    g_mul = 0x9e3779b1u;
    for (int k = 0; k < 6; k++) g_inv *= 2 - g_mul * g_inv;  // Newton, mod 2^32
  }
  g_groups = O.vnis * O.attr_sets;
  g_block = (O.per + g_groups - 1) / g_groups;
  if (!g_block) g_block = 1;
  g_stride = O.per + O.lat_n;
  g_nlri_len = 35 + (O.ip == 0 ? 0 : O.ip == 4 ? 4 : 16);
  g_slots = u64(O.P) * g_stride + u64(O.P) * O.vnis;
  make_pes();
  g_ep = epoll_create1(EPOLL_CLOEXEC);
  u64 rss_start = proc_sample().rss_kb;
  for (int k = 0; k < O.P + O.R; k++) {
    auto s = std::make_unique<Session>();
    s->sender = k < O.P;
    s->idx = s->sender ? k : k - O.P;
    s->addr = s->sender ? O.sender_base + s->idx : O.receiver_base + s->idx;
    s->as = O.as + k * O.as_step;
    if (!s->sender) s->set = std::make_unique<RxSet>(), s->set->init();
    (s->sender ? g_snd : g_rcv).push_back(s.get());
    g_all.push_back(std::move(s));
  }
  g_now = now();
  for (auto& s : g_all) start_connect(*s);
  // all up for the warm-up time, to be past the target's own start-up timers (FRR's coalesce-time)
  double up_since = 0;
  bool up = run_until(
      [&] {
        for (auto& s : g_all)
          if (s->st != Established) {
            up_since = 0;
            return false;
          }
        if (up_since == 0) up_since = now();
        return now() - up_since > O.warmup;
      },
      O.connect_timeout + O.warmup);
  g_started = true;
  if (!up) {
    int n = 0;
    for (auto& s : g_all) {
      if (s->st == Established)
        n++;
      else if (!s->error.empty())
        say("  %s: %s\n", s->name().c_str(), s->error.c_str());
    }
    die("only %d of %zu sessions came up", n, g_all.size());
  }
  u64 rss_est = proc_sample().rss_kb;
  say("%zu sessions up; %u type-2 routes from each of %d senders (NLRI %u bytes), %d receivers\n",
      g_all.size(), O.per, O.P, g_nlri_len, O.R);
  bool ok = true;
  std::string list = O.phases + ",";
  size_t pos = 0;
  while (ok && pos < list.size()) {
    size_t c = list.find(',', pos);
    std::string ph = list.substr(pos, c - pos);
    pos = c + 1;
    if (ph.empty()) continue;
    if (ph == "announce" || ph == "reannounce")
      ok = bulk(ph.c_str(), false);
    else if (ph == "withdraw")
      ok = bulk("withdraw", true);
    else if (ph == "latency")
      ok = latency(false) && latency(true);
    else if (ph == "late")
      ok = late_joiner();
    else if (ph == "drop")
      ok = session_drop();
    else
      die("unknown phase %s", ph.c_str());
    if (ok && ph == O.pause_after) {
      double e = now() + O.pause;
      say("paused %.0f s after %s\n", O.pause, ph.c_str());
      run_until([&] { return now() > e; }, O.pause + 5);
    }
  }
  if (!g_fail.empty()) say("evpn_load: FAILED: %s\n", g_fail.c_str());
  if (g_malformed) say("evpn_load: %lu malformed things received\n", g_malformed);
  if (g_json) print_json(rss_start, rss_est);
  for (auto& s : g_all)
    if (s->fd >= 0) {
      s->dropped = true;
      send_notification(*s, 6, 2);
      shut(*s, "end");
    }
  return ok && g_fail.empty() ? 0 : 1;
}
