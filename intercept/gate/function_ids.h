// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

#include "intercept/lookup/driver_table.h"

namespace sluice {

/// What a launch record calls a kernel: a hash of its name, so that it is the same in every run;
/// the handle where the driver does not tell names. Cached without locks: a lost race costs one
/// more question to the driver.
class FunctionIds {
 public:
  constexpr FunctionIds() = default;

  uint64_t Of(const DriverTable& driver, CUfunction function) {
    const auto key = reinterpret_cast<uintptr_t>(function);
    const Entry& entry = entries_[Home(key)];
    if (entry.function.load(std::memory_order_acquire) == key) [[likely]]
      return entry.id.load(std::memory_order_relaxed);
    return Enter(driver, function);
  }
  /// A module went away: its handles may come back with another meaning.
  void Forget();
  /// Whether one of them was a kernel that waits for other GPUs' (IsCollective).
  bool saw_collective() const { return saw_collective_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<uintptr_t> function;
    std::atomic<uint64_t> id;
  };
  static constexpr uint32_t kEntries = 4096;
  static constexpr uint32_t kProbes = 8;

  static uint32_t Home(uintptr_t key) {
    return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 52);
  }
  uint64_t Enter(const DriverTable& driver, CUfunction function);

  Entry entries_[kEntries] = {};
  std::atomic<bool> saw_collective_{false};
};

}  // namespace sluice
