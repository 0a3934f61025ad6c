// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/gpu_folders.h"

#include <unistd.h>

#include <utility>

namespace sluice::simgpu {

std::string GpuFolder(const std::string& dir, uint32_t index) {
  return index == 0 ? dir : dir + "/" + std::to_string(index);
}

uint32_t CountGpus(const std::string& dir) {
  uint32_t count = 0;
  while (count < kMaxGpus && access((GpuFolder(dir, count) + "/state").c_str(), F_OK) == 0) {
    ++count;
  }
  return count;
}

Result<std::vector<std::unique_ptr<GpuState>>> OpenGpus(const std::string& dir) {
  std::vector<std::unique_ptr<GpuState>> gpus;
  const uint32_t count = CountGpus(dir);
  // Without any: the error of the first one says what is missing.
  do {
    auto gpu = GpuState::Open(GpuFolder(dir, static_cast<uint32_t>(gpus.size())));
    if (!gpu.ok()) return gpu.status();
    gpus.push_back(std::move(*gpu));
  } while (gpus.size() < count);
  return gpus;
}

}  // namespace sluice::simgpu
