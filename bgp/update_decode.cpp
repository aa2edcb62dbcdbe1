// SPDX-License-Identifier: GPL-2.0-or-later
// UPDATE, from bytes: RFC 4271 sections 4.3 and 6.3 as revised by RFC 7606. One table says for each
// attribute which flags it has and what a malformed one leads to; what can't be attributed to one
// attribute is decided in decode_update(), each step with its section. The IPv4 unicast fields are
// checked for syntax and not used: the NLRI we speak travel in MP_REACH_NLRI (RFC 4760).
#include <algorithm>
#include <bitset>

#include "bgp/message.h"
#include "net/hash.h"

namespace bgp {
namespace {

using Octets = std::span<const uint8_t>;

constexpr std::size_t kMaxErrorBytes = 64;
constexpr std::size_t kMaxErrors = 8;
constexpr std::size_t kMaxErrorData = 1024;  // of an attribute in a NOTIFICATION

// What the decoders of single attributes fill; the AS4 ones are merged at the end.
struct Working {
  Attributes attributes;
  std::vector<AsPathSegment> as4_path;
  std::optional<Aggregator> as4_aggregator;
  DecodeOptions options;
};

Notification update_failure(uint8_t subcode, Octets data = {}) {
  data = data.first(std::min(data.size(), kMaxErrorData));
  return {ErrorCode::UpdateMessage, subcode, net::Bytes(data.begin(), data.end())};
}

// --- One attribute each: false when malformed -------------------------------------------------

bool decode_origin(Octets value, Working& out) {  // RFC 7606 section 7.1
  if (value.size() != 1 || value[0] > 2) return false;
  out.attributes.origin = static_cast<Origin>(value[0]);
  return true;
}

// RFC 7606 section 7.2; AS 0 is refused by RFC 7607.
bool decode_segments(Octets value, std::size_t as_size, std::vector<AsPathSegment>& out) {
  net::ByteReader in(value);
  while (!in.done()) {
    AsPathSegment segment;
    const uint8_t type = in.u8();
    const std::size_t count = in.u8();
    net::ByteReader numbers = in.sub(count * as_size);
    if (!in.ok() || count == 0 || type < AsPathSegment::Set || type > AsPathSegment::ConfedSet)
      return false;
    segment.type = static_cast<AsPathSegment::Type>(type);
    while (!numbers.done()) {
      const uint32_t as_number = as_size == 4 ? numbers.u32() : numbers.u16();
      if (as_number == 0) return false;
      segment.as_numbers.push_back(as_number);
    }
    out.push_back(std::move(segment));
  }
  return in.ok();
}

bool is_confederation(const AsPathSegment& segment) {
  return segment.type == AsPathSegment::ConfedSequence || segment.type == AsPathSegment::ConfedSet;
}

bool decode_as_path(Octets value, Working& out) {
  std::vector<AsPathSegment> segments;
  if (!decode_segments(value, out.options.four_octet_as ? 4 : 2, segments)) return false;
  // RFC 5065 section 5: never from outside of the confederation.
  if (!out.options.internal && std::ranges::any_of(segments, is_confederation)) return false;
  out.attributes.as_path = std::move(segments);
  return true;
}

// RFC 7606 section 7.3. The next hop that counts is that of MP_REACH_NLRI (RFC 4760 section 3).
bool decode_next_hop(Octets value, Working&) { return value.size() == 4; }

bool decode_number(Octets value, std::optional<uint32_t>& out) {
  net::ByteReader in(value);
  const uint32_t number = in.u32();
  if (!in.ok() || !in.done()) return false;
  out = number;
  return true;
}
bool decode_multi_exit_disc(Octets value, Working& out) {
  return decode_number(value, out.attributes.multi_exit_disc);
}
bool decode_local_pref(Octets value, Working& out) {
  return decode_number(value, out.attributes.local_pref);
}
bool decode_originator_id(Octets value, Working& out) {
  return decode_number(value, out.attributes.originator_id);
}

bool decode_atomic_aggregate(Octets value, Working& out) {
  out.attributes.atomic_aggregate = value.empty();
  return value.empty();
}

bool decode_aggregator_value(Octets value, std::size_t as_size, std::optional<Aggregator>& out) {
  net::ByteReader in(value);
  Aggregator aggregator;
  aggregator.as_number = as_size == 4 ? in.u32() : in.u16();
  aggregator.router_id = in.u32();
  if (!in.ok() || !in.done() || aggregator.as_number == 0) return false;
  out = aggregator;
  return true;
}
bool decode_aggregator(Octets value, Working& out) {  // RFC 7606 section 7.7
  return decode_aggregator_value(value, out.options.four_octet_as ? 4 : 2,
                                 out.attributes.aggregator);
}

bool decode_numbers(Octets value, std::vector<uint32_t>& out) {
  if (value.empty() || value.size() % 4 != 0) return false;
  net::ByteReader in(value);
  while (!in.done()) out.push_back(in.u32());
  return true;
}
bool decode_communities(Octets value, Working& out) {
  return decode_numbers(value, out.attributes.communities);
}
bool decode_cluster_list(Octets value, Working& out) {
  return decode_numbers(value, out.attributes.cluster_list);
}

// RFC 7606 section 7.14: only the length can be wrong, never a type or its contents.
bool decode_extended_communities(Octets value, Working& out) {
  if (value.empty() || value.size() % 8 != 0) return false;
  for (; !value.empty(); value = value.subspan(8)) {
    ExtendedCommunity community;
    std::ranges::copy(value.first(8), community.begin());
    out.attributes.extended_communities.push_back(community);
  }
  return true;
}

bool decode_large_communities(Octets value, Working& out) {  // RFC 8092 section 6
  if (value.empty() || value.size() % 12 != 0) return false;
  net::ByteReader in(value);
  while (!in.done()) {
    const uint32_t admin = in.u32();
    const uint32_t first = in.u32();
    out.attributes.large_communities.push_back({admin, first, in.u32()});
  }
  return true;
}

// RFC 6514 section 5: flags, type, label. The tunnel identifier is the PE's to understand, but for
// ingress replication: an address of another length makes some PEs reset their sessions.
bool decode_pmsi_tunnel(Octets value, Working& out) {
  constexpr uint8_t kIngressReplication = 6;
  if (value.size() < 5) return false;
  if (value[1] == kIngressReplication && value.size() != 9 && value.size() != 21) return false;
  out.attributes.pmsi_tunnel.emplace(value.begin(), value.end());
  return true;
}

bool decode_as4_path(Octets value, Working& out) {  // RFC 6793 section 6
  std::vector<AsPathSegment> segments;
  if (value.size() < 6 || !decode_segments(value, 4, segments)) return false;
  std::erase_if(segments, is_confederation);
  out.as4_path = std::move(segments);
  return true;
}
bool decode_as4_aggregator(Octets value, Working& out) {
  return decode_aggregator_value(value, 4, out.as4_aggregator);
}

// --- The table ----------------------------------------------------------------------------------

enum class Use : uint8_t {
  Always,
  Internal,   // from an external peer: discarded (RFC 7606 sections 7.5, 7.9, 7.10)
  TwoOctets,  // from a peer with four-octet AS numbers: discarded (RFC 6793 section 4.1)
};

struct AttributeRule {
  AttributeType type;
  uint8_t flags;  // Optional and Transitive as they must be
  ErrorHandling malformed;
  Use use;
  bool (*decode)(Octets, Working&);
};

constexpr uint8_t kWellKnown = kFlagTransitive;
constexpr uint8_t kOptionalTransitive = kFlagOptional | kFlagTransitive;
constexpr auto kWithdraw = ErrorHandling::TreatAsWithdraw;
constexpr auto kDiscard = ErrorHandling::AttributeDiscard;

constexpr AttributeRule kRules[] = {
    {AttributeType::Origin, kWellKnown, kWithdraw, Use::Always, decode_origin},
    {AttributeType::AsPath, kWellKnown, kWithdraw, Use::Always, decode_as_path},
    {AttributeType::NextHop, kWellKnown, kWithdraw, Use::Always, decode_next_hop},
    {AttributeType::MultiExitDisc, kFlagOptional, kWithdraw, Use::Always, decode_multi_exit_disc},
    {AttributeType::LocalPref, kWellKnown, kWithdraw, Use::Internal, decode_local_pref},
    {AttributeType::AtomicAggregate, kWellKnown, kDiscard, Use::Always, decode_atomic_aggregate},
    {AttributeType::Aggregator, kOptionalTransitive, kDiscard, Use::Always, decode_aggregator},
    {AttributeType::Communities, kOptionalTransitive, kWithdraw, Use::Always, decode_communities},
    {AttributeType::OriginatorId, kFlagOptional, kWithdraw, Use::Internal, decode_originator_id},
    {AttributeType::ClusterList, kFlagOptional, kWithdraw, Use::Internal, decode_cluster_list},
    {AttributeType::ExtendedCommunities, kOptionalTransitive, kWithdraw, Use::Always,
     decode_extended_communities},
    {AttributeType::As4Path, kOptionalTransitive, kDiscard, Use::TwoOctets, decode_as4_path},
    {AttributeType::As4Aggregator, kOptionalTransitive, kDiscard, Use::TwoOctets,
     decode_as4_aggregator},
    {AttributeType::PmsiTunnel, kOptionalTransitive, kWithdraw, Use::Always, decode_pmsi_tunnel},
    {AttributeType::LargeCommunities, kOptionalTransitive, kWithdraw, Use::Always,
     decode_large_communities},
};

const AttributeRule* find_rule(uint8_t type) {
  for (const AttributeRule& rule : kRules)
    if (static_cast<uint8_t>(rule.type) == type) return &rule;
  return nullptr;
}

// --- The message --------------------------------------------------------------------------------

struct RawAttribute {
  uint8_t flags = 0;
  uint8_t type = 0;
  Octets value;
  Octets whole;
};

class Decoder {
 public:
  Decoder(const Family& family, const DecodeOptions& options, DecodeCache* cache)
      : family_(family), cache_(cache) {
    working_.options = options;
  }

  std::expected<Update, Notification> run(Octets body) {
    if (auto failure = message(body)) return std::unexpected(std::move(*failure));
    return std::move(update_);
  }

 private:
  using Failure = std::optional<Notification>;  // session reset

  Failure message(Octets body) {
    // 1. The two lengths (RFC 7606 section 3b).
    net::ByteReader in(body);
    const Octets withdrawn = in.bytes(in.u16());
    const Octets attributes = in.bytes(in.u16());
    if (!in.ok()) return update_failure(update_error::kMalformedAttributeList);
    const Octets nlri = in.rest();
    // 2. IPv4 prefixes (RFC 4271 section 4.3, RFC 7606 sections 3i and 5.3).
    if (!valid_prefixes(withdrawn) || !valid_prefixes(nlri))
      return update_failure(update_error::kInvalidNetwork);
    if (!withdrawn.empty() || !nlri.empty()) raise(ErrorHandling::DisableFamily);
    // 3. The attributes.
    std::optional<Block> block;
    if (cache_ != nullptr && withdrawn.empty() && nlri.empty()) block = find_block(attributes);
    if (block)
      if (AttributesPtr known = cache_->find(block->parts)) return reach_alone(*block, known);
    if (auto failure = attribute_list(attributes)) return failure;
    // 4. RFC 6793 section 4.2.3.
    if (!working_.options.four_octet_as) merge_as4();
    // 5. RFC 7606 section 3d.
    if (!update_.reach.empty() && !(seen(AttributeType::Origin) && seen(AttributeType::AsPath)))
      record({}, ErrorHandling::TreatAsWithdraw);
    // 6. RFC 7606 section 5.2: attributes in error, and the routes they went with are not known.
    const bool reachable = seen(AttributeType::MpReachNlri) || !nlri.empty();
    const bool others = overrun_ || seen_.count() > (seen(AttributeType::MpUnreachNlri) ? 1u : 0u);
    if (withdraw_all_ && !reachable && others)
      return update_failure(update_error::kMalformedAttributeList);
    update_.end_of_rib = withdrawn.empty() && nlri.empty() && seen_.count() == 1 &&
                         empty_unreach_ && update_.nlri_discarded == 0;
    finish();
    if (block && !update_.reach.empty() && update_.handling == ErrorHandling::None)
      cache_->put(block->parts, update_.attributes);
    return std::nullopt;
  }

  // An attribute list whose only NLRI are those of one MP_REACH_NLRI of our family.
  struct Block {
    DecodeCache::Parts parts;
    RawAttribute reach;
    Octets nlri;
  };

  std::optional<Block> find_block(Octets attributes) const {
    Block block;
    bool found = false;
    net::ByteReader in(attributes);
    while (!in.done()) {
      const Octets from = in.rest();
      RawAttribute raw;
      raw.flags = in.u8();
      raw.type = in.u8();
      raw.value = in.bytes((raw.flags & kFlagExtendedLength) != 0 ? in.u16() : in.u8());
      if (!in.ok() || raw.type == static_cast<uint8_t>(AttributeType::MpUnreachNlri))
        return std::nullopt;
      if (raw.type != static_cast<uint8_t>(AttributeType::MpReachNlri)) continue;
      const std::size_t head = raw.value.size() > 3 ? 5u + raw.value[3] : SIZE_MAX;
      if (found || raw.value.size() < head) return std::nullopt;
      found = true;
      raw.whole = from.first(from.size() - in.remaining());
      block.reach = raw;
      block.nlri = raw.value.subspan(head);
      const auto before = static_cast<std::size_t>(from.data() - attributes.data());
      // With the flags and type of MP_REACH_NLRI, but not its length.
      block.parts = {attributes.first(before + 2), raw.value.first(head), in.rest()};
    }
    return found ? std::optional(block) : std::nullopt;
  }

  // All but the NLRI was decoded before, without an error.
  Failure reach_alone(const Block& block, const AttributesPtr& attributes) {
    if (auto failure = split(net::ByteReader(block.nlri), block.reach, update_.reach))
      return failure;
    if (!update_.reach.empty()) update_.attributes = attributes;
    return std::nullopt;
  }

  Failure attribute_list(Octets attributes) {
    net::ByteReader in(attributes);
    while (!in.done()) {
      const Octets from = in.rest();
      RawAttribute raw;
      raw.flags = in.u8();
      raw.type = in.u8();
      raw.value = in.bytes((raw.flags & kFlagExtendedLength) != 0 ? in.u16() : in.u8());
      if (!in.ok()) {  // RFC 7606 section 4
        raw.whole = from;
        overrun_ = true;
        record(raw, ErrorHandling::TreatAsWithdraw);
        break;
      }
      raw.whole = from.first(from.size() - in.remaining());
      if (auto failure = attribute(raw)) return failure;
    }
    return std::nullopt;
  }

  Failure attribute(const RawAttribute& raw) {
    const bool multiprotocol = raw.type == static_cast<uint8_t>(AttributeType::MpReachNlri) ||
                               raw.type == static_cast<uint8_t>(AttributeType::MpUnreachNlri);
    if (seen_[raw.type]) {  // RFC 7606 section 3g
      if (multiprotocol) return update_failure(update_error::kMalformedAttributeList, raw.whole);
      record(raw, ErrorHandling::AttributeDiscard);
      return std::nullopt;
    }
    seen_.set(raw.type);
    if (multiprotocol) {
      if ((raw.flags & kOptionalTransitive) != kFlagOptional)
        record(raw, ErrorHandling::TreatAsWithdraw);
      return raw.type == static_cast<uint8_t>(AttributeType::MpReachNlri) ? mp_reach(raw)
                                                                          : mp_unreach(raw);
    }
    if (const AttributeRule* rule = find_rule(raw.type))
      known(raw, *rule);
    else
      unknown(raw);
    return std::nullopt;
  }

  void known(const RawAttribute& raw, const AttributeRule& rule) {
    const bool wanted = rule.use == Use::Always ||
                        (rule.use == Use::Internal && working_.options.internal) ||
                        (rule.use == Use::TwoOctets && !working_.options.four_octet_as);
    if (!wanted)
      record(raw, ErrorHandling::AttributeDiscard);
    else if ((raw.flags & kOptionalTransitive) != rule.flags)  // RFC 7606 section 3c
      record(raw, ErrorHandling::TreatAsWithdraw);
    else if (!rule.decode(raw.value, working_))
      record(raw, rule.malformed);
    else if ((raw.flags & kFlagPartial) != 0)
      working_.attributes.partial =
          static_cast<uint8_t>(working_.attributes.partial | partial_bit(rule.type));
  }

  // RFC 4271 section 5: kept with Partial set when transitive, else ignored. A well-known one that
  // we don't know can't be trusted to mean nothing.
  void unknown(const RawAttribute& raw) {
    if ((raw.flags & kFlagOptional) == 0) {
      record(raw, ErrorHandling::TreatAsWithdraw);
      return;
    }
    if ((raw.flags & kFlagTransitive) == 0) return;
    working_.attributes.unknown.push_back({kOptionalTransitive | kFlagPartial, raw.type,
                                           net::Bytes(raw.value.begin(), raw.value.end())});
  }

  // RFC 4760 section 3, RFC 7606 sections 5.3 and 7.11.
  Failure mp_reach(const RawAttribute& raw) {
    net::ByteReader in(raw.value);
    AfiSafi family;
    family.afi = in.u16();
    family.safi = in.u8();
    const Octets next_hop = in.bytes(in.u8());
    in.u8();  // reserved
    if (!in.ok()) return update_failure(update_error::kOptionalAttribute, raw.whole);
    if (family != family_.id) {
      raise(ErrorHandling::DisableFamily);
      return std::nullopt;
    }
    // 32 octets: a global and a link-local address (RFC 2545), of which the first counts.
    const auto address =
        net::IpAddress::from_bytes(next_hop.size() == 32 ? next_hop.first(16) : next_hop);
    if (!address) return update_failure(update_error::kOptionalAttribute, raw.whole);
    if (address->is_unspecified() || address->is_multicast())  // RFC 4271 section 6.3
      record(raw, ErrorHandling::TreatAsWithdraw);
    working_.attributes.next_hop = *address;
    return split(in, raw, update_.reach);
  }

  Failure mp_unreach(const RawAttribute& raw) {
    net::ByteReader in(raw.value);
    AfiSafi family;
    family.afi = in.u16();
    family.safi = in.u8();
    if (!in.ok()) return update_failure(update_error::kOptionalAttribute, raw.whole);
    if (family != family_.id) {
      raise(ErrorHandling::DisableFamily);
      return std::nullopt;
    }
    empty_unreach_ = in.done();
    return split(in, raw, update_.unreach);
  }

  Failure split(net::ByteReader in, const RawAttribute& raw, std::vector<NlriItem>& out) {
    // Most are of one size; the second bound is for a first one that is too short to be true.
    if (in.remaining() >= 2)
      out.reserve(out.size() + std::min(in.remaining() / (2u + in.rest()[1]), in.remaining() / 16) +
                  1);
    while (!in.done()) {
      const std::size_t before = in.remaining();
      NlriItem& item = out.emplace_back();
      const NlriStatus status = family_.next(in, item);
      if (status == NlriStatus::Framing || in.remaining() >= before)  // RFC 7606 section 5.3
        return update_failure(update_error::kOptionalAttribute, raw.whole);
      const bool withdraws = &out == &update_.unreach;
      if (status == NlriStatus::Ok || (status == NlriStatus::Meaningless && withdraws)) continue;
      ++update_.nlri_discarded;
      if (status == NlriStatus::Meaningless) update_.unreach.push_back(item);
      out.pop_back();
    }
    return std::nullopt;
  }

  static bool valid_prefixes(Octets field) {
    net::ByteReader in(field);
    while (!in.done()) {
      const uint8_t bits = in.u8();
      in.bytes((bits + 7u) / 8u);
      if (bits > 32) return false;
    }
    return in.ok();
  }

  // Sets count one, confederation segments none.
  static std::size_t hops(const std::vector<AsPathSegment>& path) {
    std::size_t count = 0;
    for (const AsPathSegment& segment : path)
      count += segment.type == AsPathSegment::Sequence ? segment.as_numbers.size()
               : segment.type == AsPathSegment::Set    ? 1
                                                       : 0;
    return count;
  }

  void merge_as4() {
    Attributes& attributes = working_.attributes;
    if (attributes.aggregator) {
      // An aggregator with a number of its own went through no speaker of four octets since.
      if (attributes.aggregator->as_number != kAsTrans) return;
      if (working_.as4_aggregator) attributes.aggregator = working_.as4_aggregator;
    }
    const std::size_t have = hops(attributes.as_path);
    const std::size_t known = hops(working_.as4_path);
    if (known == 0 || have < known) return;
    std::size_t leading = have - known;
    std::vector<AsPathSegment> merged;
    for (AsPathSegment segment : attributes.as_path) {
      if (leading == 0) break;
      if (segment.type == AsPathSegment::Sequence) {
        segment.as_numbers.resize(std::min(leading, segment.as_numbers.size()));
        leading -= segment.as_numbers.size();
      } else if (segment.type == AsPathSegment::Set) {
        --leading;
      }
      merged.push_back(std::move(segment));
    }
    for (AsPathSegment& segment : working_.as4_path) {
      const bool joins = !merged.empty() && merged.back().type == AsPathSegment::Sequence &&
                         segment.type == AsPathSegment::Sequence;
      if (joins)
        merged.back().as_numbers.insert(merged.back().as_numbers.end(), segment.as_numbers.begin(),
                                        segment.as_numbers.end());
      else
        merged.push_back(std::move(segment));
    }
    attributes.as_path = std::move(merged);
  }

  bool seen(AttributeType type) const { return seen_[static_cast<std::size_t>(type)]; }

  void raise(ErrorHandling handling) { update_.handling = std::max(update_.handling, handling); }

  void record(const RawAttribute& raw, ErrorHandling handling) {
    raise(handling);
    withdraw_all_ |= handling == ErrorHandling::TreatAsWithdraw;
    if (handling == ErrorHandling::AttributeDiscard) ++update_.attributes_discarded;
    if (update_.errors.size() >= kMaxErrors) return;
    const Octets shown = raw.whole.first(std::min(raw.whole.size(), kMaxErrorBytes));
    update_.errors.push_back({raw.type, handling, net::Bytes(shown.begin(), shown.end())});
  }

  void finish() {
    if (withdraw_all_) {  // RFC 7606 section 2
      update_.unreach.insert(update_.unreach.end(), update_.reach.begin(), update_.reach.end());
      update_.reach.clear();
    }
    if (update_.reach.empty()) return;
    std::ranges::sort(working_.attributes.unknown, {}, &UnknownAttribute::type);
    update_.attributes = std::make_shared<const Attributes>(std::move(working_.attributes));
  }

  const Family& family_;
  DecodeCache* const cache_;
  Working working_;
  Update update_;
  std::bitset<256> seen_;
  bool withdraw_all_ = false;
  bool overrun_ = false;
  bool empty_unreach_ = false;
};

}  // namespace

const char* to_string(ErrorHandling handling) {
  switch (handling) {
    case ErrorHandling::None: return "none";
    case ErrorHandling::AttributeDiscard: return "attribute discard";
    case ErrorHandling::TreatAsWithdraw: return "treat-as-withdraw";
    case ErrorHandling::DisableFamily: return "family disabled";
    case ErrorHandling::SessionReset: return "session reset";
  }
  return "unknown";
}

std::size_t DecodeCache::place(const Parts& parts) {
  uint64_t hash = 0;
  for (const Octets part : parts) hash = net::hash_bytes(part, hash);
  return hash % std::tuple_size_v<decltype(entries_)>;
}

AttributesPtr DecodeCache::find(const Parts& parts) const {
  const Entry& entry = entries_[place(parts)];
  const uint8_t* at = entry.octets.data();
  if (entry.octets.size() != parts[0].size() + parts[1].size() + parts[2].size()) return nullptr;
  for (const Octets part : parts) {
    if (!std::equal(part.begin(), part.end(), at)) return nullptr;
    at += part.size();
  }
  return entry.attributes;
}

void DecodeCache::put(const Parts& parts, const AttributesPtr& attributes) {
  Entry& entry = entries_[place(parts)];
  entry.octets.clear();
  for (const Octets part : parts) entry.octets.insert(entry.octets.end(), part.begin(), part.end());
  entry.attributes = attributes;
}

std::expected<Update, Notification> decode_update(std::span<const uint8_t> body,
                                                  const Family& family,
                                                  const DecodeOptions& options,
                                                  DecodeCache* cache) {
  return Decoder(family, options, cache).run(body);
}

}  // namespace bgp
