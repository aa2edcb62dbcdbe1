// SPDX-License-Identifier: GPL-2.0-or-later
// Changes of devices and forwarding entries, from a netlink socket of its own.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "dataplane/kernel.h"
#include "dataplane/netlink_socket.h"

namespace dataplane::netlink {

class EventSource {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EventSource>> open(boost::asio::io_context& io,
                                                                 int buffer_bytes);
  ~EventSource();
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  void on_event(std::function<void(const KernelEvent&)> handler);
  void on_tunnel_change(std::function<void(const TunnelChanged&)> handler);
  // Forwarding entries of other bridges are not reported.
  void watch(net::IfIndex bridge);
  void unwatch(net::IfIndex bridge);
  // What the receiver knows from now on: a device that is like this is no change.
  void known_links(std::span<const LinkChanged> links);

 private:
  struct Pump;
  explicit EventSource(std::shared_ptr<Pump> pump);
  std::shared_ptr<Pump> pump_;
};

}  // namespace dataplane::netlink
