// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/client_device.h"

#include <cstdint>
#include <stdexcept>

namespace sluice::cuda {

ClientDevice::ClientDevice(const ClientDriver& driver, int ordinal) : driver_(driver) {
  driver_.Check(driver_.cuInit(0), "cuInit");
  int count = 0;
  driver_.Check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (ordinal >= count) {
    throw std::runtime_error("--device must be less than the number of GPUs, " +
                             std::to_string(count) + ", not " + std::to_string(ordinal));
  }
  driver_.Check(driver_.cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  int major = 0, minor = 0;
  driver_.Check(
      driver_.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_),
      "cuDeviceGetAttribute");
  driver_.Check(
      driver_.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_),
      "cuDeviceGetAttribute");
  arch_ = major * 10 + minor;
  driver_.Check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  driver_.Check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  driver_.Check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver_.Check(driver_.cuDeviceGetDefaultMemPool(&pool_, device_), "cuDeviceGetDefaultMemPool");
  // Keep freed memory: otherwise every synchronisation would give it back to the system.
  cuuint64_t threshold = UINT64_MAX;
  driver_.Check(driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                "cuMemPoolSetAttribute");
}

ClientDevice::~ClientDevice() {
  // After a failure the calls fail too; there is nobody left to tell.
  driver_.cuStreamSynchronize(stream_);
  for (CUevent event : events_) driver_.cuEventDestroy(event);
  for (void* block : host_blocks_) driver_.cuMemFreeHost(block);
  for (CUdeviceptr block : persistent_) driver_.cuMemFree(block);
  if (module_ != nullptr) driver_.cuModuleUnload(module_);
  driver_.cuStreamDestroy(stream_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

int ClientDevice::Attribute(CUdevice_attribute attribute) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
}

void ClientDevice::LoadKernels(const std::string& image) {
  driver_.Check(driver_.cuModuleLoadData(&module_, image.data()), "cuModuleLoadData");
}

CUdeviceptr ClientDevice::Allocate(size_t bytes) {
  CUdeviceptr block = 0;
  const CUresult result = driver_.cuMemAllocAsync(&block, bytes, stream_);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(bytes);
  driver_.Check(result, "cuMemAllocAsync");
  return block;
}

void ClientDevice::Free(CUdeviceptr block) {
  // Called by destructors, so it must not throw. A failed free shows at the next call.
  driver_.cuMemFreeAsync(block, stream_);
}

void ClientDevice::Fill(CUdeviceptr block, unsigned value, size_t words) {
  driver_.Check(driver_.cuMemsetD32Async(block, value, words, stream_), "cuMemsetD32Async");
}

CUdeviceptr ClientDevice::AllocatePersistent(size_t bytes) {
  CUdeviceptr block = 0;
  const CUresult result = driver_.cuMemAlloc(&block, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(bytes);
  driver_.Check(result, "cuMemAlloc");
  persistent_.push_back(block);
  persistent_bytes_ += bytes;
  return block;
}

size_t ClientDevice::PeakBytes() const {
  cuuint64_t used = 0;
  driver_.Check(driver_.cuMemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used),
                "cuMemPoolGetAttribute");
  return used + persistent_bytes_;
}

void* ClientDevice::AllocateHost(size_t bytes) {
  void* block = nullptr;
  driver_.Check(driver_.cuMemHostAlloc(&block, bytes, 0), "cuMemHostAlloc");
  host_blocks_.push_back(block);
  return block;
}

void ClientDevice::CopyIn(CUdeviceptr to, const void* from, size_t bytes) {
  driver_.Check(driver_.cuMemcpyHtoDAsync(to, from, bytes, stream_), "cuMemcpyHtoDAsync");
}

void ClientDevice::CopyOut(void* to, CUdeviceptr from, size_t bytes) {
  driver_.Check(driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_), "cuMemcpyDtoHAsync");
}

CUevent ClientDevice::NewEvent(unsigned flags) {
  CUevent event = nullptr;
  driver_.Check(driver_.cuEventCreate(&event, flags), "cuEventCreate");
  events_.push_back(event);
  return event;
}

void ClientDevice::Record(CUevent event) {
  driver_.Check(driver_.cuEventRecord(event, stream_), "cuEventRecord");
}

void ClientDevice::Wait(CUevent event) {
  driver_.Check(driver_.cuEventSynchronize(event), "cuEventSynchronize");
}

double ClientDevice::ElapsedMs(CUevent from, CUevent to) const {
  float ms = 0;
  driver_.Check(driver_.cuEventElapsedTime(&ms, from, to), "cuEventElapsedTime");
  return static_cast<double>(ms);
}

void ClientDevice::WaitForAll() {
  driver_.Check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void ClientDevice::Launch(const char* kernel, const unsigned (&grid)[2], unsigned threads,
                          void** params) {
  auto found = functions_.find(std::string_view(kernel));
  if (found == functions_.end()) {
    CUfunction function = nullptr;
    driver_.Check(driver_.cuModuleGetFunction(&function, module_, kernel), kernel);
    found = functions_.emplace(kernel, function).first;
  }
  driver_.Check(driver_.cuLaunchKernel(found->second, grid[0], grid[1], 1, threads, 1, 1, 0,
                                       stream_, params, nullptr),
                kernel);
}

}  // namespace sluice::cuda
