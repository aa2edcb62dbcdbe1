// SPDX-License-Identifier: GPL-2.0-or-later
// Routing information bases of one address family: Adj-RIB-In per peer, best path with its reason,
// and update groups (Adj-RIB-Out) that encode once for all peers that get the same.
//
// Pure: no socket, no clock. The speaker feeds decoded UPDATEs in and pulls encoded ones out:
//
//   rib.update(peer, item, attributes)   a route was announced by a peer (or by us: kLocalPeer)
//   rib.take_changes()    what changed in the Loc-RIB since the last call, for the PE
//   rib.take_ready()      peers that have something to be sent since the last call
//   rib.pull(peer)        the next encoded UPDATE for that peer, or nothing
//
// The parts: route_table (routes, paths, NLRI), attribute_store (interned attributes), best_path
// (the decision), export_policy (who gets what), update_group (Adj-RIB-Out).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bgp/attributes.h"
#include "bgp/family.h"
#include "bgp/policy.h"
#include "bgp/settings.h"
#include "net/bytes.h"
#include "net/ip_address.h"

namespace bgp {

using PeerId = uint32_t;
inline constexpr PeerId kLocalPeer = 0;

// What the RIB must know of a peer whose session is up.
struct PeerTraits {
  bool internal = true;  // iBGP
  NeighborRole role = NeighborRole::Peer;
  net::IpAddress address;
  uint32_t router_id = 0;  // of its OPEN, host order
  uint32_t as_number = 0;
  bool four_octet_as = true;
  std::size_t max_message = 4096;  // 65535 with RFC 8654
  std::vector<std::pair<uint8_t, uint8_t>> strip_extended_communities;
  bool long_lived = false;  // it sent the LLGR capability, RFC 9494: may get LLGR_STALE routes
  bool long_lived_partial = false;  // and if it did not, with NO_EXPORT and LOCAL_PREF 0 (4.6)
  RoutePolicyPtr accept, send;      // null: everything
};

// Which step decided, RFC 4271 section 9.1.2.2 and RFC 4456 section 9; one for each losing path.
enum class BestPathReason : uint8_t {
  OnlyPath,
  LongLivedStale,  // RFC 9494 section 4.3
  LocalRoute,
  LocalPref,
  AsPathLength,
  Origin,
  MultiExitDisc,
  ExternalOverInternal,
  Stale,
  RouterId,
  ClusterListLength,
  PeerAddress,
};
const char* to_string(BestPathReason reason);

// Why a received path is not usable (kept, shown, never selected).
enum class Rejected : uint8_t { None, OwnAsInPath, OwnOriginatorId, OwnClusterId, Policy };
const char* to_string(Rejected rejected);
inline constexpr std::size_t kRejectedKinds = 5;

struct PathView {
  std::span<const uint8_t> nlri;  // type, length, body
  PeerId peer = kLocalPeer;
  AttributesPtr attributes;
  bool best = false;
  bool stale = false;       // kept over the peer's restart, RFC 4724
  bool long_lived = false;  // ... and beyond its restart time, RFC 9494
  bool flagged = false;     // Verdict::Flag
  Rejected rejected = Rejected::None;
  BestPathReason reason = BestPathReason::OnlyPath;
};

// The best path of a key changed: attributes is null when no path is left.
struct RibChange {
  // Of the new best path, or of the last one when withdrawn. Lives until the next take_changes().
  std::span<const uint8_t> nlri;
  AttributesPtr attributes;
  PeerId peer = kLocalPeer;          // where the new best path came from
  std::optional<PeerId> previous{};  // where the one before came from, if there was one
};
// ... for whoever keeps it longer than that.
struct KeptRibChange {
  explicit KeptRibChange(const RibChange& change)
      : nlri(change.nlri.begin(), change.nlri.end()),
        attributes(change.attributes),
        peer(change.peer),
        previous(change.previous) {}
  net::Bytes nlri;
  AttributesPtr attributes;
  PeerId peer;
  std::optional<PeerId> previous;
};

struct PeerCounts {
  uint64_t received = 0;  // paths in Adj-RIB-In
  uint64_t stale = 0;
  uint64_t advertised = 0;                             // routes that the peer has from us
  uint64_t queued = 0;                                 // changes not yet pulled
  uint64_t rejected = 0;                               // of received: by loop checks or policy
  uint64_t flagged = 0;                                // of received
  std::array<uint64_t, kRejectedKinds> rejected_by{};  // rejected, by reason (Rejected)
};

class Rib {
 public:
  struct Options {
    net::AsNumber local_as;
    uint32_t router_id = 0;  // host order
    uint32_t cluster_id = 0;
    AfiSafi family = kL2vpnEvpn;
    uint64_t hash_seed = 0;     // random, so that nobody can choose keys that collide
    bool track_changes = true;  // false: nobody calls take_changes() (a pure route reflector)
    // Routes that a peer is handed messages for at a time (four times as many with extended
    // messages), and the length from which an update group's log is compacted. Small in tests.
    std::size_t batch_routes = 2048;
    std::size_t log_slack = 16384;
    std::size_t work_paths = 4096;    // that a call of work() sees to; about a millisecond
    std::size_t pull_routes = 16384;  // that a call of pull() looks at without finding one
  };
  explicit Rib(const Options& options);
  ~Rib();
  Rib(const Rib&) = delete;
  Rib& operator=(const Rib&) = delete;

  // A session came up: the peer joins its update group and is sent the whole table, then
  // End-of-RIB. Stale paths of an earlier session stay until end_of_rib() or flush_stale().
  void peer_up(PeerId peer, const PeerTraits& traits);
  // The session ended. keep_stale (RFC 4724 section 4.2): its paths stay usable, marked stale.
  // Else they are not sent any more, and removed, many of them in slices: see work().
  void peer_down(PeerId peer, bool keep_stale);
  // End-of-RIB from the peer: what it did not announce again goes (section 4.2).
  void end_of_rib(PeerId peer);
  // The restart timer ran out, or the peer came back without its forwarding state.
  void flush_stale(PeerId peer);
  // The restart time is over, but LLGR was negotiated (RFC 9494 section 4.3): stale paths with
  // NO_LLGR go, the others get LLGR_STALE and are the last choice; until flush_stale(). They
  // outlive further losses of the session (peer_down() with keep_stale).
  void long_lived_stale(PeerId peer);
  // New rules for a peer; all that it announced and is sent is judged anew. The same ones again
  // cost nothing. For a peer that is not up, what was kept of it is judged.
  void set_policies(PeerId peer, RoutePolicyPtr accept, RoutePolicyPtr send);
  // Routes that the filter does not want are not sent, and withdrawn if they were. Null: all. While
  // `hold`, nothing is sent at all (RFC 4684 section 6: until the peer's RT-constrain End-of-RIB).
  void set_send_filter(PeerId peer, SendFilterPtr filter, bool hold);
  // The peer sends everything again (RFC 7313 section 4): what it did not announce between the two
  // goes at the end. Changes no decision, and has nothing to do with stale paths.
  void refresh_begins(PeerId peer);
  void refresh_ends(PeerId peer);
  // Route refresh (RFC 2918): send everything again. With enhanced (RFC 7313) framed by BoRR/EoRR.
  void refresh(PeerId peer, bool enhanced);

  // Announced NLRI. Each replaces the peer's earlier path of the same key.
  void update(PeerId peer, std::span<const NlriItem> items, const AttributesPtr& attributes);
  void update(PeerId peer, const NlriItem& item, const AttributesPtr& attributes) {
    update(peer, std::span(&item, 1), attributes);
  }
  // Withdrawn NLRI; unknown keys are ignored.
  void withdraw(PeerId peer, std::span<const NlriItem> items);
  void withdraw(PeerId peer, std::span<const uint8_t> key);

  // Sees to some of the paths that peer_down(), end_of_rib(), flush_stale(), long_lived_stale(),
  // set_policies() and refresh_ends() left. True when there are more: to be called again, after
  // others had their turn. Meanwhile a new session of the peer may come up; what it announces takes
  // the place of what is still to be removed.
  bool work();

  // Makes room: removes some of the routes that are withdrawn and told, then gives memory back that
  // was not needed since the last call. For when there is time. True when there is more.
  bool tidy();

  // Whether take_changes() has something to tell; to begin with, as the options say. Not what
  // happened before.
  void track_changes(bool track);

  // Until released, nothing is advertised (a restarting speaker that defers, RFC 4724 section 4.1).
  void hold_advertisements(bool hold);

  [[nodiscard]] std::vector<RibChange> take_changes();
  [[nodiscard]] std::vector<PeerId> take_ready();
  // The next whole BGP message (header included) for the peer; null when it has all.
  [[nodiscard]] std::shared_ptr<const net::Bytes> pull(PeerId peer);
  // pull() returned null only because it looked at many routes that are not for this peer: to be
  // called again after others had their turn. take_ready() names the peer too.
  [[nodiscard]] bool unfinished(PeerId peer) const;

  // `queued` is exact for up to a thousand changes; from there on it may count too many.
  [[nodiscard]] PeerCounts counts(PeerId peer) const;
  // Why the path is rejected or flagged, in words; empty when it is neither.
  [[nodiscard]] std::string explain(const PathView& path) const;
  [[nodiscard]] uint64_t received(PeerId peer) const;  // the same as in counts(), for each UPDATE
  [[nodiscard]] std::size_t route_count() const;       // keys
  [[nodiscard]] std::size_t path_count() const;
  // Octets taken for routes, paths and attributes, without the indexes over them.
  [[nodiscard]] std::size_t memory_bytes() const;
  // Every path of every key, paths of one key together, best first. Stops when visit returns false.
  void for_each_path(const std::function<bool(const PathView&)>& visit) const;
  // The same in parts, for readers that must hold nobody up: `count` places of the table from
  // number `from` on, which is 0 at first. Only routes whose (first) NLRI is `wanted` are unpacked;
  // null: all. Returns where to go on, or nothing at the end or when visit returned false. A route
  // that is there all the time is seen exactly once, whatever else changes between the parts.
  using Wanted = std::function<bool(std::span<const uint8_t> nlri)>;
  [[nodiscard]] std::optional<uint32_t> for_each_path_from(
      uint32_t from, uint32_t count, const std::function<bool(const PathView&)>& visit,
      const Wanted& wanted = nullptr) const;
  // In parts too: the routes that a peer has from us, with the attributes that it was sent (or will
  // be at once, if the route has just changed).
  [[nodiscard]] std::optional<uint32_t> for_each_advertised_from(
      PeerId peer, uint32_t from, uint32_t count,
      const std::function<void(std::span<const uint8_t> nlri, const Attributes& attributes)>& visit)
      const;
  // Whether the peer's path of a key is usable; nothing when it has none.
  [[nodiscard]] std::optional<Rejected> standing(PeerId peer, std::span<const uint8_t> key) const;
  // Of a peer that is up or has paths; else null. Valid until the next call of another function.
  [[nodiscard]] const PeerTraits* traits(PeerId peer) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bgp
