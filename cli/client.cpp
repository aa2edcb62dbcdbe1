// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <utility>

namespace cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

}  // namespace

struct Client::Impl {
  asio::io_context io;
  asio::local::stream_protocol::socket socket{io};
  std::string path;
  std::string buffer;  // read and not yet taken
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client::~Client() = default;

std::expected<Client, Failure> Client::ask(const std::string& path, const json::object& request) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  boost::system::error_code error;
  impl->socket.connect(asio::local::stream_protocol::endpoint(path), error);
  if (error)
    return std::unexpected(Failure{kNoDaemon, "no daemon at " + path + ": " + error.message()});
  asio::write(impl->socket, asio::buffer(json::serialize(request) + "\n"), error);
  if (error) return std::unexpected(Failure{kNoDaemon, path + ": " + error.message()});
  return Client(std::move(impl));
}

std::expected<std::optional<std::string>, Failure> Client::line() {
  boost::system::error_code error;
  const std::size_t size =
      asio::read_until(impl_->socket, asio::dynamic_buffer(impl_->buffer), '\n', error);
  if (error == asio::error::eof && impl_->buffer.empty()) return std::nullopt;
  if (error) return std::unexpected(Failure{kNoDaemon, impl_->path + ": " + error.message()});
  std::string text = impl_->buffer.substr(0, size - 1);
  impl_->buffer.erase(0, size);
  return text;
}

std::expected<std::string, Failure> Client::octets(std::size_t size) {
  if (impl_->buffer.size() < size) {
    boost::system::error_code error;
    asio::read(impl_->socket, asio::dynamic_buffer(impl_->buffer),
               asio::transfer_exactly(size - impl_->buffer.size()), error);
    if (error)
      return std::unexpected(
          Failure{kNoDaemon, impl_->path + ": the answer broke off: " + error.message()});
  }
  std::string text = impl_->buffer.substr(0, size);
  impl_->buffer.erase(0, size);
  return text;
}

std::expected<json::object, Failure> Client::document(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object())
    return std::unexpected(Failure{kNoDaemon, "the answer is not JSON"});
  if (const auto* what = value.as_object().if_contains("error"))
    return std::unexpected(Failure{
        kRefused, what->is_string() ? std::string(what->as_string()) : json::serialize(*what)});
  return value.as_object();
}

std::expected<json::object, Failure> read_rows(Client& client,
                                               const std::function<void(json::object)>& row) {
  const Failure broken{kNoDaemon, "the answer broke off"};
  auto first = client.line();
  if (!first) return std::unexpected(first.error());
  if (!*first) return std::unexpected(broken);
  if (!(*first)->ends_with('[')) return Client::document(**first);
  for (;;) {
    auto line = client.line();
    if (!line) return std::unexpected(line.error());
    if (!*line) return std::unexpected(broken);
    std::string text = std::move(**line);
    // "],"total":..}": what stands in front of the rows, and then this.
    if (text.starts_with(']')) return Client::document(**first + text);
    if (text.ends_with(',')) text.pop_back();
    if (text.empty()) continue;
    auto parsed = Client::document(text);
    if (!parsed) return std::unexpected(parsed.error());
    row(std::move(*parsed));
  }
}

}  // namespace cli
