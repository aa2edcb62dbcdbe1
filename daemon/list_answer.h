// SPDX-License-Identifier: GPL-2.0-or-later
// A document that is a list of rows, made in pieces while it is being read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "daemon/answer.h"

namespace peerland {

// Appends the next few rows, each the text of a JSON object. False when there are no more; what was
// shown before may change or go between two calls.
using NextRows = std::function<bool(std::vector<std::string>& rows)>;

// {"schema":1,"KEY":[ROWS]}
[[nodiscard]] Answer list_answer(const std::string& key, NextRows next);

}  // namespace peerland
