// SPDX-License-Identifier: GPL-2.0-or-later
// Addresses that are asked for again and again, and nobody answers: after so many questions at such
// a rate, and questions of our own, an address is dead and we answer for it with a MAC that
// swallows what is sent to it. As the AMS-IX ARP sponge does, for IPv6 too. Inside proxyarp/ only.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "proxyarp/announcements.h"
#include "proxyarp/context.h"

namespace proxyarp {

class SpongeTable {
 public:
  SpongeTable(Context& context, Announcements& announcements);

  // Nothing that is bound is ever handed in, and only addresses of prefixes that are sponged.
  void question(const net::IpAddress& ip, net::MacAddress asker);
  // An ARP probe or duplicate address detection: somebody may be about to use it.
  void probed(const net::IpAddress& ip);
  void answered(const net::IpAddress& ip);
  // A sign of life of the address itself; `mac` none: a route of another PE.
  void alive(const net::IpAddress& ip, std::optional<net::MacAddress> mac, net::IfIndex port);
  // A frame for the address came to the MAC of the sponge: a BGP connection or something else.
  void reached(const net::IpAddress& ip, bool bgp);
  [[nodiscard]] bool answers_for(const net::IpAddress& ip) const;  // dead, or told so
  [[nodiscard]] std::optional<net::MacAddress> mac() const;
  // What members are to be told of the address: our MAC, or that of the owner who came back.
  [[nodiscard]] std::optional<Announcement> announcement(const net::IpAddress& ip) const;

  [[nodiscard]] bool watches(const net::IpAddress& ip) const { return addresses_.contains(ip); }

  bool set(const net::IpAddress& ip, SpongeState state);
  // Forgets what is not sponged any more.
  void reconfigure(const std::function<bool(const net::IpAddress&)>& sponged);
  // When the next sweep begins, from now on.
  void plan_sweep();
  // `quiet` says whether nobody has the address.
  void tick(const std::function<bool(const net::IpAddress&)>& quiet);
  [[nodiscard]] net::TimePoint deadline() const;
  void for_each(const std::function<void(const SpongeView&)>& visit) const;

 private:
  struct Question {
    uint32_t at = 0;      // milliseconds since the start
    uint32_t source = 0;  // hash of the asker
  };
  // The latest questions, oldest first from `head` on.
  struct Queue {
    std::vector<Question> ring;
    std::size_t head = 0;
    const Question& back(std::size_t n) const {  // the n-th latest
      return ring[(head + ring.size() - 1 - n) % ring.size()];
    }
    const Question& front() const { return ring[head % ring.size()]; }
  };
  struct Address {
    SpongeState state = SpongeState::Alive;
    uint32_t asked_by_us = 0;
    Queue queue;
    uint64_t questions = 0, answers = 0, bgp_attempts = 0;
    net::TimePoint since, asked, due = net::kNever;
    std::optional<net::MacAddress> last_asker;
    std::optional<net::MacAddress> owner;  // who came back
    net::IfIndex owner_port;
  };
  using Addresses = std::map<net::IpAddress, Address>;

  Address* find(const net::IpAddress& ip);
  Address* watch(const net::IpAddress& ip);
  void forget(Addresses::iterator at);
  void make_room();
  void touch(const net::IpAddress& ip, Address& address);
  void clear(Queue& queue);
  void push(Queue& queue, const Question& question);
  [[nodiscard]] bool counts(const Queue& queue, const Question& question) const;
  [[nodiscard]] double rate(const Queue& queue) const;  // a minute
  void enter(const net::IpAddress& ip, Address& address, SpongeState state);
  void set_due(const net::IpAddress& ip, Address& address, net::TimePoint due);
  void due(const net::IpAddress& ip, Address& address);
  bool ask(const net::IpAddress& ip);
  [[nodiscard]] bool is_learning() const;
  void sweep(const std::function<bool(const net::IpAddress&)>& quiet);

  Context& context_;
  Announcements& announcements_;
  Addresses addresses_;
  std::set<std::pair<net::TimePoint, net::IpAddress>> timers_;
  std::set<std::pair<net::TimePoint, net::IpAddress>> alive_;  // by last question: the first to go
  std::size_t queued_ = 0;                                     // questions in all queues
  Pacer pacer_;
  // The sweep: when the next step is due, and where it is.
  std::vector<net::IpPrefix> ranges_;
  net::TimePoint sweep_due_ = net::kNever;
  std::size_t range_ = 0;
  uint32_t offset_ = 0;
};

}  // namespace proxyarp
