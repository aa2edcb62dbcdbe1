// SPDX-License-Identifier: GPL-2.0-or-later
// From the daemon's JSON documents to text.
#pragma once
#include <boost/json/object.hpp>
#include <string>

namespace cli {

// `what` as for `peerlan show`.
[[nodiscard]] std::string render(const std::string& what, const boost::json::object& document);

}  // namespace cli
