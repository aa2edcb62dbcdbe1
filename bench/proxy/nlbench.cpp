// SPDX-License-Identifier: GPL-2.0-or-later
// nlbench - raw rtnetlink bench: batched FDB/neighbour programming, dumps, bulk flush, FDB monitor
// with overrun recovery, FDB nexthop groups. No libnl, no iproute2: what the product's netlink
// layer can reach.
//
//   nlbench fdb-add IF N MACBASE DST [BATCH]     vxlan self + master extern_learn in ONE message
//   per MAC nlbench fdb-self IF N MACBASE DST [BATCH]    vxlan self only nlbench fdb-master IF N
//   MACBASE [BATCH]      master extern_learn only nlbench fdb-nh IF N MACBASE NHID [BATCH] vxlan
//   self with a nexthop group + master extern_learn nlbench fdb-del IF N MACBASE [BATCH] both, one
//   by one in batches nlbench neigh-add IF N BASE MACBASE [BATCH]  v4 or v6, NUD_NOARP |
//   extern_learn nlbench neigh-del IF N BASE [BATCH] nlbench dump IFMASTER time of an AF_BRIDGE
//   neighbour dump nlbench flush IF self|master [extern_learn]  RTM_DELNEIGH with NLM_F_BULK
//   nlbench nh-add ID VIA | nh-grp ID ID1[/ID2...] [replace] | nh-del ID
//   nlbench monitor SECS RCVBUF_KB [SLEEP_US_PER_MSG]   count RTM_NEWNEIGH/DELNEIGH of AF_BRIDGE,
//   ENOBUFS, re-dump
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <unordered_set>
#include <vector>

#ifndef NLM_F_BULK
#define NLM_F_BULK 0x200
#endif

namespace {
[[noreturn]] void die(const char* w) {
  std::fprintf(stderr, "nlbench: %s: %s\n", w, std::strerror(errno));
  std::exit(1);
}
double mono() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}
double cput() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}
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
unsigned ifx(const char* n) {
  unsigned i = if_nametoindex(n);
  if (!i) die(n);
  return i;
}

struct Msg {
  std::vector<uint8_t>& b;
  size_t at;
  Msg(std::vector<uint8_t>& buf, uint16_t type, uint16_t flags, uint32_t seq, const void* body,
      size_t n)
      : b(buf), at(buf.size()) {
    nlmsghdr h{0, type, flags, seq, 0};
    b.resize(at + NLMSG_HDRLEN + NLMSG_ALIGN(n));
    std::memcpy(&b[at], &h, sizeof h);
    std::memcpy(&b[at + NLMSG_HDRLEN], body, n);
  }
  void attr(uint16_t t, const void* p, size_t n) {
    size_t o = b.size();
    rtattr r{uint16_t(RTA_LENGTH(n)), t};
    b.resize(o + RTA_SPACE(n));
    std::memcpy(&b[o], &r, sizeof r);
    std::memcpy(&b[o + RTA_LENGTH(0)], p, n);
  }
  ~Msg() {
    auto l = uint32_t(b.size() - at);
    std::memcpy(&b[at], &l, 4);
  }
};

struct Nl {
  int fd;
  uint32_t seq = 1;
  uint64_t errors = 0;
  int first_err = 0;
  explicit Nl(int rcv = 4 << 20) {
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) die("socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcv, sizeof rcv);
    int one = 1, snd = 4 << 20;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &snd, sizeof snd);
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof one);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one);
  }
  // Sends what is in buf; the last message asks for an ACK; errors of the others come unasked.
  void flush(std::vector<uint8_t>& buf, uint32_t last) {
    if (buf.empty()) return;
    if (send(fd, buf.data(), buf.size(), 0) < 0) die("send");
    buf.clear();
    wait(last);
  }
  void wait(uint32_t last) {
    uint8_t r[65536];
    for (;;) {
      ssize_t n = recv(fd, r, sizeof r, 0);
      if (n < 0) die("recv");
      for (auto* h = reinterpret_cast<nlmsghdr*>(r); NLMSG_OK(h, size_t(n)); h = NLMSG_NEXT(h, n)) {
        if (h->nlmsg_type != NLMSG_ERROR) continue;
        auto* e = static_cast<nlmsgerr*>(NLMSG_DATA(h));
        if (e->error) {
          ++errors;
          if (!first_err) first_err = e->error;
        }
        if (h->nlmsg_seq == last) return;
      }
    }
  }
};

template <class F>
int batched(const char* name, uint32_t n, uint32_t batch, F&& add) {
  Nl nl;
  std::vector<uint8_t> buf;
  double t0 = mono(), c0 = cput();
  for (uint32_t i = 0; i < n; ++i) {
    bool last = (i + 1) % batch == 0 || i + 1 == n;
    uint32_t s = nl.seq++;
    add(buf, s, uint16_t(NLM_F_REQUEST | (last ? NLM_F_ACK : 0)), i);
    if (last) nl.flush(buf, s);
  }
  double dt = mono() - t0;
  std::printf(
      "{\"cmd\":\"%s\",\"n\":%u,\"batch\":%u,\"secs\":%.4f,\"per_s\":%.0f,\"cpu_us_each\":%.2f,"
      "\"errors\":%" PRIu64 ",\"first_err\":%d}\n",
      name, n, batch, dt, n / dt, (cput() - c0) * 1e6 / n, nl.errors, nl.first_err);
  return nl.errors != 0;
}

template <class F>
uint64_t dump(Nl& nl, F&& on) {
  ndmsg q{};
  q.ndm_family = AF_BRIDGE;
  std::vector<uint8_t> b;
  uint32_t s = nl.seq++;
  {
    Msg m(b, RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP, s, &q, sizeof q);
  }
  if (send(nl.fd, b.data(), b.size(), 0) < 0) die("send");
  static uint8_t r[1 << 18];
  uint64_t n = 0;
  for (;;) {
    ssize_t l = recv(nl.fd, r, sizeof r, 0);
    if (l < 0) {
      if (errno == ENOBUFS) continue;
      die("recv");
    }
    for (auto* h = reinterpret_cast<nlmsghdr*>(r); NLMSG_OK(h, size_t(l)); h = NLMSG_NEXT(h, l)) {
      if (h->nlmsg_type == NLMSG_DONE) return n;
      if (h->nlmsg_type == RTM_NEWNEIGH && h->nlmsg_seq == s) {
        ++n;
        on(h);
      }
    }
  }
}
uint64_t mac_of(nlmsghdr* h, int* ifindex) {
  auto* d = static_cast<ndmsg*>(NLMSG_DATA(h));
  *ifindex = d->ndm_ifindex;
  int l = int(h->nlmsg_len - NLMSG_LENGTH(sizeof *d));
  for (auto* a = reinterpret_cast<rtattr*>(reinterpret_cast<uint8_t*>(d) + NLMSG_ALIGN(sizeof *d));
       RTA_OK(a, l); a = RTA_NEXT(a, l))
    if (a->rta_type == NDA_LLADDR) {
      uint64_t v = 0;
      for (int i = 0; i < 6; ++i) v = v << 8 | static_cast<uint8_t*>(RTA_DATA(a))[i];
      return v;
    }
  return 0;
}

int monitor(double secs, int rcv_kb, unsigned sleep_us) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  int rcv = rcv_kb * 1024 / 2;  // the kernel doubles it
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcv, sizeof rcv);
  sockaddr_nl a{};
  a.nl_family = AF_NETLINK;
  a.nl_groups = RTMGRP_NEIGH;
  if (bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) < 0) die("bind");
  std::fprintf(stderr, "ready\n");
  std::unordered_set<uint64_t> macs;
  uint64_t adds = 0, dels = 0, overruns = 0, dumps = 0, from_dump = 0;
  double t0 = mono(), first = 0, last = 0, dump_secs = 0, c0 = cput();
  static uint8_t r[1 << 16];
  bool resync = false;
  while (mono() - t0 < secs) {
    pollfd p{fd, POLLIN, 0};
    int pr = poll(&p, 1, resync ? 20 : 100);
    if (pr == 0) {
      if (resync) {  // quiet again: one dump repairs the table
        Nl d;
        double s = mono();
        ++dumps;
        dump(d, [&](nlmsghdr* h) {
          int ix;
          if (macs.insert(uint64_t(mac_of(h, &ix))).second) ++from_dump;
        });
        dump_secs += mono() - s;
        resync = false;
      }
      continue;
    }
    ssize_t n = recv(fd, r, sizeof r, MSG_DONTWAIT);
    if (n < 0) {
      if (errno == ENOBUFS) {
        ++overruns;
        resync = true;
      }
      continue;
    }
    for (auto* h = reinterpret_cast<nlmsghdr*>(r); NLMSG_OK(h, size_t(n)); h = NLMSG_NEXT(h, n)) {
      auto* d = static_cast<ndmsg*>(NLMSG_DATA(h));
      if (d->ndm_family != AF_BRIDGE) continue;
      int ix;
      if (h->nlmsg_type == RTM_NEWNEIGH) {
        ++adds;
        macs.insert(mac_of(h, &ix));
        last = mono();
        if (first == 0) first = last;
      } else if (h->nlmsg_type == RTM_DELNEIGH) {
        ++dels;
        macs.erase(mac_of(h, &ix));
      }
      if (sleep_us) usleep(sleep_us);
    }
  }
  std::printf("{\"cmd\":\"monitor\",\"rcvbuf_kb\":%d,\"adds\":%" PRIu64 ",\"dels\":%" PRIu64
              ",\"enobufs\":%" PRIu64 ",\"dumps\":%" PRIu64 ",\"from_dump\":%" PRIu64
              ",\"table\":%zu,\"adds_per_s\":%.0f,\"dump_secs\":%.4f,\"cpu_us_each\":%.2f}\n",
              rcv_kb, adds, dels, overruns, dumps, from_dump, macs.size(),
              last > first ? double(adds) / (last - first) : 0, dump_secs,
              adds ? (cput() - c0) * 1e6 / double(adds) : 0);
  return 0;
}
}  // namespace

int main(int c, char** v) {
  if (c < 2) return 2;
  const std::string cmd = v[1];
  auto arg = [&](int i, int d) { return c > i ? std::atoi(v[i]) : d; };
  auto fdb = [&](uint16_t type, uint8_t flags, uint16_t nlf, const char* dst, uint32_t nh, int bi) {
    unsigned ix = ifx(v[2]);
    uint32_t n = uint32_t(std::atoi(v[3]));
    uint64_t mb = parse_mac(v[4]);
    in_addr d{};
    if (dst && inet_pton(AF_INET, dst, &d) != 1) die("dst");
    return batched(cmd.c_str(), n, uint32_t(arg(bi, 256)),
                   [&](std::vector<uint8_t>& b, uint32_t s, uint16_t f, uint32_t i) {
                     ndmsg q{};
                     q.ndm_family = AF_BRIDGE;
                     q.ndm_ifindex = int(ix);
                     q.ndm_state = NUD_NOARP | NUD_REACHABLE;
                     q.ndm_flags = flags;
                     Msg m(b, type, uint16_t(f | nlf), s, &q, sizeof q);
                     uint8_t mac[6];
                     put_mac(mac, mb + i);
                     m.attr(NDA_LLADDR, mac, 6);
                     if (dst) m.attr(NDA_DST, &d, 4);
                     if (nh) m.attr(NDA_NH_ID, &nh, 4);
                   });
  };
  const uint16_t add = NLM_F_CREATE | NLM_F_REPLACE;
  if (cmd == "fdb-add")
    return fdb(RTM_NEWNEIGH, NTF_SELF | NTF_MASTER | NTF_EXT_LEARNED, NLM_F_CREATE | NLM_F_APPEND,
               v[5], 0, 6);
  if (cmd == "fdb-self") return fdb(RTM_NEWNEIGH, NTF_SELF | NTF_EXT_LEARNED, add, v[5], 0, 6);
  if (cmd == "fdb-master")
    return fdb(RTM_NEWNEIGH, NTF_MASTER | NTF_EXT_LEARNED, add, nullptr, 0, 5);
  if (cmd == "fdb-nh")
    return fdb(RTM_NEWNEIGH, NTF_SELF | NTF_MASTER | NTF_EXT_LEARNED, add, nullptr,
               uint32_t(std::atoi(v[5])), 6);
  if (cmd == "fdb-del") return fdb(RTM_DELNEIGH, NTF_SELF | NTF_MASTER, 0, nullptr, 0, 5);
  if (cmd == "neigh-add" || cmd == "neigh-del") {
    unsigned ix = ifx(v[2]);
    uint32_t n = uint32_t(std::atoi(v[3]));
    const bool is_add = cmd == "neigh-add";
    uint64_t mb = is_add ? parse_mac(v[5]) : 0;
    bool v6 = std::strchr(v[4], ':');
    in6_addr a6{};
    in_addr a4{};
    if (v6 ? inet_pton(AF_INET6, v[4], &a6) != 1 : inet_pton(AF_INET, v[4], &a4) != 1) die("addr");
    return batched(cmd.c_str(), n, uint32_t(arg(is_add ? 6 : 5, 256)),
                   [&](std::vector<uint8_t>& b, uint32_t s, uint16_t f, uint32_t i) {
                     ndmsg q{};
                     q.ndm_family = v6 ? AF_INET6 : AF_INET;
                     q.ndm_ifindex = int(ix);
                     q.ndm_state = NUD_NOARP;
                     q.ndm_flags = NTF_EXT_LEARNED;
                     Msg m(b, is_add ? RTM_NEWNEIGH : RTM_DELNEIGH,
                           uint16_t(f | (is_add ? add : 0)), s, &q, sizeof q);
                     if (v6) {
                       in6_addr x = a6;
                       uint32_t lo;
                       std::memcpy(&lo, x.s6_addr + 12, 4);
                       lo = htonl(ntohl(lo) + i);
                       std::memcpy(x.s6_addr + 12, &lo, 4);
                       m.attr(NDA_DST, &x, 16);
                     } else {
                       uint32_t x = htonl(ntohl(a4.s_addr) + i);
                       m.attr(NDA_DST, &x, 4);
                     }
                     if (is_add) {
                       uint8_t mac[6];
                       put_mac(mac, mb + i);
                       m.attr(NDA_LLADDR, mac, 6);
                     }
                   });
  }
  if (cmd == "dump") {
    Nl nl;
    double t0 = mono();
    uint64_t n = dump(nl, [](nlmsghdr*) {});
    std::printf("{\"cmd\":\"dump\",\"n\":%" PRIu64 ",\"secs\":%.4f}\n", n, mono() - t0);
    return 0;
  }
  if (cmd == "flush" && c >= 4) {
    Nl nl;
    std::vector<uint8_t> b;
    ndmsg q{};
    q.ndm_family = AF_BRIDGE;
    q.ndm_ifindex = int(ifx(v[2]));
    q.ndm_flags = std::string(v[3]) == "self" ? NTF_SELF : NTF_MASTER;
    uint8_t fl = NTF_EXT_LEARNED;
    {
      Msg m(b, RTM_DELNEIGH, NLM_F_REQUEST | NLM_F_ACK | NLM_F_BULK, 1, &q, sizeof q);
      if (c > 4) {
        q.ndm_flags |= fl;
        std::memcpy(&b[NLMSG_HDRLEN], &q, sizeof q);
        m.attr(17 /* NDA_NDM_FLAGS_MASK */, &fl, 1);
      }
    }
    double t0 = mono();
    nl.flush(b, 1);
    std::printf("{\"cmd\":\"flush\",\"secs\":%.4f,\"err\":%d}\n", mono() - t0, nl.first_err);
    return nl.first_err != 0;
  }
  if (cmd == "nh-add" || cmd == "nh-grp" || cmd == "nh-del") {
    Nl nl;
    std::vector<uint8_t> b;
    nhmsg q{};
    uint32_t id = uint32_t(std::atoi(v[2]));
    bool rep = c > 4;
    if (cmd == "nh-add") q.nh_family = AF_INET;
    {
      Msg m(b, cmd == "nh-del" ? RTM_DELNEXTHOP : RTM_NEWNEXTHOP,
            uint16_t(NLM_F_REQUEST | NLM_F_ACK |
                     (cmd == "nh-del" ? 0 : NLM_F_CREATE | (rep ? NLM_F_REPLACE : 0))),
            1, &q, sizeof q);
      m.attr(NHA_ID, &id, 4);
      if (cmd == "nh-add") {
        in_addr a;
        inet_pton(AF_INET, v[3], &a);
        m.attr(NHA_GATEWAY, &a, 4);
        m.attr(NHA_FDB, nullptr, 0);
      }
      if (cmd == "nh-grp") {
        std::vector<nexthop_grp> g;
        for (char* t = std::strtok(v[3], "/"); t; t = std::strtok(nullptr, "/")) {
          nexthop_grp e{};
          e.id = uint32_t(std::atoi(t));
          g.push_back(e);
        }
        m.attr(NHA_GROUP, g.data(), g.size() * sizeof g[0]);
        m.attr(NHA_FDB, nullptr, 0);
      }
    }
    double t0 = mono();
    nl.flush(b, 1);
    std::printf("{\"cmd\":\"%s\",\"us\":%.1f,\"err\":%d}\n", cmd.c_str(), (mono() - t0) * 1e6,
                nl.first_err);
    return nl.first_err != 0;
  }
  if (cmd == "monitor" && c >= 4)
    return monitor(std::atof(v[2]), std::atoi(v[3]), unsigned(arg(4, 0)));
  return 2;
}
