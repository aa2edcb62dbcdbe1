// SPDX-License-Identifier: GPL-2.0-or-later
// What is shown of broadcast domains: their MACs and drops, made in pieces.
#pragma once
#include <cstdint>
#include <expected>
#include <string>

#include "daemon/answer.h"
#include "daemon/filter.h"
#include "net/time.h"

namespace peerland {

class App;
class Domain;

[[nodiscard]] bool wants(const Filter& filter, const Domain& domain);
[[nodiscard]] int64_t seconds_between(net::TimePoint from, net::TimePoint to);

[[nodiscard]] std::expected<Answer, std::string> show_macs(const App& app, const Filter& filter);
[[nodiscard]] std::expected<Answer, std::string> show_drops(const App& app, const Filter& filter);

}  // namespace peerland
