// SPDX-License-Identifier: GPL-2.0-or-later
// What goes on in a speaker, for those who watch: BMP, and the command `monitor`. Without a watcher
// it costs a look at an empty list. Called from within the speaker: a watcher must not call it back
// but to read.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bgp/rib.h"
#include "bgp/session.h"
#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp::io {

// A session that is up.
struct SessionInfo {
  PeerId peer = kLocalPeer;
  std::string name;  // "192.0.2.1 (rs1)"
  net::IpAddress address, local_address;
  uint16_t remote_port = 0, local_port = 0;
  uint32_t remote_as = 0;
  uint32_t router_id = 0;  // host order
  bool four_octet_as = true;
  net::Bytes open_sent, open_received;  // whole messages as they were on the wire
  std::chrono::system_clock::time_point up_since;
};
using SessionInfoPtr = std::shared_ptr<const SessionInfo>;

class Tap {
 public:
  virtual ~Tap() = default;
  virtual void state_changed(PeerId /*peer*/, const std::string& /*name*/, SessionState /*from*/,
                             SessionState /*to*/) {}
  virtual void session_up(const SessionInfo& /*session*/) {}
  virtual void session_down(const SessionInfo& /*session*/, const EndReason& /*reason*/,
                            const std::string& /*text*/) {}
  // An UPDATE has been carried out; `message` with its header.
  virtual void received(const SessionInfo& /*session*/, std::span<const uint8_t> /*message*/,
                        const Update& /*update*/) {}
  // Handed to the socket.
  virtual void sent(const SessionInfo& /*session*/,
                    const std::shared_ptr<const net::Bytes>& /*message*/) {}
  virtual void policies_changed(PeerId /*peer*/) {}
  virtual void best_changed(const std::vector<RibChange>& /*changes*/) {}
};

}  // namespace bgp::io
