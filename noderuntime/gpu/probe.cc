// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gpu/probe.h"

#include <dlfcn.h>

#include <array>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "common/nvml.h"
#include "noderuntime/gpu/driver.h"

namespace sluice::gpu {
namespace {

/// Of the driver that Driver::Load has found; null: it lacks it.
template <typename Function>
Function Find(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

doctor::DeviceFacts ProbeDevice(const Driver& driver, CUdevice device, Nvml* nvml) {
  doctor::DeviceFacts facts;
  char name[256] = {};
  CUuuid uuid = {};
  size_t total = 0;
  if (driver.cuDeviceGetName(name, sizeof name - 1, device) == CUDA_SUCCESS) facts.name = name;
  if (driver.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS) facts.total_bytes = total;
  const auto attribute = Find<PFN_cuDeviceGetAttribute>("cuDeviceGetAttribute");
  const auto has = [&](CUdevice_attribute wanted) {
    int value = 0;
    return attribute != nullptr && attribute(&value, wanted, device) == CUDA_SUCCESS && value != 0;
  };
  facts.virtual_memory = has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  facts.posix_handles = has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  facts.stream_values_64 = has(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  if (driver.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS) return facts;
  Nvml::Uuid bytes = {};
  std::memcpy(bytes.data(), uuid.bytes, bytes.size());
  facts.uuid = DeviceUuidText(bytes);
  if (nvml == nullptr) return facts;
  if (const auto processes = nvml->ComputeProcesses(bytes); processes.ok()) {
    facts.processes = *processes;
  }
  return facts;
}

}  // namespace

void ProbeDriver(doctor::Facts* facts) {
  const Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) facts->nvml_problem = nvml.status().message();
  const Result<Driver> driver = Driver::Load();
  Status status = driver.status();
  if (status.ok()) status = driver->Check(driver->cuInit(0), "cuInit");
  int count = 0;
  if (status.ok()) status = driver->Check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (!status.ok()) {
    facts->driver_problem = status.message();
    return;
  }
  if (const auto version = Find<PFN_cuDriverGetVersion>("cuDriverGetVersion"); version != nullptr) {
    version(&facts->driver_version);
  }
  facts->exchanges_capture_mode =
      Find<PFN_cuThreadExchangeStreamCaptureMode>("cuThreadExchangeStreamCaptureMode") != nullptr;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver->cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    facts->devices.push_back(ProbeDevice(*driver, device, nvml.ok() ? nvml->get() : nullptr));
  }
}

}  // namespace sluice::gpu
