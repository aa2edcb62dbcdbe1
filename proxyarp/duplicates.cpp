// SPDX-License-Identifier: GPL-2.0-or-later
// RFC 9161 section 3.7. A contest goes through phases: the holder is asked whether it is there;
// when it answers the challenger is asked; each answer, and each change of hands, is a move, and N
// of them within M seconds freeze the address. Early ends: the holder's MAC is gone, or it left
// three questions unanswered and the challenger is a provisioned MAC.
#include "proxyarp/duplicates.h"

#include <algorithm>

#include "proxyarp/questions.h"

namespace proxyarp {
namespace {

constexpr uint8_t kTries = 3;
constexpr auto kBetweenTries = std::chrono::seconds(1);
// Between two announcements of listed MACs that change which is in use.
constexpr auto kSwitchInterval = std::chrono::seconds(1);
// A listed MAC that claims what another one has, and has confirmed, is not heard so soon again.
constexpr auto kConfirmedQuiet = std::chrono::seconds(10);
constexpr std::size_t kMaxContests = 65536;
constexpr int kTimersPerTick = 256;

}  // namespace

Duplicates::Duplicates(Context& context, BindingTable& table, Announcements& announcements)
    : context_(context), table_(table), announcements_(announcements) {}

// --- claims

Duplicates::Ruling Duplicates::claim(const net::IpAddress& ip, const InUse& holder,
                                     const Claimant& claimant) {
  Contest* found = open(ip);
  if (!found) return Ruling::Kept;
  Contest& contest = *found;
  if (contest.phase == Phase::Frozen) return Ruling::Frozen;
  const bool same = contest.challenger.mac == claimant.mac;
  if (contest.phase == Phase::AskChallenger && same) {
    answered(ip, contest);
    return contest.phase == Phase::Frozen ? Ruling::Frozen : Ruling::Pending;
  }
  // A third one waits until it is known what the first two are: however many frames come in a
  // moment, the holder has its time to answer.
  if (contest.phase != Phase::Counting && !same) return Ruling::Pending;
  contest.listed = false;
  contest.holder = {holder.mac, holder.place(), holder.flags};
  contest.challenger = claimant;
  if (contest.phase == Phase::AskHolder) return Ruling::Pending;
  if (!can_ask()) return move(ip, contest);
  start(ip, contest, Phase::AskHolder, context_.now);
  return Ruling::Pending;
}

void Duplicates::claim_listed(const net::IpAddress& ip, const InUse& holder,
                              const Claimant& claimant, bool announced) {
  Contest* found = open(ip);
  if (!found || found->phase == Phase::Frozen) return;
  Contest& contest = *found;
  const bool asking = contest.phase == Phase::AskHolder;
  if (!announced && can_ask()) {
    if (asking || context_.now < contest.quiet) return;
  } else if (context_.now < contest.last + kSwitchInterval) {
    return;
  }
  contest.listed = true;
  contest.holder = {holder.mac, holder.place(), holder.flags};
  contest.challenger = claimant;
  if (announced || !can_ask())
    switch_listed(ip, contest);
  else
    start(ip, contest, Phase::AskHolder, context_.now);
}

void Duplicates::seen(const net::IpAddress& ip, net::MacAddress mac) {
  Contest* found = contest(ip);
  if (!found || found->asked == 0) return;
  const bool holder = found->phase == Phase::AskHolder && mac == found->holder.mac;
  const bool challenger = found->phase == Phase::AskChallenger && mac == found->challenger.mac;
  if (holder || challenger) answered(ip, *found);
}

// Whoever was asked is there.
void Duplicates::answered(const net::IpAddress& ip, Contest& contest) {
  if (contest.asked == 0) return;
  if (contest.listed) {
    contest.quiet = context_.now + kConfirmedQuiet;
    return settle(ip, contest);
  }
  if (count(contest)) return freeze(ip, contest);
  const Phase next = contest.phase == Phase::AskHolder ? Phase::AskChallenger : Phase::AskHolder;
  start(ip, contest, next, context_.now + kBetweenTries);
}

void Duplicates::evpn_changed(const net::IpAddress& ip, const std::optional<InUse>& before) {
  const Binding* binding = table_.find(ip);
  const InUse* now = binding ? binding->answerable() : nullptr;
  Contest* found = contest(ip);
  if (found && (found->phase == Phase::AskHolder || found->phase == Phase::AskChallenger)) {
    if (!now) return;  // deserted() deals with it
    if (now->mac == found->challenger.mac) return settle(ip, *found);
    found->holder = {now->mac, now->place(), now->flags};
    return;
  }
  const bool moved = before && before->answerable && before->kind == BindingKind::Learned && now &&
                     now->kind == BindingKind::Evpn && now->mac != before->mac;
  if (!moved || now->immutable || now->mac == context_.settings.duplicates.anti_spoof_mac ||
      !context_.settings.duplicates.enabled || binding->several)
    return;
  if (!found) found = open(ip);
  if (!found || found->phase == Phase::Frozen) return;
  found->holder = {before->mac, before->place(), before->flags};
  found->challenger = {now->mac, {MacWhere::Remote, {}}, now->flags};
  static_cast<void>(move(ip, *found));
}

void Duplicates::deserted(const net::IpAddress& ip) {
  Contest* found = contest(ip);
  if (found && (found->phase == Phase::AskHolder || found->phase == Phase::AskChallenger))
    accept(ip, *found);
}

// --- outcomes

// One more move. True when that makes the address a duplicate.
bool Duplicates::count(Contest& contest) {
  const DuplicateDetection& settings = context_.settings.duplicates;
  const net::TimePoint now = context_.now;
  std::erase_if(contest.moves, [&](net::TimePoint at) { return now - at >= settings.window; });
  if (contest.moves.empty()) contest.first = now;
  contest.last = now;
  if (contest.moves.size() < 65536) contest.moves.push_back(now);
  return settings.enabled && settings.moves > 0 && contest.moves.size() >= settings.moves;
}

Duplicates::Ruling Duplicates::move(const net::IpAddress& ip, Contest& contest) {
  if (count(contest)) {
    freeze(ip, contest);
    return Ruling::Frozen;
  }
  settle(ip, contest);
  return Ruling::Accepted;
}

// The challenger has it.
void Duplicates::accept(const net::IpAddress& ip, Contest& contest) {
  if (contest.listed) return switch_listed(ip, contest);
  const Claimant winner = contest.challenger;
  if (move(ip, contest) == Ruling::Accepted && winner.place.where == MacWhere::LocalPort)
    table_.learn(ip, winner.mac, winner.place.port, winner.flags);
}

// Two MACs of one member: which is in use changes; when it does so again and again, that is told.
void Duplicates::switch_listed(const net::IpAddress& ip, Contest& contest) {
  const net::MacAddress mac = contest.challenger.mac;
  const bool often = count(contest);
  if (often && contest.moves.size() == context_.settings.duplicates.moves)
    context_.emit(alarm(AlarmKind::DuplicateIp, ip, contest));
  settle(ip, contest);
  table_.choose(ip, mac);
}

// Nobody is asked any more; the moves are remembered for as long as they count.
void Duplicates::settle(const net::IpAddress& ip, Contest& contest) {
  contest.phase = Phase::Counting;
  contest.asked = 0;
  set_due(ip, contest,
          std::max(contest.last + context_.settings.duplicates.window,
                   std::max(contest.quiet, context_.now)));
  table_.set_doubt(ip, Doubt::None);
}

void Duplicates::freeze(const net::IpAddress& ip, Contest& contest) {
  const net::Duration hold = context_.settings.duplicates.hold_down;
  const bool for_ever = hold.count() <= 0 || hold >= net::kNever - context_.now;
  contest.phase = Phase::Frozen;
  contest.since = context_.now;
  contest.asked = 0;
  set_due(ip, contest, for_ever ? net::kNever : context_.now + hold);
  context_.emit(alarm(AlarmKind::DuplicateIp, ip, contest));
  table_.set_doubt(ip, Doubt::Frozen);
  table_.forget(ip);
  tell_anti_spoof(ip, contest);
}

void Duplicates::tell_anti_spoof(const net::IpAddress& ip, Contest& contest) {
  const auto mac = context_.settings.duplicates.anti_spoof_mac;
  if (contest.anti_spoof == mac) return;
  if (contest.anti_spoof) context_.emit(AntiSpoofDown{ip, *contest.anti_spoof});
  contest.anti_spoof = mac;
  if (!mac) return;
  context_.emit(AntiSpoofUp{ip, *mac});
  announcements_.want(ip, true);
}

void Duplicates::thaw(const net::IpAddress& ip, bool by_operator) {
  Contest& contest = contests_.at(ip);
  Alarm over = alarm(AlarmKind::DuplicateOver, ip, contest);
  over.number = by_operator ? 1 : 0;
  context_.emit(over);
  if (contest.anti_spoof) context_.emit(AntiSpoofDown{ip, *contest.anti_spoof});
  set_due(ip, contest, net::kNever);
  contests_.erase(ip);
  table_.set_doubt(ip, Doubt::None);
}

Alarm Duplicates::alarm(AlarmKind kind, const net::IpAddress& ip, const Contest& contest) const {
  Alarm alarm{};
  alarm.kind = kind;
  alarm.ip = ip;
  alarm.bound = contest.holder.mac;
  alarm.seen = contest.challenger.mac;
  alarm.port = contest.challenger.place.port;
  alarm.bound_at = contest.holder.place;
  alarm.seen_at = contest.challenger.place;
  alarm.first = contest.first;
  alarm.last = contest.last;
  alarm.number = static_cast<uint32_t>(contest.moves.size());
  return alarm;
}

// --- questions and timers

void Duplicates::start(const net::IpAddress& ip, Contest& contest, Phase phase,
                       net::TimePoint from) {
  contest.phase = phase;
  contest.asked = 0;
  contest.until = from + context_.settings.duplicates.confirm_wait;
  set_due(ip, contest, from);
  if (from <= context_.now) due(ip, contest);
  if (contest.phase == phase) table_.set_doubt(ip, Doubt::Pending);
}

void Duplicates::ask(const net::IpAddress& ip, const Claimant& whom) {
  auto question = question_to(context_.identity, ip, whom.mac);
  if (!question) return;
  const auto [where, port] = table_.whereabouts(whom.mac);
  if (where == MacWhere::LocalPort)
    context_.emit(Transmit{port, std::move(*question)});
  else if (whom.place.where == MacWhere::LocalPort && where == MacWhere::Nowhere)
    context_.emit(Transmit{whom.place.port, std::move(*question)});
  else
    context_.emit(TransmitCore{std::move(*question)});
}

void Duplicates::due(const net::IpAddress& ip, Contest& contest) {
  const net::TimePoint now = context_.now;
  switch (contest.phase) {
    case Phase::Counting:
      set_due(ip, contest, net::kNever);
      contests_.erase(ip);
      return;
    case Phase::Frozen: return thaw(ip, false);
    case Phase::AskHolder:
    case Phase::AskChallenger: break;
  }
  if (contest.asked < kTries) {
    ask(ip, contest.phase == Phase::AskHolder ? contest.holder : contest.challenger);
    ++contest.asked;
    return set_due(ip, contest, now + kBetweenTries);
  }
  if (contest.phase == Phase::AskChallenger) return settle(ip, contest);  // the holder keeps it
  const Claimant& challenger = contest.challenger;
  const bool allowed =
      contest.listed || (challenger.place.where == MacWhere::LocalPort &&
                         table_.provisioned_at(challenger.mac, challenger.place.port));
  if (allowed || now >= contest.until) return accept(ip, contest);
  set_due(ip, contest, contest.until);
}

void Duplicates::tick() {
  for (int i = 0; i < kTimersPerTick && deadline() <= context_.now; ++i) {
    const net::IpAddress ip = timers_.begin()->second;
    due(ip, contests_.at(ip));
  }
}

net::TimePoint Duplicates::deadline() const {
  return timers_.empty() ? net::kNever : timers_.begin()->first;
}

void Duplicates::set_due(const net::IpAddress& ip, Contest& contest, net::TimePoint due) {
  if (contest.due != net::kNever) timers_.erase({contest.due, ip});
  contest.due = due;
  if (due != net::kNever) timers_.emplace(due, ip);
}

Duplicates::Contest* Duplicates::contest(const net::IpAddress& ip) {
  const auto at = contests_.find(ip);
  return at == contests_.end() ? nullptr : &at->second;
}
const Duplicates::Contest* Duplicates::contest(const net::IpAddress& ip) const {
  const auto at = contests_.find(ip);
  return at == contests_.end() ? nullptr : &at->second;
}

Duplicates::Contest* Duplicates::open(const net::IpAddress& ip) {
  if (Contest* found = contest(ip)) return found;
  if (contests_.size() >= kMaxContests) return nullptr;
  Contest& fresh = contests_[ip];
  set_due(ip, fresh, context_.now + context_.settings.duplicates.window);
  return &fresh;
}

// --- questions of others, commands

bool Duplicates::is_frozen(const net::IpAddress& ip) const {
  const Contest* found = contest(ip);
  return found && found->phase == Phase::Frozen;
}

bool Duplicates::is_claimant(const net::IpAddress& ip, net::MacAddress mac) const {
  const Contest* found = contest(ip);
  return found && found->phase != Phase::Counting &&
         (found->holder.mac == mac || found->challenger.mac == mac);
}

std::vector<Claimant> Duplicates::claimants(const net::IpAddress& ip) const {
  const Contest* found = contest(ip);
  if (!found) return {};
  return {found->holder, found->challenger};
}

bool Duplicates::clear(const net::IpAddress& ip) {
  Contest* found = contest(ip);
  if (!found) return false;
  if (found->phase == Phase::Frozen) {
    thaw(ip, true);
    return true;
  }
  const bool any = !found->moves.empty();
  found->moves.clear();
  return any;
}

void Duplicates::reconfigure() {
  std::vector<net::IpAddress> frozen, asked;
  for (const auto& [ip, contest] : contests_) {
    const Binding* binding = table_.find(ip);
    const bool provisioned = binding && binding->reserved();
    if (contest.phase == Phase::Frozen)
      frozen.push_back(ip);
    else if (contest.phase != Phase::Counting && provisioned != contest.listed)
      asked.push_back(ip);
  }
  for (const net::IpAddress& ip : asked) settle(ip, contests_.at(ip));
  for (const net::IpAddress& ip : frozen) {
    const Binding* binding = table_.find(ip);
    if ((binding && binding->reserved()) || !context_.settings.duplicates.enabled)
      thaw(ip, true);
    else
      tell_anti_spoof(ip, contests_.at(ip));
  }
}

void Duplicates::for_each(const std::function<void(const DuplicateView&)>& visit) const {
  std::map<net::MacAddress, net::AsNumber> members;
  std::map<std::string, net::AsNumber> by_port;
  for (const StaticBinding& binding : context_.settings.bindings) {
    for (net::MacAddress mac : binding.macs) members.emplace(mac, binding.member_as);
    if (!binding.port.empty()) by_port.emplace(binding.port, binding.member_as);
  }
  const auto as_of = [&](const Claimant& claimant) {
    if (claimant.place.where == MacWhere::LocalPort)
      if (const auto at = by_port.find(table_.port_name(claimant.place.port)); at != by_port.end())
        return at->second;
    const auto at = members.find(claimant.mac);
    return at == members.end() ? net::AsNumber{} : at->second;
  };
  const net::TimePoint now = context_.now;
  for (const auto& [ip, contest] : contests_) {
    if (contest.phase == Phase::Counting && contest.moves.empty()) continue;
    DuplicateView view;
    view.ip = ip;
    view.first = contest.holder.mac;
    view.second = contest.challenger.mac;
    view.first_at = contest.holder.place;
    view.second_at = contest.challenger.place;
    view.first_as = as_of(contest.holder);
    view.second_as = as_of(contest.challenger);
    view.moves = static_cast<uint32_t>(contest.moves.size());
    view.frozen = contest.phase == Phase::Frozen;
    view.anti_spoof = contest.anti_spoof.has_value();
    if (view.frozen) {
      view.since = now - contest.since;
      if (contest.due != net::kNever) view.remaining = contest.due - now;
    }
    visit(view);
  }
}

}  // namespace proxyarp
