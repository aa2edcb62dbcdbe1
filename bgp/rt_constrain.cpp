// SPDX-License-Identifier: GPL-2.0-or-later
// RFC 4684 sections 4 (NLRI) and 6 (which routes a peer is sent). A route target is any extended
// community with sub-type 2 of the types that are transitive: two-octet AS, IPv4 address and
// four-octet AS (RFC 4360, 5668), and ES-Import (RFC 7432 section 7.6), which is made to be used
// here as well.
#include "bgp/rt_constrain.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace bgp {
namespace {

constexpr uint8_t kOriginBits = 32;
constexpr uint8_t kMaxBits = 96;

NlriStatus next_membership(net::ByteReader& in, NlriItem& out) {
  const auto from = in.rest();
  const uint8_t bits = in.u8();
  if (bits > kMaxBits) return NlriStatus::Framing;
  const std::size_t size = (bits + 7u) / 8u;
  const auto value = in.bytes(size);
  if (!in.ok()) return NlriStatus::Framing;
  out.bytes = from.first(size + 1);
  out.type = 0;
  if (bits != 0 && bits < kOriginBits) return NlriStatus::Invalid;
  out.key_storage[0] = bits;
  std::ranges::copy(value, out.key_storage + 1);
  // What follows the last bit says nothing.
  if (bits % 8 != 0)
    out.key_storage[size] = static_cast<uint8_t>(out.key_storage[size] & (0xff00 >> (bits % 8)));
  out.key_size = static_cast<uint8_t>(size + 1);
  return NlriStatus::Ok;
}

uint64_t number(const ExtendedCommunity& community) {
  uint64_t value = 0;
  for (const uint8_t octet : community) value = value << 8 | octet;
  return value;
}

bool is_route_target(const ExtendedCommunity& community) {
  constexpr uint8_t kRouteTarget = 0x02, kEvpn = 0x06;
  return community[1] == kRouteTarget && (community[0] <= 0x02 || community[0] == kEvpn);
}

class TargetFilter : public SendFilter {
 public:
  void add(std::span<const uint8_t> key) {
    const uint8_t bits = key[0];
    if (bits <= kOriginBits) {  // no bit of the target itself is asked for
      everything_ = true;
      return;
    }
    Range range;
    for (std::size_t i = 5; i < key.size(); ++i)
      range.first |= static_cast<uint64_t>(key[i]) << (8 * (12 - i));
    const unsigned open = kMaxBits - bits;
    range.last = range.first | (open == 0 ? 0 : (uint64_t{1} << open) - 1);
    ranges_.push_back(range);
  }
  // Prefixes either contain each other or are apart: only the outer ones stay.
  void finish() {
    std::ranges::sort(ranges_, [](const Range& a, const Range& b) {
      return a.first != b.first ? a.first < b.first : a.last > b.last;
    });
    std::vector<Range> outer;
    for (const Range& range : ranges_)
      if (outer.empty() || range.last > outer.back().last) outer.push_back(range);
    ranges_ = std::move(outer);
  }

  bool wants(const Attributes& attributes) const override {
    return everything_ ||
           std::ranges::any_of(attributes.extended_communities, [this](const auto& community) {
             return is_route_target(community) && contains(number(community));
           });
  }

 private:
  struct Range {
    uint64_t first = 0, last = 0;
  };

  bool contains(uint64_t target) const {
    const auto above = std::ranges::upper_bound(ranges_, target, {}, &Range::first);
    return above != ranges_.begin() && target <= std::prev(above)->last;
  }

  bool everything_ = false;
  std::vector<Range> ranges_;
};

}  // namespace

Family route_target_family() { return {kRouteTargetConstrain, "RT-constrain", next_membership}; }

net::Bytes membership_nlri(uint32_t origin_as, const ExtendedCommunity& target) {
  net::ByteWriter out;
  out.u8(kMaxBits);
  out.u32(origin_as);
  out.bytes(target);
  return out.take();
}

net::Bytes default_membership_nlri() { return {0}; }

NlriItem membership_item(const net::Bytes& nlri) {
  NlriItem item;
  net::ByteReader in(nlri);
  (void)next_membership(in, item);
  return item;
}

bool is_default_membership(std::span<const uint8_t> key) { return key.size() == 1; }

void TargetMemberships::withdraw(std::span<const uint8_t> key) {
  members_.erase(net::Bytes(key.begin(), key.end()));
}

void TargetMemberships::mark_stale() {
  for (auto& [key, marks] : members_) marks = {.stale = true};
}

void TargetMemberships::remove_stale() {
  std::erase_if(members_, [](const auto& member) { return member.second.stale; });
}

void TargetMemberships::begin_refresh() {
  for (auto& [key, marks] : members_) marks.not_refreshed = true;
}

void TargetMemberships::end_refresh() {
  std::erase_if(members_, [](const auto& member) { return member.second.not_refreshed; });
}

SendFilterPtr TargetMemberships::filter() const {
  auto filter = std::make_shared<TargetFilter>();
  for (const auto& [key, marks] : members_) filter->add(key);
  filter->finish();
  return filter;
}

}  // namespace bgp
