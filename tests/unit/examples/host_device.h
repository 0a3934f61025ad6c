// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "examples/train/device.h"
#include "tests/unit/simgpu/nvrtc_module.h"

namespace train {

/// Runs the training program's kernels in this process. Memory is filled with NaNs when it is
/// allocated and when it is freed, so whoever reads what nobody wrote spoils the loss.
class HostDevice : public Device {
 public:
  HostDevice();
  ~HostDevice() override;

  DevicePtr Allocate(size_t bytes) override;
  void Free(DevicePtr block) override;
  void Fill(DevicePtr block, unsigned value, size_t words) override;

  size_t live_bytes() const { return live_bytes_; }
  size_t peak_bytes() const { return peak_bytes_; }
  /// Live bytes at each launch.
  const std::vector<size_t>& live_at_launch() const { return live_at_launch_; }

 protected:
  void LaunchBlocks(const char* kernel, unsigned blocks, unsigned threads, void** params) override;

 private:
  sluice::simgpu::nvrtc::NvrtcModule module_;
  std::map<DevicePtr, size_t> blocks_;
  size_t live_bytes_ = 0, peak_bytes_ = 0;
  std::vector<size_t> live_at_launch_;
};

}  // namespace train
