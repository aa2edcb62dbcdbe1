// SPDX-License-Identifier: GPL-2.0-or-later
// The eBPF data path: one program at tc ingress and one at tc egress of each member port and of
// each VXLAN device, their maps, and the ring buffer of punts. Programs, maps and links are pinned
// below one folder of a bpffs, so that they outlive the daemon; open() adopts what is pinned there.
//
// Order at a member's ingress: link-local groups and EtherTypes; source MAC; ARP/ND answer; BUM
// buckets; then the bridge. All calls happen on one thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/settings.h"
#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"

namespace dataplane {

struct FastPathError {
  std::string what;  // "load bum.bpf.o: Operation not permitted"
  int error = 0;
};
template <class T>
using FastPathResult = std::expected<T, FastPathError>;

// Where frames of a device stand in a broadcast domain.
enum class PortKind : uint8_t { Member, Core };  // Core: the VXLAN device

// A destination MAC whose frames end here: the anti-spoof MAC, the MAC of the sponge.
struct TrapMac {
  net::MacAddress mac;
  const char* reason = "sponge";  // name of the drop reason: "anti-spoof", "sponge"
  bool operator==(const TrapMac& other) const {
    return mac == other.mac && std::string_view(reason) == other.reason;
  }
};

// Whether anything passes at a member's port. Blocked ports drop every frame in both directions,
// under a reason of their own: "quarantine" or "shut". In quarantine the link-local groups that the
// policy allows (LACP) still reach the PE itself, and what breaks the rules is reported.
enum class Gate : uint8_t { Open, Quarantine, Shut };

struct PortConfig {
  net::IfIndex index;
  // Counters and buckets stay with the name, at most 31 octets, when its device goes and comes back
  // with another index; empty: they go with the device.
  std::string name;
  PortKind kind = PortKind::Member;
  net::Vni vni;  // the broadcast domain
  BumPolicy policy;
  bool proxy = true;   // answer and punt ARP/ND (profile other than off)
  bool learn = false;  // punt copies of ARP/ND of senders that are not bound
  // Punt a copy of a bound sender's ARP/ND too when the last one is so long ago; zero: never. Keeps
  // learned bindings from ageing while the kernel answers.
  std::chrono::milliseconds renew{0};
  // Unicast ARP and NA to this MAC, the PE's own, are punted as copies: answers to our questions.
  std::optional<net::MacAddress> own_mac;
  std::vector<TrapMac> traps;  // at most two
  bool xdp = false;            // answer in native XDP where the driver has it, else by tc alone
  std::vector<net::MacAddress> macs;  // with enforce_macs: the only sources
  bool enforce_macs = false;
  // With enforce_macs: frames of other sources are counted as observed and reported, but pass.
  bool observe_macs = false;
  Gate gate = Gate::Open;
  // MACs that no member can send from: those of the PE itself. A frame from one of them came back
  // through a loop, and is dropped under the reason "loop".
  std::vector<net::MacAddress> own_macs;
  // Report frames that come in and are dropped, or observed, for what they are as Violations:
  // "source-mac", "source-invalid", "spoofed-sender", "loop", "stp" ...; not what is over a limit.
  bool report_violations = true;
  // Unknown unicast leaves by this port unless its policy says no. Otherwise the flags of the
  // bridge keep it from here, and an egress policy that lets nothing pass need not look for it.
  bool bridge_floods_unknown = false;
  bool operator==(const PortConfig&) const = default;
};

// A known target: what SetFastEntry says (proxyarp/responder.h).
struct FastBinding {
  net::Vni vni;
  net::IpAddress ip;
  net::MacAddress mac;
  net::IfIndex port;  // 0: behind another PE
  bool router = true;
  bool override_flag = true;
  bool operator==(const FastBinding&) const = default;
};
struct FastBindingUse {
  uint64_t answers = 0;  // given by the kernel
  std::optional<net::MacAddress> last_asker;
};

// A frame for the responder.
struct Punt {
  net::IfIndex port;
  bool copy = false;               // the frame went its way; only for learning
  bool trapped = false;            // the frame was for a TrapMac and was dropped
  std::span<const uint8_t> frame;  // from Ethernet destination; valid during the callback
};

// A frame that was dropped at a port, with its head: at most some a second for each port, the
// counters have all.
struct Violation {
  net::IfIndex port;
  Direction direction = Direction::Ingress;
  const char* reason = "";  // name of the drop reason
  net::MacAddress source;
  std::span<const uint8_t> frame;  // its first octets; valid during the callback
};

// The device that tunnels arrive through: only known VTEPs may send into `vnis`; others are dropped
// under "rogue-vtep", what is over the limit under "vtep-limit". Frames that are not VXLAN to
// `udp_port` at `local` pass untouched.
struct UnderlayConfig {
  net::IfIndex index;
  net::IpAddress local;
  uint16_t udp_port = 4789;
  std::vector<net::Vni> vnis;     // ours; frames of others pass
  std::optional<Limit> per_vtep;  // of BUM (by the inner destination)
  bool observe = false;
  bool operator==(const UnderlayConfig&) const = default;
};
struct VtepCounter {
  net::IpAddress vtep;                              // unspecified: all that are not known
  uint64_t packets = 0, bytes = 0;                  // passed
  uint64_t limited_packets = 0, limited_bytes = 0;  // dropped
  uint64_t observed_packets = 0;  // of those that passed: not dropped by `observe`
};

// What the programs say of a frame, and each rule that led there, in order.
struct FrameExplanation {
  bool passed = false;
  bool answered = false, punted = false;
  const char* bum_class = "";
  const char* reason = "";         // "passed", "answered", "punted" or the name of a drop reason
  std::vector<std::string> rules;  // "EtherType 0x0806: listed", "source MAC: provisioned", ...
  net::Bytes answer;               // the frame that is sent back, if one is
};

struct Counter {
  net::IfIndex port;
  Direction direction;
  const char* bum_class;  // name of the class, or "unicast", or "control" for what no limit governs
  const char* reason;     // "passed", "answered", "punted" or the name of a drop reason
  bool dropped = false;
  bool observed = false;  // would have been dropped, but the policy only observes: it passed
  uint64_t packets = 0, bytes = 0;
};

struct FastPathOptions {
  std::string pin_directory;  // below a bpffs, e.g. /sys/fs/bpf/peerlan/pe1; made when missing
  std::string object_file;    // the compiled programs
  uint32_t max_bindings = 262144;
  uint32_t max_macs = 262144;
  uint32_t ring_bytes = 4u << 20;
  uint32_t punts_per_second = 20000;  // of all ports together
  bool force_clsact = false;          // even where the kernel has tcx
};

// Where the programs are: beside the build, else where a package puts them.
[[nodiscard]] std::string default_object_file();

class FastPath {
 public:
  [[nodiscard]] static FastPathResult<std::unique_ptr<FastPath>> open(
      const FastPathOptions& options);
  ~FastPath();  // leaves everything pinned and running
  FastPath(const FastPath&) = delete;
  FastPath& operator=(const FastPath&) = delete;

  // Attaches (or, when already attached, updates) without a gap in enforcement. A port with a name
  // takes over the counters and buckets that the name had under another index.
  [[nodiscard]] FastPathResult<void> set_port(const PortConfig& config);
  // Counters of a port with a name stay, under the old index till the next daemon's start, when its
  // device is gone; else they go.
  [[nodiscard]] FastPathResult<void> remove_port(net::IfIndex port);
  // Attaches again what somebody detached; true when there was something to do.
  [[nodiscard]] FastPathResult<bool> repair_port(net::IfIndex port);
  [[nodiscard]] std::vector<net::IfIndex> ports() const;  // attached now, adopted ones included

  [[nodiscard]] FastPathResult<void> set_binding(const FastBinding& binding);
  [[nodiscard]] FastPathResult<void> clear_binding(net::Vni vni, const net::IpAddress& ip);
  [[nodiscard]] std::vector<FastBinding> bindings() const;
  // How often the kernel answered for an address, and whom last; none: it has no entry.
  [[nodiscard]] std::optional<FastBindingUse> use_of(net::Vni vni, const net::IpAddress& ip) const;

  // Mirror of the FDB for the unknown-unicast class. Add after the FDB has it, remove before.
  [[nodiscard]] FastPathResult<void> add_mac(net::Vni vni, net::MacAddress mac);
  [[nodiscard]] FastPathResult<void> remove_mac(net::Vni vni, net::MacAddress mac);
  [[nodiscard]] std::vector<std::pair<net::Vni, net::MacAddress>> macs() const;

  // Readable (level-triggered) while punts or violations wait to be drained. Owned by this object.
  [[nodiscard]] int punt_descriptor() const;
  [[nodiscard]] int violation_descriptor() const;
  // Takes what is in the ring buffer, at most `max` punts; returns how many.
  std::size_t drain(const std::function<void(const Punt&)>& handler, std::size_t max = 1024);

  // The same for reports of dropped frames.
  std::size_t drain_violations(const std::function<void(const Violation&)>& handler,
                               std::size_t max = 256);

  // --- the underlay; one device may be given for each that a route to a VTEP may go through
  [[nodiscard]] FastPathResult<void> set_underlay(const UnderlayConfig& config);
  [[nodiscard]] FastPathResult<void> remove_underlay(net::IfIndex index);
  [[nodiscard]] std::vector<net::IfIndex> underlays() const;  // attached now, adopted ones too
  [[nodiscard]] FastPathResult<void> add_vtep(const net::IpAddress& vtep);
  [[nodiscard]] FastPathResult<void> remove_vtep(const net::IpAddress& vtep);
  [[nodiscard]] std::vector<VtepCounter> vtep_counters() const;

  // What the attached program would do with this frame now. Counts nothing, takes nothing from a
  // bucket, sends nothing.
  [[nodiscard]] FastPathResult<FrameExplanation> explain(net::IfIndex port, Direction direction,
                                                         std::span<const uint8_t> frame) const;

  [[nodiscard]] std::vector<Counter> counters(net::IfIndex port) const;  // only non-zero ones
  [[nodiscard]] uint64_t punts_lost() const;                             // ring buffer full
  [[nodiscard]] const char* attach_mode() const;                         // "tcx" or "clsact"
  // "xdp+tcx" when answers come from XDP on this port.
  [[nodiscard]] std::string attach_mode(net::IfIndex port) const;

  // An error when a daemon works with the pins below pin_directory.
  [[nodiscard]] static FastPathResult<void> check_unused(const std::string& pin_directory);
  // Detaches all and removes the pins below pin_directory.
  [[nodiscard]] static FastPathResult<void> teardown(const std::string& pin_directory);

 private:
  struct Impl;
  explicit FastPath(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dataplane
