// SPDX-License-Identifier: GPL-2.0-or-later
// Adj-RIB-Out: peers that are sent the same form one group, and each message is encoded once for
// all of them.
//
// The group keeps a log of routes that changed, each at most once: a newer change of a route takes
// the place of the older one. It holds no messages and no copies, only route numbers; what a route
// looks like is read from the table when a message is made. Each peer has its place in the log, so
// that a slow one holds nobody up and is sent, when it comes along again, only the last state of
// each route.
//
// A peer that pulls gets a batch: the messages for the next stretch of the log, packed by attribute
// set. Batches are shared with whoever comes to the same place as long as nothing in them is
// outdated. A new peer (or one that asks for a refresh) walks over the table in batches too; its
// place in the log is the end at the time it began, so what changes during the walk follows after.
//
// Peers never get back what they sent: a message holds routes of one source only, which skips it.
//
// A send policy is the group's: what it rejects is treated as not there. A filter (RFC 4684) is the
// peer's: it is asked for each message, which has one attribute set. When either changes, the peer
// walks over the table with batches of its own, for what it lacks and what it has too much.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "bgp/chunked_array.h"
#include "bgp/export_policy.h"
#include "bgp/route_table.h"
#include "net/bytes.h"

namespace bgp {

struct RibState;
using MessagePtr = std::shared_ptr<const net::Bytes>;
using LogPosition = uint64_t;

// The messages for one stretch of the log or of the table.
struct Batch {
  struct Message {
    MessagePtr bytes;
    uint32_t first = 0, last = 0;            // its routes, in `routes`
    uint32_t first_bits = 0, last_bits = 0;  // the same, in `bits`
    bool withdraws = false;
    uint16_t source = 0;       // slot of the peer that announced them
    AttributesPtr attributes;  // for filters; null without one in the group, or when withdrawn
  };
  // Routes as bits of one word of Subscriber::holds: those of a message mostly are neighbors.
  struct Bits {
    uint32_t word = 0;
    uint64_t mask = 0;
  };
  std::vector<Message> messages;
  std::vector<RouteIndex> routes;
  std::vector<Bits> bits;
  bool of_table = false;
  bool filterable = false;               // its messages have their attributes
  LogPosition log_from = 0, log_to = 0;  // the stretch; of_table: the log's end when made
  RouteIndex table_from = 0, table_to = 0;
  std::size_t looked_at = 0;  // routes
};

// What a group knows of one peer.
struct Subscriber {
  enum class Walk : uint8_t { None, Initial, Refresh, Resync };
  enum class Request : uint8_t { None, Plain, Enhanced };

  uint16_t slot = 0;
  bool started = false;      // has pulled; until then it has no place in the log
  LogPosition cursor = 0;    // everything before is sent
  LogPosition after = 0;     // with a batch: where the cursor goes when it is through
  LogPosition examined = 0;  // between cursor and here nothing concerns it
  std::shared_ptr<const Batch> batch;
  std::size_t next_message = 0;

  Walk walk = Walk::None;
  bool walk_enhanced = false;  // ends with EoRR
  bool log_turn = false;       // the log's turn, in a long walk
  bool unfinished = false;     // the last pull() gave up, see Rib::unfinished()
  uint32_t walk_batches = 0;
  RouteIndex walk_next = 0, walk_end = 0;
  Request request = Request::None;  // a route refresh to be done next
  SendFilterPtr filter;             // null: wants all
  bool filter_hold = false;         // nothing is sent
  bool resync = false;              // a walk of that kind to be done next
  bool owes_end_of_rib = false;     // a walk of that kind is the first one too

  std::vector<uint64_t> holds;  // one bit a route: the peer has it from us
  uint64_t held = 0;
};

class UpdateGroup {
 public:
  UpdateGroup(RibState& state, GroupKey key);
  ~UpdateGroup();
  UpdateGroup(const UpdateGroup&) = delete;
  UpdateGroup& operator=(const UpdateGroup&) = delete;

  [[nodiscard]] const GroupKey& key() const { return key_; }
  [[nodiscard]] const std::vector<Subscriber*>& members() const { return members_; }
  void join(Subscriber& subscriber);
  void leave(Subscriber& subscriber);
  void refresh(Subscriber& subscriber, bool enhanced);
  void set_filter(Subscriber& subscriber, SendFilterPtr filter, bool hold);
  // The peer goes on in another group, whose key differs in the send policy only.
  void hand_over(Subscriber& subscriber, UpdateGroup& to);

  // The best path of a route changed in a way that may concern the group.
  void push(RouteIndex route);
  // Whether something was pushed since the last call.
  [[nodiscard]] bool take_dirty();

  [[nodiscard]] MessagePtr pull(Subscriber& subscriber);
  // Whether pull() would return a message. Steps over what does not concern the peer.
  [[nodiscard]] bool has_work(Subscriber& subscriber);
  // Routes and withdrawals not yet pulled; of many it counts those too that the peer needs not.
  [[nodiscard]] uint64_t queued(const Subscriber& subscriber) const;
  // Whether the peer has the route from us.
  [[nodiscard]] static bool has(const Subscriber& subscriber, RouteIndex route) {
    return holds(subscriber, route);
  }
  // Forgets some of what every peer has passed. True when that was all. With nobody in the group it
  // must be, before the group goes.
  bool trim();
  // Gives memory back that the routes of now don't need.
  void tidy();
  // Batches kept for others must not outlive a peer's slot.
  void forget_batches() { shared_.clear(); }

 private:
  [[nodiscard]] LogPosition log_end() const { return log_begin_ + log_.size(); }
  [[nodiscard]] std::size_t index_of(LogPosition position) const {
    return static_cast<std::size_t>(position - log_begin_);
  }
  [[nodiscard]] RouteIndex logged(LogPosition position) const;  // kNoRoute: outdated
  [[nodiscard]] bool logged_from(RouteIndex route, LogPosition from) const;
  // The path that the group is to have of a route, or kNoPath; policy and filters are not asked.
  [[nodiscard]] PathRef wanted(RouteIndex route) const;
  // For a run of routes: whether policy and filter let them pass. Attributes are unpacked once
  // where they follow each other.
  class Judge {
   public:
    Judge(const UpdateGroup& group, const SendFilter* filter) : group_(group), filter_(filter) {}
    [[nodiscard]] bool passes(PathRef path);

   private:
    const UpdateGroup& group_;
    const SendFilter* filter_;
    AttributeId last_ = Arena::kNull;
    Attributes attributes_;
    bool wanted_ = true;
  };
  [[nodiscard]] bool concerns(const Subscriber& subscriber, RouteIndex route) const;
  [[nodiscard]] bool concerns(const Subscriber& subscriber, const Batch& batch,
                              const Batch::Message& message) const;
  // Neither its own nor filtered out.
  static bool is_for(const Subscriber& subscriber, const Batch::Message& message) {
    return message.source != subscriber.slot &&
           (subscriber.filter == nullptr || message.attributes == nullptr ||
            subscriber.filter->wants(*message.attributes));
  }
  static bool holds(const Subscriber& subscriber, RouteIndex route);
  static void set_holds(Subscriber& subscriber, RouteIndex route, bool value);
  static void set_holds(Subscriber& subscriber, std::span<const Batch::Bits> bits, bool value);
  static std::span<const Batch::Bits> bits_of(const Batch& batch, const Batch::Message& message) {
    return std::span(batch.bits)
        .subspan(message.first_bits, message.last_bits - message.first_bits);
  }

  void start(Subscriber& subscriber);
  void start_walk(Subscriber& subscriber, Subscriber::Walk walk);
  [[nodiscard]] MessagePtr finish_walk(Subscriber& subscriber);
  [[nodiscard]] MessagePtr deliver(Subscriber& subscriber, const Batch::Message& message);
  [[nodiscard]] MessagePtr withdraw_held(Subscriber& subscriber,
                                         std::span<const RouteIndex> routes);
  void take_table_batch(Subscriber& subscriber);
  void take_log_batch(Subscriber& subscriber);
  void finish_batch(Subscriber& subscriber);
  [[nodiscard]] std::shared_ptr<Batch> log_batch(LogPosition from);
  [[nodiscard]] std::shared_ptr<Batch> table_batch(RouteIndex from);
  [[nodiscard]] std::shared_ptr<Batch> resync_batch(const Subscriber& subscriber);
  void start_resync(Subscriber& subscriber);
  [[nodiscard]] bool filters() const;
  void share(const std::shared_ptr<Batch>& batch);

  struct Item {
    uint64_t bucket = 0;  // attribute set and source
    RouteIndex route = kNoRoute;
    PathRef path = kNoPath;
  };
  void add_item(RouteIndex route, PathRef ref);
  void group_by_bucket(std::vector<Item>& items);
  void add_message(Batch& batch, net::Bytes bytes, std::size_t first, bool withdraws,
                   uint16_t source);
  void encode(Batch& batch, std::vector<Item>& announced, std::vector<RouteIndex>& withdrawn);
  [[nodiscard]] std::size_t encode_bucket(Batch& batch, std::span<const Item> items);
  void encode_withdrawn(Batch& batch, std::span<const RouteIndex> routes);
  [[nodiscard]] MessagePtr encode_refresh_mark(uint8_t subtype) const;

  void compact();
  [[nodiscard]] std::size_t stretch() const;

  RibState& state_;
  GroupKey key_;
  std::vector<Subscriber*> members_;
  std::size_t started_ = 0;
  bool dirty_ = false;

  std::deque<RouteIndex> log_;
  LogPosition log_begin_ = 1;      // of log_.front()
  ChunkedArray<uint32_t> newest_;  // by route: low half of its newest log position; 0: none
  std::size_t compact_at_;
  std::deque<std::shared_ptr<Batch>> shared_;
  std::size_t window_;  // routes in a batch

  std::vector<Item> announced_, grouped_;  // scratch
  std::vector<RouteIndex> withdrawn_;
  std::vector<std::span<const uint8_t>> nlris_;
};

}  // namespace bgp
