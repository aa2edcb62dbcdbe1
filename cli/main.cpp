// SPDX-License-Identifier: GPL-2.0-or-later
// peerlan: asks the daemon over its control socket and prints the answer, as a table or as JSON.
// Exit codes: 0 done, 1 the daemon said no, 2 wrong usage, 3 no daemon there.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/address_commands.h"
#include "cli/client.h"
#include "cli/frame_source.h"
#include "cli/port_commands.h"
#include "cli/render.h"
#include "cli/render_diff.h"
#include "cli/settings_commands.h"
#include "cli/words.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace {

namespace json = boost::json;

constexpr const char* kSocket = "/run/peerlan/peerland.sock";
constexpr const char* kConfig = "/etc/peerlan/peerland.yaml";

struct View {
  const char* name;
  const char* text;
  std::vector<cli::FilterWord> filters;
  const char* lone = nullptr;  // the filter that a single word means
};

const std::vector<View>& views() {
  static const std::vector<View> kViews{
      {"summary", "the node at a glance", {{"domain"}, {"vni"}}},
      {"neighbors",
       "BGP neighbors; with the name of one, all about it",
       {{"neighbor"}},
       "neighbor"},
      {"routes",
       "EVPN routes with all paths",
       {{"type"},
        {"mac"},
        {"ip"},
        {"vni"},
        {"rd"},
        {"neighbor"},
        {"rejected", true},
        {"flagged", true},
        {"best", true},
        {"why", true},
        {"limit"}}},
      {"collectors", "BMP collectors and MRT dumps", {}},
      {"macs", "MAC addresses and where they are", {{"mac"}, {"port"}, {"domain"}, {"vni"}}},
      {"bindings",
       "IP to MAC bindings of the proxy; a single word is an IP address, a MAC address or a member",
       {{"ip"}, {"mac"}, {"member"}, {"match"}, {"port"}, {"domain"}, {"vni"}},
       "match"},
      {"duplicates",
       "addresses that several members use, frozen or on the way there",
       {{"ip"}, {"domain"}, {"vni"}}},
      {"sponge", "addresses that nobody answers for, and who asks", {{"ip"}, {"domain"}, {"vni"}}},
      {"offenders",
       "who asks most, what is asked for most, who answers for others, spoofs or sweeps",
       {{"port"}, {"domain"}, {"vni"}}},
      {"ports",
       "member ports; with the name of one, all about it",
       {{"port"}, {"domain"}, {"vni"}},
       "port"},
      {"violations",
       "frames that violate a port's security, with the MAC seen",
       {{"mac"}, {"port"}, {"domain"}, {"vni"}},
       "port"},
      {"underlay", "devices that tunnels arrive through, and what came from each VTEP", {}},
      {"drops",
       "frames dropped, by port, direction, class and reason",
       {{"port"}, {"domain"}, {"vni"}}}};
  return kViews;
}

const View& monitored() {
  static const View kMonitor{"monitor",
                             "watch sessions and best routes change",
                             {{"type"}, {"mac"}, {"ip"}, {"vni"}, {"rd"}, {"neighbor"}}};
  return kMonitor;
}

const char* help_of(std::string_view filter) {
  static const std::map<std::string_view, const char*> kTexts{
      {"type", "only this route type"},
      {"mac", "only this MAC address"},
      {"ip", "only this IP address"},
      {"vni", "only this VNI"},
      {"neighbor", "only this neighbor, by address or description"},
      {"member", "only this member, by AS number or a part of its name"},
      {"match", "an IP address, a MAC address or a member"},
      {"port", "only this port"},
      {"domain", "only this broadcast domain"},
      {"rd", "only this route distinguisher"},
      {"rejected", "only paths that were rejected"},
      {"flagged", "only paths that a policy flagged"},
      {"best", "only paths that were selected"},
      {"why", "say for each path why it was selected, lost or was rejected"},
      {"limit", "at most so many paths; the others are counted"}};
  return kTexts.at(filter);
}

int report(const cli::Failure& failure) {
  std::fprintf(stderr, "peerlan: %s\n", failure.what.c_str());
  return failure.exit_code;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// A request that is answered with one document.
std::expected<json::object, cli::Failure> ask(const std::string& socket,
                                              const json::object& request) {
  auto client = cli::Client::ask(socket, request);
  if (!client) return std::unexpected(client.error());
  return cli::read_rows(*client, [](const json::object&) {});
}

// ... that has a text.
int command(const std::string& socket, const json::object& request) {
  const auto answer = ask(socket, request);
  if (!answer) return report(answer.error());
  const auto* result = answer->if_contains("result");
  if (result != nullptr && result->is_string()) std::printf("%s\n", result->as_string().c_str());
  return cli::kDone;
}

int diff(const std::string& socket, bool as_json) {
  const auto answer = ask(socket, {{"command", "diff"}});
  if (!answer) return report(answer.error());
  print(as_json ? json::serialize(*answer) + "\n" : cli::render_diff(*answer));
  return cli::kDone;
}

// Without a daemon the data path is removed by the program that knows how: peerland --teardown.
int teardown(const std::string& socket, const std::string& config) {
  const auto answer = ask(socket, {{"command", "teardown"}});
  if (answer) {
    const auto* result = answer->if_contains("result");
    if (result != nullptr && result->is_string()) std::printf("%s\n", result->as_string().c_str());
    return cli::kDone;
  }
  if (answer.error().exit_code != cli::kNoDaemon) return report(answer.error());
  std::error_code error;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "peerland";
  const std::string program =
      !error && std::filesystem::exists(beside) ? beside.string() : "peerland";
  ::execlp(program.c_str(), "peerland", "--teardown", config.c_str(), static_cast<char*>(nullptr));
  std::fprintf(stderr, "peerlan: %s; and %s can't be run: %s\n", answer.error().what.c_str(),
               program.c_str(), std::strerror(errno));
  return cli::kNoDaemon;
}

// The daemon's document as it is, as it comes.
int copy(cli::Client& client) {
  bool first = true;
  for (;;) {
    const auto line = client.line();
    if (!line) return report(line.error());
    if (!*line) return cli::kDone;
    if (std::exchange(first, false) && !(*line)->ends_with('['))
      if (const auto document = cli::Client::document(**line); !document)
        return report(document.error());
    print(**line + "\n");
    if (std::fflush(stdout) != 0) return cli::kDone;  // nobody reads any more
  }
}

int show(const std::string& socket, const std::string& what, const json::object& arguments,
         bool as_json) {
  auto client =
      cli::Client::ask(socket, {{"command", "show"}, {"what", what}, {"arguments", arguments}});
  if (!client) return report(client.error());
  if (as_json) return copy(*client);
  cli::RowPrinter rows(
      what, arguments.contains("neighbor") || (what == "ports" && arguments.contains("port")),
      print);
  const auto rest = cli::read_rows(*client, [&](json::object row) { rows.add(std::move(row)); });
  if (!rest) return report(rest.error());
  rows.finish(*rest);
  return cli::kDone;
}

// Each frame is a request of its own.
int explain_frames(const std::string& socket, const cli::FrameRequest& request, bool as_json) {
  const auto frames = cli::frames_of(request.source, request.most);
  if (!frames) return report({cli::kUsage, frames.error()});
  std::size_t number = 0;
  for (const auto& frame : *frames) {
    json::object arguments = request.arguments;
    arguments["frame"] = frame;
    if (!as_json && frames->size() > 1) print("frame " + std::to_string(++number) + ": ");
    if (const int result = show(socket, "frame", arguments, as_json); result != cli::kDone)
      return result;
  }
  return cli::kDone;
}

// Until interrupted, or the daemon ends.
int monitor(const std::string& socket, const std::string& what, const json::object& arguments,
            bool as_json) {
  auto client =
      cli::Client::ask(socket, {{"command", "monitor"}, {"what", what}, {"arguments", arguments}});
  if (!client) return report(client.error());
  for (;;) {
    const auto line = client->line();
    if (!line) return report(line.error());
    if (!*line) return report({cli::kNoDaemon, "the daemon has ended"});
    const auto event = cli::Client::document(**line);
    if (!event) return report(event.error());
    print(as_json ? **line + "\n" : cli::render_event(*event));
    if (std::fflush(stdout) != 0) return cli::kDone;
  }
}

// The daemon sends the octets; the file is ours, and has its name when it is whole.
int dump_mrt(const std::string& socket, const std::string& file) {
  auto client = cli::Client::ask(socket, {{"command", "dump-mrt"}});
  if (!client) return report(client.error());
  const bool to_stdout = file == "-";
  const std::string temporary = file + ".tmp";
  std::FILE* out = to_stdout ? stdout : std::fopen(temporary.c_str(), "wb");
  const auto failed = [&](const cli::Failure& failure) {
    if (!to_stdout && out != nullptr) {
      std::fclose(out);
      ::unlink(temporary.c_str());
    }
    return report(failure);
  };
  if (out == nullptr) return failed({cli::kRefused, temporary + ": " + std::strerror(errno)});
  for (;;) {
    const auto head = client->octets(4);
    if (!head) return failed(head.error());
    std::size_t size = 0;
    for (const char c : *head) size = size << 8 | static_cast<unsigned char>(c);
    if (size == 0) break;
    const auto piece = client->octets(size);
    if (!piece) return failed(piece.error());
    if (std::fwrite(piece->data(), 1, size, out) != size)
      return failed({cli::kRefused, file + ": " + std::strerror(errno)});
  }
  if (to_stdout) return cli::kDone;
  const int closed = std::fclose(out);
  out = nullptr;
  if (closed != 0 || std::rename(temporary.c_str(), file.c_str()) != 0) {
    const cli::Failure failure{cli::kRefused, file + ": " + std::strerror(errno)};
    ::unlink(temporary.c_str());
    return report(failure);
  }
  return cli::kDone;
}

// The daemon sends the octets as they come; the file is ours, and whole after each piece.
int trace_to_file(const std::string& socket, const cli::TraceRequest& trace) {
  auto client = cli::Client::ask(socket, {{"command", "trace"}, {"arguments", trace.arguments}});
  if (!client) return report(client.error());
  // An error comes as a line.
  const auto first = client->octets(1);
  if (!first) return report(first.error());
  if (*first == "{") {
    const auto line = client->line();
    const auto error = line && *line ? cli::Client::document("{" + **line)
                                     : std::unexpected(cli::Failure{cli::kNoDaemon, "no answer"});
    return report(error ? cli::Failure{cli::kRefused, "no trace came"} : error.error());
  }
  const bool to_stdout = trace.file == "-";
  std::FILE* out = to_stdout ? stdout : std::fopen(trace.file.c_str(), "wb");
  const auto failed = [&] {
    return report({cli::kRefused, trace.file + ": " + std::strerror(errno)});
  };
  if (out == nullptr) return failed();
  std::fprintf(stderr,
               "peerlan: tracing %s; meanwhile the daemon answers for it and not the kernel\n",
               trace.address.c_str());
  std::string head = *first;
  int result = cli::kDone;
  for (;;) {
    const auto more = client->octets(4 - head.size());
    if (!more) {
      result = report(more.error());
      break;
    }
    head += *more;
    std::size_t size = 0;
    for (const char c : head) size = size << 8 | static_cast<unsigned char>(c);
    head.clear();
    if (size == 0) break;
    const auto piece = client->octets(size);
    if (!piece) {
      result = report(piece.error());
      break;
    }
    if (std::fwrite(piece->data(), 1, size, out) != size || std::fflush(out) != 0) {
      result = failed();
      break;
    }
  }
  if (!to_stdout && std::fclose(out) != 0 && result == cli::kDone) return failed();
  return result;
}

// Options and words of the filters of a view.
void add_filters(CLI::App& to, const View& view, std::map<std::string, std::string>& arguments,
                 std::vector<std::string>& words) {
  for (const cli::FilterWord& filter : view.filters) {
    const std::string name = filter.name, option = "--" + name;
    if (filter.flag)
      to.add_flag_callback(option, [&arguments, name] { arguments[name] = "true"; }, help_of(name));
    else
      to.add_option_function<std::string>(
          option, [&arguments, name](const std::string& value) { arguments[name] = value; },
          help_of(name));
  }
  to.add_option("filters", words, "the same as words: type 2 vni 100");
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

  bool as_json = false;
  std::map<std::string, std::string> arguments;
  std::vector<std::string> words;
  const View* chosen = nullptr;
  auto* shows = app.add_subcommand("show", "show what the daemon knows");
  shows->require_subcommand(1);
  shows->add_flag("--json", as_json, "the daemon's JSON document as it is");
  for (const View& view : views()) {
    auto* sub = shows->add_subcommand(view.name, view.text);
    sub->fallthrough();
    add_filters(*sub, view, arguments, words);
    sub->callback([&chosen, &view] { chosen = &view; });
  }
  auto* watch = app.add_subcommand(monitored().name, monitored().text);
  watch->add_flag("--json", as_json, "one JSON object a line");
  add_filters(*watch, monitored(), arguments, words);
  watch->footer("The first word may be routes or neighbors: only these.");

  std::string neighbor, text, file;
  bool soft = false;
  const auto of_neighbor = [&](const char* verb, const char* help) {
    auto* sub = app.add_subcommand(verb, help);
    sub->require_subcommand(1);
    auto* one = sub->add_subcommand("neighbor", help);
    one->fallthrough();
    one->add_option("name", neighbor, "address or description of the neighbor")->required();
    return one;
  };
  auto* clear = of_neighbor("clear", "end the session of a neighbor; it comes again");
  cli::AddressCommands about_address(app);
  cli::PortCommands about_port(app);
  clear->add_flag("--soft", soft, "keep the session, and ask for all routes again (route refresh)");
  clear->add_option("--text", text, "for the other operator (RFC 9003)");
  auto* shut = of_neighbor("shutdown", "end the session of a neighbor until it is enabled again");
  shut->add_option("--text", text, "for the other operator (RFC 9003)");
  auto* enable = of_neighbor("enable", "undo a shutdown");

  auto* dump = app.add_subcommand("dump", "write what the daemon knows to a file");
  dump->require_subcommand(1);
  auto* mrt = dump->add_subcommand("mrt", "the routes with all paths in MRT format (RFC 6396)");
  mrt->fallthrough();
  mrt->add_option("file", file, "where to; - is standard output")->required();

  cli::SettingsCommands about_settings(app);
  auto* tear =
      app.add_subcommand("teardown", "end the daemon and remove bridge entries, programs and pins");
  tear->add_option("-c,--config", config, "settings file, used when no daemon runs")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (soft && !text.empty()) throw CLI::ValidationError("--soft", "no text goes with it");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kDone : cli::kUsage;
  }

  if (const auto request = about_settings.request()) return command(socket, *request);
  if (about_settings.diff()) return diff(socket, about_settings.as_json());
  if (tear->parsed()) return teardown(socket, config);
  if (mrt->parsed()) return dump_mrt(socket, file);
  if (const auto request = about_address.request()) return command(socket, *request);
  if (const auto filter = about_address.explanation())
    return show(socket, "explanation", *filter, about_address.as_json());
  if (const auto request = about_port.request()) return command(socket, *request);
  if (const auto frame = about_port.frame())
    return explain_frames(socket, *frame, about_port.as_json());
  if (const auto filter = about_port.report())
    return show(socket, "report", *filter, about_port.as_json());
  if (const auto trace = about_address.trace()) return trace_to_file(socket, *trace);
  const char* act = !clear->parsed() ? shut->parsed()     ? "shutdown-neighbor"
                                       : enable->parsed() ? "enable-neighbor"
                                                          : nullptr
                    : soft           ? "refresh-neighbor"
                                     : "clear-neighbor";
  if (act != nullptr) {
    json::object about{{"neighbor", neighbor}};
    if (!text.empty()) about["text"] = text;
    return command(socket, {{"command", act}, {"arguments", about}});
  }
  std::string what;
  const bool watching = watch->parsed();
  if (watching && !words.empty() && (words[0] == "routes" || words[0] == "neighbors")) {
    what = words[0];
    words.erase(words.begin());
  }
  const View& view = watching ? monitored() : *chosen;
  if (const auto taken = cli::take_words(words, view.filters, view.lone, arguments); !taken)
    return report({cli::kUsage, taken.error()});
  json::object filter;
  for (const auto& [key, value] : arguments) filter[key] = value;
  return watching ? monitor(socket, what, filter, as_json)
                  : show(socket, view.name, filter, as_json);
}
