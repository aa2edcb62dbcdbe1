// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/settings_commands.h"

namespace cli {

SettingsCommands::SettingsCommands(CLI::App& app)
    : diff_(app.add_subcommand("diff", "show what a reload would change, and change nothing")),
      reload_(app.add_subcommand(
          "reload", "read the settings file again; refused as a whole if it has an error")),
      confirm_(app.add_subcommand("confirm", "keep the settings of a reload with --confirm")),
      rollback_(app.add_subcommand("rollback", "undo a reload that is not confirmed yet")) {
  diff_->add_flag("--json", json_, "the daemon's JSON document as it is");
  reload_
      ->add_option("--confirm", seconds_,
                   "undo it after so many seconds, unless `peerlan confirm` comes before")
      ->check(CLI::Range(1, 86400));
  reload_->add_flag("--force", force_, "even if more members would go than the settings allow");
}

std::optional<boost::json::object> SettingsCommands::request() const {
  if (confirm_->parsed()) return boost::json::object{{"command", "confirm"}};
  if (rollback_->parsed()) return boost::json::object{{"command", "rollback"}};
  if (!reload_->parsed()) return std::nullopt;
  boost::json::object arguments;
  if (seconds_ > 0) arguments["confirm"] = seconds_;
  if (force_) arguments["force"] = true;
  return boost::json::object{{"command", "reload"}, {"arguments", arguments}};
}

}  // namespace cli
