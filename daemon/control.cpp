// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/control.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "daemon/app.h"
#include "daemon/views.h"

namespace peerland {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol;

constexpr std::size_t kMaxRequest = 65536;
constexpr std::size_t kMaxConnections = 64;
constexpr auto kPatience = std::chrono::seconds(5);  // for the request
constexpr auto kReading = std::chrono::seconds(30);  // for taking the answer

}  // namespace

// Lives as long as one of its operations; a client that never reads only holds its own answer,
// until its patience is over.
struct ControlServer::Connection : std::enable_shared_from_this<Connection> {
  Connection(ControlServer& owner, Socket::socket peer)
      : server(owner), socket(std::move(peer)), timer(owner.io_), buffer(kMaxRequest) {
    ++server.open_;
  }
  ~Connection() { --server.open_; }

  void close_after(std::chrono::seconds time) {
    timer.expires_after(time);
    timer.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
      if (error) return;
      if (auto alive = self.lock()) {
        boost::system::error_code ignored;
        alive->socket.close(ignored);
      }
    });
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
    const auto text = [&](const char* key) {
      const auto* found = object.if_contains(key);
      return found != nullptr && found->is_string() ? std::string(found->as_string())
                                                    : std::string();
    };
    const std::string command = text("command");
    if (command == "show") {
      const auto* arguments = object.if_contains("arguments");
      auto document = show(server.app_, text("what"),
                           arguments != nullptr && arguments->is_object() ? arguments->as_object()
                                                                          : boost::json::object{});
      if (!document) return fail(document.error());
      return reply(boost::json::serialize(*document));
    }
    if (command == "reload") {
      auto result = server.app_.reload();
      if (!result) return fail(result.error());
      return reply(boost::json::serialize(boost::json::object{{"result", *result}}));
    }
    if (command == "teardown") {
      server.app_.teardown([self = shared_from_this()](const std::string& result) {
        self->reply(boost::json::serialize(boost::json::object{{"result", result}}));
      });
      return;
    }
    fail("unknown command \"" + command + "\"");
  }

  void fail(std::string what) {
    // Errors quote what they found; JSON takes UTF-8 only.
    for (char& c : what)
      if ((static_cast<unsigned char>(c) & 0x80) != 0) c = '?';
    reply(boost::json::serialize(boost::json::object{{"error", what}}));
  }

  void reply(std::string text) {
    answer = std::move(text) + "\n";
    close_after(kReading);
    asio::async_write(socket, asio::buffer(answer),
                      [self = shared_from_this()](const boost::system::error_code&, std::size_t) {
                        boost::system::error_code ignored;
                        self->socket.shutdown(Socket::socket::shutdown_both, ignored);
                        self->timer.cancel();
                      });
  }

  ControlServer& server;
  Socket::socket socket;
  asio::steady_timer timer;
  asio::streambuf buffer;
  std::string answer;
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
    if (!error && open_ < kMaxConnections)
      std::make_shared<Connection>(*this, std::move(socket))->start();
    accept();
  });
}

}  // namespace peerland
