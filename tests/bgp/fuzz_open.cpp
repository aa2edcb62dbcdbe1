// SPDX-License-Identifier: GPL-2.0-or-later
// OPEN from any octets (the body, without header): what is accepted is within what RFC 4271 section
// 6.2 allows and encodes to an OPEN that decodes to the same.
#include <cstdlib>

#include "bgp/message.h"
#include "fuzz_support.h"

using namespace bgp;
using namespace bgp::fuzz;

namespace {

// Capabilities that we don't know are remembered by code only, so they can't be encoded again.
Open without_unknown(Open open) {
  open.capabilities.unknown.clear();
  return open;
}

void refused(const Notification& notification) {
  const bool length = notification.code == ErrorCode::MessageHeader;
  require(length || notification.code == ErrorCode::OpenMessage);
  const net::Bytes sent = encode_notification(notification);
  require(decode_notification(std::span(sent).subspan(kHeaderSize)) == notification);
  require(!to_string(notification).empty());
}

void accepted(const Open& open) {
  require(open.version == kVersion);
  require(open.hold_time == 0 || open.hold_time >= 3);
  require(open.router_id != 0 && open.as_number != 0 && open.effective_as() != 0);
  for (const std::string& line : describe(open.capabilities)) require(!line.empty());
  const net::Bytes encoded = encode_open(open);
  if (encoded.size() > kMaxMessage) return;  // thousands of families: RFC 8654 exempts no OPEN
  const auto header = decode_header(encoded, kMaxMessage);
  require(header && header->type == MessageType::Open && header->length == encoded.size());
  const auto again = decode_open(std::span(encoded).subspan(kHeaderSize));
  require(again.has_value() && *again == without_unknown(open));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size > kMaxMessage - kHeaderSize) return 0;
  const auto open = decode_open({data, size});
  if (open)
    accepted(*open);
  else
    refused(open.error());
  return 0;
}
