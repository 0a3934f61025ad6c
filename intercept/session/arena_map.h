// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "intercept/base/paged_array.h"
#include "intercept/lookup/driver_table.h"

namespace sluice {

/// The whole pool in one virtual range, mapped once and never changed: arena offset = pool offset.
/// Behind it, in the same range, is room for windows, in which handles are mapped a second time
/// (docs/adr/0031). Errors are texts for the user; null means success.
///
/// Thread safety: where the range is may be asked at any time, also while it comes or goes (a
/// session ends beside the threads of its program): the range is found, or none. What lies in it
/// is then asked of the arena, under its lock. All else is for one thread at a time.
class ArenaMap {
 public:
  constexpr ArenaMap() = default;

  /// `windows`: handles that the windows have room for.
  const char* Reserve(const DriverTable& driver, uint64_t handle_bytes, uint32_t handle_count,
                      uint32_t windows);
  /// Imports and maps the next handle, in pool order. `fd` stays the caller's.
  const char* MapNext(const DriverTable& driver, int fd);
  const char* SetAccess(const DriverTable& driver, CUdevice device);
  /// Maps handle `shown` at `place` (from the first handle's; behind the last one). Access to it is
  /// given for all of a window: AllowWindow.
  bool MapShown(const DriverTable& driver, uint32_t place, uint32_t shown);
  bool AllowWindow(const DriverTable& driver, CUdevice device, uint32_t place, uint32_t handles);
  /// As far as it is mapped. The GPU is done with what was there.
  void UnmapWindow(const DriverTable& driver, uint32_t place, uint32_t handles);
  uint32_t windows() const { return windows_; }
  /// The range stays reserved: nobody else's memory comes to lie there yet.
  void UnmapHandles(const DriverTable& driver);
  void Unmap(const DriverTable& driver);

  CUdeviceptr base() const { return base_.load(std::memory_order_relaxed); }
  /// With the windows.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t pool_bytes() const { return handle_bytes_ * handle_count_; }
  bool complete() const { return mapped_ == handle_count_; }
  bool Contains(CUdeviceptr address) const { return address - base() < bytes(); }

 private:
  static bool Allow(const DriverTable& driver, CUdevice device, CUdeviceptr at, uint64_t bytes);

  std::atomic<CUdeviceptr> base_ = 0;
  std::atomic<uint64_t> bytes_ = 0;  // 0 while base_ is not that of the range
  uint64_t handle_bytes_ = 0;
  uint32_t handle_count_ = 0;
  uint32_t mapped_ = 0;
  uint32_t windows_ = 0;
  PagedArray<uint8_t> shows_;  // by place in the windows: something is mapped there
};

}  // namespace sluice
