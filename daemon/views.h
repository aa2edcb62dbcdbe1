// SPDX-License-Identifier: GPL-2.0-or-later
// What `peerlan show` shows, as JSON documents. docs/cli.md describes them; keys stay as they are.
#pragma once
#include <boost/json/object.hpp>
#include <expected>
#include <string>

namespace peerland {

class App;

// `what`: summary, neighbors, routes, macs, bindings, ports, drops. Arguments filter: {"type":2,
// "mac":"..", "ip":"..", "vni":100, "neighbor":"..", "port":".."}. Unknown ones are an error.
[[nodiscard]] std::expected<boost::json::object, std::string> show(
    const App& app, const std::string& what, const boost::json::object& arguments);

}  // namespace peerland
