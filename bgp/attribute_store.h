// SPDX-License-Identifier: GPL-2.0-or-later
// Interned attribute sets. Equal sets are kept once, counted, and packed into one record of well
// under 100 octets for a usual EVPN route, because in a large fabric most sets are used by one
// route only (an IMET route's target and PMSI label differ by VNI, its next hop by PE). What the
// decision process asks for stands in the record's head, so that it unpacks nothing.
#pragma once
#include <cstdint>

#include "bgp/arena.h"
#include "bgp/attributes.h"
#include "bgp/hash_index.h"
#include "net/bytes.h"

namespace bgp {

using AttributeId = Arena::Ref;

// The head of a packed attribute set.
struct AttributeDigest {
  enum Flag : uint8_t {
    kOwnAs = 1,          // our AS in AS_PATH
    kOwnOriginator = 2,  // our router id as ORIGINATOR_ID
    kOwnCluster = 4,     // our cluster id in CLUSTER_LIST
    kNoExport = 8,       // RFC 1997: NO_EXPORT or NO_EXPORT_SUBCONFED
    kNoAdvertise = 16,   // RFC 1997: NO_ADVERTISE
    kLlgrStale = 32,     // RFC 9494: LLGR_STALE
    kNoLlgr = 64,        // RFC 9494: NO_LLGR
  };
  uint32_t references = 0;
  uint32_t hash = 0;
  uint32_t size = 0;        // of head and body
  uint32_t local_pref = 0;  // these are 0 when absent
  uint32_t multi_exit_disc = 0;
  uint32_t originator_id = 0;
  uint32_t neighbor_as = 0;  // the first AS of the path; 0: path empty, or begins with a set
  uint16_t as_path_length = 0;
  uint16_t cluster_list_length = 0;
  uint16_t present = 0;  // which attributes there are
  Origin origin = Origin::Igp;
  uint8_t flags = 0;

  bool has_local_pref() const;
  bool has_originator_id() const;
};

class AttributeStore {
 public:
  struct Identity {
    uint32_t local_as = 0;
    uint32_t router_id = 0;
    uint32_t cluster_id = 0;
    uint64_t hash_seed = 0;
  };
  AttributeStore(PagePool& pool, const Identity& identity) : identity_(identity), arena_(pool) {}

  // The set's name, with one reference for the caller.
  [[nodiscard]] AttributeId intern(const Attributes& attributes);
  void retain(AttributeId id) { ++head(id).references; }
  void release(AttributeId id);
  [[nodiscard]] const AttributeDigest& digest(AttributeId id) const {
    return *reinterpret_cast<const AttributeDigest*>(arena_.at(id));
  }
  [[nodiscard]] Attributes unpack(AttributeId id) const;
  [[nodiscard]] std::size_t size() const { return size_; }
  // To be called when there is time.
  void tidy() { arena_.drop_empty_pages(); }
  [[nodiscard]] std::size_t mapped_bytes() const { return arena_.mapped_bytes(); }

 private:
  AttributeDigest& head(AttributeId id) {
    return *reinterpret_cast<AttributeDigest*>(arena_.at(id));
  }
  void pack(const Attributes& attributes);  // into scratch_

  Identity identity_;
  Arena arena_;
  HashIndex index_;
  std::size_t size_ = 0;
  net::Bytes scratch_;
};

}  // namespace bgp
