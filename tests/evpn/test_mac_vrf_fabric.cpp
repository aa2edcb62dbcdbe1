// SPDX-License-Identifier: GPL-2.0-or-later
// Several PEs, each a MacVrf, that tell each other what they say: every message may be late, only
// those of one PE to another keep their order. Stations are learned, move between ports and PEs,
// age; ports go down; time passes; PEs restart (their routes go and come again). When all messages
// have arrived, the PEs must agree, and after the stations have spoken once more the places are
// those of the same events with every message delivered at once.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "mac_vrf_harness.h"

namespace {

using namespace harness;

constexpr unsigned kMacs = 3;

enum class What : uint8_t { Learn, Gone, Down, Bind, Unbind, Flap, Deliver, Wait };

struct Step {
  What what = What::Wait;
  unsigned at = 0;  // PE
  unsigned mac = 1;
  uint32_t port = 10;
  unsigned seconds = 1;
};

void showValue(const Step& s, std::ostream& out) {
  static const char* const kNames[] = {"learn",  "gone", "down",    "bind",
                                       "unbind", "flap", "deliver", "wait"};
  out << kNames[static_cast<std::size_t>(s.what)] << " at " << s.at << " M" << s.mac << " port "
      << s.port << " " << s.seconds << " s\n";
}

class Fabric {
 public:
  Fabric(unsigned pes, const evpn::Settings& common, unsigned provisioned_at) {
    for (unsigned i = 0; i < pes; ++i) {
      evpn::Settings s = common;
      s.vtep = s.router_id = pe(i + 1);
      pes_.push_back(std::make_unique<Pe>(s));
    }
    if (provisioned_at < pes)
      say(provisioned_at, pes_[provisioned_at]->vrf.local_mac(mac(1), port(10), true, now_));
  }

  void run(const Step& s) {
    const unsigned at = s.at % static_cast<unsigned>(pes_.size());
    auto& vrf = pes_[at]->vrf;
    const auto address = ip("192.0.2." + std::to_string(s.mac));
    switch (s.what) {
      case What::Learn: say(at, vrf.local_mac(mac(s.mac), port(s.port), false, now_)); break;
      case What::Gone: say(at, vrf.local_mac_gone(mac(s.mac), port(s.port), now_)); break;
      case What::Down: say(at, vrf.port_down(port(s.port), now_)); break;
      case What::Bind: say(at, vrf.local_binding(address, mac(s.mac), {}, now_)); break;
      case What::Unbind: say(at, vrf.local_binding_gone(address, now_)); break;
      case What::Flap: flap(at); break;
      case What::Deliver: deliver(at, (at + s.seconds) % static_cast<unsigned>(pes_.size())); break;
      case What::Wait:
        now_ += std::chrono::seconds(s.seconds);
        for (unsigned i = 0; i < pes_.size(); ++i) say(i, pes_[i]->vrf.tick(now_));
        break;
    }
  }
  void settle() {
    for (bool more = true; more;) {
      more = false;
      for (unsigned from = 0; from < pes_.size(); ++from)
        for (unsigned to = 0; to < pes_.size(); ++to)
          while (deliver(from, to)) more = true;
    }
  }
  // Of each MAC: the PE and port that has it; all others must say so.
  std::map<unsigned, std::pair<unsigned, uint32_t>> agreed() const {
    std::map<unsigned, std::pair<unsigned, uint32_t>> all;
    for (unsigned m = 1; m <= kMacs; ++m) {
      std::optional<unsigned> owner;
      for (unsigned i = 0; i < pes_.size(); ++i) {
        const auto place = pes_[i]->vrf.place_of(mac(m));
        if (const auto* here = std::get_if<evpn::AtPort>(&place)) {
          RC_ASSERT(!owner.has_value());
          owner = i;
          all[m] = {i, here->port.value};
        }
      }
      for (unsigned i = 0; i < pes_.size(); ++i) {
        const auto place = pes_[i]->vrf.place_of(mac(m));
        if (owner && i == *owner) continue;
        const auto* away = std::get_if<evpn::AtVtep>(&place);
        RC_ASSERT((away != nullptr) == owner.has_value());
        if (away != nullptr) RC_ASSERT(away->vtep == pe(*owner + 1));
      }
    }
    return all;
  }

 private:
  struct Message {
    evpn::Route route;
    bgp::AttributesPtr attributes;  // none: withdrawn
  };
  void say(unsigned from, const evpn::Actions& actions) {
    pes_[from]->take(actions);
    for (const auto& action : actions) {
      std::optional<Message> message;
      if (const auto* out = std::get_if<evpn::Originate>(&action))
        message = Message{out->route, out->attributes};
      if (const auto* out = std::get_if<evpn::Withdraw>(&action))
        message = Message{out->route, nullptr};
      if (!message) continue;
      for (unsigned to = 0; to < pes_.size(); ++to)
        if (to != from) queues_[{from, to}].push_back(*message);
    }
  }
  bool deliver(unsigned from, unsigned to) {
    auto& queue = queues_[{from, to}];
    if (queue.empty()) return false;
    const Message message = queue.front();
    queue.pop_front();
    say(to, pes_[to]->vrf.remote(message.route, message.attributes, now_));
    return true;
  }
  // Its session to the reflector ends and comes back: all that it said is withdrawn and said again.
  void flap(unsigned at) {
    std::vector<Message> again;
    for (const auto& [key, sent] : pes_[at]->model.out) again.push_back({sent.first, sent.second});
    for (unsigned to = 0; to < pes_.size(); ++to) {
      if (to == at) continue;
      auto& queue = queues_[{at, to}];
      for (const auto& m : again) queue.push_back({m.route, nullptr});
      for (const auto& m : again) queue.push_back(m);
    }
  }

  std::vector<std::unique_ptr<Pe>> pes_;
  std::map<std::pair<unsigned, unsigned>, std::deque<Message>> queues_;
  net::TimePoint now_{1000s};
};

rc::Gen<Step> steps() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::what, rc::gen::weightedElement<What>({{6, What::Learn},
                                                                {2, What::Gone},
                                                                {1, What::Down},
                                                                {2, What::Bind},
                                                                {1, What::Unbind},
                                                                {1, What::Flap},
                                                                {8, What::Deliver},
                                                                {1, What::Wait}})),
      rc::gen::set(&Step::at, rc::gen::inRange(0u, 4u)),
      rc::gen::set(&Step::mac, rc::gen::inRange(1u, kMacs + 1)),
      rc::gen::set(&Step::port, rc::gen::element(10u, 11u)),
      rc::gen::set(&Step::seconds, rc::gen::inRange(1u, 60u)));
}

evpn::Settings without_detection() {
  auto s = settings();
  s.duplicate_moves = 0;
  return s;
}

// The stations speak once more, where they are now.
void speak(Fabric& fabric, const std::vector<std::pair<unsigned, uint32_t>>& places) {
  for (unsigned m = 1; m <= kMacs; ++m) {
    Step s;
    s.what = What::Learn;
    s.mac = m;
    s.at = places[m - 1].first;
    s.port = places[m - 1].second;
    fabric.run(s);
    fabric.settle();
  }
}

std::vector<std::pair<unsigned, uint32_t>> somewhere(unsigned pes) {
  std::vector<std::pair<unsigned, uint32_t>> places;
  for (unsigned m = 0; m < kMacs; ++m)
    places.emplace_back(*rc::gen::inRange(0u, pes), *rc::gen::element(10u, 11u));
  return places;
}

void converges() {
  const auto pes = *rc::gen::inRange(2u, 5u);
  const auto provisioned_at = *rc::gen::inRange(0u, 6u);  // MAC 1; beyond the PEs: nowhere
  const auto stream = *rc::gen::container<std::vector<Step>>(steps());
  Fabric late(pes, without_detection(), provisioned_at);
  for (const auto& s : stream) late.run(s);
  late.settle();
  static_cast<void>(late.agreed());
  Fabric ordered(pes, without_detection(), provisioned_at);
  ordered.settle();
  for (const auto& s : stream) {
    ordered.run(s);
    ordered.settle();
  }
  const auto places = somewhere(pes);
  speak(late, places);
  speak(ordered, places);
  RC_ASSERT(late.agreed() == ordered.agreed());
  for (unsigned m = provisioned_at < pes ? 2 : 1; m <= kMacs; ++m)
    RC_ASSERT(late.agreed().at(m) == places[m - 1]);
}

// With detection: whatever was frozen on the way thaws, and then the station is found where it is.
void converges_with_detection() {
  const auto pes = *rc::gen::inRange(2u, 5u);
  auto s = settings();
  s.duplicate_moves = *rc::gen::inRange(2u, 5u);
  s.duplicate_window = std::chrono::seconds(*rc::gen::inRange(1, 100));
  s.duplicate_hold = std::chrono::seconds(*rc::gen::inRange(1, 100));
  const auto stream = *rc::gen::container<std::vector<Step>>(steps());
  Fabric fabric(pes, s, 99);
  for (const auto& step : stream) fabric.run(step);
  fabric.settle();
  // No route of a MAC is sent without end: the queues ran empty. Now all holds and windows end.
  for (int i = 0; i < 3; ++i) {
    Step wait;
    wait.seconds = 200;
    fabric.run(wait);
    fabric.settle();
  }
  const auto places = somewhere(pes);
  speak(fabric, places);
  const auto agreed = fabric.agreed();
  for (unsigned m = 1; m <= kMacs; ++m) RC_ASSERT(agreed.at(m) == places[m - 1]);
}

TEST(MacVrfFabric, AnyOrderOfMessagesConverges) {
  EXPECT_TRUE(rc::check("PEs agree, as if every message had come at once", converges));
}
TEST(MacVrfFabric, ConvergesWithDuplicateDetection) {
  EXPECT_TRUE(rc::check("what was frozen thaws and is found", converges_with_detection));
}

}  // namespace
