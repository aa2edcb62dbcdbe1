// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/arena.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>

namespace bgp {

Arena::~Arena() {
  for (const Page& page : pages_)
    if (page.base != nullptr && page.block == kNoBlock) munmap(page.base, page_bytes(page));
  for (const Block& block : blocks_)
    if (block.base != nullptr) munmap(block.base, kBlockPages * kPageSize);
}

std::size_t Arena::slot_size(std::size_t size) {
  if (size <= kMinSlot) return kMinSlot;
  if (size <= kFine) return (size + kStep - 1) / kStep * kStep;
  if (size <= kMaxSlot) return (size + kCoarse - 1) / kCoarse * kCoarse;
  return (size + 4095) / 4096 * 4096;
}

std::size_t Arena::class_of(std::size_t slot_size) {
  if (slot_size <= kFine) return slot_size / kStep;
  return kFine / kStep + (slot_size - kFine) / kCoarse;
}

Arena::Ref Arena::allocate(std::size_t size) {
  const std::size_t want = slot_size(size);
  uint32_t number = want > kMaxSlot ? kNoPage : partial_[class_of(want)];
  if (number == kNoPage) number = new_page(want);
  Page& page = pages_[number];
  uint32_t index = page.free_slot;
  if (index != kNoSlot)
    std::memcpy(&page.free_slot, slot(page, index), sizeof page.free_slot);
  else
    index = page.fresh++;
  if (++page.used == slots(page) && page.slot_size <= kMaxSlot) unlink(number);
  return number << kSlotBits | index;
}

void Arena::release(Ref ref) {
  const uint32_t number = ref >> kSlotBits, index = ref & kSlotMask;
  Page& page = pages_[number];
  const bool was_full = page.used == slots(page);
  std::memcpy(slot(page, index), &page.free_slot, sizeof page.free_slot);
  page.free_slot = index;
  --page.used;
  if (page.slot_size > kMaxSlot) {
    drop_page(number);
  } else if (was_full) {
    link(number);
    // One page alone stays, lest a class that hovers around a page's edge maps and unmaps it.
  } else if (page.used == 0 && (page.previous != kNoPage || page.next != kNoPage)) {
    unlink(number);
    drop_page(number);
  }
}

namespace {

uint8_t* map(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<uint8_t*>(memory);
}

// At a multiple of its size, so that it can be one huge page: a fault for each small one costs as
// much as all else that is done for the routes on it.
uint8_t* map_aligned(std::size_t size) {
  uint8_t* memory = map(2 * size);
  const std::size_t skip = (size - reinterpret_cast<std::uintptr_t>(memory) % size) % size;
  if (skip != 0) munmap(memory, skip);
  munmap(memory + skip + size, size - skip);
  return memory + skip;
}

}  // namespace

uint32_t Arena::new_page(std::size_t slot_size) {
  Page page;
  page.slot_size = static_cast<uint32_t>(slot_size);
  page.base = slot_size > kMaxSlot ? map(page_bytes(page)) : take_memory(page.block);
  mapped_ += page_bytes(page);
  uint32_t number = static_cast<uint32_t>(pages_.size());
  if (!unused_numbers_.empty()) {
    number = unused_numbers_.back();
    unused_numbers_.pop_back();
    pages_[number] = page;
  } else {
    if (number >= kNull >> kSlotBits) std::abort();
    pages_.push_back(page);
  }
  if (slot_size <= kMaxSlot) link(number);
  return number;
}

void Arena::drop_page(uint32_t number) {
  Page& page = pages_[number];
  mapped_ -= page_bytes(page);
  if (page.block == kNoBlock)
    munmap(page.base, page_bytes(page));
  else
    give_memory(page.block, page.base);
  page = Page{};
  unused_numbers_.push_back(number);
}

uint8_t* Arena::take_memory(uint32_t& number) {
  while (!roomy_.empty() && blocks_[roomy_.back()].free == 0) roomy_.pop_back();
  if (roomy_.empty()) {
    number = static_cast<uint32_t>(blocks_.size());
    if (unused_blocks_.empty()) {
      blocks_.emplace_back();
    } else {
      number = unused_blocks_.back();
      unused_blocks_.pop_back();
    }
    blocks_[number] = {map_aligned(kBlockPages * kPageSize), ~uint32_t{0}, 0};
    // Not for the first ones: a small table is to stay small.
    if (pages_used_ >= kHugeFrom)
      madvise(blocks_[number].base, kBlockPages * kPageSize, MADV_HUGEPAGE);
    roomy_.push_back(number);
    ++empty_blocks_;
  }
  number = roomy_.back();
  Block& block = blocks_[number];
  if (block.free == ~uint32_t{0}) --empty_blocks_;
  // A page that was used before is not faulted in anew.
  const uint32_t choice =
      (block.free & block.touched) != 0 ? block.free & block.touched : block.free;
  const auto page = static_cast<uint32_t>(std::countr_zero(choice));
  const uint32_t bit = uint32_t{1} << page;
  if ((block.touched & bit) != 0) --free_touched_;
  block.free &= ~bit;
  block.touched |= bit;
  ++pages_used_;
  return block.base + page * kPageSize;
}

void Arena::give_memory(uint32_t number, const uint8_t* memory) {
  Block& block = blocks_[number];
  const auto page = static_cast<std::size_t>(memory - block.base) / kPageSize;
  if (block.free == 0) roomy_.push_back(number);
  block.free |= uint32_t{1} << page;
  ++free_touched_;
  --pages_used_;
  if (block.free == ~uint32_t{0} && ++empty_blocks_ > kSpareBlocks) unmap_spare_blocks();
  if (free_touched_ > kSparePages + pages_used_ / 4) give_back_pages();
}

void Arena::unmap_spare_blocks() {
  for (std::size_t i = 0; i < roomy_.size() && empty_blocks_ > kSpareBlocks;) {
    const uint32_t number = roomy_[i];
    Block& block = blocks_[number];
    if (block.free != ~uint32_t{0}) {
      ++i;
      continue;
    }
    munmap(block.base, kBlockPages * kPageSize);
    free_touched_ -= static_cast<std::size_t>(std::popcount(block.touched));
    block = {};
    --empty_blocks_;
    unused_blocks_.push_back(number);
    std::erase(roomy_, number);
  }
}

// Free pages of blocks that are in use.
void Arena::give_back_pages() {
  for (Block& block : blocks_) {
    uint32_t pages = block.free & block.touched;
    if (pages == 0) continue;
    block.touched &= ~pages;
    while (pages != 0) {
      const int from = std::countr_zero(pages);
      const int count = std::countr_one(pages >> from);
      madvise(block.base + static_cast<std::size_t>(from) * kPageSize,
              static_cast<std::size_t>(count) * kPageSize, MADV_DONTNEED);
      if (from + count == kBlockPages) break;
      pages &= ~uint32_t{0} << (from + count);
    }
  }
  free_touched_ = 0;
}

void Arena::link(uint32_t number) {
  Page& page = pages_[number];
  uint32_t& head = partial_[class_of(page.slot_size)];
  page.previous = kNoPage;
  page.next = head;
  if (head != kNoPage) pages_[head].previous = number;
  head = number;
}

void Arena::unlink(uint32_t number) {
  Page& page = pages_[number];
  if (page.previous != kNoPage)
    pages_[page.previous].next = page.next;
  else
    partial_[class_of(page.slot_size)] = page.next;
  if (page.next != kNoPage) pages_[page.next].previous = page.previous;
  page.previous = page.next = kNoPage;
}

}  // namespace bgp
