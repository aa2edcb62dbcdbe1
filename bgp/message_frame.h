// SPDX-License-Identifier: GPL-2.0-or-later
// What the encoders of all message types share.
#pragma once
#include <cstddef>

#include "bgp/message.h"

namespace bgp {

// Marker, length and type of RFC 4271 section 4.1; returns the place of the length, to be patched.
std::size_t begin_message(net::ByteWriter& out, MessageType type);

}  // namespace bgp
