// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/route_table.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "net/hash.h"

namespace bgp {

uint32_t RouteTable::hash(std::span<const uint8_t> key) const {
  return static_cast<uint32_t>(net::hash_bytes(key, seed_) >> 16);
}

RouteIndex RouteTable::find(std::span<const uint8_t> key, uint32_t hash) const {
  return index_.find(hash,
                     [&](RouteIndex route) { return has_key(path(routes_[route].first), key); });
}

RouteIndex RouteTable::add(uint32_t hash) {
  const RouteIndex index = routes_.take();
  index_.insert(hash, index);
  return index;
}

void RouteTable::remove(RouteIndex index) {
  const PathRef last = routes_[index].first;
  index_.erase(hash_of(path(last)), index);
  free_path(last);
  routes_.give(index);
}

PathRef RouteTable::new_path(RouteIndex route, std::span<const uint8_t> nlri,
                             std::span<const uint8_t> key) {
  const uint8_t shape = shape_for(nlri, key);
  const PathRef ref = arena_.allocate(record_size(shape, nlri, key));
  Path* made = new (arena_.at(ref)) Path;
  made->route = route;
  write(*made, shape, nlri, key);
  return ref;
}

bool RouteTable::rewrite(PathRef ref, std::span<const uint8_t> nlri, std::span<const uint8_t> key) {
  const uint8_t shape = shape_for(nlri, key);
  if (!arena_.fits(ref, record_size(shape, nlri, key))) return false;
  write(path(ref), shape, nlri, key);
  return true;
}

void RouteTable::write(Path& path, uint8_t shape, std::span<const uint8_t> nlri,
                       std::span<const uint8_t> key) {
  path.shape = shape;
  path.nlri_size = static_cast<uint16_t>(nlri.size());
  auto* out = reinterpret_cast<uint8_t*>(&path + 1);
  std::memmove(out, nlri.data(), nlri.size());
  if (shape != kExplicitKey) return;
  out[nlri.size()] = static_cast<uint8_t>(key.size());
  if (!key.empty()) std::memcpy(out + nlri.size() + 1, key.data(), key.size());
}

bool RouteTable::matches(const Shape& shape, std::span<const uint8_t> nlri,
                         std::span<const uint8_t> key) {
  if (shape.nlri_size != nlri.size() || shape.key_size != key.size()) return false;
  const uint8_t* want = key.data();
  for (std::size_t i = 0; i < shape.runs; ++i) {
    const Shape::Run& run = shape.run[i];
    if (std::memcmp(nlri.data() + run.offset, want, run.size) != 0) return false;
    want += run.size;
  }
  return true;
}

// Finds the rest of the key in the rest of the NLRI, longer runs first. `budget` bounds the search.
bool RouteTable::derive(std::span<const uint8_t> nlri, std::span<const uint8_t> key,
                        std::size_t from, Shape& shape, int& budget) {
  if (key.empty()) return true;
  if (shape.runs == shape.run.size()) return false;
  std::vector<Shape::Run> found;
  for (std::size_t at = from; at < nlri.size(); ++at) {
    const auto rest = nlri.subspan(at);
    const auto same = std::mismatch(rest.begin(), rest.end(), key.begin(), key.end()).second;
    if (same != key.begin())
      found.push_back({static_cast<uint16_t>(at), static_cast<uint8_t>(same - key.begin())});
  }
  std::ranges::sort(found, {},
                    [](const Shape::Run& run) { return std::pair(-run.size, run.offset); });
  for (const Shape::Run& run : found) {
    if (--budget < 0) return false;
    shape.run[shape.runs++] = run;
    if (derive(nlri, key.subspan(run.size), std::size_t{run.offset} + run.size, shape, budget))
      return true;
    --shape.runs;
  }
  return false;
}

uint8_t RouteTable::shape_for(std::span<const uint8_t> nlri, std::span<const uint8_t> key) {
  const uint8_t type = nlri.empty() ? uint8_t{0} : nlri[0];
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    if (shapes_[i].type == type && matches(shapes_[i], nlri, key)) return static_cast<uint8_t>(i);
  if (shapes_.size() == kMaxShapes || failures_[type] == kMaxFailures) return kExplicitKey;
  Shape shape{type, static_cast<uint16_t>(nlri.size()), 0, static_cast<uint8_t>(key.size()), {}};
  int budget = 500;
  if (!derive(nlri, key, 0, shape, budget)) {
    ++failures_[type];
    return kExplicitKey;
  }
  shapes_.push_back(shape);
  return static_cast<uint8_t>(shapes_.size() - 1);
}

bool RouteTable::has_key(const Path& path, std::span<const uint8_t> key) const {
  if (path.shape != kExplicitKey) return matches(shapes_[path.shape], path.nlri(), key);
  const uint8_t* stored = path.nlri().data() + path.nlri_size;
  return std::ranges::equal(key, std::span(stored + 1, stored[0]));
}

uint32_t RouteTable::hash_of(const Path& path) const {
  std::array<uint8_t, 255> key;
  std::size_t size = 0;
  if (path.shape == kExplicitKey) {
    const uint8_t* stored = path.nlri().data() + path.nlri_size;
    return hash({stored + 1, stored[0]});
  }
  const Shape& shape = shapes_[path.shape];
  for (std::size_t i = 0; i < shape.runs; ++i) {
    std::memcpy(key.data() + size, path.nlri().data() + shape.run[i].offset, shape.run[i].size);
    size += shape.run[i].size;
  }
  return hash(std::span(key).first(size));
}

}  // namespace bgp
