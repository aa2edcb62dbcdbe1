// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/attribute_store.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "net/hash.h"

namespace bgp {
namespace {

enum Present : uint16_t {
  kNextHopV6 = 1,
  kMed = 2,
  kLocalPref = 4,
  kAtomicAggregate = 8,
  kAggregator = 16,
  kOriginatorId = 32,
  kPmsiTunnel = 64,
  kAsPath = 128,  // the rest: not empty
  kCommunities = 256,
  kExtendedCommunities = 512,
  kLargeCommunities = 1024,
  kClusterList = 2048,
  kUnknown = 4096,
  kPartial = 8192,
};

constexpr uint32_t kNoExportCommunity = 0xffffff01, kNoAdvertiseCommunity = 0xffffff02,
                   kNoExportSubconfedCommunity = 0xffffff03, kNoLlgrCommunity = 0xffff0007;

// Octets in host order: a record never leaves the process.
class Packer {
 public:
  explicit Packer(net::Bytes& out) : out_(out) {}
  void raw(const void* data, std::size_t size) {
    const auto* octets = static_cast<const uint8_t*>(data);
    out_.insert(out_.end(), octets, octets + size);
  }
  void count(std::size_t n) {  // seven bits an octet, least significant first
    for (; n >= 0x80; n >>= 7) out_.push_back(static_cast<uint8_t>(n | 0x80));
    out_.push_back(static_cast<uint8_t>(n));
  }
  template <class T>
  void list(const std::vector<T>& items) {
    static_assert(std::is_trivially_copyable_v<T>);
    count(items.size());
    raw(items.data(), items.size() * sizeof(T));
  }

 private:
  net::Bytes& out_;
};

class Unpacker {
 public:
  explicit Unpacker(const uint8_t* in) : in_(in) {}
  void raw(void* data, std::size_t size) {
    if (size != 0) std::memcpy(data, in_, size);
    in_ += size;
  }
  uint8_t octet() { return *in_++; }
  std::size_t count() {
    std::size_t n = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t octet = *in_++;
      n |= std::size_t{octet & 0x7fu} << shift;
      if (octet < 0x80) return n;
    }
  }
  template <class T>
  void list(std::vector<T>& items) {
    items.resize(count());
    raw(items.data(), items.size() * sizeof(T));
  }

 private:
  const uint8_t* in_;
};

uint16_t presence(const Attributes& a) {
  uint16_t bits = 0;
  const auto set = [&](bool there, Present bit) {
    if (there) bits = static_cast<uint16_t>(bits | bit);
  };
  set(a.next_hop.is_v6(), kNextHopV6);
  set(a.multi_exit_disc.has_value(), kMed);
  set(a.local_pref.has_value(), kLocalPref);
  set(a.atomic_aggregate, kAtomicAggregate);
  set(a.aggregator.has_value(), kAggregator);
  set(a.originator_id.has_value(), kOriginatorId);
  set(a.pmsi_tunnel.has_value(), kPmsiTunnel);
  set(!a.as_path.empty(), kAsPath);
  set(!a.communities.empty(), kCommunities);
  set(!a.extended_communities.empty(), kExtendedCommunities);
  set(!a.large_communities.empty(), kLargeCommunities);
  set(!a.cluster_list.empty(), kClusterList);
  set(!a.unknown.empty(), kUnknown);
  set(a.partial != 0, kPartial);
  return bits;
}

uint16_t clamp16(std::size_t n) { return static_cast<uint16_t>(std::min<std::size_t>(n, 0xffff)); }

uint8_t flags_of(const Attributes& a, const AttributeStore::Identity& identity) {
  uint8_t flags = 0;
  const auto set = [&](bool there, AttributeDigest::Flag flag) {
    if (there) flags = static_cast<uint8_t>(flags | flag);
  };
  const auto has_community = [&](uint32_t community) {
    return std::ranges::find(a.communities, community) != a.communities.end();
  };
  set(as_path_contains(a, identity.local_as), AttributeDigest::kOwnAs);
  set(a.originator_id == identity.router_id, AttributeDigest::kOwnOriginator);
  set(std::ranges::find(a.cluster_list, identity.cluster_id) != a.cluster_list.end(),
      AttributeDigest::kOwnCluster);
  set(has_community(kNoExportCommunity) || has_community(kNoExportSubconfedCommunity),
      AttributeDigest::kNoExport);
  set(has_community(kNoAdvertiseCommunity), AttributeDigest::kNoAdvertise);
  set(has_community(kLlgrStaleCommunity), AttributeDigest::kLlgrStale);
  set(has_community(kNoLlgrCommunity), AttributeDigest::kNoLlgr);
  return flags;
}

uint32_t neighbor_as(const Attributes& a) {
  if (a.as_path.empty() || a.as_path[0].type != AsPathSegment::Sequence ||
      a.as_path[0].as_numbers.empty())
    return 0;
  return a.as_path[0].as_numbers[0];
}

// What equality and hash cover: all but references and hash.
constexpr std::size_t kContent = 2 * sizeof(uint32_t);

}  // namespace

static_assert(std::is_trivially_copyable_v<AttributeDigest> && sizeof(AttributeDigest) == 36);

bool AttributeDigest::has_local_pref() const { return (present & kLocalPref) != 0; }
bool AttributeDigest::has_originator_id() const { return (present & kOriginatorId) != 0; }

void AttributeStore::pack(const Attributes& a) {
  AttributeDigest head;
  head.local_pref = a.local_pref.value_or(0);
  head.multi_exit_disc = a.multi_exit_disc.value_or(0);
  head.originator_id = a.originator_id.value_or(0);
  head.neighbor_as = neighbor_as(a);
  head.as_path_length = clamp16(as_path_length(a));
  head.cluster_list_length = clamp16(a.cluster_list.size());
  head.present = presence(a);
  head.origin = a.origin;
  head.flags = flags_of(a, identity_);

  scratch_.clear();
  Packer out(scratch_);
  out.raw(&head, sizeof head);
  out.raw(a.next_hop.bytes().data(), a.next_hop.bytes().size());
  if (!a.as_path.empty()) {
    out.count(a.as_path.size());
    for (const AsPathSegment& segment : a.as_path) {
      scratch_.push_back(segment.type);
      out.list(segment.as_numbers);
    }
  }
  if (a.aggregator) {
    out.raw(&a.aggregator->as_number, 4);
    out.raw(&a.aggregator->router_id, 4);
  }
  if (!a.communities.empty()) out.list(a.communities);
  if (!a.extended_communities.empty()) out.list(a.extended_communities);
  if (!a.large_communities.empty()) out.list(a.large_communities);
  if (!a.cluster_list.empty()) out.list(a.cluster_list);
  if (a.pmsi_tunnel) out.list(*a.pmsi_tunnel);
  if (!a.unknown.empty()) {
    out.count(a.unknown.size());
    for (const UnknownAttribute& attribute : a.unknown) {
      scratch_.push_back(attribute.flags);
      scratch_.push_back(attribute.type);
      out.list(attribute.value);
    }
  }
  if (a.partial != 0) scratch_.push_back(a.partial);
  head.size = static_cast<uint32_t>(scratch_.size());
  std::memcpy(scratch_.data(), &head, sizeof head);
  head.hash = static_cast<uint32_t>(
      net::hash_bytes(std::span<const uint8_t>(scratch_).subspan(kContent), identity_.hash_seed));
  std::memcpy(scratch_.data(), &head, sizeof head);
}

Attributes AttributeStore::unpack(AttributeId id) const {
  const AttributeDigest& head = digest(id);
  const auto has = [&](Present bit) { return (head.present & bit) != 0; };
  Unpacker in(arena_.at(id) + sizeof head);
  Attributes a;
  a.origin = head.origin;
  std::array<uint8_t, 16> next_hop;
  const std::size_t next_hop_size = has(kNextHopV6) ? 16 : 4;
  in.raw(next_hop.data(), next_hop_size);
  a.next_hop = *net::IpAddress::from_bytes(std::span(next_hop).first(next_hop_size));
  if (has(kMed)) a.multi_exit_disc = head.multi_exit_disc;
  if (has(kLocalPref)) a.local_pref = head.local_pref;
  a.atomic_aggregate = has(kAtomicAggregate);
  if (has(kOriginatorId)) a.originator_id = head.originator_id;
  if (has(kAsPath)) {
    a.as_path.resize(in.count());
    for (AsPathSegment& segment : a.as_path) {
      segment.type = static_cast<AsPathSegment::Type>(in.octet());
      in.list(segment.as_numbers);
    }
  }
  if (has(kAggregator)) {
    a.aggregator.emplace();
    in.raw(&a.aggregator->as_number, 4);
    in.raw(&a.aggregator->router_id, 4);
  }
  if (has(kCommunities)) in.list(a.communities);
  if (has(kExtendedCommunities)) in.list(a.extended_communities);
  if (has(kLargeCommunities)) in.list(a.large_communities);
  if (has(kClusterList)) in.list(a.cluster_list);
  if (has(kPmsiTunnel)) in.list(a.pmsi_tunnel.emplace());
  if (has(kUnknown)) {
    a.unknown.resize(in.count());
    for (UnknownAttribute& attribute : a.unknown) {
      attribute.flags = in.octet();
      attribute.type = in.octet();
      in.list(attribute.value);
    }
  }
  if (has(kPartial)) a.partial = in.octet();
  return a;
}

AttributeId AttributeStore::intern(const Attributes& attributes) {
  pack(attributes);
  AttributeDigest packed;
  std::memcpy(&packed, scratch_.data(), sizeof packed);
  AttributeId id = index_.find(packed.hash, [&](AttributeId other) {
    return head(other).size == packed.size &&
           std::memcmp(arena_.at(other) + kContent, scratch_.data() + kContent,
                       packed.size - kContent) == 0;
  });
  if (id == HashIndex::kNone) {
    id = arena_.allocate(scratch_.size());
    std::memcpy(arena_.at(id), scratch_.data(), scratch_.size());
    index_.insert(packed.hash, id);
    ++size_;
  }
  ++head(id).references;
  return id;
}

void AttributeStore::release(AttributeId id) {
  const AttributeDigest& gone = head(id);
  if (--head(id).references != 0) return;
  index_.erase(gone.hash, id);
  arena_.release(id);
  --size_;
}

}  // namespace bgp
