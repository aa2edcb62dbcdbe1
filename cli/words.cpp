// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/words.h"

#include <algorithm>

namespace cli {

std::expected<void, std::string> take_words(const std::vector<std::string>& words,
                                            std::span<const FilterWord> filters, const char* lone,
                                            std::map<std::string, std::string>& arguments) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto filter = std::ranges::find_if(
        filters, [&](const FilterWord& known) { return words[i] == known.name; });
    if (filter == filters.end()) {
      if (lone == nullptr || arguments.contains(lone))
        return std::unexpected("\"" + words[i] + "\" is no filter of this view");
      arguments[lone] = words[i];
    } else if (filter->flag) {
      arguments[filter->name] = "true";
    } else if (i + 1 == words.size()) {
      return std::unexpected(std::string(filter->name) + ": a value must follow");
    } else {
      arguments[filter->name] = words[++i];
    }
  }
  return {};
}

}  // namespace cli
