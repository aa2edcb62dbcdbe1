// SPDX-License-Identifier: GPL-2.0-or-later
// One TCP connection: cuts what arrives into messages, a bounded amount each turn of the loop, and
// writes what is queued. Keeps itself alive until its last handler has run; after finish() it no
// longer calls its owner.
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "bgp/io/socket.h"
#include "net/bytes.h"

namespace bgp::io {

// What all connections of a speaker share.
struct ConnectionPool {
  std::size_t open = 0;
  std::function<void()> all_closed;  // called when `open` falls to 0
  std::function<void()> trickled;    // after a read that took little, and was acted upon
  net::Bytes scratch;                // where reading takes place
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Callbacks {
    std::function<std::size_t()> max_message;
    // A whole message, or a header that decode_header() refused.
    std::function<void(std::span<const uint8_t>)> message;
    std::function<void()> sent;  // the socket took octets
    std::function<void(const error_code&)> closed;
  };

  Connection(tcp::socket socket, std::shared_ptr<ConnectionPool> pool);
  ~Connection();

  // Begins to read. Callbacks are never called from within a call of ours.
  void start(Callbacks callbacks);
  void send(std::shared_ptr<const net::Bytes> message);
  // What is sent between the two is written at once, at the latter.
  void cork() { corked_ = true; }
  void uncork();
  std::size_t queued() const { return queued_; }  // octets
  // Writes what is queued, then says so to the peer and waits a moment for it to close: with a
  // close() while there is unread input the peer would lose our last message.
  void finish();
  // At once, without a word.
  void close();
  tcp::endpoint local() const;  // both: of no meaning once it is closed
  tcp::endpoint remote() const;

 private:
  void wait();
  void readable(const error_code& error);
  std::size_t deliver(std::span<const uint8_t> data);
  [[nodiscard]] bool gather_small(const net::Bytes& message);
  void write();
  void written(const error_code& error, std::size_t count);
  void end_of_output();
  void fail(const error_code& error);

  tcp::socket socket_;
  boost::asio::steady_timer linger_;
  std::shared_ptr<ConnectionPool> pool_;
  std::shared_ptr<const Callbacks> callbacks_;
  net::Bytes partial_;  // of a message that is not whole yet
  std::deque<std::shared_ptr<const net::Bytes>> queue_;
  std::shared_ptr<net::Bytes> small_;  // the last in the queue, if it may be added to
  std::array<boost::asio::const_buffer, 64> pieces_;  // of the write under way
  std::size_t offset_ = 0;  // of the first in the queue, what is written already
  std::size_t queued_ = 0;
  bool writing_ = false;
  bool corked_ = false;
  bool finishing_ = false;
  bool closed_ = false;
};

}  // namespace bgp::io
