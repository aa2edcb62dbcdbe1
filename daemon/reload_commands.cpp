// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/reload_commands.h"

#include <boost/json.hpp>

#include "daemon/app.h"

namespace peerland {
namespace {

constexpr int64_t kLongestConfirm = 86400;  // seconds

std::expected<ReloadOptions, std::string> reload_options(const boost::json::object& arguments) {
  ReloadOptions options;
  for (const auto& [key, value] : arguments) {
    if (key == "force" && value.is_bool()) {
      options.force = value.as_bool();
      continue;
    }
    if (key != "confirm") return std::unexpected("unknown argument \"" + std::string(key) + "\"");
    const int64_t seconds = value.is_int64() ? value.as_int64() : 0;
    if (seconds < 1 || seconds > kLongestConfirm)
      return std::unexpected("confirm: expected seconds, 1 to 86400");
    options.confirm = std::chrono::seconds(seconds);
  }
  return options;
}

}  // namespace

std::optional<std::expected<std::string, std::string>> act_on_settings(
    App& app, const std::string& command, const boost::json::object& arguments) {
  if (command == "reload") {
    const auto options = reload_options(arguments);
    if (!options) return std::unexpected(options.error());
    return app.reload(*options);
  }
  if (command == "confirm") return app.confirm_reload();
  if (command == "rollback") return app.roll_back("an operator said so");
  return std::nullopt;
}

}  // namespace peerland
