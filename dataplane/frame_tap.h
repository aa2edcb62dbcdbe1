// SPDX-License-Identifier: GPL-2.0-or-later
// ARP and neighbor discovery as it enters and leaves all devices of the network namespace, for a
// trace: a packet socket with a filter. It only looks; the queue is bounded by the socket's buffer.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "dataplane/fast_path.h"
#include "net/strong.h"

namespace boost::asio {
class io_context;
}

namespace dataplane {

class FrameTap {
 public:
  // `frame` is valid during the call.
  using Handler =
      std::function<void(net::IfIndex port, bool outbound, std::span<const uint8_t> frame)>;
  [[nodiscard]] static FastPathResult<std::unique_ptr<FrameTap>> open(boost::asio::io_context& io,
                                                                      Handler handler);
  virtual ~FrameTap() = default;  // closes it; the handler is not called any more
};

}  // namespace dataplane
