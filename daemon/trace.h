// SPDX-License-Identifier: GPL-2.0-or-later
// A trace of one address: every ARP and ND frame about it that enters or leaves a port of the
// domain or its VXLAN device, with what the responder decided, as a pcapng stream for one client.
//
// Two sources are put together: what the domain hands to its responder or sends (add()), which has
// a verdict, and a tap on the devices, which also sees what the kernel passes on by itself. A frame
// that both saw is written once. All is bounded; what does not fit is counted and left out.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/domain.h"
#include "dataplane/frame_tap.h"
#include "net/ip_address.h"
#include "net/strong.h"

namespace peerland {

struct TraceOptions {
  net::IpAddress ip;
  std::chrono::seconds seconds{60};
  uint64_t frames = 10'000;
};

// True when an ARP or ND frame has the address as sender, target or destination.
[[nodiscard]] bool concerns(std::span<const uint8_t> frame, const net::IpAddress& ip);

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  Trace(boost::asio::io_context& io, Domain& domain, const TraceOptions& options);
  // `wake`: there is something to take, or it has ended. Joins the domain; an error when the
  // devices can't be listened at.
  [[nodiscard]] std::expected<void, std::string> start(std::function<void()> wake);
  // Leaves the domain. What was seen can still be taken.
  void end();
  [[nodiscard]] bool ended() const { return domain_ == nullptr; }

  [[nodiscard]] const net::IpAddress& address() const { return options_.ip; }
  // Octets of the file, at most some 64 KiB; empty: none now.
  [[nodiscard]] std::string take();

  // A frame that the domain had in hand, with its verdict.
  void add(net::IfIndex port, TraceDirection direction, std::span<const uint8_t> frame,
           std::string_view verdict);

 private:
  struct Frame {
    std::chrono::system_clock::time_point time;
    net::IfIndex port;
    TraceDirection direction;
    std::vector<uint8_t> octets;
    std::string verdict;  // empty: the tap saw it
    bool joined = false;  // both did
  };
  struct Interface {
    uint32_t number = 0;
    uint64_t written = 0, dropped = 0;
  };
  void keep(Frame frame);
  void hold(Frame frame);
  void write_until(std::chrono::system_clock::time_point time);
  void write(const Frame& frame);
  Interface& interface_of(net::IfIndex port);
  void arm();

  Domain* domain_;  // null: ended
  const TraceOptions options_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point until_{};
  std::unique_ptr<dataplane::FrameTap> tap_;
  boost::asio::io_context& io_;
  std::function<void()> wake_;
  std::vector<Frame> held_;  // may yet be joined with another one
  std::map<net::IfIndex, Interface> interfaces_;
  uint64_t written_ = 0;
  std::string octets_;
};

}  // namespace peerland
