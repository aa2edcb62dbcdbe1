// SPDX-License-Identifier: GPL-2.0-or-later
// Commands about member ports: open, quarantine and shut one, explain a frame, report.
#pragma once
#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cli {

struct FrameRequest {
  std::string source;
  std::size_t most = 0;           // frames of a file
  boost::json::object arguments;  // all but the frame
};

class PortCommands {
 public:
  // Adds them to a program that has the command `explain` already; must outlive its parse().
  explicit PortCommands(CLI::App& app);
  PortCommands(const PortCommands&) = delete;
  PortCommands& operator=(const PortCommands&) = delete;

  // After parse(): what was asked for, if it is one of these.
  [[nodiscard]] std::optional<boost::json::object> request() const;
  [[nodiscard]] std::optional<FrameRequest> frame() const;
  [[nodiscard]] std::optional<boost::json::object> report() const;  // filters
  [[nodiscard]] bool as_json() const { return json_; }

 private:
  std::string port_, wanted_, source_, direction_;
  std::map<std::string, std::string> filters_;  // of the report
  std::size_t most_ = 100;
  bool json_ = false;
  CLI::App *port_command_ = nullptr, *frame_ = nullptr, *report_ = nullptr;
};

}  // namespace cli
