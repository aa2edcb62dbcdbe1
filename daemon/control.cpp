// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/control.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon/app.h"
#include "daemon/filter.h"
#include "daemon/monitor.h"
#include "daemon/mrt_writer.h"
#include "daemon/neighbor_commands.h"
#include "daemon/port_commands.h"
#include "daemon/proxy_commands.h"
#include "daemon/reload_commands.h"
#include "daemon/trace.h"
#include "daemon/views.h"

namespace peerland {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol;

constexpr std::size_t kMaxRequest = 65536;
constexpr std::size_t kMaxConnections = 64;
constexpr auto kPatience = std::chrono::seconds(5);  // for the request
constexpr auto kReading = std::chrono::seconds(30);  // for taking a piece of the answer

// Octets with their number in front, four octets in network order; none is the end. So a reader
// knows a whole answer from one that broke off.
std::string length_of(const std::string& octets) {
  const auto size = static_cast<uint32_t>(octets.size());
  return {static_cast<char>(size >> 24), static_cast<char>(size >> 16),
          static_cast<char>(size >> 8), static_cast<char>(size)};
}
Answer framed(Answer pieces) {
  return [pieces = std::move(pieces), ended = false]() mutable -> std::optional<std::string> {
    if (ended) return std::nullopt;
    auto piece = pieces();
    if (piece && piece->empty()) return piece;
    ended = !piece;
    return piece ? length_of(*piece) + *piece : length_of("");
  };
}

}  // namespace

// Lives as long as one of its operations; a client that never reads only holds the piece of its
// answer that it is sent, until its patience is over.
struct ControlServer::Connection : std::enable_shared_from_this<Connection> {
  Connection(ControlServer& owner, Socket::socket peer)
      : server(owner),
        socket(std::move(peer)),
        timer(owner.io_),
        buffer(kMaxRequest),
        open(owner.open_) {
    ++*open;
  }
  ~Connection() { --*open; }

  void close_after(std::chrono::seconds time) {
    timer.expires_after(time);
    timer.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
      if (error) return;
      if (auto alive = self.lock()) alive->close();
    });
  }

  void close() {
    boost::system::error_code ignored;
    socket.close(ignored);
    timer.cancel();
    if (const auto client = std::exchange(watcher, nullptr)) server.app_.monitor().remove(client);
    if (const auto ending = std::exchange(tracer, nullptr)) ending->end();
  }

  void start() {
    close_after(kPatience);
    asio::async_read_until(
        socket, buffer, '\n',
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (error == asio::error::not_found)
            self->fail("request too long");
          else if (!error)
            self->request();
        });
  }

  void request() {
    std::string line(asio::buffers_begin(buffer.data()), asio::buffers_end(buffer.data()));
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    if (error || !value.is_object()) return fail("the request is not a JSON object");
    const auto& object = value.as_object();
    const std::string command = text_of(object, "command");
    const auto* given = object.if_contains("arguments");
    const auto arguments =
        given != nullptr && given->is_object() ? given->as_object() : boost::json::object{};
    App& app = server.app_;
    if (command == "show") {
      auto document = show(app, text_of(object, "what"), arguments);
      return document ? send(std::move(*document)) : fail(document.error());
    }
    if (command == "monitor") return monitor(text_of(object, "what"), arguments);
    if (command == "dump-mrt") return send(framed(mrt_dump(app)));
    if (command == "diff") {
      auto document = app.reload_difference();
      return document ? send(whole(std::move(*document))) : fail(document.error());
    }
    if (const auto done = act_on_settings(app, command, arguments)) return result(*done);
    if (command == "teardown") {
      app.teardown([self = shared_from_this()](const std::string& done) { self->result(done); });
      return;
    }
    if (command == "trace") return trace(arguments);
    if (const auto done = act_on_neighbor(app, command, arguments)) return result(*done);
    if (const auto done = act_on_address(app, command, arguments)) return result(*done);
    if (const auto done = act_on_port(app, command, arguments)) return result(*done);
    fail("unknown command \"" + command + "\"");
  }

  static std::string text_of(const boost::json::object& object, const char* key) {
    const auto* found = object.if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : "";
  }

  void fail(std::string what) {
    // Errors quote what they found; JSON takes UTF-8 only.
    for (char& c : what)
      if ((static_cast<unsigned char>(c) & 0x80) != 0) c = '?';
    send(whole(boost::json::serialize(boost::json::object{{"error", what}}) + "\n"));
  }

  void result(const std::expected<std::string, std::string>& done) {
    if (!done) return fail(done.error());
    send(whole(boost::json::serialize(boost::json::object{{"result", *done}}) + "\n"));
  }

  // --- answers in pieces
  void send(Answer pieces) {
    answer = std::move(pieces);
    send_next();
  }

  void send_next() {
    auto next = answer();
    if (!next) {
      boost::system::error_code ignored;
      socket.shutdown(Socket::socket::shutdown_both, ignored);
      timer.cancel();
      return;
    }
    if (next->empty()) {
      asio::post(server.io_, [self = shared_from_this()] {
        if (self->socket.is_open()) self->send_next();
      });
      return;
    }
    piece = std::move(*next);
    close_after(kReading);
    asio::async_write(
        socket, asio::buffer(piece),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (!error) self->send_next();
        });
  }

  // --- monitor
  void monitor(const std::string& what, const boost::json::object& arguments) {
    static constexpr const char* kFilters[] = {"type", "mac", "ip", "vni", "rd", "neighbor"};
    const auto filter = parse_filter(arguments, kFilters);
    if (!filter) return fail(filter.error());
    auto added = server.app_.monitor().add(what, *filter, [self = weak_from_this()] {
      if (auto alive = self.lock())
        asio::post(alive->server.io_, [alive] { alive->send_events(); });
    });
    if (!added) return fail(added.error());
    watcher = std::move(*added);
    timer.cancel();
    piece =
        boost::json::serialize(boost::json::object{{"schema", kSchema}, {"event", "watching"}}) +
        "\n";
    write_events();
    await_hangup();
  }

  // The client says nothing more; what is read is its end.
  void await_hangup() {
    socket.async_read_some(
        asio::buffer(rest),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          if (error) return self->close();
          self->await_hangup();
        });
  }

  void send_events() {
    if (writing || watcher == nullptr) return;
    piece = watcher->take();
    if (!piece.empty()) write_events();
  }

  void write_events() {
    writing = true;
    asio::async_write(
        socket, asio::buffer(piece),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
          self->writing = false;
          if (error) return self->close();
          self->send_events();
        });
  }

  // --- trace: octets of a pcapng file, each piece with its length in front
  void trace(const boost::json::object& arguments) {
    auto begun = begin_trace(server.app_, server.io_, arguments, [self = weak_from_this()] {
      if (auto alive = self.lock()) asio::post(alive->server.io_, [alive] { alive->send_trace(); });
    });
    if (!begun) return fail(begun.error());
    tracer = std::move(*begun);
    timer.cancel();
    await_hangup();
  }

  void send_trace() {
    if (writing || tracer == nullptr || !socket.is_open()) return;
    const bool last = tracer->ended();
    std::string octets = tracer->take();
    if (octets.empty() && !last) return;
    const bool done = octets.empty();
    piece = length_of(octets) + octets;
    writing = true;
    close_after(kReading);
    asio::async_write(
        socket, asio::buffer(piece),
        [self = shared_from_this(), done](const boost::system::error_code& error, std::size_t) {
          self->writing = false;
          self->timer.cancel();
          if (error || done) return self->close();
          self->send_trace();
        });
  }

  ControlServer& server;
  Socket::socket socket;
  asio::steady_timer timer;
  asio::streambuf buffer;
  std::shared_ptr<std::size_t> open;
  Answer answer;
  std::string piece;  // being written
  Monitor::ClientPtr watcher;
  std::shared_ptr<Trace> tracer;
  bool writing = false;
  char rest[64] = {};
};

ControlServer::ControlServer(asio::io_context& io, App& app) : io_(io), app_(app), acceptor_(io) {}

ControlServer::~ControlServer() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

bool ControlServer::answers(asio::io_context& io, const std::string& path) {
  boost::system::error_code error;
  Socket::socket probe(io);
  probe.connect(Socket::endpoint(path), error);
  return !error;
}

std::expected<void, std::string> ControlServer::open(const std::string& path) {
  boost::system::error_code error;
  std::error_code file_error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, file_error);
  if (std::filesystem::exists(path, file_error)) {
    if (answers(io_, path))
      return std::unexpected("control socket " + path + ": another peerland answers there");
    ::unlink(path.c_str());
  }
  const auto failed = [&](const char* step) {
    return std::unexpected("control socket " + path + ": " + step + ": " + error.message());
  };
  acceptor_.open(Socket(), error);
  if (error) return failed("open");
  acceptor_.bind(Socket::endpoint(path), error);
  if (error) return failed("bind");
  path_ = path;
  if (::chmod(path.c_str(), 0660) != 0) {
    error.assign(errno, boost::system::system_category());
    return failed("chmod");
  }
  acceptor_.listen(16, error);
  if (error) return failed("listen");
  accept();
  return {};
}

void ControlServer::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, Socket::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error && *open_ < kMaxConnections)
      std::make_shared<Connection>(*this, std::move(socket))->start();
    accept();
  });
}

}  // namespace peerland
