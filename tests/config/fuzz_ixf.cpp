// SPDX-License-Identifier: GPL-2.0-or-later
// Any octets as a member export: no crash, and whatever comes out keeps read_ixf()'s promises.
#include <cstdlib>
#include <set>

#include "config/ixf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  config::IxfQuery query{
      {*net::IpPrefix::parse("192.0.2.0/24"), *net::IpPrefix::parse("2001:db8:1::/64")}, {}, {}};
  if (data[0] & 1) query.vlan_id = 1;
  if (data[0] & 2) query.ixp_id = 1;
  const std::string text(data + 1, data + size);
  const auto members = config::read_ixf("fuzz.json", text, query);
  if (!members) {
    if (members.error().empty()) std::abort();
    return 0;
  }
  if (members->bindings.empty() || members->warnings.size() > 101) std::abort();
  std::set<net::IpAddress> seen;
  for (const auto& [binding, line, column, where] : members->bindings) {
    const bool inside =
        query.prefixes[0].contains(binding.ip) || query.prefixes[1].contains(binding.ip);
    if (!inside || !seen.insert(binding.ip).second || binding.macs.empty() || line < 1)
      std::abort();
    for (const auto& mac : binding.macs)
      if (!mac.is_unicast()) std::abort();
  }
  return 0;
}
