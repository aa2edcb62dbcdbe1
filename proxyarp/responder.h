// SPDX-License-Identifier: GPL-2.0-or-later
// The proxy ARP/ND responder of one broadcast domain (RFC 9161): the binding table, and what
// becomes of each ARP or ND frame of a member. The same rules decide here and in the eBPF program,
// which answers the plain cases by the entries that SetFastEntry hands down and punts the rest.
//
// Pure: frames and events go in with the time, actions come out. Knows nothing of BGP.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"
#include "net/time.h"
#include "proxyarp/settings.h"

namespace proxyarp {

struct NaFlags {
  bool router = true;
  bool override_flag = true;
  bool operator==(const NaFlags&) const = default;
};

// Where a MAC is, as far as the proxy cares: at a port here, behind another PE, or nowhere.
enum class MacWhere : uint8_t { Nowhere, LocalPort, Remote };

// Why a frame was not answered or passed on; each has a counter. The names are shown to operators.
enum class Verdict : uint8_t {
  Answered,           // reply sent
  Learned,            // told us a binding (also counted when flooded or forwarded)
  Flooded,            // within policy
  Forwarded,          // to the one owner
  UnknownTarget,      // dropped: target unknown and flooding off
  GratuitousDropped,  // dropped: gratuitous ARP or unsolicited NA with flooding off
  OwnerAsked,         // never answered: it asks for its own address
  SamePort,       // never answered: the owner is behind the asking port (RFC 9161 section 3.3 b)
  SpoofedSender,  // Ethernet source and ARP/ND sender differ, or sender bound to another MAC
  OutsidePrefix,  // sender or target not in the LAN's prefixes
  MalformedArp,
  MalformedNd,
  UnknownOption,  // NS with an option that is not known (RFC 9161 section 5.5)
  BindingLimit,   // more bindings than allowed
  NotOwner,       // reply or claim for an address that is bound elsewhere (proxy ARP offender)
  Sponged,        // answered in the name of a dead address
  Unassigned,     // dropped: nobody has the target, and its prefix says drop
  Duplicate,      // not answered or not learned: the address is frozen (RFC 9161 section 3.7)
  Pending,        // the owner is being confirmed: the question went to those who may be it
  Exempt,         // handed on: the settings say that nobody answers for this address
  Trapped,        // sent to the anti-spoof MAC or to a dead address
  RateLimit,      // over the rate of new bindings
  ProbeIgnored,   // probe for a bound address: dropped as the settings say
  Count
};
const char* to_string(Verdict verdict);

// --- actions
struct Transmit {  // out of one member port
  net::IfIndex port;
  net::Bytes frame;
  bool operator==(const Transmit&) const = default;
};
struct TransmitCore {  // into the fabric: the VXLAN device's FDB finds the VTEPs
  net::Bytes frame;
  bool operator==(const TransmitCore&) const = default;
};
struct Flood {  // to the other member ports and, with core, to all other PEs; within BUM policy
  net::Bytes frame;
  std::optional<net::IfIndex> except;
  bool local = true;
  bool core = true;
  bool operator==(const Flood&) const = default;
};
// The eBPF map's entry for an address: answer with this MAC, unless the asker is behind `port`.
struct SetFastEntry {
  net::IpAddress ip;
  net::MacAddress mac;
  net::IfIndex port;  // 0: behind another PE
  NaFlags flags;
  bool operator==(const SetFastEntry&) const = default;
};
struct ClearFastEntry {
  net::IpAddress ip;
  bool operator==(const ClearFastEntry&) const = default;
};
// A binding behind one of our ports is active (or changed), for the MAC/IP route.
struct LocalBindingUp {
  net::IpAddress ip;
  net::MacAddress mac;
  net::IfIndex port;
  NaFlags flags;
  bool immutable = false;  // provisioned, RFC 9047 I flag
  bool operator==(const LocalBindingUp&) const = default;
};
struct LocalBindingDown {
  net::IpAddress ip;
  net::MacAddress mac;  // an anycast address may have others
  bool operator==(const LocalBindingDown&) const = default;
};
enum class AlarmKind : uint8_t {
  SpoofedSender,
  NotOwner,
  DuplicateIp,
  DuplicateOver,  // by time or by an operator
  BindingLimit,
  TableFilling,       // 80, 90, 100 percent of max_bindings
  ImmutableConflict,  // two PEs claim one address for good (RFC 9047 section 3.2)
  DecoyAnswered,      // a proxy ARP router: answers for an address that nobody has
  AddressDead,        // the sponge took it over
  AddressBack,
};
const char* to_string(AlarmKind kind);
// Where a claim came from: a port here, or another PE.
struct ClaimPlace {
  MacWhere where = MacWhere::Nowhere;
  net::IfIndex port;  // when local
  bool operator==(const ClaimPlace&) const = default;
};
struct Alarm {  // one per event, not per frame
  AlarmKind kind;
  net::IpAddress ip;
  net::MacAddress bound, seen;  // the one that has, or had, the address; the other one
  net::IfIndex port;            // of the frame
  ClaimPlace bound_at{}, seen_at{};
  net::TimePoint first{}, last{};  // of a duplicate's moves
  uint32_t number = 0;             // moves, or percent
  bool operator==(const Alarm&) const = default;
};
// The MAC doesn't answer any more: away with its entry in the bridge's FDB. The MAC-VRF hears of
// that and withdraws its routes (RFC 9161 section 3.5).
struct FlushMac {
  net::MacAddress mac;
  net::IfIndex port;
  bool operator==(const FlushMac&) const = default;
};
// Everybody is told that the address is at the anti-spoof MAC: members by an announcement, which
// comes as Flood, other PEs by a MAC/IP route with a static MAC (RFC 9161 section 3.7 c 3).
struct AntiSpoofUp {
  net::IpAddress ip;
  net::MacAddress mac;
  bool operator==(const AntiSpoofUp&) const = default;
};
struct AntiSpoofDown {
  net::IpAddress ip;
  net::MacAddress mac;
  bool operator==(const AntiSpoofDown&) const = default;
};
using Action =
    std::variant<Transmit, TransmitCore, Flood, SetFastEntry, ClearFastEntry, LocalBindingUp,
                 LocalBindingDown, Alarm, FlushMac, AntiSpoofUp, AntiSpoofDown>;
struct Outcome {
  Verdict verdict = Verdict::Answered;
  std::vector<Action> actions;
};

// --- views
enum class BindingKind : uint8_t { Static, Learned, Evpn };
const char* to_string(BindingKind kind);
struct BindingView {
  net::IpAddress ip;
  std::optional<net::MacAddress> mac;    // in use; none: provisioned but not seen
  std::vector<net::MacAddress> allowed;  // static
  BindingKind kind = BindingKind::Static;
  MacWhere where = MacWhere::Nowhere;
  net::IfIndex port;      // when local
  bool answered = false;  // requests for it are answered
  NaFlags flags;
  bool immutable = false;
  net::Duration age{};  // since last seen, as of the latest call; learned ones
  net::AsNumber member_as;
  std::string member_name;
  bool pending = false;    // being confirmed
  bool duplicate = false;  // frozen
  uint64_t answers = 0;    // given by the responder; the eBPF map counts its own
  std::optional<net::MacAddress> last_asker;
};

struct DuplicateView {
  net::IpAddress ip;
  net::MacAddress first, second;  // the claimants
  ClaimPlace first_at, second_at;
  net::AsNumber first_as, second_as;  // of the ports' members
  uint32_t moves = 0;
  net::Duration since{}, remaining{};  // frozen for so long; until the hold-down ends
  bool frozen = false;                 // false: moves counted so far
  bool anti_spoof = false;             // members are told the anti-spoof MAC
};

enum class SpongeState : uint8_t { Alive, Pending, Dead, Static };
const char* to_string(SpongeState state);
struct SpongeView {
  net::IpAddress ip;
  SpongeState state = SpongeState::Alive;
  uint32_t queued = 0;             // questions in the queue
  double rate = 0;                 // questions a minute
  uint64_t questions = 0;          // since the address is watched
  uint64_t answers = 0;            // of ours
  uint64_t bgp_attempts = 0;       // TCP SYN to port 179
  net::Duration since{}, asked{};  // state; last question
  std::optional<net::MacAddress> last_asker;
};

// Who asks most, what is asked for most, who does what he should not. Bounded; the least go first.
enum class OffenderKind : uint8_t {
  Asker,
  Target,     // asked for, and nobody has it
  ProxyArp,   // answers for what is not its own
  DeadPeer,   // a BGP connection to an address that is dead
  Spoofer,    // a sender that is not who it says
  Sweeper,    // asks for many addresses that nobody has
  AntiSpoof,  // sends to an address in dispute
};
const char* to_string(OffenderKind kind);
struct OffenderView {
  OffenderKind kind = OffenderKind::Asker;
  net::IfIndex port;                   // of an asker and of who misbehaves
  std::optional<net::MacAddress> mac;  // likewise
  std::optional<net::IpAddress> ip;    // asked for, answered for, or tried to reach
  uint64_t count = 0;
  double per_minute = 0;  // over the last five minutes
  net::Duration first{}, last{};
};

// What the next question for an address gets, and why.
struct Explanation {
  std::optional<BindingView> binding;
  std::string database, learned, evpn;  // who has it by each of them; empty: nobody
  Verdict verdict = Verdict::UnknownTarget;
  std::optional<net::MacAddress> answer;
  std::vector<std::string> rules;  // that were passed, in order; the last one decided
};

class Responder {
 public:
  // `seed` goes into the hashing of what members can choose, and spreads timers.
  Responder(const Settings& settings, uint64_t seed);
  ~Responder();
  Responder(Responder&&) noexcept;
  Responder& operator=(Responder&&) noexcept;

  // Member ports by name, so that static bindings find theirs. Actions: entries that come or go.
  [[nodiscard]] std::vector<Action> port_up(net::IfIndex port, const std::string& name,
                                            net::TimePoint now);
  [[nodiscard]] std::vector<Action> port_down(net::IfIndex port, net::TimePoint now);
  // What our own questions are sent from: the MAC of the bridge, and addresses of the LAN that the
  // PE itself has, if any. Without a MAC none are sent.
  struct Identity {
    net::MacAddress mac;
    std::optional<net::IpAddress> ipv4, ipv6;
    // The PE's own network stack sees what members ask for these addresses and answers (pcap mode);
    // else the responder answers.
    bool stack_answers = false;
    bool operator==(const Identity&) const = default;
  };
  [[nodiscard]] std::vector<Action> set_identity(const Identity& identity, net::TimePoint now);
  // New settings; bindings that did not change stay as they are.
  [[nodiscard]] std::vector<Action> reconfigure(const Settings& settings, net::TimePoint now);

  // A frame of a member port, from Ethernet destination on, VLAN tags already refused. It was taken
  // out of the path: whatever shall reach anybody must be in the actions. `copy` true: the data
  // path has dealt with it (answered or passed on) and this is for learning only: it is neither
  // answered nor passed on again.
  [[nodiscard]] Outcome member_frame(net::IfIndex port, std::span<const uint8_t> frame, bool copy,
                                     net::TimePoint now);
  // A frame that came out of the fabric (pcap mode), or a copy of one that was for our own MAC:
  // never learned from (RFC 9161 section 3.2), goes to the local ports within policy.
  [[nodiscard]] Outcome core_frame(std::span<const uint8_t> frame, net::TimePoint now);

  // A frame of a member port to the anti-spoof MAC or to the MAC of the sponge. It was dropped.
  void trapped_frame(net::IfIndex port, std::span<const uint8_t> frame, net::TimePoint now);

  // --- commands of operators; false: there is no such thing
  [[nodiscard]] std::pair<bool, std::vector<Action>> clear_binding(const net::IpAddress& ip,
                                                                   net::TimePoint now);
  [[nodiscard]] std::pair<bool, std::vector<Action>> clear_duplicate(const net::IpAddress& ip,
                                                                     net::TimePoint now);
  [[nodiscard]] std::pair<bool, std::vector<Action>> set_sponge(const net::IpAddress& ip,
                                                                SpongeState state,
                                                                net::TimePoint now);
  // Asks the owner, or everybody when there is none, whether the address lives.
  [[nodiscard]] std::pair<bool, std::vector<Action>> probe(const net::IpAddress& ip,
                                                           net::TimePoint now);

  // The MAC-VRF placed a MAC. port is set with LocalPort.
  [[nodiscard]] std::vector<Action> mac_placed(net::MacAddress mac, MacWhere where,
                                               net::IfIndex port, net::TimePoint now);
  // A MAC/IP route of another PE came, changed or went (no mac).
  [[nodiscard]] std::vector<Action> evpn_binding(net::IpAddress ip,
                                                 std::optional<net::MacAddress> mac, NaFlags flags,
                                                 bool immutable, net::TimePoint now);
  // The same with all MACs of an anycast address, the best first; none: it is gone.
  struct EvpnBinding {
    net::MacAddress mac;
    NaFlags flags;
    bool immutable = false;
  };
  [[nodiscard]] std::vector<Action> evpn_bindings(net::IpAddress ip,
                                                  std::span<const EvpnBinding> bindings,
                                                  net::TimePoint now);

  [[nodiscard]] net::TimePoint deadline() const;
  [[nodiscard]] std::vector<Action> tick(net::TimePoint now);

  [[nodiscard]] const std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)>& counters()
      const;
  void for_each_binding(const std::function<void(const BindingView&)>& visit) const;
  // In the order of addresses, those behind `after` (none: all), until `visit` says false.
  void for_each_binding_after(const std::optional<net::IpAddress>& after,
                              const std::function<bool(const BindingView&)>& visit) const;
  void for_each_duplicate(const std::function<void(const DuplicateView&)>& visit) const;
  void for_each_sponged(const std::function<void(const SpongeView&)>& visit) const;
  void for_each_offender(const std::function<void(const OffenderView&)>& visit) const;
  // Of a broadcast question for `ip` from `port` (none: out of the fabric).
  [[nodiscard]] Explanation explain(const net::IpAddress& ip, std::optional<net::IfIndex> port,
                                    net::TimePoint now) const;
  // All entries that the eBPF map must hold, for a restart that adopts the old map.
  [[nodiscard]] std::vector<SetFastEntry> fast_entries() const;
  [[nodiscard]] bool has_fast_entry(const net::IpAddress& ip) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace proxyarp
