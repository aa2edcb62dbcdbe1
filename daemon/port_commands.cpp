// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/port_commands.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <string_view>

#include "daemon/app.h"
#include "daemon/filter.h"

namespace peerland {
namespace {

struct Command {
  std::string_view name;
  GuardState wanted;
};
constexpr std::array kCommands{Command{"open-port", GuardState::Open},
                               Command{"quarantine-port", GuardState::Quarantine},
                               Command{"shut-port", GuardState::Shut}};

}  // namespace

std::optional<std::expected<std::string, std::string>> act_on_port(
    App& app, const std::string& command, const boost::json::object& arguments) {
  const auto found = std::ranges::find(kCommands, command, &Command::name);
  if (found == kCommands.end()) return std::nullopt;
  static constexpr const char* kArguments[] = {"port"};
  const auto filter = parse_filter(arguments, kArguments);
  if (!filter) return std::unexpected(filter.error());
  if (filter->port.empty()) return std::unexpected("port: expected the name of a port");
  for (const auto& domain : app.domains()) {
    if (!domain->ports().contains(filter->port)) continue;
    auto done = domain->set_port(filter->port, found->wanted, net::Clock::now());
    app.deadlines_changed();
    return done;
  }
  return std::unexpected("there is no member port " + filter->port);
}

}  // namespace peerland
