// SPDX-License-Identifier: GPL-2.0-or-later
// Storage for very many small records of a few sizes (paths with their NLRI, attribute sets): pages
// cut into slots of one size, named by 32 bits instead of a pointer.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bgp/page_pool.h"

namespace bgp {

class Arena {
 public:
  using Ref = uint32_t;
  static constexpr Ref kNull = 0xffffffff;

  explicit Arena(PagePool& pool) : pool_(pool) { partial_.fill(kNoPage); }
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
  // Pages that are kept although nothing is in them go back to the pool.
  void drop_empty_pages();
  // Of the pages in use.
  [[nodiscard]] std::size_t mapped_bytes() const { return mapped_; }

 private:
  static constexpr uint32_t kSlotBits = 11, kSlotMask = (1u << kSlotBits) - 1;
  static constexpr std::size_t kPageSize = PagePool::kPageSize;
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
  void link(uint32_t number);
  void unlink(uint32_t number);

  PagePool& pool_;
  std::vector<Page> pages_;
  std::vector<uint32_t> unused_numbers_;
  std::array<uint32_t, kClasses> partial_{};
  std::size_t mapped_ = 0;  // pages in use
};

}  // namespace bgp
