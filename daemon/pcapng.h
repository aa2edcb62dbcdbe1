// SPDX-License-Identifier: GPL-2.0-or-later
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng) as octets: the few kinds that a trace needs.
// All in network order, which the section header tells; times in microseconds.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace peerland::pcapng {

using Time = std::chrono::system_clock::time_point;

// The first block of a file.
[[nodiscard]] std::string section_header(std::string_view application, std::string_view comment);
// An Ethernet interface; they are numbered from 0 in the order of their blocks.
[[nodiscard]] std::string interface_description(std::string_view name,
                                                std::string_view description);
[[nodiscard]] std::string enhanced_packet(uint32_t interface, Time time,
                                          std::span<const uint8_t> frame, bool outbound,
                                          std::string_view comment);
// At the end: how many frames were written, and how many there was no room for.
[[nodiscard]] std::string interface_statistics(uint32_t interface, Time time, uint64_t written,
                                               uint64_t dropped);

}  // namespace peerland::pcapng
