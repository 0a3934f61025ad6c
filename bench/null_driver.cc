// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/null_driver.h"

#include <algorithm>
#include <atomic>

namespace sluice::bench {
namespace {

std::array<uint8_t, 16> g_gpu_uuid;
std::atomic<uint64_t> g_marks{0};

// Nothing is behind the addresses of the pool: blocks are handed out and never touched.
constexpr CUdeviceptr kPoolAddress = 1ull << 40;

DriverTable MakeTable() {
  DriverTable table = {};
  table.cuCtxGetDevice = [](CUdevice* device) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext* context) {
    *context = kNullContext;
    return CUDA_SUCCESS;
  };
  table.cuCtxDestroy_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice) {
    std::copy(g_gpu_uuid.begin(), g_gpu_uuid.end(), uuid->bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemAddressReserve = [](CUdeviceptr* address, size_t, size_t, CUdeviceptr,
                                 unsigned long long) {  // NOLINT(google-runtime-int)
    *address = kPoolAddress;
    return CUDA_SUCCESS;
  };
  table.cuMemAddressFree = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
  table.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle*, void*,
                                            CUmemAllocationHandleType) { return CUDA_SUCCESS; };
  table.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                      unsigned long long) {  // NOLINT(google-runtime-int)
    return CUDA_SUCCESS;
  };
  table.cuMemUnmap = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
  table.cuMemRelease = [](CUmemGenericAllocationHandle) { return CUDA_SUCCESS; };
  table.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    return CUDA_SUCCESS;
  };
  table.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return CUDA_SUCCESS; };
  table.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
  table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  table.cuStreamGetId = [](CUstream stream, unsigned long long* id) {  // NOLINT
    *id = reinterpret_cast<uintptr_t>(stream);
    return CUDA_SUCCESS;
  };
  table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table.cuStreamWriteValue64_v2 = [](CUstream, CUdeviceptr address, cuuint64_t value, unsigned) {
    reinterpret_cast<std::atomic<uint64_t>*>(address)->store(value, std::memory_order_release);
    g_marks.fetch_add(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  };
  // Launches are timed while their cycle is looked for: the shortest of a real GPU.
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(uintptr_t{0x20000});
    return CUDA_SUCCESS;
  };
  table.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  table.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    *ms = 0.005f;
    return CUDA_SUCCESS;
  };
  return table;
}

}  // namespace

const DriverTable& NullDriver(const std::array<uint8_t, 16>& gpu_uuid) {
  static const DriverTable table = MakeTable();
  g_gpu_uuid = gpu_uuid;
  return table;
}

uint64_t NullDriverMarks() { return g_marks.load(std::memory_order_relaxed); }

}  // namespace sluice::bench
