// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's control socket: one request, and an answer that may be long and is read as it comes.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cli {

// Exit codes of the program.
inline constexpr int kDone = 0, kRefused = 1, kUsage = 2, kNoDaemon = 3;

struct Failure {
  int exit_code = kRefused;
  std::string what;
};

class Client {
 public:
  // Connects and asks.
  [[nodiscard]] static std::expected<Client, Failure> ask(const std::string& socket,
                                                          const boost::json::object& request);
  Client(Client&&) noexcept;
  ~Client();

  // The next line without its end, or nothing at the end of the answer.
  [[nodiscard]] std::expected<std::optional<std::string>, Failure> line();
  // The next `size` octets.
  [[nodiscard]] std::expected<std::string, Failure> octets(std::size_t size);

  // A line that is a whole document; `{"error": ..}` is a failure.
  [[nodiscard]] static std::expected<boost::json::object, Failure> document(
      const std::string& line);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A document whose rows come one a line: calls `row` for each, and returns the fields behind them;
// a document of one line is returned as it is.
[[nodiscard]] std::expected<boost::json::object, Failure> read_rows(
    Client& client, const std::function<void(boost::json::object)>& row);

}  // namespace cli
