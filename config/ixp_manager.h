// SPDX-License-Identifier: GPL-2.0-or-later
// Files of IXP Manager's provisioner API: `layer2interfaces` (which member's router is at which
// switch port, with which addresses and MACs), the layer-2 addresses `configured-macs` and the list
// of VLANs. JSON or YAML. As with IX-F exports, an entry that can't be right is left out with a
// warning that names it, and never takes others with it.
#pragma once
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/ixf.h"

namespace config {

struct IxpManagerFile {
  std::string name;  // for errors
  std::string_view text;
};

struct IxpManagerQuery {
  std::vector<net::IpPrefix> prefixes;
  // 802.1Q tag, or, with a list of VLANs, a name of one. Empty: the one VLAN of the file that has
  // addresses in the prefixes.
  std::string vlan;
  IxpManagerFile interfaces;
  std::optional<IxpManagerFile> configured_macs;  // more MACs of each interface
  std::optional<IxpManagerFile> vlans;
};

// A port of the file that has MACs on the VLAN, or is not let into it.
struct ExportedPort {
  std::vector<net::MacAddress> macs;
  int line = 0, column = 0;
  std::string where;    // "layer2interfaces[3].vlans[0]"
  bool closed = false;  // shut down, disabled or in quarantine: then without MACs
};

struct IxpManagerMembers {
  // `binding.port` is the name of the switch port, of a LAG its master's. In file order, no address
  // twice.
  std::vector<IxfBinding> bindings;
  std::map<std::string, ExportedPort> ports;
  std::vector<Error> warnings;
};

// Errors: a file that is neither, another document, no VLAN that fits, or nothing usable in it.
[[nodiscard]] std::expected<IxpManagerMembers, std::vector<Error>> read_ixp_manager(
    const IxpManagerQuery& query);

}  // namespace config
