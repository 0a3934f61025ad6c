// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/sharing/gpu_folders.h"

namespace sluice::simgpu {

/// A GPU as one process uses it: by which number it knows it, and who pays for memory there.
struct DeviceUse {
  GpuState* gpu = nullptr;
  uint32_t process = kNobody;
  int ordinal = 0;
  Payer PayerFor(Family family) const { return {process, family}; }
};

/// Those that the process sees, by ordinal.
using DeviceUses = std::vector<DeviceUse>;

/// CUmemAccess_flags by ordinal.
using DeviceAccess = std::array<uint8_t, kMaxGpus>;

/// A file in the memory of one of the GPUs.
struct MemoryFile {
  DeviceUse home;
  uint64_t bytes = 0;
};
std::optional<MemoryFile> FindMemoryFile(const DeviceUses& devices, int fd);
/// What a real driver says of a descriptor that is none of memory; INVALID_VALUE if it is not open.
CUresult NotMemory(int fd);

}  // namespace sluice::simgpu
