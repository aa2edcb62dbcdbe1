// SPDX-License-Identifier: GPL-2.0-or-later
// The control socket: a Unix stream socket. One request a connection, a line of JSON:
// {"command":"show","what":"routes","arguments":{...}} -> the document, or {"error":"..."}.
// docs/json.md has the commands and documents. Large documents are made and sent in pieces as they
// are read, so that they hold nothing up.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>

namespace peerland {

class App;

class ControlServer {
 public:
  ControlServer(boost::asio::io_context& io, App& app);
  ~ControlServer();
  // Mode 0660. A socket file that nobody listens on is replaced; one in use is an error.
  [[nodiscard]] std::expected<void, std::string> open(const std::string& path);
  // True when a daemon listens there.
  [[nodiscard]] static bool answers(boost::asio::io_context& io, const std::string& path);

 private:
  struct Connection;
  void accept();
  boost::asio::io_context& io_;
  App& app_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::string path_;
  // Connections, which may end after the server.
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace peerland
