// SPDX-License-Identifier: GPL-2.0-or-later
// Views of member ports, their security and their traffic as text. Part of render.h.
#pragma once
#include <boost/json/object.hpp>
#include <string>

namespace cli {

[[nodiscard]] std::string render_ports(const boost::json::object& document);
// All about one port: a row of the view `ports`.
[[nodiscard]] std::string render_port(const boost::json::object& port);
[[nodiscard]] std::string render_violations(const boost::json::object& document);
[[nodiscard]] std::string render_underlay(const boost::json::object& document);
[[nodiscard]] std::string render_frame(const boost::json::object& document);
[[nodiscard]] std::string render_report(const boost::json::object& document);

}  // namespace cli
