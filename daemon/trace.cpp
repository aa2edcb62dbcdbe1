// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/pcapng.h"

#ifndef PEERLAN_VERSION
#define PEERLAN_VERSION "unknown"
#endif

namespace peerland {
namespace {

using namespace std::chrono_literals;
using SystemClock = std::chrono::system_clock;

constexpr auto kHold = 200ms;  // for the other source; punts come within a few milliseconds
constexpr auto kStep = 100ms;  // between two looks at what is held
constexpr std::size_t kMostHeld = 1024;
constexpr std::size_t kMostOctets = 1 << 20;  // that wait for the client
constexpr std::size_t kPiece = 65536;

bool equals(std::span<const uint8_t> frame, std::size_t at, std::span<const uint8_t> octets) {
  return frame.size() >= at + octets.size() &&
         std::ranges::equal(frame.subspan(at, octets.size()), octets);
}

}  // namespace

bool concerns(std::span<const uint8_t> frame, const net::IpAddress& ip) {
  constexpr std::size_t kType = 12, kArpSender = 28, kArpTarget = 38;
  constexpr std::size_t kNextHeader = 20, kSource = 22, kDestination = 38, kIcmp = 54, kTarget = 62;
  const auto octets = ip.bytes();
  if (frame.size() < kIcmp - 12) return false;
  const auto type = static_cast<uint16_t>(frame[kType] << 8 | frame[kType + 1]);
  if (type == 0x0806 && ip.is_v4())
    return equals(frame, kArpSender, octets) || equals(frame, kArpTarget, octets);
  if (type != 0x86dd || !ip.is_v6() || frame.size() <= kIcmp || frame[kNextHeader] != 58 ||
      (frame[kIcmp] != 135 && frame[kIcmp] != 136))
    return false;
  return equals(frame, kSource, octets) || equals(frame, kDestination, octets) ||
         equals(frame, kTarget, octets);
}

Trace::Trace(boost::asio::io_context& io, Domain& domain, const TraceOptions& options)
    : domain_(&domain), options_(options), timer_(io), io_(io) {}

std::expected<void, std::string> Trace::start(std::function<void()> wake) {
  auto tap = dataplane::FrameTap::open(
      io_, [this](net::IfIndex port, bool outbound, std::span<const uint8_t> frame) {
        if (domain_ != nullptr && domain_->has_port(port) && concerns(frame, options_.ip))
          keep({SystemClock::now(), port, outbound ? TraceDirection::Out : TraceDirection::In,
                std::vector(frame.begin(), frame.end()), ""});
      });
  if (!tap) {
    domain_ = nullptr;
    return std::unexpected(tap.error().what);
  }
  tap_ = std::move(*tap);
  wake_ = std::move(wake);
  const auto& settings = domain_->settings();
  octets_ = pcapng::section_header(
      "peerland " PEERLAN_VERSION,
      fmt::format("ARP and ND about {} in broadcast domain {}. {}", to_string(options_.ip),
                  settings.name,
                  settings.responder == dataplane::ResponderKind::Ebpf
                      ? "While this was recorded, the daemon answered for the address and not "
                        "the kernel."
                      : "The daemon answers for it."));
  until_ = std::chrono::steady_clock::now() + options_.seconds;
  domain_->add_trace(shared_from_this());
  arm();
  wake_();
  return {};
}

void Trace::end() {
  if (domain_ == nullptr) return;
  const auto self = shared_from_this();  // the domain lets go of it
  write_until(SystemClock::time_point::max());
  for (const auto& [port, interface] : interfaces_)
    octets_ += pcapng::interface_statistics(interface.number, SystemClock::now(), interface.written,
                                            interface.dropped);
  tap_.reset();
  timer_.cancel();
  std::exchange(domain_, nullptr)->remove_trace(self);
  if (wake_) wake_();
}

void Trace::arm() {
  timer_.expires_after(kStep);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->ended()) return;
    self->write_until(SystemClock::now() - kHold);
    if (self->written_ >= self->options_.frames || std::chrono::steady_clock::now() >= self->until_)
      return self->end();
    if (!self->octets_.empty() && self->wake_) self->wake_();
    self->arm();
  });
}

std::string Trace::take() {
  if (octets_.size() <= kPiece) return std::exchange(octets_, {});
  std::string piece = octets_.substr(0, kPiece);
  octets_.erase(0, kPiece);
  return piece;
}

void Trace::add(net::IfIndex port, TraceDirection direction, std::span<const uint8_t> frame,
                std::string_view verdict) {
  if (ended() || !concerns(frame, options_.ip)) return;
  keep({SystemClock::now(), port, direction, std::vector(frame.begin(), frame.end()),
        std::string(verdict)});
}

// One frame of each source makes one.
void Trace::keep(Frame frame) {
  // A storm costs no more than this.
  if (held_.size() >= kMostHeld) {
    ++interface_of(frame.port).dropped;
    return;
  }
  // Ours is padded on its way out.
  const auto same = [&](const Frame& other) {
    if (other.joined || other.port != frame.port || other.direction != frame.direction ||
        other.verdict.empty() == frame.verdict.empty())
      return false;
    const std::size_t size = std::min(other.octets.size(), frame.octets.size());
    return std::equal(other.octets.begin(), other.octets.begin() + static_cast<long>(size),
                      frame.octets.begin());
  };
  if (const auto twin = std::ranges::find_if(held_, same); twin != held_.end()) {
    Frame joined = std::move(*twin);
    held_.erase(twin);
    joined.time = std::min(joined.time, frame.time);
    if (joined.verdict.empty()) joined.verdict = std::move(frame.verdict);
    joined.joined = true;
    hold(std::move(joined));
    return;
  }
  hold(std::move(frame));
}

// In order of time.
void Trace::hold(Frame frame) {
  const auto before = std::ranges::upper_bound(held_, frame.time, {}, &Frame::time);
  held_.insert(before, std::move(frame));
}

void Trace::write_until(SystemClock::time_point time) {
  const auto due = std::ranges::find_if(held_, [&](const Frame& f) { return f.time >= time; });
  for (auto frame = held_.begin(); frame != due; ++frame) write(*frame);
  held_.erase(held_.begin(), due);
}

void Trace::write(const Frame& frame) {
  Interface& interface = interface_of(frame.port);
  if (written_ >= options_.frames || octets_.size() >= kMostOctets) {
    ++interface.dropped;
    return;
  }
  std::string_view verdict = "passed on by the kernel";
  if (!frame.verdict.empty()) verdict = frame.verdict;
  ++written_;
  ++interface.written;
  octets_ += pcapng::enhanced_packet(interface.number, frame.time, frame.octets,
                                     frame.direction == TraceDirection::Out, verdict);
}

Trace::Interface& Trace::interface_of(net::IfIndex port) {
  const auto [found, fresh] = interfaces_.try_emplace(port);
  if (fresh) {
    found->second.number = static_cast<uint32_t>(interfaces_.size() - 1);
    octets_ += pcapng::interface_description(
        domain_->port_name(port),
        domain_->find_port(port) == nullptr ? "the fabric" : domain_->port_text(port));
  }
  return found->second;
}

}  // namespace peerland
