// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once
#include <string>
#include <vector>

#include "config/settings.h"

inline std::string text_of(const std::vector<config::Error>& errors) {
  std::string text;
  for (const auto& error : errors) text += to_string(error) + "\n";
  return text;
}

inline const std::string kData = PEERLAN_SOURCE_DIR "/tests/config/data";

// The errors of a text, or its warnings after "loaded\n".
inline std::string verdict(const std::string& yaml) {
  const auto loaded = config::load_text("f", yaml, kData);
  return loaded ? "loaded\n" + text_of(loaded->warnings) : text_of(loaded.error());
}

// Three lines that every node has, four that every PE has, ten of a PE with a broadcast domain.
inline const std::string kNode = "node: n\nrouter-id: 10.0.0.1\nas: 65000\n";
inline const std::string kPe = kNode + "vtep: 10.0.0.1\n";
inline const std::string kDomain = kPe +
                                   "broadcast-domains:\n"
                                   "  - name: lan\n"
                                   "    vni: 100\n"
                                   "    bridge: br100\n"
                                   "    vxlan: vx100\n"
                                   "    prefixes: [192.0.2.0/24, '2001:db8:1::/64']\n";
