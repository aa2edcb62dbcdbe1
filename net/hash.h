// SPDX-License-Identifier: GPL-2.0-or-later
// Seeded hash of a few bytes, for tables whose keys come from the network.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace net {

// Mixes `bytes` under `seed` (wyhash-style multiply and fold); not cryptographic.
[[nodiscard]] uint64_t hash_bytes(std::span<const uint8_t> bytes, uint64_t seed = 0) noexcept;

}  // namespace net
