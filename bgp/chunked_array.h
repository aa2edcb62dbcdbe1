// SPDX-License-Identifier: GPL-2.0-or-later
// An array that grows by chunks: no copy of everything and no doubled memory while it grows.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace bgp {

template <class T, std::size_t kChunk = 4096>
class ChunkedArray {
 public:
  // The element, made (and all before it) when it was not there.
  T& grow_to(std::size_t index) {
    while (index / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Chunk>());
    return (*this)[index];
  }
  T& operator[](std::size_t index) { return (*chunks_[index / kChunk])[index % kChunk]; }
  const T& operator[](std::size_t index) const {
    return (*chunks_[index / kChunk])[index % kChunk];
  }
  // A copy, or T{} beyond the end.
  T get(std::size_t index) const { return index / kChunk < chunks_.size() ? (*this)[index] : T{}; }
  std::size_t size() const { return chunks_.size() * kChunk; }
  void clear() {
    chunks_.clear();
    chunks_.shrink_to_fit();
  }

 private:
  using Chunk = std::array<T, kChunk>;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace bgp
