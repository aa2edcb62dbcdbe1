// SPDX-License-Identifier: GPL-2.0-or-later
// Commands about the daemon's settings: diff, reload, confirm, rollback.
#pragma once
#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>

namespace cli {

class SettingsCommands {
 public:
  // Adds them to a program; must outlive its parse().
  explicit SettingsCommands(CLI::App& app);
  SettingsCommands(const SettingsCommands&) = delete;
  SettingsCommands& operator=(const SettingsCommands&) = delete;

  // After parse(): what was asked for, if it is one of these.
  [[nodiscard]] std::optional<boost::json::object> request() const;
  [[nodiscard]] bool diff() const { return diff_->parsed(); }
  [[nodiscard]] bool as_json() const { return json_; }

 private:
  CLI::App *diff_, *reload_, *confirm_, *rollback_;
  int64_t seconds_ = 0;
  bool force_ = false, json_ = false;
};

}  // namespace cli
