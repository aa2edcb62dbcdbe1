// SPDX-License-Identifier: GPL-2.0-or-later
// Frames in, classes out; names in, frames out. ARP: RFC 826; ND: RFC 4861; VXLAN: RFC 7348.
#include "frame_kinds.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lab {
namespace {

using net::ByteReader;
using net::Bytes;
using net::ByteWriter;
using net::IpAddress;
using net::MacAddress;
using Octets = std::span<const uint8_t>;

constexpr uint16_t kIpv4 = 0x0800, kArp = 0x0806, kIpv6 = 0x86dd;

MacAddress group_of(const IpAddress& group) {  // RFC 1112 section 6.4, RFC 2464 section 7
  const auto b = group.bytes();
  if (group.is_v4())
    return MacAddress({0x01, 0x00, 0x5e, static_cast<uint8_t>(b[1] & 0x7f), b[2], b[3]});
  return MacAddress({0x33, 0x33, b[12], b[13], b[14], b[15]});
}

void ethernet(ByteWriter& w, const MacAddress& to, const MacAddress& from, uint16_t type) {
  w.bytes(to.bytes());
  w.bytes(from.bytes());
  w.u16(type);
}

Bytes padded(ByteWriter& w) {
  Bytes frame = w.take();
  if (frame.size() < 60) frame.resize(60);
  return frame;
}

IpAddress address(const char* text) { return *IpAddress::parse(text); }

uint16_t upper_checksum(uint8_t protocol, Octets source, Octets destination, Octets payload) {
  ByteWriter w;
  w.bytes(source);
  w.bytes(destination);
  w.u32(static_cast<uint32_t>(payload.size()));
  w.u32(protocol);
  w.bytes(payload);
  return checksum(w.view());
}

Bytes ipv6_frame(const MacAddress& to, const Sender& from, const IpAddress& source,
                 const IpAddress& destination, uint8_t next_header, uint8_t hop_limit,
                 Octets payload) {
  ByteWriter w;
  ethernet(w, to, from.mac, kIpv6);
  w.u32(0x60000000);
  w.u16(static_cast<uint16_t>(payload.size()));
  w.u8(next_header);
  w.u8(hop_limit);
  w.bytes(source.bytes());
  w.bytes(destination.bytes());
  w.bytes(payload);
  return padded(w);
}

Bytes icmpv6_frame(const MacAddress& to, const Sender& from, const IpAddress& source,
                   const IpAddress& destination, Bytes message) {
  const uint16_t sum = icmpv6_checksum(source.bytes(), destination.bytes(), message);
  message[2] = static_cast<uint8_t>(sum >> 8);
  message[3] = static_cast<uint8_t>(sum);
  return ipv6_frame(to, from, source, destination, 58, 255, message);
}

Bytes ipv4_frame(const MacAddress& to, const Sender& from, const IpAddress& source,
                 const IpAddress& destination, uint8_t protocol, Octets payload) {
  ByteWriter header;
  header.u16(0x4500);
  header.u16(static_cast<uint16_t>(20 + payload.size()));
  header.u32(0);
  header.u8(protocol == 17 ? 64 : 1);
  header.u8(protocol);
  header.u16(0);
  header.bytes(source.bytes());
  header.bytes(destination.bytes());
  header.patch_u16(10, checksum(header.view()));
  ByteWriter w;
  ethernet(w, to, from.mac, kIpv4);
  w.bytes(header.view());
  w.bytes(payload);
  return padded(w);
}

// Without checksum, as IPv4 allows.
Bytes udp(uint16_t source, uint16_t destination, Octets content) {
  ByteWriter w;
  w.u16(source);
  w.u16(destination);
  w.u16(static_cast<uint16_t>(8 + content.size()));
  w.u16(0);
  w.bytes(content);
  return w.take();
}

Bytes dhcp_discover(const Sender& from) {  // RFC 2131 section 2
  ByteWriter w;
  w.u32(0x01010600);
  w.u32(0x12345678);
  w.reserve(20);
  w.bytes(from.mac.bytes());
  w.reserve(202);
  w.u32(0x63825363);
  w.u32(0x350101ff);
  w.reserve(60);
  return udp(68, 67, w.view());
}

Bytes dhcpv6_solicit(const Sender& from) {  // RFC 8415 section 8
  const IpAddress to = address("ff02::1:2"), source = address("fe80::1");
  ByteWriter w;
  w.u32(0x01123456);
  w.u64(0x0001000a00030001);  // client identifier: DUID-LL
  w.bytes(from.mac.bytes());
  Bytes packet = udp(546, 547, w.view());
  const uint16_t sum = upper_checksum(17, source.bytes(), to.bytes(), packet);
  packet[6] = static_cast<uint8_t>(sum >> 8);
  packet[7] = static_cast<uint8_t>(sum);
  return ipv6_frame(group_of(to), from, source, to, 17, 1, packet);
}

Bytes ospf_hello(const Sender& from) {  // RFC 2328 appendix A.3.2
  ByteWriter w;
  w.u32(0x0201002c);
  w.bytes(from.v4.bytes());
  w.u32(0);
  w.reserve(12);
  w.u32(0xffffff00);
  w.u32(0x000a0201);
  w.u32(40);
  w.u64(0);
  w.patch_u16(12, checksum(w.view()));
  const IpAddress to = address("224.0.0.5");
  return ipv4_frame(group_of(to), from, from.v4, to, 89, w.view());
}

Bytes arp(const MacAddress& to, const Sender& from, uint16_t operation, const IpAddress& target,
          const MacAddress& target_mac) {
  ByteWriter w;
  ethernet(w, to, from.mac, kArp);
  w.u16(1);
  w.u16(kIpv4);
  w.u8(6);
  w.u8(4);
  w.u16(operation);
  w.bytes(from.mac.bytes());
  w.bytes(from.v4.bytes());
  w.bytes(target_mac.bytes());
  w.bytes(target.bytes());
  return padded(w);
}

Bytes unsolicited_na(const Sender& from) {
  ByteWriter w;
  w.u32(0x88000000);
  w.u32(0xa0000000);  // R and O, not S
  w.bytes(from.v6.bytes());
  w.u16(0x0201);
  w.bytes(from.mac.bytes());
  const IpAddress all = address("ff02::1");
  return icmpv6_frame(group_of(all), from, from.v6, all, w.take());
}

Bytes router_message(const Sender& from, bool advertisement) {
  ByteWriter w;
  w.u32(advertisement ? 0x86000000 : 0x85000000);
  if (advertisement) {
    w.u32(0x40000708);  // hop limit 64, lifetime 1800 s
    w.u64(0);
  } else {
    w.u32(0);
  }
  w.u16(0x0101);
  w.bytes(from.mac.bytes());
  const IpAddress to = address(advertisement ? "ff02::1" : "ff02::2");
  return icmpv6_frame(group_of(to), from, address("fe80::1"), to, w.take());
}

Bytes llc(const MacAddress& to, const Sender& from, Octets content) {
  ByteWriter w;
  ethernet(w, to, from.mac, static_cast<uint16_t>(content.size()));
  w.bytes(content);
  return padded(w);
}

Bytes stp(const Sender& from) {
  ByteWriter w;
  w.u24(0x424203);
  w.u32(0);  // configuration BPDU
  w.u8(0);
  for (int i = 0; i < 2; ++i) {  // root and bridge
    w.u16(0x8000);
    w.bytes(from.mac.bytes());
    if (i == 0) w.u32(0);
  }
  w.u16(0x8001);
  w.u16(0);
  w.u16(20 << 8);
  w.u16(2 << 8);
  w.u16(15 << 8);
  return llc(MacAddress({0x01, 0x80, 0xc2, 0, 0, 0}), from, w.view());
}

Bytes cdp(const Sender& from) {
  ByteWriter w;
  w.u24(0xaaaa03);
  w.u24(0x00000c);
  w.u16(0x2000);
  ByteWriter content;
  content.u32(0x02b40000);
  content.u32(0x00010008);  // device id
  content.u32(0x706c6162);
  content.patch_u16(2, checksum(content.view()));
  w.bytes(content.view());
  return llc(MacAddress({0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}), from, w.view());
}

Bytes slow_frame(const Sender& from, uint8_t group, uint16_t type, Octets content) {
  ByteWriter w;
  ethernet(w, MacAddress({0x01, 0x80, 0xc2, 0, 0, group}), from.mac, type);
  w.bytes(content);
  return padded(w);
}

Bytes lldp(const Sender& from) {
  ByteWriter w;
  w.u16(0x0207);  // chassis id: MAC
  w.u8(4);
  w.bytes(from.mac.bytes());
  w.u16(0x0402);  // port id: local
  w.u16(0x0731);
  w.u32(0x06020078);
  w.u16(0);
  return slow_frame(from, 0x0e, 0x88cc, w.view());
}

Bytes lacp(const Sender& from) {
  ByteWriter w;
  w.u16(0x0101);
  w.u16(0x0114);
  w.u16(0x8000);
  w.bytes(from.mac.bytes());
  w.reserve(100);
  return slow_frame(from, 0x02, 0x8809, w.view());
}

Bytes igmp(const Sender& from) {
  ByteWriter w;
  w.u32(0x16000000);  // version 2 report
  const IpAddress group = address("239.1.2.3");
  w.bytes(group.bytes());
  w.patch_u16(2, checksum(w.view()));
  return ipv4_frame(group_of(group), from, from.v4, group, 2, w.view());
}

Bytes mld(const Sender& from) {  // version 2 report behind a hop-by-hop router alert, RFC 3810
  ByteWriter message;
  message.u32(0x8f000000);
  message.u32(1);
  message.u32(0x04000000);
  const IpAddress group = address("ff0e::1234");
  message.bytes(group.bytes());
  const IpAddress to = address("ff02::16"), source = address("fe80::1");
  message.patch_u16(2, icmpv6_checksum(source.bytes(), to.bytes(), message.view()));
  ByteWriter w;
  w.u64(0x3a00050200000100);  // next header ICMPv6; router alert MLD; PadN
  w.bytes(message.view());
  return ipv6_frame(group_of(to), from, source, to, 0, 1, w.view());
}

constexpr std::array<std::string_view, 19> kNames{"arp",
                                                  "ns",
                                                  "gratuitous-arp",
                                                  "gratuitous-reply",
                                                  "unsolicited-na",
                                                  "rs",
                                                  "ra",
                                                  "stp",
                                                  "lldp",
                                                  "lacp",
                                                  "cdp",
                                                  "dhcp",
                                                  "dhcpv6",
                                                  "igmp",
                                                  "mld",
                                                  "ospf",
                                                  "broadcast",
                                                  "multicast",
                                                  "unknown-unicast"};

FrameClass arp_class(Octets frame) {
  ByteReader r(frame);
  r.bytes(20);
  const uint16_t operation = r.u16();
  r.bytes(6);
  const auto sender = r.bytes(4);
  r.bytes(6);
  const auto target = r.bytes(4);
  if (!r.ok()) return FrameClass::OtherBroadcast;
  if (std::ranges::equal(sender, target)) return FrameClass::GratuitousArp;
  return operation == 2 ? FrameClass::ArpReply : FrameClass::ArpRequest;
}

// Upper-layer protocol and payload of an IP packet behind the Ethernet header.
struct Upper {
  uint8_t protocol = 255;
  Octets payload;
};
Upper upper_of(Octets frame, uint16_t type) {
  ByteReader r(frame);
  r.bytes(14);
  if (type == kIpv4) {
    const std::size_t header = static_cast<std::size_t>(r.u8() & 15) * 4;
    r.bytes(8);
    const uint8_t protocol = r.u8();
    r.bytes(header > 10 ? header - 10 : 0);
    return r.ok() ? Upper{protocol, r.rest()} : Upper{};
  }
  r.bytes(6);
  uint8_t protocol = r.u8();
  r.bytes(33);
  if (protocol == 0) {  // hop-by-hop options
    protocol = r.u8();
    const std::size_t length = static_cast<std::size_t>(r.u8()) * 8 + 6;
    r.bytes(length);
  }
  return r.ok() ? Upper{protocol, r.rest()} : Upper{};
}

std::optional<FrameClass> icmpv6_class(Octets message) {
  if (message.size() < 5) return std::nullopt;
  switch (message[0]) {
    case 130:
    case 131:
    case 132:
    case 143: return FrameClass::Mld;
    case 133: return FrameClass::Rs;
    case 134: return FrameClass::Ra;
    case 135: return FrameClass::Ns;
    case 136: return (message[4] & 0x40) != 0 ? FrameClass::Na : FrameClass::UnsolicitedNa;
    default: return std::nullopt;
  }
}

std::optional<FrameClass> ip_class(Octets frame, uint16_t type) {
  const Upper upper = upper_of(frame, type);
  switch (upper.protocol) {
    case 2: return FrameClass::Igmp;
    case 17: {
      ByteReader r(upper.payload);
      r.u16();
      const uint16_t port = r.u16();
      if (port == 67 || port == 68 || port == 546 || port == 547) return FrameClass::Dhcp;
      return std::nullopt;
    }
    case 58: return icmpv6_class(upper.payload);
    case 89: return FrameClass::Ospf;
    default: return std::nullopt;
  }
}

std::optional<FrameClass> link_local_class(const MacAddress& to) {
  static const std::array<std::pair<MacAddress, FrameClass>, 5> kGroups{{
      {MacAddress({0x01, 0x80, 0xc2, 0, 0, 0x00}), FrameClass::Stp},
      {MacAddress({0x01, 0x80, 0xc2, 0, 0, 0x08}), FrameClass::Stp},
      {MacAddress({0x01, 0x80, 0xc2, 0, 0, 0x02}), FrameClass::Lacp},
      {MacAddress({0x01, 0x80, 0xc2, 0, 0, 0x0e}), FrameClass::Lldp},
      {MacAddress({0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}), FrameClass::Cdp},
  }};
  for (const auto& [group, frame_class] : kGroups)
    if (group == to) return frame_class;
  return std::nullopt;
}

struct ArpFields {
  MacAddress to, from, sender_mac, target_mac;
  IpAddress sender, target;
  bool header_right = false;  // Ethernet and IPv4, operation 2
};
std::optional<ArpFields> arp_fields(Octets frame) {
  ByteReader r(frame);
  ArpFields f;
  const auto to = r.bytes(6), from = r.bytes(6);
  if (r.u16() != kArp) return std::nullopt;
  f.header_right = r.u64() == 0x0001080006040002;
  const auto sender_mac = r.bytes(6), sender = r.bytes(4), target_mac = r.bytes(6),
             target = r.bytes(4);
  if (!r.ok()) return std::nullopt;
  f.to = MacAddress::from_bytes(to);
  f.from = MacAddress::from_bytes(from);
  f.sender_mac = MacAddress::from_bytes(sender_mac);
  f.target_mac = MacAddress::from_bytes(target_mac);
  f.sender = *IpAddress::from_bytes(sender);
  f.target = *IpAddress::from_bytes(target);
  return f;
}

std::optional<std::string_view> fault_of_reply(Octets frame, const Sender& from,
                                               const Expected& expected) {
  const auto f = arp_fields(frame);
  if (!f) return "not an ARP frame";
  if (!f->header_right) return "ARP header or operation";
  if (f->to != from.mac) return "Ethernet destination";
  if (f->from != expected.mac) return "Ethernet source";
  if (f->sender_mac != expected.mac) return "sender MAC";
  if (f->sender != expected.target) return "sender address";
  if (f->target_mac != from.mac) return "target MAC";
  if (f->target != from.v4) return "target address";
  return std::nullopt;
}

// RFC 4861 section 7.2.4: what a solicited advertisement must look like.
std::optional<std::string_view> fault_of_na(Octets frame, const Sender& from,
                                            const Expected& expected) {
  ByteReader r(frame);
  const auto to = r.bytes(6), source_mac = r.bytes(6);
  if (r.u16() != kIpv6 || (r.u32() >> 28) != 6) return "not an IPv6 frame";
  const uint16_t length = r.u16();
  const uint8_t next_header = r.u8(), hop_limit = r.u8();
  const auto source = r.bytes(16), destination = r.bytes(16);
  const auto message = r.bytes(length);
  if (!r.ok() || length < 24) return "too short";
  if (next_header != 58 || message[0] != 136 || message[1] != 0) return "not an advertisement";
  if (hop_limit != 255) return "hop limit";
  if (MacAddress::from_bytes(to) != from.mac) return "Ethernet destination";
  if (MacAddress::from_bytes(source_mac) != expected.mac) return "Ethernet source";
  if (*IpAddress::from_bytes(source) != expected.target) return "source address";
  if (*IpAddress::from_bytes(destination) != from.v6) return "destination address";
  if (icmpv6_checksum(source, destination, message) != 0) return "checksum";
  if (message[4] != expected.na_flags) return "flags";
  if (*IpAddress::from_bytes(message.subspan(8, 16)) != expected.target) return "target address";
  if (length != 32 || message[24] != 2 || message[25] != 1) return "target link-layer option";
  if (MacAddress::from_bytes(message.subspan(26, 6)) != expected.mac) return "target MAC";
  return std::nullopt;
}

}  // namespace

const char* to_string(FrameClass frame_class) {
  static constexpr std::array<const char*, kFrameClasses> kText{"arp-request",
                                                                "arp-reply",
                                                                "gratuitous-arp",
                                                                "ns",
                                                                "na",
                                                                "unsolicited-na",
                                                                "rs",
                                                                "ra",
                                                                "stp",
                                                                "lldp",
                                                                "lacp",
                                                                "cdp",
                                                                "dhcp",
                                                                "igmp",
                                                                "mld",
                                                                "ospf",
                                                                "other-broadcast",
                                                                "other-multicast",
                                                                "unicast",
                                                                "unknown-unicast"};
  return kText[static_cast<std::size_t>(frame_class)];
}

uint16_t checksum(Octets data, uint32_t sum) {
  for (std::size_t i = 0; i < data.size(); ++i)
    sum += i % 2 == 0 ? static_cast<uint32_t>(data[i]) << 8 : data[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

uint16_t icmpv6_checksum(Octets source, Octets destination, Octets payload) {
  return upper_checksum(58, source, destination, payload);
}

FrameClass classify(Octets frame, const MacAddress& own) {
  if (frame.size() < 14) return FrameClass::UnknownUnicast;
  const MacAddress to = MacAddress::from_bytes(frame);
  const uint16_t type = static_cast<uint16_t>(frame[12] << 8 | frame[13]);
  if (const auto known = link_local_class(to)) return *known;
  if (type == kArp) return arp_class(frame);
  if (type == kIpv4 || type == kIpv6)
    if (const auto known = ip_class(frame, type)) return *known;
  if (to.is_broadcast()) return FrameClass::OtherBroadcast;
  if (to.is_multicast()) return FrameClass::OtherMulticast;
  return to == own ? FrameClass::Unicast : FrameClass::UnknownUnicast;
}

std::optional<Octets> inside_vxlan(Octets frame) {
  ByteReader r(frame);
  r.bytes(12);
  const uint16_t type = r.u16();
  if (!r.ok() || (type != kIpv4 && type != kIpv6)) return std::nullopt;
  const Upper upper = upper_of(frame, type);
  if (upper.protocol != 17) return std::nullopt;
  ByteReader u(upper.payload);
  u.u16();
  const uint16_t port = u.u16();
  u.bytes(12);  // rest of the UDP header, VXLAN header
  if (!u.ok() || port != 4789) return std::nullopt;
  return u.rest();
}

Bytes arp_request(const Sender& from, const IpAddress& target) {
  return arp(net::kBroadcastMac, from, 1, target, MacAddress());
}

Bytes neighbor_solicitation(const Sender& from, const IpAddress& target) {
  ByteWriter w;
  w.u32(0x87000000);
  w.u32(0);
  w.bytes(target.bytes());
  w.u16(0x0101);
  w.bytes(from.mac.bytes());
  const IpAddress group = net::solicited_node(target);
  return icmpv6_frame(group_of(group), from, from.v6, group, w.take());
}

std::span<const std::string_view> frame_names() { return kNames; }

std::optional<Bytes> named_frame(std::string_view name, const Sender& from) {
  const MacAddress broadcast = net::kBroadcastMac;
  const MacAddress nobody({0x02, 0xff, 0xff, 0xff, 0xff, 0xfe});
  const IpAddress everyone = address("255.255.255.255"), none = address("0.0.0.0");
  if (name == "arp") return arp_request(from, address("192.0.2.199"));
  if (name == "ns") return neighbor_solicitation(from, address("2001:db8:1::199"));
  if (name == "gratuitous-arp") return arp(broadcast, from, 1, from.v4, MacAddress());
  if (name == "gratuitous-reply") return arp(broadcast, from, 2, from.v4, broadcast);
  if (name == "unsolicited-na") return unsolicited_na(from);
  if (name == "rs" || name == "ra") return router_message(from, name == "ra");
  if (name == "stp") return stp(from);
  if (name == "lldp") return lldp(from);
  if (name == "lacp") return lacp(from);
  if (name == "cdp") return cdp(from);
  if (name == "dhcp") return ipv4_frame(broadcast, from, none, everyone, 17, dhcp_discover(from));
  if (name == "dhcpv6") return dhcpv6_solicit(from);
  if (name == "igmp") return igmp(from);
  if (name == "mld") return mld(from);
  if (name == "ospf") return ospf_hello(from);
  if (name == "broadcast")
    return ipv4_frame(broadcast, from, from.v4, everyone, 17, udp(4999, 4999, Bytes(22)));
  if (name == "multicast") {
    const IpAddress to = address("239.9.9.9");
    return ipv4_frame(group_of(to), from, from.v4, to, 17, udp(4999, 4999, Bytes(22)));
  }
  if (name == "unknown-unicast")
    return ipv4_frame(nobody, from, from.v4, address("192.0.2.200"), 17,
                      udp(4999, 4999, Bytes(22)));
  return std::nullopt;
}

std::optional<IpAddress> answered_address(Octets frame) {
  ByteReader r(frame);
  r.bytes(12);
  const uint16_t type = r.u16();
  if (type == kArp) {
    const auto f = arp_fields(frame);
    if (!f || (frame[21] != 2 && f->sender != f->target)) return std::nullopt;
    return f->sender;
  }
  if (type != kIpv6) return std::nullopt;
  const Upper upper = upper_of(frame, type);
  if (upper.protocol != 58 || upper.payload.size() < 24 || upper.payload[0] != 136)
    return std::nullopt;
  return IpAddress::from_bytes(upper.payload.subspan(8, 16));
}

std::optional<std::string_view> fault_of_answer(Octets frame, const Sender& from,
                                                const Expected& expected) {
  return expected.target.is_v4() ? fault_of_reply(frame, from, expected)
                                 : fault_of_na(frame, from, expected);
}

}  // namespace lab
