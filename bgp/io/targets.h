// SPDX-License-Identifier: GPL-2.0-or-later
// The side of RT-constrain (RFC 4684) that is about one neighbor: which memberships it has
// announced, and the membership for everything that a reflector or route server gives its clients.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "bgp/export_policy.h"
#include "bgp/message.h"
#include "bgp/rib.h"
#include "bgp/rt_constrain.h"

namespace bgp::io {

// Attributes of a neighbor's membership as they enter the RIB. A client's path goes before that of
// a non-client (section 3.2), or it would not be told to other non-clients.
[[nodiscard]] AttributesPtr membership_attributes(const AttributesPtr& received,
                                                  const PeerTraits& peer);
// The membership is our own that came back.
[[nodiscard]] bool is_own_membership(const Attributes& attributes, uint32_t local_as,
                                     uint32_t router_id, bool internal);
// The whole UPDATE with the membership for everything (section 3.2). Without it a client would not
// know of the targets that the others ask for: it is sent nothing that it announced itself.
[[nodiscard]] net::Bytes default_membership(const PeerTraits& peer, const ExportContext& us,
                                            const net::IpAddress& next_hop);
// A message of the target RIB after which the default has to be sent (again): BoRR, or a withdrawal
// of it.
[[nodiscard]] bool drops_default(std::span<const uint8_t> message);

}  // namespace bgp::io
