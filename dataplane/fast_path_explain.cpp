// SPDX-License-Identifier: GPL-2.0-or-later
// What the programs would do with a frame. The verdict is theirs: they run on it
// (BPF_PROG_TEST_RUN) with copies of the port's configuration and state, which they find by the
// index of the loopback device, so that no counter, bucket, binding or ring buffer changes. The
// rules that led there are read off the same configuration and state by the code that the programs
// share with user space.
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "dataplane/fast_path_impl.h"
#include "dataplane/port_abi.h"

namespace {
struct pl_source {
  std::span<const uint8_t> frame;
};
int pl_load(const pl_source* source, uint32_t offset, void* to, uint32_t n) {
  if (offset > source->frame.size() || n > source->frame.size() - offset) return -1;
  std::memcpy(to, source->frame.data() + offset, n);
  return 0;
}
}  // namespace
#include "dataplane/bpf/bucket.h"
#include "dataplane/bpf/neighbor.h"

namespace dataplane {

namespace {

constexpr std::size_t kMaxFrame = 3000;  // a page, less what the kernel wants of it
constexpr std::size_t kRoom = 128;       // an answer may be longer than the request

uint64_t monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::string hex16(unsigned value) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%04x", value & 0xffff);
  return text;
}

std::string mac_text(const uint8_t* octets) {
  return to_string(net::MacAddress::from_bytes(std::span<const uint8_t, 6>(octets, 6)));
}

std::string device_text(uint32_t ifindex) {
  char name[IF_NAMESIZE];
  if (ifindex == 0) return "behind another PE";
  return std::string("at ") +
         (if_indextoname(ifindex, name) != nullptr ? name : "a device that is gone");
}

const char* reason_text(unsigned reason) {
  const auto drops = drop_reasons();
  return is_drop(reason) && reason - PL_FIRST_DROP < drops.size()
             ? drops[reason - PL_FIRST_DROP].text
             : "";
}

// Rates of a limit as its costs tell them, and what is left now.
std::string limit_text(const pl_limit& limit, const __u64* buckets, uint64_t now) {
  if (limit.mode == PL_UNLIMITED) return "none";
  if (limit.mode == PL_NOTHING) return "nothing passes";
  std::string out;
  const auto add = [&](uint64_t cost, uint64_t tau, uint64_t tat, const char* unit, uint64_t per) {
    if (cost == 0) return;
    const auto rate = ((per * 1'000'000'000ull << 16) + cost / 2) / cost;
    const bool over = tat > now + tau;
    if (!out.empty()) out += ", ";
    out += std::to_string(rate) + unit + (over ? ", reached" : ", not reached");
  };
  add(limit.frame_q16, limit.frame_tau, buckets[PL_FRAMES], " frames/s", 1);
  add(limit.byte_q16, limit.byte_tau, buckets[PL_OCTETS], " bit/s", 8);
  return out;
}

// What a program did in the shadow's slot.
struct Outcome {
  int action = 0;  // of the program
  net::Bytes frame;
  unsigned cls = PL_CLASS_CONTROL;
  unsigned reason = PL_PASSED;
  bool observed = false;
};

// The rules, one after the other, for one frame at one port.
class Rules {
 public:
  Rules(const BpfMaps& maps, const pl_config& config, const pl_state& state, int hook,
        std::span<const uint8_t> frame)
      : maps_(maps), config_(config), state_(state), hook_(hook), source_{frame} {
    const auto seen = std::min<std::size_t>(frame.size(), sizeof head_.b);
    std::memcpy(head_.b, frame.data(), seen);
    pl_look(&head_, static_cast<uint32_t>(seen), static_cast<uint32_t>(frame.size()), &frame_);
  }

  // Appends them; the verdict as this code sees it.
  Outcome read(std::vector<std::string>& out) {
    out_ = &out;
    gate();
    const unsigned reason = by_kind();
    if (config_.gate != PL_PASSED && !(config_.gate == PL_QUARANTINE && reason == PL_PASSED &&
                                       frame_.observed == 0 && frame_.cls == PL_CLASS_CONTROL))
      return verdict(frame_.cls, config_.gate);
    if (reason != PL_PASSED) return verdict(frame_.cls, reason);
    if (frame_.observed != 0) say("observe: counted, but not dropped");
    if (frame_.cls == PL_CLASS_CONTROL) return verdict(PL_CLASS_CONTROL, PL_PASSED);
    say(std::string("class: ") + class_name(frame_.cls));
    neighbor();
    limits();
    return verdict(frame_.cls, PL_PASSED);
  }

 private:
  void say(std::string rule) { out_->push_back(std::move(rule)); }
  static Outcome verdict(unsigned cls, unsigned reason) {
    Outcome out;
    out.cls = cls;
    out.reason = reason;
    return out;
  }

  void gate() {
    say(config_.gate == PL_QUARANTINE ? "port: in quarantine, nothing passes"
        : config_.gate == PL_SHUT     ? "port: shut, nothing passes"
                                      : "port: open");
  }

  unsigned by_kind() {
    const auto mac = pl_mac(head_.b + 6);
    if (hook_ == PL_IN && frame_.group != 0 && pl_may_come_back(&config_, &head_) &&
        pl_came_back(state_.sent, pl_frame_hash(&head_, &frame_), monotonic())) {
      say("loop: the same frame was sent out of this port within the last two seconds");
      if (!pl_observed(config_.observe, &frame_, PL_LOOPED)) return PL_LOOPED;
    }
    if (hook_ == PL_IN && config_.own_mac_count != 0 && pl_own_source(&config_, mac))
      say("loop: the source MAC is the PE's own");
    if (pl_is_tag(frame_.type))
      say("VLAN tag " + hex16(frame_.type) + ": " +
          (pl_allowed(&config_, PL_VLAN_TAG) ? "allowed" : "not allowed"));
    const unsigned reason = pl_check(&source_, &config_, hook_, &head_, &frame_);
    const unsigned wrong = reason != PL_PASSED ? reason : frame_.observed;
    if (wrong != PL_LOOPED && wrong != PL_VLAN_TAG) kind(wrong, mac);
    return reason;
  }

  // EtherType, source and protocol as far as the program looked at them.
  void kind(unsigned wrong, uint64_t mac) {
    pl_frame again = frame_;
    const unsigned link = pl_link_reason(&head_, &again);
    const auto type = frame_.type < 0x600 ? "LLC, length " + std::to_string(frame_.type)
                                          : "EtherType " + hex16(frame_.type);
    if (link != PL_PASSED && (wrong == link || pl_allowed(&config_, link)))
      protocol(link);
    else
      say(type + (pl_ethertype_listed(&config_, frame_.type) ? ": listed" : ": not listed"));
    if (wrong == link && link != PL_PASSED) return;
    if (wrong == PL_ETHERTYPE) return;
    if (hook_ == PL_IN && frame_.cls != PL_CLASS_CONTROL) source(wrong, mac);
    if (wrong != PL_PASSED && wrong != PL_SOURCE_MAC && wrong != PL_SOURCE_INVALID) protocol(wrong);
  }

  void source(unsigned wrong, uint64_t mac) {
    const auto text = "source MAC " + mac_text(head_.b + 6) + ": ";
    if (wrong == PL_SOURCE_INVALID)
      say(text + "zero or a group");
    else if (config_.enforce_macs == 0)
      say(text + "any is allowed");
    else
      say(text + (pl_source_listed(&config_, mac) ? "provisioned" : "not provisioned") +
          (config_.observe_macs != 0 ? ", only counted" : ""));
  }

  void protocol(unsigned reason) {
    const bool allowed = reason < 64 && pl_allowed(&config_, reason);
    say(std::string(reason_name(reason)) + ", " + reason_text(reason) +
        (allowed ? ": allowed" : ": not allowed"));
  }

  void neighbor() {
    if (hook_ != PL_IN || frame_.tags != 0) return;
    if (frame_.group == 0) {
      for (const auto& trap : config_.traps)
        if (trap.mac == pl_mac(head_.b))
          say(std::string("destination MAC: that of ") + reason_name(trap.reason));
    }
    if (config_.core != 0 || config_.proxy == 0) return;
    const bool arp = frame_.type == PL_TYPE_ARP && pl_arp_ethernet(&head_);
    const bool nd = frame_.nd != 0 && source_.frame.size() >= PL_NS_END;
    if (!arp && !nd) return;
    if (frame_.group != 0) {
      const bool plain = arp ? pl_arp_plain(&head_, &frame_) : nd_plain();
      say(plain ? "proxy: a plain question, answered when target and sender are known"
                : "proxy: not a plain question, the daemon decides");
      if (!plain) return;
    }
    bound("sender", arp ? std::span<const uint8_t>(head_.b + PL_SPA, 4)
                        : std::span<const uint8_t>(head_.b + PL_IP6_SOURCE, 16));
    if (frame_.group != 0)
      bound("target", arp ? std::span<const uint8_t>(head_.b + PL_TPA, 4)
                          : std::span<const uint8_t>(head_.b + PL_ND_TARGET, 16));
  }
  [[nodiscard]] bool nd_plain() const {
    return frame_.nd == PL_NS && pl_ns_plain(&head_, &frame_) != 0;
  }

  template <class Key>
  [[nodiscard]] std::optional<pl_binding> find(const char* map,
                                               std::span<const uint8_t> address) const {
    Key key{};
    key.vni = config_.vni;
    std::ranges::copy(address, key.ip);
    pl_binding value{};
    if (bpf_map_lookup_elem(maps_.map(map), &key, &value) != 0) return std::nullopt;
    return value;
  }
  void bound(const char* who, std::span<const uint8_t> address) {
    const auto found =
        address.size() == 4 ? find<pl_key4>("bind4", address) : find<pl_key6>("bind6", address);
    const auto text = std::string(who) + ": " + to_string(*net::IpAddress::from_bytes(address));
    say(found ? text + " is bound to " + mac_text(found->mac) + ", " + device_text(found->port)
              : text + " is not bound");
  }

  void limits() {
    unsigned cls = frame_.cls;
    if (frame_.group == 0 && config_.look_up[hook_] != 0) {
      pl_mac_key key{};
      key.vni = config_.vni;
      std::memcpy(key.mac, head_.b, 6);
      uint32_t value = 0;
      const bool known = bpf_map_lookup_elem(maps_.map("macs"), &key, &value) == 0;
      say("destination MAC " + mac_text(head_.b) + (known ? ": known" : ": unknown"));
      if (!known) cls = PL_CLASS_UNKNOWN_UNICAST;
    }
    if (cls >= PL_LIMITED_CLASSES) return;
    const auto now = monotonic();
    const auto kind = config_.core != 0 ? PortKind::Core : PortKind::Member;
    say(std::string("limit of ") + class_name(cls) + " at " + to_string(direction_of(kind, hook_)) +
        ": " + limit_text(config_.limits[hook_][cls], state_.tat[hook_][cls], now));
    const auto& total = config_.total[pl_rank_of(cls)];
    if (hook_ == PL_OUT && cls <= PL_CLASS_UNKNOWN_UNICAST && total.mode != PL_UNLIMITED)
      say("limit of all classes to the member: " + limit_text(total, state_.total, now));
  }

  const BpfMaps& maps_;
  const pl_config& config_;
  const pl_state& state_;
  int hook_;
  pl_source source_;
  pl_head head_{};
  pl_frame frame_{};
  std::vector<std::string>* out_ = nullptr;
};

// The shadow of a port while it lives.
class Shadow {
 public:
  Shadow(const BpfMaps& maps, std::function<void(uint32_t)> clear_slot, pl_config config,
         pl_state state)
      : maps_(maps), clear_slot_(std::move(clear_slot)) {
    config.device = PL_SHADOW_DEVICE;
    config.dry = 1;
    std::memset(state.seen, 0, sizeof state.seen);
    clear_slot_(kSlot);
    const uint32_t place = PL_SHADOW_CONFIG, device = PL_SHADOW_DEVICE;
    const pl_port where{kSlot, place};
    good_ = bpf_map_update_elem(map("state"), &kSlot, &state, BPF_ANY) == 0 &&
            bpf_map_update_elem(map("configs"), &place, &config, BPF_ANY) == 0 &&
            bpf_map_update_elem(map("ports"), &device, &where, BPF_ANY) == 0;
  }
  ~Shadow() {
    const uint32_t device = PL_SHADOW_DEVICE;
    bpf_map_delete_elem(map("ports"), &device);
    clear_slot_(kSlot);
  }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  [[nodiscard]] bool good() const { return good_; }

  // None: the kernel would not run it.
  std::optional<Outcome> run(int hook, std::span<const uint8_t> frame) {
    Outcome out;
    out.frame.resize(frame.size() + kRoom);
    bpf_test_run_opts options{};
    options.sz = sizeof options;
    options.data_in = frame.data();
    options.data_size_in = static_cast<uint32_t>(frame.size());
    options.data_out = out.frame.data();
    options.data_size_out = static_cast<uint32_t>(out.frame.size());
    if (bpf_prog_test_run_opts(maps_.program(hook), &options) != 0) return std::nullopt;
    out.frame.resize(options.data_size_out);
    out.action = static_cast<int>(options.retval);
    read(out);
    return out;
  }

 private:
  static constexpr uint32_t kSlot = PL_SHADOW_SLOT;
  [[nodiscard]] int map(const char* name) const { return maps_.map(name); }

  // What was counted: for a frame that was only observed, the reason, unless it was answered or
  // given to the daemon.
  void read(Outcome& out) const {
    pl_state state{};
    bpf_map_lookup_elem(map("state"), &kSlot, &state);
    for_each_drop(state, kSlot, [&](const pl_drop_key& key) {
      if (!out.observed && is_drop(out.reason)) return;
      out.cls = key.cls;
      out.reason = key.reason;
      out.observed = key.observed != 0;
    });
    if (is_drop(out.reason) && !out.observed) return;
    const auto counts = counts_of(map("counts"), kSlot);
    for (const auto& rows : counts.rows)
      for (uint32_t row = 0; row < PL_ROWS; ++row) {
        const auto meaning = row_meaning(row);
        if (!meaning || rows[row].packets == 0) continue;
        out.cls = meaning->cls;
        out.reason = meaning->reason;
        if (is_drop(out.reason)) out.observed = false;
      }
  }

  const BpfMaps& maps_;
  std::function<void(uint32_t)> clear_slot_;
  bool good_ = false;
};

}  // namespace

FastPathResult<FrameExplanation> FastPath::explain(net::IfIndex port, Direction direction,
                                                   std::span<const uint8_t> frame) const {
  const auto device = "device " + std::to_string(port.value);
  const auto found = impl_->ports.find(port);
  if (found == impl_->ports.end())
    return std::unexpected(FastPathError{device + " is no port with programs", ENODEV});
  const int hook = hook_of(direction);
  if (direction_of(found->second.kind, hook) != direction)
    return std::unexpected(FastPathError{
        device + " has no " + to_string(direction) +
            (found->second.kind == PortKind::Core ? ": it is a VXLAN device" : ": it is a port"),
        EINVAL});
  if (frame.size() < PL_ETH || frame.size() > kMaxFrame)
    return std::unexpected(FastPathError{"a frame has " + std::to_string(unsigned{PL_ETH}) +
                                             " to " + std::to_string(kMaxFrame) + " octets",
                                         EMSGSIZE});
  pl_config config{};
  pl_state state{};
  const auto where = found->second.where;
  if (bpf_map_lookup_elem(impl_->maps->map("configs"), &where.config, &config) != 0 ||
      bpf_map_lookup_elem(impl_->maps->map("state"), &where.slot, &state) != 0)
    return std::unexpected(bpf_error("read the configuration of " + device, errno));

  FrameExplanation out;
  auto expected = Rules(*impl_->maps, config, state, hook, frame).read(out.rules);
  Shadow shadow(*impl_->maps, [&](uint32_t slot) { impl_->clear_slot(slot); }, config, state);
  if (!shadow.good()) return std::unexpected(bpf_error("copy the port", errno));
  std::optional<Outcome> said;
  constexpr int kXdpDrop = 1, kXdpTx = 3;
  if (hook == PL_IN && impl_->attachments.attached(port, kXdpHook)) {
    said = shadow.run(kXdpHook, frame);
    if (said && (said->action == kXdpTx || said->action == kXdpDrop))
      out.rules.emplace_back("answer: by XDP, before the tc program");
    else
      said.reset();
  }
  if (!said) said = shadow.run(hook, frame);
  if (!said) {
    // The test run wants whole IP headers; the program itself does not.
    out.rules.emplace_back(
        "judged by the same code in user space: the kernel's test run takes no "
        "frame whose headers are cut off");
    said = std::move(expected);
  } else if (is_drop(expected.reason) && said->reason != expected.reason) {
    out.rules.push_back(std::string("the kernel disagrees with these rules: they say ") +
                        reason_name(expected.reason));
  }
  out.answered = said->reason == PL_ANSWERED;
  out.punted = said->reason == PL_PUNTED;
  out.passed = said->reason == PL_PASSED || said->observed;
  if (said->reason == PL_ANSWERED || said->reason == PL_PUNTED) out.passed = false;
  out.bum_class = class_name(said->cls);
  out.reason = reason_name(said->reason);
  if (out.answered) out.answer = std::move(said->frame);
  out.rules.push_back(std::string("verdict: ") +
                      (!is_drop(said->reason) ? out.reason
                       : said->observed       ? std::string("passed, observed as ") + out.reason
                                              : std::string("dropped, ") + out.reason));
  return out;
}

}  // namespace dataplane
