// SPDX-License-Identifier: GPL-2.0-or-later
// tcx is younger than libbpf 1.1: links are made by the plain system call, everything else of them
// works through libbpf. A link's pin is called <ifindex>_in, <ifindex>_out, <ifindex>_xdp
// or <ifindex>_under.
#include "dataplane/bpf_attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace dataplane {

namespace {

// linux/bpf.h since 6.6
constexpr uint32_t kTcxIngress = 46;
constexpr uint32_t kTcxEgress = 47;
struct TcxAttributes {
  uint32_t program, ifindex, attach_type, flags;
  uint32_t relative, zero;
  uint64_t expected_revision;
};

constexpr const char* kUnderlaySuffix = "_under";

// Handle and priority of our clsact filters: to find them again.
constexpr uint32_t kFilterHandle = 0x706c, kUnderlayHandle = 0x706d;
constexpr uint32_t kFilterPriority = 1;

// The hook is on the way in.
bool inward(int hook) { return hook == PL_IN || hook == kUnderlayHook; }

int create_tcx_link(int program, uint32_t ifindex, int hook) {
  TcxAttributes attributes{};
  attributes.program = static_cast<uint32_t>(program);
  attributes.ifindex = ifindex;
  attributes.attach_type = inward(hook) ? kTcxIngress : kTcxEgress;
  return static_cast<int>(
      syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, static_cast<unsigned>(sizeof attributes)));
}

// The device of a tcx link; 0 when it is gone. The union member that this libbpf's header lacks
// starts with the ifindex, as that of xdp does.
uint32_t device_of(int link) {
  bpf_link_info info{};
  uint32_t size = sizeof info;
  return bpf_obj_get_info_by_fd(link, &info, &size) == 0 ? info.xdp.ifindex : 0;
}

int create_xdp_link(int program, uint32_t ifindex) {
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = XDP_FLAGS_DRV_MODE;
  return bpf_link_create(program, static_cast<int>(ifindex), BPF_XDP, &options);
}

bool ethtool(net::IfIndex port, void* command) {
  ifreq request{};
  if (if_indextoname(port.value, request.ifr_name) == nullptr) return false;
  request.ifr_data = static_cast<char*>(command);
  const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return any && ::ioctl(any.get(), SIOCETHTOOL, &request) == 0;
}

// An XDP program does not see a tag that the device took out of the frame, and would answer as if
// there were none. True when tags stay in the frames. A veth pair has no device that does so.
bool keep_tags_in_frames(net::IfIndex port) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (ethtool(port, &driver) && std::string_view(driver.driver) == "veth") return true;
  ethtool_value flags{.cmd = ETHTOOL_GFLAGS, .data = 0};
  if (!ethtool(port, &flags) || (flags.data & ETH_FLAG_RXVLAN) == 0) return true;
  flags.cmd = ETHTOOL_SFLAGS;
  flags.data &= ~static_cast<uint32_t>(ETH_FLAG_RXVLAN);
  if (!ethtool(port, &flags)) return false;
  flags.cmd = ETHTOOL_GFLAGS;
  return ethtool(port, &flags) && (flags.data & ETH_FLAG_RXVLAN) == 0;
}

bpf_tc_hook filter_hook(net::IfIndex port, int hook) {
  bpf_tc_hook out{};
  out.sz = sizeof out;
  out.ifindex = static_cast<int>(port.value);
  out.attach_point = inward(hook) ? BPF_TC_INGRESS : BPF_TC_EGRESS;
  return out;
}
bpf_tc_opts filter_options(int hook) {
  bpf_tc_opts out{};
  out.sz = sizeof out;
  out.handle = hook == kUnderlayHook ? kUnderlayHandle : kFilterHandle;
  out.priority = kFilterPriority;
  return out;
}

bool has_filter(net::IfIndex port, int hook) {
  const auto where = filter_hook(port, hook);
  auto options = filter_options(hook);
  return bpf_tc_query(&where, &options) == 0;
}

void drop_filter(net::IfIndex port, int hook) {
  const auto where = filter_hook(port, hook);
  const auto options = filter_options(hook);
  bpf_tc_detach(&where, &options);
}

FastPathResult<void> attach_filter(net::IfIndex port, int hook, int program) {
  auto where = filter_hook(port, hook);
  int status = bpf_tc_hook_create(&where);
  if (status != 0 && status != -EEXIST)
    return std::unexpected(bpf_error("clsact on device " + std::to_string(port.value), -status));
  auto options = filter_options(hook);
  options.prog_fd = program;
  options.flags = BPF_TC_F_REPLACE;
  status = bpf_tc_attach(&where, &options);
  if (status != 0)
    return std::unexpected(bpf_error("tc filter on device " + std::to_string(port.value), -status));
  return {};
}

}  // namespace

FastPathError bpf_error(const std::string& what, int error) {
  return {what + ": " + std::strerror(error), error};
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

bool tcx_supported() {
  // No device has index 0: a kernel with tcx says so, one without does not know the type. Either
  // wants a program first.
  const bpf_insn pass[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = -1},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  const Fd program(bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "pl_probe", "GPL", pass, 2, nullptr));
  if (!program) return false;
  const Fd link(create_tcx_link(program.get(), 0, PL_IN));
  return !link && errno == ENODEV;
}

std::string Attachments::path(net::IfIndex port, int hook) const {
  const char* suffix = hook == PL_IN           ? "_in"
                       : hook == PL_OUT        ? "_out"
                       : hook == kUnderlayHook ? kUnderlaySuffix
                                               : "_xdp";
  return folder_ + "/" + std::to_string(port.value) + suffix;
}

void Attachments::drop_link(net::IfIndex port, int hook) const {
  const auto pin = path(port, hook);
  const Fd link(bpf_obj_get(pin.c_str()));
  if (link) bpf_link_detach(link.get());
  ::unlink(pin.c_str());
}

FastPathResult<void> Attachments::attach_link(net::IfIndex port, int hook, int program) const {
  const auto pin = path(port, hook);
  {
    const Fd link(bpf_obj_get(pin.c_str()));
    if (link && device_of(link.get()) == port.value) {
      if (bpf_link_update(link.get(), program, nullptr) == 0) return {};
      return std::unexpected(bpf_error("update " + pin, errno));
    }
  }
  ::unlink(pin.c_str());  // of a device that is gone
  const Fd link(hook == kXdpHook ? create_xdp_link(program, port.value)
                                 : create_tcx_link(program, port.value, hook));
  if (!link)
    return std::unexpected(bpf_error("attach to device " + std::to_string(port.value), errno));
  if (bpf_obj_pin(link.get(), pin.c_str()) != 0)
    return std::unexpected(bpf_error("pin " + pin, errno));  // detached with its descriptor
  return {};
}

FastPathResult<void> Attachments::attach(net::IfIndex port, int hook, int program,
                                         AttachMode mode) const {
  if (mode == AttachMode::Tcx) {
    auto result = attach_link(port, hook, program);
    if (result && has_filter(port, hook)) drop_filter(port, hook);
    return result;
  }
  auto result = attach_filter(port, hook, program);
  if (result) drop_link(port, hook);
  return result;
}

FastPathResult<void> Attachments::attach_xdp(net::IfIndex port, int program) const {
  if (!keep_tags_in_frames(port))
    return std::unexpected(bpf_error("XDP on device " + std::to_string(port.value), EOPNOTSUPP));
  return attach_link(port, kXdpHook, program);
}

void Attachments::detach(net::IfIndex port) const {
  char name[IF_NAMESIZE];
  const bool exists = if_indextoname(port.value, name) != nullptr;
  drop_link(port, kXdpHook);
  for (int hook : {PL_IN, PL_OUT}) {
    drop_link(port, hook);
    if (exists && has_filter(port, hook)) drop_filter(port, hook);
  }
}

void Attachments::detach_underlay(net::IfIndex device) const {
  char name[IF_NAMESIZE];
  drop_link(device, kUnderlayHook);
  if (if_indextoname(device.value, name) != nullptr && has_filter(device, kUnderlayHook))
    drop_filter(device, kUnderlayHook);
}

bool Attachments::attached(net::IfIndex port, int hook) const {
  char name[IF_NAMESIZE];
  if (if_indextoname(port.value, name) == nullptr) return false;
  const Fd link(bpf_obj_get(path(port, hook).c_str()));
  if (link && device_of(link.get()) == port.value) return true;
  return hook != kXdpHook && has_filter(port, hook);
}

bool Attachments::link_alive(net::IfIndex port) const {
  return std::ranges::any_of(std::array<int, 4>{PL_IN, PL_OUT, kXdpHook, kUnderlayHook},
                             [&](int hook) {
                               const Fd link(bpf_obj_get(path(port, hook).c_str()));
                               return link && device_of(link.get()) != 0;
                             });
}

std::vector<net::IfIndex> Attachments::pinned() const { return pinned(false); }
std::vector<net::IfIndex> Attachments::pinned_underlays() const { return pinned(true); }

std::vector<net::IfIndex> Attachments::pinned(bool underlays) const {
  std::vector<net::IfIndex> out;
  DIR* dir = opendir(folder_.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    uint32_t index = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), index);
    if (end.ec == std::errc() && *end.ptr == '_' && name.ends_with(kUnderlaySuffix) == underlays)
      out.emplace_back(index);
  }
  closedir(dir);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace dataplane
