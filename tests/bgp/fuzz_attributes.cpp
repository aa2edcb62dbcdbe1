// SPDX-License-Identifier: GPL-2.0-or-later
// Attribute sets built from the input, not decoded from it, so that every combination is reached:
// encode and decode give the same set, and the store, fed with interning, retaining and releasing
// in any order, gives back what was put in and ends up empty.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "bgp/attribute_store.h"
#include "bgp/message.h"
#include "evpn/nlri.h"
#include "fuzz_support.h"

using namespace bgp;
using namespace bgp::fuzz;

namespace {

template <class T, class Make>
std::vector<T> list(net::ByteReader& in, Make make) {
  std::vector<T> out;
  // Mostly short; now and then longer than a segment of AS_PATH or a length of one octet holds.
  const uint8_t count = in.u8();
  for (int i = count < 250 ? count % 5 : count + 50; i > 0; --i) out.push_back(make());
  return out;
}

constexpr uint8_t kTaken[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18, 22, 32};

Attributes make_attributes(net::ByteReader& in) {
  const uint16_t present = in.u16();
  const auto has = [&](int bit) { return (present >> bit & 1) != 0; };
  const auto u32 = [&] { return in.u32(); };
  Attributes a;
  a.origin = static_cast<Origin>(in.u8() % 3);
  std::array<uint8_t, 16> v6{0x20, 0x01};
  v6[15] = in.u8();
  a.next_hop = has(0) ? net::IpAddress::v6(v6) : net::IpAddress::v4(0xc0000200u | v6[15]);
  if (has(1))
    a.as_path = list<AsPathSegment>(in, [&] {
      AsPathSegment segment;
      segment.type = static_cast<AsPathSegment::Type>(1 + in.u8() % 4);
      segment.as_numbers = list<uint32_t>(in, [&] { return std::max(1u, in.u32()); });
      if (segment.as_numbers.empty()) segment.as_numbers = {23456};
      // Only a sequence may be cut in two and still say the same.
      if (segment.type != AsPathSegment::Sequence && segment.as_numbers.size() > 255)
        segment.as_numbers.resize(255);
      return segment;
    });
  if (has(2)) a.multi_exit_disc = in.u32();
  if (has(3)) a.local_pref = in.u32();
  a.atomic_aggregate = has(4);
  if (has(5)) a.aggregator = Aggregator{std::max(1u, in.u32()), in.u32()};
  if (has(6)) a.communities = list<uint32_t>(in, u32);
  if (has(7))
    a.extended_communities = list<ExtendedCommunity>(in, [&] {
      ExtendedCommunity community{};
      std::ranges::copy(in.bytes(8), community.begin());
      return community;
    });
  if (has(8))
    a.large_communities = list<LargeCommunity>(in, [&] {
      const uint32_t admin = in.u32();
      const uint32_t first = in.u32();
      return LargeCommunity{admin, first, in.u32()};
    });
  if (has(9)) a.originator_id = in.u32();
  if (has(10)) a.cluster_list = list<uint32_t>(in, u32);
  if (has(11)) {
    auto value = list<uint8_t>(in, [&] { return in.u8(); });
    value.resize(value.size() + 5);
    if (value[1] == 6) value.resize(value.size() > 9 ? 21 : 9);  // ingress replication
    a.pmsi_tunnel = std::move(value);
  }
  if (has(12)) {
    a.unknown = list<UnknownAttribute>(in, [&] {
      UnknownAttribute unknown{kFlagOptional | kFlagTransitive | kFlagPartial, in.u8(), {}};
      if (std::ranges::find(kTaken, unknown.type) != std::end(kTaken)) unknown.type = 200;
      unknown.value = list<uint8_t>(in, [&] { return in.u8(); });
      return unknown;
    });
    std::ranges::sort(a.unknown, {}, &UnknownAttribute::type);
    const auto gone = std::ranges::unique(a.unknown, {}, &UnknownAttribute::type);
    a.unknown.erase(gone.begin(), gone.end());
  }
  if (has(13))
    a.partial =
        static_cast<uint8_t>((a.aggregator ? 1 : 0) | (a.communities.empty() ? 0 : 2) |
                             (a.extended_communities.empty() ? 0 : 4) | (a.pmsi_tunnel ? 8 : 0) |
                             (a.large_communities.empty() ? 0 : 16));
  return a;
}

void over_the_wire(const Attributes& attributes) {
  static const net::Bytes nlri =
      evpn::encode(evpn::InclusiveMulticast{{}, 0, net::IpAddress::v4(0x0a000001)});
  const std::span<const uint8_t> nlris[] = {nlri};
  const PackedUpdate packed =
      encode_reach(kL2vpnEvpn, attributes.next_hop, encode_attributes(attributes, {true}), nlris,
                   kMaxExtendedMessage);
  require(packed.taken == 1);
  const auto update =
      decode_update(std::span(packed.message).subspan(kHeaderSize), evpn::family(), {true, true});
  require(update.has_value() && update->handling == ErrorHandling::None);
  require(with_flat_path(*update->attributes) == with_flat_path(attributes));
}

// The same rank among the paths, whatever the record's form.
void check_digest(const AttributeDigest& digest, const Attributes& attributes) {
  require(digest.origin == attributes.origin);
  require(digest.as_path_length == as_path_length(attributes));
  require(digest.local_pref == attributes.local_pref.value_or(0));
  require(digest.multi_exit_disc == attributes.multi_exit_disc.value_or(0));
  require(digest.has_local_pref() == attributes.local_pref.has_value());
  require(digest.has_originator_id() == attributes.originator_id.has_value());
  require(digest.cluster_list_length == attributes.cluster_list.size());
  require(((digest.flags & AttributeDigest::kOwnAs) != 0) == as_path_contains(attributes, 65000));
}

struct Held {
  Attributes attributes;
  unsigned references = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  net::ByteReader in({data, size});
  PagePool pool;
  AttributeStore store(pool, {.local_as = 65000, .router_id = 1, .cluster_id = 2, .hash_seed = 3});
  std::map<AttributeId, Held> held;
  for (int turns = 0; !in.done() && turns < 64; ++turns) {
    const uint8_t what = in.u8();
    if ((what & 3) < 2 || held.empty()) {
      const Attributes attributes = make_attributes(in);
      over_the_wire(attributes);
      const AttributeId id = store.intern(attributes);
      Held& entry = held[id];
      require(entry.references == 0 || entry.attributes == attributes);
      entry.attributes = attributes;
      ++entry.references;
      check_digest(store.digest(id), attributes);
    } else {
      const auto entry = std::next(held.begin(), what / 4 % static_cast<int>(held.size()));
      if ((what & 3) == 2) {
        store.retain(entry->first);
        ++entry->second.references;
      } else {
        store.release(entry->first);
        if (--entry->second.references == 0) held.erase(entry);
      }
    }
    require(store.size() == held.size());
  }
  for (const auto& [id, entry] : held) {
    require(store.unpack(id) == entry.attributes);
    for (unsigned i = 0; i < entry.references; ++i) store.release(id);
  }
  require(store.size() == 0);
  return 0;
}
