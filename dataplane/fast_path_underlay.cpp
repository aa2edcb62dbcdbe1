// SPDX-License-Identifier: GPL-2.0-or-later
// The underlay's side of the data path: who may send into our tunnels, and how much.
#include <cerrno>

#include "dataplane/fast_path.h"

namespace dataplane {

namespace {
std::unexpected<FastPathError> not_there(const char* what) {
  return std::unexpected(FastPathError{std::string(what) + ": not there yet", ENOSYS});
}
}  // namespace

FastPathResult<void> FastPath::set_underlay(const UnderlayConfig&) { return not_there("underlay"); }
FastPathResult<void> FastPath::remove_underlay(net::IfIndex) { return {}; }
FastPathResult<void> FastPath::add_vtep(const net::IpAddress&) { return not_there("VTEPs"); }
FastPathResult<void> FastPath::remove_vtep(const net::IpAddress&) { return {}; }
std::vector<VtepCounter> FastPath::vtep_counters() const { return {}; }

std::size_t FastPath::drain_violations(const std::function<void(const Violation&)>&, std::size_t) {
  return 0;
}

FastPathResult<FrameExplanation> FastPath::explain(net::IfIndex, Direction,
                                                   std::span<const uint8_t>) const {
  return not_there("explanations");
}

}  // namespace dataplane
