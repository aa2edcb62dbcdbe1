// SPDX-License-Identifier: GPL-2.0-or-later
// A walk over the broadcast domains and what is in each, for views that are made in pieces. Between
// two pieces a reload may remove a domain or a port, so it remembers where it is by name and key.
#pragma once
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/app.h"
#include "daemon/domain_views.h"
#include "daemon/filter.h"

namespace peerland {

using Rows = std::vector<std::string>;

inline void add(Rows& rows, const boost::json::object& row) {
  rows.push_back(boost::json::serialize(row));
}

// `step` adds the rows behind `last` and moves it; false: the domain is through.
template <class Key>
class DomainWalk {
 public:
  using Step = bool (*)(const Domain& domain, const Filter& filter, std::optional<Key>& last,
                        Rows& rows);
  DomainWalk(const App& app, const Filter& filter, Step step)
      : app_(app), filter_(filter), step_(step) {
    for (const auto& domain : app.domains())
      if (wants(filter, *domain)) names_.push_back(domain->settings().name);
  }

  bool operator()(Rows& rows) {
    if (at_ == names_.size()) return false;
    const auto& domains = app_.domains();
    const auto found = std::ranges::find_if(
        domains, [&](const auto& domain) { return domain->settings().name == names_[at_]; });
    if (found == domains.end() || !step_(**found, filter_, last_, rows)) {
      last_.reset();
      ++at_;
    }
    return at_ < names_.size();
  }

 private:
  const App& app_;
  Filter filter_;
  Step step_;
  std::vector<std::string> names_;
  std::size_t at_ = 0;
  std::optional<Key> last_;
};

// The next member port behind `last`, and then, once, null for the VXLAN device. False: no more.
// One at a time: their counters are read from the kernel.
[[nodiscard]] bool next_port(const Domain& domain, std::optional<std::string>& last,
                             const PortState*& port);

}  // namespace peerland
