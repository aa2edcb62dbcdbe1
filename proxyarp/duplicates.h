// SPDX-License-Identifier: GPL-2.0-or-later
// Two MACs that claim one address (RFC 9161 section 3.7): the former owner is asked first, moves
// are counted, and an address that moves too often is frozen. Inside proxyarp/ only.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "proxyarp/bindings.h"

namespace proxyarp {

struct Claimant {
  net::MacAddress mac;
  ClaimPlace place;
  NaFlags flags;
};

class Duplicates {
 public:
  Duplicates(Context& context, BindingTable& table, Announcements& announcements);

  enum class Ruling : uint8_t {
    Accepted,  // the table may take it over now
    Pending,   // the former owner is being asked
    Frozen,    // the address is a duplicate
    Kept,      // the former owner has it still
  };
  // Somebody claims what another MAC has in use.
  [[nodiscard]] Ruling claim(const net::IpAddress& ip, const InUse& holder,
                             const Claimant& claimant);
  // The same of a provisioned address by another MAC of its list. An announcement is believed at
  // once: its sender has probed (RFC 5227 section 2.3), and both MACs are the same member's.
  void claim_listed(const net::IpAddress& ip, const InUse& holder, const Claimant& claimant,
                    bool announced);
  // A frame of `mac`, here or behind the core, says that it has the address.
  void seen(const net::IpAddress& ip, net::MacAddress mac);
  // EVPN changed what is in use.
  void evpn_changed(const net::IpAddress& ip, const std::optional<InUse>& before);
  // What is in use is not there any more, though it was being confirmed.
  void deserted(const net::IpAddress& ip);

  [[nodiscard]] bool is_frozen(const net::IpAddress& ip) const;
  [[nodiscard]] bool is_claimant(const net::IpAddress& ip, net::MacAddress mac) const;
  // Those who may have a pending address.
  [[nodiscard]] std::vector<Claimant> claimants(const net::IpAddress& ip) const;

  bool clear(const net::IpAddress& ip);
  void reconfigure();
  void tick();
  [[nodiscard]] net::TimePoint deadline() const;
  void for_each(const std::function<void(const DuplicateView&)>& visit) const;

 private:
  enum class Phase : uint8_t { Counting, AskHolder, AskChallenger, Frozen };
  struct Contest {
    Phase phase = Phase::Counting;
    bool listed = false;  // provisioned: never frozen
    uint8_t asked = 0;
    Claimant holder, challenger;
    std::vector<net::TimePoint> moves;
    net::TimePoint first, last, since;
    net::TimePoint due = net::kNever, until;
    net::TimePoint quiet;                       // no new contest of a listed address before
    std::optional<net::MacAddress> anti_spoof;  // told
  };
  Contest* contest(const net::IpAddress& ip);
  const Contest* contest(const net::IpAddress& ip) const;
  Contest* open(const net::IpAddress& ip);
  void set_due(const net::IpAddress& ip, Contest& contest, net::TimePoint due);
  void start(const net::IpAddress& ip, Contest& contest, Phase phase, net::TimePoint from);
  void ask(const net::IpAddress& ip, const Claimant& whom);
  [[nodiscard]] bool can_ask() const { return context_.identity.mac.is_unicast(); }
  bool count(Contest& contest);
  [[nodiscard]] Ruling move(const net::IpAddress& ip, Contest& contest);
  void accept(const net::IpAddress& ip, Contest& contest);
  void switch_listed(const net::IpAddress& ip, Contest& contest);
  void settle(const net::IpAddress& ip, Contest& contest);
  void answered(const net::IpAddress& ip, Contest& contest);
  void freeze(const net::IpAddress& ip, Contest& contest);
  void thaw(const net::IpAddress& ip, bool by_operator);
  void tell_anti_spoof(const net::IpAddress& ip, Contest& contest);
  void due(const net::IpAddress& ip, Contest& contest);
  Alarm alarm(AlarmKind kind, const net::IpAddress& ip, const Contest& contest) const;

  Context& context_;
  BindingTable& table_;
  Announcements& announcements_;
  std::map<net::IpAddress, Contest> contests_;
  std::set<std::pair<net::TimePoint, net::IpAddress>> timers_;
};

}  // namespace proxyarp
