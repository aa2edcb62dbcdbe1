// SPDX-License-Identifier: GPL-2.0-or-later
// pcap_responder IF [--n4 BASE4 N] [--n6 BASE6 N] [--mac-base MAC] [--immediate]
// The plain userspace way: libpcap capture, hash lookup, one pcap_inject per reply. Prints counters
// at SIGTERM.
#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

static pcap_t* P;
static uint64_t seen, answered, failed;
static std::unordered_map<uint32_t, uint64_t> N4;
static std::unordered_map<std::string, uint64_t> N6;
static void put_mac(uint8_t* p, uint64_t v) {
  for (int i = 5; i >= 0; --i) {
    p[i] = uint8_t(v);
    v >>= 8;
  }
}
static void on_term(int) { pcap_breakloop(P); }

static void on(u_char*, const pcap_pkthdr* h, const u_char* p) {
  ++seen;
  uint8_t b[86];
  if (h->caplen >= 42 && p[12] == 8 && p[13] == 6 && p[21] == 1) {
    uint32_t t;
    std::memcpy(&t, p + 38, 4);
    auto i = N4.find(t);
    if (i == N4.end()) return;
    std::memcpy(b, p + 6, 6);
    put_mac(b + 6, i->second);
    std::memcpy(b + 12, p + 12, 9);
    b[21] = 2;
    put_mac(b + 22, i->second);
    std::memcpy(b + 28, p + 38, 4);
    std::memcpy(b + 32, p + 22, 10);
    std::memset(b + 42, 0, 18);
    if (pcap_inject(P, b, 60) == 60)
      ++answered;
    else
      ++failed;
  } else if (h->caplen >= 86 && p[12] == 0x86 && p[13] == 0xdd && p[20] == 58 && p[54] == 135 &&
             p[78] == 1) {
    auto i = N6.find(std::string(reinterpret_cast<const char*>(p + 62), 16));
    if (i == N6.end()) return;
    std::memcpy(b, p, 86);
    std::memcpy(b, p + 6, 6);
    put_mac(b + 6, i->second);
    std::memcpy(b + 22, p + 62, 16);
    std::memcpy(b + 38, p + 22, 16);
    b[54] = 136;
    b[56] = b[57] = 0;
    b[58] = 0x60;
    b[78] = 2;
    put_mac(b + 80, i->second);
    uint32_t s = 32 + 58;
    for (int k = 22; k < 86; k += 2) s += uint32_t(b[k]) << 8 | b[k + 1];
    while (s >> 16) s = (s & 0xffff) + (s >> 16);
    uint16_t c = htons(uint16_t(~s));
    std::memcpy(b + 56, &c, 2);
    if (pcap_inject(P, b, 86) == 86)
      ++answered;
    else
      ++failed;
  }
}

int main(int c, char** v) {
  if (c < 2) return 2;
  char err[PCAP_ERRBUF_SIZE];
  bool imm = false;
  uint64_t mb = 0x021000000000ull;
  for (int i = 2; i < c; ++i) {
    std::string a = v[i];
    if (a == "--immediate")
      imm = true;
    else if (a == "--n4" && i + 2 < c) {
      uint32_t b;
      inet_pton(AF_INET, v[i + 1], &b);
      uint32_t n = uint32_t(std::atoi(v[i + 2]));
      i += 2;
      for (uint32_t k = 0; k < n; ++k) N4[htonl(ntohl(b) + k)] = mb + k;
    } else if (a == "--n6" && i + 2 < c) {
      in6_addr b;
      inet_pton(AF_INET6, v[i + 1], &b);
      uint32_t n = uint32_t(std::atoi(v[i + 2])), lo;
      i += 2;
      std::memcpy(&lo, b.s6_addr + 12, 4);
      for (uint32_t k = 0; k < n; ++k) {
        uint32_t l = htonl(ntohl(lo) + k);
        std::memcpy(b.s6_addr + 12, &l, 4);
        N6[std::string(reinterpret_cast<char*>(&b), 16)] = mb + k;
      }
    }
  }
  P = pcap_create(v[1], err);
  pcap_set_snaplen(P, 128);
  pcap_set_promisc(P, 1);
  pcap_set_timeout(P, 1);
  pcap_set_buffer_size(P, 16 << 20);
  pcap_set_immediate_mode(P, imm);
  if (pcap_activate(P) < 0) {
    std::fprintf(stderr, "%s\n", pcap_geterr(P));
    return 1;
  }
  bpf_program f;
  if (pcap_compile(P, &f, "(arp[6:2]=1) or (icmp6 and ip6[40]=135)", 1, PCAP_NETMASK_UNKNOWN) ||
      pcap_setfilter(P, &f)) {
    std::fprintf(stderr, "%s\n", pcap_geterr(P));
    return 1;
  }
  pcap_setdirection(P, PCAP_D_IN);
  signal(SIGTERM, on_term);
  signal(SIGINT, on_term);
  std::fprintf(stderr, "ready\n");
  pcap_loop(P, -1, on, nullptr);
  pcap_stat s{};
  pcap_stats(P, &s);
  std::printf("{\"seen\":%lu,\"answered\":%lu,\"failed\":%lu,\"ps_recv\":%u,\"ps_drop\":%u}\n",
              seen, answered, failed, s.ps_recv, s.ps_drop);
}
