// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace bgp {
namespace {

uint8_t* map_memory(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<uint8_t*>(memory);
}

// At a multiple of its size, so that it can be one huge page.
uint8_t* map_aligned(std::size_t size) {
  uint8_t* memory = map_memory(2 * size);
  const std::size_t skip = (size - reinterpret_cast<std::uintptr_t>(memory) % size) % size;
  if (skip != 0) munmap(memory, skip);
  munmap(memory + skip + size, size - skip);
  return memory + skip;
}

}  // namespace

PagePool::~PagePool() {
  for (const Block& block : blocks_)
    if (block.base != nullptr) munmap(block.base, bytes(block));
}

std::size_t PagePool::bytes(const Block& block) {
  return static_cast<std::size_t>(std::popcount(block.pages)) * kPageSize;
}

void PagePool::map(uint32_t number) {
  Block& block = blocks_[number];
  if (used_ == 0) {
    block.pages = (uint32_t{1} << kSmallBlock) - 1;
    block.base = map_memory(bytes(block));
  } else {
    block.pages = block.touched = ~uint32_t{0};
    block.base = map_aligned(bytes(block));
    madvise(block.base, bytes(block), MADV_HUGEPAGE);
    spare_ += kBlockPages;
  }
  block.free = block.pages;
  roomy_.push_back(number);
}

uint8_t* PagePool::take(uint32_t& number) {
  while (!roomy_.empty() && blocks_[roomy_.back()].free == 0) roomy_.pop_back();
  if (roomy_.empty()) {
    number = static_cast<uint32_t>(blocks_.size());
    if (unused_blocks_.empty()) {
      blocks_.emplace_back();
    } else {
      number = unused_blocks_.back();
      unused_blocks_.pop_back();
    }
    map(number);
  }
  number = roomy_.back();
  Block& block = blocks_[number];
  // A page that was used before is not faulted in anew.
  const uint32_t known = block.free & block.touched;
  const auto page = static_cast<uint32_t>(std::countr_zero(known != 0 ? known : block.free));
  const uint32_t bit = uint32_t{1} << page;
  if (known != 0) low_ = std::min(low_, --spare_);
  block.free &= ~bit;
  block.touched |= bit;
  ++used_;
  return block.base + page * kPageSize;
}

void PagePool::give(uint32_t number, const uint8_t* memory) {
  Block& block = blocks_[number];
  if (block.free == 0) roomy_.push_back(number);
  block.free |= uint32_t{1} << (static_cast<std::size_t>(memory - block.base) / kPageSize);
  ++spare_;
  --used_;
}

void PagePool::unmap(uint32_t number) {
  Block& block = blocks_[number];
  munmap(block.base, bytes(block));
  spare_ -= static_cast<std::size_t>(std::popcount(block.touched));
  block = {};
  unused_blocks_.push_back(number);
}

bool PagePool::give_back(std::size_t calls) {
  const std::size_t kept = kKeptPages + used_ / 4;
  std::size_t surplus = low_ > kept ? low_ : 0;
  give_back_blocks(surplus, calls);
  give_back_pages(surplus, calls);
  const bool more = surplus != 0 && calls == 0;
  low_ = more ? std::min(surplus, spare_) : spare_;
  return more;
}

// Blocks in which nothing is taken.
void PagePool::give_back_blocks(std::size_t& pages, std::size_t& calls) {
  for (std::size_t i = 0; i < roomy_.size() && pages != 0 && calls != 0;) {
    const Block& block = blocks_[roomy_[i]];
    if (block.free != block.pages) {
      ++i;
      continue;
    }
    pages -= std::min(pages, static_cast<std::size_t>(std::popcount(block.touched)));
    --calls;
    unmap(roomy_[i]);
    roomy_[i] = roomy_.back();
    roomy_.pop_back();
  }
}

// Free pages of blocks that are in use.
void PagePool::give_back_pages(std::size_t& wanted, std::size_t& calls) {
  for (Block& block : blocks_) {
    uint32_t pages = block.free & block.touched;
    if (block.free == block.pages) continue;
    while (pages != 0 && wanted != 0 && calls != 0) {
      const auto from = static_cast<uint32_t>(std::countr_zero(pages));
      const auto count = static_cast<uint32_t>(std::countr_one(pages >> from));
      const uint32_t run = (count == kBlockPages ? ~uint32_t{0} : (uint32_t{1} << count) - 1)
                           << from;
      madvise(block.base + from * kPageSize, count * kPageSize, MADV_DONTNEED);
      block.touched &= ~run;
      pages &= ~run;
      spare_ -= count;
      wanted -= std::min<std::size_t>(wanted, count);
      --calls;
    }
  }
}

}  // namespace bgp
