// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/proxy_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <string_view>
#include <vector>

#include "daemon/app.h"
#include "daemon/domain_views.h"
#include "daemon/filter.h"
#include "daemon/proxy_view.h"
#include "daemon/trace.h"

namespace peerland {
namespace {

namespace json = boost::json;
using proxyarp::SpongeState;
using Outcome = std::expected<std::string, std::string>;

constexpr std::size_t kMostTraces = 4;
constexpr uint64_t kMostSeconds = 3600, kMostFrames = 1'000'000;

struct Command {
  std::string_view name;
  bool (*act)(Domain& domain, const net::IpAddress& ip, net::TimePoint now);
  const char* done;
  const char* refused;
};

constexpr std::array kCommands{
    Command{"clear-binding",
            [](Domain& d, const net::IpAddress& ip, net::TimePoint now) {
              return d.clear_binding(ip, now);
            },
            "forgotten until it is seen again", "there is no learned binding"},
    Command{"clear-duplicate",
            [](Domain& d, const net::IpAddress& ip, net::TimePoint now) {
              return d.clear_duplicate(ip, now);
            },
            "no longer frozen", "it is not frozen as a duplicate"},
    Command{"sponge-alive",
            [](Domain& d, const net::IpAddress& ip, net::TimePoint now) {
              return d.set_sponge(ip, SpongeState::Alive, now);
            },
            "alive", "no prefix with the policy sponge contains it, or somebody has it"},
    Command{"sponge-dead",
            [](Domain& d, const net::IpAddress& ip, net::TimePoint now) {
              return d.set_sponge(ip, SpongeState::Dead, now);
            },
            "dead: the sponge answers for it",
            "no prefix with the policy sponge contains it, or somebody has it"},
    Command{"sponge-pending",
            [](Domain& d, const net::IpAddress& ip, net::TimePoint now) {
              return d.set_sponge(ip, SpongeState::Pending, now);
            },
            "pending: it is asked for now",
            "no prefix with the policy sponge contains it, or somebody has it"},
    Command{
        "probe",
        [](Domain& d, const net::IpAddress& ip, net::TimePoint now) { return d.probe(ip, now); },
        "asked; see show bindings or show sponge", "there is nobody here to be asked"},
};

// Takes a number out of the arguments.
std::expected<uint64_t, std::string> take_number(json::object& arguments, const char* key,
                                                 uint64_t usual, uint64_t most) {
  const auto* given = arguments.if_contains(key);
  if (given == nullptr) return usual;
  const std::string text =
      given->is_string() ? std::string(given->as_string()) : json::serialize(*given);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > most)
    return std::unexpected(
        fmt::format("{}: expected a number from 1 to {}, got \"{}\"", key, most, text));
  arguments.erase(key);
  return number;
}

std::expected<std::pair<Domain*, net::IpAddress>, std::string> target(
    const App& app, const json::object& arguments) {
  static constexpr const char* kArguments[] = {"ip", "domain", "vni"};
  const auto filter = parse_filter(arguments, kArguments);
  if (!filter) return std::unexpected(filter.error());
  if (!filter->ip) return std::unexpected("ip: expected an IP address");
  const auto domain = domain_of(app, *filter, *filter->ip);
  if (!domain) return std::unexpected(domain.error());
  return std::pair(*domain, *filter->ip);
}

// In each broadcast domain where it is frozen.
Outcome clear_duplicate_mac(App& app, const json::object& arguments) {
  static constexpr const char* kArguments[] = {"mac", "domain", "vni"};
  const auto filter = parse_filter(arguments, kArguments);
  if (!filter) return std::unexpected(filter.error());
  if (!filter->mac) return std::unexpected("mac: expected a MAC address");
  bool done = false;
  for (const auto& domain : app.domains())
    if (wants(*filter, *domain)) done |= domain->clear_duplicate(*filter->mac, net::Clock::now());
  app.deadlines_changed();
  const std::string text = to_string(*filter->mac);
  if (!done) return std::unexpected(text + ": it is not frozen as a duplicate");
  return text + ": no longer frozen";
}

}  // namespace

std::optional<Outcome> act_on_address(App& app, const std::string& command,
                                      const json::object& arguments) {
  const auto found = std::ranges::find(kCommands, command, &Command::name);
  if (found == kCommands.end()) return std::nullopt;
  if (command == "clear-duplicate" && arguments.contains("mac"))
    return clear_duplicate_mac(app, arguments);
  const auto about = target(app, arguments);
  if (!about) return std::unexpected(about.error());
  const auto& [domain, ip] = *about;
  const bool done = found->act(*domain, ip, net::Clock::now());
  app.deadlines_changed();
  const std::string text =
      fmt::format("{}: {}", to_string(ip), done ? found->done : found->refused);
  return done ? Outcome(text) : std::unexpected(text);
}

std::expected<std::shared_ptr<Trace>, std::string> begin_trace(App& app,
                                                               boost::asio::io_context& io,
                                                               const json::object& arguments,
                                                               std::function<void()> wake) {
  json::object rest = arguments;
  TraceOptions options;
  const auto seconds = take_number(rest, "seconds", 60, kMostSeconds);
  if (!seconds) return std::unexpected(seconds.error());
  const auto frames = take_number(rest, "frames", kMostFrames, kMostFrames);
  if (!frames) return std::unexpected(frames.error());
  const auto about = target(app, rest);
  if (!about) return std::unexpected(about.error());
  std::size_t running = 0;
  for (const auto& domain : app.domains()) running += domain->traces();
  if (running >= kMostTraces)
    return std::unexpected(fmt::format("there are {} traces already", running));
  options.ip = about->second;
  options.seconds = std::chrono::seconds(*seconds);
  options.frames = *frames;
  auto trace = std::make_shared<Trace>(io, *about->first, options);
  if (auto started = trace->start(std::move(wake)); !started)
    return std::unexpected(started.error());
  return trace;
}

}  // namespace peerland
