// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's side of a broadcast domain: bridge, VXLAN device, member ports and forwarding
// entries. Read ensure_domain() first. Requests go through one netlink socket, events come from
// another (netlink_events).
//
// What this file knows about the Linux bridge, beyond the interfaces:
// - A bridge without an address set by hand takes that of a port, and then forgets all neighbours.
// - One delete with NTF_SELF | NTF_MASTER stops at the bridge's ENOENT and leaves the VXLAN
//   device's entry: removing takes two messages.
// - An external add does not make an entry sticky and does not end stickiness: extra messages.
// - A port with an IPv6 link-local address, or one that accepts router advertisements, sends DAD,
//   RS and MLD into the peering LAN; a bridge without addresses still answers ARP for the router's
//   other addresses.
#include "dataplane/kernel.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

// clang-format off
#include <sys/socket.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <fmt/format.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "dataplane/netlink_events.h"
#include "dataplane/netlink_fdb.h"
#include "dataplane/netlink_link.h"
#include "dataplane/netlink_socket.h"
#include "net/hash.h"

namespace dataplane {
namespace {

using netlink::Batch;
using netlink::LinkInfo;

constexpr std::array kGone{ENOENT, ENODEV};  // fine when removing
constexpr std::array kThere{EEXIST};         // fine when adding to the flood list

KernelError error_of(std::string_view what, const netlink::Failure& failure) {
  const std::string text = failure.text.empty() ? std::string() : " (" + failure.text + ")";
  return {fmt::format("{}: {}{}", what, std::strerror(failure.error), text), failure.error};
}

std::unexpected<KernelError> refused(std::string what, int error) {
  return std::unexpected(KernelError{std::move(what), error});
}

KernelResult<void> checked(std::string_view what, const netlink::Result<void>& result) {
  if (result) return {};
  return std::unexpected(error_of(what, result.error()));
}

// A directory of the network namespace that the kernel object was made for, not of the caller's.
class Directory {
 public:
  explicit Directory(const char* path) : fd_(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~Directory() {
    if (fd_ >= 0) ::close(fd_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::optional<std::string> read(const std::string& file) const {
    const int fd = fd_ < 0 ? -1 : ::openat(fd_, file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::array<char, 64> text{};
    const ssize_t length = ::read(fd, text.data(), text.size());
    ::close(fd);
    if (length < 0) return {};
    std::string value(text.data(), static_cast<std::size_t>(length));
    while (!value.empty() && value.back() == '\n') value.pop_back();
    return value;
  }

  // Writes where the value differs. A file that is not there (no IPv6) is fine.
  void ensure(const std::string& file, const std::string& value) const {
    const auto current = read(file);
    if (!current || *current == value) return;
    const int fd = ::openat(fd_, file.c_str(), O_WRONLY | O_CLOEXEC);
    const bool written =
        fd >= 0 && ::write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!written) spdlog::warn("sysctl {} = {}: {}", file, value, std::strerror(error));
  }

 private:
  int fd_;
};

bool is_ours(const LinkInfo& link, net::Vni vni, const net::IpAddress& vtep) {
  return link.alias == device_alias(link.name) || link.mac == device_mac(link.name, vni, vtep);
}

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

class NetlinkKernel final : public Kernel {
 public:
  NetlinkKernel(netlink::Socket socket, std::unique_ptr<netlink::EventSource> events)
      : socket_(std::move(socket)), events_(std::move(events)) {}

  KernelResult<BridgeDomain> ensure_domain(const Links& links) override;
  KernelResult<void> attach_port(const BridgeDomain& domain, net::IfIndex port,
                                 bool flood_unknown_unicast, bool kernel_floods) override;
  KernelResult<void> detach_port(net::IfIndex port) override;
  KernelResult<void> set_core_flags(const BridgeDomain& domain, bool flood_unknown_unicast,
                                    bool kernel_floods) override;
  KernelResult<void> apply_remote_macs(const BridgeDomain& domain,
                                       std::span<const RemoteMac> changes) override;
  KernelResult<void> remove_tunnel_mac(const BridgeDomain& domain, net::MacAddress mac) override;
  KernelResult<void> add_flood(const BridgeDomain& domain, const net::IpAddress& vtep) override;
  KernelResult<void> remove_flood(const BridgeDomain& domain, const net::IpAddress& vtep) override;
  KernelResult<void> set_port_mac(net::IfIndex port, net::MacAddress mac) override;
  KernelResult<void> refresh_port_mac(net::IfIndex port, net::MacAddress mac) override;
  KernelResult<void> remove_port_mac(net::IfIndex port, net::MacAddress mac) override;
  KernelResult<std::vector<FdbEntry>> dump_fdb(const BridgeDomain& domain) override;
  KernelResult<std::vector<LinkChanged>> links() override;
  KernelResult<void> teardown(const Links& links) override;
  void on_event(std::function<void(const KernelEvent&)> handler) override {
    events_->on_event(std::move(handler));
  }
  void on_tunnel_change(std::function<void(const TunnelChanged&)> handler) override {
    events_->on_tunnel_change(std::move(handler));
  }

 private:
  // What is known of a domain beyond its indices.
  struct Domain {
    net::IfIndex vxlan;
    std::unordered_set<net::MacAddress> sticky;  // bridge entries with that flag
  };

  KernelResult<std::optional<LinkInfo>> find(netlink::Message request, std::string_view what);
  KernelResult<std::optional<LinkInfo>> find(const std::string& name) {
    return find(netlink::get_link(name), name);
  }
  KernelResult<LinkInfo> get(net::IfIndex index);
  KernelResult<LinkInfo> get_created(const std::string& name);

  KernelResult<LinkInfo> ensure_bridge(const Links& links);
  KernelResult<LinkInfo> ensure_vxlan(const Links& links, net::IfIndex bridge);
  KernelResult<void> check_vxlan(const LinkInfo& vxlan, const Links& links, net::IfIndex bridge);
  KernelResult<void> change(const LinkInfo& link, const netlink::LinkChange& change);
  KernelResult<void> set_flags(const LinkInfo& port, std::span<const netlink::Setting> wanted);
  KernelResult<bool> has_ipv6_addresses(net::IfIndex index);
  bool mac_is_fixed(const LinkInfo& link) const;
  void silence(const std::string& name, bool disable_ipv6) const;
  KernelResult<void> remove_entries(const BridgeDomain& domain);
  KernelResult<void> send(Batch& batch, std::string_view what, std::string_view device);
  Domain& domain_of(const BridgeDomain& domain) {
    Domain& known = domains_[domain.bridge];
    known.vxlan = domain.vxlan;
    return known;
  }
  Domain* domain_of_port(net::IfIndex port);

  netlink::Socket socket_;
  std::unique_ptr<netlink::EventSource> events_;
  Directory ipv4_conf_{"/proc/sys/net/ipv4/conf"};
  Directory ipv6_conf_{"/proc/sys/net/ipv6/conf"};
  Directory class_net_{"/sys/class/net"};
  std::unordered_map<net::IfIndex, Domain> domains_;             // by bridge
  std::unordered_map<net::IfIndex, net::IfIndex> port_bridges_;  // of attach_port()
};

// --- devices

KernelResult<std::optional<LinkInfo>> NetlinkKernel::find(netlink::Message request,
                                                          std::string_view what) {
  std::optional<LinkInfo> link;
  const auto found =
      socket_.get(std::move(request), [&](nlmsghdr* m) { link = netlink::parse_link(m); });
  if (!found) return std::unexpected(error_of(fmt::format("look up {}", what), found.error()));
  return link;
}

KernelResult<LinkInfo> NetlinkKernel::get(net::IfIndex index) {
  auto link = find(netlink::get_link(index), fmt::format("device {}", index.value));
  if (!link) return std::unexpected(link.error());
  if (!*link)
    return refused(fmt::format("device {}: {}", index.value, std::strerror(ENODEV)), ENODEV);
  return std::move(**link);
}

KernelResult<LinkInfo> NetlinkKernel::get_created(const std::string& name) {
  auto link = find(name);
  if (!link) return std::unexpected(link.error());
  if (!*link) return refused(fmt::format("{} vanished after it was created", name), ENODEV);
  return std::move(**link);
}

KernelResult<void> NetlinkKernel::change(const LinkInfo& link, const netlink::LinkChange& change) {
  if (change.empty()) return {};
  return checked(fmt::format("change {}", link.name),
                 socket_.request(netlink::change_link(link.index, change)));
}

KernelResult<void> NetlinkKernel::set_flags(const LinkInfo& port,
                                            std::span<const netlink::Setting> wanted) {
  const auto changes = netlink::differing(wanted, port.port);
  if (changes.empty()) return {};
  std::string names;
  for (const auto& setting : changes) names += fmt::format(" {}={}", setting.name, setting.value);
  return checked(fmt::format("set{} on port {}", names, port.name),
                 socket_.request(netlink::change_port(port.index, changes)));
}

// Nothing of our own goes into the LAN from this device.
void NetlinkKernel::silence(const std::string& name, bool disable_ipv6) const {
  if (disable_ipv6) ipv6_conf_.ensure(name + "/disable_ipv6", "1");
  // 1: answers ARP only for addresses of this very device.
  const auto arp_ignore = ipv4_conf_.read(name + "/arp_ignore");
  if (arp_ignore == "0") ipv4_conf_.ensure(name + "/arp_ignore", "1");
}

KernelResult<bool> NetlinkKernel::has_ipv6_addresses(net::IfIndex index) {
  bool found = false;
  const auto result = socket_.dump(
      [&] {
        ifaddrmsg header{};
        header.ifa_family = AF_INET6;
        header.ifa_index = index.value;
        return netlink::Message(RTM_GETADDR, NLM_F_DUMP, header);
      },
      [&] { found = false; },
      [&](nlmsghdr* m) {
        if (m->nlmsg_type != RTM_NEWADDR || nlmsg_datalen(m) < static_cast<int>(sizeof(ifaddrmsg)))
          return;
        const auto* address = static_cast<const ifaddrmsg*>(nlmsg_data(m));
        if (address->ifa_index == index.value && address->ifa_scope == RT_SCOPE_UNIVERSE)
          found = true;
      });
  if (!result) return std::unexpected(error_of("list IPv6 addresses", result.error()));
  return found;
}

// The kernel tells only in sysfs, which may show another namespace: then it is not known.
bool NetlinkKernel::mac_is_fixed(const LinkInfo& link) const {
  constexpr std::string_view kSetByUser = "3";  // NET_ADDR_SET
  return class_net_.read(link.name + "/ifindex") == std::to_string(link.index.value) &&
         class_net_.read(link.name + "/addr_assign_type") == kSetByUser;
}

KernelResult<LinkInfo> NetlinkKernel::ensure_bridge(const Links& links) {
  auto found = find(links.bridge);
  if (!found) return std::unexpected(found.error());
  if (!*found) {
    const net::MacAddress mac = device_mac(links.bridge, links.vni, links.vtep);
    if (auto made = checked(fmt::format("create bridge {}", links.bridge),
                            socket_.request(netlink::create_bridge(links, mac)));
        !made)
      return std::unexpected(made.error());
    auto created = get_created(links.bridge);
    if (!created) return std::unexpected(created.error());
    *found = std::move(*created);
  }
  const LinkInfo& bridge = **found;
  if (bridge.kind != "bridge")
    return refused(fmt::format("{} is a device of kind {}, wanted a bridge", bridge.name,
                               or_none(bridge.kind)),
                   EINVAL);
  const auto vlan_filtering = bridge.bridge.find(IFLA_BR_VLAN_FILTERING);
  if (vlan_filtering != bridge.bridge.end() && vlan_filtering->second != 0)
    return refused(fmt::format("bridge {}: vlan_filtering is 1, wanted 0 (not changed: it would "
                               "join the VLANs of its ports)",
                               bridge.name),
                   EINVAL);

  const bool ours = is_ours(bridge, links.vni, links.vtep);
  auto addressed = ours ? KernelResult<bool>(false) : has_ipv6_addresses(bridge.index);
  if (!addressed) return std::unexpected(addressed.error());
  const bool disable_ipv6 = !*addressed;  // an operator's address on the bridge stays usable
  silence(bridge.name, disable_ipv6);
  if (const auto changes =
          netlink::differing(netlink::bridge_settings(links.ageing), bridge.bridge);
      !changes.empty()) {
    if (auto changed = checked(fmt::format("change bridge {}", bridge.name),
                               socket_.request(netlink::change_bridge(bridge.index, changes)));
        !changed)
      return std::unexpected(changed.error());
  }
  netlink::LinkChange changes;
  if (ours && bridge.alias != device_alias(bridge.name)) changes.alias = device_alias(bridge.name);
  if (bridge.mtu != links.mtu) changes.mtu = links.mtu;
  if (!ours && !mac_is_fixed(bridge)) changes.mac = bridge.mac;
  if (disable_ipv6 &&
      bridge.ipv6_address_generation.value_or(IN6_ADDR_GEN_MODE_NONE) != IN6_ADDR_GEN_MODE_NONE)
    changes.no_ipv6_addresses = true;
  if (auto changed = change(bridge, changes); !changed) return std::unexpected(changed.error());
  if (!bridge.admin_up) {
    if (auto up = change(bridge, {.up = true}); !up) return std::unexpected(up.error());
  }
  return bridge;
}

// What can't be changed while the device lives.
KernelResult<void> NetlinkKernel::check_vxlan(const LinkInfo& vxlan, const Links& links,
                                              net::IfIndex bridge) {
  const auto differs = [&](std::string_view attribute, const auto& value, const auto& wanted) {
    return refused(fmt::format("vxlan {}: {} is {}, wanted {} (can't be changed on a live device; "
                               "delete it or use another name)",
                               vxlan.name, attribute, value, wanted),
                   EINVAL);
  };
  if (vxlan.kind != "vxlan")
    return refused(fmt::format("{} is a device of kind {}, wanted a vxlan device", vxlan.name,
                               or_none(vxlan.kind)),
                   EINVAL);
  const netlink::VxlanInfo& info = vxlan.vxlan;
  if (info.external) return differs("external", "on", "off");
  if (info.vni != links.vni.value) return differs("vni", info.vni, links.vni.value);
  if (info.local != links.vtep)
    return differs("local", info.local ? to_string(*info.local) : "none", to_string(links.vtep));
  if (info.udp_port != links.udp_port) return differs("dstport", info.udp_port, links.udp_port);
  if (info.remote && info.remote->is_multicast())
    return differs("group", to_string(*info.remote), "none");
  if (vxlan.master.value != 0 && vxlan.master != bridge) {
    const auto other = get(vxlan.master);
    return refused(fmt::format("vxlan {}: master is {}, wanted {} (not taken out of it)",
                               vxlan.name, other ? other->name : "another", links.bridge),
                   EBUSY);
  }
  return {};
}

KernelResult<LinkInfo> NetlinkKernel::ensure_vxlan(const Links& links, net::IfIndex bridge) {
  auto found = find(links.vxlan);
  if (!found) return std::unexpected(found.error());
  if (!*found) {
    const net::MacAddress mac = device_mac(links.vxlan, links.vni, links.vtep);
    if (auto made = checked(fmt::format("create vxlan {}", links.vxlan),
                            socket_.request(netlink::create_vxlan(links, mac)));
        !made)
      return std::unexpected(made.error());
    auto created = get_created(links.vxlan);
    if (!created) return std::unexpected(created.error());
    *found = std::move(*created);
  }
  LinkInfo& vxlan = **found;
  if (auto fits = check_vxlan(vxlan, links, bridge); !fits) return std::unexpected(fits.error());
  silence(vxlan.name, true);

  const bool remote = vxlan.vxlan.remote && !vxlan.vxlan.remote->is_unspecified();
  const std::string what = fmt::format("change vxlan {}", vxlan.name);
  if (vxlan.vxlan.learning) {
    const auto changed = checked(what + " learning to off",
                                 socket_.request(netlink::change_vxlan_learning_off(vxlan.index)));
    if (!changed) return std::unexpected(changed.error());
  }
  if (remote) {
    const auto changed =
        checked(fmt::format("{} remote from {} to none", what, to_string(*vxlan.vxlan.remote)),
                socket_.request(
                    netlink::change_vxlan_remote_off(vxlan.index, vxlan.vxlan.remote->family())));
    if (!changed) return std::unexpected(changed.error());
  }
  netlink::LinkChange changes;
  if (is_ours(vxlan, links.vni, links.vtep) && vxlan.alias != device_alias(vxlan.name))
    changes.alias = device_alias(vxlan.name);
  if (vxlan.mtu != links.mtu) changes.mtu = links.mtu;
  if (vxlan.ipv6_address_generation.value_or(IN6_ADDR_GEN_MODE_NONE) != IN6_ADDR_GEN_MODE_NONE)
    changes.no_ipv6_addresses = true;
  if (vxlan.master != bridge) changes.master = bridge;
  if (auto changed = change(vxlan, changes); !changed) return std::unexpected(changed.error());
  if (changes.master) {
    auto joined = get(vxlan.index);  // with the flags of the new port
    if (!joined) return std::unexpected(joined.error());
    vxlan = std::move(*joined);
  }
  if (auto flags = set_flags(vxlan, netlink::core_port_join_settings(links.flood_unknown_unicast));
      !flags)
    return std::unexpected(flags.error());
  if (!vxlan.admin_up) {
    if (auto up = change(vxlan, {.up = true}); !up) return std::unexpected(up.error());
  }
  return vxlan;
}

KernelResult<BridgeDomain> NetlinkKernel::ensure_domain(const Links& links) {
  const auto bridge = ensure_bridge(links);
  if (!bridge) return std::unexpected(bridge.error());
  const auto vxlan = ensure_vxlan(links, bridge->index);
  if (!vxlan) return std::unexpected(vxlan.error());
  const BridgeDomain domain{bridge->index, vxlan->index, bridge->mac};
  domain_of(domain);
  events_->watch(domain.bridge);
  return domain;
}

KernelResult<void> NetlinkKernel::attach_port(const BridgeDomain& domain, net::IfIndex index,
                                              bool flood_unknown_unicast, bool kernel_floods) {
  auto port = get(index);
  if (!port) return std::unexpected(port.error());
  if (port->master.value != 0 && port->master != domain.bridge) {
    const auto other = get(port->master);
    return refused(fmt::format("port {}: master is {} (not taken out of it)", port->name,
                               other ? other->name : "another"),
                   EBUSY);
  }
  silence(port->name, true);
  const auto wanted = netlink::member_port_settings(flood_unknown_unicast, kernel_floods);
  netlink::LinkChange changes;
  if (port->ipv6_address_generation.value_or(IN6_ADDR_GEN_MODE_NONE) != IN6_ADDR_GEN_MODE_NONE)
    changes.no_ipv6_addresses = true;
  if (port->master == domain.bridge) {
    if (auto changed = change(*port, changes); !changed) return changed;
    if (auto flags = set_flags(*port, wanted); !flags) return flags;
  } else {
    changes.master = domain.bridge;
    Batch batch(socket_);  // one datagram: no time between joining and the flags
    batch.add(netlink::change_link(index, changes), 0);
    batch.add(netlink::change_port(index, wanted), 1);
    if (auto joined = send(batch, "join", port->name); !joined) return joined;
  }
  port_bridges_[index] = domain.bridge;
  return {};
}

KernelResult<void> NetlinkKernel::detach_port(net::IfIndex index) {
  port_bridges_.erase(index);
  auto port = find(netlink::get_link(index), fmt::format("device {}", index.value));
  if (!port) return std::unexpected(port.error());
  if (!*port || (*port)->master.value == 0) return {};
  return change(**port, {.master = net::IfIndex()});
}

KernelResult<void> NetlinkKernel::set_core_flags(const BridgeDomain& domain,
                                                 bool flood_unknown_unicast, bool kernel_floods) {
  const auto port = get(domain.vxlan);
  if (!port) return std::unexpected(port.error());
  return set_flags(*port, netlink::core_port_settings(flood_unknown_unicast, kernel_floods));
}

// --- forwarding entries

KernelResult<void> NetlinkKernel::send(Batch& batch, std::string_view what,
                                       std::string_view device) {
  const auto result = batch.finish();
  if (result) return {};
  return std::unexpected(error_of(fmt::format("{} on {}", what, device), result.error()));
}

NetlinkKernel::Domain* NetlinkKernel::domain_of_port(net::IfIndex port) {
  const auto bridge = port_bridges_.find(port);
  if (bridge == port_bridges_.end()) return nullptr;
  const auto domain = domains_.find(bridge->second);
  return domain == domains_.end() ? nullptr : &domain->second;
}

KernelResult<void> NetlinkKernel::apply_remote_macs(const BridgeDomain& domain,
                                                    std::span<const RemoteMac> changes) {
  auto& sticky = domain_of(domain).sticky;
  Batch batch(socket_);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const RemoteMac& change = changes[i];
    if (!change.vtep) {
      batch.add(netlink::remove_master_mac(domain.vxlan, change.mac), i, kGone);
      batch.add(netlink::remove_self_mac(domain.vxlan, change.mac), i, kGone);
      sticky.erase(change.mac);
      continue;
    }
    batch.add(netlink::add_remote_mac(domain.vxlan, change.mac, *change.vtep), i);
    // After the external add, so that the entry never looks like one that the bridge learned.
    if (change.sticky) {
      batch.add(netlink::pin_master_mac(domain.vxlan, change.mac), i);
      sticky.insert(change.mac);
    } else if (sticky.erase(change.mac) > 0) {
      batch.add(netlink::unpin_master_mac(domain.vxlan, change.mac), i);
    }
  }
  const auto result = batch.finish();
  if (result) return {};
  const RemoteMac& failed = changes[result.error().about];
  return std::unexpected(error_of(
      fmt::format("{} MAC {} {} {}", failed.vtep ? "add" : "remove", to_string(failed.mac),
                  failed.vtep ? "behind" : "of device",
                  failed.vtep ? to_string(*failed.vtep) : std::to_string(domain.vxlan.value)),
      result.error()));
}

KernelResult<void> NetlinkKernel::remove_tunnel_mac(const BridgeDomain& domain,
                                                    net::MacAddress mac) {
  Batch batch(socket_);
  batch.add(netlink::remove_self_mac(domain.vxlan, mac), 0, kGone);
  return send(batch, fmt::format("remove tunnel MAC {}", to_string(mac)),
              std::to_string(domain.vxlan.value));
}

KernelResult<void> NetlinkKernel::add_flood(const BridgeDomain& domain,
                                            const net::IpAddress& vtep) {
  Batch batch(socket_);
  batch.add(netlink::add_flood_entry(domain.vxlan, vtep), 0, kThere);
  return send(batch, fmt::format("add flood entry {}", to_string(vtep)),
              fmt::format("device {}", domain.vxlan.value));
}

KernelResult<void> NetlinkKernel::remove_flood(const BridgeDomain& domain,
                                               const net::IpAddress& vtep) {
  Batch batch(socket_);
  batch.add(netlink::remove_flood_entry(domain.vxlan, vtep), 0, kGone);
  return send(batch, fmt::format("remove flood entry {}", to_string(vtep)),
              fmt::format("device {}", domain.vxlan.value));
}

KernelResult<void> NetlinkKernel::set_port_mac(net::IfIndex port, net::MacAddress mac) {
  Batch batch(socket_);
  Domain* domain = domain_of_port(port);
  // A remote entry would keep its external flag when it moves here.
  if (domain) batch.add(netlink::remove_master_mac(domain->vxlan, mac), 0, kGone);
  batch.add(netlink::pin_master_mac(port, mac), 0);
  auto result =
      send(batch, fmt::format("set MAC {}", to_string(mac)), fmt::format("device {}", port.value));
  if (result && domain) domain->sticky.insert(mac);
  return result;
}

KernelResult<void> NetlinkKernel::refresh_port_mac(net::IfIndex port, net::MacAddress mac) {
  Batch batch(socket_);
  batch.add(netlink::refresh_master_mac(port, mac), 0);
  return send(batch, fmt::format("refresh MAC {}", to_string(mac)),
              fmt::format("device {}", port.value));
}

KernelResult<void> NetlinkKernel::remove_port_mac(net::IfIndex port, net::MacAddress mac) {
  if (Domain* domain = domain_of_port(port)) domain->sticky.erase(mac);
  Batch batch(socket_);
  batch.add(netlink::remove_master_mac(port, mac), 0, kGone);
  auto result = send(batch, fmt::format("remove MAC {}", to_string(mac)),
                     fmt::format("device {}", port.value));
  if (result) return result;
  // A port that is in no bridge has no entries.
  const auto link = get(port);
  if (link && link->master.value == 0) return {};
  return result;
}

KernelResult<std::vector<FdbEntry>> NetlinkKernel::dump_fdb(const BridgeDomain& domain) {
  std::vector<FdbEntry> entries;
  const auto result =
      socket_.dump([&] { return netlink::dump_fdb(domain.bridge); }, [&] { entries.clear(); },
                   [&](nlmsghdr* m) {
                     const auto message = netlink::parse_fdb(m);
                     if (!message) return;
                     // Group filters of devices (NTF_SELF, 33:33:...) are no forwarding entries.
                     const bool ours = message->self ? message->entry.port == domain.vxlan
                                                     : message->bridge == domain.bridge;
                     if (ours) entries.push_back(message->entry);
                   });
  if (!result) return std::unexpected(error_of("dump the forwarding database", result.error()));
  auto& sticky = domain_of(domain).sticky;
  sticky.clear();
  for (const FdbEntry& entry : entries)
    if (entry.on_bridge && entry.sticky) sticky.insert(entry.mac);
  return entries;
}

KernelResult<std::vector<LinkChanged>> NetlinkKernel::links() {
  std::vector<LinkChanged> links;
  const auto result = socket_.dump(
      netlink::dump_links, [&] { links.clear(); },
      [&](nlmsghdr* m) {
        if (auto link = netlink::parse_link_change(m)) links.push_back(*link);
      });
  if (!result) return std::unexpected(error_of("list devices", result.error()));
  events_->known_links(links);
  return links;
}

// --- the end

// What this process put into devices of somebody else.
KernelResult<void> NetlinkKernel::remove_entries(const BridgeDomain& domain) {
  const auto entries = dump_fdb(domain);
  if (!entries) return std::unexpected(entries.error());
  Batch batch(socket_);
  for (const FdbEntry& entry : *entries) {
    if (entry.on_bridge) {
      if (!entry.permanent && (entry.sticky || entry.external))
        batch.add(netlink::remove_master_mac(entry.port, entry.mac), 0, kGone);
    } else if (entry.mac.is_zero() && entry.vtep) {
      batch.add(netlink::remove_flood_entry(domain.vxlan, *entry.vtep), 0, kGone);
    } else if (entry.external) {
      batch.add(netlink::remove_self_mac(domain.vxlan, entry.mac), 0, kGone);
    }
  }
  return send(batch, "remove forwarding entries", fmt::format("device {}", domain.bridge.value));
}

KernelResult<void> NetlinkKernel::teardown(const Links& links) {
  auto bridge = find(links.bridge);
  if (!bridge) return std::unexpected(bridge.error());
  auto vxlan = find(links.vxlan);
  if (!vxlan) return std::unexpected(vxlan.error());
  const auto made = [&](const std::optional<LinkInfo>& link, const char* kind) {
    return link && link->kind == kind && is_ours(*link, links.vni, links.vtep);
  };
  const bool delete_vxlan = made(*vxlan, "vxlan");
  const bool delete_bridge = made(*bridge, "bridge");
  if (*bridge && (*bridge)->kind == "bridge") {
    const bool joined = *vxlan && (*vxlan)->kind == "vxlan" && (*vxlan)->master == (*bridge)->index;
    if (!(delete_bridge && delete_vxlan)) {
      const BridgeDomain domain{(*bridge)->index, joined ? (*vxlan)->index : net::IfIndex()};
      if (auto removed = remove_entries(domain); !removed) return removed;
    }
    events_->unwatch((*bridge)->index);
    domains_.erase((*bridge)->index);
    std::erase_if(port_bridges_, [&](const auto& p) { return p.second == (*bridge)->index; });
  }
  Batch batch(socket_);
  if (delete_vxlan) batch.add(netlink::delete_link((*vxlan)->index), 0, kGone);
  if (delete_bridge) batch.add(netlink::delete_link((*bridge)->index), 0, kGone);
  return send(batch, "delete", fmt::format("{} and {}", links.vxlan, links.bridge));
}

}  // namespace

net::MacAddress device_mac(const std::string& device, net::Vni vni, const net::IpAddress& vtep) {
  std::vector<uint8_t> key(device.begin(), device.end());
  for (int shift = 24; shift >= 0; shift -= 8)
    key.push_back(static_cast<uint8_t>(vni.value >> shift));
  key.insert(key.end(), vtep.bytes().begin(), vtep.bytes().end());
  const uint64_t hash = net::hash_bytes(key);
  std::array<uint8_t, 6> octets{};
  for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<uint8_t>(hash >> (8 * i));
  octets[0] = static_cast<uint8_t>((octets[0] & 0xfc) | 0x02);  // local, not a group
  return net::MacAddress(octets);
}

std::string device_alias(const std::string& device) { return "peerlan:" + device; }

KernelResult<std::unique_ptr<Kernel>> open_kernel(boost::asio::io_context& io,
                                                  const KernelOptions& options) {
  auto events = netlink::EventSource::open(io, options.event_buffer_bytes);
  if (!events) return std::unexpected(error_of("open netlink event socket", events.error()));
  auto socket = netlink::Socket::open();
  if (!socket) return std::unexpected(error_of("open netlink socket", socket.error()));
  auto kernel = std::make_unique<NetlinkKernel>(std::move(*socket), std::move(*events));
  // Devices that are there are no events.
  if (auto links = kernel->links(); !links) return std::unexpected(links.error());
  return kernel;
}

}  // namespace dataplane
