// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/client_device.h"
#include "examples/train/device.h"

namespace train {

/// A GPU through the CUDA driver.
class DriverDevice : public Device, public sluice::cuda::ClientDevice {
 public:
  using ClientDevice::ClientDevice;

  DevicePtr Allocate(size_t bytes) override { return ClientDevice::Allocate(bytes); }
  void Free(DevicePtr block) override { ClientDevice::Free(block); }
  void Fill(DevicePtr block, unsigned value, size_t words) override {
    ClientDevice::Fill(block, value, words);
  }
  using Device::Launch;

 protected:
  void LaunchBlocks(const char* kernel, unsigned blocks, unsigned threads, void** params) override {
    ClientDevice::Launch(kernel, {blocks, 1}, threads, params);
  }
};

}  // namespace train
