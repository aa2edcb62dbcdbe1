// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/address_commands.h"

namespace cli {

CLI::App* AddressCommands::add(CLI::App& to, const char* name, const char* help) {
  auto* sub = to.add_subcommand(name, help);
  sub->fallthrough();
  sub->add_option("address", address_, "IP address")->required();
  sub->add_option("--domain", domain_, "broadcast domain, where several have the address");
  return sub;
}

AddressCommands::AddressCommands(CLI::App& app) {
  auto* clear = app.get_subcommand("clear");
  clear->description("end the session of a neighbor, forget a binding, free a duplicate address");
  clear_binding_ = add(*clear, "binding", "forget a learned binding");
  clear_duplicate_ =
      add(*clear, "duplicate", "free an IP or MAC address that is frozen as a duplicate");
  sponge_ = add(app, "sponge", "say yourself whether the sponge answers for an address");
  sponge_->add_option("state", state_, "alive, dead or pending")
      ->required()
      ->check(CLI::IsMember({"alive", "dead", "pending"}));
  probe_ = add(app, "probe", "ask whether an address is alive");
  auto* explain = app.add_subcommand("explain", "say why");
  explain->require_subcommand(1);
  explain_ = add(*explain, "ip", "whose an address is, what the next question for it gets and why");
  explain_->add_option("--port", port_, "of a question from this port");
  explain_->add_flag("--json", json_, "the daemon's JSON document as it is");
  auto* trace = app.add_subcommand("trace", "record frames to a file");
  trace->require_subcommand(1);
  trace_ = add(*trace, "ip", "all ARP and ND about an address, as pcapng with the verdicts");
  trace_->add_option("--file", file_, "where to; - is standard output")->required();
  trace_->add_option("--seconds", seconds_, "for so long; 60 if not given")
      ->check(CLI::Range(1, 3600));
  trace_->add_option("--frames", frames_, "at most so many frames")
      ->check(CLI::Range(1, 1'000'000));
}

boost::json::object AddressCommands::arguments() const {
  // Duplicates are IP addresses or MAC addresses.
  const bool mac = clear_duplicate_->parsed() && address_.size() == 17 && address_[2] == ':' &&
                   address_[5] == ':' && address_[14] == ':';
  boost::json::object arguments{{mac ? "mac" : "ip", address_}};
  if (!domain_.empty()) arguments["domain"] = domain_;
  return arguments;
}

std::optional<boost::json::object> AddressCommands::request() const {
  std::string command;
  if (clear_binding_->parsed()) command = "clear-binding";
  if (clear_duplicate_->parsed()) command = "clear-duplicate";
  if (sponge_->parsed()) command = "sponge-" + state_;
  if (probe_->parsed()) command = "probe";
  if (command.empty()) return std::nullopt;
  return boost::json::object{{"command", command}, {"arguments", arguments()}};
}

std::optional<boost::json::object> AddressCommands::explanation() const {
  if (!explain_->parsed()) return std::nullopt;
  auto filter = arguments();
  if (!port_.empty()) filter["port"] = port_;
  return filter;
}

std::optional<TraceRequest> AddressCommands::trace() const {
  if (!trace_->parsed()) return std::nullopt;
  TraceRequest trace{address_, file_, arguments()};
  if (seconds_ > 0) trace.arguments["seconds"] = seconds_;
  if (frames_ > 0) trace.arguments["frames"] = frames_;
  return trace;
}

}  // namespace cli
