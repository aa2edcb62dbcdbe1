// SPDX-License-Identifier: GPL-2.0-or-later
// evpn_load - BGP EVPN load generator and meter for route reflectors / route servers.
//
//   cmake --preset release -DPEERLAN_BENCH=ON && cmake --build build/release --target evpn_load
//
// P sender sessions (PEs) announce EVPN type-2 (and one type-3 per VNI) routes to one
// target speaker; R receiver sessions count distinct NLRIs that come back. One thread,
// non-blocking sockets, epoll. See --help and docs/performance.md.
#include "bench/evpn_load.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>

std::string ip4(u32 a) {
  char b[20];
  snprintf(b, sizeof b, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
  return b;
}
u32 parse_ip4(const std::string& s) {
  in_addr a;
  if (inet_pton(AF_INET, s.c_str(), &a) != 1) die("bad IPv4 address '%s'", s.c_str());
  return ntohl(a.s_addr);
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
