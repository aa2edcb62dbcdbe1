// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/route_array.h"

#include <new>
#include <utility>

namespace bgp {

RouteArray::~RouteArray() {
  for (const Chunk& chunk : chunks_)
    if (chunk.routes != nothing())
      pool_.give(chunk.block, reinterpret_cast<const uint8_t*>(chunk.routes));
}

Route* RouteArray::nothing() {
  static std::array<Route, kChunk> routes{};
  return routes.data();
}

RouteIndex RouteArray::take() {
  // What lies beyond the end was cut off, see give().
  while (!roomy_.empty()) {
    const uint32_t number = roomy_.back();
    if (number < chunks_.size() && chunks_[number].used < kChunk) break;
    if (number < chunks_.size()) chunks_[number].listed = false;
    roomy_.pop_back();
  }
  if (roomy_.empty()) {
    roomy_.push_back(static_cast<uint32_t>(chunks_.size()));
    chunks_.push_back({.routes = nothing(), .listed = true});
  }
  const uint32_t number = roomy_.back();
  Chunk& chunk = chunks_[number];
  if (chunk.routes == nothing()) {
    chunk.routes = new (pool_.take(chunk.block)) Route[kChunk];
    ++mapped_;
  }
  uint16_t slot = chunk.free_slot;
  if (slot != kNone) {
    chunk.free_slot = chunk.routes[slot].pins;
    chunk.routes[slot] = {};
  } else {
    slot = chunk.fresh++;
  }
  ++chunk.used;
  return static_cast<RouteIndex>(number * kChunk + slot);
}

void RouteArray::give(RouteIndex index) {
  const auto number = static_cast<uint32_t>(index / kChunk);
  Chunk& chunk = chunks_[number];
  if (--chunk.used != 0) {
    const auto slot = static_cast<uint16_t>(index % kChunk);
    chunk.routes[slot] = {.pins = std::exchange(chunk.free_slot, slot)};
  } else {
    pool_.give(chunk.block, reinterpret_cast<const uint8_t*>(chunk.routes));
    --mapped_;
    chunk = {.routes = nothing(), .listed = chunk.listed};
    while (!chunks_.empty() && chunks_.back().used == 0) chunks_.pop_back();
    if (number >= chunks_.size()) return;
  }
  if (!std::exchange(chunk.listed, true)) roomy_.push_back(number);
}

}  // namespace bgp
