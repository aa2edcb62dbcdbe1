// SPDX-License-Identifier: GPL-2.0-or-later
// An address family small enough to be seen through: type, length, body. Types 1 and 2 exist; the
// key is the type and the first four octets of the body, the rest are not of the key. A body of
// less than four octets is out of scope.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "bgp/family.h"
#include "bgp/message.h"

namespace bgp::test {

inline NlriStatus fake_next(net::ByteReader& in, NlriItem& out) {
  const auto from = in.rest();
  out.type = in.u8();
  const auto body = in.bytes(in.u8());
  if (!in.ok()) return NlriStatus::Framing;
  out.bytes = from.first(body.size() + 2);
  if (out.type != 1 && out.type != 2) return NlriStatus::UnknownType;
  if (body.size() < 4) return NlriStatus::Invalid;
  out.key_storage[0] = out.type;
  std::copy_n(body.begin(), 4, out.key_storage + 1);
  out.key_size = 5;
  return NlriStatus::Ok;
}

inline Family fake_family() { return {kL2vpnEvpn, "fake", fake_next}; }

// A type 1 route of the fake family.
inline net::Bytes fake_nlri(uint32_t key, std::initializer_list<uint8_t> rest = {}) {
  net::ByteWriter out;
  out.u8(1);
  out.u8(static_cast<uint8_t>(4 + rest.size()));
  out.u32(key);
  for (uint8_t octet : rest) out.u8(octet);
  return out.take();
}

inline NlriItem fake_item(const net::Bytes& nlri) {
  NlriItem item;
  net::ByteReader in(nlri);
  fake_next(in, item);
  return item;
}

// "01 02 ff"
inline net::Bytes hex(const char* text) {
  net::Bytes out;
  int digits = 0;
  uint8_t octet = 0;
  for (; *text != 0; ++text) {
    if (*text == ' ') continue;
    const int digit = *text <= '9' ? *text - '0' : *text - 'a' + 10;
    octet = static_cast<uint8_t>(octet << 4 | digit);
    if (++digits % 2 == 0) out.push_back(octet);
  }
  return out;
}

inline net::Bytes join(std::initializer_list<net::Bytes> parts) {
  net::Bytes out;
  for (const net::Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace bgp::test
