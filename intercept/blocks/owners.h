// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

namespace sluice {

/// The contexts that blocks belong to, as numbers that a block has room for. A context goes by a
/// name (KeyOf its handle, or what it is called while it ends): handles come again. The caller
/// holds a lock.
class Owners {
 public:
  static constexpr uint16_t kNobody = 0;

  constexpr Owners() = default;

  /// The number of this context, a new one if need be. kNobody when there are too many contexts at
  /// once: then the block stays until it is freed, or the session ends.
  uint16_t NumberOf(uint64_t name) {
    if (name == 0) return kNobody;
    uint16_t room = kNobody;
    for (uint16_t number = 1; number <= kMost; ++number) {
      if (name_[number] == name) return number;
      if (name_[number] == 0 && room == kNobody) room = number;
    }
    if (room != kNobody) name_[room] = name;
    return room;
  }
  /// One of the numbers of this context; kNobody: no block was ever its.
  uint16_t Find(uint64_t name) const {
    uint16_t number = name == 0 ? kNobody : kMost;
    while (number > kNobody && name_[number] != name) --number;
    return number;
  }
  /// A context may have two numbers then: blocks may have come to it while it had the other name.
  void Rename(uint64_t from, uint64_t to) {
    for (uint64_t& name : name_) {
      if (name == from && from != 0) name = to;
    }
  }
  /// No block is its any more: the number is free for another one.
  void Drop(uint16_t number) { name_[number] = 0; }

 private:
  static constexpr uint16_t kMost = 63;
  uint64_t name_[kMost + 1] = {};  // by number; 0: none
};

}  // namespace sluice
