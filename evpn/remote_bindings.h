// SPDX-License-Identifier: GPL-2.0-or-later
// MAC/IP routes of other PEs by IP address, and the one binding that wins each. Inside evpn/ only.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "evpn/import.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

namespace evpn {

class RemoteBindings {
 public:
  // `anti_spoof`: who binds an address to this MAC knows that it is in dispute (RFC 9161 section
  // 3.7), which counts more than what the claimants say. `macs`: of an IPv6 address, at most.
  RemoteBindings(const std::optional<net::MacAddress>& anti_spoof, uint32_t macs)
      : anti_spoof_(anti_spoof), macs_(macs) {}

  struct Binding {
    net::MacAddress mac;
    net::IpAddress vtep;
    ArpNdFlags flags;
    bool operator==(const Binding&) const = default;
  };
  using Frozen = std::function<bool(net::MacAddress)>;
  // The PE to which a path's frames go; nothing: it is not to be used (yet).
  using Resolve = std::function<std::optional<net::IpAddress>(const RemotePath&)>;

  // The route for this address came, changed or went (no path). The same again (route
  // refresh) must not be handed in: it would be the latest.
  void set(net::IpAddress ip, const MacIp& route, const std::optional<RemotePath>& path);
  // Chooses again. True when the winner is not the one of the last call; `winner` then says which.
  // Routes of a frozen MAC change nothing, as long as another one or what they said before stands.
  // `others` are the other MACs of an anycast address, in the order in which they came.
  [[nodiscard]] bool choose(net::IpAddress ip, const Frozen& frozen, const Resolve& resolve,
                            std::optional<Binding>& winner, std::vector<Binding>& others);
  // What the last choose() chose.
  [[nodiscard]] std::pair<std::optional<Binding>, std::vector<Binding>> chosen(
      net::IpAddress ip) const;
  void for_each_address(const std::function<void(const net::IpAddress&)>& visit) const;

 private:
  struct Candidate {
    RemotePath path;
    uint64_t arrival = 0;
  };
  struct Key {
    net::RouteDistinguisher rd;
    uint32_t ethernet_tag = 0;
    net::MacAddress mac;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::map<Key, Candidate> candidates;
    std::optional<Binding> winner;
    std::vector<Binding> others;
  };
  template <class Eligible>
  std::optional<Binding> best(const Entry& entry, const Resolve& resolve,
                              const Eligible& eligible) const;
  std::vector<Binding> others_of(const Entry& entry, const Resolve& resolve,
                                 const Binding& winner) const;

  std::optional<net::MacAddress> anti_spoof_;
  uint32_t macs_ = 1;

  std::map<net::IpAddress, Entry> entries_;
  uint64_t arrivals_ = 0;
};

}  // namespace evpn
