// SPDX-License-Identifier: GPL-2.0-or-later
// A reflector with 256 clients of 4 000 MAC routes each, over the loopback, and every client gets
// every route of the others: 261 million deliveries. Then sessions are reset at random for a
// minute, with routes changed and taken back meanwhile. What each client holds must at the end be
// what the model says, route by route.
//
// The speaker runs in a thread of its own. The clients share one and keep one octet a route: the
// version that they hold (the label's last octet; 0: none), read out of the messages by hand. Half
// of the clients take extended messages, so there are two update groups. PEERLAN_SESSIONS,
// PEERLAN_ROUTES and PEERLAN_RESET_SECONDS make it smaller.
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "bgp/io/speaker.h"
#include "bgp/message.h"
#include "rib_support.h"

using namespace bgp;
using namespace std::chrono_literals;
using net::Bytes;

namespace {

using Clock = std::chrono::steady_clock;

unsigned parameter(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

const unsigned kSessions = parameter("PEERLAN_SESSIONS", 256);
const unsigned kRoutes = parameter("PEERLAN_ROUTES", 4000);
const std::chrono::seconds kResetTime{parameter("PEERLAN_RESET_SECONDS", 60)};
constexpr std::size_t kNlriSize = 35;
constexpr std::size_t kNumberAt = 27, kLabelAt = 32;  // in an NLRI of make_nlri()

uint32_t address_of(unsigned client) { return 0x7f010001 + client; }  // 127.1.0.1 and up

using Versions = std::vector<uint8_t>;  // by route number; 0: not there

// A client: its socket and what it holds.
class Client {
 public:
  explicit Client(unsigned number) : number_(number), held_(kSessions * kRoutes) {}
  ~Client() { disconnect(false); }
  Client(Client&&) = default;

  [[nodiscard]] bool established() const { return established_; }
  [[nodiscard]] const Versions& held() const { return held_; }
  [[nodiscard]] uint64_t deliveries() const { return deliveries_; }
  [[nodiscard]] pollfd wish() const {
    return {socket_, static_cast<short>(POLLIN | (output_.empty() ? 0 : POLLOUT)), 0};
  }

  void connect(uint16_t port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ASSERT_GE(socket_, 0);
    bind_or_connect(address_of(number_), 0, ::bind);
    bind_or_connect(INADDR_LOOPBACK, port, ::connect);
    established_ = false;
    input_.clear();
    output_.clear();
    std::ranges::fill(held_, uint8_t{0});
    Open open;
    open.as_number = 65000;
    open.hold_time = 300;
    open.router_id = address_of(number_);
    open.capabilities.multiprotocol = {kL2vpnEvpn};
    open.capabilities.extended_message = number_ % 2 == 1;
    open.capabilities.four_octet_as = 65000;
    send(encode_open(open));
    send(encode_keepalive());
  }
  void disconnect(bool abort) {
    if (socket_ < 0) return;
    const linger hard{1, 0};
    if (abort) ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    ::close(socket_);
    socket_ = -1;
    established_ = false;
  }
  [[nodiscard]] bool connected() const { return socket_ >= 0; }

  // Announces or withdraws these of its routes as the model has them.
  void tell(const Versions& model, unsigned first, unsigned last) {
    std::vector<Bytes> there, gone;
    for (unsigned route = number_ * kRoutes + first; route < number_ * kRoutes + last; ++route)
      (model[route] != 0 ? there : gone).push_back(test::make_nlri(route, 0x1000u | model[route]));
    const auto views = [](const std::vector<Bytes>& nlris) {
      return std::vector<std::span<const uint8_t>>(nlris.begin(), nlris.end());
    };
    Attributes attributes = test::vtep(number_ % 250 + 1);
    attributes.local_pref = 100;
    const Bytes encoded = encode_attributes(attributes, {});
    const auto reach = views(there), unreach = views(gone);
    for (std::size_t at = 0; at < reach.size();) {
      const auto packed = encode_reach(kL2vpnEvpn, attributes.next_hop, encoded,
                                       std::span(reach).subspan(at), kMaxMessage);
      send(packed.message);
      at += packed.taken;
    }
    for (std::size_t at = 0; at < unreach.size();) {
      const auto packed = encode_unreach(kL2vpnEvpn, std::span(unreach).subspan(at), kMaxMessage);
      send(packed.message);
      at += packed.taken;
    }
  }
  void send(const Bytes& message) { output_.insert(output_.end(), message.begin(), message.end()); }

  // False when the connection is gone.
  [[nodiscard]] bool write() {
    if (output_.empty()) return true;
    const ssize_t count = ::send(socket_, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN;
    output_.erase(output_.begin(), output_.begin() + count);
    return true;
  }
  [[nodiscard]] bool read(Bytes& chunk) {
    for (int turns = 0; turns < 4; ++turns) {
      const ssize_t count = ::recv(socket_, chunk.data(), chunk.size(), 0);
      if (count < 0) return errno == EAGAIN;
      if (count == 0) return false;
      take(std::span(chunk).first(static_cast<std::size_t>(count)));
    }
    return true;
  }
  std::string problem;

 private:
  template <class Call>
  void bind_or_connect(uint32_t address, uint16_t port, Call call) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(address);
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&to));
    const int result = call(socket_, generic, sizeof to);
    if (result != 0 && errno != EINPROGRESS) problem = std::strerror(errno);
  }

  void take(std::span<const uint8_t> data) {
    if (!input_.empty()) {
      input_.insert(input_.end(), data.begin(), data.end());
      const std::size_t used = messages(input_);
      input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(used));
    } else {
      const auto rest = data.subspan(messages(data));
      input_.assign(rest.begin(), rest.end());
    }
  }
  // Octets of whole messages, which are worked off.
  std::size_t messages(std::span<const uint8_t> data) {
    std::size_t at = 0;
    while (data.size() - at >= kHeaderSize) {
      const auto header = decode_header(data.subspan(at, kHeaderSize), kMaxExtendedMessage);
      if (!header) {
        problem = "framing lost";
        return data.size();
      }
      if (data.size() - at < header->length) break;
      const auto body = data.subspan(at + kHeaderSize, header->length - kHeaderSize);
      if (header->length > kMaxMessage && number_ % 2 == 0) problem = "message too long";
      if (header->type == MessageType::Keepalive) established_ = true;
      if (header->type == MessageType::Update) update(body);
      if (header->type == MessageType::Notification)
        problem = "NOTIFICATION " + to_string(*decode_notification(body));
      at += header->length;
    }
    return at;
  }
  // MP_REACH_NLRI or MP_UNREACH_NLRI is the first attribute, its NLRI all of one size.
  void update(std::span<const uint8_t> body) {
    net::ByteReader in(body);
    in.u16();
    net::ByteReader attributes = in.sub(in.u16());
    const uint8_t flags = attributes.u8();
    const uint8_t type = attributes.u8();
    const std::size_t size =
        (flags & kFlagExtendedLength) != 0 ? attributes.u16() : attributes.u8();
    net::ByteReader value = attributes.sub(size);
    value.bytes(3);
    if (type == 14) {
      value.bytes(value.u8());
      value.u8();
    }
    if ((type != 14 && type != 15) || !value.ok() || !in.done() ||
        value.remaining() % kNlriSize != 0) {
      problem = "malformed UPDATE";
      return;
    }
    const auto nlris = value.rest();
    for (std::size_t at = 0; at < nlris.size(); at += kNlriSize) {
      net::ByteReader number(nlris.subspan(at + kNumberAt, 4));
      const uint32_t route = number.u32();
      // A withdrawal is shared by the group and may name what its source never had from us.
      const bool own = route / kRoutes == number_;
      if (route >= held_.size() || (own && type == 14)) {
        problem = "route " + std::to_string(route) + " is none, or came back to its source";
        return;
      }
      held_[route] = type == 14 ? nlris[at + kLabelAt + 2] : uint8_t{0};
      ++deliveries_;
    }
  }

  unsigned number_;
  int socket_ = -1;
  bool established_ = false;
  Bytes input_, output_;
  Versions held_;
  uint64_t deliveries_ = 0;
};

// The speaker in its thread.
class Reflector {
 public:
  Reflector() {
    if (spdlog::get("bgp") == nullptr) spdlog::null_logger_mt("bgp");
    Settings settings;
    settings.local_as = net::AsNumber(65000);
    settings.router_id = *net::IpAddress::parse("10.0.0.9");
    settings.listen = {{*net::IpAddress::parse("127.0.0.1"), 0}};
    settings.selection_deferral = 0s;
    for (unsigned i = 0; i < kSessions; ++i) {
      NeighborSettings neighbor;
      neighbor.address = net::IpAddress::v4(address_of(i));
      neighbor.remote_as = settings.local_as;
      neighbor.role = NeighborRole::ReflectorClient;
      neighbor.passive = true;
      neighbor.graceful_restart = false;
      neighbor.hold_time = 300s;
      neighbor.connect_retry = 1s;
      settings.neighbors.push_back(neighbor);
    }
    speaker_ = std::make_unique<io::Speaker>(io_, test::kTestFamily, settings);
    const auto started = speaker_->start();
    EXPECT_TRUE(started) << started.error().what;
    port = speaker_->listening().at(0).port;
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Reflector() {
    boost::asio::post(io_, [this] { speaker_->stop(true, "", [this] { io_.stop(); }); });
    thread_.join();
  }
  uint16_t port = 0;

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::unique_ptr<io::Speaker> speaker_;
  std::thread thread_;
};

struct Random {
  std::mt19937 engine{256};
  unsigned operator()(unsigned n) { return static_cast<unsigned>(engine() % n); }
};

class World {
 public:
  World() : model_(kSessions * kRoutes), chunk_(1 << 18), due_(kSessions) {
    for (unsigned i = 0; i < kSessions; ++i) clients_.emplace_back(i);
    std::ranges::fill(model_, uint8_t{1});
  }

  // One round of I/O over all clients; lost connections are opened again after a while.
  void turn() {
    std::vector<pollfd> wishes;
    std::vector<unsigned> whose;
    const auto now = Clock::now();
    for (unsigned i = 0; i < kSessions; ++i) {
      Client& client = clients_[i];
      if (!client.connected() && now >= due_[i]) client.connect(reflector_.port);
      if (!client.connected()) continue;
      wishes.push_back(client.wish());
      whose.push_back(i);
    }
    ::poll(wishes.data(), wishes.size(), 20);
    for (std::size_t at = 0; at < wishes.size(); ++at)
      if (wishes[at].revents != 0) serve(whose[at]);
    if (now >= keepalive_at_) {
      keepalive_at_ = now + 60s;
      for (Client& client : clients_)
        if (client.established()) client.send(encode_keepalive());
    }
  }

  void reset(unsigned i, bool abort) {
    clients_[i].disconnect(abort);
    due_[i] = Clock::now() + 50ms;
  }
  // New versions of a stretch of a client's routes; some are taken back.
  void change(unsigned i, Random& random) {
    const unsigned first = random(kRoutes);
    const unsigned last = std::min(kRoutes, first + 1 + random(200));
    for (unsigned route = i * kRoutes + first; route < i * kRoutes + last; ++route)
      model_[route] = random(4) == 0 ? 0 : static_cast<uint8_t>(1 + random(255));
    if (clients_[i].established()) clients_[i].tell(model_, first, last);
  }

  [[nodiscard]] bool all_established() const {
    return std::ranges::all_of(clients_, [](const Client& c) { return c.established(); });
  }
  // The first client that does not hold what it must; kSessions: none.
  [[nodiscard]] unsigned first_wrong() {
    for (unsigned n = 0; n < kSessions; ++n) {
      const unsigned i = (suspect_ + n) % kSessions;
      if (!right(i)) return suspect_ = i;
    }
    return kSessions;
  }
  [[nodiscard]] std::string problem() const {
    for (unsigned i = 0; i < kSessions; ++i)
      if (!clients_[i].problem.empty())
        return "client " + std::to_string(i) + ": " + clients_[i].problem;
    return "";
  }
  [[nodiscard]] uint64_t deliveries() const {
    uint64_t sum = 0;
    for (const Client& client : clients_) sum += client.deliveries();
    return sum;
  }
  void converge(const char* what) {
    const auto began = Clock::now();
    // Not a measurement: only so that a standstill ends the test.
    while (!all_established() || first_wrong() != kSessions) {
      turn();
      ASSERT_EQ(problem(), "");
      ASSERT_LT(Clock::now() - began, 400s) << what << ": client " << suspect_ << " lacks routes";
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    std::cout << what << ": " << took.count() << " ms, " << deliveries() << " deliveries so far\n";
  }

 private:
  void serve(unsigned i) {
    Client& client = clients_[i];
    const bool before = client.established();
    if (!client.write() || !client.read(chunk_)) {
      reset(i, false);
      return;
    }
    if (!before && client.established()) {
      client.tell(model_, 0, kRoutes);
      client.send(encode_end_of_rib(kL2vpnEvpn));
    }
  }
  [[nodiscard]] bool right(unsigned i) const {
    const Versions& held = clients_[i].held();
    const auto own = static_cast<std::ptrdiff_t>(i * kRoutes);
    const auto end = own + static_cast<std::ptrdiff_t>(kRoutes);
    return std::equal(held.begin(), held.begin() + own, model_.begin()) &&
           std::equal(held.begin() + end, held.end(), model_.begin() + end) &&
           std::all_of(held.begin() + own, held.begin() + end, [](uint8_t v) { return v == 0; });
  }

  Versions model_;
  Bytes chunk_;
  std::vector<Clock::time_point> due_;
  Clock::time_point keepalive_at_{};
  unsigned suspect_ = 0;
  Reflector reflector_;
  std::vector<Client> clients_;
};

}  // namespace

TEST(ManySessions, ConvergeAndSurviveResets) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4 * kSessions + 64);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  World world;
  world.converge("convergence");
  if (HasFatalFailure()) return;

  Random random;
  unsigned resets = 0, changes = 0;
  const auto until = Clock::now() + kResetTime;
  while (Clock::now() < until) {
    const unsigned client = random(kSessions);
    if (random(2) == 0) {
      world.reset(client, random(2) == 0);
      ++resets;
    } else {
      world.change(client, random);
      ++changes;
    }
    for (unsigned turns = random(40); turns > 0; --turns) world.turn();
    ASSERT_EQ(world.problem(), "");
  }
  std::cout << resets << " resets, " << changes << " changes\n";
  world.converge("after the resets");
  EXPECT_GT(resets, 0u);
}
