// SPDX-License-Identifier: GPL-2.0-or-later
// The table as an MRT dump (RFC 6396): in pieces to whoever asks (`peerlan dump mrt`), and to files
// from time to time.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "bgp/settings.h"
#include "daemon/answer.h"

namespace peerland {

class App;

// Octets of a dump. What changes meanwhile is in it or not; each route is in it at most once.
[[nodiscard]] Answer mrt_dump(const App& app);

// `file` with strftime()'s conversions, in UTC.
[[nodiscard]] std::string dump_name(const std::string& file,
                                    std::chrono::system_clock::time_point time);

class MrtWriter : public std::enable_shared_from_this<MrtWriter> {
 public:
  MrtWriter(boost::asio::io_context& io, const App& app, const bgp::MrtSettings& settings);
  ~MrtWriter();
  MrtWriter(const MrtWriter&) = delete;
  MrtWriter& operator=(const MrtWriter&) = delete;

  // The first dump after one interval.
  void start();
  void stop();

  [[nodiscard]] const bgp::MrtSettings& settings() const { return settings_; }
  [[nodiscard]] uint64_t written() const { return written_; }
  [[nodiscard]] uint64_t failed() const { return failed_; }
  [[nodiscard]] const std::string& last_file() const { return last_file_; }
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  void arm();
  void begin();
  void step();
  void finish();
  void fail(const std::string& step, int error);
  void close();

  boost::asio::io_context& io_;
  const App& app_;
  const bgp::MrtSettings settings_;
  boost::asio::steady_timer timer_;
  Answer dump_;  // while one is being written
  int file_ = -1;
  std::string name_, temporary_;
  uint64_t written_ = 0, failed_ = 0;
  std::string last_file_, last_error_;
};

}  // namespace peerland
