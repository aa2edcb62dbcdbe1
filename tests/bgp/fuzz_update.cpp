// SPDX-License-Identifier: GPL-2.0-or-later
// UPDATE from any octets, with the EVPN family. The first octet: 1 four-octet AS numbers, 2
// internal peer, 4 encode for a peer of two-octet AS numbers. What was accepted encodes to an
// UPDATE that decodes to the same value without an error.
#include <algorithm>
#include <cstdlib>

#include "bgp/message.h"
#include "evpn/nlri.h"
#include "fuzz_support.h"

using namespace bgp;
using namespace bgp::fuzz;

namespace {

bool within(std::span<const uint8_t> part, std::span<const uint8_t> whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

std::vector<std::span<const uint8_t>> octets(const std::vector<NlriItem>& items) {
  std::vector<std::span<const uint8_t>> out;
  for (const NlriItem& item : items) out.push_back(item.bytes);
  return out;
}

bool same(const std::vector<NlriItem>& a, const std::vector<NlriItem>& b) {
  return std::ranges::equal(a, b, [](const NlriItem& x, const NlriItem& y) {
    return std::ranges::equal(x.bytes, y.bytes) && std::ranges::equal(x.key(), y.key());
  });
}

void relay_reach(const Update& update, bool internal, bool four_octet_as) {
  const net::Bytes attributes = encode_attributes(*update.attributes, {four_octet_as});
  const auto nlris = octets(update.reach);
  const PackedUpdate packed =
      encode_reach(kL2vpnEvpn, update.attributes->next_hop, attributes, nlris, kMaxExtendedMessage);
  if (packed.taken != nlris.size()) return;
  const auto again = decode_update(std::span(packed.message).subspan(kHeaderSize), evpn::family(),
                                   {four_octet_as, internal});
  require(again.has_value() && again->handling == ErrorHandling::None);
  require(again->attributes != nullptr && same(again->reach, update.reach));
  if (four_octet_as)
    require(with_flat_path(*again->attributes) == with_flat_path(*update.attributes));
}

void relay_unreach(const Update& update) {
  const auto nlris = octets(update.unreach);
  const PackedUpdate packed = encode_unreach(kL2vpnEvpn, nlris, kMaxExtendedMessage);
  if (packed.taken != nlris.size()) return;
  const auto again =
      decode_update(std::span(packed.message).subspan(kHeaderSize), evpn::family(), {true, true});
  require(again.has_value() && again->handling == ErrorHandling::None);
  require(again->reach.empty() && same(again->unreach, update.unreach) && !again->end_of_rib);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const std::span<const uint8_t> body(data + 1, size - 1);
  const bool internal = (choice & 2) != 0;
  const auto update = decode_update(body, evpn::family(), {(choice & 1) != 0, internal});
  if (!update) {
    require(update.error().code == ErrorCode::UpdateMessage);
    require(encode_notification(update.error()).size() <= kMaxMessage);
    return 0;
  }
  require(update->handling < ErrorHandling::SessionReset);
  require(update->reach.empty() == (update->attributes == nullptr));
  require(update->handling != ErrorHandling::TreatAsWithdraw || update->reach.empty());
  require(!update->end_of_rib || (update->reach.empty() && update->unreach.empty()));
  for (const auto* items : {&update->reach, &update->unreach})
    for (const NlriItem& item : *items) {
      require(within(item.bytes, body) && item.key_size > 0 && item.key().front() == item.type);
      const auto route = evpn::decode(item.bytes);
      // What is withdrawn need not have a meaning, only a key.
      require(route ||
              (items == &update->unreach && route.error().status == NlriStatus::Meaningless));
    }
  if (update->attributes) relay_reach(*update, internal, (choice & 4) == 0);
  if (!update->unreach.empty()) relay_unreach(*update);
  return 0;
}
