// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "common/cuda/driver_api.h"
#include "common/cuda/nvrtc_api.h"

/// What programs that use the driver share: its functions, found as programs find them, and one
/// GPU. Errors are exceptions here.
namespace sluice::cuda {

/// Thrown when the device has no memory left.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
  explicit OutOfMemory(size_t bytes)
      : std::runtime_error("out of memory: could not allocate " + std::to_string(bytes) +
                           " bytes") {}
};

/// The entry points that such programs use: member, exported symbol that gives its type. Found by
/// the base name through cuGetProcAddress, as NVIDIA's own runtime does it.
#define SLUICE_CLIENT_FUNCTIONS(ROW)                           \
  ROW(cuInit, cuInit)                                          \
  ROW(cuGetErrorName, cuGetErrorName)                          \
  ROW(cuDeviceGet, cuDeviceGet)                                \
  ROW(cuDeviceGetCount, cuDeviceGetCount)                      \
  ROW(cuDeviceGetAttribute, cuDeviceGetAttribute)              \
  ROW(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)    \
  ROW(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)      \
  ROW(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2) \
  ROW(cuCtxSetCurrent, cuCtxSetCurrent)                        \
  ROW(cuModuleLoadData, cuModuleLoadData)                      \
  ROW(cuModuleUnload, cuModuleUnload)                          \
  ROW(cuModuleGetFunction, cuModuleGetFunction)                \
  ROW(cuLaunchKernel, cuLaunchKernel)                          \
  ROW(cuMemAlloc, cuMemAlloc_v2)                               \
  ROW(cuMemFree, cuMemFree_v2)                                 \
  ROW(cuMemAllocAsync, cuMemAllocAsync)                        \
  ROW(cuMemFreeAsync, cuMemFreeAsync)                          \
  ROW(cuMemPoolGetAttribute, cuMemPoolGetAttribute)            \
  ROW(cuMemPoolSetAttribute, cuMemPoolSetAttribute)            \
  ROW(cuMemHostAlloc, cuMemHostAlloc)                          \
  ROW(cuMemFreeHost, cuMemFreeHost)                            \
  ROW(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                 \
  ROW(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                 \
  ROW(cuMemsetD32Async, cuMemsetD32Async)                      \
  ROW(cuStreamCreate, cuStreamCreate)                          \
  ROW(cuStreamDestroy, cuStreamDestroy_v2)                     \
  ROW(cuStreamSynchronize, cuStreamSynchronize)                \
  ROW(cuEventCreate, cuEventCreate)                            \
  ROW(cuEventDestroy, cuEventDestroy_v2)                       \
  ROW(cuEventRecord, cuEventRecord)                            \
  ROW(cuEventSynchronize, cuEventSynchronize)                  \
  ROW(cuEventElapsedTime, cuEventElapsedTime)

/// The driver's functions, by their names.
struct ClientDriver {
#define SLUICE_CLIENT_MEMBER(member, symbol) PFN_##symbol member = nullptr;
  SLUICE_CLIENT_FUNCTIONS(SLUICE_CLIENT_MEMBER)
#undef SLUICE_CLIENT_MEMBER

  /// Opens libcuda.so.1; throws std::runtime_error that says what is missing.
  static ClientDriver Load();

  /// Throws OutOfMemory, or std::runtime_error with the error's name, unless `result` is
  /// CUDA_SUCCESS.
  void Check(CUresult result, const char* call) const;
};

/// Compiles CUDA C with the first libnvrtc found, for the given compute capability (ten times it).
/// Throws std::runtime_error with the compiler's log.
std::string CompileKernels(const char* source, const char* name, int arch);

}  // namespace sluice::cuda
