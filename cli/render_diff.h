// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's answer to `peerlan diff` as text.
#pragma once
#include <boost/json/object.hpp>
#include <string>

namespace cli {

[[nodiscard]] std::string render_diff(const boost::json::object& document);

}  // namespace cli
