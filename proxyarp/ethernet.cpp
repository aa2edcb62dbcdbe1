// SPDX-License-Identifier: GPL-2.0-or-later
// Frame classes. Hosts accept ND messages behind extension headers, so that a check of the plain
// form alone could be walked around: the header chain is followed to its end.
#include "proxyarp/ethernet.h"

#include "net/bytes.h"

namespace proxyarp {
namespace {

constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51, kIcmpv6 = 58,
                  kDestinationOptions = 60;
constexpr uint8_t kRouterSolicitation = 133, kNeighborSolicitation = 135,
                  kNeighborAdvertisement = 136, kRedirect = 137;

FrameClass classify_icmpv6(net::ByteReader& in, bool plain) {
  const uint8_t type = in.u8();
  if (!in.ok()) return FrameClass::HiddenNd;
  if (!plain)
    return type >= kRouterSolicitation && type <= kRedirect ? FrameClass::HiddenNd
                                                            : FrameClass::Other;
  return type == kNeighborSolicitation || type == kNeighborAdvertisement ? FrameClass::Nd
                                                                         : FrameClass::Other;
}

FrameClass classify_ipv6(net::ByteReader& in) {
  in.bytes(6);
  uint8_t next = in.u8();
  in.bytes(33);
  for (bool plain = true; in.ok(); plain = false) {
    switch (next) {
      case kIcmpv6: return classify_icmpv6(in, plain);
      case kHopByHop:
      case kRouting:
      case kDestinationOptions: {
        next = in.u8();
        const std::size_t octets = 8 * (in.u8() + std::size_t{1});
        in.bytes(octets - 2);
        break;
      }
      case kAuthentication: {
        next = in.u8();
        const std::size_t octets = 4 * (in.u8() + std::size_t{2});
        in.bytes(octets - 2);
        break;
      }
      case kFragment: {
        next = in.u8();
        in.u8();
        const bool first = (in.u16() & 0xfff8) == 0;
        in.u32();
        if (in.ok() && !first) return FrameClass::Other;  // no use without the first one
        break;
      }
      default: return FrameClass::Other;
    }
  }
  return FrameClass::HiddenNd;
}

}  // namespace

FrameClass classify(std::span<const uint8_t> frame) {
  net::ByteReader in(frame);
  in.bytes(kEthernetHeader - 2);
  const uint16_t ethertype = in.u16();
  if (!in.ok()) return FrameClass::Truncated;
  if (ethertype == kEtherTypeArp) return FrameClass::Arp;
  return ethertype == kEtherTypeIpv6 ? classify_ipv6(in) : FrameClass::Other;
}

net::MacAddress multicast_mac(const net::IpAddress& group) {
  const auto low = group.bytes().last(4);
  return net::MacAddress({0x33, 0x33, low[0], low[1], low[2], low[3]});
}

}  // namespace proxyarp
