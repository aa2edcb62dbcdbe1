// SPDX-License-Identifier: GPL-2.0-or-later
// Storage for very many small records of a few sizes (paths with their NLRI, attribute sets): pages
// cut into slots of one size, named by 32 bits instead of a pointer. Pages come out of blocks; a
// block with no page in use goes back to the system, and so do many empty pages in used blocks.
// Giving back by blocks rather than pages matters: each unmapping costs a TLB flush.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bgp {

class Arena {
 public:
  using Ref = uint32_t;
  static constexpr Ref kNull = 0xffffffff;

  Arena() { partial_.fill(kNoPage); }
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // At least `size` octets, aligned to 4. Never fails: lack of memory aborts.
  [[nodiscard]] Ref allocate(std::size_t size);
  void release(Ref ref);
  // Valid until release(); never moves.
  uint8_t* at(Ref ref) { return slot(pages_[ref >> kSlotBits], ref & kSlotMask); }
  const uint8_t* at(Ref ref) const { return slot(pages_[ref >> kSlotBits], ref & kSlotMask); }
  // Whether a record of `size` octets fits the slot of `ref` as well as a new one.
  [[nodiscard]] bool fits(Ref ref, std::size_t size) const {
    return pages_[ref >> kSlotBits].slot_size == slot_size(size);
  }
  // Hints that the record of `ref` is wanted soon.
  void prefetch(Ref ref) const {
    const uint8_t* record = at(ref);
    __builtin_prefetch(record);
    __builtin_prefetch(record + 64);
  }
  // Of the pages in use.
  [[nodiscard]] std::size_t mapped_bytes() const { return mapped_; }

 private:
  static constexpr uint32_t kSlotBits = 11, kSlotMask = (1u << kSlotBits) - 1;
  static constexpr std::size_t kPageSize = 64 * 1024;
  static constexpr std::size_t kMinSlot = 32;           // kPageSize >> kSlotBits
  static constexpr std::size_t kMaxSlot = 4096;         // above: a page of its own
  static constexpr std::size_t kFine = 256, kStep = 4;  // up to kFine by kStep, then by kCoarse
  static constexpr std::size_t kCoarse = 64;
  static constexpr std::size_t kClasses = kFine / kStep + (kMaxSlot - kFine) / kCoarse + 1;
  static constexpr uint32_t kNoPage = 0xffffffff, kNoSlot = 0xffff;
  static constexpr uint32_t kNoBlock = 0xffffffff;

  struct Page {
    uint8_t* base = nullptr;
    uint32_t block = kNoBlock;
    uint32_t slot_size = 0;
    uint32_t free_slot = kNoSlot;  // list through the free slots
    uint32_t fresh = 0;            // slots from here on were never used
    uint32_t used = 0;
    uint32_t previous = kNoPage, next = kNoPage;  // pages of the class that have room
  };

  // Address space for kBlockPages pages, of which those in `touched` may be resident.
  struct Block {
    uint8_t* base = nullptr;
    uint32_t free = 0;     // one bit a page
    uint32_t touched = 0;  // one bit a page: was in use since it was mapped or given back
  };
  static constexpr uint32_t kBlockPages = 32;
  static constexpr std::size_t kHugeFrom = 2 * kBlockPages;
  static constexpr std::size_t kSpareBlocks = 1;  // kept, lest one is mapped again and again
  static constexpr std::size_t kSparePages = 8;  // may stay resident, and a quarter of those in use

  static std::size_t slot_size(std::size_t size);
  static std::size_t class_of(std::size_t slot_size);
  static std::size_t page_bytes(const Page& page) {
    return page.slot_size > kMaxSlot ? page.slot_size : kPageSize;
  }
  static uint32_t slots(const Page& page) {
    return page.slot_size > kMaxSlot ? 1 : static_cast<uint32_t>(kPageSize / page.slot_size);
  }
  static uint8_t* slot(const Page& page, uint32_t index) {
    return page.base + std::size_t{index} * page.slot_size;
  }
  uint32_t new_page(std::size_t slot_size);
  void drop_page(uint32_t number);
  // One page's memory, with the number of its block.
  [[nodiscard]] uint8_t* take_memory(uint32_t& block);
  void give_memory(uint32_t block, const uint8_t* memory);
  void unmap_spare_blocks();
  void give_back_pages();
  void link(uint32_t number);
  void unlink(uint32_t number);

  std::vector<Page> pages_;
  std::vector<uint32_t> unused_numbers_;
  std::array<uint32_t, kClasses> partial_{};
  std::vector<Block> blocks_;            // those that were unmapped have no base
  std::vector<uint32_t> roomy_;          // blocks that may have a free page
  std::vector<uint32_t> unused_blocks_;  // numbers
  std::size_t free_touched_ = 0;         // pages not in use that may be resident
  std::size_t empty_blocks_ = 0;
  std::size_t pages_used_ = 0;
  std::size_t mapped_ = 0;  // pages in use
};

}  // namespace bgp
