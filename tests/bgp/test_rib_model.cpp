// SPDX-License-Identifier: GPL-2.0-or-later
// Random histories of sessions, routes, pulls, refreshes, policies, filters and long-lived stale
// routes against a naive model: what every peer holds and what take_changes() told must be what the
// model says, and the counts must be exact after every step. Tiny batches, messages and logs make
// every place where peers part and meet common.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <optional>
#include <tuple>

#include "bgp/export_policy.h"
#include "rib_support.h"

using namespace bgp;
using namespace bgp::test;

namespace {

constexpr PeerId kPeers = 7;
constexpr uint32_t kKeys = 12;
constexpr uint32_t kNoLlgr = 0xffff0007;

PeerTraits traits_of(PeerId peer) {
  PeerTraits traits;
  switch (peer) {
    case 1:
    case 2: traits = ibgp(peer); break;
    case 3: traits = ibgp(peer, NeighborRole::Peer); break;
    case 4:
    case 5: traits = ebgp(peer); break;
    case 6: traits = ebgp(peer, NeighborRole::Peer); break;
    default: traits = ibgp(peer); traits.strip_extended_communities = {{0x03, 0x0c}};
  }
  traits.max_message = 230;
  traits.long_lived = peer % 3 != 1;
  return traits;
}

AttributesPtr attributes_of(PeerId peer, uint32_t variant) {
  Attributes a = vtep(variant % 3 == 0 ? peer : 99);  // some sets are shared by peers
  const bool external = peer != kLocalPeer && !traits_of(peer).internal;
  if (!external && variant % 5 == 1) a.local_pref = 200;
  if (external || variant % 7 == 2)
    a.as_path = {{AsPathSegment::Sequence, std::vector<uint32_t>(1 + variant % 2, 64999)}};
  if (variant % 11 == 3) a.origin = Origin::Incomplete;
  if (variant == 13) a.as_path = {{AsPathSegment::Sequence, {65000}}};  // ours: a loop
  if (!external && peer != kLocalPeer && variant == 14) a.originator_id = 0x0a0000fe;
  if (!external && peer != kLocalPeer && variant == 15) a.cluster_list = {1, 2};
  if (variant == 9) a.communities = {kNoLlgr};
  if (variant == 12) a.communities = {kLlgrStaleCommunity};
  return share(a);
}

// Of all that a policy may look at.
uint32_t mix(std::span<const uint8_t> nlri, const Attributes& a, uint32_t seed) {
  uint32_t h = seed;
  for (const uint8_t octet : nlri) h = h * 31 + octet;
  return h * 31 + a.next_hop.v4_value() + static_cast<uint32_t>(a.communities.size());
}
class AnyPolicy final : public RoutePolicy {
 public:
  explicit AnyPolicy(uint32_t seed) : seed_(seed) {}
  Verdict judge(std::span<const uint8_t> nlri, const Attributes& a) const override {
    const uint32_t dice = (mix(nlri, a, seed_) >> 3) % 5;
    return dice < 2 ? Verdict::Reject : dice == 2 ? Verdict::Flag : Verdict::Accept;
  }
  std::string explain(std::span<const uint8_t>, const Attributes&) const override { return "any"; }

 private:
  uint32_t seed_;
};
class AnyFilter final : public SendFilter {
 public:
  explicit AnyFilter(uint32_t seed) : seed_(seed) {}
  bool wants(const Attributes& a) const override { return (mix({}, a, seed_) >> 2) % 2 == 0; }

 private:
  uint32_t seed_;
};
const RoutePolicyPtr kPolicies[] = {nullptr, std::make_shared<AnyPolicy>(11u),
                                    std::make_shared<AnyPolicy>(47u)};
const SendFilterPtr kFilters[] = {nullptr, std::make_shared<AnyFilter>(5u),
                                  std::make_shared<AnyFilter>(78u)};

struct ModelPath {
  net::Bytes nlri;
  AttributesPtr attributes;
  bool stale = false, long_lived = false, rejected = false, flagged = false;
  bool refreshed = true;  // since the peer's last BoRR
  bool operator==(const ModelPath& other) const {
    return nlri == other.nlri && *attributes == *other.attributes && stale == other.stale &&
           long_lived == other.long_lived && rejected == other.rejected && flagged == other.flagged;
  }
  bool has(uint32_t community) const {
    const auto& all = attributes->communities;
    return std::ranges::find(all, community) != all.end();
  }
};

struct Model {
  std::map<PeerId, std::map<net::Bytes, ModelPath>> paths;
  std::map<PeerId, bool> up{{kLocalPeer, true}};

  std::map<PeerId, RoutePolicyPtr> accept, send;
  std::map<PeerId, SendFilterPtr> filter;
  std::map<PeerId, bool> hold;
  std::map<PeerId, int> refreshes;

  PeerTraits traits(PeerId peer) {
    PeerTraits traits = traits_of(peer);
    traits.accept = accept[peer];
    traits.send = send[peer];
    return traits;
  }
  void judge(PeerId peer, ModelPath& path) {
    if (peer == kLocalPeer) return;
    path.rejected =
        as_path_contains(*path.attributes, 65000) || path.attributes->originator_id == 0x0a0000fe;
    path.flagged = false;
    if (path.rejected || accept[peer] == nullptr) return;
    const Verdict verdict = accept[peer]->judge(path.nlri, *path.attributes);
    path.rejected = verdict == Verdict::Reject;
    path.flagged = verdict == Verdict::Flag;
  }
  void judge_all(PeerId peer) {
    for (auto& [key, path] : paths[peer]) judge(peer, path);
  }
  void make_long_lived(PeerId peer) {
    std::erase_if(paths[peer], [](const auto& entry) {
      return entry.second.stale && !entry.second.long_lived && entry.second.has(kNoLlgr);
    });
    for (auto& [key, path] : paths[peer]) {
      if (!path.stale) continue;
      path.long_lived = true;
      if (path.has(kLlgrStaleCommunity)) continue;
      Attributes marked = *path.attributes;
      marked.communities.push_back(kLlgrStaleCommunity);
      path.attributes = share(marked);
      judge(peer, path);
    }
  }
  void begin_refresh(PeerId peer) {
    if (refreshes[peer] == 6) return;  // of so many without an end, the last ones count as one
    ++refreshes[peer];
    for (auto& [key, path] : paths[peer])
      if (!path.stale) path.refreshed = false;
  }
  void end_refresh(PeerId peer) {
    refreshes[peer] = 0;
    std::erase_if(paths[peer],
                  [](const auto& entry) { return !entry.second.refreshed && !entry.second.stale; });
  }
  static bool usable(const ModelPath& path) { return !path.rejected; }
  static auto rank(PeerId peer, const ModelPath& path) {
    const Attributes& a = *path.attributes;
    const PeerTraits traits = peer == kLocalPeer ? PeerTraits{} : traits_of(peer);
    const bool external = peer != kLocalPeer && !traits.internal;
    return std::tuple(path.has(kLlgrStaleCommunity), peer != kLocalPeer,
                      -int64_t{a.local_pref.value_or(100)}, as_path_length(a), a.origin, !external,
                      path.stale, a.originator_id.value_or(traits.router_id), a.cluster_list.size(),
                      traits.address);
  }
  std::optional<PeerId> best(const net::Bytes& key) const {
    std::optional<PeerId> best;
    for (const auto& [peer, table] : paths) {
      const auto found = table.find(key);
      if (found == table.end() || !usable(found->second)) continue;
      if (!best || rank(peer, found->second) < rank(*best, paths.at(*best).at(key))) best = peer;
    }
    return best;
  }
  void drop_stale(PeerId peer, bool but_long_lived = false) {
    std::erase_if(paths[peer], [&](const auto& entry) {
      return entry.second.stale && !(but_long_lived && entry.second.long_lived);
    });
  }
};

struct Harness {
  static Rib::Options small(bool sliced) {
    Rib::Options o = options();
    o.batch_routes = 3;
    o.log_slack = 8;
    if (sliced) o.work_paths = o.pull_routes = 1;
    return o;
  }
  // Sliced: what sessions leave behind is removed path by path while other things happen, so that
  // the model's state is only reached in the end.
  explicit Harness(bool in_slices) : sliced(in_slices), rib(small(in_slices)) {}
  const bool sliced;
  Rib rib;
  Model model;
  std::map<PeerId, Receiver> receivers;
  std::map<net::Bytes, std::pair<net::Bytes, Attributes>> told;  // by take_changes()
  bool held = false;

  void take_changes() {
    for (const RibChange& change : rib.take_changes()) {
      const net::Bytes nlri(change.nlri.begin(), change.nlri.end());
      const net::Bytes key = key_of(nlri);
      if (change.attributes == nullptr)
        RC_ASSERT(told.erase(key) == 1u);
      else
        told[key] = {nlri, *change.attributes};
    }
  }

  void step(int operation, PeerId peer, uint32_t key, uint32_t variant) {
    const net::Bytes nlri =
        make_nlri(key, 100 + variant % 2, static_cast<uint8_t>(variant % 3), key % 2 == 0);
    const bool is_up = model.up[peer];
    switch (operation) {
      case 0:
      case 1:
      case 2:
      case 3: {  // announce
        const AttributesPtr attributes = attributes_of(peer, variant);
        rib.update(peer, make_item(nlri), attributes);
        if (!is_up) break;
        ModelPath& path = model.paths[peer][key_of(nlri)] = {nlri, attributes};
        model.judge(peer, path);
        break;
      }
      case 4:
      case 5:
        rib.withdraw(peer, make_item(nlri).key());
        model.paths[peer].erase(key_of(nlri));
        break;
      case 6:
        if (peer == kLocalPeer || is_up) break;
        if (variant % 4 == 0) model.accept[peer] = kPolicies[variant % 3];
        rib.peer_up(peer, model.traits(peer));
        model.up[peer] = true;
        model.judge_all(peer);
        model.filter[peer] = nullptr;
        model.hold[peer] = false;
        receivers.insert_or_assign(peer, Receiver(traits_of(peer)));
        break;
      case 7: {
        if (peer == kLocalPeer || !is_up) break;
        const bool keep = variant % 3 != 0;
        rib.peer_down(peer, keep);
        receivers.erase(peer);
        model.up[peer] = false;
        model.drop_stale(peer, keep);
        if (!keep) model.paths[peer].clear();
        for (auto& [k, path] : model.paths[peer]) path.stale = path.refreshed = true;
        model.refreshes[peer] = 0;
        break;
      }
      case 8:
        if (variant % 2 == 0)
          rib.end_of_rib(peer);
        else
          rib.flush_stale(peer);
        model.drop_stale(peer);
        break;
      case 9:
      case 10:
      case 11:
        if (receivers.contains(peer) && !held)
          for (uint32_t i = 0; i <= variant % 4; ++i)
            if (const auto message = rib.pull(peer)) {
              RC_ASSERT(!model.hold[peer]);
              receivers.at(peer).take(*message);
            }
        break;
      case 12:
        if (receivers.contains(peer)) rib.refresh(peer, variant % 2 == 0);
        break;
      case 13: take_changes(); break;
      case 14: {
        // Whoever is not ready has nothing to pull, and who has something was ready.
        for (const PeerId ready : rib.take_ready()) RC_ASSERT(receivers.contains(ready));
        break;
      }
      case 15:
        if (peer == kLocalPeer) break;
        if (!is_up && model.paths[peer].empty()) break;  // not known to the RIB
        model.accept[peer] = kPolicies[variant % 3];
        model.send[peer] = kPolicies[variant / 3 % 3];
        rib.set_policies(peer, model.accept[peer], model.send[peer]);
        model.judge_all(peer);
        break;
      case 16:
        if (peer == kLocalPeer || !is_up) break;
        model.filter[peer] = kFilters[variant % 3];
        model.hold[peer] = variant % 5 == 0;
        rib.set_send_filter(peer, model.filter[peer], model.hold[peer]);
        break;
      case 17:
        rib.long_lived_stale(peer);
        model.make_long_lived(peer);
        break;
      case 18:
        if (sliced) (void)rib.work();
        if (variant % 2 == 0) (void)rib.tidy();
        break;
      case 19:
        rib.refresh_begins(peer);
        if (is_up) model.begin_refresh(peer);
        break;
      case 20:
        rib.refresh_ends(peer);
        if (is_up) model.end_refresh(peer);
        break;
      default:
        held = variant % 8 == 0;
        rib.hold_advertisements(held);
        if (held && receivers.contains(peer)) RC_ASSERT(rib.pull(peer) == nullptr);
    }
  }

  void check_counts() {
    if (sliced && rib.work()) return;
    std::size_t paths = 0;
    std::map<net::Bytes, int> keys;
    for (const auto& [peer, table] : model.paths) {
      const PeerCounts counts = rib.counts(peer);
      RC_ASSERT(counts.received == table.size());
      RC_ASSERT(counts.stale == static_cast<uint64_t>(std::ranges::count_if(
                                    table, [](const auto& e) { return e.second.stale; })));
      RC_ASSERT(counts.rejected == static_cast<uint64_t>(std::ranges::count_if(
                                       table, [](const auto& e) { return e.second.rejected; })));
      RC_ASSERT(counts.flagged == static_cast<uint64_t>(std::ranges::count_if(
                                      table, [](const auto& e) { return e.second.flagged; })));
      paths += table.size();
      for (const auto& entry : table) ++keys[entry.first];
    }
    RC_ASSERT(rib.path_count() == paths);
    RC_ASSERT(rib.route_count() == keys.size());
    for (const auto& [peer, receiver] : receivers)
      RC_ASSERT(rib.counts(peer).advertised == receiver.held.size());
  }

  void check_paths() {
    std::map<net::Bytes, std::map<PeerId, ModelPath>> seen;
    net::Bytes last;
    rib.for_each_path([&](const PathView& view) {
      const net::Bytes nlri(view.nlri.begin(), view.nlri.end());
      const net::Bytes key = key_of(nlri);
      const auto best = model.best(key);
      RC_ASSERT(view.best == (best == view.peer));
      if (key != last) {
        RC_ASSERT(!seen.contains(key));            // paths of a key are together
        RC_ASSERT(view.best == best.has_value());  // and the best comes first
      }
      const bool rejected = view.rejected != Rejected::None;
      RC_ASSERT(seen[key]
                    .emplace(view.peer, ModelPath{nlri, view.attributes, view.stale,
                                                  view.long_lived, rejected, view.flagged})
                    .second);
      last = key;
      return true;
    });
    std::map<net::Bytes, std::map<PeerId, ModelPath>> want;
    for (const auto& [peer, table] : model.paths)
      for (const auto& [key, path] : table) want[key][peer] = path;
    RC_ASSERT(seen == want);
  }

  void check_end() {
    while (rib.work()) {
    }
    rib.hold_advertisements(false);
    check_paths();
    take_changes();
    std::map<net::Bytes, std::pair<net::Bytes, Attributes>> loc_rib;
    for (const auto& [peer, table] : model.paths)
      for (const auto& [key, path] : table)
        if (model.best(key) == peer) loc_rib[key] = {path.nlri, *path.attributes};
    RC_ASSERT(told == loc_rib);
    for (auto& [peer, receiver] : receivers) {
      rib.set_send_filter(peer, model.filter[peer], false);
      receiver.drain(rib, peer);
      check_receiver(peer, receiver);
    }
    check_counts();
    RC_ASSERT(rib.take_ready().empty());
    for (const auto& [peer, receiver] : receivers) {
      RC_ASSERT(rib.counts(peer).queued == 0u);
      RC_ASSERT(rib.pull(peer) == nullptr);
    }
  }

  void check_receiver(PeerId peer, const Receiver& receiver) {
    std::map<net::Bytes, std::pair<net::Bytes, Attributes>> want, has;
    const GroupKey group = group_key(traits_of(peer));
    for (const auto& [source, table] : model.paths) {
      for (const auto& [key, path] : table) {
        const SourceKind kind =
            source == kLocalPeer ? SourceKind::Local : source_kind(traits_of(source));
        const uint8_t flags = path.has(kLlgrStaleCommunity) ? AttributeDigest::kLlgrStale : 0;
        if (source == peer || model.best(key) != source || !may_export(group, kind, flags))
          continue;
        if (const auto& send = model.send[peer];
            send != nullptr && send->judge(path.nlri, *path.attributes) == Verdict::Reject)
          continue;
        if (const auto& filter = model.filter[peer];
            filter != nullptr && !filter->wants(*path.attributes))
          continue;
        const uint32_t router_id = source == kLocalPeer ? 0 : traits_of(source).router_id;
        want[key] = {path.nlri, exported(*path.attributes, group,
                                         {kind, router_id, 65000, options().cluster_id})};
      }
    }
    for (const auto& [key, held_route] : receiver.held)
      has[key] = {held_route.nlri, *held_route.attributes};
    RC_ASSERT(has == want);
  }
};

}  // namespace

void check_model(bool sliced) {
  using Step = std::tuple<int, PeerId, uint32_t, uint32_t>;
  const bool ok = rc::check([sliced] {
    const auto steps = *rc::gen::resize(
        300, rc::gen::container<std::vector<Step>>(rc::gen::tuple(
                 rc::gen::inRange(0, 22), rc::gen::inRange<PeerId>(0, kPeers + 1),
                 rc::gen::inRange<uint32_t>(0, kKeys), rc::gen::inRange<uint32_t>(0, 16))));
    Harness harness(sliced);
    for (PeerId peer = 1; peer <= 4; ++peer) harness.step(6, peer, 0, 0);
    for (const auto& [operation, peer, key, variant] : steps) {
      harness.step(operation, peer, key, variant);
      harness.check_counts();
    }
    harness.check_end();
    RC_ASSERT(!::testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

TEST(RibModel, EveryPeerHoldsWhatTheModelSays) { check_model(false); }
TEST(RibModel, RemovalInSlicesComesToTheSame) { check_model(true); }
