// SPDX-License-Identifier: GPL-2.0-or-later
// The decision process as a pure function: RFC 4271 section 9.1.2.2 with RFC 4456 section 9.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "bgp/rib.h"
#include "net/ip_address.h"

namespace bgp {

// What the decision sees of a usable path.
struct Candidate {
  bool local = false;
  bool external = false;
  bool stale = false;
  bool long_lived_stale = false;  // has LLGR_STALE
  uint32_t local_pref = 100;
  uint32_t as_path_length = 0;
  Origin origin = Origin::Igp;
  uint32_t multi_exit_disc = 0;
  uint32_t neighbor_as = 0;
  uint32_t router_id = 0;  // ORIGINATOR_ID where there is one
  uint32_t cluster_list_length = 0;
  net::IpAddress peer_address;
  uint64_t tie = 0;  // the caller's, unique; decides when all else is equal (step 10)

  // Out: the step at which it lost; for the best path, the one at which the last other path lost.
  BestPathReason reason = BestPathReason::OnlyPath;
};

// The place of the best one; `candidates` is not empty. The result does not depend on their order.
std::size_t select_best(std::span<Candidate> candidates);

}  // namespace bgp
