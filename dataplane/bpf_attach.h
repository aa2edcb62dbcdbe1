// SPDX-License-Identifier: GPL-2.0-or-later
// Attaching a program to tc ingress or egress of a device so that it stays when the daemon goes:
// by a tcx link that is pinned (kernel 6.6), else as a clsact filter; and to its driver, native
// XDP, by a link that is pinned. For fast_path.cpp.
#pragma once
#include <string>
#include <vector>

#include "dataplane/bpf/abi.h"
#include "dataplane/fast_path.h"

namespace dataplane {

// "what: text of the errno"
[[nodiscard]] FastPathError bpf_error(const std::string& what, int error);

// A file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class AttachMode : uint8_t { Tcx, Clsact };
constexpr int kXdpHook = PL_HOOKS;           // beside enum pl_hook
constexpr int kUnderlayHook = PL_HOOKS + 1;  // tc ingress of a device that tunnels come in through

[[nodiscard]] bool tcx_supported();

// The attachments whose links are pinned in `folder`, for devices of the thread's network
// namespace.
class Attachments {
 public:
  explicit Attachments(std::string folder) : folder_(std::move(folder)) {}

  // Attaches, or puts the program in the place of what is attached, whatever the mode was: the new
  // program is there before the old one goes.
  [[nodiscard]] FastPathResult<void> attach(net::IfIndex port, int hook, int program,
                                            AttachMode mode) const;
  void detach(net::IfIndex port) const;  // all hooks of a port
  void detach_underlay(net::IfIndex device) const;
  // Attaches, or updates. An error when the driver has no native XDP, or can't with this MTU, or
  // takes VLAN tags out of frames before the program sees them and won't leave that.
  [[nodiscard]] FastPathResult<void> attach_xdp(net::IfIndex port, int program) const;
  void detach_xdp(net::IfIndex port) const { drop_link(port, kXdpHook); }
  [[nodiscard]] bool attached(net::IfIndex port, int hook) const;  // PL_IN, PL_OUT, kXdpHook
  [[nodiscard]] std::vector<net::IfIndex> pinned() const;  // ports with links, dead ones too
  [[nodiscard]] std::vector<net::IfIndex> pinned_underlays() const;
  [[nodiscard]] bool link_alive(net::IfIndex port) const;  // in whatever namespace

 private:
  [[nodiscard]] std::vector<net::IfIndex> pinned(bool underlays) const;
  [[nodiscard]] std::string path(net::IfIndex port, int hook) const;
  [[nodiscard]] FastPathResult<void> attach_link(net::IfIndex port, int hook, int program) const;
  void drop_link(net::IfIndex port, int hook) const;
  std::string folder_;
};

}  // namespace dataplane
