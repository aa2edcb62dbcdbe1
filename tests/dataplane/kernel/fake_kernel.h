// SPDX-License-Identifier: GPL-2.0-or-later
// The Kernel seam in memory, for tests of what drives it: devices, bridge entries, tunnel entries
// and flood lists that behave as the real ones do (contract.h runs the same cases against both).
// Events are queued; deliver() hands them to the handler, as a turn of the loop would.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/kernel.h"

namespace dataplane::testing {

class FakeKernel final : public Kernel {
 public:
  struct Device {
    std::string name;
    std::string kind = "veth";  // "bridge", "vxlan"
    bool up = true;
    net::IfIndex bridge;
    bool learning = true;
    bool flood_unknown_unicast = true;
    bool kernel_floods = true;
    Links links;        // of a bridge or VXLAN device that ensure_domain() made
    bool ours = false;  // made by ensure_domain()
  };

  // --- the machine
  net::IfIndex add_device(const std::string& name, bool up = true,
                          const std::string& kind = "veth") {
    const net::IfIndex index(next_index_++);
    Device device;
    device.name = name;
    device.kind = kind;
    device.up = up;
    devices_[index] = device;
    report_link(index);
    return index;
  }
  void remove_device(net::IfIndex index) {
    const auto it = devices_.find(index);
    if (it == devices_.end()) return;
    leave(index);
    for (auto& [other, device] : devices_)
      if (device.bridge == index) leave(other);
    std::erase_if(master_, [&](const auto& e) { return e.first.first == index; });
    std::erase_if(self_, [&](const auto& e) { return e.first.first == index; });
    flood_.erase(index);
    events_.emplace_back(LinkChanged{index, it->second.name, false, false, {}});
    devices_.erase(it);
  }
  void set_up(net::IfIndex index, bool up) {
    Device& device = devices_.at(index);
    if (device.up == up) return;
    device.up = up;
    report_link(index);
    if (!up) flush_learned(index);
  }
  // A frame with this source came in at the port: the bridge learns, moves or leaves it.
  void frame(net::IfIndex port, net::MacAddress source) {
    const Device& device = devices_.at(port);
    if (device.bridge.value == 0 || !device.learning || !device.up || !source.is_unicast()) return;
    learn(port, source);
  }
  // Ageing: only what is neither static nor external goes.
  void age(net::IfIndex port, net::MacAddress mac) {
    const auto it = master_.find({devices_.at(port).bridge, mac});
    if (it == master_.end() || it->second.port != port) return;
    if (it->second.is_static || it->second.external) return;
    master_.erase(it);
    events_.emplace_back(FdbGone{port, mac});
  }
  // Somebody else's change to the tables, without an event: what reconciling must find.
  void add_entry_silently(net::IfIndex bridge, const FdbEntry& entry) {
    if (entry.on_bridge)
      master_[{bridge, entry.mac}] = entry;
    else if (entry.mac.is_zero() && entry.vtep)
      flood_[entry.port].insert(*entry.vtep);
    else
      self_[{entry.port, entry.mac}] = entry;
  }
  void remove_entry_silently(net::IfIndex bridge, net::MacAddress mac) {
    master_.erase({bridge, mac});
  }
  // The receive buffer overran: queued events are gone.
  void lose_events() {
    events_.clear();
    events_.emplace_back(EventsLost{});
  }
  std::size_t deliver() {
    std::size_t count = 0;
    while (!events_.empty()) {
      const KernelEvent event = events_.front();
      events_.pop_front();
      ++count;
      const auto handler = handler_;
      if (handler) handler(event);
    }
    return count;
  }
  // The next call of that name ("apply_remote_macs") does nothing and fails.
  void fail_next(const std::string& call, int error) { failures_[call].push_back(error); }

  // --- a look at it
  const Device* device(net::IfIndex index) const {
    const auto it = devices_.find(index);
    return it == devices_.end() ? nullptr : &it->second;
  }
  std::optional<net::IfIndex> index_of(const std::string& name) const {
    for (const auto& [index, device] : devices_)
      if (device.name == name) return index;
    return {};
  }
  std::optional<FdbEntry> bridge_entry(const BridgeDomain& domain, net::MacAddress mac) const {
    const auto it = master_.find({domain.bridge, mac});
    return it == master_.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<net::IpAddress> tunnel_entry(const BridgeDomain& domain,
                                             net::MacAddress mac) const {
    const auto it = self_.find({domain.vxlan, mac});
    return it == self_.end() ? std::nullopt : it->second.vtep;
  }
  std::set<net::IpAddress> flood_list(const BridgeDomain& domain) const {
    const auto it = flood_.find(domain.vxlan);
    return it == flood_.end() ? std::set<net::IpAddress>() : it->second;
  }
  std::size_t calls(const std::string& name) const {
    const auto it = calls_.find(name);
    return it == calls_.end() ? 0 : it->second;
  }
  std::size_t changed_macs() const { return changed_macs_; }  // by apply_remote_macs(), in total

  // --- Kernel
  KernelResult<BridgeDomain> ensure_domain(const Links& links) override {
    if (auto failed = enter("ensure_domain")) return std::unexpected(*failed);
    auto bridge = index_of(links.bridge);
    if (bridge && devices_[*bridge].kind != "bridge")
      return refuse(
          links.bridge + " is a device of kind " + devices_[*bridge].kind + ", wanted a bridge",
          EINVAL);
    auto vxlan = index_of(links.vxlan);
    if (vxlan) {
      const Device& there = devices_[*vxlan];
      if (there.kind != "vxlan")
        return refuse(
            links.vxlan + " is a device of kind " + there.kind + ", wanted a vxlan device", EINVAL);
      if (there.links.vni != links.vni || there.links.vtep != links.vtep ||
          there.links.udp_port != links.udp_port)
        return refuse("vxlan " + links.vxlan + ": vni, local or dstport differ", EINVAL);
    }
    if (!bridge) {
      bridge = add_device(links.bridge, true, "bridge");
      devices_[*bridge].ours = true;
    }
    devices_[*bridge].links = links;
    if (!vxlan) {
      vxlan = add_device(links.vxlan, true, "vxlan");
      devices_[*vxlan].ours = true;
    }
    Device& core = devices_[*vxlan];
    core.links = links;
    core.learning = false;
    core.flood_unknown_unicast = links.flood_unknown_unicast;
    if (core.bridge != *bridge) {
      core.bridge = *bridge;
      report_link(*vxlan);
    }
    return BridgeDomain{*bridge, *vxlan};
  }

  KernelResult<void> attach_port(const BridgeDomain& domain, net::IfIndex port,
                                 bool flood_unknown_unicast, bool kernel_floods) override {
    if (auto failed = enter("attach_port")) return std::unexpected(*failed);
    const auto it = devices_.find(port);
    if (it == devices_.end() || !devices_.contains(domain.bridge)) return no_device(port);
    Device& device = it->second;
    if (device.bridge.value != 0 && device.bridge != domain.bridge)
      return refuse("port " + device.name + ": in another bridge", EBUSY);
    device.learning = true;
    device.flood_unknown_unicast = flood_unknown_unicast;
    device.kernel_floods = kernel_floods;
    if (device.bridge == domain.bridge) return {};
    device.bridge = domain.bridge;
    report_link(port);
    return {};
  }
  KernelResult<void> detach_port(net::IfIndex port) override {
    if (auto failed = enter("detach_port")) return std::unexpected(*failed);
    leave(port);
    return {};
  }
  KernelResult<void> set_core_flags(const BridgeDomain& domain, bool flood_unknown_unicast,
                                    bool kernel_floods) override {
    if (auto failed = enter("set_core_flags")) return std::unexpected(*failed);
    const auto it = devices_.find(domain.vxlan);
    if (it == devices_.end()) return no_device(domain.vxlan);
    it->second.flood_unknown_unicast = flood_unknown_unicast;
    it->second.kernel_floods = kernel_floods;
    return {};
  }

  KernelResult<void> apply_remote_macs(const BridgeDomain& domain,
                                       std::span<const RemoteMac> changes) override {
    if (auto failed = enter("apply_remote_macs")) return std::unexpected(*failed);
    const bool there = devices_.contains(domain.vxlan);
    for (const RemoteMac& change : changes) {
      ++changed_macs_;
      const auto it = master_.find({domain.bridge, change.mac});
      if (!change.vtep) {
        if (it != master_.end() && it->second.port == domain.vxlan) erase_master(it);
        self_.erase({domain.vxlan, change.mac});
        continue;
      }
      if (!there) continue;
      master_[{domain.bridge, change.mac}] = {.port = domain.vxlan,
                                              .mac = change.mac,
                                              .on_bridge = true,
                                              .is_static = change.sticky,
                                              .sticky = change.sticky,
                                              .external = true,
                                              .vtep = {}};
      self_[{domain.vxlan, change.mac}] = {
          .port = domain.vxlan, .mac = change.mac, .external = true, .vtep = change.vtep};
    }
    const bool adds = std::ranges::any_of(changes, [](const RemoteMac& c) { return !!c.vtep; });
    if (!there && adds) return no_device(domain.vxlan);
    return {};
  }
  KernelResult<void> remove_tunnel_mac(const BridgeDomain& domain, net::MacAddress mac) override {
    if (auto failed = enter("remove_tunnel_mac")) return std::unexpected(*failed);
    self_.erase({domain.vxlan, mac});
    return {};
  }
  KernelResult<void> add_flood(const BridgeDomain& domain, const net::IpAddress& vtep) override {
    if (auto failed = enter("add_flood")) return std::unexpected(*failed);
    if (!devices_.contains(domain.vxlan)) return no_device(domain.vxlan);
    flood_[domain.vxlan].insert(vtep);
    return {};
  }
  KernelResult<void> remove_flood(const BridgeDomain& domain, const net::IpAddress& vtep) override {
    if (auto failed = enter("remove_flood")) return std::unexpected(*failed);
    flood_[domain.vxlan].erase(vtep);
    return {};
  }
  KernelResult<void> set_port_mac(net::IfIndex port, net::MacAddress mac) override {
    if (auto failed = enter("set_port_mac")) return std::unexpected(*failed);
    const auto it = devices_.find(port);
    if (it == devices_.end() || it->second.bridge.value == 0) return no_device(port);
    FdbEntry& entry = master_[{it->second.bridge, mac}];
    const FdbEntry wanted{
        .port = port, .mac = mac, .on_bridge = true, .is_static = true, .sticky = true, .vtep = {}};
    if (entry.external) events_.emplace_back(FdbGone{entry.port, mac});
    if (entry != wanted) events_.emplace_back(FdbLearned{port, mac});
    entry = wanted;
    return {};
  }
  KernelResult<void> refresh_port_mac(net::IfIndex port, net::MacAddress mac) override {
    if (auto failed = enter("refresh_port_mac")) return std::unexpected(*failed);
    const auto it = devices_.find(port);
    if (it == devices_.end() || it->second.bridge.value == 0) return no_device(port);
    learn(port, mac);
    return {};
  }
  KernelResult<void> remove_port_mac(net::IfIndex port, net::MacAddress mac) override {
    if (auto failed = enter("remove_port_mac")) return std::unexpected(*failed);
    const auto device = devices_.find(port);
    if (device == devices_.end()) return {};
    const auto it = master_.find({device->second.bridge, mac});
    if (it != master_.end() && it->second.port == port) erase_master(it);
    return {};
  }

  KernelResult<std::vector<FdbEntry>> dump_fdb(const BridgeDomain& domain) override {
    if (auto failed = enter("dump_fdb")) return std::unexpected(*failed);
    if (!devices_.contains(domain.bridge)) return no_device(domain.bridge);
    std::vector<FdbEntry> entries;
    for (const auto& [key, entry] : master_)
      if (key.first == domain.bridge) entries.push_back(entry);
    for (const auto& [key, entry] : self_)
      if (key.first == domain.vxlan) entries.push_back(entry);
    for (const auto& vtep : flood_list(domain))
      entries.push_back({.port = domain.vxlan, .mac = {}, .vtep = vtep});
    return entries;
  }
  KernelResult<std::vector<LinkChanged>> links() override {
    if (auto failed = enter("links")) return std::unexpected(*failed);
    std::vector<LinkChanged> links;
    for (const auto& [index, device] : devices_)
      links.push_back({index, device.name, true, device.up, device.bridge});
    return links;
  }
  KernelResult<void> teardown(const Links& links) override {
    if (auto failed = enter("teardown")) return std::unexpected(*failed);
    for (const std::string& name : {links.vxlan, links.bridge}) {
      const auto index = index_of(name);
      if (!index) continue;
      if (devices_[*index].ours) {
        remove_device(*index);
      } else {
        std::erase_if(master_, [&](const auto& e) {
          return e.first.first == *index && (e.second.external || e.second.sticky);
        });
        std::erase_if(self_, [&](const auto& e) { return e.first.first == *index; });
        flood_.erase(*index);
      }
    }
    return {};
  }
  void on_event(std::function<void(const KernelEvent&)> handler) override {
    handler_ = std::move(handler);
  }

 private:
  using Key = std::pair<net::IfIndex, net::MacAddress>;  // bridge or VXLAN device

  std::optional<KernelError> enter(const std::string& call) {
    ++calls_[call];
    auto& failures = failures_[call];
    if (failures.empty()) return {};
    const int error = failures.front();
    failures.pop_front();
    return KernelError{call + ": " + std::strerror(error), error};
  }
  static std::unexpected<KernelError> refuse(std::string what, int error) {
    return std::unexpected(KernelError{std::move(what), error});
  }
  static std::unexpected<KernelError> no_device(net::IfIndex index) {
    return refuse("device " + std::to_string(index.value) + ": No such device", ENODEV);
  }
  void report_link(net::IfIndex index) {
    const Device& device = devices_.at(index);
    events_.emplace_back(LinkChanged{index, device.name, true, device.up, device.bridge});
  }
  void learn(net::IfIndex port, net::MacAddress mac) {
    FdbEntry& entry = master_[{devices_.at(port).bridge, mac}];
    if (entry.port == port || entry.sticky) return;
    entry.port = port;
    entry.mac = mac;
    entry.on_bridge = true;
    entry.external = false;
    events_.emplace_back(FdbLearned{port, mac});
  }
  std::map<Key, FdbEntry>::iterator erase_master(std::map<Key, FdbEntry>::iterator it) {
    events_.emplace_back(FdbGone{it->second.port, it->second.mac});
    return master_.erase(it);
  }
  void flush_learned(net::IfIndex port) {
    for (auto it = master_.begin(); it != master_.end();) {
      const FdbEntry& entry = it->second;
      const bool goes = entry.port == port && !entry.is_static && !entry.external;
      it = goes ? erase_master(it) : std::next(it);
    }
  }
  void leave(net::IfIndex port) {
    const auto it = devices_.find(port);
    if (it == devices_.end() || it->second.bridge.value == 0) return;
    for (auto entry = master_.begin(); entry != master_.end();)
      entry = entry->second.port == port ? erase_master(entry) : std::next(entry);
    it->second.bridge = {};
    report_link(port);
  }

  std::map<net::IfIndex, Device> devices_;
  std::map<Key, FdbEntry> master_, self_;
  std::map<net::IfIndex, std::set<net::IpAddress>> flood_;
  std::deque<KernelEvent> events_;
  std::function<void(const KernelEvent&)> handler_;
  std::map<std::string, std::deque<int>> failures_;
  std::map<std::string, std::size_t> calls_;
  std::size_t changed_macs_ = 0;
  uint32_t next_index_ = 2;
};

}  // namespace dataplane::testing
