// SPDX-License-Identifier: GPL-2.0-or-later
// EVPN NLRI on the wire and as values. In: one NLRI (type, length, body), or the rest of an
// MP_REACH/MP_UNREACH attribute through family(). Out: values, the octets again, and the route key.
// RFC 7432 section 7, RFC 9136 section 3.1, RFC 9251 section 9, RFC 9572 section 3.
#include "evpn/nlri.h"

#include <cstring>

namespace evpn {
namespace {

constexpr std::size_t kHeader = 2;  // type and length octets
constexpr std::size_t kMaxBody =
    254;  // with the type octet in front, the longest key there is room for
constexpr std::size_t kRdSize = 8, kEsiSize = 10, kMacSize = 6, kLabelSize = 3;

std::unexpected<NlriError> invalid(std::size_t offset) {
  return std::unexpected(NlriError{bgp::NlriStatus::Invalid, offset});
}

// Octets of an address whose length field says `bits`.
std::optional<std::size_t> address_size(uint8_t bits) {
  switch (bits) {
    case 0: return 0;
    case 32: return 4;
    case 128: return 16;
    default: return std::nullopt;
  }
}

// The body of one NLRI, read from its front, which knows where in the NLRI it is.
class Body {
 public:
  explicit Body(std::span<const uint8_t> body) : in_(body), size_(body.size()) {}
  std::size_t at() const { return kHeader + size_ - in_.remaining(); }
  std::size_t end() const { return kHeader + size_; }
  std::size_t remaining() const { return in_.remaining(); }
  bool ok() const { return in_.ok(); }
  net::ByteReader& in() { return in_; }

  net::RouteDistinguisher rd() {
    const auto octets = in_.bytes(kRdSize);
    return octets.empty() ? net::RouteDistinguisher{} : net::RouteDistinguisher::from_bytes(octets);
  }
  net::Esi esi() {
    const auto octets = in_.bytes(kEsiSize);
    return octets.empty() ? net::Esi{} : net::Esi::from_bytes(octets);
  }
  net::MacAddress mac() {
    const auto octets = in_.bytes(kMacSize);
    return octets.empty() ? net::MacAddress{} : net::MacAddress::from_bytes(octets);
  }
  // A length in bits and the address; no address for length 0. The error is the offset of what is
  // wrong: the length octet, when it names no address or one that the body has no room for.
  std::expected<std::optional<net::IpAddress>, std::size_t> address() {
    const std::size_t length_at = at();
    if (in_.remaining() == 0) return std::unexpected(length_at);
    const auto size = address_size(in_.u8());
    if (!size || *size > in_.remaining()) return std::unexpected(length_at);
    return net::IpAddress::from_bytes(in_.bytes(*size));
  }

 private:
  net::ByteReader in_;
  std::size_t size_;
};

// What follows the fixed part: exactly `want` octets, or the offset of the first missing or surplus
// one.
std::optional<std::size_t> check_tail(const Body& body, std::size_t want) {
  if (body.remaining() < want) return body.end();
  if (body.remaining() > want) return body.at() + want;
  return std::nullopt;
}

// RFC 7432 section 7.1.
std::expected<Route, NlriError> decode_ethernet_auto_discovery(Body body) {
  if (const auto wrong = check_tail(body, kRdSize + kEsiSize + 4 + kLabelSize))
    return invalid(*wrong);
  EthernetAutoDiscovery route;
  route.rd = body.rd();
  route.esi = body.esi();
  route.ethernet_tag = body.in().u32();
  route.label = body.in().u24();
  return route;
}

void encode_body(const EthernetAutoDiscovery& route, net::ByteWriter& out) {
  out.bytes(route.rd.bytes());
  out.bytes(route.esi.bytes());
  out.u32(route.ethernet_tag);
  out.u24(route.label);
}

// RFC 7432 sections 7.2 and 9.2.1. The lengths of MAC and IP address are in bits.
constexpr std::size_t kMacLengthAt = kRdSize + kEsiSize + 4,
                      kIpLengthAt = kMacLengthAt + 1 + kMacSize;
struct MacIpLayout {
  std::size_t ip_size = 0;
  bool two_labels = false;
};

// Most NLRI by far are of this type, and most need no more of it than this. The error is the offset
// of what is wrong.
std::expected<MacIpLayout, std::size_t> check_mac_ip(std::span<const uint8_t> body) {
  if (body.size() < kIpLengthAt + 1) return std::unexpected(kHeader + body.size());
  if (body[kMacLengthAt] != 48) return std::unexpected(kHeader + kMacLengthAt);
  const auto ip = address_size(body[kIpLengthAt]);
  const std::size_t rest = body.size() - (kIpLengthAt + 1);
  if (!ip || *ip > rest) return std::unexpected(kHeader + kIpLengthAt);
  const std::size_t labels = rest - *ip;
  const std::size_t want = labels > kLabelSize ? 2 * kLabelSize : kLabelSize;
  if (labels < want) return std::unexpected(kHeader + body.size());
  if (labels > want) return std::unexpected(kHeader + kIpLengthAt + 1 + *ip + want);
  return MacIpLayout{*ip, want > kLabelSize};
}

std::expected<Route, NlriError> decode_mac_ip(std::span<const uint8_t> octets) {
  const auto layout = check_mac_ip(octets);
  if (!layout) return invalid(layout.error());
  Body body(octets);
  MacIp route;
  route.rd = body.rd();
  route.esi = body.esi();
  route.ethernet_tag = body.in().u32();
  (void)body.in().u8();
  route.mac = body.mac();
  route.ip = *body.address();
  route.label1 = body.in().u24();
  if (layout->two_labels) route.label2 = body.in().u24();
  return route;
}

void encode_address(const std::optional<net::IpAddress>& address, net::ByteWriter& out) {
  out.u8(address ? address->bits() : uint8_t{0});
  if (address) out.bytes(address->bytes());
}

void encode_body(const MacIp& route, net::ByteWriter& out) {
  out.bytes(route.rd.bytes());
  out.bytes(route.esi.bytes());
  out.u32(route.ethernet_tag);
  out.u8(48);
  out.bytes(route.mac.bytes());
  encode_address(route.ip, out);
  out.u24(route.label1);
  if (route.label2) out.u24(*route.label2);
}

// RFC 7432 section 7.3.
std::expected<Route, NlriError> decode_inclusive_multicast(Body body) {
  if (body.remaining() < kRdSize + 4 + 1) return invalid(body.end());
  InclusiveMulticast route;
  route.rd = body.rd();
  route.ethernet_tag = body.in().u32();
  const std::size_t length_at = body.at();
  const auto ip = body.address();
  if (!ip) return invalid(ip.error());
  if (!*ip) return invalid(length_at);
  if (const auto wrong = check_tail(body, 0)) return invalid(*wrong);
  route.originator = **ip;
  return route;
}

void encode_body(const InclusiveMulticast& route, net::ByteWriter& out) {
  out.bytes(route.rd.bytes());
  out.u32(route.ethernet_tag);
  encode_address(route.originator, out);
}

// RFC 7432 section 7.4.
std::expected<Route, NlriError> decode_ethernet_segment(Body body) {
  if (body.remaining() < kRdSize + kEsiSize + 1) return invalid(body.end());
  EthernetSegment route;
  route.rd = body.rd();
  route.esi = body.esi();
  const std::size_t length_at = body.at();
  const auto ip = body.address();
  if (!ip) return invalid(ip.error());
  if (!*ip) return invalid(length_at);
  if (const auto wrong = check_tail(body, 0)) return invalid(*wrong);
  route.originator = **ip;
  return route;
}

void encode_body(const EthernetSegment& route, net::ByteWriter& out) {
  out.bytes(route.rd.bytes());
  out.bytes(route.esi.bytes());
  encode_address(route.originator, out);
}

// RFC 9136 section 3.1. The family follows from the length of the body: 34 or 58 octets.
std::expected<Route, NlriError> decode_ip_prefix(Body body) {
  constexpr std::size_t kFixed = kRdSize + kEsiSize + 4 + 1 + kLabelSize;
  const bool v6 = body.remaining() > kFixed + 2 * 4;
  if (const auto wrong = check_tail(body, kFixed + (v6 ? 2 * 16 : 2 * 4))) return invalid(*wrong);
  const std::size_t size = v6 ? 16 : 4;
  IpPrefixRoute route;
  route.rd = body.rd();
  route.esi = body.esi();
  route.ethernet_tag = body.in().u32();
  const std::size_t length_at = body.at();
  route.prefix.length = body.in().u8();
  if (route.prefix.length > 8 * size) return invalid(length_at);
  route.prefix.address = *net::IpAddress::from_bytes(body.in().bytes(size));
  const std::size_t gateway_at = body.at();
  route.gateway = *net::IpAddress::from_bytes(body.in().bytes(size));
  // RFC 9136 section 3.1: not both, or it is treated as withdrawn.
  if (!route.esi.is_zero() && !route.gateway.is_unspecified())
    return std::unexpected(NlriError{bgp::NlriStatus::Meaningless, gateway_at});
  route.label = body.in().u24();
  return route;
}

void encode_body(const IpPrefixRoute& route, net::ByteWriter& out) {
  out.bytes(route.rd.bytes());
  out.bytes(route.esi.bytes());
  out.u32(route.ethernet_tag);
  out.u8(route.prefix.length);
  out.bytes(route.prefix.address.bytes());
  out.bytes(route.gateway.bytes());
  out.u24(route.label);
}

// How much of the body of a type 6 to 11 makes its key; the error is the offset of what is wrong.
//   6     all but the Flags octet                                        (RFC 9251 section 9.1)
//   7     the same, with an ESI                                          (section 9.2)
//   8     all but Reserved (4), Maximum Response Time and Flags          (section 9.3)
//   9-11  all of it                                                      (RFC 9572 section 3)
std::expected<std::size_t, std::size_t> opaque_key_size(uint8_t type,
                                                        std::span<const uint8_t> octets) {
  Body body(octets);
  if (octets.size() > kMaxBody) return std::unexpected(1u);
  if (type > 8) return octets.size();
  const std::size_t fixed = kRdSize + (type == 6 ? 0 : kEsiSize) + 4;
  if (octets.size() < fixed) return std::unexpected(body.end());
  (void)body.in().bytes(fixed);
  for (int field = 0; field < 3; ++field) {  // source, group, originator
    const auto address = body.address();
    if (!address) return std::unexpected(address.error());
  }
  const std::size_t key = body.at() - kHeader;
  if (const auto wrong = check_tail(body, type == 8 ? 6 : 1)) return std::unexpected(*wrong);
  return key;
}

std::expected<Route, NlriError> decode_opaque(uint8_t type, std::span<const uint8_t> body) {
  if (const auto size = opaque_key_size(type, body); !size) return invalid(size.error());
  return OpaqueRoute{type, net::Bytes(body.begin(), body.end())};
}

void encode_body(const OpaqueRoute& route, net::ByteWriter& out) { out.bytes(route.body); }

std::expected<Route, NlriError> decode_body(uint8_t type, std::span<const uint8_t> body) {
  switch (type) {
    case 1: return decode_ethernet_auto_discovery(Body(body));
    case 2: return decode_mac_ip(body);
    case 3: return decode_inclusive_multicast(Body(body));
    case 4: return decode_ethernet_segment(Body(body));
    case 5: return decode_ip_prefix(Body(body));
    default: break;
  }
  if (type >= 6 && type <= 11) return decode_opaque(type, body);
  return std::unexpected(NlriError{bgp::NlriStatus::UnknownType, 0});
}

uint8_t type_of(const Route& route) {
  if (const auto* opaque = std::get_if<OpaqueRoute>(&route)) return opaque->type;
  return static_cast<uint8_t>(route.index() + 1);  // the variant lists types 1 to 5 in order
}

// --- route keys, RFC 7432 section 7: what makes two NLRI the same route
class KeyFiller {
 public:
  explicit KeyFiller(bgp::NlriItem& item) : item_(item) {
    item_.key_storage[0] = item_.type;
    item_.key_size = 1;
  }
  KeyFiller& add(std::span<const uint8_t> octets) {
    if (!octets.empty())
      std::memcpy(item_.key_storage + item_.key_size, octets.data(), octets.size());
    item_.key_size = static_cast<uint8_t>(item_.key_size + octets.size());
    return *this;
  }

 private:
  bgp::NlriItem& item_;
};

// `body` is valid.
void fill_key(std::span<const uint8_t> body, bgp::NlriItem& item) {
  KeyFiller key(item);
  switch (item.type) {
    case 1: key.add(body.first(kRdSize + kEsiSize + 4)); break;
    case 5: {
      // RFC 9136 section 3.1: not ESI, gateway or label. Host bits mean nothing (RFC 4271 section
      // 4.3).
      constexpr std::size_t kLengthAt = kRdSize + kEsiSize + 4;
      const std::size_t size = body.size() > kLengthAt + 1 + kLabelSize + 8 ? 16 : 4;
      const net::IpPrefix prefix{*net::IpAddress::from_bytes(body.subspan(kLengthAt + 1, size)),
                                 body[kLengthAt]};
      key.add(body.first(kRdSize)).add(body.subspan(kRdSize + kEsiSize, 4 + 1));
      key.add(prefix.masked().address.bytes());
      break;
    }
    default: key.add(body);  // types 3 and 4
  }
}

bgp::NlriStatus next(net::ByteReader& in, bgp::NlriItem& out) {
  const auto all = in.rest();
  if (all.size() < kHeader || all[1] > all.size() - kHeader) {
    in.fail();
    return bgp::NlriStatus::Framing;
  }
  out.type = all[0];
  out.key_size = 0;
  out.bytes = in.bytes(kHeader + all[1]);
  const auto body = out.bytes.subspan(kHeader);
  if (out.type == 2) {  // neither ESI nor labels
    const auto layout = check_mac_ip(body);
    if (!layout) return bgp::NlriStatus::Invalid;
    constexpr std::size_t kSkipped = kRdSize + kEsiSize;
    const std::size_t end = kIpLengthAt + 1 + layout->ip_size;
    KeyFiller(out).add(body.first(kRdSize)).add(body.subspan(kSkipped, end - kSkipped));
  } else if (out.type >= 6 && out.type <= 11) {
    const auto size = opaque_key_size(out.type, body);
    if (!size) return bgp::NlriStatus::Invalid;
    KeyFiller(out).add(body.first(*size));
  } else {
    const auto route = decode_body(out.type, body);
    const auto status = route ? bgp::NlriStatus::Ok : route.error().status;
    if (route || status == bgp::NlriStatus::Meaningless) fill_key(body, out);
    return status;
  }
  return bgp::NlriStatus::Ok;
}

// --- text
std::string bracket(const std::string& text) { return "[" + text + "]"; }
std::string join(std::initializer_list<std::string> fields) {
  std::string text;
  for (const auto& field : fields) text += (text.empty() ? "" : ":") + bracket(field);
  return text;
}
std::string text(const EthernetAutoDiscovery& route) {
  return join({"1", std::to_string(route.ethernet_tag), net::to_string(route.esi)});
}
std::string text(const MacIp& route) {
  std::string head =
      join({"2", std::to_string(route.ethernet_tag), "48", net::to_string(route.mac)});
  if (!route.ip) return head;
  return head + ":" + join({std::to_string(route.ip->bits()), net::to_string(*route.ip)});
}
std::string text(const InclusiveMulticast& route) {
  return join({"3", std::to_string(route.ethernet_tag), std::to_string(route.originator.bits()),
               net::to_string(route.originator)});
}
std::string text(const EthernetSegment& route) {
  return join({"4", net::to_string(route.esi), std::to_string(route.originator.bits()),
               net::to_string(route.originator)});
}
std::string text(const IpPrefixRoute& route) {
  return join({"5", std::to_string(route.ethernet_tag), std::to_string(route.prefix.length),
               net::to_string(route.prefix.address)});
}
std::string text(const OpaqueRoute& route) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string octets = "0x";
  for (const uint8_t octet : route.body) {
    octets += kHex[octet >> 4];
    octets += kHex[octet & 15];
  }
  return join({std::to_string(route.type), octets});
}

}  // namespace

std::expected<Route, NlriError> decode(std::span<const uint8_t> nlri) {
  const auto framing = [](std::size_t offset) {
    return std::unexpected(NlriError{bgp::NlriStatus::Framing, offset});
  };
  if (nlri.size() < kHeader) return framing(nlri.size());
  const std::size_t length = nlri[1];
  if (length > nlri.size() - kHeader) return framing(1);
  if (length < nlri.size() - kHeader) return framing(kHeader + length);
  return decode_body(nlri[0], nlri.subspan(kHeader));
}

net::Bytes encode(const Route& route) {
  net::ByteWriter out;
  out.u8(type_of(route));
  const std::size_t length_at = out.reserve(1);
  std::visit([&](const auto& value) { encode_body(value, out); }, route);
  out.patch_u8(length_at, out.size() - kHeader);
  return out.ok() ? out.take() : net::Bytes{};
}

EncodedRoute encode_item(const Route& route) { return {encode(route)}; }

bgp::NlriItem EncodedRoute::item() const {
  bgp::NlriItem item;
  net::ByteReader in(storage);
  (void)next(in, item);
  return item;
}

const bgp::Family& family() {
  static constexpr bgp::Family kFamily{bgp::kL2vpnEvpn, "l2vpn-evpn", next};
  return kFamily;
}

std::string to_string(const Route& route) {
  return std::visit([](const auto& value) { return text(value); }, route);
}

std::optional<net::RouteDistinguisher> route_distinguisher(const Route& route) {
  const auto* opaque = std::get_if<OpaqueRoute>(&route);
  if (opaque == nullptr)
    return std::visit(
        []<class T>(const T& value) {
          if constexpr (std::is_same_v<T, OpaqueRoute>)
            return net::RouteDistinguisher{};
          else
            return value.rd;
        },
        route);
  // A Leaf A-D route (type 11) begins with the whole NLRI of the route it answers.
  const std::size_t at = opaque->type == 11 ? kHeader : 0;
  if (opaque->body.size() < at + kRdSize) return std::nullopt;
  return net::RouteDistinguisher::from_bytes(std::span(opaque->body).subspan(at, kRdSize));
}

}  // namespace evpn
