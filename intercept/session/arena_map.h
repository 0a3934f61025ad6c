// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "intercept/lookup/driver_table.h"

namespace sluice {

/// The whole pool in one virtual range, mapped once and never changed: arena offset = pool offset.
/// Errors are texts for the user; null means success.
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

  CUdeviceptr base() const { return base_; }
  uint64_t bytes() const { return handle_bytes_ * handle_count_; }
  bool complete() const { return mapped_ == handle_count_; }
  bool Contains(CUdeviceptr address) const { return address - base_ < bytes(); }

 private:
  CUdeviceptr base_ = 0;
  uint64_t handle_bytes_ = 0;
  uint32_t handle_count_ = 0;
  uint32_t mapped_ = 0;
};

}  // namespace sluice
