// SPDX-License-Identifier: GPL-2.0-or-later
// What would change from one node's settings to others: for `peerlan diff`, and to judge a reload
// before it is done. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.h"

namespace config {

enum class ChangeKind : uint8_t { Added, Removed, Changed };
const char* to_string(ChangeKind kind);  // "added", "removed", "changed"

enum class Subject : uint8_t {
  Node,
  Neighbor,
  DynamicNeighbors,
  Collector,
  RoutePolicy,
  MemberList,
  Member,   // of a broadcast domain, or of a member list: whoever has ports or addresses there
  Address,  // of a member, with its MACs
  Port,
  BroadcastDomain,
  Policy,  // of BUM traffic
};
const char* to_string(Subject subject);  // "node", "neighbor", "dynamic-neighbors", ...

struct ChangedField {
  std::string key;            // as in the settings file: "hold-time"
  std::string before, after;  // empty: not set
  bool operator==(const ChangedField&) const = default;
};

struct Change {
  ChangeKind kind = ChangeKind::Changed;
  Subject subject = Subject::Node;
  std::string name;                  // "10.0.0.9 (rs1)", "AS64501 Alpha Net", "192.0.2.1", ...
  std::string domain;                // broadcast domain, or "VNI 100" of a member list; or empty
  std::vector<ChangedField> fields;  // of what changed
  bool operator==(const Change&) const = default;
};

// Members of one LAN that is there before and after. Members are told apart by AS number, else by
// name.
struct MemberLoss {
  std::string domain;  // as in Change
  std::size_t before = 0, removed = 0;
  bool operator==(const MemberLoss&) const = default;
};

struct Difference {
  std::vector<Change> changes;  // the node's first, then by subject; stable order
  std::vector<MemberLoss> losses;

  // The LANs that would lose more than so many percent of their members.
  [[nodiscard]] std::vector<MemberLoss> beyond(unsigned percent) const;
};

[[nodiscard]] Difference difference(const NodeSettings& before, const NodeSettings& after);

}  // namespace config
