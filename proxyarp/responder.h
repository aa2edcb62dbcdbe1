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
  net::MacAddress mac;
  bool operator==(const LocalBindingDown&) const = default;
};
enum class AlarmKind : uint8_t { SpoofedSender, NotOwner, DuplicateIp, BindingLimit };
struct Alarm {  // one per event, not per frame
  AlarmKind kind;
  net::IpAddress ip;
  net::MacAddress bound, seen;
  net::IfIndex port;
  bool operator==(const Alarm&) const = default;
};
using Action = std::variant<Transmit, TransmitCore, Flood, SetFastEntry, ClearFastEntry,
                            LocalBindingUp, LocalBindingDown, Alarm>;
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
  // New settings; bindings that did not change stay as they are.
  [[nodiscard]] std::vector<Action> reconfigure(const Settings& settings, net::TimePoint now);

  // A frame of a member port, from Ethernet destination on, VLAN tags already refused. It was taken
  // out of the path: whatever shall reach anybody must be in the actions. `copy` true: the data
  // path has dealt with it (answered or passed on) and this is for learning only: no frame may come
  // out.
  [[nodiscard]] Outcome member_frame(net::IfIndex port, std::span<const uint8_t> frame, bool copy,
                                     net::TimePoint now);
  // A frame that came out of the fabric (pcap mode): never learned from (RFC 9161 section 3.2),
  // goes to the local ports within policy.
  [[nodiscard]] Outcome core_frame(std::span<const uint8_t> frame, net::TimePoint now);

  // The MAC-VRF placed a MAC. port is set with LocalPort.
  [[nodiscard]] std::vector<Action> mac_placed(net::MacAddress mac, MacWhere where,
                                               net::IfIndex port, net::TimePoint now);
  // A MAC/IP route of another PE came, changed or went (no mac).
  [[nodiscard]] std::vector<Action> evpn_binding(net::IpAddress ip,
                                                 std::optional<net::MacAddress> mac, NaFlags flags,
                                                 bool immutable, net::TimePoint now);

  [[nodiscard]] net::TimePoint deadline() const;
  [[nodiscard]] std::vector<Action> tick(net::TimePoint now);

  [[nodiscard]] const std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)>& counters()
      const;
  void for_each_binding(const std::function<void(const BindingView&)>& visit) const;
  // The same in pieces: those behind `last`, by address, at most `count`.
  [[nodiscard]] std::vector<BindingView> bindings_after(const std::optional<net::IpAddress>& last,
                                                        std::size_t count) const;
  // All entries that the eBPF map must hold, for a restart that adopts the old map.
  [[nodiscard]] std::vector<SetFastEntry> fast_entries() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace proxyarp
