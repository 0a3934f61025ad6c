// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"
#include "simgpu/driver/pools.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names
using sluice::UniqueFd;

// Pools between processes. The shareable handle is the pool's file; the data of a pointer says
// where in that file it lies.

namespace {

struct PointerData {
  static constexpr uint64_t kMagic = 0x52544e50'4c4f4f50;
  uint64_t magic;
  uint64_t inode;  // of the pool's file
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(PointerData) <= sizeof(CUmemPoolPtrExportData));

uint64_t Inode(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || !Usable(pool) || pool->imported || flags != 0 ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || pool->props.handleTypes != type) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int copy = fcntl(pool->file.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(handle) = copy;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (pool == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A pool's file is told from a handle of cuMemCreate by its size.
  const std::optional<MemoryFile> found = FindMemoryFile(driver->uses, fd);
  if (!found) return NotMemory(fd);
  if (found->bytes != Heap::WindowBytes(*found->home.gpu) * CUmemPoolHandle_st::kWindows) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return CUDA_ERROR_OPERATING_SYSTEM;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, found->home.ordinal};
  CUmemoryPool made = driver->NewPool(props);
  made->imported = true;
  made->file = std::move(copy);
  *pool = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr ptr) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> found = FindAllocation(driver, context, ptr);
  if (!found || found->pool == nullptr ||
      found->pool->props.handleTypes == CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(found->context->mutex);
  const Heap* heap = found->context->FindPoolHeap(found->pool);
  if (heap == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const PointerData where{PointerData::kMagic, Inode(found->pool->file.get()),
                          heap->FileOffset(found->base), found->bytes};
  memset(data, 0, sizeof *data);
  memcpy(data, &where, sizeof where);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* ptr, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (ptr == nullptr || data == nullptr || !Usable(pool) || !pool->imported) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  PointerData where;
  memcpy(&where, data, sizeof where);
  if (where.magic != PointerData::kMagic || where.inode != Inode(pool->file.get())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UniqueFd file(fcntl(pool->file.get(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) return CUDA_ERROR_OPERATING_SYSTEM;
  uint64_t address = 0;
  const std::lock_guard lock(driver->mutex);
  const CUresult result = driver->foreign_memory->Open(&address, ForeignMemory::Kind::kPoolPointer,
                                                       std::move(file), where.offset, where.bytes);
  if (result == CUDA_SUCCESS) *ptr = address;
  return result;
}
