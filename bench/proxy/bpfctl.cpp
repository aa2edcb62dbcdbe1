// SPDX-License-Identifier: GPL-2.0-or-later
// bpfctl - small BPF helper of the bench (libbpf 1.1; tcx through the raw syscall, as libbpf has it
// only from 1.3).
//
//   bpfctl load OBJ DIR                      load every program, pin programs and maps under DIR
//   (bpffs) bpfctl fill4 MAP BASE N MACBASE          neigh4: BASE+i -> MACBASE+i     (batched
//   updates) bpfctl fill6 MAP BASE N MACBASE          neigh6 bpfctl known MAP MACBASE N known MACs
//   bpfctl limit DIR IF in|out CLASS PPS BURST_FRAMES BPS BURST_BYTES
//   bpfctl stats DIR IF                      limiter counters of a port
// IF of limit, tcx and clsact may be a range: m1..200
//   bpfctl pcpu MAP                          per-cpu u64 array, summed
//   bpfctl tcx IF ingress|egress PROG [LINKPIN]   attach by link; without a pin stays until stdin
//   closes bpfctl clsact IF ingress|egress PROG     attach by netlink (libbpf), stays after exit
//   bpfctl xdp IF PROG|none [skb]            attach XDP (native unless skb)
//   bpfctl relink LINKPIN PROG | ring MAP SECS [POLL_US] | perf MAP SECS
//   bpfctl gen DIR TXIF SECS v4|v6|raw N SRCMAC SRCADDR [DSTMAC]   live-frame generator
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {
[[noreturn]] void die(const char* w) {
  std::fprintf(stderr, "bpfctl: %s: %s\n", w, std::strerror(errno));
  std::exit(1);
}
double mono() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}
struct mac8 {
  uint8_t m[6], flags, pad;
};
uint64_t parse_mac(const char* s) {
  unsigned b[6];
  if (std::sscanf(s, "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6) {
    errno = EINVAL;
    die(s);
  }
  uint64_t v = 0;
  for (unsigned x : b) v = v << 8 | x;
  return v;
}
void put_mac(uint8_t* p, uint64_t v) {
  for (int i = 5; i >= 0; --i) {
    p[i] = uint8_t(v);
    v >>= 8;
  }
}
int get(const std::string& p) {
  int fd = bpf_obj_get(p.c_str());
  if (fd < 0) die(p.c_str());
  return fd;
}
unsigned ifx(const char* n) {
  unsigned i = if_nametoindex(n);
  if (!i) die(n);
  return i;
}

int load(const char* obj, const std::string& dir) {
  bpf_object* o = bpf_object__open_file(obj, nullptr);
  if (!o) die("open");
  if (bpf_object__load(o)) die("load");
  bpf_program* p;
  bpf_object__for_each_program(
      p, o) if (bpf_program__pin(p, (dir + "/" + bpf_program__name(p)).c_str())) die("pin prog");
  bpf_map* m;
  bpf_object__for_each_map(m, o) {
    if (bpf_map__is_internal(m)) continue;
    if (bpf_map__pin(m, (dir + "/" + bpf_map__name(m)).c_str())) die("pin map");
  }
  return 0;
}
// "m1..200" = m1, m2, ... m200
std::vector<std::string> ports(const std::string& s) {
  auto p = s.find("..");
  if (p == std::string::npos) return {s};
  auto d = p;
  while (d > 0 && std::isdigit(static_cast<unsigned char>(s[d - 1]))) --d;
  std::vector<std::string> r;
  for (int i = std::stoi(s.substr(d, p - d)); i <= std::stoi(s.substr(p + 2)); ++i)
    r.push_back(s.substr(0, d) + std::to_string(i));
  return r;
}
template <class K, class V>
int fill(const char* map, const std::vector<K>& k, const std::vector<V>& v) {
  int fd = get(map);
  double t0 = mono();
  uint32_t done = 0, total = uint32_t(k.size());
  while (done < total) {
    uint32_t c = std::min<uint32_t>(total - done, 16384);
    if (bpf_map_update_batch(fd, &k[done], &v[done], &c, nullptr)) die("update_batch");
    done += c;
  }
  double dt = mono() - t0;
  std::printf("{\"cmd\":\"fill\",\"n\":%u,\"secs\":%.4f,\"per_s\":%.0f}\n", total, dt, total / dt);
  return 0;
}
struct lim {
  uint64_t pps_t, pps_tau, byte_q16, bps_tau;
};
struct cnt {
  uint64_t pass, drop;
};

uint32_t sum16(const uint8_t* p, size_t n, uint32_t s) {
  for (size_t i = 0; i + 1 < n; i += 2) s += uint32_t(p[i]) << 8 | p[i + 1];
  return s;
}

int gen(int c, char** v) {
  if (c < 9) return 2;
  const std::string dir = v[2];
  const double secs = std::atof(v[4]);
  const std::string kind = v[5];
  struct {
    uint32_t ifindex, n, v6, mode;
    uint64_t macbase;
  } cfg{ifx(v[3]), uint32_t(std::atoi(v[6])), kind == "v6", kind == "raw", 0};
  uint8_t b[128]{};
  uint64_t src = parse_mac(v[7]);
  unsigned len = 60;
  put_mac(b + 6, src);
  if (kind == "v4") {
    std::memset(b, 0xff, 6);
    static const uint8_t h[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
    std::memcpy(b + 12, h, 10);
    put_mac(b + 22, src);
    if (inet_pton(AF_INET, v[8], b + 28) != 1) die("addr");
  } else if (kind == "v6") {
    len = 86;
    b[0] = b[1] = 0x33;
    b[2] = 0xff;
    b[12] = 0x86;
    b[13] = 0xdd;
    static const uint8_t h[] = {0x60, 0, 0, 0, 0, 32, 58, 255};
    std::memcpy(b + 14, h, 8);
    if (inet_pton(AF_INET6, v[8], b + 22) != 1) die("addr");
    static const uint8_t sn[] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0};
    std::memcpy(b + 38, sn, 16);
    uint8_t* i = b + 54;
    i[0] = 135;
    if (inet_pton(AF_INET6, "2001:db8:1::", i + 8) != 1) die("addr");
    i[24] = i[25] = 1;
    put_mac(i + 26, src);
    uint32_t s = sum16(b + 22, 32, 32 + 58);
    s = sum16(i, 32, s);
    while (s >> 16) s = (s & 0xffff) + (s >> 16);
    uint16_t ck = htons(uint16_t(~s));
    std::memcpy(i + 2, &ck, 2);
  } else {
    put_mac(b, parse_mac(v[9]));
    b[12] = 0x88;
    b[13] = 0xb5;
  }
  uint32_t z = 0;
  if (bpf_map_update_elem(get(dir + "/gcfg"), &z, &cfg, 0)) die("gcfg");
  if (bpf_map_update_elem(get(dir + "/gtmpl"), &z, b, 0)) die("gtmpl");
  int prog = get(dir + "/xdp_gen");
  xdp_md ctx{};
  ctx.data_end = len;
  uint64_t sent = 0;
  double t0 = mono(), t1;
  do {
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = b, .data_size_in = len, .ctx_in = &ctx,
                .ctx_size_in = sizeof ctx, .repeat = 16384, .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
                .batch_size = 64);
    if (bpf_prog_test_run_opts(prog, &o)) die("test_run");
    sent += 16384;
    t1 = mono();
  } while (t1 - t0 < secs);
  std::printf("{\"cmd\":\"gen\",\"secs\":%.3f,\"sent\":%" PRIu64 ",\"sent_pps\":%.0f}\n", t1 - t0,
              sent, double(sent) / (t1 - t0));
  return 0;
}
uint64_t events, lost;
double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}
int ring(const char* map, double secs, int poll_us) {
  auto* r = ring_buffer__new(
      get(map),
      [](void*, void*, size_t) -> int {
        ++events;
        return 0;
      },
      nullptr, nullptr);
  if (!r) die("ring_buffer");
  double t0 = mono(), c0 = cpu_s();
  while (mono() - t0 < secs) {
    if (poll_us) {
      if (ring_buffer__consume(r) == 0) usleep(useconds_t(poll_us));
    } else
      ring_buffer__poll(r, 50);
  }
  std::printf("{\"cmd\":\"ring\",\"events\":%" PRIu64 ",\"cpu\":%.2f,\"us_each\":%.2f}\n", events,
              (cpu_s() - c0) / secs, events ? (cpu_s() - c0) * 1e6 / double(events) : 0);
  return 0;
}
int perf(const char* map, double secs) {
  auto* p = perf_buffer__new(
      get(map), 512, [](void*, int, void*, uint32_t) { ++events; },
      [](void*, int, unsigned long long n) { lost += n; }, nullptr, nullptr);
  if (!p) die("perf_buffer");
  double t0 = mono(), c0 = cpu_s();
  while (mono() - t0 < secs) perf_buffer__poll(p, 50);
  std::printf("{\"cmd\":\"perf\",\"events\":%" PRIu64 ",\"lost\":%" PRIu64
              ",\"cpu\":%.2f,\"us_each\":%.2f}\n",
              events, lost, (cpu_s() - c0) / secs,
              events ? (cpu_s() - c0) * 1e6 / double(events) : 0);
  return 0;
}
}  // namespace

int main(int c, char** v) {
  libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
  libbpf_set_print([](libbpf_print_level l, const char* f, va_list a) -> int {
    if (l != LIBBPF_WARN || std::strstr(f, "Kernel error message"))
      return 0;  // clsact that is there already
    return std::vfprintf(stderr, f, a);
  });
  if (c < 3) return 2;
  const std::string cmd = v[1];
  if (cmd == "load" && c == 4) return load(v[2], v[3]);
  if (cmd == "fill4" && c == 6) {
    uint32_t n = uint32_t(std::atoi(v[4])), a;
    if (inet_pton(AF_INET, v[3], &a) != 1) die("addr");
    uint64_t mb = parse_mac(v[5]);
    std::vector<uint32_t> k(n);
    std::vector<mac8> m(n);
    for (uint32_t i = 0; i < n; ++i) {
      k[i] = htonl(ntohl(a) + i);
      put_mac(m[i].m, mb + i);
    }
    return fill(v[2], k, m);
  }
  if (cmd == "fill6" && c == 6) {
    uint32_t n = uint32_t(std::atoi(v[4]));
    in6_addr a;
    if (inet_pton(AF_INET6, v[3], &a) != 1) die("addr");
    uint64_t mb = parse_mac(v[5]);
    uint32_t lo;
    std::memcpy(&lo, a.s6_addr + 12, 4);
    std::vector<in6_addr> k(n, a);
    std::vector<mac8> m(n);
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t l = htonl(ntohl(lo) + i);
      std::memcpy(k[i].s6_addr + 12, &l, 4);
      put_mac(m[i].m, mb + i);
    }
    return fill(v[2], k, m);
  }
  if (cmd == "known" && c == 5) {
    uint32_t n = uint32_t(std::atoi(v[4]));
    uint64_t mb = parse_mac(v[3]);
    std::vector<uint64_t> k(n);
    std::vector<uint32_t> m(n, 1);
    for (uint32_t i = 0; i < n; ++i) {
      uint8_t b[8]{};
      put_mac(b, mb + i);
      std::memcpy(&k[i], b, 8);
    }
    return fill(v[2], k, m);
  }
  if (cmd == "limit" && c == 10) {
    double pps = std::atof(v[6]), bf = std::atof(v[7]), bps = std::atof(v[8]), bb = std::atof(v[9]);
    lim l{};
    if (pps > 0) {
      l.pps_t = uint64_t(1e9 / pps);
      l.pps_tau = uint64_t((bf - 1) * 1e9 / pps);
    }
    if (bps > 0) {
      l.byte_q16 = uint64_t(8e9 / bps * 65536);
      l.bps_tau = uint64_t(bb * 8e9 / bps);
    }
    int fd = get(std::string(v[2]) + "/lcfg");
    for (auto& p : ports(v[3])) {
      uint32_t ix = (ifx(p.c_str()) & 1023) * 8 + (std::string(v[4]) == "out") * 4 +
                    uint32_t(std::atoi(v[5]));
      if (bpf_map_update_elem(fd, &ix, &l, 0)) die("lcfg");
    }
    return 0;
  }
  if (cmd == "stats" && c == 4) {
    int fd = get(std::string(v[2]) + "/lcnt"), n = libbpf_num_possible_cpus();
    std::vector<cnt> k((size_t(n)));
    std::printf("{\"if\":\"%s\"", v[3]);
    for (uint32_t j = 0; j < 8; ++j) {
      uint32_t ix = (ifx(v[3]) & 1023) * 8 + j;
      if (bpf_map_lookup_elem(fd, &ix, k.data())) die("lookup");
      cnt t{};
      for (auto& x : k) {
        t.pass += x.pass;
        t.drop += x.drop;
      }
      std::printf(",\"%s%u\":[%" PRIu64 ",%" PRIu64 "]", j < 4 ? "in" : "out", j & 3, t.pass,
                  t.drop);
    }
    std::printf("}\n");
    return 0;
  }
  if (cmd == "pcpu" && c == 3) {
    int fd = get(v[2]), n = libbpf_num_possible_cpus();
    std::vector<uint64_t> k((size_t(n)));
    std::printf("[");
    for (uint32_t i = 0; i < 8; ++i) {
      uint64_t t = 0;
      if (bpf_map_lookup_elem(fd, &i, k.data())) break;
      for (auto x : k) t += x;
      std::printf("%s%" PRIu64, i ? "," : "", t);
    }
    std::printf("]\n");
    return 0;
  }
  if (cmd == "tcx" && c >= 5) {
    auto ps = ports(v[2]);
    for (auto& p : ps) {
      struct {
        uint32_t prog_fd, target_ifindex, attach_type, flags, relative, pad;
        uint64_t rev;
      } a{};
      a.prog_fd = uint32_t(get(v[4]));
      a.target_ifindex = ifx(p.c_str());
      a.attach_type = std::string(v[3]) == "egress" ? 47 : 46;
      int fd = int(syscall(__NR_bpf, BPF_LINK_CREATE, &a, sizeof a));
      if (fd < 0) die("link_create tcx");
      if (c > 5 && bpf_obj_pin(fd, (v[5] + (ps.size() > 1 ? p : "")).c_str())) die("pin link");
    }
    if (c > 5) return 0;
    char ch;
    std::fprintf(stderr, "attached\n");
    while (read(0, &ch, 1) > 0) {
    }
    return 0;
  }
  if (cmd == "clsact" && c == 5) {
    for (auto& p : ports(v[2])) {
      LIBBPF_OPTS(bpf_tc_hook, h, .ifindex = int(ifx(p.c_str())),
                  .attach_point = std::string(v[3]) == "egress" ? BPF_TC_EGRESS : BPF_TC_INGRESS);
      int e = bpf_tc_hook_create(&h);
      if (e && e != -EEXIST) {
        errno = -e;
        die("clsact");
      }
      LIBBPF_OPTS(bpf_tc_opts, o, .prog_fd = get(v[4]), .flags = BPF_TC_F_REPLACE, .handle = 1,
                  .priority = 1);
      e = bpf_tc_attach(&h, &o);
      if (e) {
        errno = -e;
        die("tc_attach");
      }
    }
    return 0;
  }
  if (cmd == "xdp" && c >= 4) {
    int fd = std::string(v[3]) == "none" ? -1 : get(v[3]);
    int e = bpf_xdp_attach(int(ifx(v[2])), fd, c > 4 ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE,
                           nullptr);
    if (e) {
      errno = -e;
      die("xdp attach");
    }
    return 0;
  }
  if (cmd == "relink" && c == 4) {  // atomic swap of the program behind a pinned link
    LIBBPF_OPTS(bpf_link_update_opts, o);
    if (bpf_link_update(get(v[2]), get(v[3]), &o)) die("link_update");
    return 0;
  }
  if (cmd == "ring" && c >= 4) return ring(v[2], std::atof(v[3]), c > 4 ? std::atoi(v[4]) : 0);
  if (cmd == "perf" && c == 4) return perf(v[2], std::atof(v[3]));
  if (cmd == "gen") return gen(c, v);
  return 2;
}
