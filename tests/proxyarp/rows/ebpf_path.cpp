// SPDX-License-Identifier: GPL-2.0-or-later
// The rows over the eBPF programs with the responder behind them: each frame runs through the
// program of its port by BPF_PROG_TEST_RUN; what that punts goes to the responder, as the daemon
// does it. Once with tc alone and once with XDP before it. Needs root; skips aloud without.
//
// Host N's port is a veth of index 100 + N, each PE is a broadcast domain of its own, and its VXLAN
// device is stood in for by one of index 200 + n.
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include "dataplane/bpf/abi.h"
#include "dataplane/fast_path.h"
#include "tests/dataplane/namespace.h"
#include "tests/proxyarp/rows/harness.h"

namespace proxyarp::rows {
namespace {

using dataplane::FastPath;

constexpr uint32_t kPorts = 100, kCores = 200;

// The one data path of this process.
class Kernel : public testing::Environment {
 public:
  void SetUp() override {
    if (const auto problem = lab::enter_namespace()) GTEST_SKIP() << *problem;
    dataplane::FastPathOptions options;
    options.pin_directory = lab::pin_directory();
    options.max_bindings = 32768;
    options.max_macs = 1024;
    options.punts_per_second = 1'000'000'000;
    auto opened = FastPath::open(options);
    if (!opened) GTEST_SKIP() << opened.error().what;
    path = std::move(*opened);
    for (uint32_t n = 1; n <= 4; ++n) {
      const std::string name = "t" + std::to_string(n);
      lab::run("ip link add " + name + " index " + std::to_string(kPorts + n) +
               " type veth peer name u" + std::to_string(n));
      lab::run("ip link set " + name + " up");
    }
    for (uint32_t n = 0; n < 2; ++n)
      lab::run("ip link add c" + std::to_string(n) + " index " + std::to_string(kCores + n) +
               " type veth peer name d" + std::to_string(n));
  }
  void TearDown() override {
    if (!path) return;
    path.reset();
    EXPECT_TRUE(FastPath::teardown(lab::pin_directory()));
  }
  // The program behind the link of a device; kept.
  int program(uint32_t device, const char* suffix) {
    const std::string pin =
        lab::pin_directory() + "/links/" + std::to_string(device) + "_" + suffix;
    if (const auto found = programs.find(pin); found != programs.end()) return found->second;
    const int link = bpf_obj_get(pin.c_str());
    if (link < 0) return -1;
    bpf_link_info info{};
    uint32_t size = sizeof info;
    bpf_obj_get_info_by_fd(link, &info, &size);
    close(link);
    return programs[pin] = bpf_prog_get_fd_by_id(info.prog_id);
  }

  std::unique_ptr<FastPath> path;
  std::map<std::string, int> programs;
};
Kernel* const kernel = [] {
  auto* made = new Kernel;
  testing::AddGlobalTestEnvironment(made);  // owns it
  return made;
}();

class EbpfPath final : public Path {
 public:
  explicit EbpfPath(bool xdp) : xdp_(xdp) {
    if (!kernel->path) return;
    for (const auto& binding : kernel->path->bindings())
      EXPECT_TRUE(kernel->path->clear_binding(binding.vni, binding.ip));
  }

  bool is_kernel() const override { return true; }

  void configure(std::size_t pe, const Settings& settings,
                 const Responder::Identity& identity) override {
    auto& here = pes_[pe];
    here.fresh = true;
    auto& config = here.config;
    config = {};
    config.vni = vni(pe);
    config.policy.answers = {};
    config.policy.punts = {};
    config.policy.allow = {"ra", "rs", "redirect", "mld"};  // the responder sees all there is
    config.proxy = settings.profile != Profile::Off;
    config.learn = true;
    config.xdp = xdp_;
    if (!config.proxy) return;
    config.renew = std::chrono::hours(1000);  // by the test's clock: see renewals()
    config.own_mac = identity.mac;
    if (settings.duplicates.anti_spoof_mac)
      config.traps.push_back({*settings.duplicates.anti_spoof_mac, "anti-spoof"});
    const bool sponges = std::ranges::any_of(
        settings.unassigned, [](const auto& p) { return p.policy == Unassigned::Sponge; });
    if (sponges) config.traps.push_back({settings.sponge.mac.value_or(identity.mac), "sponge"});
    const auto refresh = settings.refresh.value_or(settings.age_time / 3);
    here.renew = std::clamp<net::Duration>(refresh / 10, 1s, 60s);
  }

  FrameResult member_frame(std::size_t pe, Responder& responder, net::IfIndex port,
                           const net::Bytes& frame, net::TimePoint now) override {
    catch_up(pe, responder);
    renewals(pe, now);
    const auto device = set_port(pe, kPorts + port.value, dataplane::PortKind::Member);
    if (!runs(frame)) return {responder.member_frame(port, frame, false, now).verdict, false, {}};
    if (xdp_)
      if (auto answer = run_xdp(device, port, frame)) return *answer;
    return by_tc(responder, device, port, frame, now);
  }

  FrameResult core_frame(std::size_t pe, Responder& responder, const net::Bytes& frame,
                         net::TimePoint now) override {
    catch_up(pe, responder);
    const auto device = set_port(pe, kCores + static_cast<uint32_t>(pe), dataplane::PortKind::Core);
    if (!runs(frame)) return {Verdict::MalformedArp, false, {}};
    const auto [action, out] = run_tc(device, frame);
    const auto punt = taken();
    FrameResult result{Verdict::Forwarded, action == TC_ACT_UNSPEC, {}};
    if (punt) {
      EXPECT_TRUE(punt->copy);
      result.actions = responder.core_frame(frame, now).actions;
    }
    // The bridge floods it to the members here.
    if (result.forward && (frame[0] & 1) != 0) {
      result.verdict = Verdict::Flooded;
      result.actions.emplace_back(Flood{frame, std::nullopt, true, false});
    }
    return result;
  }

  void apply(std::size_t pe, const Action& action) override {
    auto& entries = pes_[pe].entries;
    if (const auto* set = std::get_if<SetFastEntry>(&action)) {
      entries[set->ip] = *set;
      bind(pe, *set);
    } else if (const auto* clear = std::get_if<ClearFastEntry>(&action)) {
      entries.erase(clear->ip);
      EXPECT_TRUE(kernel->path->clear_binding(vni(pe), clear->ip));
    }
  }

 private:
  struct Pe {
    bool fresh = true;  // perhaps another responder than before
    dataplane::PortConfig config;
    net::Duration renew{};
    net::TimePoint renewed{};
    std::map<net::IpAddress, SetFastEntry> entries;
  };
  struct PuntSeen {
    bool copy, trapped;
    net::Bytes frame;
  };

  net::Vni vni(std::size_t pe) const { return net::Vni(first_vni_ + static_cast<uint32_t>(pe)); }
  static bool runs(const net::Bytes& frame) {  // else BPF_PROG_TEST_RUN won't have it
    if (frame.size() < 14) return false;
    const unsigned type = frame[12] * 256u + frame[13];
    return !(type == 0x0800 && frame.size() < 34) && !(type == 0x86dd && frame.size() < 54);
  }
  void bind(std::size_t pe, const SetFastEntry& entry) {
    const auto port = entry.port.value == 0 ? 0 : kPorts + entry.port.value;
    const auto done = kernel->path->set_binding({.vni = vni(pe),
                                                 .ip = entry.ip,
                                                 .mac = entry.mac,
                                                 .port = net::IfIndex(port),
                                                 .router = entry.flags.router,
                                                 .override_flag = entry.flags.override_flag});
    EXPECT_TRUE(done);
  }
  // What the responder told of its entries is what it has. A test may have begun with new PEs.
  void catch_up(std::size_t pe, const Responder& responder) {
    auto& here = pes_[pe];
    std::map<net::IpAddress, SetFastEntry> wanted;
    for (const auto& entry : responder.fast_entries()) wanted[entry.ip] = entry;
    if (here.fresh) {
      std::vector<net::IpAddress> stale;
      for (const auto& [ip, entry] : here.entries)
        if (!wanted.contains(ip)) stale.push_back(ip);
      for (const auto& ip : stale) apply(pe, ClearFastEntry{ip});
      here.fresh = false;
    }
    EXPECT_EQ(here.entries, wanted);
  }
  // The kernel tells of a bound sender when its last copy is older than PortConfig.renew. Its clock
  // is not the test's: entries made anew have no last copy.
  void renewals(std::size_t pe, net::TimePoint now) {
    auto& here = pes_[pe];
    if (now - here.renewed < here.renew) return;
    here.renewed = now;
    for (const auto& [ip, entry] : here.entries) {
      EXPECT_TRUE(kernel->path->clear_binding(vni(pe), ip));
      bind(pe, entry);
    }
  }
  uint32_t set_port(std::size_t pe, uint32_t device, dataplane::PortKind kind) {
    auto config = pes_[pe].config;
    config.index = net::IfIndex(device);
    config.kind = kind;
    auto& before = set_[device];
    if (before && *before == config) return device;
    const auto done = kernel->path->set_port(config);
    EXPECT_TRUE(done) << done.error().what;
    before = config;
    return device;
  }
  static std::pair<int, net::Bytes> run_tc(uint32_t device, const net::Bytes& frame) {
    __sk_buff context{};
    context.ifindex = device;
    net::Bytes out(frame.size() + 64);
    bpf_test_run_opts o{};
    o.sz = sizeof o;
    o.ctx_in = &context;
    o.ctx_size_in = sizeof context;
    o.data_in = frame.data();
    o.data_size_in = static_cast<uint32_t>(frame.size());
    o.data_out = out.data();
    o.data_size_out = static_cast<uint32_t>(out.size());
    EXPECT_EQ(bpf_prog_test_run_opts(kernel->program(device, "in"), &o), 0);
    out.resize(o.data_size_out);
    return {static_cast<int>(o.retval), out};
  }
  static std::optional<FrameResult> run_xdp(uint32_t device, net::IfIndex port,
                                            const net::Bytes& frame) {
    xdp_md context{};
    context.data_end = static_cast<uint32_t>(frame.size());
    context.ingress_ifindex = device;
    net::Bytes out(frame.size() + 64);
    bpf_test_run_opts o{};
    o.sz = sizeof o;
    o.ctx_in = &context;
    o.ctx_size_in = sizeof context;
    o.data_in = frame.data();
    o.data_size_in = static_cast<uint32_t>(frame.size());
    o.data_out = out.data();
    o.data_size_out = static_cast<uint32_t>(out.size());
    EXPECT_EQ(bpf_prog_test_run_opts(kernel->program(device, "xdp"), &o), 0);
    out.resize(o.data_size_out);
    if (o.retval != XDP_TX) return std::nullopt;
    return FrameResult{Verdict::Answered, false, {Transmit{port, out}}};
  }
  static std::optional<PuntSeen> taken() {
    std::optional<PuntSeen> out;
    kernel->path->drain([&](const dataplane::Punt& punt) {
      EXPECT_FALSE(out) << "one frame, two punts";
      out = PuntSeen{punt.copy, punt.trapped, net::Bytes(punt.frame.begin(), punt.frame.end())};
    });
    return out;
  }
  // Name of the reason that the latest frame was dropped for.
  std::string drop_reason(uint32_t device) {
    std::string out;
    for (const auto& counter : kernel->path->counters(net::IfIndex(device)))
      if (counter.dropped &&
          counter.packets != std::exchange(drops_[{device, counter.reason}], counter.packets))
        out = counter.reason;
    return out;
  }
  static Verdict verdict_of(const std::string& reason, const net::Bytes& frame) {
    const std::map<std::string, Verdict> words{{"same-port", Verdict::SamePort},
                                               {"owner-asked", Verdict::OwnerAsked},
                                               {"spoofed-sender", Verdict::SpoofedSender},
                                               {"anti-spoof", Verdict::Trapped},
                                               {"sponge", Verdict::Trapped}};
    if (const auto found = words.find(reason); found != words.end()) return found->second;
    return frame[12] == 0x08 ? Verdict::MalformedArp : Verdict::MalformedNd;
  }
  FrameResult by_tc(Responder& responder, uint32_t device, net::IfIndex port,
                    const net::Bytes& frame, net::TimePoint now) {
    drop_reason(device);  // from here on
    const auto [action, out] = run_tc(device, frame);
    const auto punt = taken();
    FrameResult result{Verdict::Forwarded, action == TC_ACT_UNSPEC, {}};
    if (punt && punt->trapped) {
      responder.trapped_frame(port, punt->frame, now);
      result.verdict = Verdict::Trapped;
      return result;
    }
    if (punt) {
      EXPECT_EQ(punt->frame, frame);
      Outcome outcome = responder.member_frame(port, frame, punt->copy, now);
      result.verdict = outcome.verdict;
      result.actions = std::move(outcome.actions);
      if (!punt->copy) return result;
    }
    if (action == TC_ACT_REDIRECT) {
      result.verdict = Verdict::Answered;
      result.actions.emplace_back(Transmit{port, out});
    } else if (action == TC_ACT_SHOT && !punt) {
      result.verdict = verdict_of(drop_reason(device), frame);
    } else if (result.forward && (frame[0] & 1) != 0) {
      result = {Verdict::Flooded, false, {Flood{frame, port, true, true}}};  // by the bridge
    }
    return result;
  }

  bool xdp_;
  static inline uint32_t next_vni_ = 100;
  uint32_t first_vni_ = std::exchange(next_vni_, next_vni_ + 2);
  std::map<std::size_t, Pe> pes_;
  static inline std::map<uint32_t, std::optional<dataplane::PortConfig>> set_;  // by device
  std::map<std::pair<uint32_t, std::string>, uint64_t> drops_;
};

PathKind kind(const char* name, bool xdp) {
  return {name, [xdp] { return std::unique_ptr<Path>(std::make_unique<EbpfPath>(xdp)); }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Ebpf, Rows, testing::Values(kind("tc", false)));
INSTANTIATE_TEST_SUITE_P(Xdp, Rows, testing::Values(kind("xdp", true)));

}  // namespace proxyarp::rows
