// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's routes to the tunnel endpoints of other PEs: whether there is one, and a word when
// any may have changed. For the network namespace of the calling thread.
#pragma once
#include <functional>
#include <memory>

#include "dataplane/kernel.h"
#include "net/ip_address.h"

namespace boost::asio {
class io_context;
}

namespace dataplane {

enum class RouteTo : uint8_t {
  None,     // or one that drops, or only out of devices without carrier
  Default,  // nothing more special than a default route
  Special,
};

class RouteWatch {
 public:
  // `changed` is called when routes, addresses or devices changed, once for what came together.
  [[nodiscard]] static KernelResult<std::unique_ptr<RouteWatch>> open(
      boost::asio::io_context& io, std::function<void()> changed);
  ~RouteWatch();
  RouteWatch(const RouteWatch&) = delete;
  RouteWatch& operator=(const RouteWatch&) = delete;

  // As the kernel would send now. An error where it can't be told.
  [[nodiscard]] KernelResult<RouteTo> route_to(const net::IpAddress& address);

 private:
  struct Impl;
  explicit RouteWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dataplane
