// SPDX-License-Identifier: GPL-2.0-or-later
// One broadcast domain of a PE: where MAC-VRF, proxy ARP/ND responder, kernel and eBPF data path
// meet. Events go in; every action that the modules return is carried out here, and nowhere else.
#pragma once
#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bgp/io/speaker.h"
#include "config/settings.h"
#include "daemon/log.h"
#include "daemon/port_guard.h"
#include "daemon/traffic.h"
#include "daemon/violation_log.h"
#include "dataplane/fast_path.h"
#include "dataplane/kernel.h"
#include "dataplane/packet_io.h"
#include "evpn/mac_vrf.h"
#include "net/time.h"
#include "proxyarp/responder.h"

namespace boost::asio {
class io_context;
}

namespace peerland {

class Trace;
using TracePtr = std::shared_ptr<Trace>;
enum class TraceDirection : uint8_t { In, Out };

// What a domain works with; all outlive it. fast_path is null in a PE without eBPF domains.
struct Services {
  boost::asio::io_context& io;
  bgp::io::Speaker& speaker;
  dataplane::Kernel& kernel;
  dataplane::FastPath* fast_path;
  dataplane::PacketSender& sender;
  dataplane::SoftPolicy& soft_policy;
  EventLog& log;
};

// A member port as it is now.
struct PortState {
  // As given, with the temporary MACs that are not over among `macs`.
  dataplane::MemberPort settings;
  net::IfIndex index;  // 0: the interface does not exist
  bool attached = false;
  bool link = false;  // of the interface
  bool up = false;    // link and guard
  PortGuard guard;
  std::array<uint64_t, kViolationKinds> violations{};  // reported, by GuardCause
  net::TimePoint since{};
  uint64_t flaps = 0;
  std::string problem;  // why it is not attached
  std::array<uint64_t, static_cast<std::size_t>(proxyarp::Verdict::Count)> verdicts{};
  std::unique_ptr<dataplane::PcapCapture> capture;
};

struct DomainCounters {
  uint64_t repairs = 0;        // kernel entries put right by a reconciliation
  uint64_t kernel_errors = 0;  // requests that the kernel refused
  uint64_t duplicate_macs = 0, sticky_violations = 0;
  uint64_t aged_asked = 0, aged_gone = 0;  // learned MACs that the bridge aged
  static constexpr auto kAlarms = static_cast<std::size_t>(proxyarp::AlarmKind::AddressBack) + 1;
  std::array<uint64_t, kAlarms> alarms{};  // of the responder, by AlarmKind
};

using VerdictCounts = std::array<uint64_t, static_cast<std::size_t>(proxyarp::Verdict::Count)>;

class Domain {
 public:
  using Policies = std::map<std::string, dataplane::BumPolicy>;
  Domain(const config::BroadcastDomain& settings, const Policies& policies, Services services);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // Makes or adopts the devices, attaches the ports that exist, originates the type 3 route.
  [[nodiscard]] std::expected<void, std::string> start(net::TimePoint now);
  // Visits the best routes of other PEs that are known.
  using EachRoute = std::function<void(
      const std::function<void(const evpn::Route&, const bgp::AttributesPtr&)>&)>;
  // New settings of the same domain (same VNI and devices); what did not change is not touched.
  void apply(const config::BroadcastDomain& settings, const Policies& policies,
             const EachRoute& routes, net::TimePoint now);
  // Withdraws everything and leaves the kernel's state as it is (the caller tears it down).
  void withdraw_all(net::TimePoint now);

  void link_changed(const dataplane::LinkChanged& event, net::TimePoint now);
  void fdb_learned(net::IfIndex port, net::MacAddress mac, net::TimePoint now);
  void fdb_gone(net::IfIndex port, net::MacAddress mac, net::TimePoint now);
  void remote_route(const evpn::Route& route, const bgp::AttributesPtr& attributes,
                    net::TimePoint now);
  void punt(net::IfIndex port, std::span<const uint8_t> frame, bool copy, bool trapped,
            net::TimePoint now);
  // Next-hop tracking, see evpn::MacVrf::reachable().
  void reachable(const net::IpAddress& vtep, bool yes, net::TimePoint now);
  // A frame was dropped at a port: for its security, or because the policy does not have it.
  void violation(const dataplane::Violation& violation, net::TimePoint now);
  // Reads the counters of one in `slices` ports, for rates, intervals and storms.
  void sample(std::size_t slice, std::size_t slices, net::TimePoint now);
  // Carries out what was collected; call at the end of each batch of events.
  void flush();
  // Everybody has told us what there is: what an earlier run left and nobody announced again goes.
  void converged(net::TimePoint now);
  // Makes bridge and VXLAN device again when somebody removed them; the ports follow by
  // link_changed(), the entries by reconcile().
  void restore_devices(net::TimePoint now);
  // Compares the kernel with what it should hold and repairs the difference.
  void reconcile(net::TimePoint now);
  // The quick part of it: programs and flags of the ports.
  void check_ports();
  // True when the change of the VXLAN device's table is not ours: reconcile soon.
  [[nodiscard]] bool is_meddling(const dataplane::TunnelChanged& change) const;
  void tick(net::TimePoint now);
  [[nodiscard]] net::TimePoint deadline() const;

  // --- commands of operators; false: there is no such thing
  bool clear_binding(const net::IpAddress& ip, net::TimePoint now);
  bool clear_duplicate(const net::IpAddress& ip, net::TimePoint now);
  bool clear_duplicate(const net::MacAddress& mac, net::TimePoint now);
  bool set_sponge(const net::IpAddress& ip, proxyarp::SpongeState state, net::TimePoint now);
  bool probe(const net::IpAddress& ip, net::TimePoint now);
  // Quarantine or Shut until Open is said; an error says why it is not to be.
  [[nodiscard]] std::expected<std::string, std::string> set_port(const std::string& name,
                                                                 GuardState wanted,
                                                                 net::TimePoint now);
  // While one of its traces lasts, an address is answered for by the responder, not the kernel.
  void add_trace(const TracePtr& trace);
  void remove_trace(const TracePtr& trace);
  [[nodiscard]] std::size_t traces() const { return traces_.size(); }

  // True for the domain's member ports and its VXLAN device.
  [[nodiscard]] bool has_port(net::IfIndex port) const;
  [[nodiscard]] bool is_device(net::IfIndex index) const {
    return index == devices_.bridge || index == devices_.vxlan;
  }
  [[nodiscard]] bool wants_interface(const std::string& name) const;

  // --- views
  [[nodiscard]] const config::BroadcastDomain& settings() const { return settings_; }
  [[nodiscard]] const evpn::MacVrf& vrf() const { return vrf_; }
  [[nodiscard]] const proxyarp::Responder& responder() const { return responder_; }
  [[nodiscard]] const std::map<std::string, PortState>& ports() const { return ports_; }
  [[nodiscard]] const DomainCounters& counters() const { return counters_; }
  // Frames that reached the responder; ipv6: those of neighbor discovery, else ARP.
  [[nodiscard]] const VerdictCounts& verdicts(bool ipv6) const { return verdicts_[ipv6 ? 1 : 0]; }
  // How often the kernel answered for an address; none: it does not.
  [[nodiscard]] std::optional<dataplane::FastBindingUse> kernel_use(const net::IpAddress& ip) const;
  // "tcx", "clsact", "xdp+tcx" or "pcap"
  [[nodiscard]] std::string attach_mode(net::IfIndex port) const;
  // pcap mode: requests for this address are answered, so they are no flood.
  [[nodiscard]] bool answers(const net::IpAddress& ip) const { return answered_.contains(ip); }
  [[nodiscard]] net::IfIndex vxlan() const { return devices_.vxlan; }
  [[nodiscard]] std::string port_name(net::IfIndex port) const;  // "m1", "vx100" or "#7"
  [[nodiscard]] std::string port_text(net::IfIndex port) const;  // "m1 (AS64501 Alpha Net)"
  [[nodiscard]] const PortState* find_port(net::IfIndex port) const;
  [[nodiscard]] std::vector<dataplane::Counter> frame_counters(net::IfIndex port) const;
  [[nodiscard]] const TrafficMeter& traffic() const { return traffic_; }
  [[nodiscard]] TrafficMeter& traffic() { return traffic_; }
  [[nodiscard]] const ViolationLog& violation_log() const { return violation_log_; }
  [[nodiscard]] const dataplane::BumPolicy& policy_of(const PortState& port) const;
  [[nodiscard]] const dataplane::BumPolicy& core_policy() const;
  [[nodiscard]] bool observes(const PortState& port) const;
  [[nodiscard]] dataplane::SecuritySettings security_of(const PortState& port) const;
  [[nodiscard]] bool uses_ebpf() const {
    return settings_.responder == dataplane::ResponderKind::Ebpf;
  }
  // VTEPs that frames may come from.
  [[nodiscard]] const std::set<net::IpAddress>& flood_peers() const { return core_flood_; }

 private:
  PortState* port_by_index(net::IfIndex port);
  dataplane::PortConfig port_config(const PortState& port) const;
  dataplane::PortConfig core_config() const;
  std::optional<net::MacAddress> own_mac() const;  // the bridge's
  proxyarp::Responder::Identity identity() const;
  // Tells responder and MAC-VRF what our own questions are asked from.
  void identify(net::TimePoint now);
  std::vector<dataplane::TrapMac> traps() const;
  std::vector<net::MacAddress> own_macs() const;
  // --- port security (domain_guard.cpp)
  dataplane::MemberPort in_force(const dataplane::MemberPort& given) const;
  void configure_guard(PortState& port, net::TimePoint now);
  void change_port(PortState& port, const dataplane::MemberPort& fresh, bool traps_changed,
                   net::TimePoint now);
  void expire_macs(net::TimePoint now);
  void note_expiry(net::TimePoint now);
  bool refuses(const PortState& port, net::MacAddress mac) const;
  void report(net::IfIndex port, ViolationEntry entry, net::TimePoint now);
  void report_frame(net::IfIndex port, GuardCause kind, const char* reason,
                    std::span<const uint8_t> frame, net::TimePoint now);
  void report_loop(const evpn::MacPlace& at, net::MacAddress mac, net::TimePoint now);
  std::string violation_text(net::IfIndex port, const ViolationEntry& entry) const;
  GuardCause kind_of(const dataplane::Violation& violation) const;
  void guard_changed(PortState& port, const PortGuard::Change& change, net::TimePoint now);
  void settle(net::TimePoint now);
  net::TimePoint guard_deadline() const;
  void refresh_gate(PortState& port);
  bool is_trapped(std::span<const uint8_t> frame) const;
  void open_capture(PortState& port);
  bool configure_core(std::string& problem);
  void change_evpn(const evpn::Settings& settings, const EachRoute& routes, net::TimePoint now);
  void change_devices();
  void attach(PortState& port, net::TimePoint now);
  void set_up(PortState& port, bool up, net::TimePoint now);
  void provision(const PortState& port, net::TimePoint now);
  void seen(PortState& port, net::MacAddress mac, bool by_bridge, net::TimePoint now);
  void soft_frame(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now);
  void soft_core_frame(std::span<const uint8_t> frame, bool copy, net::TimePoint now);
  void core_punt(std::span<const uint8_t> frame, net::TimePoint now);
  void trap(PortState& port, std::span<const uint8_t> frame, net::TimePoint now);
  void count(PortState& port, std::span<const uint8_t> frame, proxyarp::Verdict verdict);
  void trace(net::IfIndex port, TraceDirection direction, std::span<const uint8_t> frame,
             std::string_view verdict);
  bool traced(const net::IpAddress& ip) const;
  void adopt_learned(net::TimePoint now);
  // Counts a repair and logs it: who has meddled wants to know. Of many at once, the first ones.
  void repaired(const std::string& what);
  // The bridge aged a learned MAC: whoever is asked for an address of its and answers stays.
  void aged(net::IfIndex port, net::MacAddress mac, net::TimePoint now);
  void give_up_silent(net::TimePoint now);

  void run(std::vector<evpn::Action>&& actions, net::TimePoint now);
  void run(std::vector<proxyarp::Action>&& actions, net::TimePoint now);
  void carry_out(const proxyarp::Transmit& out, net::TimePoint now);
  void carry_out(const proxyarp::TransmitCore& out, net::TimePoint now);
  void carry_out(const proxyarp::Flood& wide, net::TimePoint now);
  void carry_out(const proxyarp::SetFastEntry& entry, net::TimePoint now);
  void carry_out(const proxyarp::ClearFastEntry& entry, net::TimePoint now);
  void carry_out(const proxyarp::LocalBindingUp& bound, net::TimePoint now);
  void carry_out(const proxyarp::LocalBindingDown& unbound, net::TimePoint now);
  void carry_out(const proxyarp::Alarm& raised, net::TimePoint now);
  void carry_out(const proxyarp::FlushMac& gone, net::TimePoint now);
  void carry_out(const proxyarp::AntiSpoofUp& up, net::TimePoint now);
  void carry_out(const proxyarp::AntiSpoofDown& down, net::TimePoint now);
  bool carry_out(std::pair<bool, std::vector<proxyarp::Action>>&& done, net::TimePoint now);
  void set_fast_entry(const proxyarp::SetFastEntry& entry);
  void place(const evpn::MacPlaced& placed, net::TimePoint now);
  void transmit(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now);
  void flood(const proxyarp::Flood& flood, net::TimePoint now);
  void alarm(const evpn::Alarm& alarm);
  void alarm(const proxyarp::Alarm& alarm);
  std::string place_text(const evpn::MacPlace& place) const;
  std::string member_of(net::MacAddress mac) const;
  std::string claim_text(net::MacAddress mac, const proxyarp::ClaimPlace& place) const;
  std::string alarm_text(const proxyarp::Alarm& alarm) const;
  // False, counted and logged when the kernel refused.
  template <class Result>
  bool check(const Result& result) {
    if (!result) kernel_refused(result.error().what);
    return result.has_value();
  }
  void kernel_refused(const std::string& what);

  config::BroadcastDomain settings_;
  Policies policies_;
  Services services_;
  evpn::MacVrf vrf_;
  proxyarp::Responder responder_;
  dataplane::BridgeDomain devices_;
  std::map<std::string, PortState> ports_;          // by interface name
  std::map<net::IfIndex, std::string> port_names_;  // of the existing ones
  std::vector<dataplane::RemoteMac> pending_macs_;
  std::set<net::IpAddress> answered_;    // pcap mode: what the eBPF map would hold
  std::set<net::IpAddress> core_flood_;  // mirror of the flood list
  std::unique_ptr<dataplane::PcapCapture> core_capture_;
  // Learned MACs that the last dump did not show; an entry may be missing in one dump.
  std::set<std::pair<net::IfIndex, net::MacAddress>> missing_;
  DomainCounters counters_;
  unsigned repair_lines_ = 0;  // since the last reconciliation
  struct Asked {
    net::IfIndex port;
    net::TimePoint until;
  };
  std::map<net::MacAddress, Asked> asked_;   // aged, and asked whether they are there
  std::array<VerdictCounts, 2> verdicts_{};  // ARP, neighbor discovery
  std::vector<TracePtr> traces_;
  TrafficMeter traffic_;
  ViolationLog violation_log_;
  // Reports for the guards, which may take ports down: not while actions are carried out.
  std::vector<std::pair<net::IfIndex, GuardCause>> guard_reports_;
  net::TimePoint next_expiry_ = net::kNever;  // of a temporary MAC
  bool converged_ = false;
  bool started_ = false;
};

}  // namespace peerland
