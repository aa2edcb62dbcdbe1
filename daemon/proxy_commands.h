// SPDX-License-Identifier: GPL-2.0-or-later
// Commands about one address of a peering LAN: forget, unfreeze, sponge, ask, trace.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/json/object.hpp>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace peerland {

class App;
class Trace;

// Nothing when the command is another one; else what was done, or why not.
[[nodiscard]] std::optional<std::expected<std::string, std::string>> act_on_address(
    App& app, const std::string& command, const boost::json::object& arguments);

// `wake`: there is something to take. Arguments: ip, domain, vni, seconds, frames.
[[nodiscard]] std::expected<std::shared_ptr<Trace>, std::string> begin_trace(
    App& app, boost::asio::io_context& io, const boost::json::object& arguments,
    std::function<void()> wake);

}  // namespace peerland
