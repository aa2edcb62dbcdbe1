// SPDX-License-Identifier: GPL-2.0-or-later
// Routes by key and their paths, laid out for a million of them: a route is 8 octets, a path 28 and
// its NLRI. The key is not stored: it is cut out of the NLRI again by the shape of the path.
//
// A route whose last path was withdrawn stays, with that path as its tombstone (for its NLRI, which
// a withdrawal has to carry), until nothing pins it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bgp/arena.h"
#include "bgp/attribute_store.h"
#include "bgp/hash_index.h"
#include "bgp/rib.h"
#include "bgp/route_array.h"

namespace bgp {

inline constexpr unsigned kEraBits = 3, kEras = 1 << kEraBits;  // see is_stale()

struct Path {
  PathRef next = kNoPath;           // of the same route, best first
  PathRef peer_previous = kNoPath;  // Adj-RIB-In of the peer
  PathRef peer_next = kNoPath;
  RouteIndex route = kNoRoute;
  AttributeId attributes = Arena::kNull;  // kNull: this is a tombstone
  uint16_t peer = 0;                      // slot
  uint16_t nlri_size = 0;
  uint8_t shape = 0;
  BestPathReason reason = BestPathReason::OnlyPath;
  Rejected rejected = Rejected::None;
  uint8_t era : kEraBits = 0;    // Peer::era when it was last announced
  uint8_t round : kEraBits = 0;  // Peer::round then
  bool long_lived : 1 = false;   // stale beyond the restart time, RFC 9494
  bool flagged : 1 = false;      // Verdict::Flag

  bool is_tombstone() const { return attributes == Arena::kNull; }
  std::span<const uint8_t> nlri() const {
    return {reinterpret_cast<const uint8_t*>(this + 1), nlri_size};
  }
};
static_assert(sizeof(Path) == 28);

class RouteTable {
 public:
  RouteTable(PagePool& pool, uint64_t seed) : seed_(seed), arena_(pool), routes_(pool) {}

  [[nodiscard]] uint32_t hash(std::span<const uint8_t> key) const;
  [[nodiscard]] RouteIndex find(std::span<const uint8_t> key, uint32_t hash) const;
  // Three steps that bring what find() will touch into the cache, to be taken for many keys each
  // before the next: the index, the route and its first path.
  void prefetch_index(uint32_t hash) const { index_.prefetch(hash); }
  [[nodiscard]] RouteIndex prefetch_route(uint32_t hash) const {
    const RouteIndex route = index_.guess(hash);
    if (route != kNoRoute) routes_.prefetch(route);
    return route;
  }
  void prefetch_path(RouteIndex route) const {
    if (route != kNoRoute && routes_[route].first != kNoPath) arena_.prefetch(routes_[route].first);
  }
  void prefetch(PathRef path) const { arena_.prefetch(path); }
  // A new route; the caller puts its first path in at once.
  [[nodiscard]] RouteIndex add(uint32_t hash);
  // A route without a path, but for the tombstone, goes.
  void remove(RouteIndex route);

  // A path of its own, in no list yet.
  [[nodiscard]] PathRef new_path(RouteIndex route, std::span<const uint8_t> nlri,
                                 std::span<const uint8_t> key);
  // The same path with other NLRI bytes of the same key, if they fit its place.
  [[nodiscard]] bool rewrite(PathRef path, std::span<const uint8_t> nlri,
                             std::span<const uint8_t> key);
  void free_path(PathRef path) { arena_.release(path); }

  Route& route(RouteIndex index) { return routes_[index]; }
  const Route& route(RouteIndex index) const { return routes_[index]; }
  Path& path(PathRef ref) { return *reinterpret_cast<Path*>(arena_.at(ref)); }
  const Path& path(PathRef ref) const { return *reinterpret_cast<const Path*>(arena_.at(ref)); }
  // A path that was announced and is not withdrawn: the route counts.
  [[nodiscard]] bool is_live(RouteIndex index) const {
    const PathRef first = routes_[index].first;
    return first != kNoPath && !path(first).is_tombstone();
  }
  // The best usable path, or kNoPath.
  [[nodiscard]] PathRef best(RouteIndex index) const {
    const PathRef first = routes_[index].first;
    if (first == kNoPath) return kNoPath;
    const Path& p = path(first);
    return p.is_tombstone() || p.rejected != Rejected::None ? kNoPath : first;
  }
  // To be called when there is time.
  void tidy() { arena_.drop_empty_pages(); }
  [[nodiscard]] RouteIndex end() const { return routes_.end(); }  // above every index in use
  [[nodiscard]] std::size_t mapped_bytes() const {
    return arena_.mapped_bytes() + routes_.mapped_bytes();
  }

 private:
  // Which octets of an NLRI are its key, in order. NLRIs of one route type and size usually share
  // one shape; an NLRI that has none keeps its key behind it.
  struct Shape {
    uint8_t type = 0;
    uint16_t nlri_size = 0;
    uint8_t runs = 0;
    uint8_t key_size = 0;
    struct Run {
      uint16_t offset = 0;
      uint8_t size = 0;
    };
    std::array<Run, 4> run{};
  };
  static constexpr uint8_t kExplicitKey = 0xff;
  static constexpr std::size_t kMaxShapes = 64;
  static constexpr uint8_t kMaxFailures = 16;  // of a route type, then its keys are kept

  static bool matches(const Shape& shape, std::span<const uint8_t> nlri,
                      std::span<const uint8_t> key);
  static bool derive(std::span<const uint8_t> nlri, std::span<const uint8_t> key, std::size_t from,
                     Shape& shape, int& budget);
  [[nodiscard]] uint8_t shape_for(std::span<const uint8_t> nlri, std::span<const uint8_t> key);
  static std::size_t record_size(uint8_t shape, std::span<const uint8_t> nlri,
                                 std::span<const uint8_t> key) {
    return sizeof(Path) + nlri.size() + (shape == kExplicitKey ? 1 + key.size() : 0);
  }
  static void write(Path& path, uint8_t shape, std::span<const uint8_t> nlri,
                    std::span<const uint8_t> key);
  [[nodiscard]] bool has_key(const Path& path, std::span<const uint8_t> key) const;
  [[nodiscard]] uint32_t hash_of(const Path& path) const;

  uint64_t seed_;
  Arena arena_;
  RouteArray routes_;
  HashIndex index_;
  std::vector<Shape> shapes_;
  std::array<uint8_t, 256> failures_{};
};

}  // namespace bgp
