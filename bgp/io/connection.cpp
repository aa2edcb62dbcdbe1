// SPDX-License-Identifier: GPL-2.0-or-later
// Reading takes place in one buffer that all connections share, so that an idle one costs nothing;
// only the part of a message that is not whole yet is kept with the connection.
#include "bgp/io/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <utility>

#include "bgp/message.h"

namespace bgp::io {
namespace {

constexpr std::size_t kReadSize = 131072;  // a turn: some thousand routes, about a millisecond
constexpr std::size_t kTrickle = 4096;     // a read of so many octets has no other behind it
constexpr std::size_t kSmall = 1024;       // octets of a message that is copied to others
constexpr std::size_t kGathered = 16384;
constexpr auto kLinger = std::chrono::seconds(1);

// Of what a write is made, by name: the pieces stay with the connection.
struct Pieces {
  using value_type = boost::asio::const_buffer;
  using const_iterator = const boost::asio::const_buffer*;
  const_iterator first, last;
  const_iterator begin() const { return first; }
  const_iterator end() const { return last; }
};

}  // namespace

Connection::Connection(tcp::socket socket, std::shared_ptr<ConnectionPool> pool)
    : socket_(std::move(socket)), linger_(socket_.get_executor()), pool_(std::move(pool)) {
  pool_->scratch.resize(kMaxExtendedMessage + kReadSize);
  ++pool_->open;
}

Connection::~Connection() { close(); }

void Connection::start(Callbacks callbacks) {
  callbacks_ = std::make_shared<const Callbacks>(std::move(callbacks));
  error_code error;
  socket_.non_blocking(true, error);
  wait();
}

void Connection::wait() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->readable(error);
  });
}

void Connection::readable(const error_code& wait_error) {
  if (closed_) return;
  if (wait_error) return fail(wait_error);
  net::Bytes& scratch = pool_->scratch;
  const std::size_t kept = partial_.size();
  std::ranges::copy(partial_, scratch.begin());
  error_code error;
  const std::size_t count =
      socket_.read_some(boost::asio::buffer(scratch.data() + kept, kReadSize), error);
  if (error == boost::asio::error::would_block || error == boost::asio::error::interrupted)
    return wait();
  if (error) return fail(error);
  if (!finishing_) {
    const std::span<const uint8_t> data(scratch.data(), kept + count);
    const auto rest = data.subspan(deliver(data));
    partial_.assign(rest.begin(), rest.end());
    if (count <= kTrickle && pool_->trickled) pool_->trickled();
  }
  if (!closed_) wait();
}

// Returns how many octets were used up.
std::size_t Connection::deliver(std::span<const uint8_t> data) {
  std::size_t at = 0;
  while (data.size() - at >= kHeaderSize) {
    const auto callbacks = callbacks_;  // finish() within the call drops ours
    if (callbacks == nullptr) return data.size();
    const auto header = decode_header(data.subspan(at), callbacks->max_message());
    const std::size_t size = header ? header->length : kHeaderSize;
    if (data.size() - at < size) break;
    callbacks->message(data.subspan(at, size));
    at += size;
  }
  return callbacks_ == nullptr ? data.size() : at;
}

void Connection::send(std::shared_ptr<const net::Bytes> message) {
  if (closed_ || finishing_ || message == nullptr) return;
  queued_ += message->size();
  if (!gather_small(*message)) queue_.push_back(std::move(message));
  if (!writing_ && !corked_) write();
}

void Connection::uncork() {
  corked_ = false;
  if (!closed_ && !writing_ && !queue_.empty()) write();
}

// Small messages behind others are copied together: a write takes only so many pieces. What a write
// under way was told of does not move, for there is always room for what is added.
bool Connection::gather_small(const net::Bytes& message) {
  if (queue_.empty() || message.size() > kSmall) return false;
  if (small_ == nullptr || queue_.back() != small_ ||
      small_->capacity() - small_->size() < message.size()) {
    small_ = std::make_shared<net::Bytes>();
    small_->reserve(kGathered);
    queue_.push_back(small_);
  }
  small_->insert(small_->end(), message.begin(), message.end());
  return true;
}

void Connection::write() {
  std::size_t used = 0;
  for (; used < std::min(queue_.size(), pieces_.size()); ++used)
    pieces_[used] = boost::asio::buffer(*queue_[used]);
  pieces_[0] += offset_;
  writing_ = true;
  // Messages stay in the queue until written: the handler keeps them alive with `self`.
  socket_.async_write_some(Pieces{pieces_.data(), pieces_.data() + used},
                           [self = shared_from_this()](const error_code& error, std::size_t count) {
                             self->written(error, count);
                           });
}

void Connection::written(const error_code& error, std::size_t count) {
  writing_ = false;
  if (closed_) return;
  if (error) return fail(error);
  queued_ -= count;
  offset_ += count;
  while (!queue_.empty() && offset_ >= queue_.front()->size()) {
    offset_ -= queue_.front()->size();
    queue_.pop_front();
  }
  if (const auto callbacks = callbacks_; callbacks && count != 0) callbacks->sent();
  if (closed_ || writing_) return;
  if (!queue_.empty())
    write();
  else if (finishing_)
    end_of_output();
}

void Connection::finish() {
  if (closed_ || finishing_) return;
  finishing_ = true;
  callbacks_.reset();
  partial_.clear();
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->close();
  });
  if (!writing_ && queue_.empty()) end_of_output();
}

void Connection::end_of_output() {
  error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  if (error) close();
}

void Connection::fail(const error_code& error) {
  const auto callbacks = std::exchange(callbacks_, nullptr);
  close();
  if (callbacks) callbacks->closed(error);
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  callbacks_.reset();
  error_code error;
  socket_.close(error);
  linger_.cancel();
  if (--pool_->open == 0 && pool_->all_closed) pool_->all_closed();
}

tcp::endpoint Connection::local() const {
  error_code error;
  return socket_.local_endpoint(error);
}

tcp::endpoint Connection::remote() const {
  error_code error;
  return socket_.remote_endpoint(error);
}

}  // namespace bgp::io
