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

  uint64_t Of(const DriverTable& driver, CUfunction function);
  /// A module went away: its handles may come back with another meaning.
  void Forget();

 private:
  struct Entry {
    std::atomic<uintptr_t> function;
    std::atomic<uint64_t> id;
  };
  static constexpr uint32_t kEntries = 4096;
  static constexpr uint32_t kProbes = 8;

  Entry entries_[kEntries] = {};
};

}  // namespace sluice
