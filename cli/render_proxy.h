// SPDX-License-Identifier: GPL-2.0-or-later
// Views of proxy ARP/ND as text. Part of render.h.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace cli {

[[nodiscard]] std::string render_bindings(const boost::json::object& document);
[[nodiscard]] std::string binding_rows(const std::vector<boost::json::object>& rows,
                                       bool with_header);
[[nodiscard]] std::string render_duplicates(const boost::json::object& document);
[[nodiscard]] std::string render_sponge(const boost::json::object& document);
[[nodiscard]] std::string render_offenders(const boost::json::object& document);
[[nodiscard]] std::string render_explanation(const boost::json::object& document);

}  // namespace cli
