// SPDX-License-Identifier: GPL-2.0-or-later
// Settings of a port as the data path reads them (bpf/abi.h), for the eBPF programs and for
// SoftPolicy; and the names of what it counts.
#pragma once
#include <expected>
#include <string>

#include "dataplane/bpf/abi.h"
#include "dataplane/fast_path.h"

namespace dataplane {

// Rates as GCRA costs. Not set at all: unlimited. A rate of zero: nothing passes.
[[nodiscard]] pl_limit to_abi(const std::optional<Limit>& limit);

// Of the reports of refused frames, per device.
[[nodiscard]] pl_limit report_limit();

// The six octets of an address as the programs compare them (pl_mac() of bpf/classify.h).
[[nodiscard]] uint64_t to_abi(const net::MacAddress& mac);

// An error says which table is too long, or which name is none.
[[nodiscard]] std::expected<pl_config, std::string> to_abi(const PortConfig& config);

[[nodiscard]] const char* class_name(unsigned cls);      // enum pl_class
[[nodiscard]] const char* reason_name(unsigned reason);  // enum pl_reason
[[nodiscard]] constexpr bool is_drop(unsigned reason) { return reason >= PL_FIRST_DROP; }

[[nodiscard]] constexpr Direction direction_of(PortKind kind, int hook) {
  if (kind == PortKind::Core) return hook == PL_IN ? Direction::Decap : Direction::Encap;
  return hook == PL_IN ? Direction::Ingress : Direction::Egress;
}
[[nodiscard]] constexpr int hook_of(Direction direction) {
  return direction == Direction::Ingress || direction == Direction::Decap ? PL_IN : PL_OUT;
}

}  // namespace dataplane
