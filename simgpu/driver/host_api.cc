// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/bytes.h"
#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// All pinned memory is portable and mapped; the other flags (write-combined, read-only, I/O
/// memory) ask for speed or for memory that does not exist here.
constexpr unsigned kAllocFlags = 7;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

/// Memory that the GPU may still use must not go away.
CUresult Drain(Context* context) {
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  return context->WaitFor(marks);
}

}  // namespace

CUresult cuMemHostAlloc(void** ptr, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (ptr == nullptr || bytes == 0 || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->driver()->mutex);
  return context->driver()->host_memory->Allocate(ptr, bytes, flags, context->link());
}

CUresult cuMemAllocHost_v2(void** ptr, size_t bytes) { return cuMemHostAlloc(ptr, bytes, 0); }

CUresult cuMemFreeHost(void* ptr) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (ptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  result = Drain(context);
  const std::lock_guard lock(context->driver()->mutex);
  const CUresult freed = context->driver()->host_memory->Free(ptr);
  return freed != CUDA_SUCCESS ? freed : result;
}

CUresult cuMemHostRegister_v2(void* ptr, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (ptr == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~kRegisterFlags) != 0) return NotSupported("cuMemHostRegister with other flags");
  const std::lock_guard lock(context->driver()->mutex);
  const sluice::Machine& machine = context->driver()->machine();
  const uint64_t mib = (bytes + sluice::kMiB - 1) / sluice::kMiB;
  SpendMappingTime(*context->driver(), machine.register_ns + mib * machine.register_ns_per_mib);
  return context->driver()->host_memory->Register(ptr, bytes, flags, context->link());
}

CUresult cuMemHostUnregister(void* ptr) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (ptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  result = Drain(context);
  const std::lock_guard lock(context->driver()->mutex);
  const CUresult gone = context->driver()->host_memory->Unregister(ptr);
  return gone != CUDA_SUCCESS ? gone : result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* dptr, void* ptr, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const auto address = reinterpret_cast<uint64_t>(ptr);
  if (dptr == nullptr || flags != 0 || !context->driver()->Pinned(address, 1)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* ptr) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(driver->mutex);
  const std::optional<HostMemory::Info> info =
      driver->host_memory->Find(reinterpret_cast<uint64_t>(ptr));
  if (!info || info->kind == HostMemory::Kind::kManaged) return CUDA_ERROR_INVALID_VALUE;
  // All pinned memory has an address on the GPU, whoever asked for one.
  *flags = info->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
