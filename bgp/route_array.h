// SPDX-License-Identifier: GPL-2.0-or-later
// The routes by their index, in chunks that are made when needed and go when nothing in them is in
// use. An index that is free reads as a route without paths.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bgp/arena.h"
#include "bgp/page_pool.h"

namespace bgp {

using RouteIndex = uint32_t;
using PathRef = Arena::Ref;
inline constexpr RouteIndex kNoRoute = 0xffffffff;
inline constexpr PathRef kNoPath = Arena::kNull;

struct Route {
  PathRef first = kNoPath;         // kNoPath: this index is free
  uint16_t pins = 0;               // update groups that have a change of it in their log
  bool change_waits : 1 = false;   // for take_changes()
  bool change_told : 1 = false;    // the reader of take_changes() has it
  bool listed_unused : 1 = false;  // see RibState::remove_if_unused()
};
static_assert(sizeof(Route) == 8);

class RouteArray {
 public:
  explicit RouteArray(PagePool& pool) : pool_(pool) {}
  ~RouteArray();
  RouteArray(const RouteArray&) = delete;
  RouteArray& operator=(const RouteArray&) = delete;

  // A free index, of lately used ones rather than of new ones.
  [[nodiscard]] RouteIndex take();
  void give(RouteIndex index);

  Route& operator[](RouteIndex index) { return chunks_[index / kChunk].routes[index % kChunk]; }
  const Route& operator[](RouteIndex index) const {
    return chunks_[index / kChunk].routes[index % kChunk];
  }
  void prefetch(RouteIndex index) const { __builtin_prefetch(&(*this)[index]); }
  [[nodiscard]] RouteIndex end() const {  // above every index in use
    if (chunks_.empty()) return 0;
    return static_cast<RouteIndex>((chunks_.size() - 1) * kChunk + chunks_.back().fresh);
  }
  [[nodiscard]] std::size_t mapped_bytes() const { return mapped_ * kChunk * sizeof(Route); }

 private:
  static constexpr std::size_t kChunk = PagePool::kPageSize / sizeof(Route);
  static constexpr uint16_t kNone = 0xffff;
  struct Chunk {
    Route* routes = nullptr;  // of one that is empty: shared by all of these, never written
    uint32_t block = 0;       // of the pool
    uint16_t used = 0;
    uint16_t fresh = 0;          // from here on nothing was ever used
    uint16_t free_slot = kNone;  // list through the `pins` of free routes
    bool listed = false;         // in roomy_
  };
  static Route* nothing();

  PagePool& pool_;
  std::vector<Chunk> chunks_;
  std::vector<uint32_t> roomy_;  // chunks that may have a free index
  std::size_t mapped_ = 0;
};

}  // namespace bgp
