// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/attributes.h"

#include <algorithm>

namespace bgp {

// RFC 4271 section 9.1.2.2 a) for sets, RFC 5065 section 5.3 for confederation segments.
std::size_t as_path_length(const Attributes& attributes) {
  std::size_t length = 0;
  for (const AsPathSegment& segment : attributes.as_path) {
    if (segment.type == AsPathSegment::Sequence)
      length += segment.as_numbers.size();
    else if (segment.type == AsPathSegment::Set && !segment.as_numbers.empty())
      ++length;
  }
  return length;
}

bool as_path_contains(const Attributes& attributes, uint32_t as_number) {
  return std::ranges::any_of(attributes.as_path, [&](const AsPathSegment& segment) {
    return std::ranges::find(segment.as_numbers, as_number) != segment.as_numbers.end();
  });
}

std::string as_path_text(const Attributes& attributes) {
  struct Marks {
    const char *open, *separator, *close;
  };
  const auto marks = [](AsPathSegment::Type type) -> Marks {
    switch (type) {
      case AsPathSegment::Set: return {"{", ",", "}"};
      case AsPathSegment::Sequence: return {"", " ", ""};
      case AsPathSegment::ConfedSequence: return {"(", " ", ")"};
      case AsPathSegment::ConfedSet: return {"[", ",", "]"};
    }
    return {"?", " ", "?"};
  };
  std::string text;
  for (const AsPathSegment& segment : attributes.as_path) {
    if (segment.as_numbers.empty()) continue;
    const Marks m = marks(segment.type);
    if (!text.empty()) text += ' ';
    text += m.open;
    for (std::size_t i = 0; i < segment.as_numbers.size(); ++i) {
      if (i != 0) text += m.separator;
      text += std::to_string(segment.as_numbers[i]);
    }
    text += m.close;
  }
  return text;
}

}  // namespace bgp
