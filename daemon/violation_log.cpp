// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/violation_log.h"

#include <algorithm>
#include <utility>

namespace peerland {

std::optional<net::IpAddress> claimed_address(std::span<const uint8_t> frame) {
  constexpr std::size_t kArpSender = 28, kSource = 22, kType = 54, kTarget = 62;
  constexpr uint8_t kIcmpv6 = 58, kSolicitation = 135, kAdvertisement = 136;
  const auto address = [&](std::size_t at, std::size_t size) -> std::optional<net::IpAddress> {
    if (frame.size() < at + size) return std::nullopt;
    return net::IpAddress::from_bytes(frame.subspan(at, size));
  };
  if (frame.size() <= kType - 1 && frame.size() < kArpSender + 4) return std::nullopt;
  if (frame[12] == 0x08 && frame[13] == 0x06) return address(kArpSender, 4);
  if (frame[12] != 0x86 || frame[13] != 0xdd || frame.size() <= kType || frame[20] != kIcmpv6)
    return std::nullopt;
  if (frame[kType] == kAdvertisement) return address(kTarget, 16);
  if (frame[kType] == kSolicitation) return address(kSource, 16);
  return std::nullopt;
}

bool ViolationLog::add(ViolationEntry&& report, net::TimePoint now) {
  auto& entries = ports_[report.port];
  const auto found = std::ranges::find_if(entries, [&](const ViolationEntry& one) {
    return one.direction == report.direction && one.mac == report.mac && one.kind == report.kind &&
           one.reason == report.reason;
  });
  const bool fresh = found == entries.end();
  if (fresh) {
    report.first = now;
    entries.push_front(std::move(report));
    if (entries.size() > kMostOfAPort) entries.pop_back();
  } else {
    found->owner = std::move(report.owner);
    found->ip = report.ip;
    found->frame = std::move(report.frame);
    entries.splice(entries.begin(), entries, found);
  }
  auto& entry = entries.front();
  ++entry.reports;
  entry.last = now;
  if (entry.frame.size() > kHead) entry.frame.resize(kHead);
  return fresh;
}

void ViolationLog::for_each(const std::string& port,
                            const std::function<void(const ViolationEntry&)>& visit) const {
  for (const auto& [name, entries] : ports_)
    if (port.empty() || port == name)
      for (const auto& entry : entries) visit(entry);
}

}  // namespace peerland
