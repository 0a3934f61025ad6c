// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>

#include "common/cuda/abi.h"

namespace sluice::simgpu {
class Context;
struct Device;
}  // namespace sluice::simgpu

/// A green context: another name of the device's primary context, which it retains, with streams of
/// its own. Its address is its CUcontext, too. It stays as a stale name when it is destroyed.
struct CUgreenCtx_st {
  sluice::simgpu::Context* context = nullptr;
  sluice::simgpu::Device* device = nullptr;
  unsigned sm_count = 0;
  std::atomic<bool> destroyed{false};
};

/// What one may be made of.
struct CUdevResourceDesc_st {
  static constexpr unsigned kMagic = 0x52534331;
  std::atomic<unsigned> magic{0};
  unsigned sm_count = 0;
};
