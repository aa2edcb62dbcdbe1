// SPDX-License-Identifier: GPL-2.0-or-later
// Reads RTNLGRP_LINK and RTNLGRP_NEIGH and turns them into KernelEvents. An event takes some 740
// octets of the receive buffer and learning can run at 100000 MACs a second, so the buffer is
// sized for the table and each turn of the loop reads a bounded number; what overruns all the same
// is one EventsLost, once what is left was read. Devices are reported when something in LinkChanged
// differs from the last report, forwarding entries when they are of a watched bridge and local:
//   new, not external, not the device's own address  -> FdbLearned (a take-over of an external
//                                                       entry by a member port looks the same)
//   gone, not the device's own address               -> FdbGone
#include "dataplane/netlink_events.h"

// clang-format off
#include <sys/socket.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dataplane/netlink_fdb.h"
#include "dataplane/netlink_link.h"

namespace dataplane::netlink {
namespace {

constexpr int kReadsPerTurn = 256;
constexpr std::size_t kReadSize = 64 << 10;

bool same(const LinkChanged& a, const LinkChanged& b) {
  return a.name == b.name && a.exists == b.exists && a.up == b.up && a.bridge == b.bridge;
}

}  // namespace

// Kept alive by its own pending wait, so that the handler may destroy the Kernel.
struct EventSource::Pump : std::enable_shared_from_this<Pump> {
  Pump(boost::asio::io_context& io, SocketPointer netlink)
      : socket(std::move(netlink)), descriptor(io, nl_socket_get_fd(socket.get())) {}
  ~Pump() { descriptor.release(); }  // libnl closes it

  void wait() {
    descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            if (!error && !self->stopped) self->turn();
                          });
  }

  void stop() {
    stopped = true;
    handler = nullptr;
    tunnel_handler = nullptr;
    descriptor.cancel();
  }

  void turn() {
    for (int i = 0; i < kReadsPerTurn && !stopped; ++i) {
      const ssize_t length =
          ::recv(descriptor.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (length >= 0) {
        messages(static_cast<std::size_t>(length));
      } else if (errno == ENOBUFS) {
        overrun = true;
      } else if (errno == EAGAIN) {
        // Until the socket is empty the kernel drops further messages and does not say so again.
        if (std::exchange(overrun, false)) report(EventsLost{});
        break;
      } else if (errno != EINTR) {
        spdlog::error("netlink events: {}", std::strerror(errno));
        break;
      }
    }
    if (!stopped) wait();
  }

  void messages(std::size_t length) {
    int left = static_cast<int>(length);
    auto* first = reinterpret_cast<nlmsghdr*>(buffer.data());  // aligned by the allocator
    for (nlmsghdr* m = first; nlmsg_ok(m, left) && !stopped; m = nlmsg_next(m, &left)) {
      switch (m->nlmsg_type) {
        case RTM_NEWLINK:
        case RTM_DELLINK: link(m); break;
        case RTM_NEWNEIGH:
        case RTM_DELNEIGH: fdb(m); break;
        default: break;
      }
    }
  }

  void link(nlmsghdr* message) {
    const auto change = parse_link_change(message);
    if (!change) return;
    const auto it = links.find(change->index);
    // A bridge's farewell to its port may come after the device's.
    const auto* header = static_cast<const ifinfomsg*>(nlmsg_data(message));
    if (it == links.end() && header->ifi_family == AF_BRIDGE) return;
    if (it == links.end() ? !change->exists : same(it->second, *change)) return;
    if (change->exists)
      links[change->index] = *change;
    else
      links.erase(it);
    report(*change);
  }

  void fdb(nlmsghdr* message) {
    const auto change = parse_fdb(message);
    if (!change) return;
    if (!change->entry.on_bridge) return tunnel(*change);
    if (change->entry.permanent) return;
    if (change->entry.port == change->bridge || !bridges.contains(change->bridge)) return;
    if (change->removed)
      report(FdbGone{change->entry.port, change->entry.mac});
    else if (!change->entry.external)
      report(FdbLearned{change->entry.port, change->entry.mac});
  }

  void tunnel(const FdbMessage& change) {
    const FdbEntry& entry = change.entry;
    if (!tunnel_handler || !entry.vtep) return;
    const auto link = links.find(entry.port);
    if (link == links.end() || !bridges.contains(link->second.bridge)) return;
    const auto call = tunnel_handler;
    call({entry.port, entry.mac, *entry.vtep, change.removed, entry.external});
  }

  void report(const KernelEvent& event) {
    const auto call = handler;  // it may replace itself
    if (call) call(event);
  }

  SocketPointer socket;
  boost::asio::posix::stream_descriptor descriptor;
  std::function<void(const KernelEvent&)> handler;
  std::function<void(const TunnelChanged&)> tunnel_handler;
  std::unordered_map<net::IfIndex, LinkChanged> links;  // as last reported
  std::unordered_set<net::IfIndex> bridges;
  std::vector<std::byte> buffer = std::vector<std::byte>(kReadSize);
  bool stopped = false;
  bool overrun = false;  // messages were lost, and more may be
};

EventSource::EventSource(std::shared_ptr<Pump> pump) : pump_(std::move(pump)) {}
EventSource::~EventSource() { pump_->stop(); }

Result<std::unique_ptr<EventSource>> EventSource::open(boost::asio::io_context& io,
                                                       int buffer_bytes) {
  SocketPointer socket(nl_socket_alloc());
  if (!socket) return std::unexpected(Failure{.error = ENOMEM, .text = {}});
  const auto failed = [](int libnl) {
    return std::unexpected(Failure{.error = errno ? errno : EIO, .text = nl_geterror(libnl)});
  };
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0) return failed(error);
  set_receive_buffer(nl_socket_get_fd(socket.get()), buffer_bytes);
  if (const int error = nl_socket_add_memberships(socket.get(), RTNLGRP_LINK, RTNLGRP_NEIGH, 0);
      error < 0)
    return failed(error);
  auto pump = std::make_shared<Pump>(io, std::move(socket));
  pump->wait();
  return std::unique_ptr<EventSource>(new EventSource(std::move(pump)));
}

void EventSource::on_event(std::function<void(const KernelEvent&)> handler) {
  pump_->handler = std::move(handler);
}
void EventSource::on_tunnel_change(std::function<void(const TunnelChanged&)> handler) {
  pump_->tunnel_handler = std::move(handler);
}
void EventSource::watch(net::IfIndex bridge) { pump_->bridges.insert(bridge); }
void EventSource::unwatch(net::IfIndex bridge) { pump_->bridges.erase(bridge); }

void EventSource::known_links(std::span<const LinkChanged> links) {
  pump_->links.clear();
  for (const LinkChanged& link : links) pump_->links.emplace(link.index, link);
}

}  // namespace dataplane::netlink
