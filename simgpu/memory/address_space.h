// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "simgpu/memory/device_range.h"

namespace sluice::simgpu {

/// The client's reservations of device addresses: ranges without any access rights, so that the
/// host faults when it dereferences a device pointer. Thread-safe.
class AddressSpace {
 public:
  /// `alignment` is a power of two. At `hint` if it is free, else the lowest free place.
  std::optional<uint64_t> Reserve(uint64_t bytes, uint64_t alignment, uint64_t hint = 0);
  /// Only whole reservations.
  bool Free(uint64_t address, uint64_t bytes);
  /// Whether [address, address + bytes) lies within one reservation.
  bool Contains(uint64_t address, uint64_t bytes) const;
  /// The reservation that `address` lies in; false: in none.
  bool Find(uint64_t address, uint64_t* start, uint64_t* bytes) const;

 private:
  struct Range {
    uint64_t bytes;
    bool own;  // false: a sanitizer keeps the addresses inaccessible already
  };
  bool MapAt(uint64_t address, uint64_t bytes);
  mutable std::mutex mutex_;
  std::map<uint64_t, Range> reserved_;  // by start
};

}  // namespace sluice::simgpu
