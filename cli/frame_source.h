// SPDX-License-Identifier: GPL-2.0-or-later
// Frames that a user wants to have explained: hexadecimal octets, or a capture file.
#pragma once
#include <cstddef>
#include <expected>
#include <string>
#include <vector>

namespace cli {

// Each frame as hexadecimal digits: of `source` itself, where it is octets (with spaces, colons,
// dots or dashes between them, or none), else of the pcap or pcapng file of that name, at most
// `most`. The error is a line for the user.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> frames_of(
    const std::string& source, std::size_t most);

}  // namespace cli
