// SPDX-License-Identifier: GPL-2.0-or-later
// What drives a network device.
#pragma once
#include <string>

namespace dataplane {

// "ixgbe", "veth"; empty when the device does not exist, or does not say.
[[nodiscard]] std::string driver_of(const std::string& interface);

}  // namespace dataplane
