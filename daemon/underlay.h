// SPDX-License-Identifier: GPL-2.0-or-later
// The devices that tunnels arrive through: which VTEPs may send into our VNIs, how much each, and
// who tried without being one.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/settings.h"
#include "daemon/log.h"
#include "daemon/violation_log.h"
#include "dataplane/fast_path.h"
#include "dataplane/kernel.h"
#include "net/time.h"

namespace peerland {

class Underlay {
 public:
  struct Device {
    net::IfIndex index;  // 0: it does not exist
    bool attached = false;
    std::string problem;
  };

  // Both outlive it.
  Underlay(dataplane::FastPath& path, EventLog& log) : path_(path), log_(log) {}

  void apply(const config::NodeSettings& settings,
             const std::vector<dataplane::LinkChanged>& links);
  void link_changed(const dataplane::LinkChanged& link);
  // All that may send: of all broadcast domains.
  void set_vteps(const std::set<net::IpAddress>& vteps);
  // All PEs have been heard of: VTEPs that only an earlier run knew are none.
  void converged();
  [[nodiscard]] bool has_device(net::IfIndex index) const;
  void violation(const dataplane::Violation& violation, net::TimePoint now);

  // --- views
  [[nodiscard]] const std::map<std::string, Device>& devices() const { return devices_; }
  [[nodiscard]] const std::set<net::IpAddress>& vteps() const { return vteps_; }
  [[nodiscard]] std::vector<dataplane::VtepCounter> counters() const {
    return path_.vtep_counters();
  }
  [[nodiscard]] const ViolationLog& violation_log() const { return violations_; }
  [[nodiscard]] const std::optional<dataplane::Limit>& limit() const { return config_.per_vtep; }
  [[nodiscard]] bool observe() const { return config_.observe; }

 private:
  void attach(const std::string& name, Device& device);
  template <class Result>
  bool check(const Result& result) {
    if (!result) refused(result.error().what);
    return result.has_value();
  }
  void refused(const std::string& what);

  dataplane::FastPath& path_;
  EventLog& log_;
  dataplane::UnderlayConfig config_;  // without index
  std::map<std::string, Device> devices_;
  std::set<net::IpAddress> vteps_;
  ViolationLog violations_;
};

// What the underlay needs of all settings: the VNIs of the broadcast domains whose programs run in
// the kernel, and the tighter of the limits that their core policies have.
[[nodiscard]] dataplane::UnderlayConfig underlay_config(const config::NodeSettings& settings);

}  // namespace peerland
