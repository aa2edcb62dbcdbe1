// SPDX-License-Identifier: GPL-2.0-or-later
// GET /metrics in the Prometheus text format. Names: docs/metrics.md.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>

#include "net/ip_address.h"

namespace peerland {

class App;

// All metrics of this moment, serialized.
[[nodiscard]] std::string metrics_text(const App& app);

class MetricsServer {
 public:
  MetricsServer(boost::asio::io_context& io, const App& app);
  [[nodiscard]] std::expected<void, std::string> open(const net::IpAddress& address, uint16_t port);

 private:
  struct Session;
  void accept();
  boost::asio::io_context& io_;
  const App& app_;
  boost::asio::ip::tcp::acceptor acceptor_;
  // Sessions, which may end after the server.
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace peerland
