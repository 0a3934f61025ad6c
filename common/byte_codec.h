// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sluice {

/// Writes plain values one after the other, in the byte order of this machine: for what is read
/// again on the same machine (a daemon that follows another one).
class ByteWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Put(T value) { std::memcpy(Room(sizeof value), &value, sizeof value); }
  /// The same as one Put after the other, at the price of one.
  template <typename... T>
  void PutAll(T... values) {
    std::byte* at = Room((sizeof values + ...));
    ((std::memcpy(at, &values, sizeof values), at += sizeof values), ...);
  }
  void PutText(std::string_view text) { PutBytes(std::as_bytes(std::span(text))); }
  void PutBytes(std::span<const std::byte> bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    Append(bytes);
  }
  /// The length, then put(value) for each.
  template <typename List, typename PutOne>
  void PutList(const List& list, PutOne put) {
    Put(static_cast<uint32_t>(list.size()));
    for (const auto& value : list) put(value);
  }
  /// As they are, without a length.
  void Append(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), Room(bytes.size()));
  }
  void Clear() { used_ = 0; }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(used_); }

 private:
  /// Where the next `count` bytes go.
  std::byte* Room(size_t count) {
    if (bytes_.size() - used_ < count) bytes_.resize(2 * (used_ + count));
    used_ += count;
    return bytes_.data() + used_ - count;
  }

  std::vector<std::byte> bytes_;  // beyond `used_` room for more
  size_t used_ = 0;
};

/// Reads them again. Whatever does not fit makes it !ok() for good and yields zeros, so that a
/// caller may read all and then look.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> T Get() {
    T value{};
    if (left_.size() < sizeof value) {
      Fail();
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }
  std::span<const std::byte> GetBytes() {
    const auto size = Get<uint32_t>();
    if (size > left_.size()) {
      Fail();
      return {};
    }
    const std::span<const std::byte> bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }
  std::string GetText() {
    const std::span<const std::byte> bytes = GetBytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// get() for each; a length that the bytes cannot hold is a failure, not an allocation.
  template <typename GetOne>
  void GetList(GetOne get) {
    const auto count = Get<uint32_t>();
    if (count > left_.size()) Fail();
    for (uint32_t i = 0; i < count && ok_; ++i) get();
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    left_ = {};
  }

  std::span<const std::byte> left_;
  bool ok_ = true;
};

}  // namespace sluice
