// SPDX-License-Identifier: GPL-2.0-or-later
// The binding table, RFC 9161 section 3.2 and RFC 9047 section 3.2: events, limits and indexes.
// Each change goes the same way: a part of a binding or the place of a MAC is set, and publish() of
// resolve.cpp says which MAC is in use and reports the difference to what was reported before.
#include "proxyarp/bindings.h"

#include <algorithm>

namespace proxyarp {
namespace {

bool contains(const std::vector<net::MacAddress>& macs, net::MacAddress mac) {
  return std::ranges::find(macs, mac) != macs.end();
}

bool is_ipv6_link_local(const net::IpAddress& ip) { return ip.is_v6() && ip.is_link_local(); }

constexpr std::array<uint32_t, 3> kFillMarks{80, 90, 100};  // percent
constexpr uint32_t kFillBack = 5;                           // so far below a mark it is forgotten

}  // namespace

bool Binding::owned_by(net::MacAddress mac) const {
  if (reserved()) return contains(fixed->allowed, mac);
  const auto is = [&](const auto& part) { return part.mac == mac; };
  if (several) return std::ranges::any_of(learned, is) || std::ranges::any_of(evpn, is);
  if (in_use) return in_use->mac == mac;
  return std::ranges::any_of(learned, is) || std::ranges::any_of(evpn, is);
}

BindingTable::BindingTable(Context& context, Announcements& announcements)
    : context_(context), announcements_(announcements), places_(16, SeededHash{context.seed}) {
  Actions none;  // no port is up, so that nothing can be in use
  context_.out = &none;
  reconfigure();
  context_.out = nullptr;
}

// --- events

void BindingTable::port_up(net::IfIndex port, const std::string& name) {
  ports_[port] = name;
  publish_all();
}

void BindingTable::port_down(net::IfIndex port) {
  if (ports_.erase(port) != 0) publish_all();
}

void BindingTable::reconfigure() {
  auto fixed = provisioned_parts(context_.settings);
  given_ = fixed.size();
  by_member_.clear();
  for (const auto& [ip, part] : fixed)
    for (net::MacAddress mac : part.allowed) by_member_.emplace(mac, part.port);
  for (auto& [ip, binding] : bindings_) {
    const auto now = fixed.find(ip);
    if (!binding.fixed || (now != fixed.end() && *binding.fixed == now->second)) continue;
    const auto before = std::move(binding.fixed);
    for (net::MacAddress mac : before->allowed) unmention(ip, binding, mac);
  }
  for (auto& [ip, part] : fixed) {
    Binding& binding = bindings_[ip];
    if (binding.fixed) continue;
    for (net::MacAddress mac : part.allowed) mention(ip, mac);
    binding.fixed = std::make_unique<const FixedPart>(std::move(part));
    if (!binding.reserved()) continue;
    while (!binding.learned.empty()) drop_learned(ip, binding, 0);
  }
  for (auto& [ip, binding] : bindings_)
    for (std::size_t i = binding.learned.size(); i-- > 0;) {
      const LearnedPart& part = binding.learned[i];
      if (!inside(ip) || refuses(ip, part.mac, part.port) || !may_learn(ip, part.mac, part.port) ||
          (i > 0 && !anycast(ip)))
        drop_learned(ip, binding, i);
    }
  const double rate = context_.settings.new_bindings_per_second;
  for (auto& [port, pacer] : new_at_) pacer.set(rate, rate);
  publish_all();
  watch_fill();
}

void BindingTable::place_mac(net::MacAddress mac, MacWhere where, net::IfIndex port) {
  if (where != MacWhere::LocalPort) port = {};
  const auto known = places_.find(mac);
  const Place before = known == places_.end() ? Place{} : known->second;
  if (before.where == where && before.port == port) return;
  if (where == MacWhere::Nowhere)
    places_.erase(known);
  else
    places_[mac] = {where, port, ++order_};
  for (auto at = by_mac_.lower_bound({mac, net::IpAddress{}});
       at != by_mac_.end() && at->first == mac; ++at)
    publish(at->second, bindings_.at(at->second));
}

void BindingTable::set_evpn(const net::IpAddress& ip, std::vector<EvpnPart> parts) {
  if (parts.empty() && !bindings_.contains(ip)) return;
  Binding& binding = bindings_[ip];
  const auto before = std::exchange(binding.evpn, {});
  const std::size_t limit = anycast(ip) ? context_.settings.anycast_macs : 1;
  if (parts.size() > limit) parts.resize(limit);
  for (EvpnPart& part : parts) {
    // Only a change of the MAC is news of where the address is.
    const auto same = std::ranges::find(before, part.mac, &EvpnPart::mac);
    part.order = same != before.end() ? same->order : ++order_;
    mention(ip, part.mac);
    if (same == before.end() && binding.reserved() && contains(binding.fixed->allowed, part.mac))
      binding.chosen = part.mac;  // another PE has seen it claim the address
  }
  binding.evpn = std::move(parts);
  for (const EvpnPart& part : before) unmention(ip, binding, part.mac);
  publish(ip, binding);
  erase_if_empty(ip);
  watch_fill();
}

BindingTable::LearnResult BindingTable::may_bind(const net::IpAddress& ip, net::MacAddress mac,
                                                 net::IfIndex port) {
  if (!inside(ip) || !may_learn(ip, mac, port)) return LearnResult::NotAllowed;
  const Binding* old = find(ip);
  if (old && old->reserved()) return LearnResult::NotAllowed;
  if (over_limit(old, ip, mac, port)) return LearnResult::LimitReached;
  const bool known =
      old && std::ranges::find(old->learned, mac, &LearnedPart::mac) != old->learned.end();
  if (known) return LearnResult::Refreshed;
  const double rate = context_.settings.new_bindings_per_second;
  const auto pacer = new_at_.try_emplace(port, rate, rate).first;
  return rate <= 0 || pacer->second.take(context_.now) ? LearnResult::Changed
                                                       : LearnResult::TooFast;
}

BindingTable::LearnResult BindingTable::learn(const net::IpAddress& ip, net::MacAddress mac,
                                              net::IfIndex port, NaFlags flags) {
  Binding& binding = bindings_[ip];
  const auto before = binding.in_use;
  auto same = std::ranges::find(binding.learned, mac, &LearnedPart::mac);
  if (same != binding.learned.end() && same->port == port && same->flags == flags) {
    same->seen = context_.now;
    same->asked = 0;
    if (before && before->mac == mac && before->kind == BindingKind::Learned)
      return LearnResult::Refreshed;
    same->order = ++order_;
    publish(ip, binding);
    const bool switched = before && (!binding.in_use || binding.in_use->kind != before->kind);
    return switched ? LearnResult::Changed : LearnResult::Refreshed;
  }
  if (same != binding.learned.end())
    drop_learned(ip, binding, static_cast<std::size_t>(same - binding.learned.begin()));
  else if (!anycast(ip))
    while (!binding.learned.empty()) drop_learned(ip, binding, 0);
  const net::TimePoint now = context_.now;
  binding.learned.push_back({mac, port, flags, 0, now, net::kNever, ++order_});
  mention(ip, mac);
  ++learned_at_[port];
  if (is_ipv6_link_local(ip)) ++link_locals_[mac];
  set_timer(ip, binding.learned.back(), now);  // maintenance says when
  publish(ip, binding);
  watch_fill();
  return LearnResult::Changed;
}

bool BindingTable::refresh(const net::IpAddress& ip, net::MacAddress mac, net::IfIndex port) {
  Binding* binding = find(ip);
  if (!binding) return false;
  const auto part = std::ranges::find(binding->learned, mac, &LearnedPart::mac);
  if (part == binding->learned.end() || part->port != port) return false;
  part->seen = context_.now;
  part->asked = 0;
  return true;
}

bool BindingTable::choose(const net::IpAddress& ip, net::MacAddress mac) {
  Binding* binding = find(ip);
  if (!binding || !binding->reserved() || !binding->in_use || binding->in_use->mac == mac)
    return false;
  if (!contains(binding->fixed->allowed, mac)) return false;
  binding->chosen = mac;  // in use once the bridge has it, which may be after its first frame
  publish(ip, *binding);
  return binding->in_use && binding->in_use->mac == mac;
}

bool BindingTable::forget(const net::IpAddress& ip, std::optional<net::MacAddress> mac) {
  Binding* binding = find(ip);
  if (!binding) return false;
  bool any = false;
  for (std::size_t i = binding->learned.size(); i-- > 0;)
    if (!mac || binding->learned[i].mac == *mac) {
      drop_learned(ip, *binding, i);
      any = true;
    }
  if (any) publish(ip, *binding);
  erase_if_empty(ip);
  watch_fill();
  return any;
}

void BindingTable::set_doubt(const net::IpAddress& ip, Doubt doubt) {
  Binding* binding = doubt == Doubt::Frozen ? &bindings_[ip] : find(ip);
  if (!binding || binding->doubt == doubt) return;
  binding->doubt = doubt;
  publish(ip, *binding);
  erase_if_empty(ip);
}

void BindingTable::members_saw(const net::IpAddress& ip, net::MacAddress mac) {
  if (Binding* binding = find(ip)) binding->members_know = mac;
  announcements_.forget(ip);
}

// --- questions

const Binding* BindingTable::find(const net::IpAddress& ip) const {
  const auto at = bindings_.find(ip);
  return at == bindings_.end() ? nullptr : &at->second;
}
Binding* BindingTable::find(const net::IpAddress& ip) {
  const auto at = bindings_.find(ip);
  return at == bindings_.end() ? nullptr : &at->second;
}

bool BindingTable::inside(const net::IpAddress& ip) const {
  if (is_ipv6_link_local(ip)) return true;
  return std::ranges::any_of(context_.settings.prefixes, [&](const net::IpPrefix& prefix) {
    return prefix.contains(ip) && !prefix.is_network_or_broadcast(ip);
  });
}

bool BindingTable::refuses(const net::IpAddress& ip, net::MacAddress mac,
                           std::optional<net::IfIndex> port) const {
  const Responder::Identity& own = context_.identity;
  if ((ip == own.ipv4 || ip == own.ipv6) && mac != own.mac) return true;
  const Binding* binding = find(ip);
  if (!binding) return false;
  if (const FixedPart* fixed = binding->fixed.get()) {
    if (!fixed->allowed.empty() && !contains(fixed->allowed, mac)) return true;
    if (!fixed->port.empty() && (!port || !on_named_port(*fixed, *port))) return true;
    if (!fixed->allowed.empty()) return false;
  }
  return binding->immutable_elsewhere() &&
         std::ranges::find(binding->evpn, mac, &EvpnPart::mac) == binding->evpn.end();
}

std::pair<MacWhere, net::IfIndex> BindingTable::whereabouts(net::MacAddress mac) const {
  const Place at = place(mac);
  return {at.where, at.port};
}

bool BindingTable::provisioned_at(net::MacAddress mac, net::IfIndex port) const {
  return by_member_.contains({mac, ""}) || by_member_.contains({mac, port_name(port)});
}

bool BindingTable::provisioned(net::MacAddress mac) const {
  const auto at = by_member_.lower_bound({mac, ""});
  return at != by_member_.end() && at->first == mac;
}

std::string BindingTable::port_name(net::IfIndex port) const {
  const auto at = ports_.find(port);
  return at == ports_.end() ? "#" + std::to_string(port.value) : at->second;
}

std::vector<net::IfIndex> BindingTable::ports() const {
  std::vector<net::IfIndex> all;
  for (const auto& [port, name] : ports_) all.push_back(port);
  return all;
}

bool BindingTable::has_learned(net::MacAddress mac) const {
  for (auto at = by_mac_.lower_bound({mac, net::IpAddress{}});
       at != by_mac_.end() && at->first == mac; ++at) {
    const auto& learned = bindings_.at(at->second).learned;
    if (std::ranges::find(learned, mac, &LearnedPart::mac) != learned.end()) return true;
  }
  return false;
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

bool BindingTable::may_learn(const net::IpAddress& ip, net::MacAddress mac,
                             net::IfIndex port) const {
  const Settings& settings = context_.settings;
  if (settings.profile == Profile::Off) return false;
  if (is_ipv6_link_local(ip)) {
    if (settings.link_local == LinkLocal::Eui64 || settings.link_local == LinkLocal::None)
      return false;
    return settings.learns() || provisioned_at(mac, port);
  }
  if (settings.learns()) return true;
  // Provisioned for a port without MACs.
  const Binding* binding = find(ip);
  return binding && binding->fixed && !binding->reserved() && !binding->fixed->port.empty();
}

bool BindingTable::over_limit(const Binding* old, const net::IpAddress& ip, net::MacAddress mac,
                              net::IfIndex port) const {
  const Settings& settings = context_.settings;
  const bool counted = old && (old->fixed || !old->learned.empty());
  if (!counted && given_and_learned() >= settings.max_bindings) return true;
  const LearnedPart* same = nullptr;
  bool here = false;
  if (old)
    for (const LearnedPart& part : old->learned) {
      if (part.mac == mac) same = &part;
      // One that is replaced makes room.
      if (part.port == port && (part.mac == mac || !anycast(ip))) here = true;
    }
  const auto count = learned_at_.find(port);
  if (!here && (count == learned_at_.end() ? 0 : count->second) >= settings.max_bindings_per_port)
    return true;
  if (same) return false;
  if (anycast(ip) && old && old->learned.size() + old->evpn.size() >= settings.anycast_macs)
    return true;
  if (!is_ipv6_link_local(ip)) return false;
  const auto link_locals = link_locals_.find(mac);
  return link_locals != link_locals_.end() && link_locals->second >= settings.link_locals_per_mac;
}

// --- indexes

void BindingTable::set_timer(const net::IpAddress& ip, LearnedPart& part, net::TimePoint due) {
  if (part.due != net::kNever) timers_.erase({part.due, ip, part.mac});
  part.due = due;
  if (due != net::kNever) timers_.emplace(due, ip, part.mac);
}

void BindingTable::drop_learned(const net::IpAddress& ip, Binding& binding, std::size_t index) {
  set_timer(ip, binding.learned[index], net::kNever);
  const LearnedPart part = binding.learned[index];
  binding.learned.erase(binding.learned.begin() + static_cast<std::ptrdiff_t>(index));
  if (--learned_at_[part.port] == 0) learned_at_.erase(part.port);
  if (is_ipv6_link_local(ip) && --link_locals_[part.mac] == 0) link_locals_.erase(part.mac);
  unmention(ip, binding, part.mac);
}

bool BindingTable::mentions(const Binding& binding, net::MacAddress mac) {
  const auto is = [&](const auto& part) { return part.mac == mac; };
  return (binding.fixed && contains(binding.fixed->allowed, mac)) ||
         std::ranges::any_of(binding.learned, is) || std::ranges::any_of(binding.evpn, is);
}

void BindingTable::unmention(const net::IpAddress& ip, const Binding& binding,
                             net::MacAddress mac) {
  if (!mentions(binding, mac)) by_mac_.erase({mac, ip});
}

void BindingTable::erase_if_empty(const net::IpAddress& ip) {
  const auto at = bindings_.find(ip);
  if (at != bindings_.end() && at->second.empty()) bindings_.erase(at);
}

// One alarm for each mark that is passed.
// What other PEs tell is theirs to limit, and must not keep members here from being learned.
uint64_t BindingTable::given_and_learned() const {
  uint64_t count = given_;
  for (const auto& [port, learned] : learned_at_) count += learned;
  return count;
}

void BindingTable::watch_fill() {
  const uint64_t limit = std::max<uint64_t>(1, context_.settings.max_bindings);
  const auto percent =
      static_cast<uint32_t>(std::min<uint64_t>(100, given_and_learned() * 100 / limit));
  uint32_t passed = 0;
  for (uint32_t mark : kFillMarks)
    if (percent >= mark || (fill_told_ >= mark && percent + kFillBack >= mark)) passed = mark;
  if (passed > fill_told_) {
    Alarm alarm{};
    alarm.kind = AlarmKind::TableFilling;
    alarm.number = passed;
    context_.emit(alarm);
  }
  fill_told_ = passed;
}

}  // namespace proxyarp
