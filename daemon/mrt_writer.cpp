// SPDX-License-Identifier: GPL-2.0-or-later
// A file gets its name when it is whole: until then it stands beside it with ".tmp" behind.
#include "daemon/mrt_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include "bgp/mrt.h"
#include "daemon/app.h"
#include "evpn/nlri.h"

namespace peerland {
namespace {

constexpr uint32_t kPlaces = 64;  // of the table, between two looks at the clock

uint32_t seconds(std::chrono::system_clock::time_point time) {
  return static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

class Dump {
 public:
  explicit Dump(const App& app) : app_(app), time_(seconds(std::chrono::system_clock::now())) {}

  std::optional<std::string> next() {
    if (through_) return std::nullopt;
    std::string text;
    if (!std::exchange(begun_, true)) put(text, peers());
    const auto limit = net::Clock::now() + kPieceTime;
    while (place_ && text.size() < kPieceOctets && net::Clock::now() < limit)
      for (uint32_t i = 0; i < kPlaces && place_; ++i) put(text, route());
    through_ = !place_;
    return text;
  }

 private:
  static void put(std::string& text, const net::Bytes& bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // Ourselves first. Those of a peer without a session (routes kept over its restart) count from
  // the start of the dump: when they came is not kept.
  net::Bytes peers() {
    const auto& bgp = app_.settings().bgp;
    std::vector<bgp::mrt::Peer> peers{{bgp.router_id.v4_value(), {}, bgp.local_as.value}};
    places_[bgp::kLocalPeer] = {0, time_};
    std::map<bgp::PeerId, uint32_t> since;
    for (const auto& session : app_.speaker().sessions())
      since[session->peer] = seconds(session->up_since);
    for (const bgp::PeerId id : app_.speaker().neighbor_ids()) {
      const auto* traits = app_.speaker().rib().traits(id);
      if (traits == nullptr || peers.size() == 0xffff) continue;
      places_[id] = {static_cast<uint16_t>(peers.size()),
                     since.contains(id) ? since.at(id) : time_};
      peers.push_back({traits->router_id, traits->address, traits->as_number});
    }
    return bgp::mrt::encode_peer_index(time_, bgp.router_id.v4_value(), app_.settings().name,
                                       peers);
  }

  // The next place of the table; nothing when it is empty. Paths of one route whose NLRI differ
  // (in an ESI or a label) stand in records of their own.
  net::Bytes route() {
    records_.clear();
    place_ = app_.speaker().rib().for_each_path_from(*place_, 1, [&](const bgp::PathView& path) {
      const auto peer = places_.find(path.peer);
      if (peer == places_.end()) return true;  // came up after the dump had begun
      auto record = std::ranges::find_if(
          records_, [&](const Record& known) { return std::ranges::equal(known.nlri, path.nlri); });
      if (record == records_.end())
        record = records_.insert(record, Record{{path.nlri.begin(), path.nlri.end()}, {}});
      record->entries.push_back({peer->second.first, peer->second.second, path.attributes});
      return true;
    });
    net::Bytes bytes;
    for (const Record& record : records_) {
      const net::Bytes encoded = bgp::mrt::encode_rib_generic(time_, sequence_++, evpn::family().id,
                                                              record.nlri, record.entries);
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
    }
    return bytes;
  }

  struct Record {
    net::Bytes nlri;
    std::vector<bgp::mrt::Entry> entries;
  };
  const App& app_;
  const uint32_t time_;
  std::map<bgp::PeerId, std::pair<uint16_t, uint32_t>> places_;  // in the index, and since when
  std::vector<Record> records_;
  std::optional<uint32_t> place_ = 0;
  uint32_t sequence_ = 0;
  bool begun_ = false, through_ = false;
};

}  // namespace

Answer mrt_dump(const App& app) {
  return [dump = std::make_shared<Dump>(app)] { return dump->next(); };
}

std::string dump_name(const std::string& file, std::chrono::system_clock::time_point time) {
  const std::time_t now = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[4096];
  const std::size_t size = std::strftime(text, sizeof text, file.c_str(), &utc);
  return {text, size};
}

MrtWriter::MrtWriter(boost::asio::io_context& io, const App& app, const bgp::MrtSettings& settings)
    : io_(io), app_(app), settings_(settings), timer_(io) {}

MrtWriter::~MrtWriter() { close(); }

void MrtWriter::start() { arm(); }

void MrtWriter::stop() {
  timer_.cancel();
  close();
}

void MrtWriter::arm() {
  timer_.expires_after(settings_.interval);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->begin();
    self->arm();
  });
}

void MrtWriter::begin() {
  if (dump_) {
    ++failed_;
    last_error_ = "the dump before was not through";
    return;
  }
  name_ = dump_name(settings_.file, std::chrono::system_clock::now());
  if (name_.empty()) return fail("the name is too long", ENAMETOOLONG);
  temporary_ = name_ + ".tmp";
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) return fail("open", errno);
  dump_ = mrt_dump(app_);
  step();
}

void MrtWriter::step() {
  if (!dump_) return;
  const auto piece = dump_();
  if (!piece) return finish();
  for (std::size_t done = 0; done < piece->size();) {
    const ssize_t count = ::write(file_, piece->data() + done, piece->size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail("write", errno);
    done += static_cast<std::size_t>(count);
  }
  boost::asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->step();
  });
}

void MrtWriter::finish() {
  dump_ = nullptr;
  const int file = std::exchange(file_, -1);
  if (::close(file) != 0) return fail("close", errno);
  if (::rename(temporary_.c_str(), name_.c_str()) != 0) return fail("rename", errno);
  temporary_.clear();
  ++written_;
  last_file_ = name_;
  last_error_.clear();
  spdlog::debug("MRT dump {} written", name_);
}

void MrtWriter::fail(const std::string& step, int error) {
  ++failed_;
  last_error_ = fmt::format("{}: {}: {}", name_, step, std::strerror(error));
  spdlog::error("MRT dump {}", last_error_);
  close();
}

void MrtWriter::close() {
  dump_ = nullptr;
  if (const int file = std::exchange(file_, -1); file >= 0) ::close(file);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace peerland
