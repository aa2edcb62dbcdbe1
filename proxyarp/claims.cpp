// SPDX-License-Identifier: GPL-2.0-or-later
// What a frame says of a binding: learned, contested or refused (RFC 9161 sections 3.2 and 3.7).
#include <algorithm>

#include "proxyarp/ethernet.h"
#include "proxyarp/impl.h"
#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr uint8_t kTcp = 6;
constexpr uint16_t kBgp = 179;

uint16_t u16(std::span<const uint8_t> frame, std::size_t at) {
  return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]);
}

// The start of a BGP connection: SYN without ACK to port 179.
bool is_bgp_open(std::span<const uint8_t> tcp) {
  return tcp.size() >= 14 && u16(tcp, 2) == kBgp && (tcp[13] & 0x12) == 0x02;
}

struct Packet {
  net::IpAddress to;
  bool bgp = false;
};

std::optional<Packet> look(std::span<const uint8_t> frame) {
  constexpr std::size_t kIpv4 = 20, kIpv6 = 40;
  const uint16_t type = u16(frame, kEthernetHeader - 2);
  const auto packet = frame.subspan(kEthernetHeader);
  if (type == kEtherTypeIpv4 && packet.size() >= kIpv4) {
    const std::size_t header = 4u * (packet[0] & 15u);
    const bool first = (u16(packet, 6) & 0x1fff) == 0;  // of its fragments
    const bool tcp = packet[9] == kTcp && first && header >= kIpv4 && packet.size() >= header;
    return Packet{*net::IpAddress::from_bytes(packet.subspan(16, 4)),
                  tcp && is_bgp_open(packet.subspan(header))};
  }
  if (type == kEtherTypeIpv6 && packet.size() >= kIpv6)
    return Packet{*net::IpAddress::from_bytes(packet.subspan(24, 16)),
                  packet[6] == kTcp && is_bgp_open(packet.subspan(kIpv6))};
  return std::nullopt;
}

}  // namespace

// The sender says that `ip` is at its MAC; the caller has asked refuses().
Responder::Impl::Bound Responder::Impl::bind(Incoming& in, const net::IpAddress& ip,
                                             net::MacAddress mac, NaFlags flags, bool announced) {
  if (!in.port) {  // never learned, but it may be the answer to a question of ours
    duplicates.seen(ip, mac);
    return Bound::Fine;
  }
  // With given bindings only, nobody comes to have an address by saying so.
  if (sponge.watches(ip) && context.settings.learns()) sponge.alive(ip, mac, *in.port);
  if (duplicates.is_frozen(ip) || is_disputed(ip)) return Bound::Frozen;
  const Binding* binding = table.find(ip);
  if (!binding || !binding->reserved()) return learn(in, ip, mac, flags);
  const InUse* owner = binding->answerable();
  if (owner && owner->mac != mac)
    duplicates.claim_listed(ip, *owner, {mac, {MacWhere::LocalPort, *in.port}, flags}, announced);
  else
    duplicates.seen(ip, mac);
  return Bound::Fine;
}

Responder::Impl::Bound Responder::Impl::learn(Incoming& in, const net::IpAddress& ip,
                                              net::MacAddress mac, NaFlags flags) {
  using enum BindingTable::LearnResult;
  const auto may = table.may_bind(ip, mac, *in.port);
  if (may == NotAllowed) return Bound::Fine;
  if (may == LimitReached) {
    alarm(in, AlarmKind::BindingLimit, ip, mac);
    return Bound::LimitReached;
  }
  if (may == TooFast) return Bound::TooFast;
  const Binding* binding = table.find(ip);
  const InUse* owner = binding ? binding->answerable() : nullptr;
  const bool anycast = context.settings.anycast && ip.is_v6();
  if (owner && owner->mac != mac && context.settings.duplicates.enabled && !anycast) {
    const InUse holder = *owner;
    const auto ruling = duplicates.claim(ip, holder, {mac, {MacWhere::LocalPort, *in.port}, flags});
    if (ruling == Duplicates::Ruling::Frozen) return Bound::Frozen;
    if (ruling != Duplicates::Ruling::Accepted) return Bound::Fine;
  }
  if (table.learn(ip, mac, *in.port, flags) == Changed) {
    in.learned = true;
    in.of = ip;
    in.to = mac;
  }
  duplicates.seen(ip, mac);
  return Bound::Fine;
}

// It uses the address, which is no claim: a solicitation, or an advertisement without override
// flag.
void Responder::Impl::sign_of_life(Incoming& in, const net::IpAddress& ip, net::MacAddress mac) {
  if (in.port) table.refresh(ip, mac, *in.port);
  duplicates.seen(ip, mac);
  if (in.port && sponge.watches(ip) && context.settings.learns()) sponge.alive(ip, mac, *in.port);
}

// RFC 9131 section 6.1.2: an advertisement that may not be learned, of an address that will be
// used. Its sender is asked, and the answer is learned.
void Responder::Impl::follow_hint(Incoming& in, const NdFrame& nd) {
  static const auto kAllRouters =
      net::IpAddress::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  if (!in.port || nd.to != kAllRouters || !nd.link_layer) return;
  const Binding* binding = table.find(nd.target);
  if (binding && (binding->reserved() || binding->owned_by(nd.source))) return;
  if (table.may_bind(nd.target, nd.source, *in.port) != BindingTable::LearnResult::Changed) return;
  auto question = question_to(context.identity, nd.target, nd.source);
  if (question && hints.take(context.now)) context.emit(Transmit{*in.port, std::move(*question)});
}

void Responder::Impl::set_evpn(const net::IpAddress& ip, std::span<const EvpnBinding> bindings) {
  const Binding* old = table.find(ip);
  const auto before = old ? old->in_use : std::nullopt;
  // RFC 9047 section 3.2: what two have for good is told; the latest is used.
  if (old && !bindings.empty() && bindings.front().immutable) {
    const net::MacAddress mac = bindings.front().mac;
    std::optional<net::MacAddress> bound;
    if (old->reserved() && !old->owned_by(mac))
      bound = old->in_use ? old->in_use->mac : old->fixed->allowed.front();
    else if (!old->reserved() && old->immutable_elsewhere() && old->evpn.front().mac != mac)
      bound = old->evpn.front().mac;
    if (bound && alarms.add({AlarmKind::ImmutableConflict, ip, mac, {}}, context.now)) {
      Alarm conflict{};
      conflict.kind = AlarmKind::ImmutableConflict;
      conflict.ip = ip;
      conflict.bound = *bound;
      conflict.seen = mac;
      const auto [where, port] = table.whereabouts(*bound);
      conflict.bound_at = {where, port};
      conflict.seen_at = {MacWhere::Remote, {}};
      context.emit(conflict);
    }
  }
  std::vector<EvpnPart> parts;
  for (const EvpnBinding& one : bindings) parts.push_back({one.mac, one.flags, one.immutable, 0});
  table.set_evpn(ip, std::move(parts));
  duplicates.evpn_changed(ip, before);
}

void Responder::Impl::trapped(net::IfIndex port, std::span<const uint8_t> frame) {
  count(Verdict::Trapped);
  if (frame.size() < kEthernetHeader) return;
  const auto packet = look(frame);
  const auto from = net::MacAddress::from_bytes(frame.subspan(6));
  std::optional<net::IpAddress> to;
  if (packet) to = packet->to;
  if (net::MacAddress::from_bytes(frame) == context.settings.duplicates.anti_spoof_mac)
    return offenders.note(OffenderKind::AntiSpoof, {port, from, to});
  if (!packet) return;
  sponge.reached(packet->to, packet->bgp);
  if (packet->bgp) offenders.note(OffenderKind::DeadPeer, {port, from, to});
}

}  // namespace proxyarp
