// SPDX-License-Identifier: GPL-2.0-or-later
// Frames in and out of devices from user space: sending by AF_PACKET, capturing by libpcap
// (`responder: pcap`), and the BUM policy in software that goes with the latter.
#pragma once
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/fast_path.h"
#include "dataplane/settings.h"
#include "net/strong.h"
#include "net/time.h"

namespace boost::asio {
class io_context;
}

namespace dataplane {

class PacketSender {
 public:
  [[nodiscard]] static FastPathResult<std::unique_ptr<PacketSender>> open();
  ~PacketSender();
  PacketSender(const PacketSender&) = delete;
  PacketSender& operator=(const PacketSender&) = delete;
  // A whole Ethernet frame; padded to 60 octets. False when the kernel refused it (counted).
  bool send(net::IfIndex port, std::span<const uint8_t> frame);
  [[nodiscard]] uint64_t errors() const;

 private:
  explicit PacketSender(int fd);
  int fd_;
  uint64_t errors_ = 0;
};

// Frames that arrive at a device (not those sent out of it): all non-unicast ones, unicast ARP and
// ICMPv6, and what is for one of `destinations`. Closed by the destructor.
class PcapCapture {
 public:
  using Handler = std::function<void(net::IfIndex port, std::span<const uint8_t> frame)>;
  [[nodiscard]] static FastPathResult<std::unique_ptr<PcapCapture>> open(
      boost::asio::io_context& io, const std::string& interface, net::IfIndex port, Handler handler,
      const std::vector<net::MacAddress>& destinations = {});
  virtual ~PcapCapture() = default;
  [[nodiscard]] virtual uint64_t lost() const = 0;
};

// The policy of fast_path.h in software, by the same classifying code (bpf/classify.h). For frames
// that pcap captured, before they reach the responder or another port.
class SoftPolicy {
 public:
  SoftPolicy();
  ~SoftPolicy();
  SoftPolicy(const SoftPolicy&) = delete;
  SoftPolicy& operator=(const SoftPolicy&) = delete;
  void set_port(const PortConfig& config);
  void remove_port(net::IfIndex port);
  // Which targets the responder answers: plain requests for them are charged to `answers` of a port
  // with a proxy rather than to the limit of their class, as the eBPF program does.
  void set_answered(std::function<bool(net::Vni, const net::IpAddress&)> is_answered);
  // Who hears of frames that come in and are refused for what they are; at most some a second of
  // each port, during pass().
  void set_violation_handler(std::function<void(const Violation&)> handler);
  // True when the frame may go on; counted by class and reason either way.
  [[nodiscard]] bool pass(net::IfIndex port, Direction direction, std::span<const uint8_t> frame,
                          net::TimePoint now);
  [[nodiscard]] std::vector<Counter> counters(net::IfIndex port) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dataplane
