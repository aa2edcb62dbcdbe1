// SPDX-License-Identifier: GPL-2.0-or-later
// Any octets as a settings file: settings, or errors that have a text.
#include <cstdlib>

#include "config/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto loaded =
      config::load_text("fuzz.yaml", std::string(data, data + size), "/nonexistent");
  if (!loaded) {
    if (loaded.error().empty()) std::abort();
    for (const auto& error : loaded.error())
      if (error.what.empty() || to_string(error).empty()) std::abort();
  } else if (!loaded->settings.policies.contains("peering")) {
    std::abort();
  }
  return 0;
}
