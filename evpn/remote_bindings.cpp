// SPDX-License-Identifier: GPL-2.0-or-later
// One winner for each IP address over all MACs and PEs: RFC 9047 section 3.2.
#include "evpn/remote_bindings.h"

#include <algorithm>

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
// 2. The anti-spoof MAC.
// 3. The latest sequence number.
// 4. The latest arrival.
template <class Eligible>
std::optional<RemoteBindings::Binding> RemoteBindings::best(const Entry& entry,
                                                            const Resolve& resolve,
                                                            const Eligible& eligible) const {
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
    const bool disputed = anti_spoof_ == key.mac;
    bool better =
        chosen == nullptr || later(candidate.path.sequence, chosen->path.sequence) ||
        (candidate.path.sequence == chosen->path.sequence && candidate.arrival > chosen->arrival);
    if (chosen != nullptr && disputed != (anti_spoof_ == mac)) better = disputed;
    if (!better) continue;
    chosen = &candidate;
    mac = key.mac;
  }
  if (chosen == nullptr) return std::nullopt;
  return Binding{mac, *resolve(chosen->path), chosen->path.flags};
}

std::vector<RemoteBindings::Binding> RemoteBindings::others_of(const Entry& entry,
                                                               const Resolve& resolve,
                                                               const Binding& winner) const {
  std::vector<std::pair<uint64_t, Binding>> by_arrival;
  for (const auto& [key, candidate] : entry.candidates) {
    const auto vtep = resolve(candidate.path);
    const bool twice = key.mac == winner.mac ||
                       std::ranges::any_of(by_arrival, [&, mac = key.mac](const auto& one) {
                         return one.second.mac == mac;
                       });
    if (!twice && vtep)
      by_arrival.emplace_back(candidate.arrival, Binding{key.mac, *vtep, candidate.path.flags});
  }
  std::ranges::sort(by_arrival, {}, &std::pair<uint64_t, Binding>::first);
  std::vector<Binding> others;
  for (const auto& [arrival, one] : by_arrival)
    if (others.size() + 1 < macs_) others.push_back(one);
  return others;
}

bool RemoteBindings::choose(net::IpAddress ip, const Frozen& frozen, const Resolve& resolve,
                            std::optional<Binding>& winner, std::vector<Binding>& others) {
  const auto found = entries_.find(ip);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  winner = best(entry, resolve, [&](net::MacAddress mac, const net::IpAddress& vtep) {
    return !frozen(mac) || (entry.winner && entry.winner->mac == mac && entry.winner->vtep == vtep);
  });
  if (!winner)
    winner = best(entry, resolve, [](net::MacAddress, const net::IpAddress&) { return true; });
  others.clear();
  if (winner && macs_ > 1 && ip.is_v6() && !winner->flags.immutable && winner->mac != anti_spoof_)
    others = others_of(entry, resolve, *winner);
  const bool changed = winner != entry.winner || others != entry.others;
  entry.winner = winner;
  entry.others = others;
  if (entry.candidates.empty()) entries_.erase(found);
  return changed;
}

std::pair<std::optional<RemoteBindings::Binding>, std::vector<RemoteBindings::Binding>>
RemoteBindings::chosen(net::IpAddress ip) const {
  const auto found = entries_.find(ip);
  if (found == entries_.end()) return {};
  return {found->second.winner, found->second.others};
}

void RemoteBindings::for_each_address(
    const std::function<void(const net::IpAddress&)>& visit) const {
  for (const auto& [ip, entry] : entries_) visit(ip);
}

}  // namespace evpn
