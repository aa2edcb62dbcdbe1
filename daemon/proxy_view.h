// SPDX-License-Identifier: GPL-2.0-or-later
// Views of proxy ARP/ND: bindings, duplicates, the sponge, offenders, and why an address gets what.
#pragma once
#include <boost/json/object.hpp>
#include <expected>
#include <string>

#include "daemon/answer.h"
#include "daemon/filter.h"
#include "dataplane/settings.h"
#include "net/strong.h"
#include "proxyarp/responder.h"

namespace peerland {

class App;
class Domain;

// --- shared by views
// The settings of a member port; null when it is none.
[[nodiscard]] const dataplane::MemberPort* member_of(const Domain& domain, net::IfIndex port);
void add_member(boost::json::object& row, const dataplane::MemberPort* member);

// "active", "inactive", "pending", "duplicate"
[[nodiscard]] const char* state_of(const proxyarp::BindingView& view);
// Verdicts of the responder that mean a frame went nowhere.
[[nodiscard]] bool is_drop(proxyarp::Verdict verdict);

// A row a line, made while it is read.
[[nodiscard]] std::expected<Answer, std::string> show_bindings(const App& app,
                                                               const Filter& filter);
[[nodiscard]] boost::json::object duplicates(const App& app, const Filter& filter);
[[nodiscard]] boost::json::object sponge(const App& app, const Filter& filter);
[[nodiscard]] boost::json::object offenders(const App& app, const Filter& filter);
[[nodiscard]] std::expected<Answer, std::string> show_explanation(const App& app,
                                                                  const Filter& filter);

// The one domain that an address belongs to, by prefix; an error that says what to add otherwise.
[[nodiscard]] std::expected<Domain*, std::string> domain_of(const App& app, const Filter& filter,
                                                            const net::IpAddress& ip);

}  // namespace peerland
