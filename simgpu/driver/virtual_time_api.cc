// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/abi.h"
#include "simgpu/driver/driver.h"
#include "simgpu/sharing/device_token.h"

// What a real driver does not have: for programs that replay a recorded job, found by dlsym.
using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

extern "C" {

/// The program declares that it computes for `ns` simulated nanoseconds. In virtual time nothing
/// else makes its clock pass between calls; in real time this keeps the thread busy that long.
CUresult simgpuHostWork(uint64_t ns);

/// The CPU clock of this process in virtual time, in real time the device clock.
CUresult simgpuHostClock(uint64_t* ns);

CUresult simgpuHostWork(uint64_t ns) {
  constexpr uint64_t kLongestNs = 3'600'000'000'000;
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  if (ns > kLongestNs) return CUDA_ERROR_INVALID_VALUE;
  SpendDriverTime(*driver, ns);
  return CUDA_SUCCESS;
}

CUresult simgpuHostClock(uint64_t* ns) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (ns == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ns = driver->virtual_time != nullptr ? driver->virtual_time->Clock()
                                        : DeviceClockNs(*driver->gpus.front());
  return CUDA_SUCCESS;
}

}  // extern "C"
