// SPDX-License-Identifier: GPL-2.0-or-later
// All decoders of BGP messages. The first octet picks the options; what decodes must encode again
// to something that decodes to the same.
#include <cstdlib>

#include "bgp/message.h"
#include "fake_family.h"
#include "fuzz_support.h"

using namespace bgp;
using namespace bgp::fuzz;

namespace {

void fuzz_update(std::span<const uint8_t> body, const DecodeOptions& options) {
  const auto update = decode_update(body, test::fake_family(), options);
  if (!update) return;
  require(update->reach.empty() == (update->attributes == nullptr));
  if (update->reach.empty()) return;
  const net::Bytes attributes = encode_attributes(*update->attributes, {true});
  std::vector<std::span<const uint8_t>> nlris;
  for (const NlriItem& item : update->reach) nlris.push_back(item.bytes);
  const PackedUpdate packed = encode_reach(kL2vpnEvpn, update->attributes->next_hop, attributes,
                                           nlris, kMaxExtendedMessage);
  if (packed.taken != nlris.size()) return;
  const auto again = decode_update(std::span(packed.message).subspan(kHeaderSize),
                                   test::fake_family(), {true, options.internal});
  require(again.has_value() && again->attributes != nullptr);
  require(again->reach.size() == update->reach.size());
  // A path that was merged may be cut into segments of 255 differently.
  require(encode_attributes(*again->attributes, {true}) == attributes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  (void)decode_header(bytes, kMaxExtendedMessage);
  if (const auto open = decode_open(bytes)) {
    const net::Bytes encoded = encode_open(*open);
    const auto again = decode_open(std::span(encoded).subspan(kHeaderSize));
    Open known = *open;
    known.capabilities.unknown.clear();
    require(again.has_value() && *again == known);
    (void)describe(open->capabilities);
  }
  if (const auto notification = decode_notification(bytes)) {
    (void)to_string(*notification);
    (void)shutdown_text(*notification);
  }
  if (const auto refresh = decode_route_refresh(bytes)) {
    const net::Bytes encoded = encode_route_refresh(refresh->family, refresh->subtype);
    require(decode_route_refresh(std::span(encoded).subspan(kHeaderSize)) == *refresh);
  }
  fuzz_update(bytes, {(choice & 1) != 0, (choice & 2) != 0});
  return 0;
}
