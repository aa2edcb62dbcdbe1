// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>

#include "dataplane/fast_path_impl.h"

namespace dataplane {

FastPathResult<FrameExplanation> FastPath::explain(net::IfIndex, Direction,
                                                   std::span<const uint8_t>) const {
  return std::unexpected(FastPathError{"explanations: not there yet", ENOSYS});
}

}  // namespace dataplane
