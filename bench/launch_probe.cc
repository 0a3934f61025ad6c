// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "common/cuda/client_driver.h"

/// Times single launches as a program would issue them, never with a full queue, and prints the
/// median in nanoseconds. What Sluice's hook costs is this figure with it minus this figure
/// without.
namespace {

constexpr int kCycleLaunches = 64;
constexpr int kCycles = 400;
constexpr int kWarmUpCycles = 100;
// Two kernels, so that a cycle of launches is recognised as one iteration and not each launch as
// one.
constexpr const char* kSource =
    "extern \"C\" __global__ void first(float* out) { out[0] = 0; }\n"
    "extern \"C\" __global__ void probe(float* out) { out[0] += 1; }\n";

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t MedianLaunchNs() {
  const auto driver = sluice::cuda::ClientDriver::Load();
  const auto check = [&driver](CUresult result, const char* call) { driver.Check(result, call); };
  check(driver.cuInit(0), "cuInit");
  CUdevice device = 0;
  check(driver.cuDeviceGet(&device, 0), "cuDeviceGet");
  CUcontext context = nullptr;
  check(driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  int major = 0;
  check(driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        "cuDeviceGetAttribute");
  const std::string image = sluice::cuda::CompileKernels(kSource, "probe.cu", major * 10);
  CUmodule module = nullptr;
  check(driver.cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  CUfunction first = nullptr;
  check(driver.cuModuleGetFunction(&first, module, "first"), "cuModuleGetFunction");
  CUfunction probe = nullptr;
  check(driver.cuModuleGetFunction(&probe, module, "probe"), "cuModuleGetFunction");
  CUstream stream = nullptr;
  check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

  std::vector<int64_t> samples;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    CUdeviceptr out = 0;
    check(driver.cuMemAllocAsync(&out, 4096, stream), "cuMemAllocAsync");
    void* parameters[] = {&out};
    for (int launch = 0; launch < kCycleLaunches; ++launch) {
      const CUfunction kernel = launch == 0 ? first : probe;
      const int64_t start = NowNs();
      const CUresult result =
          driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
      const int64_t end = NowNs();
      check(result, "cuLaunchKernel");
      if (cycle >= kWarmUpCycles) samples.push_back(end - start);
    }
    check(driver.cuMemFreeAsync(out, stream), "cuMemFreeAsync");
    check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

int main() {
  try {
    std::printf("%lld\n", static_cast<long long>(MedianLaunchNs()));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_probe: %s\n", error.what());
    return 1;
  }
}
