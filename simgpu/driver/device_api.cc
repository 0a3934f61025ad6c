// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <cstring>
#include <optional>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using sluice::Machine;
using sluice::simgpu::CheckDevice;
using sluice::simgpu::Device;
using sluice::simgpu::Driver;
using sluice::simgpu::PciBus;

namespace {

struct Attribute {
  CUdevice_attribute attribute;
  int value;
};

constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 * 1024},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0},
};

/// What the machine file says, if it is one of these.
std::optional<int> OfMachine(const Machine& machine, CUdevice_attribute attribute) {
  const auto number = [](uint64_t value) { return static_cast<int>(value); };
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return machine.compute_capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return machine.compute_capability % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return number(machine.sm_count);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return number(machine.threads_per_sm);
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return number(machine.clock_khz);
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return number(machine.memory_clock_khz);
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return number(machine.bus_bits);
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return number(machine.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      return machine.concurrent_kernels > 1 ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return number(machine.copy_engines);
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
      return machine.copy_engines > 0 ? 1 : 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (driver->FindDevice(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(driver->devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, static_cast<size_t>(len), "%s", device->gpu()->machine().name.c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(uuid->bytes, device->gpu()->page()->uuid, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid(uuid, dev); }

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->gpu()->page()->capacity;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
    *value = static_cast<int>(PciBus(device->index));
    return CUDA_SUCCESS;
  }
  if (const auto known = OfMachine(device->gpu()->machine(), attribute)) {
    *value = *known;
    return CUDA_SUCCESS;
  }
  // Capabilities that are not listed are ones that this GPU does not have.
  *value = 0;
  for (const Attribute& row : kAttributes) {
    if (row.attribute == attribute) *value = row.value;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = device->gpu()->machine().compute_capability / 10;
  *minor = device->gpu()->machine().compute_capability % 10;
  return CUDA_SUCCESS;
}
