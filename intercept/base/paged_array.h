// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "intercept/base/system.h"

namespace sluice {

/// A growing array of trivial elements in memory of its own. Growing moves it: keep indices, not
/// pointers. Fresh elements are zero. No destructor (globals must be trivially destructible): call
/// Free.
template <class T>
class PagedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr PagedArray() = default;

  /// At least `count` elements afterwards; false when the host has no memory (nothing changed).
  bool Reserve(uint32_t count) {
    if (count <= capacity_) return true;
    uint32_t grown = capacity_ == 0 ? kFirst : capacity_;
    while (grown < count) grown *= 2;
    auto* moved = static_cast<T*>(MapMemory(size_t{grown} * sizeof(T)));
    if (moved == nullptr) return false;
    if (data_ != nullptr) memcpy(static_cast<void*>(moved), data_, size_t{capacity_} * sizeof(T));
    UnmapMemory(data_, size_t{capacity_} * sizeof(T));
    data_ = moved;
    capacity_ = grown;
    return true;
  }
  void Free() {
    UnmapMemory(data_, size_t{capacity_} * sizeof(T));
    data_ = nullptr;
    capacity_ = 0;
  }

  T& operator[](uint32_t i) { return data_[i]; }
  const T& operator[](uint32_t i) const { return data_[i]; }
  uint32_t capacity() const { return capacity_; }

 private:
  static constexpr uint32_t kFirst = 1024;
  T* data_ = nullptr;
  uint32_t capacity_ = 0;
};

}  // namespace sluice
