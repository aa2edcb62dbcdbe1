// SPDX-License-Identifier: GPL-2.0-or-later
// An array of numbers that grows by pages of the pool: no copy of everything and no doubled memory
// while it grows.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "bgp/page_pool.h"

namespace bgp {

template <class T>
class ChunkedArray {
  static_assert(std::is_integral_v<T>);  // zero is all octets zero

 public:
  explicit ChunkedArray(PagePool& pool) : pool_(pool) {}
  ~ChunkedArray() { clear(); }
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  // The element, made (and all before it) when it was not there.
  T& grow_to(std::size_t index) {
    while (index / kChunk >= chunks_.size()) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.items = reinterpret_cast<T*>(pool_.take(chunk.block));
      std::memset(chunk.items, 0, PagePool::kPageSize);
    }
    return (*this)[index];
  }
  T& operator[](std::size_t index) { return chunks_[index / kChunk].items[index % kChunk]; }
  const T& operator[](std::size_t index) const {
    return chunks_[index / kChunk].items[index % kChunk];
  }
  // A copy, or T{} beyond the end.
  T get(std::size_t index) const { return index / kChunk < chunks_.size() ? (*this)[index] : T{}; }
  std::size_t size() const { return chunks_.size() * kChunk; }
  void clear() {
    for (const Chunk& chunk : chunks_)
      pool_.give(chunk.block, reinterpret_cast<const uint8_t*>(chunk.items));
    chunks_ = {};
  }

 private:
  static constexpr std::size_t kChunk = PagePool::kPageSize / sizeof(T);
  struct Chunk {
    T* items = nullptr;
    uint32_t block = 0;
  };
  PagePool& pool_;
  std::vector<Chunk> chunks_;
};

}  // namespace bgp
