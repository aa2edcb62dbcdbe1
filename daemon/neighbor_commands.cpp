// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/neighbor_commands.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <functional>
#include <string_view>

#include "daemon/app.h"

namespace peerland {
namespace {

constexpr std::size_t kMaxText = 255;  // octets, RFC 9003

struct Request {
  std::string neighbor, text;
};

using Outcome = std::expected<void, std::string>;

struct Command {
  std::string_view name;
  Outcome (*act)(bgp::io::Speaker& speaker, const Request& request);
  const char* done;
};

constexpr std::array kCommands{
    Command{"clear-neighbor",
            [](bgp::io::Speaker& s, const Request& r) { return s.reset(r.neighbor, r.text); },
            "session reset"},
    Command{"refresh-neighbor",
            [](bgp::io::Speaker& s, const Request& r) { return s.ask_refresh(r.neighbor); },
            "asked for all routes again"},
    Command{"shutdown-neighbor",
            [](bgp::io::Speaker& s, const Request& r) {
              return s.set_enabled(r.neighbor, false, r.text);
            },
            "shut down until it is enabled again"},
    Command{"enable-neighbor",
            [](bgp::io::Speaker& s, const Request& r) {
              return s.set_enabled(r.neighbor, true, r.text);
            },
            "enabled"},
};

}  // namespace

std::optional<std::expected<std::string, std::string>> act_on_neighbor(
    App& app, const std::string& command, const boost::json::object& arguments) {
  const auto found = std::ranges::find(kCommands, command, &Command::name);
  if (found == kCommands.end()) return std::nullopt;
  Request request;
  for (const auto& [key, value] : arguments) {
    if ((key != "neighbor" && key != "text") || !value.is_string())
      return std::unexpected("unknown argument \"" + std::string(key) + "\"");
    (key == "neighbor" ? request.neighbor : request.text) = value.as_string();
  }
  if (request.neighbor.empty()) return std::unexpected("neighbor: expected an address or a name");
  if (request.text.size() > kMaxText)
    return std::unexpected("text: at most 255 octets go over the wire (RFC 9003)");
  if (auto done = found->act(app.speaker(), request); !done) return std::unexpected(done.error());
  return request.neighbor + ": " + found->done;
}

}  // namespace peerland
