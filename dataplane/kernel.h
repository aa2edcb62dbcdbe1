// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's bridges, VXLAN devices and forwarding databases, over rtnetlink (libnl). A seam:
// tests have a fake. Calls are synchronous and small; events come through the handler on the Asio
// thread, from a socket of its own with a large receive buffer.
#pragma once
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dataplane/settings.h"
#include "net/ip_address.h"
#include "net/mac_address.h"
#include "net/strong.h"

namespace boost::asio {
class io_context;
}

namespace dataplane {

struct KernelError {
  std::string what;  // "create vxlan vx100: Operation not supported"
  int error = 0;     // errno
};
template <class T>
using KernelResult = std::expected<T, KernelError>;

struct BridgeDomain {
  net::IfIndex bridge, vxlan;
  net::MacAddress bridge_mac{};  // fixed
};

// One line of `bridge fdb`.
struct FdbEntry {
  net::IfIndex port;  // device the entry is on
  net::MacAddress mac;
  bool on_bridge = false;  // master entry of the bridge (else self entry of the vxlan device)
  bool permanent = false;  // the port's own address
  bool is_static = false;  // NUD_NOARP
  bool sticky = false;     // NTF_STICKY
  bool external = false;   // NTF_EXT_LEARNED: ours or another control plane's
  std::optional<net::IpAddress> vtep;  // of a self entry
  bool operator==(const FdbEntry&) const = default;
};

// --- events
struct LinkChanged {  // a device appeared, changed state or name, or is gone (exists false)
  net::IfIndex index;
  std::string name;
  bool exists = true;
  bool up = false;      // administratively up and with carrier
  net::IfIndex bridge;  // its master; 0: none
};
struct FdbLearned {  // the bridge learned (or moved) a MAC at a port; not for external entries
  net::IfIndex port;
  net::MacAddress mac;
};
struct FdbGone {  // a learned or external bridge entry was removed by ageing or by somebody
  net::IfIndex port;
  net::MacAddress mac;
};
// An entry of a VXLAN device was added, changed or removed, by us too. A zero MAC: of the flood
// list.
struct TunnelChanged {
  net::IfIndex vxlan;
  net::MacAddress mac;
  net::IpAddress vtep;
  bool removed = false;
  bool external = false;  // as in FdbEntry
};
struct EventsLost {};  // ENOBUFS: reconcile by dump_fdb() and links()
using KernelEvent = std::variant<LinkChanged, FdbLearned, FdbGone, EventsLost>;

struct RemoteMac {
  net::MacAddress mac;
  std::optional<net::IpAddress> vtep;  // absent: remove
  bool sticky = false;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Creates or adopts bridge and VXLAN device: fixed bridge MAC, STP off, multicast snooping off,
  // VXLAN port without learning, flooding of unknown unicast as set. What exists and fits is left
  // alone; what can't be changed on a live device is an error that says so.
  [[nodiscard]] virtual KernelResult<BridgeDomain> ensure_domain(const Links& links) = 0;
  // Joins a device to the bridge and sets the port flags; fine when it is there already.
  // kernel_floods false (pcap mode): broadcast and multicast are not flooded to it either.
  [[nodiscard]] virtual KernelResult<void> attach_port(const BridgeDomain& domain,
                                                       net::IfIndex port,
                                                       bool flood_unknown_unicast,
                                                       bool kernel_floods) = 0;
  [[nodiscard]] virtual KernelResult<void> detach_port(net::IfIndex port) = 0;
  // The flags of the VXLAN port, as attach_port() sets those of member ports.
  [[nodiscard]] virtual KernelResult<void> set_core_flags(const BridgeDomain& domain,
                                                          bool flood_unknown_unicast,
                                                          bool kernel_floods) = 0;

  // Remote MACs as external entries of the bridge and the VXLAN device, one message each
  // (NTF_SELF | NTF_MASTER | NTF_EXT_LEARNED). Removing what is not there is success. Returns the
  // first error after having tried all.
  [[nodiscard]] virtual KernelResult<void> apply_remote_macs(
      const BridgeDomain& domain, std::span<const RemoteMac> changes) = 0;
  // Removes only the VXLAN device's entry: the MAC moved to a port here.
  [[nodiscard]] virtual KernelResult<void> remove_tunnel_mac(const BridgeDomain& domain,
                                                             net::MacAddress mac) = 0;
  // All-zero MAC entries of the VXLAN device: the flood list.
  [[nodiscard]] virtual KernelResult<void> add_flood(const BridgeDomain& domain,
                                                     const net::IpAddress& vtep) = 0;
  [[nodiscard]] virtual KernelResult<void> remove_flood(const BridgeDomain& domain,
                                                        const net::IpAddress& vtep) = 0;
  // A provisioned MAC on a member port: sticky, never ages.
  [[nodiscard]] virtual KernelResult<void> set_port_mac(net::IfIndex port, net::MacAddress mac) = 0;
  // Re-arms or removes a learned entry of a member port.
  [[nodiscard]] virtual KernelResult<void> refresh_port_mac(net::IfIndex port,
                                                            net::MacAddress mac) = 0;
  [[nodiscard]] virtual KernelResult<void> remove_port_mac(net::IfIndex port,
                                                           net::MacAddress mac) = 0;

  [[nodiscard]] virtual KernelResult<std::vector<FdbEntry>> dump_fdb(
      const BridgeDomain& domain) = 0;
  [[nodiscard]] virtual KernelResult<std::vector<LinkChanged>> links() = 0;
  // Removes what ensure_domain() makes. Member ports leave the bridge and stay.
  [[nodiscard]] virtual KernelResult<void> teardown(const Links& links) = 0;

  virtual void on_event(std::function<void(const KernelEvent&)> handler) = 0;
  // Entries of VXLAN devices whose bridge ensure_domain() was called for. These events are many and
  // come late: a sign to look, not what is there.
  virtual void on_tunnel_change(std::function<void(const TunnelChanged&)> handler) {
    static_cast<void>(handler);
  }
};

struct KernelOptions {
  // Of the event socket, as the kernel accounts it (some 740 octets an event): a burst of events
  // that does not fit is one EventsLost.
  int event_buffer_bytes = 64 << 20;
};

// The real one, for the network namespace of the calling thread. An error where a socket can't be
// had. Forwarding events come from bridges that ensure_domain() was called for; devices that are
// there already are no event (see links()).
[[nodiscard]] KernelResult<std::unique_ptr<Kernel>> open_kernel(boost::asio::io_context& io,
                                                                const KernelOptions& options = {});

// The address that ensure_domain() gives a device that it creates: locally administered, the same
// at every start, another on every PE.
[[nodiscard]] net::MacAddress device_mac(const std::string& device, net::Vni vni,
                                         const net::IpAddress& vtep);
// Marks a device as made by ensure_domain() (its ifalias).
[[nodiscard]] std::string device_alias(const std::string& device);

}  // namespace dataplane
