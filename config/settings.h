// SPDX-License-Identifier: GPL-2.0-or-later
// One node's settings, whole and checked. Every key is described in docs/configuration.md.
#pragma once
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bgp/settings.h"
#include "dataplane/settings.h"
#include "evpn/policy_settings.h"
#include "evpn/settings.h"
#include "net/ip_address.h"
#include "proxyarp/settings.h"

namespace config {

struct BroadcastDomain {
  std::string name;
  evpn::Settings evpn;
  proxyarp::Settings proxy;  // bindings: from the ports' addresses and the member files
  dataplane::Links links;
  dataplane::ResponderKind responder = dataplane::ResponderKind::Ebpf;
  std::vector<dataplane::MemberPort> ports;
  std::vector<net::IpAddress> pe_addresses;  // of this PE on the LAN, at most one of each family
  std::string core_policy;                   // BUM policy of the VXLAN device
  bool operator==(const BroadcastDomain&) const = default;
};

struct LogSettings {
  std::string level = "info";  // trace, debug, info, warning, error
  std::string file;            // empty: standard error
  bool operator==(const LogSettings&) const = default;
};

// Whether MACs of another PE are used only while the kernel has a route to it.
enum class NextHopTracking : uint8_t {
  Off,
  AnyRoute,      // a default route will do
  SpecialRoute,  // a default route does not count
};

struct ReloadSettings {
  // Of the members of a LAN, in percent: a reload that would remove more is refused. 100: none is.
  unsigned max_removed_members = 20;
  bool operator==(const ReloadSettings&) const = default;
};

struct NodeSettings {
  std::string name;  // of the node, for views and logs
  bgp::Settings bgp;
  std::optional<net::IpAddress> vtep;  // absent: not a PE
  std::vector<BroadcastDomain> domains;
  std::map<std::string, evpn::PolicySettings> route_policies;  // for neighbors, by name
  std::vector<evpn::MemberList> members;                       // by VNI, each once
  // "peering" and "quarantine" are always there.
  std::map<std::string, dataplane::BumPolicy> policies;
  std::vector<std::string> underlay_interfaces;  // devices that tunnels arrive through
  bool observe = false;                          // of all policies
  std::chrono::seconds report_interval{900};     // of `peerlan report`
  std::string control_socket = "/run/peerlan/peerland.sock";
  std::string pin_directory = "/sys/fs/bpf/peerlan";
  std::optional<std::pair<net::IpAddress, uint16_t>> metrics_listen;
  LogSettings log;
  NextHopTracking next_hop_tracking = NextHopTracking::AnyRoute;
  ReloadSettings reload;
  bool operator==(const NodeSettings&) const = default;
};

struct Error {
  std::string file;
  int line = 0, column = 0;  // from 1; 0: the file as a whole
  std::string where;         // "bgp.neighbors[2].hold-time"
  std::string what;          // "expected a whole number of seconds, 0 or 3 to 65535, got \"abc\""
};
std::string to_string(const Error& error);  // file:line:column: where: what

// What is wrong, all of it, in file order; or the settings, and warnings that don't stop a start.
struct Loaded {
  NodeSettings settings;
  std::vector<Error> warnings;
};
[[nodiscard]] std::expected<Loaded, std::vector<Error>> load(const std::string& file);
// The same for a text; `name` stands for the file in errors, `base` is the folder that relative
// names of other files start from.
[[nodiscard]] std::expected<Loaded, std::vector<Error>> load_text(
    const std::string& name, const std::string& yaml, const std::filesystem::path& base);

// Every key that a file may have, with its path: "bgp.neighbors[].hold-time". NAME, DIRECTION and
// CLASS stand for words of the operator's or of the manual.
[[nodiscard]] std::vector<std::string> known_keys();

}  // namespace config
