// SPDX-License-Identifier: GPL-2.0-or-later
// A reload of the App: reads the file, says what would change, refuses what can't or should not,
// applies the rest as a difference, and undoes it when nobody confirms.
//
// What names a thing decides what happens to it: a neighbor whose session settings did not change
// keeps its session; a broadcast domain of the same name keeps its devices, ports and entries
// unless its devices, VNI or responder change, then it alone starts again.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "bgp/io/neighbor_settings.h"
#include "config/diff.h"
#include "daemon/answer.h"
#include "daemon/app.h"
#include "daemon/json_values.h"
#include "daemon/mrt_writer.h"
#include "daemon/underlay.h"

namespace peerland {
namespace {

namespace json = boost::json;

// What can't change under a running daemon, or nothing.
std::string fixed(const config::NodeSettings& before, const config::NodeSettings& after) {
  if (before.vtep != after.vtep) return "vtep";
  if (before.bgp.local_as != after.bgp.local_as) return "as";
  if (before.bgp.router_id != after.bgp.router_id) return "router-id";
  if (before.bgp.cluster_id != after.bgp.cluster_id) return "bgp.cluster-id";
  if (before.bgp.listen != after.bgp.listen) return "bgp.listen";
  if (before.pin_directory != after.pin_directory) return "pin-directory";
  if (before.control_socket != after.control_socket) return "control.socket";
  if (before.metrics_listen != after.metrics_listen) return "metrics.listen";
  if (before.log.file != after.log.file) return "log.file";
  return "";
}

std::string restart_needed(const std::string& what) {
  return fmt::format("{} can't be changed while running; restart the daemon (the data path stays)",
                     what);
}

// What can't be done to live devices: the domain is taken down and made again.
bool starts_again(const config::BroadcastDomain& before, const config::BroadcastDomain& after) {
  dataplane::Links live = after.links;
  live.mtu = before.links.mtu;
  live.flood_unknown_unicast = before.links.flood_unknown_unicast;
  live.ageing = before.links.ageing;
  return live != before.links || before.responder != after.responder;
}

// Why it should not be done without --force, or nothing.
std::string too_many_members_go(const config::Difference& difference, unsigned percent) {
  std::string text;
  for (const auto& loss : difference.beyond(percent))
    text += fmt::format("{}{} of the {} members of {} would be removed, more than {} %",
                        text.empty() ? "" : "; ", loss.removed, loss.before, loss.domain, percent);
  return text;
}

std::string errors_text(const std::vector<config::Error>& errors) {
  std::string text;
  for (const auto& error : errors) text += to_string(error) + "\n";
  return text;
}

const bgp::NeighborSettings* find_neighbor(const bgp::Settings& in,
                                           const bgp::NeighborSettings& like) {
  const auto found = std::ranges::find_if(in.neighbors, [&](const auto& one) {
    return one.address == like.address && one.interface == like.interface;
  });
  return found == in.neighbors.end() ? nullptr : &*found;
}

// Names of what is interrupted by the change, as config::Change has them.
struct Interruptions {
  std::vector<std::string> neighbors, domains;
};
Interruptions interruptions(const config::NodeSettings& before, const config::NodeSettings& after) {
  Interruptions out;
  for (const auto& fresh : after.bgp.neighbors)
    if (const auto* old = find_neighbor(before.bgp, fresh);
        old != nullptr && !bgp::io::same_session(*old, fresh))
      out.neighbors.push_back(net::to_string(fresh.address) +
                              (fresh.interface.empty() ? "" : "%" + fresh.interface));
  for (const auto& fresh : after.domains) {
    const auto old = std::ranges::find(before.domains, fresh.name, &config::BroadcastDomain::name);
    if (old != before.domains.end() && starts_again(*old, fresh)) out.domains.push_back(fresh.name);
  }
  return out;
}

const char* effect(const config::Change& change, const Interruptions& interrupted) {
  if (change.kind != config::ChangeKind::Changed) return nullptr;
  const auto begins = [&](const std::string& name) {
    return change.name == name || change.name.starts_with(name + " (");
  };
  if (change.subject == config::Subject::Neighbor &&
      std::ranges::any_of(interrupted.neighbors, begins))
    return "the session starts again";
  if (change.subject == config::Subject::BroadcastDomain &&
      std::ranges::find(interrupted.domains, change.name) != interrupted.domains.end())
    return "the broadcast domain starts again";
  return nullptr;
}

json::array rows(const config::Difference& difference, const Interruptions& interrupted) {
  json::array changes;
  for (const auto& change : difference.changes) {
    json::array fields;
    for (const auto& field : change.fields)
      fields.push_back(json::object{{"field", field.key},
                                    {"before", optional_text(field.before)},
                                    {"after", optional_text(field.after)}});
    const char* what = effect(change, interrupted);
    changes.push_back(json::object{
        {"change", to_string(change.kind)},
        {"what", to_string(change.subject)},
        {"name", change.name},
        {"domain", optional_text(change.domain)},
        {"effect", what == nullptr ? json::value(nullptr) : json::value(what)},
        {"fields", std::move(fields)},
    });
  }
  return changes;
}

}  // namespace

std::expected<std::string, std::string> App::reload_difference() const {
  auto loaded = config::load(settings_file_);
  if (!loaded) return std::unexpected(errors_text(loaded.error()));
  const config::NodeSettings& fresh = loaded->settings;
  const auto difference = config::difference(settings_, fresh);
  const std::string restart = fixed(settings_, fresh);
  const std::string many = too_many_members_go(difference, fresh.reload.max_removed_members);
  json::array losses, warnings;
  for (const auto& loss : difference.losses)
    losses.push_back(
        json::object{{"domain", loss.domain}, {"members", loss.before}, {"removed", loss.removed}});
  for (const auto& warning : loaded->warnings) warnings.emplace_back(to_string(warning));
  return json::serialize(json::object{
             {"schema", kSchema},
             {"settings_file", settings_file_},
             {"refused", optional_text(restart.empty() ? many : restart_needed(restart))},
             {"force_helps", restart.empty() && !many.empty()},
             {"changes", rows(difference, interruptions(settings_, fresh))},
             {"members_removed", std::move(losses)},
             {"warnings", std::move(warnings)},
         }) +
         "\n";
}

std::expected<std::string, std::string> App::reload(const ReloadOptions& options) {
  const auto unchanged = [](const std::string& why) {
    return std::unexpected(why + "; nothing was changed");
  };
  if (unconfirmed_ && !options.confirm)
    return unchanged("the last reload is not confirmed: peerlan confirm, or peerlan rollback");
  auto loaded = config::load(settings_file_);
  if (!loaded) return std::unexpected(errors_text(loaded.error()) + "nothing was changed");
  const config::NodeSettings& fresh = loaded->settings;
  if (const auto what = fixed(settings_, fresh); !what.empty())
    return unchanged(settings_file_ + ": " + restart_needed(what));
  const auto difference = config::difference(settings_, fresh);
  if (!options.force)
    if (const auto why = too_many_members_go(difference, fresh.reload.max_removed_members);
        !why.empty())
      return unchanged(why + "; --force does it all the same");
  config::NodeSettings before = settings_;
  auto applied = apply_settings(fresh);
  if (!applied) return applied;
  for (const auto& warning : loaded->warnings) *applied += "warning: " + to_string(warning) + "\n";
  log_.logger().info("{}: settings reloaded, {} changes", settings_.name,
                     difference.changes.size());
  if (!options.confirm) return *applied + "settings applied";
  // A second one before the first is confirmed goes back to what was confirmed last.
  if (!unconfirmed_) unconfirmed_.emplace(std::move(before), net::TimePoint{});
  unconfirmed_->until = net::Clock::now() + *options.confirm;
  confirm_timer_.expires_at(unconfirmed_->until);
  confirm_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && unconfirmed_)
      if (auto back = roll_back("nobody confirmed them in time"); !back)
        log_.logger().error("{}", back.error());
  });
  return *applied + fmt::format("settings applied; they are undone in {} s unless confirmed",
                                options.confirm->count());
}

std::optional<net::TimePoint> App::confirm_until() const {
  return unconfirmed_ ? std::optional(unconfirmed_->until) : std::nullopt;
}

std::expected<std::string, std::string> App::confirm_reload() {
  if (!unconfirmed_) return std::unexpected("no reload waits to be confirmed");
  unconfirmed_.reset();
  confirm_timer_.cancel();
  log_.logger().info("{}: settings confirmed", settings_.name);
  return "settings confirmed";
}

std::expected<std::string, std::string> App::roll_back(const std::string& why) {
  if (!unconfirmed_) return std::unexpected("no reload waits to be confirmed");
  const config::NodeSettings before = std::move(unconfirmed_->before);
  unconfirmed_.reset();
  confirm_timer_.cancel();
  auto applied = apply_settings(before);
  if (!applied) return std::unexpected("rollback: " + applied.error());
  log_.logger().warn("{}: the former settings are back: {}; {} still has the others",
                     settings_.name, why, settings_file_);
  return *applied + "the former settings are back; " + settings_file_ + " still has the others";
}

// Nothing has changed when it fails.
std::expected<std::string, std::string> App::apply_settings(const config::NodeSettings& fresh) {
  if (!fresh.domains.empty())
    if (auto opened = open_data_path(fresh); !opened)
      return std::unexpected(opened.error() + "; nothing was changed");
  // Before the speaker asks for them; nothing is judged yet.
  RoutePolicies before = std::exchange(route_policies_, RoutePolicies(fresh, route_policies_));
  if (auto changed = speaker_->reconfigure(fresh.bgp); !changed) {
    route_policies_ = std::move(before);
    return std::unexpected(changed.error().what + "; nothing was changed");
  }
  apply_route_policies();
  settings_ = fresh;
  log_.logger().set_level(spdlog::level::from_str(settings_.log.level));
  if (!settings_.domains.empty()) next_hops_.configure(settings_.next_hop_tracking);
  speaker_->set_import_targets(import_targets(settings_));
  start_exports(fresh.bgp);
  const std::string text = apply_domains(settings_);
  for (const auto& domain : domains_) domain->traffic().set_interval(fresh.report_interval);
  apply_underlay();
  arm_tick();
  return text;
}

// Those that go first: others may take their ports, VNIs and devices.
std::string App::apply_domains(const config::NodeSettings& fresh) {
  const auto now = net::Clock::now();
  std::string text;
  const auto find = [&](const std::string& name) {
    return std::ranges::find(fresh.domains, name, &config::BroadcastDomain::name);
  };
  for (std::size_t i = domains_.size(); i-- > 0;) {
    const auto found = find(domains_[i]->settings().name);
    const bool gone = found == fresh.domains.end();
    if (!gone && !starts_again(domains_[i]->settings(), *found)) continue;
    text += fmt::format("{} broadcast domain {}\n", gone ? "removed" : "started again",
                        domains_[i]->settings().name);
    remove_domain(i);
  }
  // Whoever uses a route for the first time must know whether its PE can be reached.
  for_each_best([this](const evpn::Route&, const bgp::AttributesPtr& attributes) {
    next_hops_.track(attributes->next_hop);
  });
  const auto routes = [this](const auto& visit) { for_each_best(visit); };
  for (const auto& domain : domains_)
    domain->apply(*find(domain->settings().name), fresh.policies, routes, now);
  for (const auto& domain : fresh.domains) {
    if (std::ranges::any_of(domains_,
                            [&](const auto& d) { return d->settings().name == domain.name; }))
      continue;
    Domain* added = add_domain(domain);
    if (auto begun = added->start(now); !begun) {
      text += begun.error() + "\n";
      domains_.pop_back();
      continue;
    }
    for (const auto& vtep : next_hops_.unreachable()) added->reachable(vtep, false, now);
    for_each_best([&](const evpn::Route& route, const bgp::AttributesPtr& attributes) {
      added->remote_route(route, attributes, now);
    });
    added->flush();
    if (converged_) added->converged(now);
    if (!text.contains("started again broadcast domain " + domain.name + "\n"))
      text += "added broadcast domain " + domain.name + "\n";
  }
  return text;
}

void App::remove_domain(std::size_t index) {
  Domain& domain = *domains_[index];
  domain.withdraw_all(net::Clock::now());
  if (auto removed = kernel_->teardown(domain.settings().links); !removed)
    log_.logger().error("{}", removed.error().what);
  domains_.erase(domains_.begin() + static_cast<std::ptrdiff_t>(index));
  drop_stale_ports();
}

}  // namespace peerland
