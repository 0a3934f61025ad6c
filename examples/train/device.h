// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/cuda/client_driver.h"

namespace train {

/// An address in the device's memory.
using DevicePtr = unsigned long long;

using sluice::cuda::OutOfMemory;

/// What the network needs of a GPU: memory and launches in the order of one stream.
class Device {
 public:
  virtual ~Device() = default;

  virtual DevicePtr Allocate(size_t bytes) = 0;
  virtual void Free(DevicePtr block) = 0;
  virtual void Fill(DevicePtr block, unsigned value, size_t words) = 0;

  /// Starts `kernel` with at least `count` threads in blocks of `threads`.
  template <class... Arguments>
  void Launch(const char* kernel, int count, unsigned threads, Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> params = {&arguments...};
    const unsigned blocks = (static_cast<unsigned>(count) + threads - 1) / threads;
    LaunchBlocks(kernel, blocks, threads, params.data());
  }

 protected:
  virtual void LaunchBlocks(const char* kernel, unsigned blocks, unsigned threads,
                            void** params) = 0;
};

/// A block of device memory that is freed, in stream order, when its owner lets go of it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, size_t floats)
      : device_(&device), address_(device.Allocate(floats * sizeof(float))) {}
  Buffer(Buffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), address_(other.address_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Reset();
    device_ = std::exchange(other.device_, nullptr);
    address_ = other.address_;
    return *this;
  }
  ~Buffer() { Reset(); }

  bool held() const { return device_ != nullptr; }
  DevicePtr get() const { return address_; }
  void Reset() {
    if (device_ != nullptr) device_->Free(address_);
    device_ = nullptr;
  }

 private:
  Device* device_ = nullptr;
  DevicePtr address_ = 0;
};

}  // namespace train
