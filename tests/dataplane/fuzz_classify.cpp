// SPDX-License-Identifier: GPL-2.0-or-later
// Any octets as a frame, any as a port's configuration: no read out of bounds, and a frame that is
// plain must give an answer that is right.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {
struct pl_source {
  std::span<const unsigned char> frame;
};
int pl_load(const pl_source* source, unsigned offset, void* to, unsigned n) {
  if (offset > source->frame.size() || n > source->frame.size() - offset) return -1;
  std::memcpy(to, source->frame.data() + offset, n);
  return 0;
}
}  // namespace
#include "dataplane/bpf/bucket.h"
#include "dataplane/bpf/neighbor.h"

static void require(bool good) {
  if (!good) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 16) return 0;
  pl_config config{};
  std::memcpy(&config.allow, data, 8);
  config.enforce_macs = data[8] & 1;
  config.observe = data[8] >> 1 & 1;
  config.observe_macs = data[8] >> 2 & 1;
  config.own_mac_count = data[8] >> 4;
  config.mac_count = data[9];
  config.ethertype_count = 3;
  config.ethertypes[0] = PL_TYPE_IPV4;
  config.ethertypes[1] = PL_TYPE_ARP;
  config.ethertypes[2] = PL_TYPE_IPV6;
  const int hook = data[10] & 1;
  const std::span<const uint8_t> bytes(data + 16, size - 16);
  if (bytes.size() < PL_ETH) return 0;

  pl_source source{bytes};
  pl_head head{};
  const size_t seen = std::min(bytes.size(), sizeof head.b);
  std::memcpy(head.b, bytes.data(), seen);
  pl_frame frame{};
  pl_look(&head, static_cast<__u32>(seen), static_cast<__u32>(bytes.size()), &frame);
  const __u32 reason = pl_check(&source, &config, hook, &head, &frame);
  require(reason == PL_PASSED || (reason >= PL_FIRST_DROP && reason < PL_REASONS));
  require(frame.cls < PL_CLASSES);
  require(!frame.observed || config.observe || frame.observed == PL_SOURCE_MAC);
  if (reason != PL_PASSED || frame.tags) return 0;

  pl_claim claim{};
  if (frame.nd) {
    require(frame.l4 >= PL_PEEK);
    pl_nd_claim(&source, &head, &frame, &claim);
  }
  const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
  if (frame.cls == PL_CLASS_ARP && pl_arp_plain(&head, &frame)) {
    pl_arp_answer(&head, mac);
    require(head.b[PL_OP + 1] == 2 && std::memcmp(head.b + 6, mac, 6) == 0);
  } else if (frame.nd == PL_NS && pl_ns_plain(&head, &frame)) {
    pl_ns_answer(&head, mac, data[11]);
    require(pl_nd_sum(&head) == 0xffff);
  }
  return 0;
}
