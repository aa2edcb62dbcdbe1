// SPDX-License-Identifier: GPL-2.0-or-later
// What operators are shown of the table, and why the next question gets what it gets.
#include <algorithm>

#include "proxyarp/impl.h"

namespace proxyarp {
namespace {

std::string macs_text(const std::vector<net::MacAddress>& macs) {
  std::string text;
  for (net::MacAddress mac : macs) text += (text.empty() ? "" : ", ") + net::to_string(mac);
  return text;
}

// `AS64507 Golf Net: 02:00:00:00:00:07 on port m7`
std::string database_text(const FixedPart& fixed) {
  std::string text;
  if (fixed.member_as.value != 0) text = "AS" + std::to_string(fixed.member_as.value);
  if (!fixed.member_name.empty()) text += (text.empty() ? "" : " ") + fixed.member_name;
  if (text.empty()) text = "provisioned";
  text += ": " + (fixed.allowed.empty() ? std::string("any MAC") : macs_text(fixed.allowed));
  if (!fixed.port.empty()) text += " on port " + fixed.port;
  return text;
}

}  // namespace

BindingView Responder::Impl::view(const net::IpAddress& ip, const Binding& binding) const {
  BindingView view;
  view.ip = ip;
  if (const FixedPart* fixed = binding.fixed.get()) {
    view.allowed = fixed->allowed;
    view.member_as = fixed->member_as;
    view.member_name = fixed->member_name;
  }
  if (!binding.learned.empty()) view.age = context.now - binding.learned.front().seen;
  view.kind = binding.fixed              ? BindingKind::Static
              : !binding.learned.empty() ? BindingKind::Learned
                                         : BindingKind::Evpn;
  if (const auto& in_use = binding.in_use) {
    view.mac = in_use->mac;
    view.kind = in_use->kind;
    view.where = in_use->where;
    view.port = in_use->port;
    view.answered = in_use->answerable && binding.doubt == Doubt::None && !is_exempt(ip) &&
                    context.settings.unicast_forward != UnicastForward::Always;
    view.flags = in_use->flags;
    view.immutable = in_use->immutable;
  }
  view.pending = binding.doubt == Doubt::Pending;
  view.duplicate = binding.doubt == Doubt::Frozen || is_disputed(ip);
  view.answers = binding.answers;
  view.last_asker = binding.last_asker;
  return view;
}

Explanation Responder::Impl::explain(const net::IpAddress& ip,
                                     std::optional<net::IfIndex> port) const {
  Explanation said;
  const Binding* binding = table.find(ip);
  if (binding) {
    said.binding = view(ip, *binding);
    if (binding->fixed) said.database = database_text(*binding->fixed);
    for (const LearnedPart& part : binding->learned)
      said.learned += (said.learned.empty() ? "" : ", ") + net::to_string(part.mac) + " on port " +
                      table.port_name(part.port);
    for (const EvpnPart& part : binding->evpn)
      said.evpn += (said.evpn.empty() ? "" : ", ") + net::to_string(part.mac) +
                   (part.immutable ? " (immutable)" : "");
  }
  if (context.settings.profile == Profile::Off) {
    said.verdict = Verdict::Flooded;
    said.rules.emplace_back("the proxy is off: flooded");
    return said;
  }
  Question question;
  question.target = ip;
  question.port = port;
  const Decision decision = decide(question, &said.rules);
  said.verdict = decision.verdict;
  if (decision.act == Decision::Act::Answer) said.answer = decision.whom.front().mac;
  return said;
}

void Responder::for_each_binding_after(const std::optional<net::IpAddress>& after,
                                       const std::function<bool(const BindingView&)>& visit) const {
  const auto& all = impl_->table.all();
  for (auto at = after ? all.upper_bound(*after) : all.begin(); at != all.end(); ++at)
    if (!visit(impl_->view(at->first, at->second))) return;
}

void Responder::for_each_binding(const std::function<void(const BindingView&)>& visit) const {
  for (const auto& [ip, binding] : impl_->table.all()) visit(impl_->view(ip, binding));
}
void Responder::for_each_duplicate(const std::function<void(const DuplicateView&)>& visit) const {
  impl_->duplicates.for_each(visit);
}
void Responder::for_each_sponged(const std::function<void(const SpongeView&)>& visit) const {
  impl_->sponge.for_each(visit);
}
void Responder::for_each_offender(const std::function<void(const OffenderView&)>& visit) const {
  impl_->offenders.for_each(visit);
}

Explanation Responder::explain(const net::IpAddress& ip, std::optional<net::IfIndex> port,
                               net::TimePoint now) const {
  impl_->context.now = now;
  return impl_->explain(ip, port);
}

std::vector<SetFastEntry> Responder::fast_entries() const {
  std::vector<SetFastEntry> entries;
  for (const auto& [ip, binding] : impl_->table.all())
    if (const auto& fast = binding.fast)
      entries.push_back(SetFastEntry{ip, fast->mac, fast->port, fast->flags});
  return entries;
}

bool Responder::has_fast_entry(const net::IpAddress& ip) const {
  const Binding* binding = std::as_const(impl_->table).find(ip);
  return binding != nullptr && binding->fast.has_value();
}

}  // namespace proxyarp
