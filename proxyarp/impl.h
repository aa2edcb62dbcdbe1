// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of a responder and what they share of one frame. Inside proxyarp/ only.
#pragma once
#include <array>
#include <compare>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxyarp/bindings.h"
#include "proxyarp/decoys.h"
#include "proxyarp/duplicates.h"
#include "proxyarp/maintenance.h"
#include "proxyarp/nd.h"
#include "proxyarp/offenders.h"
#include "proxyarp/recent.h"
#include "proxyarp/sponge.h"

namespace proxyarp {

// A broadcast request, probe, or multicast solicitation.
struct Question {
  enum class Kind : uint8_t { Plain, Probe, Dad };  // RFC 826, 4861; RFC 5227; RFC 4862
  enum class Options : uint8_t { Known, Unknown, Secured };
  net::IpAddress target;
  net::MacAddress asker;
  std::optional<net::IfIndex> port;  // none: out of the fabric
  Kind kind = Kind::Plain;
  Options options = Options::Known;
};

// What becomes of a question. Made without any effect, so that it can be explained as well.
struct Decision {
  enum class Act : uint8_t { Drop, Answer, Hand, Flood };
  Verdict verdict = Verdict::UnknownTarget;
  Act act = Act::Drop;
  std::vector<InUse> whom;  // Answer: in whose name, with the flags to say; Hand: to whom
  FloodTo to;               // Flood
  bool missed = false;      // nobody has the address
};

// One frame on its way through the rules.
struct Incoming {
  std::optional<net::IfIndex> port;  // none: out of the fabric
  std::span<const uint8_t> frame;
  bool copy = false;             // it was answered or passed on already
  bool learned = false;          // it changed a binding ...
  net::IpAddress of;             // ... of this address,
  net::MacAddress to;            // to this MAC
  bool seen_by_members = false;  // it was flooded to the ports here

  net::Bytes bytes() const { return {frame.begin(), frame.end()}; }
};

struct Responder::Impl {
  Impl(const Settings& settings, uint64_t seed);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Carries out a call: what the parts emit meanwhile are its actions.
  template <class Call>
  std::vector<Action> at(net::TimePoint now, Call call) {
    Actions out;
    context.now = now;
    if (!context.started) {
      context.started = now;
      sponge.plan_sweep();
    }
    context.out = &out;
    call();
    finish();
    context.out = nullptr;
    return out;
  }
  void finish();

  // --- rules.cpp: frames
  Verdict frame(Incoming& in);
  Verdict arp(Incoming& in);
  Verdict nd(Incoming& in);
  Verdict solicitation(Incoming& in, const NdFrame& nd);
  Verdict advertisement(Incoming& in, const NdFrame& nd);
  template <class MakeReply>
  Verdict ask(Incoming& in, const Question& question, MakeReply make_reply);
  Verdict gratuitous(Incoming& in, FloodTo to);
  Verdict pass_unicast(Incoming& in);
  Verdict flood(Incoming& in, FloodTo to);
  void pass(Incoming& in, Action action);
  Verdict refuse(Incoming& in, Verdict verdict, const net::IpAddress& ip, net::MacAddress seen);
  Verdict decoy_answered(Incoming& in, const net::IpAddress& ip, net::MacAddress seen);
  void alarm(Incoming& in, AlarmKind kind, const net::IpAddress& ip, net::MacAddress seen);

  // --- claims.cpp: what a frame says of a binding
  enum class Bound : uint8_t { Fine, LimitReached, TooFast, Frozen };
  Bound bind(Incoming& in, const net::IpAddress& ip, net::MacAddress mac, NaFlags flags,
             bool announced);
  Bound learn(Incoming& in, const net::IpAddress& ip, net::MacAddress mac, NaFlags flags);
  void sign_of_life(Incoming& in, const net::IpAddress& ip, net::MacAddress mac);
  void follow_hint(Incoming& in, const NdFrame& nd);
  void set_evpn(const net::IpAddress& ip, std::span<const EvpnBinding> bindings);
  void trapped(net::IfIndex port, std::span<const uint8_t> frame);

  // --- decide.cpp: questions
  using Rules = std::vector<std::string>*;  // where those that were passed are written; or null
  [[nodiscard]] Decision decide(const Question& question, Rules rules) const;
  [[nodiscard]] Decision decide_options(const Question& question, const Binding* binding,
                                        Rules rules) const;
  [[nodiscard]] Decision decide_frozen(const Question& question, Rules rules) const;
  [[nodiscard]] Decision decide_bound(const Question& question, const Binding& binding,
                                      Rules rules) const;
  [[nodiscard]] Decision decide_missed(const Question& question, const Binding* binding,
                                       Rules rules) const;
  [[nodiscard]] Decision hand(const Question& question, std::vector<InUse> whom,
                              Verdict verdict) const;
  [[nodiscard]] Decision flooded(const Question& question, FloodTo to, Verdict verdict,
                                 Verdict otherwise) const;
  [[nodiscard]] Unassigned policy_for(const net::IpAddress& ip) const;
  [[nodiscard]] bool is_exempt(const net::IpAddress& ip) const;
  [[nodiscard]] bool is_own(const net::IpAddress& ip) const;
  // Elsewhere it is known to be a duplicate: it is bound to the anti-spoof MAC.
  [[nodiscard]] bool is_disputed(const net::IpAddress& ip) const;
  [[nodiscard]] FloodTo unknown(const net::IpAddress& ip) const {
    return ip.is_v4() ? context.settings.unknown_arp() : context.settings.unknown_ns();
  }

  // --- views.cpp
  [[nodiscard]] BindingView view(const net::IpAddress& ip, const Binding& binding) const;
  [[nodiscard]] Explanation explain(const net::IpAddress& ip,
                                    std::optional<net::IfIndex> port) const;

  void count(Verdict verdict) { ++counters[static_cast<std::size_t>(verdict)]; }

  struct AlarmKey {
    AlarmKind kind;
    net::IpAddress ip;
    net::MacAddress mac;
    net::IfIndex port;  // of those that are about a port as a whole
    auto operator<=>(const AlarmKey&) const = default;
  };

  Context context;
  Announcements announcements;
  BindingTable table;
  Maintenance maintenance;
  Duplicates duplicates;
  SpongeTable sponge;
  Offenders offenders;
  DecoyQuestions decoys;
  Recent<AlarmKey> alarms;
  Recent<net::IpAddress> dad;  // targets of duplicate address detection that was passed on
  Pacer hints;                 // questions after them
  std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)> counters{};

 private:
  [[nodiscard]] std::optional<Announcement> announcement(const net::IpAddress& ip) const;
};

}  // namespace proxyarp
