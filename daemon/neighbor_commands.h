// SPDX-License-Identifier: GPL-2.0-or-later
// What an operator does to a neighbor: clear, shutdown, enable.
#pragma once
#include <boost/json/fwd.hpp>
#include <expected>
#include <optional>
#include <string>

namespace peerland {

class App;

// Nothing: `command` is none of these.
[[nodiscard]] std::optional<std::expected<std::string, std::string>> act_on_neighbor(
    App& app, const std::string& command, const boost::json::object& arguments);

}  // namespace peerland
