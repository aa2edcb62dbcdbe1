// SPDX-License-Identifier: GPL-2.0-or-later
// Our own routes of one broadcast domain and their attributes. Inside evpn/ only.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bgp/attributes.h"
#include "evpn/communities.h"
#include "evpn/nlri.h"
#include "evpn/settings.h"

namespace evpn {

class Originator {
 public:
  explicit Originator(const Settings& settings);

  [[nodiscard]] net::RouteDistinguisher rd() const { return rd_; }
  [[nodiscard]] MacIp mac_ip(net::MacAddress mac, const std::optional<net::IpAddress>& ip) const;
  [[nodiscard]] InclusiveMulticast multicast() const;

  // Equal attributes are one object, so that the RIB packs them into one UPDATE at no cost.
  [[nodiscard]] bgp::AttributesPtr mac_attributes(const std::optional<MacMobility>& mobility,
                                                  const std::optional<ArpNdFlags>& flags);
  [[nodiscard]] bgp::AttributesPtr multicast_attributes() const;

 private:
  [[nodiscard]] bgp::Attributes base() const;

  Settings settings_;
  net::RouteDistinguisher rd_;
  std::vector<bgp::ExtendedCommunity> targets_;  // and the encapsulation
  std::map<std::vector<bgp::ExtendedCommunity>, std::weak_ptr<const bgp::Attributes>> shared_;
  std::size_t sweep_at_ = 64;
};

}  // namespace evpn
