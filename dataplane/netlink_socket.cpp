// SPDX-License-Identifier: GPL-2.0-or-later
// Requests are blocking: rtnetlink works inside sendmsg(), so all answers are in the receive
// buffer when it returns. In a batch only the last message asks for an acknowledgement: the kernel
// reports errors unasked and answers in order (RFC 3549 section 2.3.2.2). Answers to earlier
// requests that failed half-way are told apart by their sequence number.
//
// Datagrams are read by recv() into a buffer that stays: nl_recv() allocates for every read and
// folds ENOBUFS into ENOMEM.
#include "dataplane/netlink_socket.h"

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dataplane::netlink {
namespace {

constexpr std::size_t kBatchMessages = 128;
constexpr int kReceiveBuffer = 8 << 20;  // 128 errors with their echo need far less
constexpr std::size_t kReadSize = 256 << 10;
constexpr int kDumpTries = 8;

nlmsghdr* first_message(std::span<std::byte> datagram) {
  return reinterpret_cast<nlmsghdr*>(datagram.data());  // the buffer is aligned by its allocator
}

}  // namespace

void MessageDeleter::operator()(nl_msg* message) const { nlmsg_free(message); }
void SocketDeleter::operator()(nl_sock* socket) const { nl_socket_free(socket); }

Message::Message(uint16_t type, uint16_t flags, const void* header, std::size_t size,
                 std::size_t capacity)
    : message_(nlmsg_alloc_size(NLMSG_HDRLEN + capacity)) {
  ok_ = message_ &&
        nlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, NLM_F_REQUEST | flags) &&
        nlmsg_append(message_.get(), const_cast<void*>(header), size, NLMSG_ALIGNTO) == 0;
}

Message& Message::put(uint16_t type, const void* data, std::size_t size) {
  ok_ = ok_ && nla_put(message_.get(), type, static_cast<int>(size), data) == 0;
  return *this;
}

Message& Message::put_integer(uint16_t type, uint8_t width, uint32_t value) {
  switch (width) {
    case 1: {
      const auto narrow = static_cast<uint8_t>(value);
      return put(type, &narrow, sizeof narrow);
    }
    case 2: {
      const auto narrow = static_cast<uint16_t>(value);
      return put(type, &narrow, sizeof narrow);
    }
    default: return put(type, &value, sizeof value);
  }
}

Message& Message::put_string(uint16_t type, std::string_view text) {
  const std::string terminated(text);
  return put(type, terminated.c_str(), terminated.size() + 1);
}

Message& Message::nest(uint16_t type, const std::function<void(Message&)>& fill) {
  if (!ok_) return *this;
  nlattr* nested = nla_nest_start(message_.get(), type | NLA_F_NESTED);
  if (!nested) {
    ok_ = false;
    return *this;
  }
  fill(*this);
  nla_nest_end(message_.get(), nested);
  return *this;
}

Failure failure_of(nlmsghdr* answer) {
  if (nlmsg_datalen(answer) < static_cast<int>(sizeof(nlmsgerr)))
    return {.error = EBADMSG, .text = {}};
  const auto* error = static_cast<nlmsgerr*>(nlmsg_data(answer));
  Failure failure{.error = -error->error, .text = {}};
  if (!(answer->nlmsg_flags & NLM_F_ACK_TLVS)) return failure;
  std::size_t skip = sizeof(nlmsgerr);
  if (!(answer->nlmsg_flags & NLM_F_CAPPED) && error->msg.nlmsg_len > NLMSG_HDRLEN)
    skip += error->msg.nlmsg_len - NLMSG_HDRLEN;
  const auto length = static_cast<std::size_t>(nlmsg_datalen(answer));
  skip = NLMSG_ALIGN(skip);
  if (skip >= length) return failure;
  auto* head = reinterpret_cast<nlattr*>(static_cast<std::byte*>(nlmsg_data(answer)) + skip);
  const nlattr* text = nla_find(head, static_cast<int>(length - skip), NLMSGERR_ATTR_MSG);
  if (text) {
    const auto* characters = static_cast<const char*>(nla_data(text));
    failure.text.assign(characters, strnlen(characters, static_cast<std::size_t>(nla_len(text))));
  }
  return failure;
}

void set_receive_buffer(int fd, int bytes) {
  const int half = bytes / 2;  // the kernel doubles it
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof half) != 0)
    static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof half));
}

Socket::Socket(SocketPointer socket) : socket_(std::move(socket)), buffer_(kReadSize) {}

Result<Socket> Socket::open() {
  SocketPointer socket(nl_socket_alloc());
  if (!socket) return std::unexpected(Failure{.error = ENOMEM, .text = {}});
  nl_socket_disable_auto_ack(socket.get());
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0)
    return std::unexpected(Failure{.error = errno ? errno : EIO, .text = nl_geterror(error)});
  const int fd = nl_socket_get_fd(socket.get());
  set_receive_buffer(fd, kReceiveBuffer);
  const int on = 1;
  // All three are optional: older kernels answer with less.
  for (const int option : {NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK})
    static_cast<void>(::setsockopt(fd, SOL_NETLINK, option, &on, sizeof on));
  return Socket(std::move(socket));
}

uint32_t Socket::complete(const Message& message) {
  nl_complete_msg(socket_.get(), message.get());
  return nlmsg_hdr(message.get())->nlmsg_seq;
}

std::expected<std::span<std::byte>, int> Socket::receive() {
  for (;;) {
    const ssize_t length =
        ::recv(nl_socket_get_fd(socket_.get()), buffer_.data(), buffer_.size(), MSG_TRUNC);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::unexpected(errno);
    if (static_cast<std::size_t>(length) > buffer_.size()) return std::unexpected(EMSGSIZE);
    return std::span(buffer_).first(static_cast<std::size_t>(length));
  }
}

Result<void> Socket::request(Message message) {
  Batch batch(*this);
  batch.add(message, 0);
  return batch.finish();
}

Result<bool> Socket::get(Message message, const std::function<void(nlmsghdr*)>& answer) {
  if (!message.ok()) return std::unexpected(Failure{.error = EMSGSIZE, .text = {}});
  const uint32_t sequence = complete(message);
  if (nl_sendto(socket_.get(), nlmsg_hdr(message.get()), nlmsg_hdr(message.get())->nlmsg_len) < 0)
    return std::unexpected(Failure{.error = errno, .text = {}});
  for (;;) {
    const auto datagram = receive();
    if (!datagram) return std::unexpected(Failure{.error = datagram.error(), .text = {}});
    int left = static_cast<int>(datagram->size());
    for (nlmsghdr* m = first_message(*datagram); nlmsg_ok(m, left); m = nlmsg_next(m, &left)) {
      if (m->nlmsg_seq != sequence) continue;
      if (m->nlmsg_type != NLMSG_ERROR) {
        answer(m);
        return true;
      }
      Failure failure = failure_of(m);
      if (failure.error == ENODEV) return false;
      return std::unexpected(std::move(failure));
    }
  }
}

Result<void> Socket::dump(const std::function<Message()>& message,
                          const std::function<void()>& start,
                          const std::function<void(nlmsghdr*)>& entry) {
  for (int attempt = 0; attempt < kDumpTries; ++attempt) {
    const Message request = message();
    if (!request.ok()) return std::unexpected(Failure{.error = EMSGSIZE, .text = {}});
    const uint32_t sequence = complete(request);
    if (nl_sendto(socket_.get(), nlmsg_hdr(request.get()), nlmsg_hdr(request.get())->nlmsg_len) < 0)
      return std::unexpected(Failure{.error = errno, .text = {}});
    start();
    bool done = false;
    bool interrupted = false;
    while (!done) {
      const auto datagram = receive();
      if (!datagram) return std::unexpected(Failure{.error = datagram.error(), .text = {}});
      int left = static_cast<int>(datagram->size());
      for (nlmsghdr* m = first_message(*datagram); nlmsg_ok(m, left); m = nlmsg_next(m, &left)) {
        if (m->nlmsg_seq != sequence) continue;
        if (m->nlmsg_flags & NLM_F_DUMP_INTR) interrupted = true;
        if (m->nlmsg_type == NLMSG_ERROR) return std::unexpected(failure_of(m));
        if (m->nlmsg_type == NLMSG_DONE) {
          int error = 0;  // a dump that fails half-way says so in its end mark
          if (nlmsg_datalen(m) >= static_cast<int>(sizeof error))
            std::memcpy(&error, nlmsg_data(m), sizeof error);
          if (error < 0) return std::unexpected(Failure{.error = -error, .text = {}});
          done = true;
        } else {
          entry(m);
        }
      }
    }
    if (!interrupted) return {};
  }
  return std::unexpected(Failure{.error = EAGAIN, .text = "the table kept changing"});
}

void Batch::fail(Failure failure) {
  if (!first_) first_ = std::move(failure);
}

void Batch::add(const Message& message, std::size_t about, std::span<const int> fine) {
  if (!message.ok()) {
    fail({.error = EMSGSIZE, .text = {}, .about = about});
    return;
  }
  const uint32_t sequence = socket_.complete(message);
  if (pending_.empty()) first_sequence_ = sequence;
  const auto* bytes = reinterpret_cast<const std::byte*>(nlmsg_hdr(message.get()));
  last_ = bytes_.size();
  bytes_.insert(bytes_.end(), bytes, bytes + nlmsg_hdr(message.get())->nlmsg_len);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  pending_.push_back({about, fine});
  if (pending_.size() == kBatchMessages) flush();
}

void Batch::answered(nlmsghdr* answer) {
  Failure failure = failure_of(answer);
  const Pending& request = pending_[answer->nlmsg_seq - first_sequence_];
  if (failure.error == 0 || std::ranges::find(request.fine, failure.error) != request.fine.end())
    return;
  failure.about = request.about;
  fail(std::move(failure));
}

void Batch::flush() {
  if (pending_.empty()) return;
  auto* last = reinterpret_cast<nlmsghdr*>(bytes_.data() + last_);  // aligned: NLMSG_ALIGN above
  last->nlmsg_flags |= NLM_F_ACK;
  const uint32_t last_sequence = last->nlmsg_seq;
  bool done = nl_sendto(socket_.socket_.get(), bytes_.data(), bytes_.size()) < 0;
  if (done) fail({.error = errno, .text = {}, .about = pending_.front().about});
  while (!done) {
    const auto datagram = socket_.receive();
    if (!datagram) {
      fail({.error = datagram.error(), .text = {}, .about = pending_.front().about});
      break;
    }
    int left = static_cast<int>(datagram->size());
    for (nlmsghdr* m = first_message(*datagram); nlmsg_ok(m, left); m = nlmsg_next(m, &left)) {
      if (m->nlmsg_type != NLMSG_ERROR || m->nlmsg_seq - first_sequence_ >= pending_.size())
        continue;
      answered(m);
      if (m->nlmsg_seq == last_sequence) done = true;
    }
  }
  bytes_.clear();
  pending_.clear();
}

Result<void> Batch::finish() {
  flush();
  if (first_) return std::unexpected(std::move(*first_));
  return {};
}

}  // namespace dataplane::netlink
