// SPDX-License-Identifier: GPL-2.0-or-later
// The OPEN message and its capabilities: RFC 4271 sections 4.2 and 6.2, RFC 5492, 9072; capability
// codes 1 (RFC 4760), 2 (2918), 6 (8654), 64 (4724), 65 (6793), 70 (7313), 71
// (9494). What depends on our own
// settings (the peer's AS, equal identifiers) is judged by Session.
#include <algorithm>

#include "bgp/message.h"
#include "bgp/message_frame.h"

namespace bgp {
namespace {

constexpr uint8_t kParameterCapabilities = 2;
constexpr uint8_t kParameterExtended = 255;  // RFC 9072 section 2

enum CapabilityCode : uint8_t {
  kMultiprotocol = 1,
  kRouteRefresh = 2,
  kExtendedMessage = 6,
  kGracefulRestart = 64,
  kFourOctetAs = 65,
  kEnhancedRouteRefresh = 70,
  kLongLivedRestart = 71,
};

Notification open_failure(uint8_t subcode, net::Bytes data = {}) {
  return {ErrorCode::OpenMessage, subcode, std::move(data)};
}

// RFC 4724 section 3: flags (R, N: RFC 8538) and time in 16 bits, then AFI, SAFI, flags (F).
bool decode_graceful_restart(net::ByteReader in, Capabilities& out) {
  GracefulRestart restart;
  const uint16_t head = in.u16();
  restart.restarted = (head & 0x8000) != 0;
  restart.notification = (head & 0x4000) != 0;
  restart.time = head & 0x0fff;
  while (!in.done()) {
    GracefulRestart::Entry entry;
    entry.family.afi = in.u16();
    entry.family.safi = in.u8();
    entry.forwarding_preserved = (in.u8() & 0x80) != 0;
    if (in.ok()) restart.families.push_back(entry);
  }
  if (!in.ok()) return false;
  out.graceful_restart = std::move(restart);
  return true;
}

void encode_graceful_restart(const GracefulRestart& restart, net::ByteWriter& out) {
  out.u16(static_cast<uint16_t>((restart.restarted ? 0x8000 : 0) |
                                (restart.notification ? 0x4000 : 0) | (restart.time & 0x0fff)));
  for (const auto& entry : restart.families) {
    out.u16(entry.family.afi);
    out.u8(entry.family.safi);
    out.u8(entry.forwarding_preserved ? 0x80 : 0);
  }
}

// RFC 9494 section 3.1: AFI, SAFI, flags (F), 24 bits of seconds.
bool decode_long_lived(net::ByteReader in, Capabilities& out) {
  LongLivedRestart restart;
  while (!in.done()) {
    LongLivedRestart::Entry entry;
    entry.family.afi = in.u16();
    entry.family.safi = in.u8();
    entry.forwarding_preserved = (in.u8() & 0x80) != 0;
    entry.time = in.u24();
    if (in.ok()) restart.families.push_back(entry);
  }
  if (!in.ok()) return false;
  out.long_lived = std::move(restart);
  return true;
}

void encode_long_lived(const LongLivedRestart& restart, net::ByteWriter& out) {
  for (const auto& entry : restart.families) {
    out.u16(entry.family.afi);
    out.u8(entry.family.safi);
    out.u8(entry.forwarding_preserved ? 0x80 : 0);
    out.u24(entry.time);
  }
}

// False when the value is not what the capability's RFC says.
bool decode_capability(uint8_t code, net::ByteReader value, Capabilities& out) {
  switch (code) {
    case kMultiprotocol: {
      AfiSafi family;
      family.afi = value.u16();
      value.u8();  // reserved
      family.safi = value.u8();
      if (!value.ok() || !value.done()) return false;
      if (!out.has(family)) out.multiprotocol.push_back(family);
      return true;
    }
    case kRouteRefresh: out.route_refresh = true; return true;
    case kEnhancedRouteRefresh: out.enhanced_route_refresh = true; return true;
    case kExtendedMessage: out.extended_message = true; return true;
    case kGracefulRestart: return decode_graceful_restart(value, out);
    case kLongLivedRestart: return decode_long_lived(value, out);
    case kFourOctetAs: out.four_octet_as = value.u32(); return value.ok() && value.done();
    default:
      if (std::ranges::find(out.unknown, code) == out.unknown.end()) out.unknown.push_back(code);
      return true;
  }
}

// The optional parameters, with lengths of one octet or (RFC 9072) of two.
std::optional<Notification> decode_parameters(net::ByteReader in, bool extended,
                                              Capabilities& out) {
  while (!in.done()) {
    const uint8_t type = in.u8();
    const std::size_t size = extended ? in.u16() : in.u8();
    net::ByteReader value = in.sub(size);
    if (!in.ok()) return open_failure(open_error::kUnspecific);
    if (type != kParameterCapabilities) return open_failure(open_error::kUnsupportedParameter);
    while (!value.done()) {
      const uint8_t code = value.u8();
      const net::ByteReader inner = value.sub(value.u8());
      if (!value.ok() || !decode_capability(code, inner, out))
        return open_failure(open_error::kUnspecific);
    }
    if (!value.ok()) return open_failure(open_error::kUnspecific);
  }
  return std::nullopt;
}

template <class Fill>
void capability(net::ByteWriter& out, uint8_t code, Fill fill) {
  out.u8(code);
  const std::size_t length = out.reserve(1);
  fill(out);
  out.patch_u8(length, out.size() - length - 1);
}

net::Bytes encode_capabilities(const Capabilities& capabilities) {
  net::ByteWriter out;
  const auto nothing = [](net::ByteWriter&) {};
  for (const AfiSafi& family : capabilities.multiprotocol)
    capability(out, kMultiprotocol, [&](net::ByteWriter& value) {
      value.u16(family.afi);
      value.u8(0);
      value.u8(family.safi);
    });
  if (capabilities.route_refresh) capability(out, kRouteRefresh, nothing);
  if (capabilities.extended_message) capability(out, kExtendedMessage, nothing);
  if (capabilities.graceful_restart)
    capability(out, kGracefulRestart, [&](net::ByteWriter& value) {
      encode_graceful_restart(*capabilities.graceful_restart, value);
    });
  if (capabilities.four_octet_as)
    capability(out, kFourOctetAs,
               [&](net::ByteWriter& value) { value.u32(*capabilities.four_octet_as); });
  if (capabilities.enhanced_route_refresh) capability(out, kEnhancedRouteRefresh, nothing);
  if (capabilities.long_lived)
    capability(out, kLongLivedRestart,
               [&](net::ByteWriter& value) { encode_long_lived(*capabilities.long_lived, value); });
  return out.take();
}

std::string family_text(AfiSafi family) {
  return std::to_string(family.afi) + "/" + std::to_string(family.safi);
}

}  // namespace

bool Capabilities::has(AfiSafi family) const {
  return std::ranges::find(multiprotocol, family) != multiprotocol.end();
}

uint32_t Open::effective_as() const { return capabilities.four_octet_as.value_or(as_number); }

std::vector<std::string> describe(const Capabilities& capabilities) {
  std::vector<std::string> lines;
  for (const AfiSafi& family : capabilities.multiprotocol)
    lines.push_back("multiprotocol " + family_text(family));
  if (capabilities.route_refresh) lines.emplace_back("route refresh");
  if (capabilities.enhanced_route_refresh) lines.emplace_back("enhanced route refresh");
  if (capabilities.extended_message) lines.emplace_back("extended message");
  if (capabilities.four_octet_as)
    lines.push_back("four-octet AS " + std::to_string(*capabilities.four_octet_as));
  if (const auto& restart = capabilities.graceful_restart) {
    std::string line = "graceful restart " + std::to_string(restart->time) + " s";
    if (restart->restarted) line += ", restarted";
    if (restart->notification) line += ", notification";
    for (const auto& entry : restart->families)
      line += ", " + family_text(entry.family) +
              (entry.forwarding_preserved ? " forwarding preserved" : "");
    lines.push_back(std::move(line));
  }
  if (const auto& restart = capabilities.long_lived) {
    std::string line = "long-lived graceful restart";
    for (const auto& entry : restart->families)
      line += ", " + family_text(entry.family) + " " + std::to_string(entry.time) + " s" +
              (entry.forwarding_preserved ? " forwarding preserved" : "");
    lines.push_back(std::move(line));
  }
  for (uint8_t code : capabilities.unknown) lines.push_back("code " + std::to_string(code));
  return lines;
}

std::expected<Open, Notification> decode_open(std::span<const uint8_t> body) {
  net::ByteReader in(body);
  Open open;
  open.version = in.u8();
  if (in.ok() && open.version != kVersion)
    return std::unexpected(open_failure(open_error::kUnsupportedVersion, {0, kVersion}));
  open.as_number = in.u16();
  open.hold_time = in.u16();
  open.router_id = in.u32();
  std::size_t parameters = in.u8();
  if (!in.ok()) {
    const auto length = static_cast<uint16_t>(kHeaderSize + body.size());
    return std::unexpected(
        Notification{ErrorCode::MessageHeader,
                     header_error::kBadLength,
                     {static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)}});
  }
  // RFC 9072 section 2: the type says so, the first length only tells that there are any.
  const bool extended = parameters != 0 && !in.done() && in.rest().front() == kParameterExtended;
  if (extended) {
    in.u8();
    parameters = in.u16();
  }
  if (!in.ok() || parameters != in.remaining())
    return std::unexpected(open_failure(open_error::kUnspecific));
  if (auto failure = decode_parameters(in, extended, open.capabilities))
    return std::unexpected(std::move(*failure));
  if (open.as_number == 0 || open.effective_as() == 0)  // RFC 7607
    return std::unexpected(open_failure(open_error::kBadPeerAs));
  if (open.hold_time == 1 || open.hold_time == 2)
    return std::unexpected(open_failure(open_error::kUnacceptableHoldTime));
  if (open.router_id == 0) return std::unexpected(open_failure(open_error::kBadIdentifier));
  return open;
}

net::Bytes encode_open(const Open& open) {
  const net::Bytes capabilities = encode_capabilities(open.capabilities);
  net::ByteWriter out;
  const std::size_t length = begin_message(out, MessageType::Open);
  out.u8(open.version);
  out.u16(open.as_number);
  out.u16(open.hold_time);
  out.u32(open.router_id);
  if (capabilities.empty()) {
    out.u8(0);
  } else if (capabilities.size() <= 253) {
    out.u8(static_cast<uint8_t>(capabilities.size() + 2));
    out.u8(kParameterCapabilities);
    out.u8(static_cast<uint8_t>(capabilities.size()));
  } else {
    out.u8(255);
    out.u8(kParameterExtended);
    out.u16(static_cast<uint16_t>(capabilities.size() + 3));
    out.u8(kParameterCapabilities);
    out.u16(static_cast<uint16_t>(capabilities.size()));
  }
  out.bytes(capabilities);
  out.patch_u16(length, out.size());
  return out.take();
}

}  // namespace bgp
