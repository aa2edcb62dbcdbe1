// SPDX-License-Identifier: GPL-2.0-or-later
// The listening sockets and the keys that they have for those who may connect.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bgp/io/protection.h"
#include "bgp/io/socket.h"
#include "bgp/settings.h"
#include "net/ip_address.h"

namespace spdlog {
class logger;
}

namespace bgp::io {

class Listeners {
 public:
  Listeners(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log)
      : io_(io), log_(std::move(log)) {}
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // What went wrong, in words, or nothing.
  [[nodiscard]] std::optional<std::string> open(const ListenSettings& settings);
  // Sets what is new or different. Passwords can fail: those that were set are then put back.
  [[nodiscard]] std::optional<std::string> protect(const Protections& wanted);
  // Takes away what is not wanted any longer, when the sessions that had it are over.
  void unprotect(const Protections& wanted);
  // Why these peers have no TCP-AO keys though they should, or null.
  [[nodiscard]] const std::string* why_unprotected(const net::IpPrefix& peers) const;

  // Hands over each connection until close(). Without file descriptors it tries again later.
  void accept(const std::function<void(tcp::socket)>& handler);
  void close();
  [[nodiscard]] std::vector<ListenSettings> listening() const;  // with the ports that they got

 private:
  struct Listener;
  static void accept_next(const std::shared_ptr<Listener>& listener);
  std::optional<std::string> set_password(const net::IpPrefix& peers, const std::string& key);
  void set_ao_keys(const net::IpPrefix& peers, const std::vector<TcpAoKey>& old,
                   const std::vector<TcpAoKey>& wanted);

  boost::asio::io_context& io_;
  std::shared_ptr<spdlog::logger> log_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  Protections protections_;                           // what the listeners have
  std::map<net::IpPrefix, std::string> unprotected_;  // and why they have not what they should
};

}  // namespace bgp::io
