// SPDX-License-Identifier: GPL-2.0-or-later
// A message is the common header, in most cases the per-peer header, and a body. The length in the
// common header is patched when the body stands.
#include "bgp/bmp.h"

#include <algorithm>
#include <array>

namespace bgp::bmp {
namespace {

// Flags of the per-peer header: RFC 7854 section 4.2, RFC 8671 section 4.
constexpr uint8_t kIpv6 = 0x80, kPostPolicy = 0x40, kTwoOctetAs = 0x20, kAdjRibOut = 0x10;
constexpr uint8_t kGlobalInstance = 0, kLocRibInstance = 3;  // peer types; RFC 9069 section 4.1
constexpr uint16_t kTlvDescription = 1, kTlvName = 2;        // of Initiation, RFC 7854 section 4.3
constexpr uint16_t kTlvReason = 1;                           // of Termination, section 4.5
constexpr uint16_t kTlvTableName = 3;                        // RFC 9069 section 4.4
// Events of RFC 4271 section 8.1 (29: RFC 9687).
constexpr uint8_t kManualStop = 2, kConnectionConfirmed = 17, kSendHoldTimerExpires = 29;

class Writer {
 public:
  explicit Writer(MessageType type) {
    out_.u8(kVersion);
    out_.u32(0);  // length
    out_.u8(static_cast<uint8_t>(type));
  }
  Writer(MessageType type, const PeerHeader& peer) : Writer(type) {
    const bool loc = peer.table == Table::Loc;
    uint8_t flags = 0;
    if (!loc) {
      if (peer.address.is_v6()) flags |= kIpv6;
      if (peer.table != Table::InPre) flags |= kPostPolicy;
      if (peer.table == Table::OutPost) flags |= kAdjRibOut;
      if (peer.two_octet_as) flags |= kTwoOctetAs;
    }
    out_.u8(loc ? kLocRibInstance : kGlobalInstance);
    out_.u8(flags);
    out_.u64(0);  // peer distinguisher
    address(loc ? net::IpAddress() : peer.address);
    out_.u32(peer.as_number);
    out_.u32(peer.router_id);
    out_.u32(static_cast<uint32_t>(peer.time.count() / 1000000));
    out_.u32(static_cast<uint32_t>(peer.time.count() % 1000000));
  }
  net::ByteWriter* operator->() { return &out_; }
  // Sixteen octets; an IPv4 address in the last four.
  void address(const net::IpAddress& address) {
    static constexpr std::array<uint8_t, 12> kZero{};
    if (address.is_v4()) out_.bytes(kZero);
    out_.bytes(address.bytes());
  }
  void tlv(uint16_t type, std::span<const uint8_t> value) {
    value = value.first(std::min<std::size_t>(value.size(), 0xffff));
    out_.u16(type);
    out_.u16(static_cast<uint16_t>(value.size()));
    out_.bytes(value);
  }
  void tlv(uint16_t type, std::string_view text) {
    tlv(type, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  net::Bytes take() {
    const auto size = static_cast<uint32_t>(out_.size());
    out_.patch_u16(1, size >> 16);
    out_.patch_u16(3, size & 0xffff);
    return out_.take();
  }

 private:
  net::ByteWriter out_;
};

}  // namespace

net::Bytes encode_initiation(std::string_view system_description, std::string_view system_name) {
  Writer out(MessageType::Initiation);
  out.tlv(kTlvDescription, system_description);
  out.tlv(kTlvName, system_name);
  return out.take();
}

net::Bytes encode_termination(TerminationReason reason) {
  Writer out(MessageType::Termination);
  const auto code = static_cast<uint16_t>(reason);
  const std::array value{static_cast<uint8_t>(code >> 8), static_cast<uint8_t>(code)};
  out.tlv(kTlvReason, value);
  return out.take();
}

net::Bytes encode_peer_up(const PeerHeader& peer, const PeerUp& up) {
  Writer out(MessageType::PeerUp, peer);
  const bool loc = peer.table == Table::Loc;
  out.address(loc ? net::IpAddress() : up.local_address);
  out->u16(loc ? 0 : up.local_port);
  out->u16(loc ? 0 : up.remote_port);
  out->bytes(up.open_sent);
  out->bytes(up.open_received);
  if (loc) out.tlv(kTlvTableName, up.name);
  return out.take();
}

net::Bytes encode_peer_down(const PeerHeader& peer, PeerDownReason reason,
                            std::span<const uint8_t> data) {
  Writer out(MessageType::PeerDown, peer);
  out->u8(static_cast<uint8_t>(reason));
  out->bytes(data);
  return out.take();
}

net::Bytes encode_loc_rib_down(const PeerHeader& peer, std::string_view name) {
  Writer out(MessageType::PeerDown, peer);
  out->u8(static_cast<uint8_t>(PeerDownReason::LocRibClosed));
  out.tlv(kTlvTableName, name);
  return out.take();
}

PeerDown peer_down(const EndReason& reason) {
  const auto event = [](uint8_t number) {
    return PeerDown{PeerDownReason::LocalNoNotification, {0, number}};
  };
  switch (reason.cause) {
    case EndReason::Cause::NotificationSent:
      return {PeerDownReason::LocalNotification,
              encode_notification(reason.notification.value_or(Notification{}))};
    case EndReason::Cause::NotificationReceived:
      return {PeerDownReason::RemoteNotification,
              encode_notification(reason.notification.value_or(Notification{}))};
    case EndReason::Cause::ConnectionClosed: return {PeerDownReason::RemoteNoNotification, {}};
    case EndReason::Cause::SendHoldTimer: return event(kSendHoldTimerExpires);
    case EndReason::Cause::Replaced: return event(kConnectionConfirmed);
    case EndReason::Cause::Stopped: return event(kManualStop);
  }
  return {};
}

net::Bytes encode_route_monitoring(const PeerHeader& peer, std::span<const uint8_t> update) {
  Writer out(MessageType::RouteMonitoring, peer);
  out->bytes(update);
  return out.take();
}

net::Bytes encode_statistics(const PeerHeader& peer, const Statistics& statistics) {
  Writer out(MessageType::StatisticsReport, peer);
  const std::size_t count_at = out->reserve(4);
  std::size_t count = 0;
  const auto number = [&](uint16_t type, uint64_t value, uint16_t size) {
    ++count;
    out->u16(type);
    out->u16(size);
    if (size == 4)
      out->u32(static_cast<uint32_t>(value));
    else
      out->u64(value);
  };
  const auto of_family = [&](uint16_t type, uint64_t value) {
    ++count;
    out->u16(type);
    out->u16(11);
    out->u16(statistics.family.afi);
    out->u8(statistics.family.safi);
    out->u64(value);
  };
  if (statistics.rejected_by_policy) number(0, *statistics.rejected_by_policy, 4);
  if (statistics.adj_rib_in) number(7, *statistics.adj_rib_in, 8);
  if (statistics.loc_rib) number(8, *statistics.loc_rib, 8);
  if (statistics.adj_rib_in) of_family(9, *statistics.adj_rib_in);
  if (statistics.loc_rib) of_family(10, *statistics.loc_rib);
  if (statistics.treated_as_withdraw) number(11, *statistics.treated_as_withdraw, 4);
  if (statistics.adj_rib_out) number(15, *statistics.adj_rib_out, 8);
  if (statistics.adj_rib_out) of_family(17, *statistics.adj_rib_out);
  out->patch_u16(count_at + 2, count);
  return out.take();
}

}  // namespace bgp::bmp
