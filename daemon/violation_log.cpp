// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/violation_log.h"

#include <algorithm>
#include <utility>

namespace peerland {

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
