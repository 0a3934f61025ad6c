// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace sluice::fuzz {

/// A fuzzer's input as a row of choices. What is not there reads as zero, so that any prefix of an
/// input is an input too.
class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  template <typename T>
  T Take() {
    T value{};
    const size_t count = std::min(sizeof value, left_.size());
    if (count > 0) std::memcpy(&value, left_.data(), count);
    left_ = left_.subspan(count);
    return value;
  }
  uint8_t Byte() { return Take<uint8_t>(); }
  /// 0 .. bound - 1.
  uint32_t Below(uint32_t bound) { return bound <= 1 ? 0 : Byte() % bound; }
  /// Mostly small, now and then anything: counts and sizes have their edges at both ends.
  uint32_t Amount() {
    const uint8_t small = Byte();
    if (small < 0xf0) return small % 40;
    return small < 0xf8 ? UINT32_MAX - Byte() : Take<uint32_t>();
  }
  std::vector<uint8_t> Bytes(size_t most) {
    const size_t count = std::min(most, left_.size());
    std::vector<uint8_t> bytes(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
    left_ = left_.subspan(count);
    return bytes;
  }
  std::span<const uint8_t> rest() const { return left_; }

 private:
  std::span<const uint8_t> left_;
};

}  // namespace sluice::fuzz
