// SPDX-License-Identifier: GPL-2.0-or-later
// Frames for the tests of the data path, and the table that the eBPF programs and SoftPolicy must
// both agree with.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/fast_path.h"
#include "net/bytes.h"

namespace frames {

using net::Bytes;
using net::IpAddress;
using net::MacAddress;

inline MacAddress mac(std::string_view text) { return *MacAddress::parse(text); }
inline IpAddress ip(std::string_view text) { return *IpAddress::parse(text); }

inline const MacAddress kAlice = mac("02:00:00:00:00:01");
inline const MacAddress kBob = mac("02:00:00:00:00:02");

inline Bytes eth(const MacAddress& to, const MacAddress& from, uint16_t type,
                 const Bytes& payload) {
  net::ByteWriter out;
  out.bytes(to.bytes());
  out.bytes(from.bytes());
  out.u16(type);
  out.bytes(payload);
  return out.take();
}

// ARP, Ethernet/IPv4, without padding.
struct Arp {
  uint16_t op = 1;
  MacAddress sender_mac = kAlice;
  IpAddress sender = ip("192.0.2.1");
  MacAddress target_mac{};
  IpAddress target = ip("192.0.2.2");
};
inline Bytes arp(const MacAddress& to, const MacAddress& from, const Arp& fields) {
  net::ByteWriter out;
  out.u16(1);
  out.u16(0x0800);
  out.u8(6);
  out.u8(4);
  out.u16(fields.op);
  out.bytes(fields.sender_mac.bytes());
  out.bytes(fields.sender.bytes());
  out.bytes(fields.target_mac.bytes());
  out.bytes(fields.target.bytes());
  return eth(to, from, 0x0806, out.take());
}
inline Bytes arp_request(const Arp& fields = {}) {
  return arp(net::kBroadcastMac, fields.sender_mac, fields);
}

inline uint16_t checksum(const Bytes& pseudo_header, const Bytes& data) {
  uint32_t sum = 0;
  for (const auto* part : {&pseudo_header, &data})
    for (std::size_t i = 0; i < part->size(); ++i) sum += uint32_t{(*part)[i]} << (i % 2 ? 0 : 8);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

inline Bytes ipv4(uint8_t protocol, const IpAddress& from, const IpAddress& to,
                  const Bytes& payload, const Bytes& options = {}, uint16_t fragment = 0) {
  net::ByteWriter out;
  out.u8(static_cast<uint8_t>(0x45 + options.size() / 4));
  out.u8(0);
  out.u16(static_cast<uint16_t>(20 + options.size() + payload.size()));
  out.u16(1);
  out.u16(fragment);
  out.u8(1);
  out.u8(protocol);
  out.u16(0);
  out.bytes(from.bytes());
  out.bytes(to.bytes());
  out.bytes(options);
  out.bytes(payload);
  return out.take();
}
inline Bytes ipv6(uint8_t next, const IpAddress& from, const IpAddress& to, const Bytes& payload,
                  uint8_t hop_limit = 255) {
  net::ByteWriter out;
  out.u32(0x60000000);
  out.u16(static_cast<uint16_t>(payload.size()));
  out.u8(next);
  out.u8(hop_limit);
  out.bytes(from.bytes());
  out.bytes(to.bytes());
  out.bytes(payload);
  return out.take();
}
inline Bytes udp(uint16_t port, std::size_t length = 8) {
  net::ByteWriter out;
  out.u16(40000);
  out.u16(port);
  out.u16(static_cast<uint16_t>(8 + length));
  out.u16(0);
  out.bytes(Bytes(length));
  return out.take();
}
// ICMPv6 with its checksum.
inline Bytes icmpv6(uint8_t type, const IpAddress& from, const IpAddress& to, const Bytes& body,
                    uint8_t code = 0) {
  Bytes message{type, code, 0, 0};
  message.insert(message.end(), body.begin(), body.end());
  net::ByteWriter pseudo;
  pseudo.bytes(from.bytes());
  pseudo.bytes(to.bytes());
  pseudo.u32(static_cast<uint32_t>(message.size()));
  pseudo.u32(58);
  const uint16_t sum = checksum(pseudo.take(), message);
  message[2] = static_cast<uint8_t>(sum >> 8);
  message[3] = static_cast<uint8_t>(sum);
  return message;
}

inline MacAddress group_mac(const IpAddress& group) {
  const auto b = group.bytes();
  if (group.is_v4()) return MacAddress({1, 0, 0x5e, static_cast<uint8_t>(b[1] & 0x7f), b[2], b[3]});
  return MacAddress({0x33, 0x33, b[12], b[13], b[14], b[15]});
}
inline Bytes option(uint8_t type, const MacAddress& address) {
  net::ByteWriter out;
  out.u8(type);
  out.u8(1);
  out.bytes(address.bytes());
  return out.take();
}

struct Ns {
  MacAddress from_mac = kAlice;
  IpAddress from = ip("2001:db8:1::1");
  IpAddress target = ip("2001:db8:1::2");
  std::optional<IpAddress> to{};       // absent: solicited-node group
  std::optional<MacAddress> to_mac{};  // absent: that of the group
  std::optional<Bytes> options{};      // absent: source link-layer address
  uint8_t hop_limit = 255, code = 0;
};
inline Bytes ns(const Ns& f = {}) {
  const IpAddress to = f.to.value_or(net::solicited_node(f.target));
  net::ByteWriter body;
  body.u32(0);
  body.bytes(f.target.bytes());
  body.bytes(f.options.value_or(option(1, f.from_mac)));
  return eth(f.to_mac.value_or(group_mac(to)), f.from_mac, 0x86dd,
             ipv6(58, f.from, to, icmpv6(135, f.from, to, body.take(), f.code), f.hop_limit));
}

struct Na {
  MacAddress from_mac = kAlice;
  IpAddress from = ip("2001:db8:1::1");
  IpAddress target = ip("2001:db8:1::1");
  IpAddress to = ip("2001:db8:1::2");
  MacAddress to_mac = kBob;
  uint8_t flags = 0x60;
  std::optional<Bytes> options{};  // absent: target link-layer address
};
inline Bytes na(const Na& f = {}) {
  net::ByteWriter body;
  body.u8(f.flags);
  body.u24(0);
  body.bytes(f.target.bytes());
  body.bytes(f.options.value_or(option(2, f.from_mac)));
  return eth(f.to_mac, f.from_mac, 0x86dd,
             ipv6(58, f.from, f.to, icmpv6(136, f.from, f.to, body.take())));
}

inline Bytes icmpv6_to(const MacAddress& to_mac, const char* to, uint8_t type) {
  const auto from = ip("fe80::1");
  return eth(to_mac, kAlice, 0x86dd, ipv6(58, from, ip(to), icmpv6(type, from, ip(to), Bytes(24))));
}
// An ICMPv6 message behind extension headers: `chain` are their kinds, of `units` * 8 octets each.
inline Bytes behind(const std::vector<uint8_t>& chain, uint8_t type, const MacAddress& to_mac,
                    uint8_t units = 1, uint16_t fragment_offset = 0) {
  const auto from = ip("fe80::1"), to = ip("ff02::1");
  net::ByteWriter out;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    out.u8(i + 1 < chain.size() ? chain[i + 1] : 58);
    if (chain[i] == 44) {
      out.u8(0);
      out.u16(static_cast<uint16_t>(fragment_offset << 3 | 1));
      out.u32(7);
      continue;
    }
    const std::size_t octets = chain[i] == 51 ? 16 : units * 8u;
    out.u8(static_cast<uint8_t>(chain[i] == 51 ? 2 : units - 1));
    out.bytes(Bytes(octets - 2));
  }
  out.bytes(icmpv6(type, from, to, Bytes(24)));
  return eth(to_mac, kAlice, 0x86dd, ipv6(chain.empty() ? 58 : chain[0], from, to, out.take()));
}
inline Bytes udp4(const char* group, uint16_t port) {
  const auto to = ip(group);
  const auto to_mac =
      group == std::string_view("255.255.255.255") ? net::kBroadcastMac : group_mac(to);
  return eth(to_mac, kAlice, 0x0800, ipv4(17, ip("192.0.2.1"), to, udp(port)));
}
inline Bytes udp6(const char* group, uint16_t port) {
  return eth(group_mac(ip(group)), kAlice, 0x86dd, ipv6(17, ip("fe80::1"), ip(group), udp(port)));
}
inline Bytes ip4_group(const char* group, uint8_t protocol) {
  return eth(group_mac(ip(group)), kAlice, 0x0800,
             ipv4(protocol, ip("192.0.2.1"), ip(group), Bytes(16)));
}
inline Bytes ip6_group(const char* group, uint8_t protocol) {
  return eth(group_mac(ip(group)), kAlice, 0x86dd,
             ipv6(protocol, ip("fe80::1"), ip(group), Bytes(16)));
}
inline Bytes to_group(std::string_view destination, uint16_t type,
                      const Bytes& payload = Bytes(46)) {
  return eth(mac(destination), kAlice, type, payload);
}
inline Bytes cut(Bytes frame, std::size_t size) {
  frame.resize(size);
  return frame;
}

// --- the table
// No limit at all; nothing passes; source list; Alice's MAC is the PE's.
enum class Policy : uint8_t { Open, Closed, Acl, Own };

struct Case {
  std::string name;
  Bytes frame;
  const char* bum_class;
  const char* reason;
  Policy policy = Policy::Open;
  bool in_only = false;  // a check that is only done at ingress and decapsulation
  bool tags = false;     // the policy allows VLAN tags
};

// The frame with a VLAN tag more, in front of those that it has.
inline Bytes tagged(Bytes frame, uint16_t type = 0x8100, uint16_t vlan = 7) {
  const Bytes tag{static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type),
                  static_cast<uint8_t>(vlan >> 8), static_cast<uint8_t>(vlan)};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

inline std::vector<Case> cases() {
  const Bytes llc_isis{0xfe, 0xfe, 3, 0x83}, llc_stp{0x42, 0x42, 3, 0},
      snap{0xaa, 0xaa, 3, 0, 0, 0};
  const auto bob_ip4 = ip("192.0.2.2"), alice_ip4 = ip("192.0.2.1");
  const auto alice_ip6 = ip("2001:db8:1::1"), bob_ip6 = ip("2001:db8:1::2");
  const auto all_nodes = mac("33:33:00:00:00:01");
  std::vector<Case> out;
  const auto add = [&](std::string name, Bytes frame, const char* cls, const char* reason,
                       Policy policy = Policy::Open, bool in_only = false) {
    out.push_back({std::move(name), std::move(frame), cls, reason, policy, in_only});
  };
  const auto add_tagged = [&](std::string name, Bytes frame, const char* cls, const char* reason) {
    add(std::move(name), std::move(frame), cls, reason);
    out.back().tags = true;
  };
  // link-local groups and other layer 2 protocols
  add("stp", to_group("01:80:c2:00:00:00", 38, llc_stp), "control", "stp");
  add("provider stp", to_group("01:80:c2:00:00:08", 38, llc_stp), "control", "stp");
  add("stp to another group", to_group("01:80:c2:00:00:40", 38, llc_stp), "multicast", "stp");
  add("pause", to_group("01:80:c2:00:00:01", 0x8808), "control", "pause");
  add("pause unicast", to_group("02:00:00:00:00:02", 0x8808), "unicast", "pause");
  add("lacp", to_group("01:80:c2:00:00:02", 0x8809), "control", "lacp");
  add("slow protocol unicast", to_group("02:00:00:00:00:02", 0x8809), "unicast", "lacp");
  add("dot1x", to_group("01:80:c2:00:00:03", 0x888e), "control", "dot1x");
  add("dot1x unicast", to_group("02:00:00:00:00:02", 0x888e), "unicast", "dot1x");
  add("lldp", to_group("01:80:c2:00:00:0e", 0x88cc), "control", "lldp");
  add("lldp to another group", to_group("01:00:5e:00:00:01", 0x88cc), "multicast", "lldp");
  for (const char* last : {"04", "05", "06", "07", "09", "0a", "0b", "0c", "0d", "0f"})
    add(std::string("link-local group ") + last,
        to_group(std::string("01:80:c2:00:00:") + last, 0x0800), "control", "link-local-group");
  add("mvrp", to_group("01:80:c2:00:00:21", 0x88f5), "multicast", "mvrp");
  add("pvst", to_group("01:00:0c:cc:cc:cd", 38, snap), "multicast", "pvst");
  add("cdp", to_group("01:00:0c:cc:cc:cc", 38, snap), "multicast", "cdp");
  add("isl", to_group("01:00:0c:00:00:00", 38, snap), "multicast", "isl");
  add("edp", to_group("00:e0:2b:00:00:00", 38, snap), "unicast", "edp");
  add("is-is by group", to_group("01:80:c2:00:00:14", 38, llc_isis), "multicast", "is-is");
  add("is-is to hosts", to_group("09:00:2b:00:00:05", 38, llc_isis), "multicast", "is-is");
  add("is-is unicast", to_group("02:00:00:00:00:02", 38, llc_isis), "unicast", "is-is");
  add("mikrotik", to_group("ff:ff:ff:ff:ff:ff", 0x88bf), "broadcast", "mikrotik");
  add("loop test", to_group("cf:00:00:00:00:00", 0x9000), "multicast", "loop-test");
  const auto plain = eth(kBob, kAlice, 0x0800, ipv4(6, alice_ip4, bob_ip4, Bytes(20)));
  add("802.1Q in band", tagged(plain), "unicast", "vlan-tag");
  add("802.1ad in band", tagged(udp4("255.255.255.255", 9), 0x88a8), "broadcast", "vlan-tag");
  // behind tags that the policy allows
  const auto both = [](Bytes frame) { return tagged(tagged(std::move(frame)), 0x88a8, 9); };
  add_tagged("tag, tcp", tagged(plain), "unicast", "passed");
  add_tagged("two tags, tcp", both(plain), "unicast", "passed");
  add_tagged("tag, arp", tagged(arp_request()), "arp", "passed");
  add_tagged("tag, unicast arp", tagged(arp(kBob, kAlice, {})), "arp-unicast", "passed");
  add_tagged("two tags, ns", both(ns()), "nd", "passed");
  add_tagged("tag, ra", tagged(icmpv6_to(all_nodes, "ff02::1", 134)), "multicast", "ra");
  add_tagged("two tags, ra", both(icmpv6_to(all_nodes, "ff02::1", 134)), "multicast", "ra");
  add_tagged("tag, ra behind hop-by-hop", tagged(behind({0}, 134, all_nodes)), "multicast", "ra");
  add_tagged("two tags, unicast ra behind four", both(behind({0, 60, 43, 44}, 134, kBob)),
             "unicast", "ra");
  add_tagged("tag, dhcp", tagged(udp4("255.255.255.255", 67)), "broadcast", "dhcp");
  add_tagged("two tags, mdns", both(udp4("224.0.0.251", 5353)), "multicast", "mdns");
  add_tagged("tag, mpls", tagged(to_group("02:00:00:00:00:02", 0x8847)), "unicast", "ethertype");
  add_tagged("tag, llc", tagged(to_group("02:00:00:00:00:02", 38, snap)), "unicast", "ethertype");
  add_tagged("tag, bpdu", tagged(to_group("01:80:c2:00:00:00", 38, llc_stp)), "control", "stp");
  add_tagged("three tags", tagged(both(plain)), "unicast", "malformed");
  add_tagged("tag, cut", cut(tagged(plain), 17), "unicast", "malformed");
  add_tagged("tag, arp cut", cut(tagged(arp_request()), 45), "broadcast", "malformed");
  add("llc", to_group("02:00:00:00:00:02", 38, snap), "unicast", "ethertype");
  add("mpls", to_group("02:00:00:00:00:02", 0x8847), "unicast", "ethertype");
  add("pppoe", to_group("ff:ff:ff:ff:ff:ff", 0x8863), "broadcast", "ethertype");
  add("unlisted multicast", to_group("01:00:5e:00:00:01", 0x88b5), "multicast", "ethertype");
  add("no payload", to_group("02:00:00:00:00:02", 0x88b5, {}), "unicast", "ethertype");
  // sources
  const auto from = [&](std::string_view source) {
    return eth(kBob, mac(source), 0x0800, ipv4(6, alice_ip4, bob_ip4, Bytes(20)));
  };
  add("source zero", from("00:00:00:00:00:00"), "unicast", "source-invalid", Policy::Open, true);
  add("source group", from("03:00:00:00:00:01"), "unicast", "source-invalid", Policy::Open, true);
  add("source broadcast", from("ff:ff:ff:ff:ff:ff"), "unicast", "source-invalid", Policy::Open,
      true);
  add("source listed", from("02:00:00:00:00:01"), "unicast", "passed", Policy::Acl);
  add("source not listed", from("02:00:00:00:00:09"), "unicast", "source-mac", Policy::Acl, true);
  add("source nearly listed", from("02:00:00:00:01:01"), "unicast", "source-mac", Policy::Acl,
      true);
  add("unlisted source, lldp", eth(mac("01:80:c2:00:00:0e"), kBob, 0x88cc, Bytes(46)), "control",
      "lldp", Policy::Acl);
  add("own source", from("02:00:00:00:00:01"), "unicast", "loop", Policy::Own, true);
  add("another source", from("02:00:00:00:00:09"), "unicast", "passed", Policy::Own);
  // malformed
  add("ip4 cut", cut(from("02:00:00:00:00:01"), 33), "unicast", "malformed");
  add("ip4 with version 6", eth(kBob, kAlice, 0x0800, Bytes(40, 0x65)), "unicast", "malformed");
  add("ip4 header of 16", eth(kBob, kAlice, 0x0800, Bytes(40, 0x44)), "unicast", "malformed");
  add("ip6 cut", cut(ns(), 53), "multicast", "malformed");
  add("ip6 with version 4", eth(kBob, kAlice, 0x86dd, Bytes(40, 0x45)), "unicast", "malformed");
  add("arp cut", cut(arp_request(), 41), "broadcast", "malformed");
  add("udp cut", cut(udp4("224.0.0.251", 5353), 36), "multicast", "malformed");
  // IPv6 router discovery, redirect, MLD
  add("ra", icmpv6_to(all_nodes, "ff02::1", 134), "multicast", "ra");
  add("ra unicast", icmpv6_to(kBob, "fe80::2", 134), "unicast", "ra");
  add("rs", icmpv6_to(mac("33:33:00:00:00:02"), "ff02::2", 133), "multicast", "rs");
  add("redirect", icmpv6_to(all_nodes, "ff02::1", 137), "multicast", "redirect");
  add("redirect unicast", icmpv6_to(kBob, "fe80::2", 137), "unicast", "redirect");
  for (uint8_t type : Bytes{130, 131, 132, 143, 151})
    add("mld " + std::to_string(type), icmpv6_to(mac("33:33:00:00:00:16"), "ff02::16", type),
        "multicast", "mld");
  add("mld behind hop-by-hop", behind({0}, 143, mac("33:33:00:00:00:16")), "multicast", "mld");
  add("ra behind hop-by-hop", behind({0}, 134, all_nodes), "multicast", "ra");
  add("ra behind destination options", behind({60}, 134, all_nodes), "multicast", "ra");
  add("ra behind long options", behind({60}, 134, all_nodes, 40), "multicast", "ra");
  add("ra behind routing", behind({43}, 134, all_nodes), "multicast", "ra");
  add("ra behind authentication", behind({51}, 134, all_nodes), "multicast", "ra");
  add("ra in first fragment", behind({44}, 134, all_nodes), "multicast", "ra");
  add("ra behind four", behind({0, 60, 44, 60}, 134, all_nodes), "multicast", "ra");
  add("ra behind seven", behind(std::vector<uint8_t>(7, 60), 134, all_nodes), "multicast", "ra");
  add("ra behind eight", behind(std::vector<uint8_t>(8, 60), 134, all_nodes), "multicast",
      "header-chain");
  add("unicast ra behind three", behind({0, 60, 44}, 134, kBob), "unicast", "ra");
  add("unicast redirect behind options", behind({60}, 137, kBob), "unicast", "redirect");
  add("later fragment", behind({44}, 134, all_nodes, 1, 20), "multicast", "passed");
  add("chain cut", cut(behind({60}, 134, all_nodes, 4), 60), "multicast", "header-chain");
  add("chain without icmpv6", cut(behind({60}, 134, all_nodes), 62), "multicast", "header-chain");
  add("unicast chain cut", cut(behind({44}, 134, kBob), 62), "unicast", "header-chain");
  add("ns in fragment", behind({44}, 135, all_nodes), "multicast", "header-chain");
  // others to groups
  add("dhcp discover", udp4("255.255.255.255", 67), "broadcast", "dhcp");
  add("dhcp offer", udp4("255.255.255.255", 68), "broadcast", "dhcp");
  add("dhcp with ip options",
      eth(net::kBroadcastMac, kAlice, 0x0800,
          ipv4(17, ip("0.0.0.0"), ip("255.255.255.255"), udp(67), Bytes(8, 1))),
      "broadcast", "dhcp");
  add("later fragment of udp",
      eth(net::kBroadcastMac, kAlice, 0x0800,
          ipv4(17, ip("0.0.0.0"), ip("255.255.255.255"), udp(67), {}, 5)),
      "broadcast", "passed");
  add("dhcpv6 solicit", udp6("ff02::1:2", 547), "multicast", "dhcpv6");
  add("dhcpv6 reply", udp6("ff02::1:2", 546), "multicast", "dhcpv6");
  add("igmp", ip4_group("224.0.0.22", 2), "multicast", "igmp");
  add("mdns", udp4("224.0.0.251", 5353), "multicast", "mdns");
  add("mdns 6", udp6("ff02::fb", 5353), "multicast", "mdns");
  add("ssdp", udp4("239.255.255.250", 1900), "multicast", "ssdp");
  add("llmnr", udp4("224.0.0.252", 5355), "multicast", "llmnr");
  add("netbios", udp4("255.255.255.255", 137), "broadcast", "netbios");
  add("ospf", ip4_group("224.0.0.5", 89), "multicast", "ospf");
  add("ospf 3", ip6_group("ff02::5", 89), "multicast", "ospf");
  add("eigrp", ip4_group("224.0.0.10", 88), "multicast", "eigrp");
  add("rip", udp4("224.0.0.9", 520), "multicast", "rip");
  add("ripng", udp6("ff02::9", 521), "multicast", "rip");
  add("pim", ip4_group("224.0.0.13", 103), "multicast", "pim");
  add("pim 6", ip6_group("ff02::d", 103), "multicast", "pim");
  add("vrrp", ip4_group("224.0.0.18", 112), "multicast", "vrrp");
  add("hsrp", udp4("224.0.0.2", 1985), "multicast", "hsrp");
  add("mndp", udp4("255.255.255.255", 5678), "broadcast", "mndp");
  add("ldp", udp4("224.0.0.2", 646), "multicast", "ldp");
  add("irdp",
      eth(group_mac(ip("224.0.0.1")), kAlice, 0x0800,
          ipv4(1, alice_ip4, ip("224.0.0.1"), Bytes{9, 0, 0, 0, 0, 0, 0, 0})),
      "multicast", "irdp");
  add("icmp redirect unicast",
      eth(kBob, kAlice, 0x0800, ipv4(1, alice_ip4, bob_ip4, Bytes{5, 1, 0, 0, 0, 0, 0, 0})),
      "unicast", "redirect");
  // what is nobody's business
  const auto unicast4 = [&](uint8_t protocol, const Bytes& payload) {
    return eth(kBob, kAlice, 0x0800, ipv4(protocol, alice_ip4, bob_ip4, payload));
  };
  add("tcp", unicast4(6, Bytes(20)), "unicast", "passed");
  add("ping", unicast4(1, Bytes{8, 0, 0, 0, 0, 0, 0, 0}), "unicast", "passed");
  add("unicast dhcp", unicast4(17, udp(67)), "unicast", "passed");
  add("unicast ospf", unicast4(89, Bytes(24)), "unicast", "passed");
  add("tcp 6", eth(kBob, kAlice, 0x86dd, ipv6(6, alice_ip6, bob_ip6, Bytes(20), 64)), "unicast",
      "passed");
  add("esp 6", eth(kBob, kAlice, 0x86dd, ipv6(50, alice_ip6, bob_ip6, Bytes(20), 64)), "unicast",
      "passed");
  add("ping 6", icmpv6_to(kBob, "fe80::2", 128), "unicast", "passed");
  // the classes, open and closed
  const struct {
    const char* name;
    Bytes frame;
    const char* cls;
  } classes[] = {
      {"arp request", arp_request(), "arp"},
      {"arp reply to all", arp(net::kBroadcastMac, kAlice, {.op = 2}), "arp"},
      {"arp to a group", arp(mac("01:00:5e:00:00:01"), kAlice, {}), "arp"},
      {"ns", ns(), "nd"},
      {"dad", ns({.from = ip("::"), .options = Bytes{}}), "nd"},
      {"na to all", na({.to = ip("ff02::1"), .to_mac = mac("33:33:00:00:00:01")}), "nd"},
      {"ns behind hop-by-hop", behind({0}, 135, mac("33:33:00:00:00:01")), "nd"},
      {"unicast arp", arp(kBob, kAlice, {}), "arp-unicast"},
      {"unicast arp reply", arp(kBob, kAlice, {.op = 2}), "arp-unicast"},
      {"unicast ns", ns({.to = bob_ip6, .to_mac = kBob}), "nd-unicast"},
      {"unicast na", na(), "nd-unicast"},
      {"unicast ns behind hop-by-hop", behind({0}, 135, kBob), "nd-unicast"},
      {"broadcast udp", udp4("255.255.255.255", 9), "broadcast"},
      {"multicast udp", udp4("239.1.2.3", 9), "multicast"},
      {"multicast 6", udp6("ff0e::99", 9), "multicast"},
      {"multicast ping 6", icmpv6_to(mac("33:33:00:00:00:01"), "ff02::1", 128), "multicast"},
  };
  for (const auto& c : classes) {
    add(c.name, c.frame, c.cls, "passed");
    add(std::string(c.name) + ", closed", c.frame, c.cls, c.cls, Policy::Closed);
  }
  return out;
}

inline dataplane::PortConfig port_config(net::IfIndex port,
                                         const dataplane::BumPolicy& policy = {}) {
  dataplane::PortConfig config;
  config.index = port;
  config.vni = net::Vni(100);
  config.policy = policy;
  return config;
}

inline dataplane::PortConfig config_for(const Case& c, net::IfIndex port,
                                        dataplane::PortKind kind) {
  auto config = port_config(port);
  config.kind = kind;
  config.proxy = false;
  config.macs = {kAlice};  // not enforced; but what she sends twice is no loop
  if (c.policy == Policy::Closed) {
    const dataplane::Limit nothing{.packets_per_second = 0, .bits_per_second = {}};
    config.policy.ingress = {nothing, nothing, nothing, nothing, {}, nothing, nothing};
    config.policy.egress = config.policy.decap = config.policy.encap = config.policy.ingress;
  }
  if (c.policy == Policy::Acl) {
    config.enforce_macs = true;
    config.macs = {mac("02:00:00:00:00:f1"), kAlice};
  }
  if (c.policy == Policy::Own) config.own_macs = {mac("02:00:00:00:be:00"), kAlice};
  if (c.tags) config.policy.allow = {"vlan-tag"};
  return config;
}

}  // namespace frames
