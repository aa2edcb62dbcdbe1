// SPDX-License-Identifier: GPL-2.0-or-later
// The binding table, RFC 9161 section 3.2 and RFC 9047 section 3.2. Each change goes the same way:
// a part of a binding or the place of a MAC is set, resolve() says from all parts which MAC is in
// use, and publish() reports the difference to what was reported before.
//
// Which part is in use: provisioned, then an immutable one of EVPN, then learned or of EVPN by the
// order of events as far as their MACs are there.
#include "proxyarp/bindings.h"

#include <algorithm>

#include "proxyarp/arp.h"
#include "proxyarp/nd.h"

namespace proxyarp {
namespace {

constexpr std::size_t kLinkLocalsPerMac = 4;
// Between two claims of provisioned MACs that change which is in use.
constexpr auto kClaimInterval = std::chrono::seconds(1);

bool contains(const std::vector<net::MacAddress>& macs, net::MacAddress mac) {
  return std::ranges::find(macs, mac) != macs.end();
}

bool is_ipv6_link_local(const net::IpAddress& ip) { return ip.is_v6() && ip.is_link_local(); }

void merge(FixedPart& into, const FixedPart& from) {
  for (net::MacAddress mac : from.allowed)
    if (!contains(into.allowed, mac)) into.allowed.push_back(mac);
  if (into.port.empty()) into.port = from.port;
  if (into.member_as == net::AsNumber{}) into.member_as = from.member_as;
  if (into.member_name.empty()) into.member_name = from.member_name;
}

}  // namespace

bool Binding::owned_by(net::MacAddress mac) const {
  if (reserved()) return contains(fixed->allowed, mac);
  if (in_use) return in_use->mac == mac;
  return (learned && learned->mac == mac) || (evpn && evpn->mac == mac);
}

BindingTable::BindingTable(const Settings& settings, uint64_t seed)
    : places_(16, SeededHash{seed}) {
  Actions none;  // no port is up, so that nothing can be in use
  reconfigure(settings, none);
}

// --- events

void BindingTable::port_up(net::IfIndex port, const std::string& name, Actions& out) {
  ports_[port] = name;
  publish_all(out);
}

void BindingTable::port_down(net::IfIndex port, Actions& out) {
  if (ports_.erase(port) != 0) publish_all(out);
}

// The provisioned bindings by address: those of one address that came from several sources as one,
// and in the static profile the link-local addresses that their MACs make.
std::map<net::IpAddress, FixedPart> BindingTable::provisioned() const {
  std::map<net::IpAddress, FixedPart> fixed;
  for (const StaticBinding& binding : settings_.bindings) {
    const FixedPart part{binding.macs, binding.port, false, binding.member_as, binding.member_name};
    const auto [at, added] = fixed.try_emplace(binding.ip, part);
    if (!added) merge(at->second, part);
  }
  if (settings_.profile != Profile::Static) return fixed;
  std::map<net::IpAddress, FixedPart> derived;
  for (const auto& [ip, part] : fixed)
    for (net::MacAddress mac : part.allowed) {
      const net::IpAddress link_local = eui64_link_local(mac);
      if (fixed.contains(link_local)) continue;
      FixedPart one = part;
      one.allowed = {mac};
      one.wait_for_mac = part.allowed.size() > 1;
      const auto [at, added] = derived.try_emplace(link_local, one);
      if (added) continue;
      merge(at->second, one);
      at->second.wait_for_mac = at->second.wait_for_mac || one.wait_for_mac;
    }
  fixed.merge(derived);
  return fixed;
}

void BindingTable::reconfigure(const Settings& settings, Actions& out) {
  settings_ = settings;
  auto fixed = provisioned();
  for (auto& [ip, binding] : bindings_) {
    const auto now = fixed.find(ip);
    if (now == fixed.end() ? !binding.fixed : binding.fixed == now->second) continue;
    const auto before = std::exchange(binding.fixed, std::nullopt);
    if (before)
      for (net::MacAddress mac : before->allowed) unmention(ip, binding, mac);
  }
  for (auto& [ip, part] : fixed) {
    Binding& binding = bindings_[ip];
    if (binding.fixed) continue;
    for (net::MacAddress mac : part.allowed) by_mac_.emplace(mac, ip);
    binding.fixed = std::move(part);
    if (binding.reserved()) forget_learned(ip, binding);
  }
  for (auto& [ip, binding] : bindings_)
    if (binding.learned &&
        (!inside(ip) || refuses(ip, binding.learned->mac, binding.learned->port) ||
         !may_learn(ip, binding.learned->mac, binding.learned->port)))
      forget_learned(ip, binding);
  publish_all(out);
}

void BindingTable::place_mac(net::MacAddress mac, MacWhere where, net::IfIndex port, Actions& out) {
  if (where != MacWhere::LocalPort) port = {};
  const Place before = place(mac);
  if (before.where == where && before.port == port) return;
  if (where == MacWhere::Nowhere)
    places_.erase(mac);
  else
    places_[mac] = {where, port, ++order_};
  for (auto at = by_mac_.lower_bound({mac, net::IpAddress{}});
       at != by_mac_.end() && at->first == mac; ++at)
    publish(at->second, bindings_.at(at->second), out);
}

void BindingTable::set_evpn(const net::IpAddress& ip, std::optional<EvpnPart> part, Actions& out) {
  if (!part && !bindings_.contains(ip)) return;
  Binding& binding = bindings_[ip];
  const auto before = std::exchange(binding.evpn, std::nullopt);
  if (part) {
    // Only a change of the MAC is news of where the address is.
    part->order = before && before->mac == part->mac ? before->order : ++order_;
    by_mac_.emplace(part->mac, ip);
    binding.evpn = part;
  }
  if (before) unmention(ip, binding, before->mac);
  publish(ip, binding, out);
  if (binding.empty()) bindings_.erase(ip);
}

LearnResult BindingTable::learn(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port,
                                NaFlags flags, net::TimePoint now, Actions& out) {
  if (!inside(ip) || !may_learn(ip, mac, port)) return LearnResult::NotAllowed;
  const auto found = bindings_.find(ip);
  const Binding* old = found == bindings_.end() ? nullptr : &found->second;
  if (old && old->reserved()) return LearnResult::NotAllowed;
  if (over_limit(old, ip, mac, port)) return LearnResult::LimitReached;

  Binding& binding = bindings_[ip];
  const auto before = binding.in_use;
  const bool same = binding.learned && binding.learned->mac == mac &&
                    binding.learned->port == port && binding.learned->flags == flags;
  forget_learned(ip, binding);
  binding.learned = LearnedPart{mac, port, flags, now, ++order_};
  by_mac_.emplace(mac, ip);
  by_age_.emplace(now, ip);
  ++learned_at_[port];
  publish(ip, binding, out);
  const bool switched = before && (!binding.in_use || binding.in_use->kind != before->kind);
  return same && !switched ? LearnResult::Refreshed : LearnResult::Changed;
}

bool BindingTable::claim(const net::IpAddress& ip, net::MacAddress mac, net::TimePoint now,
                         Actions& out) {
  const auto found = bindings_.find(ip);
  if (found == bindings_.end()) return false;
  Binding& binding = found->second;
  if (!binding.reserved() || !binding.in_use || binding.in_use->mac == mac) return false;
  if (!contains(binding.fixed->allowed, mac) || place(mac).where == MacWhere::Nowhere) return false;
  if (binding.claim_order != 0 && now - binding.claim_time < kClaimInterval) return false;
  binding.claimed = mac;
  binding.claim_order = ++order_;
  binding.claim_time = now;
  publish(ip, binding, out);
  return binding.in_use && binding.in_use->mac == mac;
}

net::TimePoint BindingTable::deadline() const {
  if (by_age_.empty() || settings_.age_time.count() <= 0) return net::kNever;
  return by_age_.begin()->first + settings_.age_time;
}

void BindingTable::expire(net::TimePoint now, Actions& out) {
  while (deadline() <= now) {
    const net::IpAddress ip = by_age_.begin()->second;
    Binding& binding = bindings_.at(ip);
    forget_learned(ip, binding);
    publish(ip, binding, out);
    if (binding.empty()) bindings_.erase(ip);
  }
}

// --- questions

const Binding* BindingTable::find(const net::IpAddress& ip) const {
  const auto at = bindings_.find(ip);
  return at == bindings_.end() ? nullptr : &at->second;
}

bool BindingTable::inside(const net::IpAddress& ip) const {
  if (is_ipv6_link_local(ip)) return true;
  return std::ranges::any_of(settings_.prefixes, [&](const net::IpPrefix& prefix) {
    return prefix.contains(ip) && !prefix.is_network_or_broadcast(ip);
  });
}

bool BindingTable::refuses(const net::IpAddress& ip, net::MacAddress mac,
                           std::optional<net::IfIndex> port) const {
  const Binding* binding = find(ip);
  if (!binding) return false;
  if (const auto& fixed = binding->fixed) {
    if (!fixed->allowed.empty() && !contains(fixed->allowed, mac)) return true;
    if (!fixed->port.empty() && (!port || !on_named_port(*fixed, *port))) return true;
    if (!fixed->allowed.empty()) return false;
  }
  return binding->evpn && binding->evpn->immutable && binding->evpn->mac != mac;
}

std::pair<MacWhere, net::IfIndex> BindingTable::whereabouts(net::MacAddress mac) const {
  const Place at = place(mac);
  return {at.where, at.port};
}

// A MAC at a port that is down is nowhere.
BindingTable::Place BindingTable::place(net::MacAddress mac) const {
  const auto at = places_.find(mac);
  if (at == places_.end()) return {};
  if (at->second.where == MacWhere::LocalPort && !ports_.contains(at->second.port)) return {};
  return at->second;
}

bool BindingTable::on_named_port(const FixedPart& fixed, net::IfIndex port) const {
  const auto at = ports_.find(port);
  return at != ports_.end() && at->second == fixed.port;
}

// Whether the MAC is provisioned, for this port or for any.
bool BindingTable::allowed_at(net::MacAddress mac, net::IfIndex port) const {
  for (auto at = by_mac_.lower_bound({mac, net::IpAddress{}});
       at != by_mac_.end() && at->first == mac; ++at) {
    const auto& fixed = bindings_.at(at->second).fixed;
    if (fixed && contains(fixed->allowed, mac) &&
        (fixed->port.empty() || on_named_port(*fixed, port)))
      return true;
  }
  return false;
}

bool BindingTable::may_learn(const net::IpAddress& ip, net::MacAddress mac,
                             net::IfIndex port) const {
  if (settings_.profile == Profile::Off) return false;
  if (settings_.learns()) return true;
  if (is_ipv6_link_local(ip)) return allowed_at(mac, port);
  // Provisioned for a port without MACs.
  const Binding* binding = find(ip);
  return binding && binding->fixed && !binding->reserved() && !binding->fixed->port.empty();
}

bool BindingTable::over_limit(const Binding* old, const net::IpAddress& ip, net::MacAddress mac,
                              net::IfIndex port) const {
  const bool here = old && old->learned && old->learned->port == port;
  const bool this_mac = old && old->learned && old->learned->mac == mac;
  if (!old && bindings_.size() >= settings_.max_bindings) return true;
  const auto count = learned_at_.find(port);
  if (!here && (count == learned_at_.end() ? 0 : count->second) >= settings_.max_bindings_per_port)
    return true;
  if (this_mac || !is_ipv6_link_local(ip)) return false;
  std::size_t link_locals = 0;
  for (auto at = by_mac_.lower_bound({mac, net::IpAddress{}});
       at != by_mac_.end() && at->first == mac; ++at) {
    const auto& learned = bindings_.at(at->second).learned;
    if (learned && learned->mac == mac && is_ipv6_link_local(at->second)) ++link_locals;
  }
  return link_locals >= kLinkLocalsPerMac;
}

// --- which part is in use

std::optional<InUse> BindingTable::resolve_fixed(const Binding& binding) const {
  const FixedPart& fixed = *binding.fixed;
  InUse best{.flags = {settings_.default_router, true}, .immutable = true};
  uint64_t best_order = 0;
  for (net::MacAddress mac : fixed.allowed) {
    Place at = place(mac);
    if (at.where == MacWhere::Nowhere && binding.evpn && binding.evpn->mac == mac)
      at = {MacWhere::Remote, {}, binding.evpn->order};
    const bool fits = at.where == MacWhere::LocalPort
                          ? fixed.port.empty() || on_named_port(fixed, at.port)
                          : at.where == MacWhere::Remote && fixed.port.empty();
    if (mac == binding.claimed) at.order = std::max(at.order, binding.claim_order);
    if (!fits || at.order <= best_order) continue;
    best_order = at.order;
    best.mac = mac;
    best.where = at.where;
    best.port = at.port;
    best.answerable = true;
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
      best.answerable = true;
      return best;
    }
  return std::nullopt;
}

std::optional<InUse> BindingTable::resolve(const net::IpAddress& ip, const Binding& binding) const {
  if (settings_.profile == Profile::Off || !inside(ip)) return std::nullopt;
  std::optional<InUse> in_use;
  if (binding.reserved()) {
    in_use = resolve_fixed(binding);
  } else {
    const auto& learned = binding.learned;
    const auto& evpn = binding.evpn;
    const Place learned_at = learned ? place(learned->mac) : Place{};
    const Place evpn_at = evpn ? place(evpn->mac) : Place{};
    const bool here = learned && learned_at.where == MacWhere::LocalPort;
    const bool newer = evpn && learned && learned->order < evpn->order;
    const bool use_evpn =
        evpn && (evpn->immutable || !here || (newer && evpn_at.where == MacWhere::Remote));
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

// --- what others are told

void BindingTable::publish(const net::IpAddress& ip, Binding& binding, Actions& out) {
  binding.in_use = resolve(ip, binding);
  const InUse* now = binding.answerable();

  std::optional<LocalBindingUp> up;
  if (now && now->where == MacWhere::LocalPort && now->kind != BindingKind::Evpn)
    up = LocalBindingUp{ip, now->mac, now->port, now->flags, now->immutable};
  if (binding.up && (!up || up->mac != binding.up->mac))
    out.push_back(LocalBindingDown{ip, binding.up->mac});
  if (up && up != binding.up) out.push_back(*up);
  binding.up = up;

  std::optional<SetFastEntry> fast;
  if (now) fast = SetFastEntry{ip, now->mac, now->port, {now->flags.router, ip.is_v6()}};
  if (fast && fast != binding.fast) out.push_back(*fast);
  if (binding.fast && !fast) out.push_back(ClearFastEntry{ip});
  binding.fast = fast;

  if (!now) return;
  if (binding.members_know && *binding.members_know != now->mac && !settings_.floods_gratuitous())
    announce(ip, *now, out);
  binding.members_know = now->mac;
}

void BindingTable::publish_all(Actions& out) {
  for (auto at = bindings_.begin(); at != bindings_.end();) {
    publish(at->first, at->second, out);
    at = at->second.empty() ? bindings_.erase(at) : std::next(at);
  }
}

// The owner's own gratuitous frame is not flooded, so that members would keep the old MAC.
void BindingTable::announce(const net::IpAddress& ip, const InUse& in_use, Actions& out) const {
  std::optional<net::IfIndex> except;
  if (in_use.where == MacWhere::LocalPort) except = in_use.port;
  const NaFlags flags{in_use.flags.router, true};
  out.push_back(Flood{ip.is_v4() ? encode_arp(arp_announcement(ip, in_use.mac))
                                 : encode_nd(unsolicited_advertisement(ip, in_use.mac, flags)),
                      except, true, false});
}

// --- indexes

void BindingTable::forget_learned(const net::IpAddress& ip, Binding& binding) {
  if (!binding.learned) return;
  const LearnedPart part = *std::exchange(binding.learned, std::nullopt);
  by_age_.erase({part.seen, ip});
  if (--learned_at_[part.port] == 0) learned_at_.erase(part.port);
  unmention(ip, binding, part.mac);
}

bool BindingTable::mentions(const Binding& binding, net::MacAddress mac) {
  return (binding.fixed && contains(binding.fixed->allowed, mac)) ||
         (binding.learned && binding.learned->mac == mac) ||
         (binding.evpn && binding.evpn->mac == mac);
}

void BindingTable::unmention(const net::IpAddress& ip, const Binding& binding,
                             net::MacAddress mac) {
  if (!mentions(binding, mac)) by_mac_.erase({mac, ip});
}

}  // namespace proxyarp
