// SPDX-License-Identifier: GPL-2.0-or-later
// Memory for the parts of the RIB, in pages of 64 KiB that are cut out of blocks of 2 MiB: one huge
// page each, because a fault for each small page costs more than all else that is done for the
// routes on it. Pages that are given are kept and taken again; they go back to the system with
// give_back(), which the owner calls when there is time for it: that too costs more than the
// routes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bgp {

class PagePool {
 public:
  static constexpr std::size_t kPageSize = 64 * 1024;

  PagePool() = default;
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // A page's memory, which is not zero, with the number of its block. Lack of memory aborts.
  [[nodiscard]] uint8_t* take(uint32_t& block);
  void give(uint32_t block, const uint8_t* page);

  // What was not needed since the last call goes back to the system, with at most `calls` of it.
  // True when there is more.
  bool give_back(std::size_t calls);
  // Of pages that are taken, and of those that may be resident.
  [[nodiscard]] std::size_t used_bytes() const { return used_ * kPageSize; }
  [[nodiscard]] std::size_t resident_bytes() const { return (used_ + spare_) * kPageSize; }

 private:
  static constexpr uint32_t kBlockPages = 32;
  static constexpr uint32_t kSmallBlock = 8;    // of the first one: a small table is to stay small
  static constexpr std::size_t kKeptPages = 4;  // may stay, and a quarter of those in use
  struct Block {
    uint8_t* base = nullptr;
    uint32_t pages = 0;    // one bit a page that it has
    uint32_t free = 0;     // ... that is not taken
    uint32_t touched = 0;  // ... that may be resident; all of them, once a huge page is
  };
  void map(uint32_t number);
  void unmap(uint32_t number);
  void give_back_blocks(std::size_t& pages, std::size_t& calls);
  void give_back_pages(std::size_t& pages, std::size_t& calls);
  static std::size_t bytes(const Block& block);

  std::vector<Block> blocks_;            // those that were unmapped have no base
  std::vector<uint32_t> roomy_;          // blocks that may have a free page
  std::vector<uint32_t> unused_blocks_;  // numbers
  std::size_t used_ = 0;                 // pages
  std::size_t spare_ = 0;                // pages that are not taken and may be resident
  std::size_t low_ = 0;                  // the fewest of them since the last give_back()
};

}  // namespace bgp
