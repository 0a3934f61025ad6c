// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/pattern_kernels.h"

#include <array>

#include "tests/support/nvrtc.h"

namespace sluice::testing {
namespace {

// A thread takes 64 neighbouring words, so that it adds to the counts once; integer sums do not
// depend on the order of the threads.
constexpr unsigned kWordsPerThread = 64;
constexpr unsigned kThreads = 64;

constexpr char kSource[] = R"(
typedef unsigned long long u64;

__device__ u64 Mix(u64 value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdull;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return value ^ (value >> 33);
}

__device__ u64 Pattern(u64 seed, u64 place, unsigned rounds) {
  u64 value = Mix(seed + place * 0x9e3779b97f4a7c15ull);
  // An even number of inversions: time passes, the value stays.
  for (unsigned i = 0; i < 2 * rounds; ++i) value = ~value + (Mix(value | 1) == 0);
  return value;
}

extern "C" __global__ void pattern_fill(u64* block, u64 words, u64 old_seed, u64 new_seed, u64* counts,
                                        unsigned rounds) {
  u64 begin = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 64;
  u64 end = begin + 64 < words ? begin + 64 : words;
  for (u64 i = begin; i < end; ++i) block[i] = Pattern(new_seed, i, rounds);
}

extern "C" __global__ void pattern_check(u64* block, u64 words, u64 old_seed, u64 new_seed,
                                         u64* counts, unsigned rounds) {
  u64 begin = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 64;
  u64 end = begin + 64 < words ? begin + 64 : words;
  u64 wrong = 0;
  u64 digest = 0;
  for (u64 i = begin; i < end; ++i) {
    u64 word = block[i];
    wrong += word != Pattern(old_seed, i, rounds);
    digest += Mix(word ^ i);
  }
  if (wrong != 0) atomicAdd(&counts[0], wrong);
  if (begin < end) atomicAdd(&counts[1], digest);
  if (begin < end) atomicAdd(&counts[2], end - begin);
}

__device__ void Touch(u64* block, u64 words, u64 old_seed, u64 new_seed, u64* counts,
                      unsigned rounds) {
  u64 begin = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 64;
  u64 end = begin + 64 < words ? begin + 64 : words;
  u64 wrong = 0;
  u64 digest = 0;
  for (u64 i = begin; i < end; ++i) {
    u64 word = block[i];
    wrong += word != Pattern(old_seed, i, rounds);
    digest += Mix(word ^ i);
    block[i] = Pattern(new_seed, i, 0);
  }
  if (wrong != 0) atomicAdd(&counts[0], wrong);
  if (begin < end) atomicAdd(&counts[1], digest);
  if (begin < end) atomicAdd(&counts[2], end - begin);
}

extern "C" __global__ void pattern_touch(u64* block, u64 words, u64 old_seed, u64 new_seed,
                                         u64* counts, unsigned rounds) {
  Touch(block, words, old_seed, new_seed, counts, rounds);
}

extern "C" __global__ void ncclDevKernel_Pattern(u64* block, u64 words, u64 old_seed, u64 new_seed,
                                                 u64* counts, unsigned rounds) {
  Touch(block, words, old_seed, new_seed, counts, rounds);
}
)";

}  // namespace

PatternKernels::PatternKernels(Driver& driver) : driver_(driver) {
  const std::string image = CompileForCurrentDevice(driver, kSource, "pattern.cu");
  SLUICE_CU(driver_, cuModuleLoadData, &module_, image.c_str());
  SLUICE_CU(driver_, cuModuleGetFunction, &fill_, module_, "pattern_fill");
  SLUICE_CU(driver_, cuModuleGetFunction, &check_, module_, "pattern_check");
  SLUICE_CU(driver_, cuModuleGetFunction, &touch_, module_, "pattern_touch");
  SLUICE_CU(driver_, cuModuleGetFunction, &collective_, module_, "ncclDevKernel_Pattern");
  SLUICE_CU(driver_, cuMemAlloc_v2, &counts_, kCountBytes);
  SLUICE_CU(driver_, cuMemsetD8_v2, counts_, static_cast<unsigned char>(0), kCountBytes);
}

void PatternKernels::Launch(CUfunction function, CUdeviceptr block, uint64_t bytes,
                            uint64_t old_seed, uint64_t new_seed, CUstream stream) {
  uint64_t words = bytes / kWordBytes;
  constexpr uint64_t kWordsPerBlock = uint64_t{kWordsPerThread} * kThreads;
  const auto grid = static_cast<unsigned>((words + kWordsPerBlock - 1) / kWordsPerBlock);
  void* params[] = {&block, &words, &old_seed, &new_seed, &counts_, &rounds_};
  SLUICE_CU(driver_, cuLaunchKernel, function, grid, 1u, 1u, kThreads, 1u, 1u, 0u, stream, params,
            nullptr);
}

void PatternKernels::Fill(CUdeviceptr block, uint64_t bytes, uint64_t seed, CUstream stream) {
  Launch(fill_, block, bytes, 0, seed, stream);
}

void PatternKernels::Check(CUdeviceptr block, uint64_t bytes, uint64_t seed, CUstream stream) {
  Launch(check_, block, bytes, seed, 0, stream);
}

void PatternKernels::Touch(CUdeviceptr block, uint64_t bytes, uint64_t old_seed, uint64_t new_seed,
                           CUstream stream) {
  Launch(touch_, block, bytes, old_seed, new_seed, stream);
}

void PatternKernels::TouchAsNccl(CUdeviceptr block, uint64_t bytes, uint64_t old_seed,
                                 uint64_t new_seed, CUstream stream) {
  Launch(collective_, block, bytes, old_seed, new_seed, stream);
}

PatternCounts PatternKernels::Read() {
  SLUICE_CU(driver_, cuCtxSynchronize);
  std::array<uint64_t, 3> words = {};
  SLUICE_CU(driver_, cuMemcpyDtoH_v2, static_cast<void*>(words.data()), counts_, sizeof words);
  return {words[0], words[1], words[2]};
}

}  // namespace sluice::testing
