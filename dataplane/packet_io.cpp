// SPDX-License-Identifier: GPL-2.0-or-later
// Frames out by AF_PACKET, frames in by libpcap. The sender's socket has protocol 0, so it receives
// nothing; the capture is in immediate mode and non-blocking, waited for by Asio.
#include "dataplane/packet_io.h"

#include <linux/if_packet.h>
#include <pcap/pcap.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

namespace dataplane {

namespace {

constexpr std::size_t kShortestFrame = 60;
constexpr std::size_t kHeldFrame = 128, kHeldFrames = 64;  // answers; the rest goes by itself
constexpr int kSnapLength = 2048;
constexpr int kCaptureBuffer = 4 << 20;
constexpr int kFramesPerTurn = 256;
// All that is not unicast, and unicast ARP and ICMPv6.
constexpr const char* kFilter = "ether[0] & 1 != 0 or arp or icmp6";

}  // namespace

FastPathResult<std::unique_ptr<PacketSender>> PacketSender::open() {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    const int error = errno;
    return std::unexpected(
        FastPathError{std::string("packet socket: ") + std::strerror(error), error});
  }
  return std::unique_ptr<PacketSender>(new PacketSender(fd));
}

struct PacketSender::Held {
  Held() {
    for (std::size_t i = 0; i < kHeldFrames; ++i) {
      parts[i].iov_base = frames[i].data();
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_name = &addresses[i];
      messages[i].msg_hdr.msg_namelen = sizeof addresses[i];
    }
  }
  std::array<std::array<uint8_t, kHeldFrame>, kHeldFrames> frames;
  std::array<sockaddr_ll, kHeldFrames> addresses{};
  std::array<iovec, kHeldFrames> parts{};
  std::array<mmsghdr, kHeldFrames> messages{};
  std::size_t count = 0;
};

PacketSender::PacketSender(int fd) : fd_(fd), held_(std::make_unique<Held>()) {}
PacketSender::~PacketSender() { ::close(fd_); }
uint64_t PacketSender::errors() const { return errors_; }

namespace {

sockaddr_ll address_of(net::IfIndex port, std::span<const uint8_t> frame) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(port.value);
  address.sll_halen = 6;
  std::memcpy(&address.sll_protocol, frame.data() + 12, 2);
  std::memcpy(address.sll_addr, frame.data(), 6);
  return address;
}

}  // namespace

bool PacketSender::send(net::IfIndex port, std::span<const uint8_t> frame) {
  if (frame.size() < 14) {
    ++errors_;
    return false;
  }
  if (batches_ > 0 && frame.size() <= kHeldFrame) {
    const std::size_t at = held_->count++;
    auto& copy = held_->frames[at];
    std::ranges::copy(frame, copy.begin());
    if (frame.size() < kShortestFrame)
      std::fill(copy.begin() + static_cast<std::ptrdiff_t>(frame.size()),
                copy.begin() + kShortestFrame, uint8_t{0});
    held_->addresses[at] = address_of(port, frame);
    held_->parts[at].iov_len = std::max(frame.size(), kShortestFrame);
    if (held_->count == kHeldFrames) flush();
    return true;
  }
  flush();  // what is held was sent before
  std::array<uint8_t, kShortestFrame> padded{};
  if (frame.size() < padded.size()) {
    std::ranges::copy(frame, padded.begin());
    frame = padded;
  }
  const sockaddr_ll address = address_of(port, frame);
  const auto sent = ::sendto(fd_, frame.data(), frame.size(), 0,
                             // the socket API's own cast
                             reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (sent == static_cast<ssize_t>(frame.size())) return true;
  ++errors_;
  return false;
}

void PacketSender::flush() {
  for (std::size_t at = 0; at < held_->count;) {
    const int sent =
        ::sendmmsg(fd_, &held_->messages[at], static_cast<unsigned>(held_->count - at), 0);
    if (sent > 0) {
      at += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    ++errors_;  // the first one was refused: on with the next
    ++at;
  }
  held_->count = 0;
}

PacketSender::Batch::Batch(PacketSender& sender) : sender_(sender) { ++sender_.batches_; }
PacketSender::Batch::~Batch() {
  if (--sender_.batches_ == 0) sender_.flush();
}

namespace {

class Capture final : public PcapCapture {
 public:
  // Shared with the handler that waits, which may outlive the capture.
  struct State : std::enable_shared_from_this<State> {
    State(boost::asio::io_context& io, pcap_t* p, net::IfIndex i, Handler h, PacketSender* s)
        : pcap(p), descriptor(io), port(i), handler(std::move(h)), sender(s) {}
    ~State() {
      if (descriptor.is_open()) descriptor.release();  // the descriptor is pcap's
      pcap_close(pcap);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void wait() {
      descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [self = shared_from_this()](const boost::system::error_code& error) {
                              if (!error) self->read();
                            });
    }
    void read() {
      if (closed) return;
      std::optional<PacketSender::Batch> batch;
      if (sender != nullptr) batch.emplace(*sender);
      const int got =
          pcap_dispatch(pcap, kFramesPerTurn, &State::on_frame, reinterpret_cast<u_char*>(this));
      if (closed) return;
      if (got < 0) return;  // the device is gone: it has to be opened anew
      if (got >= kFramesPerTurn)
        boost::asio::post(descriptor.get_executor(), [self = shared_from_this()] { self->read(); });
      else
        wait();
    }
    static void on_frame(u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
      auto* self = reinterpret_cast<State*>(user);
      if (self->closed) return;
      self->handler(self->port, {bytes, header->caplen});
    }
    void close() {
      closed = true;
      pcap_breakloop(pcap);
      boost::system::error_code ignored;
      descriptor.cancel(ignored);
    }

    pcap_t* pcap;
    boost::asio::posix::stream_descriptor descriptor;
    net::IfIndex port;
    Handler handler;
    PacketSender* sender;
    bool closed = false;
  };

  explicit Capture(std::shared_ptr<State> state) : state_(std::move(state)) { state_->wait(); }
  ~Capture() override { state_->close(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  uint64_t lost() const override {
    pcap_stat stat{};
    return pcap_stats(state_->pcap, &stat) == 0 ? stat.ps_drop : 0;
  }

 private:
  std::shared_ptr<State> state_;
};

FastPathError pcap_error(const std::string& interface, const char* what) {
  return {"capture on " + interface + ": " + what, errno};
}

}  // namespace

FastPathResult<std::unique_ptr<PcapCapture>> PcapCapture::open(
    boost::asio::io_context& io, const std::string& interface, net::IfIndex port, Handler handler,
    PacketSender* sender, const std::vector<net::MacAddress>& destinations) {
  char text[PCAP_ERRBUF_SIZE] = "";
  pcap_t* pcap = pcap_create(interface.c_str(), text);
  if (pcap == nullptr) return std::unexpected(pcap_error(interface, text));
  const auto fail = [&](const char* what) {
    auto error = pcap_error(interface, what);
    pcap_close(pcap);
    return std::unexpected(std::move(error));
  };
  pcap_set_snaplen(pcap, kSnapLength);
  pcap_set_promisc(pcap, 1);
  pcap_set_immediate_mode(pcap, 1);
  pcap_set_buffer_size(pcap, kCaptureBuffer);
  if (const int status = pcap_activate(pcap); status < 0)
    return fail(*pcap_geterr(pcap) != '\0' ? pcap_geterr(pcap) : pcap_statustostr(status));
  if (pcap_datalink(pcap) != DLT_EN10MB) return fail("not an Ethernet device");
  if (pcap_setdirection(pcap, PCAP_D_IN) != 0) return fail(pcap_geterr(pcap));
  // libpcap throws the others away after the kernel copied them; since Linux 4.20 it needs not.
  const int yes = 1;
  ::setsockopt(pcap_fileno(pcap), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
  std::string wanted = kFilter;
  for (const auto& mac : destinations) wanted += " or ether dst " + to_string(mac);
  bpf_program filter{};
  if (pcap_compile(pcap, &filter, wanted.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0)
    return fail(pcap_geterr(pcap));
  const int filtered = pcap_setfilter(pcap, &filter);
  pcap_freecode(&filter);
  if (filtered != 0) return fail(pcap_geterr(pcap));
  if (pcap_setnonblock(pcap, 1, text) != 0) return fail(text);
  const int fd = pcap_get_selectable_fd(pcap);
  if (fd < 0) return fail("no descriptor to wait for");

  auto state = std::make_shared<Capture::State>(io, pcap, port, std::move(handler), sender);
  boost::system::error_code error;
  state->descriptor.assign(fd, error);
  if (error) return std::unexpected(pcap_error(interface, error.message().c_str()));
  return std::make_unique<Capture>(std::move(state));
}

}  // namespace dataplane
