// SPDX-License-Identifier: GPL-2.0-or-later
// peerlan: asks the daemon over its control socket and prints the answer, as a table or as JSON.
// Exit codes: 0 done, 1 the daemon said no, 2 wrong usage, 3 no daemon there.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "cli/render.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr const char* kSocket = "/run/peerlan/peerland.sock";
constexpr const char* kConfig = "/etc/peerlan/peerland.yaml";

struct Answer {
  int exit_code = 0;
  json::object document;
  std::string error;
};

// One request, one answer. exit_code 3: nobody listens there.
Answer ask(const std::string& path, const json::object& request) {
  asio::io_context io;
  asio::local::stream_protocol::socket socket(io);
  boost::system::error_code error;
  socket.connect(asio::local::stream_protocol::endpoint(path), error);
  if (error) return {3, {}, "no daemon at " + path + ": " + error.message()};
  asio::write(socket, asio::buffer(json::serialize(request) + "\n"), error);
  if (error) return {3, {}, path + ": " + error.message()};
  std::string text;
  asio::read(socket, asio::dynamic_buffer(text), error);
  if (error != asio::error::eof) return {3, {}, path + ": " + error.message()};
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return {3, {}, path + ": the answer is not JSON"};
  if (const auto* what = value.as_object().if_contains("error"))
    return {1, {}, what->is_string() ? std::string(what->as_string()) : json::serialize(*what)};
  return {0, value.as_object(), ""};
}

int report(const Answer& answer) {
  std::fprintf(stderr, "peerlan: %s\n", answer.error.c_str());
  return answer.exit_code;
}

int command(const std::string& socket, const char* name) {
  const Answer answer = ask(socket, {{"command", name}});
  if (answer.exit_code != 0) return report(answer);
  const auto* result = answer.document.if_contains("result");
  if (result != nullptr && result->is_string()) std::printf("%s\n", result->as_string().c_str());
  return 0;
}

// Without a daemon the data path is removed by the program that knows how: peerland --teardown.
int teardown(const std::string& socket, const std::string& config) {
  const Answer answer = ask(socket, {{"command", "teardown"}});
  if (answer.exit_code == 0) {
    const auto* result = answer.document.if_contains("result");
    if (result != nullptr && result->is_string()) std::printf("%s\n", result->as_string().c_str());
    return 0;
  }
  if (answer.exit_code != 3) return report(answer);
  std::error_code error;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "peerland";
  const std::string program =
      !error && std::filesystem::exists(beside) ? beside.string() : "peerland";
  ::execlp(program.c_str(), "peerland", "--teardown", config.c_str(), static_cast<char*>(nullptr));
  std::fprintf(stderr, "peerlan: %s; and %s can't be run: %s\n", answer.error.c_str(),
               program.c_str(), std::strerror(errno));
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"peerlan: look at and steer a peerland daemon"};
  app.set_version_flag("--version", PEERLAN_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  std::string socket = kSocket, config = kConfig;
  app.add_option("-s,--socket", socket, "control socket")
      ->capture_default_str()
      ->envname("PEERLAN_SOCKET");

  auto* show = app.add_subcommand("show", "show what the daemon knows");
  show->require_subcommand(1);
  bool as_json = false;
  show->add_flag("--json", as_json, "the daemon's JSON document as it is");
  const std::map<std::string, std::string> views{
      {"summary", "the node at a glance"},
      {"neighbors", "BGP neighbors"},
      {"routes", "EVPN routes with all paths"},
      {"macs", "MAC addresses and where they are"},
      {"bindings", "IP to MAC bindings of the proxy"},
      {"ports", "member ports"},
      {"drops", "frames dropped, by port, direction, class and reason"}};
  const std::map<std::string, std::string> filters{{"type", "route type"},
                                                   {"mac", "MAC address"},
                                                   {"ip", "IP address"},
                                                   {"vni", "VNI"},
                                                   {"neighbor", "neighbor address or name"},
                                                   {"port", "port name"},
                                                   {"domain", "broadcast domain"},
                                                   {"rd", "route distinguisher"}};
  const std::map<std::string, std::vector<const char*>> fitting{
      {"summary", {"domain", "vni"}},
      {"neighbors", {"neighbor"}},
      {"routes", {"type", "mac", "ip", "vni", "rd", "neighbor"}},
      {"macs", {"mac", "port", "domain", "vni"}},
      {"bindings", {"ip", "mac", "port", "domain", "vni"}},
      {"ports", {"port", "domain", "vni"}},
      {"drops", {"port", "domain", "vni"}}};
  std::map<std::string, std::string> arguments;
  std::string what;
  for (const auto& [name, text] : views) {
    auto* view = show->add_subcommand(name, text);
    view->fallthrough();
    for (const char* filter : fitting.at(name))
      view->add_option_function<std::string>(
          std::string("--") + filter,
          [&arguments, filter](const std::string& value) { arguments[filter] = value; },
          "only this " + filters.at(filter));
    view->callback([&what, chosen = name] { what = chosen; });
  }
  auto* reload = app.add_subcommand(
      "reload", "read the settings file again; refused as a whole if it has an error");
  auto* tear =
      app.add_subcommand("teardown", "end the daemon and remove bridge entries, programs and pins");
  tear->add_option("-c,--config", config, "settings file, used when no daemon runs")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (reload->parsed()) return command(socket, "reload");
  if (tear->parsed()) return teardown(socket, config);
  json::object filter;
  for (const auto& [key, value] : arguments) filter[key] = value;
  const Answer answer = ask(socket, {{"command", "show"}, {"what", what}, {"arguments", filter}});
  if (answer.exit_code != 0) return report(answer);
  const std::string text =
      as_json ? json::serialize(answer.document) + "\n" : cli::render(what, answer.document);
  std::fputs(text.c_str(), stdout);
  return 0;
}
