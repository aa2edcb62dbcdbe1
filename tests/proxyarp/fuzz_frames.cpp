// SPDX-License-Identifier: GPL-2.0-or-later
// Arbitrary frames through responders of all profiles. The first octet chooses profile, port, copy,
// direction, time and whether the checksum is put right; what is sent must be well-formed, and a
// copy sends nothing.
#include <cstdlib>

#include "tests/proxyarp/frames.h"

using namespace proxyarp;
using namespace proxyarp::test;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

Lan make(Profile profile) {
  Settings s = Lan::settings(profile);
  s.bindings = {fixed(v4(1), {mac(1)}, "alpha"), fixed(v6(1), {mac(1)}, "alpha"),
                fixed(v4(2), {mac(2), mac(12)}, "bravo"), fixed(v6(2), {mac(2), mac(12)}, "bravo")};
  Lan lan(s);
  lan.place(mac(2), kBravo);
  lan.remote(9);
  return lan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static std::array<Lan, 4> lans{make(Profile::Off), make(Profile::Dynamic), make(Profile::Hybrid),
                                 make(Profile::Static)};
  if (size == 0) return 0;
  Lan& lan = lans[data[0] & 3];
  const net::IfIndex port{1u + ((data[0] >> 2) & 3u)};
  const bool copy = (data[0] & 16) != 0, core = (data[0] & 32) != 0;
  lan.now += std::chrono::milliseconds(data[0] & 64);
  net::Bytes frame(data + 1, data + size);
  // The checksum would keep the rest of an ND message out of reach.
  if ((data[0] & 128) != 0 && frame.size() >= 58 &&
      frame.size() - 54 >= (std::size_t{frame[18]} << 8 | frame[19]))
    frame = with_checksum(std::move(frame));
  const Outcome outcome = core ? lan.core(frame) : lan.member(port, frame, copy);
  if (copy && !core) require(!has_frames(outcome.actions));
  for (const Transmit& sent : all_of<Transmit>(outcome.actions))
    require(classify(sent.frame) != FrameClass::Truncated);
  if (outcome.verdict == Verdict::Answered) {
    const auto sent = all_of<Transmit>(outcome.actions);
    require(sent.size() == 1 && sent[0].port == port);
    require(classify(sent[0].frame) == FrameClass::Arp ? decode_arp(sent[0].frame).has_value()
                                                       : decode_nd(sent[0].frame).has_value());
  }
  require(lan.books_agree());
  if (const auto nd = decode_nd(frame)) require(decode_nd(encode_nd(*nd)).has_value());
  if (const auto arp = decode_arp(frame)) require(decode_arp(encode_arp(*arp)) == *arp);
  return 0;
}
