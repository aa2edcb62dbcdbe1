// SPDX-License-Identifier: GPL-2.0-or-later
// The view `neighbors`: sessions with their capabilities, timers, counters and last errors.
#pragma once
#include <boost/json/fwd.hpp>
#include <expected>
#include <string>

#include "bgp/io/speaker.h"
#include "daemon/answer.h"
#include "daemon/filter.h"

namespace peerland {

class App;

[[nodiscard]] boost::json::object neighbor_row(const bgp::io::NeighborView& neighbor);
// {"schema":1,"neighbors":[rows]}, a row a line.
[[nodiscard]] std::expected<Answer, std::string> show_neighbors(const App& app,
                                                                const Filter& filter);

}  // namespace peerland
