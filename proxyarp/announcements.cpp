// SPDX-License-Identifier: GPL-2.0-or-later
#include "proxyarp/announcements.h"

#include "proxyarp/arp.h"
#include "proxyarp/nd.h"

namespace proxyarp {
namespace {

constexpr auto kApart = std::chrono::seconds(1);  // of one address
constexpr std::size_t kMaxSent = 16384;

}  // namespace

Announcements::Announcements(Context& context, Lookup lookup)
    : context_(context),
      lookup_(std::move(lookup)),
      pacer_(Pacer::strict(context.settings.announcements_per_second)),
      sent_(kApart, kMaxSent) {}

void Announcements::reconfigure() {
  const double rate = context_.settings.announcements_per_second;
  pacer_.set(rate * 0.95, rate * 0.05);
}

void Announcements::want(const net::IpAddress& ip, bool changed) {
  if (context_.settings.announcements_per_second == 0) return;
  const auto last = sent_.since(ip, context_.now);
  const Wanted wanted{changed, last ? *last + kApart : context_.now};
  const auto [at, added] = wanted_.try_emplace(ip, wanted);
  if (!added) {
    if (at->second.changed || !changed) return;
    order(false).erase({at->second.from, ip});
    at->second = wanted;
  }
  order(changed).emplace(wanted.from, ip);
}

void Announcements::forget(const net::IpAddress& ip) {
  const auto at = wanted_.find(ip);
  if (at == wanted_.end()) return;
  order(at->second.changed).erase({at->second.from, ip});
  wanted_.erase(at);
}

void Announcements::flush() {
  const net::TimePoint now = context_.now;
  for (Order* queue : {&changes_, &news_})
    while (!queue->empty() && queue->begin()->first <= now) {
      const net::IpAddress ip = queue->begin()->second;
      if (!lookup_(ip)) {
        forget(ip);
        continue;
      }
      if (!pacer_.take(now)) {
        next_slot_ = pacer_.next(now);
        return;
      }
      forget(ip);
      send(ip);
    }
}

void Announcements::send(const net::IpAddress& ip) {
  const auto said = lookup_(ip);
  if (!said) return;
  sent_.renew(ip, context_.now);
  context_.emit(Flood{ip.is_v4() ? encode_arp(arp_announcement(ip, said->mac))
                                 : encode_nd(unsolicited_advertisement(ip, said->mac, said->flags)),
                      said->except, true, false});
}

net::TimePoint Announcements::deadline() const {
  net::TimePoint first = net::kNever;
  for (const Order* queue : {&changes_, &news_})
    if (!queue->empty()) first = std::min(first, queue->begin()->first);
  return first == net::kNever ? first : std::max(first, next_slot_);
}

}  // namespace proxyarp
