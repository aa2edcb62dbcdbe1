// SPDX-License-Identifier: GPL-2.0-or-later
// The settings' static bindings by address, and the link-local addresses that go with them.
#include <algorithm>

#include "proxyarp/bindings.h"
#include "proxyarp/nd.h"

namespace proxyarp {
namespace {

void merge(FixedPart& into, const FixedPart& from) {
  for (net::MacAddress mac : from.allowed)
    if (std::ranges::find(into.allowed, mac) == into.allowed.end()) into.allowed.push_back(mac);
  if (into.port.empty()) into.port = from.port;
  if (into.member_as == net::AsNumber{}) into.member_as = from.member_as;
  if (into.member_name.empty()) into.member_name = from.member_name;
}

// Where members' link-local addresses are learned anyway, none is made.
bool derives_link_locals(const Settings& settings) {
  const bool wanted =
      settings.link_local == LinkLocal::Eui64 || settings.link_local == LinkLocal::Both;
  return wanted && (settings.profile == Profile::Static || !settings.learns());
}

}  // namespace

std::map<net::IpAddress, FixedPart> provisioned_parts(const Settings& settings) {
  std::map<net::IpAddress, FixedPart> fixed;
  for (const StaticBinding& binding : settings.bindings) {
    const FixedPart part{binding.macs, binding.port, false, binding.member_as, binding.member_name};
    const auto [at, added] = fixed.try_emplace(binding.ip, part);
    if (!added) merge(at->second, part);
  }
  if (!derives_link_locals(settings)) return fixed;
  std::map<net::IpAddress, FixedPart> derived;
  for (const auto& [ip, part] : fixed)
    for (net::MacAddress mac : part.allowed) {
      const net::IpAddress link_local = eui64_link_local(mac);
      if (fixed.contains(link_local)) continue;
      FixedPart one = part;
      one.allowed = {mac};
      one.wait_for_mac = part.allowed.size() > 1;
      const auto [at, added] = derived.try_emplace(link_local, one);
      if (added) continue;
      merge(at->second, one);
      at->second.wait_for_mac = at->second.wait_for_mac || one.wait_for_mac;
    }
  fixed.merge(derived);
  return fixed;
}

}  // namespace proxyarp
