// SPDX-License-Identifier: GPL-2.0-or-later
// Communities and the PMSI tunnel from any octets: readers agree with makers, and nothing breaks.
// The first octet says how many of the following octets are the PMSI tunnel.
#include <algorithm>
#include <cstdlib>

#include "evpn/communities.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  net::ByteReader in({data, size});
  const std::size_t pmsi_size = std::min<std::size_t>(in.u8(), in.remaining());
  const auto octets = in.bytes(pmsi_size);
  const net::Bytes pmsi(octets.begin(), octets.end());
  if (const auto tunnel = evpn::decode_pmsi(pmsi)) require(evpn::encode_pmsi(*tunnel) == pmsi);

  bgp::Attributes attributes;
  while (in.remaining() >= 8) {
    bgp::ExtendedCommunity community;
    std::ranges::copy(in.bytes(8), community.begin());
    attributes.extended_communities.push_back(community);
    require(!evpn::to_string(community).empty());
    if (evpn::is_route_target(community))
      require(evpn::parse_route_target(evpn::route_target_text(community)).has_value());
  }
  const auto again = [](const bgp::ExtendedCommunity& community) {
    bgp::Attributes one;
    one.extended_communities = {community};
    return one;
  };
  if (const auto value = evpn::mac_mobility(attributes))
    require(evpn::mac_mobility(again(evpn::make_mac_mobility(*value))) == value);
  if (const auto value = evpn::arp_nd(attributes))
    require(evpn::arp_nd(again(evpn::make_arp_nd(*value))) == value);
  if (const auto value = evpn::encapsulation(attributes))
    require(evpn::encapsulation(again(evpn::make_encapsulation(*value))) == value);
  else
    require(evpn::accepts_vxlan(attributes));
  evpn::Settings settings;
  settings.vni = net::Vni(100);
  (void)evpn::imports(settings, attributes);
  settings.import_targets = {evpn::make_route_target(65000, 100)};
  (void)evpn::imports(settings, attributes);
  return 0;
}
