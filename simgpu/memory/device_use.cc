// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/device_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <string>

namespace sluice::simgpu {
namespace {

/// Without mounts all GPUs lie in one file system: which it is shows only where the file was made.
bool MadeIn(const GpuState& gpu, int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof path);
  const std::unique_ptr<char, void (*)(void*)> folder(
      realpath((gpu.dir() + "/gpu0").c_str(), nullptr), free);
  return n > 0 && folder != nullptr &&
         std::string(path, static_cast<size_t>(n)).starts_with(std::string(folder.get()) + "/");
}

}  // namespace

std::optional<MemoryFile> FindMemoryFile(const DeviceUses& devices, int fd) {
  std::optional<MemoryFile> found;
  for (const DeviceUse& device : devices) {
    const Result<uint64_t> bytes = device.gpu->ImportedBytes(fd);
    if (!bytes.ok() || (found && !MadeIn(*device.gpu, fd))) continue;
    found = MemoryFile{device, *bytes};
  }
  return found;
}

CUresult NotMemory(int fd) {
  return fcntl(fd, F_GETFD) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNKNOWN;
}

}  // namespace sluice::simgpu
