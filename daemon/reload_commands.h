// SPDX-License-Identifier: GPL-2.0-or-later
// Commands of the control socket about the settings: reload, confirm, rollback.
#pragma once
#include <boost/json/object.hpp>
#include <expected>
#include <optional>
#include <string>

namespace peerland {

class App;

// What happened, or why not; nothing when the command is none of these.
[[nodiscard]] std::optional<std::expected<std::string, std::string>> act_on_settings(
    App& app, const std::string& command, const boost::json::object& arguments);

}  // namespace peerland
