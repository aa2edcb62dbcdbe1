// SPDX-License-Identifier: GPL-2.0-or-later
// Frames, names and a responder with three ports for the tests of proxyarp/.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proxyarp/arp.h"
#include "proxyarp/ethernet.h"
#include "proxyarp/nd.h"
#include "proxyarp/responder.h"

namespace proxyarp::test {

inline net::IpAddress ip(std::string_view text) { return net::IpAddress::parse(text).value(); }
inline net::MacAddress mac(uint8_t last) { return net::MacAddress({2, 0, 0, 0, 0, last}); }
inline net::MacAddress mac(std::string_view text) { return net::MacAddress::parse(text).value(); }

inline net::Bytes hex(std::string_view text) {
  net::Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}
inline net::Bytes padded(net::Bytes bytes) {
  if (bytes.size() < kMinimumFrame) bytes.resize(kMinimumFrame);
  return bytes;
}

// Members: alpha at port 1, bravo at port 2, charlie at port 3; number 9 is behind another PE.
inline constexpr net::IfIndex kAlpha{1}, kBravo{2}, kCharlie{3};
inline const net::IpAddress kTarget4 = ip("192.0.2.9"), kTarget6 = ip("2001:db8:1::9");
inline const net::TimePoint kStart{std::chrono::hours(100)};

inline net::IpAddress v4(uint8_t last) { return net::IpAddress::v4(0xc0000200u | last); }
inline net::IpAddress v6(uint8_t last) {
  return net::IpAddress::v6({0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
}

// --- ARP
inline ArpFrame arp_request(uint8_t from, const net::IpAddress& target,
                            const net::IpAddress& sender) {
  return {net::kBroadcastMac, mac(from), ArpOperation::Request, mac(from), sender, {}, target};
}
inline ArpFrame arp_request(uint8_t from, const net::IpAddress& target) {
  return arp_request(from, target, v4(from));
}
inline ArpFrame arp_probe(uint8_t from, const net::IpAddress& target) {
  ArpFrame arp = arp_request(from, target);
  arp.sender_ip = {};
  return arp;
}
// `from` says that `claimed` is at its MAC, by broadcast reply or request.
inline ArpFrame arp_claim(uint8_t from, const net::IpAddress& claimed, bool reply = false) {
  ArpFrame arp = arp_announcement(claimed, mac(from));
  if (reply) arp.operation = ArpOperation::Reply;
  return arp;
}

// --- ND
inline NdFrame ns(uint8_t from, const net::IpAddress& target) {
  NdFrame nd;
  nd.to = net::solicited_node(target);
  nd.destination = multicast_mac(nd.to);
  nd.source = mac(from);
  nd.from = v6(from);
  nd.target = target;
  nd.link_layer = mac(from);
  return nd;
}
inline NdFrame dad_ns(uint8_t from, const net::IpAddress& target) {
  NdFrame nd = ns(from, target);
  nd.from = net::IpAddress::v6({});
  nd.link_layer.reset();
  return nd;
}
inline NdFrame na(uint8_t from, const net::IpAddress& target) {
  return unsolicited_advertisement(target, mac(from), {true, true});
}

// The fields of a frame by offset, to break them.
inline net::Bytes with(net::Bytes bytes, std::size_t at, std::initializer_list<int> octets) {
  for (int octet : octets) bytes.at(at++) = static_cast<uint8_t>(octet);
  return bytes;
}
// Recomputes the ICMPv6 checksum of a frame that was tampered with.
inline net::Bytes with_checksum(net::Bytes bytes) {
  bytes.at(56) = bytes.at(57) = 0;
  const std::size_t length = static_cast<std::size_t>(bytes.at(18)) << 8 | bytes.at(19);
  uint32_t sum = static_cast<uint32_t>(length) + 58;
  for (std::size_t i = 22; i < 54 + length; ++i)
    sum += i % 2 == 0 ? static_cast<uint32_t>(bytes.at(i)) << 8 : bytes.at(i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  sum = ~sum & 0xffff;
  bytes.at(56) = static_cast<uint8_t>(sum >> 8);
  bytes.at(57) = static_cast<uint8_t>(sum);
  return bytes;
}

// The frame as it is handed to the owner: unchanged but for the Ethernet destination.
inline net::Bytes handed(net::Bytes bytes, uint8_t owner) {
  std::ranges::copy(mac(owner).bytes(), bytes.begin());
  return bytes;
}

// --- actions
template <class T>
std::vector<T> all_of(const std::vector<Action>& actions) {
  std::vector<T> found;
  for (const Action& action : actions)
    if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
  return found;
}
inline bool has_frames(const std::vector<Action>& actions) {
  return !all_of<Transmit>(actions).empty() || !all_of<TransmitCore>(actions).empty() ||
         !all_of<Flood>(actions).empty();
}

// Of a frame at `port`; the owner is at `home` (0: behind another PE).
inline Action alarm(AlarmKind kind, const net::IpAddress& a, uint8_t bound, net::IfIndex home,
                    uint8_t seen, net::IfIndex port) {
  Alarm event{};
  event.kind = kind;
  event.ip = a;
  event.bound = mac(bound);
  event.seen = mac(seen);
  event.port = port;
  event.bound_at = {home.value == 0 ? MacWhere::Remote : MacWhere::LocalPort, home};
  event.seen_at = {MacWhere::LocalPort, port};
  return event;
}

// A responder with the ports up and 9 behind another PE, which keeps the book that the data path
// and EVPN would keep.
class Lan {
 public:
  explicit Lan(Settings settings) : settings_(std::move(settings)), responder_(settings_, 1) {
    apply(responder_.port_up(kAlpha, "alpha", now));
    apply(responder_.port_up(kBravo, "bravo", now));
    apply(responder_.port_up(kCharlie, "charlie", now));
  }
  static Settings settings(Profile profile) {
    Settings s;
    s.name = "lan";
    s.profile = profile;
    s.prefixes = {net::IpPrefix::parse("192.0.2.0/24").value(),
                  net::IpPrefix::parse("2001:db8:1::/64").value()};
    // Announcements and rates have tests of their own.
    s.announcements_per_second = s.new_bindings_per_second = 0;
    s.link_locals_per_mac = 4;
    return s;
  }
  // The profile with nothing but 9 known, by EVPN.
  static Lan plain(Profile profile) {
    Lan lan(settings(profile));
    lan.remote(9);
    return lan;
  }
  void remote(uint8_t n, NaFlags flags = {}) {
    apply(responder_.mac_placed(mac(n), MacWhere::Remote, {}, now));
    apply(responder_.evpn_binding(v4(n), mac(n), flags, false, now));
    apply(responder_.evpn_binding(v6(n), mac(n), flags, false, now));
  }

  std::vector<Action> place(net::MacAddress m, net::IfIndex port) {
    return apply(responder_.mac_placed(m, MacWhere::LocalPort, port, now));
  }
  std::vector<Action> place_remote(net::MacAddress m) {
    return apply(responder_.mac_placed(m, MacWhere::Remote, {}, now));
  }
  std::vector<Action> unplace(net::MacAddress m) {
    return apply(responder_.mac_placed(m, MacWhere::Nowhere, {}, now));
  }
  std::vector<Action> evpn(const net::IpAddress& a, std::optional<net::MacAddress> m,
                           NaFlags flags = {}, bool immutable = false) {
    return apply(responder_.evpn_binding(a, m, flags, immutable, now));
  }
  std::vector<Action> reconfigure(const Settings& s) {
    settings_ = s;
    return apply(responder_.reconfigure(s, now));
  }
  std::vector<Action> port_down(net::IfIndex port) {
    return apply(responder_.port_down(port, now));
  }
  std::vector<Action> port_up(net::IfIndex port, const std::string& name) {
    return apply(responder_.port_up(port, name, now));
  }
  std::vector<Action> tick() { return apply(responder_.tick(now)); }
  std::vector<Action> identify(net::MacAddress m) {
    Responder::Identity identity;
    identity.mac = m;
    return apply(responder_.set_identity(identity, now));
  }
  // What a command did.
  void keep(std::vector<Action> actions) { apply(std::move(actions)); }

  Outcome member(net::IfIndex port, const net::Bytes& bytes, bool copy = false) {
    Outcome outcome = responder_.member_frame(port, bytes, copy, now);
    apply(outcome.actions);
    return outcome;
  }
  Outcome member(net::IfIndex port, const ArpFrame& arp, bool copy = false) {
    return member(port, encode_arp(arp), copy);
  }
  Outcome member(net::IfIndex port, const NdFrame& nd, bool copy = false) {
    return member(port, encode_nd(nd), copy);
  }
  Outcome core(const net::Bytes& bytes) {
    Outcome outcome = responder_.core_frame(bytes, now);
    apply(outcome.actions);
    return outcome;
  }
  Outcome core(const ArpFrame& arp) { return core(encode_arp(arp)); }
  Outcome core(const NdFrame& nd) { return core(encode_nd(nd)); }

  std::optional<BindingView> view(const net::IpAddress& a) const {
    std::optional<BindingView> found;
    responder_.for_each_binding([&](const BindingView& v) {
      if (v.ip == a) found = v;
    });
    return found;
  }
  uint64_t counter(Verdict verdict) const {
    return responder_.counters()[static_cast<std::size_t>(verdict)];
  }
  Responder& responder() { return responder_; }
  const Settings& current() const { return settings_; }
  const std::map<net::IpAddress, SetFastEntry>& fast() const { return fast_; }
  const std::map<net::IpAddress, LocalBindingUp>& up() const { return up_; }
  bool books_agree() const { return consistent_ && fast_list() == responder_.fast_entries(); }

  net::TimePoint now = kStart;

 private:
  std::vector<SetFastEntry> fast_list() const {
    std::vector<SetFastEntry> list;
    for (const auto& [a, entry] : fast_) list.push_back(entry);
    return list;
  }
  // Each change once: no entry set as it was, none cleared that was not there.
  std::vector<Action> apply(std::vector<Action> actions) {
    for (const Action& action : actions) {
      if (const auto* set = std::get_if<SetFastEntry>(&action)) {
        const auto at = fast_.find(set->ip);
        if (at != fast_.end() && at->second == *set) consistent_ = false;
        fast_[set->ip] = *set;
      } else if (const auto* clear = std::get_if<ClearFastEntry>(&action)) {
        if (fast_.erase(clear->ip) != 1) consistent_ = false;
      } else if (const auto* binding = std::get_if<LocalBindingUp>(&action)) {
        const auto at = up_.find(binding->ip);
        if (at != up_.end() && (at->second == *binding || at->second.mac != binding->mac))
          consistent_ = false;
        up_[binding->ip] = *binding;
      } else if (const auto* down = std::get_if<LocalBindingDown>(&action)) {
        const auto at = up_.find(down->ip);
        if (at == up_.end() || at->second.mac != down->mac) consistent_ = false;
        up_.erase(down->ip);
      }
    }
    return actions;
  }

  Settings settings_;
  Responder responder_;
  std::map<net::IpAddress, SetFastEntry> fast_;
  std::map<net::IpAddress, LocalBindingUp> up_;
  bool consistent_ = true;
};

inline StaticBinding fixed(const net::IpAddress& a, std::vector<net::MacAddress> macs,
                           const std::string& port = "") {
  return {a, std::move(macs), port, net::AsNumber{64500}, "Member"};
}

}  // namespace proxyarp::test
