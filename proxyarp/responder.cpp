// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of each ARP and ND frame (RFC 9161 sections 3.1 to 3.6, RFC 826, 5227, 4861, 4862).
// Frames come in, a verdict and actions go out; the table of bindings.h is asked and told. For
// members and for the core there is one list of numbered rules for ARP, one for solicitations and
// one for advertisements; each rule returns its verdict.
#include "proxyarp/responder.h"

#include <algorithm>
#include <compare>

#include "proxyarp/arp.h"
#include "proxyarp/bindings.h"
#include "proxyarp/ethernet.h"
#include "proxyarp/nd.h"
#include "proxyarp/recent.h"

namespace proxyarp {
namespace {

constexpr auto kAlarmInterval = std::chrono::minutes(1);
constexpr std::size_t kMaxAlarms = 1024;  // within the interval
// A defender answers within a second; twice that and some for the way through the fabric.
constexpr auto kDadAnswer = std::chrono::seconds(3);
constexpr std::size_t kMaxDad = 4096;

struct AlarmKey {
  AlarmKind kind;
  net::IpAddress ip;
  net::MacAddress mac;
  net::IfIndex port;  // of those that are about a port as a whole
  auto operator<=>(const AlarmKey&) const = default;
};

// One frame on its way through the rules.
struct Incoming {
  std::optional<net::IfIndex> port;  // none: out of the fabric
  std::span<const uint8_t> frame;
  net::TimePoint now;
  Actions& out;
  bool learned = false;

  net::Bytes bytes() const { return {frame.begin(), frame.end()}; }
};

// A broadcast request, probe, or multicast solicitation.
struct Question {
  net::IpAddress target;
  net::MacAddress asker;
  bool dad = false;  // of IPv6: others may be asking for the same free address
};

}  // namespace

const char* to_string(Verdict verdict) {
  static constexpr std::array<const char*, static_cast<std::size_t>(Verdict::Count)> names{
      "answered",       "learned",        "flooded",
      "forwarded",      "unknown-target", "gratuitous-dropped",
      "owner-asked",    "same-port",      "spoofed-sender",
      "outside-prefix", "malformed-arp",  "malformed-nd",
      "unknown-option", "binding-limit",  "not-owner",
      "sponged",        "unassigned",     "duplicate",
      "pending",        "exempt",         "trapped",
      "rate-limit"};
  const auto index = static_cast<std::size_t>(verdict);
  return index < names.size() ? names[index] : "?";
}

const char* to_string(BindingKind kind) {
  switch (kind) {
    case BindingKind::Static: return "static";
    case BindingKind::Learned: return "learned";
    case BindingKind::Evpn: return "evpn";
  }
  return "?";
}

const char* to_string(AlarmKind kind) {
  switch (kind) {
    case AlarmKind::SpoofedSender: return "spoofed-sender";
    case AlarmKind::NotOwner: return "not-owner";
    case AlarmKind::DuplicateIp: return "duplicate-ip";
    case AlarmKind::DuplicateOver: return "duplicate-over";
    case AlarmKind::BindingLimit: return "binding-limit";
    case AlarmKind::TableFilling: return "table-filling";
    case AlarmKind::ImmutableConflict: return "immutable-conflict";
    case AlarmKind::DecoyAnswered: return "decoy-answered";
    case AlarmKind::AddressDead: return "address-dead";
    case AlarmKind::AddressBack: return "address-back";
  }
  return "?";
}

const char* to_string(SpongeState state) {
  switch (state) {
    case SpongeState::Alive: return "alive";
    case SpongeState::Pending: return "pending";
    case SpongeState::Dead: return "dead";
    case SpongeState::Static: return "static";
  }
  return "?";
}

const char* to_string(OffenderKind kind) {
  switch (kind) {
    case OffenderKind::Asker: return "asker";
    case OffenderKind::Target: return "target";
    case OffenderKind::ProxyArp: return "proxy-arp";
    case OffenderKind::DeadPeer: return "dead-peer";
    case OffenderKind::Spoofer: return "spoofer";
    case OffenderKind::Sweeper: return "sweeper";
  }
  return "?";
}

struct Responder::Impl {
  Impl(const Settings& settings, uint64_t seed) : table(settings, seed) {}

  const Settings& settings() const { return table.settings(); }

  Verdict frame(Incoming& in);
  Verdict arp(Incoming& in);
  Verdict solicitation(Incoming& in, const NdFrame& nd);
  Verdict advertisement(Incoming& in, const NdFrame& nd);
  Verdict nd(Incoming& in);

  template <class MakeReply>
  Verdict ask(Incoming& in, const Question& question, MakeReply make_reply);
  Verdict miss(Incoming& in, const Question& question);
  Verdict hand_to_owner(Incoming& in, const Question& question);
  Verdict gratuitous(Incoming& in, bool needed);
  Verdict pass_unicast(Incoming& in);
  Verdict flood(Incoming& in);
  Verdict refuse(Incoming& in, Verdict verdict, const net::IpAddress& ip, net::MacAddress seen);
  bool learn(Incoming& in, const net::IpAddress& ip, net::MacAddress mac, NaFlags flags);
  void alarm(Incoming& in, AlarmKind kind, const net::IpAddress& ip, net::MacAddress seen);
  void count(Verdict verdict) { ++counters[static_cast<std::size_t>(verdict)]; }

  BindingTable table;
  Recent<AlarmKey> alarms{kAlarmInterval, kMaxAlarms};
  Recent<net::IpAddress> dad{kDadAnswer, kMaxDad};  // targets of flooded solicitations
  std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)> counters{};
  net::TimePoint latest{};  // of all calls, for the ages that are shown
};

// --- rules

Verdict Responder::Impl::frame(Incoming& in) {
  const FrameClass frame_class = classify(in.frame);
  if (frame_class == FrameClass::Truncated) return Verdict::MalformedArp;
  if (settings().profile != Profile::Off) {
    if (frame_class == FrameClass::Arp) return arp(in);
    if (frame_class == FrameClass::Nd) return nd(in);
    if (frame_class == FrameClass::HiddenNd) return Verdict::MalformedNd;
  }
  return (in.frame[0] & 1) != 0 ? flood(in) : pass_unicast(in);
}

Verdict Responder::Impl::arp(Incoming& in) {
  // 1. Ethernet and IPv4, request or reply: all else is never answered (RFC 9161 section 3.3 e).
  const auto arp = decode_arp(in.frame);
  if (!arp || !arp->source.is_unicast()) return Verdict::MalformedArp;
  // 2. The sender speaks for itself.
  if (arp->sender_mac != arp->source)
    return refuse(in, Verdict::SpoofedSender, arp->sender_ip, arp->source);
  // 3. The sender's address is one of the LAN, and nobody else's. A probe claims none.
  const bool claims = arp->is_gratuitous() || !arp->is_request();
  if (!arp->is_probe()) {
    if (!table.inside(arp->sender_ip)) return Verdict::OutsidePrefix;
    if (table.refuses(arp->sender_ip, arp->sender_mac, in.port))
      return refuse(in, claims ? Verdict::NotOwner : Verdict::SpoofedSender, arp->sender_ip,
                    arp->sender_mac);
    // 4. Any operation tells a binding (RFC 826, RFC 9161 section 3.2).
    if (!learn(in, arp->sender_ip, arp->sender_mac, {})) return Verdict::BindingLimit;
    if (claims && in.port) table.claim(arp->sender_ip, arp->sender_mac, in.now, in.out);
  }
  // 5. Unicast goes to whom it is for, so that it shows whether he lives (section 3.3 c).
  if (!arp->destination.is_multicast()) return pass_unicast(in);
  // 6. A claim is never answered.
  if (claims) return gratuitous(in, false);
  // 7. A question.
  if (!table.inside(arp->target_ip)) return Verdict::OutsidePrefix;
  return ask(in, {arp->target_ip, arp->sender_mac},
             [&](const InUse& owner) { return encode_arp(arp_reply(*arp, owner.mac)); });
}

Verdict Responder::Impl::nd(Incoming& in) {
  // 1. Valid by RFC 4861 section 7.1.
  const auto nd = decode_nd(in.frame);
  if (!nd || !nd->source.is_unicast()) return Verdict::MalformedNd;
  // 2. The sender speaks for itself.
  if (nd->link_layer && *nd->link_layer != nd->source)
    return refuse(in, Verdict::SpoofedSender, nd->is_solicitation() ? nd->from : nd->target,
                  nd->source);
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
  const Question question{nd.target, nd.source, nd.is_dad()};
  // 4. Unicast (neighbor unreachability detection) goes to whom it is for.
  if (!nd.destination.is_multicast()) return pass_unicast(in);
  // 5. The target is an address of the LAN.
  if (!table.inside(nd.target)) return Verdict::OutsidePrefix;
  // 6. SEND can't be answered for somebody else (RFC 9161 section 6).
  if (nd.is_secured()) return hand_to_owner(in, question);
  // 7. Options that we don't know (section 3.3 f and 5.5).
  if (nd.has_unknown_option())
    return settings().profile == Profile::Static || !settings().floods_unknown()
               ? Verdict::UnknownOption
               : flood(in);
  // 8. A question. No binding comes from a solicitation (section 3.2).
  return ask(in, question, [&](const InUse& owner) {
    return encode_nd(neighbor_advertisement(nd, owner.mac, {owner.flags.router, true}));
  });
}

Verdict Responder::Impl::advertisement(Incoming& in, const NdFrame& nd) {
  // 4. The target is an address of the LAN ...
  if (!table.inside(nd.target)) return Verdict::OutsidePrefix;
  // 5. ... and nobody else's.
  if (table.refuses(nd.target, nd.source, in.port))
    return refuse(in, Verdict::NotOwner, nd.target, nd.source);
  const Binding* before = table.find(nd.target);
  const bool owner = before && before->owned_by(nd.source);
  // 6. It tells a binding, unless the address is still optimistic (RFC 4429) or no MAC is named.
  if (nd.override_flag && nd.link_layer) {
    if (!learn(in, nd.target, nd.source, {nd.router, true})) return Verdict::BindingLimit;
    if (in.port) table.claim(nd.target, nd.source, in.now, in.out);
  }
  // 7. Unicast goes to whom it is for.
  if (!nd.destination.is_multicast()) return pass_unicast(in);
  // 8. A claim; the owner's answer to duplicate address detection must get through.
  return gratuitous(in, owner && dad.contains(nd.target, in.now));
}

// --- verdicts that several rules share

template <class MakeReply>
Verdict Responder::Impl::ask(Incoming& in, const Question& question, MakeReply make_reply) {
  const Binding* binding = table.find(question.target);
  const InUse* owner = binding ? binding->answerable() : nullptr;
  if (binding && binding->owned_by(question.asker)) return Verdict::OwnerAsked;
  if (!owner) return miss(in, question);
  if (!in.port) return hand_to_owner(in, question);
  if (owner->where == MacWhere::LocalPort && owner->port == *in.port) return Verdict::SamePort;
  in.out.push_back(Transmit{*in.port, make_reply(*owner)});
  return Verdict::Answered;
}

Verdict Responder::Impl::miss(Incoming& in, const Question& question) {
  const Binding* binding = table.find(question.target);
  const bool reserved = binding && binding->reserved();
  if (!settings().floods_unknown() && !(question.dad && !reserved)) return Verdict::UnknownTarget;
  if (question.dad) dad.renew(question.target, in.now);
  return flood(in);
}

// The frame itself, to where the target's owner is.
Verdict Responder::Impl::hand_to_owner(Incoming& in, const Question& question) {
  const Binding* binding = table.find(question.target);
  const InUse* owner = binding ? binding->answerable() : nullptr;
  if (!owner) return miss(in, question);
  if (owner->where == MacWhere::LocalPort) {
    if (in.port == owner->port) return Verdict::SamePort;
    if (question.dad) dad.renew(question.target, in.now);
    in.out.push_back(Transmit{owner->port, in.bytes()});
    return Verdict::Forwarded;
  }
  // What comes from the core is not sent back to it; the owner is there and has it already.
  if (!in.port) return settings().floods_unknown() ? miss(in, question) : Verdict::SamePort;
  net::Bytes bytes = in.bytes();
  std::ranges::copy(owner->mac.bytes(), bytes.begin());
  in.out.push_back(TransmitCore{std::move(bytes)});
  return Verdict::Forwarded;
}

Verdict Responder::Impl::gratuitous(Incoming& in, bool needed) {
  return settings().floods_gratuitous() || needed ? flood(in) : Verdict::GratuitousDropped;
}

Verdict Responder::Impl::pass_unicast(Incoming& in) {
  if (!in.port) return Verdict::Forwarded;  // the kernel did it
  const auto [where, port] = table.whereabouts(net::MacAddress::from_bytes(in.frame));
  if (where == MacWhere::Nowhere) return flood(in);
  if (where == MacWhere::Remote)
    in.out.push_back(TransmitCore{in.bytes()});
  else if (port != *in.port)
    in.out.push_back(Transmit{port, in.bytes()});
  return Verdict::Forwarded;
}

// What came out of the fabric goes to the members here only: all other PEs have it already.
Verdict Responder::Impl::flood(Incoming& in) {
  in.out.push_back(Flood{in.bytes(), in.port, true, in.port.has_value()});
  return Verdict::Flooded;
}

Verdict Responder::Impl::refuse(Incoming& in, Verdict verdict, const net::IpAddress& ip,
                                net::MacAddress seen) {
  alarm(in, verdict == Verdict::NotOwner ? AlarmKind::NotOwner : AlarmKind::SpoofedSender, ip,
        seen);
  return verdict;
}

// False when there are too many bindings. What comes out of the fabric is never learned.
bool Responder::Impl::learn(Incoming& in, const net::IpAddress& ip, net::MacAddress mac,
                            NaFlags flags) {
  if (!in.port) return true;
  const LearnResult result = table.learn(ip, mac, *in.port, flags, in.now, in.out);
  if (result == LearnResult::LimitReached) alarm(in, AlarmKind::BindingLimit, ip, mac);
  in.learned = result == LearnResult::Changed;
  return result != LearnResult::LimitReached;
}

void Responder::Impl::alarm(Incoming& in, AlarmKind kind, const net::IpAddress& ip,
                            net::MacAddress seen) {
  const net::IfIndex port = in.port.value_or(net::IfIndex{});
  const AlarmKey key =
      kind == AlarmKind::BindingLimit ? AlarmKey{kind, {}, {}, port} : AlarmKey{kind, ip, seen, {}};
  if (!alarms.add(key, in.now)) return;
  Alarm event{kind, ip, {}, seen, port};
  if (const Binding* binding = table.find(ip)) {
    if (binding->in_use)
      event.bound = binding->in_use->mac;
    else if (binding->reserved())
      event.bound = binding->fixed->allowed.front();
  }
  in.out.push_back(event);
}

// --- public face

Responder::Responder(const Settings& settings, uint64_t seed)
    : impl_(std::make_unique<Impl>(settings, seed)) {}
Responder::~Responder() = default;
Responder::Responder(Responder&&) noexcept = default;
Responder& Responder::operator=(Responder&&) noexcept = default;

std::vector<Action> Responder::port_up(net::IfIndex port, const std::string& name,
                                       net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  impl_->table.port_up(port, name, out);
  return out;
}

std::vector<Action> Responder::port_down(net::IfIndex port, net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  impl_->table.port_down(port, out);
  return out;
}

std::vector<Action> Responder::set_identity(const Identity&, net::TimePoint now) {
  impl_->latest = now;
  return {};
}

void Responder::trapped_frame(net::IfIndex, std::span<const uint8_t>, net::TimePoint now) {
  impl_->latest = now;
  impl_->count(Verdict::Trapped);
}

std::pair<bool, std::vector<Action>> Responder::clear_binding(const net::IpAddress&,
                                                              net::TimePoint) {
  return {};
}
std::pair<bool, std::vector<Action>> Responder::clear_duplicate(const net::IpAddress&,
                                                                net::TimePoint) {
  return {};
}
std::pair<bool, std::vector<Action>> Responder::set_sponge(const net::IpAddress&, SpongeState,
                                                           net::TimePoint) {
  return {};
}
std::pair<bool, std::vector<Action>> Responder::probe(const net::IpAddress&, net::TimePoint) {
  return {};
}
void Responder::for_each_duplicate(const std::function<void(const DuplicateView&)>&) const {}
void Responder::for_each_sponged(const std::function<void(const SpongeView&)>&) const {}
void Responder::for_each_offender(const std::function<void(const OffenderView&)>&) const {}
Explanation Responder::explain(const net::IpAddress&, std::optional<net::IfIndex>,
                               net::TimePoint) const {
  return {};
}

std::vector<Action> Responder::reconfigure(const Settings& settings, net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  impl_->table.reconfigure(settings, out);
  return out;
}

Outcome Responder::member_frame(net::IfIndex port, std::span<const uint8_t> frame, bool copy,
                                net::TimePoint now) {
  Outcome outcome;
  impl_->latest = now;
  Incoming in{port, frame, now, outcome.actions};
  outcome.verdict = impl_->frame(in);
  if (copy) {
    std::erase_if(outcome.actions, [](const Action& action) {
      return std::holds_alternative<Transmit>(action) ||
             std::holds_alternative<TransmitCore>(action) || std::holds_alternative<Flood>(action);
    });
    const bool went_on = outcome.verdict == Verdict::Answered ||
                         outcome.verdict == Verdict::Flooded ||
                         outcome.verdict == Verdict::Forwarded;
    if (went_on) outcome.verdict = in.learned ? Verdict::Learned : Verdict::Forwarded;
  }
  impl_->count(outcome.verdict);
  if (in.learned && outcome.verdict != Verdict::Learned) impl_->count(Verdict::Learned);
  return outcome;
}

Outcome Responder::core_frame(std::span<const uint8_t> frame, net::TimePoint now) {
  Outcome outcome;
  impl_->latest = now;
  Incoming in{std::nullopt, frame, now, outcome.actions};
  outcome.verdict = impl_->frame(in);
  impl_->count(outcome.verdict);
  return outcome;
}

std::vector<Action> Responder::mac_placed(net::MacAddress mac, MacWhere where, net::IfIndex port,
                                          net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  impl_->table.place_mac(mac, where, port, out);
  return out;
}

std::vector<Action> Responder::evpn_binding(net::IpAddress ip, std::optional<net::MacAddress> mac,
                                            NaFlags flags, bool immutable, net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  std::optional<EvpnPart> part;
  if (mac) part = EvpnPart{*mac, flags, immutable, 0};
  impl_->table.set_evpn(ip, part, out);
  return out;
}

net::TimePoint Responder::deadline() const { return impl_->table.deadline(); }

std::vector<Action> Responder::tick(net::TimePoint now) {
  Actions out;
  impl_->latest = now;
  impl_->table.expire(now, out);
  return out;
}

const std::array<uint64_t, static_cast<std::size_t>(Verdict::Count)>& Responder::counters() const {
  return impl_->counters;
}

void Responder::for_each_binding(const std::function<void(const BindingView&)>& visit) const {
  for_each_binding_after(std::nullopt, [&](const BindingView& view) {
    visit(view);
    return true;
  });
}

void Responder::for_each_binding_after(const std::optional<net::IpAddress>& after,
                                       const std::function<bool(const BindingView&)>& visit) const {
  const auto& all = impl_->table.all();
  for (auto at = after ? all.upper_bound(*after) : all.begin(); at != all.end(); ++at) {
    const auto& [ip, binding] = *at;
    BindingView view;
    view.ip = ip;
    if (const auto& fixed = binding.fixed) {
      view.allowed = fixed->allowed;
      view.member_as = fixed->member_as;
      view.member_name = fixed->member_name;
    }
    if (binding.learned) view.age = impl_->latest - binding.learned->seen;
    view.kind = binding.fixed     ? BindingKind::Static
                : binding.learned ? BindingKind::Learned
                                  : BindingKind::Evpn;
    if (const auto& in_use = binding.in_use) {
      view.mac = in_use->mac;
      view.kind = in_use->kind;
      view.where = in_use->where;
      view.port = in_use->port;
      view.answered = in_use->answerable;
      view.flags = in_use->flags;
      view.immutable = in_use->immutable;
    }
    if (!visit(view)) return;
  }
}

std::vector<SetFastEntry> Responder::fast_entries() const {
  std::vector<SetFastEntry> entries;
  for (const auto& [ip, binding] : impl_->table.all())
    if (binding.fast) entries.push_back(*binding.fast);
  return entries;
}

}  // namespace proxyarp
