// SPDX-License-Identifier: GPL-2.0-or-later
// Walks over the path attributes (RFC 4271 section 4.3) up to both of RFC 4760's.
#include "bgp/update_family.h"

#include "bgp/message.h"
#include "net/bytes.h"

namespace bgp {

UpdateFamilies update_families(std::span<const uint8_t> body) {
  UpdateFamilies found;
  net::ByteReader in(body);
  in.bytes(in.u16());  // withdrawn IPv4 routes
  net::ByteReader attributes = in.sub(in.u16());
  while (in.ok() && !attributes.done() && !(found.reach && found.unreach)) {
    const uint8_t flags = attributes.u8();
    const uint8_t type = attributes.u8();
    net::ByteReader value =
        attributes.sub((flags & kFlagExtendedLength) != 0 ? attributes.u16() : attributes.u8());
    if (!attributes.ok()) break;
    const bool reach = type == static_cast<uint8_t>(AttributeType::MpReachNlri);
    if (!reach && type != static_cast<uint8_t>(AttributeType::MpUnreachNlri)) continue;
    AfiSafi family;
    family.afi = value.u16();
    family.safi = value.u8();
    auto& place = reach ? found.reach : found.unreach;
    if (value.ok() && !place) place = family;
  }
  return found;
}

}  // namespace bgp
