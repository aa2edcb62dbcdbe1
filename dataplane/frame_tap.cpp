// SPDX-License-Identifier: GPL-2.0-or-later
#include "dataplane/frame_tap.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace dataplane {
namespace {

constexpr int kFramesPerTurn = 256;
constexpr int kBuffer = 4 << 20;
constexpr std::size_t kLargest = 2048;

// ARP; IPv6 with ICMPv6 as first header and type 135 or 136.
std::array<sock_filter, 9> filter() {
  constexpr uint16_t kLoadHalf = BPF_LD | BPF_H | BPF_ABS, kLoadByte = BPF_LD | BPF_B | BPF_ABS,
                     kJumpEqual = BPF_JMP | BPF_JEQ | BPF_K, kReturn = BPF_RET | BPF_K;
  return {{{kLoadHalf, 0, 0, 12},
           {kJumpEqual, 5, 0, ETH_P_ARP},
           {kJumpEqual, 0, 5, ETH_P_IPV6},
           {kLoadByte, 0, 0, 14 + 6},
           {kJumpEqual, 0, 3, 58},
           {kLoadByte, 0, 0, 14 + 40},
           {BPF_JMP | BPF_JGE | BPF_K, 0, 1, 135},
           {kReturn, 0, 0, kLargest},
           {kReturn, 0, 0, 0}}};
}

class Tap final : public FrameTap {
 public:
  struct State : std::enable_shared_from_this<State> {
    State(boost::asio::io_context& io, int fd, Handler h)
        : descriptor(io, fd), handler(std::move(h)) {}
    void wait() {
      descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [self = shared_from_this()](const boost::system::error_code& error) {
                              if (!error) self->read();
                            });
    }
    void read() {
      if (closed) return;
      std::array<uint8_t, kLargest> frame;
      for (int i = 0; i < kFramesPerTurn && !closed; ++i) {
        sockaddr_ll from{};
        socklen_t size = sizeof from;
        const auto got =
            ::recvfrom(descriptor.native_handle(), frame.data(), frame.size(), MSG_DONTWAIT,
                       // the socket API's own cast
                       reinterpret_cast<sockaddr*>(&from), &size);
        if (got < 0 && errno == ENETDOWN) continue;  // one device; the socket is on all
        if (got < 0) return wait();
        handler(net::IfIndex(static_cast<uint32_t>(from.sll_ifindex)),
                from.sll_pkttype == PACKET_OUTGOING, {frame.data(), static_cast<std::size_t>(got)});
      }
      if (!closed)
        boost::asio::post(descriptor.get_executor(), [self = shared_from_this()] { self->read(); });
    }

    boost::asio::posix::stream_descriptor descriptor;
    Handler handler;
    bool closed = false;
  };

  explicit Tap(std::shared_ptr<State> state) : state_(std::move(state)) { state_->wait(); }
  ~Tap() override {
    state_->closed = true;
    boost::system::error_code ignored;
    state_->descriptor.cancel(ignored);
  }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

FastPathResult<std::unique_ptr<FrameTap>> FrameTap::open(boost::asio::io_context& io,
                                                         Handler handler) {
  // No protocol yet: nothing may be queued before the filter stands.
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return std::unexpected(FastPathError{"packet socket for a trace", errno});
  auto state = std::make_shared<Tap::State>(io, fd, std::move(handler));
  auto program = filter();
  const sock_fprog attached{static_cast<uint16_t>(program.size()), program.data()};
  sockaddr_ll everywhere{};
  everywhere.sll_family = AF_PACKET;
  everywhere.sll_protocol = htons(ETH_P_ALL);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached) < 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&everywhere), sizeof everywhere) < 0)
    return std::unexpected(FastPathError{"packet socket for a trace", errno});
  return std::make_unique<Tap>(std::move(state));
}

}  // namespace dataplane
