// SPDX-License-Identifier: GPL-2.0-or-later
// Families are collected fresh for each scrape from the same views that the CLI shows; nothing is
// registered, so that a port or neighbor that is gone leaves no series behind.
#include "daemon/metrics.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/answer.h"
#include "daemon/app.h"
#include "daemon/monitor.h"
#include "daemon/mrt_writer.h"
#include "daemon/proxy_view.h"
#include "daemon/underlay.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kMaxScrapers = 16;
constexpr std::size_t kMaxRequest = 8192;

using Labels = std::vector<std::pair<std::string, std::string>>;

class Collector {
 public:
  void counter(const char* name, const char* help, Labels labels, double value) {
    metric(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
  }
  void gauge(const char* name, const char* help, Labels labels, double value) {
    metric(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void add(prometheus::MetricType type, const char* name, const char* help, Labels labels,
           double value) {
    if (type == prometheus::MetricType::Counter)
      counter(name, help, std::move(labels), value);
    else
      gauge(name, help, std::move(labels), value);
  }
  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& metric(const char* name, const char* help, prometheus::MetricType type,
                                   Labels labels) {
    const auto [found, fresh] = index_.try_emplace(name, families_.size());
    if (fresh) families_.push_back({name, help, type, {}});
    auto& list = families_[found->second].metric;
    list.emplace_back();
    for (auto& [key, value] : labels)
      list.back().label.push_back({std::move(key), std::move(value)});
    return list.back();
  }
  std::map<std::string, std::size_t> index_;
  std::vector<prometheus::MetricFamily> families_;
};

double number(uint64_t value) { return static_cast<double>(value); }

// What is one number for each neighbor.
using View = bgp::io::NeighborView;
struct NeighborMetric {
  prometheus::MetricType type;
  const char* name;
  const char* help;
  uint64_t (*value)(const View& n);
};
constexpr auto kGauge = prometheus::MetricType::Gauge, kCounter = prometheus::MetricType::Counter;
constexpr NeighborMetric kNeighborMetrics[] = {
    {kGauge, "peerlan_bgp_routes_received", "Routes in the neighbor's Adj-RIB-In",
     [](const View& n) -> uint64_t { return n.counts.received; }},
    {kGauge, "peerlan_bgp_routes_accepted", "Of these, those that may be selected",
     [](const View& n) -> uint64_t {
       return n.counts.received - std::min(n.counts.received, n.counts.rejected);
     }},
    {kGauge, "peerlan_bgp_routes_flagged", "Of these, flagged by policy",
     [](const View& n) -> uint64_t { return n.counts.flagged; }},
    {kGauge, "peerlan_bgp_routes_stale", "Of these, kept over a restart (RFC 4724)",
     [](const View& n) -> uint64_t { return n.counts.stale; }},
    {kGauge, "peerlan_bgp_routes_advertised", "Routes the neighbor has from us",
     [](const View& n) -> uint64_t { return n.counts.advertised; }},
    {kGauge, "peerlan_bgp_queued", "Changes that wait to be sent",
     [](const View& n) -> uint64_t { return n.counts.queued; }},
    {kCounter, "peerlan_bgp_sessions_total", "Sessions that became Established",
     [](const View& n) -> uint64_t { return n.established_count; }},
    {kCounter, "peerlan_bgp_session_drops_total", "Established sessions that ended",
     [](const View& n) -> uint64_t { return n.dropped_count; }},
    {kCounter, "peerlan_bgp_max_prefix_warnings_total",
     "Times the routes of the neighbor rose above max-prefixes-warning",
     [](const View& n) -> uint64_t { return n.max_prefix_warnings; }},
    {kGauge, "peerlan_bgp_memberships", "Route targets that the neighbor asks for (RFC 4684)",
     [](const View& n) -> uint64_t { return n.memberships; }},
};

// Families of one neighbor. What is counted by type or reason has a label for it.
void collect_neighbor(const bgp::io::NeighborView& n, Collector& out) {
  const Labels peer{{"neighbor", n.address}, {"description", n.settings.description}};
  const auto with = [&](std::initializer_list<std::pair<std::string, std::string>> more) {
    Labels labels = peer;
    labels.insert(labels.end(), more);
    return labels;
  };
  out.gauge("peerlan_bgp_session_established", "1 when the BGP session is Established", peer,
            n.state == "Established" ? 1 : 0);
  for (const char* state : {"Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established"})
    out.gauge("peerlan_bgp_session_state", "1 for the present state, 0 for the others",
              with({{"state", state}}), n.state == state ? 1 : 0);
  out.gauge("peerlan_bgp_session_state_seconds", "Seconds in the present state", peer,
            static_cast<double>(n.since.count()));
  const auto messages = [&](const char* direction, const char* kind, uint64_t value) {
    out.counter("peerlan_bgp_messages_total", "BGP messages by direction and type; all: their sum",
                with({{"direction", direction}, {"type", kind}}), number(value));
  };
  static constexpr const char* kTypes[] = {"unknown",      "open",      "update",
                                           "notification", "keepalive", "route-refresh"};
  static_assert(std::size(kTypes) == bgp::io::NeighborView::kMessageTypes);
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    messages("in", kTypes[i], n.in_by_type[i]);
    messages("out", kTypes[i], n.out_by_type[i]);
  }
  messages("in", "all", n.messages_in);
  messages("out", "all", n.messages_out);
  for (const auto& metric : kNeighborMetrics)
    out.add(metric.type, metric.name, metric.help, peer, number(metric.value(n)));
  for (std::size_t i = 1; i < bgp::kRejectedKinds; ++i)
    out.gauge("peerlan_bgp_routes_rejected", "Of these, rejected by loop checks or policy",
              with({{"reason", bgp::to_string(static_cast<bgp::Rejected>(i))}}),
              number(n.counts.rejected_by[i]));
  const auto errors = [&](const char* outcome, uint64_t value) {
    out.counter("peerlan_bgp_update_errors_total", "Errors in UPDATE messages by RFC 7606 outcome",
                with({{"outcome", outcome}}), number(value));
  };
  errors("attribute-discard", n.attributes_discarded);
  errors("treat-as-withdraw", n.treated_as_withdraw);
  errors("nlri-discard", n.nlri_discarded);
  errors("family-ignored", n.family_ignored);
  uint64_t resets = 0;
  for (const auto& one : n.notifications) {
    if (one.sent && one.code == bgp::ErrorCode::UpdateMessage) resets += one.count;
    out.counter("peerlan_bgp_notifications_total", "NOTIFICATION messages by direction and code",
                with({{"direction", one.sent ? "out" : "in"},
                      {"code", fmt::to_string(static_cast<int>(one.code))},
                      {"subcode", fmt::to_string(one.subcode)}}),
                number(one.count));
  }
  errors("session-reset", resets);
}

void collect_exports(const App& app, Collector& out) {
  for (const auto& client : app.bmp_clients()) {
    const bgp::io::BmpView v = client->view();
    const Labels labels{{"collector", to_string(v.settings.address)},
                        {"port", fmt::to_string(v.settings.port)}};
    out.gauge("peerlan_bmp_connected", "1 when the BMP collector is connected", labels,
              v.state == "up" || v.state == "dumping" ? 1 : 0);
    out.counter("peerlan_bmp_connects_total", "Times the BMP collector was connected", labels,
                number(v.connects));
    out.counter("peerlan_bmp_drops_total",
                "Times it was disconnected because it did not take what waited for it", labels,
                number(v.drops));
    out.counter("peerlan_bmp_messages_total", "BMP messages queued for it", labels,
                number(v.messages));
    out.counter("peerlan_bmp_bytes_total", "Their octets", labels, number(v.octets));
    out.gauge("peerlan_bmp_queued_bytes", "Octets that wait for it", labels, number(v.queued));
  }
  if (const auto* mrt = app.mrt_writer()) {
    out.counter("peerlan_mrt_dumps_total", "MRT dumps by result", {{"result", "written"}},
                number(mrt->written()));
    out.counter("peerlan_mrt_dumps_total", "MRT dumps by result", {{"result", "failed"}},
                number(mrt->failed()));
  }
  out.gauge("peerlan_monitor_clients", "Clients of the command monitor", {},
            number(app.monitor().clients()));
  out.counter("peerlan_monitor_lost_total", "Events that they were too slow for", {},
              number(app.monitor().lost()));
}

void collect_rejected_connections(const App& app, Collector& out) {
  const auto& rejected = app.speaker().rejected_connections();
  const auto count = [&](const char* reason, uint64_t value) {
    out.counter("peerlan_bgp_connections_rejected_total",
                "TCP connections closed unread, by reason", {{"reason", reason}}, number(value));
  };
  count("not-a-neighbor", rejected.not_a_neighbor);
  count("not-now", rejected.not_now);
  count("unprotected", rejected.unprotected);
  count("dynamic-limit", rejected.dynamic_limit);
  count("rate", rejected.rate);
  count("unestablished", rejected.unestablished);
}

void collect_frames(const Domain& domain, const std::string& port, net::IfIndex index,
                    Collector& out) {
  if (index.value == 0) return;
  for (const auto& c : domain.frame_counters(index)) {
    const Labels labels{{"domain", domain.settings().name},
                        {"port", port},
                        {"direction", dataplane::to_string(c.direction)},
                        {"class", c.bum_class},
                        {"reason", c.reason},
                        {"verdict", c.dropped    ? "dropped"
                                    : c.observed ? "observed"
                                                 : "passed"}};
    out.counter("peerlan_port_frames_total",
                "Frames that the BUM policy looked at, by class and reason", labels,
                number(c.packets));
    out.counter("peerlan_port_bytes_total", "Their octets, without FCS", labels, number(c.bytes));
  }
}

Labels with_more(const Labels& labels,
                 std::initializer_list<std::pair<std::string, std::string>> more) {
  Labels all = labels;
  all.insert(all.end(), more);
  return all;
}

// What became of ARP and ND of members, in the kernel and in the responder; by address family.
struct Resolution {
  uint64_t queries = 0, by_kernel = 0;
  std::map<std::string, uint64_t> dropped;  // by reason
};

std::array<Resolution, 2> resolution_of(const Domain& domain) {
  std::array<Resolution, 2> all;
  for (const auto& [name, port] : domain.ports()) {
    if (port.index.value == 0) continue;
    for (const auto& c : domain.frame_counters(port.index)) {
      if (c.direction != dataplane::Direction::Ingress) continue;
      const std::string_view frame_class = c.bum_class;
      if (frame_class != "arp" && frame_class != "nd") continue;
      Resolution& of = all[frame_class == "nd" ? 1 : 0];
      of.queries += c.packets;
      if (std::string_view(c.reason) == "answered") of.by_kernel += c.packets;
      if (c.dropped) of.dropped[c.reason] += c.packets;
    }
  }
  return all;
}

void collect_verdicts(const Domain& domain, const Labels& name, Collector& out) {
  static constexpr const char* kFamilies[] = {"ipv4", "ipv6"};
  auto resolution = resolution_of(domain);
  for (std::size_t family = 0; family < 2; ++family) {
    Resolution& of = resolution[family];
    const auto& verdicts = domain.verdicts(family == 1);
    const auto count = [&](proxyarp::Verdict v) { return verdicts[static_cast<std::size_t>(v)]; };
    const Labels af = with_more(name, {{"af", kFamilies[family]}});
    out.counter("peerlan_arpnd_queries_total",
                "ARP and ND frames of members to groups, as far as the BUM policy saw them", af,
                number(of.queries));
    out.counter("peerlan_arpnd_replies_total", "Proxy answers by who gave them",
                with_more(af, {{"by", "kernel"}}), number(of.by_kernel));
    out.counter("peerlan_arpnd_replies_total", "Proxy answers by who gave them",
                with_more(af, {{"by", "daemon"}}), number(count(proxyarp::Verdict::Answered)));
    out.counter("peerlan_arpnd_sponged_total", "Answers in the name of dead addresses", af,
                number(count(proxyarp::Verdict::Sponged)));
    for (std::size_t i = 0; i < verdicts.size(); ++i)
      if (const auto verdict = static_cast<proxyarp::Verdict>(i); is_drop(verdict))
        of.dropped[proxyarp::to_string(verdict)] += verdicts[i];
    for (const auto& [reason, packets] : of.dropped)
      out.counter("peerlan_arpnd_dropped_total",
                  "ARP and ND frames of members that were neither answered nor passed on",
                  with_more(af, {{"reason", reason}}), number(packets));
  }
}

void collect_entries(const Domain& domain, const Labels& name, Collector& out) {
  static constexpr const char* kStates[] = {"active", "inactive", "pending", "duplicate"};
  std::array<std::array<uint64_t, std::size(kStates)>, 2> entries{};
  domain.responder().for_each_binding([&](const proxyarp::BindingView& view) {
    const std::string_view state = state_of(view);
    for (std::size_t i = 0; i < std::size(kStates); ++i)
      if (state == kStates[i]) ++entries[view.ip.is_v6() ? 1 : 0][i];
  });
  for (std::size_t family = 0; family < 2; ++family)
    for (std::size_t i = 0; i < std::size(kStates); ++i)
      out.gauge("peerlan_arpnd_entries", "Proxy ARP/ND bindings by state",
                with_more(name, {{"af", family == 0 ? "ipv4" : "ipv6"}, {"state", kStates[i]}}),
                number(entries[family][i]));
}

void collect_sponge(const Domain& domain, const Labels& name, Collector& out) {
  std::map<std::pair<std::string, std::string>, uint64_t> sponged;
  uint64_t attempts = 0;
  domain.responder().for_each_sponged([&](const proxyarp::SpongeView& view) {
    ++sponged[{view.ip.is_v6() ? "ipv6" : "ipv4", proxyarp::to_string(view.state)}];
    attempts += view.bgp_attempts;
  });
  for (const auto& [key, count] : sponged)
    out.gauge("peerlan_sponge_addresses", "Addresses that the sponge watches, by state",
              with_more(name, {{"af", key.first}, {"state", key.second}}), number(count));
  out.gauge("peerlan_sponge_bgp_attempts", "TCP SYNs to port 179 of the addresses it watches now",
            name, number(attempts));
}

// The busiest few of each kind: each is a series.
void collect_offenders(const Domain& domain, const Labels& name, Collector& out) {
  constexpr std::size_t kMostOfAKind = 10;
  std::map<std::string, std::vector<proxyarp::OffenderView>> kinds;
  domain.responder().for_each_offender([&](const proxyarp::OffenderView& view) {
    kinds[proxyarp::to_string(view.kind)].push_back(view);
  });
  for (auto& [kind, views] : kinds) {
    out.gauge("peerlan_offenders", "Offenders that are known, by kind",
              with_more(name, {{"kind", kind}}), number(views.size()));
    std::ranges::sort(views, std::greater{}, &proxyarp::OffenderView::per_minute);
    views.resize(std::min(views.size(), kMostOfAKind));
    for (const auto& view : views)
      out.gauge("peerlan_offender_frames_per_minute",
                "Over the last five minutes, the busiest of each kind",
                with_more(name, {{"kind", kind},
                                 {"port", view.port.value == 0 ? "" : domain.port_name(view.port)},
                                 {"mac", view.mac ? to_string(*view.mac) : ""},
                                 {"ip", view.ip ? to_string(*view.ip) : ""}}),
                view.per_minute);
  }
}

void collect_resolution(const Domain& domain, const Labels& name, Collector& out) {
  collect_verdicts(domain, name, out);
  collect_entries(domain, name, out);
  collect_sponge(domain, name, out);
  collect_offenders(domain, name, out);
  out.counter(
      "peerlan_dup_ip_events_total", "Addresses found to be used by two", name,
      number(domain.counters().alarms[static_cast<std::size_t>(proxyarp::AlarmKind::DuplicateIp)]));
  out.counter("peerlan_dup_mac_events_total", "MAC addresses found to move too often", name,
              number(domain.counters().duplicate_macs));
}

void collect_violations(const Domain& domain, const std::string& port, net::IfIndex index,
                        Collector& out) {
  if (index.value == 0) return;
  uint64_t violations = 0;
  std::map<std::string, uint64_t> drops;
  for (const auto& c : domain.frame_counters(index)) {
    if (!c.dropped || c.direction != dataplane::Direction::Ingress) continue;
    drops[c.reason] += c.packets;
    if (std::string_view(c.reason) == "source-mac") violations += c.packets;
  }
  const Labels labels{{"domain", domain.settings().name}, {"port", port}};
  out.counter("peerlan_port_mac_violations_total",
              "Frames with a source MAC that is not provisioned on the port", labels,
              number(violations));
  for (const auto& [reason, packets] : drops)
    out.counter("peerlan_port_drops_total", "Frames of the member that were dropped, by reason",
                with_more(labels, {{"reason", reason}}), number(packets));
}

void collect_guard(const PortState& port, const Labels& labels, Collector& out) {
  for (const auto state :
       {GuardState::Open, GuardState::Quarantine, GuardState::Shut, GuardState::Damped})
    out.gauge("peerlan_port_guard_state", "1 for the present state, 0 for the others",
              with_more(labels, {{"state", to_string(state)}}),
              port.guard.state() == state ? 1 : 0);
  out.counter("peerlan_port_closures_total",
              "Times the port was closed for violations, storms or flaps", labels,
              number(port.guard.closures()));
  for (std::size_t i = 0; i < kViolationKinds; ++i)
    out.counter("peerlan_port_violations_total", "Violations that were reported, by kind",
                with_more(labels, {{"kind", to_string(static_cast<GuardCause>(i))}}),
                number(port.violations[i]));
}

void collect_limits(const Domain& domain, const PortState& port, const Labels& labels,
                    Collector& out) {
  const auto& policy = domain.policy_of(port);
  const auto limit = [&](const char* direction, const char* bum_class,
                         const std::optional<dataplane::Limit>& of) {
    if (!of) return;
    const Labels all = with_more(labels, {{"direction", direction}, {"class", bum_class}});
    if (of->packets_per_second)
      out.gauge("peerlan_port_limit_packets", "Limit in packets a second", all,
                number(*of->packets_per_second));
    if (of->bits_per_second)
      out.gauge("peerlan_port_limit_bits", "Limit in bits a second", all,
                number(*of->bits_per_second));
  };
  for (std::size_t i = 0; i < dataplane::kBumClasses; ++i) {
    const char* name = dataplane::to_string(static_cast<dataplane::BumClass>(i));
    limit("ingress", name, policy.ingress[i]);
    limit("egress", name, policy.egress[i]);
  }
  limit("egress", "total", policy.egress_total);
}

void collect_underlay(const Underlay& underlay, Collector& out) {
  for (const auto& [name, device] : underlay.devices())
    out.gauge("peerlan_underlay_protected", "1 when frames of unknown VTEPs are dropped there",
              {{"interface", name}}, device.attached ? 1 : 0);
  for (const auto& c : underlay.counters()) {
    const std::string vtep = c.vtep.is_unspecified() ? "unknown" : to_string(c.vtep);
    const auto count = [&](const char* verdict, uint64_t packets) {
      out.counter("peerlan_vtep_frames_total", "Frames out of tunnels by VTEP and verdict",
                  {{"vtep", vtep}, {"verdict", verdict}}, number(packets));
    };
    count("passed", c.packets - std::min(c.packets, c.observed_packets));
    count("observed", c.observed_packets);
    count("dropped", c.limited_packets);
  }
}

void collect_domain(const Domain& domain, Collector& out) {
  const Labels name{{"domain", domain.settings().name},
                    {"vni", fmt::to_string(domain.settings().evpn.vni.value)}};
  const auto with = [&](const char* key, const char* value) {
    Labels labels = name;
    labels.emplace_back(key, value);
    return labels;
  };
  const evpn::MacCounts counts = domain.vrf().counts();
  const auto macs = [&](const char* where, uint64_t value) {
    out.gauge("peerlan_evpn_macs", "MAC addresses by place", with("where", where), number(value));
  };
  macs("local", counts.local);
  macs("remote", counts.remote);
  macs("unresolved", counts.unresolved);
  out.gauge("peerlan_evpn_remote_vteps", "Remote PEs in the flood list", name,
            number(domain.vrf().flood_list().size()));
  std::map<std::string, uint64_t> kinds;
  domain.responder().for_each_binding(
      [&](const proxyarp::BindingView& view) { ++kinds[proxyarp::to_string(view.kind)]; });
  for (const auto& [kind, count] : kinds)
    out.gauge("peerlan_bindings", "Proxy ARP/ND bindings by kind", with("kind", kind.c_str()),
              number(count));
  const auto& verdicts = domain.responder().counters();
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    out.counter("peerlan_responder_frames_total",
                "ARP and ND frames that reached the responder, by verdict",
                with("verdict", proxyarp::to_string(static_cast<proxyarp::Verdict>(i))),
                number(verdicts[i]));
  const auto& counters = domain.counters();
  out.counter("peerlan_kernel_repairs_total", "Kernel entries put right by reconciliation", name,
              number(counters.repairs));
  out.counter("peerlan_aged_macs_asked_total",
              "Learned MACs that the bridge aged and that were asked whether they are there", name,
              number(counters.aged_asked));
  out.counter("peerlan_aged_macs_gone_total", "Learned MACs that aged and did not answer", name,
              number(counters.aged_gone));
  out.counter("peerlan_kernel_errors_total", "Requests that the kernel refused", name,
              number(counters.kernel_errors));
  const auto alarms = [&](const char* kind, uint64_t value) {
    out.counter("peerlan_alarms_total", "Alarms by kind", with("kind", kind), number(value));
  };
  alarms("duplicate-mac", counters.duplicate_macs);
  alarms("provisioned-mac-elsewhere", counters.sticky_violations);
  for (std::size_t i = 0; i < counters.alarms.size(); ++i)
    alarms(proxyarp::to_string(static_cast<proxyarp::AlarmKind>(i)), counters.alarms[i]);
  collect_resolution(domain, name, out);
  for (const auto& [port, state] : domain.ports()) {
    const Labels labels{{"domain", domain.settings().name},
                        {"port", port},
                        {"member_as", fmt::to_string(state.settings.member_as.value)},
                        {"member", state.settings.member_name}};
    out.gauge("peerlan_port_up", "1 when the member port is attached and up", labels,
              state.up ? 1 : 0);
    out.counter("peerlan_port_flaps_total", "Times the member port went down", labels,
                number(state.flaps));
    collect_guard(state, {{"domain", domain.settings().name}, {"port", port}}, out);
    collect_limits(domain, state, {{"domain", domain.settings().name}, {"port", port}}, out);
    collect_frames(domain, port, state.index, out);
    collect_violations(domain, port, state.index, out);
  }
  collect_frames(domain, domain.settings().links.vxlan, domain.vxlan(), out);
}

// One scrape, a little each turn of the loop.
class Scrape {
 public:
  explicit Scrape(const App& app) : app_(app), peers_(app.speaker().neighbor_ids()) {}

  // True when text() is whole.
  bool step() {
    const auto limit = net::Clock::now() + kPieceTime;
    do {
      if (next_step()) return true;
    } while (net::Clock::now() < limit);
    return false;
  }
  std::string text() { return std::move(text_); }

 private:
  bool next_step() {
    if (!std::exchange(begun_, true)) {
      node();
      collect_exports(app_, out_);
    } else if (peer_ < peers_.size()) {
      if (const auto view = app_.speaker().neighbor(peers_[peer_++])) collect_neighbor(*view, out_);
    } else if (domain_ < app_.domains().size()) {
      collect_domain(*app_.domains()[domain_++], out_);
    } else if (!collected_) {
      collected_ = true;
      families_ = out_.take();
    } else if (family_ < families_.size()) {
      text_ += prometheus::TextSerializer().Serialize({families_[family_++]});
    } else {
      return true;
    }
    return false;
  }

  void node() {
    const auto& rib = app_.speaker().rib();
    out_.gauge("peerlan_build_info", "1; the version is a label", {{"version", PEERLAN_VERSION}},
               1);
    out_.gauge("peerlan_uptime_seconds", "Seconds since the daemon started", {},
               std::chrono::duration<double>(net::Clock::now() - app_.started()).count());
    out_.gauge("peerlan_loop_delay_seconds",
               "The longest that the event loop was late in the last minute", {},
               std::chrono::duration<double>(app_.loop_delay()).count());
    out_.gauge("peerlan_bgp_routes", "Routes (keys) in the RIB", {}, number(rib.route_count()));
    out_.gauge("peerlan_bgp_paths", "Paths in the RIB", {}, number(rib.path_count()));
    out_.gauge("peerlan_bgp_rib_bytes", "Memory of routes, paths and attributes", {},
               number(rib.memory_bytes()));
    collect_rejected_connections(app_, out_);
    const auto& hops = app_.next_hops();
    out_.gauge("peerlan_next_hops", "Tunnel endpoints of other PEs that are watched", {},
               number(hops.all().size()));
    out_.gauge("peerlan_next_hops_unreachable", "Those that the kernel has no route to", {},
               number(hops.unreachable().size()));
    out_.counter("peerlan_next_hop_changes_total", "Times that such a route came or went", {},
                 number(hops.changes()));
    out_.counter("peerlan_kernel_events_lost_total", "Times netlink events were lost", {},
                 number(app_.events_lost()));
    out_.counter("peerlan_reconciliations_total", "Full comparisons with the kernel", {},
                 number(app_.reconciliations()));
    if (app_.underlay() != nullptr) collect_underlay(*app_.underlay(), out_);
    if (app_.fast_path() != nullptr)
      out_.counter("peerlan_punts_lost_total", "Punts that found the ring buffer full", {},
                   number(app_.fast_path()->punts_lost()));
  }

  const App& app_;
  const std::vector<bgp::PeerId> peers_;
  Collector out_;
  std::vector<prometheus::MetricFamily> families_;
  std::string text_;
  std::size_t peer_ = 0, domain_ = 0, family_ = 0;
  bool begun_ = false, collected_ = false;
};

}  // namespace

std::string metrics_text(const App& app) {
  Scrape scrape(app);
  while (!scrape.step()) {
  }
  return scrape.text();
}

struct MetricsServer::Session : std::enable_shared_from_this<Session> {
  Session(MetricsServer& owner, asio::ip::tcp::socket socket)
      : server(owner), stream(std::move(socket)), open(owner.open_) {
    parser.header_limit(kMaxRequest);
    parser.body_limit(kMaxRequest);
    ++*open;
  }
  ~Session() { --*open; }

  void start() {
    stream.expires_after(std::chrono::seconds(5));
    http::async_read(stream, buffer, parser,
                     [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

  void answer() {
    const auto& request = parser.get();
    response.version(request.version());
    response.keep_alive(false);
    response.set(http::field::server, "peerland");
    response.set(http::field::content_type, "text/plain; charset=utf-8");
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response.result(http::status::method_not_allowed);
      response.set(http::field::allow, "GET, HEAD");
    } else if (request.target() != "/metrics") {
      response.result(http::status::not_found);
      response.body() = "try /metrics\n";
    } else {
      response.result(http::status::ok);
      response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
      scrape = std::make_unique<Scrape>(server.app_);
      return collect();
    }
    reply();
  }

  void collect() {
    if (scrape->step()) {
      response.body() = scrape->text();
      return reply();
    }
    asio::post(server.io_, [self = shared_from_this()] { self->collect(); });
  }

  void reply() {
    response.prepare_payload();
    if (parser.get().method() == http::verb::head) response.body().clear();
    stream.expires_after(std::chrono::seconds(30));
    http::async_write(
        stream, response, [self = shared_from_this()](const beast::error_code&, std::size_t) {
          beast::error_code ignored;
          self->stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
        });
  }

  MetricsServer& server;
  beast::tcp_stream stream;
  beast::flat_buffer buffer{kMaxRequest * 2};
  http::request_parser<http::string_body> parser;
  http::response<http::string_body> response;
  std::unique_ptr<Scrape> scrape;
  std::shared_ptr<std::size_t> open;
};

MetricsServer::MetricsServer(asio::io_context& io, const App& app)
    : io_(io), app_(app), acceptor_(io) {}

std::expected<void, std::string> MetricsServer::open(const net::IpAddress& address, uint16_t port) {
  boost::system::error_code error;
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(to_string(address)), port);
  const auto failed = [&] {
    return std::unexpected(fmt::format("metrics: listen on {} port {}: {}", to_string(address),
                                       port, error.message()));
  };
  acceptor_.open(endpoint.protocol(), error);
  if (error) return failed();
  acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  acceptor_.bind(endpoint, error);
  if (error) return failed();
  acceptor_.listen(16, error);
  if (error) return failed();
  accept();
  return {};
}

void MetricsServer::accept() {
  acceptor_.async_accept(
      [this](const boost::system::error_code& error, asio::ip::tcp::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (!error && *open_ < kMaxScrapers)
          std::make_shared<Session>(*this, std::move(socket))->start();
        accept();
      });
}

}  // namespace peerland
