// SPDX-License-Identifier: GPL-2.0-or-later
// Ethernet A-D routes of other PEs by Ethernet segment: through which PE a MAC on a segment is
// reached (RFC 7432 sections 8.2, 8.4 and 9.2.2). Inside evpn/ only.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "evpn/nlri.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

namespace evpn {

class Segments {
 public:
  // True for the values that name a segment: MACs of ESI 0 and MAX-ESI need no A-D route.
  [[nodiscard]] static bool is_segment(const net::Esi& esi) {
    return !esi.is_zero() && !esi.is_max();
  }

  // An A-D route of `vtep` came or changed; no `vtep`: it went, or is not for us. True when
  // resolve() may answer differently for its segment.
  [[nodiscard]] bool set(const EthernetAutoDiscovery& route,
                         const std::optional<net::IpAddress>& vtep);
  // The PE that frames go to for a MAC that `advertiser` advertises with this ESI: the advertiser
  // itself while its A-D per ES route is there. Else the lowest PE that has the segment and the
  // domain on it, by its A-D per ES and per EVI routes. Nothing: not to be installed. A PE that is
  // not reachable is never answered.
  [[nodiscard]] std::optional<net::IpAddress> resolve(const net::Esi& esi,
                                                      const net::IpAddress& advertiser) const;

  // All are until told otherwise. True when that is news.
  bool set_reachable(const net::IpAddress& vtep, bool yes);
  [[nodiscard]] bool is_reachable(const net::IpAddress& vtep) const {
    return !unreachable_.contains(vtep);
  }
  // Adds the PEs that the routes are of.
  void collect_pes(std::set<net::IpAddress>& into) const;
  [[nodiscard]] const std::set<net::IpAddress>& unreachable() const { return unreachable_; }
  void set_unreachable(const std::set<net::IpAddress>& vteps) { unreachable_ = vteps; }

  // A MAC/IP route with this ESI came or went.
  void attach(const net::Esi& esi, net::MacAddress mac);
  void detach(const net::Esi& esi, net::MacAddress mac);
  [[nodiscard]] std::vector<net::MacAddress> macs(const net::Esi& esi) const;

 private:
  struct Pe {
    uint32_t per_es = 0, per_evi = 0;  // routes; there may be several per ES (section 8.2.1)
  };
  struct Segment {
    std::map<net::IpAddress, Pe> pes;
    std::map<net::MacAddress, uint32_t> macs;  // with the number of their routes
  };
  void count(const EthernetAutoDiscovery& route, const net::IpAddress& vtep, bool more);
  void forget_if_idle(const net::Esi& esi);

  std::map<std::tuple<net::RouteDistinguisher, net::Esi, uint32_t>, net::IpAddress> routes_;
  std::map<net::Esi, Segment> segments_;
  std::set<net::IpAddress> unreachable_;
};

}  // namespace evpn
