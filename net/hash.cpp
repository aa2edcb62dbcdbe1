// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/hash.h"

#include <cstring>

namespace net {
namespace {

uint64_t fold(uint64_t a, uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t hash_bytes(std::span<const uint8_t> bytes, uint64_t seed) noexcept {
  constexpr uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd1b54a32d192ed03;
  uint64_t h = fold(seed ^ k0, bytes.size() ^ k1);
  uint64_t tail = 0;
  if (bytes.size() >= 8) {
    std::memcpy(&tail, bytes.data() + bytes.size() - 8, 8);  // may overlap the last whole word
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      h = fold(h ^ word, k0);
    }
  } else if (!bytes.empty()) {
    std::memcpy(&tail, bytes.data(), bytes.size());
  }
  return fold(h ^ tail, k1);
}

}  // namespace net
