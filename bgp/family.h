// SPDX-License-Identifier: GPL-2.0-or-later
// An address family as BGP sees it: how one NLRI is cut off and what its key is. bgp/ knows nothing
// of EVPN; evpn::family() hands in the row for AFI 25, SAFI 70.
#pragma once
#include <cstdint>
#include <span>

#include "net/bytes.h"

namespace bgp {

struct AfiSafi {
  uint16_t afi = 0;
  uint8_t safi = 0;
  constexpr auto operator<=>(const AfiSafi&) const = default;
};

inline constexpr AfiSafi kL2vpnEvpn{25, 70};

// What came of cutting one NLRI off the front of an attribute.
enum class NlriStatus : uint8_t {
  Ok,
  UnknownType,  // framing intact, type not supported: discard this one only (RFC 7606 section 5.4)
  Invalid,      // framing intact, values outside the type's scope: discard this one only
  Meaningless,  // values exclude each other, but the key is known: treat this one as withdrawn
  Framing,      // a length overruns: nothing behind it can be trusted (RFC 7606 section 5.3)
};

// One NLRI. `bytes` is the whole NLRI as received (type, length, body) and is what is relayed
// unchanged; `key` are the octets that make it the same route as another (RFC 7432 section 7: not
// ESI, not labels of a type 2). A key always begins with the route type. Spans of bytes live as
// long as the message; key_storage owns the key.
struct NlriItem {
  NlriItem() {}  // NOLINT: leaves key_storage as it is; an UPDATE has a hundred of them
  std::span<const uint8_t> bytes;
  uint8_t type = 0;
  uint8_t key_size = 0;
  uint8_t key_storage[255];  // NOLINT: key_size of them count
  std::span<const uint8_t> key() const { return {key_storage, key_size}; }
};

struct Family {
  AfiSafi id;
  const char* name = "";
  // Takes one NLRI from the front of `in`. With Framing, `in` is not usable any more.
  NlriStatus (*next)(net::ByteReader& in, NlriItem& out) = nullptr;
};

}  // namespace bgp
