// SPDX-License-Identifier: GPL-2.0-or-later
// The inside of FastPath, for the fast_path*.cpp.
#pragma once
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <deque>
#include <map>
#include <set>

#include "dataplane/bpf_attach.h"
#include "dataplane/bpf_maps.h"

namespace dataplane {

std::size_t possible_cpus();
// The ifindexes that are keys of a pinned map.
std::vector<net::IfIndex> devices_in(const std::string& pin);
// The counters of a slot that there are in the map "drops".
void for_each_drop(const pl_state& state, uint32_t slot,
                   const std::function<void(const pl_drop_key&)>& visit);
// Of a per-CPU map; none: no such element.
std::optional<pl_count> sum_cpus(int map, const void* key);

// Of a slot, over all CPUs; and what a row counts.
pl_counts counts_of(int map, uint32_t slot);
struct RowMeaning {
  unsigned cls, reason;
};
std::optional<RowMeaning> row_meaning(uint32_t row);

struct FastPath::Impl {
  struct Port {
    pl_port where{};
    PortKind kind = PortKind::Member;
    bool xdp = false;  // wanted
    std::string name;
  };
  // A port whose device is gone: its counters and buckets wait for it.
  struct Parked {
    uint32_t slot = 0;
    PortKind kind = PortKind::Member;
    net::IfIndex last;
  };

  explicit Impl(const std::string& folder) : attachments(folder + "/links") {}
  ~Impl() {
    ring_buffer__free(ring);
    ring_buffer__free(report_ring);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Fd lock;
  Attachments attachments;
  AttachMode mode = AttachMode::Tcx;
  std::unique_ptr<BpfMaps> maps;
  ring_buffer* ring = nullptr;
  ring_buffer* report_ring = nullptr;
  std::map<net::IfIndex, Port> ports;
  std::map<std::string, Parked> parked;
  std::set<net::IfIndex> underlays;
  // Attached, but with the programs and maps of another layout; till set_port().
  std::vector<net::IfIndex> legacy;
  std::deque<uint32_t> free_slots, free_configs;

  const std::function<void(const Punt&)>* handler = nullptr;
  const std::function<void(const Violation&)>* violation_handler = nullptr;
  std::size_t drained = 0, drain_max = 0;

  FastPathResult<void> start(const FastPathOptions& options);
  FastPathResult<void> take_over(const std::string& old_set, const std::string& new_set);
  void take_over_underlays(const std::string& old_set);
  FastPathResult<void> adopt_ports();
  void adopt_parked();
  void adopt_underlays();
  void fill_free_slots();
  FastPathResult<void> attach(net::IfIndex port) const;
  bool attach_xdp(net::IfIndex port, bool wanted) const;
  bool put_port(net::IfIndex port, const pl_port& where, uint64_t flags) const;
  void take_port(net::IfIndex port) const;
  void put_near_mac(const pl_mac_key& key) const;
  void take_near_mac(const pl_mac_key& key) const;
  void clear_slot(uint32_t slot) const;
  void remove_counters(uint32_t slot) const;
  void set_name(uint32_t slot, const std::string& name) const;
  [[nodiscard]] std::string name_of(uint32_t slot) const;
  void forget(net::IfIndex port);
  void park(net::IfIndex port);
  void release(const Parked& parked_port);
  void park_namesakes(const PortConfig& config);
  [[nodiscard]] std::optional<uint32_t> slot_for(const PortConfig& config);
  FastPathResult<void> set_shared(const FastPathOptions& options) const;
  FastPathResult<void> add_port(const PortConfig& port, const pl_config& config);
  FastPathResult<void> update_port(Port& port, net::IfIndex index, const pl_config& config);
  [[nodiscard]] std::vector<Counter> slot_counters(uint32_t slot, PortKind kind,
                                                   net::IfIndex index) const;
  static int on_punt(void* context, void* data, std::size_t size);
  static int on_report(void* context, void* data, std::size_t size);
};

}  // namespace dataplane
