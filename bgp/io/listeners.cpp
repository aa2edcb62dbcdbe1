// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/io/listeners.h"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "bgp/io/neighbor.h"
#include "bgp/io/tcp_ao.h"

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr auto kAcceptPause = 100ms;  // when there are no file descriptors left

std::string where(const ListenSettings& listen) {
  return "listen on " + to_string(NeighborKey{listen.address, listen.interface}) + " port " +
         std::to_string(listen.port);
}

}  // namespace

struct Listeners::Listener {
  ListenSettings settings;
  tcp::acceptor acceptor;
  boost::asio::steady_timer pause;
  std::function<void(tcp::socket)> handler{};
};

std::optional<std::string> Listeners::open(const ListenSettings& settings) {
  const uint32_t scope = interface_index(settings.interface);
  if (scope == 0 && !settings.interface.empty()) return where(settings) + ": no such interface";
  const tcp::endpoint endpoint = to_endpoint(settings.address, settings.port, scope);
  const auto listener =
      std::make_shared<Listener>(settings, tcp::acceptor(io_), boost::asio::steady_timer(io_));
  tcp::acceptor& acceptor = listener->acceptor;
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && settings.address.is_v6())
    acceptor.set_option(boost::asio::ip::v6_only(true), error);
  if (!error) error = set_listener_hops(acceptor.native_handle(), settings.address.family());
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return where(settings) + ": " + error.message();
  listener->settings.port = acceptor.local_endpoint(error).port();
  listeners_.push_back(listener);
  return std::nullopt;
}

std::optional<std::string> Listeners::set_password(const net::IpPrefix& peers,
                                                   const std::string& key) {
  for (const auto& listener : listeners_) {
    if (listener->settings.address.family() != peers.address.family()) continue;
    if (const auto error = set_md5(listener->acceptor.native_handle(), peers, key)) {
      const bool one = peers.length == peers.address.bits();
      return "TCP-MD5 for " + (one ? net::to_string(peers.address) : net::to_string(peers)) + ": " +
             error.message();
    }
  }
  return std::nullopt;
}

// TCP-AO is in few kernels. Without it the neighbor stays away, and the others are well.
void Listeners::set_ao_keys(const net::IpPrefix& peers, const std::vector<TcpAoKey>& old,
                            const std::vector<TcpAoKey>& wanted) {
  unprotected_.erase(peers);
  for (const auto& listener : listeners_) {
    if (listener->settings.address.family() != peers.address.family()) continue;
    const auto socket = listener->acceptor.native_handle();
    if (!old.empty()) remove_ao_keys(socket, peers, old);
    if (wanted.empty()) continue;
    if (const auto error = add_ao_keys(socket, peers, wanted, AoSocket::Listener)) {
      unprotected_[peers] = ao_failure(error);
      log_->error("{}: {}", net::to_string(peers), unprotected_[peers]);
      return;
    }
  }
}

std::optional<std::string> Listeners::protect(const Protections& wanted) {
  const auto before = [&](const net::IpPrefix& peers) {
    const auto found = protections_.find(peers);
    return found == protections_.end() ? Protection{} : found->second;
  };
  std::vector<net::IpPrefix> changed;
  for (const auto& [peers, protection] : wanted) {
    if (before(peers).password == protection.password) continue;
    changed.push_back(peers);
    auto failure = set_password(peers, protection.password);
    if (!failure) continue;
    for (const net::IpPrefix& undo : changed) (void)set_password(undo, before(undo).password);
    return failure;
  }
  for (const auto& [peers, protection] : wanted) {
    if (before(peers).ao_keys != protection.ao_keys)
      set_ao_keys(peers, before(peers).ao_keys, protection.ao_keys);
    protections_[peers] = protection;
  }
  return std::nullopt;
}

void Listeners::unprotect(const Protections& wanted) {
  std::erase_if(protections_, [&](const auto& entry) {
    if (wanted.contains(entry.first)) return false;
    if (!entry.second.password.empty()) (void)set_password(entry.first, "");
    set_ao_keys(entry.first, entry.second.ao_keys, {});
    return true;
  });
}

const std::string* Listeners::why_unprotected(const net::IpPrefix& peers) const {
  const auto found = unprotected_.find(peers);
  return found == unprotected_.end() ? nullptr : &found->second;
}

void Listeners::accept(const std::function<void(tcp::socket)>& handler) {
  for (const auto& listener : listeners_) {
    listener->handler = handler;
    accept_next(listener);
  }
}

void Listeners::accept_next(const std::shared_ptr<Listener>& listener) {
  listener->acceptor.async_accept([listener](const error_code& error, tcp::socket socket) {
    if (!listener->acceptor.is_open()) return;
    if (!error) {
      listener->handler(std::move(socket));
      if (listener->acceptor.is_open()) accept_next(listener);
      return;
    }
    listener->pause.expires_after(kAcceptPause);
    listener->pause.async_wait([listener](const error_code& cancelled) {
      if (!cancelled && listener->acceptor.is_open()) accept_next(listener);
    });
  });
}

void Listeners::close() {
  for (const auto& listener : listeners_) {
    error_code error;
    listener->acceptor.close(error);
    listener->pause.cancel();
  }
  listeners_.clear();
}

std::vector<ListenSettings> Listeners::listening() const {
  std::vector<ListenSettings> out;
  for (const auto& listener : listeners_) out.push_back(listener->settings);
  return out;
}

}  // namespace bgp::io
