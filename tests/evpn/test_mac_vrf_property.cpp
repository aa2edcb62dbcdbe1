// SPDX-License-Identifier: GPL-2.0-or-later
// MacVrf under random events (rapidcheck). The harness replays every action onto a model and
// compares it with the views after each event; on top of that
//   - any interleaving of the same final set of routes and local MACs ends in the same places,
//     flood list and bindings as the plain ordered one;
//   - after each event of any stream, all is as a naive oracle, which looks through all routes anew
//     each time, says;
//   - with duplicate detection on, whatever is frozen thaws, and all stays consistent.
#include <gtest/gtest-spi.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "mac_vrf_harness.h"

namespace {

using namespace harness;

constexpr uint32_t kSequenceBase = 0xfffffffe;  // so that the numbers wrap: base + 2 is 0
const char* const kIps[] = {"", "192.0.2.1", "192.0.2.2", "2001:db8::1"};

enum class Kind : uint8_t {
  Announce,
  Withdraw,
  Learn,
  Provision,
  Gone,
  Down,
  Bind,
  Unbind,
  Flood,
  Unflood,
  HasSegment,  // A-D routes: per ES, or per EVI when `at` is odd
  LosesSegment,
  Lost,   // the underlay has no route to the PE any more
  Found,  // ... and has one again
  Wait
};

struct Event {
  Kind kind = Kind::Wait;
  unsigned from = 2;  // PE; ours is 5
  unsigned m = 1;
  unsigned address = 0;  // index of kIps
  unsigned segment = 0;  // 0: none
  uint32_t sequence = 0;
  bool sticky = false;
  uint8_t nd = 0;    // flags octet of RFC 9047; 0xff: no community
  uint32_t at = 10;  // port, or seconds to wait
};

void showValue(const Event& e, std::ostream& out) {
  static const char* const kNames[] = {
      "announce", "withdraw", "learn",       "provision",     "gone", "down",  "bind", "unbind",
      "flood",    "unflood",  "has segment", "loses segment", "lost", "found", "wait"};
  out << kNames[static_cast<std::size_t>(e.kind)] << " pe" << e.from << " M" << e.m << " '"
      << kIps[e.address] << "' seq " << e.sequence << (e.sticky ? " sticky" : "") << " nd "
      << unsigned{e.nd} << " at " << e.at << " segment " << e.segment << "\n";
}

evpn::ArpNdFlags flags_of(uint8_t nd) {
  if (nd == 0xff) return {};
  return {(nd & 1) != 0, (nd & 2) != 0, (nd & 8) != 0};
}

Remote remote_of(const Event& e) {
  Remote r(e.from, e.m, kIps[e.address]);
  if (e.segment != 0) r.route.esi = esi(e.segment);
  if (e.sequence != 0 || e.sticky) r.seq(e.sequence, e.sticky);
  if (e.nd != 0xff) r.also({0x06, 0x08, e.nd});
  return r;
}

AutoDiscovery segment_route_of(const Event& e) { return {e.from, esi(e.segment), e.at % 2 == 0}; }

void apply(Pe& us, const Event& e) {
  const auto imet = [&](bool announced) {
    const evpn::InclusiveMulticast route{rd_of(pe(e.from + 16 * e.m)), 0, pe(e.from)};
    auto attributes = Remote(e.from, 1).attributes;
    attributes.pmsi_tunnel = evpn::encode_pmsi({0, 6, 100, pe(e.from)});
    us.take(us.vrf.remote(
        route, announced ? std::make_shared<bgp::Attributes>(attributes) : nullptr, us.now));
  };
  switch (e.kind) {
    case Kind::Announce: us.announce(remote_of(e)); break;
    case Kind::Withdraw: us.withdraw(remote_of(e)); break;
    case Kind::Learn: us.learn(e.m, e.at); break;
    case Kind::Provision: us.learn(e.m, e.at, true); break;
    case Kind::Gone: us.age(e.m, e.at); break;
    case Kind::Down: us.down(e.at); break;
    case Kind::Bind: us.bind(kIps[e.address], e.m, flags_of(e.nd)); break;
    case Kind::Unbind: us.unbind(kIps[e.address]); break;
    case Kind::Flood: imet(true); break;
    case Kind::Unflood: imet(false); break;
    case Kind::HasSegment: us.announce(segment_route_of(e)); break;
    case Kind::LosesSegment: us.withdraw(segment_route_of(e)); break;
    case Kind::Lost: us.take(us.vrf.reachable(pe(e.from), false, us.now)); break;
    case Kind::Found: us.take(us.vrf.reachable(pe(e.from), true, us.now)); break;
    case Kind::Wait:
      us.now += std::chrono::seconds(e.at);
      us.tick();
      break;
  }
}

evpn::Settings quiet() {
  auto s = settings();
  s.duplicate_moves = 1000000;
  return s;
}

rc::Gen<uint32_t> sequences() {
  return rc::gen::map(rc::gen::inRange<uint32_t>(0, 6),
                      [](uint32_t n) { return kSequenceBase + n; });
}
rc::Gen<unsigned> pes() { return rc::gen::element(2u, 3u, 4u, 6u, 7u); }
rc::Gen<uint8_t> nds() {
  return rc::gen::element<uint8_t>(0xff, 0x00, 0x01, 0x02, 0x03, 0x08, 0x0b);
}

// --- 1. interleavings

struct World {
  std::vector<std::vector<Event>> histories;  // one for each key; its last event is what stays
};

rc::Gen<World> worlds() {
  return rc::gen::exec([] {
    World world;
    // Which MACs are provisioned with us, and the MAC that may be immutable for each address.
    const auto provisioned = *rc::gen::inRange(0u, 4u);
    const auto immutable = *rc::gen::container<std::vector<unsigned>>(4, rc::gen::inRange(1u, 4u));
    uint32_t rank = 0;  // makes the sequence numbers of one address differ: "latest" can't decide
    for (const unsigned from : {2u, 3u, 7u}) {
      for (unsigned m = 1; m <= 3; ++m) {
        for (unsigned address = 0; address < 4; ++address) {
          if (*rc::gen::inRange(0, 3) == 0) continue;
          std::vector<Event> history;
          const auto length = *rc::gen::inRange(1, 5);
          for (int n = 0; n < length; ++n) {
            Event e;
            e.kind = *rc::gen::inRange(0, 3) == 0 ? Kind::Withdraw : Kind::Announce;
            e.from = from;
            e.m = m;
            e.address = address;
            e.sequence = address == 0 ? *sequences() : kSequenceBase + ++rank;
            e.sticky = *rc::gen::inRange(0, 8) == 0;
            e.segment = *rc::gen::inRange(0u, 3u);
            e.nd = immutable[address] == m && *rc::gen::arbitrary<bool>() ? 0x0b : 0x01;
            history.push_back(e);
          }
          world.histories.push_back(history);
        }
      }
      {  // its route in the underlay
        std::vector<Event> history;
        for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
          Event e;
          e.kind = *rc::gen::arbitrary<bool>() ? Kind::Lost : Kind::Found;
          e.from = from;
          history.push_back(e);
        }
        if (!history.empty()) world.histories.push_back(history);
      }
      for (unsigned n = 0; n < 4; ++n) {  // A-D routes of two segments, of both kinds
        std::vector<Event> history;
        for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
          Event e;
          e.kind = *rc::gen::arbitrary<bool>() ? Kind::HasSegment : Kind::LosesSegment;
          e.from = from;
          e.segment = 1 + n / 2;
          e.at = n % 2;
          history.push_back(e);
        }
        if (!history.empty()) world.histories.push_back(history);
      }
      for (unsigned extra = 1; extra <= 2; ++extra) {  // two RDs of one VTEP
        std::vector<Event> history;
        for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
          Event e;
          e.kind = *rc::gen::arbitrary<bool>() ? Kind::Flood : Kind::Unflood;
          e.from = from;
          e.m = extra;
          history.push_back(e);
        }
        if (!history.empty()) world.histories.push_back(history);
      }
    }
    if (provisioned != 0) {
      Event e;
      e.kind = Kind::Provision;
      e.m = provisioned;
      world.histories.push_back({e});
    }
    for (unsigned m = 8; m <= 9; ++m) {  // only ours: learned, bound, gone again
      std::vector<Event> history;
      for (int n = *rc::gen::inRange(0, 5); n > 0; --n) {
        Event e;
        e.kind = *rc::gen::element(Kind::Learn, Kind::Gone, Kind::Bind, Kind::Unbind);
        e.m = m;
        e.address = m - 7;
        e.at = *rc::gen::element(10u, 11u);
        history.push_back(e);
      }
      if (!history.empty()) world.histories.push_back(history);
    }
    return world;
  });
}

struct Outcome {
  std::map<net::MacAddress, evpn::MacPlace> places;
  std::vector<net::IpAddress> flood;
  std::map<net::IpAddress, Binding> bindings;
  std::map<net::Bytes, bgp::Attributes> out;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(Pe& us, const std::vector<unsigned>& learned_last) {
  // A MAC that other PEs have too: the station speaks here now, so it is ours (but for a sticky
  // one), one higher than what stands, whatever happened before.
  for (const unsigned m : learned_last) us.learn(m, 20);
  Outcome o{us.model.places, us.vrf.flood_list(), us.model.bindings, {}};
  for (const auto& [key, sent] : us.model.out) o.out.emplace(key, *sent.second);
  return o;
}

void show(const char* label, const Outcome& o) {
  for (const auto& [m, place] : o.places)
    RC_LOG() << label << name(m) << " " << text(place) << "\n";
  for (const auto& [address, b] : o.bindings)
    RC_LOG() << label << net::to_string(address) << " " << name(b.mac) << " "
             << net::to_string(b.vtep) << "\n";
}

void interleavings() {
  const World world = *worlds().as("world");
  const auto learned_last =
      *rc::gen::elementOf(std::vector<std::vector<unsigned>>{{}, {1}, {3}, {1, 2}});

  Pe ordered(quiet());
  for (const auto& history : world.histories) {
    // Of routes only what stays. A provisioned MAC, and what is ours alone, as it was.
    const Kind kind = history.front().kind;
    const bool route = kind == Kind::Announce || kind == Kind::Withdraw || kind == Kind::Flood ||
                       kind == Kind::Unflood || kind == Kind::HasSegment ||
                       kind == Kind::LosesSegment || kind == Kind::Lost || kind == Kind::Found;
    if (route)
      apply(ordered, history.back());
    else
      for (const auto& e : history) apply(ordered, e);
  }
  const Outcome expected = outcome(ordered, learned_last);

  Pe mixed(quiet());
  std::vector<std::size_t> at(world.histories.size(), 0);
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < at.size(); ++i)
    turns.insert(turns.end(), world.histories[i].size(), i);
  std::minstd_rand random(*rc::gen::arbitrary<uint32_t>());
  std::ranges::shuffle(turns, random);
  for (const std::size_t i : turns) apply(mixed, world.histories[i][at[i]++]);
  const Outcome seen = outcome(mixed, learned_last);
  show("expected ", expected);
  show("seen     ", seen);
  RC_ASSERT(expected.places == seen.places);
  RC_ASSERT(expected.flood == seen.flood);
  RC_ASSERT(expected.bindings == seen.bindings);
  RC_ASSERT(expected.out == seen.out);
}

// --- 2. the oracle

struct Oracle {
  struct Known {
    Event event;
    uint64_t arrival;
  };
  struct Ours {
    uint32_t at;
    bool sticky;
    uint32_t sequence;
    bool moved;
  };
  std::map<std::tuple<unsigned, unsigned, unsigned>, Known> routes;  // PE, MAC, address
  std::map<unsigned, Ours> ours;
  std::map<unsigned, std::pair<unsigned, uint8_t>> bound;  // address: MAC and flags
  std::map<std::pair<unsigned, unsigned>, bool> imets;
  std::set<std::pair<unsigned, unsigned>> per_es, per_evi;  // segment and PE
  std::set<unsigned> lost;                                  // PEs without a route
  uint64_t arrivals = 0;

  static bool later(uint32_t a, uint32_t b) { return a != b && a - b < 0x80000000u; }

  // The PE that frames of a route go to; 0: it waits for its segment.
  unsigned resolved(const Event& e) const {
    if (e.segment == 0) return lost.contains(e.from) ? 0 : e.from;
    if (per_es.contains({e.segment, e.from}) && !lost.contains(e.from)) return e.from;
    for (unsigned n = 0; n < 16; ++n)
      if (!lost.contains(n) && per_es.contains({e.segment, n}) && per_evi.contains({e.segment, n}))
        return n;
    return 0;
  }
  // Of what is usable, or of what is waiting; `from` is the PE that frames go to.
  std::optional<Event> best(unsigned m, bool waiting = false) const {
    std::optional<Event> chosen;
    for (const auto& [key, known] : routes) {
      Event e = known.event;
      const unsigned to = resolved(e);
      if (e.m != m || (to == 0) != waiting) continue;
      if (to != 0) e.from = to;
      if (!chosen || (e.sticky && !chosen->sticky) ||
          (e.sticky == chosen->sticky &&
           ((!e.sticky && later(e.sequence, chosen->sequence)) ||
            ((e.sticky || e.sequence == chosen->sequence) && e.from < chosen->from))))
        chosen = e;
    }
    return chosen;
  }
  void contest(unsigned m) {
    const auto mine = ours.find(m);
    const auto e = best(m);
    if (mine == ours.end() || !e || mine->second.sticky) return;
    if (e->sticky || later(e->sequence, mine->second.sequence) ||
        (e->sequence == mine->second.sequence && e->from < 5))
      ours.erase(mine);
  }
  void learn(const Event& e) {
    const auto mine = ours.find(e.m);
    if (mine != ours.end()) {
      if (!mine->second.sticky) mine->second.at = e.at;
      return;
    }
    const auto there = best(e.m), waiting = best(e.m, true);
    if (there && there->sticky) return;
    Ours claim{e.at, false, 0, false};
    for (const auto& seen : {there, waiting})
      if (seen && (!claim.moved || later(seen->sequence + 1, claim.sequence)))
        claim = {e.at, false, seen->sequence + 1, true};
    ours[e.m] = claim;
  }

  void apply(Event e) {
    const auto key = std::tuple(e.from, e.m, e.address);
    switch (e.kind) {
      case Kind::Announce: {
        if (const auto old = routes.find(key);
            old != routes.end() && old->second.event.sequence == e.sequence &&
            old->second.event.sticky == e.sticky && old->second.event.segment == e.segment &&
            binding(old->second.event) == binding(e))
          break;
        routes[key] = {e, ++arrivals};
        contest(e.m);
        break;
      }
      case Kind::Withdraw: routes.erase(key); break;
      case Kind::Learn: learn(e); break;
      case Kind::Provision: ours[e.m] = {e.at, true, 0, false}; break;
      case Kind::Gone:
        if (ours.contains(e.m) && ours[e.m].at == e.at) ours.erase(e.m);
        break;
      case Kind::Down:
        std::erase_if(ours, [&](const auto& entry) { return entry.second.at == e.at; });
        break;
      case Kind::Bind: bound[e.address] = {e.m, e.nd}; break;
      case Kind::Unbind: bound.erase(e.address); break;
      case Kind::Flood: imets[{e.from, e.m}] = true; break;
      case Kind::Unflood: imets.erase({e.from, e.m}); break;
      case Kind::HasSegment:
        (e.at % 2 == 0 ? per_es : per_evi).emplace(e.segment, e.from);
        for (unsigned m = 0; m < 16; ++m) contest(m);
        break;
      case Kind::LosesSegment:
        (e.at % 2 == 0 ? per_es : per_evi).erase({e.segment, e.from});
        for (unsigned m = 0; m < 16; ++m) contest(m);
        break;
      case Kind::Lost:
      case Kind::Found:
        if (e.kind == Kind::Lost)
          lost.insert(e.from);
        else
          lost.erase(e.from);
        for (unsigned m = 0; m < 16; ++m) contest(m);
        break;
      case Kind::Wait: break;
    }
  }

  std::map<net::MacAddress, evpn::MacPlace> places() const {
    std::map<net::MacAddress, evpn::MacPlace> all;
    for (unsigned m = 0; m < 16; ++m) {
      if (const auto mine = ours.find(m); mine != ours.end())
        all[mac(m)] = evpn::AtPort{port(mine->second.at), mine->second.sticky};
      else if (const auto e = best(m))
        all[mac(m)] = evpn::AtVtep{pe(e->from), e->sticky};
    }
    return all;
  }

  static Binding binding(const Event& e) {
    evpn::ArpNdFlags flags = flags_of(e.nd);
    if (!std::string(kIps[e.address]).contains(':')) flags.router = flags.override_flag = true;
    if (e.address == 0) flags = {};
    return {mac(e.m), flags, pe(e.from)};
  }
  std::map<net::IpAddress, Binding> bindings() const {
    std::map<net::IpAddress, Binding> all;
    for (unsigned address = 1; address < 4; ++address) {
      std::vector<Known> candidates;
      for (const auto& [key, known] : routes)
        if (known.event.address == address && resolved(known.event) != 0)
          candidates.push_back(known);
      const auto by_arrival = [](const Known& a, const Known& b) { return a.arrival < b.arrival; };
      auto immutable = candidates;
      std::erase_if(immutable, [](const Known& k) { return !binding(k.event).flags.immutable; });
      if (!immutable.empty()) {
        const unsigned m = std::ranges::max_element(immutable, by_arrival)->event.m;
        candidates = immutable;
        std::erase_if(candidates, [&](const Known& k) { return k.event.m != m; });
      }
      if (candidates.empty()) continue;
      const auto winner = std::ranges::max_element(candidates, [](const Known& a, const Known& b) {
        if (a.event.sequence != b.event.sequence) return later(b.event.sequence, a.event.sequence);
        return a.arrival < b.arrival;
      });
      all[ip(kIps[address])] = binding(winner->event);
      all[ip(kIps[address])].vtep = pe(resolved(winner->event));
    }
    return all;
  }

  std::map<std::string, std::string> out() const {
    std::map<std::string, std::string> all;
    for (const auto& [m, mine] : ours) {
      std::string mobility;
      if (mine.sticky)
        mobility = " MM:0,sticky";
      else if (mine.moved)
        mobility = " MM:" + std::to_string(mine.sequence);
      all[name(mac(m))] = mobility;
      for (const auto& [address, to] : bound) {
        if (to.first != m) continue;
        const bool v6 = std::string(kIps[address]).contains(':');
        evpn::ArpNdFlags flags = flags_of(to.second);
        std::string nd;
        if (v6)
          nd = " " + evpn::to_string(evpn::make_arp_nd(flags));
        else if (flags.immutable)
          nd = " ND:I";
        all[name(mac(m)) + "/" + kIps[address]] = mobility + nd;
      }
    }
    return all;
  }
};

rc::Gen<Event> events() {
  return rc::gen::build<Event>(
      rc::gen::set(&Event::kind, rc::gen::weightedElement<Kind>({{8, Kind::Announce},
                                                                 {4, Kind::Withdraw},
                                                                 {4, Kind::Learn},
                                                                 {1, Kind::Provision},
                                                                 {2, Kind::Gone},
                                                                 {1, Kind::Down},
                                                                 {2, Kind::Bind},
                                                                 {1, Kind::Unbind},
                                                                 {1, Kind::Flood},
                                                                 {1, Kind::Unflood},
                                                                 {3, Kind::HasSegment},
                                                                 {2, Kind::LosesSegment},
                                                                 {1, Kind::Lost},
                                                                 {2, Kind::Found},
                                                                 {1, Kind::Wait}})),
      rc::gen::set(&Event::from, pes()), rc::gen::set(&Event::m, rc::gen::inRange(1u, 4u)),
      rc::gen::set(&Event::address, rc::gen::inRange(0u, 4u)),
      rc::gen::set(&Event::sequence, sequences()),
      rc::gen::set(&Event::segment, rc::gen::inRange(0u, 3u)),
      rc::gen::set(&Event::sticky,
                   rc::gen::map(rc::gen::inRange(0, 8), [](int n) { return n == 0; })),
      rc::gen::set(&Event::nd, nds()), rc::gen::set(&Event::at, rc::gen::element(10u, 11u, 12u)));
}

bool makes_sense(const Event& e) {
  if (e.kind == Kind::Bind || e.kind == Kind::Unbind) return e.address != 0;
  if (e.kind == Kind::HasSegment || e.kind == Kind::LosesSegment) return e.segment != 0;
  return true;
}

// Sequence numbers of ours grow with each move; kept near the others', where comparing is a total
// order.
bool near(const Oracle& oracle) {
  return std::ranges::all_of(
      oracle.ours, [](const auto& entry) { return entry.second.sequence - kSequenceBase < 100; });
}

void against_the_oracle() {
  const auto stream = *rc::gen::container<std::vector<Event>>(events());
  Pe us(quiet());
  Oracle oracle;
  for (const auto& e : stream) {
    if (!makes_sense(e)) continue;
    apply(us, e);
    oracle.apply(e);
    RC_ASSERT(near(oracle));
    RC_ASSERT(us.model.places == oracle.places());
    RC_ASSERT(us.model.bindings == oracle.bindings());
    std::map<std::string, std::string> out;
    for (const auto& [key, sent] : us.model.out) {
      const std::string line =
          text(evpn::Action(evpn::Originate{sent.first, sent.second})).substr(1);
      const auto end = line.find(' ');
      out[line.substr(0, end)] = end == std::string::npos ? "" : line.substr(end);
    }
    RC_ASSERT(out == oracle.out());
    std::set<net::IpAddress> flood;
    for (const auto& [key, there] : oracle.imets) flood.insert(pe(key.first));
    RC_ASSERT(us.model.flood == flood);
  }
}

// --- 3. with duplicate detection

void duplicates() {
  auto s = settings();
  s.duplicate_moves = *rc::gen::inRange(1u, 5u);
  s.duplicate_window = std::chrono::seconds(*rc::gen::inRange(1, 100));
  s.duplicate_hold = std::chrono::seconds(*rc::gen::inRange(1, 100));
  const auto stream = *rc::gen::container<std::vector<Event>>(events());
  Pe us(s);
  for (const auto& e : stream) {
    if (!makes_sense(e)) continue;
    const bool frozen_before = us.view(e.m).duplicate;
    const auto place_before = us.vrf.place_of(mac(e.m));
    apply(us, e);
    // A frozen MAC stays, unless its place can't be kept or it was provisioned.
    if (frozen_before && e.kind == Kind::Learn)
      RC_ASSERT(us.vrf.place_of(mac(e.m)) == place_before);
    if (us.view(e.m).duplicate) RC_ASSERT(us.vrf.deadline() > us.now);
  }
  us.now += 200s;
  us.tick();
  RC_ASSERT(us.vrf.deadline() == net::kNever);
  us.vrf.for_each_mac([](const evpn::MacView& v) { RC_ASSERT(!v.duplicate); });
}

// EXPECT_* failures of the harness fail the property, too, and are shrunk.
template <class Property>
void check(const char* what, Property property) {
  EXPECT_TRUE(rc::check(what, [&] {
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      property();
    }
    for (int n = 0; n < failures.size(); ++n) RC_FAIL(failures.GetTestPartResult(n).message());
  }));
}

TEST(MacVrfProperty, Interleavings) { check("interleavings end in the same state", interleavings); }
TEST(MacVrfProperty, Oracle) { check("as the oracle says", against_the_oracle); }
TEST(MacVrfProperty, Duplicates) { check("consistent with duplicate detection", duplicates); }

}  // namespace
