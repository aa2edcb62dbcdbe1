// SPDX-License-Identifier: GPL-2.0-or-later
// The data path on real devices: two member ports on a bridge. What is attached, what outlives the
// FastPath object and what a later one makes of it.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "dataplane/bpf/abi.h"
#include "tests/dataplane/namespace.h"

using namespace dataplane;
using namespace frames;
using lab::Bytes;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class FastPathTest : public lab::BpfTest {
 protected:
  void SetUp() override {
    BpfTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    make_bridge();
    m1 = lab::index_of("m1");
    m2 = lab::index_of("m2");
    alice = std::make_unique<lab::Member>("p1");
    bob = std::make_unique<lab::Member>("p2");
  }
  // Alice asks for 192.0.2.2; whether she is answered by the fast path, and whether Bob hears it.
  enum class Outcome { Answered, Flooded, Neither };
  Outcome ask() {
    while (alice->receive(0)) {
    }
    while (bob->receive(0)) {
    }
    alice->send(arp_request());
    // A frame behind the request: what is not there before it does not come.
    alice->send(marker());
    const auto at_bob = bob->receive();
    EXPECT_TRUE(at_bob);
    if (!at_bob) return Outcome::Neither;
    if (*at_bob != marker()) {
      EXPECT_EQ(*at_bob, arp_request());
      EXPECT_EQ(bob->receive(), marker());
      EXPECT_TRUE(alice->silent());
      return Outcome::Flooded;
    }
    const auto at_alice = alice->receive(0);
    if (!at_alice) return Outcome::Neither;
    EXPECT_EQ(*at_alice, answer());
    EXPECT_TRUE(alice->silent()) << "answered twice";
    return Outcome::Answered;
  }
  static Bytes marker() {
    return eth(kBob, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(26)));
  }
  static Bytes answer() {
    return cut(arp(kAlice, kBob,
                   {.op = 2,
                    .sender_mac = kBob,
                    .sender = ip("192.0.2.2"),
                    .target_mac = kAlice,
                    .target = ip("192.0.2.1")}),
               60);
  }
  // Bob, whom Alice asks for, and Alice: who is not bound at his port is left to the daemon.
  void bind_both() {
    bind("192.0.2.2", kBob, m2);
    bind("192.0.2.1", kAlice, m1);
  }
  std::size_t pins(const std::string& folder) {
    std::error_code error;
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& e :
         std::filesystem::directory_iterator(lab::pin_directory() + "/" + folder, error))
      ++n;
    return n;
  }
  static FastPathOptions clsact() {
    auto out = options();
    out.force_clsact = true;
    return out;
  }
  void attach_answer_detach() {
    EXPECT_EQ(ask(), Outcome::Flooded);
    set(port_config(m1));
    bind_both();
    EXPECT_EQ(ask(), Outcome::Answered);
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 1u);
    EXPECT_EQ(count(m1, Direction::Ingress, "unicast", "passed"), 1u);
    EXPECT_THAT(fast_path->ports(), ElementsAre(m1));
    EXPECT_EQ(count(m1, Direction::Egress, "unicast", "passed"), 0u) << "counted as answered";
    ASSERT_TRUE(fast_path->remove_port(m1));
    EXPECT_EQ(ask(), Outcome::Flooded);
    EXPECT_TRUE(fast_path->ports().empty());
    EXPECT_EQ(pins("links"), 0u);
    EXPECT_TRUE(fast_path->remove_port(m1)) << "twice is fine";
  }

  net::IfIndex m1, m2;
  std::unique_ptr<lab::Member> alice, bob;
};

TEST_F(FastPathTest, AttachAnswerDetach) {
  if (std::string_view(fast_path->attach_mode()) != "tcx") GTEST_SKIP() << "no tcx here";
  attach_answer_detach();
}

TEST_F(FastPathTest, AttachAnswerDetachWithClsact) {
  reopen(clsact());
  EXPECT_STREQ(fast_path->attach_mode(), "clsact");
  attach_answer_detach();
}

TEST_F(FastPathTest, NeighborAdvertisementReachesTheAsker) {
  set(port_config(m1));
  bind("2001:db8:1::2", kBob, m2);
  bind("2001:db8:1::1", kAlice, m1);
  alice->send(ns());
  EXPECT_EQ(alice->receive(), na({.from_mac = kBob,
                                  .from = ip("2001:db8:1::2"),
                                  .target = ip("2001:db8:1::2"),
                                  .to = ip("2001:db8:1::1"),
                                  .to_mac = kAlice,
                                  .flags = 0xe0}));
}

// Tags that the device took out of the frame, and frames that the kernel's test run refuses.
TEST_F(FastPathTest, TagsAndCutFrames) {
  set(port_config(m1));
  const auto ip_frame =
      eth(kBob, kAlice, 0x0800, ipv4(6, ip("192.0.2.1"), ip("192.0.2.2"), Bytes(40)));
  // The receiving kernel takes the tag out of the frame before the program sees it.
  for (uint16_t type : {uint16_t{0x8100}, uint16_t{0x88a8}}) {
    for (auto frame : {marker(), arp_request(), ip_frame}) {
      const Bytes tag{static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type), 0, 5};
      frame.insert(frame.begin() + 12, tag.begin(), tag.end());
      alice->send(frame);
    }
  }
  EXPECT_EQ(count(m1, Direction::Ingress, "unicast", "vlan-tag"), 4u);
  EXPECT_EQ(count(m1, Direction::Ingress, "broadcast", "vlan-tag"), 2u);
  uint64_t sent = 0;
  for (const auto& c : cases())
    if (std::string_view(c.reason) == "malformed" && c.frame.size() < 54 && c.frame[12] == 0x86) {
      alice->send(c.frame);
      ++sent;
    }
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(count(m1, Direction::Ingress, "multicast", "malformed"), sent);
  alice->send(cut(marker(), 30));
  EXPECT_EQ(count(m1, Direction::Ingress, "unicast", "malformed"), 1u);
  EXPECT_TRUE(bob->silent());
}

TEST_F(FastPathTest, EgressKeepsWhatTheBridgeWouldFlood) {
  auto config = port_config(m2);
  config.policy.egress[2] = Limit{.packets_per_second = 0, .bits_per_second = {}};
  set(config);
  alice->send(to_group("01:80:c2:00:00:00", 38, Bytes(38, 0x42)));  // flooded with STP off
  alice->send(udp4("255.255.255.255", 9));
  alice->send(marker());
  EXPECT_EQ(bob->receive(), marker());
  EXPECT_EQ(count(m2, Direction::Egress, "control", "stp"), 1u);
  EXPECT_EQ(count(m2, Direction::Egress, "broadcast", "broadcast"), 1u);
  EXPECT_EQ(count(m2, Direction::Egress, "unicast", "passed"), 1u);
}

TEST_F(FastPathTest, OutlivesItsOwnerAndIsAdopted) {
  for (const auto& with : {options(), clsact()}) {
    SCOPED_TRACE(with.force_clsact);
    reopen(with);
    set(port_config(m1));
    auto core = port_config(m2);
    core.kind = PortKind::Core;
    set(core);
    bind_both();
    ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
    EXPECT_EQ(ask(), Outcome::Answered);
    fast_path.reset();
    EXPECT_EQ(ask(), Outcome::Answered) << "while nobody owns it";
    reopen(with);
    EXPECT_EQ(ask(), Outcome::Answered);
    EXPECT_THAT(fast_path->ports(), ElementsAre(m1, m2));
    EXPECT_THAT(
        fast_path->bindings(),
        testing::UnorderedElementsAre(
            FastBinding{.vni = net::Vni(100), .ip = ip("192.0.2.2"), .mac = kBob, .port = m2},
            FastBinding{.vni = net::Vni(100), .ip = ip("192.0.2.1"), .mac = kAlice, .port = m1}));
    EXPECT_EQ(fast_path->use_of(net::Vni(100), ip("192.0.2.2"))->answers, 3u);
    EXPECT_EQ(fast_path->macs().size(), 1u);
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 3u);
    EXPECT_GT(count(m2, Direction::Encap, "unicast", "passed"), 0u) << "the kind is kept";
    set(port_config(m1));
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 3u);
    EXPECT_EQ(ask(), Outcome::Answered);
    EXPECT_TRUE(fast_path->remove_port(m1));
    EXPECT_TRUE(fast_path->remove_port(m2));
    EXPECT_EQ(ask(), Outcome::Flooded);
    ASSERT_TRUE(fast_path->clear_binding(net::Vni(100), ip("192.0.2.2")));
    ASSERT_TRUE(fast_path->clear_binding(net::Vni(100), ip("192.0.2.1")));
  }
}

TEST_F(FastPathTest, ChangesTheWayOfAttachingInPlace) {
  if (std::string_view(fast_path->attach_mode()) != "tcx") GTEST_SKIP() << "no tcx here";
  set(port_config(m1));
  bind_both();
  for (int i = 0; i < 2; ++i) {
    reopen(clsact());
    EXPECT_EQ(pins("links"), 0u);
    EXPECT_EQ(ask(), Outcome::Answered);
    reopen(options());
    EXPECT_EQ(pins("links"), 2u);
    EXPECT_EQ(ask(), Outcome::Answered);
  }
  // Once each: not by a filter that was left behind.
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 4u);
  EXPECT_EQ(count(m1, Direction::Ingress, "unicast", "passed"), 4u);
}

// --- native XDP. A veth pair sends from XDP only to an end that has a program too.
class XdpTest : public FastPathTest {
 protected:
  void SetUp() override {
    FastPathTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 2},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    const int program = bpf_prog_load(BPF_PROG_TYPE_XDP, "pl_end", "GPL", pass, 2, nullptr);
    ASSERT_GE(program, 0);
    // Goes with the device.
    ASSERT_EQ(bpf_xdp_attach(static_cast<int>(lab::index_of("p1").value), program, 0, nullptr), 0);
    close(program);
    bind_both();
    bind("2001:db8:1::1", kAlice, m1);
    bind("2001:db8:1::2", kBob, m2);
  }
  static PortConfig with_xdp(net::IfIndex port) {
    auto config = port_config(port);
    config.xdp = true;
    return config;
  }
  static Bytes request() { return cut(arp_request(), 60); }
  // Alice's question reaches tc only when XDP leaves it.
  void expect_answer_by(bool xdp) {
    const uint64_t before = program_runs("_in");
    alice->send(request());
    EXPECT_EQ(alice->receive(), answer());
    EXPECT_TRUE(alice->silent());
    const uint64_t runs = program_runs("_in") - before;
    EXPECT_EQ(runs, xdp ? 0u : 1u);
  }
  // Of the program behind a link, by the kernel's statistics.
  uint64_t program_runs(const char* suffix) {
    const int link =
        bpf_obj_get((lab::pin_directory() + "/links/" + std::to_string(m1.value) + suffix).c_str());
    bpf_link_info info{};
    uint32_t size = sizeof info;
    EXPECT_EQ(bpf_obj_get_info_by_fd(link, &info, &size), 0);
    const int program = bpf_prog_get_fd_by_id(info.prog_id);
    bpf_prog_info about{};
    size = sizeof about;
    EXPECT_EQ(bpf_obj_get_info_by_fd(program, &about, &size), 0);
    close(program);
    close(link);
    return about.run_cnt;
  }
  const int statistics_ = bpf_enable_stats(BPF_STATS_RUN_TIME);  // while this is open
  void TearDown() override {
    close(statistics_);
    FastPathTest::TearDown();
  }
};

TEST_F(XdpTest, AnswersBeforeTcWithTheSameCounters) {
  set(port_config(m1));
  EXPECT_EQ(fast_path->attach_mode(m1), fast_path->attach_mode());
  expect_answer_by(false);
  set(with_xdp(m1));
  EXPECT_EQ(fast_path->attach_mode(m1), std::string("xdp+") + fast_path->attach_mode());
  expect_answer_by(true);
  alice->send(ns());
  EXPECT_EQ(alice->receive(), na({.from_mac = kBob,
                                  .from = ip("2001:db8:1::2"),
                                  .target = ip("2001:db8:1::2"),
                                  .to = ip("2001:db8:1::1"),
                                  .to_mac = kAlice,
                                  .flags = 0xe0}));
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 2u);
  EXPECT_EQ(count(m1, Direction::Ingress, "nd", "answered"), 1u);
  EXPECT_EQ(fast_path->use_of(net::Vni(100), ip("192.0.2.2"))->answers, 2u);
  EXPECT_EQ(fast_path->use_of(net::Vni(100), ip("192.0.2.2"))->last_asker, kAlice);
  // Off again.
  set(port_config(m1));
  EXPECT_EQ(pins("links"), std::string_view(fast_path->attach_mode()) == "tcx" ? 2u : 0u);
  expect_answer_by(false);
  EXPECT_EQ(ask(), Outcome::Answered);
}

TEST_F(XdpTest, LeavesToTcWhatIsNotPlainOrNotAllowed) {
  auto config = with_xdp(m1);
  config.renew = std::chrono::hours(1);
  set(config);
  expect_answer_by(false);  // the daemon has not heard of Alice so far
  std::size_t copies = 0;
  fast_path->drain([&](const Punt& punt) { copies += punt.copy; });
  EXPECT_EQ(copies, 1u);
  expect_answer_by(true);
  config.enforce_macs = true;
  config.macs = {kBob};
  set(config);
  alice->send(request());
  EXPECT_EQ(count(m1, Direction::Ingress, "broadcast", "source-mac"), 1u);
  config.enforce_macs = false;
  config.policy.allowed_ethertypes = {0x0800};
  set(config);
  alice->send(request());
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "ethertype") +
                count(m1, Direction::Ingress, "broadcast", "ethertype"),
            1u);
  config = with_xdp(m1);
  set(config);
  const Bytes others[] = {cut(arp_request({.target = ip("192.0.2.77")}), 60),
                          cut(arp_request({.sender = ip("0.0.0.0")}), 60), ns({.hop_limit = 64}),
                          ns({.target = ip("2001:db8:1::77")})};
  for (const auto& frame : others) alice->send(frame);
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "punted"), 2u);
  EXPECT_EQ(count(m1, Direction::Ingress, "nd", "punted"), 2u);
  auto tagged = request();
  const Bytes tag{0x81, 0, 0, 5};
  tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
  alice->send(tagged);
  EXPECT_EQ(count(m1, Direction::Ingress, "broadcast", "vlan-tag"), 1u);
  alice->send(marker());
  EXPECT_EQ(bob->receive(), marker());
  EXPECT_TRUE(alice->silent());
}

TEST_F(XdpTest, OneLimitOfAnswersForBoth) {
  auto config = with_xdp(m1);
  config.policy.answers = {
      .packets_per_second = 1, .bits_per_second = {}, .burst = std::chrono::seconds(1)};
  set(config);
  for (int i = 0; i < 20; ++i) alice->send(request());
  EXPECT_EQ(alice->receive(), answer());
  const auto answered = count(m1, Direction::Ingress, "arp", "answered");
  EXPECT_GE(answered, 1u);
  EXPECT_LE(answered, 3u);
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answer-limit"), 20 - answered);
  EXPECT_TRUE(bob->silent());
}

TEST_F(XdpTest, OutlivesItsOwnerIsAdoptedAndTornDown) {
  set(with_xdp(m1));
  fast_path.reset();
  expect_answer_by(true);
  reopen(options());
  EXPECT_EQ(fast_path->attach_mode(m1), std::string("xdp+") + fast_path->attach_mode());
  expect_answer_by(true);
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 2u) << "with the maps of before";
  // Somebody takes it off: repaired.
  const int link =
      bpf_obj_get((lab::pin_directory() + "/links/" + std::to_string(m1.value) + "_xdp").c_str());
  ASSERT_EQ(bpf_link_detach(link), 0);
  close(link);
  EXPECT_EQ(fast_path->attach_mode(m1), fast_path->attach_mode());
  EXPECT_EQ(fast_path->repair_port(m1), true);
  EXPECT_EQ(fast_path->repair_port(m1), false);
  expect_answer_by(true);
  // Another layout of the maps: the port goes on with what it has until it is set.
  auto large = options();
  large.max_bindings = 2048;
  reopen(large);
  expect_answer_by(true);
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 0u);
  set(with_xdp(m1));
  expect_answer_by(true);
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 1u);
  ASSERT_TRUE(fast_path->remove_port(m1));
  EXPECT_EQ(pins("links"), 0u);
  set(with_xdp(m1));
  fast_path.reset();
  ASSERT_TRUE(FastPath::teardown(lab::pin_directory()));
  uint32_t program = 1;
  EXPECT_EQ(bpf_xdp_query_id(static_cast<int>(m1.value), 0, &program), 0);
  EXPECT_EQ(program, 0u);
}

TEST_F(XdpTest, GoesWithItsDevice) {
  set(with_xdp(m1));
  lab::run("ip link del m1");
  reopen(options());
  EXPECT_TRUE(fast_path->ports().empty());
  EXPECT_EQ(pins("links"), 0u);
}

TEST_F(XdpTest, FallsBackToTcWhereTheDriverHasNone) {
  lab::run("ip link add br1 type bridge");  // a device without native XDP
  const auto without = lab::index_of("br1");
  set(with_xdp(without));
  EXPECT_EQ(fast_path->attach_mode(without), fast_path->attach_mode());
  EXPECT_EQ(fast_path->repair_port(without), false) << "nothing to repair";
  ASSERT_TRUE(fast_path->remove_port(without));
  lab::run("ip link del br1");
}

// A set of maps as version 1 of the bindings left it.
TEST_F(FastPathTest, BindingsOfTheFirstVersionAreTakenOver) {
  fast_path.reset();
  ASSERT_TRUE(FastPath::teardown(lab::pin_directory()));
  const auto set1 = lab::pin_directory() + "/maps1";
  std::filesystem::create_directories(set1);
  struct {
    uint8_t mac[6];
    uint8_t flags, zero;
    uint32_t port, check;
  } value{{2, 0, 0, 0, 0, 2}, PL_ROUTER, 0, 7, 0};
  const auto pin = [&](const char* name, bpf_map_type type, uint32_t key, uint32_t size,
                       const void* k, const void* v, uint32_t entries) {
    const int fd = bpf_map_create(type, name, key, size, entries, nullptr);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(bpf_map_update_elem(fd, k, v, BPF_ANY), 0);
    ASSERT_EQ(bpf_obj_pin(fd, (set1 + "/" + name).c_str()), 0);
    close(fd);
  };
  pl_key4 key4{.vni = 100, .ip = {192, 0, 2, 2}};
  std::memcpy(&value.check, key4.ip, 4);
  pin("bind4", BPF_MAP_TYPE_HASH, sizeof key4, sizeof value, &key4, &value, 1024);
  pl_key6 key6{.vni = 100, .ip = {}};
  const auto address = ip("2001:db8:1::2");
  std::ranges::copy(address.bytes(), key6.ip);
  value.check = 0;
  for (int i = 0; i < 16; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, key6.ip + i, 4);
    value.check ^= word;
  }
  pin("bind6", BPF_MAP_TYPE_HASH, sizeof key6, sizeof value, &key6, &value, 1024);
  struct stat here{};
  ASSERT_EQ(stat("/proc/self/ns/net", &here), 0);
  const int any = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  pl_meta meta{.netns = 0, .binding_version = 1, .zero = 0};
  socklen_t size = sizeof meta.netns;
  ASSERT_EQ(getsockopt(any, SOL_SOCKET, 71 /* SO_NETNS_COOKIE */, &meta.netns, &size), 0);
  close(any);
  const uint32_t zero = 0;
  pin("meta", BPF_MAP_TYPE_ARRAY, 4, sizeof meta, &zero, &meta, 1);

  reopen(options());
  EXPECT_THAT(fast_path->bindings(),
              testing::UnorderedElementsAre(FastBinding{.vni = net::Vni(100),
                                                        .ip = ip("192.0.2.2"),
                                                        .mac = kBob,
                                                        .port = net::IfIndex(7),
                                                        .router = true,
                                                        .override_flag = false},
                                            FastBinding{.vni = net::Vni(100),
                                                        .ip = address,
                                                        .mac = kBob,
                                                        .port = net::IfIndex(7),
                                                        .router = true,
                                                        .override_flag = false}));
  EXPECT_EQ(fast_path->use_of(net::Vni(100), address)->answers, 0u);
  EXPECT_FALSE(std::filesystem::exists(set1));
  set(port_config(m1));
  bind("192.0.2.1", kAlice, m1);
  alice->send(arp_request());
  EXPECT_EQ(alice->receive(), answer());
}

// --- VLAN tags (IEEE 802.1Q): VLAN 0 is none, another VLAN's addresses are not ours.
TEST_F(FastPathTest, PriorityTagsAreToleratedWhereTagsAre) {
  bind_both();
  auto config = port_config(m1);
  const auto tagged = [](uint16_t type, uint16_t tci) {
    auto frame = cut(arp_request(), 60);
    const Bytes tag{static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type),
                    static_cast<uint8_t>(tci >> 8), static_cast<uint8_t>(tci)};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    return frame;
  };
  set(config);
  alice->send(tagged(0x8100, 0x6000));
  EXPECT_EQ(count(m1, Direction::Ingress, "broadcast", "vlan-tag"), 1u);
  EXPECT_TRUE(alice->silent());
  config.policy.allow = {"vlan-tag"};
  for (bool xdp : {false, true}) {
    config.xdp = xdp;
    set(config);
    for (uint16_t type : {uint16_t{0x8100}, uint16_t{0x88a8}}) {
      alice->send(tagged(type, 0x6000));  // priority 3
      // The device puts the tag beside the frame; the other end has it in the packet's status.
      EXPECT_EQ(alice->receive(), answer());
      EXPECT_TRUE(bob->silent());
      alice->send(tagged(type, 0x6005));  // VLAN 5: nothing that the proxy knows, flooded
      EXPECT_TRUE(bob->receive());
      EXPECT_TRUE(alice->silent());
    }
  }
  EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 4u);
}

// Every request is answered once, whatever happens to the owner.
TEST_F(FastPathTest, SwapUnderLoadLosesNothing) {
  for (const auto& with : {options(), clsact()}) {
    SCOPED_TRACE(with.force_clsact);
    reopen(with);
    auto config = port_config(m1);
    config.policy.answers = {};  // no limit
    set(config);
    bind_both();
    std::atomic<bool> stop = false;
    std::atomic<uint64_t> asked = 0, wrong = 0;
    std::jthread load([&] {
      while (!stop) {
        alice->send(arp_request());
        ++asked;
        if (alice->receive() != answer()) ++wrong;
      }
    });
    for (int i = 0; i < 5; ++i) {
      reopen(with);
      set(config);
    }
    while (asked < 500) std::this_thread::yield();
    stop = true;
    load.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(alice->silent());
    EXPECT_TRUE(bob->silent()) << "nothing slipped through";
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), asked);
    ASSERT_TRUE(fast_path->remove_port(m1));
  }
}

TEST_F(FastPathTest, OtherLayoutTakesOverWithoutAGap) {
  for (bool force : {false, true}) {
    SCOPED_TRACE(force);
    auto small = options();
    small.force_clsact = force;
    auto large = small;
    large.max_bindings = 2048;
    reopen(small);
    set(port_config(m1));
    bind_both();
    bind("2001:db8:1::2", kBob, m2);
    ASSERT_TRUE(fast_path->add_mac(net::Vni(100), kBob));
    reopen(large);
    EXPECT_EQ(fast_path->bindings().size(), 3u);
    EXPECT_EQ(fast_path->macs().size(), 1u);
    EXPECT_THAT(fast_path->ports(), ElementsAre(m1));
    EXPECT_EQ(ask(), Outcome::Answered) << "by the old program";
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 0u);
    if (!force) {  // another end before the port was set
      reopen(large);
      EXPECT_THAT(fast_path->ports(), ElementsAre(m1));
      EXPECT_EQ(ask(), Outcome::Answered);
    }
    set(port_config(m1));
    EXPECT_THAT(fast_path->ports(), ElementsAre(m1));
    EXPECT_EQ(ask(), Outcome::Answered) << "by the new one";
    EXPECT_EQ(count(m1, Direction::Ingress, "arp", "answered"), 1u);
    // A port that is not wanted any more goes without having been set.
    reopen(small);
    ASSERT_TRUE(fast_path->remove_port(m1));
    EXPECT_TRUE(fast_path->ports().empty());
    EXPECT_EQ(ask(), Outcome::Flooded);
  }
  std::size_t sets = 0;
  for (const auto& e : std::filesystem::directory_iterator(lab::pin_directory()))
    sets += e.path().filename().string().starts_with("maps");
  EXPECT_EQ(sets, 1u);
}

TEST_F(FastPathTest, HalfMadeMapSetIsIgnored) {
  fast_path.reset();
  std::filesystem::create_directory(lab::pin_directory() + "/maps9");
  reopen(options());
  EXPECT_FALSE(std::filesystem::exists(lab::pin_directory() + "/maps9"));
}

TEST_F(FastPathTest, PortsThatAreGoneAreCleanedUp) {
  set(port_config(m1));
  set(port_config(m2));
  bind_both();
  lab::run("ip link del m1");
  reopen(options());
  EXPECT_THAT(fast_path->ports(), ElementsAre(m2));
  EXPECT_EQ(pins("links"), 2u);
  lab::run("ip link del m2");
  EXPECT_TRUE(fast_path->remove_port(m2));
  EXPECT_EQ(pins("links"), 0u);
  const auto gone = fast_path->set_port(port_config(m2));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().error, ENODEV);
  EXPECT_TRUE(fast_path->ports().empty());
}

TEST_F(FastPathTest, ADetachedProgramComesBackWithSetPort) {
  set(port_config(m1));
  bind_both();
  const auto link = lab::pin_directory() + "/links/" + std::to_string(m1.value) + "_in";
  const int fd = bpf_obj_get(link.c_str());
  ASSERT_EQ(bpf_link_detach(fd), 0);  // by whoever; the pin stays
  close(fd);
  EXPECT_EQ(ask(), Outcome::Flooded);
  set(port_config(m1));
  EXPECT_EQ(ask(), Outcome::Answered);
}

TEST_F(FastPathTest, TeardownLeavesNothing) {
  for (const auto& with : {options(), clsact()}) {
    SCOPED_TRACE(with.force_clsact);
    reopen(with);
    set(port_config(m1));
    set(port_config(m2));
    bind_both();
    const auto busy = FastPath::teardown(lab::pin_directory());
    ASSERT_FALSE(busy);
    EXPECT_THAT(busy.error().what, HasSubstr("in use"));
    fast_path.reset();
    const auto done = FastPath::teardown(lab::pin_directory());
    EXPECT_TRUE(done) << done.error().what;
    EXPECT_FALSE(std::filesystem::exists(lab::pin_directory()));
    EXPECT_EQ(ask(), Outcome::Flooded);
    EXPECT_TRUE(FastPath::teardown(lab::pin_directory()));
  }
}

TEST_F(FastPathTest, OnlyOneOwner) {
  const auto second = FastPath::open(options());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("in use"));
}

// Ports whose numbers have the same remainder by PL_NEAR_PORTS.
TEST_F(FastPathTest, PortsWithNumbersFarApart) {
  const uint32_t twin = m1.value + PL_NEAR_PORTS;
  lab::run("ip link add m3 index " + std::to_string(twin) + " type veth peer name p3");
  lab::run("ip link set m3 up && ip link set p3 up");
  lab::wait_up({"m3", "p3"});
  const net::IfIndex m3(twin);
  bind_both();
  const net::MacAddress carol = mac("02:00:00:00:00:03");
  bind("192.0.2.3", carol, m3);
  const lab::Member third("p3");
  const auto from_carol = arp_request({.sender_mac = carol, .sender = ip("192.0.2.3")});
  const auto to_carol = cut(arp(carol, kBob,
                                {.op = 2,
                                 .sender_mac = kBob,
                                 .sender = ip("192.0.2.2"),
                                 .target_mac = carol,
                                 .target = ip("192.0.2.3")}),
                            60);
  const auto both_answer = [&] {
    EXPECT_EQ(ask(), Outcome::Answered);
    third.send(from_carol);
    EXPECT_EQ(third.receive(), to_carol);
  };
  set(port_config(m1));
  set(port_config(m3));
  both_answer();
  set(port_config(m1));
  both_answer();
  ASSERT_TRUE(fast_path->remove_port(m1));
  EXPECT_EQ(ask(), Outcome::Flooded);
  set(port_config(m3));  // moves up
  set(port_config(m1));
  both_answer();
  ASSERT_TRUE(fast_path->remove_port(m3));
  EXPECT_EQ(ask(), Outcome::Answered);
  lab::run("ip link del m3");
}

TEST_F(FastPathTest, ErrorsSayWhatIsWrong) {
  auto with = options();
  with.pin_directory = "/tmp/plbpf-nowhere/x";
  auto refused = FastPath::open(with);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("not on a bpffs"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/plbpf-nowhere"));
  fast_path.reset();
  with = options();
  with.object_file = "/nonexistent.bpf.o";
  refused = FastPath::open(with);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("open /nonexistent.bpf.o"));
  reopen(options());
  auto config = port_config(m1);
  config.macs.resize(PL_MAX_MACS + 1);
  const auto too_long = fast_path->set_port(config);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().what, HasSubstr("MAC addresses"));
  for (uint32_t i = 0; i < 1024; ++i)
    ASSERT_TRUE(fast_path->set_binding(
        {.vni = net::Vni(1), .ip = IpAddress::v4(i), .mac = kBob, .port = {}}));
  EXPECT_FALSE(fast_path->set_binding(
      {.vni = net::Vni(1), .ip = IpAddress::v4(5000), .mac = kBob, .port = {}}));
}

// Ifindexes of one namespace mean nothing in another.
TEST_F(FastPathTest, PinsBelongToOneNamespace) {
  set(port_config(m1));
  fast_path.reset();
  const int home = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(home, 0);
  ASSERT_EQ(unshare(CLONE_NEWNET), 0);
  const auto foreign = FastPath::open(options());
  ASSERT_EQ(setns(home, CLONE_NEWNET), 0);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().what, HasSubstr("another network namespace"));
  // Once its devices are gone, it is nobody's.
  lab::run("ip link del m1");
  ASSERT_EQ(unshare(CLONE_NEWNET), 0);
  {
    const auto taken = FastPath::open(options());
    EXPECT_TRUE(taken);
    EXPECT_TRUE(taken && (*taken)->ports().empty());
  }
  ASSERT_EQ(setns(home, CLONE_NEWNET), 0);
  close(home);
}

// In a mount namespace without a bpffs, one is mounted.
TEST_F(FastPathTest, MountsTheBpffsWhenThereIsNone) {
  fast_path.reset();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(77);
    while (umount("/sys/fs/bpf") == 0) {
    }
    const auto opened = FastPath::open(options());
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what.c_str());
    _exit(opened ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FastPathTest, SurvivesDownUpAndLeavingTheBridge) {
  set(port_config(m1));
  bind_both();
  lab::run("ip link set m1 down && ip link set m1 up");
  lab::wait_up({"m1"});
  lab::run("ip link set m1 nomaster && ip link set m1 master br0");
  EXPECT_EQ(ask(), Outcome::Answered);
}

}  // namespace
