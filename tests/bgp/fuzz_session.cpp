// SPDX-License-Identifier: GPL-2.0-or-later
// A session and a caller that keeps its rules, driven by the input: connections come and go, time
// passes, messages arrive that are right, nearly right, or anything. Checked after each step: no
// action names a slot without a connection, Up and Ended alternate, states fit the connections,
// deadlines lie ahead, stale routes are flushed once, and all that is sent decodes.
#include <algorithm>
#include <cstdlib>

#include "bgp/session.h"
#include "evpn/nlri.h"
#include "fuzz_support.h"

using namespace bgp;
using namespace bgp::fuzz;
using namespace std::chrono_literals;

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

SessionSettings make_settings(uint8_t choice) {
  SessionSettings s;
  s.local_as = 65000;
  s.remote_as = (choice & 1) != 0 ? 65000 : 4200000001;
  s.router_id = 0x0a000005;
  s.family = evpn::family();
  s.passive = (choice & 2) != 0;
  s.delay_open = (choice & 4) != 0 ? 7s : 0s;
  s.graceful_restart = (choice & 8) != 0;
  s.hold_time = (choice & 16) != 0 ? 0s : (choice & 32) != 0 ? 3s : 90s;
  s.send_hold = (choice & 64) != 0 ? 30s : 0s;
  return s;
}

net::Bytes peer_open(uint32_t as_number, uint8_t choice) {
  Open open;
  open.as_number = as_number > 0xffff ? kAsTrans : static_cast<uint16_t>(as_number);
  open.hold_time = (choice & 1) != 0 ? 9 : 180;
  open.router_id = (choice & 2) != 0 ? 0x0a000001 : 0x0a000009;
  open.capabilities.multiprotocol = {kL2vpnEvpn};
  if (as_number > 0xffff || (choice & 4) != 0) open.capabilities.four_octet_as = as_number;
  open.capabilities.enhanced_route_refresh = (choice & 8) != 0;
  if ((choice & 16) != 0)
    open.capabilities.graceful_restart = GracefulRestart{
        (choice & 32) != 0, (choice & 64) != 0, 120, {{kL2vpnEvpn, (choice & 128) == 0}}};
  return encode_open(open);
}

net::Bytes update_message(uint8_t choice) {
  if (choice % 4 == 0) return encode_end_of_rib(kL2vpnEvpn);
  const net::Bytes nlri =
      evpn::encode(evpn::InclusiveMulticast{{}, choice, net::IpAddress::v4(0x0a000001)});
  const std::span<const uint8_t> nlris[] = {nlri};
  if (choice % 4 == 1) return encode_unreach(kL2vpnEvpn, nlris, kMaxMessage).message;
  return encode_reach(kL2vpnEvpn, net::IpAddress::v4(0x0a000001), encode_attributes({}, {true}),
                      nlris, kMaxMessage)
      .message;
}

class Caller {
 public:
  explicit Caller(uint8_t choice) : settings_(make_settings(choice)), session_(settings_, 7) {}

  // False at the end of the input.
  bool turn(net::ByteReader& in) {
    if (in.done()) return false;
    const uint8_t what = in.u8();
    const Slot slot = kSlots[what / 16 % 3];
    switch (what % 16) {
      case 0: enabled_ = true; return handle(event::Start{});
      case 1: return stop(in.u8());
      case 2:
        return handle(event::Reset{{ErrorCode::Cease, in.u8(), {}}, std::chrono::seconds(in.u8())});
      case 3:
      case 4: return connect(what % 16 == 3);
      case 5: return accept();
      case 6: return open(slot) ? closed(slot) : true;
      case 7: return open(slot) ? handle(event::Sent{slot}) : true;
      case 8: return wait(session_.deadline());
      case 9: return wait(now_ + std::chrono::milliseconds(in.u16()));
      case 10: session_.set_restarting((what & 16) != 0); return true;
      case 11: return receive(slot, peer_open(settings_.remote_as, in.u8()));
      case 12: return receive(slot, encode_keepalive());
      case 13: return receive(slot, update_message(in.u8()));
      default: return receive(slot, any_message(what % 16 == 15, in));
    }
  }

  void finish() {
    stop(0);
    require(session_.deadline() == net::kNever && session_.state() == SessionState::Idle);
    for (Slot slot : kSlots) require(!open(slot));
    require(!pending_ && !stale_ && !up_);
  }

 private:
  bool& open(Slot slot) { return open_[static_cast<std::size_t>(slot)]; }

  bool stop(uint8_t choice) {
    enabled_ = false;
    if (choice == 0) return handle(event::Stop{});
    return handle(event::Stop{Notification{ErrorCode::Cease, choice, {}}});
  }
  bool connect(bool success) {
    if (!pending_) return true;
    pending_ = false;
    open(Slot::Outgoing) = success;
    return success ? handle(event::Connected{Slot::Outgoing})
                   : handle(event::Closed{Slot::Outgoing});
  }
  // The session may still tell us to close it.
  bool closed(Slot slot) {
    open(slot) = false;
    closing_ = slot;
    handle(event::Closed{slot});
    closing_.reset();
    return true;
  }
  bool accept() {
    const auto slot = session_.accept_slot();
    if (!slot) return true;
    require(*slot != Slot::Outgoing);
    if (open(*slot)) closed(*slot);
    open(*slot) = true;
    return handle(event::Connected{*slot});
  }
  // Never past a deadline without a Tick; few of them, for time is long.
  bool wait(net::TimePoint until) {
    if (until == net::kNever) return true;
    for (int ticks = 0; session_.deadline() <= until && ticks < 32; ++ticks) {
      now_ = std::max(now_, session_.deadline());
      handle(event::Tick{});
      require(session_.deadline() > now_);
    }
    if (session_.deadline() > until) now_ = std::max(now_, until);
    return true;
  }
  // A type and a body of any octets, or a header of any octets.
  static net::Bytes any_message(bool raw_header, net::ByteReader& in) {
    net::Bytes message(16, 0xff);
    if (raw_header) {
      for (int i = 0; i < 3; ++i) message.push_back(in.u8());
      message[in.u8() % 16] = in.u8();
      return message;
    }
    const uint8_t type = in.u8();
    const auto body = in.bytes(std::min<std::size_t>(in.u8(), in.remaining()));
    const std::size_t length = kHeaderSize + body.size();
    message.push_back(static_cast<uint8_t>(length >> 8));
    message.push_back(static_cast<uint8_t>(length));
    message.push_back(static_cast<uint8_t>(type % 7));
    message.insert(message.end(), body.begin(), body.end());
    return message;
  }
  // As the framer does: whole messages, or only the header when that is refused.
  bool receive(Slot slot, const net::Bytes& message) {
    if (!open(slot)) return true;
    const auto header = decode_header(message, session_.max_incoming(slot));
    std::span<const uint8_t> framed = message;
    if (!header)
      framed = framed.first(kHeaderSize);
    else if (header->length != message.size())
      return true;  // the rest does not come
    return handle(event::Received{slot, framed});
  }

  bool handle(const Event& event) {
    const auto actions = session_.handle(event, now_);
    require(actions.size() < 32);
    for (const Action& action : actions) apply(action);
    check();
    return true;
  }

  void apply(const Action& action) {
    std::visit(Overloaded{
                   [&](const action::OpenConnection&) {
                     require(!pending_ && !open(Slot::Outgoing) && !settings_.passive);
                     pending_ = true;
                   },
                   [&](const action::Send& a) {
                     require(open(a.slot));
                     sent(a.message);
                   },
                   [&](const action::CloseConnection& a) {
                     const bool connecting = a.slot == Slot::Outgoing && pending_;
                     require(open(a.slot) || connecting || closing_ == a.slot);
                     open(a.slot) = false;
                     if (a.slot == Slot::Outgoing) pending_ = false;
                   },
                   [&](const action::Up& a) {
                     require(open(a.slot) && !up_);
                     up_ = a.slot;
                   },
                   [&](const action::Ended& a) {
                     require(a.established == (up_ == a.slot));
                     require(!to_string(a.reason).empty());
                     if (a.established) {
                       up_.reset();
                       stale_ = !a.kept.empty();
                     } else {
                       require(a.kept.empty());
                     }
                   },
                   [&](const action::Routes& a) {
                     require(up_.has_value());
                     if (a.update.end_of_rib) stale_ = false;
                   },
                   [&](const action::Refresh&) { require(up_.has_value()); },
                   [&](const action::FlushStale&) {
                     require(stale_);
                     stale_ = false;
                   },
                   [&](const auto&) {},
               },
               action);
  }

  void sent(const net::Bytes& message) {
    const auto header = decode_header(message, kMaxMessage);
    require(header && header->length == message.size());
    const auto body = std::span(message).subspan(kHeaderSize);
    switch (header->type) {
      case MessageType::Open: require(decode_open(body) == session_.local_open()); break;
      case MessageType::Notification: require(decode_notification(body).has_value()); break;
      case MessageType::Keepalive: break;
      case MessageType::RouteRefresh: require(decode_route_refresh(body).has_value()); break;
      case MessageType::Update: {
        const auto update = decode_update(body, settings_.family, {});
        require(update && update->handling == ErrorHandling::None);
        break;
      }
    }
  }

  void check() {
    int established = 0, live = 0;
    for (Slot slot : kSlots) {
      const SessionState state = session_.state(slot);
      established += state == SessionState::Established;
      live += open(slot);
      if (open(slot))
        require(state > SessionState::Active ||
                (state == SessionState::Active && settings_.delay_open > 0s));
      else if (slot != Slot::Outgoing)
        require(state == SessionState::Idle);
      else
        require(pending_ ? state == SessionState::Connect
                         : state == SessionState::Idle || state == SessionState::Active);
    }
    require(established == (up_ ? 1 : 0));
    if (up_) require(session_.state(*up_) == SessionState::Established);
    if (up_) require(session_.peer_open() != nullptr);
    require(session_.stale_kept() == stale_);
    const net::TimePoint deadline = session_.deadline();
    require(deadline == net::kNever || deadline <= now_ + 4095s);
    // Nothing may end in a standstill: who does not wait for the neighbor tries again.
    if (enabled_ && !settings_.passive && live == 0 && !pending_) require(deadline != net::kNever);
    if (!enabled_) require(!session_.accept_slot() && live == 0 && !pending_);
  }

  SessionSettings settings_;
  Session session_;
  net::TimePoint now_{1000s};
  bool enabled_ = false;
  bool pending_ = false;  // connecting
  std::array<bool, 3> open_{};
  std::optional<Slot> up_;
  std::optional<Slot> closing_;
  bool stale_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  net::ByteReader in(std::span(data + 1, size - 1));
  Caller caller(data[0]);
  for (int turns = 0; turns < 512 && caller.turn(in); ++turns) {
  }
  caller.finish();
  return 0;
}
