// SPDX-License-Identifier: GPL-2.0-or-later
// Order makes the collector's tables right: what is read from a table goes into the same queue as
// the changes, in the moment it is read; a change that comes later is behind it.
#include "bgp/io/bmp_client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "bgp/message.h"

namespace bgp::io {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kPlaces = 512;        // of a table, looked at in a turn
constexpr uint64_t kDumpQueue = 262144;  // octets that wait before a walk pauses
constexpr std::size_t kGather = 32;      // messages a write
constexpr auto kConnectTime = 10s;
constexpr const char* kTableName = "global";  // RFC 9069 section 5.2.1

std::chrono::microseconds wall_time() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::size_t change_size(const KeptRibChange& change) { return change.nlri.size() + 64; }

// An UPDATE that can be passed on as it came: errors in it were not repaired.
bool is_clean(const Update& update) {
  return update.handling == ErrorHandling::None && update.nlri_discarded == 0 &&
         update.attributes_discarded == 0 && update.errors.empty();
}

}  // namespace

// Gathers routes by table, peer and attributes, and makes UPDATEs of them.
class BmpClient::Packer {
 public:
  Packer(BmpClient& client) : client_(client) {}

  void reach(const bmp::PeerHeader& header, uint64_t peer, std::span<const uint8_t> nlri,
             const Attributes& attributes) {
    auto& bucket =
        buckets_[{peer, static_cast<uint8_t>(header.table),
                  encode_attributes(attributes, {.four_octet_as = true}), attributes.next_hop}];
    bucket.header = header;
    bucket.nlris.emplace_back(nlri.begin(), nlri.end());
  }
  void unreach(const bmp::PeerHeader& header, uint64_t peer, std::span<const uint8_t> nlri) {
    auto& bucket = withdrawn_[{peer, static_cast<uint8_t>(header.table)}];
    bucket.header = header;
    bucket.nlris.emplace_back(nlri.begin(), nlri.end());
  }
  void flush() {
    const AfiSafi family = client_.node_.family.id;
    // What an UPDATE both withdraws and announces is announced (RFC 4271 section 4.3).
    for (const auto& [key, bucket] : withdrawn_)
      pack(bucket, [&](std::span<const std::span<const uint8_t>> nlris, std::size_t most) {
        return encode_unreach(family, nlris, most);
      });
    for (const auto& [key, bucket] : buckets_)
      pack(bucket, [&](std::span<const std::span<const uint8_t>> nlris, std::size_t most) {
        return encode_reach(family, std::get<3>(key), std::get<2>(key), nlris, most);
      });
    buckets_.clear();
    withdrawn_.clear();
  }

 private:
  struct Bucket {
    bmp::PeerHeader header;
    std::vector<net::Bytes> nlris;
  };
  template <class Encode>
  void pack(const Bucket& bucket, Encode encode) {
    const std::vector<std::span<const uint8_t>> nlris(bucket.nlris.begin(), bucket.nlris.end());
    for (std::size_t done = 0; done < nlris.size();) {
      const auto rest = std::span(nlris).subspan(done);
      PackedUpdate packed = encode(rest, kMaxMessage);
      if (packed.taken == 0) packed = encode(rest, kMaxExtendedMessage);  // RFC 8654
      if (packed.taken == 0) break;
      client_.queue(bmp::encode_route_monitoring(bucket.header, packed.message));
      done += packed.taken;
    }
  }

  BmpClient& client_;
  std::map<std::tuple<uint64_t, uint8_t, net::Bytes, net::IpAddress>, Bucket> buckets_;
  std::map<std::pair<uint64_t, uint8_t>, Bucket> withdrawn_;
};

BmpClient::BmpClient(boost::asio::io_context& io, Speaker& speaker, const BmpNode& node,
                     const BmpSettings& settings)
    : io_(io),
      speaker_(speaker),
      node_(node),
      settings_(settings),
      log_(spdlog::get("bgp") ? spdlog::get("bgp") : spdlog::default_logger()->clone("bgp")),
      name_(
          fmt::format("BMP collector {} port {}", net::to_string(settings.address), settings.port)),
      since_(net::Clock::now()),
      retry_(io),
      statistics_(io) {}

BmpClient::~BmpClient() {
  if (state_ != State::Stopped) speaker_.remove_tap(*this);
}

void BmpClient::set_state(State state) {
  state_ = state;
  since_ = net::Clock::now();
}

BmpView BmpClient::view() const {
  BmpView view = counters_;
  view.settings = settings_;
  const bool dumps =
      std::ranges::any_of(jobs_, [](const Job& job) { return job.kind != Job::Kind::Statistics; });
  view.state = state_ == State::Up           ? dumps ? "dumping" : "up"
               : state_ == State::Connecting ? "connecting"
                                             : "waiting";
  view.since = std::chrono::duration_cast<std::chrono::seconds>(net::Clock::now() - since_);
  view.queued = queued_;
  return view;
}

// --- The connection -----------------------------------------------------------------------------

void BmpClient::start() {
  if (state_ == State::Stopped) connect();
}

void BmpClient::connect() {
  set_state(State::Connecting);
  const uint64_t generation = ++generation_;
  socket_ = std::make_unique<tcp::socket>(io_);
  const tcp::endpoint remote = to_endpoint(settings_.address, settings_.port);
  error_code error;
  socket_->open(remote.protocol(), error);
  if (!error && settings_.local_address)
    socket_->bind(to_endpoint(*settings_.local_address, 0), error);
  if (error) return lost("local address: " + error.message());
  retry_.expires_after(kConnectTime);
  retry_.async_wait([weak = weak_from_this(), generation](const error_code& cancelled) {
    const auto self = weak.lock();
    if (!cancelled && self && self->generation_ == generation && self->state_ == State::Connecting)
      self->lost("connect: timed out");
  });
  socket_->async_connect(remote, [weak = weak_from_this(), generation](const error_code& failure) {
    const auto self = weak.lock();
    if (!self || self->generation_ != generation || self->state_ != State::Connecting) return;
    if (failure) return self->lost("connect: " + failure.message());
    self->connected();
  });
}

void BmpClient::connected() {
  retry_.cancel();
  set_state(State::Up);
  ++counters_.connects;
  pause_ = 1s;
  log_->info("{}: connected", name_);
  error_code ignored;
  socket_->non_blocking(true, ignored);
  speaker_.add_tap(*this);
  queue(bmp::encode_initiation(node_.description, node_.name));
  if (tells(BmpSettings::Loc)) loc_rib_up();
  for (const SessionInfoPtr& session : speaker_.sessions()) peer_up(*session);
  if (tells_in() || tells(BmpSettings::Loc)) jobs_.push_back({Job::Kind::In, std::nullopt, 0});
  if (tells(BmpSettings::OutPost))
    for (const auto& [peer, session] : told_) jobs_.push_back({Job::Kind::Out, peer, 0});
  schedule_work();
  arm_statistics();
  read();
}

// Not within a call of the speaker: there the tap must stay.
void BmpClient::lost(const std::string& why) {
  if (state_ == State::Stopped) return;
  if (state_ == State::Up)
    log_->warn("{}: disconnected: {}", name_, why);
  else if (counters_.last_error != why)
    log_->info("{}: {}", name_, why);
  counters_.last_error = why;
  ++generation_;
  speaker_.remove_tap(*this);
  error_code ignored;
  if (socket_) socket_->close(ignored);
  queue_.clear();
  changes_.clear();
  queued_ = writing_ = 0;
  overflowed_ = false;
  told_.clear();
  jobs_.clear();
  statistics_.cancel();
  set_state(State::Waiting);
  const auto pause = std::min(pause_, settings_.reconnect);
  pause_ = std::min(pause_ * 2, settings_.reconnect);
  retry_.expires_after(pause);
  retry_.async_wait([weak = weak_from_this(), generation = generation_](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->generation_ == generation) self->connect();
  });
}

void BmpClient::stop() {
  if (state_ == State::Up && writing_ == 0) {
    queue(bmp::encode_termination(bmp::TerminationReason::AdministrativelyClosed));
    std::vector<boost::asio::const_buffer> buffers;
    for (const net::Bytes& message : queue_) {
      if (buffers.size() == kGather) break;
      buffers.push_back(boost::asio::buffer(message));
    }
    error_code ignored;
    socket_->write_some(buffers, ignored);
  }
  speaker_.remove_tap(*this);
  ++generation_;
  state_ = State::Stopped;
  retry_.cancel();
  statistics_.cancel();
  error_code ignored;
  if (socket_) socket_->close(ignored);
  queue_.clear();
  changes_.clear();
  queued_ = writing_ = 0;
  jobs_.clear();
  told_.clear();
}

// A collector has nothing to say; it is read so that its end is noticed.
void BmpClient::read() {
  socket_->async_read_some(
      boost::asio::buffer(input_),
      [weak = weak_from_this(), generation = generation_](const error_code& error, std::size_t) {
        const auto self = weak.lock();
        if (!self || self->generation_ != generation) return;
        if (error) return self->lost(error.message());
        self->read();
      });
}

// We may be within a call of the speaker, which has its list of taps in hand: the end comes later.
void BmpClient::overflow() {
  if (std::exchange(overflowed_, true)) return;
  ++counters_.drops;
  boost::asio::post(io_, [weak = weak_from_this(), generation = generation_] {
    const auto self = weak.lock();
    if (self && self->generation_ == generation) self->lost("it does not take what waits for it");
  });
}

void BmpClient::queue(net::Bytes message) {
  if (state_ != State::Up || overflowed_) return;
  ++counters_.messages;
  counters_.octets += message.size();
  queued_ += message.size();
  queue_.push_back(std::move(message));
  if (queued_ > settings_.queue_limit) return overflow();
  if (writing_ == 0 && queue_.size() == 1)
    boost::asio::post(io_, [weak = weak_from_this(), generation = generation_] {
      const auto self = weak.lock();
      if (self && self->generation_ == generation) self->write();
    });
}

void BmpClient::write() {
  if (writing_ != 0 || queue_.empty()) return;
  std::vector<boost::asio::const_buffer> buffers;
  for (const net::Bytes& message : queue_) {
    if (buffers.size() == kGather) break;
    buffers.push_back(boost::asio::buffer(message));
  }
  writing_ = buffers.size();
  boost::asio::async_write(
      *socket_, buffers,
      [self = shared_from_this(), generation = generation_](const error_code& error, std::size_t) {
        if (self->generation_ != generation) return;
        if (error) return self->lost(error.message());
        for (; self->writing_ > 0; --self->writing_) {
          self->queued_ -= self->queue_.front().size();
          self->queue_.pop_front();
        }
        self->schedule_work();
        self->write();
      });
}

// --- Walks over the tables ----------------------------------------------------------------------

void BmpClient::schedule_work() {
  const bool paused = changes_.empty() &&
                      (jobs_.empty() || queued_ > std::min(kDumpQueue, settings_.queue_limit / 4));
  if (paused || std::exchange(work_scheduled_, true)) return;
  boost::asio::post(io_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->work_scheduled_ = false;
    self->work();
  });
}

void BmpClient::work() {
  if (state_ != State::Up) return;
  if (!changes_.empty())
    tell_changes();
  else if (!jobs_.empty() && run(jobs_.front()))
    jobs_.pop_front();
  schedule_work();
}

bool BmpClient::run(Job& job) {
  const bool gone = job.peer && !told_.contains(*job.peer);
  if (gone) return true;
  switch (job.kind) {
    case Job::Kind::Statistics: statistics(*job.peer); return true;
    case Job::Kind::In: walk_in(job); return job.next == 0;
    case Job::Kind::Out: walk_out(job); return job.next == 0;
  }
  return true;
}

void BmpClient::walk_in(Job& job) {
  Packer packer(*this);
  const auto next = speaker_.rib().for_each_path_from(job.next, kPlaces, [&](const PathView& path) {
    if (path.best && path.rejected == Rejected::None && tells(BmpSettings::Loc) && !job.peer)
      packer.reach(loc_header(), path.peer, path.nlri, *path.attributes);
    if (job.peer && path.peer != *job.peer) return true;
    const auto session = told_.find(path.peer);
    // What is kept of a session before was told with that session.
    if (session == told_.end() || path.stale || path.long_lived) return true;
    bmp::PeerHeader pre = header(bmp::Table::InPre, *session->second);
    bmp::PeerHeader post = header(bmp::Table::InPost, *session->second);
    pre.two_octet_as = post.two_octet_as = false;  // made here, not passed on
    if (tells(BmpSettings::InPre) && !job.peer)
      packer.reach(pre, path.peer, path.nlri, *path.attributes);
    if (tells(BmpSettings::InPost)) {
      if (path.rejected == Rejected::None)
        packer.reach(post, path.peer, path.nlri, *path.attributes);
      else if (job.peer)
        packer.unreach(post, path.peer, path.nlri);
    }
    return true;
  });
  packer.flush();
  job.next = next.value_or(0);
  if (!next && !job.peer) end_of_in(job);
}

// Each table ends with End-of-RIB (RFC 7854 section 5).
void BmpClient::end_of_in(const Job&) {
  const net::Bytes end = encode_end_of_rib(node_.family.id);
  if (tells(BmpSettings::Loc)) queue(bmp::encode_route_monitoring(loc_header(), end));
  for (const auto& [peer, session] : told_) {
    if (tells(BmpSettings::InPre))
      queue(bmp::encode_route_monitoring(header(bmp::Table::InPre, *session), end));
    if (tells(BmpSettings::InPost))
      queue(bmp::encode_route_monitoring(header(bmp::Table::InPost, *session), end));
  }
}

void BmpClient::walk_out(Job& job) {
  const auto session = told_.find(*job.peer);
  bmp::PeerHeader out = header(bmp::Table::OutPost, *session->second);
  out.two_octet_as = false;
  Packer packer(*this);
  const auto next = speaker_.rib().for_each_advertised_from(
      *job.peer, job.next, kPlaces,
      [&](std::span<const uint8_t> nlri, const Attributes& attributes) {
        packer.reach(out, *job.peer, nlri, attributes);
      });
  packer.flush();
  job.next = next.value_or(0);
  if (!next) queue(bmp::encode_route_monitoring(out, encode_end_of_rib(node_.family.id)));
}

// --- Statistics ---------------------------------------------------------------------------------

void BmpClient::arm_statistics() {
  if (settings_.statistics == 0s) return;
  statistics_.expires_after(settings_.statistics);
  statistics_.async_wait([weak = weak_from_this(),
                          generation = generation_](const error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->generation_ != generation) return;
    if (self->tells(BmpSettings::Loc))
      self->queue(
          bmp::encode_statistics(self->loc_header(), {.family = self->node_.family.id,
                                                      .rejected_by_policy = {},
                                                      .adj_rib_in = {},
                                                      .loc_rib = self->speaker_.rib().route_count(),
                                                      .treated_as_withdraw = {},
                                                      .adj_rib_out = {}}));
    // One neighbor a turn. Those that still wait from the last time are not asked twice.
    std::erase_if(self->jobs_, [](const Job& job) { return job.kind == Job::Kind::Statistics; });
    for (const auto& [peer, session] : self->told_)
      self->jobs_.push_back({Job::Kind::Statistics, peer, 0});
    self->schedule_work();
    self->arm_statistics();
  });
}

void BmpClient::statistics(PeerId peer) {
  const auto view = speaker_.neighbor(peer);
  if (!view) return;
  bmp::Statistics report;
  report.family = node_.family.id;
  report.adj_rib_in = view->counts.received;
  report.treated_as_withdraw = static_cast<uint32_t>(view->treated_as_withdraw);
  report.adj_rib_out = view->counts.advertised;
  bmp::PeerHeader from = header(bmp::Table::InPre, *told_.at(peer));
  from.time = wall_time();
  queue(bmp::encode_statistics(from, report));
}

// --- Sessions -----------------------------------------------------------------------------------

bmp::PeerHeader BmpClient::header(bmp::Table table, const SessionInfo& session) const {
  return {table,
          session.address,
          session.remote_as,
          session.router_id,
          !session.four_octet_as,
          std::chrono::microseconds(0)};
}

bmp::PeerHeader BmpClient::loc_header() const {
  return {bmp::Table::Loc, {}, node_.local_as, node_.router_id, false, wall_time()};
}

// RFC 9069 section 5.2: both OPENs are ours, with what the Loc-RIB's messages need.
void BmpClient::loc_rib_up() {
  Open open;
  open.as_number = node_.local_as > 0xffff ? kAsTrans : static_cast<uint16_t>(node_.local_as);
  open.router_id = node_.router_id;
  open.capabilities.multiprotocol = {node_.family.id};
  open.capabilities.four_octet_as = node_.local_as;
  open.capabilities.extended_message = true;
  const net::Bytes bytes = encode_open(open);
  queue(bmp::encode_peer_up(loc_header(), {{}, 0, 0, bytes, bytes, kTableName}));
}

// The session stands for itself in each table that is told of; RFC 8671 section 5 has Peer Up and
// Down with the O flag cleared, for all of them.
void BmpClient::peer_up(const SessionInfo& session) {
  told_[session.peer] = std::make_shared<const SessionInfo>(session);
  bmp::PeerHeader peer = header(bmp::Table::InPre, session);
  peer.time =
      std::chrono::duration_cast<std::chrono::microseconds>(session.up_since.time_since_epoch());
  queue(bmp::encode_peer_up(peer, {session.local_address, session.local_port, session.remote_port,
                                   session.open_sent, session.open_received, session.name}));
}

void BmpClient::session_up(const SessionInfo& session) { peer_up(session); }

void BmpClient::session_down(const SessionInfo& session, const EndReason& reason,
                             const std::string&) {
  if (told_.erase(session.peer) == 0) return;
  std::erase_if(jobs_, [&](const Job& job) { return job.peer == session.peer; });
  bmp::PeerHeader peer = header(bmp::Table::InPre, session);
  peer.time = wall_time();
  const bmp::PeerDown down = bmp::peer_down(reason);
  queue(bmp::encode_peer_down(peer, down.reason, down.data));
}

// --- Changes ------------------------------------------------------------------------------------

void BmpClient::received(const SessionInfo& session, std::span<const uint8_t> message,
                         const Update& update) {
  if (!tells_in() || !told_.contains(session.peer)) return;
  Packer packer(*this);
  const auto repack = [&](bmp::PeerHeader to, bool only_usable) {
    to.two_octet_as = false;
    for (const NlriItem& item : update.unreach) packer.unreach(to, session.peer, item.bytes);
    for (const NlriItem& item : update.reach) {
      const auto standing = speaker_.rib().standing(session.peer, item.key());
      if (only_usable && standing && *standing != Rejected::None)
        packer.unreach(to, session.peer, item.bytes);
      else
        packer.reach(to, session.peer, item.bytes, *update.attributes);
    }
    packer.flush();
    if (update.end_of_rib)
      queue(bmp::encode_route_monitoring(to, encode_end_of_rib(node_.family.id)));
  };
  if (tells(BmpSettings::InPre)) {
    bmp::PeerHeader pre = header(bmp::Table::InPre, session);
    pre.time = wall_time();
    if (is_clean(update))
      queue(bmp::encode_route_monitoring(pre, message));
    else
      repack(pre, false);
  }
  if (tells(BmpSettings::InPost)) {
    bmp::PeerHeader post = header(bmp::Table::InPost, session);
    post.time = wall_time();
    repack(post, true);
  }
}

void BmpClient::sent(const SessionInfo& session, const std::shared_ptr<const net::Bytes>& message) {
  if (!tells(BmpSettings::OutPost) || !told_.contains(session.peer)) return;
  bmp::PeerHeader out = header(bmp::Table::OutPost, session);
  out.time = wall_time();
  queue(bmp::encode_route_monitoring(out, *message));
}

void BmpClient::policies_changed(PeerId peer) {
  if (!tells(BmpSettings::InPost) || !told_.contains(peer)) return;
  jobs_.push_back({Job::Kind::In, peer, 0});
  schedule_work();
}

// Many at once, when a large neighbor goes: encoded in later turns.
void BmpClient::best_changed(const std::vector<RibChange>& changes) {
  if (!tells(BmpSettings::Loc) || overflowed_) return;
  for (const RibChange& change : changes) {
    queued_ += change_size(changes_.emplace_back(change));
  }
  if (queued_ > settings_.queue_limit) overflow();
  schedule_work();
}

void BmpClient::tell_changes() {
  const bmp::PeerHeader loc = loc_header();
  Packer packer(*this);
  for (uint32_t i = 0; i < kPlaces && !changes_.empty(); ++i) {
    const KeptRibChange change = std::move(changes_.front());
    changes_.pop_front();
    queued_ -= std::min(queued_, change_size(change));
    if (change.attributes)
      packer.reach(loc, 0, change.nlri, *change.attributes);
    else
      packer.unreach(loc, 0, change.nlri);
  }
  packer.flush();
}

}  // namespace bgp::io
