// SPDX-License-Identifier: GPL-2.0-or-later
// What a request wants to see: its arguments, checked.
#pragma once
#include <boost/json/fwd.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/settings.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/route_distinguisher.h"

namespace peerland {

struct Filter {
  std::optional<uint8_t> type;
  std::optional<uint32_t> vni;
  std::optional<net::MacAddress> mac;
  std::optional<net::IpAddress> ip;
  std::optional<net::RouteDistinguisher> rd;
  std::string neighbor, port, domain;
  std::string member;                      // AS number or part of the name
  bool rejected = false, flagged = false;  // only such paths; both: either
  bool best = false;                       // only best paths
  bool why = false;
  std::optional<uint64_t> limit;  // of rows
  std::vector<uint8_t> frame;     // an Ethernet frame
  std::optional<dataplane::Direction> direction;
  std::optional<uint64_t> intervals;  // of a report; 0: the one that runs
};

// A value that makes no sense, or a filter that is not one of `allowed`, is an error that names it.
[[nodiscard]] std::expected<Filter, std::string> parse_filter(const boost::json::object& arguments,
                                                              std::span<const char* const> allowed);

}  // namespace peerland
