// SPDX-License-Identifier: GPL-2.0-or-later
// Integers that must not be mixed up: VNI, AS number, interface index.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace net {

template <class Tag, class Rep>
struct Strong {
  Rep value{};
  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

using Vni = Strong<struct VniTag, uint32_t>;            // 24 bits, RFC 7348 section 5
using AsNumber = Strong<struct AsNumberTag, uint32_t>;  // RFC 6793
using IfIndex =
    Strong<struct IfIndexTag, uint32_t>;  // the kernel's, unique in one network namespace

inline constexpr uint32_t kMaxVni = 0xffffff;

}  // namespace net

template <class Tag, class Rep>
struct std::hash<net::Strong<Tag, Rep>> {
  std::size_t operator()(net::Strong<Tag, Rep> v) const noexcept {
    return std::hash<Rep>{}(v.value);
  }
};
