// SPDX-License-Identifier: GPL-2.0-or-later
// BGP messages as values and bytes: RFC 4271 section 4, with RFC 2918 and 7313 (route refresh),
// 4724 and 8538 (graceful restart), 4760 (multiprotocol), 5492 and 9072 (capabilities), 6793
// (four-octet AS numbers), 7606 (error handling of UPDATE), 8654 (extended messages), 9003
// (shutdown text). Decoders never send, log or change state: what is wrong comes back as the
// NOTIFICATION that RFC 4271 section 6 asks for, or for an UPDATE as the action of RFC 7606.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bgp/attributes.h"
#include "bgp/family.h"
#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp {

enum class MessageType : uint8_t {
  Open = 1,
  Update = 2,
  Notification = 3,
  Keepalive = 4,
  RouteRefresh = 5,
};
const char* to_string(MessageType type);

inline constexpr std::size_t kHeaderSize = 19;
inline constexpr std::size_t kMaxMessage = 4096;
inline constexpr std::size_t kMaxExtendedMessage = 65535;  // RFC 8654
inline constexpr uint16_t kAsTrans = 23456;                // RFC 6793
inline constexpr uint8_t kVersion = 4;

// Path attribute types.
enum class AttributeType : uint8_t {
  Origin = 1,
  AsPath = 2,
  NextHop = 3,
  MultiExitDisc = 4,
  LocalPref = 5,
  AtomicAggregate = 6,
  Aggregator = 7,
  Communities = 8,
  OriginatorId = 9,
  ClusterList = 10,
  MpReachNlri = 14,
  MpUnreachNlri = 15,
  ExtendedCommunities = 16,
  As4Path = 17,
  As4Aggregator = 18,
  PmsiTunnel = 22,
  LargeCommunities = 32,
};

// Of Attributes::partial; 0: not optional transitive, or not one we know. Who understands such an
// attribute passes Partial on all the same (RFC 4271 section 5).
constexpr uint8_t partial_bit(AttributeType type) {
  switch (type) {
    case AttributeType::Aggregator: return 1;
    case AttributeType::Communities: return 2;
    case AttributeType::ExtendedCommunities: return 4;
    case AttributeType::PmsiTunnel: return 8;
    case AttributeType::LargeCommunities: return 16;
    default: return 0;
  }
}

// Flags of a path attribute, RFC 4271 section 4.3.
inline constexpr uint8_t kFlagOptional = 0x80;
inline constexpr uint8_t kFlagTransitive = 0x40;
inline constexpr uint8_t kFlagPartial = 0x20;
inline constexpr uint8_t kFlagExtendedLength = 0x10;

// --- NOTIFICATION ---------------------------------------------------------------------------

enum class ErrorCode : uint8_t {
  MessageHeader = 1,
  OpenMessage = 2,
  UpdateMessage = 3,
  HoldTimerExpired = 4,
  FiniteStateMachine = 5,
  Cease = 6,
  RouteRefreshMessage = 7,   // RFC 7313 section 5
  SendHoldTimerExpired = 8,  // RFC 9687
};

namespace header_error {
inline constexpr uint8_t kNotSynchronized = 1, kBadLength = 2, kBadType = 3;
}
namespace open_error {
inline constexpr uint8_t kUnspecific = 0, kUnsupportedVersion = 1, kBadPeerAs = 2,
                         kBadIdentifier = 3, kUnsupportedParameter = 4, kUnacceptableHoldTime = 6,
                         kUnsupportedCapability = 7;  // RFC 5492
}
namespace update_error {
inline constexpr uint8_t kMalformedAttributeList = 1, kOptionalAttribute = 9, kInvalidNetwork = 10;
}
namespace fsm_error {  // RFC 6608
inline constexpr uint8_t kUnspecific = 0, kInOpenSent = 1, kInOpenConfirm = 2, kInEstablished = 3;
}
namespace cease {  // RFC 4486, 8538
inline constexpr uint8_t kMaximumPrefixes = 1, kAdministrativeShutdown = 2, kPeerDeconfigured = 3,
                         kAdministrativeReset = 4, kConnectionRejected = 5,
                         kOtherConfigurationChange = 6, kCollision = 7, kOutOfResources = 8,
                         kHardReset = 9;
}

struct Notification {
  ErrorCode code = ErrorCode::Cease;
  uint8_t subcode = 0;
  net::Bytes data;
  bool operator==(const Notification&) const = default;
};
// "Cease/Administrative Shutdown"
[[nodiscard]] std::string to_string(const Notification& notification);
// Cease with a text of at most 255 octets for the other operator (RFC 9003).
[[nodiscard]] Notification shutdown_notification(uint8_t subcode, std::string_view text);
// The text of a shutdown or reset; nothing when there is none, or it is not UTF-8 that may be
// shown.
[[nodiscard]] std::optional<std::string> shutdown_text(const Notification& notification);

// --- OPEN -----------------------------------------------------------------------------------

struct GracefulRestart {      // RFC 4724 section 3
  bool restarted = false;     // R: we come back from a restart
  bool notification = false;  // N: RFC 8538
  uint16_t time = 0;          // seconds, 0..4095
  struct Entry {
    AfiSafi family;
    bool forwarding_preserved = false;  // F
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> families;
  bool operator==(const GracefulRestart&) const = default;
};

struct LongLivedRestart {  // RFC 9494 section 3.1
  struct Entry {
    AfiSafi family;
    bool forwarding_preserved = false;  // F
    uint32_t time = 0;                  // seconds, 24 bits
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> families;
  bool operator==(const LongLivedRestart&) const = default;
};

struct Capabilities {
  std::vector<AfiSafi> multiprotocol;
  bool route_refresh = false;
  bool enhanced_route_refresh = false;
  bool extended_message = false;
  std::optional<uint32_t> four_octet_as;
  std::optional<GracefulRestart> graceful_restart;
  std::optional<LongLivedRestart> long_lived;
  std::vector<uint8_t> unknown;  // codes that we do not implement, for people to see

  [[nodiscard]] bool has(AfiSafi family) const;
  bool operator==(const Capabilities&) const = default;
};
// One line each, as "multiprotocol 25/70".
[[nodiscard]] std::vector<std::string> describe(const Capabilities& capabilities);

struct Open {
  uint8_t version = kVersion;
  uint16_t as_number = 0;  // AS_TRANS when it needs four octets
  uint16_t hold_time = 0;
  uint32_t router_id = 0;  // host order
  Capabilities capabilities;

  // The AS number that counts: that of the capability when there is one.
  [[nodiscard]] uint32_t effective_as() const;
  bool operator==(const Open&) const = default;
};

struct RouteRefresh {
  AfiSafi family;
  uint8_t subtype = 0;  // 0 request, 1 BoRR, 2 EoRR (RFC 7313)
  bool operator==(const RouteRefresh&) const = default;
};

// --- Decoding -------------------------------------------------------------------------------

struct Header {
  uint16_t length = 0;  // header included
  MessageType type = MessageType::Keepalive;
};
// The first kHeaderSize octets of `bytes` (at least that many). `max_message` holds for all but
// OPEN and KEEPALIVE (RFC 8654 section 4).
[[nodiscard]] std::expected<Header, Notification> decode_header(std::span<const uint8_t> bytes,
                                                                std::size_t max_message);
// The bodies, without header.
[[nodiscard]] std::expected<Open, Notification> decode_open(std::span<const uint8_t> body);
[[nodiscard]] std::expected<Notification, Notification> decode_notification(
    std::span<const uint8_t> body);
[[nodiscard]] std::expected<RouteRefresh, Notification> decode_route_refresh(
    std::span<const uint8_t> body);

// What RFC 7606 section 2 asks for, mildest first.
enum class ErrorHandling : uint8_t {
  None,
  AttributeDiscard,
  TreatAsWithdraw,
  DisableFamily,  // NLRI of a family that was not negotiated: ignored (RFC 4760 section 7)
  SessionReset,
};
const char* to_string(ErrorHandling handling);

struct DecodeOptions {
  bool four_octet_as = true;
  bool internal = true;  // iBGP: LOCAL_PREF, ORIGINATOR_ID and CLUSTER_LIST count
};

struct AttributeError {
  uint8_t type = 0;
  ErrorHandling handling = ErrorHandling::None;
  net::Bytes bytes;  // the attribute as received, cut at 64 octets
};

// An UPDATE. The items' spans point into the message.
struct Update {
  AttributesPtr attributes;  // null without reachable NLRI to go with them
  std::vector<NlriItem> reach;
  std::vector<NlriItem> unreach;  // with TreatAsWithdraw, what was announced is here
  bool end_of_rib = false;
  ErrorHandling handling = ErrorHandling::None;  // the severest
  uint32_t nlri_discarded = 0;                   // RFC 7606 section 5.4, and values out of scope
  uint32_t attributes_discarded = 0;             // errors that ended with AttributeDiscard
  std::vector<AttributeError> errors;            // the first few
};

// The attributes of some UPDATEs decoded lately by their octets: those that come with the same are
// not decoded again, and share the value. For UPDATEs of one family and with one DecodeOptions.
class DecodeCache {
 public:
  // The octets in parts: before the NLRI of MP_REACH_NLRI (without its length) and behind them.
  using Parts = std::array<std::span<const uint8_t>, 3>;
  [[nodiscard]] AttributesPtr find(const Parts& parts) const;
  void put(const Parts& parts, const AttributesPtr& attributes);

 private:
  struct Entry {
    net::Bytes octets;
    AttributesPtr attributes;
  };
  [[nodiscard]] static std::size_t place(const Parts& parts);
  std::array<Entry, 8> entries_;
};

[[nodiscard]] std::expected<Update, Notification> decode_update(std::span<const uint8_t> body,
                                                                const Family& family,
                                                                const DecodeOptions& options,
                                                                DecodeCache* cache = nullptr);

// --- Encoding -------------------------------------------------------------------------------

struct EncodeOptions {
  bool four_octet_as = true;  // false: AS_TRANS with AS4_PATH and AS4_AGGREGATOR (RFC 6793)
};

// All but MP_REACH_NLRI and MP_UNREACH_NLRI, in order of type.
[[nodiscard]] net::Bytes encode_attributes(const Attributes& attributes,
                                           const EncodeOptions& options);

struct PackedUpdate {
  net::Bytes message;
  std::size_t taken = 0;
};
// Builds one whole UPDATE (header included) of at most max_message octets with as many of nlris as
// fit; returns the message and how many were taken (0, and no message, when not even one fits).
// MP_REACH_NLRI comes first among the attributes (RFC 7606 section 5.1).
[[nodiscard]] PackedUpdate encode_reach(AfiSafi family, const net::IpAddress& next_hop,
                                        std::span<const uint8_t> encoded_attributes,
                                        std::span<const std::span<const uint8_t>> nlris,
                                        std::size_t max_message);
[[nodiscard]] PackedUpdate encode_unreach(AfiSafi family,
                                          std::span<const std::span<const uint8_t>> nlris,
                                          std::size_t max_message);
[[nodiscard]] net::Bytes encode_end_of_rib(AfiSafi family);
// subtype: 0 request, 1 BoRR, 2 EoRR.
[[nodiscard]] net::Bytes encode_route_refresh(AfiSafi family, uint8_t subtype);
// With extended optional parameters (RFC 9072) when the capabilities need more than 255 octets.
[[nodiscard]] net::Bytes encode_open(const Open& open);
[[nodiscard]] net::Bytes encode_notification(const Notification& notification);
[[nodiscard]] net::Bytes encode_keepalive();

}  // namespace bgp
