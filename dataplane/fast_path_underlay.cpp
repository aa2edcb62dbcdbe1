// SPDX-License-Identifier: GPL-2.0-or-later
// The underlay's side of the data path: who may send into our tunnels, and how much. Its maps are
// pinned with the others; a layout that is new takes the known VTEPs over, so that no tunnel stops
// before the daemon has learned them again.
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/fast_path_impl.h"
#include "dataplane/port_abi.h"

namespace dataplane {

namespace {

pl_vtep_key vtep_key(const net::IpAddress& ip) {
  pl_vtep_key key{};
  if (ip.is_v4()) {
    key.ip[10] = key.ip[11] = 0xff;
    std::ranges::copy(ip.bytes(), key.ip + 12);
  } else {
    std::ranges::copy(ip.bytes(), key.ip);
  }
  return key;
}

net::IpAddress from_abi(const pl_vtep_key& key) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(key.ip, kMapped, sizeof kMapped) == 0)
    return *net::IpAddress::from_bytes(std::span(key.ip).last<4>());
  return *net::IpAddress::from_bytes(key.ip);
}

// Octets before the IP header of what arrives there. An error when there is no such device.
FastPathResult<uint8_t> link_header(net::IfIndex device) {
  ifreq request{};
  const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (if_indextoname(device.value, request.ifr_name) == nullptr || !any ||
      ::ioctl(any.get(), SIOCGIFHWADDR, &request) != 0)
    return std::unexpected(bpf_error("device " + std::to_string(device.value), errno));
  const auto type = request.ifr_hwaddr.sa_family;
  constexpr uint8_t kEthernet = 14;
  return type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK ? kEthernet : uint8_t{0};
}

std::vector<pl_vni_key> vnis_of(int map, net::IfIndex device) {
  std::vector<pl_vni_key> out;
  for_each_element<pl_vni_key, uint32_t>(map, [&](const pl_vni_key& key, const uint32_t&) {
    if (key.ifindex == device.value) out.push_back(key);
  });
  return out;
}

std::vector<pl_vtep_key> keys_of_vteps(int map) {
  std::vector<pl_vtep_key> out;
  pl_vtep_key key{};
  bool more = bpf_map_get_next_key(map, nullptr, &key) == 0;
  while (more) {
    out.push_back(key);
    more = bpf_map_get_next_key(map, &key, &key) == 0;
  }
  return out;
}

// In the limiter's map first: who is counted may send.
int add_vtep_key(const BpfMaps& maps, const pl_vtep_key& key) {
  const pl_vtep fresh{};
  if (bpf_map_update_elem(maps.map("vteps"), &key, &fresh, BPF_NOEXIST) != 0 && errno != EEXIST)
    return -1;
  const std::vector<pl_vtep_count> none(possible_cpus());
  if (bpf_map_update_elem(maps.map("vtep_counts"), &key, none.data(), BPF_NOEXIST) != 0 &&
      errno != EEXIST)
    return -1;
  return 0;
}

}  // namespace

// From the maps of another layout; its programs stay until set_underlay().
void FastPath::Impl::take_over_underlays(const std::string& old_set) {
  const Fd vteps(bpf_obj_get((old_set + "/vteps").c_str()));
  bpf_map_info info{};
  uint32_t size = sizeof info;
  if (vteps && bpf_obj_get_info_by_fd(vteps.get(), &info, &size) == 0 &&
      info.key_size == sizeof(pl_vtep_key))
    for (const auto& key : keys_of_vteps(vteps.get())) add_vtep_key(*maps, key);
  for (auto device : devices_in(old_set + "/underlays"))
    if (attachments.attached(device, kUnderlayHook)) underlays.insert(device);
}

void FastPath::Impl::adopt_underlays() {
  const std::vector<pl_vtep_count> none(possible_cpus());
  const pl_vtep_key strangers{};
  bpf_map_update_elem(maps->map("vtep_counts"), &strangers, none.data(), BPF_NOEXIST);
  std::vector<net::IfIndex> known;
  for_each_element<uint32_t, pl_underlay>(
      maps->map("underlays"),
      [&](const uint32_t& index, const pl_underlay&) { known.emplace_back(index); });
  for (auto device : known) {
    const bool attached =
        attachments.attached(device, kUnderlayHook) &&
        attachments.attach(device, kUnderlayHook, maps->program(kUnderlayHook), mode).has_value();
    if (attached) {
      underlays.insert(device);
      continue;
    }
    attachments.detach_underlay(device);
    for (const auto& key : vnis_of(maps->map("vnis"), device))
      bpf_map_delete_elem(maps->map("vnis"), &key);
    bpf_map_delete_elem(maps->map("underlays"), &device.value);
  }
  for (auto device : attachments.pinned_underlays()) {
    if (underlays.contains(device)) continue;
    if (attachments.attached(device, kUnderlayHook))
      underlays.insert(device);
    else
      attachments.detach_underlay(device);
  }
}

FastPathResult<void> FastPath::set_underlay(const UnderlayConfig& config) {
  const auto header = link_header(config.index);
  if (!header) return std::unexpected(header.error());
  pl_underlay value{};
  std::memcpy(value.local, vtep_key(config.local).ip, sizeof value.local);
  value.port = config.udp_port;
  value.header = *header;
  value.observe = config.observe;
  value.per_vtep = to_abi(config.per_vtep);
  value.reports = report_limit();
  const auto& maps = *impl_->maps;
  const auto failed = [&](const char* what) {
    return std::unexpected(
        bpf_error(std::string(what) + " of device " + std::to_string(config.index.value), errno));
  };
  // What is new comes first, what is old goes last: no tunnel is unguarded meanwhile.
  for (auto vni : config.vnis) {
    const pl_vni_key key{.ifindex = config.index.value, .vni = vni.value};
    const uint32_t one = 1;
    if (bpf_map_update_elem(maps.map("vnis"), &key, &one, BPF_ANY) != 0) return failed("VNIs");
  }
  if (bpf_map_update_elem(maps.map("underlays"), &config.index.value, &value, BPF_ANY) != 0)
    return failed("underlay");
  for (const auto& key : vnis_of(maps.map("vnis"), config.index))
    if (std::ranges::find(config.vnis, net::Vni(key.vni)) == config.vnis.end())
      bpf_map_delete_elem(maps.map("vnis"), &key);
  auto attached = impl_->attachments.attach(config.index, kUnderlayHook,
                                            maps.program(kUnderlayHook), impl_->mode);
  if (attached) impl_->underlays.insert(config.index);
  return attached;
}

FastPathResult<void> FastPath::remove_underlay(net::IfIndex index) {
  impl_->attachments.detach_underlay(index);
  impl_->underlays.erase(index);
  const auto& maps = *impl_->maps;
  for (const auto& key : vnis_of(maps.map("vnis"), index))
    bpf_map_delete_elem(maps.map("vnis"), &key);
  if (bpf_map_delete_elem(maps.map("underlays"), &index.value) != 0 && errno != ENOENT)
    return std::unexpected(bpf_error("forget the underlay", errno));
  return {};
}

std::vector<net::IfIndex> FastPath::underlays() const {
  return {impl_->underlays.begin(), impl_->underlays.end()};
}

FastPathResult<void> FastPath::add_vtep(const net::IpAddress& vtep) {
  if (add_vtep_key(*impl_->maps, vtep_key(vtep)) != 0)
    return std::unexpected(bpf_error("add VTEP " + to_string(vtep), errno));
  return {};
}

FastPathResult<void> FastPath::remove_vtep(const net::IpAddress& vtep) {
  const auto key = vtep_key(vtep);
  for (const char* map : {"vtep_counts", "vteps"})
    if (bpf_map_delete_elem(impl_->maps->map(map), &key) != 0 && errno != ENOENT)
      return std::unexpected(bpf_error("remove VTEP " + to_string(vtep), errno));
  return {};
}

std::vector<VtepCounter> FastPath::vtep_counters() const {
  std::vector<VtepCounter> out;
  const int map = impl_->maps->map("vtep_counts");
  for (const auto& key : keys_of_vteps(map)) {
    std::vector<pl_vtep_count> cpus(possible_cpus());
    if (bpf_map_lookup_elem(map, &key, cpus.data()) != 0) continue;
    VtepCounter counter{.vtep = from_abi(key)};
    if (std::ranges::all_of(key.ip, [](uint8_t octet) { return octet == 0; })) counter.vtep = {};
    for (const auto& cpu : cpus) {
      counter.packets += cpu.passed.packets;
      counter.bytes += cpu.passed.bytes;
      counter.limited_packets += cpu.limited.packets;
      counter.limited_bytes += cpu.limited.bytes;
      counter.observed_packets += cpu.observed.packets;
    }
    out.push_back(counter);
  }
  return out;
}

}  // namespace dataplane
