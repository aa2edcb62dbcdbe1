// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace bgp {

Arena::~Arena() {
  for (const Page& page : pages_)
    if (page.base != nullptr && page.block == kNoBlock)
      munmap(page.base, page_bytes(page));
    else if (page.base != nullptr)
      pool_.give(page.block, page.base);
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

}  // namespace

uint32_t Arena::new_page(std::size_t slot_size) {
  Page page;
  page.slot_size = static_cast<uint32_t>(slot_size);
  page.base = slot_size > kMaxSlot ? map(page_bytes(page)) : pool_.take(page.block);
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
    pool_.give(page.block, page.base);
  page = Page{};
  unused_numbers_.push_back(number);
}

void Arena::drop_empty_pages() {
  for (uint32_t head : partial_) {
    while (head != kNoPage) {
      const uint32_t number = head;
      head = pages_[number].next;
      if (pages_[number].used != 0) continue;
      unlink(number);
      drop_page(number);
    }
  }
  if (mapped_ != 0) return;
  pages_ = {};
  unused_numbers_ = {};
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
