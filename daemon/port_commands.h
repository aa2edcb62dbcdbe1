// SPDX-License-Identifier: GPL-2.0-or-later
// Commands of operators about a member port: open, quarantine, shut.
#pragma once
#include <boost/json/fwd.hpp>
#include <expected>
#include <optional>
#include <string>

namespace peerland {

class App;

// Nothing when it is no such command.
[[nodiscard]] std::optional<std::expected<std::string, std::string>> act_on_port(
    App& app, const std::string& command, const boost::json::object& arguments);

}  // namespace peerland
