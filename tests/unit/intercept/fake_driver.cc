// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/intercept/fake_driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace sluice::test {
namespace {

FakeDriver* g_fake = nullptr;
thread_local int t_relaxed = 0;

std::atomic<bool>& Done(CUevent event) { return *reinterpret_cast<std::atomic<bool>*>(event); }

void OnPhysical() {
  // It may set another one.
  const std::function<void()> call = FakeDriver::Get().on_physical;
  if (call) call();
}

void Submit(CUstream stream, std::function<void()> operation) {
  FakeDriver& fake = FakeDriver::Get();
  const std::lock_guard lock(fake.mutex);
  if (fake.immediate) {
    operation();
  } else {
    fake.queues[stream].operations.push_back(std::move(operation));
  }
}

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t number = next++;
  return number;
}

}  // namespace

FakeDriver& FakeDriver::Get() { return *g_fake; }

FakeDriver::FakeDriver() {
  g_fake = this;
  table_.cuCtxGetDevice = [](CUdevice* out) {
    const std::lock_guard lock(Get().mutex);
    const auto known = Get().device_of.find(Get().context);
    *out = known != Get().device_of.end() ? known->second : Get().device;
    return Get().context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  };
  table_.cuCtxGetCurrent = [](CUcontext* out) {
    const std::lock_guard lock(Get().mutex);
    *out = Get().context;
    return CUDA_SUCCESS;
  };
  table_.cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice of) {
    memset(uuid->bytes, 7 + of, sizeof uuid->bytes);
    return CUDA_SUCCESS;
  };
  table_.cuMemAddressReserve = [](CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr,
                                  unsigned long long) {  // NOLINT
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = reinterpret_cast<CUdeviceptr>(at);
    Get().reserved_bytes += bytes;
    return at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  table_.cuMemAddressFree = [](CUdeviceptr at, size_t bytes) {
    munmap(reinterpret_cast<void*>(at), bytes);
    Get().reserved_bytes -= bytes;
    return CUDA_SUCCESS;
  };
  table_.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                             CUmemAllocationHandleType) {
    *handle = 1;
    if (t_relaxed == 0) Get().unrelaxed_call = true;
    return Get().import_result;
  };
  table_.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                       unsigned long long) {  // NOLINT
    OnPhysical();
    if (Get().on_map) std::exchange(Get().on_map, nullptr)();
    ++Get().mapped;
    return CUDA_SUCCESS;
  };
  table_.cuMemUnmap = [](CUdeviceptr, size_t) {
    OnPhysical();
    if (Get().on_unmap) std::exchange(Get().on_unmap, nullptr)();
    --Get().mapped;
    return CUDA_SUCCESS;
  };
  table_.cuMemRelease = [](CUmemGenericAllocationHandle) {
    OnPhysical();
    return CUDA_SUCCESS;
  };
  table_.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                          unsigned long long) {  // NOLINT
    OnPhysical();
    if (Get().create_result == CUDA_SUCCESS) *handle = Get().next_handle++;
    return Get().create_result;
  };
  table_.cuMemRetainAllocationHandle = [](CUmemGenericAllocationHandle* handle, void*) {
    OnPhysical();
    if (Get().retain_result == CUDA_SUCCESS) *handle = Get().next_handle++;
    return Get().retain_result;
  };
  table_.cuMemAllocManaged = [](CUdeviceptr* at, size_t, unsigned) {
    if (Get().create_result == CUDA_SUCCESS) *at = 0x10000 * Get().next_handle++;
    return Get().create_result;
  };
  table_.cuDevicePrimaryCtxGetState = [](CUdevice dev, unsigned* flags, int* active) {
    *flags = 0;
    *active = Get().primary_active[dev] ? 1 : 0;
    return CUDA_SUCCESS;
  };
  table_.cuDevicePrimaryCtxRetain = [](CUcontext* out, CUdevice dev) {
    if (Get().create_result != CUDA_SUCCESS) return Get().create_result;
    Get().primary_active[dev] = true;
    ++Get().primary_references;
    *out = Primary();
    return CUDA_SUCCESS;
  };
  table_.cuDevicePrimaryCtxRelease_v2 = [](CUdevice dev) {
    const std::lock_guard lock(Get().mutex);
    if (--Get().primary_references > 0) return CUDA_SUCCESS;
    Get().primary_active[dev] = false;
    if (Get().registered_in == Primary()) Get().registered_in = nullptr;
    return CUDA_SUCCESS;
  };
  table_.cuGreenCtxCreate = [](CUgreenCtx* out, CUdevResourceDesc, CUdevice dev, unsigned) {
    Get().primary_active[dev] = true;
    ++Get().primary_references;
    *out = reinterpret_cast<CUgreenCtx>(0x6e);
    return CUDA_SUCCESS;
  };
  table_.cuCtxFromGreenCtx = [](CUcontext* out, CUgreenCtx) {
    *out = GreenView();
    return CUDA_SUCCESS;
  };
  table_.cuGreenCtxDestroy = [](CUgreenCtx) {
    const std::lock_guard lock(Get().mutex);
    for (auto& [stream, queue] : Get().queues) {
      if (Get().destroy_drops && Get().ContextOf(stream) == GreenView()) queue.operations.clear();
    }
    return Get().destroy_result;
  };
  table_.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    return CUDA_SUCCESS;
  };
  table_.cuMemHostRegister_v2 = [](void*, size_t, unsigned) {
    const std::lock_guard lock(Get().mutex);
    if (t_relaxed == 0) Get().unrelaxed_call = true;
    if (Get().register_result == CUDA_SUCCESS) Get().registered_in = Get().context;
    return Get().register_result;
  };
  table_.cuMemHostUnregister = [](void*) {
    const std::lock_guard lock(Get().mutex);
    Get().registered_in = nullptr;
    return CUDA_SUCCESS;
  };
  table_.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    t_relaxed += *mode == CU_STREAM_CAPTURE_MODE_RELAXED ? 1 : -1;
    *mode = *mode == CU_STREAM_CAPTURE_MODE_RELAXED ? CU_STREAM_CAPTURE_MODE_GLOBAL
                                                    : CU_STREAM_CAPTURE_MODE_RELAXED;
    return CUDA_SUCCESS;
  };
  table_.cuStreamGetId = [](CUstream stream, unsigned long long* id) {  // NOLINT
    const std::lock_guard lock(Get().mutex);
    ++Get().ids_asked;
    if (Get().capturing.count(stream) != 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream == CU_STREAM_LEGACY) {
      *id = 1 + (reinterpret_cast<uint64_t>(Get().context) << 32);
    } else if (stream == CU_STREAM_PER_THREAD) {
      *id = 0x50000000 + ThreadNumber();
    } else if (reinterpret_cast<uintptr_t>(stream) < 0x1000) {
      return CUDA_ERROR_INVALID_HANDLE;
    } else {
      *id = reinterpret_cast<uint64_t>(stream) + (Get().reused_ids[stream] << 40);
    }
    return CUDA_SUCCESS;
  };
  table_.cuMemAllocAsync = [](CUdeviceptr* at, size_t, CUstream) {
    *at = kGraphMemory;
    return CUDA_SUCCESS;
  };
  table_.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    ++Get().capture_questions;
    const std::lock_guard lock(Get().mutex);
    *status = Get().capturing.count(stream) != 0 ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                 : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table_.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
    if (t_relaxed == 0) Get().unrelaxed_call = true;
    if (Get().on_write) std::exchange(Get().on_write, nullptr)();
    {
      const std::lock_guard lock(Get().mutex);
      if (Get().capturing.count(stream) != 0) return CUDA_ERROR_ILLEGAL_STATE;
      if (Get().registered_in == nullptr) Get().unregistered_mark = true;
      ++Get().marks;
      ++Get().marks_of[stream];
    }
    Submit(stream, [at, value] {
      reinterpret_cast<std::atomic<uint64_t>*>(at)->store(value, std::memory_order_release);
    });
    return CUDA_SUCCESS;
  };
  table_.cuStreamGetCtx = [](CUstream stream, CUcontext* out) {
    const std::lock_guard lock(Get().mutex);
    *out = Get().ContextOf(stream);
    return CUDA_SUCCESS;
  };
  table_.cuStreamDestroy_v2 = [](CUstream stream) {
    if (Get().stream_destroy_result != CUDA_SUCCESS) return Get().stream_destroy_result;
    {
      const std::lock_guard lock(Get().mutex);
      ++Get().reused_ids[stream];
    }
    if (Get().on_stream_destroyed) std::exchange(Get().on_stream_destroyed, nullptr)();
    return CUDA_SUCCESS;
  };
  table_.cuStreamSynchronize = [](CUstream stream) {
    Get().Run(stream);
    return CUDA_SUCCESS;
  };
  table_.cuCtxSynchronize = [] {
    ++Get().synchronised;
    if (Get().synchronise_result == CUDA_SUCCESS) Get().RunContext();
    return Get().synchronise_result;
  };
  table_.cuCtxPushCurrent_v2 = [](CUcontext next) {
    const std::lock_guard lock(Get().mutex);
    Get().pushed.push_back(std::exchange(Get().context, next));
    return CUDA_SUCCESS;
  };
  table_.cuCtxPopCurrent_v2 = [](CUcontext* out) {
    const std::lock_guard lock(Get().mutex);
    *out = std::exchange(Get().context, Get().pushed.back());
    Get().pushed.pop_back();
    return CUDA_SUCCESS;
  };
  table_.cuCtxDestroy_v2 = [](CUcontext gone) {
    if (!Get().destroy_drops) Get().RunOf(gone);
    {
      const std::lock_guard lock(Get().mutex);
      if (Get().destroy_result == CUDA_SUCCESS && Get().registered_in == gone) {
        Get().registered_in = nullptr;
        for (const auto& [stream, queue] : Get().queues) {
          if (!queue.operations.empty()) Get().unregistered_mark = true;
        }
      }
    }
    if (Get().on_destroyed) std::exchange(Get().on_destroyed, nullptr)();
    return Get().destroy_result;
  };
  table_.cuCtxAttach = [](CUcontext* out, unsigned) {
    ++Get().attached[*out = Get().context];
    return CUDA_SUCCESS;
  };
  table_.cuCtxDetach = [](CUcontext gone) {
    int& left = Get().attached[gone];
    if (left == 0) return Get().table().cuCtxDestroy_v2(gone);
    if (Get().destroy_result == CUDA_SUCCESS) --left;
    return Get().destroy_result;
  };
  table_.cuEventCreate = [](CUevent* event, unsigned) {
    const std::lock_guard lock(Get().mutex);
    *event = reinterpret_cast<CUevent>(&Get().events.emplace_back(false));
    return CUDA_SUCCESS;
  };
  table_.cuEventRecord = [](CUevent event, CUstream stream) {
    if (t_relaxed == 0) Get().unrelaxed_call = true;
    Done(event) = false;
    Submit(stream, [event] { Done(event) = true; });
    return CUDA_SUCCESS;
  };
  table_.cuEventQuery = [](CUevent event) {
    return Done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  table_.cuEventSynchronize = [](CUevent) {
    Get().RunAll();
    return CUDA_SUCCESS;
  };
  table_.cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    *ms = 0.25f;
    return CUDA_SUCCESS;
  };
  table_.cuFuncGetName = [](const char** name, CUfunction function) {
    *name = reinterpret_cast<const char*>(function);
    return CUDA_SUCCESS;
  };
  table_.cuMemFree_v2 = [](CUdeviceptr at) {
    Get().foreign_frees.push_back(at);
    return CUDA_ERROR_INVALID_VALUE;
  };
  table_.cuMemFreeAsync = [](CUdeviceptr at, CUstream) {
    Get().foreign_frees.push_back(at);
    return CUDA_ERROR_INVALID_VALUE;
  };
  table_.cuMemsetD32Async = [](CUdeviceptr at, unsigned value, size_t words, CUstream stream) {
    Get().memsets.push_back({at, value, words, stream});
    return CUDA_SUCCESS;
  };
  table_.cuMemsetD32_v2 = [](CUdeviceptr at, unsigned value, size_t words) {
    Get().memsets.push_back({at, value, words, nullptr});
    return CUDA_SUCCESS;
  };
  table_.cuMemGetInfo_v2 = [](size_t* free_bytes, size_t* total) {
    *free_bytes = 11;
    *total = 22;
    return CUDA_SUCCESS;
  };
  table_.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    *bytes = 33;
    return CUDA_SUCCESS;
  };
  table_.cuDeviceGetDefaultMemPool = [](CUmemoryPool* pool, CUdevice) {
    *pool = reinterpret_cast<CUmemoryPool>(0x9001);
    return CUDA_SUCCESS;
  };
  table_.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute, void* value) {
    *static_cast<uint64_t*>(value) = 44;
    return CUDA_SUCCESS;
  };
  table_.cuMemPoolSetAttribute = [](CUmemoryPool, CUmemPool_attribute, void*) {
    return CUDA_ERROR_NOT_PERMITTED;
  };
  table_.cuMemPoolTrimTo = [](CUmemoryPool, size_t) { return CUDA_SUCCESS; };
  table_.cuMemGetAddressRange_v2 = [](CUdeviceptr*, size_t*, CUdeviceptr) {
    return CUDA_ERROR_NOT_FOUND;
  };
}

FakeDriver::~FakeDriver() { g_fake = nullptr; }

void FakeDriver::Enqueue(CUstream stream, std::function<void()> operation) {
  Submit(stream, std::move(operation));
}

void FakeDriver::Run(CUstream stream, size_t operations) {
  const std::lock_guard lock(mutex);
  auto& queue = queues[stream].operations;
  for (; operations > 0 && !queue.empty(); --operations) {
    queue.front()();
    queue.pop_front();
  }
}

void FakeDriver::RunContext() { RunOf(context); }

void FakeDriver::RunOf(CUcontext whose) {
  const std::lock_guard lock(mutex);
  for (auto& [stream, queue] : queues) {
    const CUcontext of = ContextOf(stream);
    if (of != whose && (of != GreenView() || whose != Primary())) continue;
    for (auto& operation : queue.operations) operation();
    queue.operations.clear();
  }
}

void FakeDriver::RunAll() {
  const std::lock_guard lock(mutex);
  for (auto& [stream, queue] : queues) {
    for (auto& operation : queue.operations) operation();
    queue.operations.clear();
  }
}

size_t FakeDriver::Pending(CUstream stream) {
  const std::lock_guard lock(mutex);
  return queues[stream].operations.size();
}

}  // namespace sluice::test
