// SPDX-License-Identifier: GPL-2.0-or-later
// Sequences of events through a responder: the first octet chooses the settings, each five more are
// a step. What must hold is in steps.h.
#include <cstdio>
#include <cstdlib>

#include "tests/proxyarp/steps.h"

using namespace proxyarp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  History history(data[0]);
  std::string broken;
  for (std::size_t i = 1; i + 5 <= size && i < 2000 && broken.empty(); i += 5)
    broken = history.run({data[i], data[i + 1], data[i + 2], data[i + 3], data[i + 4]});
  if (broken.empty()) broken = history.drain();
  if (!broken.empty()) {
    std::fprintf(stderr, "%s\n", broken.c_str());
    std::abort();
  }
  return 0;
}
