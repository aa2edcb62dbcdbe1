// SPDX-License-Identifier: GPL-2.0-or-later
// Member ports: limits, rates, drops, state and why, violations; and what became of frames that
// violate a port's security.
#pragma once
#include <boost/json/object.hpp>
#include <expected>
#include <string>

#include "daemon/answer.h"
#include "daemon/filter.h"
#include "dataplane/settings.h"

namespace peerland {

class App;

// {"pps":20,"bps":null,"burst_ms":1000}; null: unlimited.
[[nodiscard]] boost::json::value limit_value(const std::optional<dataplane::Limit>& limit);

[[nodiscard]] std::expected<Answer, std::string> show_ports(const App& app, const Filter& filter);
[[nodiscard]] std::expected<Answer, std::string> show_violations(const App& app,
                                                                 const Filter& filter);
// The devices that tunnels arrive through, and the VTEPs.
[[nodiscard]] boost::json::object underlay(const App& app, const Filter& filter);
// What the programs of a port would do with a frame.
[[nodiscard]] std::expected<Answer, std::string> show_frame(const App& app, const Filter& filter);

}  // namespace peerland
