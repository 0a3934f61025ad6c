// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cuda/client_driver.h"

namespace sluice::cuda {

/// A GPU through the CUDA driver: one context, one stream, the default memory pool.
class ClientDevice {
 public:
  ClientDevice(const ClientDriver& driver, int ordinal);
  ~ClientDevice();
  ClientDevice(const ClientDevice&) = delete;
  ClientDevice& operator=(const ClientDevice&) = delete;

  /// Compute capability times ten.
  int arch() const { return arch_; }
  /// 0 where the driver does not tell it.
  int Attribute(CUdevice_attribute attribute) const;
  void LoadKernels(const std::string& image);

  /// In the order of the stream, as all that follows but for AllocatePersistent.
  CUdeviceptr Allocate(size_t bytes);
  /// Does not throw.
  void Free(CUdeviceptr block);
  void Fill(CUdeviceptr block, unsigned value, size_t words);
  void Launch(const char* kernel, const unsigned (&grid)[2], unsigned threads, void** params);

  /// Memory until the end of the program, by cuMemAlloc.
  CUdeviceptr AllocatePersistent(size_t bytes);
  size_t persistent_bytes() const { return persistent_bytes_; }
  /// The most that was allocated at one time, of both kinds.
  size_t PeakBytes() const;

  /// Pinned host memory; lives as long as the device.
  void* AllocateHost(size_t bytes);
  void CopyIn(CUdeviceptr to, const void* from, size_t bytes);
  void CopyOut(void* to, CUdeviceptr from, size_t bytes);
  /// Lives as long as the device. `flags` are the driver's.
  CUevent NewEvent(unsigned flags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
  void Record(CUevent event);
  void Wait(CUevent event);
  /// Between two events with timing that have both been reached.
  double ElapsedMs(CUevent from, CUevent to) const;
  void WaitForAll();

 private:
  const ClientDriver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  int arch_ = 0;
  std::map<std::string, CUfunction, std::less<>> functions_;
  std::vector<CUdeviceptr> persistent_;
  std::vector<void*> host_blocks_;
  std::vector<CUevent> events_;
  size_t persistent_bytes_ = 0;
};

}  // namespace sluice::cuda
