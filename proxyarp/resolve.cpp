// SPDX-License-Identifier: GPL-2.0-or-later
// Which part of a binding is in use, and what data path, EVPN and members are told of it.
//
// Provisioned before an immutable one of EVPN (RFC 9047 section 3.2), before what is learned or of
// EVPN, by the order of events as far as their MACs are there.
#include <algorithm>

#include "proxyarp/bindings.h"

namespace proxyarp {

bool BindingTable::fits(const FixedPart& fixed, const Place& at) const {
  return at.where == MacWhere::LocalPort ? fixed.port.empty() || on_named_port(fixed, at.port)
                                         : at.where == MacWhere::Remote && fixed.port.empty();
}

// Of several that are there: the one that claimed the address last, else the one that had it, else
// the one that came last.
std::optional<InUse> BindingTable::resolve_fixed(const Binding& binding) const {
  const FixedPart& fixed = *binding.fixed;
  InUse best{};
  best.flags = {context_.settings.default_router, true};
  best.immutable = best.answerable = true;
  uint64_t best_order = 0;
  for (net::MacAddress mac : fixed.allowed) {
    Place at = place(mac);
    const auto told = std::ranges::find(binding.evpn, mac, &EvpnPart::mac);
    if (at.where == MacWhere::Nowhere && told != binding.evpn.end())
      at = {MacWhere::Remote, {}, told->order};
    if (!fits(fixed, at)) continue;
    if (mac == binding.chosen)
      at.order = UINT64_MAX;
    else if (binding.in_use && mac == binding.in_use->mac)
      at.order = UINT64_MAX - 1;
    if (at.order <= best_order) continue;
    best_order = at.order;
    best.mac = mac;
    best.where = at.where;
    best.port = at.port;
  }
  if (best_order != 0) return best;
  if (fixed.allowed.size() != 1 || fixed.wait_for_mac || fixed.port.empty() ||
      place(fixed.allowed[0]).where != MacWhere::Nowhere)
    return std::nullopt;
  // The only MAC of a port here: no need to wait until it is heard.
  for (const auto& [port, name] : ports_)
    if (name == fixed.port) {
      best.mac = fixed.allowed[0];
      best.where = MacWhere::LocalPort;
      best.port = port;
      return best;
    }
  return std::nullopt;
}

std::optional<InUse> BindingTable::resolve(const net::IpAddress& ip, const Binding& binding) const {
  std::optional<InUse> in_use;
  if (binding.reserved()) {
    in_use = resolve_fixed(binding);
  } else {
    const LearnedPart* learned = binding.learned.empty() ? nullptr : &binding.learned.front();
    const EvpnPart* evpn = binding.evpn.empty() ? nullptr : &binding.evpn.front();
    const Place learned_at = learned ? place(learned->mac) : Place{};
    const Place evpn_at = evpn ? place(evpn->mac) : Place{};
    const bool here = learned && learned_at.where == MacWhere::LocalPort;
    const bool newer = evpn && learned && learned->order < evpn->order;
    // Elsewhere the address is in dispute (RFC 9161 section 3.7): no claim here changes that.
    const bool disputed = evpn && evpn->mac == context_.settings.duplicates.anti_spoof_mac;
    const bool use_evpn = evpn && (evpn->immutable || disputed || !here ||
                                   (newer && evpn_at.where == MacWhere::Remote));
    if (use_evpn)
      in_use = InUse{evpn->mac,   BindingKind::Evpn, evpn_at.where, evpn_at.port,
                     evpn->flags, evpn->immutable,   true};
    else if (learned)
      in_use = InUse{learned->mac,
                     BindingKind::Learned,
                     learned_at.where,
                     learned_at.port,
                     learned->flags,
                     false,
                     learned_at.where != MacWhere::Nowhere};
  }
  if (in_use && ip.is_v4()) in_use->flags = {false, false};  // RFC 9047 section 3: IPv6 only
  return in_use;
}

std::vector<InUse> BindingTable::owners(const net::IpAddress& ip, const Binding& binding) const {
  if (context_.settings.profile == Profile::Off || !inside(ip)) return {};
  std::vector<InUse> all;
  if (!anycast(ip) || binding.reserved() || binding.immutable_elsewhere()) {
    if (auto one = resolve(ip, binding)) all.push_back(*one);
    return all;
  }
  for (const LearnedPart& part : binding.learned) {
    const Place at = place(part.mac);
    if (at.where == MacWhere::LocalPort)
      all.push_back({part.mac, BindingKind::Learned, at.where, at.port, part.flags, false, true});
  }
  for (const EvpnPart& part : binding.evpn) {
    const Place at = place(part.mac);
    if (std::ranges::find(all, part.mac, &InUse::mac) == all.end())
      all.push_back({part.mac, BindingKind::Evpn, at.where, at.port, part.flags, false, true});
  }
  return all;
}

// --- what others are told

void BindingTable::publish(const net::IpAddress& ip, Binding& binding) {
  const std::vector<InUse> all = owners(ip, binding);
  const bool had_owner = binding.answerable() != nullptr;
  binding.in_use = all.empty() ? std::nullopt : std::optional(all.front());
  binding.several = all.size() > 1 || (all.size() == 1 && anycast(ip) && !binding.reserved() &&
                                       !all.front().flags.override_flag);
  publish_up(ip, binding, all);
  publish_fast(ip, binding);
  const InUse* now = binding.answerable();
  if (binding.doubt == Doubt::Pending && !now) deserted_.push_back(ip);
  if (now && !had_owner) arrived_.push_back(ip);
  if (!now || binding.doubt != Doubt::None) return;
  if (binding.members_know != now->mac) announcements_.want(ip, binding.members_know.has_value());
  binding.members_know = now->mac;
}

bool BindingTable::advertised(const net::IpAddress& ip, NaFlags flags) const {
  if (ip.is_v4()) return true;
  switch (context_.settings.advertise) {
    case AdvertiseNeighbors::Router: return flags.router;
    case AdvertiseNeighbors::Host: return !flags.router;
    case AdvertiseNeighbors::All: break;
  }
  return true;
}

// RFC 9047: the old MAC is withdrawn before the new one goes out.
void BindingTable::publish_up(const net::IpAddress& ip, Binding& binding,
                              const std::vector<InUse>& owners) {
  std::vector<Binding::Told> up;
  if (binding.doubt != Doubt::Frozen)
    for (const InUse& one : owners)
      if (one.answerable && one.where == MacWhere::LocalPort && one.kind != BindingKind::Evpn &&
          advertised(ip, one.flags))
        up.push_back({one.mac, one.port, one.flags, one.immutable});
  for (const Binding::Told& told : binding.up)
    if (std::ranges::find(up, told.mac, &Binding::Told::mac) == up.end())
      context_.emit(LocalBindingDown{ip, told.mac});
  for (const Binding::Told& told : up)
    if (std::ranges::find(binding.up, told) == binding.up.end())
      context_.emit(LocalBindingUp{ip, told.mac, told.port, told.flags, told.immutable});
  binding.up = std::move(up);
}

// The kernel answers the plain case only; all else is for the responder.
bool BindingTable::answered_in_kernel(const net::IpAddress& ip, const Binding& binding) const {
  const Settings& settings = context_.settings;
  return binding.answerable() && binding.doubt == Doubt::None && !binding.several &&
         settings.unicast_forward != UnicastForward::Always && ip != context_.identity.ipv4 &&
         ip != context_.identity.ipv6 &&
         std::ranges::none_of(settings.exempt, [&](const auto& p) { return p.contains(ip); });
}

void BindingTable::publish_fast(const net::IpAddress& ip, Binding& binding) {
  std::optional<Binding::Told> fast;
  if (answered_in_kernel(ip, binding))
    fast = Binding::Told{binding.in_use->mac,
                         binding.in_use->port,
                         {binding.in_use->flags.router, ip.is_v6()},
                         false};
  if (fast && fast != binding.fast)
    context_.emit(SetFastEntry{ip, fast->mac, fast->port, fast->flags});
  if (binding.fast && !fast) context_.emit(ClearFastEntry{ip});
  binding.fast = fast;
}

void BindingTable::publish_all() {
  for (auto at = bindings_.begin(); at != bindings_.end();) {
    publish(at->first, at->second);
    at = at->second.empty() ? erase(at) : std::next(at);
  }
}

}  // namespace proxyarp
