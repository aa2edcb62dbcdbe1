// SPDX-License-Identifier: GPL-2.0-or-later
// What every Kernel does, as cases that run against the real one and the fake.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/kernel.h"

namespace dataplane {

inline void PrintTo(const FdbEntry& entry, std::ostream* out) {
  *out << (entry.on_bridge ? "bridge " : "tunnel ") << to_string(entry.mac) << " port "
       << entry.port.value << (entry.permanent ? " permanent" : "")
       << (entry.is_static ? " static" : "") << (entry.sticky ? " sticky" : "")
       << (entry.external ? " external" : "") << (entry.vtep ? " " + to_string(*entry.vtep) : "");
}

}  // namespace dataplane

namespace dataplane::testing {

// A machine with two member devices that are not in a bridge yet.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual Kernel& kernel() = 0;
  virtual net::IfIndex port(int number) = 0;  // 1, 2
  // A broadcast frame of that source comes in at the port.
  virtual void frame(int number, net::MacAddress source) = 0;
  // Events so far, and what comes until `enough` says so.
  virtual bool wait_event(const std::function<bool(const KernelEvent&)>& enough) = 0;
};

inline Links test_links() {
  Links links;
  links.bridge = "br100";
  links.vxlan = "vx100";
  links.vni = net::Vni(100);
  links.vtep = *net::IpAddress::parse("192.0.2.1");
  return links;
}

inline net::MacAddress mac_of(uint32_t number) {
  return net::MacAddress({0x02, 0x10, static_cast<uint8_t>(number >> 24),
                          static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8),
                          static_cast<uint8_t>(number)});
}

inline net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }

inline bool entry_less(const FdbEntry& a, const FdbEntry& b) {
  return std::tie(a.on_bridge, a.mac, a.port, a.vtep) <
         std::tie(b.on_bridge, b.mac, b.port, b.vtep);
}

inline std::vector<FdbEntry> sorted(std::vector<FdbEntry> list) {
  std::ranges::sort(list, entry_less);
  return list;
}

// Sorted, without the addresses of the devices themselves.
inline std::vector<FdbEntry> entries(Kernel& kernel, const BridgeDomain& domain) {
  auto dump = kernel.dump_fdb(domain);
  EXPECT_TRUE(dump.has_value()) << (dump ? "" : dump.error().what);
  if (!dump) return {};
  std::erase_if(*dump, [](const FdbEntry& e) { return e.permanent; });
  return sorted(std::move(*dump));
}

inline FdbEntry on_bridge(net::IfIndex port, net::MacAddress mac) {
  FdbEntry entry;
  entry.port = port;
  entry.mac = mac;
  entry.on_bridge = true;
  return entry;
}
inline FdbEntry external_on_bridge(net::IfIndex port, net::MacAddress mac) {
  FdbEntry entry = on_bridge(port, mac);
  entry.external = true;
  return entry;
}
inline FdbEntry sticky_on_bridge(net::IfIndex port, net::MacAddress mac) {
  FdbEntry entry = on_bridge(port, mac);
  entry.sticky = entry.is_static = true;
  return entry;
}
inline FdbEntry in_tunnel(net::IfIndex vxlan, net::MacAddress mac, const net::IpAddress& vtep) {
  FdbEntry entry;
  entry.port = vxlan;
  entry.mac = mac;
  entry.external = !mac.is_zero();
  entry.vtep = vtep;
  return entry;
}

template <class T>
::testing::AssertionResult fine(const KernelResult<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().what;
}

#define EXPECT_ENTRIES(kernel, domain, ...) \
  EXPECT_EQ(entries(kernel, domain), sorted(std::vector<FdbEntry> __VA_ARGS__))

inline auto learned(net::IfIndex port, net::MacAddress mac) {
  return [=](const KernelEvent& event) {
    const auto* e = std::get_if<FdbLearned>(&event);
    return e && e->port == port && e->mac == mac;
  };
}
inline auto gone(net::IfIndex port, net::MacAddress mac) {
  return [=](const KernelEvent& event) {
    const auto* e = std::get_if<FdbGone>(&event);
    return e && e->port == port && e->mac == mac;
  };
}
inline auto link_in(net::IfIndex index, net::IfIndex bridge) {
  return [=](const KernelEvent& event) {
    const auto* e = std::get_if<LinkChanged>(&event);
    return e && e->index == index && e->exists && e->bridge == bridge;
  };
}

// Both member ports in the domain.
inline BridgeDomain set_up(Machine& machine) {
  const auto domain = machine.kernel().ensure_domain(test_links());
  EXPECT_TRUE(fine(domain));
  if (!domain) return {};
  for (int i : {1, 2}) {
    EXPECT_TRUE(fine(machine.kernel().attach_port(*domain, machine.port(i), false, true)));
    EXPECT_TRUE(machine.wait_event(link_in(machine.port(i), domain->bridge)));
  }
  return *domain;
}

// --- cases

inline void remote_macs_come_move_and_go(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1), b = mac_of(2);
  EXPECT_ENTRIES(kernel, domain, {});
  EXPECT_TRUE(fine(kernel.apply_remote_macs(
      domain, std::vector<RemoteMac>{{a, ip("192.0.2.2")}, {b, ip("192.0.2.3")}})));
  EXPECT_ENTRIES(
      kernel, domain,
      {external_on_bridge(domain.vxlan, a), external_on_bridge(domain.vxlan, b),
       in_tunnel(domain.vxlan, a, ip("192.0.2.2")), in_tunnel(domain.vxlan, b, ip("192.0.2.3"))});
  // Another VTEP replaces the first; what is absent is removed with success.
  EXPECT_TRUE(fine(kernel.apply_remote_macs(
      domain, std::vector<RemoteMac>{{a, ip("192.0.2.4")}, {b, {}}, {mac_of(3), {}}})));
  EXPECT_ENTRIES(
      kernel, domain,
      {external_on_bridge(domain.vxlan, a), in_tunnel(domain.vxlan, a, ip("192.0.2.4"))});
  EXPECT_TRUE(machine.wait_event(gone(domain.vxlan, b)));
}

inline void sticky_remote_mac_and_back(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  const auto tunnel = in_tunnel(domain.vxlan, a, ip("192.0.2.2"));
  FdbEntry sticky = sticky_on_bridge(domain.vxlan, a);
  sticky.external = true;
  const auto apply = [&](bool wanted) {
    const RemoteMac change{a, ip("192.0.2.2"), wanted};
    EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&change, 1))));
  };
  apply(true);
  EXPECT_ENTRIES(kernel, domain, {sticky, tunnel});
  machine.frame(1, a);  // does not move
  machine.frame(1, mac_of(2));
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), mac_of(2))));
  EXPECT_ENTRIES(kernel, domain, {sticky, tunnel, on_bridge(machine.port(1), mac_of(2))});
  apply(false);
  EXPECT_ENTRIES(
      kernel, domain,
      {external_on_bridge(domain.vxlan, a), tunnel, on_bridge(machine.port(1), mac_of(2))});
  machine.frame(1, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), a)));
}

inline void flood_list_adds_and_removes(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  for (const char* vtep : {"192.0.2.2", "192.0.2.3", "192.0.2.2"})
    EXPECT_TRUE(fine(kernel.add_flood(domain, ip(vtep))));
  EXPECT_ENTRIES(
      kernel, domain,
      {in_tunnel(domain.vxlan, {}, ip("192.0.2.2")), in_tunnel(domain.vxlan, {}, ip("192.0.2.3"))});
  for (const char* vtep : {"192.0.2.2", "192.0.2.2", "192.0.2.9"})
    EXPECT_TRUE(fine(kernel.remove_flood(domain, ip(vtep))));
  EXPECT_ENTRIES(kernel, domain, {in_tunnel(domain.vxlan, {}, ip("192.0.2.3"))});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(fine(kernel.remove_flood(domain, ip("192.0.2.3"))));
  EXPECT_ENTRIES(kernel, domain, {});
}

inline void member_macs_are_learned_and_move(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  machine.frame(1, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), a)));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(1), a)});
  machine.frame(2, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(2), a)));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(2), a)});
  // Not at that port: nothing is removed.
  EXPECT_TRUE(fine(kernel.remove_port_mac(machine.port(1), a)));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(2), a)});
  EXPECT_TRUE(fine(kernel.remove_port_mac(machine.port(2), a)));
  EXPECT_TRUE(machine.wait_event(gone(machine.port(2), a)));
  EXPECT_ENTRIES(kernel, domain, {});
}

// A remote MAC shows up at a port here: an event, and the tunnel entry stays until it is removed.
inline void remote_mac_moves_here(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  const RemoteMac remote{a, ip("192.0.2.2")};
  EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&remote, 1))));
  machine.frame(2, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(2), a)));
  EXPECT_ENTRIES(kernel, domain,
                 {on_bridge(machine.port(2), a), in_tunnel(domain.vxlan, a, ip("192.0.2.2"))});
  EXPECT_TRUE(fine(kernel.remove_tunnel_mac(domain, a)));
  EXPECT_TRUE(fine(kernel.remove_tunnel_mac(domain, a)));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(2), a)});
  // The bridge's entry is not the tunnel's: a late withdrawal leaves it.
  const RemoteMac withdrawn{a, {}};
  EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&withdrawn, 1))));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(2), a)});
  // And away again.
  EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&remote, 1))));
  EXPECT_ENTRIES(
      kernel, domain,
      {external_on_bridge(domain.vxlan, a), in_tunnel(domain.vxlan, a, ip("192.0.2.2"))});
}

// After a withdrawal at the far end, the tunnel entry of a MAC that is local goes too.
inline void withdrawal_clears_the_tunnel_of_a_local_mac(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  const RemoteMac remote{a, ip("192.0.2.2")}, withdrawn{a, {}};
  EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&remote, 1))));
  machine.frame(1, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), a)));
  EXPECT_TRUE(fine(kernel.apply_remote_macs(domain, std::span(&withdrawn, 1))));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(1), a)});
}

inline void provisioned_mac_does_not_move(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  EXPECT_TRUE(fine(kernel.set_port_mac(machine.port(1), a)));
  EXPECT_TRUE(fine(kernel.set_port_mac(machine.port(1), a)));
  EXPECT_ENTRIES(kernel, domain, {sticky_on_bridge(machine.port(1), a)});
  machine.frame(2, a);
  machine.frame(2, mac_of(2));  // a mark: the frame before has been handled
  EXPECT_TRUE(machine.wait_event(learned(machine.port(2), mac_of(2))));
  EXPECT_ENTRIES(kernel, domain,
                 {sticky_on_bridge(machine.port(1), a), on_bridge(machine.port(2), mac_of(2))});
  EXPECT_TRUE(fine(kernel.remove_port_mac(machine.port(1), a)));
  machine.frame(2, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(2), a)));
}

inline void provisioned_mac_takes_over(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1), b = mac_of(2), c = mac_of(3);
  // From the tunnel, also from a sticky entry there, and from another port.
  EXPECT_TRUE(fine(kernel.apply_remote_macs(
      domain, std::vector<RemoteMac>{{a, ip("192.0.2.2")}, {c, ip("192.0.2.2"), true}})));
  machine.frame(2, b);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(2), b)));
  for (const auto& mac : {a, b, c}) EXPECT_TRUE(fine(kernel.set_port_mac(machine.port(1), mac)));
  for (const auto& mac : {a, c}) EXPECT_TRUE(fine(kernel.remove_tunnel_mac(domain, mac)));
  EXPECT_ENTRIES(kernel, domain,
                 {sticky_on_bridge(machine.port(1), a), sticky_on_bridge(machine.port(1), b),
                  sticky_on_bridge(machine.port(1), c)});
}

inline void refresh_makes_and_keeps_entries(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  EXPECT_TRUE(fine(kernel.refresh_port_mac(machine.port(1), a)));
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), a)));
  EXPECT_TRUE(fine(kernel.refresh_port_mac(machine.port(1), a)));
  EXPECT_ENTRIES(kernel, domain, {on_bridge(machine.port(1), a)});
}

inline void leaving_port_forgets_its_macs(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  const auto a = mac_of(1);
  machine.frame(1, a);
  EXPECT_TRUE(machine.wait_event(learned(machine.port(1), a)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(fine(kernel.detach_port(machine.port(1))));
  EXPECT_TRUE(machine.wait_event(gone(machine.port(1), a)));
  EXPECT_TRUE(machine.wait_event(link_in(machine.port(1), {})));
  EXPECT_TRUE(fine(kernel.remove_port_mac(machine.port(1), a)));
  EXPECT_ENTRIES(kernel, domain, {});
}

inline void teardown_leaves_the_ports(Machine& machine) {
  Kernel& kernel = machine.kernel();
  const BridgeDomain domain = set_up(machine);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(fine(kernel.teardown(test_links())));
  EXPECT_TRUE(machine.wait_event(link_in(machine.port(1), {})));
  const auto links = kernel.links();
  ASSERT_TRUE(fine(links));
  int ports = 0;
  for (const LinkChanged& link : *links) {
    EXPECT_NE(link.name, test_links().bridge);
    EXPECT_NE(link.name, test_links().vxlan);
    if (link.index == machine.port(1) || link.index == machine.port(2)) {
      ++ports;
      EXPECT_EQ(link.bridge, net::IfIndex());
    }
  }
  EXPECT_EQ(ports, 2);
  const auto again = kernel.ensure_domain(test_links());
  ASSERT_TRUE(fine(again));
  EXPECT_NE(again->bridge, domain.bridge);
}

inline void absent_port_is_an_error(Machine& machine) {
  const BridgeDomain domain = set_up(machine);
  const net::IfIndex nowhere(4711);
  const auto attached = machine.kernel().attach_port(domain, nowhere, false, true);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().error, ENODEV);
  EXPECT_FALSE(machine.kernel().set_port_mac(nowhere, mac_of(1)));
  EXPECT_TRUE(fine(machine.kernel().detach_port(nowhere)));
  EXPECT_TRUE(fine(machine.kernel().remove_port_mac(nowhere, mac_of(1))));
}

struct Case {
  const char* name;
  void (*run)(Machine&);
};
inline void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }
#define PEERLAN_CASE(name) \
  Case { #name, name }
inline const std::vector<Case>& contract_cases() {
  static const std::vector<Case> cases{
      PEERLAN_CASE(remote_macs_come_move_and_go),
      PEERLAN_CASE(sticky_remote_mac_and_back),
      PEERLAN_CASE(flood_list_adds_and_removes),
      PEERLAN_CASE(member_macs_are_learned_and_move),
      PEERLAN_CASE(remote_mac_moves_here),
      PEERLAN_CASE(withdrawal_clears_the_tunnel_of_a_local_mac),
      PEERLAN_CASE(provisioned_mac_does_not_move),
      PEERLAN_CASE(provisioned_mac_takes_over),
      PEERLAN_CASE(refresh_makes_and_keeps_entries),
      PEERLAN_CASE(leaving_port_forgets_its_macs),
      PEERLAN_CASE(teardown_leaves_the_ports),
      PEERLAN_CASE(absent_port_is_an_error),
  };
  return cases;
}
inline std::string case_name(const ::testing::TestParamInfo<Case>& tested) {
  return tested.param.name;
}

}  // namespace dataplane::testing
