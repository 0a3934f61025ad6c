// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/cuda/driver_api.h"

namespace sluice::testing {

/// A driver call answered with something else than CUDA_SUCCESS.
class DriverError : public std::runtime_error {
 public:
  DriverError(const std::string& call, CUresult result);
  CUresult result() const { return result_; }

 private:
  CUresult result_;
};

/// Every entry point that common/cuda/functions.def lists; null where the driver lacks it.
struct DriverTable {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) PFN_##symbol symbol = nullptr;
#include "common/cuda/functions.def"
#undef CU_FUNCTION
};

/// How a program may find the driver's functions without linking them.
enum class LookupRoute {
  kProcAddressV2,  // as a current CUDA runtime: one dlsym, then cuGetProcAddress_v2
  kProcAddressV1,  // as CUDA 11.3 to 11.8: cuGetProcAddress with four arguments
  kDlsym,          // as programs before that: dlsym for each exported name
};

/// "CUDA_ERROR_OUT_OF_MEMORY", or the number for what this project does not name.
std::string ResultName(CUresult result);

/// The driver as a client program sees it, with every call numbered, so that a test can name a
/// moment in a program's life by its ordinal.
class Driver {
 public:
  /// Loads libcuda.so.1 by name. Throws std::runtime_error when there is none.
  explicit Driver(LookupRoute route = LookupRoute::kProcAddressV2);

  const DriverTable& table() const { return table_; }
  uint64_t operations() const { return operations_; }
  /// Raises SIGKILL in place of the operation with this ordinal, counted from 1. 0: never.
  void KillAt(uint64_t operation) { kill_at_ = operation; }

  /// Calls one function and returns what it says.
  template <typename... Params, typename... Args>
  CUresult Try(CUresult (*DriverTable::*function)(Params...), Args... args) {
    Count();
    auto entry = table_.*function;
    return entry == nullptr ? CUDA_ERROR_NOT_FOUND : entry(std::forward<Args>(args)...);
  }
  /// The same; throws DriverError unless it succeeds.
  template <typename... Params, typename... Args>
  void Must(const char* name, CUresult (*DriverTable::*function)(Params...), Args... args) {
    const CUresult result = Try(function, std::forward<Args>(args)...);
    if (result != CUDA_SUCCESS) throw DriverError(name, result);
  }

 private:
  void Count();

  DriverTable table_;
  uint64_t operations_ = 0;
  uint64_t kill_at_ = 0;
};

/// driver.Must with the function's own name in the error.
#define SLUICE_CU(driver, function, ...) \
  (driver).Must(#function, &::sluice::testing::DriverTable::function __VA_OPT__(, ) __VA_ARGS__)

}  // namespace sluice::testing
