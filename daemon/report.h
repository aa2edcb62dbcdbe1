// SPDX-License-Identifier: GPL-2.0-or-later
// What a peering LAN was busy with, in the style of ixp-watch: top talkers by class against their
// limits, protocols that were seen and should not be, who asks most, over one interval or several.
#pragma once
#include <boost/json/object.hpp>

#include "daemon/filter.h"

namespace peerland {

class App;

[[nodiscard]] boost::json::object report(const App& app, const Filter& filter);

}  // namespace peerland
