// SPDX-License-Identifier: GPL-2.0-or-later
// peerland: command line, log, signals. Everything else is in app.h.
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <malloc.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <cstdio>
#include <functional>
#include <string>

#include "config/settings.h"
#include "daemon/app.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace {

// Warnings and errors go to standard error, one line each.
std::optional<config::NodeSettings> load(const std::string& file) {
  auto loaded = config::load(file);
  if (!loaded) {
    for (const auto& error : loaded.error()) std::fprintf(stderr, "%s\n", to_string(error).c_str());
    return std::nullopt;
  }
  for (const auto& warning : loaded->warnings)
    std::fprintf(stderr, "warning: %s\n", to_string(warning).c_str());
  return std::move(loaded->settings);
}

bool open_log(const config::LogSettings& settings) {
  try {
    std::shared_ptr<spdlog::logger> logger;
    if (settings.file.empty())
      logger = spdlog::stderr_color_mt("peerland");
    else
      logger = spdlog::basic_logger_mt("peerland", settings.file);
    logger->set_level(spdlog::level::from_str(settings.level));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %n: %v");
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
    return true;
  } catch (const spdlog::spdlog_ex& error) {
    std::fprintf(stderr, "log file %s: %s\n", settings.file.c_str(), error.what());
    return false;
  }
}

int run(const std::string& file) {
  auto settings = load(file);
  if (!settings) return 2;
  if (!open_log(settings->log)) return 1;
  boost::asio::io_context io{1};
  peerland::App app(io, *settings, file);
  if (auto started = app.start(); !started) {
    spdlog::error("{}", started.error());
    return 1;
  }
  boost::asio::signal_set signals(io, SIGTERM, SIGINT, SIGHUP);
  std::function<void()> wait = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int number) {
      if (error) return;
      if (number == SIGHUP) {
        if (auto result = app.reload())
          spdlog::info("{}", *result);
        else
          spdlog::error("reload: {}", result.error());
      } else {
        sd_notify(0, "STOPPING=1");
        app.stop();
      }
      wait();
    });
  };
  wait();
  sd_notify(0, "READY=1");
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // UPDATEs come and go by the thousand: their memory is not to be given back and faulted in again
  // each time. The speaker trims when a lot of routes has gone.
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
  CLI::App options{"peerland: EVPN PE and route server for Internet exchanges"};
  std::string config_file = "/etc/peerlan/peerland.yaml", check_file, teardown_file;
  options.set_version_flag("--version", PEERLAN_VERSION);
  options.add_option("-c,--config", config_file, "settings file")->capture_default_str();
  options.add_option("--check", check_file, "check a settings file, print what is wrong, and exit");
  options.add_option(
      "--teardown", teardown_file,
      "remove the data path of this settings file (no daemon may be running), and exit");
  CLI11_PARSE(options, argc, argv);
  if (!check_file.empty()) {
    if (!load(check_file)) return 2;
    std::printf("%s: ok\n", check_file.c_str());
    return 0;
  }
  if (!teardown_file.empty()) {
    const auto settings = load(teardown_file);
    if (!settings) return 2;
    if (auto removed = peerland::App::teardown_offline(*settings); !removed) {
      std::fprintf(stderr, "%s", removed.error().c_str());
      return 1;
    }
    std::printf("data path removed\n");
    return 0;
  }
  return run(config_file);
}
