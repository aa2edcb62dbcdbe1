// SPDX-License-Identifier: GPL-2.0-or-later
// Messages of the BGP Monitoring Protocol: RFC 7854, with Adj-RIB-Out (RFC 8671) and Loc-RIB (RFC
// 9069). Encoders only, since we only send. BGP messages go in whole, header included.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bgp/family.h"
#include "bgp/session.h"
#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp::bmp {

inline constexpr uint8_t kVersion = 3;
inline constexpr std::size_t kCommonHeader = 6, kPeerHeader = 42;

enum class MessageType : uint8_t {
  RouteMonitoring = 0,
  StatisticsReport = 1,
  PeerDown = 2,
  PeerUp = 3,
  Initiation = 4,
  Termination = 5,
};

// Which of our tables a message speaks of.
enum class Table : uint8_t { InPre, InPost, Loc, OutPost };

// The per-peer header, RFC 7854 section 4.2.
struct PeerHeader {
  Table table = Table::InPre;
  net::IpAddress address;  // Loc: not sent
  uint32_t as_number = 0;  // of the peer; Loc: ours
  uint32_t router_id = 0;  // host order; of the peer; Loc: ours
  // Of AS numbers in the BGP messages: two octets (A flag), which Loc never has.
  bool two_octet_as = false;
  std::chrono::microseconds time{0};  // since 1970; 0: not known
};

[[nodiscard]] net::Bytes encode_initiation(std::string_view system_description,
                                           std::string_view system_name);

enum class TerminationReason : uint16_t {
  AdministrativelyClosed = 0,
  Unspecified = 1,
  OutOfResources = 2,
  Redundant = 3,
  PermanentlyClosed = 4,
};
[[nodiscard]] net::Bytes encode_termination(TerminationReason reason);

// Section 4.10. For Loc, `name` is the table's (RFC 9069 section 4.4), addresses and ports are not
// sent.
struct PeerUp {
  net::IpAddress local_address;
  uint16_t local_port = 0, remote_port = 0;
  std::span<const uint8_t> open_sent, open_received;
  std::string_view name;
};
[[nodiscard]] net::Bytes encode_peer_up(const PeerHeader& peer, const PeerUp& up);

enum class PeerDownReason : uint8_t {
  LocalNotification = 1,     // data: the NOTIFICATION
  LocalNoNotification = 2,   // data: number of the event of RFC 4271 section 8.1, two octets
  RemoteNotification = 3,    // data: the NOTIFICATION
  RemoteNoNotification = 4,  // no data
  NotMonitored = 5,          // no data: no longer told about
  LocRibClosed = 6,          // RFC 9069 section 5.3; data: the table's name as TLV
};
[[nodiscard]] net::Bytes encode_peer_down(const PeerHeader& peer, PeerDownReason reason,
                                          std::span<const uint8_t> data);
// The reason and data that stand for the end of a session.
struct PeerDown {
  PeerDownReason reason = PeerDownReason::RemoteNoNotification;
  net::Bytes data;
};
[[nodiscard]] PeerDown peer_down(const EndReason& reason);
[[nodiscard]] net::Bytes encode_loc_rib_down(const PeerHeader& peer, std::string_view name);

// `update`: a whole BGP UPDATE.
[[nodiscard]] net::Bytes encode_route_monitoring(const PeerHeader& peer,
                                                 std::span<const uint8_t> update);

// Section 4.8; what is absent is not sent.
struct Statistics {
  AfiSafi family;
  std::optional<uint32_t> rejected_by_policy;   // 0, counter
  std::optional<uint64_t> adj_rib_in;           // 7 and 9, gauge
  std::optional<uint64_t> loc_rib;              // 8 and 10, gauge
  std::optional<uint32_t> treated_as_withdraw;  // 11, counter of UPDATEs
  std::optional<uint64_t> adj_rib_out;          // 15 and 17 of RFC 8671, gauge
};
[[nodiscard]] net::Bytes encode_statistics(const PeerHeader& peer, const Statistics& statistics);

}  // namespace bgp::bmp
