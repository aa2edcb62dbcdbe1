// SPDX-License-Identifier: GPL-2.0-or-later
// One winner for each IP address over all MACs and PEs: RFC 9047 section 3.2.
#include "evpn/remote_bindings.h"

namespace evpn {

void RemoteBindings::set(net::IpAddress ip, const MacIp& route,
                         const std::optional<RemotePath>& path) {
  const Key key{route.rd, route.ethernet_tag, route.mac};
  if (!path) {
    if (const auto entry = entries_.find(ip); entry != entries_.end())
      entry->second.candidates.erase(key);
    return;
  }
  entries_[ip].candidates[key] = {*path, ++arrivals_};
}

// 1. With an immutable route, only the MAC of the latest immutable one is in question: it overrides
//    what is not immutable, and an earlier immutable one with another MAC.
// 2. The latest sequence number.
// 3. The latest arrival.
template <class Eligible>
std::optional<RemoteBindings::Binding> RemoteBindings::best(const Entry& entry,
                                                            const Resolve& resolve,
                                                            const Eligible& eligible) {
  const auto usable = [&](net::MacAddress mac, const RemotePath& path) {
    const auto vtep = resolve(path);
    return vtep && eligible(mac, *vtep);
  };
  std::optional<net::MacAddress> immutable;
  uint64_t latest = 0;
  for (const auto& [key, candidate] : entry.candidates) {
    if (!candidate.path.flags.immutable || candidate.arrival < latest) continue;
    if (!usable(key.mac, candidate.path)) continue;
    immutable = key.mac;
    latest = candidate.arrival;
  }
  const Candidate* chosen = nullptr;
  net::MacAddress mac;
  for (const auto& [key, candidate] : entry.candidates) {
    if (!usable(key.mac, candidate.path)) continue;
    if (immutable && (!candidate.path.flags.immutable || key.mac != *immutable)) continue;
    const bool better =
        chosen == nullptr || later(candidate.path.sequence, chosen->path.sequence) ||
        (candidate.path.sequence == chosen->path.sequence && candidate.arrival > chosen->arrival);
    if (!better) continue;
    chosen = &candidate;
    mac = key.mac;
  }
  if (chosen == nullptr) return std::nullopt;
  return Binding{mac, *resolve(chosen->path), chosen->path.flags};
}

bool RemoteBindings::choose(net::IpAddress ip, const Frozen& frozen, const Resolve& resolve,
                            std::optional<Binding>& winner) {
  const auto found = entries_.find(ip);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  winner = best(entry, resolve, [&](net::MacAddress mac, const net::IpAddress& vtep) {
    return !frozen(mac) || (entry.winner && entry.winner->mac == mac && entry.winner->vtep == vtep);
  });
  if (!winner)
    winner = best(entry, resolve, [](net::MacAddress, const net::IpAddress&) { return true; });
  const bool changed = winner != entry.winner;
  entry.winner = winner;
  if (entry.candidates.empty()) entries_.erase(found);
  return changed;
}

}  // namespace evpn
