// SPDX-License-Identifier: GPL-2.0-or-later
// Commands about one address of a peering LAN: clear, sponge, probe, explain, trace.
#pragma once
#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>

namespace cli {

struct TraceRequest {
  std::string address, file;
  boost::json::object arguments;
};

class AddressCommands {
 public:
  // Adds them to a program that has the command `clear` already; must outlive its parse().
  explicit AddressCommands(CLI::App& app);
  AddressCommands(const AddressCommands&) = delete;
  AddressCommands& operator=(const AddressCommands&) = delete;

  // After parse(): what was asked for, if it is one of these.
  [[nodiscard]] std::optional<boost::json::object> request() const;
  [[nodiscard]] std::optional<boost::json::object> explanation() const;  // filters
  [[nodiscard]] std::optional<TraceRequest> trace() const;
  [[nodiscard]] bool as_json() const { return json_; }

 private:
  CLI::App* add(CLI::App& to, const char* name, const char* help);
  [[nodiscard]] boost::json::object arguments() const;

  std::string address_, domain_, port_, state_, file_;
  uint64_t seconds_ = 0, frames_ = 0;
  bool json_ = false;
  CLI::App *clear_binding_ = nullptr, *clear_duplicate_ = nullptr, *sponge_ = nullptr,
           *probe_ = nullptr, *explain_ = nullptr, *trace_ = nullptr;
};

}  // namespace cli
