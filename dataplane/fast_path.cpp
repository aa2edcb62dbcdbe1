// SPDX-License-Identifier: GPL-2.0-or-later
// Owns the maps' contents and which port has which slot of them. What outlives the daemon is
// pinned:
//     <pins>/maps<n>/...          the maps
//     <pins>/links/<ifindex>_in   tcx links; also <ifindex>_out, <ifindex>_xdp, <ifindex>_under
// open() in short: same layout: take the maps, put the new programs in the place of the old ones.
// Other layout: new maps with the old bindings and MACs; ports go on with the old programs and maps
// until set_port() brings each over.
#include "dataplane/fast_path.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "dataplane/fast_path_impl.h"
#include "dataplane/port_abi.h"

namespace dataplane {

namespace {

namespace fs = std::filesystem;

uint32_t folded(std::span<const uint8_t> ip) {
  uint32_t out = 0;
  for (std::size_t i = 0; i + 4 <= ip.size(); i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &ip[i], 4);
    out ^= word;
  }
  return out;
}

template <class Key>
Key binding_key(net::Vni vni, const net::IpAddress& ip) {
  Key key{};
  key.vni = vni.value;
  std::ranges::copy(ip.bytes(), key.ip);
  return key;
}

uint64_t mac_word(std::span<const uint8_t, 6> octets) {
  uint64_t out = 0;
  std::memcpy(&out, octets.data(), octets.size());
  return out;
}

pl_mac_key mac_key(net::Vni vni, net::MacAddress mac) {
  pl_mac_key key{};
  key.vni = vni.value;
  std::ranges::copy(mac.bytes(), key.mac);
  return key;
}

template <class Key>
FastBinding from_abi(const Key& key, const pl_binding& value) {
  return {.vni = net::Vni(key.vni),
          .ip = *net::IpAddress::from_bytes(key.ip),
          .mac = net::MacAddress::from_bytes(value.mac),
          .port = net::IfIndex(value.port),
          .router = (value.flags & PL_ROUTER) != 0,
          .override_flag = (value.flags & PL_OVERRIDE) != 0};
}

template <class Key, class Value>
void copy_elements(int from, int to) {
  for_each_element<Key, Value>(from, [&](const Key& key, const Value& value) {
    bpf_map_update_elem(to, &key, &value, BPF_ANY);
  });
}

// Version 1 of the bindings: what is in front of the counters.
struct BindingV1 {
  uint8_t start[offsetof(pl_binding, answers)];
};
template <class Key>
void copy_bindings_v1(int from, int to) {
  for_each_element<Key, BindingV1>(from, [&](const Key& key, const BindingV1& old) {
    pl_binding value{};
    std::memcpy(&value, &old, sizeof old);
    bpf_map_update_elem(to, &key, &value, BPF_ANY);
  });
}

// What the programs wrote into an entry stays when user space changes it.
template <class Key>
int store_binding(int map, const Key& key, pl_binding value) {
  pl_binding old{};
  if (bpf_map_lookup_elem(map, &key, &old) == 0) {
    value.answers = old.answers;
    value.asker = old.asker;
    value.renewed = old.renewed;
  }
  return bpf_map_update_elem(map, &key, &value, BPF_ANY);
}

net::MacAddress mac_from_abi(uint64_t mac) {
  std::array<uint8_t, 6> octets{};
  std::memcpy(octets.data(), &mac, octets.size());
  return net::MacAddress::from_bytes(octets);
}

}  // namespace

std::vector<net::IfIndex> devices_in(const std::string& pin) {
  std::vector<net::IfIndex> out;
  const Fd map(bpf_obj_get(pin.c_str()));
  uint32_t key = 0;
  bool more = map && bpf_map_get_next_key(map.get(), nullptr, &key) == 0;
  while (more) {
    out.emplace_back(key);
    more = bpf_map_get_next_key(map.get(), &key, &key) == 0;
  }
  return out;
}

void for_each_drop(const pl_state& state, uint32_t slot,
                   const std::function<void(const pl_drop_key&)>& visit) {
  for (uint8_t hook = 0; hook < PL_HOOKS; ++hook)
    for (uint8_t cls = 0; cls < PL_CLASSES; ++cls)
      for (unsigned bit = 0; bit < 2 * PL_REASON_WORDS * 64; ++bit)
        if ((state.seen[hook][cls][bit / 64] >> bit % 64 & 1) != 0) {
          constexpr unsigned kReasons = PL_REASON_WORDS * 64;
          visit({.slot = slot,
                 .hook = hook,
                 .cls = cls,
                 .reason = static_cast<uint8_t>(bit % kReasons),
                 .observed = bit >= kReasons});
        }
}

std::size_t possible_cpus() {
  static const int cpus = std::max(1, libbpf_num_possible_cpus());
  return static_cast<std::size_t>(cpus);
}

std::optional<pl_count> sum_cpus(int map, const void* key) {
  std::vector<pl_count> values(possible_cpus());
  if (bpf_map_lookup_elem(map, key, values.data()) != 0) return std::nullopt;
  pl_count sum{};
  for (const auto& value : values) {
    sum.packets += value.packets;
    sum.bytes += value.bytes;
  }
  return sum;
}

pl_counts counts_of(int map, uint32_t slot) {
  std::vector<pl_counts> values(possible_cpus());
  pl_counts out{};
  if (bpf_map_lookup_elem(map, &slot, values.data()) != 0) return out;
  for (const auto& value : values)
    for (int hook : {PL_IN, PL_OUT})
      for (uint32_t row = 0; row < PL_ROWS; ++row) {
        out.rows[hook][row].packets += value.rows[hook][row].packets;
        out.rows[hook][row].bytes += value.rows[hook][row].bytes;
      }
  return out;
}

std::optional<RowMeaning> row_meaning(uint32_t row) {
  if (row < PL_ROW_ANSWERED) return RowMeaning{row - PL_ROW_PASSED, PL_PASSED};
  if (row < PL_ROW_PUNTED) return RowMeaning{row - PL_ROW_ANSWERED, PL_ANSWERED};
  if (row < PL_ROW_LIMITED) return RowMeaning{row - PL_ROW_PUNTED, PL_PUNTED};
  if (row < PL_ROW_NOTHING) {
    const auto cls = row - PL_ROW_LIMITED;
    return RowMeaning{cls, PL_ARP_LIMIT + cls};
  }
  if (row < PL_ROW_NOTHING + kBumClasses) {
    const auto cls = row - PL_ROW_NOTHING;
    return RowMeaning{cls, PL_ARP + cls};
  }
  return std::nullopt;
}

std::string default_object_file() {
  std::error_code ignored;
  return fs::exists(PEERLAN_BPF_OBJECT, ignored) ? PEERLAN_BPF_OBJECT : PEERLAN_BPF_INSTALLED;
}

FastPathResult<void> FastPath::Impl::attach(net::IfIndex port) const {
  for (int hook : {PL_IN, PL_OUT})
    if (auto done = attachments.attach(port, hook, maps->program(hook), mode); !done) return done;
  return {};
}

// Into the map "ports", and into "near" unless another one with that index is there.
bool FastPath::Impl::put_port(net::IfIndex port, const pl_port& where, uint64_t flags) const {
  if (bpf_map_update_elem(maps->map("ports"), &port.value, &where, flags) != 0) return false;
  const uint32_t index = port.value % PL_NEAR_PORTS;
  pl_near there{};
  if (bpf_map_lookup_elem(maps->map("near"), &index, &there) != 0) return false;
  if (there.ifindex != 0 && there.ifindex != port.value) return true;
  there = {.port = where, .ifindex = port.value, .zero = 0};
  return bpf_map_update_elem(maps->map("near"), &index, &there, BPF_ANY) == 0;
}

void FastPath::Impl::take_port(net::IfIndex port) const {
  const uint32_t index = port.value % PL_NEAR_PORTS;
  pl_near there{};
  if (bpf_map_lookup_elem(maps->map("near"), &index, &there) == 0 && there.ifindex == port.value) {
    there = {};
    bpf_map_update_elem(maps->map("near"), &index, &there, BPF_ANY);
  }
  bpf_map_delete_elem(maps->map("ports"), &port.value);
}

// Into the map "near_macs", unless another one with that index is there.
void FastPath::Impl::put_near_mac(const pl_mac_key& key) const {
  const uint64_t mac = mac_word(key.mac);
  const uint32_t index = pl_near_mac_index(key.vni, mac);
  uint64_t there = 0;
  const int map = maps->map("near_macs");
  if (bpf_map_lookup_elem(map, &index, &there) != 0 || there != 0) return;
  there = pl_near_mac(key.vni, mac);
  bpf_map_update_elem(map, &index, &there, BPF_ANY);
}

void FastPath::Impl::take_near_mac(const pl_mac_key& key) const {
  const uint64_t mac = mac_word(key.mac);
  const uint32_t index = pl_near_mac_index(key.vni, mac);
  uint64_t there = 0;
  const int map = maps->map("near_macs");
  if (bpf_map_lookup_elem(map, &index, &there) != 0 || there != pl_near_mac(key.vni, mac)) return;
  there = 0;
  bpf_map_update_elem(map, &index, &there, BPF_ANY);
}

// After attach(): XDP passes on to tc what it doesn't answer. True when something was done.
bool FastPath::Impl::attach_xdp(net::IfIndex port, bool wanted) const {
  const bool before = attachments.attached(port, kXdpHook);
  if (!wanted) {
    if (before) attachments.detach_xdp(port);
    return before;
  }
  // tc alone is as right, only slower: attach_mode() tells.
  return attachments.attach_xdp(port, maps->program(kXdpHook)) && !before;
}

// The rate of all ports together. The bucket goes on from where it was.
FastPathResult<void> FastPath::Impl::set_shared(const FastPathOptions& options) const {
  const uint32_t zero = 0;
  pl_all shared{};
  bpf_map_lookup_elem(maps->map("all"), &zero, &shared);
  shared.punts = to_abi(Limit{.packets_per_second = options.punts_per_second,
                              .bits_per_second = {},
                              .burst = std::chrono::milliseconds(200)});
  if (bpf_map_update_elem(maps->map("all"), &zero, &shared, BPF_ANY) != 0)
    return std::unexpected(bpf_error("write the limit of all ports", errno));
  return {};
}

void FastPath::Impl::fill_free_slots() {
  std::vector<bool> slots(PL_MAX_PORTS), configs(PL_MAX_CONFIGS);
  free_slots.clear();
  free_configs.clear();
  for (const auto& [index, port] : ports) {
    slots[port.where.slot] = true;
    configs[port.where.config] = true;
  }
  for (const auto& [name, port] : parked) slots[port.slot] = true;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (!slots[i]) free_slots.push_back(i);
  for (uint32_t i = 0; i < configs.size(); ++i)
    if (!configs[i]) free_configs.push_back(i);
}

FastPathResult<void> FastPath::Impl::start(const FastPathOptions& options) {
  mode = !options.force_clsact && tcx_supported() ? AttachMode::Tcx : AttachMode::Clsact;
  auto sets = map_sets(options.pin_directory);
  const uint64_t netns = netns_cookie();
  const uint32_t zero = 0;

  // Pins of another namespace: their ifindexes mean other devices than ours.
  std::string old_set = sets.empty() ? "" : sets.back();
  if (!old_set.empty()) {
    pl_meta meta{};
    const Fd fd(bpf_obj_get((old_set + "/meta").c_str()));
    if (fd && bpf_map_lookup_elem(fd.get(), &zero, &meta) == 0 && meta.netns != netns) {
      for (auto port : attachments.pinned())
        if (attachments.link_alive(port))
          return std::unexpected(FastPathError{
              "pin directory " + options.pin_directory + " belongs to another network namespace",
              EEXIST});
      for (auto port : attachments.pinned()) attachments.detach(port);
      for (auto device : attachments.pinned_underlays()) attachments.detach_underlay(device);
      for (const auto& set : sets) remove_map_set(set);
      sets.clear();
      old_set.clear();
    }
  }

  auto loaded = BpfMaps::load(options, old_set);
  if (!loaded) return std::unexpected(loaded.error());
  maps = std::move(*loaded);
  if (auto done = set_shared(options); !done) return done;
  if (!maps->reused()) {
    const pl_meta meta{.netns = netns, .binding_version = PL_BINDING_VERSION, .zero = 0};
    if (bpf_map_update_elem(maps->map("meta"), &zero, &meta, BPF_ANY) != 0)
      return std::unexpected(bpf_error("write meta", errno));
    const auto set = next_map_set(options.pin_directory);
    if (auto done = take_over(old_set, set); !done) {
      remove_map_set(set);
      return done;
    }
    for (const auto& old : sets) remove_map_set(old);
  } else {
    sets.pop_back();
    for (const auto& old : sets) remove_map_set(old);
    if (auto done = adopt_ports(); !done) return done;
    adopt_parked();
  }
  adopt_underlays();
  fill_free_slots();

  ring = ring_buffer__new(maps->map("punts"), &Impl::on_punt, this, nullptr);
  if (ring == nullptr) return std::unexpected(bpf_error("map the ring buffer", errno));
  report_ring = ring_buffer__new(maps->map("reports"), &Impl::on_report, this, nullptr);
  if (report_ring == nullptr)
    return std::unexpected(bpf_error("map the ring buffer of reports", errno));
  return {};
}

// Maps of another layout: what is known goes over into the new ones, ports stay where they are.
FastPathResult<void> FastPath::Impl::take_over(const std::string& old_set,
                                               const std::string& new_set) {
  if (!old_set.empty()) {
    const auto old_map = [&](const char* name) {
      return Fd(bpf_obj_get((old_set + "/" + name).c_str()));
    };
    const auto fits = [](const Fd& fd, std::size_t key, std::size_t value) {
      bpf_map_info info{};
      uint32_t size = sizeof info;
      return fd && bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0 && info.key_size == key &&
             info.value_size == value;
    };
    const uint32_t zero = 0;
    pl_meta meta{};
    const Fd meta_map = old_map("meta"), bind4 = old_map("bind4"), bind6 = old_map("bind6"),
             macs = old_map("macs");
    if (fits(meta_map, sizeof zero, sizeof meta) &&
        bpf_map_lookup_elem(meta_map.get(), &zero, &meta) == 0 && meta.binding_version != 0 &&
        meta.binding_version <= PL_BINDING_VERSION) {
      if (fits(bind4, sizeof(pl_key4), sizeof(pl_binding)))
        copy_elements<pl_key4, pl_binding>(bind4.get(), maps->map("bind4"));
      else if (fits(bind4, sizeof(pl_key4), sizeof(BindingV1)))
        copy_bindings_v1<pl_key4>(bind4.get(), maps->map("bind4"));
      if (fits(bind6, sizeof(pl_key6), sizeof(pl_binding)))
        copy_elements<pl_key6, pl_binding>(bind6.get(), maps->map("bind6"));
      else if (fits(bind6, sizeof(pl_key6), sizeof(BindingV1)))
        copy_bindings_v1<pl_key6>(bind6.get(), maps->map("bind6"));
      if (fits(macs, sizeof(pl_mac_key), sizeof(uint32_t)))
        copy_elements<pl_mac_key, uint32_t>(macs.get(), maps->map("macs"));
      for_each_element<pl_mac_key, uint32_t>(
          maps->map("macs"), [&](const pl_mac_key& key, const uint32_t&) { put_near_mac(key); });
    }
    // Keys of "ports" are ifindexes in every layout: clsact filters have no pins to find them by.
    for (auto port : devices_in(old_set + "/ports")) legacy.push_back(port);
    take_over_underlays(old_set);
  }
  for (auto port : attachments.pinned()) legacy.push_back(port);
  std::ranges::sort(legacy);
  legacy.erase(std::unique(legacy.begin(), legacy.end()), legacy.end());
  std::erase_if(legacy, [&](net::IfIndex port) {
    if (attachments.attached(port, PL_IN) || attachments.attached(port, PL_OUT)) return false;
    attachments.detach(port);  // its device is gone
    return true;
  });
  return maps->pin(new_set);
}

// Ports of the maps that were taken: new programs for those that are there, an end for the others.
FastPathResult<void> FastPath::Impl::adopt_ports() {
  std::vector<std::pair<net::IfIndex, pl_port>> found;
  for_each_element<uint32_t, pl_port>(
      maps->map("ports"),
      [&](const uint32_t& index, const pl_port& where) { found.emplace_back(index, where); });
  for (const auto& [index, where] : found) {
    pl_config config{};
    const bool whole = where.slot < PL_MAX_PORTS && where.config < PL_MAX_CONFIGS &&
                       bpf_map_lookup_elem(maps->map("configs"), &where.config, &config) == 0 &&
                       config.ifindex == index.value;
    ports[index] = {where, config.core ? PortKind::Core : PortKind::Member,
                    attachments.attached(index, kXdpHook), whole ? name_of(where.slot) : ""};
    if (!whole || (!attachments.attached(index, PL_IN) && !attachments.attached(index, PL_OUT))) {
      park(index);
      continue;
    }
    if (auto done = attach(index); !done) {
      if (attachments.attached(index, PL_IN)) return done;
      park(index);  // went away at this moment
      continue;
    }
    attach_xdp(index, ports[index].xdp);
  }
  // Links that the maps don't know: another layout's, whose port was not set before the last end.
  for (auto port : attachments.pinned()) {
    if (ports.contains(port)) continue;
    if (attachments.attached(port, PL_IN) || attachments.attached(port, PL_OUT))
      legacy.push_back(port);
    else
      attachments.detach(port);
  }
  return {};
}

// Slots that have a name but no device: till their port comes back.
void FastPath::Impl::adopt_parked() {
  std::set<uint32_t> taken;
  for (const auto& [index, port] : ports) taken.insert(port.where.slot);
  for (const auto& [name, port] : parked) taken.insert(port.slot);
  for (uint32_t slot = 0; slot < PL_MAX_PORTS; ++slot) {
    if (taken.contains(slot)) continue;
    auto name = name_of(slot);
    if (name.empty()) continue;
    const Parked found{.slot = slot, .kind = PortKind::Member, .last = {}};
    if (!parked.try_emplace(std::move(name), found).second) release(found);
  }
}

void FastPath::Impl::set_name(uint32_t slot, const std::string& name) const {
  pl_name value{};
  std::ranges::copy_n(name.begin(),
                      static_cast<std::ptrdiff_t>(std::min<std::size_t>(name.size(), PL_NAME - 1)),
                      value.text);
  bpf_map_update_elem(maps->map("names"), &slot, &value, BPF_ANY);
}

std::string FastPath::Impl::name_of(uint32_t slot) const {
  pl_name value{};
  if (bpf_map_lookup_elem(maps->map("names"), &slot, &value) != 0) return {};
  const auto* end = std::find(std::cbegin(value.text), std::cend(value.text), 0);
  return {std::cbegin(value.text), end};
}

void FastPath::Impl::clear_slot(uint32_t slot) const {
  remove_counters(slot);
  const pl_state state{};
  bpf_map_update_elem(maps->map("state"), &slot, &state, BPF_ANY);
  const std::vector<pl_counts> none(possible_cpus());
  bpf_map_update_elem(maps->map("counts"), &slot, none.data(), BPF_ANY);
}

void FastPath::Impl::remove_counters(uint32_t slot) const {
  pl_state state{};
  if (bpf_map_lookup_elem(maps->map("state"), &slot, &state) != 0) return;
  for_each_drop(state, slot,
                [&](const pl_drop_key& key) { bpf_map_delete_elem(maps->map("drops"), &key); });
}

// Detaches and gives back what the port has.
void FastPath::Impl::forget(net::IfIndex index) {
  attachments.detach(index);
  const auto found = ports.find(index);
  if (found == ports.end()) return;
  const auto where = found->second.where;
  take_port(index);
  if (where.slot < PL_MAX_PORTS) {
    remove_counters(where.slot);
    set_name(where.slot, "");
  }
  ports.erase(found);
}

// The same, but what has a name and no device keeps its slot.
void FastPath::Impl::park(net::IfIndex index) {
  const auto found = ports.find(index);
  char unused[IF_NAMESIZE];
  if (found == ports.end() || found->second.name.empty() ||
      found->second.where.slot >= PL_MAX_PORTS || if_indextoname(index.value, unused) != nullptr) {
    forget(index);
    return;
  }
  const auto port = found->second;
  attachments.detach(index);
  take_port(index);
  ports.erase(found);
  const auto [place, fresh] = parked.try_emplace(
      port.name, Parked{.slot = port.where.slot, .kind = port.kind, .last = index});
  if (!fresh) {  // two ports of one name: the last one counts
    release(place->second);
    place->second = {.slot = port.where.slot, .kind = port.kind, .last = index};
  }
}

void FastPath::Impl::release(const Parked& parked_port) {
  remove_counters(parked_port.slot);
  set_name(parked_port.slot, "");
  free_slots.push_back(parked_port.slot);
}

// A port that is set again under another index before it was removed.
void FastPath::Impl::park_namesakes(const PortConfig& config) {
  if (config.name.empty()) return;
  std::vector<std::pair<net::IfIndex, uint32_t>> gone;
  char unused[IF_NAMESIZE];
  for (const auto& [index, port] : ports)
    if (port.name == config.name && index != config.index &&
        if_indextoname(index.value, unused) == nullptr)
      gone.emplace_back(index, port.where.config);
  for (const auto& [index, slot] : gone) {
    park(index);
    free_configs.push_back(slot);
  }
}

// The slot that waits for the port, or a fresh one.
std::optional<uint32_t> FastPath::Impl::slot_for(const PortConfig& config) {
  const auto waiting = config.name.empty() ? parked.end() : parked.find(config.name);
  if (waiting != parked.end()) {
    const auto slot = waiting->second.slot;
    parked.erase(waiting);
    return slot;
  }
  if (free_slots.empty() && !parked.empty()) {
    release(parked.begin()->second);
    parked.erase(parked.begin());
  }
  if (free_slots.empty()) return std::nullopt;
  const auto slot = free_slots.front();
  free_slots.pop_front();
  clear_slot(slot);
  return slot;
}

FastPathResult<void> FastPath::Impl::add_port(const PortConfig& port, const pl_config& config) {
  const auto index = port.index;
  park_namesakes(port);
  const auto slot = free_configs.empty() ? std::nullopt : slot_for(port);
  if (!slot)
    return std::unexpected(
        FastPathError{"more than " + std::to_string(PL_MAX_PORTS) + " ports", ENOSPC});
  const pl_port where{*slot, free_configs.front()};
  const auto undo = [&] {
    take_port(index);
    if (port.name.empty())
      free_slots.push_front(*slot);
    else
      parked[port.name] = {.slot = *slot, .kind = port.kind, .last = index};
  };
  set_name(where.slot, port.name);
  if (bpf_map_update_elem(maps->map("configs"), &where.config, &config, BPF_ANY) != 0 ||
      !put_port(index, where, BPF_ANY)) {
    const auto error = bpf_error("configure device " + std::to_string(index.value), errno);
    undo();
    return std::unexpected(error);
  }
  if (auto done = attach(index); !done) {
    attachments.detach(index);
    undo();
    return done;
  }
  free_configs.pop_front();
  ports[index] = {where, port.kind, false, port.name};
  std::erase(legacy, index);
  return {};
}

FastPathResult<void> FastPath::Impl::update_port(Port& port, net::IfIndex index,
                                                 const pl_config& config) {
  // To a slot that no program reads, then one word that points there.
  const pl_port where{port.where.slot, free_configs.front()};
  if (bpf_map_update_elem(maps->map("configs"), &where.config, &config, BPF_ANY) != 0 ||
      !put_port(index, where, BPF_EXIST))
    return std::unexpected(bpf_error("configure device " + std::to_string(index.value), errno));
  free_configs.pop_front();
  free_configs.push_back(port.where.config);
  port.where = where;
  for (int hook : {PL_IN, PL_OUT})
    if (!attachments.attached(index, hook)) return attach(index);
  return {};
}

int FastPath::Impl::on_punt(void* context, void* data, std::size_t size) {
  auto* self = static_cast<Impl*>(context);
  if (size >= sizeof(pl_punt)) {
    const auto* record = static_cast<const pl_punt*>(data);
    const auto len = std::min<std::size_t>(record->len, PL_PUNT_FRAME);
    (*self->handler)({.port = net::IfIndex(record->ifindex),
                      .copy = record->kind == PL_PUNT_COPY,
                      .trapped = record->kind == PL_PUNT_TRAPPED,
                      .frame = {record->frame, len}});
  }
  return ++self->drained < self->drain_max ? 0 : -1;  // this one is consumed all the same
}

int FastPath::Impl::on_report(void* context, void* data, std::size_t size) {
  auto* self = static_cast<Impl*>(context);
  if (size >= sizeof(pl_report)) {
    const auto* record = static_cast<const pl_report*>(data);
    const auto len = std::min<std::size_t>(record->len, PL_REPORT_FRAME);
    const net::IfIndex index(record->ifindex);
    const auto port = self->ports.find(index);
    const auto kind = self->underlays.contains(index) ? PortKind::Core
                      : port != self->ports.end()     ? port->second.kind
                                                      : PortKind::Member;
    Violation violation{.port = index,
                        .direction = direction_of(kind, record->hook),
                        .reason = reason_name(record->reason),
                        .source = {},
                        .frame = {record->frame, len}};
    if (len >= 12) violation.source = net::MacAddress::from_bytes(violation.frame.subspan<6, 6>());
    (*self->violation_handler)(violation);
  }
  return ++self->drained < self->drain_max ? 0 : -1;
}

FastPath::FastPath(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FastPath::~FastPath() = default;

FastPathResult<std::unique_ptr<FastPath>> FastPath::open(const FastPathOptions& options) {
  capture_libbpf_messages();
  if (auto made = make_pin_folder(options.pin_directory); !made)
    return std::unexpected(made.error());
  auto lock = lock_folder(options.pin_directory);
  if (!lock) return std::unexpected(lock.error());
  auto impl = std::make_unique<Impl>(options.pin_directory);
  impl->lock = std::move(*lock);
  auto with_object = options;
  if (with_object.object_file.empty()) with_object.object_file = default_object_file();
  if (auto started = impl->start(with_object); !started) return std::unexpected(started.error());
  return std::unique_ptr<FastPath>(new FastPath(std::move(impl)));
}

FastPathResult<void> FastPath::set_port(const PortConfig& config) {
  const auto abi = to_abi(config);
  if (!abi)
    return std::unexpected(
        FastPathError{"device " + std::to_string(config.index.value) + ": " + abi.error(), E2BIG});
  const auto found = impl_->ports.find(config.index);
  const auto done = found == impl_->ports.end()
                        ? impl_->add_port(config, *abi)
                        : impl_->update_port(found->second, config.index, *abi);
  if (!done) return done;
  auto& port = impl_->ports[config.index];
  if (port.name != config.name) {
    port.name = config.name;
    impl_->set_name(port.where.slot, port.name);
  }
  port.kind = config.kind;
  port.xdp = config.xdp && config.proxy && config.kind == PortKind::Member;
  impl_->attach_xdp(config.index, port.xdp);
  return {};
}

FastPathResult<bool> FastPath::repair_port(net::IfIndex port) {
  if (!impl_->ports.contains(port)) return false;
  for (int hook : {PL_IN, PL_OUT}) {
    if (impl_->attachments.attached(port, hook)) continue;
    if (auto done = impl_->attach(port); !done) return std::unexpected(done.error());
    impl_->attach_xdp(port, impl_->ports[port].xdp);
    return true;
  }
  if (impl_->attachments.attached(port, kXdpHook)) return false;
  return impl_->attach_xdp(port, impl_->ports[port].xdp);
}

FastPathResult<void> FastPath::remove_port(net::IfIndex port) {
  const auto found = impl_->ports.find(port);
  if (found != impl_->ports.end()) {
    const auto where = found->second.where;
    impl_->park(port);
    const bool waits = std::ranges::any_of(
        impl_->parked, [&](const auto& entry) { return entry.second.slot == where.slot; });
    if (!waits) impl_->free_slots.push_back(where.slot);
    impl_->free_configs.push_back(where.config);
  } else {
    impl_->attachments.detach(port);
  }
  std::erase(impl_->legacy, port);
  return {};
}

std::vector<net::IfIndex> FastPath::ports() const {
  auto out = impl_->legacy;
  for (const auto& [index, port] : impl_->ports) out.push_back(index);
  std::ranges::sort(out);
  return out;
}

FastPathResult<void> FastPath::set_binding(const FastBinding& binding) {
  pl_binding value{};
  std::ranges::copy(binding.mac.bytes(), value.mac);
  value.flags = static_cast<uint8_t>((binding.router ? PL_ROUTER : 0) |
                                     (binding.override_flag ? PL_OVERRIDE : 0));
  value.port = binding.port.value;
  value.check = folded(binding.ip.bytes());
  int status = 0;
  if (binding.ip.is_v4())
    status = store_binding(impl_->maps->map("bind4"), binding_key<pl_key4>(binding.vni, binding.ip),
                           value);
  else
    status = store_binding(impl_->maps->map("bind6"), binding_key<pl_key6>(binding.vni, binding.ip),
                           value);
  if (status != 0) return std::unexpected(bpf_error("bind " + to_string(binding.ip), errno));
  return {};
}

FastPathResult<void> FastPath::clear_binding(net::Vni vni, const net::IpAddress& ip) {
  int status = 0;
  if (ip.is_v4()) {
    const auto key = binding_key<pl_key4>(vni, ip);
    status = bpf_map_delete_elem(impl_->maps->map("bind4"), &key);
  } else {
    const auto key = binding_key<pl_key6>(vni, ip);
    status = bpf_map_delete_elem(impl_->maps->map("bind6"), &key);
  }
  if (status != 0 && errno != ENOENT)
    return std::unexpected(bpf_error("unbind " + to_string(ip), errno));
  return {};
}

std::vector<FastBinding> FastPath::bindings() const {
  std::vector<FastBinding> out;
  for_each_element<pl_key4, pl_binding>(
      impl_->maps->map("bind4"),
      [&](const pl_key4& key, const pl_binding& value) { out.push_back(from_abi(key, value)); });
  for_each_element<pl_key6, pl_binding>(
      impl_->maps->map("bind6"),
      [&](const pl_key6& key, const pl_binding& value) { out.push_back(from_abi(key, value)); });
  return out;
}

std::optional<FastBindingUse> FastPath::use_of(net::Vni vni, const net::IpAddress& ip) const {
  pl_binding value{};
  int status = 0;
  if (ip.is_v4()) {
    const auto key = binding_key<pl_key4>(vni, ip);
    status = bpf_map_lookup_elem(impl_->maps->map("bind4"), &key, &value);
  } else {
    const auto key = binding_key<pl_key6>(vni, ip);
    status = bpf_map_lookup_elem(impl_->maps->map("bind6"), &key, &value);
  }
  if (status != 0) return std::nullopt;
  FastBindingUse out{.answers = value.answers, .last_asker = {}};
  if (value.asker != 0) out.last_asker = mac_from_abi(value.asker);
  return out;
}

FastPathResult<void> FastPath::add_mac(net::Vni vni, net::MacAddress mac) {
  const auto key = mac_key(vni, mac);
  const uint32_t value = 1;
  if (bpf_map_update_elem(impl_->maps->map("macs"), &key, &value, BPF_ANY) != 0)
    return std::unexpected(bpf_error("add " + to_string(mac), errno));
  impl_->put_near_mac(key);
  return {};
}

FastPathResult<void> FastPath::remove_mac(net::Vni vni, net::MacAddress mac) {
  const auto key = mac_key(vni, mac);
  impl_->take_near_mac(key);
  if (bpf_map_delete_elem(impl_->maps->map("macs"), &key) != 0 && errno != ENOENT)
    return std::unexpected(bpf_error("remove " + to_string(mac), errno));
  return {};
}

std::vector<std::pair<net::Vni, net::MacAddress>> FastPath::macs() const {
  std::vector<std::pair<net::Vni, net::MacAddress>> out;
  for_each_element<pl_mac_key, uint32_t>(
      impl_->maps->map("macs"), [&](const pl_mac_key& key, const uint32_t&) {
        out.emplace_back(net::Vni(key.vni), net::MacAddress::from_bytes(key.mac));
      });
  return out;
}

int FastPath::punt_descriptor() const { return ring_buffer__epoll_fd(impl_->ring); }

int FastPath::violation_descriptor() const { return ring_buffer__epoll_fd(impl_->report_ring); }

std::size_t FastPath::drain(const std::function<void(const Punt&)>& handler, std::size_t max) {
  if (max == 0) return 0;
  impl_->handler = &handler;
  impl_->drained = 0;
  impl_->drain_max = max;
  ring_buffer__consume(impl_->ring);
  impl_->handler = nullptr;
  return impl_->drained;
}

std::size_t FastPath::drain_violations(const std::function<void(const Violation&)>& handler,
                                       std::size_t max) {
  if (max == 0) return 0;
  impl_->violation_handler = &handler;
  impl_->drained = 0;
  impl_->drain_max = max;
  ring_buffer__consume(impl_->report_ring);
  impl_->violation_handler = nullptr;
  return impl_->drained;
}

std::vector<Counter> FastPath::Impl::slot_counters(uint32_t slot, PortKind kind,
                                                   net::IfIndex index) const {
  std::vector<Counter> out;
  const auto add = [&](int hook, unsigned cls, unsigned reason, bool observed,
                       const pl_count& count) {
    if (count.packets == 0) return;
    out.push_back({.port = index,
                   .direction = direction_of(kind, hook),
                   .bum_class = class_name(cls),
                   .reason = reason_name(reason),
                   .dropped = is_drop(reason) && !observed,
                   .observed = observed,
                   .packets = count.packets,
                   .bytes = count.bytes});
  };
  const auto counts = counts_of(maps->map("counts"), slot);
  for (int hook : {PL_IN, PL_OUT})
    for (uint32_t row = 0; row < PL_ROWS; ++row)
      if (const auto meaning = row_meaning(row))
        add(hook, meaning->cls, meaning->reason, false, counts.rows[hook][row]);
  pl_state state{};
  bpf_map_lookup_elem(maps->map("state"), &slot, &state);
  for_each_drop(state, slot, [&](const pl_drop_key& key) {
    if (const auto count = sum_cpus(maps->map("drops"), &key))
      add(key.hook, key.cls, key.reason, key.observed != 0, *count);
  });
  return out;
}

std::vector<Counter> FastPath::counters(net::IfIndex index) const {
  const auto found = impl_->ports.find(index);
  if (found != impl_->ports.end())
    return impl_->slot_counters(found->second.where.slot, found->second.kind, index);
  for (const auto& [name, port] : impl_->parked)
    if (port.last == index && index.value != 0)
      return impl_->slot_counters(port.slot, port.kind, index);
  return {};
}

uint64_t FastPath::punts_lost() const {
  std::vector<uint64_t> values(possible_cpus());
  const uint32_t zero = 0;
  if (bpf_map_lookup_elem(impl_->maps->map("lost"), &zero, values.data()) != 0) return 0;
  uint64_t sum = 0;
  for (uint64_t value : values) sum += value;
  return sum;
}

const char* FastPath::attach_mode() const {
  return impl_->mode == AttachMode::Tcx ? "tcx" : "clsact";
}

std::string FastPath::attach_mode(net::IfIndex port) const {
  std::string out = attach_mode();
  if (impl_->attachments.attached(port, kXdpHook)) out.insert(0, "xdp+");
  return out;
}

FastPathResult<void> FastPath::check_unused(const std::string& pin_directory) {
  std::error_code error;
  if (!fs::exists(pin_directory, error)) return {};
  if (const auto lock = lock_folder(pin_directory); !lock) return std::unexpected(lock.error());
  return {};
}

FastPathResult<void> FastPath::teardown(const std::string& pin_directory) {
  capture_libbpf_messages();
  std::error_code error;
  if (!fs::exists(pin_directory, error)) return {};
  const auto lock = lock_folder(pin_directory);
  if (!lock) return std::unexpected(lock.error());
  const Attachments attachments(pin_directory + "/links");
  for (auto port : attachments.pinned()) attachments.detach(port);
  for (auto device : attachments.pinned_underlays()) attachments.detach_underlay(device);
  for (const auto& set : map_sets(pin_directory)) {
    // Filters have no pins; the maps know their devices.
    for (auto port : devices_in(set + "/ports")) attachments.detach(port);
    for (auto device : devices_in(set + "/underlays")) attachments.detach_underlay(device);
    remove_map_set(set);
  }
  fs::remove_all(pin_directory, error);
  if (error)
    return std::unexpected(
        FastPathError{"remove " + pin_directory + ": " + error.message(), error.value()});
  return {};
}

}  // namespace dataplane
