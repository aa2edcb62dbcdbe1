// SPDX-License-Identifier: GPL-2.0-or-later
// Requests to rtnetlink: a message under construction, a batch of them in one datagram with their
// acknowledgements, and dumps that are repeated when they were interrupted. A thin layer over
// libnl's sockets, messages and attributes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct nl_msg;
struct nl_sock;
struct nlattr;
struct nlmsghdr;

namespace dataplane::netlink {

struct MessageDeleter {
  void operator()(nl_msg* message) const;
};
struct SocketDeleter {
  void operator()(nl_sock* socket) const;
};
using SocketPointer = std::unique_ptr<nl_sock, SocketDeleter>;

// One request. An attribute that does not fit makes ok() false and the request fails.
class Message {
 public:
  // `capacity` in bytes holds header and attributes.
  template <class Header>
  Message(uint16_t type, uint16_t flags, const Header& header, std::size_t capacity = 1024)
      : Message(type, flags, &header, sizeof header, capacity) {}

  Message& put(uint16_t type, const void* data, std::size_t size);
  Message& put(uint16_t type, std::span<const uint8_t> bytes) {
    return put(type, bytes.data(), bytes.size());
  }
  Message& put_integer(uint16_t type, uint8_t width,
                       uint32_t value);  // 1, 2 or 4 octets, host order
  Message& put_string(uint16_t type, std::string_view text);
  // Attributes that `fill` puts go into an attribute `type`.
  Message& nest(uint16_t type, const std::function<void(Message&)>& fill);

  bool ok() const { return ok_; }
  nl_msg* get() const { return message_.get(); }

 private:
  Message(uint16_t type, uint16_t flags, const void* header, std::size_t size,
          std::size_t capacity);
  std::unique_ptr<nl_msg, MessageDeleter> message_;
  bool ok_ = true;
};

struct Failure {
  int error = 0;          // errno
  std::string text;       // the kernel's own words (extended acknowledgement), often empty
  std::size_t about = 0;  // what add() was told
};
template <class T>
using Result = std::expected<T, Failure>;

class Socket {
 public:
  [[nodiscard]] static Result<Socket> open();

  [[nodiscard]] Result<void> request(Message message);
  // One answer message; nothing for ENODEV.
  [[nodiscard]] Result<bool> get(Message message, const std::function<void(nlmsghdr*)>& answer);
  // Calls `start` before each try and `entry` for each message; again when the kernel says that
  // its table changed in between (NLM_F_DUMP_INTR), EAGAIN after eight tries.
  [[nodiscard]] Result<void> dump(const std::function<Message()>& message,
                                  const std::function<void()>& start,
                                  const std::function<void(nlmsghdr*)>& entry);

 private:
  friend class Batch;
  explicit Socket(SocketPointer socket);
  uint32_t complete(const Message& message);
  [[nodiscard]] std::expected<std::span<std::byte>, int> receive();

  SocketPointer socket_;
  std::vector<std::byte> buffer_;
};

// Many small requests. All are tried; finish() has the first error.
class Batch {
 public:
  explicit Batch(Socket& socket) : socket_(socket) {}
  // `fine`: errno values that count as success for this one.
  void add(const Message& message, std::size_t about, std::span<const int> fine = {});
  [[nodiscard]] Result<void> finish();

 private:
  struct Pending {
    std::size_t about;
    std::span<const int> fine;
  };
  void flush();
  void answered(nlmsghdr* answer);
  void fail(Failure failure);

  Socket& socket_;
  std::vector<std::byte> bytes_;
  std::vector<Pending> pending_;
  std::size_t last_ = 0;  // offset of the last message in bytes_
  uint32_t first_sequence_ = 0;
  std::optional<Failure> first_;
};

// What an NLMSG_ERROR says; error 0 is an acknowledgement.
[[nodiscard]] Failure failure_of(nlmsghdr* answer);

// Sets the receive buffer as the kernel accounts it, past the system's limit where allowed.
void set_receive_buffer(int fd, int bytes);

}  // namespace dataplane::netlink
