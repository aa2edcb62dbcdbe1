// SPDX-License-Identifier: GPL-2.0-or-later
// A hash index from a 32-bit hash (seeded by the caller) to a 32-bit number; the keys themselves
// are kept elsewhere. Open addressing in 256 segments that grow and shrink one by one: with a
// million entries no insertion moves more than some thousand of them, and memory follows the need.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bgp {

class HashIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // The number under `hash` for which same(number), or kNone.
  template <class Same>
  [[nodiscard]] uint32_t find(uint32_t hash, Same&& same) const {
    const Segment& segment = segments_[hash >> 24];
    const std::size_t size = segment.slots.size();
    if (size == 0) return kNone;
    for (std::size_t at = home(hash, size); segment.slots[at].number != kNone;) {
      if (segment.slots[at].hash == hash && same(segment.slots[at].number))
        return segment.slots[at].number;
      if (++at == size) at = 0;
    }
    return kNone;
  }

  // Hints that find() or insert() of `hash` follows soon.
  void prefetch(uint32_t hash) const {
    const auto& slots = segments_[hash >> 24].slots;
    if (!slots.empty()) __builtin_prefetch(slots.data() + home(hash, slots.size()));
  }
  // The first number under `hash`, whatever its key: what find() will most likely look at.
  [[nodiscard]] uint32_t guess(uint32_t hash) const {
    return find(hash, [](uint32_t) { return true; });
  }

  void insert(uint32_t hash, uint32_t number) {
    Segment& segment = segments_[hash >> 24];
    if ((segment.used + 1) * 20 > segment.slots.size() * 17)
      resize(segment, segment.slots.size() * 3 / 2 + 8);
    place(segment.slots, {hash, number});
    ++segment.used;
  }

  // `number` must be there under `hash`.
  void erase(uint32_t hash, uint32_t number) {
    Segment& segment = segments_[hash >> 24];
    auto& slots = segment.slots;
    std::size_t hole = home(hash, slots.size());
    while (slots[hole].number != number) hole = next(hole, slots.size());
    // What was pushed past the hole moves back, so that nothing marks the place.
    for (std::size_t at = next(hole, slots.size()); slots[at].number != kNone;
         at = next(at, slots.size())) {
      const std::size_t want = home(slots[at].hash, slots.size());
      const bool stays = hole <= at ? hole < want && want <= at : hole < want || want <= at;
      if (stays) continue;
      slots[hole] = slots[at];
      hole = at;
    }
    slots[hole] = {};
    --segment.used;
    if (slots.size() > 16 && segment.used * 4 < slots.size())
      resize(segment, segment.used * 3 / 2 + 8);
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kNone;
  };
  struct Segment {
    std::vector<Slot> slots;
    std::size_t used = 0;
  };

  static std::size_t home(uint32_t hash, std::size_t size) {
    return static_cast<std::size_t>((uint64_t{hash & 0xffffff} * size) >> 24);
  }
  static std::size_t next(std::size_t at, std::size_t size) { return at + 1 == size ? 0 : at + 1; }
  static void place(std::vector<Slot>& slots, Slot slot) {
    std::size_t at = home(slot.hash, slots.size());
    while (slots[at].number != kNone) at = next(at, slots.size());
    slots[at] = slot;
  }
  static void resize(Segment& segment, std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(segment.slots);
    for (const Slot& slot : old)
      if (slot.number != kNone) place(segment.slots, slot);
  }

  std::array<Segment, 256> segments_;
};

}  // namespace bgp
