// SPDX-License-Identifier: GPL-2.0-or-later
#include "bgp/policy.h"

namespace bgp {

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Accept: return "accept";
    case Verdict::Flag: return "flag";
    case Verdict::Reject: return "reject";
  }
  return "?";
}

}  // namespace bgp
