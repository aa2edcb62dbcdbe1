// SPDX-License-Identifier: GPL-2.0-or-later
// arpblast - ARP/ND request generator with reply checker, BUM frame generator and counter.
//
//   arpblast req   --if IF --base ADDR --n N [...]   ARP (IPv4 base) or NS (IPv6 base) requests
//   arpblast send  --if IF --class bcast|mcast|unk|dst [...]   frames of one class, with
//                  EtherType 0x88b5 or (--ip 4|6) UDP to port 9; --burst N --every MS: N at once
//   arpblast count --if IF[,IF...] --dur S [...]     count frames of `send`, by class, id and
//   window
//
// Every command prints one line of JSON. All sockets are AF_PACKET: TX by sendmmsg on a
// qdisc-bypassing socket (linear skbs), RX by a TPACKET_V2 ring that is polled by time, never
// waited on, so that the receive side adds no wake-up to the path under test.
// tx_ns = CPU time of the sending thread per frame: on veth it holds the whole path, since the
// softirq that receives, answers and delivers the reply runs inside the send call; it does not move
// when others use the CPUs; tx_ns_trim: without the
// cheapest and the dearest tenth of pieces of some ms. Latency = kernel receive time
// stamp of the reply minus the clock just before the send call.

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace {

constexpr uint16_t kEtherBench = 0x88B5;  // local experimental
constexpr uint32_t kMagic = 0x41424c54;   // ABLT

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "arpblast: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
[[noreturn]] void usage(const char* what) {
  std::fprintf(stderr, "arpblast: %s\n", what);
  std::exit(2);
}

using Mac = std::array<uint8_t, 6>;

uint64_t now_ns(clockid_t c = CLOCK_REALTIME) {
  timespec t{};
  clock_gettime(c, &t);
  return uint64_t(t.tv_sec) * 1000000000ull + uint64_t(t.tv_nsec);
}

uint64_t mac_u64(const Mac& m) {
  uint64_t v = 0;
  for (auto b : m) v = v << 8 | b;
  return v;
}
Mac u64_mac(uint64_t v) {
  Mac m{};
  for (int i = 5; i >= 0; --i) {
    m[size_t(i)] = uint8_t(v);
    v >>= 8;
  }
  return m;
}
Mac parse_mac(const std::string& s) {
  unsigned b[6];
  if (std::sscanf(s.c_str(), "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6)
    usage("bad MAC");
  Mac m{};
  for (size_t i = 0; i < 6; ++i) m[i] = uint8_t(b[i]);
  return m;
}

struct Args {
  std::map<std::string, std::string> kv;
  Args(int argc, char** argv, int from) {
    for (int i = from; i < argc; ++i) {
      std::string k = argv[i];
      if (k.rfind("--", 0) != 0) usage(("unexpected " + k).c_str());
      k = k.substr(2);
      if (i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0)
        kv[k] = argv[++i];
      else
        kv[k] = "1";
    }
  }
  std::string str(const std::string& k, const std::string& d = "") const {
    auto i = kv.find(k);
    return i == kv.end() ? d : i->second;
  }
  double num(const std::string& k, double d) const {
    auto i = kv.find(k);
    return i == kv.end() ? d : std::strtod(i->second.c_str(), nullptr);
  }
  bool has(const std::string& k) const { return kv.count(k) != 0; }
};

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t s;
  CPU_ZERO(&s);
  CPU_SET(cpu, &s);
  sched_setaffinity(0, sizeof s, &s);
}

// System-wide CPU time in ticks, all cpus: {busy, softirq, steal, total}.
struct CpuStat {
  uint64_t user = 0, sys = 0, irq = 0, softirq = 0, steal = 0, idle = 0;
};
CpuStat cpu_stat() {
  CpuStat r;
  FILE* f = std::fopen("/proc/stat", "re");
  if (!f) return r;
  unsigned long long u, n, s, i, w, q, sq, st;
  if (std::fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &u, &n, &s, &i, &w, &q, &sq,
                  &st) == 8) {
    r.user = u + n;
    r.sys = s;
    r.irq = q;
    r.softirq = sq;
    r.steal = st;
    r.idle = i + w;
  }
  std::fclose(f);
  return r;
}
std::string cpu_json(const CpuStat& a, const CpuStat& b, double secs) {
  const double hz = double(sysconf(_SC_CLK_TCK));
  char buf[256];
  auto c = [&](uint64_t x, uint64_t y) { return double(y - x) / hz / secs; };
  std::snprintf(
      buf, sizeof buf,
      "\"cpu\":{\"busy\":%.2f,\"user\":%.2f,\"sys\":%.2f,\"softirq\":%.2f,\"steal\":%.2f}",
      c(a.user, b.user) + c(a.sys, b.sys) + c(a.irq, b.irq) + c(a.softirq, b.softirq),
      c(a.user, b.user), c(a.sys, b.sys), c(a.softirq + a.irq, b.softirq + b.irq),
      c(a.steal, b.steal));
  return buf;
}

Mac if_mac(int fd, const std::string& ifn) {
  ifreq r{};
  std::strncpy(r.ifr_name, ifn.c_str(), IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFHWADDR, &r) < 0) die("SIOCGIFHWADDR");
  Mac m{};
  std::memcpy(m.data(), r.ifr_hwaddr.sa_data, 6);
  return m;
}

int open_tx(const std::string& ifn, bool qdisc) {
  int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  sockaddr_ll sl{};
  sl.sll_family = AF_PACKET;
  sl.sll_ifindex = int(if_nametoindex(ifn.c_str()));
  if (!sl.sll_ifindex) die(ifn.c_str());
  if (bind(fd, reinterpret_cast<sockaddr*>(&sl), sizeof sl) < 0) die("bind");
  int one = 1, buf = 8 << 20;
  if (!qdisc) setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buf, sizeof buf);
  return fd;
}

struct RxRing {
  int fd = -1;
  uint8_t* base = nullptr;
  unsigned frames = 0, fsize = 0, cur = 0;
  void open(const std::string& ifn, const sock_fprog& flt, unsigned nframes, unsigned snap) {
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    int v = TPACKET_V2, one = 1;
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &v, sizeof v) < 0) die("PACKET_VERSION");
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &flt, sizeof flt) < 0) die("SO_ATTACH_FILTER");
    fsize = snap;
    tpacket_req rq{};
    rq.tp_block_size = 1 << 18;
    rq.tp_frame_size = fsize;
    rq.tp_block_nr = std::max(1u, nframes * fsize / rq.tp_block_size);
    rq.tp_frame_nr = rq.tp_block_nr * (rq.tp_block_size / fsize);
    if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &rq, sizeof rq) < 0) die("PACKET_RX_RING");
    frames = rq.tp_frame_nr;
    void* p = mmap(nullptr, size_t(rq.tp_block_size) * rq.tp_block_nr, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) die("mmap");
    base = static_cast<uint8_t*>(p);
    sockaddr_ll sl{};
    sl.sll_family = AF_PACKET;
    sl.sll_protocol = htons(ETH_P_ALL);
    sl.sll_ifindex = int(if_nametoindex(ifn.c_str()));
    if (!sl.sll_ifindex) die(ifn.c_str());
    if (bind(fd, reinterpret_cast<sockaddr*>(&sl), sizeof sl) < 0) die("bind");
  }
  template <class F>
  unsigned drain(F&& f) {
    unsigned n = 0;
    for (;;) {
      auto* h = reinterpret_cast<tpacket2_hdr*>(base + size_t(cur) * fsize);
      auto st = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
      if (!(st & TP_STATUS_USER)) break;
      f(reinterpret_cast<const uint8_t*>(h) + h->tp_mac, h->tp_snaplen, h->tp_len,
        uint64_t(h->tp_sec) * 1000000000ull + h->tp_nsec);
      __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
      cur = cur + 1 == frames ? 0 : cur + 1;
      if (++n >= frames) break;
    }
    return n;
  }
  unsigned drops() {
    tpacket_stats s{};
    socklen_t l = sizeof s;
    getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &s, &l);
    return s.tp_drops;
  }
};

uint32_t sum16(const uint8_t* p, size_t n, uint32_t s = 0) {
  for (size_t i = 0; i + 1 < n; i += 2) s += uint32_t(p[i]) << 8 | p[i + 1];
  if (n & 1) s += uint32_t(p[n - 1]) << 8;
  return s;
}
uint16_t fold(uint32_t s) {
  while (s >> 16) s = (s & 0xffff) + (s >> 16);
  return uint16_t(~s);
}
uint16_t icmp6_sum(const uint8_t* ip6, const uint8_t* icmp, size_t n) {
  uint32_t s = sum16(ip6 + 8, 32);
  s += uint32_t(n) + 58;
  return fold(sum16(icmp, n, s));
}

struct Pacer {
  uint64_t start, sent = 0;
  double pps;
  explicit Pacer(double p) : start(now_ns(CLOCK_MONOTONIC)), pps(p) {}
  void wait(unsigned add) {
    if (pps <= 0) return;
    uint64_t due = start + uint64_t(double(sent) * 1e9 / pps);
    sent += add;
    timespec t{time_t(due / 1000000000ull), long(due % 1000000000ull)};
    if (now_ns(CLOCK_MONOTONIC) + 2000 < due)
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  }
};

double thread_cpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}
double rusage_cpu() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         double(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

// ----------------------------------------------------------------------------------------------
// req
int cmd_req(const Args& a) {
  const std::string ifn = a.str("if");
  const std::string base = a.str("base", "10.1.0.0");
  const bool v6 = base.find(':') != std::string::npos;
  const uint32_t n = uint32_t(a.num("n", 1));
  const double pps = a.num("pps", 0), dur = a.num("dur", 3);
  const unsigned max_batch = unsigned(a.num("batch", 64));
  const unsigned batch = pps > 0 ? std::clamp(unsigned(pps / 20000), 1u, max_batch) : max_batch;
  const bool fixed = a.has("mac"), rnd = a.has("rand"), nocheck = a.has("no-mac-check");
  const uint64_t macb = mac_u64(parse_mac(a.str(fixed ? "mac" : "mac-base", "02:10:00:00:00:00")));
  int tx = open_tx(ifn, a.has("qdisc"));
  const Mac my = a.has("src-mac") ? parse_mac(a.str("src-mac")) : if_mac(tx, ifn);

  // RX first: ARP replies, or ICMPv6 136.
  sock_filter f4[] = {
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0806, 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 256),         BPF_STMT(BPF_RET | BPF_K, 0)};
  sock_filter f6[] = {
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 0, 5),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 58, 0, 3),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 136, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 256),         BPF_STMT(BPF_RET | BPF_K, 0)};
  sock_fprog p4{sizeof f4 / sizeof *f4, f4}, p6{sizeof f6 / sizeof *f6, f6};
  RxRing rx;
  rx.open(ifn, v6 ? p6 : p4, unsigned(a.num("ring", 131072)), 256);

  uint32_t base4 = 0;
  in6_addr base6{}, src6{};
  in_addr src4{};
  if (v6) {
    if (inet_pton(AF_INET6, base.c_str(), &base6) != 1) usage("bad --base");
    if (inet_pton(AF_INET6, a.str("src", "2001:db8:ffff::1").c_str(), &src6) != 1)
      usage("bad --src");
  } else {
    in_addr t{};
    if (inet_pton(AF_INET, base.c_str(), &t) != 1) usage("bad --base");
    base4 = ntohl(t.s_addr);
    if (inet_pton(AF_INET, a.str("src", "10.255.0.1").c_str(), &src4) != 1) usage("bad --src");
  }
  uint32_t lo6 = 0;
  std::memcpy(&lo6, base6.s6_addr + 12, 4);
  lo6 = ntohl(lo6);
  const bool to_unicast = a.has("dst");
  const Mac udst = to_unicast ? parse_mac(a.str("dst")) : Mac{};

  auto build = [&](uint8_t* b, uint32_t i) -> unsigned {
    if (!v6) {
      std::memset(b, 0xff, 6);
      if (to_unicast) std::memcpy(b, udst.data(), 6);
      std::memcpy(b + 6, my.data(), 6);
      static const uint8_t h[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
      std::memcpy(b + 12, h, 10);
      std::memcpy(b + 22, my.data(), 6);
      std::memcpy(b + 28, &src4, 4);
      std::memset(b + 32, 0, 6);
      uint32_t t = htonl(base4 + i);
      std::memcpy(b + 38, &t, 4);
      std::memset(b + 42, 0, 18);
      return 60;
    }
    uint32_t lo = htonl(lo6 + i);
    uint8_t tgt[16];
    std::memcpy(tgt, &base6, 12);
    std::memcpy(tgt + 12, &lo, 4);
    b[0] = 0x33;
    b[1] = 0x33;
    b[2] = 0xff;
    std::memcpy(b + 3, tgt + 13, 3);
    if (to_unicast) std::memcpy(b, udst.data(), 6);
    std::memcpy(b + 6, my.data(), 6);
    b[12] = 0x86;
    b[13] = 0xdd;
    static const uint8_t h[] = {0x60, 0, 0, 0, 0, 32, 58, 255};
    std::memcpy(b + 14, h, 8);
    std::memcpy(b + 22, &src6, 16);
    static const uint8_t sn[] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    if (to_unicast)
      std::memcpy(b + 38, tgt, 16);
    else {
      std::memcpy(b + 38, sn, 13);
      std::memcpy(b + 51, tgt + 13, 3);
    }
    uint8_t* c = b + 54;
    c[0] = 135;
    std::memset(c + 1, 0, 7);
    std::memcpy(c + 8, tgt, 16);
    c[24] = 1;
    c[25] = 1;
    std::memcpy(c + 26, my.data(), 6);
    uint16_t s = htons(icmp6_sum(b + 14, c, 32));
    std::memcpy(c + 2, &s, 2);
    return 86;
  };

  std::vector<std::atomic<uint64_t>> t_tx(n);
  std::vector<uint32_t> sent_n(n, 0), rcv_n(n, 0);
  std::atomic<bool> stop{false};
  uint64_t replies = 0, wrong_mac = 0, wrong_tgt = 0, wrong_sum = 0, wrong_dst = 0, r_flag = 0,
           s_flag = 0;
  std::vector<uint32_t> lat;
  lat.reserve(2000000);
  std::thread rxt([&] {
    pin(int(a.num("cpu-rx", 1)));
    prctl(PR_SET_TIMERSLACK, 1);
    auto on = [&](const uint8_t* p, unsigned cap, unsigned, uint64_t ts) {
      uint32_t i;
      Mac m{};
      if (!v6) {
        if (cap < 42) return;
        uint32_t t;
        std::memcpy(&t, p + 28, 4);
        i = ntohl(t) - base4;
        std::memcpy(m.data(), p + 22, 6);
        if (std::memcmp(p, my.data(), 6) || std::memcmp(p + 32, my.data(), 6) ||
            std::memcmp(p + 38, &src4, 4))
          ++wrong_dst;
      } else {
        if (cap < 86) return;
        const uint8_t* c = p + 54;
        uint32_t lo;
        std::memcpy(&lo, c + 20, 4);
        i = ntohl(lo) - lo6;
        if (c[4] & 0x80) ++r_flag;
        if (c[4] & 0x40) ++s_flag;
        if (c[24] != 2 || c[25] != 1) {
          ++wrong_mac;
        }
        std::memcpy(m.data(), c + 26, 6);
        if (std::memcmp(c + 8, &base6, 12)) i = n;
        if (std::memcmp(p, my.data(), 6) || std::memcmp(p + 38, &src6, 16)) ++wrong_dst;
        if (icmp6_sum(p + 14, c, 32) != 0) ++wrong_sum;
      }
      ++replies;
      if (i >= n) {
        ++wrong_tgt;
        return;
      }
      ++rcv_n[i];
      if (!nocheck && mac_u64(m) != (fixed ? macb : macb + i)) ++wrong_mac;
      if (lat.size() < lat.capacity()) {
        uint64_t t0 = t_tx[i].load(std::memory_order_relaxed);
        lat.push_back(ts > t0 ? uint32_t(std::min<uint64_t>(ts - t0, UINT32_MAX)) : 0);
      }
    };
    while (!stop.load(std::memory_order_relaxed)) {
      if (!rx.drain(on)) {
        timespec t{0, 200000};
        nanosleep(&t, nullptr);
      }
    }
    rx.drain(on);
  });

  pin(int(a.num("cpu-tx", 0)));
  prctl(PR_SET_TIMERSLACK, 1);
  std::vector<std::array<uint8_t, 96>> bufs(batch);
  std::vector<mmsghdr> mm(batch);
  std::vector<iovec> iov(batch);
  for (unsigned k = 0; k < batch; ++k) {
    iov[k] = {bufs[k].data(), 0};
    mm[k] = {};
    mm[k].msg_hdr.msg_iov = &iov[k];
    mm[k].msg_hdr.msg_iovlen = 1;
  }
  usleep(50000);
  CpuStat c0 = cpu_stat();
  double ru0 = rusage_cpu(), tc0 = thread_cpu();
  const uint64_t t_start = now_ns(CLOCK_MONOTONIC), t_end = t_start + uint64_t(dur * 1e9);
  const uint64_t limit = a.has("once") ? n : UINT64_MAX;
  uint64_t sent = 0, errs = 0;
  uint32_t next = 0;
  uint64_t lcg = 88172645463325252ull;
  Pacer pace(pps);
  while (sent < limit) {
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now >= t_end) break;
    pace.wait(batch);
    uint64_t ts = now_ns();
    unsigned bn = unsigned(std::min<uint64_t>(batch, limit - sent));
    for (unsigned k = 0; k < bn; ++k) {
      uint32_t i = next;
      if (rnd) {
        lcg ^= lcg << 13;
        lcg ^= lcg >> 7;
        lcg ^= lcg << 17;
        i = uint32_t(lcg % n);
      } else
        next = next + 1 == n ? 0 : next + 1;
      iov[k].iov_len = build(bufs[k].data(), i);
      ++sent_n[i];
      t_tx[i].store(ts, std::memory_order_relaxed);
    }
    unsigned off = 0;
    while (off < bn) {
      int r = sendmmsg(tx, mm.data() + off, bn - off, 0);
      if (r < 0) {
        if (errno == ENOBUFS || errno == EAGAIN) {
          ++errs;
          continue;
        }
        die("sendmmsg");
      }
      off += unsigned(r);
    }
    sent += bn;
  }
  double el = double(now_ns(CLOCK_MONOTONIC) - t_start) / 1e9;
  const double tx_cpu = thread_cpu() - tc0;
  CpuStat c1 = cpu_stat();
  double ru1 = rusage_cpu();
  usleep(useconds_t(a.num("linger", 0.3) * 1e6));
  stop = true;
  rxt.join();
  uint64_t dup = 0, missing = 0, answered = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (rcv_n[i] > sent_n[i])
      dup += rcv_n[i] - sent_n[i];
    else
      missing += sent_n[i] - rcv_n[i];
    if (rcv_n[i]) ++answered;
  }
  std::sort(lat.begin(), lat.end());
  auto pc = [&](double q) {
    return lat.empty()
               ? 0.0
               : double(lat[std::min(lat.size() - 1, size_t(q * double(lat.size())))]) / 1e3;
  };
  std::printf("{\"cmd\":\"req\",\"v6\":%d,\"n\":%u,\"set_pps\":%.0f,\"secs\":%.2f,\"sent\":%" PRIu64
              ",\"sent_pps\":%.0f,\"replies\":%" PRIu64 ",\"reply_pps\":%.0f,\"missing\":%" PRIu64
              ",\"dup\":%" PRIu64 ",\"targets_answered\":%" PRIu64 ",\"wrong_mac\":%" PRIu64
              ",\"wrong_target\":%" PRIu64 ",\"wrong_csum\":%" PRIu64 ",\"wrong_dst\":%" PRIu64
              ",\"na_r\":%" PRIu64 ",\"na_s\":%" PRIu64 ",\"tx_err\":%" PRIu64
              ",\"tx_ns\":%.0f,\"rx_ring_drops\":%u"
              ",\"lat_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f},"
              "\"self_cpu\":%.2f,%s}\n",
              v6, n, pps, el, sent, double(sent) / el, replies, double(replies) / el, missing, dup,
              answered, wrong_mac, wrong_tgt, wrong_sum, wrong_dst, r_flag, s_flag, errs,
              sent ? tx_cpu * 1e9 / double(sent) : 0, rx.drops(), pc(.5), pc(.9), pc(.99), pc(.999),
              pc(1), (ru1 - ru0) / el, cpu_json(c0, c1, el).c_str());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// send
struct BenchHdr {
  uint32_t magic;
  uint8_t id, cls;
  uint16_t pad;
  uint32_t seq;
} __attribute__((packed));

// IP and UDP headers to group or host, and where they end; none: right behind the Ethernet header.
unsigned put_headers(uint8_t* b, unsigned size, int ip) {
  b[12] = uint8_t(kEtherBench >> 8);
  b[13] = uint8_t(kEtherBench & 0xff);
  if (ip == 0) return 14;
  const unsigned header = ip == 4 ? 20 : 40, udp = size - 14 - header;
  uint8_t* p = b + 14;
  if (ip == 4) {
    const uint8_t start[20] = {0x45,
                               0,
                               uint8_t((size - 14) >> 8),
                               uint8_t(size - 14),
                               0,
                               1,
                               0,
                               0,
                               64,
                               17,
                               0,
                               0,
                               192,
                               0,
                               2,
                               1,
                               192,
                               0,
                               2,
                               2};
    std::memcpy(p, start, sizeof start);
    uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2) sum += uint32_t(p[i] << 8 | p[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    p[10] = uint8_t(sum >> 8);
    p[11] = uint8_t(sum);
  } else {
    p[0] = 0x60;
    p[4] = uint8_t(udp >> 8);
    p[5] = uint8_t(udp);
    p[6] = 17;
    p[7] = 64;
    p[8] = p[24] = 0x20;
    p[9] = p[25] = 1;
    p[23] = 1;
    p[39] = 2;
  }
  b[12] = ip == 4 ? 0x08 : 0x86;
  b[13] = ip == 4 ? 0x00 : 0xdd;
  p += header;
  p[1] = p[3] = 9;
  p[4] = uint8_t(udp >> 8);
  p[5] = uint8_t(udp);
  return 14 + header + 8;
}

int cmd_send(const Args& a) {
  const std::string ifn = a.str("if"), cls = a.str("class", "bcast");
  const unsigned size = unsigned(a.num("size", 60));
  const double pps = a.num("pps", 0), dur = a.num("dur", 3);
  const unsigned max_batch = unsigned(a.num("batch", 64));
  const unsigned batch = pps > 0 ? std::clamp(unsigned(pps / 5000), 1u, max_batch) : max_batch;
  const uint32_t flows = uint32_t(a.num("flows", 1)), sflows = uint32_t(a.num("src-flows", 1));
  if (size < 60 || size > 9014) usage("--size 60..9014");
  const int ip = int(a.num("ip", 0));
  if (ip == 6 && size < 74) usage("--size 74..9014 with --ip 6");
  const uint64_t burst = uint64_t(a.num("burst", 0)), every = uint64_t(a.num("every", 200) * 1e6);
  unsigned at = 14;
  int tx = open_tx(ifn, a.has("qdisc"));
  const Mac my = a.has("src-mac") ? parse_mac(a.str("src-mac")) : if_mac(tx, ifn);
  Mac dst{};
  uint8_t c = 0;
  if (cls == "bcast") {
    dst.fill(0xff);
    c = 0;
  } else if (cls == "mcast") {
    dst = parse_mac(a.str("dst", "01:00:5e:01:02:03"));
    c = 1;
  } else if (cls == "unk") {
    dst = parse_mac(a.str("dst", "02:ee:00:00:00:00"));
    c = 2;
  } else if (cls == "dst") {
    dst = parse_mac(a.str("dst"));
    c = 3;
  } else
    usage("--class bcast|mcast|unk|dst");
  pin(int(a.num("cpu-tx", 0)));
  prctl(PR_SET_TIMERSLACK, 1);
  std::vector<std::vector<uint8_t>> bufs(batch, std::vector<uint8_t>(size, 0));
  std::vector<mmsghdr> mm(batch);
  std::vector<iovec> iov(batch);
  for (unsigned k = 0; k < batch; ++k) {
    iov[k] = {bufs[k].data(), size};
    mm[k] = {};
    mm[k].msg_hdr.msg_iov = &iov[k];
    mm[k].msg_hdr.msg_iovlen = 1;
    uint8_t* b = bufs[k].data();
    std::memcpy(b, dst.data(), 6);
    std::memcpy(b + 6, my.data(), 6);
    at = put_headers(b, size, ip);
    BenchHdr h{htonl(kMagic), uint8_t(a.num("id", 0)), c, 0, 0};
    std::memcpy(b + at, &h, sizeof h);
  }
  const uint64_t db = mac_u64(dst), sb = mac_u64(my);
  const uint64_t limit = a.has("num") ? uint64_t(a.num("num", 0)) : UINT64_MAX;
  CpuStat c0 = cpu_stat();
  double ru0 = rusage_cpu(), tc0 = thread_cpu();
  const uint64_t t_start = now_ns(CLOCK_MONOTONIC), t_end = t_start + uint64_t(dur * 1e9);
  uint64_t sent = 0, errs = 0;
  Pacer pace(pps);
  std::vector<double> pieces;
  double piece_cpu = tc0;
  uint64_t piece_sent = 0, period = 0, in_period = 0, t_last = t_start;
  while (sent < limit) {
    const uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now >= t_end) break;
    if (sent - piece_sent >= 2048) {
      const double cpu = thread_cpu();
      pieces.push_back((cpu - piece_cpu) * 1e9 / double(sent - piece_sent));
      piece_cpu = cpu;
      piece_sent = sent;
    }
    unsigned bn = unsigned(std::min<uint64_t>(batch, limit - sent));
    if (burst > 0) {
      if (now - t_start >= (period + 1) * every) {
        ++period;
        in_period = 0;
      }
      if (in_period >= burst) {
        const uint64_t rest = t_start + (period + 1) * every - now;
        const timespec t{time_t(rest / 1000000000), long(rest % 1000000000)};
        nanosleep(&t, nullptr);
        continue;
      }
      bn = unsigned(std::min<uint64_t>(bn, burst - in_period));
      in_period += bn;
    } else {
      pace.wait(batch);
    }
    for (unsigned k = 0; k < bn; ++k) {
      uint8_t* b = bufs[k].data();
      uint32_t s = htonl(uint32_t(sent + k));
      std::memcpy(b + at + offsetof(BenchHdr, seq), &s, 4);
      if (flows > 1) {
        Mac m = u64_mac(db + (sent + k) % flows);
        std::memcpy(b, m.data(), 6);
      }
      if (sflows > 1) {
        Mac m = u64_mac(sb + (sent + k) % sflows);
        std::memcpy(b + 6, m.data(), 6);
      }
    }
    unsigned off = 0;
    while (off < bn) {
      int r = sendmmsg(tx, mm.data() + off, bn - off, 0);
      if (r < 0) {
        if (errno == ENOBUFS || errno == EAGAIN) {
          ++errs;
          continue;
        }
        die("sendmmsg");
      }
      off += unsigned(r);
    }
    sent += bn;
    t_last = now_ns(CLOCK_MONOTONIC);
  }
  double el = double(now_ns(CLOCK_MONOTONIC) - t_start) / 1e9;
  const double tx_cpu = thread_cpu() - tc0;
  CpuStat c1 = cpu_stat();
  if (pieces.empty()) pieces.push_back(sent ? tx_cpu * 1e9 / double(sent) : 0);
  std::sort(pieces.begin(), pieces.end());
  const auto tenth = std::ptrdiff_t(pieces.size() / 10);
  const double trimmed = std::accumulate(pieces.begin() + tenth, pieces.end() - tenth, 0.0) /
                         double(std::ptrdiff_t(pieces.size()) - 2 * tenth);
  std::printf(
      "{\"cmd\":\"send\",\"class\":\"%s\",\"size\":%u,\"set_pps\":%.0f,\"secs\":%.2f,\"sent\":"
      "%" PRIu64 ",\"sent_pps\":%.0f,\"tx_err\":%" PRIu64
      ",\"tx_ns\":%.0f,\"tx_ns_trim\":%.1f,\"span\":%.4f,"
      "\"self_cpu\":%.2f,%s}\n",
      cls.c_str(), size, pps, el, sent, double(sent) / el, errs,
      sent ? tx_cpu * 1e9 / double(sent) : 0, trimmed, double(t_last - t_start) / 1e9,
      (rusage_cpu() - ru0) / el, cpu_json(c0, c1, el).c_str());
  return 0;
}

// --------------------------------------------------------------------------------------------
// count
int cmd_count(const Args& a) {
  std::vector<std::string> ifs;
  std::string l = a.str("if");
  for (size_t p = 0; p <= l.size();) {
    size_t q = l.find(',', p);
    if (q == std::string::npos) q = l.size();
    if (q > p) ifs.push_back(l.substr(p, q - p));
    p = q + 1;
  }
  const double dur = a.num("dur", 3);
  const uint64_t win = uint64_t(a.num("win", 100)) * 1000000ull;
  sock_filter f[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kEtherBench, 2, 0),
                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 1, 0),
                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 0, 1),
                     BPF_STMT(BPF_RET | BPF_K, 96),
                     BPF_STMT(BPF_RET | BPF_K, 0)};
  sock_fprog fp{sizeof f / sizeof *f, f};
  struct Ctr {
    RxRing r;
    uint64_t n = 0, bytes = 0, by_cls[4]{}, by_id[16]{}, first = 0, last = 0;
    std::vector<uint32_t> w;
  };
  std::vector<Ctr> cs(ifs.size());
  for (size_t i = 0; i < ifs.size(); ++i)
    cs[i].r.open(ifs[i], fp, unsigned(a.num("ring", ifs.size() > 8 ? 8192 : 65536)), 128);
  pin(int(a.num("cpu-rx", 1)));
  prctl(PR_SET_TIMERSLACK, 1);
  std::fprintf(stderr, "ready\n");
  const uint64_t t0 = now_ns(CLOCK_MONOTONIC), te = t0 + uint64_t(dur * 1e9);
  while (now_ns(CLOCK_MONOTONIC) < te) {
    unsigned got = 0;
    for (auto& c : cs)
      got += c.r.drain([&](const uint8_t* p, unsigned cap, unsigned len, uint64_t ts) {
        BenchHdr h;
        const unsigned start = p[12] == 0x88 ? 14 : p[12] == 0x08 ? 42 : 62;
        if (cap < start + sizeof h) return;
        std::memcpy(&h, p + start, sizeof h);
        if (ntohl(h.magic) != kMagic) return;
        ++c.n;
        c.bytes += len;
        ++c.by_cls[h.cls & 3];
        ++c.by_id[h.id & 15];
        if (!c.first) c.first = ts;
        c.last = ts;
        size_t k = ts >= c.first ? size_t((ts - c.first) / win) : 0;
        if (k < 100000) {
          if (c.w.size() <= k) c.w.resize(k + 1);
          ++c.w[k];
        }
      });
    if (!got) {
      timespec t{0, 500000};
      nanosleep(&t, nullptr);
    }
  }
  std::printf("{\"cmd\":\"count\",\"win_ms\":%.0f,\"ifs\":[", double(win) / 1e6);
  for (size_t i = 0; i < cs.size(); ++i) {
    auto& c = cs[i];
    double span = double(c.last - c.first) / 1e9;
    std::vector<uint32_t> w = c.w;
    uint32_t first_w = w.empty() ? 0 : w[0];
    if (w.size() > 2) {
      w.erase(w.begin());
      w.pop_back();
    }
    std::sort(w.begin(), w.end());
    std::printf("%s{\"if\":\"%s\",\"n\":%" PRIu64 ",\"bytes\":%" PRIu64
                ",\"span\":%.3f,\"pps\":%.1f,\"l2_kbps\":%.1f,\"cls\":{\"b\":%" PRIu64
                ",\"m\":%" PRIu64 ",\"u\":%" PRIu64 ",\"dst\":%" PRIu64 "},\"id\":[%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                "],\"win\":{\"first\":%u,\"min\":%u,\"med\":%u,\"max\":%u},\"ring_drops\":%u}",
                i ? "," : "", ifs[i].c_str(), c.n, c.bytes, span, span > 0 ? double(c.n) / span : 0,
                span > 0 ? double(c.bytes) * 8 / span / 1e3 : 0, c.by_cls[0], c.by_cls[1],
                c.by_cls[2], c.by_cls[3], c.by_id[0], c.by_id[1], c.by_id[2], c.by_id[3], first_w,
                w.empty() ? 0 : w.front(), w.empty() ? 0 : w[w.size() / 2],
                w.empty() ? 0 : w.back(), c.r.drops());
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) usage("req|send|count");
  const std::string c = argv[1];
  Args a(argc, argv, 2);
  if (c == "req") return cmd_req(a);
  if (c == "send") return cmd_send(a);
  if (c == "count") return cmd_count(a);
  usage("req|send|count");
}
