// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "examples/train/device.h"
#include "examples/train/driver.h"

namespace train {

/// A GPU through the CUDA driver: one context, one stream, the default memory pool.
class DriverDevice : public Device {
 public:
  DriverDevice(const Driver& driver, int ordinal);
  ~DriverDevice() override;
  DriverDevice(const DriverDevice&) = delete;
  DriverDevice& operator=(const DriverDevice&) = delete;

  /// Compute capability times ten.
  int arch() const { return arch_; }
  void LoadKernels(const std::string& image);

  DevicePtr Allocate(size_t bytes) override;
  void Free(DevicePtr block) override;
  void Fill(DevicePtr block, unsigned value, size_t words) override;

  /// Memory until the end of the program, by cuMemAlloc.
  DevicePtr AllocatePersistent(size_t bytes);
  size_t persistent_bytes() const { return persistent_bytes_; }
  /// The most that was allocated at one time, of both kinds.
  size_t PeakBytes() const;

  /// Pinned host memory; lives as long as the device.
  void* AllocateHost(size_t bytes);
  void CopyIn(DevicePtr to, const void* from, size_t bytes);
  void CopyOut(void* to, DevicePtr from, size_t bytes);
  CUevent NewEvent();
  void Record(CUevent event);
  void Wait(CUevent event);
  void WaitForAll();

 protected:
  void LaunchBlocks(const char* kernel, unsigned blocks, unsigned threads, void** params) override;

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  int arch_ = 0;
  std::map<std::string, CUfunction, std::less<>> functions_;
  std::vector<DevicePtr> persistent_;
  std::vector<void*> host_blocks_;
  std::vector<CUevent> events_;
  size_t persistent_bytes_ = 0;
};

}  // namespace train
