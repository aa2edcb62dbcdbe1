// SPDX-License-Identifier: GPL-2.0-or-later
// peerlan-frames: sends and counts frames on an interface of the network namespace it runs in.
//   send    one kind of frame, a number of times or at a rate for some seconds (a storm)
//   sweep   an ARP request or NS for each address of a range
//   ask     requests for known targets, and whether each gets exactly one right answer
//   count   what arrives, by class, until SIGTERM or for some seconds
//   probe   an ICMP echo to each target every millisecond: what was lost, and the longest gap
// The result is one JSON object on standard output.
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "frame_kinds.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
namespace json = boost::json;

volatile std::sig_atomic_t stop_asked = 0;
extern "C" void on_signal(int) { stop_asked = 1; }

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Fd {
  explicit Fd(int number) : fd(number) {}
  ~Fd() { ::close(fd); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int fd;
};

template <class T>
const sockaddr* generic(const T& address) {
  return static_cast<const sockaddr*>(static_cast<const void*>(&address));
}

int packet_socket(const std::string& interface, bool receive) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("AF_PACKET socket");
  const int on = 1, buffer = 64 << 20;
  if (receive) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    if (::setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) < 0)
      fail("PACKET_IGNORE_OUTGOING");
  } else {
    ::setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = receive ? htons(ETH_P_ALL) : 0;
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) fail("interface " + interface);
  if (::bind(fd, generic(address), sizeof address) < 0) fail("bind to " + interface);
  return fd;
}

// The interface's own MAC and its first address of each family that isn't link-local.
lab::Sender sender_of(const std::string& interface) {
  lab::Sender sender;
  const Fd s(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(s.fd, SIOCGIFHWADDR, &request) < 0) fail("MAC of " + interface);
  std::array<uint8_t, 6> mac{};
  std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  sender.mac = net::MacAddress(mac);
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) < 0) fail("addresses");
  for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr || interface != a->ifa_name) continue;
    if (a->ifa_addr->sa_family == AF_INET && sender.v4.is_unspecified()) {
      sockaddr_in in{};
      std::memcpy(&in, a->ifa_addr, sizeof in);
      sender.v4 = net::IpAddress::v4(ntohl(in.sin_addr.s_addr));
    } else if (a->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, a->ifa_addr, sizeof in);
      std::array<uint8_t, 16> octets{};
      std::memcpy(octets.data(), &in.sin6_addr, octets.size());
      const auto address = net::IpAddress::v6(octets);
      if (!address.is_link_local() && !sender.v6.is_v6()) sender.v6 = address;
    }
  }
  ::freeifaddrs(list);
  return sender;
}

net::IpAddress parse_ip(const std::string& text) {
  const auto ip = net::IpAddress::parse(text);
  if (!ip) throw std::runtime_error("not an IP address: " + text);
  return *ip;
}
net::MacAddress parse_mac(const std::string& text) {
  const auto mac = net::MacAddress::parse(text);
  if (!mac) throw std::runtime_error("not a MAC address: " + text);
  return *mac;
}

struct SenderOptions {
  std::string interface, mac, ip, ip6;
  [[nodiscard]] lab::Sender sender() const {
    lab::Sender s = sender_of(interface);
    if (!mac.empty()) s.mac = parse_mac(mac);
    if (!ip.empty()) s.v4 = parse_ip(ip);
    if (!ip6.empty()) s.v6 = parse_ip(ip6);
    if (!s.v6.is_v6()) s.v6 = parse_ip("::");
    return s;
  }
  void add_to(CLI::App& app) {
    app.add_option("interface", interface)->required();
    app.add_option("--mac", mac, "sender's MAC instead of the interface's");
    app.add_option("--ip", ip, "sender's IPv4 address instead of the interface's");
    app.add_option("--ip6", ip6, "sender's IPv6 address instead of the interface's");
  }
};

// Waits until `when` or for input on `fd` (-1: none). True: there is input.
bool wait_for(int fd, Clock::time_point when) {
  const auto left = std::max(nanoseconds(0), nanoseconds(when - Clock::now()));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                         .tv_nsec = left.count() % 1'000'000'000};
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return ::ppoll(&p, fd < 0 ? 0 : 1, &timeout, nullptr) > 0;
}

// Sends frames in bursts so that after t seconds rate * t of them have gone. Frames are taken in
// turn. Ends after `total` frames or at `end`; returns how many the kernel took.
uint64_t send_paced(int fd, const std::vector<net::Bytes>& frames, uint64_t total, double rate,
                    Clock::time_point end) {
  constexpr std::size_t kBatch = 64;
  const auto began = Clock::now();
  uint64_t sent = 0;
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> parts{};
  while (sent < total && stop_asked == 0 && Clock::now() < end) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - began).count();
    const auto due = std::min(total, static_cast<uint64_t>(elapsed * rate) + 1);
    if (sent >= due) {
      wait_for(-1,
               began + nanoseconds(static_cast<int64_t>(static_cast<double>(sent) / rate * 1e9)));
      continue;
    }
    const auto n = static_cast<unsigned>(std::min<uint64_t>(kBatch, due - sent));
    for (unsigned i = 0; i < n; ++i) {
      const net::Bytes& frame = frames[(sent + i) % frames.size()];
      // sendmmsg() takes a non-const pointer to what it only reads.
      parts[i] = {.iov_base = const_cast<uint8_t*>(frame.data()), .iov_len = frame.size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int done = ::sendmmsg(fd, messages.data(), n, 0);
    if (done > 0)
      sent += static_cast<uint64_t>(done);
    else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
      fail("send");
  }
  return sent;
}

void print(const json::object& object) { std::cout << json::serialize(object) << std::endl; }

// --- send, sweep
int send_frames(const SenderOptions& options, const std::vector<net::Bytes>& frames, uint64_t count,
                double rate, double seconds) {
  const Fd s(packet_socket(options.interface, false));
  const auto began = Clock::now();
  const uint64_t sent = seconds > 0
                            ? send_paced(s.fd, frames, UINT64_MAX, rate,
                                         began + nanoseconds(static_cast<int64_t>(seconds * 1e9)))
                            : send_paced(s.fd, frames, count, rate, Clock::time_point::max());
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  print({{"sent", sent}, {"seconds", took}, {"octets", frames.front().size()}});
  return 0;
}

net::IpAddress plus(const net::IpAddress& first, uint32_t n) {
  if (first.is_v4()) return net::IpAddress::v4(first.v4_value() + n);
  std::array<uint8_t, 16> octets{};
  std::ranges::copy(first.bytes(), octets.begin());
  for (std::size_t i = 16; i-- > 0 && n > 0;) {
    n += octets[i];
    octets[i] = static_cast<uint8_t>(n);
    n >>= 8;
  }
  return net::IpAddress::v6(octets);
}

net::Bytes request_for(const lab::Sender& sender, const net::IpAddress& target) {
  return target.is_v4() ? lab::arp_request(sender, target)
                        : lab::neighbor_solicitation(sender, target);
}

// --- ask
struct Question {
  lab::Expected expected;
  net::Bytes request;
  bool waiting = false;
  Clock::time_point deadline{};
};
struct Score {
  uint64_t sent = 0, answered = 0, wrong = 0, duplicate = 0, unanswered = 0;
  json::object faults;
};

void take_answer(std::span<const uint8_t> frame, const lab::Sender& sender,
                 std::vector<Question>& questions, Score& score) {
  const auto about = lab::answered_address(frame);
  if (!about) return;
  for (Question& q : questions) {
    if (q.expected.target != *about) continue;
    if (const auto fault = lab::fault_of_answer(frame, sender, q.expected)) {
      ++score.wrong;
      json::value& n = score.faults[json::string_view(fault->data(), fault->size())];
      n = n.is_null() ? 1 : n.as_int64() + 1;
    } else if (q.waiting) {
      ++score.answered;
      q.waiting = false;
    } else {
      ++score.duplicate;
    }
    return;
  }
}

void read_answers(int fd, const lab::Sender& sender, std::vector<Question>& questions,
                  Score& score) {
  std::array<uint8_t, 2048> buffer;
  for (;;) {
    const auto n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n <= 0) return;
    take_answer(std::span(buffer).first(static_cast<std::size_t>(n)), sender, questions, score);
  }
}

// One request at a time per target, so that an answer more than requests is known as such.
int ask(const SenderOptions& options, std::vector<Question> questions, uint64_t count, double rate,
        milliseconds timeout) {
  const lab::Sender sender = options.sender();
  for (Question& q : questions) q.request = request_for(sender, q.expected.target);
  const Fd in(packet_socket(options.interface, true)), out(packet_socket(options.interface, false));
  Score score;
  const auto began = Clock::now();
  for (uint64_t i = 0; i < count && stop_asked == 0; ++i) {
    Question& q = questions[i % questions.size()];
    const auto due = began + nanoseconds(static_cast<int64_t>(static_cast<double>(i) / rate * 1e9));
    for (auto now = Clock::now(); now < due || (q.waiting && now < q.deadline); now = Clock::now())
      if (wait_for(in.fd, now < due ? due : q.deadline))
        read_answers(in.fd, sender, questions, score);
    if (q.waiting) ++score.unanswered;
    if (::send(out.fd, q.request.data(), q.request.size(), 0) < 0) fail("send");
    ++score.sent;
    q.waiting = true;
    q.deadline = Clock::now() + timeout;
  }
  // The last answers, and duplicates of them.
  const auto end = Clock::now() + std::min(timeout, milliseconds(500));
  while (Clock::now() < end && stop_asked == 0)
    if (wait_for(in.fd, end)) read_answers(in.fd, sender, questions, score);
  for (const Question& q : questions) score.unanswered += q.waiting ? 1 : 0;
  print({{"sent", score.sent},
         {"answered", score.answered},
         {"wrong", score.wrong},
         {"duplicate", score.duplicate},
         {"unanswered", score.unanswered},
         {"faults", score.faults}});
  return score.answered == score.sent && score.wrong + score.duplicate == 0 ? 0 : 1;
}

Question question(const std::string& text, uint8_t na_flags) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw std::runtime_error("a target is ADDRESS=MAC, not " + text);
  Question q;
  q.expected = {parse_ip(text.substr(0, equals)), parse_mac(text.substr(equals + 1)), na_flags};
  return q;
}

// --- count
struct Tally {
  std::array<uint64_t, lab::kFrameClasses> frames{}, second{}, peak{};
  uint64_t octets = 0;
};

json::object by_class(const std::array<uint64_t, lab::kFrameClasses>& numbers) {
  json::object object;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != 0) object[lab::to_string(static_cast<lab::FrameClass>(i))] = numbers[i];
  return object;
}

int count(const std::string& interface, double seconds, bool vxlan, const std::string& ready_file) {
  const Fd s(packet_socket(interface, true));
  const net::MacAddress own = sender_of(interface).mac;
  constexpr unsigned kBatch = 64;
  constexpr std::size_t kFrame = 2048;
  std::vector<uint8_t> buffer(kBatch * kFrame);
  std::array<iovec, kBatch> parts{};
  std::array<mmsghdr, kBatch> messages{};
  for (unsigned i = 0; i < kBatch; ++i) {
    parts[i] = {.iov_base = buffer.data() + i * kFrame, .iov_len = kFrame};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  Tally tally;
  if (!ready_file.empty()) Fd(::creat(ready_file.c_str(), 0644));
  const auto began = Clock::now();
  auto next_second = began + std::chrono::seconds(1);
  const auto end = seconds > 0 ? began + nanoseconds(static_cast<int64_t>(seconds * 1e9))
                               : Clock::time_point::max();
  const auto close_second = [&] {
    for (std::size_t i = 0; i < tally.second.size(); ++i)
      tally.peak[i] = std::max(tally.peak[i], std::exchange(tally.second[i], 0));
  };
  bool last = false;
  while (!last) {
    const auto now = Clock::now();
    last = stop_asked != 0 || now >= end;  // and take what is queued by now
    while (now >= next_second) {
      close_second();
      next_second += std::chrono::seconds(1);
    }
    if (!last && !wait_for(s.fd, std::min({next_second, end, now + milliseconds(100)}))) continue;
    for (int n; (n = ::recvmmsg(s.fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr)) > 0;) {
      for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) {
        auto frame = std::span<const uint8_t>(buffer).subspan(
            i * kFrame, std::min<std::size_t>(messages[i].msg_len, kFrame));
        if (vxlan) {
          const auto inner = lab::inside_vxlan(frame);
          if (!inner) continue;
          frame = *inner;
        }
        const auto c = static_cast<std::size_t>(lab::classify(frame, own));
        ++tally.frames[c];
        ++tally.second[c];
        tally.octets += frame.size();
      }
      if (last || Clock::now() >= next_second) break;
    }
  }
  close_second();
  tpacket_stats stats{};
  socklen_t length = sizeof stats;
  ::getsockopt(s.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
  print({{"interface", interface},
         {"seconds", std::chrono::duration<double>(Clock::now() - began).count()},
         {"frames", by_class(tally.frames)},
         {"peak", by_class(tally.peak)},
         {"octets", tally.octets},
         {"missed", stats.tp_drops}});
  return 0;
}

// --- probe
struct Probed {
  net::IpAddress target;
  std::unique_ptr<Fd> out;  // its own: packets queued for a neighbor that is away hold up no other
  uint64_t sent = 0, received = 0, duplicate = 0;
  Clock::time_point last_answer{};
  nanoseconds longest_gap{0}, round_trips{0};
  std::vector<Clock::time_point> sent_at;  // by number; the epoch once it was answered
};

// A raw socket that only sends: what it would receive is filtered away.
std::unique_ptr<Fd> sending_socket(bool is_v4) {
  auto s = std::make_unique<Fd>(::socket(is_v4 ? AF_INET : AF_INET6,
                                         SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                         is_v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6}));
  if (s->fd < 0) fail("raw socket");
  sock_filter nothing{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program{.len = 1, .filter = &nothing};
  if (::setsockopt(s->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
    fail("SO_ATTACH_FILTER");
  return s;
}

sockaddr_storage socket_address(const net::IpAddress& ip, socklen_t& length) {
  sockaddr_storage storage{};
  if (ip.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(ip.v4_value());
    std::memcpy(&storage, &in, length = sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    std::ranges::copy(ip.bytes(), in.sin6_addr.s6_addr);
    std::memcpy(&storage, &in, length = sizeof in);
  }
  return storage;
}

net::Bytes echo(const net::IpAddress& target, uint16_t id, uint64_t number) {
  net::ByteWriter w;
  w.u32(target.is_v4() ? 0x08000000 : 0x80000000);
  w.u16(id);
  w.u16(static_cast<uint16_t>(number));
  w.u64(number);
  if (target.is_v4()) w.patch_u16(2, lab::checksum(w.view()));  // ICMPv6: the kernel fills it in
  return w.take();
}

void take_echo(std::span<const uint8_t> message, const net::IpAddress& from, uint16_t id,
               std::vector<Probed>& targets) {
  net::ByteReader r(message);
  const uint8_t type = r.u8();
  r.u24();
  if (r.u16() != id) return;
  r.u16();
  const uint64_t number = r.u64();
  if (!r.ok() || type != (from.is_v4() ? 0 : 129)) return;
  for (Probed& p : targets) {
    if (p.target != from || number >= p.sent_at.size()) continue;
    const auto sent = std::exchange(p.sent_at[number], Clock::time_point{});
    if (sent == Clock::time_point{}) {
      ++p.duplicate;
      return;
    }
    ++p.received;
    const auto now = Clock::now();
    p.round_trips += now - sent;
    p.longest_gap = std::max(p.longest_gap, nanoseconds(now - p.last_answer));
    p.last_answer = now;
  }
}

void read_echoes(int fd, bool v6, uint16_t id, std::vector<Probed>& targets) {
  std::array<uint8_t, 2048> buffer;
  for (;;) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto n = ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT,
                              static_cast<sockaddr*>(static_cast<void*>(&from)), &length);
    if (n < 0) return;
    auto message = std::span<const uint8_t>(buffer).first(static_cast<std::size_t>(n));
    if (v6) {
      sockaddr_in6 in{};
      std::memcpy(&in, &from, sizeof in);
      std::array<uint8_t, 16> octets{};
      std::ranges::copy(in.sin6_addr.s6_addr, octets.begin());
      take_echo(message, net::IpAddress::v6(octets), id, targets);
    } else if (message.size() > 20) {
      sockaddr_in in{};
      std::memcpy(&in, &from, sizeof in);
      take_echo(message.subspan(static_cast<std::size_t>(message[0] & 15) * 4),
                net::IpAddress::v4(ntohl(in.sin_addr.s_addr)), id, targets);
    }
  }
}

int probe(const std::vector<std::string>& texts, double seconds, nanoseconds interval,
          const std::string& ready_file) {
  const auto id = static_cast<uint16_t>(::getpid());
  std::vector<Probed> targets;
  for (const auto& text : texts) {
    Probed p;
    p.target = parse_ip(text);
    p.out = sending_socket(p.target.is_v4());
    targets.push_back(std::move(p));
  }
  const Fd v4(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  const Fd v6(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  if (v4.fd < 0 || v6.fd < 0) fail("raw socket");
  const int buffer = 16 << 20;
  icmp6_filter filter;
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
  ::setsockopt(v6.fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
  for (const int fd : {v4.fd, v6.fd})
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  const auto began = Clock::now();
  const auto end = seconds > 0 ? began + nanoseconds(static_cast<int64_t>(seconds * 1e9))
                               : Clock::time_point::max();
  for (Probed& p : targets) p.last_answer = began;
  if (!ready_file.empty()) Fd(::creat(ready_file.c_str(), 0644));
  const auto read_until = [&](Clock::time_point when) {
    for (;;) {
      read_echoes(v4.fd, false, id, targets);
      read_echoes(v6.fd, true, id, targets);
      const auto left = nanoseconds(when - Clock::now());
      if (left <= nanoseconds(0)) return;
      std::array<pollfd, 2> p{{{v4.fd, POLLIN, 0}, {v6.fd, POLLIN, 0}}};
      const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                             .tv_nsec = left.count() % 1'000'000'000};
      ::ppoll(p.data(), p.size(), &timeout, nullptr);
    }
  };
  auto next = began;
  for (uint64_t number = 0; stop_asked == 0 && Clock::now() < end; ++number) {
    for (Probed& p : targets) {
      socklen_t length = 0;
      const auto to = socket_address(p.target, length);
      const auto message = echo(p.target, id, number);
      p.sent_at.push_back(Clock::now());
      ::sendto(p.out->fd, message.data(), message.size(), 0, generic(to),
               length);  // an error is a probe that gets no answer
      ++p.sent;
    }
    // Late turns are left out: made up for in a burst, they would overrun the kernel's backlog
    // queue (net.core.netdev_max_backlog) and count as lost what no fabric lost.
    next = std::max(next + interval, Clock::now());
    read_until(next);
  }
  const auto stopped = Clock::now();
  read_until(stopped + milliseconds(500));
  json::array results;
  bool all = true;
  for (Probed& p : targets) {
    p.longest_gap = std::max(p.longest_gap, nanoseconds(stopped - p.last_answer));
    all = all && p.received == p.sent;
    results.push_back({{"target", net::to_string(p.target)},
                       {"sent", p.sent},
                       {"received", p.received},
                       {"lost", p.sent - p.received},
                       {"duplicate", p.duplicate},
                       {"round_trip_ms",
                        p.received == 0 ? json::value(nullptr)
                                        : json::value(static_cast<double>(p.round_trips.count()) /
                                                      1e6 / static_cast<double>(p.received))},
                       {"longest_gap_ms", static_cast<double>(p.longest_gap.count()) / 1e6}});
  }
  print({{"targets", results}});
  return all ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("Sends and counts frames in a lab");
  app.require_subcommand(1);
  SenderOptions from;
  std::string name, first, ready;
  uint64_t number = 1;
  double rate = 1000, seconds = 0;
  std::vector<std::string> targets;
  unsigned na_flags = 0xe0;
  uint32_t timeout = 1000, interval = 1000;
  bool vxlan = false;

  auto* send = app.add_subcommand("send", "one kind of frame");
  std::vector<std::string> names;
  for (const auto n : lab::frame_names()) names.emplace_back(n);
  send->add_option("kind", name)->required()->check(CLI::IsMember(names));
  auto* sweep = app.add_subcommand("sweep", "a request for each address of a range");
  auto* question_app = app.add_subcommand("ask", "requests for known targets; exit 1 unless right");
  for (auto* sub : {send, sweep, question_app}) {
    from.add_to(*sub);
    sub->add_option("--count", number, "frames, or addresses of the range");
    sub->add_option("--rate", rate, "frames a second")->check(CLI::PositiveNumber);
  }
  send->add_option("--seconds", seconds, "instead of --count");
  sweep->add_option("--seconds", seconds, "over and over for so long");
  sweep->add_option("--first", first, "first address")->required();
  question_app->add_option("--target", targets, "ADDRESS=MAC, several")->required();
  question_app->add_option("--na-flags", na_flags, "of an NA; default R, S and O: 0xe0");
  question_app->add_option("--timeout", timeout, "milliseconds for an answer");
  auto* count_app = app.add_subcommand("count", "what arrives, by class");
  count_app->add_option("interface", from.interface)->required();
  count_app->add_flag("--vxlan", vxlan, "only frames inside VXLAN packets");
  auto* probe_app = app.add_subcommand("probe", "ICMP echoes; exit 1 if one was lost");
  probe_app->add_option("targets", targets)->required();
  probe_app->add_option("--interval", interval, "microseconds");
  for (auto* sub : {count_app, probe_app}) {
    sub->add_option("--seconds", seconds, "0: until SIGTERM");
    sub->add_option("--ready", ready, "a file to make once it is listening");
  }
  CLI11_PARSE(app, argc, argv);

  if (*send)
    return send_frames(from, {*lab::named_frame(name, from.sender())}, number, rate, seconds);
  if (*sweep) {
    std::vector<net::Bytes> frames;
    const lab::Sender sender = from.sender();
    const net::IpAddress base = parse_ip(first);
    for (uint32_t i = 0; i < number; ++i) frames.push_back(request_for(sender, plus(base, i)));
    return send_frames(from, frames, number, rate, seconds);
  }
  if (*question_app) {
    std::vector<Question> questions;
    for (const auto& t : targets) questions.push_back(question(t, static_cast<uint8_t>(na_flags)));
    return ask(from, std::move(questions), number, rate, milliseconds(timeout));
  }
  if (*count_app) return count(from.interface, seconds, vxlan, ready);
  return probe(targets, seconds, std::chrono::microseconds(interval), ready);
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "peerlan-frames: " << error.what() << '\n';
    return 2;
  }
}
