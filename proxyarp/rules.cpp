// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of each ARP and ND frame (RFC 9161 sections 3.1 to 3.6, RFC 826, 5227, 4861, 4862).
// Frames come in, a verdict and actions go out. For members and for the core there is one list of
// numbered rules for ARP, one for solicitations and one for advertisements; each rule returns its
// verdict. What becomes of a question is decided in decide.cpp.
#include <algorithm>

#include "proxyarp/arp.h"
#include "proxyarp/ethernet.h"
#include "proxyarp/impl.h"

namespace proxyarp {

Verdict Responder::Impl::frame(Incoming& in) {
  const FrameClass frame_class = classify(in.frame);
  if (frame_class == FrameClass::Truncated) return Verdict::MalformedArp;
  if (context.settings.profile != Profile::Off) {
    if (frame_class == FrameClass::Arp) return arp(in);
    if (frame_class == FrameClass::Nd) return nd(in);
    if (frame_class == FrameClass::HiddenNd) return Verdict::MalformedNd;
  }
  return (in.frame[0] & 1) != 0 ? flood(in, {true, true}) : pass_unicast(in);
}

Verdict Responder::Impl::arp(Incoming& in) {
  // 1. Ethernet and IPv4, request or reply: all else is never answered (RFC 9161 section 3.3 e).
  const auto arp = decode_arp(in.frame);
  if (!arp || !arp->source.is_unicast()) return Verdict::MalformedArp;
  // 2. The sender speaks for itself.
  const bool forged = in.port && arp->source == context.identity.mac;
  if (arp->sender_mac != arp->source || forged)
    return refuse(in, Verdict::SpoofedSender, arp->sender_ip, arp->source);
  // 3. The sender's address is one of the LAN, and nobody else's. A probe claims none.
  const bool claims = arp->is_gratuitous() || !arp->is_request();
  if (!arp->is_probe()) {
    if (decoys.contains(arp->sender_ip)) return decoy_answered(in, arp->sender_ip, arp->sender_mac);
    if (!table.inside(arp->sender_ip)) return Verdict::OutsidePrefix;
    if (table.refuses(arp->sender_ip, arp->sender_mac, in.port))
      return refuse(in, claims ? Verdict::NotOwner : Verdict::SpoofedSender, arp->sender_ip,
                    arp->sender_mac);
    // 4. Any operation tells a binding (RFC 826, RFC 9161 section 3.2).
    const Bound bound = bind(in, arp->sender_ip, arp->sender_mac, {}, arp->is_gratuitous());
    if (bound == Bound::LimitReached) return Verdict::BindingLimit;
    if (bound == Bound::TooFast) return Verdict::RateLimit;
    if (bound == Bound::Frozen && claims) return Verdict::Duplicate;
  }
  // 5. Unicast goes to whom it is for, so that it shows whether he lives (section 3.3 c).
  if (!arp->destination.is_multicast()) return pass_unicast(in);
  // 6. A claim is never answered.
  if (claims) return gratuitous(in, context.settings.gratuitous_arp());
  // 7. A question.
  const Question question{arp->target_ip, arp->sender_mac, in.port,
                          arp->is_probe() ? Question::Kind::Probe : Question::Kind::Plain,
                          Question::Options::Known};
  return ask(in, question,
             [&](const InUse& owner) { return encode_arp(arp_reply(*arp, owner.mac)); });
}

Verdict Responder::Impl::nd(Incoming& in) {
  // 1. Valid by RFC 4861 section 7.1.
  const auto nd = decode_nd(in.frame);
  if (!nd || !nd->source.is_unicast()) return Verdict::MalformedNd;
  // 2. The sender speaks for itself.
  const bool forged = in.port && nd->source == context.identity.mac;
  if ((nd->link_layer && *nd->link_layer != nd->source) || forged)
    return refuse(in, Verdict::SpoofedSender, nd->is_solicitation() ? nd->from : nd->target,
                  nd->source);
  if (!nd->is_solicitation() && decoys.contains(nd->target))
    return decoy_answered(in, nd->target, nd->source);
  // 3. The sender's address is one of the LAN, and nobody else's.
  if (!nd->is_dad()) {
    if (!table.inside(nd->from)) return Verdict::OutsidePrefix;
    // An advertisement from the target's own address is the claim of rule 5 below.
    const bool claims = !nd->is_solicitation() && nd->from == nd->target;
    if (!claims && table.refuses(nd->from, nd->source, in.port))
      return refuse(in, Verdict::SpoofedSender, nd->from, nd->source);
  }
  return nd->is_solicitation() ? solicitation(in, *nd) : advertisement(in, *nd);
}

Verdict Responder::Impl::solicitation(Incoming& in, const NdFrame& nd) {
  // 4. No binding comes from a solicitation (RFC 9161 section 3.2), but the sender of one lives.
  if (!nd.is_dad() && nd.link_layer) sign_of_life(in, nd.from, nd.source);
  // 5. Unicast (neighbor unreachability detection) goes to whom it is for.
  if (!nd.destination.is_multicast()) return pass_unicast(in);
  // 6. A question. SEND (RFC 3971) can't be answered for somebody else.
  Question question{nd.target, nd.source, in.port,
                    nd.is_dad() ? Question::Kind::Dad : Question::Kind::Plain,
                    Question::Options::Known};
  if (nd.is_secured())
    question.options = Question::Options::Secured;
  else if (nd.has_option_beyond(context.settings.known_options))
    question.options = Question::Options::Unknown;
  return ask(in, question, [&](const InUse& owner) {
    return encode_nd(neighbor_advertisement(nd, owner.mac, owner.flags));
  });
}

Verdict Responder::Impl::advertisement(Incoming& in, const NdFrame& nd) {
  // 4. The target is an address of the LAN ...
  if (!table.inside(nd.target)) return Verdict::OutsidePrefix;
  // 5. ... and nobody else's.
  if (table.refuses(nd.target, nd.source, in.port))
    return refuse(in, Verdict::NotOwner, nd.target, nd.source);
  // 6. It tells a binding, unless no MAC is named, or the address is still optimistic (RFC 4429)
  //    and not anycast.
  const bool group = nd.destination.is_multicast();
  if (nd.link_layer && (nd.override_flag || context.settings.anycast)) {
    const Bound bound = bind(in, nd.target, nd.source, {nd.router, nd.override_flag},
                             nd.override_flag && !nd.solicited);
    if (bound == Bound::LimitReached) return Verdict::BindingLimit;
    if (bound == Bound::TooFast) return Verdict::RateLimit;
    if (bound == Bound::Frozen) return Verdict::Duplicate;
  } else {
    sign_of_life(in, nd.target, nd.source);
    follow_hint(in, nd);
  }
  // 7. Unicast goes to whom it is for.
  if (!group) return pass_unicast(in);
  // 8. A claim; the answer to duplicate address detection must get through, unless it is of one
  //    who does not have the address.
  const Binding* binding = table.find(nd.target);
  const bool defends = dad.contains(nd.target, context.now) &&
                       (!binding || !binding->answerable() || binding->owned_by(nd.source));
  if (defends) return gratuitous(in, {true, true});
  return gratuitous(in, nd.router ? context.settings.router_na() : context.settings.host_na());
}

// --- questions

template <class MakeReply>
Verdict Responder::Impl::ask(Incoming& in, const Question& question, MakeReply make_reply) {
  const net::IpAddress& target = question.target;
  const bool plain = question.kind == Question::Kind::Plain;
  const Decision decision = decide(question, nullptr);
  if (in.port && decision.verdict != Verdict::OutsidePrefix)
    offenders.note(OffenderKind::Asker, {*in.port, question.asker, std::nullopt});
  if (!plain) maintenance.probe_seen(target);
  if (decision.missed && in.port) {
    offenders.missed(*in.port, question.asker, target);
    if (policy_for(target) == Unassigned::Sponge) {
      if (plain)
        sponge.question(target, question.asker);
      else
        sponge.probed(target);
    }
  }
  if (decision.verdict == Verdict::OwnerAsked && in.port && !plain) {
    // Another MAC of the list probes: whether the one in use is still there (RFC 5227 section
    // 2.1.1 leaves a proxy no other way to find out).
    const Binding* binding = table.find(target);
    const InUse* owner = binding && binding->reserved() ? binding->answerable() : nullptr;
    if (owner && owner->mac != question.asker && !table.refuses(target, question.asker, in.port)) {
      const InUse holder = *owner;
      duplicates.claim_listed(
          target, holder, {question.asker, {MacWhere::LocalPort, *in.port}, holder.flags}, false);
    }
  }
  if (question.kind == Question::Kind::Dad &&
      (decision.act == Decision::Act::Hand || decision.act == Decision::Act::Flood))
    dad.renew(target, context.now);
  switch (decision.act) {
    case Decision::Act::Drop: break;
    case Decision::Act::Flood: {
      const Verdict verdict = flood(in, decision.to);
      if (decision.verdict == Verdict::Flooded) return verdict;
      break;
    }
    case Decision::Act::Hand:
      for (const InUse& one : decision.whom) {
        net::Bytes bytes = in.bytes();
        std::ranges::copy(one.mac.bytes(), bytes.begin());
        if (one.where == MacWhere::LocalPort)
          pass(in, Transmit{one.port, std::move(bytes)});
        else
          pass(in, TransmitCore{std::move(bytes)});
      }
      break;
    case Decision::Act::Answer:
      for (const InUse& one : decision.whom) pass(in, Transmit{*in.port, make_reply(one)});
      if (in.copy) break;  // the kernel answered, and counts
      if (decision.verdict == Verdict::Sponged) {
        sponge.answered(target);
      } else if (Binding* binding = table.find(target)) {
        ++binding->answers;
        binding->last_asker = question.asker;
      }
      break;
  }
  return decision.verdict;
}

// --- verdicts that several rules share

void Responder::Impl::pass(Incoming& in, Action action) {
  if (!in.copy) context.emit(std::move(action));
}

Verdict Responder::Impl::gratuitous(Incoming& in, FloodTo to) {
  if (!in.port) to.core = false;
  return to == FloodTo{} ? Verdict::GratuitousDropped : flood(in, to);
}

Verdict Responder::Impl::pass_unicast(Incoming& in) {
  if (!in.port) return Verdict::Forwarded;  // the kernel did it
  const auto destination = net::MacAddress::from_bytes(in.frame);
  if (destination == context.identity.mac) return Verdict::Forwarded;  // for us
  const auto [where, port] = table.whereabouts(destination);
  if (where == MacWhere::Nowhere) return flood(in, {true, true});
  if (where == MacWhere::Remote)
    pass(in, TransmitCore{in.bytes()});
  else if (port != *in.port)
    pass(in, Transmit{port, in.bytes()});
  return Verdict::Forwarded;
}

// What came out of the fabric goes to the members here only: all other PEs have it already.
Verdict Responder::Impl::flood(Incoming& in, FloodTo to) {
  in.seen_by_members = to.local;
  pass(in, Flood{in.bytes(), in.port, to.local, to.core && in.port.has_value()});
  return Verdict::Flooded;
}

Verdict Responder::Impl::refuse(Incoming& in, Verdict verdict, const net::IpAddress& ip,
                                net::MacAddress seen) {
  const bool proxy = verdict == Verdict::NotOwner;
  if (in.port)
    offenders.note(proxy ? OffenderKind::ProxyArp : OffenderKind::Spoofer, {*in.port, seen, ip});
  alarm(in, proxy ? AlarmKind::NotOwner : AlarmKind::SpoofedSender, ip, seen);
  return verdict;
}

Verdict Responder::Impl::decoy_answered(Incoming& in, const net::IpAddress& ip,
                                        net::MacAddress seen) {
  if (in.port) {
    offenders.note(OffenderKind::ProxyArp, {*in.port, seen, ip});
    alarm(in, AlarmKind::DecoyAnswered, ip, seen);
  }
  return Verdict::NotOwner;
}

void Responder::Impl::alarm(Incoming& in, AlarmKind kind, const net::IpAddress& ip,
                            net::MacAddress seen) {
  const net::IfIndex port = in.port.value_or(net::IfIndex{});
  const AlarmKey key =
      kind == AlarmKind::BindingLimit ? AlarmKey{kind, {}, {}, port} : AlarmKey{kind, ip, seen, {}};
  if (!alarms.add(key, context.now)) return;
  Alarm event{};
  event.kind = kind;
  event.ip = ip;
  event.seen = seen;
  event.port = port;
  event.seen_at =
      in.port ? ClaimPlace{MacWhere::LocalPort, port} : ClaimPlace{MacWhere::Remote, {}};
  if (const Binding* binding = table.find(ip)) {
    if (binding->in_use) {
      event.bound = binding->in_use->mac;
      event.bound_at = binding->in_use->place();
    } else if (binding->reserved()) {
      event.bound = binding->fixed->allowed.front();
    }
  } else if (is_own(ip)) {
    event.bound = context.identity.mac;
  }
  context.emit(event);
}

}  // namespace proxyarp
