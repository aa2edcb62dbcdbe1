// SPDX-License-Identifier: GPL-2.0-or-later
// Events are only a sign to look again: of IPv4 routes that go with a device's carrier or address
// the kernel says nothing, so links and addresses are listened to as well. A route is asked for
// with RTM_F_FIB_MATCH, which answers with the route of the table, its prefix and all next hops; a
// next hop counts when its device has carrier.
#include "dataplane/route_watch.h"

// clang-format off
#include <sys/socket.h>
#include <linux/rtnetlink.h>
// clang-format on
#include <fmt/format.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "dataplane/netlink_link.h"
#include "dataplane/netlink_socket.h"

namespace dataplane {
namespace {

using namespace std::chrono_literals;

constexpr auto kTogether = 2ms;  // changes within this time are one
constexpr std::size_t kReadSize = 64 << 10;
constexpr int kBuffer = 1 << 20;

// What a lookup says where there is no route, or one that drops.
bool means_no_route(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EINVAL || error == EACCES ||
         error == ESRCH;
}

struct Found {
  uint8_t type = 0;
  uint8_t length = 0;             // of the prefix
  std::vector<net::IfIndex> out;  // devices of its next hops that are not dead
};

Found parse_route(nlmsghdr* message) {
  const auto* header = static_cast<const rtmsg*>(nlmsg_data(message));
  Found found{header->rtm_type, header->rtm_dst_len, {}};
  const bool dead = (header->rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) != 0;
  int left = nlmsg_attrlen(message, sizeof(rtmsg));
  for (nlattr* a = nlmsg_attrdata(message, sizeof(rtmsg)); nla_ok(a, left);
       a = nla_next(a, &left)) {
    if (nla_type(a) == RTA_OIF && nla_len(a) >= 4 && !dead) found.out.emplace_back(nla_get_u32(a));
    if (nla_type(a) != RTA_MULTIPATH) continue;
    auto* hop = static_cast<rtnexthop*>(nla_data(a));
    int hops = nla_len(a);
    while (hops >= static_cast<int>(sizeof(rtnexthop)) && hop->rtnh_len >= sizeof(rtnexthop) &&
           hop->rtnh_len <= hops) {
      if ((hop->rtnh_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) == 0)
        found.out.emplace_back(static_cast<uint32_t>(hop->rtnh_ifindex));
      const auto step = static_cast<int>(NLMSG_ALIGN(hop->rtnh_len));
      hops -= step;
      hop = reinterpret_cast<rtnexthop*>(reinterpret_cast<char*>(hop) + step);
    }
  }
  return found;
}

}  // namespace

struct RouteWatch::Impl {
  // Kept alive by its own pending wait.
  struct Pump : std::enable_shared_from_this<Pump> {
    Pump(boost::asio::io_context& io, netlink::SocketPointer netlink, std::function<void()> call)
        : socket(std::move(netlink)),
          descriptor(io, nl_socket_get_fd(socket.get())),
          together(io),
          changed(std::move(call)) {}
    ~Pump() { descriptor.release(); }  // libnl closes it

    void wait() {
      descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                            [self = shared_from_this()](const boost::system::error_code& error) {
                              if (!error && self->changed) self->read();
                            });
    }
    // What they say is not needed, nor how many were lost.
    void read() {
      std::vector<std::byte> buffer(kReadSize);
      while (::recv(descriptor.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT) >= 0 ||
             errno == EINTR || errno == ENOBUFS) {
      }
      together.expires_after(kTogether);
      together.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (error || !self->changed) return;
        const auto call = self->changed;
        self->wait();
        call();
      });
    }
    void stop() {
      changed = nullptr;
      descriptor.cancel();
      together.cancel();
    }

    netlink::SocketPointer socket;
    boost::asio::posix::stream_descriptor descriptor;
    boost::asio::steady_timer together;
    std::function<void()> changed;
  };

  Impl(netlink::Socket asks, std::shared_ptr<Pump> events)
      : socket(std::move(asks)), pump(std::move(events)) {}
  ~Impl() { pump->stop(); }

  bool has_carrier(net::IfIndex device) {
    bool up = true;  // where it can't be told
    const auto got = socket.get(netlink::get_link(device), [&](nlmsghdr* m) {
      if (const auto link = netlink::parse_link_change(m)) up = link->up;
    });
    return got ? *got && up : true;
  }

  netlink::Socket socket;
  std::shared_ptr<Pump> pump;
};

RouteWatch::RouteWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RouteWatch::~RouteWatch() = default;

KernelResult<std::unique_ptr<RouteWatch>> RouteWatch::open(boost::asio::io_context& io,
                                                           std::function<void()> changed) {
  const auto failed = [](const char* what, int error) {
    return std::unexpected(
        KernelError{fmt::format("watch routes: {}: {}", what, std::strerror(error)), error});
  };
  netlink::SocketPointer events(nl_socket_alloc());
  if (!events) return failed("socket", ENOMEM);
  if (nl_connect(events.get(), NETLINK_ROUTE) < 0) return failed("connect", errno ? errno : EIO);
  netlink::set_receive_buffer(nl_socket_get_fd(events.get()), kBuffer);
  if (nl_socket_add_memberships(events.get(), RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                                RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_NEXTHOP, 0) < 0)
    return failed("groups", errno ? errno : EIO);
  auto asks = netlink::Socket::open();
  if (!asks) return failed("socket", asks.error().error);
  auto pump = std::make_shared<Impl::Pump>(io, std::move(events), std::move(changed));
  pump->wait();
  return std::unique_ptr<RouteWatch>(
      new RouteWatch(std::make_unique<Impl>(std::move(*asks), std::move(pump))));
}

KernelResult<RouteTo> RouteWatch::route_to(const net::IpAddress& address) {
  rtmsg header{};
  header.rtm_family = address.is_v4() ? AF_INET : AF_INET6;
  header.rtm_dst_len = address.bits();
  header.rtm_flags = RTM_F_FIB_MATCH;
  netlink::Message request(RTM_GETROUTE, 0, header);
  request.put(RTA_DST, address.bytes());
  Found found;
  const auto got =
      impl_->socket.get(std::move(request), [&](nlmsghdr* m) { found = parse_route(m); });
  if (!got && means_no_route(got.error().error)) return RouteTo::None;
  if (!got)
    return std::unexpected(
        KernelError{fmt::format("look up the route to {}: {}", net::to_string(address),
                                std::strerror(got.error().error)),
                    got.error().error});
  if (!*got) return RouteTo::None;
  if (found.type == RTN_LOCAL) return RouteTo::Special;
  if (found.type != RTN_UNICAST) return RouteTo::None;
  for (const auto device : found.out)
    if (impl_->has_carrier(device)) return found.length == 0 ? RouteTo::Default : RouteTo::Special;
  return RouteTo::None;
}

}  // namespace dataplane
