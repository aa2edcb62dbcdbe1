// SPDX-License-Identifier: GPL-2.0-or-later
// The message header and the short messages: NOTIFICATION, KEEPALIVE, ROUTE-REFRESH (RFC 4271
// sections 4.1, 4.4, 4.5 and 6.1, RFC 2918, 4486, 6608, 7313, 8538, 9003, 9687). Pure: bytes in,
// values out, and back.
#include "bgp/message.h"

#include <algorithm>

#include "bgp/message_frame.h"

namespace bgp {
namespace {

Notification bad_length(uint16_t length) {
  net::ByteWriter data;
  data.u16(length);
  return {ErrorCode::MessageHeader, header_error::kBadLength, data.take()};
}

// Length of a whole message of that type, as RFC 4271 section 6.1 bounds it. ROUTE-REFRESH has a
// NOTIFICATION of its own for that (RFC 7313 section 5).
bool length_fits(MessageType type, std::size_t length, std::size_t max_message) {
  switch (type) {
    case MessageType::Open: return length >= 29 && length <= kMaxMessage;
    case MessageType::Update: return length >= 23 && length <= max_message;
    case MessageType::Notification: return length >= 21 && length <= max_message;
    case MessageType::Keepalive: return length == kHeaderSize;
    case MessageType::RouteRefresh: return length <= max_message;
  }
  return false;
}

// Octets of the UTF-8 character at the front of `text`; 0 when there is no valid one (RFC 3629).
std::size_t utf8_character(std::span<const uint8_t> text) {
  const uint8_t first = text.front();
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((text[i] & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
      (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
    return 0;
  return size;
}

const char* subcode_name(ErrorCode code, uint8_t subcode) {
  struct Name {
    ErrorCode code;
    uint8_t subcode;
    const char* name;
  };
  static constexpr Name kNames[] = {
      {ErrorCode::MessageHeader, 1, "Connection Not Synchronized"},
      {ErrorCode::MessageHeader, 2, "Bad Message Length"},
      {ErrorCode::MessageHeader, 3, "Bad Message Type"},
      {ErrorCode::OpenMessage, 1, "Unsupported Version Number"},
      {ErrorCode::OpenMessage, 2, "Bad Peer AS"},
      {ErrorCode::OpenMessage, 3, "Bad BGP Identifier"},
      {ErrorCode::OpenMessage, 4, "Unsupported Optional Parameter"},
      {ErrorCode::OpenMessage, 6, "Unacceptable Hold Time"},
      {ErrorCode::OpenMessage, 7, "Unsupported Capability"},
      {ErrorCode::OpenMessage, 11, "Role Mismatch"},
      {ErrorCode::UpdateMessage, 1, "Malformed Attribute List"},
      {ErrorCode::UpdateMessage, 2, "Unrecognized Well-known Attribute"},
      {ErrorCode::UpdateMessage, 3, "Missing Well-known Attribute"},
      {ErrorCode::UpdateMessage, 4, "Attribute Flags Error"},
      {ErrorCode::UpdateMessage, 5, "Attribute Length Error"},
      {ErrorCode::UpdateMessage, 6, "Invalid ORIGIN Attribute"},
      {ErrorCode::UpdateMessage, 8, "Invalid NEXT_HOP Attribute"},
      {ErrorCode::UpdateMessage, 9, "Optional Attribute Error"},
      {ErrorCode::UpdateMessage, 10, "Invalid Network Field"},
      {ErrorCode::UpdateMessage, 11, "Malformed AS_PATH"},
      {ErrorCode::FiniteStateMachine, 1, "Unexpected Message in OpenSent"},
      {ErrorCode::FiniteStateMachine, 2, "Unexpected Message in OpenConfirm"},
      {ErrorCode::FiniteStateMachine, 3, "Unexpected Message in Established"},
      {ErrorCode::Cease, 1, "Maximum Number of Prefixes Reached"},
      {ErrorCode::Cease, 2, "Administrative Shutdown"},
      {ErrorCode::Cease, 3, "Peer De-configured"},
      {ErrorCode::Cease, 4, "Administrative Reset"},
      {ErrorCode::Cease, 5, "Connection Rejected"},
      {ErrorCode::Cease, 6, "Other Configuration Change"},
      {ErrorCode::Cease, 7, "Connection Collision Resolution"},
      {ErrorCode::Cease, 8, "Out of Resources"},
      {ErrorCode::Cease, 9, "Hard Reset"},
      {ErrorCode::Cease, 10, "BFD Down"},
      {ErrorCode::RouteRefreshMessage, 1, "Invalid Message Length"},
  };
  for (const Name& entry : kNames)
    if (entry.code == code && entry.subcode == subcode) return entry.name;
  return nullptr;
}

const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::MessageHeader: return "Message Header Error";
    case ErrorCode::OpenMessage: return "OPEN Message Error";
    case ErrorCode::UpdateMessage: return "UPDATE Message Error";
    case ErrorCode::HoldTimerExpired: return "Hold Timer Expired";
    case ErrorCode::FiniteStateMachine: return "Finite State Machine Error";
    case ErrorCode::Cease: return "Cease";
    case ErrorCode::RouteRefreshMessage: return "ROUTE-REFRESH Message Error";
    case ErrorCode::SendHoldTimerExpired: return "Send Hold Timer Expired";
  }
  return nullptr;
}

}  // namespace

const char* to_string(MessageType type) {
  switch (type) {
    case MessageType::Open: return "OPEN";
    case MessageType::Update: return "UPDATE";
    case MessageType::Notification: return "NOTIFICATION";
    case MessageType::Keepalive: return "KEEPALIVE";
    case MessageType::RouteRefresh: return "ROUTE-REFRESH";
  }
  return "unknown";
}

std::string to_string(const Notification& notification) {
  const char* code = code_name(notification.code);
  std::string text =
      code ? code : "code " + std::to_string(static_cast<unsigned>(notification.code));
  if (const char* subcode = subcode_name(notification.code, notification.subcode))
    text += std::string("/") + subcode;
  else if (notification.subcode != 0)
    text += "/" + std::to_string(notification.subcode);
  return text;
}

// RFC 9003 section 2: one octet of length, then UTF-8 without end mark.
Notification shutdown_notification(uint8_t subcode, std::string_view text) {
  Notification notification{ErrorCode::Cease, subcode, {}};
  if (text.empty()) return notification;
  net::Bytes octets(text.begin(), text.end());
  std::size_t size = 0;
  while (size < octets.size()) {
    const std::size_t step = utf8_character(std::span(octets).subspan(size));
    if (step == 0 || size + step > 255) break;
    size += step;
  }
  notification.data.push_back(static_cast<uint8_t>(size));
  notification.data.insert(notification.data.end(), octets.begin(),
                           octets.begin() + static_cast<std::ptrdiff_t>(size));
  return notification;
}

std::optional<std::string> shutdown_text(const Notification& notification) {
  if (notification.code != ErrorCode::Cease ||
      (notification.subcode != cease::kAdministrativeShutdown &&
       notification.subcode != cease::kAdministrativeReset))
    return std::nullopt;
  net::ByteReader in(notification.data);
  std::span<const uint8_t> text = in.bytes(in.u8());
  if (!in.ok() || text.empty()) return std::nullopt;
  std::string shown;
  while (!text.empty()) {
    const std::size_t step = utf8_character(text);
    if (step == 0) return std::nullopt;
    // Control characters must not reach a terminal or a log line.
    if (step == 1 && (text.front() < 0x20 || text.front() == 0x7f))
      shown += ' ';
    else
      shown.append(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(step));
    text = text.subspan(step);
  }
  return shown;
}

std::size_t begin_message(net::ByteWriter& out, MessageType type) {
  for (int i = 0; i < 16; ++i) out.u8(0xff);
  const std::size_t length = out.reserve(2);
  out.u8(static_cast<uint8_t>(type));
  return length;
}

std::expected<Header, Notification> decode_header(std::span<const uint8_t> bytes,
                                                  std::size_t max_message) {
  net::ByteReader in(bytes.first(std::min(bytes.size(), kHeaderSize)));
  const auto marker = in.bytes(16);
  const uint16_t length = in.u16();
  const uint8_t type = in.u8();
  if (!in.ok() || !std::ranges::all_of(marker, [](uint8_t octet) { return octet == 0xff; }))
    return std::unexpected(
        Notification{ErrorCode::MessageHeader, header_error::kNotSynchronized, {}});
  if (length < kHeaderSize) return std::unexpected(bad_length(length));
  if (type < 1 || type > 5)
    return std::unexpected(Notification{ErrorCode::MessageHeader, header_error::kBadType, {type}});
  const Header header{length, static_cast<MessageType>(type)};
  if (!length_fits(header.type, length, max_message)) return std::unexpected(bad_length(length));
  return header;
}

std::expected<Notification, Notification> decode_notification(std::span<const uint8_t> body) {
  net::ByteReader in(body);
  Notification notification;
  notification.code = static_cast<ErrorCode>(in.u8());
  notification.subcode = in.u8();
  if (!in.ok())
    return std::unexpected(bad_length(static_cast<uint16_t>(kHeaderSize + body.size())));
  notification.data.assign(in.rest().begin(), in.rest().end());
  return notification;
}

net::Bytes encode_notification(const Notification& notification) {
  net::ByteWriter out;
  const std::size_t length = begin_message(out, MessageType::Notification);
  out.u8(static_cast<uint8_t>(notification.code));
  out.u8(notification.subcode);
  const std::size_t room = kMaxMessage - out.size();
  out.bytes(std::span(notification.data).first(std::min(notification.data.size(), room)));
  out.patch_u16(length, out.size());
  return out.take();
}

net::Bytes encode_keepalive() {
  net::ByteWriter out;
  out.patch_u16(begin_message(out, MessageType::Keepalive), kHeaderSize);
  return out.take();
}

// RFC 2918 section 3; the octet between AFI and SAFI is the subtype since RFC 7313 section 3.2.
std::expected<RouteRefresh, Notification> decode_route_refresh(std::span<const uint8_t> body) {
  net::ByteReader in(body);
  RouteRefresh refresh;
  refresh.family.afi = in.u16();
  refresh.subtype = in.u8();
  refresh.family.safi = in.u8();
  if (in.ok() && in.done()) return refresh;
  net::ByteWriter whole;
  const std::size_t length = begin_message(whole, MessageType::RouteRefresh);
  whole.bytes(body);
  whole.patch_u16(length, whole.size());
  return std::unexpected(Notification{ErrorCode::RouteRefreshMessage, 1, whole.take()});
}

net::Bytes encode_route_refresh(AfiSafi family, uint8_t subtype) {
  net::ByteWriter out;
  const std::size_t length = begin_message(out, MessageType::RouteRefresh);
  out.u16(family.afi);
  out.u8(subtype);
  out.u8(family.safi);
  out.patch_u16(length, out.size());
  return out.take();
}

}  // namespace bgp
