// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// What the driver tells about a pointer.

namespace {

/// A value of whatever width its attribute has. All of it is written, or nothing.
struct Value {
  uint64_t bits = 0;
  size_t bytes = 4;
};

template <typename T>
Value Of(T value) {
  Value out;
  out.bytes = sizeof(T);
  memcpy(&out.bits, &value, sizeof(T));
  return out;
}

/// Serials are counted by family and by kind of host memory: together they are unique.
uint64_t BufferId(const Allocation& a) {
  const bool pinned = a.host && !a.on_device();
  return (static_cast<uint64_t>(a.family) * 2 + (pinned ? 1 : 0)) << 56 | a.serial;
}

/// Handle types and access of a mapping of cuMemMap.
unsigned long long MappedHandleTypes(Driver* driver, const Allocation& a) {
  const std::lock_guard lock(driver->mutex);
  CUmemAllocationProp prop{};
  static_cast<void>(driver->virtual_memory->Properties(&prop, a.serial));
  return prop.requestedHandleTypes;
}

/// What the current context's GPU may do.
unsigned long long Access(Context* context, const Allocation& a) {
  const int ordinal = context->device()->ordinal();
  if (a.pool != nullptr) return a.pool->access[static_cast<size_t>(ordinal)].load();
  if (a.family != Family::kVmm) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const std::lock_guard lock(context->driver()->mutex);
  unsigned long long flags = 0;
  static_cast<void>(context->driver()->virtual_memory->GetAccess(&flags, a.base, ordinal));
  return flags;
}

unsigned long long HandleTypes(Driver* driver, const Allocation& a) {
  if (a.family == Family::kVmm) return MappedHandleTypes(driver, a);
  if (a.family == Family::kAsync) return a.pool->props.handleTypes;
  return CU_MEM_HANDLE_TYPE_NONE;
}

/// `found` null: a pointer that the driver does not know; then every attribute is nothing.
CUresult Tell(Context* context, const Allocation* found, CUpointer_attribute attribute,
              CUdeviceptr ptr, Value* value) {
  Driver* driver = context->driver();
  static const Allocation kNothing;
  const Allocation& a = found != nullptr ? *found : kNothing;
  const bool known = found != nullptr;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *value = Of(!known ? nullptr : a.context != nullptr ? a.context : context);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *value = Of<unsigned>(!known ? 0 : a.on_device() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *value = Of<CUdeviceptr>(known ? ptr : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *value = Of<CUdeviceptr>(known && a.host ? ptr : 0);
      return known && !a.host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      *value = Of<unsigned>(0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      *value = Of<uint64_t>(known ? BufferId(a) : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *value = Of<unsigned>(known && a.host && a.on_device() ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *value = Of<int>(known ? a.device : -2);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *value = Of<unsigned>(known && a.family == Family::kSync ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *value = Of<CUdeviceptr>(known ? a.range_base : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *value = Of<size_t>(known ? a.range_bytes : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      *value = Of<CUdeviceptr>(known ? a.base : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *value = Of<size_t>(known ? a.bytes : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *value = Of<unsigned>(known ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *value = Of<unsigned long long>(known ? HandleTypes(driver, a) : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *value = Of<unsigned>(known ? static_cast<unsigned>(Access(context, a)) : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *value = Of<CUmemoryPool>(known ? a.pool : nullptr);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return NotSupported("CU_POINTER_ATTRIBUTE_P2P_TOKENS");
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, ptr);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  Value value;
  result = Tell(context, &*found, attribute, ptr, &value);
  if (result == CUDA_SUCCESS) memcpy(data, &value.bits, value.bytes);
  return result;
}

// A pointer that is not of the driver is no error here: it has no attributes.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, ptr);
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Value value;
    const CUresult result = Tell(context, found ? &*found : nullptr, attributes[i], ptr, &value);
    // Of what this pointer does not have: nothing, as for a stranger.
    if (result != CUDA_SUCCESS && attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) return result;
    if (!found && attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE) continue;  // as a real driver
    memcpy(data[i], &value.bits, value.bytes);
  }
  return CUDA_SUCCESS;
}

// Synchronous operations on some memory alone are not modelled: the default may be set, no more.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, ptr);
  if (!found || !found->on_device()) return CUDA_ERROR_INVALID_VALUE;
  return *static_cast<const unsigned*>(value) == 0
             ? CUDA_SUCCESS
             : NotSupported("cuPointerSetAttribute for synchronous operations");
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr dptr) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::optional<Allocation> range = FindAllocation(context->driver(), context, dptr);
  if (!range || !range->on_device()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->base;
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

// There is no bus on which another device could reach this memory.
CUresult cuMemGetHandleForAddressRange(void*, CUdeviceptr, size_t, CUmemRangeHandleType,
                                       unsigned long long) {
  return NotSupported("cuMemGetHandleForAddressRange");
}
