// SPDX-License-Identifier: GPL-2.0-or-later
// What was seen of violations of port security: one entry for each port, direction, reason and
// source, the latest ones of each port.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "daemon/port_guard.h"
#include "dataplane/settings.h"
#include "net/bytes.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/time.h"

namespace peerland {

struct ViolationEntry {
  std::string port;
  dataplane::Direction direction = dataplane::Direction::Ingress;
  std::string reason;  // name of a drop reason, or verdict of the responder
  GuardCause kind = GuardCause::Protocols;
  net::MacAddress mac;               // source
  std::optional<net::IpAddress> ip;  // that the frame speaks for, of ARP and ND
  std::string owner;  // whose the MAC is, as far as it is known: "port m1 (AS64501 Alpha Net)"
  uint64_t reports = 0;
  net::TimePoint first{}, last{};
  net::Bytes frame;  // head of the last one
};

// The address that an ARP or ND frame speaks for: its sender, or the target of an advertisement.
// `frame` may be cut off.
[[nodiscard]] std::optional<net::IpAddress> claimed_address(std::span<const uint8_t> frame);

class ViolationLog {
 public:
  static constexpr std::size_t kMostOfAPort = 32;
  static constexpr std::size_t kHead = 64;  // octets of a frame that are kept

  // Adds a report, or counts it with those like it; true when it is the first of its kind.
  bool add(ViolationEntry&& report, net::TimePoint now);
  void forget(const std::string& port) { ports_.erase(port); }
  // Latest first, of one port or, when it is empty, of all.
  void for_each(const std::string& port,
                const std::function<void(const ViolationEntry&)>& visit) const;

 private:
  std::map<std::string, std::list<ViolationEntry>> ports_;  // latest first
};

}  // namespace peerland
