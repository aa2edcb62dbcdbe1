// SPDX-License-Identifier: GPL-2.0-or-later
// Whatever decodes encodes to the same octets; next() and decode() agree, and next() always ends.
#include <algorithm>
#include <cstdlib>

#include "evpn/nlri.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void one(std::span<const uint8_t> nlri) {
  const auto route = evpn::decode(nlri);
  if (!route) {
    require(route.error().status != bgp::NlriStatus::Ok);
    require(route.error().offset <= nlri.size());
    return;
  }
  require(std::ranges::equal(evpn::encode(*route), nlri));
  require(evpn::decode(evpn::encode(*route)) == route);
  require(!evpn::to_string(*route).empty());
  (void)evpn::route_distinguisher(*route);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::span<const uint8_t> input(data, size);
  one(input);
  net::ByteReader in(input);
  while (!in.done()) {
    const std::size_t before = in.remaining();
    bgp::NlriItem item;
    const auto status = evpn::family().next(in, item);
    if (status == bgp::NlriStatus::Framing) {
      require(in.done() && !in.ok());
      break;
    }
    require(in.remaining() < before);
    const auto route = evpn::decode(item.bytes);
    require(route.has_value() == (status == bgp::NlriStatus::Ok));
    if (!route) {
      require(route.error().status == status);
      continue;
    }
    one(item.bytes);
    require(item.key_size > 0 && item.key().front() == item.bytes.front());
    const auto encoded = evpn::encode_item(*route);
    require(std::ranges::equal(encoded.item().key(), item.key()));
  }
  return 0;
}
