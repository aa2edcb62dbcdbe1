// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/port_commands.h"

namespace cli {

PortCommands::PortCommands(CLI::App& app) {
  port_command_ = app.add_subcommand("port", "open, quarantine or shut a member port yourself");
  port_command_->fallthrough();
  port_command_->add_option("name", port_, "interface of the port")->required();
  port_command_->add_option("state", wanted_, "open, quarantine or shut")
      ->required()
      ->check(CLI::IsMember({"open", "quarantine", "shut"}));

  auto* explain = app.get_subcommand("explain");
  frame_ = explain->add_subcommand("frame", "what the programs of a port would do with a frame");
  frame_->fallthrough();
  frame_->add_option("frame", source_, "octets in hexadecimal, or a pcap file; - reads one")
      ->required();
  frame_->add_option("--port", port_, "the port: a member's, or the VXLAN device")->required();
  frame_->add_option("--direction", direction_, "ingress if not given, decap of a VXLAN device")
      ->check(CLI::IsMember({"ingress", "egress", "decap", "encap"}));
  frame_->add_option("--frames", most_, "at most so many of a file")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  frame_->add_flag("--json", json_, "the daemon's JSON document as it is, one a frame");

  report_ = app.add_subcommand("report",
                               "what the peering LAN was busy with: top talkers by class "
                               "against their limits, and what should not be there");
  report_->fallthrough();
  const auto filter = [&](const char* option, const char* name, const char* help) {
    report_->add_option_function<std::string>(
        option, [this, name](const std::string& value) { filters_[name] = value; }, help);
  };
  filter("--intervals", "intervals", "so many of the last ones; 0: the one that runs");
  filter("--top", "limit", "at most so many of each class; 10 if not given");
  filter("--port", "port", "only this port");
  filter("--domain", "domain", "only this broadcast domain");
  report_->add_flag("--json", json_, "the daemon's JSON document as it is");
}

std::optional<boost::json::object> PortCommands::request() const {
  if (!port_command_->parsed()) return std::nullopt;
  return boost::json::object{{"command", wanted_ + "-port"},
                             {"arguments", boost::json::object{{"port", port_}}}};
}

std::optional<FrameRequest> PortCommands::frame() const {
  if (!frame_->parsed()) return std::nullopt;
  FrameRequest request{source_, most_, {{"port", port_}}};
  if (!direction_.empty()) request.arguments["direction"] = direction_;
  return request;
}

std::optional<boost::json::object> PortCommands::report() const {
  if (!report_->parsed()) return std::nullopt;
  boost::json::object filters;
  for (const auto& [key, value] : filters_) filters[key] = value;
  return filters;
}

}  // namespace cli
