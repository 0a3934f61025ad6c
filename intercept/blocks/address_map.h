// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/paged_array.h"

namespace sluice {

/// Address (in granules) of each live block -> its index. Open addressing with linear probing, at
/// most half full, no tombstones.
class AddressMap {
 public:
  static constexpr uint32_t kNotFound = 0xffffffff;

  constexpr AddressMap() = default;

  /// Room for `count` entries in all; false when the host is out of memory.
  bool Reserve(uint32_t count) {
    if (count * 2 <= capacity_) [[likely]]
      return true;
    return Grow(count * 2);
  }
  void FreeMemory() {
    slots_.Free();
    capacity_ = 0;
  }

  void Insert(uint32_t key, uint32_t value) {
    uint32_t at = Home(key);
    while (slots_[at].value != 0) at = (at + 1) & (capacity_ - 1);
    slots_[at] = {key, value + 1};
  }

  uint32_t Find(uint32_t key) const {
    if (capacity_ == 0) return kNotFound;
    for (uint32_t at = Home(key); slots_[at].value != 0; at = (at + 1) & (capacity_ - 1)) {
      if (slots_[at].key == key) return slots_[at].value - 1;
    }
    return kNotFound;
  }

  /// Removes and returns; kNotFound when it is not there.
  uint32_t Take(uint32_t key) {
    if (capacity_ == 0) return kNotFound;
    const uint32_t mask = capacity_ - 1;
    uint32_t hole = Home(key);
    while (slots_[hole].key != key || slots_[hole].value == 0) {
      if (slots_[hole].value == 0) return kNotFound;
      hole = (hole + 1) & mask;
    }
    const uint32_t value = slots_[hole].value - 1;
    // Entries behind the hole move up unless that would put them before their home.
    for (uint32_t at = (hole + 1) & mask; slots_[at].value != 0; at = (at + 1) & mask) {
      if (((at - Home(slots_[at].key)) & mask) >= ((at - hole) & mask)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].value = 0;
    return value;
  }

 private:
  struct Slot {
    uint32_t key;
    uint32_t value;  // index + 1; 0: empty
  };

  uint32_t Home(uint32_t key) const { return (key * 0x9e3779b1u) >> shift_; }

  bool Grow(uint32_t wanted) {
    uint32_t capacity = capacity_ == 0 ? 2048 : capacity_;
    while (capacity < wanted) capacity *= 2;
    PagedArray<Slot> old = slots_;
    const uint32_t old_capacity = capacity_;
    PagedArray<Slot> fresh;
    if (!fresh.Reserve(capacity)) return false;
    slots_ = fresh;
    capacity_ = capacity;
    shift_ = 32 - static_cast<uint32_t>(__builtin_ctz(capacity));
    for (uint32_t i = 0; i < old_capacity; ++i) {
      if (old[i].value != 0) Insert(old[i].key, old[i].value - 1);
    }
    old.Free();
    return true;
  }

  PagedArray<Slot> slots_;
  uint32_t capacity_ = 0;
  uint32_t shift_ = 0;
};

}  // namespace sluice
