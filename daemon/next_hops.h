// SPDX-License-Identifier: GPL-2.0-or-later
// Next-hop tracking: which tunnel endpoints of other PEs the kernel has a route to. One that is not
// known, or can't be looked up, counts as reachable.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "dataplane/route_watch.h"
#include "net/ip_address.h"

namespace peerland {

using NextHopChange = std::pair<net::IpAddress, bool>;  // reachable now

class NextHops {
 public:
  // `changed` is called from within track(), configure() and check(), too.
  NextHops(boost::asio::io_context& io,
           std::function<void(const std::vector<NextHopChange>&)> changed);

  void configure(config::NextHopTracking mode);
  // From now on; looked up at once if it is new.
  void track(const net::IpAddress& vtep);
  // Forgets all others.
  void keep(const std::set<net::IpAddress>& vteps);
  void check();  // looks all up again
  void stop() { watch_.reset(); }

  [[nodiscard]] std::set<net::IpAddress> unreachable() const;
  [[nodiscard]] const std::map<net::IpAddress, bool>& all() const { return reachable_; }
  [[nodiscard]] uint64_t changes() const { return changes_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }  // why nothing is tracked

 private:
  bool look_up(const net::IpAddress& vtep);

  boost::asio::io_context& io_;
  std::function<void(const std::vector<NextHopChange>&)> changed_;
  config::NextHopTracking mode_ = config::NextHopTracking::Off;
  std::unique_ptr<dataplane::RouteWatch> watch_;
  std::map<net::IpAddress, bool> reachable_;
  uint64_t changes_ = 0;
  std::string problem_;
};

}  // namespace peerland
