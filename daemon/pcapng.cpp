// SPDX-License-Identifier: GPL-2.0-or-later
// draft-ietf-opsawg-pcapng: a block is type, length, body, length again; options are code, length,
// value, all padded to four octets.
#include "daemon/pcapng.h"

#include <algorithm>

namespace peerland::pcapng {
namespace {

constexpr uint32_t kSectionHeader = 0x0a0d0d0a, kInterfaceDescription = 1, kInterfaceStatistics = 5,
                   kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr uint16_t kEndOfOptions = 0, kComment = 1;
constexpr uint16_t kUserApplication = 4;         // of a section
constexpr uint16_t kName = 2, kDescription = 3;  // of an interface
constexpr uint16_t kFlags = 2;                   // of a packet
constexpr uint16_t kReceived = 4, kDropped = 5;  // of statistics
constexpr uint16_t kEthernet = 1;                // LINKTYPE_ETHERNET
constexpr uint32_t kInbound = 1, kOutbound = 2;  // flags, direction
constexpr std::size_t kMaxText = 1000;           // of one option

void u16(std::string& out, uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value & 0xff);
}
void u32(std::string& out, uint32_t value) {
  u16(out, static_cast<uint16_t>(value >> 16));
  u16(out, static_cast<uint16_t>(value & 0xffff));
}
void u64(std::string& out, uint64_t value) {
  u32(out, static_cast<uint32_t>(value >> 32));
  u32(out, static_cast<uint32_t>(value & 0xffffffff));
}
void pad(std::string& out) { out.append((4 - out.size() % 4) % 4, '\0'); }

void option(std::string& out, uint16_t code, std::string_view value) {
  u16(out, code);
  u16(out, static_cast<uint16_t>(value.size()));
  out += value;
  pad(out);
}
void text(std::string& out, uint16_t code, std::string_view value) {
  if (!value.empty()) option(out, code, value.substr(0, kMaxText));
}

std::string block(uint32_t type, std::string body) {
  u32(body, kEndOfOptions);
  const auto length = static_cast<uint32_t>(body.size() + 12);
  std::string out;
  u32(out, type);
  u32(out, length);
  out += body;
  u32(out, length);
  return out;
}

void time_stamp(std::string& out, Time time) {
  u64(out,
      static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count()));
}

}  // namespace

std::string section_header(std::string_view application, std::string_view comment) {
  std::string body;
  u32(body, kByteOrderMagic);
  u16(body, 1);  // version 1.0
  u16(body, 0);
  u64(body, ~uint64_t{0});  // length of the section: not known
  text(body, kComment, comment);
  text(body, kUserApplication, application);
  return block(kSectionHeader, std::move(body));
}

std::string interface_description(std::string_view name, std::string_view description) {
  std::string body;
  u16(body, kEthernet);
  u16(body, 0);
  u32(body, 0);  // frames are whole
  text(body, kName, name);
  text(body, kDescription, description);
  return block(kInterfaceDescription, std::move(body));
}

std::string enhanced_packet(uint32_t interface, Time time, std::span<const uint8_t> frame,
                            bool outbound, std::string_view comment) {
  std::string body;
  u32(body, interface);
  time_stamp(body, time);
  u32(body, static_cast<uint32_t>(frame.size()));
  u32(body, static_cast<uint32_t>(frame.size()));
  body.append(frame.begin(), frame.end());
  pad(body);
  std::string flags;
  u32(flags, outbound ? kOutbound : kInbound);
  text(body, kComment, comment);
  option(body, kFlags, flags);
  return block(kEnhancedPacket, std::move(body));
}

std::string interface_statistics(uint32_t interface, Time time, uint64_t written,
                                 uint64_t dropped) {
  std::string body, received, lost;
  u32(body, interface);
  time_stamp(body, time);
  u64(received, written + dropped);
  u64(lost, dropped);
  option(body, kReceived, received);
  option(body, kDropped, lost);
  return block(kInterfaceStatistics, std::move(body));
}

}  // namespace peerland::pcapng
