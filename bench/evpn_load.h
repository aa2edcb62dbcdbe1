// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of evpn_load: evpn_load.cpp has the options and main(), load_routes.cpp what is
// announced, load_session.cpp sessions and sending, load_receive.cpp what comes back,
// load_phases.cpp the measurements and load_report.cpp what is made of them.
#pragma once
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

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
inline double now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return double(ts.tv_sec) + double(ts.tv_nsec) * 1e-9;
}
inline bool g_json = false;
inline void say(const char* fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fflush(stderr);
}
[[noreturn]] inline void die(const char* fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("evpn_load: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  exit(2);
}
inline void w16(u8* p, u32 v) { p[0] = u8(v >> 8), p[1] = u8(v); }
inline void w24(u8* p, u32 v) { p[0] = u8(v >> 16), w16(p + 1, v); }
inline void w32(u8* p, u32 v) { w16(p, v >> 16), w16(p + 2, v); }
inline u32 r16(const u8* p) { return p[0] << 8 | p[1]; }
inline u32 r32(const u8* p) { return u32(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
std::string ip4(u32 a);
u32 parse_ip4(const std::string& s);

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
};
inline Opt O;

// ---------------------------------------------------------------- /proc of the target
struct ProcSample {
  u64 rss_kb = 0, hwm_kb = 0;
  double cpu = 0;  // seconds, user and system
};
ProcSample proc_sample();
void proc_reset_peak();
double self_cpu();

// ---------------------------------------------------------------- the routes
inline u32 g_stride;    // slots of one sender (table routes + latency routes)
inline u32 g_groups;    // attribute groups per sender
inline u32 g_block;     // routes per attribute group
inline u32 g_nlri_len;  // whole NLRI, type and length bytes included
inline u64 g_slots;     // all slots, IMETs included

// --scatter: an odd multiplier permutes the 32-bit MAC suffix, its inverse maps back
inline u32 g_mul = 1, g_inv = 1;

inline u32 group_of(u32 i) { return g_groups == 1 || i >= O.per ? 0 : i / g_block; }

struct Pe {
  u32 addr, as;
  std::vector<std::vector<u8>> attrs;  // per group: all attributes except MP_REACH
  std::vector<std::vector<u8>> imet_attrs;
  std::vector<std::array<u8, 8>> rd;  // per VNI index
};
inline std::vector<Pe> g_pe;

inline u32 ip4_of(u32 s, u32 i) { return 0x0a000000u + s * g_stride + i; }
inline void make_ip(u8* p, u32 s, u32 i) {
  if (O.ip == 4) {
    w32(p, ip4_of(s, i));
  } else {
    static const u8 pre[8] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1};
    memcpy(p, pre, 8);
    w32(p + 8, s + 1);
    w32(p + 12, i + 1);
  }
}
// RFC 7432 7.2: RD 8, ESI 10, tag 4, MAC length 1, MAC 6, IP length 1, IP 0/4/16, label 3
u8* put_type2(u8* p, u32 s, u32 i);
u8* put_type3(u8* p, u32 s, u32 v);
void make_pes();

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
inline int g_ep = -1;
inline std::vector<std::unique_ptr<Session>> g_all;
inline std::vector<Session*> g_snd, g_rcv;
inline double g_last_rx_any = 0, g_now = 0;
inline std::string g_fail;
inline bool g_started = false;  // all sessions are up and the warm-up is over
inline u64 g_early_losses = 0;  // sessions that the target closed before that
inline u64 g_total_tx = 0;
inline u64 g_malformed = 0;

inline std::function<void(Session&)> g_after_rx;

void arm(Session& s);
void shut(Session& s, const std::string& why);
void start_connect(Session& s);
void send_open(Session& s);
void send_keepalive(Session& s);
void send_notification(Session& s, int code, int sub);  // best effort, at once
void put_eor(Session& s);
// Sends what is queued and, while the generator has something, more.
void flush(Session& s);
void on_readable(Session& s);
void poll_once(int ms);
bool run_until(const std::function<bool()>& done, double timeout);
// Until no UPDATE came on any session for `quiet` seconds and nothing is left to send.
void settle(double quiet, double timeout);

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
inline std::vector<Phase> g_res;
bool bulk(const char* name, bool withdraw);  // all senders announce or withdraw their whole table
bool latency(bool withdraw);
bool late_joiner();
bool session_drop();

void report(const Phase& p);
void print_json(u64 rss_start, u64 rss_est);
