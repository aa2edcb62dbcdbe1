// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of a question (RFC 9161 sections 3.3, 3.4 and 3.6): a list of rules, of which the
// first that fits decides. Nothing is changed here; rules.cpp carries the decision out, and
// `explain` shows it.
#include <algorithm>

#include "proxyarp/impl.h"

namespace proxyarp {
namespace {

void note(std::vector<std::string>* rules, const char* text) {
  if (rules) rules->emplace_back(text);
}

Decision drop(Verdict verdict) {
  Decision decision;
  decision.verdict = verdict;
  return decision;
}

Decision answer(Verdict verdict, std::vector<InUse> whom) {
  Decision decision;
  decision.verdict = verdict;
  decision.act = Decision::Act::Answer;
  decision.whom = std::move(whom);
  return decision;
}

InUse ours(net::MacAddress mac, NaFlags flags) {
  return {mac, BindingKind::Static, MacWhere::Nowhere, {}, flags, false, true};
}

}  // namespace

bool Responder::Impl::is_own(const net::IpAddress& ip) const {
  return ip == context.identity.ipv4 || ip == context.identity.ipv6;
}

bool Responder::Impl::is_exempt(const net::IpAddress& ip) const {
  return std::ranges::any_of(context.settings.exempt,
                             [&](const net::IpPrefix& prefix) { return prefix.contains(ip); });
}

bool Responder::Impl::is_disputed(const net::IpAddress& ip) const {
  const auto& anti_spoof = context.settings.duplicates.anti_spoof_mac;
  const Binding* binding = table.find(ip);
  return anti_spoof && binding && !binding->reserved() && binding->in_use &&
         binding->in_use->mac == *anti_spoof;
}

Unassigned Responder::Impl::policy_for(const net::IpAddress& ip) const {
  const UnassignedPrefix* longest = nullptr;
  for (const UnassignedPrefix& one : context.settings.unassigned)
    if (one.prefix.contains(ip) && (!longest || one.prefix.length > longest->prefix.length))
      longest = &one;
  return longest ? longest->policy : Unassigned::ByProfile;
}

Decision Responder::Impl::decide(const Question& question, Rules rules) const {
  const net::IpAddress& target = question.target;
  const Binding* binding = table.find(target);
  // 1. The target is an address of the LAN.
  if (!table.inside(target)) {
    note(rules, "not an address of the LAN: dropped");
    return drop(Verdict::OutsidePrefix);
  }
  note(rules, "an address of the LAN");
  // 2. Our own: one answer in all.
  if (is_own(target)) {
    note(rules, "the PE's own address");
    if (!question.port || context.identity.stack_answers) return drop(Verdict::Forwarded);
    return answer(Verdict::Answered, {ours(context.identity.mac, {false, true})});
  }
  // 3. Nobody answers for it.
  if (is_exempt(target)) {
    note(rules, "in an exempt prefix: handed on, never answered");
    const bool bound = binding && binding->answerable();
    if (bound) return hand(question, table.owners(target, *binding), Verdict::Exempt);
    return flooded(question, {true, true}, Verdict::Exempt, Verdict::Exempt);
  }
  // 4. Options.
  if (question.options != Question::Options::Known) return decide_options(question, binding, rules);
  // 5. A duplicate.
  if (duplicates.is_frozen(target)) return decide_frozen(question, rules);
  // 6. The owner is never told that his address is taken.
  if (binding && binding->owned_by(question.asker)) {
    note(rules, "the owner asks, or one who may become it: not answered");
    return drop(Verdict::OwnerAsked);
  }
  // 7. It can't be said who has it.
  if (binding && binding->doubt == Doubt::Pending) {
    note(rules, "the owner is being confirmed: handed to those who may be it");
    std::vector<InUse> whom;
    for (const Claimant& one : duplicates.claimants(target))
      if (one.mac != question.asker)
        whom.push_back({one.mac, BindingKind::Learned, one.place.where, one.place.port, one.flags,
                        false, true});
    return hand(question, std::move(whom), Verdict::Pending);
  }
  // 8. Somebody has it.
  if (binding && binding->answerable()) return decide_bound(question, *binding, rules);
  return decide_missed(question, binding, rules);
}

// RFC 9161 sections 3.3 f, 5.5 and 6.
Decision Responder::Impl::decide_options(const Question& question, const Binding* binding,
                                         Rules rules) const {
  const Settings& settings = context.settings;
  const bool bound = binding && binding->answerable();
  const auto to_owner = [&] {
    if (!bound) return decide_missed(question, binding, rules);
    note(rules, "handed to the owner");
    return hand(question, table.owners(question.target, *binding), Verdict::Forwarded);
  };
  if (question.options == Question::Options::Secured) {
    note(rules, "signed (SEND): can't be answered for somebody else");
    return to_owner();
  }
  UnknownOptions policy = settings.options_policy();
  if (settings.unicast_forward != UnicastForward::Never && policy != UnknownOptions::Discard)
    policy = UnknownOptions::UnicastForward;
  note(rules, "has an option that is not known");
  switch (policy) {
    case UnknownOptions::Discard: return drop(Verdict::UnknownOption);
    case UnknownOptions::UnicastForward: return to_owner();
    case UnknownOptions::Forward: {
      const Decision wide =
          flooded(question, unknown(question.target), Verdict::Flooded, Verdict::UnknownOption);
      // No way around the flood settings: then to the owner only.
      return wide.act == Decision::Act::Drop && bound ? to_owner() : wide;
    }
    case UnknownOptions::Reply: break;
  }
  Question plain = question;
  plain.options = Question::Options::Known;
  return decide(plain, rules);
}

// RFC 9161 section 3.7 c.
Decision Responder::Impl::decide_frozen(const Question& question, Rules rules) const {
  const auto& anti_spoof = context.settings.duplicates.anti_spoof_mac;
  if (!anti_spoof || !question.port) {
    note(rules, "a duplicate: not answered");
    return drop(Verdict::Duplicate);
  }
  if (duplicates.is_claimant(question.target, question.asker)) {
    note(rules, "a duplicate, asked for by one of the claimants: not answered");
    return drop(Verdict::OwnerAsked);
  }
  note(rules, "a duplicate: answered with the anti-spoof MAC");
  return answer(Verdict::Answered, {ours(*anti_spoof, {context.settings.default_router, true})});
}

Decision Responder::Impl::decide_bound(const Question& question, const Binding& binding,
                                       Rules rules) const {
  const Settings& settings = context.settings;
  std::vector<InUse> owners;
  if (binding.several)
    owners = table.owners(question.target, binding);
  else
    owners.push_back(*binding.in_use);
  note(rules, "bound");
  // 1. Out of the fabric: another PE did not know; the owner answers.
  if (!question.port) {
    const Decision handed = hand(question, std::move(owners), Verdict::Forwarded);
    if (handed.act == Decision::Act::Hand) return handed;
    note(rules, "the owner is behind the core too");
    return flooded(question, unknown(question.target), Verdict::Flooded, Verdict::SamePort);
  }
  // 2. Probes as the settings say.
  if (question.kind != Question::Kind::Plain && settings.probes == Probes::Ignore) {
    note(rules, "a probe: ignored by the settings");
    return drop(Verdict::ProbeIgnored);
  }
  // 3. The owner hears it itself (RFC 9161 section 3.3 b).
  std::erase_if(owners, [&](const InUse& one) {
    return one.where == MacWhere::LocalPort && one.port == *question.port;
  });
  if (owners.empty()) {
    note(rules, "the owner is behind the asking port: not answered");
    return drop(Verdict::SamePort);
  }
  // 4. Handed to the owner instead of an answer (section 3.4).
  const bool passes = question.kind != Question::Kind::Plain && settings.probes == Probes::Pass;
  if (passes || settings.unicast_forward == UnicastForward::Always) {
    note(rules, "handed to the owner by the settings");
    return hand(question, std::move(owners), Verdict::Forwarded);
  }
  // 5. Answered; anycast once for each MAC, and with the override flag as it was told (3.3 d).
  for (InUse& one : owners)
    if (!binding.several) one.flags.override_flag = true;
  note(rules, "answered in the owner's name");
  return answer(Verdict::Answered, std::move(owners));
}

Decision Responder::Impl::decide_missed(const Question& question, const Binding* binding,
                                        Rules rules) const {
  const net::IpAddress& target = question.target;
  note(rules,
       binding && binding->reserved() ? "provisioned, its owner is not there" : "nobody has it");
  FloodTo to = unknown(target);
  Decision decision;
  switch (policy_for(target)) {
    case Unassigned::Drop:
      note(rules, "its prefix says drop");
      decision = drop(Verdict::Unassigned);
      decision.missed = true;
      return decision;
    case Unassigned::Flood:
      note(rules, "its prefix says flood");
      to = {true, true};
      break;
    case Unassigned::Sponge:
      if (!sponge.answers_for(target) || context.settings.sponge.observe) break;
      if (!question.port) {
        note(rules, "dead: not passed on");
        decision = drop(Verdict::Unassigned);
        decision.missed = true;
        return decision;
      }
      if (const auto mac = sponge.mac(); mac && question.kind == Question::Kind::Plain) {
        note(rules, "dead: answered by the sponge");
        decision = answer(Verdict::Sponged, {ours(*mac, {false, false})});
        decision.missed = true;
        return decision;
      }
      break;
    case Unassigned::ByProfile: break;
  }
  // Two who probe for the same free address must see each other (RFC 4862 section 5.4.3).
  if (question.kind == Question::Kind::Dad && !(binding && binding->reserved())) {
    note(rules, "duplicate address detection for a free address");
    to = {true, true};
  }
  decision = flooded(question, to, Verdict::Flooded, Verdict::UnknownTarget);
  note(rules, decision.act == Decision::Act::Flood ? "flooded" : "flooding is off: dropped");
  decision.missed = true;
  return decision;
}

// The frame itself, to where those are. What comes from the core is not sent back to it: who is
// there has it already.
Decision Responder::Impl::hand(const Question& question, std::vector<InUse> whom,
                               Verdict verdict) const {
  std::erase_if(whom, [&](const InUse& one) {
    return one.where == MacWhere::LocalPort ? question.port == one.port : !question.port;
  });
  if (whom.empty()) return drop(Verdict::SamePort);
  Decision decision;
  decision.verdict = verdict;
  decision.act = Decision::Act::Hand;
  decision.whom = std::move(whom);
  return decision;
}

Decision Responder::Impl::flooded(const Question& question, FloodTo to, Verdict verdict,
                                  Verdict otherwise) const {
  if (!question.port) to.core = false;  // all other PEs have it
  if (to == FloodTo{}) return drop(otherwise);
  Decision decision;
  decision.verdict = verdict;
  decision.act = Decision::Act::Flood;
  decision.to = to;
  return decision;
}

}  // namespace proxyarp
