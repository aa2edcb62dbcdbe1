// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/proxy_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/app.h"
#include "daemon/domain_views.h"
#include "daemon/json_values.h"

namespace peerland {
namespace {

namespace json = boost::json;

constexpr std::size_t kRows = 64;  // between two looks at the clock

json::value optional_mac(const std::optional<net::MacAddress>& mac) {
  return mac ? json::value(to_string(*mac)) : json::value(nullptr);
}
json::value optional_as(net::AsNumber as) {
  return as.value != 0 ? json::value(as.value) : json::value(nullptr);
}
int64_t seconds(net::Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}
// Of a rate, so that it reads well.
double tenths(double value) { return std::round(value * 10) / 10; }

json::object head(const Domain& domain) {
  return {{"domain", domain.settings().name}, {"vni", domain.settings().evpn.vni.value}};
}

bool equal_ignoring_case(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// "64501", "AS64501", or a part of the name.
bool is_member(const std::string& wanted, net::AsNumber as, const std::string& name) {
  std::string_view number = wanted;
  if (number.size() > 2 && equal_ignoring_case(number[0], 'a') &&
      equal_ignoring_case(number[1], 's'))
    number.remove_prefix(2);
  uint32_t parsed = 0;
  if (const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), parsed);
      error == std::errc{} && end == number.data() + number.size())
    return as.value == parsed;
  return !std::ranges::search(name, wanted, equal_ignoring_case).empty();
}

json::object binding_row(const Domain& domain, const proxyarp::BindingView& view) {
  static constexpr const char* kWhere[] = {"nowhere", "local", "remote"};
  const bool local = view.where == proxyarp::MacWhere::LocalPort;
  json::array allowed;
  for (const auto& mac : view.allowed) allowed.emplace_back(to_string(mac));
  json::value vtep = nullptr;
  if (view.where == proxyarp::MacWhere::Remote && view.mac)
    if (const auto place = domain.vrf().place_of(*view.mac);
        const auto* away = std::get_if<evpn::AtVtep>(&place))
      vtep = to_string(away->vtep);
  const auto use = domain.kernel_use(view.ip);
  json::object row = head(domain);
  row["ip"] = to_string(view.ip);
  row["mac"] = optional_mac(view.mac);
  row["allowed_macs"] = std::move(allowed);
  row["kind"] = proxyarp::to_string(view.kind);
  row["state"] = state_of(view);
  row["where"] = kWhere[static_cast<std::size_t>(view.where)];
  row["port"] = local ? json::value(domain.port_name(view.port)) : json::value(nullptr);
  row["vtep"] = std::move(vtep);
  row["answered"] = view.answered;
  row["in_kernel"] = use.has_value();
  row["router"] = view.flags.router;
  row["override"] = view.flags.override_flag;
  row["immutable"] = view.immutable;
  row["age_seconds"] = seconds(view.age);
  row["kernel_answers"] = use ? use->answers : 0;
  row["daemon_answers"] = view.answers;
  row["last_asker"] = optional_mac(use && use->last_asker ? use->last_asker : view.last_asker);
  row["member_as"] = optional_as(view.member_as);
  row["member_name"] = optional_text(view.member_name);
  return row;
}

bool wants_binding(const Filter& filter, const Domain& domain, const proxyarp::BindingView& view) {
  if (filter.ip && view.ip != *filter.ip) return false;
  if (filter.mac && view.mac != filter.mac && !std::ranges::count(view.allowed, *filter.mac))
    return false;
  if (!filter.port.empty() &&
      (view.where != proxyarp::MacWhere::LocalPort || filter.port != domain.port_name(view.port)))
    return false;
  if (filter.member.empty()) return true;
  if (is_member(filter.member, view.member_as, view.member_name)) return true;
  const auto* port =
      view.where == proxyarp::MacWhere::LocalPort ? member_of(domain, view.port) : nullptr;
  return port != nullptr && is_member(filter.member, port->member_as, port->member_name);
}

// One walk over the bindings of all domains. A domain that a reload takes away ends its part.
class BindingWalk {
 public:
  BindingWalk(const App& app, const Filter& filter) : app_(app), filter_(filter) {
    for (const auto& domain : app.domains())
      if (wants(filter, *domain)) names_.push_back(domain->settings().name);
  }
  BindingWalk(const BindingWalk&) = delete;
  BindingWalk& operator=(const BindingWalk&) = delete;

  std::optional<std::string> next() {
    if (through_) return std::nullopt;
    std::string text;
    if (!std::exchange(begun_, true)) text = fmt::format("{{\"schema\":{},\"bindings\":[", kSchema);
    const auto limit = net::Clock::now() + kPieceTime;
    while (at_ < names_.size() && text.size() < kPieceOctets && net::Clock::now() < limit)
      add(text);
    if (at_ >= names_.size()) {
      through_ = true;
      text += fmt::format("\n],\"total\":{}}}\n", total_);
    }
    return text;
  }

 private:
  void add(std::string& text) {
    const auto found = std::ranges::find_if(
        app_.domains(), [&](const auto& domain) { return domain->settings().name == names_[at_]; });
    std::size_t seen = 0;
    if (found != app_.domains().end())
      (*found)->responder().for_each_binding_after(after_, [&](const proxyarp::BindingView& view) {
        after_ = view.ip;
        if (wants_binding(filter_, **found, view)) {
          text += total_++ == 0 ? "\n" : ",\n";
          text += json::serialize(binding_row(**found, view));
        }
        return ++seen < kRows;
      });
    if (seen == kRows) return;
    ++at_;
    after_.reset();
  }

  const App& app_;
  const Filter filter_;
  std::vector<std::string> names_;
  std::size_t at_ = 0;
  std::optional<net::IpAddress> after_;
  uint64_t total_ = 0;
  bool begun_ = false, through_ = false;
};

// Where a claimant is.
void add_place(json::object& row, const std::string& prefix, const Domain& domain,
               net::MacAddress mac, const proxyarp::ClaimPlace& place) {
  const bool local = place.where == proxyarp::MacWhere::LocalPort;
  const auto at = domain.vrf().place_of(mac);
  const auto* away = std::get_if<evpn::AtVtep>(&at);
  row[prefix + "_mac"] = to_string(mac);
  row[prefix + "_port"] = local ? json::value(domain.port_name(place.port)) : json::value(nullptr);
  row[prefix + "_vtep"] =
      !local && away != nullptr ? json::value(to_string(away->vtep)) : json::value(nullptr);
}

template <class Add>
void each_domain(const App& app, const Filter& filter, Add add) {
  for (const auto& domain : app.domains())
    if (wants(filter, *domain)) add(*domain);
}

}  // namespace

const dataplane::MemberPort* member_of(const Domain& domain, net::IfIndex port) {
  const auto* state = domain.find_port(port);
  return state == nullptr ? nullptr : &state->settings;
}

void add_member(json::object& row, const dataplane::MemberPort* member) {
  row["member_as"] = member == nullptr ? json::value(nullptr) : optional_as(member->member_as);
  row["member_name"] =
      member == nullptr ? json::value(nullptr) : optional_text(member->member_name);
}

const char* state_of(const proxyarp::BindingView& view) {
  if (view.duplicate) return "duplicate";
  if (view.pending) return "pending";
  return view.mac && view.where != proxyarp::MacWhere::Nowhere ? "active" : "inactive";
}

bool is_drop(proxyarp::Verdict verdict) {
  using enum proxyarp::Verdict;
  return verdict != Answered && verdict != Learned && verdict != Flooded && verdict != Forwarded &&
         verdict != Sponged && verdict != Pending && verdict != Exempt;
}

std::expected<Answer, std::string> show_bindings(const App& app, const Filter& filter) {
  return [walk = std::make_shared<BindingWalk>(app, filter)] { return walk->next(); };
}

json::object duplicates(const App& app, const Filter& filter) {
  json::array rows;
  each_domain(app, filter, [&](const Domain& domain) {
    domain.responder().for_each_duplicate([&](const proxyarp::DuplicateView& view) {
      if (filter.ip && view.ip != *filter.ip) return;
      json::object row = head(domain);
      row["ip"] = to_string(view.ip);
      row["frozen"] = view.frozen;
      row["moves"] = view.moves;
      add_place(row, "first", domain, view.first, view.first_at);
      row["first_as"] = optional_as(view.first_as);
      add_place(row, "second", domain, view.second, view.second_at);
      row["second_as"] = optional_as(view.second_as);
      row["since_seconds"] = seconds(view.since);
      row["remaining_seconds"] = seconds(view.remaining);
      row["anti_spoof"] = view.anti_spoof;
      rows.push_back(std::move(row));
    });
  });
  return {{"duplicates", std::move(rows)}};
}

json::object sponge(const App& app, const Filter& filter) {
  json::array rows;
  each_domain(app, filter, [&](const Domain& domain) {
    domain.responder().for_each_sponged([&](const proxyarp::SpongeView& view) {
      if (filter.ip && view.ip != *filter.ip) return;
      json::object row = head(domain);
      row["ip"] = to_string(view.ip);
      row["state"] = proxyarp::to_string(view.state);
      row["state_seconds"] = seconds(view.since);
      row["queued"] = view.queued;
      row["per_minute"] = tenths(view.rate);
      row["questions"] = view.questions;
      row["answers"] = view.answers;
      row["bgp_attempts"] = view.bgp_attempts;
      row["asked_seconds"] = seconds(view.asked);
      row["last_asker"] = optional_mac(view.last_asker);
      rows.push_back(std::move(row));
    });
  });
  return {{"sponge", std::move(rows)}};
}

json::object offenders(const App& app, const Filter& filter) {
  json::array rows;
  each_domain(app, filter, [&](const Domain& domain) {
    domain.responder().for_each_offender([&](const proxyarp::OffenderView& view) {
      const std::string port = view.port.value == 0 ? "" : domain.port_name(view.port);
      if (!filter.port.empty() && filter.port != port) return;
      json::object row = head(domain);
      row["kind"] = proxyarp::to_string(view.kind);
      row["port"] = optional_text(port);
      row["mac"] = optional_mac(view.mac);
      row["ip"] = view.ip ? json::value(to_string(*view.ip)) : json::value(nullptr);
      row["count"] = view.count;
      row["per_minute"] = tenths(view.per_minute);
      row["first_seconds"] = seconds(view.first);
      row["last_seconds"] = seconds(view.last);
      add_member(row, member_of(domain, view.port));
      rows.push_back(std::move(row));
    });
  });
  return {{"offenders", std::move(rows)}};
}

std::expected<Domain*, std::string> domain_of(const App& app, const Filter& filter,
                                              const net::IpAddress& ip) {
  std::vector<Domain*> fit;
  std::string names;
  for (const auto& domain : app.domains()) {
    if (!wants(filter, *domain)) continue;
    names += (names.empty() ? "" : ", ") + domain->settings().name;
    const auto& proxy = domain->settings().proxy;
    if (ip.is_link_local() ||
        std::ranges::any_of(proxy.prefixes, [&](const auto& p) { return p.contains(ip); }) ||
        std::ranges::count(proxy.decoys.addresses, ip) > 0)
      fit.push_back(domain.get());
  }
  if (fit.size() == 1) return fit.front();
  if (names.empty()) return std::unexpected("there is no such broadcast domain");
  if (fit.empty())
    return std::unexpected(
        fmt::format("{} is outside of the prefixes of {}", to_string(ip), names));
  return std::unexpected(
      fmt::format("{} may be of several broadcast domains: say which ({})", to_string(ip), names));
}

std::expected<Answer, std::string> show_explanation(const App& app, const Filter& filter) {
  if (!filter.ip) return std::unexpected("ip: expected an IP address");
  const auto domain = domain_of(app, filter, *filter.ip);
  if (!domain) return std::unexpected(domain.error());
  std::optional<net::IfIndex> port;
  if (!filter.port.empty()) {
    const auto found = (*domain)->ports().find(filter.port);
    if (found == (*domain)->ports().end() || found->second.index.value == 0)
      return std::unexpected(fmt::format("port: there is no {}", filter.port));
    port = found->second.index;
  }
  const auto e = (*domain)->responder().explain(*filter.ip, port, net::Clock::now());
  json::array rules;
  for (const auto& rule : e.rules) rules.emplace_back(rule);
  json::object about = head(**domain);
  about["ip"] = to_string(*filter.ip);
  about["port"] = optional_text(filter.port);
  about["database"] = optional_text(e.database);
  about["learned"] = optional_text(e.learned);
  about["evpn"] = optional_text(e.evpn);
  about["verdict"] = proxyarp::to_string(e.verdict);
  about["answer"] = optional_mac(e.answer);
  about["by_kernel"] = (*domain)->kernel_use(*filter.ip).has_value();
  about["rules"] = std::move(rules);
  about["binding"] =
      e.binding ? json::value(binding_row(**domain, *e.binding)) : json::value(nullptr);
  return whole(
      json::serialize(json::object{{"schema", kSchema}, {"explanation", std::move(about)}}) + "\n");
}

}  // namespace peerland
