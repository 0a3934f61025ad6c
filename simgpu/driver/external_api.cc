// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <unistd.h>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names
using sluice::UniqueFd;

// Memory that came as an opaque descriptor: one that cuMemExportToShareableHandle gave, because no
// other interface makes memory of this GPU.

CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (memory == nullptr || descriptor == nullptr || descriptor->size == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (descriptor->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
    return NotSupported("cuImportExternalMemory of this type");
  }
  const int fd = descriptor->handle.fd;
  const std::optional<MemoryFile> found = FindMemoryFile(driver->uses, fd);
  if (!found) return NotMemory(fd);
  if (descriptor->size > found->bytes) return CUDA_ERROR_INVALID_VALUE;
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return CUDA_ERROR_OPERATING_SYSTEM;
  // By the header the driver owns the descriptor from here on.
  close(fd);
  CUexternalMemory made = driver->external_memories.New();
  made->file = std::move(copy);
  made->bytes = descriptor->size;
  *memory = made;
  return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* dptr, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* descriptor) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (!IsLive(memory)) return CUDA_ERROR_INVALID_HANDLE;
  if (dptr == nullptr || descriptor == nullptr || descriptor->flags != 0 || descriptor->size == 0 ||
      descriptor->offset > memory->bytes || descriptor->size > memory->bytes - descriptor->offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UniqueFd file(fcntl(memory->file.get(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) return CUDA_ERROR_OPERATING_SYSTEM;
  uint64_t address = 0;
  const std::lock_guard lock(context->driver()->mutex);
  const CUresult opened = context->driver()->foreign_memory->Open(
      &address, ForeignMemory::Kind::kExternalBuffer, std::move(file), descriptor->offset,
      descriptor->size);
  if (opened == CUDA_SUCCESS) *dptr = address;
  return opened;
}

// Buffers that are still mapped keep the memory.
CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsLive(memory)) return CUDA_ERROR_INVALID_HANDLE;
  memory->file.reset();
  driver->external_memories.Delete(memory);
  return CUDA_SUCCESS;
}
