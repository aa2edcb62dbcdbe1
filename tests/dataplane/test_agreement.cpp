// SPDX-License-Identifier: GPL-2.0-or-later
// The eBPF programs and the responder decide alike: the same bindings and settings, the same frame,
// by BPF_PROG_TEST_RUN and by Responder::member_frame(). What the kernel answers is what the
// responder would have answered, to the byte; what the kernel refuses is what it would have
// refused, for the same reason; the rest the kernel leaves to it. Frames: every length, every
// option and option length, every flag, and seeded random ones; PEERLAN_AGREEMENT_FRAMES says how
// many.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <linux/pkt_cls.h>

#include <cstdlib>
#include <random>

#include "dataplane/bpf/abi.h"
#include "proxyarp/responder.h"
#include "tests/dataplane/namespace.h"

using namespace dataplane;
using namespace frames;
using lab::Bytes;
using proxyarp::Verdict;

namespace {

const net::MacAddress kCarol = mac("02:00:00:00:00:03"), kDave = mac("02:00:00:00:00:04");
const net::MacAddress kFar = mac("02:00:00:00:00:09");
constexpr std::size_t kEthernet = 14, kPlainNs = 86;
const net::TimePoint kNow = net::TimePoint{} + std::chrono::hours(1);

struct KernelSays {
  int action = -1;
  Bytes frame;                // as it left
  std::string counter;        // "class reason"
  bool taken = false;         // a punt that is no copy
  bool passed_by_xdp = true;  // else: what follows is XDP's
};

class Agreement : public lab::BpfTest {
 protected:
  void SetUp() override {
    BpfTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    make_bridge();
    auto with = options();
    with.punts_per_second = 1'000'000'000;
    reopen(with);
    port = lab::index_of("m1");
    other = lab::index_of("m2");
    auto config = port_config(port);
    config.policy.punts = {};
    config.policy.answers = {};
    config.xdp = true;
    set(config);
    ingress = program_of("_in");
    xdp = program_of("_xdp");
    ASSERT_GE(ingress, 0);
    settings.profile = proxyarp::Profile::Static;
    settings.prefixes = {*net::IpPrefix::parse("192.0.2.0/24"),
                         *net::IpPrefix::parse("2001:db8:1::/64")};
    const auto fixed = [&](const char* address, std::vector<net::MacAddress> macs,
                           const char* where) {
      settings.bindings.push_back({.ip = ip(address),
                                   .macs = std::move(macs),
                                   .port = where,
                                   .member_as = net::AsNumber(64500),
                                   .member_name = "member"});
    };
    fixed("192.0.2.1", {kAlice}, "m1");
    fixed("2001:db8:1::1", {kAlice}, "m1");
    fixed("192.0.2.2", {kBob}, "m2");
    fixed("2001:db8:1::2", {kBob}, "m2");
    fixed("192.0.2.3", {kCarol}, "m1");
    fixed("2001:db8:1::3", {kCarol}, "m1");
    fixed("192.0.2.4", {kDave}, "m2");  // not seen so far
    auto made = responder();
    for (const auto& entry : made.fast_entries()) {
      const auto done = fast_path->set_binding({.vni = net::Vni(100),
                                                .ip = entry.ip,
                                                .mac = entry.mac,
                                                .port = entry.port,
                                                .router = entry.flags.router,
                                                .override_flag = entry.flags.override_flag});
      ASSERT_TRUE(done);
    }
    ASSERT_GE(fast_path->bindings().size(), 8u) << "nothing for the kernel to answer";
  }
  void TearDown() override {
    for (int fd : {ingress, xdp})
      if (fd >= 0) close(fd);
    BpfTest::TearDown();
  }
  [[nodiscard]] int program_of(const char* suffix) const {
    const auto pin = lab::pin_directory() + "/links/" + std::to_string(port.value) + suffix;
    const int link = bpf_obj_get(pin.c_str());
    if (link < 0) return -1;
    bpf_link_info info{};
    uint32_t size = sizeof info;
    const bool found = bpf_obj_get_info_by_fd(link, &info, &size) == 0;
    close(link);
    return found ? bpf_prog_get_fd_by_id(info.prog_id) : -1;
  }
  [[nodiscard]] proxyarp::Responder responder() const {
    proxyarp::Responder out(settings, 7);
    std::vector<proxyarp::Action> actions;
    const auto add = [&](std::vector<proxyarp::Action> more) {
      actions.insert(actions.end(), more.begin(), more.end());
    };
    add(out.set_identity({.mac = mac("02:00:00:00:be:00"), .ipv4 = {}, .ipv6 = {}}, kNow));
    add(out.port_up(port, "m1", kNow));
    add(out.port_up(other, "m2", kNow));
    for (const auto& [where, address] :
         {std::pair{port, kAlice}, std::pair{port, kCarol}, std::pair{other, kBob}})
      add(out.mac_placed(address, proxyarp::MacWhere::LocalPort, where, kNow));
    add(out.mac_placed(kFar, proxyarp::MacWhere::Remote, {}, kNow));
    for (const char* address : {"192.0.2.9", "2001:db8:1::9"})
      add(out.evpn_binding(ip(address), kFar, {.router = false, .override_flag = true}, false,
                           kNow));
    return out;
  }
  // Whether BPF_PROG_TEST_RUN takes it: it wants whole IP headers.
  static bool runs(const Bytes& frame) {
    if (frame.size() < kEthernet) return false;
    const bool ip4 = frame[12] == 0x08 && frame[13] == 0x00;
    const bool ip6 = frame[12] == 0x86 && frame[13] == 0xdd;
    return !(ip4 && frame.size() < 34) && !(ip6 && frame.size() < 54);
  }
  int run_xdp(const Bytes& frame, Bytes& out) const {
    xdp_md context{};
    context.data_end = static_cast<uint32_t>(frame.size());
    context.ingress_ifindex = port.value;
    bpf_test_run_opts o{};
    o.sz = sizeof o;
    o.ctx_in = &context;
    o.ctx_size_in = sizeof context;
    o.data_in = frame.data();
    o.data_size_in = static_cast<uint32_t>(frame.size());
    out.resize(frame.size() + 64);
    o.data_out = out.data();
    o.data_size_out = static_cast<uint32_t>(out.size());
    EXPECT_EQ(bpf_prog_test_run_opts(xdp, &o), 0) << std::strerror(errno);
    out.resize(o.data_size_out);
    return static_cast<int>(o.retval);
  }
  [[nodiscard]] std::map<std::string, uint64_t> counted() const {
    std::map<std::string, uint64_t> out;
    for (const auto& c : fast_path->counters(port))
      if (c.direction == Direction::Ingress)
        out[std::string(c.bum_class) + " " + c.reason] += c.packets;
    return out;
  }
  KernelSays kernel(const Bytes& frame) {
    KernelSays out;
    __sk_buff context{};
    context.ifindex = port.value;
    bpf_test_run_opts o{};
    o.sz = sizeof o;
    o.ctx_in = &context;
    o.ctx_size_in = sizeof context;
    o.data_in = frame.data();
    o.data_size_in = static_cast<uint32_t>(frame.size());
    out.frame.resize(frame.size() + 64);
    o.data_out = out.frame.data();
    o.data_size_out = static_cast<uint32_t>(out.frame.size());
    EXPECT_EQ(bpf_prog_test_run_opts(ingress, &o), 0) << std::strerror(errno);
    out.frame.resize(o.data_size_out);
    out.action = static_cast<int>(o.retval);
    const auto after = counted();
    for (const auto& [name, packets] : after)
      if (packets != before[name]) out.counter += out.counter.empty() ? name : ", " + name;
    before = after;
    fast_path->drain([&](const Punt& punt) { out.taken |= !punt.copy && !punt.trapped; });
    return out;
  }
  void judge(const Bytes& frame);
  void judge_xdp(const Bytes& frame, const KernelSays& tc);

  net::IfIndex port, other;
  int ingress = -1, xdp = -1;
  proxyarp::Settings settings;
  std::map<std::string, uint64_t> before;
  uint64_t answered = 0, refused = 0, left = 0, judged = 0;
};

std::string hex(const Bytes& frame) {
  std::string out;
  for (uint8_t octet : frame) {
    out += "0123456789abcdef"[octet >> 4];
    out += "0123456789abcdef"[octet & 15];
  }
  return out;
}

bool claims_far_address(const Bytes& frame) {
  const bool is_arp = frame[12] == 0x08 && frame[13] == 0x06;
  const auto address = ip(is_arp ? "192.0.2.9" : "2001:db8:1::9");
  const std::size_t at = is_arp ? 28 : 62;
  return frame.size() >= at + address.bytes().size() &&
         std::ranges::equal(address.bytes(), std::span(frame).subspan(at, address.bytes().size()));
}

Bytes padded(Bytes frame) {
  if (frame.size() < 60) frame.resize(60);
  return frame;
}

// XDP answers what tc would have answered, with the same octets, and lets pass all else.
void Agreement::judge_xdp(const Bytes& frame, const KernelSays& tc) {
  if (xdp < 0) return;
  Bytes out;
  const int action = run_xdp(frame, out);
  before = counted();
  if (action == XDP_TX) {
    EXPECT_EQ(tc.action, TC_ACT_REDIRECT);
    EXPECT_EQ(out, tc.frame);
  } else {
    EXPECT_EQ(action, XDP_PASS);
    EXPECT_EQ(out, frame);
    const bool usual = frame.size() == (frame[12] == 0x08 ? 60 : 86);
    EXPECT_FALSE(usual && tc.action == TC_ACT_REDIRECT) << "left to tc";
  }
}

void Agreement::judge(const Bytes& frame) {
  if (!runs(frame)) return;
  SCOPED_TRACE(hex(frame));
  ++judged;
  const auto says = kernel(frame);
  judge_xdp(frame, says);
  auto other_one = responder();
  const auto outcome = other_one.member_frame(port, frame, false, kNow);
  SCOPED_TRACE("kernel: " + says.counter + ", responder: " + to_string(outcome.verdict));
  const auto reason = says.counter.substr(says.counter.find(' ') + 1);
  const std::set<Verdict> passing{Verdict::Answered, Verdict::Learned, Verdict::Flooded,
                                  Verdict::Forwarded};
  if (says.action == TC_ACT_REDIRECT) {
    ++answered;
    EXPECT_EQ(reason, "answered");
    EXPECT_EQ(outcome.verdict, Verdict::Answered);
    std::vector<Bytes> sent;
    for (const auto& action : outcome.actions)
      if (const auto* transmit = std::get_if<proxyarp::Transmit>(&action)) {
        EXPECT_EQ(transmit->port, port);
        sent.push_back(padded(transmit->frame));
      }
    EXPECT_THAT(sent, testing::ElementsAre(says.frame));
  } else if (says.taken) {
    ++left;
    EXPECT_EQ(reason, "punted");
  } else if (says.action == TC_ACT_SHOT) {
    ++refused;
    if (reason == "same-port")
      EXPECT_EQ(outcome.verdict, Verdict::SamePort);
    else if (reason == "owner-asked")
      EXPECT_EQ(outcome.verdict, Verdict::OwnerAsked);
    else if (reason == "spoofed-sender")
      // What says that an address of another PE has moved is held back until the responder, which
      // gets a copy, has confirmed that.
      EXPECT_TRUE(!passing.contains(outcome.verdict) || claims_far_address(frame));
    else  // refused before ARP and ND were looked at: then nothing would have been answered either
      EXPECT_NE(outcome.verdict, Verdict::Answered);
  } else {
    // Goes its way: what the responder says of unicast comes down to that.
    EXPECT_NE(outcome.verdict, Verdict::Answered);
    EXPECT_NE(outcome.verdict, Verdict::SpoofedSender);
    EXPECT_NE(outcome.verdict, Verdict::NotOwner);
  }
}

// What all the others are made from.
std::vector<Bytes> originals() {
  const auto bob6 = ip("2001:db8:1::2");
  std::vector<Bytes> out;
  for (const char* target : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.9",
                             "192.0.2.77", "198.51.100.1", "0.0.0.0"})
    for (const char* sender : {"192.0.2.1", "192.0.2.3", "192.0.2.2", "192.0.2.9", "192.0.2.66",
                               "0.0.0.0", "198.51.100.7", "192.0.2.255"})
      for (uint16_t op : std::initializer_list<uint16_t>{1, 2, 3, 8, 25})
        for (const auto& to : {net::kBroadcastMac, kBob, mac("02:00:00:00:be:00")})
          out.push_back(
              padded(arp(to, kAlice, {.op = op, .sender = ip(sender), .target = ip(target)})));
  for (const char* target : {"2001:db8:1::1", "2001:db8:1::2", "2001:db8:1::3", "2001:db8:1::9",
                             "2001:db8:1::77", "2001:db8:2::1", "fe80::2"})
    for (const char* from : {"2001:db8:1::1", "2001:db8:1::3", "2001:db8:1::2", "2001:db8:1::66",
                             "fe80::1", "2001:db8:2::7"}) {
      out.push_back(ns({.from = ip(from), .target = ip(target)}));
      out.push_back(ns({.from = ip(from), .target = ip(target), .to = ip(target), .to_mac = kBob}));
      for (int flags = 0; flags < 256; flags += 32) {
        const auto f = static_cast<uint8_t>(flags);
        out.push_back(na({.from = ip(from), .target = ip(target), .to = bob6, .flags = f}));
        out.push_back(na({.from = ip(from),
                          .target = ip(target),
                          .to = ip("ff02::1"),
                          .to_mac = mac("33:33:00:00:00:01"),
                          .flags = f}));
      }
    }
  for (const char* target : {"2001:db8:1::2", "2001:db8:1::9", "2001:db8:1::77"}) {
    out.push_back(ns({.from = ip("::"), .target = ip(target), .options = Bytes{}}));
    out.push_back(ns({.target = ip(target), .hop_limit = 64}));
    out.push_back(ns({.target = ip(target), .code = 1}));
    out.push_back(ns({.target = ip(target), .to = ip("ff02::1:ff00:55")}));
    out.push_back(ns({.target = ip(target), .options = Bytes{}}));
    out.push_back(ns({.target = ip(target), .options = option(1, kCarol)}));
    out.push_back(ns({.from_mac = kCarol, .target = ip(target)}));
  }
  return out;
}

TEST_F(Agreement, OnPlainAndOddFrames) {
  for (const auto& frame : originals()) judge(frame);
  for (const auto& c : cases()) judge(c.frame);
  EXPECT_GT(answered, 5u);
  EXPECT_GT(refused, 10u);
  EXPECT_GT(left, 100u);
}

TEST_F(Agreement, OnEveryLength) {
  Bytes out(256);
  bpf_test_run_opts o{};
  o.sz = sizeof o;
  o.data_in = out.data();
  o.data_out = out.data();
  for (uint32_t size = 0; size < uint32_t{kEthernet}; ++size) {  // the kernel makes no such frame
    o.data_size_in = size;
    o.data_size_out = 256;
    EXPECT_NE(bpf_prog_test_run_opts(ingress, &o), 0) << size;
  }
  for (const auto& whole : {arp_request(), ns(), arp(kBob, kAlice, {.op = 2}), na(),
                            ns({.options = Bytes(8)}), udp4("255.255.255.255", 9)})
    for (std::size_t size = kEthernet; size <= 128; ++size)
      for (uint8_t filler : {uint8_t{0}, uint8_t{0x5a}}) {
        auto frame = whole;
        frame.resize(size, filler);
        judge(frame);
      }
  EXPECT_GT(answered, 100u);
}

TEST_F(Agreement, OnEveryOptionAndItsLength) {
  for (unsigned type = 0; type < 256; ++type)
    for (unsigned units : {0u, 1u, 2u, 3u, 31u, 255u}) {
      Bytes one(8);
      one[0] = static_cast<uint8_t>(type);
      one[1] = static_cast<uint8_t>(units);
      std::ranges::copy(kAlice.bytes(), one.begin() + 2);
      judge(ns({.options = one}));
      auto two = option(1, kAlice);
      two.insert(two.end(), one.begin(), one.end());
      judge(ns({.options = two}));
    }
  for (unsigned units = 0; units < 256; ++units)
    for (std::size_t size : {8u, 16u, 24u, 32u}) {
      Bytes options(size);
      options[0] = 1;
      options[1] = static_cast<uint8_t>(units);
      std::ranges::copy(kAlice.bytes(), options.begin() + 2);
      judge(ns({.options = options}));
      judge(ns({.from = ip("::"), .options = options}));
      options[0] = 2;
      judge(na({.options = options}));
      judge(na({.to = ip("ff02::1"), .to_mac = mac("33:33:00:00:00:01"), .options = options}));
    }
  EXPECT_GT(answered, 0u);
}

// Both checksums of what is answered are right, so a wrong one must be left alone.
TEST_F(Agreement, OnEveryBitOfAPlainRequest) {
  for (const auto& whole : {padded(arp_request()), ns()})
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      auto frame = whole;
      frame[bit / 8] = static_cast<uint8_t>(frame[bit / 8] ^ (1u << bit % 8));
      judge(frame);
    }
  EXPECT_GT(answered, 100u) << "bits of padding, flow label, reserved fields";
}

TEST_F(Agreement, OnRandomChangesOfFrames) {
  const char* wanted = std::getenv("PEERLAN_AGREEMENT_FRAMES");
  const long frames = wanted ? std::atol(wanted) : 8000;
  const auto whole = originals();
  std::mt19937_64 random(20260901);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (long i = 0; i < frames && !HasFailure(); ++i) {
    auto frame = whole[below(whole.size())];
    for (std::size_t change = below(4); change > 0; --change) {
      const std::size_t at = below(frame.size());
      switch (below(5)) {
        case 0: frame[at] = static_cast<uint8_t>(random()); break;
        case 1: frame[at] = static_cast<uint8_t>(frame[at] + 1); break;
        case 2: frame.resize(kEthernet + below(115), static_cast<uint8_t>(random())); break;
        case 3: {  // a piece of another one
          const auto& from = whole[below(whole.size())];
          const std::size_t begin = below(std::min(from.size(), frame.size()));
          const std::size_t n = below(std::min(from.size(), frame.size()) - begin + 1);
          std::copy_n(from.begin() + static_cast<long>(begin), n,
                      frame.begin() + static_cast<long>(begin));
          break;
        }
        default: {  // a checksum that is right for what it has become
          if (frame.size() < kPlainNs || frame[12] != 0x86 || frame[13] != 0xdd) break;
          frame[56] = frame[57] = 0;
          Bytes pseudo(frame.begin() + 22, frame.begin() + 54);
          const std::size_t length =
              std::min<std::size_t>(frame.size() - 54, std::size_t{frame[18]} << 8 | frame[19]);
          for (std::size_t octet :
               {std::size_t{0}, std::size_t{0}, length >> 8, length & 255, std::size_t{0},
                std::size_t{0}, std::size_t{0}, std::size_t{58}})
            pseudo.push_back(static_cast<uint8_t>(octet));
          const auto sum = checksum(
              pseudo, Bytes(frame.begin() + 54, frame.begin() + 54 + static_cast<long>(length)));
          frame[56] = static_cast<uint8_t>(sum >> 8);
          frame[57] = static_cast<uint8_t>(sum);
        }
      }
    }
    judge(frame);
  }
  RecordProperty("judged", static_cast<int>(judged));
}

}  // namespace
