// SPDX-License-Identifier: GPL-2.0-or-later
// Our own gratuitous ARP and unsolicited NA to the members here, one for each address whose binding
// is new or changed (RFC 9161 section 3.2), paced (RFC 4861 section 7.2.6): changes before what is
// new, each address at most once a second. Inside proxyarp/ only.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "proxyarp/context.h"
#include "proxyarp/recent.h"

namespace proxyarp {

struct Announcement {
  net::MacAddress mac;
  NaFlags flags;
  std::optional<net::IfIndex> except;  // where the owner is
};

class Announcements {
 public:
  // Looks up what is to be said when its turn has come; nothing: there is no more to say.
  using Lookup = std::function<std::optional<Announcement>(const net::IpAddress&)>;

  Announcements(Context& context, Lookup lookup);
  void want(const net::IpAddress& ip, bool changed);
  // Members know by the owner's own frame.
  void forget(const net::IpAddress& ip);
  void reconfigure();
  // Sends what may go now.
  void flush();
  [[nodiscard]] net::TimePoint deadline() const;

 private:
  struct Wanted {
    bool changed = false;
    net::TimePoint from;  // not before
  };
  using Order = std::set<std::pair<net::TimePoint, net::IpAddress>>;
  Order& order(bool changed) { return changed ? changes_ : news_; }
  void send(const net::IpAddress& ip);

  Context& context_;
  Lookup lookup_;
  Pacer pacer_;
  std::map<net::IpAddress, Wanted> wanted_;
  Order changes_, news_;
  Recent<net::IpAddress> sent_;
  net::TimePoint next_slot_{};
};

}  // namespace proxyarp
