// SPDX-License-Identifier: GPL-2.0-or-later
// Between two pieces a reload may remove a domain or a port, so a walk remembers where it is by
// name and address.
#include "daemon/domain_views.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>
#include <vector>

#include "daemon/app.h"
#include "daemon/domain_walk.h"
#include "daemon/json_values.h"
#include "daemon/list_answer.h"
#include "daemon/proxy_view.h"

namespace peerland {
namespace {

namespace json = boost::json;

constexpr std::size_t kRows = 64;  // between two looks at the clock
// --- MACs

void add_mac(const Domain& domain, const Filter& filter, const evpn::MacView& view, Rows& rows) {
  if (filter.mac && view.mac != *filter.mac) return;
  const auto* at = std::get_if<evpn::AtPort>(&view.place);
  const auto* away = std::get_if<evpn::AtVtep>(&view.place);
  const auto vtep = away != nullptr ? std::optional(away->vtep) : std::nullopt;
  const std::string port = at != nullptr ? domain.port_name(at->port) : "";
  if (!filter.port.empty() && filter.port != port) return;
  json::array ips;
  for (const auto& ip : view.ips) ips.emplace_back(to_string(ip));
  json::object row{
      {"domain", domain.settings().name},
      {"vni", domain.settings().evpn.vni.value},
      {"mac", to_string(view.mac)},
      {"where", at != nullptr     ? "local"
                : away != nullptr ? "remote"
                                  : "nowhere"},
      {"port", optional_text(port)},
      {"vtep", or_null(vtep)},
      {"esi", optional_text(view.esi.is_zero() ? "" : to_string(view.esi))},
      {"unresolved", view.unresolved},
      {"unreachable", or_null(view.unreachable)},
      {"sticky", (at != nullptr && at->sticky) || (away != nullptr && away->sticky)},
      {"sequence", view.sequence},
      {"advertised", view.advertised},
      {"duplicate", view.duplicate},
      {"moves", view.moves},
      {"ips", std::move(ips)},
  };
  add_member(row, at != nullptr ? member_of(domain, at->port) : nullptr);
  add(rows, row);
}

bool step_macs(const Domain& domain, const Filter& filter, std::optional<net::MacAddress>& last,
               Rows& rows) {
  const auto views = domain.vrf().macs_after(last, kRows);
  for (const auto& view : views) add_mac(domain, filter, view, rows);
  if (!views.empty()) last = views.back().mac;
  return views.size() == kRows;
}

// --- drops

struct Drop {
  const char* direction;
  std::string bum_class, reason;
  uint64_t packets = 0;
  json::value bytes;
};

void add_drop(const Domain& domain, const std::string& port, const dataplane::MemberPort* member,
              Drop drop, Rows& rows) {
  json::object row{
      {"domain", domain.settings().name}, {"port", port},          {"direction", drop.direction},
      {"class", drop.bum_class},          {"reason", drop.reason}, {"packets", drop.packets},
      {"bytes", std::move(drop.bytes)}};
  add_member(row, member);
  add(rows, row);
}

bool step_drops(const Domain& domain, const Filter& filter, std::optional<std::string>& last,
                Rows& rows) {
  const PortState* port = nullptr;
  if (!next_port(domain, last, port)) return false;
  const std::string& name =
      port != nullptr ? port->settings.interface : domain.settings().links.vxlan;
  const dataplane::MemberPort* member = port != nullptr ? &port->settings : nullptr;
  const net::IfIndex index = port != nullptr ? port->index : domain.vxlan();
  if (!filter.port.empty() && filter.port != name) return true;
  if (index.value != 0)
    for (const auto& c : domain.frame_counters(index))
      if (c.dropped)
        add_drop(domain, name, member,
                 {dataplane::to_string(c.direction), c.bum_class, c.reason, c.packets, c.bytes},
                 rows);
  if (port == nullptr) return true;
  for (std::size_t i = 0; i < port->verdicts.size(); ++i) {
    const auto verdict = static_cast<proxyarp::Verdict>(i);
    if (port->verdicts[i] > 0 && is_drop(verdict))
      add_drop(domain, name, member,
               {"ingress", "responder", proxyarp::to_string(verdict), port->verdicts[i], nullptr},
               rows);
  }
  return true;
}

}  // namespace

bool wants(const Filter& filter, const Domain& domain) {
  return (!filter.vni || *filter.vni == domain.settings().evpn.vni.value) &&
         (filter.domain.empty() || filter.domain == domain.settings().name);
}

int64_t seconds_between(net::TimePoint from, net::TimePoint to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

std::expected<Answer, std::string> show_macs(const App& app, const Filter& filter) {
  return list_answer("macs", DomainWalk<net::MacAddress>(app, filter, step_macs));
}

std::expected<Answer, std::string> show_drops(const App& app, const Filter& filter) {
  return list_answer("drops", DomainWalk<std::string>(app, filter, step_drops));
}

}  // namespace peerland
