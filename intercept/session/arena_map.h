// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "intercept/lookup/driver_table.h"

namespace sluice {

/// The whole pool in one virtual range, mapped once and never changed: arena offset = pool offset.
/// Errors are texts for the user; null means success.
///
/// Thread safety: where the range is may be asked at any time, also while it comes or goes (a
/// session ends beside the threads of its program): the range is found, or none. What lies in it
/// is then asked of the arena, under its lock. All else is for one thread at a time.
class ArenaMap {
 public:
  constexpr ArenaMap() = default;

  const char* Reserve(const DriverTable& driver, uint64_t handle_bytes, uint32_t handle_count);
  /// Imports and maps the next handle, in pool order. `fd` stays the caller's.
  const char* MapNext(const DriverTable& driver, int fd);
  const char* SetAccess(const DriverTable& driver, CUdevice device);
  /// The range stays reserved: nobody else's memory comes to lie there yet.
  void UnmapHandles(const DriverTable& driver);
  void Unmap(const DriverTable& driver);

  CUdeviceptr base() const { return base_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool complete() const { return mapped_ == handle_count_; }
  bool Contains(CUdeviceptr address) const { return address - base() < bytes(); }

 private:
  std::atomic<CUdeviceptr> base_ = 0;
  std::atomic<uint64_t> bytes_ = 0;  // 0 while base_ is not that of the range
  uint64_t handle_bytes_ = 0;
  uint32_t handle_count_ = 0;
  uint32_t mapped_ = 0;
};

}  // namespace sluice
