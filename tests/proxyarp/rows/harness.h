// SPDX-License-Identifier: GPL-2.0-or-later
// One or two PEs with members, joined as EVPN joins them, in memory and with a clock of its own.
// What answers on a PE is behind the interface Path: the responder alone (pcap), or the eBPF
// program with the responder behind it. The rows of the requirements are tests over each of them.
//
// Member hN has MAC 02:00:00:00:00:0N, 192.0.2.N and 2001:db8:1::N; h1 and h2 are at ports m1 and
// m2 of PE 0, h3 and h4 at m3 and m4 of PE 1 (of PE 0 when that is the only one). Interface index:
// N.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/evpn/mac_vrf_harness.h"
#include "tests/proxyarp/frames.h"

namespace proxyarp::rows {

using namespace proxyarp::test;
using namespace std::chrono_literals;

using Numbers = std::initializer_list<uint8_t>;

// What became of a frame of a member, or out of the core.
struct FrameResult {
  Verdict verdict = Verdict::Answered;  // of the responder; or the same word for the data path
  bool forward = false;                 // it goes on to the bridge, which passes it on by its FDB
  std::vector<Action> actions;          // answers of the data path are Transmit as well
};

class Path {
 public:
  virtual ~Path() = default;
  // A PE comes to be, or has other settings or another identity.
  virtual void configure(std::size_t pe, const Settings& settings,
                         const Responder::Identity& identity) = 0;
  virtual FrameResult member_frame(std::size_t pe, Responder& responder, net::IfIndex port,
                                   const net::Bytes& frame, net::TimePoint now) = 0;
  // A broadcast or multicast frame, or one for the PE's own MAC.
  virtual FrameResult core_frame(std::size_t pe, Responder& responder, const net::Bytes& frame,
                                 net::TimePoint now) = 0;
  // The kernel's programs are in it: what they refuse, or leave to the bridge, the responder does
  // not see.
  virtual bool is_kernel() const { return false; }
  // SetFastEntry and ClearFastEntry.
  virtual void apply(std::size_t pe, const Action& action) = 0;
};

struct PathKind {
  const char* name;
  std::function<std::unique_ptr<Path>()> make;
};

struct Host {
  uint8_t number = 0;
  std::size_t pe = 0;
  net::IfIndex port;
  net::MacAddress mac;
  net::IpAddress ip4, ip6;
  bool alive = true;                 // false: neither hears nor answers
  std::set<net::IpAddress> answers;  // questions for these are answered by itself
  bool answers_all = false;          // a proxy ARP router
  std::vector<net::Bytes> heard;
};

inline net::MacAddress pe_mac(std::size_t pe) {
  return net::MacAddress({2, 0xff, 0, 0, 0, static_cast<uint8_t>(pe + 1)});
}
inline const net::MacAddress kAntiSpoof({2, 0xaa, 0, 0, 0, 1});
inline const net::MacAddress kSpongeMac({2, 0xdd, 0, 0, 0, 1});

class Exchange {
 public:
  Exchange(Path& path, const Settings& settings, std::size_t pes = 2,
           Responder::Identity identity = {})
      : path_(path), identity_(identity) {
    for (std::size_t pe = 0; pe < pes; ++pe) pes_.push_back(std::make_unique<Pe>());
    for (uint8_t n = 1; n <= 4; ++n)
      hosts_.push_back({n,
                        pes == 1 || n <= 2 ? 0u : 1u,
                        net::IfIndex{n},
                        test::mac(n),
                        v4(n),
                        v6(n),
                        true,
                        {},
                        false,
                        {}});
    for (std::size_t pe = 0; pe < pes; ++pe) open(pe, settings);
  }

  Host& h(uint8_t n) { return hosts_.at(n - 1u); }
  Responder& responder(std::size_t pe = 0) { return *pes_[pe]->responder; }
  evpn::MacVrf& vrf(std::size_t pe = 0) { return *pes_[pe]->vrf; }

  // Settings as a PE has them: bindings name the port where it is one of this PE.
  Settings of_pe(std::size_t pe, Settings settings) const {
    for (StaticBinding& binding : settings.bindings) {
      const bool here = std::ranges::any_of(hosts_, [&](const Host& host) {
        return host.pe == pe && port_name(host) == binding.port;
      });
      if (!here) binding.port.clear();
    }
    return settings;
  }

  // --- members send
  Verdict send(Host& from, const net::Bytes& frame) {
    Pe& pe = *pes_[from.pe];
    const FrameResult result = path_.member_frame(from.pe, *pe.responder, from.port, frame, now);
    run(from.pe, result.actions);
    if (result.forward) bridge(from.pe, from.port, frame);
    // The daemon takes the MAC of a frame that was in order; the bridge of one that it passed on.
    switch (result.verdict) {
      case Verdict::SpoofedSender:
      case Verdict::NotOwner:
      case Verdict::MalformedArp:
      case Verdict::MalformedNd: break;
      default: learn_mac(from, net::MacAddress::from_bytes(std::span(frame).subspan(6)));
    }
    settle();
    return result.verdict;
  }
  Verdict send(Host& from, const ArpFrame& arp) { return send(from, encode_arp(arp)); }
  Verdict send(Host& from, const NdFrame& nd) { return send(from, encode_nd(nd)); }
  // The bridge has seen a frame of the host.
  void learn_mac(Host& host, net::MacAddress mac) {
    if (mac.is_unicast()) run(host.pe, vrf(host.pe).local_mac(mac, host.port, false, now));
  }
  void bring_up(std::initializer_list<uint8_t> numbers) {
    for (uint8_t n : numbers) learn_mac(h(n), h(n).mac);
  }
  // It announces both of its addresses, as a host that boots does.
  void announce(uint8_t n) {
    send(h(n), arp_claim(n, v4(n)));
    send(h(n), na(n, v6(n)));
  }
  // From PE `pe` into the core, as if another PE (one that doesn't answer) had sent it.
  Verdict from_core(std::size_t pe, const net::Bytes& frame) {
    const FrameResult result = path_.core_frame(pe, responder(pe), frame, now);
    run(pe, result.actions);
    settle();
    return result.verdict;
  }
  Verdict from_core(std::size_t pe, const ArpFrame& arp) { return from_core(pe, encode_arp(arp)); }
  Verdict from_core(std::size_t pe, const NdFrame& nd) { return from_core(pe, encode_nd(nd)); }

  // --- what else happens
  void cut(Host& host) {
    host.alive = false;
    run(host.pe, vrf(host.pe).port_down(host.port, now));
    run(host.pe, responder(host.pe).port_down(host.port, now));
  }
  void plug(Host& host) {
    host.alive = true;
    run(host.pe, responder(host.pe).port_up(host.port, port_name(host), now));
  }
  void age_out(Host& host) { run(host.pe, vrf(host.pe).local_mac_gone(host.mac, host.port, now)); }
  void remote_route(std::size_t pe, const harness::Remote& route, bool withdrawn = false) {
    run(pe, vrf(pe).remote(
                route.route,
                withdrawn ? nullptr : std::make_shared<bgp::Attributes>(route.attributes), now));
    settle();
  }
  void reconfigure(const Settings& settings) {
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
      const Settings own = of_pe(pe, settings);
      path_.configure(pe, own, identity_of(pe));
      run(pe, responder(pe).reconfigure(own, now));
    }
    settle();
  }
  void run_commands(std::pair<bool, std::vector<Action>> result, std::size_t pe = 0) {
    EXPECT_TRUE(result.first);
    run(pe, result.second);
    settle();
  }
  // Time passes, and timers fire when they are due.
  void advance(net::Duration span) {
    const net::TimePoint end = now + span;
    for (int guard = 0; guard < 2'000'000; ++guard) {
      net::TimePoint next = net::kNever;
      for (const auto& pe : pes_)
        next = std::min({next, pe->responder->deadline(), pe->vrf->deadline()});
      if (next > end) break;
      now = std::max(now, next);
      for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
        if (vrf(pe).deadline() <= now) run(pe, vrf(pe).tick(now));
        if (responder(pe).deadline() <= now) run(pe, responder(pe).tick(now));
      }
      settle();
    }
    now = end;
  }

  // --- what was seen
  // Frames that were sent into the core by a PE.
  std::vector<net::Bytes>& core(std::size_t pe = 0) { return pes_[pe]->core; }
  std::vector<Alarm>& alarms(std::size_t pe = 0) { return pes_[pe]->alarms; }
  std::vector<evpn::Alarm>& mac_alarms(std::size_t pe = 0) { return pes_[pe]->mac_alarms; }
  // "+M2/192.0.2.2 ND:I", "-M2/192.0.2.2"
  harness::Texts& routes(std::size_t pe = 0) { return pes_[pe]->routes; }
  std::vector<FlushMac>& flushed(std::size_t pe = 0) { return pes_[pe]->flushed; }
  const std::map<net::IpAddress, SetFastEntry>& fast(std::size_t pe = 0) { return pes_[pe]->fast; }
  void forget() {
    for (Host& host : hosts_) host.heard.clear();
    for (auto& pe : pes_) {
      pe->core.clear();
      pe->alarms.clear();
      pe->mac_alarms.clear();
      pe->routes.clear();
      pe->flushed.clear();
    }
  }
  std::size_t count_alarms(AlarmKind kind, std::size_t pe = 0) {
    return static_cast<std::size_t>(std::ranges::count(alarms(pe), kind, &Alarm::kind));
  }
  std::optional<BindingView> binding(const net::IpAddress& ip, std::size_t pe = 0) {
    std::optional<BindingView> found;
    responder(pe).for_each_binding([&](const BindingView& view) {
      if (view.ip == ip) found = view;
    });
    return found;
  }
  std::optional<SpongeView> sponged(const net::IpAddress& ip, std::size_t pe = 0) {
    std::optional<SpongeView> found;
    responder(pe).for_each_sponged([&](const SpongeView& view) {
      if (view.ip == ip) found = view;
    });
    return found;
  }
  std::vector<OffenderView> offenders(OffenderKind kind, std::size_t pe = 0) {
    std::vector<OffenderView> found;
    responder(pe).for_each_offender([&](const OffenderView& view) {
      if (view.kind == kind) found.push_back(view);
    });
    return found;
  }
  uint64_t counter(Verdict verdict, std::size_t pe = 0) {
    return responder(pe).counters()[static_cast<std::size_t>(verdict)];
  }
  // The MAC that h`n` is told when it asks for `ip`; none: no answer.
  std::optional<net::MacAddress> resolve(uint8_t n, const net::IpAddress& ip) {
    const std::size_t before = h(n).heard.size();
    if (ip.is_v4())
      send(h(n), arp_request(n, ip));
    else
      send(h(n), ns(n, ip));
    for (std::size_t i = before; i < h(n).heard.size(); ++i) {
      if (const auto arp = decode_arp(h(n).heard[i]);
          arp && !arp->is_request() && arp->sender_ip == ip)
        return arp->sender_mac;
      if (const auto nd = decode_nd(h(n).heard[i]);
          nd && !nd->is_solicitation() && nd->target == ip)
        return nd->link_layer;
    }
    return std::nullopt;
  }
  static std::string port_name(const Host& host) { return "m" + std::to_string(host.number); }

  net::TimePoint now = kStart;

 private:
  struct Pe {
    std::unique_ptr<Responder> responder;
    std::unique_ptr<evpn::MacVrf> vrf;
    std::map<net::IpAddress, SetFastEntry> fast;
    std::vector<net::Bytes> core;
    std::vector<Alarm> alarms;
    std::vector<evpn::Alarm> mac_alarms;
    harness::Texts routes;
    std::vector<FlushMac> flushed;
    std::vector<std::pair<evpn::Route, bgp::AttributesPtr>> out;
  };

  Responder::Identity identity_of(std::size_t pe) const {
    Responder::Identity identity = identity_;
    identity.mac = pe_mac(pe);
    return identity;
  }
  static net::IpAddress vtep(std::size_t pe) { return harness::pe(static_cast<unsigned>(pe + 1)); }

  void open(std::size_t pe, const Settings& all) {
    const Settings settings = of_pe(pe, all);
    evpn::Settings evpn;
    evpn.vni = net::Vni(100);
    evpn.vtep = evpn.router_id = vtep(pe);
    evpn.local_as = net::AsNumber(65000);
    evpn.default_router = settings.default_router;
    evpn.anti_spoof_mac = settings.duplicates.anti_spoof_mac;
    evpn.anycast_macs = settings.anycast ? settings.anycast_macs : 1;
    pes_[pe]->responder = std::make_unique<Responder>(settings, 1 + pe);
    pes_[pe]->vrf = std::make_unique<evpn::MacVrf>(evpn);
    path_.configure(pe, settings, identity_of(pe));
    run(pe, responder(pe).set_identity(identity_of(pe), now));
    run(pe, vrf(pe).own_mac(pe_mac(pe), now));
    for (const Host& host : hosts_)
      if (host.pe == pe) run(pe, responder(pe).port_up(host.port, port_name(host), now));
    settle();
  }

  void run(std::size_t pe, const std::vector<Action>& actions) {
    for (const Action& action : actions) run(pe, action);
  }
  void run(std::size_t pe, const Action& action) {
    Pe& here = *pes_[pe];
    path_.apply(pe, action);
    if (const auto* out = std::get_if<Transmit>(&action)) {
      deliver(pe, out->port, out->frame);
    } else if (const auto* core = std::get_if<TransmitCore>(&action)) {
      to_core(pe, core->frame);
    } else if (const auto* wide = std::get_if<Flood>(&action)) {
      if (wide->local)
        for (const Host& host : hosts_)
          if (host.pe == pe && host.port != wide->except) deliver(pe, host.port, wide->frame);
      if (wide->core) to_core(pe, wide->frame);
    } else if (const auto* set = std::get_if<SetFastEntry>(&action)) {
      here.fast[set->ip] = *set;
    } else if (const auto* clear = std::get_if<ClearFastEntry>(&action)) {
      here.fast.erase(clear->ip);
    } else if (const auto* up = std::get_if<LocalBindingUp>(&action)) {
      run(pe,
          here.vrf->local_binding(up->ip, up->mac,
                                  {up->flags.router, up->flags.override_flag, up->immutable}, now));
    } else if (const auto* down = std::get_if<LocalBindingDown>(&action)) {
      run(pe, here.vrf->local_binding_gone(down->ip, down->mac, now));
    } else if (const auto* alarm = std::get_if<Alarm>(&action)) {
      here.alarms.push_back(*alarm);
    } else if (const auto* flush = std::get_if<FlushMac>(&action)) {
      here.flushed.push_back(*flush);
      run(pe, here.vrf->local_mac_gone(flush->mac, flush->port, now));
    } else if (const auto* spoof = std::get_if<AntiSpoofUp>(&action)) {
      run(pe, here.vrf->anti_spoof(spoof->ip, spoof->mac, now));
    } else if (const auto* over = std::get_if<AntiSpoofDown>(&action)) {
      run(pe, here.vrf->anti_spoof_gone(over->ip, now));
    }
  }
  void run(std::size_t pe, const evpn::Actions& actions) {
    Pe& here = *pes_[pe];
    for (const evpn::Action& action : actions) {
      if (const auto* out = std::get_if<evpn::Originate>(&action)) {
        here.routes.push_back(harness::text(action));
        for (std::size_t other = 0; other < pes_.size(); ++other)
          if (other != pe && pes_[other]->vrf)
            run(other, pes_[other]->vrf->remote(out->route, out->attributes, now));
        std::erase_if(here.out, [&](const auto& one) { return one.first == out->route; });
        here.out.emplace_back(out->route, out->attributes);
      } else if (const auto* gone = std::get_if<evpn::Withdraw>(&action)) {
        here.routes.push_back(harness::text(action));
        for (std::size_t other = 0; other < pes_.size(); ++other)
          if (other != pe && pes_[other]->vrf)
            run(other, pes_[other]->vrf->remote(gone->route, nullptr, now));
      } else if (const auto* placed = std::get_if<evpn::MacPlaced>(&action)) {
        MacWhere where = MacWhere::Nowhere;
        net::IfIndex port;
        if (const auto* at = std::get_if<evpn::AtPort>(&placed->after)) {
          where = MacWhere::LocalPort;
          port = at->port;
        } else if (std::holds_alternative<evpn::AtVtep>(placed->after)) {
          where = MacWhere::Remote;
        }
        run(pe, here.responder->mac_placed(placed->mac, where, port, now));
      } else if (const auto* change = std::get_if<evpn::RemoteBindingChanged>(&action)) {
        std::vector<Responder::EvpnBinding> bindings;
        const auto add = [&](net::MacAddress mac, const evpn::ArpNdFlags& flags) {
          bindings.push_back({mac, {flags.router, flags.override_flag}, flags.immutable});
        };
        if (change->mac) add(*change->mac, change->flags);
        for (const auto& other : change->others) add(other.mac, other.flags);
        run(pe, here.responder->evpn_bindings(change->ip, bindings, now));
      } else if (const auto* raised = std::get_if<evpn::Alarm>(&action)) {
        here.mac_alarms.push_back(*raised);
      }
    }
  }

  void deliver(std::size_t pe, net::IfIndex port, const net::Bytes& frame) {
    for (Host& host : hosts_)
      if (host.pe == pe && host.port == port && host.alive) {
        host.heard.push_back(frame);
        reply(host, frame);
      }
  }
  // What the host's own stack says.
  void reply(Host& host, const net::Bytes& frame) {
    const auto to = net::MacAddress::from_bytes(frame);
    if (!to.is_multicast() && to != host.mac && !host.answers_all) return;
    if (const auto arp = decode_arp(frame); arp && arp->is_request()) {
      if (!wants(host, arp->target_ip) || arp->is_gratuitous()) return;
      waiting_.emplace_back(&host, encode_arp(arp_reply(*arp, host.mac)));
    } else if (const auto nd = decode_nd(frame); nd && nd->is_solicitation()) {
      if (wants(host, nd->target))
        waiting_.emplace_back(&host,
                              encode_nd(neighbor_advertisement(*nd, host.mac, {true, true})));
    }
  }
  static bool wants(const Host& host, const net::IpAddress& ip) {
    return host.answers_all || host.answers.contains(ip);
  }

  void to_core(std::size_t pe, const net::Bytes& frame) {
    pes_[pe]->core.push_back(frame);
    const auto to = net::MacAddress::from_bytes(frame);
    const evpn::MacPlace place = vrf(pe).place_of(to);
    for (std::size_t other = 0; other < pes_.size(); ++other) {
      if (other == pe) continue;
      const auto* at = std::get_if<evpn::AtVtep>(&place);
      if (!to.is_multicast() && (at == nullptr || at->vtep != vtep(other))) continue;
      if (to.is_multicast() || to == pe_mac(other)) {
        run(other, path_.core_frame(other, responder(other), frame, now).actions);
      } else if (const evpn::MacPlace there = vrf(other).place_of(to);
                 const auto* port = std::get_if<evpn::AtPort>(&there)) {
        deliver(other, port->port, frame);
      }
    }
  }
  // By the FDB; what it doesn't know is dropped.
  void bridge(std::size_t pe, net::IfIndex from, const net::Bytes& frame) {
    const auto to = net::MacAddress::from_bytes(frame);
    if (to == pe_mac(pe)) return;
    const evpn::MacPlace place = vrf(pe).place_of(to);
    if (const auto* at = std::get_if<evpn::AtPort>(&place)) {
      if (at->port != from) deliver(pe, at->port, frame);
    } else if (std::holds_alternative<evpn::AtVtep>(place)) {
      to_core(pe, frame);
    }
  }
  // Hosts answer what they heard.
  void settle() {
    if (settling_) return;
    settling_ = true;
    for (int guard = 0; !waiting_.empty() && guard < 10'000; ++guard) {
      auto [host, frame] = std::move(waiting_.front());
      waiting_.pop_front();
      if (host->alive) send(*host, frame);
    }
    settling_ = false;
  }

  Path& path_;
  Responder::Identity identity_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::vector<Host> hosts_;
  std::deque<std::pair<Host*, net::Bytes>> waiting_;
  bool settling_ = false;
};

// --- settings
inline Settings dynamic() {
  Settings s = Lan::settings(Profile::Dynamic);
  s.announcements_per_second = 100;
  s.new_bindings_per_second = 10;
  s.link_locals_per_mac = 2;
  return s;
}
// h1 to h4 provisioned with both of their addresses.
inline Settings provisioned(Profile profile = Profile::Static) {
  Settings s = dynamic();
  s.profile = profile;
  for (uint8_t n = 1; n <= 4; ++n) {
    const std::string port = "m" + std::to_string(n);
    const std::string name = "Member " + std::to_string(n);
    s.bindings.push_back({v4(n), {mac(n)}, port, net::AsNumber{64500u + n}, name});
    s.bindings.push_back({v6(n), {mac(n)}, port, net::AsNumber{64500u + n}, name});
  }
  return s;
}
inline Settings sponging(Profile profile = Profile::Dynamic) {
  Settings s = provisioned(profile);
  s.unassigned = {{net::IpPrefix::parse("192.0.2.0/24").value(), Unassigned::Sponge},
                  {net::IpPrefix::parse("2001:db8:1::/64").value(), Unassigned::Sponge}};
  s.sponge.mac = kSpongeMac;
  s.sponge.queue = 20;
  return s;
}

class Rows : public testing::TestWithParam<PathKind> {
 protected:
  Rows() : path(GetParam().make()) {}
  std::unique_ptr<Path> path;
};
inline void PrintTo(const PathKind& kind, std::ostream* out) { *out << kind.name; }

// Frames a host heard that are ARP replies or advertisements in the name of `ip`.
inline std::size_t answers_heard(const Host& host, const net::IpAddress& ip) {
  std::size_t n = 0;
  for (const net::Bytes& frame : host.heard) {
    const auto arp = decode_arp(frame);
    if (arp && !arp->is_request() && arp->sender_ip == ip) ++n;
    const auto nd = decode_nd(frame);
    if (nd && !nd->is_solicitation() && nd->target == ip) ++n;
  }
  return n;
}
// Announcements (ARP requests with sender = target, or unsolicited NA) of ip at mac.
inline std::size_t announcements_heard(const Host& host, const net::IpAddress& ip,
                                       net::MacAddress mac) {
  std::size_t n = 0;
  for (const net::Bytes& frame : host.heard) {
    const auto arp = decode_arp(frame);
    if (arp && arp->is_gratuitous() && arp->sender_ip == ip && arp->sender_mac == mac) ++n;
    const auto nd = decode_nd(frame);
    if (nd && !nd->is_solicitation() && !nd->solicited && nd->target == ip && nd->link_layer == mac)
      ++n;
  }
  return n;
}
// Questions of PE `pe` itself that the host heard.
inline std::vector<net::Bytes> asked_by(const Host& host, std::size_t pe,
                                        const net::IpAddress& ip) {
  std::vector<net::Bytes> found;
  for (const net::Bytes& frame : host.heard) {
    const auto arp = decode_arp(frame);
    if (arp && arp->source == pe_mac(pe) && arp->target_ip == ip) found.push_back(frame);
    const auto nd = decode_nd(frame);
    if (nd && nd->source == pe_mac(pe) && nd->target == ip) found.push_back(frame);
  }
  return found;
}

}  // namespace proxyarp::rows
