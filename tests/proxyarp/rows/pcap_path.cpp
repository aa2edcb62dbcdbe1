// SPDX-License-Identifier: GPL-2.0-or-later
// The rows over the responder alone: it sees every frame. Broadcast and multicast are taken out of
// the path, unicast goes on and is seen as a copy, as with `responder: pcap`.
#include "tests/proxyarp/rows/harness.h"

namespace proxyarp::rows {
namespace {

class PcapPath final : public Path {
 public:
  void configure(std::size_t, const Settings&, const Responder::Identity&) override {}
  FrameResult member_frame(std::size_t, Responder& responder, net::IfIndex port,
                           const net::Bytes& frame, net::TimePoint now) override {
    const bool unicast = frame.empty() || (frame[0] & 1) == 0;
    Outcome outcome = responder.member_frame(port, frame, unicast, now);
    return {outcome.verdict, unicast, std::move(outcome.actions)};
  }
  FrameResult core_frame(std::size_t, Responder& responder, const net::Bytes& frame,
                         net::TimePoint now) override {
    Outcome outcome = responder.core_frame(frame, now);
    return {outcome.verdict, false, std::move(outcome.actions)};
  }
  void apply(std::size_t, const Action&) override {}
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Pcap, Rows, testing::Values(PathKind{"pcap", [] {
                                                                return std::unique_ptr<Path>(
                                                                    std::make_unique<PcapPath>());
                                                              }}));

}  // namespace proxyarp::rows
