// SPDX-License-Identifier: GPL-2.0-or-later
// Whatever happens in whatever order: each change of the fast path's entries and of local bindings
// is reported once, so that replaying the actions gives what fast_entries() says; a provisioned
// address is never at a MAC that is not on its list; and answers are right.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;

namespace {

struct Step {
  uint8_t what, who, address, port, extra;
};

Settings pick_settings(uint8_t n) {
  static constexpr std::array<Profile, 4> profiles{Profile::Static, Profile::Hybrid,
                                                   Profile::Dynamic, Profile::Off};
  Settings s = Lan::settings(profiles[n % 4]);
  s.age_time = std::chrono::seconds(20);
  s.max_bindings_per_port = 3;
  if ((n & 4) != 0)
    s.bindings = {fixed(v4(1), {mac(1)}, "alpha"), fixed(v6(1), {mac(1), mac(2)}, "alpha")};
  if ((n & 8) != 0) s.bindings.push_back(fixed(v4(2), {mac(2), mac(3)}));
  if ((n & 16) != 0) s.bindings.push_back(fixed(v6(3), {}, "bravo"));
  if ((n & 32) != 0)
    s.flood_gratuitous_arp = s.flood_router_na = FloodTo{(n & 64) != 0, (n & 64) != 0};
  return s;
}

void run(Lan& lan, const Step& step) {
  const uint8_t who = static_cast<uint8_t>(1 + step.who % 4);
  const net::IfIndex port{1u + step.port % 3u};
  const std::array<net::IpAddress, 9> addresses{v4(1),
                                                v4(2),
                                                v4(3),
                                                v6(1),
                                                v6(2),
                                                v6(3),
                                                ip("fe80::1:1"),
                                                eui64_link_local(mac(1)),
                                                ip("198.51.100.1")};
  const net::IpAddress& address = addresses[step.address % addresses.size()];
  static const std::array<std::string, 3> names{"alpha", "bravo", "charlie"};
  switch (step.what % 10) {
    case 0: lan.place(mac(who), port); break;
    case 1: lan.place_remote(mac(who)); break;
    case 2: lan.unplace(mac(who)); break;
    case 3:
      lan.evpn(address, mac(who), {(step.extra & 1) != 0, (step.extra & 2) != 0},
               (step.extra & 4) != 0);
      break;
    case 4: lan.evpn(address, std::nullopt); break;
    case 5: lan.port_down(port); break;
    case 6: lan.port_up(port, names[step.port % 3]); break;
    case 7:
      if (step.extra % 8 == 0) lan.reconfigure(pick_settings(step.address));
      break;
    case 8:
      lan.now += std::chrono::seconds(step.extra % 8);
      lan.tick();
      break;
    default: {
      const bool copy = (step.extra & 8) != 0;
      if (address.is_v4()) {
        if ((step.extra & 1) != 0)
          lan.member(port, arp_claim(who, address, (step.extra & 2) != 0), copy);
        else
          lan.member(port,
                     (step.extra & 2) != 0 ? arp_probe(who, address) : arp_request(who, address),
                     copy);
      } else if ((step.extra & 1) != 0) {
        lan.member(port, na(who, address), copy);
      } else {
        lan.member(port, (step.extra & 2) != 0 ? dad_ns(who, address) : ns(who, address), copy);
      }
    }
  }
}

void check(Lan& lan) {
  RC_ASSERT(lan.books_agree());
  for (const StaticBinding& binding : lan.current().bindings) {
    const auto at = lan.fast().find(binding.ip);
    if (at == lan.fast().end() || binding.macs.empty()) continue;
    RC_ASSERT(std::ranges::find(binding.macs, at->second.mac) != binding.macs.end());
  }
  lan.responder().for_each_binding([&](const BindingView& view) {
    RC_ASSERT(view.answered == lan.fast().contains(view.ip));
    if (view.answered) RC_ASSERT(lan.fast().at(view.ip).mac == view.mac);
    if (lan.up().contains(view.ip)) {
      RC_ASSERT(view.where == MacWhere::LocalPort);
      RC_ASSERT(lan.up().at(view.ip).port == view.port);
    }
  });
  // An answer carries the MAC of the fast entry, never goes to the owner, and says the same as the
  // fast path would.
  const net::Bytes probe = encode_arp(arp_probe(90, v4(2)));
  const Outcome outcome = lan.responder().member_frame(kCharlie, probe, false, lan.now);
  const auto at = lan.fast().find(v4(2));
  const bool answered = at != lan.fast().end() && at->second.port != kCharlie;
  RC_ASSERT((outcome.verdict == Verdict::Answered) == answered);
  if (answered)
    RC_ASSERT(all_of<Transmit>(outcome.actions).at(0) ==
              (Transmit{kCharlie, encode_arp(arp_reply(arp_probe(90, v4(2)), at->second.mac))}));
}

}  // namespace

TEST(Replay, ActionsGiveTheFastEntries) {
  const bool held =
      rc::check("replay", [](uint8_t first, const std::vector<std::array<uint8_t, 5>>& steps) {
        Lan lan(pick_settings(first));
        for (const auto& s : steps) {
          run(lan, {s[0], s[1], s[2], s[3], s[4]});
          check(lan);
        }
      });
  EXPECT_TRUE(held);
}

// The same over long histories, which the generator above does not reach.
TEST(Replay, LongHistories) {
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint8_t>(state >> 56);
  };
  for (int history = 0; history < 50; ++history) {
    Lan lan(pick_settings(next()));
    for (int i = 0; i < 400; ++i) {
      run(lan, {next(), next(), next(), next(), next()});
      ASSERT_TRUE(lan.books_agree()) << history << " " << i;
    }
  }
}
