// SPDX-License-Identifier: GPL-2.0-or-later
// Reading and writing bytes in network order. A reader that ran short is empty and not ok(), so
// that a decoder is straight-line code with one check at its end. A writer that overflowed stays
// failed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace net {

using Bytes = std::vector<uint8_t>;

class ByteReader {
 public:
  constexpr explicit ByteReader(std::span<const uint8_t> data) : data_(data) {}

  constexpr bool ok() const { return ok_; }
  constexpr bool done() const { return data_.empty(); }  // nothing left, or ran short
  constexpr std::size_t remaining() const { return data_.size(); }
  constexpr std::span<const uint8_t> rest() const { return data_; }

  // The next n octets, or an empty span and !ok().
  constexpr std::span<const uint8_t> bytes(std::size_t n) {
    if (n > data_.size()) {
      fail();
      return {};
    }
    const auto taken = data_.first(n);
    data_ = data_.subspan(n);
    return taken;
  }
  constexpr uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  constexpr uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  constexpr uint32_t u24() { return static_cast<uint32_t>(number(3)); }
  constexpr uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  constexpr uint64_t u64() { return number(8); }
  // A reader bounded to the next n octets: an inner decoder can't run past its own length.
  constexpr ByteReader sub(std::size_t n) {
    ByteReader inner(bytes(n));
    inner.ok_ = ok_;
    return inner;
  }
  constexpr void fail() {
    ok_ = false;
    data_ = {};
  }

 private:
  constexpr uint64_t number(std::size_t n) {
    uint64_t value = 0;
    for (uint8_t octet : bytes(n)) value = value << 8 | octet;
    return value;
  }
  std::span<const uint8_t> data_;
  bool ok_ = true;
};

// Appends to a growing buffer, up to `limit` octets in all.
class ByteWriter {
 public:
  explicit ByteWriter(std::size_t limit = SIZE_MAX) : limit_(limit) {}

  bool ok() const { return ok_; }
  std::size_t size() const { return data_.size(); }
  std::size_t room() const { return limit_ - data_.size(); }
  std::span<const uint8_t> view() const { return data_; }
  Bytes take() { return std::move(data_); }

  void u8(uint8_t v) { number(v, 1); }
  void u16(uint16_t v) { number(v, 2); }
  void u24(uint32_t v) { number(v, 3); }
  void u32(uint32_t v) { number(v, 4); }
  void u64(uint64_t v) { number(v, 8); }
  void bytes(std::span<const uint8_t> b) {
    if (b.size() > room()) {
      ok_ = false;
      return;
    }
    data_.insert(data_.end(), b.begin(), b.end());
  }
  // Leaves n zero octets for a length that is known later; returns their place for patch_*().
  std::size_t reserve(std::size_t n) {
    const std::size_t at = data_.size();
    if (n > room())
      ok_ = false;
    else
      data_.resize(at + n);
    return at;
  }
  void patch_u8(std::size_t at, std::size_t v) { patch(at, v, 1); }
  void patch_u16(std::size_t at, std::size_t v) { patch(at, v, 2); }
  void truncate(std::size_t size) { data_.resize(size); }

 private:
  void number(uint64_t v, std::size_t n) {
    if (n > room()) {
      ok_ = false;
      return;
    }
    for (std::size_t i = n; i-- > 0;) data_.push_back(static_cast<uint8_t>(v >> (8 * i)));
  }
  void patch(std::size_t at, uint64_t v, std::size_t n) {
    if (at + n > data_.size() || (v >> (8 * n)) != 0) {
      ok_ = false;
      return;
    }
    for (std::size_t i = 0; i < n; ++i)
      data_[at + i] = static_cast<uint8_t>(v >> (8 * (n - 1 - i)));
  }
  Bytes data_;
  std::size_t limit_;
  bool ok_ = true;
};

}  // namespace net
