// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>

#include "common/cuda/abi.h"
#include "simgpu/memory/device_use.h"
#include "simgpu/memory/graph_memory.h"

namespace sluice::simgpu {

class Context;

/// A GPU that the process sees. What changes is under the driver's lock.
struct Device {
  DeviceUse use;
  uint32_t index = 0;  // among all of the machine, whatever the process sees
  std::unique_ptr<GraphMemory> graph_memory;
  Context* primary = nullptr;
  int primary_references = 0;
  CUmemoryPool default_pool = nullptr;  // never changes
  CUmemoryPool current_pool = nullptr;

  GpuState* gpu() const { return use.gpu; }
  int ordinal() const { return use.ordinal; }
};

}  // namespace sluice::simgpu
