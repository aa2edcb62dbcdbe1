// SPDX-License-Identifier: GPL-2.0-or-later
// What `peerlan show` shows, as JSON documents. docs/json.md describes them; keys stay as they are.
#pragma once
#include <boost/json/object.hpp>
#include <expected>
#include <string>

#include "daemon/answer.h"

namespace peerland {

class App;

// `what`: summary, neighbors, routes, collectors, macs, bindings, ports, drops. Arguments filter:
// {"type":2, "mac":"..", "ip":"..", "vni":100, "neighbor":"..", "port":".."}. Unknown ones and
// values that make no sense are an error.
[[nodiscard]] std::expected<Answer, std::string> show(const App& app, const std::string& what,
                                                      const boost::json::object& arguments);

}  // namespace peerland
