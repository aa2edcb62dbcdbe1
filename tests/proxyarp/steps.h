// SPDX-License-Identifier: GPL-2.0-or-later
// Arbitrary histories of a responder, step by step, and what must hold after each step. Shared by
// the property tests and the fuzzer.
#pragma once
#include <array>
#include <string>

#include "tests/proxyarp/frames.h"

namespace proxyarp::test {

struct Step {
  uint8_t what, who, address, port, extra;
};

inline const net::MacAddress kAntiSpoofMac = mac(0xaa), kSpongeMac = mac(0xdd), kPeMac = mac(0xfe);

inline Settings pick_settings(uint8_t n) {
  static constexpr std::array<Profile, 4> profiles{Profile::Static, Profile::Hybrid,
                                                   Profile::Dynamic, Profile::Off};
  Settings s = Lan::settings(profiles[n % 4]);
  s.age_time = std::chrono::seconds(20);
  s.max_bindings_per_port = 3;
  s.duplicates.moves = 3;
  s.duplicates.hold_down = std::chrono::seconds(15);
  s.duplicates.confirm_wait = std::chrono::seconds(4);
  s.sponge.queue = 3;
  s.sponge.pending = 2;
  s.sponge.age = std::chrono::seconds(30);
  s.sponge.mac = kSpongeMac;
  s.sponge.learning = std::chrono::seconds(1);
  if ((n & 4) != 0)
    s.bindings = {fixed(v4(1), {mac(1)}, "alpha"), fixed(v6(1), {mac(1), mac(2)}, "alpha")};
  if ((n & 8) != 0) s.bindings.push_back(fixed(v4(2), {mac(2), mac(3)}));
  if ((n & 16) != 0) {
    s.bindings.push_back(fixed(v6(3), {}, "bravo"));
    s.unassigned = {{net::IpPrefix::parse("192.0.2.0/24").value(), Unassigned::Sponge}};
    s.sponge.announce = (n & 8) != 0;
  }
  if ((n & 32) != 0)
    s.flood_gratuitous_arp = s.flood_router_na = FloodTo{(n & 64) != 0, (n & 64) != 0};
  if ((n & 64) != 0) s.announcements_per_second = 2;
  if ((n & 128) != 0) {
    s.duplicates.anti_spoof_mac = kAntiSpoofMac;
    s.decoys.addresses = {v4(253)};
    s.exempt = {net::IpPrefix::parse("192.0.2.3/32").value()};
  }
  return s;
}

class History {
 public:
  explicit History(uint8_t first) : lan_(pick_settings(first)) {
    if ((first & 1) != 0) lan_.identify(kPeMac);
  }
  Lan& lan() { return lan_; }

  // Empty, or what does not hold.
  std::string run(const Step& step) {
    const auto who = static_cast<uint8_t>(1 + step.who % 4);
    const net::IfIndex port{1u + step.port % 3u};
    const std::array<net::IpAddress, 10> addresses{v4(1),
                                                   v4(2),
                                                   v4(3),
                                                   v6(1),
                                                   v6(2),
                                                   v6(3),
                                                   ip("fe80::1:1"),
                                                   eui64_link_local(mac(1)),
                                                   ip("198.51.100.1"),
                                                   v4(253)};
    const net::IpAddress& address = addresses[step.address % addresses.size()];
    static const std::array<std::string, 3> names{"alpha", "bravo", "charlie"};
    switch (step.what % 12) {
      case 0: lan_.place(mac(who), port); break;
      case 1: lan_.place_remote(mac(who)); break;
      case 2: lan_.unplace(mac(who)); break;
      case 3:
        lan_.evpn(address, (step.extra & 8) != 0 ? kAntiSpoofMac : mac(who),
                  {(step.extra & 1) != 0, (step.extra & 2) != 0}, (step.extra & 4) != 0);
        break;
      case 4: lan_.evpn(address, std::nullopt); break;
      case 5: lan_.port_down(port); break;
      case 6: lan_.port_up(port, names[step.port % 3]); break;
      case 7:
        if (step.extra % 8 == 0) lan_.reconfigure(pick_settings(step.address));
        break;
      case 8:
        lan_.now += std::chrono::milliseconds(step.extra * 32);
        lan_.tick();
        break;
      case 9: command(address, step.extra); break;
      default: return frame(who, address, port, step.extra);
    }
    return holds();
  }

  // Time passes until nothing waits any more. Empty, or what does not hold.
  std::string drain() {
    lan_.reconfigure(pick_settings(0));  // no decoys: they are asked for as long as the PE runs
    for (int i = 0; i < 20000 && lan_.responder().deadline() != net::kNever; ++i) {
      const net::TimePoint due = lan_.responder().deadline();
      if (due > lan_.now) lan_.now = due;
      lan_.tick();
    }
    if (lan_.responder().deadline() != net::kNever) return "timers never end";
    return holds();
  }

  std::string holds() {
    if (!lan_.books_agree()) return "what was told is not what is";
    std::string broken;
    for (const StaticBinding& binding : lan_.current().bindings) {
      const auto at = lan_.fast().find(binding.ip);
      if (at == lan_.fast().end() || binding.macs.empty()) continue;
      if (std::ranges::find(binding.macs, at->second.mac) == binding.macs.end())
        broken = "a provisioned address is at a MAC that is not on its list";
    }
    lan_.responder().for_each_binding([&](const BindingView& view) {
      if (view.answered != lan_.fast().contains(view.ip))
        broken = "answered, but not in the kernel";
      if (view.answered && lan_.fast().at(view.ip).mac != view.mac) broken = "another MAC in it";
      const auto up = lan_.up().find(view.ip);
      if (up == lan_.up().end()) return;
      if (view.where != MacWhere::LocalPort || up->second.port != view.port)
        broken = "a route for what is not here";
      if (view.duplicate) broken = "a route for a duplicate";
    });
    return broken;
  }

 private:
  void command(const net::IpAddress& address, uint8_t extra) {
    switch (extra % 5) {
      case 0: lan_.keep(lan_.responder().clear_binding(address, lan_.now).second); break;
      case 1: lan_.keep(lan_.responder().clear_duplicate(address, lan_.now).second); break;
      case 2:
        lan_.keep(lan_.responder()
                      .set_sponge(address, static_cast<SpongeState>(extra / 5 % 3), lan_.now)
                      .second);
        break;
      case 3: lan_.keep(lan_.responder().probe(address, lan_.now).second); break;
      default: lan_.identify((extra & 16) != 0 ? kPeMac : net::MacAddress{}); break;
    }
  }

  std::string frame(uint8_t who, const net::IpAddress& address, net::IfIndex port, uint8_t extra) {
    const bool copy = (extra & 8) != 0, core = (extra & 16) != 0;
    const bool claim = (extra & 1) != 0, second = (extra & 2) != 0;
    net::Bytes bytes;
    if (address.is_v4())
      bytes = encode_arp(claim    ? arp_claim(who, address, second)
                         : second ? arp_probe(who, address)
                                  : arp_request(who, address));
    else
      bytes = encode_nd(claim    ? na(who, address)
                        : second ? dad_ns(who, address)
                                 : ns(who, address));
    const auto owner = lan_.view(address);
    const Explanation said = lan_.responder().explain(address, port, lan_.now);
    const Outcome outcome = core ? lan_.core(bytes) : lan_.member(port, bytes, copy);
    std::size_t answers = 0;
    for (const Transmit& sent : all_of<Transmit>(outcome.actions)) {
      const auto mac_told = answer_in(sent.frame, address);
      if (!mac_told || sent.frame == bytes) continue;
      ++answers;
      if (copy || core) return "a frame that was dealt with is answered";
      if (sent.port != port) return "an answer at another port";
      if (claim) return "a claim is answered";
      if (*mac_told == mac(who)) return "somebody is told of his own address";
      const bool bound = owner && owner->mac == *mac_told;
      if (!bound && *mac_told != kAntiSpoofMac && *mac_told != kSpongeMac && *mac_told != kPeMac)
        return "answered with a MAC that is not bound";
    }
    if (answers > 1) return "two answers";
    // What explain() says is what happens, where the asker's own MAC and frame play no part.
    const bool plain = !claim && !second && !copy && !core;
    if (plain && outcome.verdict == Verdict::Answered && said.verdict != Verdict::Answered)
      return "answered, and explained otherwise";
    return holds();
  }
  // The MAC that an ARP reply or NA says the address is at.
  static std::optional<net::MacAddress> answer_in(const net::Bytes& bytes,
                                                  const net::IpAddress& address) {
    if (const auto arp = decode_arp(bytes); arp && !arp->is_request() && arp->sender_ip == address)
      return arp->sender_mac;
    if (const auto nd = decode_nd(bytes); nd && !nd->is_solicitation() && nd->target == address)
      return nd->link_layer;
    return std::nullopt;
  }

  Lan lan_;
};

}  // namespace proxyarp::test
